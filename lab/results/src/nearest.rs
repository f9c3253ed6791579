// SPDX-License-Identifier: MIT OR Apache-2.0
//! What somebody meant who mistyped a name.

/// The one of `names` that `typed` was meant to be: one that it is a part of, else the one that
/// takes the fewest slips of the finger (letters missed, added, changed, swapped) to become it.
/// None where that would be a guess: more than one slip for every three letters.
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Letters from which on a part of a name tells something.
    const PART: usize = 3;
    let letters = typed.chars().count();
    let rank = |name: &'a str| {
        let slips = strsim::damerau_levenshtein(name, typed);
        let part = letters >= PART && name.contains(typed);
        (part || slips <= letters.div_ceil(3)).then_some(((!part, slips), name))
    };
    names.into_iter().filter_map(rank).min_by_key(|(rank, _)| *rank).map(|(_, name)| name)
}

/// The end of a message about an unknown name: what may have been
/// meant, where that is more than a guess.
pub fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!("; did you mean '{nearest}'?")).unwrap_or_default()
}

/// Nothing of a kind has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no {what} is called '{name}'{}{}", did_you_mean(*.nearest), told(.known))]
pub struct Unknown {
    /// What was looked for: `mechanism`, `load`, …
    pub what: &'static str,
    pub name: String,
    /// The name that may have been meant.
    pub nearest: Option<&'static str>,
    pub known: Vec<&'static str>,
}

/// Few names are told on the spot; many have a table.
fn told(known: &[&str]) -> String {
    if known.len() > 24 {
        " (`doorbell list` shows all)".to_owned()
    } else {
        format!(" (known: {})", known.join(", "))
    }
}

/// The one of `all` that is called `name`.
///
/// # Errors
/// [`Unknown`], with the name that may have been meant.
pub fn find<T: Copy>(
    what: &'static str,
    all: impl IntoIterator<Item = T>,
    name_of: impl Fn(T) -> &'static str,
    name: &str,
) -> Result<T, Unknown> {
    let mut known = Vec::new();
    for each in all {
        if name_of(each) == name {
            return Ok(each);
        }
        known.push(name_of(each));
    }
    Err(Unknown { what, name: name.to_owned(), nearest: nearest(name, known.iter().copied()), known })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 6] = ["eventfd", "eventfd-poll", "eventfd-epoll", "eventfd-epoll-et", "pipe", "fifo"];

    #[test]
    fn a_slip_finds_the_name_that_was_meant() {
        for (typed, meant) in [
            ("evntfd-epoll", "eventfd-epoll"),
            ("eventdf", "eventfd"),
            ("ppe", "pipe"),
            ("eventfdpoll", "eventfd-poll"),
        ] {
            assert_eq!(nearest(typed, NAMES), Some(meant));
        }
        assert_eq!(nearest("pipe", []), None);
    }

    #[test]
    fn a_part_of_a_name_finds_the_shortest_that_has_it() {
        assert_eq!(nearest("epoll", NAMES), Some("eventfd-epoll"));
        assert_eq!(nearest("event", NAMES), Some("eventfd"));
    }

    #[test]
    fn an_unknown_name_is_told_with_what_may_have_been_meant() {
        assert_eq!(find("way", NAMES, |name| name, "fifo"), Ok("fifo"));
        let few = find("way", NAMES, |name| name, "pip").unwrap_err().to_string();
        let known = "known: eventfd, eventfd-poll, eventfd-epoll, eventfd-epoll-et, pipe, fifo";
        assert_eq!(few, format!("no way is called 'pip'; did you mean 'pipe'? ({known})"));
        let many = find("way", [NAMES, NAMES, NAMES, NAMES, NAMES].concat(), |name| name, "rcu").unwrap_err();
        assert_eq!(many.to_string(), "no way is called 'rcu' (`doorbell list` shows all)");
    }

    #[test]
    fn what_resembles_nothing_is_not_guessed_at() {
        for typed in ["", "x", "rcu", "mutex", "completely-different"] {
            assert_eq!(nearest(typed, NAMES), None, "{typed}");
        }
    }
}
