// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many nodes: what runs a verb on all, who fails, and one pair of files of all results.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::stage::{Said, Stage, data, write_program};

/// A folder of results of `nodes`, each with its verdict.
fn results(stage: &Stage, nodes: &[(&str, &str)]) -> PathBuf {
    let mut result = json_of(&PathBuf::from(data("ping")));
    // What they were held against is not at hand, so that their verdicts stand as they are written.
    result["plan"]["question"] =
        json!({"kind": "check", "baseline": {"file": "main", "started_at_unix_ns": 1}, "conditions": []});
    let folder = stage.path().join("results");
    fs::create_dir_all(&folder).unwrap();
    for (node, status) in nodes {
        result["name"] = json!(node);
        result["verdict"] = json!({"status": status, "reason": "p99.9 80 µs > 50 µs"});
        fs::write(folder.join(format!("{node}.json")), result.to_string()).unwrap();
    }
    folder
}

fn json_of(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

/// Changes the result of `node` in `folder`.
fn change(folder: &Path, node: &str, change: impl FnOnce(&mut Value)) {
    let path = folder.join(format!("{node}.json"));
    let mut result = json_of(&path);
    change(&mut result);
    fs::write(path, result.to_string()).unwrap();
}

/// What is said of the results in `folder`.
fn verdict(stage: &Stage, folder: &Path, more: &str) -> Said {
    stage.run(&format!("fleet verdict {} {more}", folder.display()))
}

#[test]
fn a_node_that_fails_fails_the_fleet_and_files_that_say_nothing_are_named() {
    let stage = Stage::new();
    let folder = results(&stage, &[("a", "passed"), ("b", "passed")]);
    assert_eq!(verdict(&stage, &folder, "").ended(0).all(), "PASS 2 nodes\n");

    fs::copy(folder.join("a.json"), folder.join("again.json")).unwrap();
    fs::write(folder.join("cut.json"), &fs::read(folder.join("a.json")).unwrap()[..1000]).unwrap();
    fs::write(folder.join("foreign.json"), "{\"jobs\": []}").unwrap();
    let text = verdict(&stage, &folder, "--details").ended(1).all();
    for named in ["again.json: the same run of a", "cut.json", "foreign.json", "PASS 2 nodes"] {
        assert!(text.contains(named), "{named}: {text}");
    }

    results(&stage, &[("c", "failed"), ("d", "inconclusive")]);
    let text = verdict(&stage, &folder, "").ended(3).all();
    assert!(text.starts_with("FAIL 1 of 4 nodes: c; 1 inconclusive\n"), "{text}");
    let told = verdict(&stage, &folder, "--format json").ended(3).json();
    assert_eq!(told["verdict"]["status"], "failed");
    assert_eq!(told["verdict"]["findings"].as_array().unwrap().len(), 7);
}

/// Of wake-ups that were longer than their limit what stood in a file was believed: "PASS".
#[test]
fn a_verdict_is_made_of_the_figures_and_an_open_one_leaves_the_fleet_open() {
    let stage = Stage::new();
    let folder = results(&stage, &[("a", "passed"), ("b", "inconclusive")]);
    let text = verdict(&stage, &folder, "").ended(4).all();
    assert!(text.starts_with("INCONCLUSIVE 1 of 2 nodes: b\n"), "{text}");
    results(&stage, &[("b", "passed")]);
    change(&folder, "a", |result| {
        result["plan"]["question"] =
            json!({"kind": "gate", "limit_ns": 1, "which": "longest", "confidence": 0.95});
    });
    let text = verdict(&stage, &folder, "").ended(3).all();
    assert!(text.starts_with("FAIL 1 of 2 nodes: a\n"), "{text}");
}

#[test]
fn the_fleets_page_has_a_square_for_every_node_and_a_page_for_those_to_look_at() {
    let stage = Stage::new();
    let folder = results(&stage, &[("a", "passed"), ("b<script>", "failed"), ("c", "inconclusive")]);
    let asked = stage.path().join("asked");
    fs::write(&asked, "a\nb<script>\nc\nd\n").unwrap();
    let pages = stage.path().join("pages");
    let [results, pages_to, nodes] = [&folder, &pages, &asked].map(|path| path.display());
    let report = format!("fleet report {results} -o {pages_to} --nodes {nodes}");
    let text = stage.run(&report).ended(0).all();
    assert!(text.contains("2 pages of nodes"), "{text}");
    let index = fs::read_to_string(pages.join("index.html")).unwrap();
    for part in [
        "FAIL  1 of 4 nodes",
        "a: passed",
        "c: inconclusive",
        "d: no result",
        "href=\"node-1.html\"",
        "href=\"node-2.html\"",
    ] {
        assert!(index.contains(part), "{part}: {index}");
    }
    assert!(index.contains("b&lt;script&gt;: failed"), "a node's name is no markup");
    let mut files: Vec<_> = fs::read_dir(&pages).unwrap().map(|file| file.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["index.html", "node-1.html", "node-2.html"]);
    stage.run(&format!("{report} --all")).ended(0);
    assert!(pages.join("node-0.html").exists());
}

#[test]
fn the_loop_over_ssh_gathers_what_each_node_measured_and_names_who_has_no_result() {
    let stage = Stage::new();
    // ssh that runs the command here; one node is not there.
    let bin = stage.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let ssh = bin.join("ssh");
    write_program(
        &ssh,
        "while [ \"$1\" = -o ]; do shift 2; done\n[ \"$1\" != gone ] || exit 255\nexec sh -c \"$2\"",
    );
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_doorbell"), bin.join("doorbell")).unwrap();
    let folder = stage.path().join("the results");
    // "PASS 2 nodes" of one that was dead: what it had measured another day lay there still.
    let old = results(&stage, &[("gone", "passed")]);
    fs::rename(old, &folder).unwrap();
    let order = ["fleet", "plan", "ssh", "n1", "root@n2", "gone", "--results", folder.to_str().unwrap()];
    let measured = "-- ping eventfd --gap 0 --count 50 --blocks 1";
    let words: Vec<&str> = order.into_iter().chain(measured.split(' ')).collect();
    let script = Said::by(&mut stage.doorbell(&words)).ended(0).out;
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).env("PATH", path).env("XDG_RUNTIME_DIR", stage.path());
    let text = Said::by(shell.env("XDG_STATE_HOME", stage.path())).all();
    assert!(text.contains("gone: no result"), "{text}");
    assert!(text.contains("of 3 nodes") && text.contains("No result of gone."), "{text}");
    let mut files: Vec<String> =
        fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    assert_eq!(files, ["n1.json", "root@n2.json"]);
    assert_eq!(json_of(&folder.join("n1.json"))["name"], "n1");
}

