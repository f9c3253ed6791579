// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether a run that is looked at now and then has shown enough.

use super::ratio::Standing;
use super::{pick, spin};
use doorbell_results::record::ResultFile;
use doorbell_results::record::question::Question;

/// Whether what is asked of `result` is decided: nothing in its answer is open.
pub fn decided(result: &ResultFile) -> bool {
    match &result.plan.question {
        Some(Question::Pick(question)) => pick::pick(result, question).is_ok_and(|picked| {
            picked.choice.is_ok()
                && picked.ranked.iter().all(|ranked| ranked.standing != Standing::Inconclusive)
        }),
        Some(Question::Spin(question)) => spin::spin(result, question.worth)
            .is_some_and(|spun| spun.gaps.iter().all(|gap| gap.choice.is_ok())),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doorbell_results::configuration::Configuration;
    use doorbell_results::record::question::{self, By, Shape};
    use doorbell_results::record::sample;

    fn run(pipe: f64, blocks: u32, seed: u64) -> ResultFile {
        let configurations: Vec<Configuration> = ["futex", "pipe"].map(sample::configuration).to_vec();
        let random = std::cell::RefCell::new(fastrand::Rng::with_seed(seed));
        let mut result = sample::result(&configurations, blocks, |configuration, _| {
            let level = if configuration.subject == "pipe" { pipe } else { 16_000.0 };
            level * (1.0 + 0.12 * (random.borrow_mut().f64() - 0.5))
        });
        result.plan.question = Some(Question::Pick(question::Pick {
            shape: Shape::OneToOne,
            needs: Vec::new(),
            by: By::P50,
            gap_ns: 0,
            relation: None,
            traffic: None,
        }));
        result.plan.looks = vec![10, 20, 40];
        result
    }

    #[test]
    fn a_run_is_decided_once_nothing_in_its_answer_is_open() {
        assert!(decided(&run(32_000.0, 10, 1)), "twice as long is seen at once");
        assert!(!decided(&run(32_000.0, 5, 1)), "five blocks are no evidence");
        // Twice the least difference that matters.
        let open = |blocks| (0..4).filter(|seed| !decided(&run(16_800.0, blocks, *seed))).count();
        let [ten, forty] = [open(10), open(40)];
        assert!(ten > forty, "{ten} of 4 with ten blocks, {forty} with forty");
    }

    /// Whoever looks three times is wrong more often, unless each
    /// look is held to a third of the error.
    #[test]
    fn of_equal_things_no_more_are_called_different_by_three_looks_than_by_one() {
        let differs = |seed: u64| {
            [10, 20, 40].into_iter().any(|blocks| {
                let whole = run(16_000.0, 40, seed);
                let mut seen = whole.clone();
                seen.records.retain(|record| record.block < blocks);
                seen.plan.blocks = blocks;
                let Some(Question::Pick(question)) = &seen.plan.question else { unreachable!() };
                let picked = pick::pick(&seen, question).unwrap();
                picked
                    .ranked
                    .iter()
                    .any(|ranked| ranked.behind.is_some_and(|ratio| ratio.low > 1.0 || ratio.high < 1.0))
            })
        };
        let wrong = (0..15).filter(|seed| differs(*seed)).count();
        assert!(wrong <= 2, "{wrong} of 15");
    }
}
