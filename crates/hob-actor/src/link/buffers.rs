//! The bytes on both sides of a link: what came and is not yet a whole frame, and what is to go.
//! Pure: whoever owns the socket reads into [`Incoming::room`] and writes [`Outgoing::waiting`].
//!
//! Frames are appended to one buffer and written once a turn: that is three to four times as fast
//! as a system call a frame, and `writev` is not needed.

use std::collections::VecDeque;

use super::frame::{self, FrameError, Head};

/// How much is read at once.
pub(crate) const READ_LEN: usize = 256 * 1024;
/// What an idle link keeps: an idle worker is to be small.
const KEPT_LEN: usize = 4 * 1024;

/// What came.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    bytes: Vec<u8>,
    /// Where the first frame begins that was not taken.
    taken: usize,
    /// Where what came ends; behind it is room.
    filled: usize,
}

impl Incoming {
    /// Room for what comes next: at least enough for the frame that has begun.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.taken > 0 {
            self.bytes.copy_within(self.taken..self.filled, 0);
            self.filled -= self.taken;
            self.taken = 0;
        }
        let want = frame::wanted(&self.bytes[..self.filled]).max(self.filled + KEPT_LEN);
        if self.bytes.len() < want {
            self.bytes.resize(want.next_power_of_two(), 0);
        }
        &mut self.bytes[self.filled..]
    }

    /// This much of the room was filled. When all of it was, the next room is larger, up to
    /// [`READ_LEN`]: only busy links have large buffers.
    pub(crate) fn filled(&mut self, count: usize) {
        self.filled += count;
        if self.filled == self.bytes.len() && self.bytes.len() < READ_LEN {
            self.bytes.resize((self.bytes.len() * 4).min(READ_LEN), 0);
        }
    }

    /// The next whole frame.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<(Head, &[u8])>, FrameError> {
        let found = frame::split(&self.bytes[self.taken..self.filled])?;
        Ok(found.map(|(head, payload, length)| {
            self.taken += length;
            (head, payload)
        }))
    }

    /// Whether the stream ended between two frames, not in the middle of one.
    pub(crate) fn is_between(&self) -> bool {
        self.taken == self.filled
    }

    /// Nothing is expected soon: keeps little memory.
    pub(crate) fn rest(&mut self) {
        if self.is_between() && self.bytes.len() > KEPT_LEN {
            *self = Incoming::default();
        }
    }
}

/// What is to go.
#[derive(Debug)]
pub(crate) struct Outgoing<D> {
    bytes: Vec<u8>,
    written: usize,
    /// Descriptors, each with the place in `bytes` of the frame that it goes with.
    descriptors: VecDeque<(usize, D)>,
}

impl<D> Default for Outgoing<D> {
    fn default() -> Outgoing<D> {
        Outgoing { bytes: Vec::new(), written: 0, descriptors: VecDeque::new() }
    }
}

impl<D> Outgoing<D> {
    /// Appends a frame.
    #[inline]
    pub(crate) fn append(
        &mut self,
        head: Head,
        payload: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), usize> {
        frame::append(&mut self.bytes, head, payload)
    }

    /// Appends a frame that carries a descriptor.
    pub(crate) fn append_with(&mut self, head: Head, descriptor: D) -> Result<(), usize> {
        self.descriptors.push_back((self.bytes.len(), descriptor));
        frame::append(&mut self.bytes, head, |_| ())
    }

    /// What is to be written next, with the descriptor that goes with its first byte: never past
    /// a frame that carries one, so that descriptors and bytes stay together.
    pub(crate) fn waiting(&self) -> (&[u8], Option<&D>) {
        let mut marks = self.descriptors.iter();
        let first = marks.next();
        let carried = first.filter(|(at, _)| *at == self.written).map(|(_, descriptor)| descriptor);
        let next = if carried.is_some() { marks.next() } else { first };
        let end = next.map_or(self.bytes.len(), |(at, _)| *at);
        (&self.bytes[self.written..end], carried)
    }

