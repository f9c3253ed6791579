// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recorded program: who wakes whom in it, by what, and what that takes.

use super::columns::{Columns, dash};
use super::figures::{Figures, supports};
use super::section::Section;
use super::subsection::Subsection;
use super::table::{number, word};
use super::unit::{Scale, count, time_ns};
use super::what_if;
use crate::wording::counted;
use doorbell_results::anatomy::Counts;
use doorbell_results::anatomy::program::{
    By, Cost, Edge, Engine, File, Herd, Mechanism, Object, Program, Threads, Wait, Waker,
};
use doorbell_results::record::{ResultFile, Series};

/// The name of the section, for plans.
pub const WAKE_GRAPH: &str = "wake-graph";

/// What else the record shows, on a screen: so much of it.
const NOTES: usize = 3;
/// Herds that are told of.
const HERDS: usize = 2;
/// But one of less than this share of the wake-ups is chance, such as threads that wait for the lock
/// of their process's memory as they start.
const HERD_SHARE: f64 = 0.01;
/// Calls in a second that found nothing, from which on a thread is told to spin.
const SPINS: f64 = 1000.0;

#[derive(Debug)]
pub struct WakeGraph;

impl Section for WakeGraph {
    fn name(&self) -> &'static str {
        WAKE_GRAPH
    }

    fn subsections(&self, result: &ResultFile, _: &Figures) -> Vec<Subsection> {
        let parts = |(program, counts)| {
            [graph(program, counts, usize::MAX), what_if::first(result), threads(program)]
        };
        recorded(result).flat_map(parts).collect()
    }

    fn answer(&self, result: &ResultFile, _: &Figures) -> Vec<Subsection> {
        let what_if = what_if::first(result);
        // A table beside the one of edges takes room.
        let notes = if what_if.table.is_some() { NOTES - 1 } else { NOTES };
        let graphs = recorded(result).map(|(program, counts)| graph(program, counts, notes));
        graphs.chain([what_if]).collect()
    }
}

fn recorded(result: &ResultFile) -> impl Iterator<Item = (&Program, &Counts)> {
    let anatomies = result.records.iter().filter_map(|record| record.anatomy.as_ref());
    anatomies.filter_map(|anatomy| Some((anatomy.program.as_ref()?, &anatomy.counts)))
}

fn graph(program: &Program, counts: &Counts, most: usize) -> Subsection {
    let edges = &program.edges;
    let scale = Scale::for_ps(edges.iter().map(|edge| edge.took.p50_ns * 1e3));
    // Of a recording that has no wakers, nor when they woke, the rest.
    let sleeps = program.engine == Engine::Own;
    let head = format!("p50, {}", scale.unit.sign());
    let table = Columns::none()
        .with(word("edge"), |(place, _): &(usize, &Edge)| Edge::letter(*place))
        .with_if(!sleeps, word("waker"), |(_, edge)| short(waker(&edge.waker)))
        .with(word("waiter"), |(_, edge)| short(&edge.waiter))
        .with(word("mechanism"), |(_, edge)| {
            by_stack(program, edge).unwrap_or_else(|| mechanism(&edge.mechanism))
        })
        .with(number("per s").keep(2), |(_, edge)| rate(edge.wakes, program.recorded_ns))
        .with(number("slept").keep(1), |(_, edge)| time_ns(edge.slept.p50_ns).replace(' ', ""))
        .with_if(!sleeps, number(head), |(_, edge)| scale.show_ns(edge.took.p50_ns))
        .with_if(!sleeps, number("p99"), |(_, edge)| p99(&edge.took, scale))
        .table(&edges.iter().enumerate().collect::<Vec<_>>());
    let notes = notes(program).into_iter().take(most);
    let lead = [first_line(program, counts)].into_iter().chain(notes).collect();
    Subsection { lead, table: Some(table).filter(|_| !edges.is_empty()), ..Subsection::default() }
}

