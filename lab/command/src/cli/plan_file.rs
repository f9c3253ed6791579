// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plan files: a [`Plan`] in TOML or JSON, written by `--save-plan`
//! or by hand, or taken from a result.
//!
//! Flags make a plan and a file is one: there is no second language. What a file may leave out has
//! a usual value, and what it says is held to the bounds that the flags have.

use std::collections::BTreeMap;
use std::path::Path;

use super::bounds;
use super::out;
use super::placements;
use super::usage::Usage;
use doorbell_results::configuration::{Configuration, Pattern, Target};
use doorbell_results::machine::pinning::Pinning;
use doorbell_results::machine::topology::Topology;
use doorbell_results::nearest::{did_you_mean, nearest};
use doorbell_results::plan::Plan;
use doorbell_results::record::ResultFile;
use doorbell_results::record::question::Question;
use doorbell_results::record::read::{self, LONGEST, read_bytes};
use doorbell_results::record::schema::SCHEMA;
use doorbell_results::written::pretty_json;
use doorbell_subjects::fan;
use doorbell_subjects::mechanism;
use doorbell_subjects::{gpu, operation, task, transfer};
use serde_json::Value;

/// The plan in the file at `path`, for `doorbell VERB` on a machine with `topology`.
pub fn read(path: &Path, verb: &str, topology: &Topology) -> Result<Plan, Usage> {
    let refuse = |what: String| Usage(format!("{}: {what}", path.display()));
    let mut plan = parse(path, &text(path)?)?;
    if plan.experiment != verb {
        return Err(refuse(format!(
            "the plan is for `doorbell {}`, not for `doorbell {verb}`",
            plan.experiment
        )));
    }
    if plan.configurations.is_empty() {
        return Err(refuse("the plan has no configurations".to_owned()));
    }
    if let Some(Question::Unknown(asked)) = &plan.question {
        return Err(refuse(format!(
            "this program cannot read the question '{}'; it asks pick, spin, gate and check, and \
             `doorbell gate --save-plan FILE` shows how one is written",
            Question::name_of(asked)
        )));
    }
    bounds::check(&plan).map_err(|usage| refuse(usage.0))?;
    for (place, configuration) in plan.configurations.iter_mut().enumerate() {
        let named = configuration.subject.clone();
        settle(configuration, topology)
            .map_err(|what| refuse(format!("configurations, number {} ({named}): {what}", place + 1)))?;
    }
    Ok(plan)
}

/// Writes `plan` to the file at `path`, `-` being standard output:
/// JSON where the name ends so, else TOML.
pub fn save(plan: &Plan, path: &Path) -> anyhow::Result<()> {
    let text = if path.extension().is_some_and(|extension| extension == "json") {
        pretty_json(plan)? + "\n"
    } else {
        format!("# doorbell {} --plan FILE\n{}", plan.experiment, toml::to_string(plan)?)
    };
    out::put(path, |out| out.write_all(text.as_bytes()))
}

fn text(path: &Path) -> Result<String, Usage> {
    doorbell_files::text(path, LONGEST).map_err(|error| {
        Usage(format!(
            "cannot read the plan file {}: {error}; `doorbell ping futex --save-plan FILE` writes one",
            path.display()
        ))
    })
}

fn parse(path: &Path, text: &str) -> Result<Plan, Usage> {
    let named = path.display();
    if text.contains("\"schema_version\"") && text.trim_start().starts_with('{') {
        let result = read_bytes(text.as_bytes().to_owned(), &named.to_string());
        let plan = result.map_err(Usage::of)?.plan;
        return wholly_known(path, text.as_bytes()).map(|()| plan);
    }
    let (plan, written): (Plan, Value) = if text.trim_start().starts_with('{') {
        let told = |error| Usage(format!("{named}: {error}"));
        (serde_json::from_str(text).map_err(told)?, serde_json::from_str(text).map_err(told)?)
    } else {
        let told = |error: toml::de::Error| {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            Usage(format!("{named}, line {line}: {}", error.message()))
        };
        (toml::from_str(text).map_err(told)?, toml::from_str(text).map_err(told)?)
    };
    let Some((key, meant)) = stranger(&written) else { return Ok(plan) };
    let name = key.rsplit('.').next().unwrap_or(&key);
    let line = text.lines().position(|line| gives(line, name));
    let line = line.map_or_else(String::new, |line| format!(", line {}", line + 1));
    Err(Usage(format!("{named}{line}: a plan has nothing called '{key}'{meant}")))
}

