// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often what is judged in slices is wrong about equal things,
//! and what it finds, in simulated surveys.
//!
//! The noise is that of stored runs: the machine has two speeds, 1.6 apart, and the share of the
//! slow one drifts between 0.1 and 0.9; each pair of processes has lasting effects of 1 % of its
//! own. A survey is wrong that calls anything different anywhere, or says of anything that it is
//! behind by other ends than it is.
//!
//! The tests make some dozens of surveys. `--ignored --nocapture` makes thousands, and says what
//! came of each kind of noise.

use doorbell_results::configuration::Configuration;
use doorbell_results::record::slice::Slice as RecordedSlice;
use doorbell_results::record::subject::Contexts;
use doorbell_results::record::{Record, ResultFile, Variant, sample};
use doorbell_verdict::answer::answer;
use doorbell_verdict::best::{Behind, best};
use doorbell_verdict::by_block::levels;
use doorbell_verdict::compare::{RELEVANT, Turns, compare, compare_beside};
use doorbell_verdict::ratio::Standing;
use doorbell_verdict::slices::{ERROR, FEWEST_PAIRS, Levels, Slice};
use doorbell_verdict::statistics::clopper_pearson;

/// What a simulated machine does.
#[derive(Debug, Clone, Copy)]
struct Noise {
    /// How long a speed lasts, as a share of the run, on the average.
    lasts: f64,
    /// How much a slice resembles the one before, beside the two speeds.
    resembles: f64,
    /// The lasting effect of a pair of processes on each thing, as a standard deviation.
    pair: f64,
    /// How long it lasts beyond the pair: the correlation of one pair's effect with the next.
    lasting: f64,
    /// So many slices run at each speed that a stored survey had from
    /// trial to trial; none at two made-up ones.
    stored: Option<usize>,
}

const QUIET: Noise = Noise { lasts: 0.0005, resembles: 0.3, pair: 0.0, lasting: 0.0, stored: None };
const USUAL: Noise = Noise { lasts: 0.002, resembles: 0.5, pair: 0.01, lasting: 0.0, stored: None };
const SLOW: Noise = Noise { lasts: 0.05, resembles: 0.9, pair: 0.01, lasting: 0.0, stored: None };
const LASTING: Noise = Noise { lasts: 0.05, resembles: 0.9, pair: 0.01, lasting: 0.5, stored: None };

/// The speeds of three surveys of 16 virtual CPUs (Xeon under KVM, idle, 2026-11-27): what bare
/// futex hand-overs on one core took in each trial, one after the other, above the median, in
/// ten-thousandths of the logarithm.
const STORED: Noise = Noise { stored: Some(8), ..USUAL };

fn stored_speeds() -> Vec<Vec<i32>> {
    serde_json::from_str(include_str!("../fixtures/speeds-of-sixteen-virtual-cpus.json")).unwrap()
}

/// The shape of a survey.
#[derive(Debug, Clone, Copy)]
struct Shape {
    classes: usize,
    things: usize,
    pairs: u32,
    /// Slices of each thing in a pair.
    slices: u32,
}

const SURVEY: Shape = Shape { classes: 2, things: 8, pairs: 20, slices: 12 };