fn first_line(program: &Program, counts: &Counts) -> String {
    let threads = program.threads.iter().fold(0_u64, |all, threads| all.saturating_add(threads.count));
    let seconds = program.wall_ns() as f64 / 1e9;
    let slices = program.lasted_ns.map(|_| {
        let share = 100.0 * program.recorded_ns as f64 / (program.wall_ns() as f64).max(1.0);
        format!("recorded {} % of ", three(share))
    });
    let slices = slices.unwrap_or_default();
    let lost = match counts.lost_events {
        0 => "no event lost".to_owned(),
        lost => {
            format!("{} of {} lost", count(lost), counted(program.cost.events.saturating_add(lost), "event"))
        }
    };
    let Cost { recorder_ns, wake_ns, .. } = program.cost;
    let share = |ns: f64| 100.0 * ns / (program.wall_ns() as f64).max(1.0);
    format!(
        "{}{}: {} wake-ups/s, {}, {slices}{seconds:.1} s, {lost}; recording took {:.1} % of a CPU, \
         and some {:.1} % more in the program, {} a wake-up.",
        program.name,
        if program.engine == Engine::Own { " (--engine own)" } else { "" },
        rate(program.wakes, program.recorded_ns),
        counted(threads, "thread"),
        share(recorder_ns as f64),
        share(program.cost.added_ns(program.wakes)),
        time_ns(wake_ns),
    )
}

/// What else the record shows.
fn notes(program: &Program) -> Vec<String> {
    let mut notes: Vec<String> = program.cut_short.iter().map(|why| format!("Cut short: {why}.")).collect();
    if program.engine == Engine::Own {
        notes.extend(unseen(program));
    }
    if program.lasted_ns.is_some() {
        notes.push(
            "Recorded in slices: rates and CPU time are those of the slices, and waits that one of \
             them cut are left out."
                .to_owned(),
        );
    }
    let herd = |herd: &Herd| {
        format!(
            "Herd: {} of {} each woke {} threads on average, {} among them.",
            counted(herd.calls, "call"),
            herd.waker,
            three(herd.woken as f64 / herd.calls.max(1) as f64),
            herd.waiter
        )
    };
    let often = |herd: &&Herd| herd.woken as f64 >= HERD_SHARE * program.wakes as f64;
    notes.extend(program.herds.iter().filter(often).take(HERDS).map(herd));
    notes.extend(program.convoys.first().map(|convoy| {
        format!(
            "Convoy: {} threads hand {} on, one to the next, {} times a second, {} most: each \
             queues up behind the one it wakes.",
            count(convoy.threads),
            object_of(&Object::Futex { address: convoy.address }).unwrap_or_default(),
            rate(convoy.wakes, program.recorded_ns),
            convoy.waiter
        )
    }));
    let spins = |threads: &&Threads| {
        threads.asked_in_vain as f64 * 1e9 / (program.recorded_ns as f64).max(1.0) >= SPINS
    };
    notes.extend(program.threads.iter().filter(spins).take(1).map(|threads| {
        format!(
            "Spins: {} calls of {} a second asked whether there was something to do, and there was nothing.",
            rate(threads.asked_in_vain, program.recorded_ns),
            threads.name
        )
    }));
    let rescued = |(place, edge): (usize, &Edge)| {
        (edge.rescued > 0).then(|| {
            format!(
                "Time-outs: {} of edge {} ran out, and after {} the thread went on to something \
                 else: its wake-up may have been lost.",
                counted(edge.ran_out, "wait"),
                Edge::letter(place),
                count(edge.rescued)
            )
        })
    };
    notes.extend(program.edges.iter().enumerate().filter_map(rescued).take(1));
    if program.wakes > 0 && program.ended_by_action > 0 {
        let share = 100.0 * program.ended_by_action as f64 / program.wakes as f64;
        let end = match program.engine {
            Engine::Tracefs => "at the first thing it did",
            Engine::Bpf | Engine::Own => "by how long it then ran",
        };
        notes.push(format!(
            "Of {share:.0} % of the wake-ups the kernel did not tell that a CPU turned to the \
             thread: they end {end}."
        ));
    }
    if program.incomplete > 0 {
        notes.push(format!(
            "Left out: {} whose sleep began before the recording, or of which events are missing.",
            counted(program.incomplete, "wake-up")
        ));
    }
    if program.further_wakes > 0 {
        notes
            .push(format!("Not in the table: {} by rarer edges.", counted(program.further_wakes, "wake-up")));
    }
    notes
}

