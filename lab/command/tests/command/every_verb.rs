// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every verb that measures: killed at any moment, on disks that are full, with values that mean
//! nothing.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use clap::builder::ValueParser;
use doorbell_harness::trace::Tracefs;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::stage::{Said, Stage, with};
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
        stage.run(&format!("{words} {}", baseline.display())).ended(0);
        // On a disk more often than a folder for temporary files is: transfers bypass the page cache.
        let dir = tempfile::tempdir_in(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
        Self { stage, dir, baseline }
    }

    /// `text` with what it stands for.
    fn words(&self, text: &str) -> String {
        let meant = |word| match word {
            "DIR" => self.dir.path().to_str().unwrap(),
            "BASELINE" => self.baseline.to_str().unwrap(),
            word => word,
        };
        text.split(' ').map(meant).collect::<Vec<_>>().join(" ")
    }

    /// The command with the words of `text`, and its result going to `output`.
    fn doorbell(&self, text: &str, output: &str) -> Command {
        self.stage.words(&format!("{} --quiet --output {output}", self.words(text)))
    }

    fn files(&self) -> Vec<PathBuf> {
        fs::read_dir(self.dir.path()).unwrap().flatten().map(|entry| entry.path()).collect()
    }
}

/// Whether a run of `words` measured nothing, for this machine has
/// not what it takes; the reason is told.
fn lacks(words: &str, said: &Said) -> bool {
    let known = [
        "takes no direct transfers",
        "tracefs",
        "only if the notifier has another",
        "both sides on one core",
    ];
    let lacks = said.out.is_empty() && matches!(said.status, Some(1 | 2 | 4));
    let lacks = lacks && known.iter().any(|reason| said.err.contains(reason));
    if lacks {
        doorbell_skipped::skip(format_args!("{words}: {}", said.err.trim()));
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
                let said = child.wait_with_output().unwrap().into();
                assert!(lacks(name, &said), "{name}: ended by itself: {}", said.err);
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
        let said = Said::by(&mut place.doorbell(verb.short, "-"));
        assert!(!said.out.is_empty() || lacks(verb.short, &said), "{name}: {}", said.err);
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
    let (status, said) = (output.status, Said::from(output));
    assert!(!said.err.contains("panicked"), "{name}: {end:?}: {}", said.err);
    if matches!(end, End::KillAtOnce | End::Kill) {
        assert_eq!(status.signal(), Some(libc::SIGKILL), "{name}: {}", said.err);
        return;
    }
    // What was measured is kept, and said to be partial.
    assert_eq!(said.ended(130).json()["partial"], true, "{name}: {end:?}");
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
    inside.args(["--mount", "sh", "-c", &script]);
    with(inside, command)
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
        let mut command = with_small_disk(&command, &disk, false, &left);
        let said = Said::by(command.env("TMPDIR", place.stage.path()));
        if lacks(short, &said) {
            continue;
        }
        let Said { out, err: text, .. } = said.ended(1);
        assert!(text.contains(target.to_str().unwrap()), "{short}: {text}");
        // The tables were printed all the same.
        assert!(text.contains("free some space") && !out.is_empty(), "{short}: {text}");
        let rescued = text.split("saved as ").nth(1).unwrap_or_else(|| panic!("{short}: {text}")).trim();
        let result: Value = serde_json::from_slice(&fs::read(rescued).unwrap()).unwrap();
        fs::remove_file(rescued).unwrap();
        let records = result["records"].as_array().unwrap().len() as u64;
        let configurations = result["plan"]["configurations"].as_array().unwrap().len() as u64;
        assert_eq!(records, configurations * result["plan"]["blocks"].as_u64().unwrap(), "{short}");
        assert_eq!(
            (&result["partial"], &*fs::read_to_string(&left).unwrap()),
            (&false.into(), ""),
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
        let mut command = with_small_disk(&command, &disk, true, &left);
        let said = Said::by(command.env("XDG_RUNTIME_DIR", &disk));
        assert!(!said.err.contains("panicked"), "{short}: {}", said.err);
        assert_eq!(fs::read_to_string(&left).unwrap(), "", "{short}: {}", said.err);
        if lacks(short, &said) {
            continue;
        }
        let full = "No space left on device";
        if said.out.is_empty() {
            let text = said.ended(1).err;
            assert!(text.contains(full), "{short}: {text}");
            continue;
        }
        // What needs a note of what it makes has none, and says so; what needs none has its figures.
        for record in said.records() {
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

/// What the parser refuses is looked at here, as it is printed once for each verb; that it names
/// the flag, by the walk over all options (`cli/walk.rs`).
#[test]
fn no_value_of_any_flag_is_misread_or_makes_a_verb_panic() {
    let place = Place::new();
    let mut command = doorbell_lab::cli::command();
    command.build();
    // Flags that several verbs share are one.
    let mut known = BTreeSet::new();
    let (mut refused, mut printed) = (0, BTreeSet::new());
    for Verb { short, .. } in &VERBS {
        let verb = short.split(' ').next().unwrap();
        let needed = |long: &str| match verb {
            "gate" if long != "max" => "--max=1ms",
            "check" if long != "baseline" => "--baseline BASELINE",
            _ => "",
        };
        let definition = command.find_subcommand(verb).unwrap().clone();
        for flag in definition.get_arguments().filter(|flag| flag.get_action().takes_values()) {
            let Some(long) = flag.get_long() else { continue };
            let described = (long.to_owned(), flag.get_help().map(ToString::to_string));
            if !known.insert(described) {
                continue;
            }
            let typed = is_typed(flag);
            let values = NONSENSE.map(|value| (value, true));
            let edges = EDGES.map(|value| (value, false)).into_iter().filter(|_| typed);
            for (value, nonsense) in values.into_iter().chain(edges) {
                let words =
                    place.words(&format!("{verb} --{long}={value} --quiet --dry-run {}", needed(long)));
                let whole = std::iter::once("doorbell").chain(words.split_whitespace());
                let by_parser = command.try_get_matches_from_mut(whole).is_err();
                refused += u32::from(by_parser && nonsense && typed);
                assert!(by_parser || !nonsense || !typed, "{words} is taken");
                if by_parser && !(value.contains('\u{1b}') && printed.insert(verb)) {
                    continue;
                }
                let mut run = place.stage.words(&words);
                let said = Said::by(run.current_dir(place.stage.path())).ended_with_one_of(&[0, 1, 2]);
                let (text, status) = (&said.err, said.status);
                assert!(!text.contains("panicked"), "{words}: {text}");
                assert!(!text.contains(['\u{1b}', '\u{202e}']), "{words}: {text:?}");
                assert!(!by_parser || status == Some(2), "{words}: {text}");
                if nonsense && !typed && !FREE.contains(&long) {
                    assert_ne!(status, Some(0), "{words}");
                }
                assert!(status == Some(0) || !text.trim().is_empty(), "{words}: not a word");
            }
        }
    }
    assert!(refused > 100, "{refused} values were refused");
}
