// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file in which `doorbell tune` leaves what sleeping costs on this machine.
//!
//! A few lines of TOML:
//!
//! ```toml
//! version = 1
//! machine = "Intel(R) Xeon(R) Processor, 2 CPUs, Linux 6.18.0"
//! sleep_latency_ns = 9300
//! sleep_price_ns = 8100
//! gpu_sleep_latency_ns = 61000
//! gpu_sleep_price_ns = 24000
//! ```
//!
//! The last two lines are there where the machine has a GPU: what a
//! sleep until its work is done costs.
//!
//! If `$DOORBELL_PROFILE` is set, it names the file (and if it is empty, there is none). Else the
//! file is looked for in `$XDG_CONFIG_HOME/doorbell/profile.toml` (or
//! `~/.config/doorbell/profile.toml`), then in `/etc/doorbell/profile.toml`; the first one that
//! exists counts. A profile of another machine, of another kernel or of another version is not
//! used; [`calibration`](crate::calibration) and `doorbell top` say so.

use crate::environment::variable;
use doorbell_core::window::SleepCost;
use std::fmt;
use std::path::{Path, PathBuf};

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The machine it was measured on, as [`machine`] names it.
    pub machine: String,
    /// What sleeping costs there.
    pub cost: SleepCost,
    /// What a sleep until the end of a GPU's work costs there, if there is one.
    pub gpu: Option<SleepCost>,
}

/// Why a profile cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProfileError {
    /// The file cannot be read.
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        error: String,
    },
    /// A line is not `key = value`, or a value is not what its key
    /// wants: no cost is below 100 ns or above 10 ms.
    Malformed {
        /// Which line, from 1.
        line: usize,
    },
    /// A key is not there.
    Missing {
        /// Which.
        key: &'static str,
    },
    /// The file is of another version.
    Version {
        /// Which.
        version: u32,
    },
    /// It was measured elsewhere.
    OtherMachine {
        /// Where.
        theirs: String,
        /// Here.
        ours: String,
    },
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Malformed { line } => write!(f, "line {line} of the profile is not understood"),
            Self::Missing { key } => write!(f, "the profile has no {key}"),
            Self::Version { version } => {
                write!(f, "the profile is of version {version}, this release reads version 1")
            }
            Self::OtherMachine { theirs, ours } => {
                write!(f, "the profile was measured on {theirs:?}; this is {ours:?}")
            }
        }?;
        f.write_str("; run `doorbell tune` to write a new one")
    }
}

impl std::error::Error for ProfileError {}

/// A waiter spins for as long as the profile says: a mistake in it must not cost a processor.
const BELIEVABLE_NS: std::ops::RangeInclusive<u32> = 100..=10_000_000;

impl Profile {
    /// Reads the text of a profile.
    ///
    /// # Errors
    /// [`ProfileError::Malformed`], [`ProfileError::Missing`], [`ProfileError::Version`].
    ///
    /// ```
    /// use doorbell::profile::Profile;
    ///
    /// let text = "version = 1\nmachine = \"here\"\nsleep_latency_ns = 9300\nsleep_price_ns = 8100\n";
    /// let profile = Profile::parse(text).unwrap();
    /// assert_eq!(profile.cost.price, 8100);
    /// assert_eq!(profile.to_string(), text);
    /// let beside = format!("{text}gpu_sleep_latency_ns = 61000\ngpu_sleep_price_ns = 24000\n");
    /// assert_eq!(Profile::parse(&beside).unwrap().to_string(), beside);
    /// ```
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let (mut version, mut machine, mut latency, mut price) = (None, None, None, None);
        let (mut gpu_latency, mut gpu_price) = (None, None);
        for (index, line) in text.lines().enumerate() {
            let malformed = ProfileError::Malformed { line: index + 1 };
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, value) = line.split_once('=').ok_or(malformed.clone())?;
            let (key, value) = (key.trim(), value.trim());
            let number = || value.parse::<u32>().map_err(|_| malformed.clone());
            let cost = || {
                number()
                    .and_then(|ns| if BELIEVABLE_NS.contains(&ns) { Ok(ns) } else { Err(malformed.clone()) })
            };
            match key {
                "version" => version = Some(number()?),
                "sleep_latency_ns" => latency = Some(cost()?),
                "sleep_price_ns" => price = Some(cost()?),
                "gpu_sleep_latency_ns" => gpu_latency = Some(cost()?),
                "gpu_sleep_price_ns" => gpu_price = Some(cost()?),
                "machine" => {
                    let text = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
                    machine = Some(text.ok_or(malformed)?.to_owned());
                }
                // A later release may add keys.
                _ => {}
            }
        }
        let version = version.ok_or(ProfileError::Missing { key: "version" })?;
        if version != 1 {
            return Err(ProfileError::Version { version });
        }
        Ok(Self {
            machine: machine.ok_or(ProfileError::Missing { key: "machine" })?,
            cost: SleepCost {
                latency: latency.ok_or(ProfileError::Missing { key: "sleep_latency_ns" })?,
                price: price.ok_or(ProfileError::Missing { key: "sleep_price_ns" })?,
            },
            gpu: gpu_latency.zip(gpu_price).map(|(latency, price)| SleepCost { latency, price }),
        })
    }

    /// Reads the profile in `path`, which must be of this machine.
    ///
    /// # Errors
    /// [`ProfileError`].
    pub fn read(path: &Path) -> Result<Self, ProfileError> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| ProfileError::Unreadable { path: path.into(), error: error.to_string() })?;
        let profile = Self::parse(&text)?;
        let ours = machine();
        if profile.machine != ours {
            return Err(ProfileError::OtherMachine { theirs: profile.machine, ours });
        }
        Ok(profile)
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "version = 1")?;
        writeln!(f, "machine = \"{}\"", self.machine)?;
        writeln!(f, "sleep_latency_ns = {}", self.cost.latency)?;
        writeln!(f, "sleep_price_ns = {}", self.cost.price)?;
        let Some(gpu) = self.gpu else { return Ok(()) };
        writeln!(f, "gpu_sleep_latency_ns = {}", gpu.latency)?;
        writeln!(f, "gpu_sleep_price_ns = {}", gpu.price)
    }
}

