// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every report must be, whatever the results hold.

use proptest::prelude::*;

use super::*;
use crate::judgement::answer;
use crate::picture::{Name, PictureError, draw};
use crate::sample::{configuration, record, result, warning};
use crate::style::Role;
use crate::views::made_of_each;
use doorbell_results::configuration::{Configuration, Pattern, Placement, Timing, Trace};
use doorbell_results::record::question::{Gate, Question, Which};
use doorbell_results::record::result::{Primitive, Primitives};
use doorbell_results::record::series::Quantity;
use doorbell_results::record::warning::INTERFERENCE;
use doorbell_results::record::{Figure, Histogram, Outcome, Series, Violation, sample};

fn source(name: &str, result: ResultFile) -> Source {
    Source { name: name.to_owned(), verdict: Vec::new(), result }
}

fn page(result: ResultFile) -> String {
    report(&[source("result", result)]).expect("a report")
}

/// Every SVG of a page, parsed; panics on one that is not well-formed XML.
fn pictures(page: &str) -> Vec<&str> {
    page.match_indices("<svg ")
        .map(|(start, _)| {
            let end = page[start..].find("</svg>").expect("an end") + start + "</svg>".len();
            &page[start..end]
        })
        .collect()
}

/// Asserts what holds for every report.
fn check(page: &str) {
    for picture in pictures(page) {
        check_picture(picture);
    }
    // The one address is the name of the SVG language, which no browser asks for.
    let without_names = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    let body = without_names.split("<script type=\"application/gzip\"").next().unwrap_or("");
    for reference in
        ["=\"http:", "=\"https:", "src=", "url(", "@import", "<link", "<iframe", "<img", "<object", "<base"]
    {
        assert!(!body.contains(reference), "the page refers to something else by {reference}");
    }
    for (start, _) in body.match_indices("href=\"") {
        assert!(
            body[start + 6..].starts_with('#'),
            "a link leaves the page: {}",
            &body[start..][..60.min(body.len() - start)]
        );
    }
    let mut ids: Vec<&str> = body
        .match_indices(" id=\"")
        .map(|(start, mark)| body[start + mark.len()..].split('"').next().unwrap_or(""))
        .collect();
    let number = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), number, "an id is used twice");
    assert_eq!(page.matches("<script").count(), 2, "scripts: the data and the page's own");
    assert_eq!(page.matches("</script").count(), 2);
    assert_eq!(page.matches("<style>").count(), 1);
    for (before, after) in [("<style>", "</style>"), ("<script>", "</script>")] {
        let start = page.find(before).expect("it is there") + before.len();
        let end = page[start..].find(after).expect("it ends") + start;
        let named = digest(&page[start..end]).replace('+', "&#43;");
        let policy = &page[..page.find("<style>").expect("the policy stands before the style")];
        assert!(
            policy.replace('+', "&#43;").contains(&named),
            "the policy does not name {before} by its digest"
        );
    }
}

fn check_picture(picture: &str) {
    let document = roxmltree::Document::parse(picture).unwrap_or_else(|error| panic!("{error} in {picture}"));
    for node in document.descendants().filter(roxmltree::Node::is_element) {
        for attribute in node.attributes() {
            let numeric = ["x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height"];
            let value = attribute.value();
            if numeric.contains(&attribute.name()) && value != "100%" {
                let number: f64 =
                    value.parse().unwrap_or_else(|_| panic!("{} is '{value}'", attribute.name()));
                assert!(number.is_finite() && number.abs() < 100_000.0, "{} is {number}", attribute.name());
            }
            if ["d", "points", "viewBox", "transform"].contains(&attribute.name()) {
                assert!(!value.contains("NaN") && !value.contains("inf"), "{value}");
            }
        }
    }
}

#[test]
fn a_run_without_records_says_so_and_still_tells_the_machine_and_the_plan() {
    let page = page(result("ping", Vec::new()));
    check(&page);
    assert!(page.contains("No trial of this report has figures"));
    assert!(page.contains("id=\"machine\"") && page.contains("id=\"repeat\""));
}

