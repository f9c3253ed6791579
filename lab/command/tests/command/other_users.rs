// SPDX-License-Identifier: MIT OR Apache-2.0
//! What other users of the machine, and whoever writes a file that is
//! read, can make of the command: nothing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::fs::{AtFlags, CWD, Gid, Mode, Uid, chownat, mkfifoat};
use serde_json::{Value, json};

use crate::stage::{Said, Stage, with};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ping.json");

/// The command's end, which comes: one that waits for ever is ended
/// by timeout(1), with the status 124.
fn ended(stage: &Stage, words: &str) -> Said {
    let mut outer = Command::new("timeout");
    outer.args(["--kill-after=5", "120"]).current_dir(stage.path()).stdin(Stdio::null());
    let said = Said::by(&mut with(outer, &stage.words(words)));
    assert_ne!(said.status, Some(124), "{words} waits for ever");
    said
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
    for (accel, told) in
        [("uintr", "no uintr/qemu/build is in this folder"), ("tcg", "there is no QEMU here")]
    {
        let mut command = stage.words(&format!("vm run --accel {accel} -- ping"));
        let said = Said::by(command.current_dir(stage.path()).env("PATH", stage.path())).all();
        assert!(said.contains(told), "{said}");
    }
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
    let said = ended(&stage, "vm run --guest squall -- tasks -n 12").all();
    assert!(said.contains("another user may change it"), "{said}");
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
        ("/memfd:doorbell-counters", ["top --once", "top --metrics"]),
        ("/memfd:doorbell@/run/clock.sock", ["list-services", "list-services --json"]),
    ] {
        let Some(mut attacker) = with_fifo_shown_as(link) else {
            doorbell_skipped::skip("no mount namespace can be made here");
            return;
        };
        for look in looks {
            ended(&stage, look).ended(0);
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
    let page = stage.path().join("page");
    let meant = |words: &str| {
        let (pipe, page) = (pipe.to_str().unwrap(), page.to_str().unwrap());
        words.replace("PIPE", pipe).replace("DATA", DATA).replace("PAGE", page)
    };
    for words in [
        "show PIPE",
        "compare DATA PIPE",
        "report DATA PIPE -o PAGE",
        "export csv PIPE",
        "claims PIPE",
        "fleet verdict DATA --nodes PIPE",
        "check --baseline PIPE",
        "check --baseline DATA --from PIPE",
        "ping --plan PIPE",
        "pick --arrivals PIPE",
        "io --import PIPE",
    ] {
        let said = ended(&stage, &meant(words));
        assert!(said.status != Some(0) && said.all().contains("a named pipe"), "{words}: {}", said.all());
    }
    // A page of many nodes names it.
    ended(&stage, &meant("fleet report PIPE -o PAGE"));
    let index = fs::read_to_string(page.join("index.html")).unwrap();
    assert!(index.contains("a named pipe"), "{index}");
    // One that the shell made for us is read.
    let program = env!("CARGO_BIN_EXE_doorbell");
    let script = format!("{program} show <(cat {DATA}) && {program} compare <(cat {DATA}) {DATA}");
    let given = Said::by(Command::new("timeout").args(["120", "bash", "-c", &script])).all();
    assert!(!given.contains("cannot read") && given.contains("ping"), "{given}");
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
    for words in [
        "report DATA",
        "report DATA --picture ranges",
        "export csv DATA",
        "ping null --save-plan LINK",
        "ping null --count 10 --blocks 1",
        "model futex --hazard lost-wake --svg LINK",
    ] {
        let words = if words.ends_with("LINK") { words.to_owned() } else { format!("{words} -o LINK") };
        let said = ended(&stage, &words.replace("DATA", DATA).replace("LINK", link.to_str().unwrap()));
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious", "{words}");
        assert_ne!(said.status, Some(0), "{words}: {}", said.all());
        let told = said.all().contains("a link of another user (number 65534)");
        assert!(told || !words.starts_with("report"), "{}", said.all());
    }
    // The page that is written has the owner that it should.
    let page = stage.path().join("page.html");
    ended(&stage, &format!("report {DATA} -o {}", page.display()));
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
    let link = stage.file("shared/link");
    let short = "ping null --count 10 --blocks 1";
    for (words, variable) in [
        (format!("fleet report {DATA} -o {link}"), ""),
        (format!("report {DATA} -o {link}/new/page.html"), ""),
        (format!("tune --blocks 1 --profile {link}/new/page.html"), ""),
        (format!("{short} --save-baseline main"), "XDG_STATE_HOME"),
        (short.to_owned(), "XDG_RUNTIME_DIR"),
        ("show".to_owned(), "XDG_STATE_HOME"),
        ("check --baseline main".to_owned(), "XDG_STATE_HOME"),
    ] {
        let mut command = stage.words(&words);
        let said = Said::by(command.envs((!variable.is_empty()).then_some((variable, &link))));
        let told = said.all();
        assert!(told.contains("a link of another user (number 65534)"), "{words}: {told}");
        assert_ne!(said.status, Some(0), "{words}: {told}");
        assert_eq!(fs::read_dir(at("precious")).unwrap().count(), 0, "{words}: {told}");
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
        // Nothing is run, whatever the file asks for.
        ["check --baseline", "ping --plan"]
            .map(|verb| ended(&stage, &format!("{verb} {} --dry-run", file.display())))
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
        for said in refused(field, value) {
            let said = said.ended(2).all();
            assert!(said.contains(told), "{field}: {said}");
        }
    }
}
