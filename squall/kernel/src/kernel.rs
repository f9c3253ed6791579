// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's state, under one lock, and its decisions: which space runs where.
//!
//! The ready spaces stand in queues ([`crate::ready`]), one for each level.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::ptr;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use squall_scheduler::call::{Counters, KILLED, Refusal};
use squall_scheduler::mailbox::{ALARM, ALL_SLEEP, GONE};
use squall_scheduler::pool::{ATTENTION, LEVELS};

use crate::frames::{Frames, PURSES};
use crate::hart::{self, Flush, Hart, IDLE, TOLD};
use crate::kernel_stack;
use crate::ready::Queue;
use crate::register::{read, write};
use crate::sbi;
use crate::space::{A0, SPACES, Space, State, space_at};
use crate::timer::Tick;

/// What the lock guards. What a hand-off between spaces needs comes
/// first, near enough for one instruction's reach.
#[repr(C)]
pub(crate) struct Kernel {
    /// A bit for each level whose queue is not empty.
    pub(crate) ready: u64,
    queues: [Queue; LEVELS],
    pub(crate) frames: Frames,
    /// Numbers that spaces may have, and 0.
    pub(crate) numbers: usize,
    /// Numbers that the processor tells apart.
    pub(crate) processors_numbers: usize,
    /// How many of them each purse's spaces have, of which none but
    /// the first may have more than three quarters.
    pub(crate) numbers_of: [usize; PURSES],
    pub(crate) last_number: usize,
    pub(crate) numbers_used_up: bool,
    pub(crate) keep_translations: bool,
    /// Whether new spaces get a kernel stack.
    pub(crate) kernel_stacks: bool,
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
    pub(crate) taken: AtomicU32,
    pub(crate) kernel: UnsafeCell<Kernel>,
}

// SAFETY: the kernel is reached through `Lock::take` only, which lets one hart in.
unsafe impl Sync for Lock {}

/// The kernel's state.
pub(crate) static KERNEL: Lock = Lock {
    taken: AtomicU32::new(0),
    kernel: UnsafeCell::new(Kernel {
        ready: 0,
        queues: [Queue::EMPTY; LEVELS],
        frames: Frames::none(),
        numbers: SPACES,
        processors_numbers: 1,
        numbers_of: [0; PURSES],
        last_number: 0,
        numbers_used_up: false,
        keep_translations: true,
        kernel_stacks: false,
        tick: Tick::SLICES,
        first_alarm: ptr::null_mut(),
        harts: 0,
        counters: Counters {
            space_changes: 0,
            flushes: 0,
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
                let_other_harts_run();
            }
        }
        Held
    }
}