#[test]
fn one_sample_is_enough_for_every_chart() {
    let page = page(result("ping", vec![record(&configuration("futex"), 0, &[8_312_000])]));
    check(&page);
    assert!(pictures(&page).len() >= 3);
    assert!(
        page.contains("The harness's own cost was not measured here")
            || page.contains("harness&#39;s own cost")
    );
}

#[test]
fn a_sample_of_zero_and_one_of_an_hour_share_a_chart() {
    let records = vec![
        record(&configuration("null"), 0, &[0]),
        record(&configuration("pipe"), 0, &[3_600_000_000_000_000, 1]),
    ];
    check(&page(result("ping", records)));
}

/// The card of a gate on a busy machine said that the run was provisional, and not that it failed.
#[test]
fn the_card_of_a_provisional_gate_says_how_it_was_decided() {
    let one_way = Configuration { pattern: Pattern::OneWay { gap_ns: 1_000_000 }, ..configuration("futex") };
    let mut result = sample::result(&[one_way], 4, |_, _| 16_000.0);
    for record in &mut result.records {
        let mut wakes = Histogram::new();
        (0..1000).for_each(|wake| wakes.record(50_000_000 + wake));
        record.series.insert(Quantity::Wake, Series::from(&wakes));
        record.warnings.push(warning(INTERFERENCE.name));
    }
    let question = Question::Gate(Gate { limit_ns: 20_000, which: Which::Longest, confidence: 0.95 });
    let answer = answer(&question, &result, &[]).unwrap();
    result.verdict = Some(answer.verdict(&result));
    let page = report(&[Source { verdict: answer.subsections, ..source("gate", result) }]).unwrap();
    let card = page.split("<article class=\"card").nth(1).unwrap().split("</article>").next().unwrap();
    assert!(
        card.contains("failed, provisional") && card.contains("<p class=\"lead\">FAIL  max 50"),
        "{card}"
    );
}

#[test]
fn two_hundred_configurations_stay_within_a_few_megabytes_and_all_are_told() {
    let mut records = Vec::new();
    for subject in 0..40_u64 {
        for gap in 0..5_u32 {
            let configuration = Configuration {
                pattern: Pattern::OneWay { gap_ns: 10_u64.pow(gap + 3) },
                timing: Timing::Stamp,
                ..configuration(&format!("mechanism-{subject}"))
            };
            let times: Vec<u64> = (0..200).map(|n| 1_000_000 + subject * 90_000 + n * 7_000).collect();
            records.push(record(&configuration, 0, &times));
        }
    }
    let page = page(result("ping", records));
    check(&page);
    assert!(page.len() < 6_000_000, "{} bytes", page.len());
    for subject in 0..40 {
        assert!(page.contains(&format!(">mechanism-{subject}</th>")), "mechanism-{subject} is in no table");
    }
}

