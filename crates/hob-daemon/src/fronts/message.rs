//! The message front: senders of asks and tells, and users of the shared state.
//!
//! A connection is: `hello`, `attach`, then any number of messages, wanted lanes and requests to
//! the shared state, in any order and without waiting for each other. Its end takes back what it
//! has open. It knows nothing of isolation: it turns frames into inputs.

use std::sync::Arc;

use hob_os::{clock, uds};
use hob_wire::frame::Kind;
use hob_wire::message::{Attach, Named, Numbered, Passed, Served};

use crate::channel::{Frame, Outlet, Reader, Stream};
use crate::fronts::Front;
use crate::inputs::{Input, SenderEvent, SenderId, Sent};
use crate::tables::senders;

/// How many messages of a sender are one input of the loop at most: others have their turn.
const TOGETHER_MAX: usize = 256;

/// Hears a sender to its end. What breaks a rule ends the connection, as its leaving would.
pub(crate) async fn serve(first: Frame, mut reader: Reader, stream: Arc<Stream>, front: &Front) {
    let Ok(attach) = Attach::decode(&first.payload) else { return };
    let pid = uds::peer_pid(&*stream).unwrap_or(0);
    let sender = SenderId(front.recorder.next_call());
    let outlet = Outlet::new(stream);
    let mut event = SenderEvent::Attached { attach, outlet: outlet.clone(), pid };
    let mut ahead: Option<Frame> = None;
    loop {
        if front.owner.send(Input::Sender { sender, event }).await.is_err() {
            // The loop has ended, and has not heard of this.
            return senders::leave(&outlet);
        }
        let next = match ahead.take() {
            Some(frame) => Ok(Some(frame)),
            None => reader.next().await,
        };
        let Ok(Some(frame)) = next else { break };
        event = match sent(frame) {
            Ok(first) => {
                let messages;
                (messages, ahead) = together(first, &mut reader);
                messages
            }
            Err(frame) => match decode(frame) {
                Some(event) => event,
                None => break,
            },
        };
    }
    let _ = front.owner.send(Input::Sender { sender, event: SenderEvent::Gone }).await;
}

/// A message and those that have come with it, so that the loop is woken once for all of them; and
/// the frame behind them, if it is something else.
fn together(first: Sent, reader: &mut Reader) -> (SenderEvent, Option<Frame>) {
    let received_ns = clock::now_ns();
    let mut all = vec![first];
    let mut ahead = None;
    while all.len() < TOGETHER_MAX {
        match reader.at_hand().map(|next| next.map(sent)) {
            Ok(Some(Ok(next))) => all.push(next),
            Ok(next) => {
                ahead = next.and_then(Result::err);
                break;
            }
            // It is found again, after what came before it.
            Err(_) => break,
        }
    }
    (SenderEvent::Messages { sent: all, received_ns }, ahead)
}

/// The message that a frame is; or the frame, which is something else.
fn sent(mut frame: Frame) -> Result<Sent, Frame> {
    match (frame.kind, frame.fds.len()) {
        (Kind::Message, _) => Ok(Sent { frame: frame.payload.into(), file: None }),
        (Kind::Request, 1) => Ok(Sent { frame: frame.payload.into(), file: frame.fds.pop() }),
        _ => Err(frame),
    }
}

fn decode(frame: Frame) -> Option<SenderEvent> {
    let Frame { kind, payload, .. } = frame;
    if kind == Kind::State {
        return Some(SenderEvent::State { payload });
    }
    if kind == Kind::WantLane {
        let Named { id, name } = Named::decode(&payload).ok()?;
        return Some(SenderEvent::WantLane { id, program: name });
    }
    if kind == Kind::Passed {
        let passed = Passed::decode(&payload).ok()?;
        let program = passed.program.to_vec();
        return Some(SenderEvent::Passed { passed: Passed { program: b"", ..passed }, program });
    }
    if kind == Kind::Served {
        let served = Served::decode(&payload).ok()?;
        let mount = served.mount.to_vec();
        return Some(SenderEvent::Served { served: Served { mount: b"", ..served }, mount });
    }
    let Numbered { id } = Numbered::decode(&payload).ok()?;
    if kind == Kind::Cancel {
        return Some(SenderEvent::Cancel { id });
    }
    (kind == Kind::LeaveLane).then_some(SenderEvent::LeaveLane { lane: id })
}
