// SPDX-License-Identifier: MIT OR Apache-2.0
//! The peers: what each measures, and the run of `doorbell` that does the same.

use super::Setup;
use super::command::{number_after, number_before, output, words};
use super::comparison::{Comparison, Measure};
use super::ours::{self, Figure};
use Figure::{Mean, Median, Named};
use anyhow::Context;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PRINTED: Figure = Named("as printed");
const PORT: u16 = 21_973;

/// Every comparison.
pub fn all(setup: &Setup) -> Vec<Comparison> {
    let [one, other] = setup.cpus;
    let add = |name, unit, what, command: String, theirs, arguments: String, figure| {
        let ours = ours(setup, &arguments, figure, unit);
        Comparison { name, what, within: 0.05, unit, command, arguments, theirs, ours }
    };
    let mut all = Vec::new();

    // `perf bench`.
    for (name, flag, contexts) in
        [("perf sched pipe", "", "processes"), ("perf sched pipe -T", " -T", "threads")]
    {
        let command = format!("taskset -c {one} perf bench sched pipe{flag} -l 20000");
        let theirs = theirs(&command, |text| number_before(text, "usecs/op"));
        let ours = format!(
            "switch switch-pipe --contexts {contexts} --cpus {one} --placement same-core --batch 100 --count 20000"
        );
        let what = "round trip of 4 bytes through two pipes, one core, mean";
        all.push(add(name, "µs", what, command, theirs, ours, Mean("operation")));
    }
    let command = format!("taskset -c {one} perf bench syscall basic -l 500000");
    let basic = theirs(&command, |text| Ok(number_before(text, "usecs/op")? * 1e3));
    let ours = format!("switch getppid --cpus {one} --placement same-core --count 500000");
    all.push(add("perf syscall basic", "ns", "getppid, mean", command, basic, ours, Mean("operation")));
    let command = "perf bench futex wake -t 100".to_owned();
    let wake = theirs(&command, |text| {
        let last = text.lines().rfind(|line| line.starts_with("Wokeup")).unwrap_or_default();
        number_before(last, "ms (")
    });
    let ours = "switch futex-wake-all --contexts threads --placement unpinned --batch 100 --count 1000";
    let what = "time of one thread to wake 100, one by one, mean of 10";
    all.push(add("perf futex wake", "ms", what, command, wake, ours.to_owned(), PRINTED));

    // The pair tests of rt-tests.
    for (name, what, subject) in [
        (
            "ptsematest",
            "mutex handed over between threads, one core, SCHED_FIFO, one way, mean",
            "handover-mutex",
        ),
        (
            "svsematest",
            "System V semaphore between threads, one core, SCHED_FIFO, one way, mean",
            "handover-semop",
        ),
        ("pmqtest", "POSIX queue between threads, one core, SCHED_FIFO, one way, mean", "handover-mq"),
        (
            "sigwaittest",
            "signal by sigwait between threads, one core, SCHED_FIFO, one way, mean",
            "handover-signal",
        ),
    ] {
        let command = format!("{name} -a {one} -t 1 -p 50 -i 200 -l 2000 -q");
        let ours = format!(
            "switch {subject} --contexts threads --scheduler fifo --cpus {one} --placement same-core --count 2000"
        );
        let theirs = mean_of_json(&command);
        all.push(add(name, "µs", what, command, theirs, ours, Mean("operation")));
    }

    // `stress-ng --switch`, for a number of operations that takes some 200 ms.
    for (name, method, operations, what, subject) in [
        (
            "stress-ng switch pipe",
            "pipe",
            40_000,
            "a write into a pipe that holds one byte, one core, mean",
            "stream-pipe",
        ),
        (
            "stress-ng switch mq",
            "mq",
            40_000,
            "a message through a queue that holds one, one core, mean",
            "stream-mq",
        ),
        (
            "stress-ng switch sem-sysv",
            "sem-sysv",
            200_000,
            "half a round of raising and lowering one semaphore, one core, mean",
            "turns-semop",
        ),
    ] {
        let command = format!(
            "taskset -c {one} stress-ng --switch 1 --switch-method {method} --switch-ops {operations} --metrics"
        );
        let theirs = theirs(&command, |text| number_before(text, "nanosecs per context switch"));
        let ours = format!(
            "switch {subject} --contexts processes --cpus {one} --placement same-core --batch 100 --time 200ms"
        );
        all.push(add(name, "ns", what, command, theirs, ours, PRINTED));
    }

    let command = format!("core-to-core-latency 5000 300 -c {one},{other} --csv");
    let line = theirs(&program(setup, &command), |text| {
        // The matrix as CSV: its one configuration that holds a number.
        let mut cells = text.lines().filter(|line| line.contains(',')).flat_map(|line| line.split(','));
        cells.find_map(|cell| cell.trim().parse().ok()).with_context(|| format!("no figure in: {text}"))
    });
    let ours = format!(
        "switch line-cas --contexts threads --cpus {one},{other} --placement two-cores --batch 5000 --count 1500000"
    );
    let what = "compare-and-swap on one line, two cores, half a round trip, mean";
    all.push(add("core-to-core-latency", "ns", what, command, line, ours, PRINTED));

    // Two loops in C that answer each other and nothing else: the limit of what the same calls can reach.
    for (name, subject, second, what) in [
        ("bare spin", "spin", other, "round trip of a cache line by stores and loads, two cores, mean"),
        ("bare futex", "futex", one, "round trip by two futexes, one core, mean"),
        ("bare futex, two", "futex", other, "round trip by two futexes, two cores, mean"),
        ("bare eventfd", "eventfd", one, "round trip by two eventfds, one core, mean"),
        ("bare eventfd, two", "eventfd", other, "round trip by two eventfds, two cores, mean"),
        ("bare pipe", "pipe", one, "round trip of a byte through two pipes, one core, mean"),
        ("bare pipe, two", "pipe", other, "round trip of a byte through two pipes, two cores, mean"),
    ] {
        let command = format!("bare-ping-pong {subject} {one} {second} 200");
        let theirs = theirs(&program(setup, &command), |text| number_before(text, "ns a round trip"));
        let ours = format!("ping {subject} --gap 0 --cpus {one},{second} --time 200ms --alone");
        all.push(add(name, "ns", what, command, theirs, ours, Mean("round-trip")));
    }

    let command = format!("taskset -c {one} sockperf pp --tcp -i 127.0.0.1 -p {PORT} -t 1 --full-rtt");
    let sockperf = with_server(&command, other);
    let ours =
        format!("switch echo-tcp --contexts processes --placement two-cores --cpus {one},{other} --time 1s");
    let what =
        "round trip of 14 bytes over one TCP connection on loopback, two processes on two cores, median";
    all.push(add("sockperf ping-pong tcp", "µs", what, command, sockperf, ours, Median("operation")));

    let command = format!("taskset -c {one},{other} hackbench -g 1 -l 300");
    let group = theirs(&command, |text| number_after(text, "Time:"));
    let ours = "switch hackbench --contexts processes --placement unpinned --batch 300 --count 300";
    let what = "one group of 20 senders and 20 receivers, 300 loops, unpinned, one run";
    all.push(add("hackbench", "s", what, command, group, ours.to_owned(), PRINTED));

    // A hundred tasks that hand over by futex, in C: the limit of what `doorbell tasks` can reach.
    for (name, kind, what, subject) in [
        (
            "hand-off process",
            "process",
            "futex hand-off among 100 processes on one core, mean",
            "process-futex",
        ),
        ("hand-off thread", "thread", "futex hand-off among 100 threads on one core, mean", "thread-futex"),
    ] {
        let command = format!("hand-off {kind} 100 500 {one}");
        let theirs =
            theirs(&program(setup, &command), |text| Ok(number_before(text, "ns a hand-off")? / 1e3));
        let ours = format!("tasks {subject} -n 100 -y 500 --count 1 --cpus {one}");
        let comparison = add(name, "µs", what, command, theirs, ours, Mean("hand-off"));
        all.push(Comparison { within: 0.03, ..comparison });
    }
    all
}

