// SPDX-License-Identifier: MIT OR Apache-2.0
//! The warnings of a run and of its trials, by name.

use super::Warning;
use crate::about::About;

impl About {
    /// The warning that it is the meaning of.
    pub fn warning(&self, cause: String, effect: &str, cure: &str) -> Warning {
        let (effect, cure) = (effect.to_owned(), cure.to_owned());
        Warning { name: self.name.to_owned(), cause, effect, cure }
    }
}

pub const INTERFERENCE: About = About {
    name: "interference",
    what: "Other programs used more of the measured CPUs during this trial than it can bear, to \
        its last try.",
    taken: "Before and after the trial, from the scheduler's own clock: what tasks ran on the \
        measured CPUs less the trial's own (/proc/schedstat), else what every other task ran that \
        was last seen there (/proc/PID/task/TID/schedstat), and in any case as much as the ticks \
        of /proc/stat are sure of. More than 5 % of a pair of CPUs, beyond half a millisecond or \
        where there is nothing but ticks beyond what those leave open, counts, and such a trial is \
        repeated up to twice, while the run can afford it. `compare` believes no difference \
        between runs of which more than half the trials met interference.",
    misleads: "Where the kernel tells of tasks only, one that begins and ends within the trial is \
        seen by ticks of 10 ms alone, a large share of a short trial. Work on the SMT sibling of a \
        measured CPU is not on that CPU.",
};

pub const CPU_STEAL: About = About {
    name: "cpu-steal",
    what: "The hypervisor gave the time of the measured CPUs to somebody else during this trial.",
    taken: "The steal column of /proc/stat, before and after; bound and repetition as for interference.",
    misleads: "Not every hypervisor tells: none reported is not none taken.",
};

pub const THROTTLED: About = About {
    name: "throttled",
    what: "The control group of this process, or one above it, had used up its CPU quota during \
        this trial and stood still.",
    taken: "throttled_usec or throttled_time in cpu.stat of the group and of all above it, before and after.",
    misleads: "A quota of a group that the container hides is not seen.",
};

pub const SCHEDULED_OTHERWISE: About = About {
    name: "scheduled-otherwise",
    what: "The sides inherited a policy, nice value, timer slack, session group or memory policy \
        that is not the usual one.",
    taken: "/proc/self, once the run had set back what it may; the plan's own policy comes on top.",
    misleads: "Under a plan's real-time policy nice value and timer slack mean nothing.",
};

pub const PRIMITIVES_DRIFTED: About = About {
    name: "primitive-costs-drifted",
    what: "The machine itself changed around this block of trials: one of its primitive costs is \
        not where it was.",
    taken: "Primitive costs are read before the first block, after the last, and in between \
        wherever the pairs of sides change or some time has passed. A median that differs \
        from the next reading by more than a factor of 1.3 (clock, system call, wake with nobody \
        waiting) or 1.4 (the others) has moved.",
    misleads: "It says that the machine changed, not that a figure is wrong: blocks whose variants \
        alternate bear it equally. A busy or virtual machine moves often.",
};

pub const EMULATED: About = About {
    name: "emulated",
    what: "An emulator translated every instruction: every time of this run is the emulator's and \
        no machine's.",
    taken: "The signature of QEMU's translator in CPUID.",
    misleads: "Counts are the kernel's own and true; so is, roughly, which of two mechanisms does \
        more. What a time would be on a CPU cannot be told from it.",
};

pub const STAND_IN: About = About {
    name: "stand-in",
    what: "Wine, not Windows: the calls of Windows were answered by Wine, on another system.",
    taken: "ntdll has wine_get_version, which Windows has not.",
    misleads: "That a mechanism works is shown; no time, and no order of times, says anything of Windows.",
};

pub const GUEST_COMPLAINED: About = About {
    name: "guest-complained",
    what: "The kernel of the guest that this was measured in said on its console that something \
        stood still or went wrong.",
    taken: "The console is read by the host: stalls of RCU, soft lock-ups, hung tasks, warnings, faults.",
    misleads: "A host too busy to run all CPUs of an emulator makes a sound kernel say so, too.",
};

