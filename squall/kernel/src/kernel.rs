// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's state, under one lock, and its decisions: which space runs where.
//!
//! The ready spaces stand in the same rings as tasks do (`squall_scheduler::pool::Queue`), one ring for each level; a space that
//! runs is in none, since several harts take from them.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::ptr;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use squall_scheduler::call::Counters;
use squall_scheduler::mailbox::ALARM;
use squall_scheduler::pool::{ATTENTION, LEVELS, Queue};

use crate::console::say;
use crate::frames::Frames;
use crate::hart::{ALL, Flush, HARTS, Hart};
use crate::register::{read, write};
use crate::sbi;
use crate::space::{SPACES, Space, State, space_at};
use crate::timer::Tick;

/// What the lock guards. What a hand-off between spaces needs comes first, near enough for one instruction's reach.
#[repr(C)]
pub(crate) struct Kernel {
    /// A bit for each level whose ring is not empty.
    ready: u64,
    queues: [Queue; LEVELS],
    pub(crate) frames: Frames,
    pub(crate) last_number: usize,
    pub(crate) numbers_used_up: bool,
    pub(crate) keep_translations: bool,
    pub(crate) tick: Tick,
    /// The space whose alarm goes off first; the others follow through `later`.
    pub(crate) first_alarm: *mut Space,
    pub(crate) harts: usize,
    pub(crate) counters: Counters,
    pub(crate) command_line: &'static [u8],
    /// By number.
    pub(crate) spaces: [*mut Space; SPACES],
}

/// The lock. Interrupts are off in the kernel, so a holder is never interrupted.
#[repr(C)]
pub(crate) struct Lock {
    taken: AtomicU32,
    kernel: UnsafeCell<Kernel>,
}

// SAFETY: the kernel is reached through `Lock::take` only, which lets one hart in.
unsafe impl Sync for Lock {}

/// The kernel's state.
pub(crate) static KERNEL: Lock = Lock {
    taken: AtomicU32::new(0),
    kernel: UnsafeCell::new(Kernel {
        ready: 0,
        queues: [const { Queue { current: ptr::null_mut(), above: 0, bit: 0 } }; LEVELS],
        frames: Frames::none(),
        last_number: 0,
        numbers_used_up: false,
        keep_translations: true,
        tick: Tick::SLICES,
        first_alarm: ptr::null_mut(),
        harts: 0,
        counters: Counters {
            space_changes: 0,
            flushes: 0,
            traps: 0,
            timer_interrupts: 0,
            frames_used: 0,
            frames: 0,
            spaces: 0,
            harts: 0,
        },
        command_line: &[],
        spaces: [ptr::null_mut(); SPACES],
    }),
};

/// The lock, taken.
pub(crate) struct Held;

impl Lock {
    #[inline(always)]
    pub(crate) fn take(&self) -> Held {
        // Acquire pairs with the Release in `drop`.
        while self.taken.swap(1, Acquire) != 0 {
            while self.taken.load(Relaxed) != 0 {
                core::hint::spin_loop();
            }
        }
        Held
    }
}

impl Deref for Held {
    type Target = Kernel;
    #[inline(always)]
    fn deref(&self) -> &Kernel {
        // SAFETY: the lock is taken.
        unsafe { &*KERNEL.kernel.get() }
    }
}

impl DerefMut for Held {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Kernel {
        // SAFETY: the lock is taken.
        unsafe { &mut *KERNEL.kernel.get() }
    }
}

impl Drop for Held {
    #[inline(always)]
    fn drop(&mut self) {
        KERNEL.taken.store(0, Release);
    }
}

/// From the trap's entry: `hart`'s space gave way in the shared scheduler. The space that runs now.
pub(crate) extern "C" fn give_way(hart: &mut Hart) -> *mut Space {
    let mut kernel = KERNEL.take();
    // SAFETY: a hart that was trapped runs a space; a space's queue is one of the kernel's.
    unsafe {
        let space = hart.space;
        (*space).resume = (*space).resume_point;
        let queue = (*space).place.queue;
        let urgent = kernel.ready & (*queue).above;
        if urgent == (*queue).bit {
            return Space::of((*queue).exchange(&raw mut (*space).place));
        }
        if urgent == 0 {
            return space;
        }
        kernel.push_ready(&mut *space);
        let level = kernel.highest();
        kernel.take_first(level)
    }
}

