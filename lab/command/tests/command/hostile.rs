// SPDX-License-Identifier: MIT OR Apache-2.0
//! Result files that were cut, spliced and forged, by the thousand:
//! none of them makes the command panic.

use super::exercise::exercise;
use super::stage::Stage;

/// Mutations in the ordinary suite; `DOORBELL_MUTATIONS=1000000 cargo test --release --test command
/// hostile` takes its time.
const MUTATIONS: u32 = 400;

/// A real result with several mechanisms, patterns and blocks.
fn seed() -> Vec<u8> {
    let words = "ping eventfd --gap 0,1us --count 20 --blocks 4 --placement unpinned -q -o -";
    Stage::new().run(words).ended(0).out.into_bytes()
}

/// Texts that stand where numbers and structure do in JSON, and numbers at the edges of types.
const TOKENS: &str = r#"0 -1 1e308 -1e308 1e-308 0.5 18446744073709551615 4294967295 9007199254740993
    null true "" [] {} [[]] "\u001b[2J" "\ud800" , : " 140737488355327 8191 999999 3600000000000000"#;

/// One small change or a few.
fn mutate(bytes: &mut Vec<u8>, random: &mut fastrand::Rng) {
    for _ in 0..random.usize(1..=3) {
        let at = random.usize(0..bytes.len().max(1)).min(bytes.len().saturating_sub(1));
        match random.u32(0..8) {
            _ if bytes.is_empty() => bytes.push(b'{'),
            0 => bytes[at] ^= 1 << random.u32(0..8),
            1 => bytes[at] = random.u8(..),
            2 => bytes.truncate(at),
            3 => {
                let end = (at + random.usize(1..200)).min(bytes.len());
                bytes.drain(at..end);
            }
            4 => {
                let end = (at + random.usize(1..2000)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = random.usize(0..=bytes.len());
                bytes.splice(to..to, piece);
            }
            // A number replaced by another: what the parser lets through and everything after it
            // must take.
            _ => {
                let Some(start) = (at..bytes.len()).find(|index| bytes[*index].is_ascii_digit()) else {
                    continue;
                };
                let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                let tokens: Vec<&str> = TOKENS.split_whitespace().collect();
                let token = tokens[random.usize(0..tokens.len())];
                bytes.splice(start..start + length, token.bytes());
            }
        }
    }
}

#[test]
fn a_mutated_result_file_is_read_or_refused_and_never_panics() {
    let seed = seed();
    assert!(exercise(&seed), "the seed itself is a result");
    let mutations = std::env::var("DOORBELL_MUTATIONS").map_or(MUTATIONS, |text| text.parse().unwrap());
    let mut accepted = 0;
    for number in 0..mutations {
        let mut bytes = seed.clone();
        mutate(&mut bytes, &mut fastrand::Rng::with_seed(u64::from(number)));
        let outcome = std::panic::catch_unwind(|| exercise(&bytes));
        accepted += u32::from(outcome.unwrap_or_else(|_| panic!("mutation {number} made it panic")));
    }
    // If nothing came through, nothing after the parser was tried.
    assert!(accepted > mutations / 50, "{accepted} of {mutations} were read");
    println!("{accepted} of {mutations} mutations were read, the others refused");
}
