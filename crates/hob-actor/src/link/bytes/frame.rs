//! The frame between two peers: a header of 16 bytes and a payload. Pure.
//!
//! ```text
//!  0            4      5     6           8                 16
//!  +------------+------+-----+-----------+-----------------+--- - -
//!  | length, LE | kind | 0   | message   | to              | payload
//!  +------------+------+-----+-----------+-----------------+--- - -
//! ```
//! `length` counts what follows it. `message` is the number that the sender's table gave to the
//! type of the message. `to` is the number under which an actor is known to others, or the token
//! of an ask. An ask's payload begins with its token and the time that it still has, in
//! milliseconds; a tell carries neither, since nobody waits: the payload of its frame is a **run** of
//! messages of one type to one actor, each behind its length (seven bits a byte, the lowest first),
//! so that many tells cost a header once. With the first byte of `Introduced` travels one descriptor, and
//! with those of `Offer` and `Ring` what `rings/` says.

/// Bytes of a header.
pub(crate) const HEADER_LEN: usize = 16;
/// What the length field does not count: itself.
const LENGTH_LEN: usize = 4;
/// The largest frame. A message that needs more is refused where it is sent.
pub(crate) const FRAME_MAX: usize = 64 << 20;
/// An ask without a deadline.
pub(crate) const NO_LIMIT: u64 = u64::MAX;
/// What an ask's payload begins with: token and remaining milliseconds.
pub(crate) const ASK_HEAD: usize = 16;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// First on each link, either way: version, node, table of messages.
    Hello = 1,
    /// A message whose sender waits.
    Ask = 2,
    /// Messages whose sender does not: a run.
    Tell = 3,
    /// To the token of an ask: the answer.
    Answer = 4,
    /// To the token of an ask: why there is none.
    Failure = 5,
    /// The asker with this token wants no answer any more.
    Cancel = 6,
    /// To a token: which actor of this type has this tag?
    Resolve = 7,
    /// To that token: its slot.
    Resolved = 8,
    /// `to` is a node: a link to it, please.
    Introduce = 9,
    /// `to` is a node; its link is the descriptor that comes along. `message` is 1 if it is for us to
    /// offer rings.
    Introduced = 10,
    /// Nothing new is sent any more; what is open is finished.
    Drain = 11,
    /// `to` is a node: there is no way to it.
    NoWay = 12,
    /// Rings in shared memory, for this link.
    Offer = 13,
    /// What comes after this comes by a ring.
    Ring = 14,
}

impl Kind {
    const ALL: [Kind; 14] = [
        Kind::Hello,
        Kind::Ask,
        Kind::Tell,
        Kind::Answer,
        Kind::Failure,
        Kind::Cancel,
        Kind::Resolve,
        Kind::Resolved,
        Kind::Introduce,
        Kind::Introduced,
        Kind::Drain,
        Kind::NoWay,
        Kind::Offer,
        Kind::Ring,
    ];

    #[inline]
    fn of(byte: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(byte).wrapping_sub(1)).copied()
    }
}

/// A header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    pub(crate) message: u16,
    pub(crate) to: u64,
}

impl Head {
    pub(crate) fn new(kind: Kind, to: u64) -> Head {
        Head { kind, message: 0, to }
    }

    #[inline]
    fn bytes(self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[4] = self.kind as u8;
        bytes[6..8].copy_from_slice(&self.message.to_le_bytes());
        bytes[8..].copy_from_slice(&self.to.to_le_bytes());
        bytes
    }
}

/// Why bytes are no frame. The link is ended: what follows cannot be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("a frame of {0} bytes")]
    Length(u32),
    #[error("a frame of the unknown kind {0}")]
    Kind(u8),
}

/// Takes back what was appended so far, unless it is whole: what encodes a message may be a user's
/// and panic, and half a frame would be the end of the link.
struct Whole<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Whole<'a> {
    #[inline]
    fn begin(out: &'a mut Vec<u8>) -> Whole<'a> {
        let start = out.len();
        Whole { out, start }
    }

    #[inline]
    fn keep(mut self) {
        self.start = usize::MAX;
    }
}

impl Drop for Whole<'_> {
    #[inline]
    fn drop(&mut self) {
        // Nothing happens to what is shorter.
        self.out.truncate(self.start);
    }
}

/// Appends a frame; `payload` appends what it holds. One that is too large is taken back, and its
/// length returned.
#[inline]
pub(crate) fn append(
    out: &mut Vec<u8>,
    head: Head,
    payload: impl FnOnce(&mut Vec<u8>),
) -> Result<(), usize> {
    append_headed(out, head.bytes(), payload)
}

