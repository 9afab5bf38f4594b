//! `hob session repl`: a session for editors, on a Unix socket in hob's directory and, if asked for, on a port.
//!
//! ```text
//!   editor ── TCP, Unix ──▶ hob session repl ── open session ──▶ daemon ──▶ session
//! ```
//! The daemon has no port: this process has, while it runs, and passes bytes. What is a message, the
//! front decides (`fronts/repl`).
//!
//! Invariants: loopback only; of this user's processes only; the socket's name and `.nrepl-port` go
//! with this process.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use hob_os::start::Start;
use hob_os::{signals, uds};
use hob_wire::bencode::{Item, message};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};

use super::Which;
use super::dialogue::last_words;
use super::open::{self, Wanted};
use crate::connect;
use crate::failure::Failure;
use crate::output::out;
use crate::say;

/// The file that tells editors the port.
const PORT_FILE: &str = ".nrepl-port";
/// How much is passed on at once.
const PIECE: usize = 64 * 1024;
/// How long a client may take to read what it is told last, and to end.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// What stands before an address of IPv4 in the kernel's table of IPv6: `::ffff:`.
const MAPPED: &str = if cfg!(target_endian = "little") {
    "0000000000000000FFFF0000"
} else {
    "00000000000000000000FFFF"
};
/// Signals that end it: SIGHUP (1), SIGINT (2), SIGTERM (15), each its bit.
const ENDS: signals::Set = signals::Set(1 | 1 << 1 | 1 << 14);

/// Where editors connect.
#[derive(Debug, Args)]
pub(crate) struct Repl {
    #[command(flatten)]
    which: Which,
    /// Listen on this port of the loopback interface too, and write .nrepl-port; 0: any free one
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "0")]
    port: Option<u16>,
    /// What the first message on the port must have as its `token`; most editors cannot send one
    #[arg(long, value_name = "TOKEN", requires = "port")]
    token: Option<String>,
}

/// What goes with this process.
#[derive(Debug, Default)]
struct Names {
    socket: Option<PathBuf>,
    port: Option<(PathBuf, String)>,
}

