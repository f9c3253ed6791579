// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the words mean that stand at the head of a column, name a place or a percentile, or name a
//! part of a run: `doorbell explain`.

/// A kind of word, and its words with their meanings. Case does not matter when one is looked up,
/// nor a blank where there is a dash.
pub const TERMS: [(&str, &[(&str, &str)]); 6] = [
    ("percentile", PERCENTILES),
    ("placement", PLACEMENTS),
    ("part of a run", PARTS),
    ("verdict", VERDICTS),
    ("condition", CONDITIONS),
    ("column", COLUMNS),
];

const PERCENTILES: &[(&str, &str)] = &[
    (
        "p50",
        "The median: half of the samples took at most this long. Of what took turns in slices, and \
         beside a ratio, the level: the middle of what its pairs took.",
    ),
    ("p90", "Nine of ten samples took at most this long."),
    ("p99", "99 of 100 samples took at most this long."),
    (
        "p99.9",
        "999 of 1000 samples took at most this long; of fewer than a few thousand samples it is \
         one of the longest.",
    ),
    ("p99.99", "9999 of 10,000 samples took at most this long."),
    ("max", "The longest sample."),
    ("min", "The shortest sample."),
    ("mean", "The arithmetic mean of all samples, also of those that something else made long."),
    ("median", "Half of the samples took at most this long; the same as p50."),
];

const PLACEMENTS: &[(&str, &str)] = &[
    ("same-core", "Both sides on one CPU: they take turns, and every wake-up is a switch."),
    ("smt-sibling", "Two hardware threads of one core: they share its units and its first two caches."),
    ("same-l2", "Two cores that share a second-level cache."),
    (
        "same-cluster",
        "Two cores of one cluster, as the kernel names groups of cores below the last-level cache.",
    ),
    ("same-l3", "Two cores that share a third-level cache and nothing nearer."),
    ("same-node", "Two cores of one memory node that share no cache."),
    ("other-node", "Two cores of different memory nodes."),
    ("other-cpu", "Two CPUs of which the kernel does not say what they share."),
    ("other-package", "Two cores of different processor packages within one memory node."),
    ("unpinned", "The scheduler chooses, and may move the sides at any time."),
];

const PARTS: &[(&str, &str)] = &[
    (
        "configuration",
        "One point of a plan: a mechanism with its pattern, gap, placement, load and whatever else \
         is chosen.",
    ),
    ("variant", "All trials of one configuration, of which the tables show one row."),
    ("trial", "One execution of a configuration, in processes of its own."),
    ("trials", "How many executions of a configuration the figures come from."),
    (
        "block",
        "One pass over all configurations in random order. As a way of waiting: to sleep at once, \
         without spinning.",
    ),
    (
        "blocks",
        "How many passes over all configurations the figures come from. A difference that is not \
         larger than between blocks is none.",
    ),
    ("runs", "How many executions of a whole plan the figures come from."),
    ("run", "One execution of a whole plan, which makes one result file."),
    (
        "primitive cost",
        "A cost of the machine of which every wake-up is a small multiple, measured beside each block.",
    ),
    ("harness", "The measuring program itself. Its own cost is the row null."),
    ("sender-side cost", "The time that the notifier spends in its call."),
    ("wait duration", "The time from the entry of the wait to its return, whatever it waited for."),
    (
        "verified blocked",
        "The waiter was proven asleep, from the kernel's task state, before the notifier acted.",
    ),
    (
        "need",
        "What a mechanism must give: nothing, so that it may spin; both sides asleep; or a file descriptor.",
    ),
    (
        "the others",
        "Those as fast as the mechanism of the row (= pipe), those that may be (or pipe), and by \
         how much the next is slower.",
    ),
    ("pairs", "How many pairs of CPUs were measured."),
    ("median pair", "The median of the medians of all pairs of CPUs."),
    (
        "best",
        "Of pairs of CPUs, the one with the shortest median. In `doorbell pick`, the mechanism \
         that leads; behind the others stands how far.",
    ),
    ("worst", "The pair of CPUs with the longest median."),
    ("of CPUs", "The two CPUs of a pair, the one that notifies first before the other."),
    (
        "design effect",
        "How many wake-ups are worth one independent one, because those near each other repeat \
         each other (Kish).",
    ),
    (
        "bimodal distribution",
        "Times that fall into two groups with nothing between them, such as wake-ups on one core \
         and across cores. A median of all of them describes none.",
    ),
    ("run-queue delay", "The time from when a task is ready to when its CPU turns to it."),
    (
        "provisional",
        "Other work interfered with more than half of the trials: intervals are wider for it, and \
         an idle machine may say otherwise. A verb that answers a question then exits with 4, or \
         with 3 where it failed.",
    ),
    ("partial", "The run was interrupted; what is shown was measured until then."),
    (
        "trust",
        "How many trials others interfered with, and how many have no figures: how far to believe the rest.",
    ),
    (
        "level",
        "What a thing takes, so that it can be compared: the mean over pairs of processes, or \
         blocks, in logarithms, a tenth of them left out at each end.",
    ),
    (
        "open loop",
        "Notifications are due on a schedule, whether or not the last was taken: a standstill is \
         felt by all that were due in it.",
    ),
    ("closed loop", "The next notification is sent when the last was taken."),
    (
        "stamped",
        "Timing in which each side reads its clock: the notifier before its call, the waiter once \
         it is awake.",
    ),
    (
        "around the wait",
        "Timing in which the initiator alone reads its clock, before its call and after its wait.",
    ),
];

