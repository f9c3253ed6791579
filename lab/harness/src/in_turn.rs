// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two programs that measure beside each other, by turns: while one
//! does, the other sleeps and costs nothing.
//!
//! HOW: whoever compares them makes a file that both map. One word of it says whose
//! turn it is, and only he whose turn it is changes it: he hands it on and sleeps in a
//! futex until it is his again. Both do the same things in the same order, and meet
//! before each; where they are about to do different things they say so and end. On the
//! bench one of them, the first, chooses what comes next, and each takes a slice of it,
//! in random order. Whoever ended the bench early, or is gone, is waited for no more.

use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::thread::futex::{self, Flags};
use serde::{Deserialize, Serialize};

use crate::any_path;
use crate::bench::account::Place;
use crate::site::Word;
use doorbell_results::configuration::Configuration;

/// By which variable of the environment a program learns that it has
/// a turn beside another: `0:PATH` or `1:PATH`.
pub const VARIABLE: &str = "DOORBELL_IN_TURN";

/// What the file holds, by number.
const PROTOCOL: u32 = 1;

/// Whoever waits looks up so often: whether he is to end, and for whoever watches him.
const LOOK_UP: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// The most configurations that take turns between two sides.
const MOST: usize = 1024;

/// Stands for what comes after the last slice.
const OVER: u64 = u64::MAX;

/// Stands for a slice that is not recorded.
const UNRECORDED: u32 = u32::MAX;

/// What both share.
#[derive(Debug)]
#[repr(C)]
struct Words {
    protocol: Word,
    /// How long a pair of sides of each lasts, nanoseconds; how many
    /// each has, and the seed of all orders.
    pair_ns: AtomicU64,
    blocks: Word,
    seed: AtomicU64,
    /// Whose turn it is.
    turn: Word,
    /// How often one of them did something while the other slept.
    worked: Word,
    /// Where they were about to do different things.
    differ: Word,
    /// What comes on the bench.
    number: Word,
    member: AtomicU64,
    at: [AtomicU32; 2],
    each: [Own; 2],
}

/// What one of them says.
#[derive(Debug)]
#[repr(C)]
struct Own {
    /// It has the file open.
    speaks: Word,
    /// It has ended; whoever started it says so.
    gone: Word,
    /// How often it has come to meet the other, and what it then was
    /// about to do: this time and the last.
    arrived: Word,
    about: [AtomicU64; 2],
    /// How many benches it has ended.
    benches: Word,
    /// What it can measure on the one under way, up to the first 0.
    able: [AtomicU64; MOST],
}

/// Why there is no turn any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    #[error("the program that it takes turns with has ended")]
    Gone,
    #[error("the program that it takes turns with measures something else")]
    Differ,
    #[error("the program that it takes turns with has no part in this any more")]
    Left,
    #[error("it was interrupted")]
    Interrupted,
}

/// Where the file lies, and which of the two reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seat {
    #[serde(with = "any_path")]
    path: PathBuf,
    side: u32,
}

/// What a bench is told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    pub seat: Seat,
    /// What both are about to do.
    pub about: u64,
}

/// One of the two.
#[derive(Debug, Clone, Copy)]
pub struct InTurn {
    words: &'static Words,
    side: usize,
}

/// The file, for whoever starts both.
#[derive(Debug)]
pub struct Token {
    words: &'static Words,
    path: PathBuf,
}

/// A slice that one of them chose, for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) number: u32,
    /// What it is of; none after the last.
    pub(crate) member: Option<u64>,
    pub(crate) at: Option<Place>,
}

fn map(file: &File) -> io::Result<&'static Words> {
    let size = size_of::<Words>();
    if file.metadata()?.len() < size as u64 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too short"));
    }
    let rights = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a mapping at an address of the kernel's choice aliases nothing.
    let start = unsafe { mmap(std::ptr::null_mut(), size, rights, MapFlags::SHARED, file, 0) }?;
    // SAFETY: the mapping is page-aligned, as long as `Words`, which holds atomics only and is valid
    // whatever its bytes are, and is never unmapped.
    Ok(unsafe { &*start.cast::<Words>() })
}

