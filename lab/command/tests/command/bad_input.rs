// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bad input, low limits and missing permissions: a message that says
//! what to do, the right exit code, nothing lost.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::stage::{Said, Stage, after, copy_of_doorbell, data, with};

/// One short trial.
const SHORT: &str = "ping futex --gap 0 --time 2ms --blocks 1";

/// One of every mechanism.
const ALL: &str = "ping all --gap 0 --count 10 --blocks 1 --placement unpinned";

/// Whether this user may mount in a namespace of its own; says so where not, and why.
pub(crate) fn may_mount() -> bool {
    let tried = Command::new("unshare").args(["--mount", "sh", "-c", "mount -t tmpfs none /mnt"]).output();
    let lack = match tried {
        Ok(output) if output.status.success() => return true,
        Ok(output) => Said::from(output).err,
        Err(error) => error.to_string(),
    };
    doorbell_skipped::skip(format_args!("no mount can be made here: {}", lack.trim()));
    false
}

/// What the command says under limits that a shell sets.
fn under(stage: &Stage, limits: &str, words: &str) -> Said {
    Said::by(&mut after(limits, &stage.words(words)))
}

/// What it says where these mounts are made first.
fn mounted(stage: &Stage, mounts: &str, words: &str) -> Said {
    let mut outer = Command::new("unshare");
    outer.args(["--mount", "sh", "-c", &format!("{mounts}\nexec \"$0\" \"$@\"")]);
    Said::by(&mut with(outer, &stage.words(words)))
}

fn full() -> fs::File {
    fs::OpenOptions::new().write(true).open("/dev/full").unwrap()
}

#[test]
fn usage_errors_exit_with_two_and_say_what_would_have_been_right() {
    let stage = Stage::new();
    for (words, expected) in [
        ("ping futx", "did you mean 'futex'?"),
        ("ping eventfdepoll", "did you mean 'eventfd-"),
        ("ping --gap 10", "has no unit"),
        ("ping --gap 99999h", "out of range"),
        ("ping --gap -1ms", "'-1ms' is negative"),
        ("ping --wait timeout=0", "never waits"),
        ("ping --wait nap", "is no way to wait"),
        ("ping --placement next-door", "there are same-core"),
        ("ping --cpus 0", "takes two CPUs"),
        ("ping --cpus 0,4095", "there is no CPU 4095"),
        ("ping --cpus 0,1 --placement same-core", "cannot be used with"),
        ("ping --count 0", "0 is not in 1.."),
        ("ping --blocks 0", "0 is not in 1.."),
        ("ping spin null --placement same-core --timing blocked", "nothing is left to run"),
        ("ping --time 0", "nothing can be measured in no time"),
        ("switch --time 0ms", "nothing can be measured in no time"),
        ("--blocks 3 list", "--blocks stands before 'list'"),
        ("--json --quiet doctor", "--json stands before 'doctor'"),
        ("-o x.json ping", "--output stands before 'ping'"),
        ("explain bi-modal", "did you mean 'bimodal'?"),
        ("pong", "unrecognized subcommand"),
        ("man pong", "no verb is called 'pong'"),
        ("fleet node01.json node02.json", "`doorbell fleet verdict node01.json` says which nodes fail"),
        ("fleet verdct results", "did you mean 'verdict'?"),
    ] {
        let said = stage.run(words).ended(2).err;
        assert!(said.contains(expected), "{words}: {said}");
    }
    // Of a name that resembles none nothing is guessed.
    for verb in ["ping", "explain", "switch"] {
        let said = stage.run(&format!("{verb} rendezvous")).ended(2).err;
        assert!(said.contains("'rendezvous'") && !said.contains("did you mean"), "{said}");
    }
    // What concerns the terminal may stand on either side of the verb.
    for words in ["--quiet list", "list --quiet"] {
        stage.run(words).ended(0);
    }
}