impl Held {
    /// The lock that somebody else took, and whoever runs now has to let go of.
    pub(crate) fn passed_on() -> Self {
        Self
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

/// From the trap's entry: `hart`'s space yielded in the shared scheduler while another hart had
/// the lock. The space that runs now.
pub(crate) extern "C" fn give_way(hart: &mut Hart) -> *mut Space {
    core::mem::forget(KERNEL.take());
    give_way_locked(hart)
}

/// As [`give_way`], with the lock taken by the trap's entry, which
/// found that not just an equal of the space's is ready.
pub(crate) extern "C" fn give_way_locked(hart: &mut Hart) -> *mut Space {
    let mut kernel = Held::passed_on();
    // SAFETY: a hart that was trapped runs a space; a space's queue is one of the kernel's.
    unsafe {
        let space = hart.space;
        // One with a kernel stack has no executor to go on with, and is ended for it.
        if kernel.ready & (*(*space).place.queue).before == 0 || (*space).kernel_stack != 0 {
            return space;
        }
        kernel.push_ready(&mut *space);
        let level = kernel.highest();
        hart.busy = level + 1;
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
        // SAFETY: it is in no queue, and spaces stay where they are.
        unsafe {
            let queue = space.place.queue;
            (*queue).push(&mut space.place);
            self.ready |= (*queue).bit;
        }
    }

    #[inline(always)]
    fn take_first(&mut self, level: usize) -> *mut Space {
        let queue = &mut self.queues[level % LEVELS];
        // SAFETY: the level's bit is set, so there is one, and its place is a space's.
        unsafe {
            let (place, was_the_last) = queue.take_first();
            if was_the_last {
                self.ready &= !(1 << level);
            }
            Space::of(place)
        }
    }

    /// Takes it out of the ready queue, if it is there.
    pub(crate) fn make_unready(&mut self, space: &mut Space) {
        // SAFETY: a space that is ready is in its queue.
        unsafe {
            let queue = space.place.queue;
            if space.is_ready() && (*queue).remove(&mut space.place) {
                self.ready &= !(*queue).bit;
            }
        }
    }

    /// It can run: after the others of its level. A hart that is
    /// idle, or runs something less urgent, is told.
    pub(crate) fn make_ready(&mut self, space: &mut Space) {
        space.state = State::Runnable;
        self.push_ready(space);
        let mut whom: Option<(usize, usize)> = None;
        for (id, hart) in hart::all() {
            // SAFETY: read under the kernel's lock, under which it is written.
            let busy = unsafe { (*hart).busy };
            if busy <= space.level && whom.is_none_or(|(least, _)| busy < least) {
                whom = Some((busy, id));
            }
        }
        let Some((_, id)) = whom else { return };
        // SAFETY: as above.
        unsafe {
            let hart = hart::at(id);
            // This hart chooses anew before it leaves the kernel.
            if hart.addr() != read!("sscratch") {
                // The next space that becomes ready is another hart's to run.
                (*hart).busy = TOLD;
                sbi::interrupt(1 << id);
            }
        }
    }

    /// With every hart idle and no alarm set nobody is left who could wake a space that sleeps: no
    /// other interrupt is taken. Whose fault that is the kernel cannot know, so it ends nobody:
    /// it tells the first space, which sleeps too, and says whether it did.
    #[cold]
    fn tell_that_all_sleep(&mut self) -> bool {
        // SAFETY: read under the kernel's lock, under which harts become idle.
        let all_idle = hart::all().all(|(_, hart)| unsafe { (*hart).stack == 0 || (*hart).busy == IDLE });
        if !all_idle || !self.first_alarm.is_null() {
            return false;
        }
        let Some(first) = space_at(self.spaces[1]) else { return false };
        if let State::Waiting(_) = first.state {
            first.registers[A0] = Refusal::AllSleep as usize;
            self.make_ready(first);
        } else {
            // SAFETY: as in `kick`; a space that parks has a part.
            unsafe { (*first.part).mail.fetch_or(ALL_SLEEP, Release) };
            self.kick(first);
        }
        true
    }

    /// There is mail for it: the token, and the hart if it sleeps. N6 of the wake protocol; with
    /// the lock held, it comes before or after the whole of a `Park`.
    pub(crate) fn kick(&mut self, space: &mut Space) {
        let Some(part) = (!space.part.is_null()).then_some(space.part) else { return };
        // SAFETY: the part is mapped as long as the space lives; the word is atomic, whatever its owner
        // does to it. Release: the mail comes before; pairs with the executor's look at the token.
        unsafe { (*part).ready.fetch_or(ATTENTION, AcqRel) };
        if space.state == State::Parked {
            self.make_ready(space);
        }
    }

    /// After a trap of `space`: whether it goes on at once. If not it is where it belongs, and
    /// `hart` has to find something else.
    #[inline(always)]
    pub(crate) fn goes_on(&mut self, hart: &mut Hart, space: &mut Space, expired: bool) -> bool {
        if space.doomed {
            // Whatever it does meanwhile, wait or park.
            leave_space(hart);
            self.end(space, KILLED);
        } else if space.state == State::Runnable {
            let better = if expired { space.level } else { space.level + 1 };
            if self.ready >> better == 0 {
                hart.busy = space.level + 1;
                self.arm_timer(hart);
                return true;
            }
            self.push_ready(space);
        }
        false
    }

    /// The queue of a level, for a space's place.
    pub(crate) fn queue(&mut self, level: usize) -> *mut Queue {
        &raw mut self.queues[level % LEVELS]
    }

    /// Tells the queues what they are, while they are empty.
    pub(crate) fn initialise_queues(&mut self, kernel_stacks: bool) {
        self.kernel_stacks = kernel_stacks;
        for (level, queue) in self.queues.iter_mut().enumerate() {
            queue.bit = 1 << level;
            // Its own level among them: who yields lets its equals go first. But the trap's entry
            // knows nothing of kernel stacks and must not find just the equals ready.
            queue.before = u64::MAX << (level + usize::from(kernel_stacks));
        }
    }

    /// A space that `space` shares mail with has ended, at whatever instruction. Kicks in any case:
    /// the bit that says that `space` sleeps may have been taken by the one that died.
    pub(crate) fn tell_gone(&mut self, space: &mut Space) {
        let Some(part) = (!space.part.is_null()).then_some(space.part) else { return };
        // SAFETY: as in `kick`.
        unsafe { (*part).mail.fetch_or(GONE, Release) };
        self.kick(space);
    }

    /// The kernel has something to tell a space: by the same protocol
    /// as another space would, with the alarm as the thing made true.
    /// May be called while that space is at any instruction of its own.
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
        for (_, hart) in hart::all() {
            // SAFETY: written under the kernel's lock; the hart's own
            // reading of it comes after it had the lock.
            unsafe {
                if (*hart).flush == Flush::Never {
                    (*hart).flush = Flush::Once;
                }
            }
        }
    }
}

/// What `hart` runs next, after a trap; waits if there is nothing.
/// `expired`: its space had its slice.
#[inline(always)]
pub(crate) fn choose(mut kernel: Held, hart: &mut Hart, expired: bool) -> *mut Space {
    if let Some(space) = space_at(hart.space)
        && kernel.goes_on(hart, space, expired)
    {
        return space;
    }
    let (kernel, next) = find(kernel, hart);
    if next.kernel_stack == 0 { next } else { kernel_stack::run(kernel, hart, next) }
}

/// What `hart` runs next; waits until there is something.
#[inline(always)]
pub(crate) fn find(mut kernel: Held, hart: &mut Hart) -> (Held, &'static mut Space) {
    loop {
        if kernel.ready != 0 {
            let level = kernel.highest();
            let next = kernel.take_first(level);
            hart.busy = level + 1;
            kernel.begin_slice(hart);
            kernel.arm_timer(hart);
            // SAFETY: it was ready, so it lives, and it is this hart's now.
            return (kernel, unsafe { &mut *next });
        }
        leave_space(hart);
        hart.busy = IDLE;
        kernel.arm_timer(hart);
        if kernel.tell_that_all_sleep() {
            continue;
        }
        drop(kernel);
        // Interrupts are off, but a pending one ends the wait: none that came since the look above is slept
        // through. SAFETY: nothing but waiting.
        unsafe { core::arch::asm!("wfi") };
        kernel = KERNEL.take();
        hart.busy = TOLD;
        kernel.interrupts(hart, read!("sip"));
    }
}

/// The hart leaves its space's page table, which may be about to go.
pub(crate) fn leave_space(hart: &mut Hart) {
    write!("satp", 8 << 60 | crate::page_table::physical(&raw const crate::page_table::ROOT) >> 12);
    // Only now: whoever ends a space waits until no hart has it here.
    hart.space = ptr::null_mut();
}

/// Waits until no hart has the page table of `space`, which none runs any more: a hart that gave it
/// up under the lock loads another after it, and says so in its field after that (`trap::enter`).
pub(crate) fn wait_until_left(space: &Space) {
    for (_, hart) in hart::all() {
        // SAFETY: the hart's own field, which it is about to write.
        while unsafe { (&raw const (*hart).space).read_volatile() }.cast_const() == ptr::from_ref(space) {
            let_other_harts_run();
        }
    }
}

/// In a loop that waits for another hart: waits for an interrupt with one pending, which is over at
/// once. To a processor that is a pause. An emulator whose clock is its instructions runs one hart
/// at a time, until that one waits or the next timer is due, and changes harts here.
fn let_other_harts_run() {
    // SAFETY: the interrupt is taken back when it is taken
    // (`Kernel::interrupts`), and asks for nothing.
    unsafe { core::arch::asm!("csrsi sip, 1 << 1", "wfi") };
}

/// Every other hart that is not idle is to look at its space. Which
/// of them runs the one that is meant no field says: a hart chooses
/// under the lock, and writes what it runs when it has let go of it.
pub(crate) fn interrupt_the_others() {
    for (id, hart) in hart::all() {
        // SAFETY: read under the kernel's lock, under which it is written.
        let idle = unsafe { (*hart).stack == 0 || (*hart).busy == IDLE };
        if !idle && hart.addr() != read!("sscratch") {
            sbi::interrupt(1 << id);
        }
    }
}
