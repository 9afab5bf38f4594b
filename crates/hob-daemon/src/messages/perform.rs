//! What the core answers, performed.

use hob_core::ids::{CallId, LaneId, PoolId, WorkerId};
use hob_core::messages::{Effect, Event, Found};
use hob_os::{clock, uds};
use hob_wire::frame::Kind;
use hob_wire::message::{Lend, Lent, Message};
use hob_wire::worker::{Preload, Role, TargetKind};
use rustix::fd::AsFd;

use crate::channel;
use crate::owner::Owner;
use crate::workers::hands::Origin;

use super::Lane;
use super::route::Host;

const SIGKILL: u8 = 9;

impl Lane {
    /// Lets nothing more onto the lane. What its worker has still to say goes out.
    pub(super) fn shut(&self) {
        if let Some(end) = &self.end {
            let _ = rustix::net::shutdown(end, rustix::net::Shutdown::Read);
        }
    }
}

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
            Effect::NoLane { lane } => {
                if let Some(lane) = self.desk.lanes.remove(&lane) {
                    self.no_lane(lane.sender, lane.request);
                }
            }
            Effect::Recall { worker } => {
                let lent = self.desk.lanes.values().find(|lane| lane.worker == Some(worker));
                if let Some(lane) = lent {
                    lane.shut();
                }
            }
            Effect::Retire { worker } => self.hands.retire(worker),
            Effect::Kill { worker } => self.hands.signal(worker, SIGKILL),
            Effect::Settle { call, outcome } => self.settle_message(call, outcome),
        }
    }

    fn start_handler(&mut self, pool: PoolId, worker: WorkerId, role: Role) {
        let Some(loaded) = self.desk.handlers.get_mut(&pool) else {
            return self.desk.push(Event::Gone { worker });
        };
        let none = Vec::new();
        let (prefix, origin) = match &loaded.host {
            Host::Python(python) => (&python.prefix, self.hands.runtimes().handler(python)),
            Host::Native => (&none, Ok((loaded.target.clone(), vec![loaded.target.clone()]))),
        };
        let preload = Preload {
            role,
            kind: TargetKind::Handler,
            target: loaded.target.clone(),
            prefix: prefix.iter().collect(),
            modules: hob_wire::strings::Strings::new(),
            argv: std::iter::once(loaded.target.as_slice()).collect(),
        };
        let started = origin.and_then(|(file, argv)| {
            let origin = Origin {
                program: hob_core::ids::ProgramId(0),
                key: loaded.key,
                session: 0,
                file: &file,
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

    /// Connects a lane's sender and its worker.
    fn lend(&mut self, id: LaneId, worker: WorkerId, uses: u32) {
        let Some(lane) = self.desk.lanes.get_mut(&id) else { return };
        lane.worker = Some(worker);
        let (sender, request, pool) = (lane.sender, lane.request, lane.pool);
        let doorbell = self.desk.handlers.get(&pool).and_then(|known| known.freshness.doorbell());
        let (Some(doorbell), Ok((ours, theirs))) = (doorbell, uds::pair()) else {
            self.unlend(id, worker);
            return;
        };
        // Both ends wait in their reads: they have nothing else to do.
        let waits = [&ours, &theirs].map(|end| rustix::io::ioctl_fionbio(end, false));
        let lend = Lend { lane: id.0, uses };
        let bytes = channel::encode(Kind::Lend, 2, |out| lend.encode(out));
        let sent = waits.iter().all(Result::is_ok)
            && bytes.is_some_and(|bytes| {
                self.hands.tell(worker, bytes, &[theirs.as_fd(), doorbell.as_fd()])
            });
        let lent = Lent { id: request, lane: id.0 };
        let bytes = channel::encode(Kind::Lent, 1, |out| lent.encode(out));
        let known = self.desk.senders.get(&sender);
        let told =
            sent && known.is_some_and(|sender| sender.outlet.send_with(bytes, &[ours.as_fd()]));
        if let Some(lane) = self.desk.lanes.get_mut(&id) {
            lane.end = Some(theirs);
        }
        if !sent {
            self.unlend(id, worker);
        } else if !told {
            self.desk.push(Event::LaneLeft { lane: id });
        }
    }

    /// A lane that did not come about: its worker is of no use to anybody.
    fn unlend(&mut self, id: LaneId, worker: WorkerId) {
        if let Some(lane) = self.desk.lanes.remove(&id) {
            self.no_lane(lane.sender, lane.request);
        }
        self.desk.push(Event::Unreached { worker });
    }
}
