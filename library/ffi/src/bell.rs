// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bells.

use crate::error::{Failure, came, doorbell_status, guard, guard_all};
use crate::lock::{Locked, lock};
use crate::pointer::{Out, free, guard_into, guard_new, lent, put_if_wanted};
use doorbell::select::Selectable;
use doorbell::wait::{Adaptive, Eventfd, Futex, Null, Spin, Yield};
use doorbell::{Bell, BellFd, Deadline, WaitError, raw::BellState};
use rustix::time::{ClockId, clock_gettime};
use std::num::NonZeroU32;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Spin as long as it pays on this machine, then sleep: for almost everything.
pub const DOORBELL_ADAPTIVE: u32 = 0;
/// Sleep on a futex at once: for rare events.
pub const DOORBELL_FUTEX: u32 = 1;
/// Occupy the CPU: for a CPU of one's own.
pub const DOORBELL_SPIN: u32 = 2;
/// Occupy the CPU, but let others go first.
pub const DOORBELL_YIELD: u32 = 3;
/// Sleep in poll() on an eventfd of the bell.
pub const DOORBELL_EVENTFD: u32 = 4;

/// A deadline that never comes.
pub const DOORBELL_FOREVER: u64 = 0xffff_ffff_ffff_ffff;

/// A handle of a bell. All handles of one bell hear every ring; each
/// remembers by itself which rings it has heard.
///
/// A ring before the wait is remembered: the next wait returns at once. Two rings before the wait
/// are heard as two by one wait. A ring with nobody waiting makes no system call. When a peer dies,
/// its rings are heard first, and then every wait returns DOORBELL_PEER_GONE: once for each peer,
/// and again and again when nobody is left.
///
/// What happened before a ring happened before the return of a wait that heard it.
#[derive(Debug)]
pub struct doorbell_bell {
    /// For ringing, which needs no lock.
    state: Arc<BellState>,
    /// Held while a thread waits.
    waiter: Mutex<Waiter>,
}

const _: () = {
    const fn shared_by_threads<T: Send + Sync>() {}
    shared_by_threads::<doorbell_bell>();
};

