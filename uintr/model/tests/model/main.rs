// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checked models, searched whole, and what they make of a driver's trace.
#![cfg(feature = "model")]

mod other_mechanisms;
mod polled;
mod replay;
mod user_interrupts;
