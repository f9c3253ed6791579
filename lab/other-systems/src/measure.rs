// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two measurements: one notifier and many receivers, and round trips between two threads.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use doorbell_results::configuration::{Configuration, Pattern, WaitPolicy};
use doorbell_results::machine::pinning::{Pinning, Spread};
use doorbell_results::machine::topology::Topology;
use doorbell_results::record::fanout::{FanOut, Receivers, Rounds};
use doorbell_results::record::series::Quantity;
use doorbell_results::record::{Histogram, LastSeen, Outcome, Series, SideCounters, Tally};

use crate::host::{PINS, now_ns, pin};
use crate::means::{Kind, Means};

/// Rounds before recording begins.
const WARMUP: usize = 2;
/// Without a step forward for this long, plus four gaps, a trial hangs.
const PATIENCE: Duration = Duration::from_secs(10);
/// And for each receiver, on a machine that is busy with others.
const EACH: Duration = Duration::from_millis(20);
/// The stack of a receiver.
const STACK: usize = 128 << 10;

#[derive(Default)]
pub(crate) struct Measured {
    pub(crate) series: BTreeMap<Quantity, Series>,
    pub(crate) tally: Tally,
    pub(crate) fanout: Option<FanOut>,
    pub(crate) sides: Vec<SideCounters>,
}

impl Measured {
    fn keep(&mut self, quantity: Quantity, ns: impl IntoIterator<Item = u64>) {
        let mut histogram = Histogram::new();
        ns.into_iter().for_each(|ns| histogram.record(ns * 1000));
        if histogram.count() > 0 {
            self.series.insert(quantity, Series::from(&histogram));
        }
    }
}

/// Measures `configuration` by `kind`. A trial that ends otherwise
/// says how: its threads may still be there.
pub(crate) fn measure(
    kind: &Kind,
    configuration: &Configuration,
    topology: &Topology,
) -> Result<Measured, Outcome> {
    let timeout = match configuration.wait {
        WaitPolicy::Timeout { timeout_ns } => Some(Duration::from_nanos(timeout_ns)),
        _ => None,
    };
    if timeout.is_some() && !kind.timed {
        return Err(Outcome::Skipped { reason: format!("the wait of {} takes no time-out", kind.name) });
    }
    let rounds = configuration.until.count.unwrap_or(1) as usize;
    match configuration.pattern {
        Pattern::FanOut { receivers, interval_ns } => {
            let pinning = Pinning::named(&configuration.placement.relation).unwrap_or(Pinning::Unpinned);
            let spread = pinning.spread(receivers, topology).map_err(|reason| Outcome::Skipped { reason })?;
            if spread.is_some() && !PINS {
                let reason = "this system keeps no thread on a CPU of its program's choice".to_owned();
                return Err(Outcome::Skipped { reason });
            }
            let interval = Duration::from_nanos(interval_ns);
            fan_out(kind, receivers as usize, rounds + WARMUP, interval, timeout, spread.as_ref())
        }
        pattern => ping(kind, rounds + WARMUP, Duration::from_nanos(pattern.gap_ns())),
    }
}

fn failed(who: impl std::fmt::Display, error: impl std::fmt::Display) -> Outcome {
    Outcome::Failed { cause: format!("{who}: {error}") }
}

/// Something done, or why it was not.
type Step = Result<(), String>;

/// Has a thread of its own `act`; what goes wrong in it is told.
fn spawn(
    who: String,
    cpu: Option<u32>,
    tell: &Sender<Step>,
    act: impl FnOnce(&Sender<Step>) -> io::Result<()> + Send + 'static,
) -> Result<(), Outcome> {
    let (tell, name) = (tell.clone(), who.clone());
    let life = move || {
        if let Err(error) = cpu.map_or(Ok(()), pin).and_then(|()| act(&tell)) {
            let _ = tell.send(Err(format!("{who}: {error}")));
        }
    };
    let thread = thread::Builder::new().stack_size(STACK).spawn(life);
    thread
        .map(drop)
        .map_err(|error| failed(name, format_args!("it could not be started: {error}; use fewer")))
}

