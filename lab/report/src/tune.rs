// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `doorbell tune` found, as a table and in words, and as comments of the profile.

use super::style::{Role, Style};
use super::table::{Align, Column, Table};
use super::unit::{Scale, time};
use doorbell_results::configuration::Placement;
use doorbell_verdict::tune::{Placed, Tuned};

/// The table, and what the library makes of it.
pub fn tune(tuned: &Tuned, style: &Style) -> String {
    let ns = |ns: f64| time(ns * 1e3);
    let scale = Scale::for_ps(
        tuned.placements.iter().flat_map(|placed| [placed.latency_ns * 1e3, placed.price_ns * 1e3]),
    );
    let cell = |ns: f64| scale.show(ns * 1e3);
    let mut table = Table::new(vec![
        Column::new(format!("what sleeping costs, {}", scale.unit.sign()), Align::Left),
        Column::new("wake", Align::Right),
        Column::new("price", Align::Right),
        Column::new("spin that hits", Align::Right),
        Column::new("", Align::Left).keep(1),
    ]);
    for (index, placed) in tuned.placements.iter().enumerate() {
        table.row(vec![
            place(&placed.placement),
            cell(placed.latency_ns),
            cell(placed.price_ns),
            placed.hit_ns.map_or_else(|| "-".to_owned(), cell),
            if tuned.chosen == Some(index) { "assumed".to_owned() } else { String::new() },
        ]);
    }
    let mut out = table.render(style);
    if let Some(chosen) = tuned.chosen.and_then(|index| tuned.placements.get(index)) {
        out.push('\n');
        out.push_str(&style.wrap(
            &format!(
                "An adaptive waiter spins for at most {} before it sleeps: the processor time of \
                 one sleep and one wake-up. It counts {} of every wait that ended in a sleep as \
                 the wake-up, not as waiting.",
                ns(chosen.price_ns),
                ns(chosen.latency_ns)
            ),
            0,
        ));
        if let Some(doubt) = doubt(chosen) {
            out.push_str(&style.paint(Role::Warning, &style.wrap(&doubt, 0)));
        }
    }
    out
}

/// What to think of figures that other work had its part in.
fn doubt(placed: &Placed) -> Option<String> {
    let Placed { interfered, trials, .. } = placed;
    (*interfered > 0).then(|| {
        format!(
            "Other work interfered with {interfered} of the {trials} trials these figures are \
             from: they are too high. Run it again on an idle machine."
        )
    })
}

/// The figures as lines of a profile that nobody reads but people.
pub fn comments(tuned: &Tuned) -> String {
    let line = |placed: &Placed| {
        let hit = placed.hit_ns.map_or_else(String::new, |hit| format!(", spin that hits {hit:.0} ns"));
        format!(
            "# {}: wake {:.0} ns, price {:.0} ns{hit}; {} of {} trials with interference\n",
            place(&placed.placement),
            placed.latency_ns,
            placed.price_ns,
            placed.interfered,
            placed.trials
        )
    };
    tuned.placements.iter().map(line).collect()
}

fn place(placement: &Placement) -> String {
    match placement.cpus {
        Some([a, b]) => format!("{} (CPUs {a}, {b})", placement.relation),
        None => placement.relation.clone(),
    }
}
