//! What the core answers, performed.

use hob_core::ids::{CallId, PoolId, WorkerId};
use hob_core::messages::{Effect, Event, Found};
use hob_os::clock;
use hob_wire::frame::Kind;
use hob_wire::message::Message;
use hob_wire::worker::{Preload, Role, TargetKind};

use crate::channel;
use crate::owner::Owner;
use crate::workers::hands::Origin;

const SIGKILL: u8 = 9;

impl Owner {
    pub(super) fn perform_message(&mut self, effect: Effect) {
        match effect {
            Effect::StartZygote { pool, worker } => self.start_handler(pool, worker, Role::Zygote),
            Effect::StartWorker { pool, worker } => self.start_handler(pool, worker, Role::Standby),
            Effect::Fork { zygote, worker } => {
                if !self.hands.fork(zygote, worker, hob_core::event::Pages::Unpaid) {
                    self.desk.push(Event::ForkFailed { worker });
                }
            }
            Effect::Give { call, worker, found } => self.give_message(call, worker, found),
            Effect::Lend { lane, worker, uses } => self.lend(lane, worker, uses),
            Effect::NoLane { lane } => self.refuse_lane(lane),
            Effect::Recall { worker } => self.recall(worker),
            Effect::Retire { worker } => self.hands.retire(worker),
            Effect::Forget { pool } => {
                self.desk.handlers.remove(&pool);
                self.desk.thin.forget(pool);
            }
            Effect::Kill { worker } => self.hands.signal(worker, SIGKILL),
            Effect::Settle { call, outcome } => self.settle_message(call, outcome),
        }
    }

    fn start_handler(&mut self, pool: PoolId, worker: WorkerId, role: Role) {
        let Some(loaded) = self.desk.handlers.get_mut(&pool) else {
            return self.desk.push(Event::Gone { worker });
        };
        let host = &loaded.host;
        let argv = self.hands.runtimes().handler(host);
        let preload = Preload {
            role,
            kind: TargetKind::Handler,
            target: loaded.target.clone(),
            prefix: host.prefix.iter().collect(),
            modules: hob_wire::strings::Strings::new(),
            argv: std::iter::once(loaded.target.as_slice()).collect(),
        };
        let started = argv.and_then(|argv| {
            let origin = Origin {
                program: hob_core::ids::ProgramId(0),
                key: loaded.key,
                session: 0,
                file: &host.interpreter,
                argv: &argv,
                env: &loaded.env,
                directory: loaded.directory.as_ref(),
            };
            self.hands.start_with(worker, &origin, &preload)
        });
        if let Err(error) = started {
            let file = String::from_utf8_lossy(&loaded.target);
            loaded.trouble = Some(format!("{file}: {error}"));
            self.desk.push(Event::Gone { worker });
        }
    }

    fn give_message(&mut self, call: CallId, worker: WorkerId, found: Found) {
        let Some(open) = self.desk.open.get_mut(&call) else { return };
        let now_ns = clock::now_ns();
        let remaining_us =
            open.deadline_ns.map_or(0, |at| (at.saturating_sub(now_ns) / 1000).max(1));
        (open.given_ns, open.worker, open.found) = (Some(now_ns), Some(worker), found);
        let message = Message {
            id: call.0,
            manner: open.manner,
            remaining_us,
            program: b"",
            key: &open.key,
            content_type: &open.content_type,
            message_id: &open.message_id,
            payload: &open.payload,
        };
        let bytes = channel::encode(Kind::Message, 0, |out| message.encode(out));
        let sent = bytes.is_some_and(|bytes| self.hands.tell(worker, bytes, &[]));
        if !sent {
            self.desk.push(Event::Unreached { worker });
        }
    }
}
