// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rounds of every comparison. The cores of shared machines become half as fast for
//! milliseconds to a second at a time. Therefore the variants run in many short blocks, in an order
//! drawn anew for each round, and what is compared is not the median of one with the median of the
//! other, but the ratios of the blocks of one round (`statistics`).

use crate::shuffle::Shuffle;

/// One block of one variant.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    pub round: usize,
    pub group: usize,
    pub variant: usize,
    /// As which of the group's blocks of this round it runs.
    pub place: usize,
}

/// Gives every variant one block in each round. `groups` says how
/// many variants each group has: those of a group are neighbours in
/// time, so that what slows the cores slows all that are compared.
pub fn rounds<E>(
    shuffle: &mut Shuffle,
    rounds: usize,
    groups: &[usize],
    mut block: impl FnMut(Turn) -> Result<(), E>,
) -> Result<(), E> {
    for round in 0..rounds {
        for group in shuffle.order(groups.len()) {
            for (place, variant) in shuffle.order(groups[group]).into_iter().enumerate() {
                block(Turn { round, group, variant, place })?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_every_round_every_variant_has_one_block_beside_those_of_its_group() {
        let mut turns = Vec::new();
        rounds(&mut Shuffle::new(1), 3, &[2, 3], |turn| {
            turns.push((turn.round, turn.group, turn.variant));
            Ok::<_, ()>(())
        })
        .unwrap();
        for round in turns.chunks(5) {
            assert_eq!(round.chunk_by(|a, b| a.1 == b.1).count(), 2, "{round:?}");
        }
        turns.sort_unstable();
        turns.dedup();
        assert_eq!(turns.len(), 3 * 5);
    }
}