/// Waits until `steps` have come home, or says who is missing.
fn gather(hear: &Receiver<Step>, steps: usize, patience: Duration, round: usize) -> Result<(), Outcome> {
    for home in 0..steps {
        match hear.recv_timeout(patience) {
            Ok(step) => step.map_err(|cause| Outcome::Failed { cause })?,
            Err(_) => {
                let last = |side: &str, step: &str| LastSeen {
                    side: side.to_owned(),
                    step: step.to_owned(),
                    sequence: round as u64,
                };
                let waiting = format!("{} of {steps} receivers", steps - home);
                return Err(Outcome::Hung {
                    last_seen: vec![last(&waiting, "waits"), last("notifier", "notified")],
                });
            }
        }
    }
    Ok(())
}

/// A receiver: its object, and when it was posted to and awake in each round.
struct Row {
    means: Arc<dyn Means>,
    posted: Vec<AtomicU64>,
    awake: Vec<AtomicU64>,
    timeouts: AtomicU64,
}

impl Row {
    /// Waits for the post of each round, and tells of each: first that it is ready.
    fn receive(&self, timeout: Option<Duration>, tell: &Sender<Step>) -> io::Result<()> {
        let _ = tell.send(Ok(()));
        for awake in &self.awake {
            while !self.means.wait(timeout)? {
                self.timeouts.fetch_add(1, Relaxed);
            }
            // The channel publishes it to the notifier, who reads it once all are home.
            awake.store(now_ns(), Relaxed);
            let _ = tell.send(Ok(()));
        }
        Ok(())
    }
}

fn fan_out(
    kind: &Kind,
    receivers: usize,
    rounds: usize,
    interval: Duration,
    timeout: Option<Duration>,
    spread: Option<&Spread>,
) -> Result<Measured, Outcome> {
    let stamps = || (0..rounds).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
    let (tell, hear) = channel();
    let mut rows = Vec::with_capacity(receivers);
    for number in 0..receivers {
        let means =
            (kind.open)().map_err(|error| failed(format_args!("object {number} of {receivers}"), error))?;
        let row = Arc::new(Row { means, posted: stamps(), awake: stamps(), timeouts: AtomicU64::new(0) });
        let own = row.clone();
        let cpu = spread.map(|spread| spread.receivers[number]);
        spawn(format!("receiver {number}"), cpu, &tell, move |tell| own.receive(timeout, tell))?;
        rows.push(row);
    }
    // In a thread of its own, which is pinned and ends with the trial.
    let cpu = spread.map(|spread| spread.notifier);
    let notified = thread::scope(|scope| {
        let notifier = scope.spawn(|| {
            cpu.map_or(Ok(()), pin).map_err(|error| failed("the notifier", error))?;
            notify(&rows, rounds, interval, hear)
        });
        notifier.join().unwrap_or_else(|_| Err(failed("the notifier", "it panicked")))
    })?;
    let mut measured = read(&rows, &notified[WARMUP..]);
    if let Some(fanout) = &mut measured.fanout {
        fanout.notifier_cpu = cpu;
        fanout.receiver_cpus = spread.map(Spread::receiver_cpus);
    }
    Ok(measured)
}

/// A round: when it began and ended, and what each post took.
struct Round {
    index: usize,
    began: u64,
    ended: u64,
    posts: Vec<u64>,
}