const VERDICTS: &[(&str, &str)] = &[
    (
        "slower",
        "The whole interval of the ratio lies above 1, and the ratio is further from 1 than what matters.",
    ),
    (
        "faster",
        "The whole interval of the ratio lies below 1, and the ratio is further from 1 than what matters.",
    ),
    (
        "same",
        "The whole interval of the ratio lies within so many percent of 1, which is less than what \
         matters: a difference was excluded.",
    ),
    ("least", "The one that costs least, of which the others are multiples."),
    (
        "inconclusive",
        "The result does not decide it, for the reason beside it. Of a comparison: it could be no \
         difference, or one that matters, and the interval says from what to what.",
    ),
    ("pass", "Of `doorbell gate`: the wake-ups keep to the limit, with the confidence asked for."),
    ("fail", "Of `doorbell gate`: the wake-ups do not keep to the limit, with the confidence asked for."),
    ("kept", "Of `doorbell check`: the whole interval lies within the limit of the condition."),
    ("broken", "Of `doorbell check`: the whole interval lies beyond the limit of the condition."),
    ("answered", "There is an answer, and nothing was asked for that could be broken."),
    ("passed", "What was asked for is kept."),
    ("failed", "What was asked for is broken. Of a trial: it ended with an error."),
    ("confirmed here", "The result shows what the claim says."),
    ("contradicted here", "The result shows the opposite of what the claim says."),
    ("cannot be decided here", "The result does not show whether the claim is true; the evidence says why."),
    ("confirmed", "Every result that decides the claim confirms it."),
    ("contradicted", "Every result that decides the claim contradicts it."),
    ("both, by machine", "Some machines confirm the claim, others contradict it."),
    ("open", "No result decides the claim."),
    ("unknown", "Of the cause of a slow wake-up: nothing that was recorded covers half of it."),
];

