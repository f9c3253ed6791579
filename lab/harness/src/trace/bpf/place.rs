// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where in this kernel's structures the program finds what it reads: `where` in its source.

use super::BpfError;
use super::types::Types;

/// `NOWHERE` there.
const NOWHERE: u64 = 0xffff_ffff;

/// What is looked for among the kernel's types.
pub const SOUGHT: [&str; 19] = [
    ".data..percpu",
    "__preempt_count",
    "bpf_iter_task",
    "btf_trace_hrtimer_expire_entry",
    "btf_trace_hrtimer_expire_exit",
    "btf_trace_sched_switch",
    "btf_trace_sched_wakeup_new",
    "btf_trace_sched_waking",
    "btf_trace_task_newtask",
    "btf_trace_task_rename",
    "btf_trace_timer_expire_entry",
    "btf_trace_timer_expire_exit",
    "cfs_rq",
    "hrtimer_sleeper",
    "pcpu_hot",
    "process_timer",
    "pt_regs",
    "runqueues",
    "task_struct",
];

/// A member of `pt_regs`, and how far in it.
type Register = (&'static str, u64);

/// The registers that a system call's number and its first three words are in; then, of user mode,
/// those of its code, its stack and its frame, and where it returns to, where that is in one.
struct Registers {
    call: &'static str,
    args: [Register; 3],
    at: [Register; 3],
    back: Option<Register>,
}

#[cfg(target_arch = "x86_64")]
const REGISTERS: Option<Registers> = Some(Registers {
    call: "orig_ax",
    args: [("di", 0), ("si", 0), ("dx", 0)],
    at: [("ip", 0), ("sp", 0), ("bp", 0)],
    back: None,
});
#[cfg(target_arch = "aarch64")]
const REGISTERS: Option<Registers> = Some(Registers {
    call: "syscallno",
    args: [("orig_x0", 0), ("regs", 8), ("regs", 16)],
    at: [("pc", 0), ("sp", 0), ("regs", 8 * 29)],
    back: Some(("regs", 8 * 30)),
});
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const REGISTERS: Option<Registers> = None;

/// The variables of each CPU that may hold what it is doing: one of its own, or, from Linux 6.2 to
/// 6.14 on x86-64, part of another.
const VARIABLES: [(&str, Option<&str>); 2] = [("pcpu_hot", Some("preempt_count")), ("__preempt_count", None)];

/// Where a task says what its CPU is doing; else how that is found: the task's queue, the CPU's
/// variable that the queue is of, and how far behind that the CPU says it.
fn doing(types: &Types) -> Option<[u64; 4]> {
    let found = VARIABLES.iter().find_map(|(name, member)| Some((types.of_cpu(name)?, name, member)));
    let Some((count, name, member)) = found else {
        return Some([types.member("task_struct", "thread_info.preempt.count")?, 0, 0, 0]);
    };
    let count = count + member.map_or(Some(0), |member| types.member(name, member))?;
    let (queue, cpu) = (types.member("task_struct", "se.cfs_rq")?, types.member("cfs_rq", "rq")?);
    Some([NOWHERE, queue, cpu, count.wrapping_sub(types.of_cpu("runqueues")?)])
}

/// Members of a task, and what each is.
const TASK: [(&str, &str); 11] = [
    ("pid", "number of a task"),
    ("tgid", "number of a process"),
    ("flags", "flags of a task"),
    ("mm", "memory of a task"),
    ("comm", "name of a task"),
    ("__state", "state of a task (before Linux 5.14)"),
    ("nvcsw", "count of a task's switches"),
    ("nivcsw", "count of a task's switches"),
    ("se.sum_exec_runtime", "CPU time of a task"),
    ("se.prev_sum_exec_runtime", "CPU time of a task when it came"),
    ("prio", "priority of a task"),
];

/// All places, in their order; of `one_in` sleeps one is recorded with its stacks, of 0 none.
pub fn places(types: &Types, children: bool, one_in: u32) -> Result<Vec<u64>, BpfError> {
    let registers = REGISTERS.ok_or(BpfError::Architecture)?;
    let task = |path, what| types.member("task_struct", path).ok_or(BpfError::Absent(what));
    let register = |(name, beyond): Register| {
        let at =
            types.member("pt_regs", name).ok_or(BpfError::Absent("register by the name that is known"))?;
        Ok::<_, BpfError>(at + beyond)
    };
    let doing =
        doing(types).ok_or(BpfError::Absent("count of what a CPU is doing, in a place that is known"))?;
    // Without the one there is not the other.
    let done = types.member("task_struct", "ioac.syscr").zip(types.member("task_struct", "ioac.syscw"));
    let (reads, writes) = done.unwrap_or((NOWHERE, NOWHERE));
    let sleeper =
        |structure| types.member(structure, "task").ok_or(BpfError::Absent("timer that wakes a task"));
    let mut places =
        TASK.map(|(path, what)| task(path, what)).into_iter().collect::<Result<Vec<u64>, _>>()?;
    places.extend([reads, writes]);
    places.extend(doing);
    let Registers { call, args, at, back } = registers;
    for one in [(call, 0)].into_iter().chain(args).chain(at) {
        places.push(register(one)?);
    }
    places.push(back.map_or(Ok(NOWHERE), register)?);
    places.extend([sleeper("hrtimer_sleeper")?, sleeper("process_timer")?]);
    let words = types.words("btf_trace_sched_switch").ok_or(BpfError::Absent("trace event sched_switch"))?;
    // Since Linux 5.18 it has one more.
    places.extend([u64::from(words > 3), u64::from(children), u64::from(one_in)]);
    Ok(places)
}
