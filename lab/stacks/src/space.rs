// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a process has mapped, and where in it a stack leads.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use framehop::{CacheNative, MayAllocateDuringUnwind, Unwinder, UnwinderNative};

use super::module::Module;
use super::{Modules, Place, Registers};

/// Functions of one stack that are told: below those of a recursion is nothing new.
const DEEPEST: usize = 64;

/// The shortest time between two reads of what a process has mapped: after an address was in no
/// file that is known (code that a process compiles itself never is), and where all were (a file may
/// have been unmapped).
const AFTER_UNKNOWN: Duration = Duration::from_millis(10);
const AFTER_KNOWN: Duration = Duration::from_millis(100);
/// A read holds the lock that the process needs to map something: the pause after it is so many
/// times as long, which leaves the process 98 % of its time.
const PAUSE_FACTOR: u32 = 50;
/// Parts of files that a process has mapped which are looked at.
const PARTS: usize = 4096;
/// Files that are kept open at the most.
const FILES: usize = 500;

/// Where a file lies.
#[derive(Debug, Clone)]
struct Mapped {
    range: Range<u64>,
    /// How far above where it is meant to lie.
    moved: u64,
    /// The file's place in [`Modules::all`].
    file: u32,
}

/// A line of `/proc/PID/maps` that is code of a file.
#[derive(Debug, PartialEq, Eq)]
struct Line<'a> {
    range: Range<u64>,
    offset: u64,
    file: (u64, u64),
    path: &'a str,
}

/// What a process has mapped.
#[derive(Default)]
pub(super) struct Space {
    unwinder: UnwinderNative<Arc<[u8]>, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
    mapped: Vec<Mapped>,
    looked: Option<Looked>,
}

/// When it was looked at, how long not to do that again, and what was there.
#[derive(Debug, Clone, Copy)]
struct Looked {
    at: Instant,
    pause: Duration,
    maps: u64,
}

impl fmt::Debug for Space {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Space").field("mapped", &self.mapped).finish_non_exhaustive()
    }
}

impl Space {
    pub(super) fn places(
        &mut self,
        process: i32,
        registers: Registers,
        bytes: &[u8],
        modules: &mut Modules,
    ) -> Vec<Place> {
        let due = |this: &Self, after: Duration| {
            this.looked.is_none_or(|looked| looked.at.elapsed() >= looked.pause.max(after))
        };
        if due(self, AFTER_KNOWN) {
            self.look(process, modules);
        }
        let mut places = self.known(registers, bytes);
        // What was not there before it has mapped since.
        if places.iter().any(|place| place.file.is_none())
            && due(self, AFTER_UNKNOWN)
            && self.look(process, modules)
        {
            places = self.known(registers, bytes);
        }
        places
    }

    /// That what was seen may not be there any more; of a process that has ended it stays.
    pub(super) fn changed(&mut self) {
        self.looked = None;
    }

    /// The places of a stack, by what is known to be mapped.
    fn known(&mut self, registers: Registers, bytes: &[u8]) -> Vec<Place> {
        let addresses = self.addresses(registers, bytes);
        let place = |address: u64| match self.at(address) {
            Some(Mapped { moved, file, .. }) => {
                Place { file: Some(*file), address: address.wrapping_sub(*moved) }
            }
            None => Place { file: None, address },
        };
        addresses.into_iter().map(place).collect()
    }

    fn at(&self, address: u64) -> Option<&Mapped> {
        self.mapped.iter().find(|mapped| mapped.range.contains(&address))
    }