const CONDITIONS: &[(&str, &str)] = &[
    ("mechanism", "The means of notification, such as futex or eventfd; `doorbell list` shows all."),
    (
        "engine",
        "The I/O engine: how the completion of a transfer is waited for, by interrupt, by polling, or both.",
    ),
    ("way", "How a message is waited for: by interrupt, by polling, or both."),
    (
        "between",
        "Whether the sides are threads of one process or processes of their own. In `doorbell \
         check`, the ends of the interval or the bounds between which the figure lies.",
    ),
    (
        "pattern",
        "Who notifies whom: there and back, one way after a gap, one way on a schedule, one to many.",
    ),
    ("receivers", "How many wait; each has its own object."),
    ("tasks", "How many tasks take turns."),
    ("turns", "How often each task has its turn."),
    ("gap", "The time between two notifications, which is how long the waiter sleeps."),
    ("slept", "How long the waiter had slept when it was notified."),
    (
        "timing",
        "Where the readings of the clock are taken: stamped by both sides, around the call, or \
         after the waiter was proven asleep.",
    ),
    (
        "wait",
        "How the waiter waits: block sleeps at once, spin looks until it comes, spin-then-block \
         looks for a while, time-out gives up and looks again.",
    ),
    (
        "placement",
        "Which CPUs the sides run on, named by what these share: same core, SMT sibling, same L2, \
         same L3, same node, other node, unpinned.",
    ),
    ("CPUs", "The CPUs that the two sides are pinned to, the first to notify first."),
    ("message", "Bytes of message that travel with the notification."),
    ("bytes", "Bytes of message that travel with the notification."),
    ("target", "The file or device that transfers go to."),
    (
        "latency limit",
        "The limit on the depth of idle states that was held while the trial ran (/dev/cpu_dma_latency).",
    ),
    (
        "schedule",
        "How the gaps between the notifications of an open loop are spread; even where nothing is said.",
    ),
    ("beside", "How many idle descriptors stand beside the waiter's in the epoll set that it sleeps in."),
    ("scheduler", "The scheduling policy of the sides."),
    (
        "policy",
        "The scheduling policy of the sides; in `doorbell spin`, for how long the waiter spins \
         before it sleeps.",
    ),
    ("batch", "How many operations lie between two readings of the clock."),
    ("set", "Bytes of memory that each side writes between two switches."),
    ("traced", "Whether the kernel's events were recorded."),
    ("slowed on purpose", "A slowdown that was put in, to see whether a comparison finds it."),
    ("idle states", "Whether the CPUs could choose how deep they sleep, or were held at a limit."),
    ("environment", "What else went on while the trials ran."),
];

