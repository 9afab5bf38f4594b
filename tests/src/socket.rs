//! A client of the daemon's socket that says what it likes.

use std::io::IoSlice;
use std::path::Path;
use std::time::Duration;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, sendmsg, socket_with,
};

use crate::wait;

/// A connection to a daemon.
#[derive(Debug)]
pub struct Client(OwnedFd);

impl Client {
    /// Connects to the socket in a directory.
    ///
    /// # Panics
    /// When nothing listens there.
    #[must_use]
    pub fn connect(directory: &Path) -> Client {
        let address = SocketAddrUnix::new(directory.join("socket")).expect("the path is short");
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
        let socket = socket.expect("a socket can be made");
        connect(&socket, &address).expect("the daemon listens");
        Client(socket)
    }

    /// Sends bytes, with descriptors at the first of them. A connection that the daemon closed
    /// takes none, which is its right.
    pub fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) {
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
        let mut buffer = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            assert!(buffer.push(SendAncillaryMessage::ScmRights(descriptors)), "they fit");
        }
        let mut sent = 0;
        while sent < bytes.len() {
            let rest = [IoSlice::new(&bytes[sent..])];
            match sendmsg(&self.0, &rest, &mut buffer, SendFlags::NOSIGNAL) {
                Ok(count) => sent += count,
                Err(_) => return,
            }
            buffer.clear();
        }
    }

    /// Reads until the daemon closes the connection; `None` when it does not within the bound.
    #[must_use]
    pub fn rest(&self, bound: Duration) -> Option<Vec<u8>> {
        let mut all = Vec::new();
        let start = std::time::Instant::now();
        while start.elapsed() < bound {
            if !wait::readable(self.0.as_fd(), Duration::from_millis(20)) {
                continue;
            }
            let mut buffer = [0; 4096];
            match rustix::io::read(&self.0, &mut buffer) {
                Ok(0) | Err(_) => return Some(all),
                Ok(count) => all.extend_from_slice(&buffer[..count]),
            }
        }
        None
    }
}