#[test]
fn hostile_text_stays_text() {
    let hostile =
        "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg onload=alert(3)>&amp;{{7*7}}";
    let mut bad = record(&configuration(hostile), 0, &[1_000_000, 2_000_000]);
    bad.warnings.push(warning(hostile));
    bad.figures.push(Figure {
        name: hostile.into(),
        value: 1.0,
        unit: hostile.into(),
        formula: hostile.into(),
    });
    bad.configuration.placement = Placement { relation: hostile.into(), cpus: None };
    let mut broken = record(&configuration("pipe"), 1, &[5]);
    broken.outcome = Outcome::Failed { cause: hostile.into() };
    let mut implausible = record(&configuration("fifo"), 1, &[5]);
    implausible.outcome = Outcome::Implausible {
        violations: vec![Violation { rule: hostile.into(), evidence: hostile.into() }],
    };
    let mut result = result("ping", vec![bad, broken, implausible]);
    result.command_line = vec![hostile.into()];
    result.plan.experiment = hostile.into();
    result.tool_version = hostile.into();
    for reading in &mut result.primitives {
        reading.primitives.push(Primitive { name: hostile.into(), p50_ns: 10.0, min_ns: 9.0, count: 3 });
    }
    let sources = [source(hostile, result.clone()), source("other", result.clone())];
    let page = report(&sources).expect("a report");
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script").count(), 2);
    let markup = page.split("<script type=\"application/gzip\"").next().unwrap_or("");
    for forbidden in ["<img", "<svg onload", "\" onerror", "' onerror"] {
        assert!(!markup.contains(forbidden), "{forbidden}");
    }
    for picture in pictures(&page) {
        check_picture(picture);
    }
    let data =
        page.split("id=\"results\">").nth(1).and_then(|rest| rest.split("</script>").next()).expect("data");
    let packed = STANDARD.decode(data).expect("base 64");
    let back: Vec<ResultFile> =
        serde_json::from_reader(flate2::read::GzDecoder::new(&packed[..])).expect("JSON");
    assert_eq!(back, vec![result.clone(), result], "the data is the results, to the letter");
}

#[test]
fn primitives_that_no_clock_could_read_draw_no_impossible_line() {
    let mut result = result("ping", vec![record(&configuration("futex"), 0, &[1_000_000])]);
    for (value, at_unix_ns) in [(f64::MAX, u64::MAX), (f64::MIN_POSITIVE, 0), (-5.0, 7), (0.0, 9)] {
        let primitives = vec![Primitive { name: "clock".into(), p50_ns: value, min_ns: value, count: 1 }];
        result.primitives.push(Primitives { block: 0, at_unix_ns, primitives });
    }
    check(&page(result));
}

#[test]
fn a_figure_of_a_bad_trial_stands_nowhere_but_in_the_data() {
    let mut bad = record(&configuration("pipe"), 0, &[777_000_000]);
    bad.outcome = Outcome::Implausible {
        violations: vec![Violation { rule: "below-primitive-cost".into(), evidence: "12 ns".into() }],
    };
    let page = page(result("ping", vec![bad, record(&configuration("futex"), 0, &[8_000_000])]));
    check(&page);
    let shown = page.split("<script type=\"application/gzip\"").next().unwrap_or("");
    assert!(!shown.contains("777"));
    assert!(shown.contains("below-primitive-cost: 12 ns"));
}

#[test]
fn the_same_result_twice_is_two_runs_with_names_of_their_own() {
    let one = result("ping", vec![record(&configuration("futex"), 0, &[8_000_000, 9_000_000])]);
    let page = report(&[source("before", one.clone()), source("after", one)]).expect("a report");
    check(&page);
    assert!(page.contains("data-variant=\"futex\"") && page.contains("data-variant=\"futex-2\""));
    assert!(page.contains("futex · before") && page.contains("futex · after"));
    assert!(page.contains("id=\"comparison\"") && page.contains("after against before"));
}

/// Eleven runs that were interrupted had a line each above the first card.
#[test]
fn interrupted_runs_are_told_together() {
    let mut one = result("ping", vec![record(&configuration("futex"), 0, &[8_000_000, 9_000_000])]);
    one.partial = true;
    let page = report(&[source("before", one.clone()), source("after", one)]).expect("a report");
    check(&page);
    assert_eq!(page.matches("before, after: interrupted;").count(), 1);
}

#[test]
fn pairs_are_a_map_with_values_and_a_large_machine_a_map_without() {
    for (cpus, values) in [(4_u32, true), (41, false)] {
        let mut records = Vec::new();
        for from in 0..cpus {
            for to in (0..cpus).filter(|to| *to != from) {
                let placement = Placement { relation: "cpus".into(), cpus: Some([from, to]) };
                let times = [100_000 + u64::from(from.abs_diff(to)) * 1000];
                records.push(record(&Configuration { placement, ..configuration("spin") }, 0, &times));
            }
        }
        let page = page(result("pairs", records));
        check(&page);
        assert_eq!(page.contains("class=\"square middle\""), values, "{cpus} CPUs");
        assert!(page.contains("Best pair: CPUs 0 and 1 with 101 ns"));
    }
}

