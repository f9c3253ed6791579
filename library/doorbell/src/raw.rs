// SPDX-License-Identifier: MIT OR Apache-2.0
//! What [`channel`](crate::channel()), [`listen`](crate::listen) and [`connect`](crate::connect)
//! are made of, for those who lay out memory themselves.
//!
//! | for | use |
//! |---|---|
//! | memory with bells and lanes of your choice | [`Segment`], made from an [`Offer`], with [`Lanes`] |
//! | sharing it | [`socket`], [`inherited`]; [`Host`] and [`Join`] say with whom ([`Users`]) |
//! | one peer, and taking ends of lanes there | [`Connection`], [`Sender::attach`](crate::channel::Sender::attach) |
//! | one's own structures in the segment, and waking whoever waits for them | [`Segment::payload`], [`BellState`] |

pub use crate::bell_state::BellState;
pub use crate::channel::Lanes;
pub use crate::mapping::{MapError, Mapping, Scope};
pub use crate::rendezvous::socket::Host;
pub use crate::rendezvous::{
    Connection, Join, MemoryOptions, Offer, RendezvousError, Segment, Users, inherited, socket,
};
