// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bad input, low limits and missing permissions: a message that says
//! what to do, the right exit code, nothing lost.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

use crate::stage::{Stage, copy_of_doorbell};

/// One short trial.
const SHORT: [&str; 8] = ["ping", "futex", "--gap", "0", "--time", "2ms", "--blocks", "1"];

fn run(stage: &Stage, args: &[&str]) -> Output {
    stage.doorbell(args).output().unwrap()
}

fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn everything(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &complaint(output)
}

/// Whether this user may mount in a namespace of its own; says so where not, and why.
pub(crate) fn may_mount() -> bool {
    let tried = Command::new("unshare").args(["--mount", "sh", "-c", "mount -t tmpfs none /mnt"]).output();
    let lack = match tried {
        Ok(output) if output.status.success() => return true,
        Ok(output) => complaint(&output),
        Err(error) => error.to_string(),
    };
    doorbell_skipped::skip(format_args!("no mount can be made here: {}", lack.trim()));
    false
}

/// The command under a shell prelude, for limits and mounts that only a shell sets conveniently.
fn under(stage: &Stage, program: &str, prelude: &str, args: &[&str]) -> Command {
    let doorbell = stage.doorbell(args);
    let mut command = Command::new(program);
    for (name, value) in doorbell.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let script = format!("{prelude}\nexec \"$0\" \"$@\"");
    if program == "unshare" {
        command.args(["--mount", "sh"]);
    }
    command.args(["-c", &script]).arg(doorbell.get_program()).args(args);
    command
}

#[test]
fn usage_errors_exit_with_two_and_say_what_would_have_been_right() {
    let stage = Stage::new();
    for (args, expected) in [
        (&["ping", "futx"][..], "did you mean 'futex'?"),
        (&["ping", "eventfdepoll"], "did you mean 'eventfd-"),
        (&["ping", "--gap", "10"], "has no unit"),
        (&["ping", "--gap", "99999h"], "out of range"),
        (&["ping", "--gap", "-1ms"], "'-1ms' is negative"),
        (&["ping", "--wait", "timeout=0"], "never waits"),
        (&["ping", "--wait", "nap"], "is no way to wait"),
        (&["ping", "--placement", "next-door"], "there are same-core"),
        (&["ping", "--cpus", "0"], "takes two CPUs"),
        (&["ping", "--cpus", "0,4095"], "there is no CPU 4095"),
        (&["ping", "--cpus", "0,1", "--placement", "same-core"], "cannot be used with"),
        (&["ping", "--count", "0"], "0 is not in 1.."),
        (&["ping", "--blocks", "0"], "0 is not in 1.."),
        (
            &["ping", "spin", "null", "--placement", "same-core", "--timing", "blocked"],
            "nothing is left to run",
        ),
        (&["ping", "--time", "0"], "nothing can be measured in no time"),
        (&["switch", "--time", "0ms"], "nothing can be measured in no time"),
        (&["--blocks", "3", "list"], "--blocks stands before 'list'"),
        (&["--json", "--quiet", "doctor"], "--json stands before 'doctor'"),
        (&["-o", "x.json", "ping"], "--output stands before 'ping'"),
        (&["explain", "bi-modal"], "did you mean 'bimodal'?"),
        (&["pong"], "unrecognized subcommand"),
        (&["man", "pong"], "no verb is called 'pong'"),
        (
            &["fleet", "node01.json", "node02.json"],
            "`doorbell fleet verdict node01.json` says which nodes fail",
        ),
        (&["fleet", "verdct", "results"], "did you mean 'verdict'?"),
    ] {
        let output = run(&stage, args);
        let text = complaint(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.contains(expected), "{args:?}: {text}");
    }
}

#[test]
fn a_name_that_resembles_none_is_refused_without_a_guess() {
    let stage = Stage::new();
    for args in [&["ping", "rendezvous"][..], &["explain", "rendezvous"], &["switch", "rendezvous"]] {
        let output = run(&stage, args);
        let text = complaint(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("'rendezvous'") && !text.contains("did you mean"), "{text}");
    }
}

