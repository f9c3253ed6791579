// SPDX-License-Identifier: MIT OR Apache-2.0
//! A set of CPUs in the kernel's list format: `0-3,8,10-11`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// One more than the greatest CPU number believed. Linux allows 8192 CPUs
/// at most (`CONFIG_NR_CPUS` with `MAXSMP`); a list that names a greater
/// one is garbage, and must not become hours of walking through it.
const CPUS: u32 = 8192;

/// A set of CPUs; in JSON and in print `0-3,8`, empty as the empty string.
///
/// Kept as it is written, in ranges: what a file from elsewhere makes
/// of a few letters stays as small as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(test, schemars(with = "String"))]
pub struct CpuList(
    /// First and last of each range. Invariant: ascending, with at least one CPU missing between
    /// two neighbours, so that equal sets are equal lists.
    Vec<[u32; 2]>,
);

/// Why a text is no list of CPUs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CpuListError {
    #[error("'{0}' is neither a CPU number nor a range such as 2-5")]
    NotARange(String),
    #[error("the range {first}-{last} runs backwards")]
    Backwards { first: u32, last: u32 },
    #[error("CPU {0} is beyond the 8192 CPUs Linux can have")]
    TooGreat(u32),
}

impl CpuList {
    /// The CPUs in any of `ranges`, which may overlap.
    fn of_ranges(mut ranges: Vec<[u32; 2]>) -> Self {
        ranges.sort_unstable();
        let mut joined: Vec<[u32; 2]> = Vec::new();
        for [first, last] in ranges {
            match joined.last_mut() {
                Some([_, end]) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => joined.push([first, last]),
            }
        }
        Self(joined)
    }
    pub fn contains(&self, cpu: u32) -> bool {
        let range = self.0.partition_point(|[_, last]| *last < cpu);
        self.0.get(range).is_some_and(|[first, _]| *first <= cpu)
    }
    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(|[first, last]| *first..=*last)
    }
    pub fn len(&self) -> usize {
        self.0.iter().map(|[first, last]| (last - first) as usize + 1).sum()
    }
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
        let (mut ours, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut both = Vec::new();
        while let (Some([first, last]), Some([from, to])) = (ours.peek(), theirs.peek()) {
            if first.max(from) <= last.min(to) {
                both.push([*first.max(from), *last.min(to)]);
            }
            if last < to {
                ours.next()
            } else {
                theirs.next()
            };
        }
        // Two ranges of one set never touch, so what is left of them does not either.
        Self(both)
    }
    /// Those that are in this set alone.
    pub fn without(&self, other: &Self) -> Self {
        let mut rest = Vec::new();
        let mut next = Some(0);
        for [first, last] in &other.0 {
            if let Some(before) = next.zip(first.checked_sub(1)).filter(|(from, to)| from <= to) {
                rest.push([before.0, before.1]);
            }
            next = last.checked_add(1);
        }
        rest.extend(next.map(|from| [from, u32::MAX]));
        self.and(&Self(rest))
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        Self::of_ranges(cpus.into_iter().map(|cpu| [cpu, cpu]).collect())
    }
}

impl FromStr for CpuList {
    type Err = CpuListError;

    fn from_str(text: &str) -> Result<Self, CpuListError> {
        let mut ranges = Vec::new();
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
            ranges.push([first, last]);
        }
        Ok(Self::of_ranges(ranges))
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
        let mut comma = "";
        for [first, last] in &self.0 {
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

    #[test]
    fn a_short_text_makes_a_small_set_whatever_it_stands_for() {
        // A result file of 256 MB holds some ten million of these; as sets of numbers they would be 500 GB.
        assert_eq!("0-8191".parse::<CpuList>().unwrap().0.capacity().max(4), 4);
        assert_eq!("0-8191,5,7-9,0-8191".parse::<CpuList>().unwrap().0.len(), 1);
    }

    proptest! {
        #[test]
        fn any_set_survives_printing_and_reading(cpus in proptest::collection::btree_set(0_u32..8192, 0..60)) {
            let list: CpuList = cpus.iter().copied().collect();
            prop_assert_eq!(list.to_string().parse::<CpuList>().unwrap(), list.clone());
            prop_assert_eq!(list.len(), cpus.len());
            prop_assert!(list.iter().eq(cpus));
        }

        #[test]
        fn sets_are_cut_and_searched_as_sets_of_numbers_are(
            a in proptest::collection::btree_set(0_u32..40, 0..30),
            b in proptest::collection::btree_set(0_u32..40, 0..30),
        ) {
            let [first, second] = [&a, &b].map(|set| set.iter().copied().collect::<CpuList>());
            prop_assert_eq!(first.and(&second), a.intersection(&b).copied().collect());
            prop_assert_eq!(first.without(&second), a.difference(&b).copied().collect());
            prop_assert!((0..41).all(|cpu| first.contains(cpu) == a.contains(&cpu)));
        }

        #[test]
        fn garbage_is_refused_without_a_panic(text in "[-0-9, x]{0,40}") {
            let _ = text.parse::<CpuList>();
        }
    }
}