/// The ways of waiting a C program can choose: one line each.
macro_rules! ways {
    ($($code:ident $way:ident)*) => {
        #[derive(Debug)]
        pub(crate) enum Waiter {
            $($way(Bell<$way>),)*
            /// Since doorbell_bell_fd(): its sleeping is done elsewhere.
            File(BellFd<Eventfd>),
        }

        impl Waiter {
            fn at(state: &Arc<BellState>, way: u32) -> Result<Self, Failure> {
                Ok(match way {
                    $($code => Self::$way(Bell::at(Arc::clone(state))),)*
                    _ => return Err(unknown_way(way)),
                })
            }

            /// A waiter that has heard what this one has heard.
            fn like(&self, way: u32) -> Result<Self, Failure> {
                match self {
                    $(Self::$way(bell) => Self::like_bell(bell, way),)*
                    Self::File(file) => Self::like_bell(file.bell(), way),
                }
            }

            fn like_bell<W: doorbell::wait::Wait + Default>(bell: &Bell<W>, way: u32) -> Result<Self, Failure> {
                Ok(match way {
                    $($code => Self::$way(bell.waiting_by()),)*
                    _ => return Err(unknown_way(way)),
                })
            }

            fn wait(&mut self, deadline: Option<Deadline>) -> Result<Option<NonZeroU32>, Failure> {
                match self {
                    $(Self::$way(bell) => Ok(bell.wait_until(deadline)?),)*
                    Self::File(_) => Err(is_a_file()),
                }
            }

            fn try_wait(&mut self) -> Result<Option<NonZeroU32>, Failure> {
                match self {
                    $(Self::$way(bell) => Ok(bell.try_wait()),)*
                    Self::File(file) => Ok(file.heard()?),
                }
            }

            fn as_selectable(&mut self) -> Result<&mut dyn Selectable, Failure> {
                match self {
                    $(Self::$way(bell) => Ok(bell),)*
                    Self::File(_) => Err(is_a_file()),
                }
            }

            fn set_interruptible(&mut self, interruptible: bool) {
                match self {
                    $(Self::$way(bell) => bell.set_interruptible(interruptible),)*
                    // It never sleeps.
                    Self::File(_) => {}
                }
            }

            fn set_partner(&mut self, partner: &Bell<Null>) {
                match self {
                    $(Self::$way(bell) => bell.set_partner(partner),)*
                    // It never spins.
                    Self::File(_) => {}
                }
            }

            fn counts(&self) -> doorbell::counters::Counts {
                match self {
                    $(Self::$way(bell) => bell.counts(),)*
                    Self::File(file) => file.bell().counts(),
                }
            }

            fn wait_any(waiters: &mut [MutexGuard<'_, Self>], deadline: Option<Deadline>) -> Result<Option<usize>, Failure> {
                match waiters.first().map(|first| &**first) {
                    $(Some(Self::$way(_)) => {
                        let same = waiters.iter_mut().map(|waiter| match &mut **waiter {
                            Self::$way(bell) => Ok(bell),
                            _ => Err(Failure::invalid("the handles of one wait must all wait in \
                                the same way")),
                        });
                        Ok(doorbell::wait_any(&mut same.collect::<Result<Vec<_>, _>>()?, deadline)?)
                    })*
                    Some(Self::File(_)) => Err(is_a_file()),
                    None => Err(Failure::invalid("there is no bell to wait for")),
                }
            }
        }
    };
}

ways! {
    DOORBELL_ADAPTIVE Adaptive
    DOORBELL_FUTEX Futex
    DOORBELL_SPIN Spin
    DOORBELL_YIELD Yield
    DOORBELL_EVENTFD Eventfd
}

impl Locked for Waiter {
    fn selectable(&mut self) -> Result<&mut dyn Selectable, Failure> {
        self.as_selectable()
    }
}

fn unknown_way(way: u32) -> Failure {
    Failure::invalid(format!("{way} is no way of waiting; doorbell.h names them, from DOORBELL_ADAPTIVE on"))
}

fn is_a_file() -> Failure {
    Failure::invalid(
        "the handle is a file since doorbell_bell_fd: poll that and call doorbell_bell_try_wait, \
         or wait with a clone",
    )
}

impl doorbell_bell {
    /// A handle that has heard all rings so far.
    pub(crate) fn at(state: &Arc<BellState>, way: u32) -> Result<Self, Failure> {
        Ok(Self { state: Arc::clone(state), waiter: Mutex::new(Waiter::at(state, way)?) })
    }

    pub(crate) fn waiter(&self) -> Result<MutexGuard<'_, Waiter>, Failure> {
        lock(&self.waiter)
    }
}

/// Makes a bell for the threads of this process, with `eventfds` (at most 8) eventfd waiter slots:
/// as many handles can wait with DOORBELL_EVENTFD or become files.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_bell_new(
    way: u32,
    eventfds: u32,
    bell: *mut *mut doorbell_bell,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_new(bell, "bell", || doorbell_bell::at(Bell::with_eventfds(eventfds as usize)?.state(), way))
    }
}

/// Makes a bell that this process shares with the children it forks from
/// now on. Clone the handle before the fork and use one clone on each side.
/// Neither side is told of the other's death: that takes a rendezvous.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_bell_new_for_children(
    way: u32,
    eventfds: u32,
    bell: *mut *mut doorbell_bell,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_new(bell, "bell", || doorbell_bell::at(Bell::for_children(eventfds as usize)?.state(), way))
    }
}