/// The command of a program that Debian does not have.
fn program(setup: &Setup, command: &str) -> String {
    setup.programs.join(command).display().to_string()
}

/// Runs `line` and reads its figure with `read`.
fn theirs(line: &str, read: impl Fn(&str) -> anyhow::Result<f64> + 'static) -> Measure {
    let words = words(line);
    Box::new(move || read(&output(&words)?))
}

/// Runs `doorbell ARGUMENTS`, whose second word is the subject, and takes its `figure` in `unit`.
fn ours(setup: &Setup, arguments: &str, figure: Figure, unit: &str) -> Measure {
    let (setup, arguments) = (setup.clone(), arguments.to_owned());
    let factor = if unit == "µs" { 1e-3 } else { 1.0 };
    Box::new(move || {
        let subject = arguments.split(' ').nth(1).context("no subject")?;
        Ok(ours::run(&setup, &arguments, subject, figure)? * factor)
    })
}

/// The mean in the JSON of rt-tests, which has decimals: that of differences of truncated times, whose
/// error averages out. The terminal shows whole microseconds.
fn mean_of_json(command: &str) -> Measure {
    let words = words(command);
    Box::new(move || {
        let file = std::env::temp_dir().join(format!("doorbell-peers-{}.json", std::process::id()));
        let mut words = words.clone();
        words.push(format!("--json={}", file.display()));
        output(&words)?;
        let text = std::fs::read_to_string(&file)?;
        std::fs::remove_file(&file)?;
        let result: serde_json::Value = serde_json::from_str(&text)?;
        result["thread"]["0"]["receiver"]["avg"].as_f64().with_context(|| format!("no mean in: {text}"))
    })
}

/// The server of `sockperf` while a client runs.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // An error means that it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn with_server(command: &str, cpu: usize) -> Measure {
    let client = words(command);
    let server = words(&format!("-c {cpu} sockperf sr --tcp -i 127.0.0.1 -p {PORT}"));
    Box::new(move || {
        let mut server_command = Command::new("taskset");
        server_command.args(&server).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let _server = Server(server_command.spawn().context("cannot start the server of sockperf")?);
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", PORT)).is_err() {
            anyhow::ensure!(
                start.elapsed() < Duration::from_secs(5),
                "the server of sockperf does not listen"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        number_after(&output(&client)?, "percentile 50.000 =")
    })
}
