// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tasks of a trial share: the ready queue, the count of
//! turns, the stamps of laps, each task's working set.
//!
//! A *turn* is what a task does between being handed control and handing it on: it writes its
//! working set, counts itself, and every so many turns of all tasks takes a stamp. Every kind of
//! task does the same turn through `TaskContext::turn`; kinds differ only in how control gets from
//! one task to the next. A hand-off is one turn with one passing on of control, so
//! there are exactly as many hand-offs as turns.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use rustix::io::Errno;
use rustix::thread::futex;

use super::node::Node;
use super::queue::Queue;
use crate::mechanism::{Fault, OpenError, Word};
use doorbell_harness::arena::{Arena, Zeroed};
use doorbell_harness::control::{Control, Step};
use doorbell_harness::counters::Usage;
use doorbell_harness::side::fill;
use doorbell_machine::clock::Now;
use doorbell_results::configuration::{Configuration, Pattern};
use doorbell_results::machine::clock::Clock;

/// Turns between two stamps, at the least: a reading of the clock costs some 25 ns, which then is a
/// tenth of a nanosecond a turn.
const STRETCH: u64 = 256;

/// Turns between two signs of life for the watchdog, at the most:
/// fewer than a second of the slowest kind.
const SIGN_EVERY: u64 = 4096;

const COMPLAINT: usize = 256;

/// Words that the tasks of a trial write.
#[repr(C, align(128))]
struct Ledger {
    /// Turns done by all tasks.
    count: AtomicU64,
    /// The count at which something is due: a stamp, or a sign of life.
    due: AtomicU64,
    /// Turns of each task; 0 tells all to go home at their next turn.
    goal: AtomicU64,
    /// The count at which the next stamp is due.
    stamp_due: AtomicU64,
    stamped: AtomicU64,
    ready: Word,
    /// How many of them the driver waits for; wakes before that would only cost it its sleep.
    awaited: AtomicU32,
    /// Set when the last turn is done, or a task cannot go on.
    finished: Word,
    /// Set when tasks that do not wait for one another may begin.
    gate: Word,
    /// Set when tasks may leave.
    home: Word,
    /// Tasks that have had their last turn, where nobody else knows.
    left: AtomicU32,
    /// Turns that followed one of the same task.
    repeats: AtomicU64,
    /// User and system time, minor and major faults of tasks that have gone home.
    spent: [AtomicU64; 4],
    /// 1 once somebody writes a complaint, 2 once it can be read.
    complained: AtomicU32,
    complaint: [AtomicU8; COMPLAINT],
}

// SAFETY: atomics and arrays of atomics only; all are valid at zero.
unsafe impl Zeroed for Ledger {}

