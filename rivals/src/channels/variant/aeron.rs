// SPDX-License-Identifier: MIT OR Apache-2.0
//! Aeron IPC, polled: two Java processes that this one tells what to do (`aeron/Side.java`).
//! `aeron/build` fetches and compiles them.

use crate::channels::letter::Tally;
use crate::channels::link::{Block, Kind, Link, Order};
use crate::statistics::quantile;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

struct Side {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

struct Sides {
    // In this order: the driver lives in the one that calls.
    answers: Side,
    calls: Side,
    _folder: Folder,
}

/// What the driver puts in the file system. It removes that itself, if it gets to its end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Side {
    fn start(role: &str, size: usize, folder: &str) -> Result<Self, String> {
        let classes = concat!(env!("CARGO_MANIFEST_DIR"), "/target/aeron");
        if !fs::exists(format!("{classes}/Side.class")).unwrap_or(false) {
            return Err(
                "not built: src/channels/variant/aeron/build does it, and needs a JDK and Maven".to_owned()
            );
        }
        let mut child = Command::new("java")
            .args(["--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED", "-XX:+UseSerialGC"])
            .args(["--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED"])
            .args([
                "-cp",
                &format!("{classes}:{classes}/aeron-all.jar"),
                "Side",
                role,
                &size.to_string(),
                folder,
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("java: {error}"))?;
        let orders = child.stdin.take().ok_or("no pipe")?;
        let answers = BufReader::new(child.stdout.take().ok_or("no pipe")?);
        Ok(Self { child, orders, answers })
    }

    fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(length) if length > 0 => Ok(line),
            _ => Err("the Java process ended".to_owned()),
        }
    }

    fn order(&mut self, line: &str) -> Result<(), String> {
        self.orders
            .write_all(line.as_bytes())
            .map_err(|error| format!("the Java process takes no orders: {error}"))
    }

    /// What it says it has done.
    fn done(&mut self) -> Result<Vec<u64>, String> {
        let line = self.line()?;
        let words = line.strip_prefix("done ").ok_or_else(|| format!("the Java process said {line:?}"))?;
        words
            .split_whitespace()
            .map(|word| word.parse().map_err(|error| format!("{word}: {error}")))
            .collect()
    }

    /// Keeps the thread that sends and receives on `cpu`.
    fn pin(&self, cpu: usize) -> Result<(), String> {
        let mut set = CpuSet::new();
        set.set(cpu);
        let tasks =
            fs::read_dir(format!("/proc/{}/task", self.child.id())).map_err(|error| error.to_string())?;
        for task in tasks.flatten() {
            let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            let number = task.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
            if name.trim_end() == "aeron-side" {
                return sched_setaffinity(number, &set)
                    .map_err(|errno| format!("sched_setaffinity: {errno}"));
            }
        }
        Err("the Java process has no thread named aeron-side".to_owned())
    }

    /// Processor time of all its threads, the driver's, the
    /// compiler's and the collector's too, in nanoseconds.
    fn cpu(&self) -> u64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let mut clock = 0;
        // SAFETY: valid places for the results; on failure the time stays 0.
        unsafe {
            if libc::clock_getcpuclockid(self.child.id() as libc::pid_t, &raw mut clock) == 0 {
                libc::clock_gettime(clock, &raw mut time);
            }
        }
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // The end of the pipe would not do: partners that were forked later hold it open.
        let _ = self.order("end\n");
        let _ = self.child.wait();
    }
}

impl Link for Sides {
    fn block(&mut self, order: Order) -> Result<Block, String> {
        let Order { kind, cpus, warm, count } = order;
        if kind == Kind::Full {
            return Err("its Java side has no slow receiver".to_owned());
        }
        let stream = u8::from(kind == Kind::Stream);
        let line = format!("{stream} {} {warm} {count}\n", u8::from(cpus.0 == cpus.1));
        self.calls.pin(cpus.0)?;
        self.answers.pin(cpus.1)?;
        let cpu = self.calls.cpu() + self.answers.cpu();
        self.answers.order(&line)?;
        self.calls.order(&line)?;
        let (ours, theirs) = (self.calls.done()?, self.answers.done()?);
        let cpu = self.calls.cpu() + self.answers.cpu() - cpu;
        let ([start, our_end, our_tally @ ..], [_, their_end, their_tally @ ..]) = (&ours[..], &theirs[..])
        else {
            return Err("the Java process said too little".to_owned());
        };
        let tally = |of: usize| our_tally.get(of).unwrap_or(&0) + their_tally.get(of).unwrap_or(&0);
        let round_trips: Vec<u64> = our_tally.get(4..).unwrap_or_default().to_vec();
        let end = if kind == Kind::Stream { their_end } else { our_end };
        let elapsed = end.wrapping_sub(*start) as f64;
        let nanoseconds = match kind {
            Kind::RoundTrip => {
                quantile(&mut round_trips.iter().map(|time| *time as f64).collect::<Vec<_>>(), 0.5)
            }
            _ => elapsed / count as f64,
        };
        Ok(Block {
            nanoseconds,
            elapsed,
            round_trips,
            // Of the warm-up too, which is a thirtieth.
            cpu: cpu as f64 / (warm + count) as f64,
            sent: if kind == Kind::Stream { 2 * warm + count } else { 2 * (warm + count) },
            tally: Tally { received: tally(0), missing: tally(1), repeated: tally(2), corrupt: tally(3) },
            late: 0,
        })
    }
}

pub fn polled<const S: usize>() -> Result<Box<dyn Link>, String> {
    let folder = PathBuf::from(format!("/dev/shm/doorbell-rivals-aeron-{}-{S}", std::process::id()));
    let name = folder.to_str().ok_or("no name")?.to_owned();
    let folder = Folder(folder);
    let mut calls = Side::start("calls", S, &name)?;
    // The other side finds the driver's folder, or waits for it.
    let mut answers = Side::start("answers", S, &name)?;
    for side in [&mut calls, &mut answers] {
        let line = side.line()?;
        if line != "ready\n" {
            return Err(format!("the Java process said {line:?}"));
        }
    }
    let mut sides = Sides { answers, calls, _folder: folder };
    // So many that the virtual machine has compiled the loops.
    let count = (64 << 20) / (S as u64 + 2000);
    for kind in [Kind::RoundTrip, Kind::Stream] {
        sides.block(Order { kind, cpus: crate::clock::first_cpus(), warm: 8, count })?;
    }
    Ok(Box::new(sides))
}