#[test]
fn placements_of_a_mechanism_stand_in_one_row() {
    let placed = |subject: &str, relation: &str| Configuration {
        placement: Placement { relation: relation.into(), cpus: None },
        ..configuration(subject)
    };
    let records = vec![
        record(&placed("futex", "same-core"), 0, &[3_000_000]),
        record(&placed("futex", "same-l3"), 0, &[13_000_000]),
        record(&placed("spin", "same-l3"), 0, &[300_000]),
    ];
    let sources = [source("survey", result("survey", records))];
    let page = report(&sources).expect("a report");
    check(&page);
    assert!(page.contains("Round trip by mechanism and placement"));
    for name in [Name::Placements, Name::Ranges] {
        let picture = draw(name, &sources).expect("a picture");
        check_picture(&picture);
        assert!(picture.contains("prefers-color-scheme:dark") && picture.contains("futex"), "{name:?}");
    }
    assert_eq!(draw(Name::Pairs, &sources), Err(PictureError::NoPairs));
}

#[test]
fn traced_variants_have_waterfalls_and_their_stages_in_a_table() {
    let traced = Configuration { trace: Some(Trace::Stages), ..configuration("futex") };
    let mut records =
        vec![record(&configuration("futex"), 0, &[8_000_000]), record(&traced, 0, &[9_000_000])];
    records[1].anatomy = Some(doorbell_results::anatomy::sample::whole());
    let page = page(result("anatomy", records));
    check(&page);
    let drawn = pictures(&page).into_iter().filter(|picture| picture.contains("8 stages, ")).count();
    assert_eq!(drawn, 3, "a median wake-up, one at the 99th percentile, the slowest");
    assert!(page.contains("across CPUs, by interrupt: time of each stage, "));
}

