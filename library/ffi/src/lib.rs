// SPDX-License-Identifier: MIT OR Apache-2.0
//! The C interface of the library `doorbell`. What it promises is written in `include/doorbell.h`,
//! which is made from the documentation here; a test holds the two together.
//!
//! No panic leaves it: all but a few functions run in `error::guard`, which makes a status of a
//! panic; those few are named there with the reason why they cannot panic.

// The contract is the same for all functions and stands at the top of the header.
#![allow(clippy::missing_safety_doc)]
// Types are named as C names them, for the header has these names.
#![allow(non_camel_case_types)]

pub mod bell;
pub mod broadcast;
pub mod channel;
pub mod error;
pub mod gather;
mod held;
mod lock;
pub mod options;
mod pointer;
pub mod rendezvous;
pub mod select;
pub mod service;
pub mod users;
