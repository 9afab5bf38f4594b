//! Unix-domain stream sockets with descriptors and peer credentials. Bytes only: what they mean
//! is `hob-wire`'s.

use std::io::{IoSlice, IoSliceMut};
use std::mem::{MaybeUninit, size_of};
use std::path::Path;

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

/// The most descriptors in one message; the kernel takes 253.
pub const FDS_MAX: usize = 80;

/// Connects without waiting: `AGAIN` means that the listener's backlog is full.
pub fn connect(path: &Path) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    let socket = socket()?;
    rustix::net::connect(&socket, &address)?;
    Ok(socket)
}

/// A stream socket, non-blocking and close-on-exec.
fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// The socket that is descriptor 0, once; `None` if it is none. Standard input is `/dev/null` from
/// then on, and this process is killed when the thread that started it ends.
pub fn take_stdin() -> io::Result<Option<OwnedFd>> {
    let stdin = std::io::stdin();
    let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&stdin)?.st_mode);
    if kind != rustix::fs::FileType::Socket {
        return Ok(None);
    }
    let link = rustix::io::fcntl_dupfd_cloexec(&stdin, 3)?;
    // What reads standard input finds its end, and a second taker finds no socket.
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
    let null = rustix::fs::open("/dev/null", flags, rustix::fs::Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Ok(Some(link))
}

/// Who is at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its user, as it was when it connected or listened.
    pub uid: u32,
    /// Its process; 0 if that is in a pid namespace that this process does not see.
    pub pid: u32,
}

/// Who is at the other end. Not by `rustix`, in whose type a pid is never 0.
pub fn peer(socket: impl AsFd) -> io::Result<Peer> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = libc::socklen_t::try_from(size_of::<libc::ucred>()).expect("it has twelve bytes");
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the pointers are to a live value of the length that is given, and to that length.
    let done = unsafe {
        let (found, len) = ((&raw mut found).cast(), &raw mut len);
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, found, len)
    };
    if done != 0 {
        return Err(io::Errno::NOTCONN);
    }
    Ok(Peer { uid: found.uid, pid: found.pid.unsigned_abs() })
}

/// The uid at the other end, as it was when it connected or listened.
pub fn peer_uid(socket: impl AsFd) -> io::Result<u32> {
    Ok(peer(socket)?.uid)
}

/// The process at the other end; 0 as in [`Peer`].
pub fn peer_pid(socket: impl AsFd) -> io::Result<u32> {
    Ok(peer(socket)?.pid)
}

/// Both ends of a connection, non-blocking and close-on-exec.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )
}

/// Sends bytes, the descriptors with the first of them. Returns how many bytes went; never
/// raises SIGPIPE.
pub fn send(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    send_with(socket, bytes, fds, SendFlags::NOSIGNAL)
}

/// The same without waiting, whatever the other side has made of the socket.
pub fn send_now(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<usize> {
    send_with(socket, bytes, fds, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
}

fn send_with(
    socket: impl AsFd,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if fds.len() > FDS_MAX {
        return Err(io::Errno::TOOBIG);
    }
    if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Errno::TOOBIG);
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, flags)
}

/// Receives bytes into `buffer` and appends the descriptors that came to `fds`, close-on-exec.
/// 0 bytes is the end of the connection. A message whose descriptors were cut off is an error,
/// since the frame that named them cannot be honoured.
pub fn receive(socket: impl AsFd, buffer: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
    receive_with(socket, buffer, fds, RecvFlags::empty())
}

/// The same without waiting, whatever the other side has made of the socket.
pub fn receive_now(
    socket: impl AsFd,
    buffer: &mut [u8],
    fds: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    receive_with(socket, buffer, fds, RecvFlags::DONTWAIT)
}

fn receive_with(
    socket: impl AsFd,
    buffer: &mut [u8],
    fds: &mut Vec<OwnedFd>,
    flags: RecvFlags,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let message =
        rustix::net::recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut ancillary, flags)?;
    for part in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = part {
            fds.extend(received);
        }
    }
    if message.flags.contains(rustix::net::ReturnFlags::CTRUNC) {
        return Err(io::Errno::MSGSIZE);
    }
    Ok(message.bytes)
}

/// Whether the other end of a connection was closed with bytes unread that were sent to it. The
/// kernel says so once, to whoever looks first, and only after what came from there is read.
pub fn is_reset(socket: impl AsFd) -> bool {
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let looked = io::retry_on_intr(|| rustix::net::recv(&socket, &mut [0; 1], flags));
    looked.is_err_and(|errno| errno == io::Errno::CONNRESET)
}

/// The next connection to a listening socket, non-blocking and close-on-exec. `AGAIN`: none waits.
pub fn accept(socket: impl AsFd) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    io::retry_on_intr(|| rustix::net::accept_with(&socket, flags))
}

/// Listens at `path` with mode 0600, in a directory that only its owner can enter.
pub fn listen(path: &Path) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    let socket = socket()?;
    rustix::net::bind(&socket, &address)?;
    rustix::fs::chmod(path, rustix::fs::Mode::from_raw_mode(0o600))?;
    rustix::net::listen(&socket, 4096)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_arrive_with_their_bytes() {
        let (left, right) = pair().unwrap();
        let (read, write) = rustix::pipe::pipe().unwrap();
        assert_eq!(send(&left, b"ab", &[write.as_fd()]).unwrap(), 2);
        let (mut bytes, mut fds) = ([0; 8], Vec::new());
        assert_eq!(receive(&right, &mut bytes, &mut fds).unwrap(), 2);
        assert_eq!(fds.len(), 1);
        drop(write);
        io::write(&fds[0], b"x").unwrap();
        assert_eq!(io::read(&read, &mut bytes).unwrap(), 1);
    }

    #[test]
    fn an_end_with_bytes_unread_is_a_reset_and_another_is_not() {
        let mut byte = [0];
        for (sent, read, reset) in [(2, 0, true), (2, 1, true), (1, 1, false), (0, 0, false)] {
            let (left, right) = pair().unwrap();
            send(&left, &[7; 2][..sent], &[]).unwrap();
            assert!(!is_reset(&left), "the other end lives");
            for _ in 0..read {
                receive(&right, &mut byte, &mut Vec::new()).unwrap();
            }
            let held = right.try_clone().unwrap();
            drop(right);
            assert!(!is_reset(&left), "somebody still has the other end");
            drop(held);
            assert_eq!(is_reset(&left), reset, "{sent} sent, {read} read");
        }
        let (left, right) = pair().unwrap();
        send(&left, b"ab", &[]).unwrap();
        send(&right, b"c", &[]).unwrap();
        drop(right);
        assert!(!is_reset(&left), "what came is to be read first");
        receive(&left, &mut byte, &mut Vec::new()).unwrap();
        assert!(is_reset(&left));
    }

    #[test]
    fn more_descriptors_than_fit_are_an_error_not_a_loss() {
        let (left, _right) = pair().unwrap();
        let fds = [left.as_fd(); FDS_MAX + 1];
        assert_eq!(send(&left, b"a", &fds).unwrap_err(), io::Errno::TOOBIG);
    }

    #[test]
    fn a_socket_is_private_and_its_listener_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let _listener = listen(&path).unwrap();
        let mode = rustix::fs::stat(&path).unwrap().st_mode & 0o777;
        assert_eq!(mode, 0o600);
        let socket = connect(&path).unwrap();
        let ourselves = Peer { uid: rustix::process::getuid().as_raw(), pid: std::process::id() };
        assert_eq!(peer(&socket).unwrap(), ourselves);
    }
}