#[test]
fn what_concerns_the_terminal_may_stand_on_either_side_of_the_verb() {
    let stage = Stage::new();
    for args in [["--quiet", "list"], ["list", "--quiet"]] {
        assert!(run(&stage, &args).status.success(), "{args:?}");
    }
}

#[test]
fn a_mechanism_named_twice_is_measured_once() {
    let stage = Stage::new();
    let subjects = |args: &[&str]| {
        let output = run(&stage, args);
        let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let configurations = plan["configurations"].as_array().unwrap();
        configurations
            .iter()
            .map(|configuration| configuration["subject"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        subjects(&["ping", "futex", "futex", "--gap", "0,0", "--placement", "unpinned", "--dry-run"]),
        ["futex", "null"]
    );
    let pairs = |names: &[&str]| subjects(&[&["pairs"], names, &["--dry-run"]].concat());
    if std::thread::available_parallelism().unwrap().get() > 1 {
        assert_eq!(pairs(&["futex", "futex"]), pairs(&["futex"]));
    }
}

/// That the result was not written to `target` for lack of space, and
/// that it is whole where the message says.
fn is_rescued(output: &Output, target: &str) {
    let text = complaint(output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(target) && text.contains("free some space"), "{text}");
    // The tables were printed all the same.
    assert!(String::from_utf8_lossy(&output.stdout).contains("futex"));
    let rescued = text.split("saved as ").nth(1).expect(&text).trim();
    let result: serde_json::Value = serde_json::from_slice(&std::fs::read(rescued).unwrap()).unwrap();
    std::fs::remove_file(rescued).unwrap();
    assert_eq!(
        result["records"].as_array().unwrap().len(),
        result["plan"]["configurations"].as_array().unwrap().len()
    );
}

#[test]
fn a_full_device_loses_nothing_and_says_where_the_result_is() {
    let stage = Stage::new();
    let args = [&SHORT[..], &["--output", "/dev/full"]].concat();
    is_rescued(&stage.doorbell(&args).env("TMPDIR", stage.path()).output().unwrap(), "/dev/full");
}

/// The limit's signal once ended the command together with what it had measured.
#[test]
fn a_limit_on_the_size_of_files_leaves_the_result_on_standard_output() {
    let stage = Stage::new();
    let target = stage.path().join("result.json");
    let args = [&SHORT[..], &["--output", target.to_str().unwrap()]].concat();
    let output = under(&stage, "sh", "ulimit -f 1", &args).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", complaint(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    let result = text.lines().find(|line| line.starts_with('{')).expect(&text);
    let result: serde_json::Value = serde_json::from_str(result).unwrap();
    assert!(!result["records"].as_array().unwrap().is_empty());
}

#[test]
fn a_standard_error_that_is_full_is_no_panic() {
    let stage = Stage::new();
    let path = |name: &str| stage.path().join(name).to_str().unwrap().to_owned();
    let (result, page) = (path("result.json"), path("page.html"));
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for args in [[&SHORT[..], &["-o", &result]].concat(), vec!["report", &result, "-o", &page]] {
        let status =
            stage.doorbell(&args).stderr(full()).stdout(std::process::Stdio::null()).status().unwrap();
        assert_eq!(status.code(), Some(0), "{args:?}");
    }
    assert!(std::fs::read_to_string(&page).unwrap().contains("futex"));
}

#[test]
fn standard_output_that_is_full_is_no_panic() {
    let stage = Stage::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = stage.doorbell(&SHORT).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", complaint(&output));
    assert!(!complaint(&output).contains("panicked"), "{}", complaint(&output));
}

/// A broken limit became status 1 where what it said could not be written.
#[test]
fn a_verdict_stands_though_it_cannot_be_written_and_why_is_told() {
    let stage = Stage::new();
    let data = |name: &str| format!("{}/tests/data/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let (survey, ping, again) = (data("survey"), data("ping"), data("ping-again"));
    for (args, status) in [
        (&["gate", "--max", "1ns", "--from", &survey][..], 3),
        (&["check", "--baseline", &ping, "--from", &again, "--fail-if", "max>1ns"], 3),
        (&["show", &ping], 1),
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = stage.doorbell(args).stdout(full).output().unwrap();
        let text = complaint(&output);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {text}");
        assert!(text.contains("cannot write to standard output: No space left"), "{args:?}: {text}");
    }
}

/// "Broken pipe", status 1, and a copy among the temporary files.
#[test]
fn a_reader_that_left_is_no_failure_wherever_it_was() {
    let stage = Stage::new();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/survey.json");
    let temporary = stage.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let left = |args: &[&str], status: i32| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = stage.doorbell(args).env("TMPDIR", &temporary).stdout(writer).output().unwrap();
        let text = complaint(&output);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {text}");
        assert!(!text.to_lowercase().contains("pipe"), "{args:?}: {text}");
    };
    left(&["report", data, "-o", "/dev/stdout"], 0);
    left(&["export", "csv", data, "-o", "/dev/stdout"], 0);
    left(&[&SHORT[..], &["-o", "/dev/stdout"]].concat(), 0);
    // It is where it would have gone without being asked for.
    let shown = run(&stage, &["show"]);
    assert!(everything(&shown).contains("futex"), "{}", everything(&shown));
    let copies = fs::read_dir(&temporary).unwrap().flatten().filter(|entry| entry.path().is_file());
    assert_eq!(copies.count(), 0);
    // A page is longer than a pipe holds: its writer meets the end of the reader.
    let fifo = stage.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || std::io::Read::read(&mut fs::File::open(fifo).unwrap(), &mut [0]).unwrap()
    });
    left(&["report", data, "-o", fifo.to_str().unwrap()], 0);
    assert_eq!(reader.join().unwrap(), 1);
}

