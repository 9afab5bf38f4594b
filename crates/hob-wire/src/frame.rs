//! The frame: a 12-byte header and a payload.
//!
//! ```text
//!  0      3     4      5      6        8            12
//!  +------+-----+------+------+--------+------------+----------------+
//!  | "hob"| ver | kind | fds  | zero   | length, LE | payload ...    |
//!  +------+-----+------+------+--------+------------+----------------+
//! ```
//!
//! `fds` is the number of descriptors that travel with the frame's first byte (SCM_RIGHTS).
//! All integers are little-endian.

use crate::caps::{BEYOND_MAX, PAYLOAD_MAX};
use crate::cursor::DecodeError;

pub use crate::frames::Kind;

/// The first three bytes of each frame.
pub const MAGIC: [u8; 3] = *b"hob";
/// The version of the wire. Both ends are the same build, so this only names the format.
pub const VERSION: u8 = 1;
/// Bytes of a header.
pub const HEADER_LEN: usize = 12;
/// The most descriptors that one frame may carry: five of a call, and those beyond 0 to 2.
pub const FDS_MAX: usize = 5 + BEYOND_MAX;

/// A decoded header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What the payload is.
    pub kind: Kind,
    /// How many descriptors travel with the first byte.
    pub fds: u8,
    /// Bytes of payload.
    pub len: usize,
}

impl Header {
    /// Reads a header, and checks magic, version, kind and caps.
    pub fn decode(bytes: &[u8; HEADER_LEN]) -> Result<Header, DecodeError> {
        if bytes[..3] != MAGIC {
            return Err(DecodeError::NotHob);
        }
        if bytes[3] != VERSION {
            return Err(DecodeError::Version(bytes[3]));
        }
        let kind = Kind::from_byte(bytes[4]).ok_or(DecodeError::Kind(bytes[4]))?;
        let fds = bytes[5];
        if usize::from(fds) > FDS_MAX {
            return Err(DecodeError::TooMany("descriptors"));
        }
        if bytes[6] != 0 || bytes[7] != 0 {
            return Err(DecodeError::Reserved);
        }
        let len = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize;
        if len > PAYLOAD_MAX {
            return Err(DecodeError::TooMany("payload bytes"));
        }
        Ok(Header { kind, fds, len })
    }
}

/// Appends a frame to `out`: reserves the header, lets `body` append the payload, fills in the
/// length. A payload beyond [`PAYLOAD_MAX`] is taken back, and `Err` says so.
pub fn append(
    out: &mut Vec<u8>,
    kind: Kind,
    fds: u8,
    body: impl FnOnce(&mut Vec<u8>),
) -> Result<(), TooLarge> {
    let start = out.len();
    out.extend_from_slice(&[MAGIC[0], MAGIC[1], MAGIC[2], VERSION, kind as u8, fds, 0, 0]);
    out.extend_from_slice(&[0; 4]);
    body(out);
    let len = out.len() - start - HEADER_LEN;
    match u32::try_from(len) {
        Ok(encoded) if len <= PAYLOAD_MAX => {
            out[start + 8..start + HEADER_LEN].copy_from_slice(&encoded.to_le_bytes());
            Ok(())
        }
        Ok(_) | Err(_) => {
            out.truncate(start);
            Err(TooLarge { len })
        }
    }
}

/// A payload that is larger than a frame may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge {
    /// Bytes that it would have had.
    pub len: usize,
}

impl core::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "a payload of {} bytes is over the cap of {PAYLOAD_MAX}", self.len)
    }
}

impl core::error::Error for TooLarge {}

/// A frame at the start of some bytes: its header, its payload, and how many bytes it takes.
pub type Split<'a> = (Header, &'a [u8], usize);

/// Takes the first whole frame off `bytes`: `Ok(None)` means that more bytes are needed.
pub fn split(bytes: &[u8]) -> Result<Option<Split<'_>>, DecodeError> {
    let Some(head) = bytes.first_chunk::<HEADER_LEN>() else {
        return Ok(None);
    };
    let header = Header::decode(head)?;
    let end = HEADER_LEN + header.len;
    match bytes.get(HEADER_LEN..end) {
        Some(payload) => Ok(Some((header, payload, end))),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_split_where_it_was_appended() {
        let mut bytes = Vec::new();
        append(&mut bytes, Kind::Signal, 0, |out| out.extend_from_slice(&[2, 0, 0, 0])).unwrap();
        append(&mut bytes, Kind::Queued, 0, |_| ()).unwrap();
        let (header, payload, end) = split(&bytes).unwrap().unwrap();
        assert_eq!((header.kind, payload, end), (Kind::Signal, &[2, 0, 0, 0][..], 16));
        let (header, payload, _) = split(&bytes[end..]).unwrap().unwrap();
        assert_eq!((header.kind, payload.len()), (Kind::Queued, 0));
    }

    #[test]
    fn every_prefix_of_a_frame_asks_for_more() {
        let mut bytes = Vec::new();
        append(&mut bytes, Kind::Control, 0, |out| out.extend_from_slice(b"{}")).unwrap();
        for cut in 0..bytes.len() {
            assert_eq!(split(&bytes[..cut]).unwrap(), None, "cut at {cut}");
        }
    }

    #[test]
    fn a_payload_over_the_cap_leaves_nothing_behind() {
        let mut bytes = b"before".to_vec();
        let over = vec![0; PAYLOAD_MAX + 1];
        let result = append(&mut bytes, Kind::Control, 0, |out| out.extend_from_slice(&over));
        assert_eq!(result, Err(TooLarge { len: PAYLOAD_MAX + 1 }));
        assert_eq!(bytes, b"before");
    }

    #[test]
    fn each_broken_header_is_named() {
        let good = *b"hob\x01\x03\x00\x00\x00\x04\x00\x00\x00";
        let check = |at: usize, byte: u8, want: DecodeError| {
            let mut bad = good;
            bad[at] = byte;
            assert_eq!(Header::decode(&bad), Err(want));
        };
        check(0, b'H', DecodeError::NotHob);
        check(3, 9, DecodeError::Version(9));
        check(4, 200, DecodeError::Kind(200));
        check(5, 70, DecodeError::TooMany("descriptors"));
        check(6, 1, DecodeError::Reserved);
        check(7, 1, DecodeError::Reserved);
        check(11, 1, DecodeError::TooMany("payload bytes"));
    }

    #[test]
    fn kinds_have_different_numbers_that_come_back() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_byte(kind as u8), Some(kind));
        }
        assert_eq!(Kind::from_byte(0), None);
    }
}
