// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every way a guest can end, played by a script in the place of the emulator.

use std::fs;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use doorbell_vm::accelerator::Accelerator;
use doorbell_vm::architecture::Architecture;
use doorbell_vm::channel::{Frame, send_file};
use doorbell_vm::emulator::Emulator;
use doorbell_vm::hardware::Hardware;
use doorbell_vm::initramfs::Contents;
use doorbell_vm::order::Order;
use doorbell_vm::program::Program;
use doorbell_vm::run::{ESCAPE, Guest, Observer, Report, RunError, Stop, run};

/// Longer than any of the scripts takes, on a machine however busy.
const LONG: Duration = Duration::from_secs(300);
/// What a guest is given that is meant to miss it.
const SHORT: Duration = Duration::from_millis(400);

/// What the script starts with: `$channel` and `$console` are the guest's ports.
const PORTS: &str = r#"#!/bin/bash
here=HERE
for word in "$@"; do
    case $word in
        file,id=*,path=/proc/self/fd/*,input-path=/proc/self/fd/*)
            out=${word#*,path=*/fd/} port=${word#file,id=} port=${port%%,*}
            eval "$port=${out%%,*} ${port}_in=${word##*/}"
            ;;
    esac
done
say() { cat "$here/$1" >&"$channel"; }
"#;

#[derive(Default)]
struct Heard {
    up: Arc<AtomicBool>,
    stdout: String,
    stderr: String,
    console: String,
}

impl Observer for Heard {
    fn up(&mut self, _after: Duration) {
        self.up.store(true, Relaxed);
    }
    fn stdout(&mut self, bytes: &[u8]) {
        self.stdout += &String::from_utf8_lossy(bytes);
    }
    fn stderr(&mut self, bytes: &[u8]) {
        self.stderr += &String::from_utf8_lossy(bytes);
    }
    fn console(&mut self, bytes: &[u8]) {
        self.console += &String::from_utf8_lossy(bytes);
    }
}

struct Stage {
    folder: tempfile::TempDir,
    boot_limit: Duration,
    limit: Duration,
    grace: Duration,
    accelerator: Accelerator,
    keys: Option<OwnedFd>,
    /// Whether the guest was heard to be up.
    up: Arc<AtomicBool>,
}

/// Writes a program by another process: were it open for writing here, a sibling test that forks
/// just then would carry it along, and running it would fail with "text file busy".
fn write_program(path: &Path, text: &str) {
    let mut writer = Command::new("sh")
        .args(["-c", r#"cat >"$0" && chmod 755 "$0""#])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success());
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("up"), Frame::Up.encode()).unwrap();
        fs::write(folder.path().join("kernel"), "").unwrap();
        // The superuser's emulator is nobody's, and these scripts write into their folder.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        Self {
            folder,
            boot_limit: LONG,
            limit: LONG,
            grace: LONG,
            accelerator: Accelerator::Tcg,
            keys: None,
            up: Arc::default(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn wire(&self, name: &str, frames: &[Frame]) {
        fs::write(self.path(name), frames.iter().flat_map(Frame::encode).collect::<Vec<u8>>()).unwrap();
    }

    fn play(&self, script: &str, interrupted: &AtomicBool) -> (Result<Report, RunError>, Heard) {
        let qemu = self.path("qemu");
        // It is run by its number, and does not know its own folder.
        let ports = PORTS.replace("HERE", &self.folder.path().display().to_string());
        write_program(&qemu, &format!("{ports}{script}"));
        let emulator = Emulator {
            path: qemu,
            version: "QEMU 0".into(),
            user_interrupts: false,
            reservation_waits: false,
            input_paths: true,
            sandbox: false,
            firmware: vec![],
        };
        let hardware = Hardware {
            architecture: Architecture::own(),
            accelerator: self.accelerator,
            cpus: 2,
            cores_per_socket: None,
            nodes: 1,
            nvme: None,
            deterministic: false,
            parameters: Vec::new(),
        };
        let order = Order {
            command: vec!["/doorbell".into()],
            environment: Vec::new(),
            folder: "/".into(),
            bring: vec!["/home/me/result.json".into()],
            stdout: None,
            stderr: None,
            interactive: self.keys.is_some(),
        };
        let program = Program { content: b"\x7fELF".to_vec(), libraries: Vec::new() };
        let guest = Guest {
            emulator: &emulator,
            kernel: &self.path("kernel"),
            hardware: &hardware,
            contents: Contents { program: &program, shell: None, order: &order, files: &[] },
            boot_limit: self.boot_limit,
            limit: self.limit,
            most_bytes: 1 << 20,
            grace: self.grace,
            keys: self.keys.as_ref().map(AsFd::as_fd),
        };
        let mut heard = Heard { up: Arc::clone(&self.up), ..Heard::default() };
        (run(&guest, interrupted, &mut heard), heard)
    }

    fn error(&self, script: &str) -> String {
        let (outcome, _) = self.play(script, &AtomicBool::new(false));
        outcome.expect_err("it should have failed").to_string()
    }

    /// Plays a script that writes its number into `self`, and
    /// interrupts it once it is up and has done that.
    fn interrupted(&self, script: &str) -> (Result<Report, RunError>, Heard) {
        let interrupted = AtomicBool::new(false);
        thread::scope(|scope| {
            let playing = scope.spawn(|| self.play(script, &interrupted));
            while !self.has_number("self") || !self.up.load(Relaxed) {
                thread::sleep(Duration::from_millis(5));
            }
            interrupted.store(true, Relaxed);
            playing.join().unwrap()
        })
    }

    /// The error of a script that is meant to miss a limit, which `set` sets: tried with a longer
    /// one until the script had the time to do what it does before, which `done` sees.
    fn late(
        &mut self,
        script: &str,
        set: impl Fn(&mut Self, Duration),
        done: impl Fn(&Self, &str) -> bool,
    ) -> String {
        let mut limit = SHORT;
        loop {
            set(self, limit);
            let text = self.error(script);
            if done(self, &text) || limit > LONG {
                return text;
            }
            limit *= 4;
        }
    }

    /// Whether a script wrote a whole number into `name`.
    fn has_number(&self, name: &str) -> bool {
        fs::read_to_string(self.path(name)).is_ok_and(|number| number.ends_with('\n'))
    }

    /// Whether the process whose number the script wrote into `name` is
    /// gone, or about to be reaped by whoever has to. One that was killed
    /// dies when a CPU takes it up, which a busy machine may let wait.
    fn is_gone(&self, name: &str) -> bool {
        let number = fs::read_to_string(self.path(name)).expect("the script wrote its number");
        let start = Instant::now();
        while let Ok(stat) = fs::read_to_string(format!("/proc/{}/stat", number.trim())) {
            if stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')) {
                return true;
            }
            if start.elapsed() > LONG {
                return false;
            }
            thread::sleep(Duration::from_millis(5));
        }
        true
    }
}

#[test]
fn what_the_command_says_and_leaves_comes_home_with_its_status() {
    let stage = Stage::new();
    let mut end = Vec::new();
    send_file(&mut end, "/home/me/result.json", &vec![b'x'; 200_000]).unwrap();
    end.extend(Frame::Ended(3).encode());
    fs::write(stage.path("end"), end).unwrap();
    stage.wire("words", &[Frame::Stdout(b"table\n".to_vec()), Frame::Stderr(b"1 of 2\r".to_vec())]);
    let (report, heard) = stage.play(
        "say up; echo '[    1.0] random: crng init done' >&$console; say words; say end; echo 'reboot: Power down' >&$console",
        &AtomicBool::new(false),
    );
    let report = report.unwrap();
    assert_eq!((report.status, report.complaints.len()), (3, 0));
    assert_eq!(report.files, [(PathBuf::from("/home/me/result.json"), vec![b'x'; 200_000])]);
    assert!(heard.up.load(Relaxed));
    assert_eq!((heard.stdout.as_str(), heard.stderr.as_str()), ("table\n", "1 of 2\r"));
    assert!(heard.console.contains("crng init done"));
}

#[test]
fn a_file_that_was_not_asked_for_is_not_taken() {
    let stage = Stage::new();
    let mut end = Vec::new();
    send_file(&mut end, "/etc/passwd", b"root::0:0").unwrap();
    send_file(&mut end, "/home/me/../../etc/passwd", b"root::0:0").unwrap();
    end.extend(Frame::Ended(0).encode());
    fs::write(stage.path("end"), end).unwrap();
    let (report, _) = stage.play("say up; say end", &AtomicBool::new(false));
    assert_eq!(report.unwrap().files, []);
}

#[test]
fn a_guest_that_sends_what_was_asked_for_without_end_is_stopped_before_it_fills_the_memory() {
    let stage = Stage::new();
    stage.wire("begin", &[Frame::File("/home/me/result.json".into())]);
    stage.wire("more", &[Frame::Piece(vec![7; 50_000])]);
    let error = stage.error("say up; say begin; while say more; do :; done; sleep 1000");
    assert!(error.contains("more than 1048576 bytes") && error.contains("/home/me/result.json"), "{error}");
}

#[test]
fn a_guest_that_sends_without_end_what_nobody_asked_for_misses_its_deadline_all_the_same() {
    let mut stage = Stage::new();
    stage.grace = SHORT;
    stage.wire("more", &[Frame::File("/etc/passwd".into()), Frame::Piece(vec![7; 50_000])]);
    let error = stage.late(
        "say up; while say more; do :; done; sleep 1000",
        |stage, limit| stage.limit = limit,
        |_, text| text.contains("did not end within"),
    );
    assert!(error.contains("did not end within"), "{error}");
}

#[test]
fn a_kernel_that_never_gets_to_its_first_process_is_given_up_and_nothing_is_left_of_it() {
    let mut stage = Stage::new();
    let text = stage.late(
        "echo $$ >$here/self; sleep 1000 & echo $! >$here/child; echo 'Decompressing Linux...' \
         >&$console; wait",
        |stage, limit| stage.boot_limit = limit,
        |stage, text| stage.has_number("child") && text.contains("| Decompressing"),
    );
    assert!(text.contains("did not reach its first process within "), "{text}");
    assert!(text.contains("| Decompressing Linux..."), "{text}");
    assert!(stage.is_gone("self") && stage.is_gone("child"));
}

#[test]
fn a_panic_is_told_in_the_kernels_own_words_with_what_came_after() {
    let stage = Stage::new();
    let text = stage.error(
        "say up; printf '[ 9.0] Kernel panic - not syncing: sysrq triggered crash\\r\\n[ 9.1] CPU: 1 PID: 100\\r\\n' >&$console",
    );
    assert!(text.contains("panicked: [ 9.0] Kernel panic - not syncing: sysrq triggered crash"), "{text}");
    assert!(text.contains("| [ 9.1] CPU: 1 PID: 100"), "{text}");
}

#[test]
fn a_command_that_does_not_end_is_stopped_with_the_guest() {
    let mut stage = Stage::new();
    stage.grace = SHORT;
    let text = stage.late(
        "say up; echo $$ >$here/self; echo 'still here' >&$console; sleep 1000",
        |stage, limit| stage.limit = limit,
        |stage, text| stage.has_number("self") && text.contains("| still here"),
    );
    assert!(text.contains("--timeout") && text.contains("| still here"), "{text}");
    assert!(stage.is_gone("self"));
}

#[test]
fn an_emulator_that_ends_early_is_quoted() {
    let stage = Stage::new();
    let text = stage.error("echo 'qemu: could not load PC BIOS' >&2; exit 7");
    assert!(text.contains("exit status: 7") && text.contains("could not load PC BIOS"), "{text}");
}

#[test]
fn the_superusers_emulator_is_nobodys_and_has_no_rights_left() {
    let stage = Stage::new();
    stage.wire("end", &[Frame::Ended(0)]);
    let script =
        "grep -E '^(Uid|Gid|Groups|CapEff|CapPrm):' /proc/self/status >$here/rights; say up; say end";
    stage.play(script, &AtomicBool::new(false)).0.unwrap();
    let rights = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        let line =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
        ["Uid:", "Gid:", "Groups:", "CapEff:", "CapPrm:"].map(line)
    };
    let ours = rights(Path::new("/proc/self/status"));
    let nobody = [
        "65534\t65534\t65534\t65534",
        "65534\t65534\t65534\t65534",
        "",
        "0000000000000000",
        "0000000000000000",
    ];
    let expected = if ours[0].starts_with("0\t") { nobody.map(str::to_owned) } else { ours };
    assert_eq!(rights(&stage.path("rights")), expected);
}

#[test]
fn an_interrupt_ends_the_guest() {
    let mut stage = Stage::new();
    stage.grace = SHORT;
    let (outcome, _) = stage.interrupted("say up; echo $$ >$here/self; sleep 1000");
    assert!(matches!(outcome, Err(RunError::Interrupted)), "{outcome:?}");
    assert!(stage.is_gone("self"));
}

#[test]
fn an_interrupted_command_is_told_to_stop_and_what_it_kept_comes_home() {
    let stage = Stage::new();
    let mut end = Vec::new();
    send_file(&mut end, "/home/me/result.json", b"half of it").unwrap();
    end.extend(Frame::Ended(130).encode());
    fs::write(stage.path("end"), end).unwrap();
    let (outcome, _) = stage.interrupted(
        "say up; echo $$ >$here/self; read -r -N1 -u $channel_in word; [ $word = S ] && say end",
    );
    let report = outcome.unwrap();
    assert_eq!((report.status, report.stopped), (130, Some(Stop::Interrupted)));
    assert_eq!(report.files, [(PathBuf::from("/home/me/result.json"), b"half of it".to_vec())]);
}

#[test]
fn a_command_whose_time_is_up_is_told_to_stop_and_what_it_kept_comes_home() {
    let mut stage = Stage::new();
    stage.wire("end", &[Frame::Stdout(b"half".to_vec()), Frame::Ended(130)]);
    let mut limit = SHORT;
    // On a busy machine the first process of a script may need longer than that to be up.
    let (report, heard) = loop {
        stage.limit = limit;
        let (outcome, heard) = stage.play(
            "say up; read -r -N1 -u $channel_in word; [ $word = S ] && say end",
            &AtomicBool::new(false),
        );
        match outcome {
            Err(RunError::NotUp { .. }) if limit < LONG => limit *= 4,
            outcome => break (outcome.unwrap(), heard),
        }
    };
    assert_eq!((report.status, report.stopped), (130, Some(Stop::TimedOut)));
    assert_eq!(heard.stdout, "half");
}

#[test]
fn a_guest_that_is_not_up_when_its_time_is_up_is_said_not_to_be_up() {
    let mut stage = Stage::new();
    stage.limit = SHORT;
    let text = stage.error("sleep 1000");
    assert!(text.contains("did not reach its first process"), "{text}");
}

#[test]
fn keys_go_to_the_guests_console_and_one_of_them_ends_it() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut stage = Stage::new();
    stage.keys = Some(theirs.into());
    stage.wire("end", &[Frame::Ended(0)]);
    (&ours).write_all(b"uname\n").unwrap();
    let script = "say up; read -r -u $console_in line; echo \"$line: Linux\" >&$console";
    let (report, heard) = stage.play(&format!("{script}; say end"), &AtomicBool::new(false));
    assert_eq!(report.unwrap().stopped, None);
    assert_eq!(heard.console, "uname: Linux\n");

    (&ours).write_all(&[b'x', ESCAPE]).unwrap();
    let (outcome, _) = stage.play("say up; echo $$ >$here/self; sleep 1000", &AtomicBool::new(false));
    assert!(matches!(outcome, Err(RunError::Interrupted)), "{outcome:?}");
}