    /// This many bytes went.
    pub(crate) fn wrote(&mut self, count: usize) {
        if count > 0 && self.descriptors.front().is_some_and(|(at, _)| *at == self.written) {
            self.descriptors.pop_front();
        }
        self.written += count;
        if self.written == self.bytes.len() {
            self.written = 0;
            self.bytes.clear();
        } else if self.written > READ_LEN.max(self.bytes.len() / 2) {
            self.bytes.drain(..self.written);
            for (at, _) in &mut self.descriptors {
                *at -= self.written;
            }
            self.written = 0;
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// How many bytes wait.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Nothing is to be sent soon: keeps little memory.
    pub(crate) fn rest(&mut self) {
        if self.is_empty() && self.bytes.capacity() > KEPT_LEN {
            self.bytes = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::Kind;
    use super::*;

    fn frames() -> Vec<(Head, Vec<u8>)> {
        let head = |kind, to| Head { kind, message: 3, to };
        vec![
            (head(Kind::Hello, 0), vec![1, 2, 3]),
            (head(Kind::Ask, 7), (0..=255).collect()),
            (head(Kind::Cancel, 9), Vec::new()),
            // Larger than what is read at once.
            (head(Kind::Tell, 8), vec![5; READ_LEN + 77]),
            (head(Kind::Answer, 1), vec![6; 40]),
        ]
    }

    fn encoded() -> Vec<u8> {
        let mut out = Outgoing::<()>::default();
        for (head, payload) in frames() {
            out.append(head, |bytes| bytes.extend_from_slice(&payload)).unwrap();
        }
        out.waiting().0.to_vec()
    }

    fn feed(incoming: &mut Incoming, mut bytes: &[u8], found: &mut Vec<(Head, Vec<u8>)>) {
        while !bytes.is_empty() {
            let room = incoming.room();
            let count = room.len().min(bytes.len());
            room[..count].copy_from_slice(&bytes[..count]);
            incoming.filled(count);
            bytes = &bytes[count..];
            while let Some((head, payload)) = incoming.next().unwrap() {
                found.push((head, payload.to_vec()));
            }
        }
    }

    #[test]
    fn a_stream_that_is_cut_at_any_byte_gives_the_whole_frames_before_and_no_more() {
        let bytes = encoded();
        let mut ends = Vec::new();
        let mut rest = &bytes[..];
        while let Some((_, _, taken)) = frame::split(rest).unwrap() {
            ends.push(bytes.len() - rest.len() + taken);
            rest = &rest[taken..];
        }
        let large = ends[2]..ends[3];
        // Every byte of the small frames, and some of the large one.
        let cuts = (0..=bytes.len()).filter(|cut| !large.contains(cut) || cut % 4099 == 0);
        for cut in cuts {
            let (mut incoming, mut found) = (Incoming::default(), Vec::new());
            feed(&mut incoming, &bytes[..cut], &mut found);
            let whole = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(found, frames()[..whole], "cut at {cut}");
            assert_eq!(incoming.is_between(), cut == 0 || ends.contains(&cut), "cut at {cut}");
            // And the rest may come later.
            feed(&mut incoming, &bytes[cut..], &mut found);
            assert_eq!(found, frames(), "cut at {cut}");
        }
    }

    #[test]
    fn an_idle_link_keeps_little() {
        let (mut incoming, mut found) = (Incoming::default(), Vec::new());
        feed(&mut incoming, &encoded(), &mut found);
        incoming.rest();
        assert_eq!(incoming.bytes.capacity(), 0);
        let mut out = Outgoing::<()>::default();
        out.append(Head::new(Kind::Tell, 1), |bytes| bytes.resize(100_000, 1)).unwrap();
        out.wrote(out.len());
        out.rest();
        assert_eq!(out.bytes.capacity(), 0);
    }

    #[test]
    fn descriptors_go_with_the_first_byte_of_their_frame() {
        let mut out = Outgoing::default();
        let plain = |out: &mut Outgoing<char>| {
            out.append(Head::new(Kind::Tell, 1), |bytes| bytes.push(9)).unwrap();
        };
        plain(&mut out);
        out.append_with(Head::new(Kind::Introduced, 5), 'a').unwrap();
        out.append_with(Head::new(Kind::Introduced, 6), 'b').unwrap();
        plain(&mut out);
        let mut went = Vec::new();
        // Three bytes at a time: a frame's descriptor must go once, with the first of them.
        while !out.is_empty() {
            let (bytes, descriptor) = out.waiting();
            let count = bytes.len().min(3);
            went.push((bytes[..count].to_vec(), descriptor.copied()));
            out.wrote(count);
        }
        let stream: Vec<u8> = went.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let mut at = 0;
        for (bytes, descriptor) in went {
            if let Some(descriptor) = descriptor {
                let (head, _, _) = frame::split(&stream[at..]).unwrap().unwrap();
                assert_eq!(head.to, if descriptor == 'a' { 5 } else { 6 });
            }
            at += bytes.len();
        }
        assert!(out.descriptors.is_empty());
    }
}