impl Token {
    /// Makes the file at `path`, whose folder is nobody else's. Each program has so many `blocks`,
    /// in each of which a pair of sides lasts for `pair`.
    pub fn create(path: &Path, pair: Duration, blocks: u32, seed: u64) -> io::Result<Self> {
        let file = doorbell_files::create_new(path, 0o600)?;
        file.set_len(size_of::<Words>() as u64)?;
        let words = map(&file)?;
        words.pair_ns.store(u64::try_from(pair.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        words.blocks.store(blocks, Relaxed);
        words.seed.store(seed, Relaxed);
        // Pairs with the Acquire load in `Seat::take`.
        words.protocol.store(PROTOCOL, Release);
        Ok(Self { words, path: path.to_owned() })
    }

    /// What the variable is for program `side`, 0 or 1.
    pub fn variable(&self, side: usize) -> std::ffi::OsString {
        let mut value = std::ffi::OsString::from(format!("{side}:"));
        value.push(&self.path);
        value
    }

    /// Whether program `side` takes turns.
    pub fn is_heard(&self, side: usize) -> bool {
        self.words.each[side].speaks.load(Acquire) == PROTOCOL
    }

    /// Whether both were about to do different things.
    pub fn differ(&self) -> bool {
        self.words.differ.load(Acquire) != 0
    }

    /// Program `side` has ended: the other waits for it no more.
    pub fn is_gone(&self, side: usize) {
        self.words.each[side].gone.store(1, Release);
        for word in [&self.words.turn, &self.words.each[side].arrived] {
            wake(word);
        }
    }
}

fn wake(word: &Word) {
    // An error would say that the word is none of this process's memory.
    let _ = futex::wake(word, Flags::empty(), i32::MAX as u32);
}

/// Sleeps while `word` holds `seen`, and no longer than [`LOOK_UP`].
fn sleep(word: &Word, seen: u32) {
    match futex::wait(word, Flags::empty(), seen, Some(&LOOK_UP)) {
        // Whatever ended the sleep, the caller looks again; what cannot sleep must not spin.
        Ok(()) | Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => {}
        Err(_) => std::thread::sleep(Duration::from_millis(1)),
    }
}

/// A number for what both are about to do.
pub fn about(what: &impl Serialize) -> u64 {
    // FNV-1a: the same in every build. 0 and the last number stand for nothing.
    let text = serde_json::to_string(what).unwrap_or_default();
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step).clamp(1, OVER - 1)
}

/// By which number each of `configurations` is known to both: how long it lasts, how it is
/// scheduled and on which CPUs of its placement it runs may be what tells the two programs apart.
pub fn members(configurations: &[Configuration]) -> Vec<u64> {
    let mut known: Vec<u64> = Vec::new();
    let number = |one: &Configuration| {
        let Configuration { subject, contexts, pattern, timing, wait, size, placement, .. } = one;
        about(&(subject, contexts, pattern, timing, wait, size, &placement.relation))
    };
    for alike in configurations.iter().map(number) {
        let again = (0..).map(|time: u64| about(&(alike, time))).find(|own| !known.contains(own));
        known.extend(again);
    }
    known
}

impl Seat {
    /// What the environment says; none where it says nothing.
    pub fn of_environment() -> Option<Self> {
        let value = std::env::var_os(VARIABLE)?;
        let (side, path) = value.as_bytes().split_at_checked(2)?;
        let side = [b"0:", b"1:"].iter().position(|begins| *begins == side)?;
        Some(Self { path: std::ffi::OsStr::from_bytes(path).into(), side: u32::try_from(side).ok()? })
    }

    pub fn take(&self) -> io::Result<InTurn> {
        let told = |cause: io::Error| {
            let told = format!("{VARIABLE} names {}: {cause}", self.path.display());
            io::Error::new(cause.kind(), told)
        };
        let open = || {
            let held = doorbell_files::Held::at(&self.path)?;
            let file = held.open(std::fs::OpenOptions::new().read(true).write(true))?;
            let words = map(&file)?;
            if words.protocol.load(Acquire) != PROTOCOL {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it is of another release"));
            }
            Ok(InTurn { words, side: self.side as usize % 2 })
        };
        let in_turn = open().map_err(told)?;
        in_turn.own().speaks.store(PROTOCOL, Release);
        Ok(in_turn)
    }
}

impl InTurn {
    fn own(&self) -> &'static Own {
        &self.words.each[self.side]
    }

