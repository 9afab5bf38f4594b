//! Asks that are open at one time on one connection, for who waits for other things too.

use std::os::fd::{AsFd, BorrowedFd};

use hob_os::start::Start;
use hob_wire::frame::Kind;
use hob_wire::message::{Manner, Message, Numbered, Reason};

use super::reach;
pub(in crate::verbs) use super::sender::Unanswered;
use super::sender::{Reply, read};
use crate::connection::{Connection, NoFrame};

/// A connection on which several asks are open.
#[derive(Debug)]
pub(in crate::verbs) struct Asks {
    stream: Connection,
}

/// The daemon is gone, and so is every ask that was open.
#[derive(Debug)]
pub(in crate::verbs) struct Left;

/// What has come to an ask.
pub(in crate::verbs) type Came = (u64, Result<Vec<u8>, Unanswered>);

impl Asks {
    /// Connects, and starts a daemon where there is none.
    pub(in crate::verbs) fn connect(start: &Start) -> Result<Asks, String> {
        Ok(Asks { stream: reach::stream(start)? })
    }

    /// Readable when something has come.
    pub(in crate::verbs) fn descriptor(&self) -> BorrowedFd<'_> {
        self.stream.socket.as_fd()
    }

    /// Asks a program; the number is none of an ask that is open.
    pub(in crate::verbs) fn ask(
        &self,
        number: u64,
        program: &str,
        (content_type, payload): (&str, &[u8]),
        within_us: u64,
    ) -> Result<(), Left> {
        let message = Message {
            id: number,
            manner: Manner::Ask,
            remaining_us: within_us.max(1),
            program: program.as_bytes(),
            key: b"",
            content_type: content_type.as_bytes(),
            message_id: b"",
            payload,
        };
        self.stream.say(Kind::Message, &[], |out| message.encode(out)).map_err(|_| Left)
    }

    /// Does not wait for this one any more.
    pub(in crate::verbs) fn take_back(&self, number: u64) {
        // A daemon that has left needs no telling.
        let _ = self.stream.say(Kind::Cancel, &[], |out| Numbered { id: number }.encode(out));
    }

    /// What has come to one of them; `None`: nothing more yet.
    pub(in crate::verbs) fn next(&mut self) -> Result<Option<Came>, Left> {
        let (header, payload) = match self.stream.next(Some(0)) {
            Ok(frame) => frame,
            Err(NoFrame::Late) => return Ok(None),
            Err(_) => return Err(Left),
        };
        let number = payload.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
        let reply = match read(header.kind, &payload) {
            Ok(Reply::Answer(payload)) => Ok(payload),
            Ok(Reply::Accepted(_)) => {
                Err(Unanswered { reason: Reason::Lost, text: "it was told, not asked".to_owned() })
            }
            Err(unanswered) => Err(unanswered),
        };
        number.map(|number| Some((number, reply))).ok_or(Left)
    }
}
