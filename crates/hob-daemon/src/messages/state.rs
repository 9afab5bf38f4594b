//! The shared state's requests: at once, in the loop that owns it.

use hob_core::ids::Time;
use hob_core::requests::shared_state::Shared;
use hob_os::clock;
use hob_wire::frame::Kind;
use hob_wire::message::{Held, State, StateReply, StateVerb};

use crate::channel;
use crate::inputs::SenderId;
use crate::tables::senders::Senders;

/// Answers a request of a sender's for the shared state.
pub(super) fn reply(shared: &mut Shared, senders: &Senders, id: SenderId, payload: &[u8]) {
    let Some(sender) = senders.get(id) else { return };
    let Ok(asked) = State::decode(payload) else {
        return senders.send_away(id);
    };
    let now = Time(clock::now_ns());
    let (mut number, mut value): (i64, &[u8]) = (0, &[]);
    let held = match asked.verb {
        StateVerb::Add => match shared.add(asked.name, asked.number) {
            Ok(count) => {
                number = count;
                Held::There
            }
            Err(_) => Held::NoRoom,
        },
        StateVerb::Count => {
            number = shared.count(asked.name);
            Held::There
        }
        StateVerb::Set => match shared.set(now, (asked.name, asked.value), asked.ttl_us) {
            Ok(()) => Held::There,
            Err(_) => Held::NoRoom,
        },
        StateVerb::Get => match shared.get(now, asked.name) {
            Some(found) => {
                value = found;
                Held::There
            }
            None => Held::Nothing,
        },
        StateVerb::Delete if shared.delete(asked.name) => Held::There,
        StateVerb::Delete => Held::Nothing,
    };
    let reply = StateReply { id: asked.id, held, number, value };
    sender.outlet.send(channel::encode(Kind::StateReply, 0, |out| reply.encode(out)));
}