    fn other(&self) -> &'static Own {
        &self.words.each[1 - self.side]
    }

    /// How long a pair of sides lasts.
    pub fn pair(&self) -> Duration {
        Duration::from_nanos(self.words.pair_ns.load(Relaxed))
    }

    pub fn blocks(&self) -> u32 {
        self.words.blocks.load(Relaxed)
    }

    pub fn seed(&self) -> u64 {
        self.words.seed.load(Relaxed)
    }

    /// How often this program has met the other.
    pub fn met(&self) -> u32 {
        self.own().arrived.load(Relaxed)
    }

    /// Waits until the other has come to do what is `about`. Called
    /// while it waits, `goes_on` says whether it still is to.
    pub fn meet(&self, about: u64, goes_on: &mut dyn FnMut() -> bool) -> Result<(), Ended> {
        let (own, other) = (self.own(), self.other());
        let number = own.arrived.load(Relaxed).wrapping_add(1);
        let slot = number as usize % 2;
        own.about[slot].store(about, Relaxed);
        // Pairs with the Acquire load below: whoever sees the number sees what it is about.
        own.arrived.store(number, Release);
        wake(&own.arrived);
        loop {
            let arrived = other.arrived.load(Acquire);
            // It may have come to meet again, and no further.
            if number.wrapping_sub(arrived) as i32 <= 0 {
                break;
            }
            if other.gone.load(Acquire) != 0 {
                return Err(Ended::Gone);
            }
            if !goes_on() {
                return Err(Ended::Interrupted);
            }
            sleep(&other.arrived, arrived);
        }
        if other.about[slot].load(Relaxed) != about {
            self.words.differ.store(1, Release);
            return Err(Ended::Differ);
        }
        Ok(())
    }

    /// Does `work` while the other sleeps, which does the same before or after that.
    pub fn by_turns<T>(
        &self,
        about: u64,
        goes_on: &mut dyn FnMut() -> bool,
        work: impl FnOnce() -> T,
    ) -> Result<T, Ended> {
        self.meet(about, goes_on)?;
        self.await_turn(goes_on)?;
        let done = work();
        // Who is second keeps the turn, and is first in what comes next.
        if self.words.worked.fetch_add(1, AcqRel).is_multiple_of(2) {
            self.pass();
        }
        Ok(done)
    }

    /// The bench is over for this program: the other waits for it there no more.
    pub fn leave_bench(&self) {
        self.own().benches.fetch_add(1, AcqRel);
        wake(&self.words.turn);
    }

    /// Sleeps until it is this program's turn.
    pub(crate) fn await_turn(&self, goes_on: &mut dyn FnMut() -> bool) -> Result<(), Ended> {
        let turn = &self.words.turn;
        loop {
            let whose = turn.load(Acquire);
            if whose as usize == self.side {
                return Ok(());
            }
            let left = self.other().benches.load(Acquire) != self.own().benches.load(Acquire);
            if left || self.other().gone.load(Acquire) != 0 {
                turn.store(self.side as u32, Release);
                return Err(if left { Ended::Left } else { Ended::Gone });
            }
            if !goes_on() {
                return Err(Ended::Interrupted);
            }
            sleep(turn, whose);
        }
    }

    pub(crate) fn pass(&self) {
        // Pairs with the Acquire load in `await_turn`.
        self.words.turn.store(1 - self.side as u32, Release);
        wake(&self.words.turn);
    }

    /// Whether this program chooses what comes next on the bench.
    pub(crate) fn chooses(&self) -> bool {
        self.side == 0
    }

    /// Says what it can measure on the bench, before both meet there.
    pub(crate) fn can(&self, members: impl Iterator<Item = u64>) {
        let able = members.chain(std::iter::repeat(0));
        self.own().able.iter().zip(able).for_each(|(word, member)| word.store(member, Relaxed));
    }

    pub(crate) fn other_can(&self) -> Vec<u64> {
        self.other().able.iter().map(|word| word.load(Relaxed)).take_while(|member| *member != 0).collect()
    }

    /// Says what comes; heard by whoever has the turn next.
    pub(crate) fn choose(&self, Chosen { number, member, at }: Chosen) {
        let words = self.words;
        words.member.store(member.unwrap_or(OVER), Relaxed);
        let Place { turn, place } = at.unwrap_or(Place { turn: UNRECORDED, place: 0 });
        for (word, value) in words.at.iter().zip([turn, place]) {
            word.store(value, Relaxed);
        }
        words.number.store(number, Relaxed);
    }

    pub(crate) fn chosen(&self) -> Chosen {
        let words = self.words;
        let [turn, place] = words.at.each_ref().map(|word| word.load(Relaxed));
        Chosen {
            number: words.number.load(Relaxed),
            member: Some(words.member.load(Relaxed)).filter(|member| *member != OVER),
            at: (turn != UNRECORDED).then_some(Place { turn, place }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::record::sample;

    fn two() -> (tempfile::TempDir, Token, [InTurn; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("turns");
        let token = Token::create(&path, Duration::from_millis(300), 10, 1).unwrap();
        let seats = [0, 1].map(|side| Seat { path: path.clone(), side }.take().unwrap());
        assert!(token.is_heard(0) && token.is_heard(1));
        (folder, token, seats)
    }

    fn on() -> bool {
        true
    }

    #[test]
    fn each_works_while_the_other_does_not_and_who_was_second_is_first_the_next_time() {
        let (_folder, _token, seats) = two();
        let (at_work, order) = (AtomicU32::new(0), std::sync::Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for seat in &seats {
                scope.spawn(|| {
                    for what in 1..=200 {
                        let work = || {
                            assert_eq!(at_work.fetch_add(1, AcqRel), 0, "both at once");
                            order.lock().unwrap().push(seat.side);
                            std::thread::yield_now();
                            at_work.fetch_sub(1, AcqRel);
                        };
                        seat.by_turns(what, &mut on, work).unwrap();
                    }
                });
            }
        });
        let order = order.into_inner().unwrap();
        assert_eq!(order.len(), 400);
        assert!(order.chunks(4).all(|four| four == [0, 1, 1, 0]), "{order:?}");
    }

    #[test]
    fn who_is_about_to_do_something_else_is_told_apart_and_who_is_gone_or_left_is_not_waited_for() {
        let (_folder, token, [first, second]) = two();
        let told = std::thread::scope(|scope| {
            let other = scope.spawn(|| second.meet(2, &mut on));
            [first.meet(1, &mut on), other.join().unwrap()]
        });
        assert!(told.contains(&Err(Ended::Differ)) && token.differ(), "{told:?}");
        second.leave_bench();
        first.pass();
        assert_eq!(first.await_turn(&mut on), Err(Ended::Left));
        assert_eq!(first.await_turn(&mut on), Ok(()), "the turn is back");
        first.leave_bench();
        first.pass();
        assert_eq!(first.await_turn(&mut || false), Err(Ended::Interrupted));
        token.is_gone(1);
        assert_eq!(first.meet(3, &mut on), Err(Ended::Gone));
    }

    #[test]
    fn what_tells_two_programs_apart_does_not_tell_their_configurations_apart() {
        let futex = sample::configuration("futex");
        let mut slowed = Configuration { injected_slowdown_ppm: Some(50_000), ..futex.clone() };
        slowed.placement.cpus = Some([0, 1]);
        let of = |all: &[&Configuration]| members(&all.iter().copied().cloned().collect::<Vec<_>>());
        assert_eq!(of(&[&futex]), of(&[&slowed]));
        let twice = of(&[&futex, &slowed]);
        assert_ne!(twice[0], twice[1]);
        assert_ne!(of(&[&futex]), of(&[&sample::configuration("pipe")]));
    }

    #[test]
    fn what_one_chose_the_other_reads() {
        let (_folder, _token, [first, second]) = two();
        for at in [Some(Place { turn: 3, place: 8 }), None] {
            let chosen = Chosen { number: 7, member: Some(5), at };
            first.choose(chosen);
            assert_eq!(second.chosen(), chosen);
        }
        first.choose(Chosen { number: 8, member: None, at: None });
        assert_eq!(second.chosen().member, None);
        first.can([4, 9].into_iter());
        assert_eq!(second.other_can(), [4, 9]);
    }
}
