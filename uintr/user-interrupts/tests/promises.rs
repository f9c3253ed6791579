// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the crate promises, by whichever backend this machine has: on a machine with the driver by SENDUIPI, else by signals. Each
//! test is a thread of its own, and so a receiver of its own.

use std::cell::Cell;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use user_interrupts::{
    Backend, CONNECTIONS, Calls, Pending, Polled, Receiver, Sender, StartError, Style, VECTORS,
};

/// Long enough for anything that comes at all.
const NEVER: Duration = Duration::from_secs(30);

fn begin() -> Backend {
    let chosen = user_interrupts::start(&[Backend::Hardware, Backend::Signals]);
    chosen.unwrap_or_else(|error| panic!("{error}"))
}

fn receiver() -> Receiver {
    begin();
    Receiver::counting().unwrap()
}

#[test]
fn the_choice_is_for_good_and_says_why() {
    let chosen = begin();
    assert_eq!(user_interrupts::backend(), Some(chosen));
    assert_eq!(user_interrupts::signal().is_some(), chosen == Backend::Signals);
    assert!(user_interrupts::reason().starts_with(&chosen.to_string()), "{}", user_interrupts::reason());
    let other = if chosen == Backend::Hardware { Backend::Signals } else { Backend::Hardware };
    for asks in [user_interrupts::start, user_interrupts::can_start] {
        assert!(matches!(asks(&[other]), Err(StartError::Other(first)) if first == chosen));
    }
    assert!(matches!(user_interrupts::start(&[]), Err(StartError::NothingAsked)));
}

/// In a process of its own, which has chosen nothing yet.
#[test]
fn where_there_is_no_hardware_the_reason_names_what_is_missing() {
    if std::env::var_os("ASKS_FOR_HARDWARE").is_some() {
        // Asking chooses nothing: neither keeps the other from being had.
        assert_eq!(user_interrupts::can_start(&[Backend::Signals]).unwrap(), Backend::Signals);
        assert_eq!(
            user_interrupts::can_start(&[Backend::Hardware]).is_ok(),
            Path::new("/dev/uintr").exists()
        );
        assert_eq!(user_interrupts::backend(), None);
        let said = user_interrupts::start(&[Backend::Hardware]);
        if Path::new("/dev/uintr").exists() {
            assert_eq!(said.unwrap(), Backend::Hardware);
            return;
        }
        let error = said.unwrap_err();
        assert!(error.to_string().contains("/dev/uintr: No such file"), "{error}");
        assert!(error.to_string().contains("this CPU has "), "{error}");
        // Nothing is emulated that was not asked for.
        let refused = Receiver::counting().unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENOSYS));
        assert_eq!(user_interrupts::backend(), None);
        return;
    }
    let own = "where_there_is_no_hardware_the_reason_names_what_is_missing";
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    let output = again
        .args(["--exact", own])
        .env("ASKS_FOR_HARDWARE", "1")
        .env_remove("UINTR_BACKEND")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}

#[test]
fn a_masked_receiver_hears_when_it_unmasks_and_each_vector_once() {
    let receiver = receiver();
    // The descriptors are closed at once, and whoever is connected stays so.
    let connect = |vector| Sender::connect(&receiver.vector(vector).unwrap()).unwrap();
    let senders = [1, 5, 62].map(connect);
    for sender in senders.iter().chain(&senders) {
        sender.send();
    }
    assert!(!receiver.unmasked());
    assert_eq!(receiver.take(), 0);
    receiver.unmask();
    assert!(receiver.unmasked());
    assert_eq!(receiver.take(), 1 << 1 | 1 << 5 | 1 << 62);
    assert_eq!(receiver.take(), 0);
    receiver.mask();
    senders[0].send();
    assert_eq!(receiver.take(), 0);
    receiver.unmask();
    assert_eq!(receiver.take(), 1 << 1);
}