impl Drop for Names {
    fn drop(&mut self) {
        if let Some(socket) = &self.socket {
            let _ = std::fs::remove_file(socket);
        }
        // A file that another has written since is the other's.
        if let Some((file, text)) = &self.port
            && hob_os::look::text(file).is_ok_and(|now| now == *text)
        {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Serves until it is told to end, or its session ends.
pub(crate) fn run(start: &Start, asked: &Repl) -> Result<(), Failure> {
    let name = asked.which.session.as_str();
    let wanted = Wanted {
        name,
        libraries: asked.which.cp.as_deref(),
        shared: false,
        token: "",
        script: None,
    };
    let (session, opened) = open::open(start, &wanted)?;
    let directory = connect::directory(start);
    signals::block(ENDS).map_err(|error| Failure::new(format!("signals: {error}")))?;
    let ends =
        signals::descriptor(ENDS).map_err(|error| Failure::new(format!("signals: {error}")))?;
    let mut names = Names::default();
    let local = listen(&directory.join(format!("{name}.repl")), name)?;
    names.socket = Some(local.1.clone());
    let port = asked.port.map(|port| listen_on(port, &mut names)).transpose()?;
    let serves = String::from_utf8_lossy(&opened.serves).into_owned();
    let by = if serves == "own" { "hob's own ops" } else { serves.as_str() };
    let mut said = format!("hob: {name} (pid {}), answered by {by}\n", opened.pid);
    said.push_str(&format!("nREPL server started on socket {}\n", local.1.display()));
    if let Some((_, address)) = &port {
        said.push_str(&format!(
            "nREPL server started on port {} on host {} - nrepl://{address}\n",
            address.port(),
            address.ip(),
        ));
    }
    out(&said)?;
    let token = asked.token.clone().unwrap_or_default();
    let port = port.as_ref().map(|port| &port.0);
    serve(&directory, (name, &token), (&session, &ends), (&local.0, port))
}

/// Takes connections until a signal comes or the session ends.
fn serve(
    directory: &Path,
    (name, token): (&str, &str),
    (session, ends): (&OwnedFd, &OwnedFd),
    (local, port): (&UnixListener, Option<&TcpListener>),
) -> Result<(), Failure> {
    let open = Open::default();
    loop {
        let mut fds = vec![
            PollFd::from_borrowed_fd(ends.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(session.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(local.as_fd(), PollFlags::IN),
        ];
        fds.extend(port.map(|port| PollFd::from_borrowed_fd(port.as_fd(), PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Failure::lost(format!("poll: {error}"))),
        }
        let is_ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        if is_ready.first() == Some(&true) {
            return Ok(());
        }
        if is_ready.get(1) == Some(&true) {
            let why = last_words(session);
            open.wait();
            return Err(Failure::lost(why));
        }
        if is_ready.get(2) == Some(&true)
            && let Ok((client, _)) = local.accept()
            && uds::peer_uid(&client) == Ok(own_uid())
        {
            attend(directory, (name, ""), Client::Local(client), &open);
        }
        if is_ready.get(3) == Some(&true)
            && let Some(Ok((client, peer))) = port.map(TcpListener::accept)
        {
            // Value and `done` are two small writes: one must not wait for word of the other.
            let _ = client.set_nodelay(true);
            match client.local_addr().map(|own| owner_of(peer, own)) {
                Ok(Some(uid)) if uid == own_uid() => {
                    attend(directory, (name, token), Client::Tcp(client), &open);
                }
                _ => refuse_other(client),
            }
        }
    }
}

/// Another user's process is told so, and no more.
fn refuse_other(client: TcpStream) {
    let text = b"hob: this port serves another user's processes\n";
    let refusal =
        message(&[("err", Item::Text(text)), ("status", Item::Texts(&[b"error", b"done"]))]);
    let client = Client::Tcp(client);
    std::thread::spawn(move || {
        let _ = client.write(&refusal);
        client.end(Shutdown::Write);
        client.discard();
    });
}

/// Passes a client's bytes, on threads of its own.
fn attend(directory: &Path, (name, token): (&str, &str), client: Client, open: &Open) {
    let (name, token) = (name.to_owned(), token.to_owned());
    let directory = directory.to_owned();
    let open = open.clone();
    open.begin();
    std::thread::spawn(move || {
        match open::join(&directory, &name, &token) {
            Ok((session, _)) => pass(client, session),
            Err(failure) => {
                let text = say::escaped(&failure.text, say::Layout::Lines);
                let text = format!("hob: {text}\n");
                let _ = client.write(&message(&[
                    ("err", Item::Text(text.as_bytes())),
                    ("status", Item::Texts(&[b"session-closed", b"error", b"done"])),
                ]));
            }
        }
        open.end();
    });
}

/// How many clients there are. What they are told last is not cut off by the end of this process.
#[derive(Debug, Default, Clone)]
struct Open(Arc<(Mutex<usize>, Condvar)>);

impl Open {
    fn begin(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    fn end(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.1.notify_all();
    }

    fn wait(&self) {
        let count = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.0.1.wait_timeout_while(count, 2 * LAST_WORDS, |count| *count > 0);
    }
}

/// A client's connection.
#[derive(Debug)]
enum Client {
    Local(UnixStream),
    Tcp(TcpStream),
}

impl Client {
    fn read(&self, room: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Client::Local(stream) => (&*stream).read(room),
            Client::Tcp(stream) => (&*stream).read(room),
        }
    }

    fn write(&self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Client::Local(stream) => (&*stream).write_all(bytes),
            Client::Tcp(stream) => (&*stream).write_all(bytes),
        }
    }

    /// Reads what it still sends, for a while: with bytes unread an end of TCP takes away what was
    /// written last.
    fn discard(&self) {
        self.bound();
        let mut room = vec![0; PIECE];
        while let Ok(1..) = self.read(&mut room) {}
    }

    /// From now on it is waited for as long as for last words.
    fn bound(&self) {
        let _ = match self {
            Client::Local(stream) => stream.set_read_timeout(Some(LAST_WORDS)),
            Client::Tcp(stream) => stream.set_read_timeout(Some(LAST_WORDS)),
        };
    }

    fn end(&self, how: Shutdown) {
        let _ = match self {
            Client::Local(stream) => stream.shutdown(how),
            Client::Tcp(stream) => stream.shutdown(how),
        };
    }
}

/// Carries bytes both ways; each end is passed on. What is read at once is written at once.
fn pass(client: Client, session: OwnedFd) {
    let session = UnixStream::from(session);
    if session.set_nonblocking(false).is_err() {
        return;
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut room = vec![0; PIECE];
            while let Ok(count @ 1..) = client.read(&mut room) {
                let piece = room.get(..count).unwrap_or_default();
                if (&session).write_all(piece).is_err() {
                    client.discard();
                    break;
                }
            }
            let _ = session.shutdown(Shutdown::Write);
        });
        let mut room = vec![0; PIECE];
        while let Ok(count @ 1..) = (&session).read(&mut room) {
            if client.write(room.get(..count).unwrap_or_default()).is_err() {
                break;
            }
        }
        client.end(Shutdown::Write);
        client.bound();
        let _ = session.shutdown(Shutdown::Both);
    });
}

fn listen(path: &Path, name: &str) -> Result<(UnixListener, PathBuf), Failure> {
    if uds::connect(path).is_ok() {
        return Err(Failure::new(format!(
            "{name}: another `hob session repl` serves this session already"
        )));
    }
    // What one that was killed has left.
    let _ = std::fs::remove_file(path);
    let socket = uds::listen(path).map_err(|error| {
        let shown = path.display();
        Failure::new(format!("{shown}: cannot listen: {error}; a shorter name of a session helps"))
    })?;
    let listener = UnixListener::from(socket);
    Ok((listener, path.to_owned()))
}

fn listen_on(port: u16, names: &mut Names) -> Result<(TcpListener, SocketAddr), Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
        Failure::new(format!("port {port}: cannot listen: {error}; `--port 0` takes a free one"))
    })?;
    let address = listener.local_addr().map_err(|error| Failure::new(error.to_string()))?;
    let file = std::path::absolute(PORT_FILE).unwrap_or_else(|_| PORT_FILE.into());
    if let Ok(text) = hob_os::look::text(&file)
        && let Ok(port) = text.trim().parse::<u16>()
        && TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
    {
        let text = format!(
            "{}: kept, since it names port {port}, where something listens; connect to {address}",
            file.display(),
        );
        say::line(text.as_bytes());
        return Ok((listener, address));
    }
    let text = address.port().to_string();
    match std::fs::write(&file, &text) {
        Ok(()) => names.port = Some((file, text)),
        Err(error) => {
            let text = format!("{}: not written: {error}", file.display());
            say::line(text.as_bytes());
        }
    }
    Ok((listener, address))
}

