// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments turn flags into a plan.

pub mod anatomy;
pub mod bench;
pub mod fanout;
pub mod gate;
pub mod gpu;
pub mod idle;
mod in_turn;
pub mod io;
pub mod net;
mod pace;
pub mod pairs;
pub mod pick;
pub mod ping;
pub mod run;
pub mod spin;
pub mod subject;
pub mod survey;
pub mod switch;
pub mod tasks;
pub mod tune;
pub mod uintr;
pub mod why;
