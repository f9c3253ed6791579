// SPDX-License-Identifier: MIT OR Apache-2.0
//! Guests: boots a stock Debian kernel whose first process is the program that asks for it, runs a
//! command inside, and brings home what the command says and the files it writes.
//!
//! ```text
//! host                                          guest
//! order, program ──► initramfs ──────────────►  first process ──► command
//! observer, files ◄── frames ◄── second serial port ◄── its output, its files, its end
//! panic, stall    ◄── lines  ◄── first serial port  ◄── the kernel
//! ```
//!
//! Nothing is installed on the host and nothing is written outside the [`cache`]: archive and disk
//! live in memory, and the emulator dies with the process that started it.

pub mod accelerator;
mod apt;
pub mod architecture;
pub mod cache;
pub mod carry;
pub mod channel;
pub mod checkout;
pub mod console;
mod counter;
mod cpio;
pub mod cross;
pub mod driver;
pub mod emulator;
pub mod fetch_error;
pub mod guest;
pub mod hardware;
pub mod initramfs;
pub mod kernel;
mod nobody;
pub mod order;
pub mod packages;
pub mod process;
pub mod program;
pub mod run;
pub mod squall;
pub mod terminal;
