// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands around the tables of every run: what it was, the primitive costs of the machine
//! meanwhile, trials without figures.

use doorbell_results::record::ResultFile;

use super::axis;
use super::columns::Columns;
use super::extra::PrimitiveLine;
use super::figures::Figures;
use super::style::{Role, Style};
use super::subsection::Subsection;
use super::table::{number, word};
use super::unit::{Scale, count, time};
use super::wording::{bound, counted, date, foreign};

/// What was run, when, how long.
pub fn head(result: &ResultFile, style: &Style) -> String {
    let wall_ns = result.finished_at_unix_ns.saturating_sub(result.started_at_unix_ns);
    let title = format!("doorbell {}", result.plan.experiment);
    let name = result.name.as_ref().map_or_else(String::new, |name| format!(" · {name}"));
    let facts = format!(
        "{name} · {} × {} · {} · took {}",
        counted(result.plan.configurations.len() as u64, "configuration"),
        counted(result.plan.blocks.into(), "block"),
        date(result.started_at_unix_ns),
        time(wall_ns as f64 * 1e3),
    );
    let mut out =
        bound(result).map_or_else(String::new, |bound| style.paint(Role::Warning, &style.wrap(&bound, 0)));
    out.push_str(&format!("{}{}\n", style.paint(Role::Heading, &style.text(&title)), style.text(&facts)));
    if result.partial {
        let note = "partial: the run was interrupted, and only what was measured until then is here";
        out.push_str(&style.paint(Role::Warning, note));
        out.push('\n');
    }
    if let Some(foreign) = foreign(result) {
        out.push_str(&style.paint(Role::Warning, &style.wrap(&foreign, 0)));
    }
    out
}

/// The machine's primitive costs: first and last reading, and how far they lay apart in between;
/// none where none were read.
pub fn primitives(result: &ResultFile) -> Option<Subsection> {
    let lines = PrimitiveLine::of(result);
    let scale = Scale::for_ps(lines.iter().map(PrimitiveLine::first_ps));
    type Median = fn(&PrimitiveLine) -> f64;
    let medians: [(_, Median); 5] = [
        (number("first p50"), |primitive| primitive.first_ps()),
        (number("last p50"), |primitive| primitive.last_ps()),
        (number("lowest p50").keep(3), |primitive| primitive.range_ps().0),
        (number("highest p50").keep(4), |primitive| primitive.range_ps().1),
        (number("min").keep(2), |primitive| primitive.min_ps),
    ];
    let table = Columns::none()
        .with(word("primitive cost"), |primitive: &PrimitiveLine| primitive.name.replace('-', " "))
        .each(medians, |primitive, of| scale.show(of(primitive)))
        .with(number("readings").keep(1), |primitive| count(primitive.medians.len() as u64))
        .with(number("count").keep(5), |primitive| count(primitive.count))
        .table(&lines);
    let title = format!("Primitive costs of this machine during the run, {}", scale.unit.sign());
    Subsection::of_table(title, table, Vec::new())
}

/// Trials without figures, one named line each.
pub fn absent(figures: &Figures, style: &Style) -> String {
    if figures.absent.is_empty() {
        return String::new();
    }
    let axes = axis::varying(figures.absent.iter().map(|absent| absent.configuration));
    let mut out = format!("\n{}\n", style.paint(Role::Heading, "Without figures"));
    for absent in &figures.absent {
        let role = if absent.is_error() { Role::Error } else { Role::Warning };
        let times = if absent.trials > 1 {
            format!(" ({} trials)", count(absent.trials as u64))
        } else {
            String::new()
        };
        let line =
            format!("{}{times}: {}", axis::label(absent.configuration, &axes), absent.reasons.join("; "));
        let wrapped = style.wrap(&line, absent.name.len() + 3);
        out.push_str("  ");
        out.push_str(&style.paint(role, absent.name));
        // The first line stands beside the name, the rest below it.
        out.push(' ');
        out.push_str(wrapped.trim_start());
    }
    out
}
