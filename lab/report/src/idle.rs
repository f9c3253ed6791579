// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell idle`: what a longer sleep costs, what was entered meanwhile, what holding idle states
//! off buys, and what this machine hides.

use super::axis::Axis;
use super::columns::{Columns, dash};
use super::figures::{Distribution, Figures, Having, Row};
use super::row_comparison::is_open;
use super::section::Section;
use super::subsection::Subsection;
use super::table::{number, word};
use super::unit::{Scale, alike, plain, time_ns};
use crate::wording::{multiple, sentence, shown};
use doorbell_results::machine::Machine;
use doorbell_results::machine::power::Power;
use doorbell_results::record::ResultFile;
use doorbell_results::record::series::Quantity;
use doorbell_verdict::compare::RELEVANT;
use doorbell_verdict::provisional::provisional;
use doorbell_verdict::ratio::{Ratio, Standing};
use doorbell_verdict::sleeps::{Held, Sleeps as Found, Slept, sleeps};
use doorbell_verdict::slices::ERROR;

#[derive(Debug)]
pub struct Sleeps;

impl Section for Sleeps {
    fn name(&self) -> &'static str {
        "sleeps"
    }
    fn subsections(&self, result: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        let found = sleeps(&result.variants(), ERROR);
        let lines = [
            ("What a sleep costs", verdicts(result, &found)),
            ("What can be turned", vec![knob(&result.machine)]),
            ("What is seen of it", hidden(&result.machine, figures)),
        ];
        let lines = lines.into_iter().filter_map(|(title, lines)| Subsection::of_lines(title, lines));
        gaps(figures, &found).into_iter().chain(lines).collect()
    }
    fn answer(&self, result: &ResultFile, figures: &Figures) -> Vec<Subsection> {
        let found = sleeps(&result.variants(), ERROR);
        let mut table = gaps(figures, &found);
        let ratios =
            found.slept.iter().map(|slept| slept.ratio).chain(found.held.iter().map(|held| held.ratio));
        let open = ratios.take(1).any(|ratio| is_open(ratio) || provisional(result).is_some());
        let lead = || verdicts(result, &found).into_iter().chain([knob(&result.machine)]).collect();
        table.iter_mut().for_each(|told| (told.lead, told.open) = (lead(), open));
        table.into_iter().collect()
    }
}

fn rows<'a>(figures: &'a Figures) -> Vec<Having<'a>> {
    // The harness wakes nobody: its row is an empty call between two clock readings.
    let mut rows = figures.having(|row| if row.is_harness() { Quantity::Notify } else { Quantity::Wake });
    rows.sort_by_key(|(row, _)| {
        let configuration = row.configuration();
        (
            !row.is_harness(),
            configuration.subject.clone(),
            configuration.pattern.gap_ns(),
            configuration.latency_limit_us.is_some(),
        )
    });
    rows
}

fn gaps(figures: &Figures, found: &Found) -> Option<Subsection> {
    let rows = rows(figures);
    let p50 = |row: &Row, series: &Distribution| {
        found.level_ns(row.configuration()).map_or_else(|| series.p50_ps(), |ns| ns * 1e3)
    };
    let scale =
        Scale::for_ps(rows.iter().filter(|(row, _)| !row.is_harness()).map(|(row, series)| p50(row, series)));
    let of_wakes = |row: &Row, text: String| if row.is_harness() { dash() } else { text };
    let table = Columns::none()
        .with(word("mechanism"), |(row, _): &Having| shown(Axis::Subject, row))
        .with(number("slept"), |(row, _)| of_wakes(row, time_ns(row.configuration().pattern.gap_ns() as f64)))
        .with(word("idle states"), |(row, _)| of_wakes(row, held(row)))
        .with(number("p50"), |(row, series)| scale.show(p50(row, series)))
        .with(number("p99"), |(row, series)| series.above(0.99, p50(row, series), scale))
        .with(number("max").keep(5), |(_, series)| scale.show(series.max_ps as f64))
        .cpu(number("CPU"), scale)
        .by_block(number("p50 by block").keep(2), scale)
        .with(word("entered, by wake-up").keep(3), |(row, _)| of_wakes(row, entered(row)))
        .samples(number("count").keep(1))
        .table(&rows);
    let notes = vec![
        sentence(Quantity::Wake.definition()),
        "p50: the middle of the blocks' medians, by which the sentences go. Slept: from the last \
         wake-up to the next notification. Held: while the trial ran, /dev/cpu_dma_latency was \
         open with the limit, and the kernel confirmed it. Entered: how often the kernel counted \
         an idle state of both CPUs, set-up included, by wake-up."
            .to_owned(),
    ];
    let title = format!("Wake-ups by how long the waiter slept, {}", scale.unit.sign());
    Subsection::of_table(title, table, notes)
}