/// It overflowed its stack before it had read its arguments.
#[test]
fn a_small_stack_is_enough() {
    let stage = Stage::new();
    for args in [&["--version"][..], &SHORT, &["survey", "--dry-run"]] {
        let output = under(&stage, "sh", "ulimit -s 256", args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {:?} {}", output.status, complaint(&output));
    }
}

/// What `ssh` and others share with this command they may have made
/// so: "Resource temporarily unavailable".
#[test]
fn a_standard_output_that_does_not_block_is_waited_for() {
    use std::io::Read as _;
    let stage = Stage::new();
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/survey.json");
    let (mut reader, writer) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    let mut command = stage.doorbell(&["report", data, "-o", "-"]);
    let mut child = command.stdout(writer).spawn().unwrap();
    // Its own end of the pipe.
    drop(command);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(text.len() > 1 << 16 && text.trim_end().ends_with("</html>"), "{} bytes", text.len());
}

/// Each verb that reads a text said "no text" or "no JSON" of what an editor had saved otherwise.
#[test]
fn a_text_in_another_encoding_is_named_as_such() {
    let stage = Stage::new();
    let path = stage.path().join("text");
    let file = path.to_str().unwrap();
    let utf16: Vec<u8> = "\u{feff}{}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (bytes, what) in [(&utf16[..], "UTF-16"), (b"\xef\xbb\xbf{}", "begins with a byte-order mark")] {
        fs::write(&path, bytes).unwrap();
        for args in [
            &["io", "--import", file][..],
            &["ping", "--plan", file],
            &["pick", "--arrivals", file],
            &["fleet", "verdict", file, "--nodes", file],
            &["show", file],
        ] {
            let output = run(&stage, args);
            assert!(complaint(&output).contains(what), "{args:?}: {}", everything(&output));
        }
    }
}

/// "No such file or directory", of what was not said.
#[test]
fn folders_that_cannot_be_made_are_named_with_the_cure_before_anything_is_measured() {
    let stage = Stage::new();
    let file = stage.path().join("file");
    fs::write(&file, "").unwrap();
    let none = file.join("none");
    let home = |args: &[&str]| {
        let mut command = stage.doorbell(args);
        command.env("HOME", &none).env("TMPDIR", &none);
        for variable in ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"] {
            command.env_remove(variable);
        }
        complaint(&command.output().unwrap())
    };
    let text = home(&SHORT);
    assert!(text.contains(none.to_str().unwrap()) && text.contains("set TMPDIR"), "{text}");
    let text = home(&["tune", "--blocks", "1"]);
    assert!(text.contains(none.to_str().unwrap()) && text.contains("--profile"), "{text}");
}

