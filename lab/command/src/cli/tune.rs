// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doorbell tune`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, bail};
use doorbell::SleepCost;
use doorbell::gpu::driver::Driver;
use doorbell::profile::{self, Profile};

use super::common::{Exit, RUN, RunArgs, Terminal};
pub use super::experiment::run;
use super::experiment::{About, Experiment};
use super::out::{Out, aside};
use super::ping::Ping;
use super::placements::present;
use doorbell_files::{put, try_out};
use doorbell_report::style::Style;
use doorbell_report::unit::time;
use doorbell_report::wording::EMULATED;
use doorbell_results::machine::Machine;
use doorbell_results::plan::Plan;
use doorbell_verdict::tune::{Placed, SLEEPS, SPINS, Tuned, tune};

/// Arguments of `doorbell tune`.
#[derive(Debug, clap::Args)]
#[command(after_help = "EXAMPLES\n  \
    doorbell tune                                        measure, and leave the profile where this user's programs read it\n  \
    sudo doorbell tune --profile /etc/doorbell/profile.toml   for all users\n\n\
    Run it on an idle machine. A program reads the profile when its first adaptive waiter is made; one that already runs\n  \
    goes on with what it has. `doorbell top` shows which profile a process uses, and why not, if it does not. A profile\n  \
    of another machine or another kernel is not used.")]
pub struct Args {
    /// Where the profile goes [default: $DOORBELL_PROFILE, else
    /// doorbell/profile.toml in the user's configuration folder]
    #[arg(long, value_name = "FILE", help_heading = RUN)]
    profile: Option<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
}

/// By which the library's adaptive waiter sleeps, and by which it spins.
const SLEEPER: &str = "futex";
const SPINNER: &str = "spin";

impl Experiment for Args {
    fn about(&self) -> About {
        About { name: "tune", parts: vec![(SLEEPER, SLEEPS), (SPINNER, SPINS)], ..About::default() }
    }
    fn flags(&self) -> &RunArgs {
        &self.run
    }
    /// On every placement back-to-back round trips, in which each side sleeps, or spins, once.
    fn plan(&self, machine: &Machine) -> anyhow::Result<Plan> {
        let ping = Ping {
            mechanisms: [SLEEPER, SPINNER, "null"].map(str::to_owned).to_vec(),
            placements: present(&machine.topology),
            blocks: self.run.blocks,
            seed: self.run.seed(),
            ..Ping::default()
        };
        Ok(ping.plan("tune"))
    }
    fn run(self, terminal: &Terminal) -> anyhow::Result<Exit> {
        let args = self;
        let machine = args.run.machine()?;
        let plan = args.planned(&machine)?;
        if args.run.only_planned(&plan)? {
            return Ok(Exit::Done);
        }
        // Before minutes are spent on what cannot be delivered.
        let path = target(&args)?;
        let elsewhere = || format!("cannot write {}; choose another place with --profile", path.display());
        path.parent().map(doorbell_files::folder).transpose().with_context(elsewhere)?;
        try_out(&path).with_context(elsewhere)?;
        let result = args.run.measure(plan, machine, terminal)?;
        let exit = args.run.delivery.deliver(&result, terminal)?;
        if exit != Exit::Done {
            aside!("doorbell: no profile written: the run did not come to its end");
            return Ok(exit);
        }
        let tuned = tune(&result);
        let Some(chosen) = tuned.chosen.and_then(|index| tuned.placements.get(index)) else {
            bail!(
                "no profile written: sleeping could be measured on no pair of CPUs; the result file says why"
            );
        };
        let profile = Profile { machine: profile::machine(), cost: cost(chosen)?, gpu: gpu() };
        let text = format!(
            "# Written by `doorbell tune` {}. What it found, of which the last two lines are what the library assumes:\n{}{profile}",
            env!("CARGO_PKG_VERSION"),
            doorbell_report::tune::comments(&tuned),
        );
        put(&path, text.as_bytes()).with_context(elsewhere)?;
        // What the library would make of it, asked of the library.
        Profile::read(&path).with_context(|| format!("{} was written and cannot be used", path.display()))?;
        if !args.run.delivery.json {
            let mut out = Out::new();
            if result.emulated() {
                writeln!(out, "\n{EMULATED}")?;
            }
            out.write_all(said(&tuned, profile.gpu, &path).as_bytes())?;
        }
        Ok(Exit::Done)
    }
}

/// What a sleep until the end of a GPU's work costs, where there is a GPU.
fn gpu() -> Option<SleepCost> {
    doorbell::gpu::measure_sleep_cost(Driver::of_process().ok()?).ok()
}

fn said(tuned: &Tuned, gpu: Option<SleepCost>, path: &std::path::Path) -> String {
    let style = Style::of_stdout();
    let mut out = format!("\n{}\n", doorbell_report::tune::tune(tuned, &style));
    let read = profile::path();
    let told = if read.as_deref() == Some(path) {
        format!("Written to {}, which programs of this user read from now on.", path.display())
    } else {
        let other = read.map_or_else(
            || "none, for DOORBELL_PROFILE is empty".to_owned(),
            |other| other.display().to_string(),
        );
        format!(
            "Written to {0}. Programs of this user read another file ({other}) unless \
             DOORBELL_PROFILE={0} is set.",
            path.display()
        )
    };
    if let Some(gpu) = gpu {
        let late = time(f64::from(gpu.latency) * 1e3);
        out.push_str(
            &style.wrap(&format!("A thread that sleeps until its GPU is done runs {late} later."), 0),
        );
        out.push('\n');
    }
    out.push_str(&style.wrap(&told, 0));
    out
}

fn target(args: &Args) -> anyhow::Result<PathBuf> {
    let named = std::env::var_os("DOORBELL_PROFILE").filter(|path| !path.is_empty()).map(PathBuf::from);
    args.profile
        .clone()
        .or(named)
        .or_else(profile::user_path)
        .context("neither XDG_CONFIG_HOME nor HOME is set; say where the profile goes with --profile")
}

/// Within what can be true of any machine; the library trusts the file.
fn cost(placed: &Placed) -> anyhow::Result<SleepCost> {
    let whole = |what: &str, ns: f64| {
        if !(100.0..=1e7).contains(&ns) {
            bail!(
                "no profile written: a {what} of {ns} ns is nothing that can be; run again on an idle machine"
            );
        }
        Ok(ns.round() as u32)
    };
    Ok(SleepCost {
        latency: whole("wake", placed.latency_ns)?,
        price: whole("sleep's price", placed.price_ns)?,
    })
}
