// SPDX-License-Identifier: MIT OR Apache-2.0
//! Intel user interrupts, for people who have no CPU that does them.
//!
//! - [`upid`], [`uitt`], [`msr`], [`xstate`]: the structures a kernel, an emulator and a test
//!   share, with their layout asserted at compile time.
//! - [`cpu`]: the instructions and the asynchronous events as pure functions, *state in, state or
//!   fault out*, each memory access one call of a [`cpu::Memory`]. An emulator can be compared with
//!   them step by step.
//!
//! These parts are `no_std` and have no dependencies.
//!
//! Section numbers in the documentation ("§5.1") are those of the architecture reference in the
//! project's book, `book/uintr-reference.md`.
#![cfg_attr(not(any(feature = "model", test)), no_std)]

pub mod cpu;
#[cfg(feature = "model")]
pub mod model;
pub mod msr;
#[cfg(feature = "model")]
pub mod report;
#[cfg(feature = "model")]
pub mod symptoms;
pub mod uitt;
pub mod upid;
#[cfg(feature = "model")]
pub mod view;
pub mod xstate;