/// Appends an ask: its token and remaining milliseconds, and what `message` appends. Both heads
/// are written at once.
#[inline]
pub(crate) fn append_ask(
    out: &mut Vec<u8>,
    head: Head,
    token: u64,
    left: u64,
    message: impl FnOnce(&mut Vec<u8>),
) -> Result<(), usize> {
    let [a, b] = *head.bytes().as_chunks::<8>().0 else { unreachable!("a header is two words") };
    let words = [a, b, token.to_le_bytes(), left.to_le_bytes()];
    append_headed(out, words.as_flattened(), message)
}

#[inline]
fn append_headed(
    out: &mut Vec<u8>,
    bytes: impl AsRef<[u8]>,
    payload: impl FnOnce(&mut Vec<u8>),
) -> Result<(), usize> {
    let whole = Whole::begin(out);
    let (start, out) = (whole.start, &mut *whole.out);
    out.extend_from_slice(bytes.as_ref());
    payload(out);
    let length = out.len() - start;
    match u32::try_from(length - LENGTH_LEN) {
        Ok(counted) if length <= FRAME_MAX => {
            out[start..start + LENGTH_LEN].copy_from_slice(&counted.to_le_bytes());
            whole.keep();
            Ok(())
        }
        Ok(_) | Err(_) => Err(length),
    }
}

/// Says anew how long a frame is that has grown; it is the last of its bytes.
#[inline]
pub(crate) fn set_length(frame: &mut [u8]) {
    if let Ok(counted) = u32::try_from(frame.len() - LENGTH_LEN) {
        frame[..LENGTH_LEN].copy_from_slice(&counted.to_le_bytes());
    }
}

/// Appends one message of a run: its length, and what `message` appends.
#[inline]
pub(crate) fn append_piece(out: &mut Vec<u8>, message: impl FnOnce(&mut Vec<u8>)) {
    let whole = Whole::begin(out);
    let (at, out) = (whole.start, &mut *whole.out);
    out.push(0);
    message(out);
    let length = out.len() - at - 1;
    match u8::try_from(length) {
        Ok(short) if short < 0x80 => out[at] = short,
        Ok(_) | Err(_) => lengthen(out, at, length),
    }
    whole.keep();
}

/// A length that needs more than the byte that was left for it.
#[cold]
fn lengthen(out: &mut Vec<u8>, at: usize, length: usize) {
    let mut bytes = Vec::new();
    let mut rest = length;
    loop {
        let [low, ..] = rest.to_le_bytes();
        rest >>= 7;
        bytes.push(low & 0x7f | if rest > 0 { 0x80 } else { 0 });
        if rest == 0 {
            break;
        }
    }
    out.splice(at..=at, bytes);
}

/// The first message of a run, and what follows it. None: it is cut off.
#[inline]
pub(crate) fn piece(run: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&first, rest) = run.split_first()?;
    if first < 0x80 {
        return rest.split_at_checked(usize::from(first));
    }
    let (mut length, mut rest) = (usize::from(first & 0x7f), rest);
    for shift in [7, 14, 21, 28] {
        let (&next, after) = rest.split_first()?;
        length |= usize::from(next & 0x7f) << shift;
        rest = after;
        if next < 0x80 {
            return rest.split_at_checked(length);
        }
    }
    None
}

/// How many messages a run has. None: it is cut off, or has none.
pub(crate) fn pieces(mut run: &[u8]) -> Option<u32> {
    // Mostly all are of one length: then none has to be looked at before the next one is.
    let same = *run.first()?;
    let each = usize::from(same) + 1;
    if same < 0x80
        && run.len().is_multiple_of(each)
        && run.chunks_exact(each).all(|piece| piece[0] == same)
    {
        return u32::try_from(run.len() / each).ok();
    }
    let mut count = 0;
    while !run.is_empty() {
        (_, run) = piece(run)?;
        count += 1;
    }
    (count > 0).then_some(count)
}

/// A frame at the start of some bytes: its header, its payload, and how many bytes it takes.
pub(crate) type Split<'a> = (Head, &'a [u8], usize);

/// The first frame of some bytes, if all of it is there.
#[inline]
pub(crate) fn split(bytes: &[u8]) -> Result<Option<Split<'_>>, FrameError> {
    let Some(length) = bytes.first_chunk().map(|first| u32::from_le_bytes(*first)) else {
        return Ok(None);
    };
    let whole = length as usize + LENGTH_LEN;
    if !(HEADER_LEN..=FRAME_MAX).contains(&whole) {
        return Err(FrameError::Length(length));
    }
    let Some(head) = bytes.first_chunk::<HEADER_LEN>() else { return Ok(None) };
    let kind = Kind::of(head[4]).ok_or(FrameError::Kind(head[4]))?;
    let Some(frame) = bytes.get(..whole) else { return Ok(None) };
    let message = u16::from_le_bytes([head[6], head[7]]);
    let [_, to] = *head.as_chunks::<8>().0 else { return Ok(None) };
    let head = Head { kind, message, to: u64::from_le_bytes(to) };
    Ok(Some((head, &frame[HEADER_LEN..], whole)))
}

