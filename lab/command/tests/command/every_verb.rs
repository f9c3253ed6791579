// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every verb that measures: killed at any moment, on disks that are full, with values that mean
//! nothing.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use clap::builder::ValueParser;
use doorbell_harness::trace::Tracefs;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::stage::Stage;
use crate::world::World;

/// A verb that measures, as words: `DIR` stands for a folder on a
/// disk, `BASELINE` for a result to be held against.
struct Verb {
    /// A run that goes on for long.
    long: &'static str,
    /// One that does not.
    short: &'static str,
}

/// Every verb that measures, and the loads that go with any of them.
const VERBS: [Verb; 14] = [
    Verb {
        long: "fanout sem-posix-named sem-sysv-many -n 8 --rounds 100000 --interval 1ms",
        short: "fanout sem-posix-named -n 3 --rounds 3 --interval 1ms",
    },
    Verb {
        long: "tasks process-futex thread-futex life-fork -n 20 -y 2000 --time 20ms --blocks 10000",
        short: "tasks process-futex -n 10 -y 10 --count 2 --blocks 1",
    },
    Verb {
        long: "io io-null sync --dir DIR --file-size 4M --time 20ms --blocks 10000",
        short: "io io-null --dir DIR --file-size 1M --count 5 --blocks 1",
    },
    Verb {
        long: "io --net udp http-sse websocket --gap 1ms --time 20ms --blocks 10000",
        short: "io --net udp --gap 1ms --count 5 --blocks 1",
    },
    Verb {
        long: "idle futex --gap 1ms --time 20ms --blocks 10000",
        short: "idle futex --gap 200us --hold off --count 5 --blocks 1",
    },
    Verb {
        long: "uintr eventfd futex --gap 100us --wait 1ms --blocks 10000",
        short: "uintr eventfd uintr --gap 0 --wait 1ms --size 1 --count 5 --blocks 1",
    },
    Verb {
        long: "anatomy futex mq-posix --gap 100us --time 50ms --placement unpinned --blocks 10000",
        short: "anatomy futex --gap 100us --time 5ms --placement unpinned --blocks 1",
    },
    Verb {
        long: "why futex --placement unpinned --time 20ms --blocks 10000",
        short: "why futex --placement unpinned --time 20ms",
    },
    Verb {
        long: "pick --need process,count --placement unpinned --anyway --blocks 10000",
        short: "pick --need epoll,payload,count --placement unpinned --anyway --blocks 1",
    },
    Verb {
        long: "spin --gap 50us --time 20ms --anyway --blocks 10000",
        short: "spin --gap 100us --spin 12us --time 2ms --anyway --blocks 1",
    },
    Verb {
        long: "gate --max 1ms --placement unpinned --time 10m --anyway",
        short: "gate --max 1s --gap 100us --placement unpinned --time 40ms --anyway --blocks 1",
    },
    Verb {
        long: "check --baseline BASELINE --anyway --blocks 10000",
        short: "check --baseline BASELINE --anyway --blocks 1",
    },
    Verb {
        long: "ping null sem-posix-named sem-sysv mq-posix mq-sysv fifo --gap 0 --time 20ms --load \
            sqrt:1,cache:1,memory:1,churn:2 --blocks 10000",
        short: "ping null --gap 0 --count 5 --placement unpinned --load churn:2 --blocks 1",
    },
    Verb {
        long: "switch switch-futex handover-mq --time 20ms --blocks 10000",
        short: "switch getppid --time 2ms --blocks 1",
    },
];

/// Where the runs of a test are, and what their words stand for.
struct Place {
    stage: Stage,
    dir: tempfile::TempDir,
    baseline: PathBuf,
}