/// What a recording is without that any user may have made, and what it has instead.
fn unseen(program: &Program) -> Vec<String> {
    let lacks = "Not recorded: who wakes, and how long each wake-up takes. Root, CAP_BPF with \
                 CAP_PERFMON, or a tracefs that this user may write shows both.";
    let ready = program.threads.iter().find_map(|threads| {
        let mean = time_ns(threads.ready_mean_ns?);
        let name = &threads.name;
        Some(format!("Ready to run, {name} waited {mean} for a CPU on average; --details has the others."))
    });
    let seen = |edge: &&Edge| edge.mechanism.wait != Wait::Unseen;
    let seen = program.edges.iter().filter(seen).map(|edge| edge.wakes).sum::<u64>();
    let looked = match seen {
        0 => "In what threads slept was not seen: none slept just when it was looked at, or that is \
              not allowed (kernel.yama.ptrace_scope; of a command that is started here it is)."
            .to_owned(),
        _ => format!(
            "In what a thread slept is known of {} % of the sleeps, those that lasted while it was \
             looked at.",
            three(100.0 * seen as f64 / program.wakes.max(1) as f64)
        ),
    };
    [Some(lacks.to_owned()), ready, Some(looked)].into_iter().flatten().collect()
}

fn threads(program: &Program) -> Subsection {
    let of_the_time = |ns: u64| three(100.0 * ns as f64 / (program.recorded_ns as f64).max(1.0));
    let table = Columns::none()
        .with(word("thread name"), |threads: &Threads| threads.name.clone())
        .with(number("count"), |threads| count(threads.count))
        .with(number("CPU, %"), |threads| of_the_time(threads.ran_ns))
        .with(number("woken per s"), |threads| rate(threads.wakes, program.recorded_ns))
        .with(number("ready"), |threads| threads.ready_mean_ns.map_or_else(dash, time_ns))
        .table(&program.threads);
    let title = format!("Threads of {}", program.name);
    let table = Some(table).filter(|table| !table.is_empty());
    Subsection { title, table, ..Subsection::default() }
}

/// Who wakes.
pub fn waker(waker: &Waker) -> &str {
    match waker {
        Waker::Thread { name } | Waker::Outside { name } => name,
        Waker::Kernel => "(kernel)",
        Waker::Unseen => "(not seen)",
    }
}

/// A thread's name, which has 15 letters, in the room of a column.
fn short(name: &str) -> String {
    const ROOM: usize = 10;
    if name.chars().count() <= ROOM {
        return name.to_owned();
    }
    name.chars().take(ROOM - 1).chain(['…']).collect()
}

/// By what a thread is woken, in a few words.
pub fn mechanism(mechanism: &Mechanism) -> String {
    let Mechanism { wait, object, by } = mechanism;
    let object = object_of(object);
    let way = match wait {
        Wait::Epoll => Some("epoll"),
        Wait::Poll => Some("poll"),
        Wait::Select => Some("select"),
        Wait::IoUring => Some("io_uring"),
        _ => None,
    };
    let what = match by {
        By::Signal { number } => format!("signal {number}"),
        By::Timer => match (wait, object) {
            (Wait::Sleep, _) => "sleep".to_owned(),
            (_, Some(object)) => format!("timer, {object}"),
            _ => "timer".to_owned(),
        },
        By::Network => object.map_or_else(|| "network".to_owned(), |object| format!("{object}, network")),
        By::Interrupt => {
            object.map_or_else(|| "interrupt".to_owned(), |object| format!("{object}, interrupt"))
        }
        By::End => match (wait, object) {
            (Wait::Child, _) => "child's end".to_owned(),
            (_, Some(object)) => format!("{object}, thread's end"),
            _ => "thread's end".to_owned(),
        },
        By::Call | By::Unseen => match (object, wait) {
            (Some(object), _) => object,
            (None, Wait::Unseen) => "not seen".to_owned(),
            (None, Wait::Sleep) => "sleep".to_owned(),
            (None, Wait::Signal) => "signal".to_owned(),
            (None, Wait::Child) => "child's end".to_owned(),
            (None, Wait::Call { number }) => format!("system call {number}"),
            (None, Wait::Elsewhere) => "in no call".to_owned(),
            (None, _) => return way.unwrap_or("unknown").to_owned(),
        },
    };
    way.map_or(what.clone(), |way| format!("{what}, {way}"))
}