/// How many bytes the first frame takes, as far as can be seen: what to make room for.
pub(crate) fn wanted(bytes: &[u8]) -> usize {
    let length = bytes.first_chunk().map_or(0, |first| u32::from_le_bytes(*first) as usize);
    (length + LENGTH_LEN).clamp(HEADER_LEN, FRAME_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in_and_every_cut_is_only_a_wait() {
        let mut bytes = Vec::new();
        for (index, kind) in Kind::ALL.into_iter().enumerate() {
            let to = u64::try_from(index).unwrap() << 40;
            let head = Head { kind, message: 0x1234, to };
            append(&mut bytes, head, |out| out.extend((0..index).map(|_| 7))).unwrap();
        }
        let mut rest = &bytes[..];
        for (index, kind) in Kind::ALL.into_iter().enumerate() {
            let (head, payload, taken) = split(rest).unwrap().unwrap();
            assert_eq!((head.kind, head.message), (kind, 0x1234));
            assert_eq!((head.to, payload.len()), ((index as u64) << 40, index));
            for cut in 0..taken {
                assert_eq!(split(&rest[..cut]), Ok(None), "cut at {cut}");
            }
            rest = &rest[taken..];
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn a_run_comes_apart_as_it_was_put_together_and_not_when_it_is_cut() {
        let lengths = [0, 1, 127, 128, 300, 20_000];
        let mut run = Vec::new();
        for length in lengths {
            append_piece(&mut run, |out| out.resize(out.len() + length, 9));
        }
        assert_eq!(pieces(&run), Some(6));
        let mut rest = &run[..];
        for length in lengths {
            let (message, after) = piece(rest).unwrap();
            assert!(message.len() == length && message.iter().all(|byte| *byte == 9));
            for cut in 0..rest.len() - after.len() {
                assert_eq!(piece(&rest[..cut]), None, "cut at {cut}");
            }
            rest = after;
        }
        assert_eq!((pieces(rest), pieces(&run[..run.len() - 1])), (None, None));
        // All of one length, and almost.
        assert_eq!((pieces(&[1, 9, 1, 9, 1, 9]), pieces(&[0, 0])), (Some(3), Some(2)));
        assert_eq!((pieces(&[1, 9, 0, 1, 9, 0]), pieces(&[1, 9, 1, 9, 1])), (Some(4), None));
        assert_eq!(piece(&[0xff; 9]), None, "a length without an end");
    }

    #[test]
    fn what_is_no_frame_is_refused_before_anything_is_kept_for_it() {
        let mut bytes = Vec::new();
        append(&mut bytes, Head::new(Kind::Tell, 1), |_| ()).unwrap();
        let mut unknown = bytes.clone();
        unknown[4] = 99;
        assert_eq!(split(&unknown), Err(FrameError::Kind(99)));
        for length in [0, 11, u32::MAX] {
            bytes[..4].copy_from_slice(&length.to_le_bytes());
            assert_eq!(split(&bytes[..4]), Err(FrameError::Length(length)));
        }
    }

    #[test]
    fn a_message_that_panics_while_it_is_encoded_leaves_nothing_behind() {
        let half = |out: &mut Vec<u8>| {
            out.extend([9; 3]);
            panic!("as a user's `encode` may");
        };
        let panics = |what: &mut dyn FnMut()| {
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(what)).is_err()
        };
        let mut bytes = vec![1, 2];
        let head = Head::new(Kind::Ask, 1);
        assert!(panics(&mut || assert!(append(&mut bytes, head, half).is_ok())));
        assert!(panics(&mut || append_piece(&mut bytes, half)));
        assert_eq!(bytes, [1, 2]);
    }

    #[test]
    fn a_message_beyond_the_cap_leaves_nothing_behind() {
        let mut bytes = vec![1, 2];
        let payload = vec![0; FRAME_MAX];
        let head = Head::new(Kind::Tell, 1);
        let refused = append(&mut bytes, head, |out| out.extend_from_slice(&payload));
        assert_eq!((refused, bytes.len()), (Err(FRAME_MAX + HEADER_LEN), 2));
    }
}
