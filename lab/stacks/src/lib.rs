// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions on the stacks of other processes, from their registers and a copy of what lies on
//! the stack: by the tables that compilers write for exceptions, as programs without frame pointers
//! need. And of the kernel's, by its own list of names.
//!
//! ```text
//! /proc/PID/maps ─► space ─┬─► places of a stack ─► names
//! its files ─► module ─────┘        /proc/kallsyms ─► kernel ─► names of the kernel's functions
//! ```
//!
//! What another process maps is its own choice: every file is read with bounds, nothing is mapped,
//! and what cannot be read or unwound ends the stack there.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]
#![allow(
    missing_docs,
    reason = "only the command uses this crate: a name says what it is, and a comment what it does not say"
)]

mod kernel;
mod module;
mod space;

use std::cell::Cell;
use std::collections::HashMap;

pub use self::kernel::Kernel;
use self::module::Module;
use self::space::Space;

/// Processes whose files are remembered.
const SPACES: usize = 128;
/// Bytes that tables, and names of functions, take together at the most.
const ROOM: u64 = 1 << 28;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    pub code: u64,
    /// Where its stack ends.
    pub stack: u64,
    /// The frame pointer, which may hold anything.
    pub frame: u64,
    /// Where the function returns to; for processors that have it in a register.
    pub back: u64,
}

/// The address spaces of the processes whose stacks were seen.
///
/// ```
/// use doorbell_stacks::Place;
///
/// let mut spaces = doorbell_stacks::Spaces::default();
/// let registers = doorbell_stacks::Registers { code: 0x1000, stack: 0x2000, frame: 0, back: 0 };
/// // No process has this number, and nothing is known of its code.
/// assert_eq!(spaces.places(i32::MAX, registers, &[]), [Place { file: None, address: 0x1000 }]);
/// assert_eq!(spaces.name(Place { file: None, address: 0x1000 }), "0x1000");
/// ```
#[derive(Debug, Default)]
pub struct Spaces {
    spaces: HashMap<i32, Space>,
    modules: Modules,
}

/// A place in a file's code; of none is the address in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The number of the file in what found it.
    pub file: Option<u32>,
    /// Where that is meant to be.
    pub address: u64,
}

/// Files of code.
#[derive(Debug)]
struct Modules {
    all: Vec<Module>,
    /// Their places, by device and inode.
    places: HashMap<(u64, u64), u32>,
    left_for_tables: Cell<u64>,
    left_for_names: Cell<u64>,
}

impl Default for Modules {
    fn default() -> Self {
        let left = || Cell::new(ROOM);
        let (left_for_tables, left_for_names) = (left(), left());
        Self { all: Vec::new(), places: HashMap::new(), left_for_tables, left_for_names }
    }
}

impl Spaces {
    /// Where the functions on the stack of `process` are in which it was with these registers, the
    /// innermost first; `bytes` are what lies on the stack. The process must not have ended.
    pub fn places(&mut self, process: i32, registers: Registers, bytes: &[u8]) -> Vec<Place> {
        if self.spaces.len() >= SPACES && !self.spaces.contains_key(&process) {
            self.spaces.clear();
        }
        let space = self.spaces.entry(process).or_default();
        space.places(process, registers, bytes, &mut self.modules)
    }

    /// That the process is another program now, called by another name, or about to end.
    pub fn changed(&mut self, process: i32) {
        if let Some(space) = self.spaces.get_mut(&process) {
            space.changed();
        }
    }

    /// The function at a place that this has found: its name, or its file and where it is meant to
    /// be there, or its address.
    pub fn name(&self, place: Place) -> String {
        let module = place.file.and_then(|file| self.modules.all.get(file as usize));
        let left = &self.modules.left_for_names;
        module.map_or_else(|| format!("0x{:x}", place.address), |module| module.function(place.address, left))
    }
}