/// The first key of a plan as it is written that means nothing, and what may be meant.
fn stranger(written: &Value) -> Option<(String, String)> {
    let schema: Value = serde_json::from_str(SCHEMA).expect("a test of its crate holds it against its types");
    let Unknown { key, known } =
        unknown(&schema, &schema["$defs"]["Plan"], written, "").into_iter().next()?;
    let name = key.rsplit('.').next().unwrap_or(&key);
    let meant = did_you_mean(nearest(name, known.iter().map(String::as_str)));
    Some((key, meant))
}

/// The result at `path`, whose plan is to be run again.
pub fn of_a_result(path: &Path) -> anyhow::Result<ResultFile> {
    let bytes = read::bytes(path)?;
    let result = read_bytes(bytes.clone(), &read::named(path))?;
    wholly_known(path, &bytes)?;
    Ok(result)
}

/// Refuses a result whose plan says more than is known: without it something else would be
/// measured, and held against it.
fn wholly_known(path: &Path, result: &[u8]) -> Result<(), Usage> {
    #[derive(serde::Deserialize)]
    struct Written {
        plan: Value,
    }
    // It was read as a result already.
    let written = serde_json::from_slice(result).ok().and_then(|Written { plan }| stranger(&plan));
    written.map_or(Ok(()), |(key, meant)| {
        Err(Usage(format!(
            "{}: its plan has '{key}', which this version does not know{meant}; run it with the \
             version that wrote it",
            path.display()
        )))
    })
}

/// A key that means nothing where it stands.
struct Unknown {
    key: String,
    /// What could stand there.
    known: Vec<String>,
}

/// Every key of `value` that `schema` has no meaning for. Serde drops those of a table that says by
/// a tag what it is, and tells nobody.
fn unknown(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<Unknown> {
    let target = target(root, schema);
    let alternatives = target.get("oneOf").or_else(|| target.get("anyOf")).and_then(Value::as_array);
    if let Some(alternatives) = alternatives {
        // It is the one that its tag says; without a tag, the one that leaves least unexplained.
        let fitting = alternatives.iter().filter_map(|alternative| {
            let tags = tags(root, alternative, value)?;
            let left = unknown(root, alternative, value, at);
            Some((std::cmp::Reverse(tags), left))
        });
        return fitting
            .min_by_key(|(tags, left)| (*tags, left.len()))
            .map(|(_, left)| left)
            .unwrap_or_default();
    }
    let within =
        |key: &dyn std::fmt::Display| if at.is_empty() { key.to_string() } else { format!("{at}.{key}") };
    match value {
        Value::Array(items) => {
            let Some(of_each) = target.get("items") else { return Vec::new() };
            let each = |(place, item)| unknown(root, of_each, item, &within(&place));
            items.iter().enumerate().flat_map(each).collect()
        }
        Value::Object(fields) => {
            let known = properties(root, schema);
            if known.is_empty() {
                return Vec::new();
            }
            let each = |(name, value): (&String, &Value)| match known.get(name) {
                Some(schema) => unknown(root, schema, value, &within(name)),
                None => vec![Unknown {
                    key: within(name),
                    known: known.keys().map(|name| (*name).clone()).collect(),
                }],
            };
            fields.iter().flat_map(each).collect()
        }
        _ => Vec::new(),
    }
}

/// What `schema` refers to, or itself.
fn target<'root>(root: &'root Value, schema: &'root Value) -> &'root Value {
    let named = schema.get("$ref").and_then(Value::as_str);
    named.and_then(|named| root.pointer(named.trim_start_matches('#'))).unwrap_or(schema)
}

/// What may stand in a table: a tagged one has its tag beside what it refers to.
fn properties<'root>(root: &'root Value, schema: &'root Value) -> BTreeMap<&'root String, &'root Value> {
    let both = [schema, target(root, schema)];
    both.into_iter().filter_map(|schema| schema.get("properties")?.as_object()).flatten().collect()
}

