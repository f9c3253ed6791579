// SPDX-License-Identifier: MIT OR Apache-2.0
//! User-level threads that take turns: every 50 µs a timer interrupts whoever runs, and its handler goes on with the next. `turns [THREADS
//! [TURNS]]`; with the hardware no signal and no system call is in a turn. `uintr/driver/examples/turns.c` is the same in C.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod turns {
    use std::arch::{asm, global_asm};
    use std::cell::Cell;
    use std::error::Error;
    use std::ptr;
    use std::time::Duration;

    use user_interrupts::{Backend, Calls, Receiver, start};

    const QUANTUM: Duration = Duration::from_micros(50);
    const TICK: u8 = 1;
    /// Of a thread, in units of 16 bytes: 64 KiB. A handler's frame takes less than 16 of them.
    const STACK: usize = 4096;

    /// A user-level thread; it is there for good.
    struct Thread {
        /// While another one runs.
        sp: Cell<*mut u64>,
        /// In the ring of those that are not done.
        next: Cell<Option<&'static Thread>>,
        mark: u64,
        turns: Cell<u64>,
        rounds: Cell<u64>,
    }

    impl Thread {
        fn new(sp: *mut u64, mark: u64) -> Self {
            Self { sp: Cell::new(sp), next: Cell::new(None), mark, turns: Cell::new(0), rounds: Cell::new(0) }
        }

        /// Alone in its ring it is its own.
        fn next(&'static self) -> &'static Self {
            self.next.get().unwrap_or(self)
        }
    }

    /// Of the one thread of the system that all turns are of. The handler touches it between any two instructions of who looks at it, so each
    /// field is read and written as a whole.
    struct Scheduler {
        receiver: Cell<*const Receiver>,
        running: Cell<Option<&'static Thread>>,
        /// Where the last one that is done goes on.
        starter: Cell<Option<&'static Thread>>,
        turns: Cell<u64>,
        wanted: Cell<u64>,
        /// Bits that changed in any register of any thread.
        changed: Cell<u64>,
    }

    thread_local! {
        static SCHEDULER: Scheduler = const {
            Scheduler {
                receiver: Cell::new(ptr::null()),
                running: Cell::new(None),
                starter: Cell::new(None),
                turns: Cell::new(0),
                wanted: Cell::new(0),
                changed: Cell::new(0),
            }
        };
    }

    // Keeps what a function call must keep, on this stack, and goes on where the other one was left. All else the handler's frame has,
    // of which each thread that was interrupted has its own.
    global_asm!(
        "turns_switch_stacks:",
        "push rbp; push rbx; push r12; push r13; push r14; push r15",
        "mov [rdi], rsp",
        "mov rsp, rsi",
        "pop r15; pop r14; pop r13; pop r12; pop rbx; pop rbp",
        "ret",
    );
    unsafe extern "C" {
        fn turns_switch_stacks(from: *mut *mut u64, to: *mut u64);
    }

    /// Masked; returns when `before` has its next turn.
    fn go_on_with(scheduler: &Scheduler, before: &'static Thread, next: &'static Thread) {
        scheduler.running.set(Some(next));
        // SAFETY: `next` does not run, so its stack is as turns_switch_stacks() or new_stack() left it; nothing interrupts meanwhile.
        unsafe { turns_switch_stacks(before.sp.as_ptr(), next.sp.get()) };
    }

    /// The handler: masked, on the stack of who was interrupted.
    fn tick(_vector: u8) {
        SCHEDULER.with(|scheduler| {
            let Some(running) = scheduler.running.get() else { return };
            scheduler.turns.set(scheduler.turns.get() + 1);
            running.turns.set(running.turns.get() + 1);
            if !ptr::eq(running.next(), running) {
                go_on_with(scheduler, running, running.next());
            }
        });
    }

    /// Computes with its mark in every register that nobody else may touch; the bits that changed.
    fn computes(mark: u64) -> u64 {
        let changed;
        macro_rules! with_marks {
            ([$($general:tt)*] [$($vector:tt)*]) => {
                // SAFETY: names all registers that it uses, and no memory.
                unsafe {
                    asm!(
                        $(concat!("mov ", $general, ", {mark}"),)*
                        $(concat!("movq ", $vector, ", {mark}"), concat!("punpcklqdq ", $vector, ", ", $vector),)*
                        "2: dec {left}",
                        "jnz 2b",
                        $(concat!("xor ", $general, ", {mark}"), concat!("or {changed}, ", $general),)*
                        // Both halves.
                        $(concat!("movq {left}, ", $vector), "xor {left}, {mark}", "or {changed}, {left}",
                        concat!("punpckhqdq ", $vector, ", ", $vector),
                        concat!("movq {left}, ", $vector), "xor {left}, {mark}", "or {changed}, {left}",)*
                        mark = in(reg) mark,
                        left = inout(reg) 2000_u64 => _,
                        changed = inout(reg) 0_u64 => changed,
                        $(out($general) _,)*
                        $(out($vector) _,)*
                        options(nostack),
                    );
                }
            };
        }
        with_marks!(["r8" "r9" "r10" "r11" "r12" "r13" "r14" "r15"] ["xmm0" "xmm1" "xmm2" "xmm3" "xmm4" "xmm5" "xmm6" "xmm7"
            "xmm8" "xmm9" "xmm10" "xmm11" "xmm12" "xmm13" "xmm14" "xmm15"]);
        changed
    }

    /// Where a thread begins, masked: in the handler of who had the turn before.
    extern "C" fn begins() -> ! {
        SCHEDULER.with(|scheduler| {
            let (Some(own), Some(starter)) = (scheduler.running.get(), scheduler.starter.get()) else {
                std::process::abort();
            };
            // SAFETY: main() keeps it until all threads are done.
            let receiver = unsafe { &*scheduler.receiver.get() };
            receiver.unmask();
            while scheduler.turns.get() < scheduler.wanted.get() {
                let changed = computes(own.mark);
                scheduler.changed.set(scheduler.changed.get() | changed);
                own.rounds.set(own.rounds.get() + 1);
            }
            receiver.mask();
            let mut last = own;
            while !ptr::eq(last.next(), own) {
                last = last.next();
            }
            last.next.set(Some(own.next()));
            go_on_with(scheduler, own, if ptr::eq(last, own) { starter } else { own.next() });
        });
        unreachable!("a thread that is done has no turn");
    }

    fn new_stack() -> *mut u64 {
        let end = Box::leak(vec![0_u128; STACK].into_boxed_slice()).as_mut_ptr_range().end.cast::<u64>();
        // SAFETY: within the stack. As after a call: nothing to return to, and below it where to
        // begin and six registers.
        unsafe {
            end.sub(2).write(begins as *const () as u64);
            end.sub(8)
        }
    }

    pub(super) fn main() -> Result<(), Box<dyn Error>> {
        let mut numbers = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
        let (count, wanted) = (numbers.next().unwrap_or(Ok(4)), numbers.next().unwrap_or(Ok(10_000)));
        let (Ok(count @ 1..), Ok(wanted @ 1..), None) = (count, wanted, numbers.next()) else {
            return Err("usage: turns [THREADS [TURNS]]".into());
        };
        start(&[Backend::Hardware, Backend::Signals])?;
        // SAFETY: the handler touches the scheduler alone, field by field, and neither allocates nor locks.
        let receiver = unsafe { Receiver::new(tick, Calls::GoOn) }?;
        let starter: &'static Thread = Box::leak(Box::new(Thread::new(ptr::null_mut(), 0)));
        let marked = (1..=count).map(|n| Thread::new(new_stack(), n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let threads: &'static [Thread] = Box::leak(marked.collect::<Box<[Thread]>>());
        for (thread, next) in threads.iter().zip(threads.iter().cycle().skip(1)) {
            thread.next.set(Some(next));
        }
        receiver.timer(TICK, QUANTUM, Some(QUANTUM))?;
        let (turns, changed) = SCHEDULER.with(|scheduler| {
            scheduler.receiver.set(&raw const receiver);
            scheduler.starter.set(Some(starter));
            scheduler.wanted.set(wanted);
            go_on_with(scheduler, starter, &threads[0]);
            (scheduler.turns.get(), scheduler.changed.get())
        });
        receiver.stop_timer()?;
        receiver.unmask();
        drop(receiver);
        for (i, thread) in threads.iter().enumerate() {
            println!("thread {i}: {} turns, {} rounds", thread.turns.get(), thread.rounds.get());
        }
        let kept = if changed == 0 { "all registers kept" } else { "REGISTERS CHANGED" };
        println!("{turns} turns, {kept} ({})", user_interrupts::reason());
        if changed == 0 { Ok(()) } else { Err("a thread found what another one left".into()) }
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    turns::main()
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() {
    eprintln!("turns switches stacks as x86-64 has them, on Linux");
}
