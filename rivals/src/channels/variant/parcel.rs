// SPDX-License-Identifier: MIT OR Apache-2.0
//! What goes through a channel of values: the bytes themselves while
//! they are few, else a box of them, as one would.

/// A message as a value.
pub trait Parcel<const S: usize>: Send + 'static {
    fn pack(message: &[u8; S]) -> Self;
    fn bytes(&self) -> &[u8; S];
}

impl<const S: usize> Parcel<S> for [u8; S] {
    #[inline(always)]
    fn pack(message: &[u8; S]) -> Self {
        *message
    }
    #[inline(always)]
    fn bytes(&self) -> &[u8; S] {
        self
    }
}

impl<const S: usize> Parcel<S> for Box<[u8; S]> {
    fn pack(message: &[u8; S]) -> Self {
        Box::<[u8]>::from(message.as_slice()).try_into().expect("S bytes")
    }
    fn bytes(&self) -> &[u8; S] {
        self
    }
}

/// Up to how many bytes travel as they are. Beyond, moving a pointer
/// is cheaper than copying twice more.
pub const MOST_INLINE: usize = 1024;
