// SPDX-License-Identifier: MIT OR Apache-2.0
//! WaiterSlots: tokens that belong to one waiter while it holds them.

use crate::bell_state::BellState;
use crate::error::WaitError;
use crate::origin::Hold;
use crate::process::Process;
use doorbell_core::fault;
use doorbell_core::wake::WaiterSlot;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The waiter slots one waiter holds at one bell. Given back when dropped.
#[derive(Debug)]
pub(crate) struct WaiterSlots {
    state: Arc<BellState>,
    eventfd: Option<u32>,
    /// Whose they are: a forked child has a copy, which holds no waiter slot.
    process: Process,
    /// While a waiter slot is held: when this process hangs up on who made the segment, that one
    /// gives its waiter slots to others. Given up last.
    hold: Option<Arc<dyn Hold>>,
}

impl WaiterSlots {
    pub(crate) fn new(state: &Arc<BellState>) -> Self {
        Self { state: Arc::clone(state), eventfd: None, process: Process::current(), hold: None }
    }

    /// The eventfd waiter slot held, and the eventfd's number. Takes one if none is held.
    pub(crate) fn take_eventfd(&mut self) -> Result<(WaiterSlot, usize), WaitError> {
        if let Some(held) = self.eventfd() {
            return Ok(held);
        }
        self.forget_parents();
        let slots = self.state.eventfd_slots();
        let none = WaitError::NoWaiterSlot { slots };
        let hold = self.state.origin().hold()?;
        let index = take(&self.state, slots).ok_or(none)?;
        (self.eventfd, self.hold) = (Some(index), hold);
        if let Err(error) = self.state.make_eventfd(index as usize) {
            give_back(&self.state, index as usize);
            self.eventfd = None;
            return Err(error);
        }
        self.eventfd().ok_or(none)
    }

    /// Before a slot is taken. In a forked child what else is held is its parent's, and only this
    /// slot is to be given back.
    fn forget_parents(&mut self) {
        if !self.process.is_current_generation() {
            let process = Process::current();
            (self.eventfd, self.hold, self.process) = (None, None, process);
        }
    }

    pub(crate) fn state(&self) -> &Arc<BellState> {
        &self.state
    }

    /// The eventfd waiter slot held, and the eventfd's number.
    pub(crate) fn eventfd(&self) -> Option<(WaiterSlot, usize)> {
        let index = self.eventfd?;
        Some((WaiterSlot::eventfd(index)?, index as usize))
    }
}

fn take(state: &BellState, count: usize) -> Option<u32> {
    let holders = state.record().slot_holders.get(..count)?;
    let free = holders.iter().position(|holder| {
        fault::point();
        holder.compare_exchange(0, state.holder(), Ordering::AcqRel, Ordering::Relaxed).is_ok()
    })?;
    u32::try_from(free).ok()
}

/// What a slot's holder may count on.
pub(crate) const MADE: &str = "an eventfd is made when its slot is taken";

/// A token may still come for an armed bit: the next holder consumes it before it arms. It may be
/// another's already: a peer that is gone for us may have given our waiter slots away.
fn give_back(state: &BellState, index: usize) {
    fault::point();
    let holder = &state.record().slot_holders[index];
    let _ = holder.compare_exchange(state.holder(), 0, Ordering::Release, Ordering::Relaxed);
}

impl Drop for WaiterSlots {
    fn drop(&mut self) {
        if !self.process.is_current() {
            return;
        }
        if let Some(index) = self.eventfd {
            give_back(&self.state, index as usize);
        }
    }
}