fn held(row: &Row) -> String {
    match row.configuration().latency_limit_us {
        None => "as they are".to_owned(),
        Some(limit) => format!("held at {limit} µs"),
    }
}

/// Entries of each idle state by wake.
fn entered(row: &Row) -> String {
    let mut sums = std::collections::BTreeMap::<&str, u64>::new();
    for (name, entries) in row.variant.usable().flat_map(|record| &record.environment.idle_entries) {
        let sum = sums.entry(name).or_default();
        *sum = sum.saturating_add(*entries);
    }
    let seen = row.variant.tally().seen.max(1) as f64;
    let shown: Vec<String> = sums
        .into_iter()
        .filter(|(_, entries)| *entries > 0)
        .map(|(name, entries)| format!("{name} {:.2}", entries as f64 / seen))
        .collect();
    if shown.is_empty() { dash() } else { shown.join(", ") }
}

/// What a longer sleep costs, and what holding idle states off buys, in words.
fn verdicts(result: &ResultFile, Found { slept, held, .. }: &Found) -> Vec<String> {
    let doubted = provisional(result);
    let open = |ratio: Option<Ratio>| match ratio {
        None => Some("inconclusive, there are fewer than six blocks".to_owned()),
        Some(_) if doubted.is_some() => {
            Some("inconclusive, other programs used the CPUs in most of the trials".to_owned())
        }
        Some(ratio) => match ratio.standing(RELEVANT) {
            Standing::Inconclusive => Some(format!(
                "inconclusive, it could be {} to {} times as long",
                plain(ratio.low),
                plain(ratio.high)
            )),
            Standing::Same { within } => Some(format!("the same within {:.1} %", within * 100.0)),
            Standing::Slower | Standing::Faster => None,
        },
    };
    let longer = slept.iter().map(|Slept { subject, short_ns, long_ns, ratio }| {
        let said = open(*ratio)
            .unwrap_or_else(|| ratio.map_or_else(String::new, |ratio| multiple(ratio, " times as long")));
        let [short, long] = alike([short_ns.1, long_ns.1].map(|ns| ns * 1e3));
        format!(
            "{subject}: {short} after a sleep of {}, {long} after one of {}: {said}.",
            time_ns(short_ns.0 as f64),
            time_ns(long_ns.0 as f64)
        )
    });
    let bought = held.iter().map(|Held { subject, gap_ns, as_is_ns, held_ns, ratio }| {
        let gap = time_ns(*gap_ns as f64);
        let by = (as_is_ns - held_ns).abs();
        let [without, with, by] = alike([*as_is_ns, *held_ns, by].map(|ns| ns * 1e3));
        if let Some(open) = open(*ratio) {
            return format!(
                "{subject}: idle states held off, a wake-up after {gap} takes {with} and not \
                 {without}: {open}."
            );
        }
        let word = if held_ns < as_is_ns { "saves" } else { "costs" };
        format!(
            "{subject}: holding idle states off {word} {by} of a wake-up after {gap} ({with} and \
             not {without})."
        )
    });
    longer.chain(bought).collect()
}

/// What can be turned here so that a CPU comes back sooner, and the price of it.
fn knob(machine: &Machine) -> String {
    let Power { idle_driver, idle_states, guest_halt_poll_ns, .. } = &machine.power;
    let guest = machine.virtualisation.guest;
    let driver = idle_driver.as_deref().filter(|driver| *driver != "none");
    let host = "the host's is kvm.halt_poll_ns";
    match driver {
        Some("haltpoll") => {
            let now =
                guest_halt_poll_ns.map_or_else(String::new, |ns| format!(" (now {})", time_ns(ns as f64)));
            format!(
                "Knob: /sys/module/haltpoll/parameters/guest_halt_poll_ns{now}: the guest looks so \
                 long before it halts, and spends that CPU time; {host}."
            )
        }
        None if guest => format!(
            "Knob: modprobe cpuidle-haltpoll (looks 200 µs before it halts) or boot with idle=poll \
             (keeps every CPU busy); {host}. Held off here or not, a bare halt stays one."
        ),
        None => "Knob: none of the kernel's, it has no idle driver; C-states are set in the \
            firmware, and idle=poll keeps every CPU busy."
            .to_owned(),
        Some(driver) => {
            // The kernel's parameters are the drivers' own.
            let boot = match driver {
                "intel_idle" => "intel_idle.max_cstate=1",
                _ => "processor.max_cstate=1",
            };
            let deepest = idle_states.iter().max_by_key(|state| state.exit_latency_us);
            let spares = deepest.and_then(|state| {
                Some(format!(" spares up to {} µs ({});", state.exit_latency_us?, state.name))
            });
            format!(
                "Knob: hold /dev/cpu_dma_latency open at 0, cpupower idle-set -D 0, or boot with \
                 {boot}:{} no CPU saves power then.",
                spares.unwrap_or_default()
            )
        }
    }
}

