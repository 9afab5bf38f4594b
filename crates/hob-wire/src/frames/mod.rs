//! The schema of the wire: every kind of frame, and the macros that name its fields.
//!
//! Owns: the numbers of the kinds, who sends them to whom, and what travels with them. The fields
//! of a payload are named once, in a `frames!` block of its family (`call`, `reply`, `launch`,
//! `message`, `hooks`, `worker`); its enums in a `numbers!` block. From these come the structs,
//! `encode` and `decode`, and [`SCHEMA`], of which `cargo xtask wire` writes the tables of
//! `docs/wire.md` and the constants of the runtimes.
//!
//! The kinds from 64 on are those of HTTP, as far as a message and its answer are not enough.

pub mod call;
pub mod hooks;
pub mod http;
pub mod launch;
pub mod message;
pub mod reply;
pub mod session;
mod table;
pub mod worker;

use crate::call::{Call, ColdEnded, Hello, Json, Received, Signal};
use crate::cursor::DecodeError;
use crate::frames::http::{Chunk, Close, End, Hint, MessagePart, Respond};
use crate::hooks::{HookEnded, HookOutput, HookStarted, RunSet, SetBegun, SetEnded};
use crate::launch::{Launch, Launched, Launcher};
use crate::message::{
    Answer, Attach, Failure, Handled, Lend, Lent, Message, Named, Numbered, Passed, Served, State,
    StateReply,
};
use crate::reply::{Ended, Prepared, Queued, Refused, RunCold};
use crate::session::{OpenSession, SessionOpened};
use crate::worker::{
    Executes, Failed, Finished, Fork, Forked, Give, Gone, Joined, Notes, Preload, Ready, Spans,
};

pub use table::{Family, Frame, Party};

