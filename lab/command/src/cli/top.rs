// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell top`.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use console::Term;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::common::{Exit, Terminal};
use super::out::{self, Out};
use doorbell_report::style::Style;
use doorbell_report::top::{BEGIN, END, screen, top};
use doorbell_report::waiter_metrics::metrics;
use doorbell_results::machine::waiters::Waiters;
use doorbell_results::quantity::duration;
use doorbell_results::written;

/// Arguments of `doorbell top`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell top                     live, until Ctrl-C\n  \
    doorbell top --once              one look\n  \
    doorbell top --once --json | jq '.processes[].waiters[]'\n  \
    doorbell top --pid 4711 --interval 200ms\n  \
    doorbell top --metrics           one look for Prometheus\n\n\
    WHAT IS SEEN\n  \
    A process that uses the library holds its counters in memory named doorbell-counters among its open files, and\n  \
    the kernel removes them with it. They can be read by whoever may look into the process: the same user, if the\n  \
    process is not protected (set-user-ID programs are), and root. Processes in PID namespaces outside this one have\n  \
    no number here and are not seen; nor are those that /proc hides (its mount option hidepid). What cannot be looked\n  \
    into is counted below the table.\n  \
    A wait that finds the ring there already is not counted: it neither spins nor sleeps.")]
pub struct Args {
    /// Look once and stop
    #[arg(long)]
    once: bool,
    /// One JSON object for each look, on a line of its own
    #[arg(long)]
    json: bool,
    /// Time between two looks
    #[arg(long, value_parser = duration, default_value = "1s", value_name = "TIME")]
    interval: Duration,
    /// Only these processes, comma separated
    #[arg(long, value_delimiter = ',', value_name = "PID")]
    pid: Vec<u32>,
    /// One look as metrics, in Prometheus's text format
    #[arg(long, conflicts_with = "json")]
    metrics: bool,
}

/// Shows the waiters of all processes, once or until interrupted.
pub fn run(args: Args, _: &Terminal) -> anyhow::Result<Exit> {
    let mut out = Out::new();
    let look = || doorbell_machine::waiters::now().only(&args.pid);
    if args.metrics {
        out.write_all(metrics(&look()).as_bytes())?;
        return Ok(Exit::Done);
    }
    if args.once {
        write_look(&look(), None, args.json)?;
        return Ok(Exit::Done);
    }
    let ended = Ended::watch()?;
    let live = Term::stdout().is_term() && !args.json;
    let _screen = live.then(Screen::begin).transpose()?;
    let mut before: Option<Waiters> = None;
    loop {
        let now = look();
        if live {
            let text = top(&now, before.as_ref(), &Style::of_stdout());
            let rows = Term::stdout().size_checked().map_or(24, |(rows, _)| usize::from(rows));
            out.write_all(screen(&text, rows).as_bytes())?;
            out.flush()?;
        } else {
            write_look(&now, before.as_ref(), args.json)?;
        }
        // Nobody reads on.
        if out::gone() || ended.within(args.interval)? {
            return Ok(Exit::Done);
        }
        before = Some(now);
    }
}

fn write_look(now: &Waiters, before: Option<&Waiters>, json: bool) -> anyhow::Result<()> {
    let mut out = Out::new();
    if json {
        writeln!(out, "{}", written::json(now)?)?;
    } else {
        out.write_all(top(now, before, &Style::of_stdout()).as_bytes())?;
    }
    Ok(out.flush()?)
}

/// The terminal while screens are drawn on it; given back however this ends.
struct Screen;

impl Screen {
    fn begin() -> std::io::Result<Self> {
        out::say(BEGIN);
        Ok(Self)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let mut out = Out::new();
        // Nothing can be done about a terminal that is gone.
        let _ = out.write_all(END.as_bytes()).and_then(|()| out.flush());
    }
}

/// Readable when a signal asked this process to end.
struct Ended(UnixStream);

impl Ended {
    fn watch() -> std::io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP]
        {
            signal_hook::low_level::pipe::register(signal, theirs.try_clone()?)?;
        }
        Ok(Self(ours))
    }

    /// Waits for `time`; true as soon as the process is to end.
    fn within(&self, time: Duration) -> std::io::Result<bool> {
        let until = std::time::Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(std::time::Instant::now());
            let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
            match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&left)) {
                Ok(readable) => return Ok(readable > 0),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}