#[test]
fn a_guest_whose_keys_come_from_nobody_ends() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut stage = Stage::new();
    stage.keys = Some(theirs.into());
    drop(ours);
    let (outcome, _) = stage.play("say up; sleep 1000", &AtomicBool::new(false));
    assert!(matches!(outcome, Err(RunError::Interrupted)), "{outcome:?}");
}

#[test]
fn a_guest_that_cannot_do_what_it_was_ordered_says_why() {
    let stage = Stage::new();
    stage.wire("end", &[Frame::Unable("cannot run /doorbell: no such file".into())]);
    assert_eq!(stage.error("say up; say end"), "in the guest: cannot run /doorbell: no such file");
}

#[test]
fn a_channel_with_anything_else_on_it_is_no_result() {
    let stage = Stage::new();
    let text = stage.error("say up; echo 'Linux version 6.1' >&$channel; sleep 1000");
    assert!(text.contains("something else than frames"), "{text}");
}

#[test]
fn stalls_are_reported_and_the_result_kept() {
    let stage = Stage::new();
    stage.wire("end", &[Frame::Ended(0)]);
    let (report, _) = stage.play(
        "say up; echo '[ 30.0] rcu: INFO: rcu_preempt self-detected stall on CPU' >&$console; say end",
        &AtomicBool::new(false),
    );
    assert_eq!(report.unwrap().complaints, ["[ 30.0] rcu: INFO: rcu_preempt self-detected stall on CPU"]);
}

#[test]
fn under_kvm_a_guest_that_does_not_come_up_says_that_kvm_is_unfit_and_why() {
    let mut stage = Stage::new();
    stage.accelerator = Accelerator::Kvm;
    let text = stage.late(
        "echo 'KVM internal error. Suberror: 1' >&2; sleep 1000",
        |stage, limit| stage.boot_limit = limit,
        |_, text| text.contains("KVM internal error") || text.starts_with("/dev/kvm"),
    );
    match fs::OpenOptions::new().read(true).write(true).open("/dev/kvm") {
        Ok(_) => {
            assert!(
                text.contains("KVM is not available here, because the guest's kernel did not reach"),
                "{text}"
            );
            assert!(text.contains("KVM internal error"), "{text}");
        }
        Err(error) => assert_eq!(text, format!("/dev/kvm cannot be opened: {error}")),
    }
}
