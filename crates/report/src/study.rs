// SPDX-License-Identifier: MIT OR Apache-2.0
//! A repeatability study for the terminal: how often the verdicts were right, configuration by configuration and as a whole.

use super::axis;
use super::style::{Role, Style};
use super::table::{Align, Column, Table, number, word};
use crate::wording::counted;
use doorbell_verdict::noise::{Calibration, Comparisons};
use doorbell_verdict::study::{Count, Scored, Study};

pub fn study(study: &Study, style: &Style) -> String {
    let rounds = counted(study.rounds.len() as u64, "round");
    let percent = f64::from(study.slowdown_ppm) / 10_000.0;
    let mut out =
        format!("{}\n", style.paint(Role::Heading, &style.text(&format!("repeatability · {rounds}"))));
    let blocks = counted(study.blocks.into(), "block");
    let common = axis::common(study.configurations.iter());
    let note = format!(
        "Each round: a run of {blocks}, the same again (should not be called different), and the same slowed by {percent} % \
         (should be slower). Finds: the least slowdown that would have been called slower in 95 of 100 of these places. Intervals \
         of the shares hold with 95 %. All: {common}."
    );
    out.push_str(&style.wrap(&note, 0));
    let axes = axis::varying(study.configurations.iter());
    let mut columns: Vec<Column> = axes.iter().map(|axis| Column::new(axis.name(), Align::Left)).collect();
    for what in ["not different", "slowdown found"] {
        columns.push(Column::new(what, Align::Right));
        columns.push(Column::new("share", Align::Left).keep(2));
        columns.push(Column::new("inconclusive", Align::Right).keep(1));
        columns.push(Column::new("ratio", Align::Left).keep(3));
    }
    columns.push(Column::new("finds", Align::Right));
    let mut table = Table::new(columns);
    for (index, configuration) in study.configurations.iter().enumerate() {
        line(
            &mut table,
            axes.iter().map(|axis| axis.value(configuration)).collect(),
            study,
            Scored::Configuration(index),
        );
    }
    let mut head = vec![String::new(); axes.len()];
    head[0] = "any of them".to_owned();
    line(&mut table, head, study, Scored::Comparison);
    out.push_str(&table.render(style));
    out
}

/// What surveys of equal things said.
pub fn calibration(found: &Calibration, style: &Style) -> String {
    let Calibration { surveys, blocks, wrong, finds } = found;
    let mut out = style.wrap(
        &format!(
            "{wrong} of {surveys} surveys of {blocks} blocks, all of whose mechanisms are equal, call something different ({:.1} %; 5 % is \
             the most).",
            f64::from(*wrong) * 100.0 / f64::from((*surveys).max(1))
        ),
        0,
    );
    let mut table = Table::new(vec![
        word("placement"),
        word("reference inside the trial"),
        number("found in 95 of 100, from"),
    ]);
    for ((relation, referred), from) in finds {
        let referred = if *referred { "yes" } else { "no" };
        table.row(vec![axis::relation(relation), referred.to_owned(), format!("{:.1} %", from * 100.0)]);
    }
    out.push_str(&table.render(style));
    out
}

/// What comparisons of stored runs of one plan said.
pub fn comparisons(found: &Comparisons, style: &Style) -> String {
    let Comparisons { equal, wrong, slowed, finds } = found;
    let mut out = style.wrap(
        &format!(
            "{wrong} of {equal} comparisons of two runs of the same thing call something different ({:.1} %; 5 % is the most).",
            f64::from(*wrong) * 100.0 / f64::from((*equal).max(1))
        ),
        0,
    );
    let mut table = Table::new(vec![
        word("placement"),
        number("slowed on purpose"),
        number("found slower"),
        number("found in 95 of 100, from"),
    ]);
    for (relation, from) in finds {
        let [all, slower] = slowed.get(relation).copied().unwrap_or_default();
        let from = if from.is_finite() { format!("{:.1} %", from * 100.0) } else { "-".to_owned() };
        table.row(vec![axis::relation(relation), all.to_string(), slower.to_string(), from]);
    }
    out.push_str(&table.render(style));
    out
}

fn line(table: &mut Table, mut configurations: Vec<String>, study: &Study, of: Scored) {
    let score = study.score(of);
    for count in [&score.same, &score.slowed] {
        configurations.extend(figures(count));
    }
    configurations
        .push(score.same.finds().map_or_else(|| "-".to_owned(), |finds| format!("{:.1} %", finds * 100.0)));
    table.row(configurations);
}

fn figures(count: &Count) -> [String; 4] {
    let share = count
        .interval()
        .map_or_else(String::new, |(low, high)| format!("{:.0}..{:.0} %", low * 100.0, high * 100.0));
    let ratio = count.spread().map_or_else(String::new, |(mean, spread)| {
        format!("{:+.1} % ± {:.1} %", mean * 100.0, spread * 100.0)
    });
    [format!("{}/{}", count.right, count.all), share, count.open.to_string(), ratio]
}
