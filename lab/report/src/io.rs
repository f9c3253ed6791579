// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell io`: latency and CPU time of each I/O engine, what the
//! device counted, and what polling buys.

use super::axis::{self, Axis};
use super::columns::{Columns, dash};
use super::figures::{Figures, Having, Row};
use super::section::Section;
use super::subsection::Subsection;
use super::table::{number, word};
use super::unit::{Scale, alike, count, plain, time};
use crate::wording::sentence;
use doorbell_results::configuration::{Configuration, Direction, WaitPolicy};
use doorbell_results::figure::transfer::{BREAK_EVEN, CPU, INTERRUPTS, THREAD_CPU};
use doorbell_results::record::io::Io;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::subject::Noticed;
use doorbell_results::record::{Record, ResultFile};

const DIRECTIONS: [Direction; 2] = [Direction::Read, Direction::Write];

#[derive(Debug)]
pub struct Transfers;

impl Section for Transfers {
    fn name(&self) -> &'static str {
        "transfers"
    }
    fn subsections(&self, result: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        let tables = DIRECTIONS.into_iter().filter_map(|direction| transfers(figures, direction));
        let proofs = Subsection::of_lines("The device", proofs(figures));
        tables.chain(devices(figures)).chain(buys(result, figures)).chain(proofs).collect()
    }
    fn answer(&self, result: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        let tables = DIRECTIONS.into_iter().filter_map(|direction| transfers(figures, direction));
        let tables = tables.map(|told| Subsection { lead: Vec::new(), ..told });
        buys(result, figures).into_iter().chain(tables).chain(devices(figures)).collect()
    }
    fn tells(&self, name: &str) -> bool {
        [INTERRUPTS, CPU, THREAD_CPU, BREAK_EVEN].contains(&name)
    }
}

/// What polling buys is a time, and an emulator's times are no machine's.
fn buys(result: &ResultFile, figures: &Figures) -> Option<Subsection> {
    Subsection::of_lines("Poll or wait", bargains(figures)).filter(|_| !result.emulated())
}

fn rows<'a>(figures: &'a Figures, wanted: Direction) -> Vec<Having<'a>> {
    let direction = |row: &Row| row.configuration().pattern.transfers().map(|(direction, _)| direction);
    let mut rows = figures.having(|_| Quantity::Transfer);
    rows.retain(|(row, _)| direction(row) == Some(wanted));
    rows
}

fn transfers(figures: &Figures, direction: Direction) -> Option<Subsection> {
    let rows = rows(figures, direction);
    let first = rows.first()?.0.configuration();
    let axes = axis::varying(rows.iter().map(|(row, _)| row.configuration()));
    let real = rows.iter().filter(|(row, _)| !row.is_harness());
    let scale = Scale::for_ps(real.map(|(_, series)| series.p50_ps()));
    let percentiles = [
        (number("p50"), 0.5),
        (number("p99"), 0.99),
        (number("p99.9").keep(4), 0.999),
        (number("max").keep(3), 1.0),
    ];
    let table = Columns::of(&rows, "engine")
        .at(percentiles, scale)
        .with(number("mean").keep(5), |(_, series)| scale.show(series.mean_ps))
        .cpu(number("CPU"), scale)
        .with(number("of it the kernel's thread").keep(2), |(row, _)| scale.known(thread_ps(row)))
        .figure(number("interrupts").keep(8), INTERRUPTS, |value| format!("{value:.3}"))
        .by_block(number("p50 by block").keep(1), scale)
        .samples(number("transfers").keep(6))
        .table(&rows);
    let common: Vec<String> = [Axis::Size, Axis::Target, Axis::Load]
        .into_iter()
        .filter(|axis| !axes.contains(axis))
        .filter(|axis| *axis != Axis::Load || first.load.is_some())
        .map(|axis| (if axis == Axis::Size { "block" } else { axis.name() }, axis.value(first)))
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    let notes = vec![
        sentence(Quantity::Transfer.definition()),
        "CPU: CPU time by transfer of the waiter and of every thread that the kernel made for it. \
         What an interrupt takes while its CPU is idle is in nobody's CPU time."
            .to_owned(),
        "Interrupts: of the device, by transfer, less one for each operation that others had of it."
            .to_owned(),
    ];
    let what = match direction {
        Direction::Read => "Random reads",
        Direction::Write => "Random writes",
    };
    let title = format!("{what}, one at a time, {}", scale.unit.sign());
    Some(Subsection::of_table(title, table, notes)?.led_by(format!("All: {}.", common.join(", "))))
}

/// CPU time of the kernel's threads by transfer over all trials,
/// picoseconds; none where there were none.
fn thread_ps(row: &Row) -> Option<f64> {
    let spent: u64 = row
        .variant
        .usable()
        .filter_map(|record| record.io.as_ref())
        .map(|counted| counted.kernel_thread_ns)
        .sum();
    let seen = row.variant.tally().seen;
    (spent > 0 && seen > 0).then(|| spent as f64 * 1e3 / seen as f64)
}