#[test]
fn a_mechanism_named_twice_is_measured_once() {
    let stage = Stage::new();
    let subjects = |words: &str| {
        let plan = stage.run(&format!("{words} --dry-run")).json();
        let configurations = plan["configurations"].as_array().unwrap();
        configurations.iter().map(|one| one["subject"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(subjects("ping futex futex --gap 0,0 --placement unpinned"), ["futex", "null"]);
    if std::thread::available_parallelism().unwrap().get() > 1 {
        assert_eq!(subjects("pairs futex futex"), subjects("pairs futex"));
    }
}

#[test]
fn a_full_device_loses_nothing_and_says_where_the_result_is() {
    let stage = Stage::new();
    let mut command = stage.words(&format!("{SHORT} --output /dev/full"));
    let said = Said::by(command.env("TMPDIR", stage.path())).ended(1);
    assert!(said.err.contains("/dev/full") && said.err.contains("free some space"), "{}", said.err);
    // The tables were printed all the same.
    assert!(said.out.contains("futex"));
    let rescued = said.err.split("saved as ").nth(1).expect(&said.err).trim();
    let result: serde_json::Value = serde_json::from_slice(&fs::read(rescued).unwrap()).unwrap();
    let number = |list: &serde_json::Value| list.as_array().unwrap().len();
    assert_eq!(number(&result["records"]), number(&result["plan"]["configurations"]));
}

/// The limit's signal once ended the command together with what it had measured.
#[test]
fn a_limit_on_the_size_of_files_leaves_the_result_on_standard_output() {
    let stage = Stage::new();
    let target = stage.file("result.json");
    let said = under(&stage, "ulimit -f 1", &format!("{SHORT} --output {target}")).ended(1);
    let result = said.out.lines().find(|line| line.starts_with('{')).expect(&said.out);
    let result: serde_json::Value = serde_json::from_str(result).unwrap();
    assert!(!result["records"].as_array().unwrap().is_empty());
}

/// A broken limit became status 1 where what it said could not be written.
#[test]
fn a_standard_output_or_error_that_is_full_is_no_panic_and_a_verdict_stands_all_the_same() {
    let stage = Stage::new();
    let [result, page] = ["result.json", "page.html"].map(|name| stage.file(name));
    for words in [format!("{SHORT} -o {result}"), format!("report {result} -o {page}")] {
        Said::by(stage.words(&words).stderr(full())).ended(0);
    }
    assert!(fs::read_to_string(&page).unwrap().contains("futex"));
    let [survey, ping, again] = ["survey", "ping", "ping-again"].map(data);
    for (words, status) in [
        (SHORT.to_owned(), 1),
        (format!("gate --max 1ns --from {survey}"), 3),
        (format!("check --baseline {ping} --from {again} --fail-if max>1ns"), 3),
        (format!("show {ping}"), 1),
    ] {
        let said = Said::by(stage.words(&words).stdout(full())).ended(status).err;
        assert!(said.contains("cannot write to standard output: No space left"), "{words}: {said}");
    }
}

/// "Broken pipe", status 1, and a copy among the temporary files.
#[test]
fn a_reader_that_left_is_no_failure_wherever_it_was() {
    let stage = Stage::new();
    let (survey, temporary) = (data("survey"), stage.path().join("temporary"));
    fs::create_dir(&temporary).unwrap();
    let left = |words: &str| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let said = Said::by(stage.words(words).env("TMPDIR", &temporary).stdout(writer)).ended(0).err;
        assert!(!said.to_lowercase().contains("pipe"), "{words}: {said}");
    };
    left(&format!("report {survey} -o /dev/stdout"));
    left(&format!("export csv {survey} -o /dev/stdout"));
    left(&format!("{SHORT} -o /dev/stdout"));
    // It is where it would have gone without being asked for.
    let shown = stage.run("show").all();
    assert!(shown.contains("futex"), "{shown}");
    let copies = fs::read_dir(&temporary).unwrap().flatten().filter(|entry| entry.path().is_file());
    assert_eq!(copies.count(), 0);
    // A page is longer than a pipe holds: its writer meets the end of the reader.
    let fifo = stage.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || std::io::Read::read(&mut fs::File::open(fifo).unwrap(), &mut [0]).unwrap()
    });
    left(&format!("report {survey} -o {}", fifo.display()));
    assert_eq!(reader.join().unwrap(), 1);
}

/// What `ssh` and others share with this command they may have made
/// so: "Resource temporarily unavailable".
#[test]
fn a_standard_output_that_does_not_block_is_waited_for() {
    use std::io::Read as _;
    let stage = Stage::new();
    let (mut reader, writer) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    let mut command = stage.words(&format!("report {} -o -", data("survey")));
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
    let file = stage.file("text");
    let utf16: Vec<u8> = "\u{feff}{}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (bytes, what) in [(&utf16[..], "UTF-16"), (b"\xef\xbb\xbf{}", "begins with a byte-order mark")] {
        fs::write(&file, bytes).unwrap();
        for words in ["io --import", "ping --plan", "pick --arrivals", "fleet verdict x --nodes", "show"] {
            let said = stage.run(&format!("{words} {file}")).all();
            assert!(said.contains(what), "{words}: {said}");
        }
    }
}

