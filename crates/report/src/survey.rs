// SPDX-License-Identifier: MIT OR Apache-2.0
//! A survey on the terminal: one line for each mechanism, one for each sleep, and the answer, last: what stands above the
//! prompt is what a reader meets first. The page of `doorbell report`, read from its top, begins with it.

use super::answer::answer;
use super::axis;
use super::doctor::{Detail, doctor};
use super::figures::Figures;
use super::section::Section;
use super::style::{Role, Style};
use super::switch::Operations;
use super::table::{Align, Column, Table};
use super::unit::count;
use doorbell_results::configuration::WaitPolicy;
use doorbell_results::quantity::short;
use doorbell_results::record::series::Quantity;
use doorbell_results::record::{ResultFile, Variant};

#[derive(Debug)]
pub struct Survey;

impl Section for Survey {
    fn name(&self) -> &'static str {
        "survey"
    }
    fn text(&self, result: &ResultFile, _: &Figures, style: &Style) -> String {
        let variants = result.variants();
        round_trips(&variants, style) + &sleeps(&variants, style)
    }
    fn closing(&self, result: &ResultFile, style: &Style) -> String {
        let doctor = doctor(&result.machine, Detail::Brief, style);
        // Which mechanism to use is a question of times, and an emulator's times answer none.
        if result.emulated() {
            doctor
        } else {
            doctor + &answer(&doorbell_verdict::answer::answer(result), style)
        }
    }
    /// The one operation of a survey is there for its time alone.
    fn tells(&self, name: &str) -> bool {
        Operations.tells(name)
    }
}

/// Nanoseconds as microseconds.
fn us(ns: f64) -> String {
    format!("{:.2}", ns / 1000.0)
}

/// One line for each mechanism, the fastest across cores first, three columns for each placement.
fn round_trips(variants: &[Variant], style: &Style) -> String {
    let of_interest = |variant: &&Variant| {
        variant.configuration.pattern.back_to_back() && variant.configuration.wait == WaitPolicy::Block
    };
    let mut relations: Vec<&str> = Vec::new();
    let mut sorted_by = None;
    let mut subjects: Vec<(&str, f64)> = Vec::new();
    let is_harness = |subject: &str| {
        variants.iter().any(|variant| variant.configuration.subject == subject && variant.is_harness())
    };
    for variant in variants.iter().filter(of_interest) {
        let relation = variant.configuration.placement.relation.as_str();
        if !relations.contains(&relation) {
            relations.push(relation);
        }
        let Some(whole) = variant.histogram(Quantity::RoundTrip) else { continue };
        let p50 = whole.quantile(0.5) as f64;
        match subjects.iter_mut().find(|(subject, _)| *subject == variant.configuration.subject) {
            // The last placement with chosen CPUs is the farthest, where mechanisms differ most.
            Some(entry) if variant.configuration.placement.cpus.is_some() => {
                entry.1 = p50;
                sorted_by = Some(relation);
            }
            Some(_) => {}
            None => subjects.push((&variant.configuration.subject, p50)),
        }
    }
    subjects.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut columns = vec![Column::new("mechanism", Align::Left)];
    for relation in &relations {
        let name = axis::relation(relation);
        columns.push(Column::new(format!("{name} p50"), Align::Right));
        columns.push(Column::new("p99", Align::Right).keep(3));
        columns.push(Column::new("CPU", Align::Right).keep(2));
        columns.push(Column::new("count", Align::Right).keep(1));
    }
    let mut table = Table::new(columns);
    for (subject, _) in &subjects {
        let note = if is_harness(subject) { " (the harness itself)" } else { "" };
        let mut row = vec![format!("{subject}{note}")];
        for relation in &relations {
            let variant = variants.iter().filter(of_interest).find(|variant| {
                variant.configuration.subject == *subject
                    && variant.configuration.placement.relation == *relation
            });
            row.extend(figures_of(variant, Quantity::RoundTrip));
        }
        table.row(row);
    }
    let order = sorted_by
        .map_or_else(String::new, |by| format!(" Rows by their median on the {}.", axis::relation(by)));
    let note = crate::wording::sentence(Quantity::RoundTrip.definition()) + &order;
    titled("Round trip and CPU time of a wake-up, µs", &note, &table, style)
}

/// One line for each mechanism and gap.
fn sleeps(variants: &[Variant], style: &Style) -> String {
    let mut table = Table::new(vec![
        Column::new("mechanism", Align::Left),
        Column::new("waiter", Align::Left),
        Column::new("gap", Align::Right),
        Column::new("wake p50", Align::Right),
        Column::new("p99", Align::Right),
        Column::new("CPU", Align::Right).keep(2),
        Column::new("count", Align::Right).keep(1),
        Column::new("notify p50", Align::Right),
    ]);
    for variant in variants.iter().filter(|variant| variant.configuration.pattern.one_way()) {
        let waiter = if variant.configuration.wait == WaitPolicy::Spin { "awake" } else { "asleep" };
        let mut row = vec![
            variant.configuration.subject.clone(),
            waiter.to_owned(),
            short(variant.configuration.pattern.gap_ns()),
        ];
        row.extend(figures_of(Some(variant), Quantity::Wake));
        row.push(
            variant
                .histogram(Quantity::Notify)
                .map_or_else(dash, |whole| us(whole.quantile(0.5) as f64 / 1000.0)),
        );
        table.row(row);
    }
    let note = crate::wording::sentence(Quantity::Wake.definition());
    titled("Wake-up latency by how long the waiter slept, µs", &note, &table, style)
}

/// p50, p99, CPU per wake, count.
fn figures_of(variant: Option<&Variant>, quantity: Quantity) -> [String; 4] {
    let Some((variant, whole)) = variant.and_then(|variant| Some((variant, variant.histogram(quantity)?)))
    else {
        return [dash(), dash(), dash(), dash()];
    };
    [
        us(whole.quantile(0.5) as f64 / 1000.0),
        us(whole.quantile(0.99) as f64 / 1000.0),
        variant.cpu_ns_per_wake().map_or_else(dash, us),
        count(whole.count()),
    ]
}

fn dash() -> String {
    "-".to_owned()
}

fn titled(title: &str, note: &str, table: &Table, style: &Style) -> String {
    if table.is_empty() {
        return String::new();
    }
    let note = style.wrap(note, 0);
    format!("\n{}\n{note}{}", style.paint(Role::Heading, &style.text(title)), table.render(style))
}
