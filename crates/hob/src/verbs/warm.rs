//! `hob warm PROGRAM`: what would perform the program is made ready, and nothing is performed.
//!
//! The verb sends what `hob run` would send, with the wish that nothing is performed, and waits until
//! the daemon says that it is so, or why it will not be. A signal ends the waiting; what was begun
//! goes on in the daemon.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use hob_os::start::Start;
use hob_wire::call::{AHEAD_AUTO, Asked, Isolation};
use hob_wire::exit::ExitCode;
use hob_wire::frame::Kind;
use hob_wire::reply::{Prepared, Refused};
use rustix::fd::OwnedFd;
use serde_json::json;

use crate::connect::{self, Trouble};
use crate::connection::{Connection, NoFrame};
use crate::failure::Failure;
use crate::output::{out, out_json};
use crate::show::reasons;
use crate::show::units::{Micro, duration};
use crate::verbs::repeated::progress::Progress;
use crate::verbs::{request, run::IsolationName, session};
use crate::{REST, call, durations, say};

/// How long a daemon may take to start.
const DAEMON_MS: u64 = 10_000;
/// How long is waited where no time is given, in milliseconds. An interpreter that loads many
/// libraries takes some seconds on a busy machine.
const WAIT_MS: u64 = 60_000;
/// How often the terminal is told that it is waited.
const LOOK: Duration = Duration::from_millis(500);

/// The command line.
#[derive(Debug, clap::Args)]
#[command(override_usage = "hob warm [OPTIONS] PROGRAM [ARGUMENT]...")]
pub(crate) struct Warm {
    /// What the calls to come may see of one another
    #[arg(long, value_enum, value_name = "NAME")]
    isolation: Option<IsolationName>,
    /// How many copies wait, 1 to 64; hob adapts it to the rate of calls otherwise
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    ahead: Option<u32>,
    /// Wait no longer than this, such as 5s or 2m (60s otherwise); exit code 124
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The program with its arguments, as it will be called from this directory
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    #[arg(value_name = "PROGRAM [ARGUMENT]...")]
    words: Vec<OsString>,
}

/// What the daemon said.
enum Said {
    /// The next call finds it ready.
    Ready,
    /// The next call runs cold, for this reason.
    Cold(String),
    /// The program cannot be run.
    Refused(Refused),
    /// It was not ready in time.
    Late,
}

/// Runs the verb; returns the exit code.
pub(crate) fn run(start: &Start, asked: &Warm) -> Result<u8, Failure> {
    let wait_ms = match asked.timeout.as_deref() {
        None => WAIT_MS,
        Some(text) => durations::milliseconds(text)
            .map_err(|wrong| Failure::usage(format!("warm: --timeout {text}: {}", wrong.text())))?,
    };
    let begun = Instant::now();
    let at = start.argv.len().saturating_sub(asked.words.len());
    let name = start.argv.get(at).map_or(&b""[..], |word| word.to_bytes());
    let words = start.argv.iter().skip(at).map(|word| word.to_bytes());
    let shown = String::from_utf8_lossy(&say::command(words)).into_owned();
    let meant = match hob_runtimes::launched(name) {
        None => None,
        Some(language) => match session::launch::meant(start, language, at) {
            Ok(meant) => meant,
            // It has been said.
            Err(code) => return Ok(code),
        },
    };
    let start = meant.as_ref().unwrap_or(start);
    let socket = call::prepare(start, &REST, (asked.to_daemon(), at), DAEMON_MS)
        .map_err(|trouble| not_asked(start, trouble))?;
    let said = wait(socket, begun, Duration::from_millis(wait_ms), &shown)?;
    asked.tell(&shown, &said, begun.elapsed())
}

impl Warm {
    fn to_daemon(&self) -> Asked {
        let isolation = match self.isolation {
            None => Isolation::Auto,
            Some(IsolationName::Spawn) => Isolation::Spawn,
            Some(IsolationName::Standby) => Isolation::Standby,
            Some(IsolationName::Fork) => Isolation::Fork,
        };
        let ahead = self.ahead.unwrap_or(AHEAD_AUTO);
        Asked { prepare: true, isolation, ahead, ..Asked::default() }
    }

