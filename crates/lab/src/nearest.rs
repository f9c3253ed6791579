// SPDX-License-Identifier: MIT OR Apache-2.0
//! What somebody meant who mistyped a name.

/// The one of `names` that takes the fewest slips of the finger (letters missed, added, changed, swapped) to become
/// `typed`; the first of several, none of none.
pub(crate) fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    names.into_iter().min_by_key(|name| strsim::damerau_levenshtein(name, typed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_the_name_that_was_meant() {
        let names = ["eventfd", "eventfd-poll", "eventfd-epoll", "eventfd-epoll-et", "pipe", "fifo"];
        for (typed, meant) in [("evntfd-epoll", "eventfd-epoll"), ("eventdf", "eventfd"), ("ppe", "pipe")] {
            assert_eq!(nearest(typed, names), Some(meant));
        }
        assert_eq!(nearest("pipe", []), None);
    }
}
