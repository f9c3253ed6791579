// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mistakes of a protocol, each defined in one place: its switch, the
//! configuration in which it shows, its texts.

/// Defines the hazards of a protocol whose configurations are the constants of `Config`.
macro_rules! hazards {
    ($of:literal; $($(#[$doc:meta])* $name:ident($config:ident): $title:literal, $mechanism:literal, $fix:literal;)*) => {
        #[doc = $of]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Hazard {
            $($(#[$doc])* #[doc = $title] $name,)*
        }

        impl Hazard {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The name used on the command line, such as `H4`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)* }
            }

            /// What it is, in a few words.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$name => $title,)* }
            }

            /// How the mistake loses the wake-up.
            #[must_use]
            pub const fn mechanism(self) -> &'static str {
                match self { $(Self::$name => $mechanism,)* }
            }

            /// What the correct protocol does instead.
            #[must_use]
            pub const fn fix(self) -> &'static str {
                match self { $(Self::$name => $fix,)* }
            }

            /// The configuration in which it shows.
            #[must_use]
            pub const fn config(self) -> Config {
                match self { $(Self::$name => Config::$config,)* }
            }

            /// The hazard of that name, in either case.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|hazard| hazard.name().eq_ignore_ascii_case(name))
            }
        }
    };
}
pub(super) use hazards;
