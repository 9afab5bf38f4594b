//! A connection to a session: joined as it is, or started from the caller's world.

use std::path::Path;

use hob_os::start::Start;
use hob_os::{build_id, clock, process, uds};
use hob_runtimes::Sessions;
use hob_wire::call::Hello;
use hob_wire::exit::ExitCode;
use hob_wire::frame::{self, Kind};
use hob_wire::reply::Refused;
use hob_wire::session::{OpenSession, SessionOpened};
use hob_wire::strings::Strings;
use rustix::fd::{AsFd, OwnedFd};

use super::{libraries, world};
use crate::connect::{self, Trouble};
use crate::failure::Failure;
use crate::verbs::request;

/// How long a daemon may take to start.
const DAEMON_MS: u64 = 5_000;
/// How long the daemon's word is waited for: it bounds the start of a session by itself.
const ANSWER_MS: u64 = 180_000;

/// What is wanted of a session.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) name: &'a str,
    /// The libraries that were named; `None`: those that it has, or that are found.
    pub(super) libraries: Option<&'a str>,
    /// Whether its dialogue is the one of all who ask for a moment.
    pub(super) shared: bool,
    /// What the first message must have; empty: nothing.
    pub(super) token: &'a str,
    /// A script that tells which language it is.
    pub(super) script: Option<&'a Path>,
}

/// Why there is no connection.
enum Not {
    /// There is no such session.
    Missing,
    Failed(Failure),
}

/// Connects with a session, which is started where there is none.
pub(super) fn open(
    start: &Start,
    wanted: &Wanted<'_>,
) -> Result<(OwnedFd, SessionOpened), Failure> {
    let named = wanted.libraries.unwrap_or_default().as_bytes();
    let language = world::language(wanted.script)?;
    // One that is there is joined without a look at the world: it has its own.
    match once(start, &frame_of(start, wanted, language, (named, None))) {
        Ok(opened) => return Ok(opened),
        Err(Not::Failed(failure)) => return Err(failure),
        Err(Not::Missing) => {}
    }
    let interpreter = world::interpreter(start, language)?;
    let found;
    let libraries = if named.is_empty() {
        found = libraries::of(start, language)?;
        found.as_slice()
    } else {
        named
    };
    let frame = frame_of(start, wanted, language, (libraries, Some(&interpreter)));
    match once(start, &frame) {
        Ok(opened) => Ok(opened),
        Err(Not::Failed(failure)) => Err(failure),
        Err(Not::Missing) => Err(Failure::lost("the daemon does not start the session")),
    }
}

fn frame_of(
    start: &Start,
    wanted: &Wanted<'_>,
    language: &Sessions,
    (libraries, interpreter): (&[u8], Option<&[u8]>),
) -> OpenSession {
    let mut env = Strings::new();
    if interpreter.is_some() {
        start.env.iter().for_each(|entry| env.push(entry.to_bytes()));
    }
    OpenSession {
        name: wanted.name.as_bytes().to_vec(),
        start: interpreter.is_some(),
        shared: wanted.shared,
        token: wanted.token.as_bytes().to_vec(),
        language: language.name.as_bytes().to_vec(),
        interpreter: interpreter.unwrap_or_default().to_vec(),
        libraries: libraries.to_vec(),
        env,
    }
}

/// Joins a session that is there.
pub(super) fn join(
    directory: &Path,
    name: &str,
    token: &str,
) -> Result<(OwnedFd, SessionOpened), Failure> {
    let open = OpenSession {
        name: name.as_bytes().to_vec(),
        start: false,
        shared: false,
        token: token.as_bytes().to_vec(),
        language: Vec::new(),
        interpreter: Vec::new(),
        libraries: Vec::new(),
        env: Strings::new(),
    };
    let over = || Failure::lost(format!("{name}: the session has ended"));
    let socket = connect::connect(directory).map_err(|_| over())?;
    talk(socket, &open).map_err(|not| match not {
        Not::Missing => over(),
        Not::Failed(failure) => failure,
    })
}