/// How many tags `value` has as `schema` wants them; none if one is another.
fn tags(root: &Value, schema: &Value, value: &Value) -> Option<usize> {
    // What may be left out is also allowed to be null.
    if schema.get("type").is_some_and(|kind| kind == "null") && !value.is_null() {
        return None;
    }
    let known = properties(root, schema);
    let mut wanted = known.into_iter().filter_map(|(name, schema)| Some((name, schema.get("const")?)));
    wanted.try_fold(0, |tags, (name, tag)| (value.get(name) == Some(tag)).then_some(tags + 1))
}

/// Whether `line` gives a value to what is called `name`.
fn gives(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let after = line[at + name.len()..].trim_start_matches(['"', '\'']).trim_start();
        let before = line[..at].chars().next_back();
        before.is_none_or(|before| !before.is_alphanumeric() && before != '_')
            && (after.starts_with(['=', ':', '.', ']']))
    })
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

/// Finds the CPUs of a placement that is only named, and refuses what the flags would refuse.
fn settle(configuration: &mut Configuration, topology: &Topology) -> Result<(), String> {
    known(configuration)?;
    if matches!(configuration.target, Some(Target::Device { consent: Some(_), .. })) {
        return Err("a file is no consent to overwrite a device, whose name another may have by \
            now; type it: `doorbell io --device /dev/NAME --write-device NAME`"
            .to_owned());
    }
    place(configuration, topology)?;
    let between_sides = matches!(
        configuration.pattern,
        Pattern::PingPong { .. } | Pattern::OneWay { .. } | Pattern::OpenLoop { .. }
    );
    if between_sides && !bounds::makes_sense(configuration, topology.usable.len() == 1) {
        return Err("it cannot be: a mechanism that spins shares no core with its notifier and is \
            never proven asleep, some join only threads or only processes (`doorbell list`), one \
            way needs timing stamp or blocked, and an open loop a gap"
            .to_owned());
    }
    Ok(())
}

/// Whether this build has what the configuration names; if not, the name that may have been meant.
fn known(configuration: &Configuration) -> Result<(), String> {
    fn said<T>(found: Result<T, impl std::fmt::Display>) -> Result<(), String> {
        found.map(drop).map_err(|unknown| unknown.to_string())
    }
    let name = &configuration.subject;
    match configuration.pattern {
        Pattern::FanOut { .. } => said(fan::find(name)),
        Pattern::Operation { .. } => said(operation::find(name)),
        Pattern::Tasks { .. } => said(task::find(name)),
        Pattern::Io { .. } => said(transfer::find(name)),
        Pattern::Gpu { .. } => said(gpu::find(name)),
        Pattern::PingPong { .. } | Pattern::OneWay { .. } | Pattern::OpenLoop { .. } => {
            said(mechanism::find(name))
        }
    }
}