/// What became of the profile in a process, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Standing {
    /// Nothing in the process asked yet: no waiter of it adapts.
    NotAsked = 0,
    /// It is used.
    Used = 1,
    /// There is none.
    NoFile = 2,
    /// The file cannot be read.
    Unreadable = 3,
    /// A line of it is not understood.
    Malformed = 4,
    /// A key is not there.
    Missing = 5,
    /// It is of another version.
    OtherVersion = 6,
    /// It is of another machine, or of this one with another kernel.
    OtherMachine = 7,
}

impl Standing {
    const ALL: [Self; 8] = [
        Self::NotAsked,
        Self::Used,
        Self::NoFile,
        Self::Unreadable,
        Self::Malformed,
        Self::Missing,
        Self::OtherVersion,
        Self::OtherMachine,
    ];

    /// Its name in tables and exports.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotAsked => "not-asked",
            Self::Used => "used",
            Self::NoFile => "none",
            Self::Unreadable => "unreadable",
            Self::Malformed => "malformed",
            Self::Missing => "incomplete",
            Self::OtherVersion => "other-version",
            Self::OtherMachine => "other-machine",
        }
    }

    /// The one that is written as `code`. `None` for what a later release may write.
    pub(crate) fn of(code: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|standing| *standing as u32 == code)
    }
}

impl ProfileError {
    /// The same in a word.
    pub fn standing(&self) -> Standing {
        match self {
            Self::Unreadable { .. } => Standing::Unreadable,
            Self::Malformed { .. } => Standing::Malformed,
            Self::Missing { .. } => Standing::Missing,
            Self::Version { .. } => Standing::OtherVersion,
            Self::OtherMachine { .. } => Standing::OtherMachine,
        }
    }
}

/// The file whose profile counts. `None` if there is none.
pub fn path() -> Option<PathBuf> {
    if let Some(named) = variable("DOORBELL_PROFILE") {
        return Some(named).filter(|named| !named.is_empty()).map(PathBuf::from);
    }
    // A file that cannot be looked at is there: reading it says why.
    let there = |path: &PathBuf| path.try_exists().unwrap_or(true);
    user_path().into_iter().chain([PathBuf::from("/etc/doorbell/profile.toml")]).find(there)
}

/// The file that is this user's own. `None` if the environment names no home.
pub fn user_path() -> Option<PathBuf> {
    let home = || Some(PathBuf::from(variable("HOME")?).join(".config"));
    let configuration = variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home)?;
    Some(configuration.join("doorbell/profile.toml"))
}

/// This machine's name in a profile: processor, number of CPUs, kernel. No quotation marks.
pub fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown processor", |(_, model)| model.trim());
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let system = rustix::system::uname();
    let release = system.release().to_string_lossy();
    format!("{model}, {cpus} CPUs, Linux {release}").replace('"', "'")
}
