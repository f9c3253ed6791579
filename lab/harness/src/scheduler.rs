// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a side is scheduled: the classes of `sched(7)`, entered by the calling thread.

use std::io;
use std::num::NonZeroU64;

use doorbell_machine::scheduling::policy;
use doorbell_results::configuration::{Placement, Scheduler};
use doorbell_results::machine::scheduling::TIMER_SLACK_NS;

/// Priority of a side under `SCHED_FIFO`: above the kernel's own
/// threads at 1, below those that must run at once.
const PRIORITY: i32 = 50;

/// What a side under `SCHED_DEADLINE` may use of each [`PERIOD_NS`]: of two sides on one CPU 80 %,
/// for the kernel gives 95 %.
const BUDGET_NS: u64 = 4_000_000;
const PERIOD_NS: u64 = 10_000_000;

/// The shortest slice that EEVDF gives (kernel/sched/syscalls.c,
/// `__setparam_fair`: 0.1 ms to 100 ms).
const SLICE_NS: u64 = 100_000;

/// `struct sched_attr` (linux/sched/types.h), its first version.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

const SIZE: u32 = size_of::<Attributes>() as u32;
/// `SCHED_OTHER`, nice 0.
const USUAL: Attributes =
    Attributes { size: SIZE, policy: 0, flags: 0, nice: 0, priority: 0, runtime: 0, deadline: 0, period: 0 };
const SCHED_DEADLINE: u32 = 6;

/// The kernel did not take a thread into a class.
#[derive(Debug, thiserror::Error)]
#[error("{call} failed: {cause}; {cure}")]
pub struct Refused {
    pub call: &'static str,
    pub cause: io::Error,
    pub cure: &'static str,
}

pub fn enter(scheduler: Scheduler, placement: &Placement) -> Result<(), Refused> {
    let failed = |call, cure| move |cause| Refused { call, cause, cure };
    match scheduler {
        Scheduler::Other => Ok(()),
        Scheduler::Fifo => set_policy(0, libc::SCHED_FIFO, PRIORITY).map_err(failed(
            "sched_setscheduler(SCHED_FIFO)",
            "run as root, grant CAP_SYS_NICE, or raise `ulimit -r`",
        )),
        Scheduler::Deadline => {
            let cure = if placement.cpus.is_some() {
                "the kernel takes no thread into SCHED_DEADLINE that is bound to some of the CPUs: \
                 use --placement unpinned"
            } else {
                "run as root or grant CAP_SYS_NICE; of all CPUs 95 % can be promised (sched_rt_runtime_us)"
            };
            let (runtime, deadline, period) = (BUDGET_NS, PERIOD_NS, PERIOD_NS);
            let wanted = Attributes { policy: SCHED_DEADLINE, runtime, deadline, period, ..USUAL };
            set(&wanted).map_err(failed("sched_setattr(SCHED_DEADLINE)", cure))
        }
        Scheduler::Slice => {
            const CALL: &str = "sched_setattr(SCHED_OTHER, runtime)";
            const CURE: &str = "kernel 6.12 brought slices that a thread asks for; measure on a newer one";
            set(&Attributes { runtime: SLICE_NS, ..USUAL }).map_err(failed(CALL, CURE))?;
            // Older kernels take the call and do nothing: what they say of it afterwards is 0.
            match get().map_err(failed("sched_getattr", CURE))?.runtime {
                SLICE_NS => Ok(()),
                kept => Err(failed(CALL, CURE)(io::Error::other(format!(
                    "{SLICE_NS} ns were asked for and {kept} kept"
                )))),
            }
        }
    }
}

/// Puts the calling thread, and so whatever it starts from now on, under what
/// every plan starts from, whatever it inherited: `SCHED_OTHER`, nice 0, the
/// usual timer slack. What this user may not undo stays as it is, and the
/// record of the machine tells so. The policy that was undone, if one was.
pub fn set_usual() -> Option<String> {
    let found = get().ok();
    if set(&USUAL).is_err() {
        // Who may not raise a nice value may have the policy back all the same.
        let nice = get().map_or(0, |now| now.nice);
        let _ = set(&Attributes { nice, ..USUAL });
    }
    // Last, for a real-time policy has none.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(TIMER_SLACK_NS));
    let undone = found.filter(|found| found.policy != 0 && get().is_ok_and(|now| now.policy == 0))?;
    let Some(name) = policy(undone.policy.into()) else {
        return Some(format!("scheduling policy {}", undone.policy));
    };
    let name = format!("SCHED_{}", name.to_uppercase());
    Some(match undone.priority {
        0 => name,
        priority => format!("{name} with priority {priority}"),
    })
}

