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
//! ```
//!
//! It is looked for in `$DOORBELL_PROFILE`, then in `$XDG_CONFIG_HOME/doorbell/profile.toml` (or
//! `~/.config/doorbell/profile.toml`), then in `/etc/doorbell/profile.toml`. The first one that exists counts. A
//! profile of another machine is not used.

use doorbell_core::window::SleepCost;
use std::fmt;
use std::path::PathBuf;

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The machine it was measured on, as [`machine`] names it.
    pub machine: String,
    /// What sleeping costs there.
    pub cost: SleepCost,
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
    /// A line is not `key = value`, or a value is not what its key wants.
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
    /// ```
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let (mut version, mut machine, mut latency, mut price) = (None, None, None, None);
        for (index, line) in text.lines().enumerate() {
            let malformed = ProfileError::Malformed { line: index + 1 };
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, value) = line.split_once('=').ok_or(malformed.clone())?;
            let (key, value) = (key.trim(), value.trim());
            let number = || value.parse::<u32>().map_err(|_| malformed.clone());
            match key {
                "version" => version = Some(number()?),
                "sleep_latency_ns" => latency = Some(number()?),
                "sleep_price_ns" => price = Some(number()?),
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
        })
    }

    /// Reads the profile of this machine. `None` if there is no file.
    ///
    /// # Errors
    /// [`ProfileError`].
    pub fn load() -> Result<Option<Self>, ProfileError> {
        let Some(path) = paths().into_iter().find(|path| path.exists()) else { return Ok(None) };
        let text = std::fs::read_to_string(&path)
            .map_err(|error| ProfileError::Unreadable { path, error: error.to_string() })?;
        let profile = Self::parse(&text)?;
        let ours = machine();
        if profile.machine != ours {
            return Err(ProfileError::OtherMachine { theirs: profile.machine, ours });
        }
        Ok(Some(profile))
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "version = 1")?;
        writeln!(f, "machine = \"{}\"", self.machine)?;
        writeln!(f, "sleep_latency_ns = {}", self.cost.latency)?;
        writeln!(f, "sleep_price_ns = {}", self.cost.price)
    }
}

/// Where a profile is looked for, in this order.
pub fn paths() -> Vec<PathBuf> {
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".config"));
    let user = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home);
    let named = std::env::var_os("DOORBELL_PROFILE").map(PathBuf::from);
    let user = user.map(|directory| directory.join("doorbell/profile.toml"));
    named.into_iter().chain(user).chain([PathBuf::from("/etc/doorbell/profile.toml")]).collect()
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
