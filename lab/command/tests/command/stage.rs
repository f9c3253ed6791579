// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests that drive the command share: a private runtime
//! folder, and a mark by which its processes are found.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use doorbell_results::record::ResultFile;
use doorbell_results::record::read::read_bytes;
use serde_json::Value;

/// Copies the command, by another process: were the copy open for writing here, a sibling test that
/// forks just then would carry it along, and running it would fail with "text file busy".
pub(crate) fn copy_of_doorbell(to: &Path) {
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_doorbell")).arg(to).status();
    assert!(copied.unwrap().success());
}

/// Writes a shell script that can be run, as [`copy_of_doorbell`] copies.
pub(crate) fn write_program(to: &Path, script: &str) {
    let write = r#"printf '#!/bin/sh\n%s\n' "$1" >"$0" && chmod 755 "$0""#;
    let written = Command::new("sh").args(["-c", write]).arg(to).arg(script).status();
    assert!(written.unwrap().success());
}

/// What a command said until it ended.
pub(crate) struct Said {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// What `command` says.
    pub(crate) fn by(command: &mut Command) -> Self {
        command.output().unwrap().into()
    }

    /// All of it.
    pub(crate) fn all(&self) -> String {
        format!("{}{}", self.out, self.err)
    }

    /// That it ended with `status`.
    #[track_caller]
    pub(crate) fn ended(self, status: i32) -> Self {
        self.ended_with_one_of(&[status])
    }

    /// That it ended with one of `statuses`.
    #[track_caller]
    pub(crate) fn ended_with_one_of(self, statuses: &[i32]) -> Self {
        let right = self.status.is_some_and(|status| statuses.contains(&status));
        assert!(right, "{:?} and not {statuses:?}: {}", self.status, self.all());
        self
    }

    /// What it printed as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.all()))
    }

    /// The result that it printed.
    #[track_caller]
    pub(crate) fn result(&self) -> ResultFile {
        let read = read_bytes(self.out.clone().into_bytes(), "the output");
        read.unwrap_or_else(|error| panic!("{error}: {}", self.err))
    }

    /// The records of that.
    #[track_caller]
    pub(crate) fn records(&self) -> Vec<Value> {
        self.json()["records"].as_array().unwrap().clone()
    }
}

impl From<Output> for Said {
    fn from(Output { status, stdout, stderr }: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self { status: status.code(), out: text(stdout), err: text(stderr) }
    }
}

/// A private runtime and state folder, and a mark in the environment
/// of every process started in it.
pub(crate) struct Stage {
    folder: tempfile::TempDir,
    mark: String,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mark = format!("DOORBELL_TEST_MARK={}", folder.path().display());
        Self { folder, mark }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The command, its streams piped, in this stage.
    pub(crate) fn doorbell(&self, args: &[&str]) -> Command {
        let (name, value) = self.mark.split_once('=').unwrap();
        let mut command = hears_signals(Command::new(env!("CARGO_BIN_EXE_doorbell")));
        command
            .args(args)
            .env(name, value)
            .env("XDG_RUNTIME_DIR", self.path())
            .env("XDG_STATE_HOME", self.path())
            .env_remove("NO_COLOR")
            .env_remove("COLUMNS")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// The command with these words, a blank between two.
    pub(crate) fn words(&self, words: &str) -> Command {
        self.doorbell(&words.split_whitespace().collect::<Vec<_>>())
    }

    /// Runs it to its end.
    #[track_caller]
    pub(crate) fn run(&self, words: &str) -> Said {
        Said::by(&mut self.words(words))
    }

    /// The path of a file of this name, which may not be there.
    pub(crate) fn file(&self, name: &str) -> String {
        self.path().join(name).to_str().unwrap().to_owned()
    }

    /// The processes of this stage that are still there, zombies not counted.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let own = i32::try_from(std::process::id()).unwrap();
        fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|pid| *pid != own)
            .filter(|pid| {
                let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environment.split(|byte| *byte == 0).any(|variable| variable == self.mark.as_bytes())
            })
            .collect()
    }

    /// The processes of the trial that runs now: its host and the
    /// sides, which inherit its arguments.
    pub(crate) fn trial_processes(&self) -> Vec<i32> {
        let verb = doorbell_harness::launch::HOST_VERB.as_bytes();
        let is_trial = |pid: &i32| {
            let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            arguments.split(|byte| *byte == 0).nth(1) == Some(verb)
        };
        self.processes().into_iter().filter(is_trial).collect()
    }

    /// The host of the trial that `command` runs now.
    pub(crate) fn host(&self, command: i32) -> Option<i32> {
        self.trial_processes().into_iter().find(|pid| parent(*pid) == Some(command))
    }

    /// The sides of the trial that `command` runs now, as far as they are processes.
    pub(crate) fn sides(&self, command: i32) -> Vec<i32> {
        let Some(host) = self.host(command) else { return Vec::new() };
        self.trial_processes().into_iter().filter(|pid| parent(*pid) == Some(host)).collect()
    }

    /// Clock ticks of CPU time that the busiest side of the trial that `command` runs now has used
    /// (proc(5), fields 14 and 15 of stat). The host is none: in an emulated machine it uses as
    /// much before there is a side.
    pub(crate) fn side_ticks(&self, command: i32) -> u64 {
        let ticks = |pid: i32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let after_name = stat.rsplit(')').next().unwrap_or_default().to_owned();
            let mut fields =
                after_name.split_whitespace().skip(11).map(|field| field.parse::<u64>().unwrap_or(0));
            fields.next().unwrap_or(0) + fields.next().unwrap_or(0)
        };
        self.sides(command).into_iter().map(ticks).max().unwrap_or(0)
    }

    /// Waits until no process of this stage is left; whoever is left after that long hangs.
    pub(crate) fn wait_until_empty(&self) {
        let start = Instant::now();
        while !self.processes().is_empty() {
            assert!(start.elapsed() < Duration::from_secs(60), "still there: {:?}", self.processes());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The run folders that are left.
    pub(crate) fn run_folders(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path().join("doorbell")) else { return Vec::new() };
        // The mark of the last result, which may lie in the same folder, is a file.
        let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Lets the run folders that are left look old: one whose maker was killed before it had locked
    /// it is left alone for a minute, as its maker might only be slow.
    pub(crate) fn age_run_folders(&self) {
        for name in self.run_folders() {
            let folder = fs::File::open(self.path().join("doorbell").join(name)).unwrap();
            folder.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(120)).unwrap();
        }
    }
}