/// Makes another handle of the same bell, which waits by `way` and
/// has heard what this one has heard.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_bell_clone(
    bell: *const doorbell_bell,
    way: u32,
    clone: *mut *mut doorbell_bell,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_new(clone, "clone", || {
            let bell = lent(bell, "bell")?;
            let waiter = Mutex::new(bell.waiter()?.like(way)?);
            Ok(doorbell_bell { state: Arc::clone(&bell.state), waiter })
        })
    }
}

/// Frees a handle. Nobody waits with it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_bell_free(bell: *mut doorbell_bell) {
    // SAFETY: the header's contract.
    unsafe { free(bell) };
}

/// Rings. Every handle of the bell hears it; those who sleep are woken. One locked addition and one
/// load when nobody sleeps, else a system call once per burst. From any thread, at any time; not in
/// a signal handler that may interrupt a call of this library. Ringing NULL does nothing.
// Cannot panic: atomics, system calls whose results are ignored, and an index the type bounds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_bell_ring(bell: *const doorbell_bell) {
    // SAFETY: the header's contract.
    if let Some(bell) = unsafe { bell.as_ref() } {
        bell.state.ring();
    }
}

/// Waits for a ring this handle has not heard, and says how many there were (`rings` may be NULL).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_bell_wait(bell: *const doorbell_bell, rings: *mut u32) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe { doorbell_bell_wait_deadline(bell, DOORBELL_FOREVER, rings) }
}

/// As doorbell_bell_wait(), but not beyond `deadline`: DOORBELL_TIMED_OUT if no ring came. A
/// deadline that has passed only looks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_bell_wait_deadline(
    bell: *const doorbell_bell,
    deadline: u64,
    rings: *mut u32,
) -> doorbell_status {
    guard(|| {
        // SAFETY: the header's contract.
        let bell = unsafe { lent(bell, "bell") }?;
        let heard = bell.waiter()?.wait(at(deadline))?;
        // SAFETY: as above.
        Ok(came(heard, |heard| unsafe { put_if_wanted(rings, heard.get()) }))
    })
}

/// Takes the rings that came since this handle last heard any;
/// DOORBELL_TIMED_OUT if there were none. Never waits.
///
/// On a handle that is a file, this makes the file unreadable until the next ring: call it whenever
/// poll() or epoll says that the file is readable, which may be for no reason.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_bell_try_wait(
    bell: *const doorbell_bell,
    rings: *mut u32,
) -> doorbell_status {
    guard(|| {
        // SAFETY: the header's contract.
        let bell = unsafe { lent(bell, "bell") }?;
        let heard = bell.waiter()?.try_wait()?;
        // SAFETY: as above.
        Ok(came(heard, |heard| unsafe { put_if_wanted(rings, heard.get()) }))
    })
}

/// Waits for a ring at any of `count` bells, or for `deadline`. `which`
/// becomes the place of one that was rung; doorbell_bell_try_wait()
/// then says how often. All handles must wait in the same way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_bell_wait_any(
    bells: *const *const doorbell_bell,
    count: usize,
    deadline: u64,
    which: *mut usize,
) -> doorbell_status {
    guard(|| {
        if bells.is_null() {
            return Err(Failure::null("bells"));
        }
        // SAFETY: the header's contract.
        let out = unsafe { Out::new(which, "which") }?;
        // SAFETY: as above: `count` pointers, each NULL or valid.
        let bells = unsafe { std::slice::from_raw_parts(bells, count) };
        let waiters = bells.iter().map(|bell| {
            // SAFETY: as above.
            unsafe { lent(*bell, "a bell") }?.waiter()
        });
        let mut waiters = waiters.collect::<Result<Vec<_>, _>>()?;
        let place = Waiter::wait_any(&mut waiters, at(deadline))?;
        Ok(came(place, |place| out.put(place)))
    })
}