fn notify(
    rows: &[Arc<Row>],
    rounds: usize,
    interval: Duration,
    hear: Receiver<Step>,
) -> Result<Vec<Round>, Outcome> {
    let patience = PATIENCE + 4 * interval + EACH * rows.len() as u32;
    gather(&hear, rows.len(), patience, 0)?;
    let mut order: Vec<usize> = (0..rows.len()).collect();
    let mut done = Vec::with_capacity(rounds);
    let mut due = Instant::now();
    for index in 0..rounds {
        due += interval;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        // Another order in each round; none of them is special.
        fastrand::shuffle(&mut order);
        let mut round = Round { index, began: now_ns(), ended: 0, posts: Vec::with_capacity(rows.len()) };
        for number in &order {
            let before = now_ns();
            rows[*number].posted[index].store(before, Relaxed);
            rows[*number].means.post().map_err(|error| failed("the notifier", error))?;
            round.posts.push(now_ns() - before);
        }
        round.ended = now_ns();
        gather(&hear, rows.len(), patience, index)?;
        done.push(round);
    }
    Ok(done)
}

/// Makes series of the stamps.
fn read(rows: &[Arc<Row>], rounds: &[Round]) -> Measured {
    let mut measured = Measured::default();
    let (mut wakes, mut kept) = (Vec::new(), Rounds::default());
    let mut latencies = vec![Vec::with_capacity(rounds.len()); rows.len()];
    let mut places = vec![0; rows.len()];
    for round in rounds {
        let mut woken: Vec<(u64, usize)> = rows
            .iter()
            .enumerate()
            .map(|(number, row)| (row.awake[round.index].load(Relaxed), number))
            .collect();
        woken.sort_unstable();
        for (place, (awake, number)) in woken.iter().enumerate() {
            let latency = awake.saturating_sub(rows[*number].posted[round.index].load(Relaxed));
            latencies[*number].push(latency);
            wakes.push(latency);
            places[*number] += place + 1;
        }
        let last = woken.len().saturating_sub(1);
        for (place, kept) in
            [(0, &mut kept.first_ns), (last / 2, &mut kept.median_ns), (last, &mut kept.last_ns)]
        {
            kept.push(woken[place].0.saturating_sub(round.began) as f64);
        }
        kept.notify_ns.push((round.ended - round.began) as f64);
    }
    let whole = |ns: &[f64]| ns.iter().map(|ns| *ns as u64).collect::<Vec<_>>();
    measured.keep(Quantity::Wake, wakes);
    measured.keep(Quantity::FirstWake, whole(&kept.first_ns));
    measured.keep(Quantity::MedianWake, whole(&kept.median_ns));
    measured.keep(Quantity::LastWake, whole(&kept.last_ns));
    measured.keep(Quantity::NotifyRound, whole(&kept.notify_ns));
    measured.keep(Quantity::Notify, rounds.iter().flat_map(|round| round.posts.iter().copied()));
    let mut receivers = Receivers::default();
    for (mut latencies, places) in latencies.into_iter().zip(places) {
        latencies.sort_unstable();
        receivers.p50_ns.push(latencies[(latencies.len() - 1) / 2] as f64);
        receivers.max_ns.push(latencies[latencies.len() - 1] as f64);
        receivers.mean_place.push(places as f64 / rounds.len() as f64);
    }
    let sent = (rounds.len() * rows.len()) as u64;
    let timeouts = rows.iter().map(|row| row.timeouts.load(Relaxed)).sum();
    measured.tally = Tally { sent, seen: sent, timeouts, warmup: WARMUP as u64, ..Tally::default() };
    let window = rounds.last().map_or(0, |last| last.ended - rounds[0].began);
    measured.sides = vec![side("notifier", window), side("receivers", window)];
    measured.fanout = Some(FanOut { rounds: kept, receivers, ..FanOut::default() });
    measured
}

/// What is known of a side: for how long it was measured. The system
/// counts nothing for every program.
fn side(name: &str, window_ns: u64) -> SideCounters {
    SideCounters { side: name.to_owned(), window_ns, uncounted: true, ..SideCounters::default() }
}