/// What a futex is of, where most of the sleepers' stacks show it.
fn by_stack(program: &Program, edge: &Edge) -> Option<String> {
    /// As the beginnings of functions have it: of C, of C++, of Rust.
    const KINDS: [(&str, &str); 9] = [
        ("sem_", "semaphore"),
        ("__new_sem_", "semaphore"),
        ("pthread_cond_", "condition variable"),
        ("__pthread_cond_", "condition variable"),
        ("std::sys::sync::condvar", "condition variable"),
        ("pthread_mutex_", "mutex"),
        ("__pthread_mutex_", "mutex"),
        ("std::sys::sync::mutex", "mutex"),
        ("std::thread::park", "parked thread"),
    ];
    let (Object::Futex { address }, Some(stacks)) = (&edge.mechanism.object, &program.stacks) else {
        return None;
    };
    let most = edge.stacks.first().filter(|most| 2 * most.wakes > edge.sampled)?;
    let names = most.waiter.iter().filter_map(|place| stacks.functions.get(*place as usize));
    let kinds = names.filter_map(|name| KINDS.iter().find(|(begin, _)| name.starts_with(begin)));
    let (_, kind) = kinds.map(|(begin, kind)| (begin, kind)).next()?;
    Some(format!("{kind} 0x…{:03x}", address & 0xfff))
}

fn object_of(object: &Object) -> Option<String> {
    let (file, fd) = match object {
        // The end tells addresses apart.
        Object::Futex { address } => return Some(format!("futex 0x…{:03x}", address & 0xfff)),
        Object::None => return None,
        Object::File { file, fd } => (file, fd),
    };
    let kind = match file {
        File::Eventfd => "eventfd",
        File::Epoll => "epoll",
        File::Timerfd => "timerfd",
        File::Signalfd => "signalfd",
        File::Pipe => "pipe",
        File::Socket { family, address: Some(address) } => return Some(format!("{family} {address}")),
        File::Socket { family, address: None } => family,
        File::Other => "file",
    };
    Some(fd.map_or_else(|| kind.to_owned(), |fd| format!("{kind} {fd}")))
}

/// So many in `ns`, a second.
pub(super) fn rate(number: u64, ns: u64) -> String {
    let rate = number as f64 * 1e9 / (ns as f64).max(1.0);
    if rate >= 10.0 { count(rate.round() as u64) } else { three(rate) }
}

fn three(value: f64) -> String {
    doorbell_results::written::three_digits(value, 1)
}