/// Makes structs of named fields, and what writes, reads and describes them.
///
/// `frame` is a whole payload, `part` lies inside others. A field is `name: Type`, in the usual
/// format of its type or `as` another; `= "..."` is its name in errors where that is not its own.
macro_rules! frames {
    ($(
        $(#[doc = $doc:literal])*
        $what:ident $name:ident $(<$life:lifetime>)? $(: $($derive:ident),+)? {
            $(
                $(#[doc = $field_doc:literal])*
                $field:ident: $type:ty $(as $codec:ident)? $(= $label:literal)?,
            )*
        }
    )*) => {$(
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq, Eq $(, $($derive),+)?)]
        pub struct $name $(<$life>)? {
            $(
                $(#[doc = $field_doc])*
                pub $field: $type,
            )*
        }

        $crate::frames::coded! {
            $what $name $(<$life>)?
            $([$($field_doc)*] $field, $type, [$($codec)?], [$($label)?];)*
        }
    )*};
}

/// What writes, reads and describes one struct of `frames!`.
macro_rules! coded {
    ($what:ident $name:ident <$life:lifetime> $($fields:tt)*) => {
        $crate::frames::coded! { @part $life, $name, $name<$life>, $($fields)* }
        $crate::frames::coded! { @$what $life, $name<$life> }
    };
    // `'w` is the payload's: a struct that owns its fields may be read from any.
    (part $name:ident $($fields:tt)*) => {
        $crate::frames::coded! { @part 'w, $name, $name, $($fields)* }
    };
    (frame $name:ident $($fields:tt)*) => {
        $crate::frames::coded! { @part 'w, $name, $name, $($fields)* }
        $crate::frames::coded! { @frame 'w, $name }
    };
    (@part $life:lifetime, $name:ident, $full:ty,
        $([$($doc:literal)*] $field:ident, $type:ty, [$($codec:ident)?], [$($label:literal)?];)*
    ) => {
        impl<$life> $full {
            /// The fields in the order of the wire.
            pub const FIELDS: &'static [$crate::schema::Field] = &[$(
                $crate::schema::Field {
                    name: stringify!($field),
                    label: $crate::frames::label!($field $($label)?),
                    doc: concat!("" $(, $doc)*),
                    shape: <$crate::frames::codec!($($codec)?)
                        as $crate::codec::Codec<$life, $type>>::SHAPE,
                },
            )*];
        }

        impl<$life> $crate::codec::Format<$life, $full> for $crate::codec::Plain {
            const SHAPE: $crate::schema::Shape =
                $crate::schema::Shape::Part(stringify!($name), <$full>::FIELDS);

            #[inline]
            fn put(value: &$full, out: &mut Vec<u8>) {
                // A frame may have no field.
                let _ = &out;
                let $name { $($field),* } = value;
                $(
                    <$crate::frames::codec!($($codec)?)
                        as $crate::codec::Codec<$life, $type>>::put($field, out);
                )*
                $(
                    <$crate::frames::codec!($($codec)?)
                        as $crate::codec::Codec<$life, $type>>::put_late($field, out);
                )*
            }

            #[inline]
            fn take(
                cursor: &mut $crate::cursor::Cursor<$life>,
                _: &'static str,
            ) -> Result<$full, $crate::cursor::DecodeError> {
                let _ = &cursor;
                $(
                    let $field = <$crate::frames::codec!($($codec)?)
                        as $crate::codec::Codec<$life, $type>>::take(
                            cursor, $crate::frames::label!($field $($label)?),
                        )?;
                )*
                Ok($name {$(
                    $field: <$crate::frames::codec!($($codec)?)
                        as $crate::codec::Codec<$life, $type>>::take_late(
                            $field, cursor, $crate::frames::label!($field $($label)?),
                        )?,
                )*})
            }
        }
    };
    (@frame $life:lifetime, $full:ty) => {
        impl<$life> $full {
            /// Appends the payload.
            pub fn encode(&self, out: &mut Vec<u8>) {
                <$crate::codec::Plain as $crate::codec::Format<$life, $full>>::put(self, out);
            }

            /// Reads the payload. Of several faults the first in the order of the fields is told.
            pub fn decode(payload: &$life [u8]) -> Result<$full, $crate::cursor::DecodeError> {
                use $crate::codec::{Format, Plain};
                let mut cursor = $crate::cursor::Cursor::new(payload);
                let frame = <Plain as Format<$life, $full>>::take(&mut cursor, "payload")?;
                cursor.end()?;
                Ok(frame)
            }
        }
    };
}

/// The format of a field: the one named, or the usual one.
macro_rules! codec {
    () => {
        $crate::codec::Plain
    };
    ($codec:ident) => {
        $codec
    };
}

/// The name of a field in errors: its own, or another.
macro_rules! label {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $label:literal) => {
        $label
    };
}

/// Makes enums that travel as a number in one byte.
macro_rules! numbers {
    ($(
        $(#[doc = $doc:literal])*
        enum $name:ident $(: $($derive:ident),+)? {
            $(
                $(#[doc = $value_doc:literal])*
                $value:ident = $number:literal $([$attribute:meta])?,
            )*
        }
    )*) => {$(
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash $(, $($derive),+)?)]
        #[repr(u8)]
        pub enum $name {
            $(
                $(#[doc = $value_doc])*
                $(#[$attribute])?
                $value = $number,
            )*
        }

        impl $name {
            /// Every one of them, in the order of their numbers.
            pub const ALL: [$name; [$($number),*].len()] = [$($name::$value),*];

            /// The same in data.
            pub const NUMBERS: $crate::schema::Numbers = $crate::schema::Numbers {
                name: stringify!($name),
                doc: concat!("" $(, $doc)*),
                values: &[$(
                    $crate::schema::Value {
                        number: $number,
                        name: stringify!($value),
                        doc: concat!("" $(, $value_doc)*),
                    },
                )*],
            };

            /// The one with this number, if there is one.
            #[must_use]
            pub fn from_byte(byte: u8) -> Option<$name> {
                match byte {
                    $($number => Some($name::$value),)*
                    _ => None,
                }
            }
        }

        impl<'w> $crate::codec::Format<'w, $name> for $crate::codec::Plain {
            const SHAPE: $crate::schema::Shape = $crate::schema::Shape::Number(&$name::NUMBERS);

            #[inline]
            fn put(value: &$name, out: &mut Vec<u8>) {
                $crate::cursor::Append::put_u8(out, *value as u8);
            }

            #[inline]
            fn take(
                cursor: &mut $crate::cursor::Cursor<'w>,
                label: &'static str,
            ) -> Result<$name, $crate::cursor::DecodeError> {
                $name::from_byte(cursor.u8(label)?)
                    .ok_or($crate::cursor::DecodeError::Value(label))
            }
        }
    )*};
}

/// The descriptors of a frame: those named, or none.
macro_rules! fds {
    () => {
        &[]
    };
    ($fds:expr) => {
        &$fds
    };
}

pub(crate) use {codec, coded, fds, frames, label, numbers};

/// Makes [`Kind`], [`SCHEMA`] and [`again`] of the table of kinds.
macro_rules! kinds {
    ($(
        $(#[doc = $doc:literal])*
        $kind:ident = $number:literal:
            $($from:ident => $to:ident)|+, $payload:ident $(, $fds:expr)?;
    )*) => {
        /// What a frame is. The number is the wire's.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Kind {
            $(
                $(#[doc = $doc])*
                $kind = $number,
            )*
        }

        impl Kind {
            /// Every kind, for tables and tests.
            pub const ALL: [Kind; [$($number),*].len()] = [$(Kind::$kind),*];

            /// The kind with this number, if there is one.
            #[must_use]
            pub fn from_byte(byte: u8) -> Option<Kind> {
                match byte {
                    $($number => Some(Kind::$kind),)*
                    _ => None,
                }
            }
        }

        /// Every kind of frame with its fields.
        pub const SCHEMA: &[Frame] = &[$(
            Frame {
                kind: Kind::$kind,
                name: stringify!($kind),
                doc: concat!("" $(, $doc)*),
                ways: &[$((Party::$from, Party::$to)),+],
                fields: $payload::FIELDS,
                fds: $crate::frames::fds!($($fds)?),
            },
        )*];

        /// Decodes a payload of this kind and appends it as it is encoded.
        pub fn again(kind: Kind, payload: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
            match kind {
                $(Kind::$kind => $payload::decode(payload)?.encode(out),)*
            }
            Ok(())
        }
    };
}

kinds! {
    /// Wire version, build, role. First on each connection.
    Hello = 1: Any => Any, Hello;
    /// Perform this.
    Call = 2: Client => Daemon, Call, crate::call::CALL_FDS;
    /// Deliver this signal to the program.
    Signal = 3: Client => Daemon, Signal;
    /// A cold run that the client supervised has ended.
    ColdEnded = 4: Client => Daemon, ColdEnded;
    /// A control request. `verb` is `status`, `stop`, `flush`, `replace`, `trusted`, `dead` or
    /// `hooks` (a run of hooks that its caller has done by itself, for its receipt: `at`, `pid`,
    /// `account`). Of `dead`, `do` is `list`, `retry` or `drop`, and `id` names one (absent: all).
    Control = 5: Client => Daemon, Json;
    /// The outcome has reached the caller, who leaves now.
    Received = 6: Client => Daemon, Received;
    /// Starts workers inside this terminal's session.
    Launcher = 7: Launcher => Daemon, Launcher;
    /// A message: to the daemon, on to a worker, or straight to a worker on a lane.
    Message = 8: Sender => Daemon | Daemon => Worker | Sender => Worker, Message;
    /// Where a sender's messages come from.
    Attach = 9: Sender => Daemon, Attach;
    /// A message or a hook set is taken back.
    Cancel = 10: Sender => Daemon | Caller => Daemon | Daemon => Worker, Numbered;
    /// A lane to a program is wanted.
    WantLane = 11: Sender => Daemon, Named;
    /// A lane was left.
    LeaveLane = 12: Sender => Daemon, Numbered;
    /// A request to the shared state.
    State = 13: Sender => Daemon, State;
    /// A front is done with a request.
    Passed = 14: Sender => Daemon, Passed;
    /// A front has answered requests itself.
    Served = 15: Sender => Daemon, Served;

    /// Alive; the call waits. A client that waits long asks so, and is answered so.
    Queued = 16: Daemon => Client | Client => Daemon, Queued;
    /// Run the program in your own place.
    RunCold = 17: Daemon => Client, RunCold;
    /// The outcome. The first one counts.
    Ended = 18: Daemon => Client | Worker => Client, Ended;
    /// Refused, with exit code and message.
    Refused = 19: Daemon => Client, Refused;
    /// The answer to a control request; of what was not done, with `error`.
    ControlReply = 20: Daemon => Client, Json;
    /// Start this worker.
    Launch = 21: Daemon => Launcher, Launch, crate::launch::LAUNCH_FDS;
    /// Started, or not.
    Launched = 22: Launcher => Daemon, Launched, ["pidfd, if started"];
    /// What a handler answered.
    Answer = 23: Worker => Daemon | Daemon => Sender | Worker => Sender, Answer;
    /// Why there is no answer.
    Failure = 24:
        Worker => Daemon | Daemon => Sender | Worker => Sender | Daemon => Caller, Failure;
    /// A lane, or none.
    Lent = 25: Daemon => Sender, Lent, ["the lane, if there is one"];
    /// A tell was accepted.
    Accepted = 26: Daemon => Sender, Named;
    /// What the shared state holds.
    StateReply = 27: Daemon => Sender, StateReply;
    /// What was to be made ready is, or why not. Nothing was performed.
    Prepared = 28: Daemon => Client, Prepared;

    /// What to preload. First on each worker channel.
    Preload = 32: Daemon => Worker, Preload;
    /// Ready to perform; a zygote: ready to fork.
    Ready = 33: Worker => Daemon, Ready;
    /// Fork a copy.
    Fork = 34: Daemon => Zygote, Fork, ["the copy's channel"];
    /// Forked, or why not.
    Forked = 35: Zygote => Daemon, Forked, ["pidfd, if forked"];
    /// A copy has ended, with status and usage. A launcher says it of what it started.
    Gone = 36: Zygote => Daemon, Gone;
    /// Perform this call.
    Give = 37: Daemon => Worker, Give, crate::worker::GIVE_FDS;
    /// The call's exit.
    Finished = 38: Worker => Daemon, Finished;
    /// What the call loaded beyond the preload.
    Notes = 39: Worker => Daemon, Notes;
    /// Cannot become ready; text for a person.
    Failed = 40: Worker => Daemon, Failed;
    /// It has joined its caller's process group.
    Joined = 41: Worker => Daemon, Joined;
    /// Answer on this lane.
    Lend = 42: Daemon => Worker, Lend, ["the lane", "the doorbell", "the tally"];
    /// What was handled on a lane.
    Handled = 43: Worker => Daemon, Handled;
    /// It executes the cold command in its own place.
    Executes = 44: Worker => Daemon, Executes;
    /// What the program itself says of a call's time.
    Spans = 45: Worker => Daemon, Spans;

    /// Run this hooks directory.
    RunSet = 48: Caller => Daemon, RunSet;
    /// Which hooks will run.
    SetBegun = 49: Daemon => Caller, SetBegun;
    /// A hook's turn has come.
    HookStarted = 50: Daemon => Caller, HookStarted;
    /// Some of what a hook wrote.
    HookOutput = 51: Daemon => Caller, HookOutput;
    /// A hook has ended.
    HookEnded = 52: Daemon => Caller, HookEnded;
    /// A set has ended.
    SetEnded = 53: Daemon => Caller, SetEnded;

    /// Join a session, or start one. Bencode follows its answer.
    OpenSession = 56: Client => Daemon, OpenSession, crate::session::OPEN_SESSION_FDS;
    /// The session is ready.
    SessionOpened = 57: Daemon => Client, SessionOpened;

    /// A message to an app, of which the end lies in a file that comes with it: the request's body.
    Request = 64: Sender => Daemon | Daemon => Worker, Message, ["the body, from its first byte"];
    /// How an answer begins whose body is longer than a frame, not finished, or a file; or that a
    /// WebSocket is accepted.
    Respond = 65:
        Worker => Daemon | Daemon => Sender | Worker => Sender, Respond, ["the body's stream or file"];
    /// More of a body, on its stream.
    Chunk = 66: Worker => Sender, Chunk;
    /// A body's end, on its stream.
    End = 67: Worker => Sender, End;
    /// A text of a WebSocket, on its stream.
    SocketText = 68: Worker => Sender | Sender => Worker, MessagePart;
    /// A message of bytes of a WebSocket, on its stream.
    SocketBinary = 69: Worker => Sender | Sender => Worker, MessagePart;
    /// A WebSocket's end, on its stream.
    SocketClose = 70: Worker => Sender | Sender => Worker, Close;
    /// Early hints: what an app says of its answer before that begins.
    Hint = 71: Worker => Daemon | Daemon => Sender | Worker => Sender, Hint;
}