/// "No such file or directory", of what was not said.
#[test]
fn folders_that_cannot_be_made_are_named_with_the_cure_before_anything_is_measured() {
    let stage = Stage::new();
    fs::write(stage.path().join("file"), "").unwrap();
    let none = stage.file("file/none");
    for (words, cure) in [(SHORT, "set TMPDIR"), ("tune --blocks 1", "--profile")] {
        let mut command = stage.words(words);
        command.env("HOME", &none).env("TMPDIR", &none);
        for variable in ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"] {
            command.env_remove(variable);
        }
        let said = Said::by(&mut command).err;
        assert!(said.contains(&none) && said.contains(cure), "{said}");
    }
}

#[test]
fn no_permission_for_real_time_priority_becomes_a_record_with_the_cure() {
    let stage = Stage::new();
    fs::set_permissions(stage.path(), PermissionsExt::from_mode(0o777)).unwrap();
    // The command where an ordinary user may run it from: the build folder may be private to root.
    let copy = stage.path().join("doorbell-copy");
    copy_of_doorbell(&copy);
    let mut command = Command::new(&copy);
    command.args(SHORT.split(' ')).args(["--scheduler", "fifo", "--json"]);
    command.env("XDG_RUNTIME_DIR", stage.path()).env("XDG_STATE_HOME", stage.path());
    let said: Said = match command.uid(65534).gid(65534).output() {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            doorbell_skipped::skip(format_args!(
                "this user cannot become another without permissions: {error}"
            ));
            return;
        }
        output => output.unwrap().into(),
    };
    let cause = said.records()[0]["outcome"]["cause"].as_str().unwrap_or_default().to_owned();
    assert!(cause.contains("SCHED_FIFO") && cause.contains("CAP_SYS_NICE"), "{cause}");
}

/// On a small stack it overflowed before it had read its arguments. Of a run in which the harness
/// itself could be measured, and nothing else, the exit status was 0.
#[test]
fn low_limits_are_enough_or_end_in_a_message_and_not_in_a_hang() {
    let stage = Stage::new();
    for words in ["--version", SHORT, "survey --dry-run"] {
        under(&stage, "ulimit -s 256", words).ended(0);
    }
    let few = under(&stage, "ulimit -n 5", SHORT).ended(1).all();
    assert!(few.contains("Too many open files") && !few.contains("panicked"), "{few}");
    let none = under(&stage, "ulimit -n 9", &format!("{ALL} -q")).ended(1).err;
    assert!(none.contains("nothing that was asked for was measured"), "{none}");
}

#[test]
fn a_container_that_hides_proc_and_sys_still_measures() {
    if !may_mount() {
        return;
    }
    let hide = "mount -t tmpfs none /sys
        for file in stat interrupts cpuinfo loadavg pressure/cpu sysvipc/sem; do
            [ ! -e /proc/$file ] || mount --bind /dev/null /proc/$file
        done";
    let records = mounted(&Stage::new(), hide, &format!("{SHORT} --json")).ended(0).records();
    assert!(records.iter().any(|record| record["outcome"]["kind"] == "done"), "{records:?}");
}

/// The doctor once called that machine fit.
#[test]
fn a_machine_without_proc_gets_a_message_that_names_it() {
    if !may_mount() {
        return;
    }
    for (words, status, told) in [(SHORT, 1, "/proc"), ("doctor", 4, "/proc/self/exe cannot be executed")] {
        let said = mounted(&Stage::new(), "mount -t tmpfs none /proc", words).ended(status).all();
        assert!(said.contains(told) && !said.contains("panicked"), "{said}");
    }
}

/// `HOME=/` of an ordinary user stopped every run, those with `--json` too.
#[test]
fn where_home_cannot_be_written_a_result_goes_where_it_goes_without_one() {
    let stage = Stage::new();
    let home = |words: &str, temporary: &str| {
        let mut command = stage.words(words);
        command.env_remove("XDG_STATE_HOME").env("HOME", "/proc/none").env("TMPDIR", temporary);
        Said::by(&mut command).ended(0)
    };
    let own = stage.path().to_str().unwrap();
    let said = home(SHORT, own).err;
    let folder = stage.file(&format!("doorbell-results-{}", rustix::process::geteuid().as_raw()));
    assert!(said.contains(&folder), "{said}");
    home("show", own);
    // With --json not even that is needed.
    home(&format!("{SHORT} --json"), "/proc/none").json();
}