/// Tables that neither have a column of counts nor say in their label how many there are.
fn uncounted(page: &str) -> Vec<&str> {
    let heads = [
        "count",
        "count of blocks",
        "blocks",
        "sent",
        "wake-ups",
        "transfers",
        "events",
        "hand-offs",
        "lives",
        "rounds",
        "trials",
        "runs",
        "operations",
    ];
    let labels = ["samples in all", " wake-ups, ", "mechanism", " event", "confirmed"];
    let tables = page.split("<div class=\"scroll\"").filter_map(|part| part.split("</thead>").next());
    tables
        .filter(|table| table.contains("<table>"))
        .filter(|table| !heads.iter().any(|head| table.contains(&format!(">{head}</th>"))))
        .filter(|table| {
            let label =
                table.split("aria-label=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or("");
            !labels.iter().any(|counted| label.contains(counted))
        })
        .collect()
}

#[test]
fn one_run_of_everything_is_a_page_with_a_chapter_for_each_experiment_and_counts_in_each_table() {
    let names = ["io", "net", "idle", "fanout", "tasks", "switch", "ping under load"];
    let of_each = made_of_each().into_iter().filter(|(name, _)| names.contains(name));
    let mut sources: Vec<Source> = of_each.map(|(name, result)| source(name, result)).collect();
    sources[0].verdict = vec![Subsection::verdict(
        "Fail: not 99.9 % of wake-ups take at most 20 µs".to_owned(),
        Role::Error,
        Vec::new(),
    )];
    let page = report(&sources).expect("a report");
    check(&page);
    assert_eq!(uncounted(&page), [""; 0]);
    for source in &sources {
        let name = &source.result.plan.experiment;
        assert!(page.contains(&format!("id=\"{name}-top\"")), "{name} has no chapter");
        assert!(
            page.contains(&format!("--plan {}</code>", crate::command_line::RESULT)),
            "{name}: not how to repeat it"
        );
    }
    for told in [
        "<h3>Random reads, one at a time, µs</h3>",
        "<h3>Poll or wait</h3>",
        "uring-iopoll",
        "Waiting for a message over loopback, µs",
        "Wake-ups by how long the waiter slept, µs",
        "<h3>Fan-out, µs</h3>",
        "<h3>Hand-offs, µs</h3>",
        "<h3>Calls and faults, µs</h3>",
        "<h3 class=\"bad\">Fail: not 99.9 % of wake-ups",
        "Time against the number of receivers",
        "Time against the number of tasks",
        "Time against the gap",
        "CPU time of the waiter and its kernel threads per transfer",
        "Around the trials",
        "All times in",
        "Other figures, ns",
        "Numbers of notifications",
        "id=\"fanout-claims\"",
        "id=\"tasks-claims\"",
        "id=\"io-claims\"",
    ] {
        assert!(page.contains(told), "{told}");
    }
}

/// Of more lines than a chart has colours the first one once had the quickest eight, whatever they
/// were: no eventfd stood beside the user interrupts.
#[test]
fn the_first_chart_of_many_variants_has_every_mechanism_under_the_same_conditions() {
    let names = ["spin", "uintr", "uintr-wait", "uintr-epoll", "eventfd", "futex"];
    let mut records = Vec::new();
    for (place, name) in (1_u64..).zip(names) {
        for (timing, gap_ns, times) in [
            (Timing::Stamp, 0, 1),
            (Timing::Stamp, 10_000_000, 2),
            (Timing::Blocked, 0, 3),
            (Timing::Blocked, 10_000_000, 4),
        ] {
            let configuration =
                Configuration { timing, pattern: Pattern::OneWay { gap_ns }, ..configuration(name) };
            records.push(record(&configuration, 0, &[place * times * 1_000_000; 3]));
        }
    }
    let page = page(result("uintr", records));
    check(&page);
    let first = pictures(&page)[0];
    assert!(first.contains("against gap"), "{}", &first[..300]);
    let drawn = |name: &str| first.contains(&format!(">{name}<"));
    let lacking: Vec<&str> = names.into_iter().filter(|name| !drawn(name)).collect();
    assert!(lacking.is_empty(), "{lacking:?} is not in the first chart: {first}");
    for conditions in ["stamped", "verified blocked"] {
        assert!(page.contains(&format!("Time against the gap: {conditions}")), "{conditions}");
    }
}

#[test]
fn what_a_second_run_has_in_common_with_the_first_is_told_once() {
    let mut one = result("ping", vec![record(&configuration("futex"), 0, &[8_000_000])]);
    one.machine.processor.model_name = Some("a processor".to_owned());
    let page = report(&[source("before", one.clone()), source("after", one)]).expect("a report");
    assert_eq!(page.matches("<th scope=\"row\">processor: model name</th>").count(), 1);
}

#[test]
fn results_too_large_to_be_sent_are_not_in_the_page_and_it_says_so() {
    let mut large = result("ping", vec![record(&configuration("futex"), 0, &[8_000_000])]);
    // Digits without any order: nothing packs them.
    let mut digit = 1_u64;
    large.command_line = (0..400_000)
        .map(|_| {
            digit = digit.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            format!("{digit:x}")
        })
        .collect();
    let page = page(large);
    assert!(!page.contains("id=\"results\"") && page.contains("too large to be part of a page"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn whatever_was_measured_can_be_drawn(
        variants in proptest::collection::vec(proptest::collection::vec(0_u64..=u64::MAX, 1..20), 1..8)
    ) {
        let records = variants.iter().enumerate().map(|(index, times)| {
            record(&configuration(&format!("variant {index}")), index as u32 % 3, times)
        });
        check(&page(result("ping", records.collect())));
    }
}
