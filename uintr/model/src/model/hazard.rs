// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mistakes of a protocol, each defined in one place: its switch, the
//! configuration in which it shows, its texts.

use super::search::{Outcome, Protocol, search};

/// What is said of a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Such as `H4`; the name on the command line.
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// How it loses the wake-up.
    pub mechanism: &'static str,
    /// What the correct protocol does instead.
    pub fix: &'static str,
}

/// A mistake that can be put into a protocol.
pub trait Mistake: Copy + 'static {
    /// The configurations of the protocol.
    type Config: Configuration<Hazard = Self>;
    /// All of them, in order.
    const ALL: &'static [Self];
    /// Its texts.
    fn entry(self) -> Entry;
    /// The configuration in which it shows.
    fn config(self) -> Self::Config;

    /// The name used on the command line, such as `H4`.
    fn name(self) -> &'static str {
        self.entry().name
    }
}

/// A protocol's actors, how many there are and what may be done to them.
pub trait Configuration: Copy + 'static {
    /// The protocol's mistakes.
    type Hazard: Mistake<Config = Self>;
    /// What is searched.
    type Protocol: Protocol;
    /// Those that together cover every feature; seconds each.
    const ALL: &'static [Self];
    /// One that takes minutes.
    const LARGEST: Option<Self> = None;
    /// What the configuration is about.
    fn name(self) -> &'static str;
    /// The correct protocol if `hazard` is `None`, else the one with that mistake in it.
    fn protocol(self, hazard: Option<Self::Hazard>) -> Self::Protocol;
}

/// Checks one configuration: that the protocol is right, or of one with a mistake what that loses.
///
/// ```
/// use doorbell_uintr::model::{Verdict, check, uintr::{Config, Hazard}};
/// let outcome = check(Config::XAPIC, Some(Hazard::H27));
/// assert!(matches!(outcome.verdict, Verdict::Fault(_)));
/// ```
#[must_use]
pub fn check<C: Configuration>(config: C, hazard: Option<C::Hazard>) -> Outcome {
    let mistake = hazard.map(Mistake::entry).map(|Entry { name, title, .. }| format!("{name}: {title}"));
    search(&config.protocol(hazard), config.name(), mistake.as_deref())
}

/// Defines the hazards of a protocol whose configurations are the constants of `Config`.
macro_rules! hazards {
    ($of:literal; $($name:ident($config:ident): $title:literal, $mechanism:literal, $fix:literal;)*) => {
        #[doc = $of]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Hazard {
            $(#[doc = $title] $name,)*
        }

        impl $crate::model::Mistake for Hazard {
            type Config = Config;

            const ALL: &'static [Self] = &[$(Self::$name),*];

            fn entry(self) -> $crate::model::Entry {
                let (name, title, mechanism, fix) = match self {
                    $(Self::$name => (stringify!($name), $title, $mechanism, $fix),)*
                };
                $crate::model::Entry { name, title, mechanism, fix }
            }

            fn config(self) -> Config {
                match self { $(Self::$name => Config::$config,)* }
            }
        }
    };
}
pub(super) use hazards;
