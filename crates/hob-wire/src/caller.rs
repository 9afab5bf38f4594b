//! The caller's side of a call, without I/O: what is sent, and what the daemon's frames ask for.
//!
//! ```text
//! opening ─▶ waits ─queued─▶ waits ─┬─ended, run cold, refused─▶ Do
//!              │       ▲     │  ▲   └─end, no frame of ours────▶ TakeClaim
//!              │       └─asks┘  └─the claim is taken: as long as it takes
//!              └─no answer in time─▶ late: TakeClaim
//! ```
//! The client of `hob run` and the runner of hooks drive it, each by its own loop. Invariants: it
//! names one thing to do at a time, and what comes after that is not looked at; a daemon that stands
//! still is noticed within [`ASK_NS`] and [`ANSWER_NS`], also while a call waits in its queue.
//!
//! Deliberately not here: the claim (`hob-os`), and the clock, whose time is an argument.

use crate::call::{Call, ColdEnded, Hello, Received, Signal};
use crate::frame::{self, Kind, TooLarge};
use crate::reply::{Ended, Refused, RunCold};

/// Descriptors of each call: the directory, both ends of the claim.
const CALL_FDS: u8 = 3;
/// What a report takes, mostly.
const REPORT_BYTES: usize = 96;

/// How long a queued call hears nothing before its daemon is asked whether it is there.
pub const ASK_NS: u64 = 20_000_000;
/// How long the daemon has to answer that.
pub const ANSWER_NS: u64 = 35_000_000;

/// What the daemon has said of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// It has its outcome.
    Ended(Ended),
    /// The program is to be run in the caller's place, and its end reported.
    RunCold(RunCold),
    /// The program cannot be run.
    Refused(Refused),
}

/// Why nothing more is expected of a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is another build.
    OtherBuild,
    /// It sent what no daemon says to a caller.
    Malformed,
    /// It closed the connection.
    Closed,
}

/// What the caller does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// It waits for more.
    Wait,
    /// It does as the daemon says.
    Do(Reply),
    /// It takes the claim: if that is its own, the call was given to nobody, nor ever will be;
    /// otherwise it was given, and is lost.
    TakeClaim(Fault),
}

/// What a caller does that has heard nothing for as long as it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// It looks whether its call was given, and if not, sends [`queued`].
    Ask,
    /// It takes the claim.
    TakeClaim,
}

/// What a caller waits for.
#[derive(Debug, Clone, Copy)]
enum Waits {
    /// For any word of the daemon's, until then.
    Answer(u64),
    /// In the daemon's queue; then the daemon is asked.
    Queued(u64),
    /// For the end of what was given.
    Given,
}

/// A call that was sent.
#[derive(Debug)]
pub struct Pending {
    received: Vec<u8>,
    waits: Waits,
}

impl Pending {
    /// A call that the daemon has to answer in any way until then, by the monotonic clock.
    #[must_use]
    pub fn until(answer_by_ns: u64) -> Pending {
        Pending { received: Vec::new(), waits: Waits::Answer(answer_by_ns) }
    }

    /// When the caller is [`late`](Pending::late); `None`: never, since the call was given.
    #[must_use]
    pub fn due_ns(&self) -> Option<u64> {
        match self.waits {
            Waits::Answer(at_ns) | Waits::Queued(at_ns) => Some(at_ns),
            Waits::Given => None,
        }
    }

    /// Nothing came until [`due_ns`](Pending::due_ns).
    pub fn late(&mut self, now_ns: u64) -> Late {
        match self.waits {
            Waits::Queued(_) => {
                self.waits = Waits::Answer(now_ns + ANSWER_NS);
                Late::Ask
            }
            Waits::Answer(_) | Waits::Given => Late::TakeClaim,
        }
    }

    /// The claim is the daemon's: from now on the call ends when its program does.
    pub fn given(&mut self) {
        self.waits = Waits::Given;
    }

    /// The daemon has said something at this time, and the call still waits.
    pub fn queued(&mut self, now_ns: u64) {
        if let Waits::Answer(_) | Waits::Queued(_) = self.waits {
            self.waits = Waits::Queued(now_ns + ASK_NS);
        }
    }

    /// Takes bytes that came.
    pub fn feed(&mut self, bytes: &[u8]) -> Next {
        self.received.extend_from_slice(bytes);
        loop {
            let (reply, end) = match frame::split(&self.received) {
                Ok(Some((header, payload, end))) => (reply(header.kind, payload), end),
                Ok(None) => return Next::Wait,
                Err(_) => return Next::TakeClaim(Fault::Malformed),
            };
            self.received.drain(..end);
            if reply != Next::Wait {
                return reply;
            }
        }
    }

    /// The connection has ended.
    #[must_use]
    pub fn end(&self) -> Next {
        Next::TakeClaim(Fault::Closed)
    }
}

/// What one frame asks for.
fn reply(kind: Kind, payload: &[u8]) -> Next {
    let reply = if kind == Kind::Queued {
        return Next::Wait;
    } else if kind == Kind::Ended {
        Ended::decode(payload).map(Reply::Ended)
    } else if kind == Kind::RunCold {
        RunCold::decode(payload).map(Reply::RunCold)
    } else if kind == Kind::Refused {
        Refused::decode(payload).map(Reply::Refused)
    } else if kind == Kind::Hello {
        return Next::TakeClaim(Fault::OtherBuild);
    } else {
        return Next::TakeClaim(Fault::Malformed);
    };
    reply.map_or(Next::TakeClaim(Fault::Malformed), Next::Do)
}