    /// Says what came of it; returns the exit code.
    fn tell(&self, name: &str, said: &Said, took: Duration) -> Result<u8, Failure> {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let (reason, code) = match said {
            Said::Ready => (None, 0),
            Said::Cold(reason) => (Some(reason.as_str()), 1),
            Said::Late => (Some("late"), ExitCode::TimedOut as u8),
            Said::Refused(refused) => (Some("refused"), refused.code),
        };
        if self.json {
            let ready = matches!(said, Said::Ready);
            let line = json!({
                "schema": "hob.warm/1", "program": name, "ready": ready, "reason": reason,
                "took_us": us,
            });
            return out_json(&format!("{line}\n")).map(|()| code);
        }
        let text = match said {
            Said::Ready => {
                let took = duration(us, Micro::Ascii);
                return out(&format!("hob: {name} is ready ({took})\n")).map(|()| 0);
            }
            Said::Cold(reason) => format!("{name}: its next call runs cold ({})", why(reason)),
            Said::Late => format!(
                "{name}: not ready after {}; `hob status` shows what is being made",
                duration(us, Micro::Ascii)
            ),
            Said::Refused(refused) => String::from_utf8_lossy(&refused.text).into_owned(),
        };
        Err(Failure::with_code(text, code))
    }
}

/// The reason in words.
fn why(code: &str) -> String {
    if code == "learning" {
        return "learning: that call is watched, to learn what to load ahead; hob runs no program \
                on its own account, so make the call once"
            .to_owned();
    }
    let text = reasons::COLD.iter().find(|(known, _)| *known == code).map(|(_, text)| *text);
    match text {
        Some(text) => format!("{code}: {text}"),
        None => code.to_owned(),
    }
}

fn not_asked(start: &Start, trouble: Trouble) -> Failure {
    if let Trouble::UnsafeDir(why) = trouble {
        return Failure::lost(request::not_used(&connect::directory(start), why).to_string());
    }
    let code = trouble.reason().code();
    Failure::lost(format!("warm: no daemon can be asked ({code}); see `hob doctor`"))
}

fn wait(socket: OwnedFd, begun: Instant, longest: Duration, name: &str) -> Result<Said, Failure> {
    let progress = Progress::new();
    let mut connection = Connection::new(socket);
    loop {
        let left = longest.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Ok(Said::Late);
        }
        let look_ms = u64::try_from(left.min(LOOK).as_millis()).unwrap_or(0).max(1);
        match connection.next_within(look_ms) {
            Ok((header, payload)) => return said(header.kind, &payload),
            Err(NoFrame::Late) => {
                let seconds = begun.elapsed().as_secs();
                if seconds > 0 {
                    progress.show(&format!("{name}: being made, {seconds} s"));
                }
            }
            Err(NoFrame::Ended | NoFrame::Unread) => {
                let text = "warm: the daemon ended before it answered; run this again";
                return Err(Failure::lost(text));
            }
            Err(NoFrame::Malformed) => return Err(not_understood()),
        }
    }
}

fn said(kind: Kind, payload: &[u8]) -> Result<Said, Failure> {
    if kind == Kind::Prepared {
        let Prepared { cold } = Prepared::decode(payload).map_err(|_| not_understood())?;
        let cold = String::from_utf8_lossy(&cold).into_owned();
        return Ok(if cold.is_empty() { Said::Ready } else { Said::Cold(cold) });
    }
    if kind == Kind::Refused {
        return Refused::decode(payload).map(Said::Refused).map_err(|_| not_understood());
    }
    if kind == Kind::Hello {
        let text = "warm: the daemon that runs is another build; `hob restart` replaces it";
        return Err(Failure::lost(text));
    }
    Err(not_understood())
}

fn not_understood() -> Failure {
    Failure::lost(
        "warm: the daemon said what this hob does not understand; `hob restart` replaces it",
    )
}
