// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command as a user meets it, driven from outside.

mod anatomy;
mod bad_input;
mod every_verb;
mod exercise;
mod fanout;
mod fleet;
mod gpu;
mod guests;
mod hostile;
mod interrupt;
mod io;
mod library;
mod machines;
mod mechanisms;
mod model;
mod net;
mod operations;
mod other_users;
mod primitives;
mod results;
mod scheduling;
mod stage;
mod stands_alone;
mod tasks;
mod throttled;
mod trace;
mod verdicts;
mod world;
