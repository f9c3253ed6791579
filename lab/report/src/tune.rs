// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `doorbell tune` found, as a table and in words, and as comments of the profile.

use super::columns::{Columns, dash};
use super::style::{Role, Style};
use super::table::{number, word};
use super::unit::{Scale, time_ns as ns};
use doorbell_results::configuration::Placement;
use doorbell_verdict::tune::{Placed, Tuned};

/// The table, and what the library makes of it.
pub fn tune(tuned: &Tuned, style: &Style) -> String {
    let scale = Scale::for_ps(
        tuned.placements.iter().flat_map(|placed| [placed.latency_ns * 1e3, placed.price_ns * 1e3]),
    );
    let chosen = tuned.chosen.and_then(|index| tuned.placements.get(index));
    let table = Columns::none()
        .with(word(format!("what sleeping costs, {}", scale.unit.sign())), |placed: &Placed| {
            place(&placed.placement)
        })
        .with(number("wake"), |placed| scale.show_ns(placed.latency_ns))
        .with(number("price"), |placed| scale.show_ns(placed.price_ns))
        .with(number("spin that hits"), |placed| placed.hit_ns.map_or_else(dash, |ns| scale.show_ns(ns)))
        .with(word("").keep(1), |placed| match chosen.is_some_and(|chosen| std::ptr::eq(chosen, placed)) {
            true => "assumed".to_owned(),
            false => String::new(),
        })
        .table(&tuned.placements);
    let mut out = table.render(style);
    if let Some(chosen) = chosen {
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