fn own_uid() -> u32 {
    rustix::process::getuid().as_raw()
}

/// Whose the other end of a connection on the loopback interface is, as the kernel lists it. Clients
/// of a JVM connect by a socket of IPv6, which stands in a table of its own.
fn owner_of(peer: SocketAddr, own: SocketAddr) -> Option<u32> {
    let owner = |table: &str, prefix: &str| {
        let table = std::fs::read_to_string(table).ok()?;
        owner_in(&table, prefix, peer, own)
    };
    owner("/proc/net/tcp", "").or_else(|| owner("/proc/net/tcp6", MAPPED))
}

fn owner_in(table: &str, prefix: &str, peer: SocketAddr, own: SocketAddr) -> Option<u32> {
    let (peer, own) = (listed(prefix, peer)?, listed(prefix, own)?);
    table.lines().skip(1).find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let is_it = words.next() == Some(&peer) && words.next() == Some(&own);
        // Between them: state, queues, timer, retransmissions.
        is_it.then(|| words.nth(4)?.parse().ok())?
    })
}

/// An address as the kernel's table has it: words of 32 bits in the machine's order.
fn listed(prefix: &str, address: SocketAddr) -> Option<String> {
    let SocketAddr::V4(address) = address else { return None };
    let number = u32::from_ne_bytes(address.ip().octets());
    Some(format!("{prefix}{number:08X}:{:04X}", address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_end_is_found_by_both_addresses() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n\
             0: 0100007F:1E61 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 1\n\
             1: 0100007F:D431 0100007F:1E61 01 00000000:00000000 00:00000000 00000000  1000        0 2\n";
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        assert_eq!(owner_in(table, "", at(0xD431), at(0x1E61)), Some(1000));
        assert_eq!(owner_in(table, "", at(0xD432), at(0x1E61)), None);
        assert_eq!(owner_in(table, MAPPED, at(0xD431), at(0x1E61)), None);
    }
}