fn place(configuration: &mut Configuration, topology: &Topology) -> Result<(), String> {
    let relation = configuration.placement.relation.clone();
    if matches!(configuration.pattern, Pattern::FanOut { .. }) {
        return match Pinning::named(&relation) {
            Some(_) => Ok(()),
            None => Err(format!(
                "no way to spread receivers is called '{relation}'; there are {}",
                Pinning::ALL.map(Pinning::name).join(", ")
            )),
        };
    }
    match configuration.placement.cpus {
        None => {
            configuration.placement =
                placements::by_relation(&relation, topology).map_err(|usage| usage.0)?;
        }
        Some([first, second]) => {
            topology.check(&[first, second]).map_err(|error| error.to_string())?;
            let here = topology.relation(first, second).name();
            if here != relation {
                return Err(format!(
                    "the CPUs {first} and {second} are {here} here and not {relation}; leave cpus \
                     out to have two that are"
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches as _;
    use doorbell_machine::Asked;
    use doorbell_machine::root::Root;
    use doorbell_results::configuration::WaitPolicy;
    use doorbell_results::machine::Machine;
    use doorbell_results::machine::clock::Clock;
    use doorbell_results::record::sample;
    use proptest::prelude::*;

    /// A machine of which nothing is known but the CPUs that this process may use.
    fn machine() -> Machine {
        let live = doorbell_machine::read(&Root::live(), Clock::MONOTONIC, Asked::here());
        Machine { topology: live.topology, ..sample::machine() }
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    fn read_text(text: &str, verb: &str) -> Result<Plan, String> {
        let file = file(text);
        read(file.path(), verb, &machine().topology)
            .map_err(|usage| usage.0.replace(&file.path().display().to_string(), "plan.toml"))
    }

    /// What somebody writes by hand.
    const BY_HAND: &str = "experiment = 'ping'\n\n[[configurations]]\nsubject = 'futex'\npattern = { kind = 'one-way', gap_ns = 10_000 }\n\
                           timing = 'stamp'\nuntil = { count = 100 }\n";

    #[test]
    fn what_is_left_out_by_hand_has_a_usual_value() {
        let plan = read_text(BY_HAND, "ping").unwrap();
        let [configuration] = &plan.configurations[..] else { panic!("{plan:?}") };
        assert_eq!(
            (configuration.wait, configuration.size, configuration.placement.relation.as_str()),
            (WaitPolicy::Block, 0, "unpinned")
        );
        assert!(plan.repeat_on_interference && plan.question.is_none());
    }

    /// What the tables that say by a tag what they are do not know was dropped, and the plan ran as
    /// if it had not been written.
    #[test]
    fn a_mistake_is_told_with_its_line_and_what_may_have_been_meant() {
        let refused = |right: &str, wrong: &str, said: &str| {
            let error = read_text(&BY_HAND.replace(right, wrong), "ping").unwrap_err();
            assert!(error.contains(said), "{wrong}: {error}");
        };
        let nothing = "a plan has nothing called 'configurations.0.";
        for (right, wrong, said) in [
            ("timing", "timng", "plan.toml, line 6: a plan has nothing called 'configurations.0.timng'; did"),
            ("timing", "timng", "; did you mean 'timing'?"),
            ("'ping'", "'pairs'", "plan.toml: the plan is for `doorbell pairs`, not for `doorbell ping`"),
            ("'futex'", "'futx'", "configurations, number 1 (futx): no mechanism is called 'futx'; did you"),
            ("count = 100", "count = 0", "until needs a count or a time_ns above 0"),
            ("'stamp'", "'around'", "it cannot be"),
            ("'stamp'", "'stomp'", "plan.toml, line 6: unknown variant `stomp`"),
            ("10_000", "'10us'", "plan.toml, line 5: invalid type: string \"10us\", expected u64"),
            ("timing = 'stamp'", "size = 99999999", "size is 99999999; it is a number from 0 to 67108864"),
            ("timing", "placement = { relation = 'nearby' }\ntiming", "no placement is called 'nearby'"),
            ("timing", "placement = { relation = 'same-l3', cpus = [0, 8000] }\ntiming", "8000"),
            ("timing", "load = { kind = 'sqr', workers = 1, pinned = false }\ntiming", "mean 'sqrt'?"),
            ("'ping'", "'ping'\nblocks = 0", "blocks is 0; it is a number from 1 to 10000"),
            ("[[configurations]]", "[[configurations]", "plan.toml, line 3: "),
            (
                "10_000",
                "10_000, gap_s = 3",
                "line 5: a plan has nothing called 'configurations.0.pattern.gap_s'",
            ),
            ("10_000", "10_000, gap_s = 3", "did you mean 'gap_ns'?"),
            (
                "10_000",
                "10_000, batch = 3",
                "line 5: a plan has nothing called 'configurations.0.pattern.batch'",
            ),
            ("count = 100", "count = 100, time = 5", &format!("{nothing}until.time'")),
        ] {
            refused(right, wrong, said);
        }
        for (key, table) in [
            ("wait.spin_n", "wait = { kind = 'block', spin_n = 5 }"),
            ("wait.timeout_ns", "wait = { kind = 'spin', timeout_ns = 5 }"),
            ("trace.keep", "trace = { kind = 'stages', keep = 5 }"),
            ("target.consnt", "target = { kind = 'device', path = '/dev/null', consnt = 'null' }"),
            ("load.nice", "load = { kind = 'sqrt', workers = 1, pinned = false, nice = 5 }"),
            ("placement.cpu", "placement = { relation = 'unpinned', cpu = [0, 0] }"),
        ] {
            refused("timing", &format!("{table}\ntiming"), &format!("{nothing}{key}'"));
        }
        let gate = "kind = 'gate', limit_ns = 50_000, which = 'longest', confidence = 0.95, limit = 3";
        for (question, said) in [
            (gate, "line 2: a plan has nothing called 'question.limit'"),
            ("kind = 'spin', worth = 1.0, by = 'p99'", "line 2: a plan has nothing called 'question.by'"),
            ("kind = 'gte'", "cannot read the question 'g"),
            ("kind = 'gate', limit_ns = 'soon'", "cannot read the question 'g"),
        ] {
            refused("'ping'\n", &format!("'ping'\nquestion = {{ {question} }}\n"), said);
        }
    }

    #[test]
    fn a_file_is_no_consent_to_overwrite_a_device() {
        let text = "experiment = 'io'\n[[configurations]]\nsubject = 'sync'\nsize = 4096\nuntil = { count = 1 }\n\
                    pattern = { kind = 'io', direction = 'write', direct = true }\n\
                    target = { kind = 'device', path = '/dev/nvme1n1', consent = 'nvme1n1' }\n";
        assert!(read_text(text, "io").unwrap_err().contains("no consent"));
    }

    #[test]
    fn a_result_is_a_plan_too() {
        let mut result = sample::result(&[sample::configuration("futex")], 3, |_, _| 16_000.0);
        result.plan.configurations[0].placement = placements::unpinned();
        let file = file(&doorbell_results::record::write::to_json(&result));
        assert_eq!(read(file.path(), "ping", &machine().topology).unwrap(), result.plan);
    }

    fn flag(name: &'static str, values: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec(prop::sample::select(values), 0..3).prop_map(move |values| match values[..] {
            [] => Vec::new(),
            _ => vec![format!("--{name}"), values.join(",")],
        })
    }

    fn command_line() -> impl Strategy<Value = Vec<String>> {
        let lists = (
            flag("gap", &["0", "10us", "1ms", "1.5s"]),
            flag("wait", &["block", "spin", "spin-then-block=5us", "timeout=1ms"]),
            flag("size", &["0", "64", "4096"]),
            flag("contexts", &["processes", "threads"]),
            flag("load", &["idle", "full", "churn:3:pinned"]),
        );
        let ends = prop::sample::select(vec![vec![], vec!["--count", "9"], vec!["--time", "3ms"]]);
        let mechanisms =
            prop::collection::vec(prop::sample::select(&["futex", "pipe", "eventfd-epoll"][..]), 0..3);
        (lists, ends, mechanisms, 1..50_u32, 0..i64::MAX).prop_map(
            |(lists, ends, mechanisms, blocks, seed)| {
                let (gap, wait, size, contexts, load) = lists;
                let mut words = vec!["doorbell".to_owned(), "ping".to_owned()];
                words.extend(mechanisms.into_iter().map(str::to_owned));
                words.extend([gap, wait, size, contexts, load].concat());
                words.extend(ends.iter().map(|word| (*word).to_owned()));
                let numbers =
                    ["--blocks".to_owned(), blocks.to_string(), "--seed".to_owned(), seed.to_string()];
                words.extend(numbers);
                words
            },
        )
    }

    /// The plan that a command line makes, unless it is refused.
    fn plan(words: &[String], machine: &Machine) -> Option<Plan> {
        let matches = crate::cli::command().try_get_matches_from(words).ok()?;
        let args = crate::cli::ping::Args::from_arg_matches(matches.subcommand()?.1).ok()?;
        let plan = crate::cli::experiment::Experiment::plan(&args, machine).ok()?;
        Some(args.run.loaded(plan, machine))
    }

    static MACHINE: std::sync::LazyLock<Machine> = std::sync::LazyLock::new(machine);

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
        #[test]
        fn flags_written_to_a_plan_file_and_read_back_give_the_same_plan(words in command_line(), json in any::<bool>()) {
            let machine = &*MACHINE;
            if let Some(plan) = plan(&words, machine) {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join(if json { "plan.json" } else { "plan.toml" });
                save(&plan, &path).unwrap();
                prop_assert_eq!(&read(&path, "ping", &machine.topology).unwrap(), &plan);
            }
        }
    }
}
