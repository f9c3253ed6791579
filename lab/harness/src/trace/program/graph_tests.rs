// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wake graphs of events that were made up.

use super::*;

const MAIN: i32 = 10;
const WORKER: i32 = 11;
const ADDRESS: u64 = 0x7000;

/// Events one microsecond after another.
#[derive(Default)]
struct Told {
    at: u64,
    events: Vec<Seen>,
}

impl Told {
    fn act(mut self, task: i32, context: Context, act: Act) -> Self {
        self.at += 1000;
        self.events.push(Seen { at: self.at, task, context, act });
        self
    }
    fn enters(self, task: i32, call: i64, args: [u64; 3]) -> Self {
        self.act(task, Context::Task, Act::Enters { call, args })
    }
    fn returns(self, task: i32, call: i64, value: i64) -> Self {
        self.act(task, Context::Task, Act::Returns { call, value })
    }
    fn sleeps(self, task: i32) -> Self {
        self.act(task, Context::Task, switch(task, 1, 0))
    }
    fn comes(self, task: i32) -> Self {
        self.act(0, Context::Task, switch(0, 0, task))
    }
    fn wakes(self, task: i32, context: Context, waiter: i32) -> Self {
        self.act(task, context, Act::Waking { task: waiter })
    }
    /// The worker falls asleep in a call.
    fn asleep(self, call: i64, args: [u64; 3]) -> Self {
        self.enters(WORKER, call, args).sleeps(WORKER)
    }
    /// The other thread wakes it by a call.
    fn woken_by(self, call: i64, args: [u64; 3]) -> Self {
        self.enters(MAIN, call, args).wakes(MAIN, Context::Task, WORKER)
    }
    /// A thread that waits on a futex and is woken by another's call.
    fn futex_round(self) -> Self {
        self.asleep(libc::SYS_futex, [ADDRESS, 0, 0])
            .woken_by(libc::SYS_futex, [ADDRESS, 1, 1])
            .comes(WORKER)
            .returns(MAIN, libc::SYS_futex, 1)
            .returns(WORKER, libc::SYS_futex, 0)
    }
    fn graph(&self, files: &Files) -> Graph {
        let mut weaver = Weaver::new(&[(MAIN, MAIN), (WORKER, MAIN)], false, files);
        self.events.iter().for_each(|event| weaver.see(event));
        weaver.end()
    }
    /// The one edge that there is.
    fn edge(&self, files: &Files) -> (Key, Times) {
        let graph = self.graph(files);
        assert_eq!(graph.edges.len(), 1, "{:?}", graph.edges);
        graph.edges[0].clone()
    }
}

fn switch(from: i32, state: u8, to: i32) -> Act {
    Act::Switch { from, state, to, priority: 120 }
}

fn made(wait: Wait, object: Object, by: By) -> Mechanism {
    Mechanism { wait, object, by }
}

fn file(file: File, fd: i32) -> Object {
    Object::File { file, fd: Some(fd) }
}

#[test]
fn a_wake_up_goes_from_the_waking_to_the_cpus_turning_and_is_its_callers() {
    let told = (0..5).fold(Told::default(), |told, _| told.futex_round());
    let (key, times) = told.edge(&Files::default());
    let mechanism = made(Wait::Futex, Object::Futex { address: ADDRESS }, By::Call);
    assert_eq!(key, Key { waker: Who::Task(MAIN), waiter: WORKER, mechanism });
    assert_eq!(times, Times { wakes: vec![[2000, 1000]; 5], ran_out: 0, rescued: 0 });
}

#[test]
fn where_the_kernel_does_not_tell_of_a_coming_the_wake_up_ends_at_the_next_action_and_is_counted() {
    let mut told = Told::default().futex_round();
    told.events.retain(|event| !matches!(event.act, Act::Switch { to: WORKER, .. }));
    let graph = told.graph(&Files::default());
    assert_eq!((graph.wakes, graph.ended_by_action, graph.incomplete), (1, 1, 0));
    assert_eq!(graph.edges[0].1.wakes, [[2000, 3000]]);
}

