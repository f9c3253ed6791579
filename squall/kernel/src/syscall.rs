// SPDX-License-Identifier: MIT OR Apache-2.0
//! The system calls. Whatever a process passes is checked here, and
//! its memory is reached through its page table only.

use squall_scheduler::call::{Call, Counters, Executor, GREATEST_CODE, KILLED, Refusal, TURN_BY_TURN};
use squall_scheduler::image::{MAIL, PART};
use squall_scheduler::pool::{ATTENTION, GIVE_WAY, LEVELS, Part, Task};

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::console::{Console, say};
use crate::frames::{self, FRAME};
use crate::hart::{self, Flush, Hart};
use crate::kernel::{Kernel, interrupt_the_others, leave_space};
use crate::kernel_tasks;
use crate::page_table::{NoMemory, PRIVATE, READ, WRITE, frame_of, mapped};
use crate::space::{A0, A7, NOWHERE, Space, State, space_at};
use crate::timer::Tick;
use crate::trap::flush_here;
use crate::{program, scheduler_image};

/// The most that one call gives.
const MOST_BYTES: usize = 1 << 34;

/// The most that one call prints: the console is slow, and the kernel's lock is held.
const MOST_PRINTED: usize = 4096;

/// The most that one call zeroes before interrupts are taken and
/// other harts have the lock: some 40,000 instructions.
const ZEROED_AT_ONCE: usize = 64 * FRAME;

/// Bytes of the instruction `ecall`.
const LENGTH_OF_A_CALL: usize = 4;

/// Bytes that are copied at a time, by way of the kernel's stack.
const PIECE: usize = 256;

type Answer = Result<usize, Refusal>;

impl From<NoMemory> for Refusal {
    fn from(NoMemory: NoMemory) -> Self {
        Self::Exhausted
    }
}

impl Kernel {
    /// Does what `space` asks for; says whether it goes after the others of its level.
    pub(crate) fn call(&mut self, hart: &mut Hart, space: &mut Space) -> bool {
        let [number, a, b, c, d] = [A7, A0, A0 + 1, A0 + 2, A0 + 3].map(|register| space.registers[register]);
        if number == Call::Yield as usize {
            space.registers[A0] = 0;
            return true;
        }
        self.frames.payer = space.purse;
        let answer = match number {
            n if n == Call::Print as usize => self.print(space, a, b),
            n if n == Call::Exit as usize => {
                leave_space(hart);
                self.end(space, a.min(GREATEST_CODE));
                return false;
            }
            n if n == Call::Spawn as usize => self.spawn(space, a, [b, c], d),
            n if n == Call::Fork as usize => self.fork(space, a != 0),
            n if n == Call::Wait as usize => match self.wait(space, a) {
                None => return false,
                Some(answer) => answer,
            },
            n if n == Call::Kill as usize => self.kill(space, a),
            n if n == Call::Grow as usize || n == Call::Pool as usize => {
                let given =
                    if n == Call::Grow as usize { self.grow(space, a) } else { self.pool(space, a, b) };
                let Some(answer) = given else {
                    // Interrupts come in between, and other harts have the lock.
                    space.registers[0] -= LENGTH_OF_A_CALL;
                    return false;
                };
                answer
            }
            n if n == Call::Park as usize => self.park(space),
            n if n == Call::Kick as usize => {
                let other = self.relative(space, a).ok().filter(|other| other.has_accepted(space));
                other.map(|other| self.kick(other)).map_or(Err(Refusal::NotYours), |()| Ok(0))
            }
            n if n == Call::Connect as usize => self.relative(space, a).and_then(|other| {
                let address = space.connect(other, self)?;
                flush_here();
                Ok(address)
            }),
            n if n == Call::Alarm as usize => {
                self.set_alarm(space, a as u64);
                Ok(0)
            }
            n if n == Call::YieldInEntry as usize => {
                // Not just an equal was ready, or another hart had the lock.
                space.registers[A0] = 0;
                return true;
            }
            n if n == Call::Count as usize => self.count(space, a),
            n if n == Call::Myself as usize => Ok(space.number),
            n if n == Call::CommandLine as usize => {
                let line = &self.command_line[..self.command_line.len().min(b)];
                let mut pieces = line.chunks(PIECE).enumerate();
                let whole = pieces.all(|(index, from)| {
                    let mut piece = [0; PIECE];
                    piece[..from.len()].copy_from_slice(from);
                    space.copy(self, a.wrapping_add(index * PIECE), &mut piece[..from.len()], true)
                });
                if whole { Ok(line.len()) } else { Err(Refusal::BadAddress) }
            }
            // What follows concerns the whole machine.
            _ if space.number != 1 => {
                Err(if number > Call::Stop as usize { Refusal::NoSuchCall } else { Refusal::NotYours })
            }
            n if n == Call::Tick as usize => self.set_tick(hart, a, b),
            n if n == Call::KeepTranslations as usize => self.set_keep_translations(a),
            n if n == Call::KernelStacks as usize => match self.counters.spaces {
                1 => {
                    self.initialise_queues(a != 0);
                    Ok(0)
                }
                _ => Err(Refusal::BadArgument),
            },
            n if n == Call::KernelTasks as usize => self.kernel_tasks(space, [a, b], c),
            n if n == Call::Stop as usize => crate::stop(a),
            _ => Err(Refusal::NoSuchCall),
        };
        space.registers[A0] = answer.unwrap_or_else(|refusal| refusal as usize);
        false
    }