#[test]
fn no_permission_for_real_time_priority_becomes_a_record_with_the_cure() {
    let stage = Stage::new();
    std::fs::set_permissions(stage.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let mut args = SHORT.to_vec();
    args.extend(["--scheduler", "fifo", "--json"]);
    // The command where an ordinary user may run it from: the build folder may be private to root.
    let copy = stage.path().join("doorbell-copy");
    copy_of_doorbell(&copy);
    let mut command = Command::new(&copy);
    command
        .args(&args)
        .env("XDG_RUNTIME_DIR", stage.path())
        .env("XDG_STATE_HOME", stage.path())
        .uid(65534)
        .gid(65534);
    let output = match command.output() {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            doorbell_skipped::skip(format_args!(
                "this user cannot become another without permissions: {error}"
            ));
            return;
        }
        output => output.unwrap(),
    };
    let result: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", complaint(&output)));
    let cause = result["records"][0]["outcome"]["cause"].as_str().unwrap_or_default().to_owned();
    assert!(cause.contains("SCHED_FIFO") && cause.contains("CAP_SYS_NICE"), "{cause}");
}

#[test]
fn few_descriptors_are_a_message_and_not_a_hang() {
    let stage = Stage::new();
    let output = under(&stage, "sh", "ulimit -n 5", &SHORT).output().unwrap();
    let text = everything(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("Too many open files") && !text.contains("panicked"), "{text}");
}

#[test]
fn a_container_that_hides_proc_and_sys_still_measures() {
    if !may_mount() {
        return;
    }
    let stage = Stage::new();
    let hide = "mount -t tmpfs none /sys
        for file in stat interrupts cpuinfo loadavg pressure/cpu sysvipc/sem; do
            [ ! -e /proc/$file ] || mount --bind /dev/null /proc/$file
        done";
    let mut args = SHORT.to_vec();
    args.push("--json");
    let output = under(&stage, "unshare", hide, &args).output().unwrap();
    assert!(output.status.success(), "{}", complaint(&output));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let done = result["records"].as_array().unwrap().iter().any(|record| record["outcome"]["kind"] == "done");
    assert!(done, "{}", result["records"]);
}

#[test]
fn a_machine_without_proc_gets_a_message_that_names_it() {
    if !may_mount() {
        return;
    }
    let stage = Stage::new();
    let output = under(&stage, "unshare", "mount -t tmpfs none /proc", &SHORT).output().unwrap();
    let text = everything(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("/proc") && !text.contains("panicked"), "{text}");
    // It once called that machine fit.
    let output = under(&stage, "unshare", "mount -t tmpfs none /proc", &["doctor"]).output().unwrap();
    let text = everything(&output);
    assert_eq!(output.status.code(), Some(4), "{text}");
    assert!(text.contains("/proc/self/exe cannot be executed"), "{text}");
}

/// The exit status was 0, for the harness itself could be measured.
#[test]
fn a_run_that_measures_nothing_it_was_asked_for_ends_with_one_and_says_so() {
    let stage = Stage::new();
    let args =
        ["ping", "all", "--gap", "0", "--count", "10", "--blocks", "1", "--placement", "unpinned", "-q"];
    let output = under(&stage, "sh", "ulimit -n 9", &args).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", everything(&output));
    assert!(complaint(&output).contains("nothing that was asked for was measured"), "{}", complaint(&output));
}