#[test]
fn a_running_thread_is_interrupted_between_two_of_its_instructions() {
    let receiver = receiver();
    let vector = receiver.vector(7).unwrap();
    receiver.unmask();
    let over = Arc::new(AtomicBool::new(false));
    let sends = thread::spawn({
        let over = Arc::clone(&over);
        move || {
            let sender = Sender::connect(&vector).unwrap();
            while !over.load(SeqCst) {
                sender.send();
                thread::yield_now();
            }
            vector
        }
    });
    let start = Instant::now();
    while receiver.take() == 0 {
        assert!(start.elapsed() < NEVER, "never interrupted");
    }
    over.store(true, SeqCst);
    drop(sends.join().unwrap());
}

#[test]
fn a_handler_of_ones_own_is_told_the_vector_and_is_dropped_with_the_receiver() {
    begin();
    let (heard, held) = (Arc::new(AtomicU64::new(0)), Rc::new(()));
    let (told, holds) = (Arc::clone(&heard), Rc::clone(&held));
    let handler = move |vector| {
        let _ = &holds;
        told.fetch_add(1_u64 << (8 * vector), SeqCst);
    };
    // SAFETY: the handler adds to an atomic and nothing else.
    let receiver = unsafe { Receiver::new(handler, Calls::GoOn) }.unwrap();
    let vectors = [0, 1, 2].map(|vector| receiver.vector(vector).unwrap());
    let senders = [0, 1, 2].map(|index: usize| Sender::connect(&vectors[index]).unwrap());
    receiver.unmask();
    for sender in senders.iter().take(2) {
        sender.send();
    }
    assert_eq!(heard.load(SeqCst), 0x0101);
    assert_eq!(Rc::strong_count(&held), 2);
    drop(receiver);
    assert_eq!(Rc::strong_count(&held), 1);
    // Sent to one that has ended: nothing.
    senders[2].send();
    assert_eq!(heard.load(SeqCst), 0x0101);
}

thread_local! {
    static OWN: Cell<Option<Receiver>> = const { Cell::new(None) };
}

#[test]
fn a_receiver_that_its_handler_drops_goes_on() {
    begin();
    let (heard, held) = (Arc::new(AtomicU64::new(0)), Rc::new(()));
    let (told, holds) = (Arc::clone(&heard), Rc::clone(&held));
    let handler = move |_| {
        drop(OWN.take());
        let _ = &holds;
        told.fetch_add(1, SeqCst);
    };
    // SAFETY: the handler takes a receiver that nobody else looks at, and adds to an atomic.
    let receiver = unsafe { Receiver::new(handler, Calls::GoOn) }.unwrap();
    let sender = Sender::connect(&receiver.vector(0).unwrap()).unwrap();
    receiver.unmask();
    OWN.set(Some(receiver));
    sender.send();
    sender.send();
    assert_eq!((heard.load(SeqCst), Rc::strong_count(&held)), (2, 2));
}

#[test]
fn a_wait_ends_with_an_interrupt_or_with_its_time_and_keeps_what_came_before() {
    let receiver = receiver();
    let vector = receiver.vector(0).unwrap();
    let sender = Sender::connect(&vector).unwrap();
    assert_eq!(receiver.wait(Some(Duration::from_millis(2))).unwrap(), Pending::TimedOut);
    assert_eq!(receiver.wait(Some(Duration::ZERO)).unwrap(), Pending::TimedOut);
    sender.send();
    assert_eq!(receiver.wait(None).unwrap(), Pending::Interrupt);
    receiver.unmask();
    assert_eq!(receiver.take(), 1);
    receiver.mask();
    // And one that comes while it sleeps.
    let later = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        sender.send();
    });
    assert_eq!(receiver.wait(Some(NEVER)).unwrap(), Pending::Interrupt);
    receiver.unmask();
    assert_eq!(receiver.take(), 1);
    later.join().unwrap();
}

