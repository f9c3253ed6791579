// SPDX-License-Identifier: MIT OR Apache-2.0
//! A set of CPUs in the kernel's list format: `0-3,8,10-11`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One more than the greatest CPU number believed. Linux allows 8192 CPUs at most (`CONFIG_NR_CPUS` with `MAXSMP`);
/// a list that names a greater one is garbage, and must not become gigabytes of set.
const CPUS: u32 = 8192;

/// A set of CPUs; in JSON and in print `0-3,8`, empty as the empty string.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct CpuList(BTreeSet<u32>);

/// Why a text is no list of CPUs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CpuListError {
    /// A part is neither a number nor a range.
    #[error("'{0}' is neither a CPU number nor a range such as 2-5")]
    NotARange(String),
    /// A range runs backwards.
    #[error("the range {first}-{last} runs backwards")]
    Backwards {
        /// Its first number.
        first: u32,
        /// Its last number.
        last: u32,
    },
    /// No machine has this CPU.
    #[error("CPU {0} is beyond the 8192 CPUs Linux can have")]
    TooGreat(u32),
}

impl CpuList {
    /// Whether `cpu` is in the set.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }
    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }
    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// The set with its noun: `CPU 3`, `CPUs 0-3`.
    pub fn named(&self) -> String {
        let noun = if self.len() == 1 { "CPU" } else { "CPUs" };
        format!("{noun} {self}")
    }
    /// Those that are in both.
    pub fn and(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }
    /// Those that are in this set alone.
    pub fn without(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl FromStr for CpuList {
    type Err = CpuListError;

    fn from_str(text: &str) -> Result<Self, CpuListError> {
        let mut cpus = BTreeSet::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let number =
                |digits: &str| digits.parse::<u32>().map_err(|_| CpuListError::NotARange(part.to_owned()));
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(CpuListError::Backwards { first, last });
            }
            if last >= CPUS {
                return Err(CpuListError::TooGreat(last));
            }
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

impl TryFrom<String> for CpuList {
    type Error = CpuListError;
    fn try_from(text: String) -> Result<Self, CpuListError> {
        text.parse()
    }
}

impl From<CpuList> for String {
    fn from(list: CpuList) -> Self {
        list.to_string()
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.0.iter().copied().peekable();
        let mut comma = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if_eq(&(last + 1)) {
                last = next;
            }
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_and_prints_the_kernels_own_format() {
        for text in ["", "0", "0-3", "0-3,8,10-12", "0,1", "1,3,5"] {
            assert_eq!(text.parse::<CpuList>().unwrap().to_string(), text);
        }
        assert_eq!(" 3, 1-2\n".parse::<CpuList>().unwrap().to_string(), "1-3");
    }

    #[test]
    fn says_what_is_wrong_with_a_list() {
        let error = |text: &str| text.parse::<CpuList>().unwrap_err();
        assert_eq!(error("0,x"), CpuListError::NotARange("x".into()));
        assert_eq!(error("-1"), CpuListError::NotARange("-1".into()));
        assert_eq!(error("5-2"), CpuListError::Backwards { first: 5, last: 2 });
        assert_eq!(error("0-4294967295"), CpuListError::TooGreat(4_294_967_295));
    }

    proptest! {
        #[test]
        fn any_set_survives_printing_and_reading(cpus in proptest::collection::btree_set(0_u32..8192, 0..60)) {
            let list = CpuList(cpus);
            prop_assert_eq!(list.to_string().parse::<CpuList>().unwrap(), list);
        }

        #[test]
        fn garbage_is_refused_without_a_panic(text in "[-0-9, x]{0,40}") {
            let _ = text.parse::<CpuList>();
        }
    }
}
