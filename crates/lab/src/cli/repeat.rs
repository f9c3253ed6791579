// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command that does a run once more, from what was understood of the one that did it.

use std::ffi::OsString;

use clap::parser::ValueSource;

/// Flags that are no part of it: they write over what the run wrote, or are about the terminal. The seed is that of the plan.
const LEFT_OUT: [&str; 5] = ["output", "save_baseline", "color", "quiet", "seed"];

/// The command that does the run of this one once more, its orders by `seed` if it has any. Nothing where one cannot be typed.
pub fn repeat(seed: Option<u64>) -> Vec<String> {
    words(std::env::args_os(), seed)
}

/// `given` with every flag by its long name; nothing of what is no command of ours, or has words that are not UTF-8.
fn words(given: impl IntoIterator<Item = OsString>, seed: Option<u64>) -> Vec<String> {
    let command = super::command();
    let Ok(matches) = command.clone().try_get_matches_from(given) else { return Vec::new() };
    let mut words = vec!["doorbell".to_owned()];
    let (mut command, mut matches) = (&command, &matches);
    while let Some((verb, of_verb)) = matches.subcommand() {
        let Some(of_name) = command.find_subcommand(verb) else { return Vec::new() };
        words.push(verb.to_owned());
        (command, matches) = (of_name, of_verb);
    }
    let mut behind = Vec::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        if LEFT_OUT.contains(&id) || matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        for values in matches.get_raw_occurrences(id).into_iter().flatten() {
            let values: Option<Vec<String>> = values.map(|value| value.to_str().map(str::to_owned)).collect();
            let Some(mut values) = values else { return Vec::new() };
            if let Some(delimiter) = argument.get_value_delimiter() {
                values = vec![values.join(&delimiter.to_string())];
            }
            match argument.get_long() {
                Some(flag) if !argument.get_action().takes_values() => words.push(format!("--{flag}")),
                // As a word of its own it would be another flag.
                Some(flag) if values.iter().any(|value| value.len() > 1 && value.starts_with('-')) => {
                    words.push(format!("--{flag}={}", values.concat()));
                }
                Some(flag) => {
                    words.push(format!("--{flag}"));
                    words.extend(values);
                }
                // The command of a guest or a node is one of ours too.
                None if argument.is_last_set() => {
                    let inner = std::iter::once("doorbell".to_owned()).chain(values).map(OsString::from);
                    behind = self::words(inner, seed);
                }
                // It would be a flag where it is not behind `--`.
                None if values.iter().any(|value| value.starts_with('-')) => return Vec::new(),
                None => words.extend(values),
            }
        }
    }
    if let Some(seed) = seed.filter(|_| command.get_arguments().any(|argument| argument.get_id() == "seed")) {
        words.extend(["--seed".to_owned(), seed.to_string()]);
    }
    if let Some(program) = behind.first_mut() {
        "--".clone_into(program);
    }
    words.extend(behind);
    words
}

// The survey and its flags are Linux's.
#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn repeated(given: &str) -> String {
        words(given.split(' ').map(OsString::from), Some(7)).join(" ")
    }

    #[test]
    fn a_run_is_repeated_with_its_seed_and_not_over_what_it_wrote() {
        for (given, repeated_by) in [
            ("/opt/doorbell spin --gap 1ms,2ms -o a.json --seed 3", "doorbell spin --gap 1ms,2ms --seed 7"),
            ("doorbell ping pipe futex -qoa.json --gap=0", "doorbell ping pipe futex --gap 0 --seed 7"),
            ("doorbell ping -qo a.json --save-baseline main", "doorbell ping --seed 7"),
            (
                "doorbell -q --color never pick --output=a.json --need epoll",
                "doorbell pick --need epoll --seed 7",
            ),
            ("doorbell --blocks 9 -o a.json --details", "doorbell --blocks 9 --details --seed 7"),
            (
                "doorbell check --baseline - --fail-if lost>0 --fail-if p50>1us",
                "doorbell check --baseline - --fail-if lost>0 --fail-if p50>1us --seed 7",
            ),
            ("doorbell ping --name=-o", "doorbell ping --name=-o --seed 7"),
            ("doorbell no-verb", ""),
        ] {
            assert_eq!(repeated(given), repeated_by, "{given}");
            if !repeated_by.is_empty() {
                assert_eq!(repeated(repeated_by), repeated_by, "it is repeated by the same words");
            }
        }
    }

    #[test]
    fn a_run_without_a_seed_is_repeated_without_one() {
        let given = "doorbell vm run --guest squall --timeout 1m -- tasks -n 9 -o a.json";
        let repeated = words(given.split(' ').map(OsString::from), None).join(" ");
        assert_eq!(repeated, "doorbell vm run --guest squall --timeout 1m -- tasks --tasks 9");
    }

    #[test]
    fn words_that_cannot_be_typed_repeat_nothing() {
        use std::os::unix::ffi::OsStringExt;
        let not_text = OsString::from_vec(b"a\xFF".to_vec());
        let given = [OsString::from("doorbell"), "ping".into(), "--name".into(), not_text];
        assert_eq!(words(given, Some(7)), Vec::<String>::new());
    }

    #[test]
    fn what_is_left_out_are_flags_of_a_run() {
        let command = super::super::command();
        for flag in LEFT_OUT {
            assert!(command.get_arguments().any(|argument| argument.get_id() == flag), "{flag}");
        }
    }
}
