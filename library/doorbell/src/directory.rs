// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lanes of a mapping: which there are, and their words.

use crate::bell_state::BellState;
use crate::mapping::Mapping;
use doorbell_core::channel::lane::{Shared, occupancy};
use doorbell_core::channel::layout::{Attachment, Control, Directory, Lanes};
use doorbell_core::fault;
use doorbell_core::layout::{FEATURE_CHANNELS, LayoutError};
use doorbell_core::violation::PeerViolation;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn directory(mapping: &Mapping) -> Result<&Directory, PeerViolation> {
    let at = mapping.whole_payload().part(0, size_of::<Directory>() as u64)?.as_ptr().cast::<Directory>();
    // SAFETY: in bounds of the payload, which begins at a multiple of 4096; all fields are atomics; it
    // lives as long as the mapping.
    Ok(unsafe { &*at })
}

/// The words of lane `number`, which must be one of `lanes`.
pub(crate) fn control<'a>(
    mapping: &'a Mapping,
    lanes: &Lanes,
    number: u32,
) -> Result<&'a Control, PeerViolation> {
    let at = mapping.whole_payload().part(lanes.control_offset(number), size_of::<Control>() as u64)?;
    // SAFETY: in bounds of the payload, at a multiple of 128 from its begin, which lies at a multiple
    // of 4096; all fields are atomics; it lives as long as the mapping.
    Ok(unsafe { &*at.as_ptr().cast::<Control>() })
}

/// Describes `lanes` in a fresh mapping, whose users take ends by their processes' numbers in
/// `namespace`, if that is not 0. False if there is no room for them.
pub(crate) fn write_directory(
    mapping: &Mapping,
    lanes: &Lanes,
    namespace: u32,
) -> Result<bool, PeerViolation> {
    let fits = mapping.plan().bells >= lanes.bells() && mapping.plan().payload_size >= lanes.payload_size();
    if fits {
        directory(mapping)?.write(lanes, namespace);
    }
    Ok(fits)
}

/// The namespaces in which the numbers of processes are those of the users of a mapping's lanes
/// (`holder::namespace`). 0: they are others.
pub(crate) fn read_namespace(mapping: &Mapping) -> Result<u32, PeerViolation> {
    let channels = mapping.plan().features & FEATURE_CHANNELS != 0;
    if channels { directory(mapping).map(Directory::namespace) } else { Ok(0) }
}

/// The lanes of a mapping, if it has any.
pub(crate) fn read_directory(mapping: &Mapping) -> Result<Option<Lanes>, LayoutError> {
    let plan = mapping.plan();
    if plan.features & FEATURE_CHANNELS == 0 {
        return Ok(None);
    }
    directory(mapping).map_err(LayoutError::Violation)?.read(plan.bells, plan.payload_size).map(Some)
}

/// A lane of memory that others use.
struct Seen<'a> {
    control: &'a Control,
    ring: *const u8,
    mask: u64,
}

impl Shared for Seen<'_> {
    fn word(&self, place: u64) -> &AtomicU64 {
        let at = self.ring.wrapping_add((place & self.mask & !7) as usize).cast::<AtomicU64>();
        // SAFETY: the ring is as long as the mask says, aligned to
        // 4096, and lives as long as `control`; only loads are made.
        unsafe { &*at }
    }

    fn released(&self) -> &AtomicU64 {
        &self.control.released
    }
}

/// How large the ring of lane `number` of a foreign mapping is, how many messages lie in it, the
/// bytes they take, and how many its sender has dropped. Nothing is written, whatever lies there.
/// `None` if there is no such lane.
pub(crate) fn look_at_lane(mapping: &Mapping, number: u32) -> Option<(u64, usize, u64, u64)> {
    let lanes = read_directory(mapping).ok()?.filter(|lanes| number < lanes.lanes())?;
    let control = control(mapping, &lanes, number).ok()?;
    let capacity = lanes.capacity();
    let ring = mapping.whole_payload().part(lanes.ring_offset(number), capacity.get()).ok()?;
    let seen = Seen { control, ring: ring.as_ptr(), mask: capacity.get() - 1 };
    let (messages, bytes) = occupancy(capacity, &seen);
    Some((capacity.get(), messages, bytes, control.dropped.load(Ordering::Relaxed)))
}

/// One end of every lane of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// The sending ends.
    Senders,
    /// The receiving ends.
    Receivers,
}

/// Leaves, as `holder`, the ends of `side` that nobody has used.
pub(crate) fn leave_unused(mapping: &Mapping, lanes: &Lanes, holder: u32, side: Ends) {
    for number in 0..lanes.lanes() {
        let Ok(control) = control(mapping, lanes, number) else { return };
        let word = match side {
            Ends::Senders => &control.sender,
            Ends::Receivers => &control.receiver,
        };
        fault::point();
        // Release: whoever sees it sees what was done before. Fails if somebody has been there.
        let _ = word.compare_exchange(0, Attachment::left(holder), Ordering::Release, Ordering::Relaxed);
    }
}

/// Frees the places of a dead process for successors. `states` are the bells of `mapping`.
pub(crate) fn vacate(mapping: &Mapping, lanes: &Lanes, states: &[Arc<BellState>], holder: u32) {
    for number in 0..lanes.lanes() {
        let Ok(control) = control(mapping, lanes, number) else { return };
        for word in [&control.sender, &control.receiver] {
            fault::point();
            // Acquire and release: a successor that sees it sees all that the dead one did.
            let (its, died) = (Attachment::word(holder), Attachment::died(holder));
            let vacated = word.compare_exchange(its, died, Ordering::AcqRel, Ordering::Relaxed);
            if vacated.is_ok()
                && ptr::eq(word, &control.sender)
                && control.unfenced.swap(0, Ordering::AcqRel) != 0
                && let Some(state) = states.get(lanes.message_bell(number) as usize)
            {
                // What it had said, and cannot take back.
                state.record().wake.end_unfenced();
            }
        }
    }
}
