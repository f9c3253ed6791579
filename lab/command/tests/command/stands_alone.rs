// SPDX-License-Identifier: MIT OR Apache-2.0
//! A result tells the same in a build that knows none of its names:
//! of subjects, of the experiment, of flags, of figures.

use std::sync::OnceLock;

use doorbell_report::figures::Figures;
use doorbell_report::html::{Source, report};
use doorbell_report::style::Style;
use doorbell_report::{export, judgement, survey, switch, tasks};
use doorbell_report::{section::Section as _, summary};
use doorbell_results::record::question::Question;
use doorbell_results::record::read::read_bytes;
use doorbell_results::record::{ResultFile, read};

use crate::stage::Stage;

/// A run of every experiment, with every part that a subject can play in what is told.
const RUNS: [&str; 15] = [
    "survey --blocks 1",
    "ping futex spin --gap 0,100us --count 20 --blocks 4",
    "pairs futex --budget 1s --blocks 1",
    "switch getppid timectxsw switch-futex touch --working-set 0,4096 --time 2ms --blocks 1",
    "fanout sem-posix-named sem-sysv unix-dgram sem-posix-for-all -n 3 --rounds 3 --interval 1ms --blocks 1",
    "tasks stackless stackless-rotating process-pair process-pair-rotating timer-ticks life-fork \
     life-future -n 100 -y 1 --count 2 --placement same-core --blocks 1",
    "tasks process-futex thread-yield -n 10 -y 10 --count 2 --blocks 1",
    "io io-null sync --file-size 1M --count 5 --blocks 1",
    "io --net udp http-long-poll --gap 1ms --count 5 --blocks 1",
    "idle futex --gap 200us --count 5 --load idle,sqrt:1 --blocks 1",
    "anatomy futex --gap 100us --time 5ms --placement unpinned --blocks 1",
    "why futex --placement unpinned --time 20ms",
    "pick --need epoll,payload,count --placement unpinned --anyway --blocks 4",
    "spin --gap 100us --spin 12us --time 2ms --anyway --blocks 4",
    "gate --max 1ms --gap 100us --placement unpinned --time 40ms --anyway --blocks 1",
];

/// The same, once more, against the result before.
const CHECK: &str = "check --anyway --fail-if p50>+5% --fail-if lost>0 --baseline";

/// A name that nothing has: the same letters, so that tables are as
/// wide and what is sorted by name stays where it was.
fn unheard_of(name: &mut String) {
    *name = name.to_uppercase();
}

/// `result` as a build would have written it that calls everything by another name.
fn renamed(result: &ResultFile) -> ResultFile {
    let mut other = result.clone();
    unheard_of(&mut other.plan.experiment);
    other.plan.configurations.iter_mut().for_each(|configuration| unheard_of(&mut configuration.subject));
    other.plan.left_out.iter_mut().for_each(|lacking| unheard_of(&mut lacking.name));
    other.records.iter_mut().for_each(|record| unheard_of(&mut record.configuration.subject));
    let parts = std::mem::take(&mut other.plan.parts);
    other.plan.parts = parts.into_iter().map(|(subject, part)| (subject.to_uppercase(), part)).collect();
    if let Some(Question::Check(check)) = &mut other.plan.question {
        check.conditions.iter_mut().flat_map(|condition| &mut condition.subject).for_each(unheard_of);
    }
    other.command_line = ["doorbell-2031", "ponder", "--thoroughly"].map(str::to_owned).to_vec();
    other
}

/// Everything that is told of `result`, in small letters and without
/// the lines that hold its command.
fn told(result: &ResultFile, baseline: &ResultFile) -> Vec<(String, String)> {
    // So wide that no line is broken.
    let style = Style { width: 4000, ..Style::PLAIN };
    let verdict = judgement::answered(result, &[result, baseline]);
    let mut all = vec![
        ("tables".to_owned(), summary::summary(result, &style)),
        ("verdict".to_owned(), doorbell_report::subsection::text(&verdict, &style)),
    ];
    for exporter in export::ALL {
        let mut bytes = Vec::new();
        (exporter.export)(result, &mut bytes).unwrap();
        // Some formats are for programs; of those only that they can be written.
        all.push((exporter.name.to_owned(), String::from_utf8(bytes).unwrap_or_default()));
    }
    let source = Source { name: "run".to_owned(), result: result.clone(), verdict };
    all.push(("page".to_owned(), report(&[source]).unwrap()));
    let command = result.command_line.join(" ");
    // The command, the one that repeats the run, and the result
    // itself, which the page holds packed and as a digest.
    let own = |line: &&str| {
        ![command.as_str(), "--plan", "id=\"results\"", "result sha256-"]
            .iter()
            .any(|other| line.contains(other))
    };
    let small = |text: String| text.lines().filter(own).collect::<Vec<_>>().join("\n").to_lowercase();
    all.into_iter().map(|(name, text)| (name, small(text))).collect()
}

/// The first line in which two texts differ.
fn difference(one: &str, other: &str) -> Option<String> {
    if one == other {
        return None;
    }
    let lines = one.lines().zip(other.lines()).find(|(one, other)| one != other);
    Some(lines.map_or_else(|| "one is longer".to_owned(), |(one, other)| format!("\n  {one}\n  {other}")))
}

