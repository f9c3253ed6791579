// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program in the kernel that puts the wake-ups of followed threads together, one record each:
//! `wake.bpf.c`.
//!
//! ```text
//! wake.bpf.o ─► object ─┐
//! kernel's types ─► place ─► kernel (bpf(2)): maps, programs, links ─► ring ─► record
//! ```
//!
//! The loader is our own: it makes eight maps and attaches ten programs, and needs neither a
//! compiler nor a library of C. All that it makes in the kernel hangs on descriptors of this
//! process: of one that is killed nothing is left.

pub mod kernel;
pub mod object;
pub mod place;
pub mod record;
pub mod ring;
pub mod types;

use std::io;
use std::num::NonZero;
use std::os::fd::OwnedFd;

use self::object::{Meant, Object, Shape};
use self::ring::Ring;
use self::types::{Kind, Types};

/// What the kernel is to run; made of the source beside it.
const OBJECT: &[u8] = include_bytes!("wake.bpf.o");

#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    #[error("this kernel publishes no type information (BTF; {path}: {0}); it needs \
        CONFIG_DEBUG_INFO_BTF", path = types::PATH)]
    NoTypes(io::Error),
    #[error("the kernel's type information ({path}) is not in a form that this program knows", path = types::PATH)]
    Types,
    /// This kernel lacks something.
    #[error("this kernel has no {0}")]
    Absent(&'static str),
    /// Nobody tried it there.
    #[error("BPF programs of this command read the registers of x86-64 and 64-bit ARM alone")]
    Architecture,
    /// This user may not.
    #[error(
        "BPF programs may not be loaded by this user; run as root, or give the program CAP_BPF and \
         CAP_PERFMON"
    )]
    Forbidden,
    /// The kernel does not do what it is asked for.
    #[error("the kernel refuses {what}: {cause}{said}")]
    Refused {
        what: &'static str,
        cause: io::Error,
        /// The last thing that the verifier said, with what leads to it; or nothing.
        said: String,
    },
    /// What it recorded of two threads of this command's own is not what they did.
    #[error(
        "wake-ups of this command's own threads were not recorded as they were; please report the \
         kernel's version (uname -r)"
    )]
    Wrong,
    /// The object is not what is expected.
    #[error("the BPF program that this command was built with has {0}; please report it")]
    Object(&'static str),
}

impl BpfError {
    fn refused(what: &'static str, cause: io::Error) -> Self {
        match cause.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::Forbidden,
            _ => Self::Refused { what, cause, said: String::new() },
        }
    }
}

/// The programs, loaded, of which those run that are attached.
#[derive(Debug)]
pub struct Bpf {
    programs: Vec<(String, OwnedFd)>,
    seed: OwnedFd,
    /// What is attached; closing it takes it off.
    links: Vec<OwnedFd>,
    wanted: OwnedFd,
    numbered: OwnedFd,
    counts: OwnedFd,
    ring: Ring,
    /// Where stacks lie; none where none are recorded.
    stacks: Option<Ring>,
}

/// What must run before anybody is followed, or a thread that is made meanwhile is missed.
const FIRST: [&str; 3] = ["task_newtask", "sched_wakeup_new", "task_rename"];

/// Addresses that are kept of a stack of the kernel's, as `numbered` in the program's source has it.
const DEEPEST: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whom {
    Process(i32),
    Thread(i32),
    /// Not the thread, but whatever it makes.
    ChildrenOf(i32),
}

