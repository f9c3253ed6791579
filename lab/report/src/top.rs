// SPDX-License-Identifier: MIT OR Apache-2.0
//! The waiters of all processes as a table, and the table as a screen that is drawn over itself.

use std::time::Duration;

use super::columns::{Columns, dash};
use super::style::{Role, Style};
use super::table::{Table, number, word};
use super::unit::{count, time_ns};
use doorbell_results::machine::waiters::{User, Waiter, Waiters};

/// The table of `now`, with rates if there was a look `before`, and what it cannot show below it.
pub fn top(now: &Waiters, before: Option<&Waiters>, style: &Style) -> String {
    let mut out = String::new();
    if now.processes.is_empty() {
        out.push_str(&style.wrap("No process that may be looked into uses the library now.", 0));
    } else {
        out.push_str(&table(now, before).render(style));
        out.push('\n');
        for process in &now.processes {
            out.push_str(&style.wrap(&format!("{} {}", process.pid, assumes(process)), 0));
        }
    }
    if now.closed > 0 {
        let text = format!(
            "{} processes may not be looked into: other users', or protected from tracing. Some \
             may use the library; root, or CAP_SYS_PTRACE, sees them.",
            count(now.closed as u64)
        );
        out.push_str(&style.paint(Role::Aside, &style.wrap(&text, 0)));
    }
    out
}

fn table(now: &Waiters, before: Option<&Waiters>) -> Table {
    let waiters =
        now.processes.iter().flat_map(|process| process.waiters.iter().map(move |waiter| (process, waiter)));
    Columns::none()
        .with(number("pid"), |(process, _): &(&User, &Waiter)| process.pid.to_string())
        .with(word("command").keep(6), |(process, _)| process.command.clone())
        .with(word("waiter"), |(_, waiter)| waiter.name.clone())
        .with_if(before.is_some(), number("waits/s"), |(process, waiter)| {
            before.and_then(|before| rate(before, now, process, waiter)).map_or_else(dash, per_second)
        })
        .with(number("spun and hit"), |(_, waiter)| count(waiter.spun_and_hit))
        .with(number("in vain").keep(5), |(_, waiter)| count(waiter.spun_in_vain))
        .with(number("slept"), |(_, waiter)| count(waiter.slept))
        .with(number("woken").keep(4), |(_, waiter)| count(waiter.woken))
        .with(number("hits").keep(7), |(_, waiter)| hits(waiter))
        .table(&waiters.collect::<Vec<_>>())
}

/// The share of its waits that spinning ended.
fn hits(waiter: &Waiter) -> String {
    match waiter.waits() {
        0 => dash(),
        waits => format!("{:.0} %", 100.0 * waiter.spun_and_hit as f64 / waits as f64),
    }
}

/// Waits in a second since the look before; none for a waiter that was not there.
fn rate(before: &Waiters, now: &Waiters, process: &User, waiter: &Waiter) -> Option<f64> {
    let old = waiter_before(before, process, waiter)?;
    let elapsed = now.taken.saturating_duration_since(before.taken).max(Duration::from_millis(1));
    // Fewer than before: another waiter of that name has the place now.
    Some(waiter.waits().checked_sub(old.waits())? as f64 / elapsed.as_secs_f64())
}

/// The process as the look before had it; none where it was not there.
pub(super) fn before_of<'look>(before: &'look Waiters, process: &User) -> Option<&'look User> {
    before.processes.iter().find(|old| old.pid == process.pid && old.command == process.command)
}

/// The waiter as the look before had it; none where it was not there.
pub(super) fn waiter_before<'look>(
    before: &'look Waiters,
    process: &User,
    waiter: &Waiter,
) -> Option<&'look Waiter> {
    let process = before_of(before, process)?;
    process.waiters.iter().find(|old| old.place == waiter.place && old.name == waiter.name)
}

fn per_second(rate: f64) -> String {
    if rate < 10.0 { format!("{rate:.1}") } else { count(rate.round() as u64) }
}

/// What a process holds to be the cost of sleeping, and where it has that from.
pub(super) fn assumes(process: &User) -> String {
    let source = match process.profile {
        Some("not-asked") => return "has no adaptive waiter yet: nothing is assumed.".to_owned(),
        Some("used") => "from the profile of this machine".to_owned(),
        Some("none") => "measured by itself; `doorbell tune` writes a profile instead".to_owned(),
        Some(word) => {
            format!("measured by itself, for its profile is {word}; `doorbell tune` writes a new one")
        }
        None => "in a way this release has no word for".to_owned(),
    };
    let ns = |ns: Option<u32>| ns.map_or_else(|| "?".to_owned(), |ns| time_ns(f64::from(ns)));
    format!(
        "assumes a sleep of {} at the price of {}, {source}.",
        ns(process.sleep_latency_ns),
        ns(process.sleep_price_ns)
    )
}