fn measured(stage: &Stage, words: &str) -> Option<ResultFile> {
    let args: Vec<&str> = words.split_whitespace().chain(["--quiet", "--json", "--output", "-"]).collect();
    let output = stage.doorbell(&args).current_dir(stage.path()).output().unwrap();
    match read_bytes(output.stdout, words) {
        Ok(mut result) => {
            // So short that it is never broken.
            result.command_line = ["doorbell-2026", "ran", args[0]].map(str::to_owned).to_vec();
            Some(result)
        }
        Err(_) if !output.status.success() => {
            let reason = String::from_utf8_lossy(&output.stderr).into_owned();
            doorbell_skipped::skip(format_args!("{words}: {}", reason.trim()));
            None
        }
        Err(error) => panic!("{words}: {error}"),
    }
}

/// Every run with what it is held against, measured once for all tests.
fn results() -> &'static [(ResultFile, ResultFile)] {
    static RESULTS: OnceLock<Vec<(ResultFile, ResultFile)>> = OnceLock::new();
    RESULTS.get_or_init(measure_all)
}

fn measure_all() -> Vec<(ResultFile, ResultFile)> {
    let stage = Stage::new();
    let mut all: Vec<_> = RUNS
        .iter()
        .filter_map(|words| {
            let traced = ["anatomy", "why"].iter().any(|traced| words.starts_with(traced));
            let _alone = traced
                .then(|| crate::anatomy::ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
            measured(&stage, words)
        })
        .map(|result| (result.clone(), result))
        .collect();
    let baseline = stage.path().join("baseline.json");
    doorbell_results::record::write::write(&all[1].0, &baseline).unwrap();
    let baseline_words = format!("{CHECK} {}", baseline.display());
    all.extend(measured(&stage, &baseline_words).map(|result| (result, read::read(&baseline).unwrap())));
    all
}

#[test]
fn a_result_of_names_that_this_build_does_not_have_tells_the_same_under_those_names() {
    for (result, baseline) in results() {
        let other = renamed(result);
        for ((name, text), (_, under_other_names)) in
            told(result, baseline).into_iter().zip(told(&other, &renamed(baseline)))
        {
            let words = result.command_line.join(" ");
            assert!(name != "tables" || !text.is_empty(), "{words}");
            assert_eq!(difference(&text, &under_other_names), None, "{words}: {name}");
        }
    }
}

#[test]
fn a_figure_that_no_table_knows_is_told_by_its_name() {
    for mut result in results().iter().map(|(result, _)| result.clone()) {
        let figures = result.records.iter_mut().flat_map(|record| &mut record.figures);
        figures.for_each(|figure| unheard_of(&mut figure.name));
        let text = summary::summary(&result, &Style { width: 300, ..Style::PLAIN });
        let usable = Figures::of(&result);
        let records = usable.rows.iter().flat_map(|row| &row.variant.records);
        for figure in records.flat_map(|record| &record.figures).filter(|figure| figure.value.is_finite()) {
            let words = result.command_line.join(" ");
            assert!(text.contains(&figure.name), "{words}: {}:\n{text}", figure.name);
        }
    }
}

/// As `doorbell explain` promises. What is data and not a word of ours is left out: numbers of
/// CPUs, the kernel's names of idle states.
#[test]
fn every_head_on_every_page_has_an_explanation() {
    let stage = Stage::new();
    let mut heads = std::collections::BTreeSet::new();
    for (result, baseline) in results() {
        let source = |name: &str, result: &ResultFile| {
            let verdict = judgement::answered(result, &[result, baseline]);
            Source { name: name.to_owned(), result: result.clone(), verdict }
        };
        let page = report(&[source("run", result)]).unwrap()
            + &report(&[source("a", baseline), source("b", result)]).unwrap();
        for head in page.split("<th scope=\"col\"").skip(1) {
            let head = head.split_once('>').unwrap().1.split_once("</th>").unwrap().0;
            heads.insert(head.replace("&#39;", "'").replace("&amp;", "&"));
        }
    }
    assert!(heads.len() > 100, "{heads:?}");
    let states: Vec<String> = results()
        .iter()
        .flat_map(|(result, _)| &result.records)
        .flat_map(|record| record.environment.idle_states.keys().cloned())
        .collect();
    let data = |head: &String| head.parse::<u32>().is_ok() || states.contains(head);
    let unknown: Vec<&String> = heads
        .iter()
        .filter(|head| !head.is_empty() && !data(head))
        .filter(|head| !stage.doorbell(&["explain", head]).output().unwrap().status.success())
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// What plans name is there: a section that nobody has would be left out without a word.
#[test]
fn sections_and_parts_are_spelt_as_those_who_read_them_spell_them() {
    let of = |experiment: &str| {
        &results().iter().find(|(result, _)| result.plan.experiment == experiment).unwrap().0.plan
    };
    assert!(of("survey").has_section(survey::Survey.name()) && of("survey").parts.len() == 2);
    assert!(of("switch").has_section(switch::Operations.name()));
    assert!(of("switch").plays("touch", switch::WRITES_ALONE));
    assert!(of("tasks").has_section(tasks::Tasks.name()) && of("tasks").plays("call", tasks::CONTROL));
}