fn once(start: &Start, open: &OpenSession) -> Result<(OwnedFd, SessionOpened), Not> {
    let failed = |text: String| Not::Failed(Failure::lost(text));
    let socket = connect::connect_or_start(start, DAEMON_MS).map_err(|trouble| {
        if let Trouble::UnsafeDir(why) = trouble {
            return failed(request::not_used(&connect::directory(start), why).to_string());
        }
        let code = trouble.reason().code();
        failed(format!("no daemon can be asked ({code}); see `hob doctor`"))
    })?;
    talk(socket, open)
}

fn talk(socket: OwnedFd, open: &OpenSession) -> Result<(OwnedFd, SessionOpened), Not> {
    let failed = |text: String| Not::Failed(Failure::lost(text));
    let hello = Hello { build: build_id::own(), pid: std::process::id() };
    let mut bytes = Vec::new();
    let framed = frame::append(&mut bytes, Kind::Hello, 0, |out| hello.encode(out))
        .and_then(|()| frame::append(&mut bytes, Kind::OpenSession, 1, |out| open.encode(out)));
    if let Err(error) = framed {
        return Err(failed(format!("environment and class path are too large: {error}")));
    }
    let directory = process::working_directory()
        .map_err(|error| failed(format!("the working directory: {error}")))?;
    send(&socket, &bytes, &directory).map_err(|error| failed(format!("the daemon: {error}")))?;
    answer(&socket).map(|opened| (socket, opened))
}

/// Sends all of it, the directory with the first byte.
fn send(socket: &OwnedFd, bytes: &[u8], directory: &OwnedFd) -> rustix::io::Result<()> {
    // The hello is a frame of its own: descriptors go with the first byte of theirs.
    let hello = frame::HEADER_LEN + hello_length(bytes);
    let (first, mut rest) = bytes.split_at(hello);
    let mut sent = uds::send(socket, first, &[])?;
    if sent < first.len() {
        return Err(rustix::io::Errno::PIPE);
    }
    sent = uds::send(socket, rest, &[directory.as_fd()])?;
    rest = rest.get(sent..).unwrap_or_default();
    while !rest.is_empty() {
        match uds::send(socket, rest, &[]) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(rustix::io::Errno::AGAIN) => _ = wait_writable(socket)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn hello_length(bytes: &[u8]) -> usize {
    match frame::split(bytes) {
        Ok(Some((header, ..))) => header.len,
        Ok(None) | Err(_) => 0,
    }
}

fn wait_writable(socket: &OwnedFd) -> rustix::io::Result<usize> {
    use rustix::event::{PollFd, PollFlags, poll};
    poll(&mut [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::OUT)], None)
}

/// The daemon's answer. Nothing comes behind it before something is asked.
fn answer(socket: &OwnedFd) -> Result<SessionOpened, Not> {
    let failed = |text: &str| Not::Failed(Failure::lost(text));
    let deadline_ns = clock::now_ns() + ANSWER_MS * 1_000_000;
    let mut received = Vec::new();
    loop {
        let left_ms = deadline_ns.saturating_sub(clock::now_ns()) / 1_000_000;
        if !matches!(connect::wait_readable(socket, left_ms), Ok(true)) {
            return Err(failed("the daemon does not answer; `hob restart` replaces it"));
        }
        let mut chunk = [0; 16 * 1024];
        match uds::receive(socket, &mut chunk, &mut Vec::new()) {
            Ok(0) | Err(_) => {
                return Err(failed("the daemon ended before it answered; run this again"));
            }
            Ok(count) => received.extend_from_slice(chunk.get(..count).unwrap_or_default()),
        }
        let Ok(split) = frame::split(&received) else {
            return Err(failed("the daemon said what this hob does not understand"));
        };
        let Some((header, payload, _)) = split else { continue };
        if header.kind == Kind::SessionOpened {
            return SessionOpened::decode(payload)
                .map_err(|_| failed("the daemon said what this hob does not understand"));
        }
        return Err(match (header.kind, Refused::decode(payload)) {
            (Kind::Refused, Ok(Refused { code, .. })) if code == ExitCode::NotFound as u8 => {
                Not::Missing
            }
            (Kind::Refused, Ok(Refused { code, text })) => {
                Not::Failed(Failure::with_code(String::from_utf8_lossy(&text), code))
            }
            _ => failed("the daemon is of another build; `hob restart` replaces it"),
        });
    }
}
