//! A connection to a session: joined as it is, or started from the caller's world.

use std::path::Path;

use hob_os::process;
use hob_os::start::Start;
use hob_runtimes::Sessions;
use hob_wire::exit::ExitCode;
use hob_wire::frame::Kind;
use hob_wire::reply::Refused;
use hob_wire::session::{OpenSession, SessionOpened};
use hob_wire::strings::Strings;
use rustix::fd::{AsFd, OwnedFd};

use super::{libraries, world};
use crate::connect::{self, Trouble};
use crate::connection::{Connection, NoFrame, Unsent};
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
    let directory = process::working_directory()
        .map_err(|error| failed(format!("the working directory: {error}")))?;
    let mut connection = Connection::new(socket);
    let greeted = connection.greet(Kind::OpenSession, &[directory.as_fd()], |out| open.encode(out));
    greeted.map_err(|unsent| {
        failed(match unsent {
            Unsent::TooLarge(error) => {
                format!("environment and class path are too large: {error}")
            }
            Unsent::Cut(error) => format!("the daemon: {error}"),
        })
    })?;
    answer(&mut connection).map(|opened| (connection.socket, opened))
}

/// The daemon's answer. Nothing comes behind it before something is asked.
fn answer(connection: &mut Connection) -> Result<SessionOpened, Not> {
    let failed = |text: &str| Not::Failed(Failure::lost(text));
    let not_understood = || failed("the daemon said what this hob does not understand");
    let (header, payload) = connection.next_within(ANSWER_MS).map_err(|none| match none {
        NoFrame::Late => failed("the daemon does not answer; `hob restart` replaces it"),
        NoFrame::Ended | NoFrame::Unread => {
            failed("the daemon ended before it answered; run this again")
        }
        NoFrame::Malformed => not_understood(),
    })?;
    if header.kind == Kind::SessionOpened {
        return SessionOpened::decode(&payload).map_err(|_| not_understood());
    }
    Err(match (header.kind, Refused::decode(&payload)) {
        (Kind::Refused, Ok(Refused { code, .. })) if code == ExitCode::NotFound as u8 => {
            Not::Missing
        }
        (Kind::Refused, Ok(Refused { code, text })) => {
            Not::Failed(Failure::with_code(String::from_utf8_lossy(&text), code))
        }
        _ => failed("the daemon is of another build; `hob restart` replaces it"),
    })
}
