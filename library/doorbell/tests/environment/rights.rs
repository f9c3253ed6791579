// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a program that blocks signals, may write small files alone, or has raised rights, meets.

use super::*;
use doorbell::service::{FolderState, folders};
use rustix::process::{Gid, Uid};

/// Not a test. The program blocks SIGTERM in all of its threads and reads it from a file; of the
/// library's threads it knows nothing.
pub(crate) fn read_a_signal_from_a_file(path: &Path) {
    let set = |how: libc::c_int| {
        // SAFETY: the set is initialised before it is used, and valid for the calls.
        unsafe {
            let mut term = std::mem::zeroed();
            libc::sigemptyset(&raw mut term);
            libc::sigaddset(&raw mut term, libc::SIGTERM);
            assert_eq!(libc::pthread_sigmask(how, &raw const term, std::ptr::null_mut()), 0);
            libc::signalfd(-1, &raw const term, libc::SFD_CLOEXEC)
        }
    };
    // The parent has it blocked for all, before any is there. This
    // thread has it as other programs begin.
    set(libc::SIG_UNBLOCK);
    let mut service = doorbell::listen(path).unwrap();
    let connected = thread::scope(|scope| {
        let connecting = scope.spawn(|| doorbell::connect(path).unwrap());
        (service.accept().unwrap(), connecting.join().unwrap())
    });
    doorbell::measure_sleep_cost(10);
    let file = set(libc::SIG_BLOCK);
    // SAFETY: just made, and nobody else's.
    let file = unsafe { <rustix::fd::OwnedFd as rustix::fd::FromRawFd>::from_raw_fd(file) };
    kill_process(rustix::process::getpid(), Signal::TERM).unwrap();
    let mut told = [0; size_of::<libc::signalfd_siginfo>()];
    rustix::io::read(&file, &mut told).unwrap();
    assert_eq!(told[..4], (libc::SIGTERM as u32).to_ne_bytes());
    drop(connected);
}

/// The thread that hears of deaths had the signal unblocked, and the program died of it.
#[test]
fn a_signal_that_the_program_reads_from_a_file_ends_it_not_through_our_threads() {
    let path = scratch("signal");
    let mut program = me_as(format!("read-a-signal-from-a-file {}", path.display()));
    // SAFETY: system calls only.
    unsafe {
        program.pre_exec(|| {
            let mut term = std::mem::zeroed();
            libc::sigemptyset(&raw mut term);
            libc::sigaddset(&raw mut term, libc::SIGTERM);
            of_libc(libc::sigprocmask(libc::SIG_BLOCK, &raw const term, std::ptr::null_mut()))
        });
    }
    succeeds(program);
}

/// Not a test. As much memory as a file may have bytes, and then more.
pub(crate) fn make_more_than_a_file_may_have(_: &Path) {
    // Through a child's `exec` the harness's own output is a pipe: no file.
    setrlimit(Resource::Fsize, Rlimit { current: Some(1 << 20), maximum: Some(1 << 20) }).unwrap();
    let lanes = |capacity| Offer::of_lanes(Lanes::new(1, 1, capacity).unwrap());
    Segment::new(&lanes(4096)).unwrap();
    let told = [
        Segment::new(&lanes(1 << 21)).map(drop).unwrap_err().to_string(),
        Publisher::new(1 << 21).map(drop).unwrap_err().to_string(),
    ];
    for told in told {
        assert!(told.contains("too large") && told.contains("ulimit -f"), "{told}");
    }
    // Memory that is no file has no such limit.
    doorbell::channel(1 << 21).unwrap();
}

/// SIGXFSZ killed it, in `ftruncate` of memory.
#[test]
fn memory_beyond_what_a_file_may_have_is_refused_and_kills_nobody() {
    succeeds(me_as(format!("make-more-than-a-file-may-have {}", scratch("fsize").display())));
}

/// How that ends, where its own assertions do not end it.
const RAISED: i32 = 7;
const PLAIN: i32 = 8;

/// Not a test.
pub(crate) fn say_whose_folder(path: &Path) {
    let raised = rustix::process::geteuid() != rustix::process::getuid();
    let named = folders().iter().any(|folder| folder.path == path && folder.state == FolderState::Named);
    assert_ne!(raised, named, "raised: {raised}; {:?}", folders());
    assert_eq!(raised, doorbell::profile::path().is_none_or(|profile| profile != path));
    std::process::exit(if raised { RAISED } else { PLAIN });
}

/// Who started it said where it listens, and which file it reads.
#[test]
fn a_program_with_raised_rights_listens_where_its_starter_cannot_say() {
    if !rustix::process::geteuid().is_root() {
        return doorbell_skipped::skip("only root can give a program another user's rights");
    }
    let (folder, program) = (scratch("starter"), scratch("raised"));
    fs::create_dir(&folder).unwrap();
    // By another process: were the copy open for writing here, a
    // sibling test that forks just then would carry it along.
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status();
    assert!(copied.unwrap().success());
    let play = |mode: u32| {
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        let mut command = Command::new(&program);
        command.args(["--exact", "child", "--nocapture"]).stdout(Stdio::null());
        command.env(ROLE, format!("say-whose-folder {}", folder.display()));
        command.env("DOORBELL_RUNTIME_DIR", &folder).env("DOORBELL_PROFILE", &folder);
        // SAFETY: system calls only.
        unsafe {
            command.pre_exec(|| {
                rustix::thread::set_thread_res_gid(
                    Gid::from_raw(12345),
                    Gid::from_raw(12345),
                    Gid::from_raw(12345),
                )?;
                rustix::thread::set_thread_res_uid(
                    Uid::from_raw(12345),
                    Uid::from_raw(12345),
                    Uid::from_raw(12345),
                )?;
                Ok(())
            });
        }
        command.status().unwrap().code()
    };
    let (plain, raised) = (play(0o755), play(0o4755));
    fs::remove_dir(&folder).unwrap();
    fs::remove_file(&program).unwrap();
    assert_eq!(plain, Some(PLAIN), "it says above why");
    if raised == Some(PLAIN) {
        return doorbell_skipped::skip("programs get no other user's rights where temporary files lie");
    }
    assert_eq!(raised, Some(RAISED), "it says above why");
}