impl Place {
    fn new() -> Self {
        let stage = Stage::new();
        let baseline = stage.path().join("baseline.json");
        let words = "ping futex --gap 0 --count 50 --placement unpinned --blocks 4 --quiet --output";
        let args: Vec<&str> = words.split(' ').chain([baseline.to_str().unwrap()]).collect();
        let output = stage.doorbell(&args).output().unwrap();
        assert!(output.status.success(), "{}", complaint(&output));
        // On a disk more often than a folder for temporary files is: transfers bypass the page cache.
        let dir = tempfile::tempdir_in(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
        Self { stage, dir, baseline }
    }

    fn words(&self, text: &str) -> Vec<String> {
        let meant = |word: &str| match word {
            "DIR" => self.dir.path().to_str().unwrap().to_owned(),
            "BASELINE" => self.baseline.to_str().unwrap().to_owned(),
            word => word.to_owned(),
        };
        text.split(' ').chain(["--quiet"]).map(meant).collect()
    }

    /// The command with the words of `text`, and its result going to `output`.
    fn doorbell(&self, text: &str, output: &str) -> Command {
        let mut words = self.words(text);
        words.extend(["--output".to_owned(), output.to_owned()]);
        self.stage.doorbell(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Runs of this place that end by themselves.
    fn run(&self, text: &str) -> Output {
        self.doorbell(text, "-").output().unwrap()
    }

    fn files(&self) -> Vec<PathBuf> {
        fs::read_dir(self.dir.path()).unwrap().flatten().map(|entry| entry.path()).collect()
    }
}

fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether a run of `words` measured nothing, for this machine has
/// not what it takes; the reason is told.
fn lacks(words: &str, output: &Output) -> bool {
    let lacks = output.stdout.is_empty() && matches!(output.status.code(), Some(1 | 2 | 4));
    let text = complaint(output);
    let known = [
        "takes no direct transfers",
        "tracefs",
        "only if the notifier has another",
        "both sides on one core",
    ];
    let lacks = lacks && known.iter().any(|reason| text.contains(reason));
    if lacks {
        doorbell_skipped::skip(format_args!("{words}: {}", text.trim()));
    }
    lacks
}

/// Whom a round ends, and how.
#[derive(Debug, Clone, Copy)]
enum End {
    /// The command, at any moment from its start.
    KillAtOnce,
    /// The command, while a trial runs.
    Kill,
    /// Any other process of the run.
    KillAnother,
    /// Ctrl-C.
    Interrupt,
}

const ENDS: [End; 4] = [End::KillAtOnce, End::Kill, End::KillAnother, End::Interrupt];

#[test]
fn killing_any_process_of_any_verb_at_any_moment_leaves_nothing_that_its_next_run_does_not_clear() {
    // On a thread of its own: its namespaces end with it.
    std::thread::spawn(kill_at_random_moments).join().unwrap();
}

fn kill_at_random_moments() {
    let place = Place::new();
    let world = World::enter(place.stage.path());
    if let Err(lack) = &world {
        eprintln!(
            "semaphores, queues and shared memory are not looked at ({lack}): processes, files and \
             folders are"
        );
    }
    let objects = || world.as_ref().map(World::objects).unwrap_or_default();
    let mut random = fastrand::Rng::with_seed(0x2026);
    let asked: Option<usize> = std::env::var("DOORBELL_ENDS").ok().and_then(|number| number.parse().ok());
    for (number, verb) in VERBS.iter().enumerate() {
        let name = verb.long;
        // Other tests look at buffers that dead runs left, which every traced run clears.
        let traced = ["anatomy", "why"].iter().any(|traced| name.starts_with(traced));
        let _alone = traced.then(|| crate::anatomy::ALONE.lock().unwrap_or_else(PoisonError::into_inner));
        // The command dies at once or in a trial, by turns;
        // `DOORBELL_ENDS=10` lets each verb meet each end ten times.
        let mut ends = ENDS.repeat(asked.unwrap_or(1));
        if asked.is_none() {
            ends.remove(number % 2);
        }
        for end in ends {
            // A folder whose command died before it locked it is left alone while it is young.
            place.stage.age_run_folders();
            let mut child = place.doorbell(name, "-").spawn().unwrap();
            if !matches!(end, End::KillAtOnce) && !await_trial(&place.stage, &mut child) {
                let output = child.wait_with_output().unwrap();
                assert!(lacks(name, &output), "{name}: ended by itself: {}", complaint(&output));
                break;
            }
            std::thread::sleep(Duration::from_micros(random.u64(0..150_000)));
            finish(&place.stage, child, end, &mut random, name);
            place.stage.wait_until_empty();
            if matches!(end, End::Interrupt | End::KillAnother) {
                assert_eq!(objects(), [""; 0], "{name}: {end:?}");
                assert_eq!(place.stage.run_folders(), [""; 0], "{name}: {end:?}");
                assert_eq!(place.files(), [""; 0].map(PathBuf::from), "{name}: {end:?}");
            }
        }
        place.stage.age_run_folders();
        let output = place.run(verb.short);
        assert!(!output.stdout.is_empty() || lacks(verb.short, &output), "{name}: {}", complaint(&output));
        assert_eq!(place.stage.run_folders(), [""; 0], "{name}: left after the next run");
        assert_eq!(objects(), [""; 0], "{name}: left after the next run");
        assert_eq!(place.files(), [""; 0].map(PathBuf::from), "{name}: left after the next run");
        if traced {
            assert_eq!(buffers(), [""; 0], "{name}: left after the next run");
        }
    }
}

/// Waits until a trial runs; false if the command left before.
fn await_trial(stage: &Stage, child: &mut Child) -> bool {
    let start = Instant::now();
    while stage.trial_processes().len() < 2 {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        // Ends a hang, on however busy a machine; it judges no time.
        assert!(start.elapsed() < Duration::from_secs(300), "never seen: a trial");
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Ends a run in one of the ways, and looks at how it left.
fn finish(stage: &Stage, child: Child, end: End, random: &mut fastrand::Rng, name: &str) {
    let command = i32::try_from(child.id()).unwrap();
    // An error means that it is gone already.
    let signal = |pid: i32, signal| {
        let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
    };
    match end {
        End::KillAtOnce | End::Kill => signal(command, Signal::KILL),
        End::KillAnother => {
            let others: Vec<i32> = stage.processes().into_iter().filter(|pid| *pid != command).collect();
            if let Some(victim) = random.choice(others) {
                signal(victim, Signal::KILL);
                // The run goes on without that trial.
                std::thread::sleep(Duration::from_millis(random.u64(0..100)));
            }
            signal(command, Signal::INT);
        }
        End::Interrupt => signal(command, Signal::INT),
    }
    let output = child.wait_with_output().unwrap();
    let text = complaint(&output);
    assert!(!text.contains("panicked"), "{name}: {end:?}: {text}");
    if matches!(end, End::KillAtOnce | End::Kill) {
        assert_eq!(output.status.signal(), Some(libc::SIGKILL), "{name}: {text}");
        return;
    }
    // What was measured is kept, and said to be partial.
    assert_eq!(output.status.code(), Some(130), "{name}: {end:?}: {text}");
    let result: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
    assert_eq!(result["partial"], true, "{name}: {end:?}");
}

/// The buffers in the kernel's trace files whose makers are gone: others may trace beside this.
fn buffers() -> Vec<String> {
    let Ok(tracefs) = Tracefs::reach() else { return Vec::new() };
    let entries = fs::read_dir(tracefs.folder().join("instances")).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let is_left = |name: &String| {
        let maker = name.strip_prefix("doorbell-").and_then(|rest| rest.split('-').next());
        maker.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
    };
    names.filter(is_left).collect()
}

/// `command` in a mount namespace in which `disk` is a small file
/// system; the names that are left on it are written to the file
/// `left`; if it is `full` from the start, those in the folder of runs.
fn with_small_disk(command: &Command, disk: &Path, full: bool, left: &Path) -> Command {
    let (disk, left) = (disk.display(), left.display());
    let (fill, within) = match full {
        true => (format!("head -c 1M /dev/zero >{disk}/filler 2>/dev/null; "), "/doorbell"),
        false => (String::new(), ""),
    };
    let script = format!(
        "mount -t tmpfs -o size=8k,mode=700 none {disk} || exit 99; {fill}\"$0\" \"$@\"; code=$?; \
         ls -A {disk}{within} >{left} 2>/dev/null; exit $code"
    );
    let mut inside = Command::new("unshare");
    inside.args(["--mount", "sh", "-c", &script]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => inside.env(name, value),
            None => inside.env_remove(name),
        };
    }
    inside
}

#[test]
fn a_full_disk_costs_no_verb_its_result_and_no_piece_of_one_is_called_a_result() {
    if !crate::bad_input::may_mount() {
        return;
    }
    let place = Place::new();
    let at = |name: &str| place.stage.path().join(name);
    let (disk, left) = (at("disk"), at("left"));
    fs::create_dir(&disk).unwrap();
    let target = disk.join("result.json");
    for Verb { short, .. } in &VERBS {
        let _alone = crate::anatomy::ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let command = place.doorbell(short, target.to_str().unwrap());
        let output = with_small_disk(&command, &disk, false, &left)
            .env("TMPDIR", place.stage.path())
            .output()
            .unwrap();
        if lacks(short, &output) {
            continue;
        }
        let text = complaint(&output);
        assert_eq!(output.status.code(), Some(1), "{short}: {text}");
        assert!(
            text.contains(target.to_str().unwrap()) && text.contains("free some space"),
            "{short}: {text}"
        );
        // The tables were printed all the same.
        assert!(!output.stdout.is_empty(), "{short}");
        let rescued = text.split("saved as ").nth(1).unwrap_or_else(|| panic!("{short}: {text}")).trim();
        let result: Value = serde_json::from_slice(&fs::read(rescued).unwrap()).unwrap();
        fs::remove_file(rescued).unwrap();
        let records = result["records"].as_array().unwrap().len() as u64;
        let configurations = result["plan"]["configurations"].as_array().unwrap().len() as u64;
        assert_eq!(records, configurations * result["plan"]["blocks"].as_u64().unwrap(), "{short}");
        assert_eq!(
            (&result["partial"], fs::read_to_string(&left).unwrap().as_str()),
            (&Value::Bool(false), ""),
            "{short}"
        );
    }
}

#[test]
fn a_full_disk_under_the_folder_of_a_run_is_told_and_stops_nothing_that_needs_none_of_it() {
    if !crate::bad_input::may_mount() {
        return;
    }
    let place = Place::new();
    let at = |name: &str| place.stage.path().join(name);
    let (disk, left) = (at("disk"), at("left"));
    fs::create_dir(&disk).unwrap();
    for Verb { short, .. } in &VERBS {
        let _alone = crate::anatomy::ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let command = place.doorbell(short, "-");
        let output =
            with_small_disk(&command, &disk, true, &left).env("XDG_RUNTIME_DIR", &disk).output().unwrap();
        let text = complaint(&output);
        assert!(!text.contains("panicked"), "{short}: {text}");
        assert_eq!(fs::read_to_string(&left).unwrap(), "", "{short}: {text}");
        if lacks(short, &output) {
            continue;
        }
        let full = "No space left on device";
        if output.stdout.is_empty() {
            assert_eq!(output.status.code(), Some(1), "{short}: {text}");
            assert!(text.contains(full), "{short}: {text}");
            continue;
        }
        // What needs a note of what it makes has none, and says so; what needs none has its figures.
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        for record in result["records"].as_array().unwrap() {
            let outcome = &record["outcome"];
            let cause = outcome["cause"].as_str().unwrap_or_default();
            assert!(outcome["kind"] != "failed" || cause.contains(full), "{short}: {record}");
        }
    }
}

/// What stands for a value and means nothing, or more than anything can hold.
const NONSENSE: [&str; 3] = ["-1", "99999999999999999999999", "\u{1b}[2J\u{202e}"];

/// Values at the edges of what some flags take.
const EDGES: [&str; 2] = ["0", "18446744073709551615"];

/// Flags whose value is any text, or the name of a file that a run would make.
const FREE: [&str; 5] = ["name", "output", "save-baseline", "save-plan", "dir"];

/// Whether a value is read as such, and not as text or as a path that
/// the verb itself makes something of.
fn is_typed(flag: &clap::Arg) -> bool {
    let own = flag.get_value_parser().type_id();
    [ValueParser::string(), ValueParser::path_buf(), ValueParser::os_string()]
        .iter()
        .all(|text| text.type_id() != own)
}

#[test]
fn no_value_of_any_flag_is_misread_or_makes_a_verb_panic() {
    let place = Place::new();
    let mut command = doorbell_lab::cli::command();
    command.build();
    // Flags that several verbs share are one.
    let mut known = BTreeSet::new();
    let mut refused = 0;
    for Verb { short, .. } in &VERBS {
        let verb = short.split(' ').next().unwrap();
        let needed = |long: &str| match verb {
            "gate" if long != "max" => " --max=1ms",
            "check" if long != "baseline" => " --baseline BASELINE",
            _ => "",
        };
        let definition = command.find_subcommand(verb).unwrap();
        for flag in definition.get_arguments().filter(|flag| flag.get_action().takes_values()) {
            let Some(long) = flag.get_long() else { continue };
            let described = (long, flag.get_help().map(ToString::to_string));
            if !known.insert(described) {
                continue;
            }
            let typed = is_typed(flag);
            let values = NONSENSE.map(|value| (value, true));
            let edges = EDGES.map(|value| (value, false)).into_iter().filter(|_| typed);
            for (value, nonsense) in values.into_iter().chain(edges) {
                let words = place.words(&format!("{verb} --{long}={value} --dry-run{}", needed(long)));
                let args: Vec<&str> = words.iter().map(String::as_str).collect();
                let output = place.stage.doorbell(&args).current_dir(place.stage.path()).output().unwrap();
                let (text, code) = (complaint(&output), output.status.code());
                assert!(matches!(code, Some(0..=2)), "{args:?}: {:?}: {text}", output.status);
                assert!(!text.contains("panicked"), "{args:?}: {text}");
                assert!(!text.contains(['\u{1b}', '\u{202e}']), "{args:?}: {text:?}");
                if nonsense && typed {
                    assert_eq!(code, Some(2), "{args:?}: {text}");
                    assert!(text.contains(long) || text.contains(value), "{args:?}: {text}");
                    refused += 1;
                } else if nonsense && !FREE.contains(&long) {
                    assert_ne!(code, Some(0), "{args:?}");
                }
                assert!(code == Some(0) || !text.trim().is_empty(), "{args:?}: not a word");
            }
        }
    }
    assert!(refused > 100, "{refused} values were refused");
}