/// The tasks' common ground. One word, so that a task that keeps it is no larger than what it is
/// made of: with a copy of all this in each of them a future had four cache lines to itself.
#[derive(Clone, Copy)]
pub(crate) struct TaskContext(&'static Shared);

impl std::ops::Deref for TaskContext {
    type Target = Shared;
    #[inline(always)]
    fn deref(&self) -> &Shared {
        self.0
    }
}

pub(crate) struct Shared {
    pub(super) clock: Clock,
    pub(super) tasks: u32,
    pub(super) yields: u32,
    /// The CPUs over which threads and processes are dealt out in
    /// turn; none leaves it to the scheduler.
    pub(super) cpus: Option<[u32; 2]>,
    pub(super) queue: Queue,
    pub(super) nodes: &'static [Node],
    /// A word for each task to sleep on.
    pub(super) words: &'static [Word],
    /// For a ring of tasks, which needs one slot more than it has tasks.
    pub(super) slots: &'static [AtomicU32],
    /// For the two ends of such a ring, or whatever else two words are needed for.
    pub(super) ends: &'static [Word],
    pub(super) control: &'static Control,
    ledger: &'static Ledger,
    turns: &'static [AtomicU64],
    stamps: &'static [AtomicU64],
    sets: &'static [AtomicU8],
    size: usize,
}

/// Tasks and turns of each that `configuration` asks for; at least one turn.
pub(crate) fn extent(configuration: &Configuration) -> (u32, u32) {
    match configuration.pattern {
        Pattern::Tasks { tasks, yields } => (tasks.max(1), yields.max(1)),
        _ => (1, 1),
    }
}

/// Turns between two stamps: whole laps.
fn stretch(tasks: u32, yields: u32) -> u64 {
    let laps = STRETCH.div_ceil(tasks.into()).min(yields.into());
    u64::from(tasks) * laps
}

/// Shared memory for the tasks of `configuration`, bytes.
pub(crate) fn bytes(configuration: &Configuration) -> usize {
    let (tasks, yields) = extent(configuration);
    let each = size_of::<Word>() + size_of::<u64>() + 2 * size_of::<u32>() + set_bytes(configuration);
    let stamps = u64::from(tasks) * u64::from(yields) / stretch(tasks, yields) + 3;
    size_of::<Ledger>() + tasks as usize * each + stamps as usize * size_of::<u64>() + 24 * size_of::<Word>()
}

/// Bytes between two tasks' working sets: whole cache-line pairs, so that no set is half another's.
fn set_bytes(configuration: &Configuration) -> usize {
    (configuration.size as usize).next_multiple_of(align_of::<Word>())
}

impl TaskContext {
    /// Makes room for the tasks of `configuration`.
    pub(crate) fn place(
        arena: &'static Arena,
        configuration: &Configuration,
        clock: Clock,
        control: &'static Control,
    ) -> Result<Self, OpenError> {
        let (tasks, yields) = extent(configuration);
        let stamps = u64::from(tasks) * u64::from(yields) / stretch(tasks, yields) + 3;
        let queue = Queue::place(arena, tasks)?;
        // For good: a trial has one task context, and its process ends with it.
        Ok(Self(Box::leak(Box::new(Shared {
            clock,
            tasks,
            yields,
            cpus: configuration.placement.cpus,
            queue,
            nodes: Node::of(queue, tasks),
            words: arena.slice(tasks as usize)?,
            slots: arena.slice(tasks as usize + 1)?,
            ends: arena.slice(2)?,
            control,
            ledger: arena.place()?,
            turns: arena.words(tasks as usize)?,
            stamps: arena.words(stamps as usize)?,
            sets: arena.bytes(tasks as usize * set_bytes(configuration))?,
            size: configuration.size as usize,
        }))))
    }

    /// The same with one turn each, and so many tasks at the most.
    pub(super) fn of_one_turn(self, most: u32) -> Self {
        let tasks = self.tasks.min(most);
        let first = tasks as usize;
        Self(Box::leak(Box::new(Shared {
            tasks,
            yields: 1,
            queue: self.queue.of_the_first(tasks),
            nodes: &self.nodes[..first],
            words: &self.words[..first],
            slots: &self.slots[..=first],
            turns: &self.turns[..first],
            ..*self.0
        })))
    }

    /// Turns of all tasks together, from making them to reaping them once.
    pub(super) fn total(&self) -> u64 {
        u64::from(self.tasks) * u64::from(self.yields)
    }

    /// Makes ready for another generation of tasks.
    pub(super) fn reset(&self) {
        let ledger = self.ledger;
        let due = self.next_stamp(0);
        ledger.count.store(0, Relaxed);
        ledger.stamp_due.store(due, Relaxed);
        ledger.due.store(due.min(SIGN_EVERY), Relaxed);
        ledger.goal.store(self.yields.into(), Relaxed);
        ledger.stamped.store(0, Relaxed);
        ledger.left.store(0, Relaxed);
        ledger.repeats.store(0, Relaxed);
        for word in
            [&ledger.ready, &ledger.finished, &ledger.gate, &ledger.home].into_iter().chain(self.words)
        {
            word.store(0, Relaxed);
        }
        self.turns.iter().chain(&ledger.spent).for_each(|count| count.store(0, Relaxed));
        self.queue.clear();
    }

    /// Takes the stamp from which the first hand-off counts.
    pub(super) fn begin(&self) {
        self.stamps[0].store(self.clock.now(), Relaxed);
        self.ledger.stamped.store(1, Relaxed);
    }

    /// One turn of `task`; says whether it has another.
    ///
    /// The words are written by one task at a time, which is why a load and a store count where an
    /// atomic addition would cost more than the hand-off of a coroutine: control comes and goes
    /// with the Acquire and Release of whatever passes it.
    #[inline(always)]
    pub(super) fn turn(&self, task: u32) -> bool {
        let own = &self.turns[task as usize];
        let turns = own.load(Relaxed) + 1;
        own.store(turns, Relaxed);
        if self.size > 0 {
            fill(self.set(task), turns as u8);
        }
        let ledger = self.ledger;
        let count = ledger.count.load(Relaxed) + 1;
        ledger.count.store(count, Relaxed);
        if count == ledger.due.load(Relaxed) {
            self.due(count);
        }
        turns < ledger.goal.load(Relaxed)
    }

    /// A turn of a task that others may interrupt in the middle of theirs, once in its life.
    pub(super) fn live(&self, task: u32) {
        self.turns[task as usize].fetch_add(1, Relaxed);
        self.ledger.count.fetch_add(1, AcqRel);
    }

    /// Counts a turn that followed one of the same task.
    pub(super) fn repeat(&self) {
        self.ledger.repeats.store(self.ledger.repeats.load(Relaxed) + 1, Relaxed);
    }

    /// Turns that followed one of the same task.
    pub(super) fn repeats(&self) -> u64 {
        self.ledger.repeats.load(Relaxed)
    }

    #[cold]
    fn due(&self, count: u64) {
        let ledger = self.ledger;
        let progress = &self.control.progress[0];
        progress.sequence.store(progress.sequence.load(Relaxed) + 1, Relaxed);
        progress.step.store(Step::Operates as u32, Relaxed);
        if self.control.interrupted.load(Relaxed) != 0 {
            ledger.goal.store(0, Relaxed);
        }
        if count == ledger.stamp_due.load(Relaxed) {
            let index = ledger.stamped.load(Relaxed);
            if let Some(stamp) = self.stamps.get(index as usize) {
                stamp.store(self.clock.now_awake(), Relaxed);
                ledger.stamped.store(index + 1, Relaxed);
            }
            ledger.stamp_due.store(self.next_stamp(count), Relaxed);
        }
        ledger.due.store(ledger.stamp_due.load(Relaxed).min(count + SIGN_EVERY), Relaxed);
    }

    /// The count at which the stamp after `count` turns is due: a stretch later, and at the very
    /// end if less than another would be left, so that none is shorter than the others.
    fn next_stamp(&self, count: u64) -> u64 {
        let (each, total) = (stretch(self.tasks, self.yields), self.total());
        if total.saturating_sub(count) < 2 * each { total } else { count + each }
    }

    fn set(&self, task: u32) -> &'static [AtomicU8] {
        let apart = self.sets.len() / self.tasks as usize;
        let start = task as usize * apart;
        &self.sets[start..start + self.size]
    }

    /// Stretches of turns and how long each took: picoseconds, turns.
    pub(super) fn stretches(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let stamped = (self.ledger.stamped.load(Acquire) as usize).min(self.stamps.len());
        let mut done = 0;
        self.stamps[..stamped].windows(2).map(move |pair| {
            let turns = self.next_stamp(done) - done;
            done += turns;
            let ticks = pair[1].load(Relaxed).saturating_sub(pair[0].load(Relaxed));
            (self.clock.ps(ticks), turns.max(1))
        })
    }

    /// Turns counted by all together, and the sum of what each task counted for itself.
    pub(super) fn counted(&self) -> (u64, u64) {
        let own = self.turns.iter().map(|turns| turns.load(Relaxed)).sum();
        (self.ledger.count.load(Acquire), own)
    }

    /// A task whose own count is not what each must have.
    pub(super) fn odd_one(&self) -> Option<(usize, u64)> {
        let counts = self.turns.iter().map(|turns| turns.load(Relaxed));
        counts.enumerate().find(|(_, turns)| *turns != u64::from(self.yields))
    }

    /// Tells the watchdog that task after task is made or reaped.
    pub(super) fn alive(&self, task: u32) {
        self.control.progress[0].sequence.store(task.into(), Relaxed);
    }

    /// Reads a byte of every page that the task `own` will use, so that none is mapped in the
    /// middle of a turn: pages of shared memory that a process inherits are mapped again at its
    /// first look (Linux mm/memory.c, vma_needs_copy).
    pub(super) fn map(&self, own: u32) {
        look(self.words, |word| word.load(Relaxed).into());
        look(self.slots, |slot| slot.load(Relaxed).into());
        look(self.ends, |end| end.load(Relaxed).into());
        look(self.turns, |turns| turns.load(Relaxed));
        look(self.stamps, |stamp| stamp.load(Relaxed));
        look(self.set(own), |byte| byte.load(Relaxed).into());
        // Within a page each, first word and last; of what both sides
        // share a task uses what stands at its front.
        let ledger = self.ledger;
        look(std::slice::from_ref(&ledger.count), |count| count.load(Relaxed));
        look(&ledger.complaint, |byte| byte.load(Relaxed).into());
        look(std::slice::from_ref(&self.control.interrupted), |word| word.load(Relaxed).into());
        look(&self.control.progress, |progress| progress.sequence.load(Relaxed));
        self.queue.map(|words| look(words, |word| word.load(Relaxed).into()));
    }

    /// Says that a task stands ready.
    pub(super) fn stand_ready(&self) {
        // Pairs with the Acquire load in `await_word`.
        if self.ledger.ready.fetch_add(1, AcqRel) + 1 >= self.ledger.awaited.load(Relaxed) {
            wake(&self.ledger.ready);
        }
    }

    /// Sleeps until the driver opens the gate.
    pub(super) fn await_gate(&self) {
        while self.ledger.gate.load(Acquire) == 0 {
            // Whatever ended the wait, the word tells.
            let _ = futex::wait(&self.ledger.gate.0, futex::Flags::empty(), 0, None);
        }
    }

    /// Lets all tasks that wait at the gate begin.
    pub(super) fn open_gate(&self) {
        // Pairs with the Acquire load in `await_gate`.
        self.ledger.gate.store(1, Release);
        wake(&self.ledger.gate);
    }

    /// Says that one of `all` has had its last turn; true for the last of them.
    pub(super) fn leave(&self, all: u32) -> bool {
        self.ledger.left.fetch_add(1, AcqRel) + 1 == all
    }

    /// Gives control back to the driver.
    pub(super) fn finish(&self) {
        // Pairs with the Acquire load in `await_word`.
        self.ledger.finished.store(1, Release);
        wake(&self.ledger.finished);
    }

    /// Sleeps until the driver lets all tasks leave, and leaves
    /// behind what the caller spent since `before`.
    pub(super) fn go_home(&self, before: &Usage) {
        while self.ledger.home.load(Acquire) == 0 {
            // Whatever ended the wait, the word tells.
            let _ = futex::wait(&self.ledger.home.0, futex::Flags::empty(), 0, None);
        }
        let used = Usage::read().since(before);
        let spent = [used.user_ns, used.system_ns, used.minor_faults, used.major_faults];
        for (sum, own) in self.ledger.spent.iter().zip(spent) {
            sum.fetch_add(own, Relaxed);
        }
    }

    pub(super) fn send_home(&self) {
        // Pairs with the Acquire load in `go_home`.
        self.ledger.home.store(1, Release);
        wake(&self.ledger.home);
    }

    /// What tasks that have gone home spent, as the ledger has it.
    pub(super) fn spent(&self) -> [u64; 4] {
        self.ledger.spent.each_ref().map(|sum| sum.load(Acquire))
    }

    /// Says how many tasks will stand ready, before the first of them is made.
    pub(super) fn expect(&self, number: u32) {
        self.ledger.awaited.store(number, Relaxed);
    }

    /// Sleeps until `number` tasks stand ready. `look` is called
    /// about once a second and may end the wait.
    pub(super) fn await_ready<E>(&self, number: u32, look: impl FnMut() -> Result<(), E>) -> Result<(), E> {
        await_word(&self.ledger.ready, number, look)
    }

    /// Sleeps until the last turn is done.
    pub(super) fn await_finished<E>(&self, look: impl FnMut() -> Result<(), E>) -> Result<(), E> {
        await_word(&self.ledger.finished, 1, look)
    }

    /// Leaves word why a task cannot go on, and gives control back. Only
    /// the first complaint is kept, and who made it gives control back: a
    /// later one would wake the driver before there is anything to read.
    pub(super) fn complain(&self, task: u32, fault: &Fault) {
        if self.ledger.complained.compare_exchange(0, 1, AcqRel, Relaxed).is_err() {
            return;
        }
        let text = format!("task {task}: {fault}");
        for (byte, letter) in self.ledger.complaint.iter().zip(text.bytes()) {
            byte.store(letter, Relaxed);
        }
        // Pairs with the Acquire load in `complaint`.
        self.ledger.complained.store(2, Release);
        self.ledger.ready.store(self.tasks, Release);
        wake(&self.ledger.ready);
        self.finish();
    }

    /// Why a task could not go on.
    pub(super) fn complaint(&self) -> Option<String> {
        (self.ledger.complained.load(Acquire) == 2).then(|| {
            let letters = self.ledger.complaint.iter().map(|byte| byte.load(Relaxed));
            let text: Vec<u8> = letters.take_while(|letter| *letter != 0).collect();
            String::from_utf8_lossy(&text).into_owned()
        })
    }
}

