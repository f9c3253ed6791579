// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one side keeps of a mechanism for as long as it lives.

use crate::side::{Side, SideError};
use crate::site::Word;
use doorbell_results::machine::clock::Ticks;

/// How long a slice is.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    /// What is not recorded, ticks.
    pub head: Ticks,
    /// What is recorded, ticks; none where the slice only takes the
    /// place of what it is to wash out.
    pub recorded: Option<Ticks>,
    /// Ticks after which it ends with fewer rounds than it is to have.
    pub longest: Ticks,
    /// Rounds that it is to have, if there is time for them.
    pub fewest: u32,
    pub most: u64,
}

/// One side's ends of one mechanism, held open. Both sides take their
/// waiting ends, meet, and take those that notify.
pub trait Resident {
    fn take_waiter(&mut self) -> Result<(), SideError>;
    fn take_notifier(&mut self) -> Result<(), SideError>;
    /// Whether nobody answers: the other side then has no part in a slice.
    fn is_lonely(&self) -> bool;
    /// A slice of the side that notifies first, up to the round that
    /// ends it; how many rounds were timed.
    fn run(&mut self, side: &mut Side, span: &Span) -> Result<u32, SideError>;
    /// The round that ends it. What comes next has been written down,
    /// and the other side goes there.
    fn part(&mut self, side: &mut Side) -> Result<(), SideError>;
    /// A whole slice of the other side; what comes next, as `next` says.
    fn answer(&mut self, side: &mut Side, next: &Word) -> Result<u32, SideError>;
}