fn p99(series: &Series, scale: Scale) -> String {
    if supports(series.count, 0.99) { scale.show_ns(series.p99_ns) } else { dash() }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::screen::{LINES, screen};
    use crate::style::{Style, width};
    use doorbell_results::anatomy::Anatomy;
    use doorbell_results::anatomy::program::Convoy;
    use doorbell_results::record::sample;

    pub(crate) fn edge(waker: Waker, waiter: &str, mechanism: Mechanism) -> Edge {
        let series = |low_ns| Series::from(&sample::histogram(low_ns, 1000));
        Edge {
            waker,
            waiter: waiter.to_owned(),
            mechanism,
            wakes: 1000,
            ran_out: 0,
            rescued: 0,
            slept: series(80_000.0),
            took: series(9000.0),
            sequence: None,
            slowest: Vec::new(),
            sampled: 0,
            stacks: Vec::new(),
        }
    }

    pub(crate) fn made(edges: Vec<Edge>) -> ResultFile {
        let mut result = sample::result(&[sample::configuration("server")], 1, |_, _| 16_000.0);
        let threads = Threads {
            name: "worker".to_owned(),
            count: 6,
            ran_ns: 400_000_000,
            wakes: 3000,
            asked_in_vain: 9000,
            ..Threads::default()
        };
        let program = Program {
            name: "server".to_owned(),
            recorded_ns: 2_000_000_000,
            wakes: 3000,
            ended_by_action: 300,
            incomplete: 4,
            cost: Cost {
                recorder_ns: 42_000_000,
                call_ns: 400.0,
                wake_ns: 1700.0,
                calls: 9000,
                events: 50_000,
            },
            threads: vec![threads],
            convoys: vec![Convoy { address: 0x1048, waiter: "worker".into(), threads: 4, wakes: 3000 }],
            herds: vec![Herd { waker: "main".into(), waiter: "worker".into(), calls: 10, woken: 60 }],
            edges,
            ..Program::default()
        };
        let counts = Counts { lost_events: 7, ..Counts::default() };
        result.records[0].anatomy = Some(Anatomy { counts, program: Some(program), ..Anatomy::default() });
        result.plan.sections = vec![WAKE_GRAPH.to_owned()];
        result
    }

    pub(crate) fn futex(address: u64) -> Mechanism {
        Mechanism { wait: Wait::Futex, object: Object::Futex { address }, by: By::Call }
    }

    #[test]
    fn the_first_screen_has_the_losses_in_its_first_line_and_fits_a_terminal() {
        let thread = || Waker::Thread { name: "a-thread-with-15".to_owned() };
        let edges = (0..30).map(|at| edge(thread(), "a-thread-with-15", futex(0x7f00_0000 + at * 64)));
        let many = made(edges.collect());
        let changed = |edges, change: fn(&mut Program)| {
            let mut result = made(edges);
            change(result.records[0].anatomy.as_mut().unwrap().program.as_mut().unwrap());
            result
        };
        let in_slices = changed(vec![edge(Waker::Kernel, "worker", futex(0x40))], |program| {
            program.lasted_ns = Some(20_000_000_000);
        });
        let slept = |wait, object| edge(Waker::Unseen, "worker", Mechanism { wait, object, by: By::Unseen });
        let edges =
            vec![slept(Wait::Unseen, Object::None), slept(Wait::Futex, Object::Futex { address: 0x1048 })];
        let without_wakers = changed(edges, |program| {
            (program.engine, program.threads[0].ready_mean_ns) = (Engine::Own, Some(12_000.0));
        });
        for (name, result) in [("many", many), ("in slices", in_slices), ("without wakers", without_wakers)] {
            let text = screen(&result, &Style { width: 80, color: false, unicode: true });
            assert!(text.lines().count() <= LINES, "{text}");
            assert!(text.lines().all(|line| width(line) <= 80), "{text}");
            insta::assert_snapshot!(name.replace(' ', "_"), text);
        }
    }

    #[test]
    fn mechanisms_are_told_with_their_object_and_never_a_bystander() {
        let socket = |address: Option<&str>| File::Socket {
            family: "tcp".to_owned(),
            address: address.map(str::to_owned),
        };
        let file = |file, fd| Object::File { file, fd };
        for (wait, object, by, told) in [
            (Wait::Futex, Object::Futex { address: 0x1234_5678 }, By::Call, "futex 0x…678"),
            (Wait::Epoll, file(File::Eventfd, Some(7)), By::Call, "eventfd 7, epoll"),
            (Wait::Read, file(File::Pipe, Some(3)), By::Call, "pipe 3"),
            (Wait::Read, file(socket(Some("127.0.0.1:6379")), None), By::Call, "tcp 127.0.0.1:6379"),
            (Wait::Epoll, file(socket(Some("[::1]:80")), None), By::Network, "tcp [::1]:80, network, epoll"),
            (Wait::Epoll, Object::None, By::Network, "network, epoll"),
            (Wait::Epoll, Object::None, By::Timer, "timer, epoll"),
            (Wait::Sleep, Object::None, By::Timer, "sleep"),
            (Wait::Futex, Object::Futex { address: 0x48 }, By::Timer, "timer, futex 0x…048"),
            (Wait::Signal, Object::None, By::Signal { number: 10 }, "signal 10"),
            (Wait::Child, Object::None, By::End, "child's end"),
            (Wait::Call { number: 16 }, Object::None, By::Call, "system call 16"),
            (Wait::Poll, Object::None, By::Call, "poll"),
        ] {
            assert_eq!(mechanism(&Mechanism { wait, object, by }), told);
        }
        assert_eq!(waker(&Waker::Kernel), "(kernel)");
    }

    #[test]
    fn a_program_in_which_nobody_was_woken_is_told_as_such() {
        let text = screen(&made(Vec::new()), &Style { width: 80, color: false, unicode: true });
        assert!(text.starts_with("server: 1,500 wake-ups/s"), "{text}");
    }
}
