// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell io --net`: latency, CPU time and requests by event.

use super::axis;
use super::figures::{Distribution, Figures, Row, percentiles};
use super::passage::{Passage, heads, nothing};
use super::section::Section;
use super::table::{Table, number};
use super::unit::{Scale, count};
use crate::wording::{sentence, shown};
use doorbell_results::figure::request::{HELPER, REQUESTS};
use doorbell_results::record::ResultFile;
use doorbell_results::record::series::Quantity;

#[derive(Debug)]
pub struct Messages;

impl Section for Messages {
    fn name(&self) -> &'static str {
        "messages"
    }
    fn passages(&self, _: &ResultFile, figures: &Figures) -> Vec<Passage> {
        passages(figures)
    }
    fn answer(&self, result: &ResultFile, figures: &Figures) -> Vec<Passage> {
        super::quantities::Quantities.answer(result, figures)
    }
    fn tells(&self, name: &str) -> bool {
        [REQUESTS, HELPER].contains(&name)
    }
}

/// Everything about a run of messages.
pub fn passages(figures: &Figures) -> Vec<Passage> {
    let waits = |row: &Row| if row.is_harness() { Quantity::Notify } else { Quantity::Wake };
    let rows: Vec<(&Row, &Distribution)> =
        figures.rows.iter().filter_map(|row| Some((row, row.series.get(&waits(row))?))).collect();
    if rows.is_empty() {
        return nothing();
    }
    let axes = axis::varying(rows.iter().map(|(row, _)| row.configuration()));
    let real = rows.iter().filter(|(row, _)| !row.is_harness());
    let scale = Scale::for_ps(real.map(|(_, series)| series.quantile(0.5) as f64));
    let mut columns = heads(&axes, "way");
    columns.extend([
        number("p50"),
        number("p99").keep(6),
        number("max").keep(4),
        number("client's CPU").keep(9),
        number("the call").keep(5),
        number("server's thread").keep(7),
        number("requests").keep(8),
        number("p50 by block").keep(1),
        number("events").keep(3),
    ]);
    let mut table = Table::new(columns);
    for (row, series) in &rows {
        let ps = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |ps| scale.show(ps));
        let mut line: Vec<String> = axes.iter().map(|axis| shown(*axis, row)).collect();
        line.extend(percentiles(series, [0.5, 0.99, 1.0], scale));
        line.push(ps(row.waiter_ps()));
        line.push(ps(row.p50_ps(Quantity::Notify)));
        line.push(ps(row.figure(|name| name == HELPER).map(|ns| ns * 1e3)));
        let requests = row.figure(|name| name == REQUESTS);
        line.push(requests.map_or_else(|| "-".to_owned(), |requests| format!("{requests:.2}")));
        line.push(series.spread_ps().map_or_else(String::new, |(low, high)| {
            format!("{}..{}", scale.show(low as f64), scale.show(high as f64))
        }));
        line.push(count(series.count));
        table.row(line);
    }
    let notes = vec![
        sentence(Quantity::Wake.definition()),
        "By event: CPU time of the client while it waits and reads, the server's call that publishes (median), the CPU time of the \
         thread with which the server answers requests, and the requests of the client. The harness has no client: its row is an \
         empty call between two clock readings."
            .to_owned(),
    ];
    let title = format!("Waiting for a message over loopback, {}", scale.unit.sign());
    Passage::of_table(title, table, notes).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passage::text;
    use crate::sample;
    use crate::style::Style;
    use doorbell_results::configuration::{Configuration, Pattern};
    use doorbell_results::record::{Figure, Record};

    #[test]
    fn a_way_stands_with_its_clients_cpu_its_servers_thread_and_its_requests() {
        let configuration = Configuration {
            pattern: Pattern::OneWay { gap_ns: 5_000_000 },
            ..sample::configuration("http-long-poll")
        };
        let mut record: Record = sample::record(&configuration, 0, &[50_000_000; 20]);
        let figure =
            |name: &str, value| Figure { name: name.into(), value, unit: "".into(), formula: "".into() };
        record.figures = vec![figure(REQUESTS, 1.05), figure(HELPER, 9_000.0)];
        let result = sample::result("net", vec![record]);
        let text = text(&passages(&Figures::of(&result)), &Style { width: 200, ..Style::PLAIN });
        let line = text.lines().find(|line| line.starts_with("http-long-poll")).unwrap();
        for word in ["50.0", "2.50", "9.00", "1.05", "20"] {
            assert!(line.split_whitespace().any(|own| own == word), "{word}:\n{text}");
        }
    }
}
