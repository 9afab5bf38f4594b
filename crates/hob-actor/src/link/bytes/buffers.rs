//! The bytes on both sides of a link: what came and is not yet a whole frame, and what is to go.
//! Pure: whoever owns the socket reads into what [`Room::begin`] gives, and writes [`Outgoing::waiting`].
//!
//! Frames are appended to one buffer and written once a turn: that is three to four times as fast
//! as a system call a frame, and `writev` is not needed.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::frame::{self, FRAME_MAX, FrameError, Head, Kind};

/// How much is read at once. What a full mailbox does not take of it waits with its link and is
/// copied, and more than this would come from the kernel, page by page, each time.
pub(crate) const READ_LEN: usize = 64 * 1024;
/// A run of tells that is longer than this gets no more: its receiver waits for all of a frame.
const RUN_LEN: usize = 32 * 1024;
/// What a read begins with, and what an idle link keeps: an idle worker is to be small.
const FIRST_LEN: usize = 4 * 1024;

/// What came on a link and is not yet a whole frame.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: Vec<u8>,
    /// Where it begins, and where it ends.
    taken: usize,
    filled: usize,
}

impl Tail {
    /// Whether the stream ended between two frames, not in the middle of one.
    pub(crate) fn is_between(&self) -> bool {
        self.filled == self.taken
    }
}

/// Where all links of a system read, one after the other: it stays in the processor's cache, and
/// a hundred links do not need a hundred large buffers. What is left of a read becomes the link's
/// [`Tail`]; the large part of a large frame is not copied.
#[derive(Debug, Default)]
pub(crate) struct Room {
    bytes: Vec<u8>,
    /// Where the first frame begins that was not taken.
    taken: usize,
    /// Where what came ends; behind it is room.
    filled: usize,
    /// The bytes are a link's own, lent for looking at what is left of them.
    lent: bool,
}

impl Room {
    /// Takes over what a link has, and gives room for what comes next: at least enough for the
    /// frame that has begun.
    pub(crate) fn begin(&mut self, tail: &mut Tail) -> &mut [u8] {
        let left = tail.taken..tail.filled;
        (self.taken, self.filled) = (0, left.len());
        if tail.bytes.len() > self.bytes.len() {
            std::mem::swap(&mut self.bytes, &mut tail.bytes);
            self.bytes.copy_within(left, 0);
        } else if !left.is_empty() {
            // (Also to copy nothing is a call, into a page that a sleeper finds in no cache.)
            self.bytes[..left.len()].copy_from_slice(&tail.bytes[left]);
        }
        let want = frame::wanted(&self.bytes[..self.filled]).max(self.filled + FIRST_LEN);
        if self.bytes.len() < want {
            self.bytes.resize(want.next_power_of_two(), 0);
        }
        &mut self.bytes[self.filled..]
    }

    /// To look again at what a link has, without reading more: nothing is copied, however often.
    pub(crate) fn lend(&mut self, tail: &mut Tail) {
        std::mem::swap(&mut self.bytes, &mut tail.bytes);
        (self.taken, self.filled, self.lent) = (tail.taken, tail.filled, true);
    }

    /// This much of the room was filled. When all of it was, the next room is larger, up to
    /// [`READ_LEN`]: only busy systems have a large one.
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

    /// What is left are no frames.
    #[cold]
    pub(crate) fn skip(&mut self) {
        self.taken = self.filled;
    }

    /// Gives what is left to the link.
    pub(crate) fn end(&mut self, tail: &mut Tail) {
        let left = self.taken..self.filled;
        if std::mem::take(&mut self.lent) {
            std::mem::swap(&mut self.bytes, &mut tail.bytes);
            (tail.taken, tail.filled) = (left.start, left.end);
            if tail.is_between() {
                *tail = Tail::default();
            }
            (self.taken, self.filled) = (0, 0);
            return;
        }
        (tail.taken, tail.filled) = (0, left.len());
        if self.taken == 0 && self.bytes.len() > READ_LEN {
            // A large frame that has begun: the link keeps the memory, and this begins anew.
            std::mem::swap(&mut self.bytes, &mut tail.bytes);
            self.bytes.truncate(READ_LEN);
        } else {
            tail.bytes.clear();
            if !left.is_empty() {
                tail.bytes.extend_from_slice(&self.bytes[left]);
            }
            if tail.is_between() && tail.bytes.capacity() > FIRST_LEN {
                tail.bytes = Vec::new();
            }
            if self.bytes.len() > READ_LEN {
                self.bytes = Vec::new();
            }
        }
        (self.taken, self.filled) = (0, 0);
    }
}

/// What is to go.
#[derive(Debug)]
pub(crate) struct Outgoing<D> {
    bytes: Vec<u8>,
    written: usize,
    /// Descriptors, each with the place in `bytes` of the frame that it goes with.
    descriptors: VecDeque<(usize, D)>,
    /// Where the last frame begins, if it is a run of tells that takes one more.
    run: Option<(usize, Head)>,
}