/// Hello and call in one buffer of this capacity, so that they go in one write.
pub fn opening(hello: &Hello, call: &Call, capacity: usize) -> Result<Vec<u8>, TooLarge> {
    let mut bytes = Vec::with_capacity(capacity);
    frame::append(&mut bytes, Kind::Hello, 0, |out| hello.encode(out))?;
    frame::append(&mut bytes, Kind::Call, CALL_FDS, |out| call.encode(out))?;
    Ok(bytes)
}

/// The outcome has reached the caller, so that leaving is not giving up.
#[must_use]
pub fn received(received: &Received) -> Vec<u8> {
    report(Kind::Received, |out| received.encode(out))
}

/// Asks whether the daemon still has the call, which answers with the same.
#[must_use]
pub fn queued() -> Vec<u8> {
    report(Kind::Queued, |_| ())
}

/// A signal for the program. The daemon knows whose it is.
#[must_use]
pub fn signal(signal: &Signal) -> Vec<u8> {
    report(Kind::Signal, |out| signal.encode(out))
}

/// The end of what the daemon wanted run in the caller's place.
#[must_use]
pub fn cold_ended(ended: &ColdEnded) -> Vec<u8> {
    report(Kind::ColdEnded, |out| ended.encode(out))
}

fn report(kind: Kind, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(REPORT_BYTES);
    // Their sizes are fixed, and far below the cap: what were too large would be nothing at all.
    let _ = frame::append(&mut bytes, kind, 0, body);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use crate::reply::Fate;

    fn framed(kind: Kind, body: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        frame::append(&mut bytes, kind, 0, body).unwrap();
        bytes
    }

    fn ended() -> Ended {
        Ended {
            call: 7,
            fate: Fate::Exited(Exit::Code(3)),
            text: b"said".to_vec(),
            cold: b"signals".to_vec(),
        }
    }

    #[test]
    fn an_answer_counts_whole_however_it_comes() {
        let bytes = [
            framed(Kind::Queued, |_| ()),
            framed(Kind::Ended, |out| ended().encode(out)),
            framed(Kind::Refused, |out| Refused { code: 2, text: Vec::new() }.encode(out)),
        ]
        .concat();
        let done = Next::Do(Reply::Ended(ended()));
        assert_eq!(Pending::until(0).feed(&bytes), done);
        let mut call = Pending::until(0);
        let first = bytes.iter().map(|byte| call.feed(&[*byte])).find(|next| *next != Next::Wait);
        assert_eq!(first, Some(done));
    }

    #[test]
    fn a_daemon_that_says_nothing_is_late_also_while_a_call_is_queued() {
        let mut call = Pending::until(50);
        assert_eq!((call.due_ns(), call.late(50)), (Some(50), Late::TakeClaim));
        call.queued(60);
        assert_eq!(call.due_ns(), Some(60 + ASK_NS));
        let asked_ns = 60 + ASK_NS;
        assert_eq!(call.late(asked_ns), Late::Ask);
        assert_eq!(call.due_ns(), Some(asked_ns + ANSWER_NS));
        call.queued(asked_ns + 1);
        assert_eq!(call.late(asked_ns + 1 + ASK_NS), Late::Ask, "it has answered");
        assert_eq!(call.late(asked_ns + 1 + ASK_NS + ANSWER_NS), Late::TakeClaim);
        call.given();
        call.queued(asked_ns);
        assert_eq!(call.due_ns(), None, "what was given is waited for");
    }

    #[test]
    fn each_kind_of_trouble_is_told_apart() {
        let check = |bytes: &[u8], want| {
            assert_eq!(Pending::until(0).feed(bytes), Next::TakeClaim(want), "{bytes:?}");
        };
        check(&framed(Kind::Hello, |_| ()), Fault::OtherBuild);
        check(&framed(Kind::Give, |_| ()), Fault::Malformed);
        check(&framed(Kind::Ended, |_| ()), Fault::Malformed);
        check(b"HTTP/1.1 200", Fault::Malformed);
        assert_eq!(Pending::until(0).end(), Next::TakeClaim(Fault::Closed));
    }

    #[test]
    fn what_is_run_cold_or_refused_is_said() {
        let run = RunCold {
            call: 1,
            reason: b"learning".to_vec(),
            file: b"/bin/true".to_vec(),
            argv: [&b"true"[..]].into_iter().collect(),
            set: [&b"A=1"[..]].into_iter().collect(),
            launcher: false,
            successor: false,
        };
        let bytes = framed(Kind::RunCold, |out| run.encode(out));
        assert_eq!(Pending::until(0).feed(&bytes), Next::Do(Reply::RunCold(run)));
        let refused = Refused { code: 127, text: b"not found".to_vec() };
        let bytes = framed(Kind::Refused, |out| refused.encode(out));
        assert_eq!(Pending::until(0).feed(&bytes), Next::Do(Reply::Refused(refused)));
    }
}