#[test]
fn a_waking_that_met_a_thread_before_it_slept_wakes_nobody() {
    let told = Told::default()
        .enters(WORKER, libc::SYS_futex, [ADDRESS, 0, 0])
        .wakes(MAIN, Context::Task, WORKER)
        .returns(WORKER, libc::SYS_futex, 0)
        .asleep(libc::SYS_futex, [ADDRESS, 0, 0]);
    assert_eq!(told.graph(&Files::default()).wakes, 0);
}

/// The kernel tells of a leaving when it is all but over: a waker on
/// another CPU may be told of before.
#[test]
fn a_waking_that_is_told_of_before_the_leaving_wakes_the_sleeper() {
    let told = Told::default()
        .enters(WORKER, libc::SYS_futex, [ADDRESS, 0, 0])
        .woken_by(libc::SYS_futex, [ADDRESS, 1, 1])
        .sleeps(WORKER)
        .comes(WORKER);
    assert_eq!(told.edge(&Files::default()).1.wakes, [[0, 1000]]);
}

#[test]
fn a_sleep_that_began_before_the_recording_is_left_out_and_counted() {
    let told = Told::default().sleeps(WORKER).wakes(MAIN, Context::Task, WORKER).comes(WORKER);
    let graph = told.returns(WORKER, libc::SYS_futex, 0).graph(&Files::default());
    assert_eq!((graph.wakes, graph.incomplete, graph.edges.len()), (0, 1, 0));
}

#[test]
fn an_eventfd_behind_an_epoll_set_is_known_by_the_call_that_opened_it() {
    let told = Told::default()
        .enters(MAIN, libc::SYS_eventfd2, [0; 3])
        .returns(MAIN, libc::SYS_eventfd2, 7)
        .asleep(libc::SYS_epoll_pwait, [4, 0, 0])
        .woken_by(libc::SYS_write, [7, 0, 8])
        .comes(WORKER)
        .returns(WORKER, libc::SYS_epoll_pwait, 1);
    assert_eq!(told.edge(&Files::default()).0.mechanism, made(Wait::Epoll, file(File::Eventfd, 7), By::Call));
    // Closed, and opened again as what no call tells.
    let again = Told { at: 0, events: Vec::new() }
        .enters(MAIN, libc::SYS_eventfd2, [0; 3])
        .returns(MAIN, libc::SYS_eventfd2, 7)
        .enters(MAIN, libc::SYS_close, [7, 0, 0])
        .returns(MAIN, libc::SYS_close, 0)
        .asleep(libc::SYS_read, [7, 0, 0])
        .wakes(MAIN, Context::Task, WORKER)
        .comes(WORKER);
    let files = Files::default().with(MAIN, 7, File::Pipe);
    assert_eq!(again.edge(&files).0.mechanism, made(Wait::Read, file(File::Pipe, 7), By::Call));
}

#[test]
fn a_completion_of_an_io_uring_is_by_what_the_waker_wrote_to() {
    let told = Told::default()
        .asleep(libc::SYS_io_uring_enter, [4, 1, 1])
        .woken_by(libc::SYS_write, [7, 0, 8])
        .comes(WORKER)
        .returns(WORKER, libc::SYS_io_uring_enter, 1);
    let files = Files::default().with(MAIN, 7, File::Pipe);
    assert_eq!(told.edge(&files).0.mechanism, made(Wait::IoUring, file(File::Pipe, 7), By::Call));
}

#[test]
fn interrupts_are_timers_or_the_network_and_never_whoever_ran_there() {
    let asleep = |call, args| Told::default().enters(WORKER, call, args).sleeps(WORKER);
    let woken = |told: Told, context| told.wakes(MAIN, context, WORKER).comes(WORKER);
    let nap = woken(asleep(libc::SYS_clock_nanosleep, [0; 3]), Context::Interrupt);
    let (key, _) = nap.edge(&Files::default());
    assert_eq!((key.waker, key.mechanism.by), (Who::Kernel, By::Timer));
    let packet = woken(asleep(libc::SYS_epoll_pwait, [4, 0, 0]), Context::Softirq).returns(
        WORKER,
        libc::SYS_epoll_pwait,
        1,
    );
    let (key, _) = packet.edge(&Files::default());
    assert_eq!((key.waker, key.mechanism.by), (Who::Kernel, By::Network));
}