    fn print(&mut self, space: &mut Space, address: usize, length: usize) -> Answer {
        let length = length.min(MOST_PRINTED);
        let mut piece = [0; PIECE];
        for at in (0..length).step_by(PIECE) {
            let piece = &mut piece[..(length - at).min(PIECE)];
            if !space.copy(self, address.wrapping_add(at), piece, false) {
                return Err(Refusal::BadAddress);
            }
            Console.bytes(piece);
        }
        Ok(length)
    }

    /// A new space that runs `program` from the beginning.
    pub(crate) fn spawn(
        &mut self,
        parent: &mut Space,
        program: usize,
        words: [usize; 2],
        level: usize,
    ) -> Answer {
        if level >= LEVELS {
            return Err(Refusal::BadArgument);
        }
        // Nobody passes on more than it has.
        let level = level.min(parent.level);
        if parent.purse == frames::FIRST {
            self.frames.payer = self.frames.free_purse();
        }
        let child = self.new_space(parent, level)?;
        if let Err(NoMemory) = program::load(child, &mut self.frames) {
            self.abandon(child);
            return Err(Refusal::Exhausted);
        }
        child.registers[A0..A0 + 3].copy_from_slice(&[program, words[0], words[1]]);
        let number = child.number;
        self.make_ready(child);
        Ok(number)
    }

    fn fork(&mut self, parent: &mut Space, on_write: bool) -> Answer {
        let child = self.new_space(parent, parent.level)?;
        let copied = child.table.fork(&parent.table, on_write, &mut self.frames);
        if on_write {
            self.translations_changed();
        }
        if let Err(NoMemory) = copied {
            self.abandon(child);
            return Err(Refusal::Exhausted);
        }
        child.registers = parent.registers;
        child.registers[A0] = 0;
        child.heap_end = parent.heap_end;
        let number = child.number;
        self.make_ready(child);
        Ok(number)
    }

    fn wait(&mut self, space: &mut Space, place: usize) -> Option<Answer> {
        if !space.zombies.is_null() {
            self.hand_over_zombie(space, place);
            return None;
        }
        if space.children.is_null() {
            return Some(Err(Refusal::NotYours));
        }
        space.state = State::Waiting(place);
        None
    }

    fn kill(&mut self, space: &mut Space, number: usize) -> Answer {
        let child = self.relative(space, number)?;
        if child.parent != core::ptr::from_mut(space) {
            return Err(Refusal::NotYours);
        }
        if child.state == State::Runnable && !child.is_ready() {
            child.doomed = true;
            // Giving way does not look at `doomed`.
            child.resume_point = NOWHERE;
            interrupt_the_others();
        } else {
            self.end(child, KILLED);
        }
        Ok(0)
    }

    /// Maps new memory from `at` on, or a piece of it: none if the
    /// call has to be made again to get the rest.
    fn give(
        &mut self,
        space: &mut Space,
        at: usize,
        bytes: usize,
        flags: usize,
    ) -> Option<Result<(), Refusal>> {
        let given = space.given;
        // All of it is checked before: what is half done stays half mapped.
        if given == 0 && bytes / FRAME + bytes / FRAME / 512 + 8 > self.frames.left() {
            return Some(Err(Refusal::Exhausted));
        }
        let piece = bytes.saturating_sub(given).min(ZEROED_AT_ONCE);
        let mapped = space.table.map_new(at + given, piece, flags, &mut self.frames);
        flush_here();
        space.given = given + piece;
        if mapped.is_ok() && space.given < bytes {
            return None;
        }
        space.given = 0;
        Some(mapped.map_err(Refusal::from))
    }

    fn grow(&mut self, space: &mut Space, bytes: usize) -> Option<Answer> {
        let Some(bytes) = bytes.checked_next_multiple_of(FRAME).filter(|bytes| *bytes <= MOST_BYTES) else {
            return Some(Err(Refusal::BadArgument));
        };
        let at = space.heap_end;
        let given = self.give(space, at, bytes, READ | WRITE)?;
        Some(given.map(|()| {
            space.heap_end += bytes;
            at
        }))
    }

    fn pool(&mut self, space: &mut Space, tasks: usize, how: usize) -> Option<Answer> {
        const MOST_TASKS: usize = (MAIL - PART - size_of::<Part>()) / size_of::<Task>();
        let bytes = (tasks <= MOST_TASKS).then(|| tasks * size_of::<Task>());
        let may_have_one = space.part.is_null()
            && space.kernel_stack == 0
            && how <= TURN_BY_TURN + Executor::Future as usize;
        let Some(bytes) = bytes.filter(|_| may_have_one) else { return Some(Err(Refusal::BadArgument)) };
        let given = self.give(space, PART, size_of::<Part>() + bytes, READ | WRITE | PRIVATE)?;
        Some(given.and_then(|()| self.begin_part(space, how)))
    }