#[test]
fn a_masked_loop_ends_its_wait_for_an_interrupt_and_for_a_file_that_can_be_read() {
    let receiver = receiver();
    let vector = receiver.vector(0).unwrap();
    let sender = Sender::connect(&vector).unwrap();
    let (mut reader, mut writer) = io::pipe().unwrap();
    let wait = |receiver: &Receiver, reader: &PipeReader, timeout| loop {
        match receiver.wait_readable(reader.as_fd(), timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other.unwrap(),
        }
    };
    assert_eq!(wait(&receiver, &reader, Some(Duration::from_millis(2))), Pending::TimedOut);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(20));
            sender.send();
        });
        assert_eq!(wait(&receiver, &reader, Some(NEVER)), Pending::Interrupt);
    });
    assert_eq!(receiver.take(), 0);
    writer.write_all(b"x").unwrap();
    assert_eq!(wait(&receiver, &reader, None), Pending::Readable);
    reader.read_exact(&mut [0]).unwrap();
    assert_eq!(wait(&receiver, &reader, None), Pending::Interrupt);
    receiver.unmask();
    assert_eq!(receiver.take(), 1);
}

#[test]
fn a_timer_interrupts_its_thread_until_it_is_stopped() {
    let receiver = receiver();
    for refused in [(64, 1_000_000), (0, 0), (0, 9_999)] {
        let first = Duration::from_nanos(refused.1);
        let error = receiver.timer(refused.0, first, None).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{refused:?}");
    }
    let millisecond = Duration::from_millis(1);
    receiver.timer(7, millisecond, Some(millisecond)).unwrap();
    receiver.unmask();
    for _ in 0..5 {
        while receiver.take() != 1 << 7 {
            std::hint::spin_loop();
        }
    }
    receiver.stop_timer().unwrap();
    receiver.take();
    thread::sleep(20 * millisecond);
    assert_eq!(receiver.take(), 0);
}

#[test]
fn two_threads_wake_each_other_ten_thousand_times() {
    begin();
    const TIMES: u64 = 10_000;
    let (give, taken) = std::sync::mpsc::channel();
    let (back, returned) = std::sync::mpsc::channel();
    let side =
        |give: std::sync::mpsc::Sender<OwnedFd>, taken: std::sync::mpsc::Receiver<OwnedFd>, first: bool| {
            move || {
                let receiver = Receiver::counting().unwrap();
                give.send(receiver.vector(0).unwrap()).unwrap();
                let theirs = taken.recv().unwrap();
                let sender = Sender::connect(&theirs).unwrap();
                if first {
                    sender.send();
                }
                for _ in 0..TIMES {
                    while receiver.take() == 0 {
                        assert_eq!(receiver.wait(Some(NEVER)).unwrap(), Pending::Interrupt, "lost");
                        receiver.unmask();
                        receiver.mask();
                    }
                    sender.send();
                }
                // The last send of the other may still be to come: it ends with its receiver.
                theirs
            }
        };
    let one = thread::spawn(side(give, returned, true));
    let other = thread::spawn(side(back, taken, false));
    drop((one.join().unwrap(), other.join().unwrap()));
}

#[test]
fn what_cannot_be_is_refused_with_the_errors_of_the_manual() {
    let own = receiver();
    let errno = |error: std::io::Error| error.raw_os_error();
    assert_eq!(Receiver::counting().err().and_then(errno), Some(libc::EBUSY));
    assert_eq!(own.vector(VECTORS).err().and_then(errno), Some(libc::ENOSPC));
    let vector = own.vector(4).unwrap();
    assert_eq!(own.vector(4).err().and_then(errno), Some(libc::EBUSY));
    assert_eq!(own.revoke(5).err().and_then(errno), Some(libc::EINVAL));
    own.revoke(4).unwrap();
    assert_eq!(Sender::connect(&vector).err().and_then(errno), Some(libc::ESHUTDOWN));
    // It may be had anew, as another.
    drop(Sender::connect(&own.vector(4).unwrap()).unwrap());
    let file = std::fs::File::open("/dev/null").unwrap();
    assert_eq!(Sender::connect(&file).err().and_then(errno), Some(libc::EOPNOTSUPP));
    // The thread may be another receiver once the first has ended.
    drop(own);
    drop(receiver());
}