/// `report -o r1.json r2.json` made a page of the first result, and
/// `export csv r.json -o r.json` a table.
#[test]
fn no_page_table_or_plan_takes_the_place_of_a_result() {
    let stage = Stage::new();
    let [one, odd] = ["one.json", "odd.json"].map(|name| stage.file(name));
    fs::copy(data("ping"), &one).unwrap();
    fs::write(&odd, "{}").unwrap();
    let before = fs::read(&one).unwrap();
    for words in [
        format!("report -o {one} {}", data("ping")),
        format!("report {one} -o {one}"),
        format!("export csv {one} -o {one}"),
        format!("ping --save-plan {one}"),
        format!("model bell --hazard B1 --svg {one}"),
        format!("check --baseline {one} -o {one}"),
    ] {
        let said = stage.run(&words).ended(2).err;
        assert!(said.contains("is a result") || said.contains("is the baseline"), "{said}");
        assert_eq!(fs::read(&one).unwrap(), before, "{words}");
    }
    // Whatever else lies there is replaced, as ever.
    stage.run(&format!("export csv {one} -o {odd}")).ended(0);
}

/// It replaced the good one by a run without figures.
#[test]
fn a_run_without_figures_replaces_no_baseline() {
    let stage = Stage::new();
    let kept = stage.path().join("doorbell/baselines/main.json");
    stage.run(&format!("{SHORT} --save-baseline main")).ended(0);
    let before = fs::read(&kept).unwrap();
    // With so few descriptors no trial of it can be run.
    let said = under(&stage, "ulimit -n 9", &format!("{ALL} --save-baseline main")).ended(1).err;
    assert!(said.contains("not kept as baseline main"), "{said}");
    assert_eq!(fs::read(&kept).unwrap(), before);
}

#[test]
fn a_plan_comes_on_standard_input_and_a_byte_order_mark_is_named() {
    let stage = Stage::new();
    let plan = stage.run("ping futex --gap 0 --count 10 --blocks 1 --save-plan -").out;
    let read = |text: &str| {
        let path = stage.path().join("plan.toml");
        fs::write(&path, text).unwrap();
        Said::by(stage.words("ping --plan - --dry-run").stdin(fs::File::open(&path).unwrap()))
    };
    let said = read(&plan).ended(0).out;
    assert!(said.contains("\"subject\": \"futex\""), "{said}");
    let said = read(&format!("\u{feff}{plan}")).ended(2).err;
    assert!(said.contains("byte-order mark"), "{said}");
}

/// "start it with `taskset -c 1,…`".
#[test]
fn advice_about_cpus_that_are_not_allowed_is_complete() {
    if !fs::read_to_string("/sys/devices/system/cpu/online").is_ok_and(|online| online.trim() != "0") {
        return doorbell_skipped::skip("this machine has one CPU");
    }
    let first = "taskset -pc 0 $$ >/dev/null";
    let said = under(&Stage::new(), first, "ping futex --cpus 0,1 --dry-run").ended(2).err;
    assert!(said.contains("`taskset -c 0,1 doorbell …`"), "{said}");
}

/// The words of the command are stored, and one that is not UTF-8 was a panic.
#[test]
fn a_path_that_is_not_utf8_is_written_to_or_refused_and_never_a_panic() {
    let stage = Stage::new();
    let odd = stage.path().join(std::ffi::OsStr::from_bytes(b"odd-\xff"));
    Said::by(stage.words(SHORT).arg("-o").arg(&odd)).ended(0);
    assert!(fs::read_to_string(&odd).unwrap().contains("\"partial\":false"));
    fs::remove_file(&odd).unwrap();
    // The run's folder, too, which every trial is told.
    fs::create_dir(&odd).unwrap();
    Said::by(stage.words(SHORT).env("XDG_RUNTIME_DIR", &odd)).ended(0);
    // It would stand in the result, which has no bytes.
    Said::by(stage.words("io sync --dir").arg(&odd)).ended(2);
}

#[test]
fn help_completions_and_manual_come_from_one_definition() {
    let stage = Stage::new();
    for (words, flag) in
        [("ping --help", "--wait"), ("man ping", "\\-\\-wait"), ("completions bash", "--wait")]
    {
        assert!(stage.run(words).ended(0).out.contains(flag));
    }
}

#[test]
fn a_dry_run_prints_the_plan_and_measures_nothing() {
    let stage = Stage::new();
    let plan = stage.run(&format!("{SHORT} --dry-run --seed 7")).json();
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
    for (words, told) in [("doctor", ""), (threads, "two threads are needed")] {
        let mut command = Command::new("timeout");
        // Only what hangs is killed by it.
        command.args(["-s", "KILL", "600"]).args(limits).arg(&program).args(words.split(' '));
        let doorbell = stage.words(words);
        command.envs(doorbell.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let said = Said::by(command.stdin(Stdio::null())).ended_with_one_of(&[0, 1, 4]).all();
        assert!(!said.contains("panicked") && said.contains(told), "{words}: {said}");
    }
}