/// Lets what `command` starts hear the signals that end it: whoever runs the tests may ignore them,
/// as nohup(1) and a script's `&` do, and a child inherits that.
pub(crate) fn hears_signals(mut command: Command) -> Command {
    // SAFETY: between fork and exec; `signal` may be called there, and takes a number and a constant.
    unsafe {
        command.pre_exec(|| {
            for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
    command
}

/// What `doorbell WORDS --quiet --output -` says on a stage of its own, on which nothing stays
/// behind.
#[track_caller]
pub(crate) fn measured(words: &str) -> Said {
    let stage = Stage::new();
    let said = stage.run(&format!("{words} --quiet --output -")).ended(0);
    stage.wait_until_empty();
    assert!(stage.run_folders().is_empty(), "{:?}", stage.run_folders());
    said
}

/// Whether a trial ran to its end: what a busy machine does to a figure is no test's affair.
pub(crate) fn ran(record: &Value) -> bool {
    matches!(record["outcome"]["kind"].as_str(), Some("done" | "implausible"))
}

/// The number at `path` in `record`.
#[track_caller]
pub(crate) fn number(record: &Value, path: &str) -> u64 {
    record.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path}: {record}"))
}

/// The figure of this name.
pub(crate) fn figure(record: &Value, name: &str) -> Option<f64> {
    record["figures"].as_array()?.iter().find(|figure| figure["name"] == name)?["value"].as_f64()
}

/// `command` in a shell that has done `first`.
pub(crate) fn after(first: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("{first} && exec \"$0\" \"$@\""));
    with(shell, command)
}

/// `outer` with `command` after its words, in that one's environment.
pub(crate) fn with(mut outer: Command, command: &Command) -> Command {
    outer.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer
}

/// A result of the test data.
pub(crate) fn data(name: &str) -> String {
    format!("{}/tests/data/{name}.json", env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        // Ends a hang, on however busy a machine; it judges no time.
        assert!(start.elapsed() < Duration::from_secs(300), "never seen: {what}");
        // To look at all processes takes milliseconds: the less often, the longer it lasts.
        let pause = (start.elapsed() / 50).clamp(Duration::from_millis(1), Duration::from_millis(20));
        std::thread::sleep(pause);
    }
}

/// Who started `pid` (proc_pid_stat(5), field 4).
pub(crate) fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Does `test` with all of `each` at once: what they wait for takes no longer than for one.
pub(crate) fn at_once<T: Sync>(each: &[T], test: impl Fn(&T) + Sync) {
    std::thread::scope(|scope| {
        for one in each {
            let test = &test;
            scope.spawn(move || test(one));
        }
    });
}