impl Kernel {
    #[inline(always)]
    fn highest(&self) -> usize {
        (0..LEVELS).rev().find(|level| self.ready & (1 << level) != 0).unwrap_or(0)
    }

    #[inline(always)]
    fn push_ready(&mut self, space: &mut Space) {
        // SAFETY: it is in no ring, and spaces stay where they are.
        unsafe {
            let queue = space.place.queue;
            (*queue).insert(&mut space.place);
            self.ready |= (*queue).bit;
        }
    }

    #[inline(always)]
    fn take_first(&mut self, level: usize) -> *mut Space {
        let queue = &mut self.queues[level % LEVELS];
        let place = queue.current;
        // SAFETY: the level's bit is set, so there is one, and it is in this ring.
        unsafe {
            if queue.remove(place) {
                self.ready &= !(1 << level);
            }
            Space::of(place)
        }
    }

    /// Takes it out of the ready queue, if it is there.
    pub(crate) fn make_unready(&mut self, space: &mut Space) {
        // SAFETY: a place that has a neighbour is in its queue's ring.
        unsafe {
            let queue = space.place.queue;
            if space.is_ready() && (*queue).remove(&mut space.place) {
                self.ready &= !(*queue).bit;
            }
        }
    }

    /// It can run: behind the others of its level. A hart that is idle, or runs something less urgent, is told.
    pub(crate) fn make_ready(&mut self, space: &mut Space) {
        space.state = State::Runnable;
        self.push_ready(space);
        let mut whom: Option<(usize, usize)> = None;
        for id in 0..HARTS {
            // SAFETY: read under the kernel's lock, under which harts change what they run.
            let hart = unsafe { &*(&raw const ALL[id]) };
            // The level it runs at, and one more, so that an idle hart comes first. One that was told is neither.
            let busy = match space_at(hart.space) {
                Some(running) => running.level + 1,
                None if hart.idle => 0,
                None => usize::MAX,
            };
            if busy <= space.level && whom.is_none_or(|(least, _)| busy < least) {
                whom = Some((busy, id));
            }
        }
        let Some((_, id)) = whom else { return };
        // SAFETY: as above.
        unsafe {
            let hart = &raw mut ALL[id];
            // This hart chooses anew before it leaves the kernel.
            if hart.addr() != read!("sscratch") {
                // The next space that becomes ready is another hart's to run.
                (*hart).idle = false;
                sbi::interrupt(1 << id);
            }
        }
    }

    /// With every hart idle and no alarm set nothing can ever run again: no other interrupt is taken. Says who waits for what.
    #[cold]
    fn assert_something_can_happen(&self) {
        // SAFETY: read under the kernel's lock, under which harts become idle.
        let all_idle = (0..HARTS).all(|id| unsafe { ALL[id].stack == 0 || ALL[id].idle });
        if !all_idle || self.first_alarm != ptr::null_mut() {
            return;
        }
        for space in self.spaces.iter().filter_map(|space| space_at(*space)) {
            // SAFETY: as in `kick`.
            let ready = if space.part.is_null() { 0 } else { unsafe { (*space.part).ready.load(Relaxed) } };
            say!("space {} is {:?}, its part {ready:#x}", space.number, space.state);
        }
        panic!("nothing can happen any more");
    }

    /// There is mail for it: the token, and the hart if it sleeps. N6 of the wake protocol; with the lock held, it comes
    /// before or after the whole of a `Park`.
    pub(crate) fn kick(&mut self, space: &mut Space) {
        let Some(part) = (!space.part.is_null()).then_some(space.part) else { return };
        // SAFETY: the part is mapped as long as the space lives; the word is atomic, whatever its owner does to it.
        // Release: the mail comes before; pairs with the executor's look at the token.
        unsafe { (*part).ready.fetch_or(ATTENTION, AcqRel) };
        if space.state == State::Parked {
            self.make_ready(space);
        }
    }