/// `HOME=/` of an ordinary user stopped every run, those with `--json` too.
#[test]
fn where_home_cannot_be_written_a_result_goes_where_it_goes_without_one() {
    let stage = Stage::new();
    let home = |args: &[&str]| {
        let mut command = stage.doorbell(args);
        command.env_remove("XDG_STATE_HOME").env("HOME", "/proc/none").env("TMPDIR", stage.path());
        command
    };
    let output = home(&SHORT).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", everything(&output));
    let uid = rustix::process::geteuid().as_raw();
    let folder = stage.path().join(format!("doorbell-results-{uid}"));
    assert!(complaint(&output).contains(folder.to_str().unwrap()), "{}", complaint(&output));
    assert_eq!(home(&["show"]).output().unwrap().status.code(), Some(0));
    // With --json not even that is needed.
    let output = home(&[&SHORT[..], &["--json"]].concat()).env("TMPDIR", "/proc/none").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", everything(&output));
    assert!(serde_json::from_slice::<serde_json::Value>(&output.stdout).is_ok());
}

/// `report -o r1.json r2.json` made a page of the first result, and
/// `export csv r.json -o r.json` a table.
#[test]
fn no_page_table_or_plan_takes_the_place_of_a_result() {
    let stage = Stage::new();
    let path = |name: &str| stage.path().join(name).to_str().unwrap().to_owned();
    let (one, other, odd) = (path("one.json"), path("other.json"), path("odd.json"));
    for result in [&one, &other] {
        assert!(stage.doorbell(&[&SHORT[..], &["-o", result]].concat()).output().unwrap().status.success());
    }
    fs::write(&odd, "{}").unwrap();
    let before = fs::read(&one).unwrap();
    for args in [
        &["report", "-o", &one, &other][..],
        &["report", &one, "-o", &one],
        &["export", "csv", &one, "-o", &one],
        &["ping", "--save-plan", &one],
        &["model", "bell", "--hazard", "B1", "--svg", &one],
        &["check", "--baseline", &one, "-o", &one],
    ] {
        let output = stage.doorbell(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", everything(&output));
        let said = complaint(&output);
        assert!(said.contains("is a result") || said.contains("is the baseline"), "{said}");
        assert_eq!(fs::read(&one).unwrap(), before, "{args:?}");
    }
    // Whatever else lies there is replaced, as ever.
    assert!(stage.doorbell(&["export", "csv", &one, "-o", &odd]).output().unwrap().status.success());
}

/// It replaced the good one by a run without figures.
#[test]
fn a_run_without_figures_replaces_no_baseline() {
    let stage = Stage::new();
    let kept = stage.path().join("doorbell/baselines/main.json");
    let good = stage.doorbell(&[&SHORT[..], &["--save-baseline", "main"]].concat()).output().unwrap();
    assert!(good.status.success(), "{}", complaint(&good));
    let before = fs::read(&kept).unwrap();
    // With so few descriptors no trial of it can be run.
    let output = under(
        &stage,
        "sh",
        "ulimit -n 9",
        &[
            "ping",
            "all",
            "--gap",
            "0",
            "--count",
            "10",
            "--blocks",
            "1",
            "--placement",
            "unpinned",
            "--save-baseline",
            "main",
        ],
    )
    .output()
    .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", everything(&output));
    assert!(complaint(&output).contains("not kept as baseline main"), "{}", complaint(&output));
    assert_eq!(fs::read(&kept).unwrap(), before);
}

#[test]
fn a_plan_comes_on_standard_input_and_a_byte_order_mark_is_named() {
    let stage = Stage::new();
    let plan =
        run(&stage, &["ping", "futex", "--gap", "0", "--count", "10", "--blocks", "1", "--save-plan", "-"]);
    let with = |text: &[u8]| {
        let path = stage.path().join("plan.toml");
        fs::write(&path, text).unwrap();
        let file = fs::File::open(&path).unwrap();
        stage.doorbell(&["ping", "--plan", "-", "--dry-run"]).stdin(file).output().unwrap()
    };
    let output = with(&plan.stdout);
    assert!(output.status.success(), "{}", complaint(&output));
    assert!(everything(&output).contains("\"subject\": \"futex\""), "{}", everything(&output));
    let output = with(&[b"\xef\xbb\xbf", &plan.stdout[..]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", everything(&output));
    assert!(complaint(&output).contains("byte-order mark"), "{}", complaint(&output));
}

/// "start it with `taskset -c 1,…`".
#[test]
fn advice_about_cpus_that_are_not_allowed_is_complete() {
    let stage = Stage::new();
    let args = ["ping", "futex", "--cpus", "0,1", "--dry-run"];
    let output = under(&stage, "sh", "taskset -pc 0 $$ >/dev/null", &args).output().unwrap();
    if !fs::read_to_string("/sys/devices/system/cpu/online").is_ok_and(|online| online.trim() != "0") {
        return doorbell_skipped::skip("this machine has one CPU");
    }
    assert_eq!(output.status.code(), Some(2), "{}", everything(&output));
    assert!(complaint(&output).contains("`taskset -c 0,1 doorbell …`"), "{}", complaint(&output));
}

/// The words of the command are stored, and one that is not UTF-8 was a panic.
#[test]
fn a_path_that_is_not_utf8_is_written_to_or_refused_and_never_a_panic() {
    let stage = Stage::new();
    let odd = stage.path().join(std::ffi::OsStr::from_bytes(b"odd-\xff"));
    let output = stage.doorbell(&SHORT).arg("-o").arg(&odd).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", everything(&output));
    assert!(fs::read_to_string(&odd).unwrap().contains("\"partial\":false"));
    fs::remove_file(&odd).unwrap();
    // The run's folder, too, which every trial is told.
    fs::create_dir(&odd).unwrap();
    let output = stage.doorbell(&SHORT).env("XDG_RUNTIME_DIR", &odd).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", everything(&output));
    // It would stand in the result, which has no bytes.
    let output = stage.doorbell(&["io", "sync", "--dir"]).arg(&odd).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", everything(&output));
}

#[test]
fn help_completions_and_manual_come_from_one_definition() {
    let stage = Stage::new();
    let help = run(&stage, &["ping", "--help"]);
    let page = run(&stage, &["man", "ping"]);
    let completions = run(&stage, &["completions", "bash"]);
    for (output, flag) in [(&help, "--wait"), (&page, "\\-\\-wait"), (&completions, "--wait")] {
        assert!(output.status.success());
        assert!(String::from_utf8_lossy(&output.stdout).contains(flag));
    }
}

#[test]
fn a_dry_run_prints_the_plan_and_measures_nothing() {
    let stage = Stage::new();
    let mut args = SHORT.to_vec();
    args.extend(["--dry-run", "--seed", "7"]);
    let output = run(&stage, &args);
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(plan["seed"], 7);
    assert_eq!(plan["configurations"][0]["subject"], "futex");
    assert!(!stage.path().join("doorbell").exists());
}

/// It panicked where a second thread could not be had, and the first
/// waited for that for ever, deaf to Ctrl-C.
#[test]
fn where_two_threads_cannot_be_had_nothing_panics_and_nothing_waits_for_them() {
    let stage = Stage::new();
    // The folder of results is called `doorbell`.
    let program = stage.path().join("program");
    copy_of_doorbell(&program);
    fs::set_permissions(stage.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // No limit holds the superuser: then it is a user with no other
    // process, who may have one thread more.
    let limits: &[&str] = if rustix::process::geteuid().is_root() {
        &["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "prlimit", "--nproc=2:2"]
    } else {
        &["prlimit", "--nproc=1:1"]
    };
    let threads = "ping futex --contexts threads --gap 0 --count 10 --blocks 1 --details";
    let threads: Vec<&str> = threads.split(' ').collect();
    for (verb, said) in [(&["doctor"][..], ""), (&threads[..], "two threads are needed")] {
        let doorbell = stage.doorbell(verb);
        let mut command = Command::new("timeout");
        // Only what hangs is killed by it.
        command.args(["-s", "KILL", "600"]).args(limits).arg(&program).args(verb);
        command.envs(doorbell.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = command.stdin(std::process::Stdio::null()).output().unwrap();
        let text = everything(&output);
        assert!(matches!(output.status.code(), Some(0 | 1 | 4)), "{verb:?}: {} {text}", output.status);
        assert!(!text.contains("panicked") && text.contains(said), "{verb:?}: {text}");
    }
}