impl<D> Default for Outgoing<D> {
    fn default() -> Outgoing<D> {
        Outgoing { bytes: Vec::new(), written: 0, descriptors: VecDeque::new(), run: None }
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
        self.run = None;
        frame::append(&mut self.bytes, head, payload)
    }

    /// Appends an ask, with its token and the milliseconds that it still has.
    #[inline]
    pub(crate) fn append_ask(
        &mut self,
        head: Head,
        token: u64,
        left: u64,
        message: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), usize> {
        self.run = None;
        frame::append_ask(&mut self.bytes, head, token, left, message)
    }

    /// Appends a tell, to the run before it if that is of the same kind.
    #[inline]
    pub(crate) fn append_tell(
        &mut self,
        message: u16,
        to: u64,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), usize> {
        let head = Head { kind: Kind::Tell, message, to };
        if let Some((start, run)) = self.run
            && run == head
            && self.bytes.len() - start < RUN_LEN
        {
            let before = self.bytes.len();
            frame::append_piece(&mut self.bytes, encode);
            let length = self.bytes.len() - start;
            if length <= FRAME_MAX {
                frame::set_length(&mut self.bytes[start..]);
                return Ok(());
            }
            self.bytes.truncate(before);
            return Err(length);
        }
        let start = self.bytes.len();
        self.run = None;
        frame::append(&mut self.bytes, head, |out| frame::append_piece(out, encode))?;
        self.run = Some((start, head));
        Ok(())
    }

    /// Appends tells of one type to one actor, one after the other. Returns how many were larger
    /// than a frame may be, or could not be encoded: one that panics fails alone.
    pub(crate) fn append_tells<M>(
        &mut self,
        number: u16,
        to: u64,
        messages: &[M],
        encode: impl Fn(&M, &mut Vec<u8>),
    ) -> u32 {
        let (mut next, mut failed) = (0, 0);
        while let Some(message) = messages.get(next) {
            // The first of a frame, and the rest of it.
            let rest = catch_unwind(AssertUnwindSafe(|| {
                next += 1;
                let appended = self.append_tell(number, to, |out| encode(message, out));
                failed += u32::from(appended.is_err());
                let Some((start, _)) = self.run else { return };
                while let Some(message) = messages.get(next)
                    && self.bytes.len() - start < RUN_LEN
                {
                    let before = self.bytes.len();
                    next += 1;
                    frame::append_piece(&mut self.bytes, |out| encode(message, out));
                    if self.bytes.len() - start > FRAME_MAX {
                        self.bytes.truncate(before);
                        failed += 1;
                    }
                }
            }));
            failed += u32::from(rest.is_err());
            if let Some((start, _)) = self.run {
                frame::set_length(&mut self.bytes[start..]);
            }
        }
        failed
    }