/// Makes this handle a file for poll(), epoll and event loops: `fd` is readable from a ring on
/// until doorbell_bell_try_wait(). It belongs to the handle: never read, write or close it. Once
/// for each handle; waiting with the handle is an error from then on. Takes an eventfd waiter slot:
/// DOORBELL_NO_WAITER_SLOT if all are taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_bell_fd(bell: *const doorbell_bell, fd: *mut i32) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_into(fd, "fd", || {
            let mut waiter = lent(bell, "bell")?.waiter()?;
            let file = match &*waiter {
                Waiter::File(file) => return Ok(file.as_raw_fd()),
                // The handle stays what it is if there is no waiter slot.
                other => match other.like(DOORBELL_EVENTFD)? {
                    Waiter::Eventfd(bell) => bell.into_fd()?,
                    _ => return Err(WaitError::NoWaiterSlot { slots: 0 }.into()),
                },
            };
            let fd = file.as_raw_fd();
            *waiter = Waiter::File(file);
            Ok(fd)
        })
    }
}

/// Says that whoever rings `bell` waits at `partner` otherwise: an
/// adaptive wait does not spin while it sleeps there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_bell_set_partner(
    bell: *const doorbell_bell,
    partner: *const doorbell_bell,
) -> doorbell_status {
    guard_all(|| {
        // SAFETY: the header's contract.
        let (bell, partner) = unsafe { (lent(bell, "bell")?, lent(partner, "partner")?) };
        bell.waiter()?.set_partner(&Bell::at(Arc::clone(&partner.state)));
        Ok(())
    })
}

/// Says whether a signal handler that runs in the waiting thread ends a sleep with
/// DOORBELL_INTERRUPTED. Without it, waits go on. A signal just before the sleep does not end it: a
/// program that must not miss one also has a deadline, or polls the file with ppoll(). Nor need a
/// handler end it that was installed with SA_RESTART, as signal() does it: in a wait without a
/// deadline the kernel goes back to sleep after it. Use sigaction() without that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_bell_set_interruptible(
    bell: *const doorbell_bell,
    interruptible: bool,
) -> doorbell_status {
    guard_all(|| {
        // SAFETY: the header's contract.
        unsafe { lent(bell, "bell") }?.waiter()?.set_interruptible(interruptible);
        Ok(())
    })
}

/// What the waits of one handle did so far.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct doorbell_counts {
    /// Waits that ended while spinning.
    pub spun_and_hit: u64,
    /// Waits that spun their whole window and then slept.
    pub spun_in_vain: u64,
    /// Waits that slept.
    pub slept: u64,
    /// Times a sleeper was woken, or woke for no reason.
    pub woken: u64,
}

/// Reads the counters of a handle, which `doorbell top` shows too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn doorbell_bell_counts(
    bell: *const doorbell_bell,
    counts: *mut doorbell_counts,
) -> doorbell_status {
    // SAFETY: the header's contract.
    unsafe {
        guard_into(counts, "counts", || {
            let counts = lent(bell, "bell")?.waiter()?.counts();
            let doorbell::counters::Counts { spun_and_hit, spun_in_vain, slept, woken } = counts;
            Ok(doorbell_counts { spun_and_hit, spun_in_vain, slept, woken })
        })
    }
}

/// The deadline `nanoseconds` from now; DOORBELL_FOREVER if that is beyond the clock.
// Cannot panic: saturating arithmetic.
#[unsafe(no_mangle)]
pub extern "C" fn doorbell_after(nanoseconds: u64) -> u64 {
    now().saturating_add(nanoseconds)
}

/// Nanoseconds on `CLOCK_MONOTONIC`.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, nanoseconds) = (u64::try_from(now.tv_sec), u64::try_from(now.tv_nsec));
    seconds.unwrap_or(0).saturating_mul(1_000_000_000).saturating_add(nanoseconds.unwrap_or(0))
}

/// The library's form of a deadline from C.
pub(crate) fn at(deadline: u64) -> Option<Deadline> {
    (deadline != DOORBELL_FOREVER)
        .then(|| Deadline::after(Duration::from_nanos(deadline.saturating_sub(now()))))
}