impl Whom {
    /// As `wanted` in the program's source has it.
    fn key(self) -> u32 {
        match self {
            Self::Process(process) => process.cast_unsigned(),
            Self::Thread(task) => task.cast_unsigned() | 1 << 30,
            Self::ChildrenOf(task) => task.cast_unsigned() | 1 << 31,
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BpfCounts {
    /// Records for which there was no room.
    pub lost: u64,
    /// Sleeps whose waking was not seen.
    pub incomplete: u64,
    /// Stacks for which there was no room.
    pub stacks_lost: u64,
}

impl Bpf {
    /// Loads the programs; with `children` processes that are made by followed ones are followed
    /// too; of `one_in` sleeps one is recorded with its stacks.
    pub fn load(children: bool, one_in: Option<NonZero<u32>>) -> Result<Self, BpfError> {
        let object = Object::read(OBJECT)?;
        let types = Types::of_this_kernel(&place::SOUGHT)?;
        let places = place::places(&types, children, one_in.map_or(0, NonZero::get))?;
        let page = rustix::param::page_size() as u32;
        let maps = object.maps.iter().map(|(name, shape)| match (name.as_str(), one_in) {
            // Nobody writes there; a buffer has a page at least, and stacks may be limited to fewer
            // addresses (kernel.perf_event_max_stack).
            ("numbered", None) => kernel::map(Shape { value: 8, entries: 1, ..*shape }),
            ("stacks", None) => kernel::map(Shape { entries: page, ..*shape }),
            _ => kernel::map(*shape),
        });
        let maps: Vec<OwnedFd> = maps.collect::<Result<_, _>>()?;
        let (rodata, counts) = (kernel::constants(&places)?, kernel::map(Shape::one_of(object.bss))?);
        let mut programs = Vec::new();
        let mut seed = None;
        for program in &object.programs {
            let code = program.linked(|meant| match meant {
                Meant::Map(map) => (kernel::MAP, kernel::number(&maps[*map]), 0),
                Meant::Constant(offset) => (kernel::MAP_VALUE, kernel::number(&rodata), *offset),
                Meant::Count(offset) => (kernel::MAP_VALUE, kernel::number(&counts), *offset),
            })?;
            match program.section.split_once('/') {
                Some(("tp_btf", event)) => {
                    let called = |name: &&&str| name.strip_prefix("btf_trace_") == Some(event);
                    let of = place::SOUGHT.iter().find(called);
                    let of = of.and_then(|name| types.find(Kind::Typedef, name));
                    let of = of.ok_or(BpfError::Absent("trace event that is needed, or no types of it"))?;
                    programs.push((event.to_owned(), kernel::program(&code, kernel::AT_EVENT, of)?));
                }
                Some(("iter", "task")) => {
                    let of = types.find(Kind::Function, "bpf_iter_task");
                    let of = of.ok_or(BpfError::Absent("iterator over tasks for BPF programs"))?;
                    seed = Some(kernel::program(&code, kernel::OVER_TASKS, of)?);
                }
                _ => return Err(BpfError::Object("a section of an unknown kind")),
            }
        }
        let mut named = object.maps.iter().zip(maps).collect::<Vec<_>>();
        let mut take = |wanted: &str| {
            let place = named.iter().position(|((name, _), _)| name == wanted);
            let place = place.ok_or(BpfError::Object("not the maps that it must have"))?;
            let ((_, shape), map) = named.swap_remove(place);
            Ok::<_, BpfError>((map, shape.entries as usize))
        };
        let (records, size) = take("records")?;
        let ring = Ring::of(records, size)?;
        let (stacks, size) = take("stacks")?;
        let stacks = one_in.map(|_| Ring::of(stacks, size)).transpose()?;
        let (wanted, numbered) = (take("wanted")?.0, take("numbered")?.0);
        let seed = seed.ok_or(BpfError::Object("nothing that finds threads"))?;
        let mut all = Self { programs, seed, links: Vec::new(), wanted, numbered, counts, ring, stacks };
        all.attach(|event| FIRST.contains(&event))?;
        Ok(all)
    }

    fn attach(&mut self, which: impl Fn(&str) -> bool) -> Result<(), BpfError> {
        for (event, program) in &self.programs {
            if which(event) {
                self.links.push(kernel::attach(program)?);
            }
        }
        Ok(())
    }

    /// Follows threads that are there, and from then on what they make.
    pub fn follow(&self, whom: &[Whom]) -> Result<(), BpfError> {
        for one in whom {
            kernel::put(&self.wanted, one.key(), 1_u32)?;
        }
        kernel::over_tasks(&self.seed)?;
        // What they make is known by them; their numbers may be given to others.
        whom.iter().try_for_each(|one| kernel::take_out(&self.wanted, one.key()))
    }

    pub fn start(&mut self) -> Result<(), BpfError> {
        self.attach(|event| !FIRST.contains(&event))
    }

    /// Ends it, but for the threads that are made.
    pub fn stop(&mut self) {
        // The last first: a sleep whose end is seen no more is not missed, but one whose waking is
        // not.
        while self.links.len() > FIRST.len() {
            self.links.pop();
        }
    }

    /// Hands each record that lies in the ring to `entry`, and takes it out.
    pub fn drain(&mut self, entry: impl FnMut(&[u8])) {
        self.ring.drain(entry);
    }

    /// The same of each stack.
    pub fn drain_stacks(&mut self, entry: impl FnMut(&[u8])) {
        if let Some(stacks) = &mut self.stacks {
            stacks.drain(entry);
        }
    }

    pub fn counts(&self) -> Result<BpfCounts, BpfError> {
        let [lost, incomplete, stacks_lost] = kernel::get(&self.counts, 0)?;
        Ok(BpfCounts { lost, incomplete, stacks_lost })
    }

    /// The addresses on the kernel's stack of this number, the innermost first.
    pub fn kernel_stack(&self, number: u32) -> Result<Vec<u64>, BpfError> {
        let addresses: [u64; DEEPEST] = kernel::get(&self.numbered, number)?;
        Ok(addresses.into_iter().take_while(|address| *address != 0).collect())
    }
}
