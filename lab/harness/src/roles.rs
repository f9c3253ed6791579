// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which of a trial's two sides one is; what each then does is in `role`.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Notifies first, waits for the answer.
    Initiate,
    /// Waits, then answers.
    Respond,
    /// Notifies, one way.
    Emit,
    /// Waits, one way.
    Absorb,
}

impl Role {
    /// 0 for the side that notifies first, 1 for the other.
    #[inline(always)]
    pub fn index(self) -> usize {
        match self {
            Self::Initiate | Self::Emit => 0,
            Self::Respond | Self::Absorb => 1,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Initiate => "initiator",
            Self::Respond => "responder",
            Self::Emit => "notifier",
            Self::Absorb => "waiter",
        }
    }
}