fn normal(random: &mut fastrand::Rng) -> f64 {
    (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (std::f64::consts::TAU * random.f64()).cos()
}

/// A survey in which thing 0 takes `slower` longer than all others, in logarithms.
fn survey(shape: Shape, noise: Noise, slower: f64, random: &mut fastrand::Rng) -> Vec<Slice> {
    let each = shape.things / shape.classes;
    let total = f64::from(shape.pairs * shape.slices) * shape.things as f64;
    let leaves = (1.0 / (noise.lasts * total)).min(1.0);
    let stored =
        noise.stored.map(|each| (random.choice(stored_speeds()).unwrap(), random.usize(0..243), each));
    let (mut share, mut slow, mut level) = (random.f64(), random.bool(), 0.0);
    let mut effects: Vec<f64> = (0..shape.things).map(|_| noise.pair * normal(random)).collect();
    let mut slices = Vec::new();
    for pair in 0..shape.pairs {
        let news = (1.0 - noise.lasting * noise.lasting).sqrt();
        for effect in &mut effects {
            *effect = noise.lasting * *effect + news * noise.pair * normal(random);
        }
        let mut turns: Vec<usize> =
            (0..shape.slices as usize / 2 * shape.classes).map(|turn| turn % shape.classes).collect();
        random.shuffle(&mut turns);
        for (turn, class) in (0..).zip(turns) {
            let mut order: Vec<usize> = (0..each * 2).map(|thing| class * each + thing % each).collect();
            random.shuffle(&mut order);
            for (place, thing) in (0..).zip(order) {
                share = (share + 0.01 * normal(random)).clamp(0.1, 0.9);
                if random.f64() < leaves {
                    slow = random.f64() < share;
                }
                let own = (1.0 - noise.resembles * noise.resembles).sqrt();
                level = noise.resembles * level + own * normal(random);
                let tail = if random.f64() < 0.02 { 0.3 * random.f64() } else { 0.0 };
                let longer = if thing == 0 { slower } else { 0.0 };
                let made = if slow { 1.6_f64.ln() } else { 0.0 };
                let speed = stored.as_ref().map_or(made, |(speeds, first, each)| {
                    f64::from(speeds[(first + slices.len() / each) % speeds.len()]) * 1e-4
                });
                let speed = speed + 0.02 * level;
                let y = 8.3 + longer + speed + effects[thing] + 0.01 * normal(random) + tail;
                slices.push(Slice { thing, pair, turn, place, middle_ns: y.exp() });
            }
        }
    }
    slices
}

/// What is said of one survey: the rows that are wrong, and how thing
/// 0 stands in the rows of its own class and of all.
fn told(shape: Shape, slices: &[Slice], slower: f64) -> (bool, [Option<Standing>; 2], f64) {
    let levels = Levels::of(shape.things, slices);
    let each = shape.things / shape.classes;
    let mut rows: Vec<Vec<usize>> =
        (0..shape.classes).map(|class| (class * each..(class + 1) * each).collect()).collect();
    rows.push((0..shape.things).collect());
    let error = ERROR / rows.len() as f64;
    let found: Vec<Vec<Behind>> =
        rows.iter().map(|row| best(&levels, row.iter().copied(), error, 0.025)).collect();
    let truth = |thing: usize| if thing == 0 { slower.exp() } else { 1.0 };
    let wrong = found.iter().any(|row| {
        row.iter().any(|behind| {
            let ends = |ratio: doorbell_verdict::ratio::Ratio| {
                ratio.low > truth(behind.thing) * (1.0 + 1e-9)
                    || ratio.high < truth(behind.thing) * (1.0 - 1e-9)
            };
            behind.ratio.is_some_and(ends) || (truth(behind.thing) == 1.0 && !behind.candidate)
        })
    });
    let of = |row: &[Behind]| row.iter().find(|behind| behind.thing == 0).map(|behind| behind.standing);
    let widths = found[0].iter().filter_map(|behind| behind.ratio).map(|ratio| ratio.high - 1.0);
    let widths: Vec<f64> = widths.collect();
    let width = doorbell_verdict::statistics::median(&widths).unwrap_or(f64::NAN);
    (wrong, [of(&found[0]), of(&found[shape.classes])], width)
}

/// Of so many surveys: wrong ones, those that found thing 0 slower in
/// its class and among all, and the middle width.
fn series(shape: Shape, noise: Noise, slower: f64, surveys: u64) -> (u64, [u64; 2], f64) {
    let (mut wrong, mut found, mut widths) = (0, [0, 0], Vec::new());
    for seed in 0..surveys {
        let slices = survey(shape, noise, slower, &mut fastrand::Rng::with_seed(seed));
        let (is_wrong, standing, width) = told(shape, &slices, slower);
        wrong += u64::from(is_wrong);
        for (found, standing) in found.iter_mut().zip(standing) {
            *found += u64::from(standing == Some(Standing::Slower));
        }
        widths.push(width);
    }
    (wrong, found, doorbell_verdict::statistics::median(&widths).unwrap_or(f64::NAN))
}

/// Whether so many wrong ones of `all` are what a true rate of 5 % has in 99 of 100 series.
fn within_the_error(wrong: u64, all: u64) -> bool {
    clopper_pearson(all as f64, wrong as f64, 0.99).0 <= ERROR
}

#[test]
fn of_equal_things_at_most_five_surveys_of_a_hundred_call_any_different() {
    for noise in [QUIET, USUAL, SLOW, STORED] {
        let (wrong, _, _) = series(SURVEY, noise, 0.0, 100);
        assert!(within_the_error(wrong, 100), "{wrong} of 100 with {noise:?}");
    }
}

/// Twenty pairs do not show all of it: of a thousand such surveys 80
/// are wrong, which the book says.
#[test]
fn where_half_of_a_pairs_own_effect_outlives_it_no_more_than_one_survey_in_seven_is_wrong() {
    let (wrong, _, _) = series(SURVEY, LASTING, 0.0, 100);
    assert!(wrong <= 15, "{wrong} of 100");
}

#[test]
fn a_thing_that_takes_five_percent_longer_is_found_in_nineteen_surveys_of_twenty() {
    for noise in [USUAL, SLOW] {
        let (wrong, [found, _], width) = series(SURVEY, noise, 0.05, 40);
        assert!(
            found >= 38 && within_the_error(wrong, 40),
            "{found} of 40, {wrong} wrong, width {width}, with {noise:?}"
        );
    }
}

#[test]
fn a_run_of_too_few_pairs_tells_nothing_apart_and_still_has_levels() {
    let shape = Shape { pairs: FEWEST_PAIRS as u32 - 1, ..SURVEY };
    let slices = survey(shape, USUAL, 0.5, &mut fastrand::Rng::with_seed(1));
    let levels = Levels::of(shape.things, &slices);
    let best = best(&levels, 0..4, ERROR, 0.025);
    assert!(best.iter().all(|behind| behind.ratio.is_none() && behind.candidate));
    assert_eq!(best.last().map(|behind| behind.thing), Some(0));
    assert!(best.iter().all(|behind| behind.standing == Standing::Inconclusive));
}

#[test]
fn a_thing_of_two_modes_moves_no_neighbour_and_hides_no_difference() {
    let shape = Shape { classes: 1, things: 4, ..SURVEY };
    let mut random = fastrand::Rng::with_seed(1);
    let mut slices = survey(shape, USUAL, 1.0, &mut random);
    // Thing 1 spins at times, and sleeps at times, which takes some hundred times as long.
    for slice in slices.iter_mut().filter(|slice| slice.thing == 1) {
        slice.middle_ns *= if random.bool() { 30.0 } else { 1.0 / 30.0 };
    }
    let without = |thing: usize| slices.iter().copied().filter(|slice| slice.thing != thing).collect();
    let without: Vec<Slice> = without(1);
    let [with, without] = [&slices, &without].map(|slices| Levels::of(shape.things, slices));
    for thing in [0, 2, 3] {
        let moved = with.level(thing).unwrap() / without.level(thing).unwrap();
        assert!((0.97..1.03).contains(&moved), "thing {thing}: {moved}");
    }
    let best = best(&with, 0..4, ERROR, 0.025);
    let of = |thing: usize| best.iter().find(|behind| behind.thing == thing).unwrap();
    assert!(of(1).candidate && of(1).standing == Standing::Inconclusive, "{best:?}");
    assert_eq!(of(0).standing, Standing::Slower, "{best:?}");
    assert!(of(0).ratio.is_some_and(|ratio| ratio.low > 2.0), "{best:?}");
}

#[test]
fn turns_of_two_threads_are_no_neighbours_of_those_of_two_processes() {
    let processes = ["futex", "pipe"].map(sample::configuration);
    let threads = processes.clone().map(|one| Configuration { contexts: Contexts::Threads, ..one });
    let mut result = sample::result(&[processes, threads].concat(), 2, |_, _| 4_000.0);
    for record in &mut result.records {
        let place = u32::from(record.configuration.subject == "pipe");
        let slice = RecordedSlice { turn: 0, place, rounds: 100, middle_ns: 4_000.0, slept: None };
        record.slices.push(slice);
    }
    let variants = result.variants();
    let variants: Vec<&Variant> = variants.iter().collect();
    let levels = levels(&variants, &[]).unwrap();
    assert_eq!([0, 1, 2, 3].map(|thing| levels.class(thing)), [0, 0, 2, 2]);
}

/// A run of six mechanisms that took turns, the first of which takes
/// `slower` longer, on a machine slower by `machine`.
fn run(slower: f64, machine: f64, seed: u64) -> ResultFile {
    let shape = Shape { classes: 1, things: 6, ..SURVEY };
    let subjects = ["futex", "pipe", "eventfd", "sem-posix", "fifo", "unix-stream"];
    let configurations = subjects.map(sample::configuration);
    let mut result = sample::result(&configurations, shape.pairs, |_, _| 4_000.0);
    for slice in survey(shape, USUAL, slower, &mut fastrand::Rng::with_seed(seed)) {
        let of = |record: &&mut Record| {
            record.block == slice.pair && record.configuration.subject == subjects[slice.thing]
        };
        let record = result.records.iter_mut().find(of).unwrap();
        let Slice { turn, place, middle_ns, .. } = slice;
        let (turn, middle_ns) = (turn as u32, middle_ns * machine.exp());
        record.slices.push(RecordedSlice { turn, place, rounds: 100, middle_ns, slept: None });
    }
    result
}

#[test]
fn a_survey_whose_mechanisms_took_turns_says_which_is_behind_by_its_slices() {
    let said = answer(&run(0.1, 0.0, 1));
    let any = said.picks.first().unwrap();
    assert_eq!(any.others.last().unwrap().subject, "futex");
    let slower: Vec<&str> = any
        .others
        .iter()
        .filter(|other| other.standing == Standing::Slower)
        .map(|other| other.subject.as_str())
        .collect();
    assert_eq!(slower, ["futex"]);
    let ratio = any.others.last().unwrap().ratio.unwrap();
    let truth = 0.1_f64.exp();
    assert!(1.0 < ratio.low && ratio.low < truth && truth < ratio.high, "{ratio:?}");
}

#[test]
fn between_two_runs_in_slices_what_the_whole_machine_did_is_no_slowdown_and_what_one_mechanism_did_is() {
    let (before, after) = (run(0.0, 0.0, 1), run(0.12, 0.3, 2));
    let compared = compare(&before, &after, RELEVANT);
    let standings: Vec<Standing> = compared.rows.iter().map(|row| row.standing).collect();
    assert_eq!(standings[0], Standing::Slower, "{compared:?}");
    assert!(!standings[1..].iter().any(|standing| matches!(standing, Standing::Slower)), "{standings:?}");
    // The same for all, whatever it is, but for the fifth of the first one's own change that stands in
    // the others' mean: the two runs met the slow speed for other shares of their time as well.
    let machine = compared.rows[0].machine.unwrap();
    assert!(
        machine > 1.0 && compared.rows.iter().all(|row| (row.machine.unwrap() / machine - 1.0).abs() < 0.05)
    );
    let slowed = run(0.08, 0.0, 1);
    let live = compare_beside(&before, &slowed, Turns::Blocks, RELEVANT, 1);
    assert_eq!(live.rows[0].standing, Standing::Slower);
    assert!(live.rows[1..].iter().all(|row| matches!(row.standing, Standing::Same { .. })), "{live:?}");
}

/// A futex of two programs that took turns slice by slice, the second
/// of which takes `slower` longer.
fn two_programs(noise: Noise, slower: f64, seed: u64) -> [ResultFile; 2] {
    let shape = Shape { classes: 1, things: 2, slices: 60, ..SURVEY };
    let slices = survey(shape, noise, -slower, &mut fastrand::Rng::with_seed(seed));
    [0, 1].map(|thing| {
        let mut result = sample::result(&[sample::configuration("futex")], shape.pairs, |_, _| 4_000.0);
        for slice in slices.iter().filter(|slice| slice.thing == thing) {
            let Slice { pair, turn, place, middle_ns, .. } = *slice;
            let slice = RecordedSlice { turn: turn as u32, place, rounds: 100, middle_ns, slept: None };
            result.records.iter_mut().filter(|record| record.block == pair).for_each(|record| {
                record.slices.push(slice);
            });
        }
        result
    })
}

#[test]
fn of_two_programs_in_one_order_of_turns_the_machine_is_taken_out_and_the_slower_one_is_found() {
    for noise in [QUIET, USUAL, SLOW, STORED] {
        let standings = |slower: f64| -> Vec<Standing> {
            let of = |seed: u64| {
                let [before, after] = two_programs(noise, slower, seed);
                let compared = compare_beside(&before, &after, Turns::Slices, RELEVANT, 1);
                assert_eq!(compared.rows[0].machine, None, "both met the same machine");
                compared.rows[0].standing
            };
            (0..100).map(of).collect()
        };
        let different = |standing: &&Standing| matches!(standing, Standing::Slower | Standing::Faster);
        let wrong = standings(0.0).iter().filter(different).count() as u64;
        assert!(within_the_error(wrong, 100), "{wrong} of 100 equal ones with {noise:?}");
        // Speeds that change with each slice are no neighbours' doing, and take what they take.
        if noise.lasts > QUIET.lasts {
            let found = standings(0.05).iter().filter(|standing| **standing == Standing::Slower).count();
            assert!(found >= 90, "{found} of 100 with {noise:?}");
        }
    }
}

#[test]
#[ignore = "minutes: DOORBELL_SIMULATED_RUNS says how many"]
fn many_surveys() {
    let surveys =
        std::env::var("DOORBELL_SIMULATED_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(1000);
    for pairs in [6, 10, 20, 40] {
        for (name, noise) in
            [("quiet", QUIET), ("usual", USUAL), ("slow", SLOW), ("lasting", LASTING), ("stored", STORED)]
        {
            let shape = Shape { pairs, ..SURVEY };
            let (wrong, _, width) = series(shape, noise, 0.0, surveys);
            let found = [0.02, 0.03, 0.05].map(|slower| series(shape, noise, slower, surveys / 10).1);
            let percent = |count: u64, of: u64| 100.0 * count as f64 / of as f64;
            let found = found.map(|found| found.map(|found| percent(found, surveys / 10)));
            println!(
                "{pairs:>3} pairs, {name:<8} wrong {:.1} %, width {:.2} %, of 2, 3, 5 % slower \
                 found in the class and among all {found:.0?} %",
                percent(wrong, surveys),
                100.0 * width
            );
        }
    }
}