/// What makes a terminal ready for screens, and what gives it back.
pub const BEGIN: &str = "\x1b[?1049h\x1b[?25l";
/// See [`BEGIN`].
pub const END: &str = "\x1b[?25h\x1b[?1049l";

/// `text` as one screen of `rows` rows, to be written at once over the one before.
///
/// No flicker: nothing is cleared that is then drawn again. Each line clears only what the old one
/// leaves behind it, and terminals that know synchronised updates show the whole at once.
pub fn screen(text: &str, rows: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let rows = rows.max(2);
    let mut out = String::from("\x1b[?2026h\x1b[H");
    let fitting = if lines.len() > rows { rows - 1 } else { lines.len() };
    for (row, line) in lines[..fitting].iter().enumerate() {
        if row > 0 {
            out.push_str("\r\n");
        }
        out.push_str(line);
        out.push_str("\x1b[K");
    }
    if fitting < lines.len() {
        out.push_str(&format!("\r\n({} more lines; --once shows all)\x1b[K", lines.len() - fitting));
    }
    out.push_str("\x1b[J\x1b[?2026l");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn waiter(place: u32, spun_and_hit: u64, slept: u64) -> Waiter {
        Waiter { place, name: "adaptive".to_owned(), spun_and_hit, spun_in_vain: 2, slept, woken: slept }
    }

    fn look(taken: Instant, waiters: Vec<Waiter>, closed: usize) -> Waiters {
        let process = User {
            pid: 42,
            uid: Some(0),
            command: "feed".to_owned(),
            profile: Some("other-machine"),
            sleep_latency_ns: Some(9300),
            sleep_price_ns: Some(4100),
            ready_ns: None,
            throttled_ns: None,
            waiters,
        };
        Waiters { processes: vec![process], closed, steal_ns: None, taken }
    }

    #[test]
    fn a_look_shows_counts_shares_and_why_a_profile_is_not_used() {
        let shown = top(&look(Instant::now(), vec![waiter(0, 300, 100)], 3), None, &Style::PLAIN);
        assert_eq!(
            shown,
            "pid  command  waiter    spun and hit  in vain  slept  woken  hits\n\
             \x2042  feed     adaptive           300        2    100    100  75 %\n\
             \n\
             42 assumes a sleep of 9.3 us at the price of 4.1 us, measured by itself, for its profile is other-machine;\n\
             `doorbell tune` writes a new one.\n\
             3 processes may not be looked into: other users', or protected from tracing. Some may use the library; root,\n\
             or CAP_SYS_PTRACE, sees them.\n"
        );
    }

    #[test]
    fn rates_are_of_the_waiter_that_was_there_before() {
        let start = Instant::now();
        let before = look(start, vec![waiter(0, 300, 100), waiter(1, 0, 900)], 0);
        let after = vec![waiter(0, 1300, 1100), waiter(1, 0, 5), waiter(2, 7, 7)];
        let now = look(start + Duration::from_secs(2), after, 0);
        let shown = top(&now, Some(&before), &Style::PLAIN);
        let rates: Vec<&str> =
            shown.lines().skip(1).take(3).filter_map(|line| line.split_whitespace().nth(3)).collect();
        // Of the second another waiter has the place, the third is new.
        assert_eq!(rates, ["1,000", "-", "-"]);
    }

    #[test]
    fn nobody_is_said_to_be_nobody() {
        let nobody = Waiters { processes: Vec::new(), closed: 0, steal_ns: None, taken: Instant::now() };
        assert_eq!(
            top(&nobody, None, &Style::PLAIN),
            "No process that may be looked into uses the library now.\n"
        );
    }

    #[test]
    fn a_process_cannot_make_the_terminal_obey() {
        let mut look = look(Instant::now(), vec![waiter(0, 1, 1)], 0);
        look.processes[0].command = "\x1b[2J".to_owned();
        look.processes[0].waiters[0].name = "\x1b]0;owned\x07".to_owned();
        assert!(!top(&look, None, &Style::PLAIN).contains('\x1b'));
    }

    #[test]
    fn a_screen_clears_only_behind_what_it_draws_and_keeps_within_its_rows() {
        assert_eq!(screen("one\ntwo\n", 24), "\x1b[?2026h\x1b[Hone\x1b[K\r\ntwo\x1b[K\x1b[J\x1b[?2026l");
        let cut = screen("1\n2\n3\n4\n5\n", 3);
        assert!(cut.contains("2\x1b[K\r\n(3 more lines") && !cut.contains('4'), "{cut:?}");
        assert_eq!(cut.matches("\r\n").count(), 2);
        assert!(!cut.contains("\x1b[2J"));
    }
}
