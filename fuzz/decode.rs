//! What every frame's decoder promises, whatever the bytes: it does not panic, it reads nothing
//! beyond the frame, and what it accepts is encoded to the same bytes again.
//!
//! Shared by the fuzz target (`fuzz_targets/frames.rs`) and by the replay in hob-wire's tests.

use hob_wire::call::{Call, ColdEnded, Hello, Received, Signal};
use hob_wire::frame::{self, Kind};
use hob_wire::hooks::{HookEnded, HookOutput, HookStarted, RunSet, SetBegun, SetEnded};
use hob_wire::launch::{Launch, Launched, Launcher};
use hob_wire::message::{
    Answer, Attach, Failure, Handled, Lend, Lent, Message, Named, Numbered, State, StateReply,
};
use hob_wire::reply::{Ended, Gone, Refused, RunCold};
use hob_wire::worker::{Failed, Finished, Fork, Forked, Joined, Notes, Preload, Ready};

/// Reads a stream of frames until it ends or breaks a rule. Gives how many were decoded whole.
pub(crate) fn stream(mut bytes: &[u8]) -> usize {
    let mut decoded = 0;
    while let Ok(Some((header, payload, taken))) = frame::split(bytes) {
        assert_eq!(payload.len(), header.len, "a payload is as long as its header says");
        assert_eq!(taken, frame::HEADER_LEN + header.len, "a frame is a header and a payload");
        decoded += usize::from(as_kind(header.kind, payload));
        bytes = &bytes[taken..];
    }
    decoded
}

/// Decodes a payload as every kind there is. Gives by how many it was accepted.
pub(crate) fn as_all(payload: &[u8]) -> usize {
    Kind::ALL.into_iter().filter(|kind| as_kind(*kind, payload)).count()
}

/// Decodes a payload; what was accepted must encode to the same bytes.
fn as_kind(kind: Kind, payload: &[u8]) -> bool {
    macro_rules! comes_back {
        ($frame:ident) => {
            match $frame::decode(payload) {
                Ok(frame) => {
                    let mut again = Vec::new();
                    frame.encode(&mut again);
                    assert_eq!(again, payload, "{kind:?} is not encoded as it was decoded");
                    true
                }
                Err(_) => false,
            }
        };
    }
    match kind {
        Kind::Hello => comes_back!(Hello),
        Kind::Call => comes_back!(Call),
        Kind::Signal => comes_back!(Signal),
        Kind::ColdEnded => comes_back!(ColdEnded),
        Kind::Received => comes_back!(Received),
        Kind::RunCold => comes_back!(RunCold),
        Kind::Ended => comes_back!(Ended),
        Kind::Refused => comes_back!(Refused),
        Kind::Launcher => comes_back!(Launcher),
        Kind::Launch => comes_back!(Launch),
        Kind::Launched => comes_back!(Launched),
        Kind::Preload => comes_back!(Preload),
        Kind::Ready => comes_back!(Ready),
        Kind::Fork => comes_back!(Fork),
        Kind::Forked => comes_back!(Forked),
        Kind::Gone => comes_back!(Gone),
        Kind::Finished => comes_back!(Finished),
        Kind::Notes => comes_back!(Notes),
        Kind::Failed => comes_back!(Failed),
        Kind::Joined => comes_back!(Joined),
        Kind::Message => comes_back!(Message),
        Kind::Attach => comes_back!(Attach),
        Kind::Cancel | Kind::LeaveLane => comes_back!(Numbered),
        Kind::WantLane | Kind::Accepted => comes_back!(Named),
        Kind::State => comes_back!(State),
        Kind::Answer => comes_back!(Answer),
        Kind::Failure => comes_back!(Failure),
        Kind::Lent => comes_back!(Lent),
        Kind::StateReply => comes_back!(StateReply),
        Kind::Lend => comes_back!(Lend),
        Kind::Handled => comes_back!(Handled),
        Kind::RunSet => comes_back!(RunSet),
        Kind::SetBegun => comes_back!(SetBegun),
        Kind::HookStarted => comes_back!(HookStarted),
        Kind::HookOutput => comes_back!(HookOutput),
        Kind::HookEnded => comes_back!(HookEnded),
        Kind::SetEnded => comes_back!(SetEnded),
        // A give is decoded by runtimes only; the others are JSON, or empty.
        Kind::Give | Kind::Control | Kind::ControlReply | Kind::Queued => false,
    }
}