fn ping(kind: &Kind, rounds: usize, gap: Duration) -> Result<Measured, Outcome> {
    let open = || (kind.open)().map_err(|error| failed(kind.name, error));
    let (there, back, seen) = (open()?, open()?, Arc::new(AtomicU64::new(0)));
    let (tell, hear) = channel();
    let (out, home, woke) = (there.clone(), back.clone(), seen.clone());
    spawn("the responder".to_owned(), None, &tell, move |_| {
        for _ in 0..rounds {
            out.wait(None)?;
            // Pairs with the Acquire load of the initiator.
            woke.store(now_ns(), Release);
            home.post()?;
        }
        Ok(())
    })?;
    let (bring, brought) = channel();
    spawn("the initiator".to_owned(), None, &tell, move |tell| {
        let mut stamps = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            if !gap.is_zero() {
                thread::sleep(gap);
            }
            let sent = now_ns();
            there.post()?;
            let posted = now_ns();
            back.wait(None)?;
            stamps.push([sent, posted, seen.load(Acquire), now_ns()]);
        }
        let _ = bring.send(stamps);
        let _ = tell.send(Ok(()));
        Ok(())
    })?;
    gather(&hear, 1, PATIENCE + (gap + EACH) * rounds as u32, rounds)?;
    let stamps: Vec<[u64; 4]> = brought.recv().map_err(|error| failed("the initiator", error))?;
    let stamps = &stamps[WARMUP..];
    let mut measured = Measured::default();
    let between =
        |from: usize, to: usize| stamps.iter().map(move |stamp| stamp[to].saturating_sub(stamp[from]));
    measured.keep(Quantity::RoundTrip, between(0, 3));
    measured.keep(Quantity::Wake, between(0, 2));
    measured.keep(Quantity::WakeBack, between(2, 3));
    measured.keep(Quantity::Notify, between(0, 1));
    let sent = 2 * stamps.len() as u64;
    measured.tally = Tally { sent, seen: sent, warmup: WARMUP as u64, ..Tally::default() };
    let window = stamps.last().map_or(0, |last| last[3] - stamps[0][0]);
    measured.sides = vec![side("initiator", window), side("responder", window)];
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::configuration::Until;

    fn measured(pattern: Pattern, rounds: u64, wait: WaitPolicy) -> Result<Measured, Outcome> {
        let kind = crate::means::find("pipe").unwrap();
        let configuration =
            Configuration { wait, ..Configuration::new("pipe", pattern, Until::count(rounds)) };
        measure(kind, &configuration, &Topology::default())
    }

    #[test]
    fn every_receiver_of_a_fan_out_wakes_in_every_round_and_places_are_given_once() {
        let pattern = Pattern::FanOut { receivers: 7, interval_ns: 1_000_000 };
        let measured = measured(pattern, 5, WaitPolicy::Block).unwrap_or_else(|it| panic!("{it:?}"));
        assert_eq!((measured.tally.sent, measured.tally.seen), (35, 35));
        assert_eq!(measured.series[&Quantity::Wake].count, 35);
        let fanout = measured.fanout.unwrap();
        assert_eq!(fanout.rounds.last_ns.len(), 5);
        assert!(fanout.rounds.first_ns.iter().zip(&fanout.rounds.last_ns).all(|(first, last)| first <= last));
        // 1 to 7 in each round: 28 together.
        assert!((fanout.receivers.mean_place.iter().sum::<f64>() - 28.0).abs() < 1e-9);
    }

    #[test]
    fn a_round_trip_is_both_wake_ups_together_and_what_takes_no_time_out_is_left_out_with_the_reason() {
        let ping = Pattern::PingPong { gap_ns: 0 };
        let measured_ping = measured(ping, 200, WaitPolicy::Block).unwrap_or_else(|it| panic!("{it:?}"));
        let mean = |quantity| measured_ping.series[&quantity].mean_ns;
        assert_eq!(measured_ping.tally.seen, 400);
        let [trip, both] = [mean(Quantity::RoundTrip), mean(Quantity::Wake) + mean(Quantity::WakeBack)];
        assert!((trip / both - 1.0).abs() < 0.01, "{trip} {both}");
        let timed = measured(ping, 1, WaitPolicy::Timeout { timeout_ns: 1_000_000 }).err();
        assert!(matches!(timed, Some(Outcome::Skipped { reason }) if reason.contains("pipe")));
    }
}