    /// Appends a frame that carries a descriptor.
    pub(crate) fn append_with(&mut self, head: Head, descriptor: D) -> Result<(), usize> {
        self.run = None;
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

    /// The descriptor that [`Outgoing::waiting`] gave went, ahead of its bytes.
    pub(crate) fn carried(&mut self) {
        self.descriptors.pop_front();
    }

    /// This many bytes went.
    pub(crate) fn wrote(&mut self, count: usize) {
        if count > 0 && self.descriptors.front().is_some_and(|(at, _)| *at == self.written) {
            self.descriptors.pop_front();
        }
        self.written += count;
        if count > 0 {
            // What the kernel has of a frame says how long it is.
            self.run = None;
        }
        if self.written == self.bytes.len() {
            self.written = 0;
            self.bytes.clear();
            // A link that had much to send once does not keep the memory for it.
            self.bytes.shrink_to(READ_LEN);
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Found {
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

    type Found = Vec<(Head, Vec<u8>)>;

    fn feed(room: &mut Room, tail: &mut Tail, mut bytes: &[u8], found: &mut Found) {
        while !bytes.is_empty() {
            let space = room.begin(tail);
            let count = space.len().min(bytes.len());
            space[..count].copy_from_slice(&bytes[..count]);
            room.filled(count);
            bytes = &bytes[count..];
            while let Some((head, payload)) = room.next().unwrap() {
                found.push((head, payload.to_vec()));
            }
            room.end(tail);
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
        // Every byte of the small frames, and some of the large one. Miri copies a byte at a time:
        // there the ends of frames and of heads, and two bytes in the large one.
        let near = |cut: &usize| ends.iter().any(|end| cut.abs_diff(*end) <= 1) || *cut <= 1;
        let some = if cfg!(miri) { READ_LEN / 2 + 1 } else { 4099 };
        let cuts = (0..=bytes.len()).filter(|cut| match large.contains(cut) {
            true => cut % some == 0,
            false => !cfg!(miri) || near(cut),
        });
        // One room for two links whose bytes come in turn.
        let mut room = Room::default();
        for cut in cuts {
            let (mut tail, mut found) = (Tail::default(), Vec::new());
            let (mut other, mut others) = (Tail::default(), Vec::new());
            feed(&mut room, &mut tail, &bytes[..cut], &mut found);
            feed(&mut room, &mut other, &bytes[..cut / 2], &mut others);
            let whole = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(found, frames()[..whole], "cut at {cut}");
            assert_eq!(tail.is_between(), cut == 0 || ends.contains(&cut), "cut at {cut}");
            // And the rest may come later.
            feed(&mut room, &mut tail, &bytes[cut..], &mut found);
            feed(&mut room, &mut other, &bytes[cut / 2..], &mut others);
            assert!(found == frames() && others == frames(), "cut at {cut}");
        }
    }

    #[test]
    fn what_is_left_of_a_read_is_lent_frame_by_frame_and_read_on_behind_it() {
        let bytes = encoded();
        let whole = frames();
        let (mut room, mut tail, mut found) = (Room::default(), Tail::default(), Vec::new());
        for half in [&bytes[..bytes.len() - 7], &bytes[bytes.len() - 7..]] {
            // As a link does whose actor takes one message at a time.
            let space = room.begin(&mut tail);
            let (now, later) = half.split_at(space.len().min(half.len()));
            space[..now.len()].copy_from_slice(now);
            room.filled(now.len());
            room.end(&mut tail);
            loop {
                room.lend(&mut tail);
                let next = room.next().unwrap().map(|(head, payload)| (head, payload.to_vec()));
                room.end(&mut tail);
                let Some(next) = next else { break };
                found.push(next);
            }
            feed(&mut room, &mut tail, later, &mut found);
        }
        assert!(found == whole && tail.is_between());
    }

    #[test]
    fn one_of_many_tells_that_cannot_be_encoded_is_the_only_one_that_does_not_go() {
        let mut out = Outgoing::<()>::default();
        let encode = |value: &u8, out: &mut Vec<u8>| {
            out.push(*value);
            assert!(*value != 3, "as a user's `encode` may");
        };
        assert_eq!(out.append_tells(3, 1, &[3, 1, 2, 3, 4, 3], encode), 3);
        assert_eq!(out.append_tells(3, 1, &[3], encode), 1);
        assert_eq!(out.append_tells(3, 2, &[5], encode), 0);
        let much = vec![7; RUN_LEN];
        assert_eq!(out.append_tells(3, 2, &much, encode), 0);
        let (mut tail, mut found) = (Tail::default(), Vec::new());
        feed(&mut Room::default(), &mut tail, out.waiting().0, &mut found);
        assert_eq!(found[0].1, [1, 1, 1, 2, 1, 4]);
        assert!(found.iter().all(|(_, run)| run.len() <= RUN_LEN + 1));
        let count: u32 = found[1..].iter().filter_map(|(_, run)| frame::pieces(run)).sum();
        assert_eq!((count as usize, found[1].0.to), (much.len() + 1, 2));
    }

    #[test]
    fn tells_to_one_actor_share_a_frame_until_anything_else_goes_or_it_was_written() {
        let mut out = Outgoing::<()>::default();
        let tell = |out: &mut Outgoing<()>, to, value: u8| {
            out.append_tell(3, to, |bytes| bytes.push(value)).unwrap();
        };
        tell(&mut out, 1, 10);
        tell(&mut out, 1, 11);
        tell(&mut out, 2, 12);
        out.append(Head::new(Kind::Cancel, 5), |_| ()).unwrap();
        tell(&mut out, 2, 13);
        let mut stream = out.waiting().0[..5].to_vec();
        out.wrote(5);
        tell(&mut out, 2, 14);
        stream.extend_from_slice(out.waiting().0);
        let (mut tail, mut found) = (Tail::default(), Vec::new());
        feed(&mut Room::default(), &mut tail, &stream, &mut found);
        let found: Vec<_> = found.into_iter().map(|(head, run)| (head.to, run)).collect();
        let wanted = [
            (1, vec![1, 10, 1, 11]),
            (2, vec![1, 12]),
            (5, vec![]),
            (2, vec![1, 13]),
            (2, vec![1, 14]),
        ];
        assert_eq!(found, wanted);
        out.wrote(out.len());
        for _ in 0..RUN_LEN {
            tell(&mut out, 7, 1);
        }
        let longest = {
            let (mut rest, mut longest) = (out.waiting().0, 0);
            while let Some((_, payload, taken)) = frame::split(rest).unwrap() {
                longest = longest.max(payload.len());
                rest = &rest[taken..];
            }
            longest
        };
        assert!(longest <= RUN_LEN, "{longest}");
    }

    #[test]
    fn an_idle_link_keeps_little() {
        let (mut room, mut tail, mut found) = (Room::default(), Tail::default(), Vec::new());
        feed(&mut room, &mut tail, &encoded(), &mut found);
        assert!(tail.bytes.capacity() <= FIRST_LEN && room.bytes.capacity() <= READ_LEN);
        let mut out = Outgoing::<()>::default();
        let much = if cfg!(miri) { READ_LEN } else { 1 << 22 };
        out.append(Head::new(Kind::Tell, 1), |bytes| bytes.resize(much, 1)).unwrap();
        out.wrote(out.len());
        assert!(out.is_empty() && out.bytes.capacity() <= READ_LEN);
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