#[test]
fn what_is_sent_to_this_machine_is_its_senders_and_what_is_sent_elsewhere_is_not() {
    let socket = |address: Option<&str>| File::Socket {
        family: "tcp".to_owned(),
        address: address.map(str::to_owned),
    };
    for (address, own) in [("127.0.0.1:80", true), ("[::1]:80", true), ("192.0.2.7:80", false)] {
        let files =
            Files::default().with(MAIN, 5, socket(Some(address))).with(MAIN, 6, socket(Some(address)));
        let told = Told::default()
            .asleep(libc::SYS_recvfrom, [6, 0, 0])
            .enters(MAIN, libc::SYS_sendto, [5, 0, 0])
            .wakes(MAIN, Context::Softirq, WORKER)
            .comes(WORKER);
        let (key, _) = told.edge(&files);
        let expected = if own { (Who::Task(MAIN), By::Call) } else { (Who::Kernel, By::Network) };
        assert_eq!((key.waker, key.mechanism.by), expected, "{address}");
        assert_eq!(key.mechanism.object, Object::File { file: socket(Some(address)), fd: None });
    }
}

#[test]
fn a_time_out_after_which_the_thread_does_something_else_may_have_rescued_it() {
    let waits = |told: Told| {
        told.asleep(libc::SYS_futex, [ADDRESS, 0, 0])
            .wakes(0, Context::Interrupt, WORKER)
            .comes(WORKER)
            .returns(WORKER, libc::SYS_futex, -i64::from(libc::ETIMEDOUT))
    };
    let told = waits(waits(Told::default())).enters(WORKER, libc::SYS_write, [1, 0, 0]);
    let (key, times) = told.edge(&Files::default());
    assert_eq!(key.mechanism, made(Wait::Futex, Object::Futex { address: ADDRESS }, By::Timer));
    assert_eq!((times.wakes.len(), times.ran_out, times.rescued), (2, 2, 1));
}

#[test]
fn signals_have_their_number_and_ends_are_ends() {
    let signal = Told::default()
        .asleep(libc::SYS_rt_sigtimedwait, [0; 3])
        .woken_by(libc::SYS_tgkill, [10, 11, 12])
        .comes(WORKER);
    assert_eq!(signal.edge(&Files::default()).0.mechanism.by, By::Signal { number: 12 });
    let end = Told::default()
        .asleep(libc::SYS_futex, [ADDRESS, 0, 0])
        .woken_by(libc::SYS_exit, [0; 3])
        .comes(WORKER);
    assert_eq!(end.edge(&Files::default()).0.mechanism.by, By::End);
}

#[test]
fn one_call_that_wakes_several_is_a_herd_and_children_count_where_they_are_asked_for() {
    let mut told = Told::default();
    for task in [20, 21, 22] {
        told = told
            .act(MAIN, Context::Task, Act::Born { task, thread: true })
            .enters(task, libc::SYS_futex, [ADDRESS, 0, 0])
            .sleeps(task);
    }
    told = told.enters(MAIN, libc::SYS_futex, [ADDRESS, 1, 9]);
    told = [20, 21, 22].into_iter().fold(told, |told, task| told.wakes(MAIN, Context::Task, task));
    told = [20, 21, 22].into_iter().fold(told, Told::comes);
    let graph = told.graph(&Files::default());
    assert_eq!(graph.herds, HashMap::from([((MAIN, 20), (1, 3))]));
    let told = Told::default().act(MAIN, Context::Task, Act::Born { task: 30, thread: false });
    for children in [false, true] {
        let files = Files::default();
        let mut weaver = Weaver::new(&[(MAIN, MAIN)], children, &files);
        told.events.iter().for_each(|event| weaver.see(event));
        assert_eq!(weaver.end().threads.contains_key(&30), children);
    }
}