#[test]
fn what_slurm_gets_runs_each_node_whole_and_alone() {
    let stage = Stage::new();
    let words = ["fleet", "plan", "slurm", "--nodes", "40", "--results", "my results", "--", "gate", "--max"];
    let batch = Said::by(stage.doorbell(&words).arg("50us")).ended(0).out;
    for line in ["#SBATCH --nodes=40\n", "#SBATCH --exclusive\n", "--cpu-bind=none", "results='my results'\n"]
    {
        assert!(batch.contains(line), "{line}: {batch}");
    }
    let checked = Command::new("bash").args(["-n", "-c", &batch]).output().unwrap();
    assert!(checked.status.success(), "{batch}");
}

#[test]
fn names_that_would_be_options_or_break_a_line_are_refused() {
    let stage = Stage::new();
    for words in
        ["ssh a;b -- ping", "ssh a b a -- ping", "ssh a -- ping --output x", "slurm --nodes 0 -- ping"]
    {
        stage.run(&format!("fleet plan {words}")).ended(2);
    }
    let partition = ["fleet", "plan", "slurm", "--nodes", "2", "--partition", "a\n#SBATCH", "--", "ping"];
    Said::by(&mut stage.doorbell(&partition)).ended(2);
}

/// Its failure was hidden: what it said of another, later, stood for that one, and that it had said
/// nothing of itself was all there was to see.
#[test]
fn a_node_that_says_it_is_another_is_not_heard_and_hides_no_failure() {
    let stage = Stage::new();
    let folder = results(&stage, &[("good", "passed"), ("bad", "failed")]);
    let nodes = stage.path().join("nodes");
    fs::write(&nodes, "good bad").unwrap();
    change(&folder, "bad", |result| {
        result["name"] = "good".into();
        for key in ["started_at_unix_ns", "finished_at_unix_ns"] {
            result[key] = (result[key].as_u64().unwrap() + 1_000_000_000).into();
        }
    });
    let text = verdict(&stage, &folder, &format!("--details --nodes {}", nodes.display())).ended(1).all();
    assert!(text.contains("it was saved as the result of bad, and says that it is of good"), "{text}");
}