/// Reads an element of every page of `slice`, the last one's too.
fn look<T>(slice: &[T], read: impl Fn(&T) -> u64) {
    const { assert!(size_of::<T>() <= PAGE, "an element on more than one page would not be looked at whole") };
    for element in slice.iter().step_by(PAGE / size_of::<T>()).chain(slice.last()) {
        std::hint::black_box(read(element));
    }
}

/// Bytes of the smallest page.
const PAGE: usize = 4096;

/// Wakes everybody who sleeps on `word`. The only error would be a bad address.
fn wake(word: &Word) {
    let _ = futex::wake(&word.0, futex::Flags::empty(), i32::MAX as u32);
}

fn await_word<E>(word: &Word, wanted: u32, mut look: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    let second = rustix::time::Timespec { tv_sec: 1, tv_nsec: 0 };
    loop {
        let seen = word.load(Acquire);
        if seen >= wanted {
            return Ok(());
        }
        // Else woken, or the word had changed before the wait: it tells.
        if let Err(Errno::TIMEDOUT) = futex::wait(&word.0, futex::Flags::empty(), seen, Some(&second)) {
            look()?;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use doorbell_results::record::sample;

    pub(in crate::task) fn task_context(tasks: u32, yields: u32) -> TaskContext {
        let configuration = Configuration {
            pattern: Pattern::Tasks { tasks, yields },
            size: 100,
            ..sample::configuration("call")
        };
        let arena = Arena::map(size_of::<Control>() + bytes(&configuration) + 8192).unwrap();
        let control = Control::place(arena).unwrap();
        let task_context = TaskContext::place(arena, &configuration, Clock::MONOTONIC, control).unwrap();
        task_context.reset();
        task_context
    }

    #[test]
    fn of_fewer_tasks_no_other_ever_has_its_turn() {
        let few = task_context(1000, 100).of_one_turn(10);
        few.reset();
        few.queue.fill();
        few.begin();
        let order: Vec<u32> = std::iter::from_fn(|| few.queue.pop()).collect();
        assert_eq!(order, (0..10).collect::<Vec<u32>>());
        assert!(order.iter().all(|task| !few.turn(*task)), "a turn each");
        assert_eq!((few.counted(), few.odd_one(), few.total()), ((10, 10), None, 10));
        assert_eq!(few.stretches().map(|(_, turns)| turns).sum::<u64>(), 10);
    }

    #[test]
    fn stretches_cover_every_turn_once_whatever_the_number_of_tasks_and_turns() {
        for (tasks, yields) in [(1, 1), (2, 1), (10, 1), (10, 1000), (300, 7), (1000, 10), (3, 5000)] {
            let task_context = task_context(tasks, yields);
            task_context.begin();
            for lap in 1..=yields {
                for task in 0..tasks {
                    assert_eq!(task_context.turn(task), lap < yields);
                }
            }
            assert_eq!(task_context.stretches().map(|(_, turns)| turns).sum::<u64>(), task_context.total());
            // Of 1000 turns in stretches of 260 the last once had 220 of its own.
            let least = STRETCH.min(task_context.total());
            assert!(task_context.stretches().all(|(_, turns)| turns >= least), "{tasks} x {yields}");
            assert_eq!(task_context.counted(), (task_context.total(), task_context.total()));
            assert_eq!(task_context.odd_one(), None);
        }
    }

    #[test]
    fn a_task_that_had_a_turn_too_many_is_found() {
        let task_context = task_context(5, 2);
        (0..5).for_each(|task| {
            task_context.turn(task);
            task_context.turn(task);
        });
        task_context.turn(3);
        assert_eq!(task_context.odd_one(), Some((3, 3)));
        assert_eq!(task_context.counted(), (11, 11));
    }

    /// The second complaint once woke the driver while the first was
    /// being written: it found none, and blamed /proc.
    #[test]
    fn only_the_first_complaint_wakes_the_driver_and_it_can_be_read_then() {
        let task_context = task_context(3, 4);
        let fault = |cause: &str| Fault::new("open", cause);
        task_context.ledger.complained.store(1, Relaxed);
        task_context.complain(2, &fault("too late"));
        let finished = || task_context.ledger.finished.load(Relaxed);
        assert_eq!(
            (finished(), task_context.ledger.ready.load(Relaxed), task_context.complaint()),
            (0, 0, None)
        );
        task_context.ledger.complained.store(0, Relaxed);
        task_context.complain(1, &fault("no such file"));
        assert_eq!((finished(), task_context.ledger.ready.load(Relaxed)), (1, 3));
        assert!(task_context.complaint().unwrap().contains("no such file"));
    }

    #[test]
    fn working_sets_do_not_overlap() {
        let task_context = task_context(3, 4);
        task_context.turn(1);
        assert!(task_context.set(1).iter().all(|byte| byte.load(Relaxed) == 1));
        assert!(task_context.set(0).iter().chain(task_context.set(2)).all(|byte| byte.load(Relaxed) == 0));
    }
}