const COLUMNS: &[(&str, &str)] = &[
    (
        "CPU",
        "CPU time of a wake-up, the notifier's call and all that the waiter runs, or of an \
         operation, as the kernel accounts it. As the name of a column of numbers without a unit: \
         the CPU it happened on.",
    ),
    ("samples", "How many samples there are."),
    (
        "edge",
        "One way in which threads of a recorded program were woken: a waker, a waiter and a \
         mechanism. `doorbell trace` gives each a letter.",
    ),
    ("waker", "The thread that woke, or (kernel) where a timer, a packet or another interrupt did."),
    ("per s", "How many of them there were in a second."),
    (
        "ready",
        "How long threads of that name were ready to run before they ran, on average over their wake-ups.",
    ),
    ("woken per s", "How often threads of that name were woken in a second."),
    ("thread name", "The name of one or several threads of a recorded program."),
    (
        "spared",
        "Wake-ups for which nobody would sleep any more: they come while the waiter still spins, \
         or share one with others.",
    ),
    ("now", "What it took in the runs without the change."),
    ("predicted", "What it takes with the change, as `doorbell trace whatif` foretells."),
    ("came", "What it took in the runs with the change."),
    ("change", "By how much what came differs from what it took without the change."),
    (
        "off by",
        "How far the prediction was from what came: of what came for times, of what was for CPU and counts.",
    ),
    (
        "held",
        "Whether the whole interval of the error lies within what does not matter; ? where a part does.",
    ),
    ("believe", "By what `doorbell trace` comes to a prediction, or why it makes none."),
    (
        "what if",
        "A change that `doorbell trace whatif` was asked about: median and CPU time as they would \
         be, with 95 % intervals.",
    ),
    ("count", "How many samples the figures come from."),
    ("wake-up", "The number of the notification that it answers, as its trial counts them."),
    ("wake-ups", "How many wake-ups the figures come from."),
    ("rounds", "How many rounds the figures come from."),
    ("kernel", "How long a kernel of the GPU works."),
    ("kernels", "How many kernels were waited for."),
    ("streams", "How many streams have a kernel each that is waited for at once."),
    (
        "launch to return",
        "From just before the call that starts a kernel to the waiter's first instruction after its end.",
    ),
    (
        "cores",
        "CPU time of the waiter and of the driver's threads in the process, by the time of the window.",
    ),
    ("CPU a kernel", "The same CPU time for each kernel."),
    ("clocks within", "How far a time may be off that was taken on the clocks of CPU and GPU."),
    ("device", "What was waited for: a disk, the network or a GPU."),
    ("p50 by block", "The lowest and the highest median of a block: what changed while the run went on."),
    ("distribution", "How many samples took how long, from short to long, on a logarithmic axis."),
    ("share", "The part of the whole."),
    ("verdict", "What follows from the figures; the sentences above or below the table say why."),
    ("result", "Whether a claim is confirmed here, contradicted here, or cannot be decided here."),
    ("claim", "What somebody published about such runs."),
    ("evidence", "The figures that a result rests on."),
    ("row", "The number of the claim in its list."),
    ("difference", "The difference of the medians, with an interval over blocks."),
    ("ratio", "The figure as a multiple of the first file's, or of the row it is compared with."),
    ("p50 ratio", "The median as a multiple of the other's, with an interval."),
    (
        "p99 ratio",
        "The 99th percentile as a multiple of the other's, with an interval. It decides no verdict \
         of `doorbell compare`.",
    ),
    (
        "as measured",
        "The ratio of the levels before the machine's own change is taken out; of what had trials \
         of its own it is the p50 ratio.",
    ),
    ("before", "Of two runs compared: what the baseline takes, the level of its blocks' medians."),
    (
        "machine",
        "Of two runs compared: how much the machine itself changed between them, by all that took \
         turns. Of many: its host name.",
    ),
    (
        "times as long",
        "How many times as long as in the middle machine (of all, in a fleet of its type), by the \
         median over what they ran.",
    ),
    ("results", "How many results of this machine were read."),
    ("node", "One machine of a fleet, named after its run or its host."),
    ("reason", "Why the verdict is what it is, as the run itself says it."),
    ("type", "What machines of one type have in common: product, processor, number of CPUs, hypervisor."),
    ("p50 without", "The median without the kernel's events being recorded."),
    ("p50 with", "The median with the kernel's events being recorded."),
    ("wake-ups cut", "How many wake-ups could be cut into stages."),
    ("took", "How long it took."),
    ("at", "When it happened, from the notifier's stamp just before its call."),
    ("event", "What the kernel recorded."),
    ("events", "What the kernel recorded."),
    ("not different", "Of two runs of the same thing: how many were not called different, out of all."),
    ("slowdown found", "How many runs that were slowed on purpose were called slower, out of all."),
    ("finds", "The least slowdown that would have been called slower in 95 of 100 of these places."),
    ("found in 95 of 100, from", "The least difference that is found in 95 of 100 places."),
    ("found slower", "Of what was slowed on purpose, how many comparisons found it slower."),
    ("cause", "What made the wake-up long, where events or counters show it."),
    ("covers", "How much of the wake-up's length the cause explains; below half it is not called the cause."),
    ("sent", "Notifications sent."),
    ("seen", "Notifications seen by the waiter; in `doorbell check`, the figure that the condition limits."),
    (
        "taken",
        "What an expiry of a timer took from the thread that computes, from its last step before \
         to its next.",
    ),
    ("late share", "Notifications that were seen only because a timed wait ran out, by notifications seen."),
    ("lost or late", "Notifications never seen, and those seen only because a timed wait ran out."),
    ("proven asleep", "Notifications before which the waiter was proven asleep."),
    ("sleeps per notification", "How often the waiter slept, by notification."),
    ("preempted", "How often a side lost its CPU to another task."),
    ("migrated", "How often a side was moved to another CPU."),
    ("switches", "Context switches that the kernel counted."),
    ("switches of the sides", "Context switches of both sides that the kernel counted."),
    ("tries", "Trials, those that were repeated because of interference included."),
    ("longer", "Wake-ups above the limit."),
    ("at most", "The share that longer wake-ups truly are of all at the most, with the stated confidence."),
    ("fails if", "The condition that was asked for."),
    ("entered, by wake-up", "How often an idle state was entered, by wake-up."),
    ("of it the kernel's thread", "The part of the CPU time that a thread of the kernel took."),
    ("transfers", "How many transfers the figures come from."),
    ("operations", "How many operations the figures come from."),
    ("client's cpu", "CPU time of the client's side by message."),
    ("server's thread", "CPU time of the thread that answers, by message."),
    ("the call", "The time that the server spends in its call."),
    ("requests", "Requests of the client by message."),
    ("per", "What one sample is of."),
    ("per switch", "The time by context switch that the kernel counted."),
    ("per fault counted", "The time by page fault that the kernel counted."),
    ("round p50", "The median of a round: there and back."),
    ("wake p50", "The median of the wake-up latency."),
    ("notify p50", "The median of the sender-side cost."),
    ("switches/round", "Context switches of both sides by round, as the kernel counted them."),
    ("res/round", "Rescheduling interrupts of the sides' CPUs by round."),
    ("cal/round", "Function-call interrupts of the sides' CPUs by round."),
    (
        "as the tool prints it",
        "The figure with the divisor and in the unit of the tool whose protocol it is.",
    ),
    ("set written alone", "The time of writing the working set without a switch."),
    ("round less two sets", "The time of a round less that of writing two working sets."),
    ("without a set", "The time of a round in which nothing is written."),
    (
        "x call",
        "The hand-off as a multiple of the control: a call through the same queue with the same \
         count and stamps.",
    ),
    (
        "above call",
        "The hand-off less the control: a call through the same queue with the same count and stamps.",
    ),
    ("make", "The median time of making a task."),
    ("run and reap", "The time from a task's first turn until what it had is given back."),
    ("memory, b", "Bytes of memory by task, as the kernel counts them while all tasks stand ready."),
    ("most here", "How many tasks fit this machine."),
    ("lives", "How many tasks were made, ran and were reaped."),
    ("hand-offs", "How often control went from one task to the next."),
    (
        "tasks on the rotating queue",
        "Tasks whose ready queue is an array that is moved up by one at each turn.",
    ),
    ("on the o(1) queue", "The same tasks with a queue whose cost does not grow with them."),
    ("the queue's share", "How much of a hand-off is the queue's."),
    ("moves per task", "Entries that the rotating queue moved by hand-off."),
    ("ticks per run", "Ticks of the timer that one run took."),
    ("hand-off by ticks, ns", "The hand-off as it is worked out from whole ticks of a timer."),
    ("by cycle counter, ns", "The hand-off as a cycle counter has it."),
    ("one tick of a run", "How much of a run one tick of the timer is."),
    ("printed: coroutine", "What the study printed for a run by coroutine."),
    ("printed: process", "What the study printed for a run by process."),
    ("printed: times", "The study's run by process as a multiple of its run by coroutine."),
    ("its queue: coroutine", "The run by coroutine here, on a queue as the study's."),
    ("its queue: process", "The run by process here, on a queue as the study's."),
    ("its queue: times", "By process as a multiple of by coroutine, both on a queue as the study's."),
    ("o(1): coroutine", "The run by coroutine here, on a queue whose cost does not grow with the tasks."),
    ("o(1): process", "The run by process here, on a queue whose cost does not grow with the tasks."),
    (
        "o(1): times",
        "By process as a multiple of by coroutine, both on a queue whose cost does not grow with the tasks.",
    ),
    ("worst error of ten runs", "How far off ten runs of such a timer may be."),
    ("by trial", "The lowest and the highest value of a trial."),
    ("behind", "How much dearer it is than the best."),
    ("price", "The CPU time of one sleep and the wake-up that ends it."),
    ("what sleeping costs", "Where the sleeping and waking were measured."),
    ("spin that hits", "For how long a spin may last at most to cost no more than the sleep it saves."),
    ("not a candidate", "A mechanism that was left out of the choice."),
    ("why", "The reason."),
    ("primitive", "A primitive cost of the machine."),
    ("first p50", "The median before the first block."),
    ("last p50", "The median after the last block."),
    ("lowest p50", "The lowest median of all readings."),
    ("highest p50", "The highest median of all readings."),
    ("readings", "How often it was read during the run."),
    ("missed", "Wake-ups that were lost, seen only because a wait ran out, or due and never sent."),
    ("figure", "The name of a single figure beside the series."),
    ("formula", "How a figure is worked out."),
    ("first cpu \\ other cpu", "The row is the CPU that notifies first, the column the other."),
    ("service", "A name that a process listens at and to which clients connect."),
    ("client", "A process that is connected to a service."),
    ("full", "The share of a ring that is in use."),
    ("dropped", "Messages that the sender dropped because the ring had no room."),
    ("answers", "Messages that lie in the ring from the service to its client."),
    ("pid", "The number of the process."),
    ("command", "The name of the program."),
    ("waiter", "How the waiter waits."),
    ("waits/s", "Waits in a second."),
    ("spun and hit", "Waits that ended while the waiter spun."),
    ("in vain", "Waits in which the waiter spun and slept after all."),
    ("woken", "Sleeps that a ring ended."),
    ("hits", "The share of spins that ended a wait."),
    ("here", "Whether this machine and kernel have it; if not, why."),
    ("joins", "Whether it joins threads, processes, or both."),
    ("what it is", "One sentence on it."),
    ("started before", "How long all workers of the load had been at work when the trial began."),
    (
        "first",
        "From just before the first post of a round to the first instruction of the receiver that \
         woke first.",
    ),
    (
        "last",
        "From just before the first post of a round to the first instruction of the receiver that woke last.",
    ),
    ("post", "The time that the notifier spends in one post."),
    (
        "order by post",
        "How far receivers woke in the order in which they were posted to: a rank correlation, 1 if quite.",
    ),
    (
        "order by number",
        "How far receivers woke in the order of their numbers: a rank correlation, 1 if quite.",
    ),
    (
        "latency by number",
        "How far receivers of higher numbers woke later in their rounds: a rank correlation.",
    ),
    ("by chance up to", "How large such a correlation is one time in twenty where there is no order at all."),
    (
        "others",
        "CPU time of other programs on the measured CPUs, as a share of one CPU: mean and largest \
         of the trials.",
    ),
    ("sleeps", "Voluntary context switches of the sides: how often they gave up their CPU to wait."),
    ("minor faults", "Page faults of the sides that no device was asked for."),
    ("major faults", "Page faults of the sides that were read from a device."),
    ("stage", "The time between two points that a wake-up was seen to pass, named after the second."),
    ("lies in", "Between which two times the true percentile lies, with the stated confidence."),
    ("cost", "The wake-up latency times its worth, plus the CPU time: what `doorbell spin` weighs."),
    ("baseline", "The run that another is compared with."),
    ("count of blocks", "How many passes over all configurations each of the two runs has."),
    ("experiment", "The verb whose plan was run."),
    ("started", "When the run began."),
    ("configurations", "How many points the plan has."),
    ("samples of the headline quantities", "How many samples the first table's figures come from."),
    ("seed", "From what the random orders of the plan are drawn: the same seed gives the same orders."),
    ("round of posts", "From before the first post of a round to after the last."),
    ("outlasted by", "How long after the trial's end the load was still at work."),
    ("least busy cpu", "The CPU that was busy for the smallest share of a trial."),
    ("run queue", "Tasks that ran or wanted to."),
    ("load average", "The kernel's mean of tasks that ran or wanted to, over the last minute."),
    (
        "waited (psi)",
        "The share of the time in which some runnable task waited for a CPU, by the kernel's \
         pressure information.",
    ),
];

/// How a word is looked up: in small letters, with a dash for a blank.
pub fn key(word: &str) -> String {
    word.trim().to_lowercase().replace([' ', '_'], "-")
}