    /// The memory of a space's part is there.
    fn begin_part(&mut self, space: &mut Space, how: usize) -> Answer {
        let entry = space.table.find(PART).ok_or(Refusal::Exhausted)?;
        space.part = mapped(frame_of(*entry));
        if how & TURN_BY_TURN != 0 {
            // SAFETY: the part's first frame holds all of `Part`,
            // which is zero: the space initialises the rest itself.
            unsafe { (*space.part).ready.fetch_or(GIVE_WAY, Relaxed) };
        }
        let entries = scheduler_image::entries();
        space.resume_point = if how & 1 == Executor::Future as usize {
            entries.resume_future
        } else {
            entries.resume_stackful
        } as *const () as usize;
        Ok(PART)
    }

    fn park(&mut self, space: &mut Space) -> Answer {
        if space.part.is_null() {
            return Err(Refusal::BadArgument);
        }
        // SAFETY: as in `kick`. Acquire pairs with the Release there.
        let token = unsafe { (*space.part).ready.load(Acquire) & ATTENTION != 0 };
        if !token {
            space.state = State::Parked;
        }
        Ok(0)
    }

    /// A space that `space` may touch: its child, its parent, or another child of its parent.
    fn relative(&mut self, space: &mut Space, number: usize) -> Result<&'static mut Space, Refusal> {
        let other = self.spaces.get(number).ok_or(Refusal::NotYours)?;
        let other = space_at(*other).ok_or(Refusal::NotYours)?;
        let me = core::ptr::from_mut(space);
        let related =
            other.parent == me || space.parent == core::ptr::from_mut(other) || other.parent == space.parent;
        let alive = other.state != State::Ended && core::ptr::from_mut(other) != me;
        if related && alive { Ok(other) } else { Err(Refusal::NotYours) }
    }

    fn count(&mut self, space: &mut Space, address: usize) -> Answer {
        let mut counters = self.counters;
        for (_, hart) in hart::all() {
            // SAFETY: read while another hart may write; a count that is one behind is as good.
            let hart = unsafe { hart.read_volatile() };
            counters.space_changes += hart.space_changes;
            counters.flushes += hart.flushes;
        }
        counters.frames = self.frames.all() as u64;
        counters.frames_used = self.frames.used() as u64;
        counters.harts = self.harts as u64;
        let mut bytes = [0; size_of::<Counters>()];
        // SAFETY: counters are words without gaps between them.
        unsafe { bytes.as_mut_ptr().cast::<Counters>().write_unaligned(counters) };
        if space.copy(self, address, &mut bytes, true) { Ok(0) } else { Err(Refusal::BadAddress) }
    }

    fn kernel_tasks(&mut self, space: &mut Space, [tasks, turns]: [usize; 2], address: usize) -> Answer {
        let done = kernel_tasks::run(self, tasks, turns)?;
        let mut bytes = done.instructions.to_le_bytes();
        if space.copy(self, address, &mut bytes, true) {
            Ok(done.hand_overs)
        } else {
            Err(Refusal::BadAddress)
        }
    }

    fn set_tick(&mut self, hart: &mut Hart, interval: usize, always: usize) -> Answer {
        self.tick = Tick { interval: (interval != 0).then_some(interval as u64), always: always != 0 };
        hart.slice_end = self.tick.interval.map_or(u64::MAX, |interval| crate::timer::now() + interval);
        Ok(0)
    }

    fn set_keep_translations(&mut self, keep: usize) -> Answer {
        // What a hart still forgets for others, and numbers that others were made with, would not fit.
        if self.counters.spaces != 1 || keep != 0 && self.processors_numbers < self.numbers {
            return Err(Refusal::BadArgument);
        }
        self.keep_translations(keep != 0);
        Ok(0)
    }

    /// Whether address spaces keep their translations while others run.
    pub(crate) fn keep_translations(&mut self, keep: bool) {
        self.keep_translations = keep;
        for (_, hart) in hart::all() {
            // SAFETY: under the kernel's lock, as everywhere this field is written by others than its hart.
            unsafe { (*hart).flush = if keep { Flush::Once } else { Flush::Always } };
        }
    }

    /// The first space.
    pub(crate) fn spawn_first(&mut self) -> Result<(), NoMemory> {
        self.initialise_queues(false);
        let first = self.new_space(core::ptr::null_mut(), LEVELS - 1)?;
        program::load(first, &mut self.frames)?;
        say!(
            "{} frames of memory, {} harts, numbers for {} spaces, of which the processor tells {} apart",
            self.frames.all(),
            self.harts,
            self.numbers - 1,
            self.processors_numbers
        );
        self.make_ready(first);
        Ok(())
    }
}
