// SPDX-License-Identifier: MIT OR Apache-2.0
//! What other users of the machine, and whoever writes a file that is
//! read, can make of the command: nothing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use rustix::fs::{AtFlags, CWD, Gid, Mode, Uid, chownat, mkfifoat};
use serde_json::{Value, json};

use crate::stage::Stage;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ping.json");

/// The command's end, which comes: one that waits for ever is ended
/// by timeout(1), with the status 124.
fn ended(stage: &Stage, args: &[&str]) -> Output {
    let whole = stage.doorbell(args);
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=5", "120"])
        .arg(whole.get_program())
        .args(whole.get_args())
        .current_dir(stage.path());
    for (name, value) in whole.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_ne!(output.status.code(), Some(124), "{args:?} waits for ever");
    output
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// Nobody's, if this process may give it away.
fn given_away(path: &Path) -> bool {
    let (user, group) = (Uid::from_raw(65534), Gid::from_raw(65534));
    chownat(CWD, path, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

/// A program that was moved away from its tree ran the scripts of
/// whoever had the tree's path by then, as root.
#[test]
fn the_program_runs_no_script_from_the_path_at_which_it_was_compiled() {
    let program = fs::read(env!("CARGO_BIN_EXE_doorbell")).unwrap();
    let has = |text: &str| program.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    assert!(has("DOORBELL_QEMU_BUILD"), "what is looked at is the program");
    for script in ["uintr/qemu/build", "ci/cross-built", "uintr/driver/build"] {
        assert!(!has(&format!("/../../{script}")), "{script}");
    }
    let stage = Stage::new();
    let run = |accel: &str| {
        let mut command = stage.doorbell(&["vm", "run", "--accel", accel, "--", "ping"]);
        said(&command.current_dir(stage.path()).env("PATH", stage.path()).output().unwrap())
    };
    assert!(run("uintr").contains("no uintr/qemu/build is in this folder"), "{}", run("uintr"));
    assert!(run("tcg").contains("there is no QEMU here"), "{}", run("tcg"));
}

/// `--guest squall` ran `./squall/build` of any folder that one stood in.
#[test]
fn a_script_of_another_users_folder_is_not_run() {
    let stage = Stage::new();
    let folder = stage.path().join("squall");
    fs::create_dir(&folder).unwrap();
    let script = "#!/bin/sh\ntouch ran\nexit 1\n";
    // Written by another process, so that no sibling test that forks
    // just then holds it open for writing.
    let write = ["-c", "printf %s \"$1\" >squall/build && chmod 777 squall/build", "sh", script];
    assert!(Command::new("sh").args(write).current_dir(stage.path()).status().unwrap().success());
    let output = ended(&stage, &["vm", "run", "--guest", "squall", "--", "tasks", "-n", "12"]);
    assert!(said(&output).contains("another user may change it"), "{}", said(&output));
    assert!(!stage.path().join("ran").exists());
}

/// A process that has a FIFO open which shows as `link` in
/// `/proc/PID/fd`; none where there are no namespaces to be had.
fn with_fifo_shown_as(link: &str) -> Option<Child> {
    let path = format!("/mnt{link}");
    let script = "mount -t tmpfs none /mnt && mkdir -p \"$(dirname \"$1\")\" && mkfifo \"$1\" && \
        exec 7<>\"$1\" && umount -l /mnt && readlink /proc/self/fd/7 && exec sleep 1000";
    let as_nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let unshare = ["unshare", "--user", "--map-root-user", "--mount"];
    let begins: [Vec<&str>; 3] =
        [[&as_nobody[..], &unshare[..]].concat(), unshare.to_vec(), vec!["unshare", "--mount"]];
    begins.into_iter().find_map(|begin| {
        let mut command = Command::new(begin[0]);
        command.args(&begin[1..]).args(["sh", "-c", script, "sh", &path]);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take()?).read_line(&mut line).ok()?;
        if line.trim_end() == link {
            return Some(child);
        }
        let _ = child.wait();
        None
    })
}

/// Whoever looked at all processes opened what was only called like
/// our memory, and waited for ever.
#[test]
fn a_fifo_that_is_called_like_our_memory_stops_no_look() {
    let stage = Stage::new();
    for (link, looks) in [
        ("/memfd:doorbell-counters", [&["top", "--once"][..], &["top", "--metrics"]]),
        ("/memfd:doorbell@/run/clock.sock", [&["list-services"][..], &["list-services", "--json"]]),
    ] {
        let Some(mut attacker) = with_fifo_shown_as(link) else {
            doorbell_skipped::skip("no mount namespace can be made here");
            return;
        };
        for look in looks {
            let output = ended(&stage, look);
            assert!(output.status.success(), "{}", said(&output));
        }
        attacker.kill().unwrap();
        attacker.wait().unwrap();
    }
}

#[test]
fn a_named_pipe_in_the_place_of_a_file_is_told_and_not_waited_for() {
    let stage = Stage::new();
    let pipe = stage.path().join("pipe.json");
    mkfifoat(CWD, &pipe, Mode::from_raw_mode(0o666)).unwrap();
    let (pipe, page) = (pipe.to_str().unwrap(), stage.path().join("page"));
    let page = page.to_str().unwrap();
    for args in [
        &["show", pipe][..],
        &["compare", DATA, pipe],
        &["report", DATA, pipe, "-o", page],
        &["export", "csv", pipe],
        &["claims", pipe],
        &["fleet", "verdict", DATA, "--nodes", pipe],
        &["check", "--baseline", pipe],
        &["check", "--baseline", DATA, "--from", pipe],
        &["ping", "--plan", pipe],
        &["pick", "--arrivals", pipe],
        &["io", "--import", pipe],
    ] {
        let output = ended(&stage, args);
        assert_ne!(output.status.code(), Some(0), "{args:?}");
        assert!(said(&output).contains("a named pipe"), "{args:?}: {}", said(&output));
    }
    // A page of many nodes names it.
    ended(&stage, &["fleet", "report", pipe, "-o", page]);
    let index = fs::read_to_string(Path::new(page).join("index.html")).unwrap();
    assert!(index.contains("a named pipe"), "{index}");
    // One that the shell made for us is read.
    let program = env!("CARGO_BIN_EXE_doorbell");
    let script = format!("{program} show <(cat {DATA}) && {program} compare <(cat {DATA}) {DATA}");
    let given = Command::new("timeout").args(["120", "bash", "-c", &script]).output().unwrap();
    assert!(!said(&given).contains("cannot read") && said(&given).contains("ping"), "{}", said(&given));
}

/// The page of the superuser overwrote the file that the link of another user named.
#[test]
fn what_the_command_writes_goes_through_no_link_that_another_user_planted() {
    let stage = Stage::new();
    let precious = stage.path().join("precious");
    fs::write(&precious, "precious").unwrap();
    let link = stage.path().join("link.json");
    std::os::unix::fs::symlink(&precious, &link).unwrap();
    if !given_away(&link) {
        doorbell_skipped::skip("only the superuser can give a link away");
        return;
    }
    let link = link.to_str().unwrap();
    for args in [
        &["report", DATA, "-o", link][..],
        &["report", DATA, "--picture", "ranges", "-o", link],
        &["export", "csv", DATA, "-o", link],
        &["ping", "null", "--save-plan", link],
        &["ping", "null", "--count", "10", "--blocks", "1", "-o", link],
        &["model", "futex", "--hazard", "lost-wake", "--svg", link],
    ] {
        let output = ended(&stage, args);
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious", "{args:?}");
        assert_ne!(output.status.code(), Some(0), "{args:?}: {}", said(&output));
    }
    let told = said(&ended(&stage, &["report", DATA, "-o", link]));
    assert!(told.contains("a link of another user (number 65534)"), "{told}");
    // The page that is written has the owner that it should.
    let page = stage.path().join("page.html");
    ended(&stage, &["report", DATA, "-o", page.to_str().unwrap()]);
    assert_eq!(fs::metadata(page).unwrap().uid(), rustix::process::geteuid().as_raw());
}

/// Pages and results went into whatever folder the link of another user named.
#[test]
fn no_folder_is_written_to_that_another_user_planted() {
    let stage = Stage::new();
    let at = |name: &str| stage.path().join(name);
    fs::create_dir(at("shared")).unwrap();
    fs::set_permissions(at("shared"), fs::Permissions::from_mode(0o1777)).unwrap();
    fs::create_dir(at("precious")).unwrap();
    std::os::unix::fs::symlink(at("precious"), at("shared/link")).unwrap();
    if !given_away(&at("shared/link")) {
        doorbell_skipped::skip("only the superuser can give a link away");
        return;
    }
    let (link, page) = (at("shared/link"), at("shared/link/new/page.html"));
    let (link, page) = (link.to_str().unwrap(), page.to_str().unwrap());
    let short = ["ping", "null", "--count", "10", "--blocks", "1"];
    let state = format!("XDG_STATE_HOME={link}");
    let runtime = format!("XDG_RUNTIME_DIR={link}");
    let cases: [(&[&str], &[&str]); 7] = [
        (&["fleet", "report", DATA, "-o", link], &[]),
        (&["report", DATA, "-o", page], &[]),
        (&["tune", "--blocks", "1", "--profile", page], &[]),
        (&[&short[..], &["--save-baseline", "main"]].concat(), &[&state]),
        (&short, &[&runtime]),
        (&["show"], &[&state]),
        (&["check", "--baseline", "main"], &[&state]),
    ];
    for (args, variables) in cases {
        let mut command = stage.doorbell(args);
        command.envs(variables.iter().filter_map(|variable| variable.split_once('=')));
        let output = command.output().unwrap();
        let told = said(&output);
        assert!(told.contains("a link of another user (number 65534)"), "{args:?}: {told}");
        assert_ne!(output.status.code(), Some(0), "{args:?}: {told}");
        assert_eq!(fs::read_dir(at("precious")).unwrap().count(), 0, "{args:?}: {told}");
    }
}

/// A baseline of somebody else's asked for 20,000 processes of load, and they were begun.
#[test]
fn a_baseline_is_held_to_the_bounds_that_a_plan_is_held_to() {
    let stage = Stage::new();
    let file = stage.path().join("baseline.json");
    let refused = |field: &str, value: Value| {
        let mut result: Value = serde_json::from_slice(&fs::read(DATA).unwrap()).unwrap();
        let plan = &mut result["plan"];
        if plan.get(field).is_some() {
            plan[field] = value;
        } else {
            let configurations = plan["configurations"].as_array_mut().unwrap();
            configurations.iter_mut().for_each(|configuration| configuration[field] = value.clone());
        }
        fs::write(&file, result.to_string()).unwrap();
        let baseline = file.to_str().unwrap();
        // Nothing is run, whatever the file asks for.
        [["check", "--baseline", baseline, "--dry-run"], ["ping", "--plan", baseline, "--dry-run"]]
            .map(|args| ended(&stage, &args))
    };
    for (field, value, told) in [
        // Without what it says something else would be measured.
        ("wibble", json!(1), "'configurations.0.wibble', which this version does not know"),
        ("load", json!({"kind": "sqrt", "workers": 10_000, "pinned": false}), "workers is 10000"),
        ("size", json!(u32::MAX), "size is 4294967295"),
        ("blocks", json!(u32::MAX), "blocks is 4294967295"),
        ("until", json!({"count": 0}), "until needs a count"),
        ("until", json!({"count": 1_000_000_000_000_000_u64}), "until.count is 1000000000000000"),
        ("until", json!({"time_ns": 1_000_000_000_000_000_000_u64}), "until.time_ns is 10000000000000000"),
        ("pattern", json!({"kind": "ping-pong", "gap_ns": u64::MAX}), "the pattern's gap is 184467440737"),
        ("wait", json!({"kind": "spin-then-block", "spin_ns": u64::MAX}), "spin_ns is 184467440737"),
    ] {
        for output in refused(field, value.clone()) {
            assert_eq!(output.status.code(), Some(2), "{field}: {}", said(&output));
            assert!(said(&output).contains(told), "{field}: {}", said(&output));
        }
    }
}
