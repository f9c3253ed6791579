// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell top`.

mod looker;
mod serve;
mod token;

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;

use console::Term;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::common::{Exit, Terminal};
use super::out::{self, Out, aside};
use crate::experiment::live::Runs;
use doorbell_report::live::{Format, Look, metrics, page};
use doorbell_report::style::Style;
use doorbell_report::top::{BEGIN, END, screen, top};
use doorbell_results::live::Run;
use doorbell_results::machine::waiters::Waiters;
use doorbell_results::quantity::duration;
use doorbell_results::written;
use looker::Looker;
use serve::{Admission, Content, Server};
use token::Token;

/// How long whoever scrapes waits for a look; Prometheus waits for ten seconds.
const LOOK_LIMIT: Duration = Duration::from_secs(5);

/// How long a signal may go unheard while a look goes on.
const LISTEN_EVERY: Duration = Duration::from_millis(100);

/// Arguments of `doorbell top`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell top                     live, until Ctrl-C\n  \
    doorbell top --once              one look\n  \
    doorbell top --once --json | jq '.processes[].waiters[]'\n  \
    doorbell top --pid 4711 --interval 200ms\n  \
    doorbell top --serve 8080        a live page at an address that is printed; runs that go on are on it too\n  \
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
    /// Show it as a live page: at a port of this machine's own (8080), or at an address
    /// (0.0.0.0:8080), which is not encrypted. Its address, with a token in it, is printed
    #[arg(long, value_name = "ADDRESS", value_parser = serve::address, conflicts_with_all = ["once", "json", "metrics"])]
    serve: Option<SocketAddr>,
    /// A name by which the page may be asked for; addresses and localhost always may. Repeatable
    #[arg(long, value_name = "NAME", requires = "serve")]
    host: Vec<String>,
    /// Keep the token in this file, or take it from there, so that it
    /// outlives this process: for who scrapes
    #[arg(long, value_name = "FILE", requires = "serve")]
    token_file: Option<PathBuf>,
    /// One look as metrics, for Prometheus's text format or as OpenMetrics; with --serve they are
    /// at the page's address, behind it `metrics`
    #[arg(long, value_enum, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "prometheus", conflicts_with = "json")]
    metrics: Option<Format>,
}

/// Shows the waiters of all processes, once or until interrupted.
pub fn run(args: Args, _: &Terminal) -> anyhow::Result<Exit> {
    let mut out = Out::new();
    if let Some(format) = args.metrics {
        let now = doorbell_machine::waiters::now().only(&args.pid);
        out.write_all(metrics(&now, &Runs::default().look(), format).as_bytes())?;
        return Ok(Exit::Done);
    }
    if let Some(address) = args.serve {
        return serve_page(&args, address);
    }
    if args.once {
        write_look(&doorbell_machine::waiters::now().only(&args.pid), None, args.json)?;
        return Ok(Exit::Done);
    }
    let ended = Ended::watch()?;
    let pid = args.pid.clone();
    let looker = Looker::begin(move || doorbell_machine::waiters::now().only(&pid))?;
    let live = Term::stdout().is_term() && !args.json;
    let _screen = live.then(Screen::begin).transpose()?;
    let mut before: Option<Arc<Waiters>> = None;
    loop {
        let Some(now) = ended.before(&looker)? else { return Ok(Exit::Done) };
        if live {
            let text = top(&now, before.as_deref(), &Style::of_stdout());
            let rows = Term::stdout().size_checked().map_or(24, |(rows, _)| usize::from(rows));
            out.write_all(screen(&text, rows).as_bytes())?;
            out.flush()?;
        } else {
            write_look(&now, before.as_deref(), args.json)?;
        }
        // Nobody reads on.
        if out::gone() || ended.within(args.interval)? {
            return Ok(Exit::Done);
        }
        before = Some(now);
    }
}

/// Serves the page until interrupted.
fn serve_page(args: &Args, address: SocketAddr) -> anyhow::Result<Exit> {
    let ended = Ended::watch()?;
    let token = match &args.token_file {
        Some(path) => Token::of_file(path)?,
        None => Token::random()?,
    };
    let listener = TcpListener::bind(address).with_context(|| format!("listen at {address}"))?;
    let bound = listener.local_addr()?;
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let (pid, runs) = (args.pid.clone(), Mutex::new(Runs::default()));
    let looker = Looker::begin(move || {
        let now = doorbell_machine::waiters::now().only(&pid);
        (now, runs.lock().unwrap_or_else(PoisonError::into_inner).look())
    })?;
    let looker = Arc::new(looker);
    let scraped = Arc::clone(&looker);
    let content = Content {
        page: page(&host)?,
        metrics: Box::new(move |format| {
            let seen = scraped.newest(LOOK_LIMIT)?;
            Some(metrics(&seen.0, &seen.1, format))
        }),
    };
    let shown =
        if bound.ip().is_unspecified() { SocketAddr::from(([127, 0, 0, 1], bound.port())) } else { bound };
    let address = format!("http://{shown}/{}/", token.text());
    let server = Server::begin(listener, content, Admission { token, hosts: args.host.clone() })?;
    if !bound.ip().is_loopback() {
        aside!(
            "doorbell: {bound} can be reached from other machines, and what is sent is not encrypted: whoever sees it has the token"
        );
    }
    let mut out = Out::new();
    writeln!(out, "{address}")?;
    out.flush()?;
    let mut before: Option<Arc<(Waiters, Vec<Run>)>> = None;
    loop {
        if server.is_watched() {
            let Some(seen) = ended.before(&looker)? else { return Ok(Exit::Done) };
            let (now, runs) = &*seen;
            let before_it = before.as_deref().map(|(waiters, _)| waiters);
            server.publish(written::json(&Look::of(now, before_it, runs))?);
            before = Some(seen);
        } else {
            // What was seen before a pause says nothing of the time since.
            before = None;
        }
        if ended.within(args.interval)? {
            return Ok(Exit::Done);
        }
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

    /// What `looker` sees; none if the process is to end before that.
    fn before<T: Send + Sync + 'static>(&self, looker: &Looker<T>) -> std::io::Result<Option<Arc<T>>> {
        loop {
            if let Some(seen) = looker.newest(LISTEN_EVERY) {
                return Ok(Some(seen));
            }
            if self.within(Duration::ZERO)? {
                return Ok(None);
            }
        }
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