#[test]
fn many_are_connected_to_at_once_or_none_and_a_set_of_them_is_sent_to() {
    let receiver = receiver();
    let mut vectors: Vec<OwnedFd> = (0..VECTORS).map(|n| receiver.vector(n).unwrap()).collect();
    let senders = Sender::connect_all(&vectors).unwrap();
    Sender::send_all(&senders[10..60]);
    Sender::send_all(senders.iter().step_by(63));
    receiver.unmask();
    assert_eq!(receiver.take(), ((1 << 50) - 1) << 10 | 1 | 1 << 63);
    receiver.mask();
    drop(senders);
    // More than a process may be connected to, were those before the wrong one kept.
    vectors.push(std::fs::File::open("/dev/null").unwrap().into());
    for _ in 0..=CONNECTIONS / usize::from(VECTORS) {
        let error = Sender::connect_all(&vectors).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP));
    }
}

#[test]
fn what_is_written_to_an_eventfd_comes_as_a_vector() {
    let receiver = receiver();
    // SAFETY: the call makes a descriptor, which is ours alone.
    let event = unsafe { OwnedFd::from_raw_fd(libc::eventfd(0, libc::EFD_CLOEXEC)) };
    receiver.eventfd(6, event.as_fd()).unwrap();
    let errno = |error: std::io::Error| error.raw_os_error();
    assert_eq!(receiver.vector(6).err().and_then(errno), Some(libc::EBUSY));
    for _ in 0..100 {
        let mut file = std::fs::File::from(event.try_clone().unwrap());
        let writer = thread::spawn(move || file.write_all(&1u64.to_ne_bytes()).unwrap());
        assert_eq!(receiver.wait(Some(NEVER)).unwrap(), Pending::Interrupt);
        receiver.unmask();
        assert_eq!(receiver.take(), 1 << 6);
        receiver.mask();
        writer.join().unwrap();
    }
    receiver.revoke(6).unwrap();
    drop(receiver.vector(6).unwrap());
}

#[test]
fn a_vector_without_a_handler_is_read_and_polled() {
    begin();
    let polled = Polled::new(Style { nonblock: true, ..Style::default() }).unwrap();
    let readable = || {
        let mut asked = libc::pollfd { fd: polled.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one structure, which lives through the call.
        unsafe { libc::poll(&raw mut asked, 1, 0) == 1 }
    };
    assert_eq!(polled.read().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    assert!(!readable());
    let sender = Sender::connect(&polled).unwrap();
    sender.send();
    assert!(readable());
    assert!(polled.read().unwrap() >= 1);
    assert!(!readable());
    let counts = Polled::new(Style { semaphore: true, nonblock: false }).unwrap();
    Sender::connect(&counts).unwrap().send();
    assert_eq!(counts.read().unwrap(), 1);
}

#[test]
fn a_child_connects_to_what_it_inherits_and_has_no_receiver() {
    let receiver = receiver();
    let vector = receiver.vector(9).unwrap();
    let mine = Sender::connect(&vector).unwrap();
    // SAFETY: between fork and _exit the child calls nothing that allocates or locks but the library, whose locks are free in it.
    match unsafe { libc::fork() } {
        0 => {
            let theirs = Sender::connect(&vector);
            if let Ok(sender) = &theirs {
                sender.send();
            }
            let ok = theirs.is_ok() && receiver.wait(Some(Duration::ZERO)).is_err();
            // SAFETY: ends this process at once.
            unsafe { libc::_exit(i32::from(!ok)) }
        }
        child => {
            assert!(child > 0);
            assert_eq!(receiver.wait(Some(NEVER)).unwrap(), Pending::Interrupt);
            receiver.unmask();
            assert_eq!(receiver.take(), 1 << 9);
            let mut status = 0;
            // SAFETY: the status lives through the call.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!(status, 0);
        }
    }
    drop(mine);
}

#[test]
fn a_passed_descriptor_is_as_good_as_the_first() {
    let receiver = receiver();
    let vector = receiver.vector(2).unwrap();
    // SAFETY: the number is of a descriptor of this thread's; the copy is ours alone.
    let copy = unsafe { OwnedFd::from_raw_fd(libc::fcntl(vector.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 0)) };
    drop(vector);
    let sender = Sender::connect(&copy).unwrap();
    sender.send();
    receiver.unmask();
    assert_eq!(receiver.take(), 1 << 2);
}