/// What polling buys: for each direction and size, the quickest polled engine beside the quickest
/// that is woken by interrupts.
fn bargains(figures: &Figures) -> Vec<String> {
    let mut told = Vec::new();
    for direction in DIRECTIONS {
        let rows = rows(figures, direction);
        let mut sizes: Vec<u32> = rows.iter().map(|(row, _)| row.configuration().size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for size in sizes {
            let best = |wanted| {
                let of = |row: &Row| row.variant.subject().noticed() == Some(wanted);
                let own = rows.iter().filter(|(row, _)| row.configuration().size == size && of(row));
                own.min_by_key(|(_, series)| series.quantile(0.5))
            };
            let what = format!(
                "{} of {} B",
                if direction == Direction::Read { "Reads" } else { "Writes" },
                count(size.into())
            );
            told.push(match (best(Noticed::ByInterrupt), best(Noticed::ByPolling)) {
                (Some((row, series)), None) => {
                    let even = row.figure(|name| name == BREAK_EVEN).map_or_else(String::new, |rate| {
                        let here = 1e12 / series.mean_ps.max(1.0);
                        format!(
                            " A CPU that only polls would cost less than interrupts from {}/s on; \
                             one transfer at a time comes to {}/s here.",
                            plain(rate),
                            plain(here)
                        )
                    });
                    format!(
                        "{what}: nothing polled has figures, so what polling would buy cannot be \
                         decided here.{even}"
                    )
                }
                (Some(interrupted), Some(polled)) => format!("{what}: {}", bargain(interrupted, polled)),
                _ => continue,
            });
        }
    }
    told
}

fn bargain((slow, waited): &Having, (quick, polled): &Having) -> String {
    let [long, short] = [waited, polled].map(|series| series.p50_ps());
    let names = [slow, quick].map(|row| row.configuration().subject.clone());
    let saved = long - short;
    let [long_said, short_said, less] = alike([long, short, saved]);
    let mut text = if saved <= 0.0 {
        format!(
            "polling ({}) saves nothing: {short_said} against {long_said} by interrupt ({}).",
            names[1], names[0]
        )
    } else {
        format!(
            "polling ({}) takes {short_said} where an interrupt ({}) takes {long_said}: {less} \
             less, {:.0} %.",
            names[1],
            names[0],
            saved / long * 100.0
        )
    };
    // Where the CPU time of one was not counted nothing is said of it.
    if let (Some(sleeps), Some(looks)) = (slow.cpu_ps(), quick.cpu_ps()) {
        let price = looks - sleeps;
        if price <= 0.0 {
            let [looks, sleeps] = alike([looks, sleeps]);
            text.push_str(&format!(" It takes no more CPU time: {looks} against {sleeps}."));
        } else if saved > 0.0 {
            text.push_str(&format!(
                " It costs {} more CPU time by transfer, {:.1} ns for each ns saved.",
                time(price),
                price / saved
            ));
        } else {
            text.push_str(&format!(" It costs {} more CPU time by transfer.", time(price)));
        }
    }
    if let Some(rate) = slow.figure(|name| name == BREAK_EVEN) {
        let here = 1e12 / polled.mean_ps.max(1.0);
        text.push_str(&format!(
            " Break-even: a CPU that only polls costs less than interrupts from {} transfers/s on; \
             one at a time comes to {}/s.",
            plain(rate),
            plain(here)
        ));
    }
    text
}

/// A device that was waited for in both ways: what it is, by which quantity, the quickest that is
/// woken by an interrupt, and the quickest that looks.
type Device<'a> = (String, Quantity, [Option<&'a Row<'a>>; 2]);

/// What a configuration waits for, as it stands in the table of devices, and by which quantity.
fn waited_for(one: &Configuration) -> Option<(String, Quantity)> {
    if let Some((direction, _)) = one.pattern.transfers() {
        let read = format!("disk, read of {} B", count(one.size.into()));
        return (direction == Direction::Read).then_some((read, Quantity::Transfer));
    }
    if let Some([least, _]) = one.pattern.kernel_ns() {
        return Some((format!("GPU, after a kernel of {}", time(least as f64 * 1e3)), Quantity::Wake));
    }
    one.pattern.notifies().then(|| (format!("network, message over {}", one.subject), Quantity::Wake))
}

/// The disk, the network and the GPU beside each other; none where there was one alone.
fn devices(figures: &Figures) -> Option<Subsection> {
    let polls = |row: &Row| match row.variant.subject().noticed() {
        Some(noticed) => noticed == Noticed::ByPolling,
        None => row.configuration().wait == WaitPolicy::Spin,
    };
    let mut rows: Vec<Device<'_>> = Vec::new();
    for row in figures.rows.iter().filter(|row| !row.is_harness()) {
        let Some((name, quantity)) = waited_for(row.configuration()) else { continue };
        let Some(p50) = row.p50_ps(quantity) else { continue };
        let at = rows.iter().position(|(other, ..)| *other == name).unwrap_or_else(|| {
            rows.push((name, quantity, [None; 2]));
            rows.len() - 1
        });
        let best = &mut rows[at].2[usize::from(polls(row))];
        if best.and_then(|other: &Row| other.p50_ps(quantity)).is_none_or(|other| p50 < other) {
            *best = Some(row);
        }
    }
    if rows.len() < 2 {
        return None;
    }
    let known = |ps: Option<f64>| ps.map_or_else(dash, time);
    // Of a message the client's alone: the server is no part of the wait.
    let cpu = |row: &Row| if row.configuration().pattern.notifies() { row.waiter_ps() } else { row.cpu_ps() };
    let mut columns = Columns::none().with(word("device"), |(name, ..): &Device<'_>| name.clone());
    for (at, how) in ["interrupt", "polled"].into_iter().enumerate() {
        columns = columns
            .with(word(how), move |(.., both)| {
                both[at].map_or_else(dash, |row| row.configuration().subject.clone())
            })
            .with(number("p50"), move |(_, quantity, both)| {
                known(both[at].and_then(|row| row.p50_ps(*quantity)))
            })
            .with(number("CPU"), move |(.., both)| known(both[at].and_then(cpu)));
    }
    let notes = vec![
        "The quickest of each kind; p50 of a disk is the transfer, else from the event to the \
         waiter's first instruction; CPU time of the waiter and its helpers for each."
            .to_owned(),
    ];
    Subsection::of_table("Poll or interrupt, by device", columns.table(&rows), notes)
}

/// The devices, and how the target was prepared.
fn proofs(figures: &Figures) -> Vec<String> {
    let records = figures.rows.iter().filter(|row| !row.is_harness()).flat_map(|row| &row.variant.records);
    let Some(counted) = records.filter_map(|record: &&Record| record.io.as_ref()).next_back() else {
        return Vec::new();
    };
    let prepared = counted.prepared.as_ref().map(|prepared| {
        let passes =
            prepared.passes.iter().map(|pass| format!("{} at {:.0} MB/s", pass.order, pass.rate / 1e6));
        format!(
            "Prepared: {} MiB filled ({}), read back from the device and compared, {} sectors; \
             every block that was read in a trial is the one that was written there.",
            count(prepared.bytes >> 20),
            passes.collect::<Vec<_>>().join(", "),
            count(prepared.checked_sectors)
        )
    });
    device(counted).into_iter().chain(prepared).collect()
}

fn device(counted: &Io) -> Option<String> {
    let device = counted.device.as_ref()?;
    let part = device.part_of.as_ref().map_or_else(String::new, |whole| format!(", a part of {whole}"));
    let model = device.model.as_ref().map_or_else(String::new, |model| format!(" ({model})"));
    let queues = match device.polls {
        Some(true) => "has queues to poll",
        Some(false) => "has no queue to poll (queue/io_poll is 0)",
        None => "does not say whether it has queues to poll",
    };
    let delay = match device.poll_delay {
        Some(delay) if delay >= 0 => {
            format!("; queue/io_poll_delay is {delay}: before Linux 6.0 what is called polled sleeps first")
        }
        _ => String::new(),
    };
    let lines = match &device.interrupts {
        None => "which interrupts are its own cannot be told".to_owned(),
        Some(lines) if lines.is_empty() => "it has no interrupts".to_owned(),
        Some(lines) => format!(
            "its interrupts are lines {} of /proc/interrupts",
            lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        ),
    };
    Some(format!("{}{model}{part} {queues}{delay}; {lines}.", device.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, figure, flat, with};
    use doorbell_results::configuration::Pattern;
    use doorbell_results::record::SideCounters;

    fn record(subject: &str, ps: u64, cpu_ns: u64, interrupts: f64) -> Record {
        let reads = with(subject, Pattern::Io { direction: Direction::Read, direct: true });
        let configuration = Configuration { size: 4096, ..reads };
        let mut record = sample::record(&configuration, 0, &[ps; 50]);
        let times = record.series.values().next().unwrap().clone();
        record.series = [(Quantity::Transfer, times)].into();
        record.sides = vec![SideCounters { system_ns: cpu_ns * 50, window_ns: 1, ..SideCounters::default() }];
        record.figures = vec![figure(INTERRUPTS, interrupts)];
        if interrupts > 0.0 {
            record.figures.push(figure(BREAK_EVEN, 1e9 / cpu_ns as f64));
        }
        record
    }

    fn told(records: Vec<Record>) -> String {
        let result = sample::result("io", records);
        flat(&Transfers.subsections(&result, &Figures::of(&result)))
    }

    /// It took "no more CPU time: 0 ns".
    #[test]
    fn of_what_was_not_counted_or_not_polled_nothing_is_told() {
        let sync = || record("sync", 90_000_000, 6_000, 1.0);
        let mut uncounted = record("uring-iopoll", 84_000_000, 1, 0.0);
        uncounted.sides.clear();
        let text = told(vec![sync(), uncounted]);
        assert!(text.contains("6.03 us less") && !text.contains("CPU time: 0"), "{text}");
        let text = told(vec![sync()]);
        assert!(text.contains("cannot be decided here"), "{text}");
    }
}