    fn addresses(&mut self, registers: Registers, bytes: &[u8]) -> Vec<u64> {
        let mut word = |address: u64| {
            let at = usize::try_from(address.checked_sub(registers.stack).ok_or(())?).map_err(drop)?;
            let word = bytes.get(at..at.checked_add(8).ok_or(())?).ok_or(())?;
            <[u8; 8]>::try_from(word).map(u64::from_ne_bytes).map_err(drop)
        };
        let Registers { code, stack, frame, back } = registers;
        #[cfg(target_arch = "x86_64")]
        let (_, start) = (back, framehop::x86_64::UnwindRegsX86_64::new(code, stack, frame));
        #[cfg(target_arch = "aarch64")]
        let start = framehop::aarch64::UnwindRegsAarch64::new(back, stack, frame);
        let mut frames = self.unwinder.iter_frames(code, start, &mut self.cache, &mut word);
        let mut addresses = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            // Of a caller the address before the one to which is returned: it may be the last.
            addresses.push(frame.address_for_lookup());
            if addresses.len() == DEEPEST {
                break;
            }
        }
        addresses
    }

    /// Looks at what the process has mapped now; whether that has changed.
    fn look(&mut self, process: i32, modules: &mut Modules) -> bool {
        let begun = Instant::now();
        let maps = doorbell_files::kernel(format!("/proc/{process}/maps")).unwrap_or_default();
        if maps.is_empty() {
            // It has ended: what was seen of it stays.
            return false;
        }
        let mut hasher = DefaultHasher::new();
        maps.hash(&mut hasher);
        let before = self.looked;
        let looked =
            Looked { at: Instant::now(), pause: begun.elapsed() * PAUSE_FACTOR, maps: hasher.finish() };
        if before.is_some_and(|before| before.maps == looked.maps) {
            self.looked = Some(looked);
            return false;
        }
        *self = Self { looked: Some(looked), ..Self::default() };
        for line in maps.lines().filter_map(line).take(PARTS) {
            let file = modules.places.get(&line.file).copied().or_else(|| {
                if modules.all.len() >= FILES {
                    return None;
                }
                modules.all.push(opened(process, &line, &modules.left_for_tables)?);
                let file = modules.all.len() as u32 - 1;
                modules.places.insert(line.file, file);
                Some(file)
            });
            let Some(file) = file else { continue };
            let module = &modules.all[file as usize];
            let Some(moved) = module.moved(line.range.start, line.offset) else { continue };
            self.unwinder.add_module(module.mapped(line.range.clone(), moved));
            self.mapped.push(Mapped { range: line.range, moved, file });
        }
        true
    }
}

/// The file of a line, if it is still what is mapped there.
fn opened(process: i32, line: &Line<'_>, left: &Cell<u64>) -> Option<Module> {
    let Range { start, end } = line.range;
    // What is mapped, which needs rights and may have no name any more; or by its name, as the process
    // sees it, or this one: each may have another root.
    let paths = [
        format!("/proc/{process}/map_files/{start:x}-{end:x}"),
        format!("/proc/{process}/root{}", line.path),
        line.path.to_owned(),
    ];
    let file = paths.iter().find_map(|path| {
        let file = doorbell_files::open(Path::new(path)).ok()?;
        is_of(&file, line).then_some(file)
    })?;
    let name = Path::new(line.path).file_name().map_or("?".into(), |name| name.to_string_lossy());
    Some(Module::read(&name, file, left))
}

fn is_of(file: &File, line: &Line<'_>) -> bool {
    let Ok(there) = file.metadata() else { return false };
    let (major, minor) = (line.file.0 >> 32, line.file.0 & 0xffff_ffff);
    let device = there.dev();
    // As makedev(3) puts a device's number together.
    let of_device =
        [(device >> 8 & 0xfff) | (device >> 32 & !0xfff), (device & 0xff) | (device >> 12 & !0xff)];
    there.ino() == line.file.1 && of_device == [major, minor]
}

/// A line that is code of a file; none of others.
fn line(text: &str) -> Option<Line<'_>> {
    // Its address, rights, offset, device and inode, each after one blank, then a path, which may
    // have blanks (proc_pid_maps(5)).
    let mut words = text.splitn(6, ' ');
    let (range, rights) = (words.next()?, words.next()?);
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let (from, to) = range.split_once('-')?;
    let range = number(from)?..number(to)?;
    let offset = number(words.next()?)?;
    let (major, minor) = words.next()?.split_once(':')?;
    let inode = words.next()?.parse().ok()?;
    let path = words.next()?.trim_start();
    let is_code = rights.as_bytes().get(2) == Some(&b'x') && path.starts_with('/') && !range.is_empty();
    let file = (number(major)? << 32 | number(minor)?, inode);
    is_code.then_some(Line { range, offset, file, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_of_a_process_that_has_ended_stays() {
        let mut space = Space { mapped: vec![Mapped { range: 1..9, moved: 0, file: 0 }], ..Space::default() };
        space.changed();
        let registers = Registers { code: 5, stack: 0, frame: 0, back: 0 };
        // No process has this number.
        let places = space.places(i32::MAX, registers, &[], &mut Modules::default());
        assert_eq!(places[0], Place { file: Some(0), address: 5 });
    }

    #[test]
    fn of_what_is_mapped_the_code_of_files_counts() {
        let text = "55d0-55e0 r-xp 00001000 fd:01 42                 /usr/bin/a server";
        let code = Line {
            range: 0x55d0..0x55e0,
            offset: 0x1000,
            file: (0xfd_0000_0001, 42),
            path: "/usr/bin/a server",
        };
        assert_eq!(line(text), Some(code));
        for other in [
            "55d0-55e0 r--p 00001000 fd:01 42 /usr/bin/server",
            "7ff0-7ff1 r-xp 00000000 00:00 0 [vdso]",
            "7ff0-7ff1 r-xp 00000000 00:00 0",
            "7ff1-7ff0 r-xp 00000000 00:00 0 /x",
            "",
            "x-y z",
        ] {
            assert_eq!(line(other), None, "{other}");
        }
    }
}
