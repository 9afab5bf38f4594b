//! Whole frames off a connection, with as few system calls as may be.

use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::OwnedFd;

use hob_os::uds;
use hob_wire::frame::{self, Kind};
use rustix::net::RecvFlags;

use crate::{ServeError, send_all, wire_error};

/// What is read at once.
const READ_BYTES: usize = 64 << 10;

/// One connection.
pub(super) struct Frames {
    socket: OwnedFd,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    fds: VecDeque<OwnedFd>,
}

impl Frames {
    /// Of a socket that waits in its reads.
    pub(super) fn new(socket: OwnedFd) -> Frames {
        let buffer = vec![0; READ_BYTES];
        Frames { socket, buffer, start: 0, end: 0, fds: VecDeque::new() }
    }

    /// The next frame: what it is, and where its payload lies until the next is asked for. `None`
    /// at the end of the connection.
    pub(super) fn next(&mut self) -> Result<Option<(Kind, Range<usize>)>, ServeError> {
        loop {
            let have = &self.buffer[self.start..self.end];
            if let Some((header, _, len)) = frame::split(have).map_err(wire_error)? {
                let end = self.start + len;
                let at = end - header.len..end;
                self.start = end;
                return Ok(Some((header.kind, at)));
            }
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.end == self.buffer.len() {
                // One frame is larger than the buffer; the wire has a cap for it.
                self.buffer.resize(2 * self.buffer.len(), 0);
            }
            let mut fds = Vec::new();
            let room = &mut self.buffer[self.end..];
            let count = rustix::io::retry_on_intr(|| uds::receive(&self.socket, room, &mut fds))?;
            self.fds.extend(fds);
            if count == 0 {
                return Ok(None);
            }
            self.end += count;
        }
    }

    /// Waits until something is there to be read, and reads nothing; `false` at the end.
    pub(super) fn wait(&self) -> rustix::io::Result<bool> {
        let peek = || rustix::net::recv(&self.socket, &mut [0_u8; 1], RecvFlags::PEEK);
        Ok(self.start < self.end || rustix::io::retry_on_intr(peek)?.1 > 0)
    }

    pub(super) fn bytes(&self, at: Range<usize>) -> &[u8] {
        &self.buffer[at]
    }

    /// The next descriptor that has come.
    pub(super) fn fd(&mut self) -> Option<OwnedFd> {
        self.fds.pop_front()
    }

    pub(super) fn socket(&self) -> &OwnedFd {
        &self.socket
    }

    pub(super) fn send(&self, bytes: &[u8]) -> rustix::io::Result<()> {
        send_all(&self.socket, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hob_wire::message::{Message, Numbered};
    use std::os::fd::AsFd;

    fn cut(step: usize) {
        let (ours, theirs) = uds::pair().unwrap();
        rustix::io::ioctl_fionbio(&theirs, false).unwrap();
        let mut frames = Frames::new(theirs);
        let payload = vec![7; 200_000];
        let large = Message {
            id: 2,
            manner: hob_wire::message::Manner::Ask,
            remaining_us: 0,
            program: b"",
            key: b"",
            content_type: b"",
            message_id: b"",
            payload: &payload,
        };
        let mut bytes = Vec::new();
        frame::append(&mut bytes, Kind::Cancel, 1, |out| Numbered { id: 1 }.encode(out)).unwrap();
        frame::append(&mut bytes, Kind::Message, 0, |out| large.encode(out)).unwrap();
        frame::append(&mut bytes, Kind::Cancel, 0, |out| Numbered { id: 3 }.encode(out)).unwrap();
        let writer = std::thread::spawn(move || {
            rustix::io::ioctl_fionbio(&ours, false).unwrap();
            let null = std::fs::File::open("/dev/null").unwrap();
            for (number, part) in bytes.chunks(step).enumerate() {
                let with = [null.as_fd()];
                let fds = if number == 0 { &with[..] } else { &[] };
                let sent = uds::send(&ours, part, fds).unwrap();
                send_all(&ours, &part[sent..]).unwrap();
            }
        });
        let (kind, at) = frames.next().unwrap().unwrap();
        assert_eq!((kind, Numbered::decode(frames.bytes(at)).unwrap().id), (Kind::Cancel, 1));
        assert!(frames.fd().is_some() && frames.fd().is_none(), "cut each {step} bytes");
        let (kind, at) = frames.next().unwrap().unwrap();
        assert_eq!(kind, Kind::Message);
        assert_eq!(Message::decode(frames.bytes(at)).unwrap(), large, "cut each {step} bytes");
        let (_, at) = frames.next().unwrap().unwrap();
        assert_eq!(Numbered::decode(frames.bytes(at)).unwrap().id, 3);
        writer.join().unwrap();
        assert!(frames.next().unwrap().is_none());
    }

    #[test]
    fn frames_come_whole_wherever_the_stream_is_cut() {
        for step in [7, 12, 1000, 65_536, 1 << 20] {
            cut(step);
        }
    }

    #[test]
    fn what_is_no_frame_is_an_error() {
        let (ours, theirs) = uds::pair().unwrap();
        send_all(&ours, b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert!(matches!(Frames::new(theirs).next(), Err(ServeError::Wire(_))));
    }
}
