//! What systemd gives a service, and is told by it: listeners that it holds (`LISTEN_FDS`), that
//! the site is ready or stops (`sd_notify`), and that it still answers (the watchdog).
//!
//! Invariant: nothing of this is any app's. [`without_ours`] has to be asked for its environment.
//! The protocols are those of `sd_listen_fds(3)`, `sd_notify(3)` and `sd_watchdog_enabled(3)`.

use std::ffi::OsStr;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::PathBuf;
use std::time::Duration;

use hob_http::Listener;
use hob_os::start::Start;
use hob_os::{clock, process};
use hob_wire::strings::Strings;
use rustix::net::sockopt;
use rustix::net::{AddressFamily, SocketType};

use crate::failure::Failure;

/// The number of the first descriptor that is passed.
const FIRST: u32 = 3;
/// As many listeners are taken; nobody has more.
const PASSED_MAX: u32 = 64;
/// Variables that are between systemd and this process.
const OURS: [&[u8]; 6] = [
    b"LISTEN_PID",
    b"LISTEN_FDS",
    b"LISTEN_FDNAMES",
    b"NOTIFY_SOCKET",
    b"WATCHDOG_PID",
    b"WATCHDOG_USEC",
];
/// How often within its time the watchdog hears of a site.
const BEATS: u32 = 3;

/// The listeners that were passed to this process; none, if it was passed none.
///
/// # Errors
/// If one is none that a site can listen on.
pub(super) fn listeners(start: &Start) -> Result<Vec<Listener>, Failure> {
    let is_ours = number(start, b"LISTEN_PID") == Some(u64::from(std::process::id()));
    let count = number(start, b"LISTEN_FDS").filter(|_| is_ours).unwrap_or(0);
    let count = u32::try_from(count).unwrap_or(u32::MAX).min(PASSED_MAX);
    (FIRST..FIRST + count).map(adopted).collect()
}

fn adopted(number: u32) -> Result<Listener, Failure> {
    let passed = process::adopt(number).map_err(|error| {
        Failure::new(format!("LISTEN_FDS: descriptor {number} is not open ({error})"))
    })?;
    let is_stream = sockopt::socket_type(&passed) == Ok(SocketType::STREAM);
    if is_stream && sockopt::socket_acceptconn(&passed) == Ok(true) {
        match sockopt::socket_domain(&passed) {
            Ok(AddressFamily::INET | AddressFamily::INET6) => {
                return Ok(Listener::Tcp(TcpListener::from(passed)));
            }
            Ok(AddressFamily::UNIX) => return Ok(Listener::Unix(UnixListener::from(passed))),
            Ok(_) | Err(_) => {}
        }
    }
    Err(Failure::new(format!(
        "descriptor {number}, which systemd has passed, is no stream socket that listens; a site \
         serves no other: ListenStream=127.0.0.1:8000"
    )))
}

/// The environment without what is between systemd and this process.
pub(super) fn without_ours(start: &Start) -> Strings {
    let name = |entry: &[u8]| entry.iter().position(|byte| *byte == b'=');
    let entries = start.env.iter().map(|entry| entry.to_bytes());
    entries.filter(|entry| !OURS.contains(&&entry[..name(entry).unwrap_or(entry.len())])).collect()
}

fn number(start: &Start, name: &[u8]) -> Option<u64> {
    std::str::from_utf8(start.variable(name)?).ok()?.parse().ok()
}

/// Whoever has started this site and wants to hear of it.
#[derive(Debug)]
pub(super) struct Notified {
    socket: UnixDatagram,
    address: SocketAddr,
}

impl Notified {
    /// `None`: nobody does, or cannot be reached.
    pub(super) fn of(start: &Start) -> Option<Notified> {
        let name = start.variable(b"NOTIFY_SOCKET")?;
        let address = match name.split_first()? {
            (b'@', name) => SocketAddr::from_abstract_name(name),
            (b'/', _) => SocketAddr::from_pathname(PathBuf::from(OsStr::from_bytes(name))),
            _ => return None,
        };
        let socket = UnixDatagram::unbound().ok()?;
        // A manager that does not read holds up no site.
        socket.set_nonblocking(true).ok()?;
        Some(Notified { socket, address: address.ok()? })
    }

    /// Requests are accepted.
    pub(super) fn is_ready(&self, places: &str) {
        self.tell(&format!("READY=1\nSTATUS=serving {places}\n"));
    }

    /// It loads anew what it serves, and will say that it is ready.
    pub(super) fn reloads(&self) {
        let now_us = clock::now_ns() / 1000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={now_us}\nSTATUS=apps are loaded anew\n"));
    }

    /// What is being answered ends; no more is accepted.
    pub(super) fn stops(&self) {
        self.tell("STOPPING=1\nSTATUS=what is being answered ends\n");
    }

    fn tell(&self, text: &str) {
        let _ = self.socket.send_to_addr(text.as_bytes(), &self.address);
    }
}

/// Tells the watchdog, in a thread of its own, that the site is alive: as often as it wants to hear,
/// and only while `answers` says so.
pub(super) fn watch(start: &Start, answers: impl Fn() -> bool + Send + 'static) {
    let is_ours =
        number(start, b"WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
    let Some(within_us) = number(start, b"WATCHDOG_USEC").filter(|us| is_ours && *us > 0) else {
        return;
    };
    let Some(notified) = Notified::of(start) else { return };
    let beat = Duration::from_micros(within_us) / BEATS;
    // Without it systemd ends the site, which says more than a site that is not watched.
    let _ = std::thread::Builder::new().name("hob-watchdog".to_owned()).spawn(move || {
        loop {
            if answers() {
                notified.tell("WATCHDOG=1\n");
            }
            std::thread::sleep(beat);
        }
    });
}
