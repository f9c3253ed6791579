// SPDX-License-Identifier: MIT OR Apache-2.0
//! Launches a host for one trial and brings its report home, by what every system has.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use super::order::{Order, Report, Task};
use super::run_dir::RunDir;
use doorbell_results::machine::clock::Clock;

/// The hidden verb under which this program is a host.
pub const HOST_VERB: &str = "trial-host";

/// How long an interrupt may go unheard.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Bytes that are kept of what a host complains of.
const LONGEST_COMPLAINT: usize = 2000;

/// Runs one configuration in a process of its own; ends it early once `interrupted` is set.
pub fn launch(task: Task, clock: Clock, _: &RunDir, interrupted: &AtomicBool) -> io::Result<Report> {
    let order = Order { task, clock };
    let mut child = Command::new(std::env::current_exe()?)
        .arg(HOST_VERB)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let report = converse(&mut child, &order, interrupted);
    if report.is_err() {
        // An error means that it is gone already.
        let _ = child.kill();
    }
    let status = child.wait()?;
    let (text, complaint) = report?;
    serde_json::from_str(&text).or_else(|_| {
        let cause = format!("the trial's host left without a report ({status}) {}", complaint.trim());
        Ok(Report::Failed { cause, at: None })
    })
}

/// Gives the order and reads the report; on an interrupt, closes the host's input.
fn converse(child: &mut Child, order: &Order, interrupted: &AtomicBool) -> io::Result<(String, String)> {
    let (Some(mut stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    let mut line = serde_json::to_vec(order)?;
    line.push(b'\n');
    stdin.write_all(&line)?;
    let mut stdin = Some(stdin);
    let (tell, hear) = channel();
    let reader = std::thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(stdout).read_line(&mut line);
        // Whoever has given up listening needs no answer.
        let _ = tell.send(read.map(|_| line));
    });
    let complaints = std::thread::spawn(move || {
        let mut text = Vec::new();
        // Read to its end, or who writes it would wait.
        let _ = BufReader::new(stderr).read_to_end(&mut text);
        text.truncate(LONGEST_COMPLAINT);
        String::from_utf8_lossy(&text).into_owned()
    });
    let text = loop {
        match hear.recv_timeout(LOOK_EVERY) {
            Ok(text) => break text?,
            Err(RecvTimeoutError::Timeout) if interrupted.load(Relaxed) => drop(stdin.take()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break String::new(),
        }
    };
    // Its input is kept open until its report is here, so that it is not told to hurry.
    drop(stdin);
    let _ = reader.join();
    Ok((text, complaints.join().unwrap_or_default()))
}
