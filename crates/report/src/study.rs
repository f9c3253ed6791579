// SPDX-License-Identifier: MIT OR Apache-2.0
//! A repeatability study for the terminal: how often the verdicts were right, configuration by
//! configuration and as a whole.

use super::axis;
use super::style::{Role, Style};
use super::table::{Align, Column, Table};
use crate::wording::counted;
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