/// Whether the kernel would let a thread of ours, placed so, run under `scheduler`; tried on one
/// that ends with the question.
pub fn may_enter(scheduler: Scheduler, placement: &Placement) -> Result<(), Refused> {
    let failed = |cause| Refused { call: "clone", cause, cure: "let more threads be made (ulimit -u)" };
    let pinned = placement.clone();
    let asked = std::thread::Builder::new().spawn(move || {
        if let Some([cpu, _]) = pinned.cpus {
            // A CPU that cannot be had is told when the trial begins.
            let _ = doorbell_machine::system::pin(cpu);
        }
        enter(scheduler, &pinned)
    });
    asked
        .map_err(failed)?
        .join()
        .unwrap_or_else(|_| Err(failed(io::Error::other("the thread that asked is gone"))))
}

fn set(attributes: &Attributes) -> io::Result<()> {
    // SAFETY: 0 names the calling thread; `attributes` lives through the call and says how large it is.
    // JUSTIFICATION: rustix has no sched_setattr.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const *attributes, 0_u32) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn get() -> io::Result<Attributes> {
    let mut attributes = USUAL;
    // SAFETY: as above; the kernel writes no more than the size that it is told.
    // JUSTIFICATION: as above.
    match unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, SIZE, 0_u32) } {
        0 => Ok(attributes),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Puts the thread `task`, or the calling one, which is 0, under a policy of `sched(7)`; it keeps its
/// nice value.
pub fn set_policy(task: i32, policy: i32, priority: i32) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: priority };
    // SAFETY: `task` is a number; `parameter` lives through the call.
    // JUSTIFICATION: rustix has no sched_setscheduler.
    if unsafe { libc::sched_setscheduler(task, policy, &raw const parameter) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On a thread of its own, which takes its class along when it ends.
    fn entered(scheduler: Scheduler) -> Result<Attributes, String> {
        let thread = std::thread::spawn(move || {
            enter(scheduler, &Placement::default()).map_err(|error| error.to_string())?;
            get().map_err(|error| error.to_string())
        });
        thread.join().unwrap()
    }

    /// Under `chrt -f 10` and with another timer slack a plan of `other` was measured as it had
    /// been started, and recorded as `other`.
    #[test]
    fn what_a_thread_inherited_is_undone_before_anything_is_measured() {
        let thread = std::thread::spawn(|| {
            set(&Attributes { policy: 3, ..USUAL }).unwrap();
            rustix::thread::set_current_timer_slack(NonZeroU64::new(1_000_000)).unwrap();
            assert_eq!(get().unwrap().policy, 3, "SCHED_BATCH, which everybody may enter");
            assert_eq!(set_usual().as_deref(), Some("SCHED_BATCH"));
            let inherited =
                || std::thread::spawn(|| rustix::thread::current_timer_slack().unwrap()).join().unwrap();
            (get().unwrap().policy, inherited())
        });
        assert_eq!(thread.join().unwrap(), (0, TIMER_SLACK_NS));
    }

    #[test]
    fn a_thread_is_under_the_class_it_asked_for_or_is_told_why_not() {
        match entered(Scheduler::Deadline) {
            Ok(now) => {
                assert_eq!((now.policy, now.runtime, now.period), (SCHED_DEADLINE, BUDGET_NS, PERIOD_NS))
            }
            Err(said) => assert!(said.contains("SCHED_DEADLINE") && said.contains("CAP_SYS_NICE"), "{said}"),
        }
        match entered(Scheduler::Slice) {
            Ok(now) => assert_eq!((now.policy, now.runtime), (0, SLICE_NS)),
            Err(said) => assert!(said.contains("6.12"), "{said}"),
        }
        assert!(may_enter(Scheduler::Other, &Placement::default()).is_ok());
    }
}