/// A pipe in the folder had kept the verdict waiting for ever: each node may write there.
#[test]
fn what_is_no_regular_file_is_named_and_not_waited_for() {
    let stage = Stage::new();
    let folder = results(&stage, &[("a", "passed")]);
    let made = Command::new("mkfifo").arg(folder.join("pipe.json")).status().unwrap();
    assert!(made.success());
    fs::create_dir(folder.join("more")).unwrap();
    fs::rename(folder.join("a.json"), folder.join("a.JSON")).unwrap();
    let text = verdict(&stage, &folder, "--details").ended(1).all();
    for told in ["PASS 1 node\n", "it is a named pipe", "1 in all, the first", "more"] {
        assert!(text.contains(told), "{told}: {text}");
    }
}

/// "PASS 1 node" of a list that was empty, because what should have written it was not there.
#[test]
fn an_empty_list_of_nodes_is_wrong_usage_and_who_is_not_in_a_list_is_not_counted() {
    let stage = Stage::new();
    let folder = results(&stage, &[("a", "passed"), ("b", "failed")]);
    let asked = stage.path().join("asked");
    let of_those = |nodes: &str| {
        fs::write(&asked, nodes).unwrap();
        verdict(&stage, &folder, &format!("--nodes {}", asked.display()))
    };
    let text = of_those("\n").ended(2).all();
    assert!(text.contains("no node is named there"), "{text}");
    assert_eq!(of_those("a\n").ended(0).all(), "PASS 1 node\nNot asked, and not counted: b.\n");
}

/// A name of 100,000 letters had made the verdict of two files 300 kB, and one without a name had
/// stood for all others without.
#[test]
fn a_result_of_no_node_is_named_and_shown_in_few_words() {
    let stage = Stage::new();
    let folder = results(&stage, &[("a", "passed")]);
    let mut result = json_of(&folder.join("a.json"));
    result["name"] = json!("x".repeat(100_000));
    fs::write(folder.join("long.json"), result.to_string()).unwrap();
    result["name"] = json!("");
    result["machine"]["host"] = Value::Null;
    fs::write(folder.join("nameless.json"), result.to_string()).unwrap();
    result["name"] = json!("clock");
    result["started_at_unix_ns"] = json!(u64::MAX);
    result["finished_at_unix_ns"] = json!(u64::MAX);
    fs::write(folder.join("clock.json"), result.to_string()).unwrap();
    let text = verdict(&stage, &folder, "--details").ended(1).all();
    for told in ["PASS 1 node\n", "100000 bytes", "nameless.json: it names neither", "which is yet to come"] {
        assert!(text.contains(told), "{told}: {text}");
    }
    assert!(text.len() < 2000, "{text}");
}

/// `--plan '$HOME/plan.toml'` had been read by the shell that runs
/// the loop, and a command in it been run there.
#[test]
fn no_word_of_the_verb_is_read_by_a_shell_on_its_way_to_the_node() {
    let stage = Stage::new();
    let here = stage.path().display();
    let program = |name: &str, script: &str| write_program(&stage.path().join(name), script);
    program("ssh", "while [ \"$1\" = -o ]; do shift 2; done\nexec sh -c \"$2\"");
    program("doorbell", &format!("[ \"$1\" = fleet ] || printf '%s\\n' \"$@\" >'{here}/words'"));
    let plan = format!("$(touch '{here}/smuggled')`touch '{here}/smuggled'`\"$HOME\\n'1");
    let words = ["fleet", "plan", "ssh", "n1", "--", "ping", "--plan", &plan];
    let script = Said::by(&mut stage.doorbell(&words)).ended(0).out;
    let path = format!("{here}:{}", std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).env("PATH", path).current_dir(stage.path()).output().unwrap();
    let words = fs::read_to_string(stage.path().join("words")).unwrap();
    assert_eq!(words, format!("ping\n--plan\n{plan}\n--quiet\n--name\nn1\n--output\n-\n"), "{script}");
    assert!(!stage.path().join("smuggled").exists(), "{script}");
}