    /// The ring of a level, for a space's place.
    pub(crate) fn queue(&mut self, level: usize) -> *mut Queue {
        &raw mut self.queues[level % LEVELS]
    }

    /// Tells the rings what they are, once.
    pub(crate) fn initialise_queues(&mut self) {
        for (level, queue) in self.queues.iter_mut().enumerate() {
            queue.bit = 1 << level;
            // Its own level among them: who gives way lets its equals go first.
            queue.above = u64::MAX << level;
        }
    }

    /// The kernel has something to tell a space: by the same protocol as another space would, with the alarm as the thing made
    /// true. May be called while that space is at any instruction of its own.
    pub(crate) fn tell_alarm(&mut self, space: &mut Space) {
        let Some(part) = (!space.part.is_null()).then_some(space.part) else { return };
        // SAFETY: as in `kick`; nothing but atomic words is touched.
        let woken = unsafe {
            // N1.
            (*part).mail.fetch_or(ALARM, Release);
            (*part).words.announce()
        };
        if !woken.is_empty() {
            self.kick(space);
        }
    }

    /// Every hart forgets all translations before it enters another space.
    pub(crate) fn flush_everywhere(&mut self) {
        for id in 0..HARTS {
            // SAFETY: written under the kernel's lock; the hart's own reading of it comes after it had the lock.
            unsafe {
                let hart = &raw mut ALL[id];
                if (*hart).flush == Flush::Never {
                    (*hart).flush = Flush::Once;
                }
            }
        }
    }
}

/// What `hart` runs next, after a trap; waits if there is nothing. `expired`: its space had its slice.
pub(crate) fn choose(mut kernel: Held, hart: &mut Hart, expired: bool) -> *mut Space {
    if let Some(space) = space_at(hart.space) {
        if space.doomed {
            // Whatever it does meanwhile, wait or park.
            leave_space(hart);
            kernel.end(space, usize::MAX);
        } else if space.state == State::Runnable {
            let better = if expired { space.level } else { space.level + 1 };
            if kernel.ready >> better == 0 {
                kernel.arm_timer(hart);
                return space;
            }
            kernel.push_ready(space);
        }
    }
    loop {
        if kernel.ready != 0 {
            let level = kernel.highest();
            let next = kernel.take_first(level);
            kernel.begin_slice(hart);
            kernel.arm_timer(hart);
            return next;
        }
        leave_space(hart);
        hart.idle = true;
        kernel.arm_timer(hart);
        kernel.assert_something_can_happen();
        drop(kernel);
        // Interrupts are off, but a pending one ends the wait: none that came since the look above is slept through.
        // SAFETY: nothing but waiting.
        unsafe { core::arch::asm!("wfi") };
        kernel = KERNEL.take();
        hart.idle = false;
        kernel.interrupts(hart, read!("sip"));
    }
}

/// The hart leaves its space's page table, which may be about to go.
pub(crate) fn leave_space(hart: &mut Hart) {
    write!("satp", 8 << 60 | crate::page_table::physical(&raw const crate::page_table::ROOT) >> 12);
    // Only now: whoever ends a space waits until no hart has it here.
    hart.space = ptr::null_mut();
}

/// Waits until no hart has the page table of `space`, which none runs any more: a hart that gave it up under the lock loads
/// another behind it, and says so in its field after that (`trap::enter`).
pub(crate) fn wait_until_left(space: &Space) {
    for id in 0..HARTS {
        // SAFETY: the hart's own field, which it is about to write.
        while unsafe { (&raw const ALL[id].space).read_volatile() }.cast_const() == ptr::from_ref(space) {
            core::hint::spin_loop();
        }
    }
}

/// The hart that runs `space` is to look at it.
pub(crate) fn interrupt_whoever_runs(space: &Space) {
    for id in 0..HARTS {
        // SAFETY: read under the kernel's lock, under which harts change what they run.
        if unsafe { ALL[id].space.cast_const() } == ptr::from_ref(space) {
            sbi::interrupt(1 << id);
        }
    }
}