pub const NO_PRIMITIVES: About = About {
    name: "no-primitive-costs",
    what: "The machine's primitive costs could not be measured beside this run.",
    taken: "The process that measures them could not be started, or not be pinned where it should.",
    misleads: "Figures are then held against nothing, and a comparison cannot take the machine's \
        own change out.",
};

pub const BIMODAL: About = About {
    name: "bimodal",
    what: "The times of a trial fall into groups, such as wake-ups on one core and wake-ups across \
        cores: a median of all of them describes none.",
    taken: "The density of the logarithms has a valley between two peaks that is deeper than \
        chance makes it. A group that holds a tenth of the samples and lies half as far again from \
        the largest is warned of; the result file keeps every group with a twentieth or more. \
        Unpinned groups are named where the rescheduling interrupts prove which is which.",
    misleads: "Idle states, halt polling and a drifting clock speed part wake-ups as well as \
        placement does. A long tail is no group.",
};

pub const PAIRS_SAMPLED: About = About {
    name: "pairs-sampled",
    what: "The time given was not enough for every pair of CPUs, and an even sample was measured.",
    taken: "The plan takes rounds of a tournament, so that every CPU is in equally many pairs, and \
        one pair of each relation.",
    misleads: "The best and the worst pair are those of the sample.",
};

pub const NOT_A_NUMBER: About = About {
    name: "not-a-number",
    what: "A figure of this record came out as no finite number and was left out.",
    taken: "Looked at when the result is written: JSON has no such numbers.",
    misleads: "It is a fault of this program, worth a report.",
};

pub const SWITCH_COUNTS_DISAGREE: About = About {
    name: "switch-counts-disagree",
    what: "Two ways to ask the kernel for its context switches gave different numbers over the same rounds.",
    taken: "getrusage against /proc/PID/status or perf_event_open, over rounds that are not timed.",
    misleads: "Which of them is wrong is not known; figures per real switch rest on getrusage.",
};

pub const BEHIND_THE_DEVICE: About = About {
    name: "behind-the-device",
    what: "What the transfers went to is no medium: a virtual disk, a file behind a loop device, or memory.",
    taken: "The device's driver, path and settings in sysfs.",
    misleads: "A disk that an emulator shows as hardware looks like hardware: `doctor` says \
        whether this is a virtual machine.",
};

pub const IMPORTED: About = About {
    name: "imported",
    what: "These figures were measured by another tool and read from its result.",
    taken: "doorbell io --import.",
    misleads: "What the other tool times, and what it counts as CPU time, is its own; so are its \
        conditions, of which its result says little.",
};

pub const ON_THE_CLOCK_GRID: About = About {
    name: "on-the-clock-grid",
    what: "A step of the clock is more than a tenth of the median: single times lie on few values.",
    taken: "The grid of the clock as it was measured before the run, against the median of each trial.",
    misleads: "Percentiles are interpolated within a step, so medians of thousands of times are \
        finer than it; a single time is not.",
};

pub const WITHIN_CLOCK_SKEW: About = About {
    name: "within-clock-skew",
    what: "A time from one CPU to another is shorter than the clocks of the two may be apart, or \
        some came out as nothing.",
    taken: "The bound of the skew as it was measured before the run, against the median of each \
        trial of what two CPUs stamp.",
    misleads: "The bound is half a round trip of a cache line at best; the true skew may be far less.",
};

/// Every warning. The one list to extend.
pub const ALL: [About; 17] = [
    INTERFERENCE,
    CPU_STEAL,
    THROTTLED,
    SCHEDULED_OTHERWISE,
    PRIMITIVES_DRIFTED,
    EMULATED,
    STAND_IN,
    GUEST_COMPLAINED,
    NO_PRIMITIVES,
    BIMODAL,
    ON_THE_CLOCK_GRID,
    WITHIN_CLOCK_SKEW,
    PAIRS_SAMPLED,
    NOT_A_NUMBER,
    SWITCH_COUNTS_DISAGREE,
    BEHIND_THE_DEVICE,
    IMPORTED,
];