/// What this machine shows of its idle states, and what it does not.
fn hidden(machine: &Machine, figures: &Figures) -> Vec<String> {
    let power = &machine.power;
    let mut lines = Vec::new();
    let seen = figures
        .rows
        .iter()
        .flat_map(|row| row.variant.usable())
        .any(|record| !record.environment.idle_entries.is_empty());
    if power.idle_states.is_empty() {
        lines.push(match power.idle_driver.as_deref() {
            Some("none") | None if machine.virtualisation.guest => {
                "This kernel has no idle driver: an idle CPU halts at once, which leaves the \
                 guest. Which state the hardware then enters, for how long the host polls first, \
                 and when it lets the CPU run again is the host's and hidden here."
                    .to_owned()
            }
            Some("none") | None => "This kernel has no idle driver: an idle CPU executes a bare \
                halt, and the firmware decides how deep it sleeps."
                .to_owned(),
            Some(driver) => format!("The idle driver {driver} lists no states."),
        });
    } else {
        let state = |state: &doorbell_results::machine::power::IdleState| match state.exit_latency_us {
            Some(exit) => format!("{} ({exit} us to leave)", state.name),
            None => state.name.clone(),
        };
        let states: Vec<String> = power.idle_states.iter().map(state).collect();
        lines.push(format!(
            "Idle states: {}; driver {}, governor {}.",
            states.join(", "),
            power.idle_driver.as_deref().unwrap_or("unknown"),
            power.idle_governor.as_deref().unwrap_or("unknown")
        ));
        if machine.virtualisation.guest {
            lines.push("These are the guest's; what the host does with a halted CPU is hidden.".to_owned());
        }
    }
    if !seen {
        lines.push("No entry of an idle state was counted, so no wake-up can be put down to one.".to_owned());
    }
    match (power.guest_halt_poll_ns, power.kvm_halt_poll_ns) {
        (Some(ns), _) => lines
            .push(format!("As a guest it polls up to {} before it halts (haltpoll).", time_ns(ns as f64))),
        (None, Some(ns)) => lines.push(format!(
            "As a host of guests it polls up to {} for a halted one (kvm.halt_poll_ns); for its \
             own programs that means nothing.",
            time_ns(ns as f64)
        )),
        (None, None) if machine.virtualisation.guest => lines.push(
            "Halt polling is not visible: on the host see /sys/module/kvm/parameters/halt_poll_ns; \
             a guest's own is the driver cpuidle_haltpoll."
                .to_owned(),
        ),
        (None, None) => {}
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::style::Style;
    use crate::subsection::text;
    use doorbell_results::configuration::Pattern;

    /// A verdict that was open named nothing to turn.
    #[test]
    fn every_machine_is_told_in_the_first_lines_what_it_can_turn_and_the_price() {
        let with = |driver: Option<&str>, guest, polled| {
            let mut machine = sample::result("idle", Vec::new()).machine;
            machine.power.idle_driver = driver.map(str::to_owned);
            machine.power.guest_halt_poll_ns = polled;
            machine.virtualisation.guest = guest;
            knob(&machine)
        };
        for (driver, guest, polled, words) in [
            (Some("haltpoll"), true, Some(200_000), ["guest_halt_poll_ns", "now 200 µs", "kvm.halt_poll_ns"]),
            (None, true, None, ["modprobe cpuidle-haltpoll", "idle=poll", "keeps every CPU busy"]),
            (Some("none"), false, None, ["no idle driver", "firmware", "keeps every CPU busy"]),
            (Some("acpi_idle"), false, None, ["cpu_dma_latency", "processor.max_cstate=1", "saves power"]),
        ] {
            let said = with(driver, guest, polled);
            assert!(words.iter().all(|word| said.contains(word)), "{driver:?}: {said}");
        }
        let sleep = sample::with("futex", Pattern::OneWay { gap_ns: 10_000 });
        let mut result = sample::result("idle", vec![sample::record(&sleep, 0, &[8_000_000; 20])]);
        result.machine.virtualisation.guest = true;
        let first = text(&Sleeps.answer(&result, &Figures::of(&result)), &Style::PLAIN);
        let at = first.lines().position(|line| line.starts_with("Knob:"));
        assert!(at.is_some_and(|at| at < 10), "{first}");
    }
}
