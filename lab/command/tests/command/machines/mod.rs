// SPDX-License-Identifier: MIT OR Apache-2.0
//! Machines other than this one, from recorded trees: what is read of
//! them, which CPUs are paired, what the doctor says.

mod doctor;
mod environment;
mod placements;
mod recorded;
mod screens;
mod spreads;
