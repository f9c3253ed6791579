// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the guest's first process says to the host, over a serial port that nobody else writes to,
//! and the one thing the host says to it.
//!
//! A serial port needs no driver module and keeps every byte. A frame is a kind, a length, the
//! payload and a checksum over all three, so that a guest that breaks off, or a stray byte, is seen
//! and never taken for a result.

use std::io::{self, Write};

/// What the guest may send at once; a result of 50,000 records is some 256 MB, in pieces of this.
const LONGEST: usize = 1 << 16;

/// Kind, length and checksum.
const OVERHEAD: usize = 1 + 4 + 4;

/// What the host says, once, to have the command end as by Ctrl-C: it may keep what it has.
pub const STOP: u8 = b'S';

/// A message of the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// The first process runs and has read its order.
    Up,
    /// The command wrote this to standard output.
    Stdout(Vec<u8>),
    /// The command wrote this to standard error.
    Stderr(Vec<u8>),
    /// What follows in [`Frame::Piece`]s is the file at this path.
    File(String),
    /// The next piece of a file; an empty one ends it.
    Piece(Vec<u8>),
    /// The guest could not do what it was ordered.
    Unable(String),
    /// The command ended with this status, as a shell counts: 128 and
    /// the signal for one that was killed.
    Ended(u8),
}

/// Bytes that are no frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the guest's channel carries something else than frames: {0}")]
pub struct Garbled(String);

impl Frame {
    fn kind(&self) -> u8 {
        match self {
            Self::Up => b'U',
            Self::Stdout(_) => b'O',
            Self::Stderr(_) => b'E',
            Self::File(_) => b'F',
            Self::Piece(_) => b'P',
            Self::Unable(_) => b'N',
            Self::Ended(_) => b'X',
        }
    }

    fn payload(&self) -> Vec<u8> {
        match self {
            Self::Up => Vec::new(),
            Self::Stdout(bytes) | Self::Stderr(bytes) | Self::Piece(bytes) => bytes.clone(),
            Self::File(text) | Self::Unable(text) => text.clone().into_bytes(),
            Self::Ended(status) => vec![*status],
        }
    }

    fn read(kind: u8, payload: Vec<u8>) -> Result<Self, Garbled> {
        let text =
            |bytes: Vec<u8>| String::from_utf8(bytes).map_err(|_| Garbled("text that is not UTF-8".into()));
        Ok(match (kind, payload.as_slice()) {
            (b'U', []) => Self::Up,
            (b'O', _) => Self::Stdout(payload),
            (b'E', _) => Self::Stderr(payload),
            (b'F', _) => Self::File(text(payload)?),
            (b'P', _) => Self::Piece(payload),
            (b'N', _) => Self::Unable(text(payload)?),
            (b'X', [status]) => Self::Ended(*status),
            _ => return Err(Garbled(format!("kind {kind:#04x} with {} bytes", payload.len()))),
        })
    }

    /// The frame as it goes over the wire; a payload beyond 64 KiB is cut, so send such in pieces.
    pub fn encode(&self) -> Vec<u8> {
        let mut payload = self.payload();
        payload.truncate(LONGEST);
        let mut bytes = vec![self.kind()];
        bytes.extend((payload.len() as u32).to_le_bytes());
        bytes.extend(payload);
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }
}

/// Sends a file in pieces.
pub fn send_file(target: &mut impl Write, path: &str, content: &[u8]) -> io::Result<()> {
    target.write_all(&Frame::File(path.to_owned()).encode())?;
    for piece in content.chunks(LONGEST).chain([&[][..]]) {
        target.write_all(&Frame::Piece(piece.to_vec()).encode())?;
    }
    Ok(())
}

/// Takes frames out of bytes as they arrive.
#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
}

impl Decoder {
    /// Adds what has arrived.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole frame.
    pub fn frame(&mut self) -> Result<Option<Frame>, Garbled> {
        let Some(header) = self.bytes.first_chunk::<5>() else { return Ok(None) };
        let kind = header[0];
        let length = u32::from_le_bytes([header[1], header[2], header[3], header[4]]) as usize;
        if length > LONGEST {
            return Err(Garbled(format!("kind {kind:#04x} of {length} bytes")));
        }
        if self.bytes.len() < length + OVERHEAD {
            return Ok(None);
        }
        let rest = self.bytes.split_off(length + OVERHEAD);
        let frame = std::mem::replace(&mut self.bytes, rest);
        let (body, checksum) = frame.split_at(length + 5);
        if checksum != crc32fast::hash(body).to_le_bytes() {
            return Err(Garbled(format!("a wrong checksum on kind {kind:#04x} of {length} bytes")));
        }
        Frame::read(kind, body[5..].to_vec()).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Frame> {
        vec![
            Frame::Up,
            Frame::Stdout(b"out\n".to_vec()),
            Frame::Stderr(vec![0, 255, 10]),
            Frame::File("/tmp/result.json".into()),
            Frame::Piece(vec![7; 300]),
            Frame::Piece(Vec::new()),
            Frame::Unable("no".into()),
            Frame::Ended(143),
        ]
    }

    fn drain(decoder: &mut Decoder) -> Vec<Frame> {
        std::iter::from_fn(|| decoder.frame().unwrap()).collect()
    }

    #[test]
    fn frames_come_back_however_the_bytes_are_cut() {
        let wire: Vec<u8> = all().iter().flat_map(Frame::encode).collect();
        for step in [1, 2, 7, wire.len()] {
            let mut decoder = Decoder::default();
            let mut frames = Vec::new();
            for bytes in wire.chunks(step) {
                decoder.feed(bytes);
                frames.extend(drain(&mut decoder));
            }
            assert_eq!(frames, all(), "in steps of {step}");
        }
    }

    #[test]
    fn a_file_longer_than_a_frame_is_sent_in_pieces_and_ended() {
        let content: Vec<u8> = (0..150_000u32).map(|number| number as u8).collect();
        let mut wire = Vec::new();
        send_file(&mut wire, "/x", &content).unwrap();
        let mut decoder = Decoder::default();
        decoder.feed(&wire);
        let frames = drain(&mut decoder);
        assert_eq!(frames.first(), Some(&Frame::File("/x".into())));
        assert_eq!(frames.last(), Some(&Frame::Piece(Vec::new())));
        let joined: Vec<u8> = frames
            .iter()
            .filter_map(|frame| if let Frame::Piece(piece) = frame { Some(piece.clone()) } else { None })
            .flatten()
            .collect();
        assert_eq!(joined, content);
    }

    #[test]
    fn one_changed_bit_anywhere_never_passes_for_the_frame() {
        let wire = Frame::Stdout(b"p50 1234".to_vec()).encode();
        for bit in 0..wire.len() * 8 {
            let mut changed = wire.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let mut decoder = Decoder::default();
            decoder.feed(&changed);
            assert!(!matches!(decoder.frame(), Ok(Some(_))), "bit {bit} changed unseen");
        }
    }

    #[test]
    fn a_line_of_text_on_the_channel_is_called_garbled() {
        let mut decoder = Decoder::default();
        decoder.feed(b"[    0.000000] Linux version 6.1\n");
        assert!(decoder.frame().is_err());
    }
}