proptest::proptest! {
    /// Whatever comes in whatever order, no wake-up is counted that is on no edge, and nothing panics.
    #[test]
    fn whatever_the_events_every_wake_up_is_on_one_edge(
        raw in proptest::collection::vec((0_i32..4, 0_u8..6, 0_i32..4, 0_i64..300, 0_u8..3), 0..200),
    ) {
        let mut told = Told::default();
        for (task, kind, other, number, context) in raw {
            let (task, other) = (task * 10, other * 10);
            let context = [Context::Task, Context::Softirq, Context::Interrupt][usize::from(context)];
            let args = [number.unsigned_abs() % 8, 1, 2];
            let act = match kind {
                0 => Act::Enters { call: number, args },
                1 => Act::Returns { call: number, value: number - 150 },
                2 => Act::Waking { task: other },
                3 => switch(task, 1, other),
                4 => switch(task, 0, other),
                _ => Act::Born { task: other, thread: number % 2 == 0 },
            };
            told = told.act(task, context, act);
        }
        let files = Files::default();
        let mut weaver = Weaver::new(&[(10, 10), (20, 10)], true, &files);
        told.events.iter().for_each(|event| weaver.see(event));
        let graph = weaver.end();
        let on_edges: usize = graph.edges.iter().map(|(_, times)| times.wakes.len()).sum();
        let passed: usize = graph.threads.values().map(|thread| thread.passed.len()).sum();
        proptest::prop_assert_eq!((on_edges as u64, passed), (graph.wakes, on_edges));
    }
}

#[test]
fn a_call_that_goes_on_after_a_stop_keeps_its_name() {
    let told = Told::default()
        .asleep(libc::SYS_futex, [ADDRESS, 0, 0])
        .wakes(MAIN, Context::Interrupt, WORKER)
        .comes(WORKER)
        .returns(WORKER, libc::SYS_futex, CUT_OFF)
        .asleep(libc::SYS_restart_syscall, [ADDRESS, 0, 0])
        .woken_by(libc::SYS_futex, [ADDRESS, 1, 1])
        .comes(WORKER)
        .returns(WORKER, libc::SYS_restart_syscall, 0);
    let graph = told.graph(&Files::default());
    let mechanism = made(Wait::Futex, Object::Futex { address: ADDRESS }, By::Call);
    let named = graph.edges.iter().any(|(key, _)| key.mechanism == mechanism);
    assert!(named, "{:?}", graph.edges);
}

#[test]
fn how_long_the_waker_stays_is_known_whether_it_leaves_before_or_after_the_waiter_goes_on() {
    let after = Told::default().futex_round().sleeps(MAIN);
    let passed = |told: &Told| told.graph(&Files::default()).threads[&WORKER].passed[0];
    // Waking, coming, two returns, leaving.
    assert_eq!(passed(&after).waker_ran, Some(4000));
    let before = Told::default()
        .asleep(libc::SYS_futex, [ADDRESS, 0, 0])
        .woken_by(libc::SYS_futex, [ADDRESS, 1, 1])
        .sleeps(MAIN)
        .comes(WORKER);
    assert_eq!(passed(&before).waker_ran, Some(1000));
    assert_eq!(passed(&Told::default().futex_round()).waker_ran, None, "it has not left yet");
}

#[test]
fn calls_that_ask_one_after_another_and_find_nothing_are_counted_and_those_that_slept_are_not() {
    let asks = |told: Told| {
        told.enters(WORKER, libc::SYS_epoll_pwait, [7, 0, 0]).returns(WORKER, libc::SYS_epoll_pwait, 0)
    };
    let told = (0..5).fold(Told::default(), |told, _| asks(told)).futex_round();
    let slept = told
        .asleep(libc::SYS_epoll_pwait, [7, 0, 0])
        .wakes(MAIN, Context::Interrupt, WORKER)
        .comes(WORKER)
        .returns(WORKER, libc::SYS_epoll_pwait, 0);
    assert_eq!(slept.graph(&Files::default()).threads[&WORKER].asked_in_vain, 4);
}
