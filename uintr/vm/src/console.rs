// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the guest's kernel says on its console: the last lines, a panic, complaints.

use std::collections::VecDeque;
use std::fmt::{self, Display, Formatter};

/// Lines kept for the message of an error: a panic with its registers is some 25.
const KEPT: usize = 30;

/// A line beyond this is cut: a guest that writes no line ends must not fill the host's memory.
const LONGEST_LINE: usize = 1024;

/// Complaints kept; a guest that complains on and on says the same thing.
const COMPLAINTS: usize = 20;

/// The line that a dying kernel ends with.
const PANIC: &str = "Kernel panic - not syncing";

/// What a kernel complains of while it goes on: stalls, hung tasks, lock-ups, faults of its own.
const COMPLAINT: [&str; 8] = [
    "rcu_sched detected",
    "rcu_sched self-detected",
    "rcu_preempt detected",
    "rcu_preempt self-detected",
    "blocked for more than",
    "soft lockup",
    "BUG:",
    "Oops:",
];

/// What a line holds that warns of a broken assumption: `WARNING: CPU: 1 PID: …`, and since Linux
/// 6.18 `WARNING: FILE:LINE at FUNCTION, CPU#1: …`. Others begin in the same way and are remarks.
const WARNING: (&str, [&str; 2]) = ("WARNING: ", [" CPU: ", " CPU#"]);

/// The console, line by line.
#[derive(Debug, Default)]
pub struct Console {
    lines: VecDeque<String>,
    line: Vec<u8>,
    panic: Option<String>,
    complaints: Vec<String>,
}

impl Console {
    /// Adds what has arrived.
    pub fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                b'\n' => self.end_line(),
                _ if self.line.len() < LONGEST_LINE => self.line.push(*byte),
                _ => {}
            }
        }
    }

    /// Ends a line that has no end.
    pub fn close(&mut self) {
        if !self.line.is_empty() {
            self.end_line();
        }
    }

    /// The kernel's last words, if it panicked.
    pub fn panic(&self) -> Option<&str> {
        self.panic.as_deref()
    }

    /// Lines in which the kernel complained, at most twenty.
    pub fn complaints(&self) -> &[String] {
        &self.complaints
    }

    /// The last lines.
    pub fn tail(&self) -> Tail {
        Tail(self.lines.iter().cloned().collect())
    }

    fn end_line(&mut self) {
        let line = printable(&String::from_utf8_lossy(&std::mem::take(&mut self.line)));
        if line.trim().is_empty() {
            return;
        }
        if self.panic.is_none() && line.contains(PANIC) {
            self.panic = Some(line.clone());
        } else if self.complaints.len() < COMPLAINTS && complains(&line) {
            self.complaints.push(line.clone());
        }
        if self.lines.len() == KEPT {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }
}

fn complains(line: &str) -> bool {
    let (warning, cpus) = WARNING;
    COMPLAINT.iter().any(|sign| line.contains(sign))
        || (line.contains(warning) && cpus.iter().any(|cpu| line.contains(cpu)))
}

/// The last lines of a console, as the end of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tail(Vec<String>);

impl Display for Tail {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return write!(to, "; its console was silent");
        }
        write!(to, "; the last lines of its console:")?;
        self.0.iter().try_for_each(|line| write!(to, "\n  | {line}"))
    }
}

/// Without escape sequences (ECMA-48 control sequences) and control
/// characters: firmware paints, a terminal obeys.
fn printable(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' {
            if letters.next_if_eq(&'[').is_some() {
                while letters.next_if(|parameter| !('@'..='~').contains(parameter)).is_some() {}
            }
            letters.next();
        } else if letter == '\t' || !letter.is_control() {
            out.push(letter);
        }
    }
    out.truncate(out.trim_end().len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn console(text: &str) -> Console {
        let mut console = Console::default();
        // In single bytes, as a serial port may give them.
        text.as_bytes().chunks(1).for_each(|byte| console.feed(byte));
        console.close();
        console
    }

    #[test]
    fn a_panic_is_found_and_the_first_one_kept() {
        let console = console(
            "[    1.0] Run /doorbell as init process\r\n[    1.1] Kernel panic - not syncing: sysrq triggered crash\r\n\
             [    1.2] ---[ end Kernel panic - not syncing: sysrq triggered crash ]---",
        );
        assert_eq!(console.panic(), Some("[    1.1] Kernel panic - not syncing: sysrq triggered crash"));
        assert!(console.tail().to_string().contains("| [    1.2] ---[ end"));
    }

    #[test]
    fn stalls_and_hung_tasks_are_complaints_and_ordinary_lines_are_not() {
        let console = console(
            "[    0.1] rcu: Hierarchical RCU implementation.\n\
             [   30.0] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:\n\
             [  130.0] INFO: task doorbell:101 blocked for more than 120 seconds.\n\
             [  131.0] clocksource: Switched to clocksource tsc\n\
             [  131.1] WARNING: CPU: 1 PID: 7 at kernel/x.c:3 f+0x1/0x2\n\
             [  131.2] WARNING: kernel/x.c:3 at f+0x1/0x2, CPU#1: swapper/1/0\n\
             [  131.3] WARNING: this is a remark\n",
        );
        let seen: Vec<&str> = console.complaints().iter().map(String::as_str).collect();
        assert_eq!(
            seen,
            [
                "[   30.0] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
                "[  130.0] INFO: task doorbell:101 blocked for more than 120 seconds.",
                "[  131.1] WARNING: CPU: 1 PID: 7 at kernel/x.c:3 f+0x1/0x2",
                "[  131.2] WARNING: kernel/x.c:3 at f+0x1/0x2, CPU#1: swapper/1/0",
            ]
        );
        assert_eq!(console.panic(), None);
    }

    #[test]
    fn the_tail_is_bounded_and_no_line_can_drive_the_terminal() {
        let console = console(&format!(
            "{}\u{1b}[2J\u{1b}[1;31mred\u{7}\u{1b}[0m\n{}\n",
            "line\n".repeat(100),
            "x".repeat(5000)
        ));
        let tail = console.tail().to_string();
        assert_eq!(tail.lines().count(), KEPT + 1);
        assert!(tail.contains("| red\n"), "{tail}");
        assert!(tail.chars().all(|letter| letter == '\n' || !letter.is_control()));
        assert!(tail.lines().all(|line| line.len() <= LONGEST_LINE + 4));
    }

    #[test]
    fn silence_is_called_silence() {
        assert_eq!(console("").tail().to_string(), "; its console was silent");
    }
}
