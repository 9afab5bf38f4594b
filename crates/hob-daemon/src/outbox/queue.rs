//! Which message is delivered next: pure, without clock and disk. The loop owns it.
//!
//! ```text
//!   push ─▶ ready ──next──▶ in flight ──finished──▶ forgotten
//!             ▲                 │ failed, less often than it may: due after a growing wait
//!             └────── due ◀─────┤
//!             ▲                 ├ failed for the last time ─▶ dead letter
//!             └─────────────────┘ held: its program cannot be had now
//! ```
//! Invariants:
//! - messages of one program are given in the order in which they came, but a failed one without
//!   a key waits aside, and those behind it pass;
//! - of one program and key at most one is in flight, and none passes one before it: a failed one
//!   holds back those behind it until it is finished or dead;
//! - a program that cannot be had is held as a whole: nothing of it is given until a growing wait
//!   is over, then one message, which shows whether it can be had again; none counts a try;
//! - each message is in exactly one place.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use super::Waiting;
use super::id::MessageId;

/// After so many failed deliveries a message is a dead letter, if nothing else is said.
pub const TRIES: u32 = 8;

/// How long after its first failure a message is tried again; twice as long after each other.
const WAIT_MS_MIN: u64 = 1_000;
/// How long at most.
const WAIT_MS_MAX: u64 = 60_000;
/// How long a program's directory may be gone, while a daemon runs, before its messages are dead
/// letters: a file system that is mounted late is there again by then, a deleted project is not.
const GONE_MS_MAX: u64 = 60 * 60_000;

/// The directory from which a message was told: its program is looked for there and above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Directory {
    /// It is there, or that cannot be said.
    There,
    /// It is not.
    Gone,
}

/// What becomes of a message whose delivery failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is tried again when it is due: write it with [`super::Outbox::again`].
    Again(Waiting),
    /// It is a dead letter: write it with [`super::Outbox::bury`].
    Dead(Waiting),
}

/// The order of deliveries.
#[derive(Debug, Default)]
pub struct Queue {
    programs: HashMap<Arc<[u8]>, Lane>,
    flying: HashMap<MessageId, Entry>,
    /// When messages that failed may be tried again.
    due: BTreeSet<(u64, MessageId)>,
    /// Those of them, and where they go back to.
    aside: HashMap<MessageId, Entry>,
    /// Until when programs are held.
    held: BTreeSet<(u64, Arc<[u8]>)>,
    len: usize,
}

/// The messages of one program.
#[derive(Debug, Default)]
struct Lane {
    /// What may be given now, in the order of coming.
    ready: BTreeMap<u64, Entry>,
    /// Messages behind one with the same key that is ready, in flight or aside.
    behind: HashMap<Arc<[u8]>, VecDeque<Entry>>,
    in_flight: usize,
    /// How many messages there are, wherever they are.
    len: usize,
    came: u64,
    hold: Hold,
}

/// Whether a program can be had.
#[derive(Debug, Default)]
struct Hold {
    /// How often it was found that it cannot, since it last could.
    times: u32,
    /// Nothing is given before this; 0: not held.
    until_ms: u64,
    /// Why not.
    why: String,
    /// Since when its directory has been found gone each time, in milliseconds since 1970.
    gone_since_ms: Option<u64>,
}

#[derive(Debug)]
struct Entry {
    id: MessageId,
    program: Arc<[u8]>,
    key: Option<Arc<[u8]>>,
    bytes: u64,
    tries: u32,
    due_ms: u64,
    /// Its place in the order of coming.
    came: u64,
}

impl Queue {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Queue {
        Queue::default()
    }

    /// How many messages there are, wherever they are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many messages of a program are with workers.
    #[must_use]
    pub fn in_flight(&self, program: &[u8]) -> usize {
        self.programs.get(program).map_or(0, |lane| lane.in_flight)
    }

    /// Whether this message is with a worker, or on its way there.
    #[must_use]
    pub fn is_flying(&self, id: MessageId) -> bool {
        self.flying.contains_key(&id)
    }

    /// The program of a message that is with a worker, or on its way there.
    #[must_use]
    pub fn program_of(&self, id: MessageId) -> Option<Arc<[u8]>> {
        self.flying.get(&id).map(|entry| Arc::clone(&entry.program))
    }

    /// How many messages are with workers.
    #[must_use]
    pub fn flying(&self) -> usize {
        self.flying.len()
    }

    /// How many messages are held with their programs, and why the first of them is.
    #[must_use]
    pub fn held(&self) -> (usize, Option<&str>) {
        let lanes = || self.programs.values().filter(|lane| lane.hold.times > 0);
        let why = lanes().map(|lane| lane.hold.why.as_str()).min();
        (lanes().map(|lane| lane.len).sum(), why)
    }

    /// The programs that have something to be given now.
    pub fn ready(&self) -> impl Iterator<Item = &Arc<[u8]>> {
        self.programs.iter().filter(|(_, lane)| lane.gives()).map(|(name, _)| name)
    }

    /// When the next message that failed, or program that is held, is due, in milliseconds since
    /// 1970.
    #[must_use]
    pub fn next_due_ms(&self) -> Option<u64> {
        let due = self.due.first().map(|(due, _)| *due);
        due.into_iter().chain(self.held.first().map(|(until, _)| *until)).min()
    }

    /// Adds a message behind all others.
    pub fn push(&mut self, message: Waiting) {
        // The known name, so that there is one in memory however many came off the disk.
        let known = self.programs.get_key_value(&message.program).map(|(known, _)| known);
        let program = Arc::clone(known.unwrap_or(&message.program));
        let lane = self.programs.entry(Arc::clone(&program)).or_default();
        lane.came += 1;
        lane.len += 1;
        let entry = Entry {
            id: message.id,
            program,
            key: message.key.map(Arc::from),
            bytes: message.bytes,
            tries: message.tries,
            due_ms: message.due_ms,
            came: lane.came,
        };
        self.len += 1;
        if let Some(key) = &entry.key {
            if let Some(behind) = lane.behind.get_mut(key) {
                behind.push_back(entry);
                return;
            }
            lane.behind.insert(Arc::clone(key), VecDeque::new());
        }
        self.place(entry);
    }

    /// Takes the next message of a program; it is in flight until it is finished or has failed.
    pub fn next(&mut self, program: &[u8]) -> Option<Waiting> {
        let lane = self.programs.get_mut(program).filter(|lane| lane.gives())?;
        let (_, entry) = lane.ready.pop_first()?;
        lane.in_flight += 1;
        let waiting = entry.waiting();
        self.flying.insert(entry.id, entry);
        Some(waiting)
    }

    /// The message could not be given after all: it is ready again, in its old place.
    pub fn put_back(&mut self, id: MessageId) {
        if let Some(entry) = self.land(id) {
            self.place(entry);
        }
    }

    /// The message's program cannot be had: nobody tried it. It is ready again, in its old place,
    /// and with it all of its program wait. What comes back is a dead letter instead, to be written
    /// with [`super::Outbox::bury`]: nobody will ever be there to handle it.
    pub fn hold(
        &mut self,
        id: MessageId,
        now_ms: u64,
        why: &str,
        directory: Directory,
    ) -> Option<Waiting> {
        let entry = self.land(id)?;
        if let Some(lane) = self.programs.get_mut(&entry.program)
            && lane.hold.until_ms == 0
        {
            let gone_since_ms = match directory {
                Directory::There => None,
                Directory::Gone => Some(lane.hold.gone_since_ms.unwrap_or(now_ms)),
            };
            if gone_since_ms.is_some_and(|since| now_ms.saturating_sub(since) >= GONE_MS_MAX) {
                lane.hold.gone_since_ms = gone_since_ms;
                self.forget(&entry);
                return Some(entry.waiting());
            }
            let times = lane.hold.times.saturating_add(1);
            let until_ms = now_ms.saturating_add(wait_ms(times));
            lane.hold = Hold { times, until_ms, why: why.to_owned(), gone_since_ms };
            self.held.insert((until_ms, Arc::clone(&entry.program)));
        }
        self.place(entry);
        None
    }

    /// Whatever is held may be had again: one message of each program will show.
    pub fn look_again(&mut self) {
        for (_, program) in std::mem::take(&mut self.held) {
            if let Some(lane) = self.programs.get_mut(&program) {
                (lane.hold.times, lane.hold.until_ms) = (1, 0);
            }
        }
    }

    /// A worker has finished with the message. `None` if it is not in flight.
    pub fn finished(&mut self, id: MessageId) -> Option<Waiting> {
        let entry = self.land(id)?;
        self.had(&entry.program);
        self.forget(&entry);
        Some(entry.waiting())
    }

    /// The delivery failed; at the last of `tries` it is given up. `None` if it is not in flight.
    pub fn failed(&mut self, id: MessageId, now_ms: u64, tries: u32) -> Option<Verdict> {
        let mut entry = self.land(id)?;
        self.had(&entry.program);
        entry.tries = entry.tries.saturating_add(1);
        if entry.tries >= tries {
            self.forget(&entry);
            return Some(Verdict::Dead(entry.waiting()));
        }
        entry.due_ms = now_ms.saturating_add(wait_ms(entry.tries));
        let waiting = entry.waiting();
        self.place(entry);
        Some(Verdict::Again(waiting))
    }

    /// Makes ready what is due by now.
    pub fn tick(&mut self, now_ms: u64) {
        while let Some((due_ms, id)) = self.due.first().copied()
            && due_ms <= now_ms
        {
            self.due.pop_first();
            if let Some(mut entry) = self.aside.remove(&id) {
                entry.due_ms = 0;
                self.place(entry);
            }
        }
        while self.held.first().is_some_and(|(until_ms, _)| *until_ms <= now_ms) {
            let Some((_, program)) = self.held.pop_first() else { break };
            if let Some(lane) = self.programs.get_mut(&program) {
                lane.hold.until_ms = 0;
            }
        }
    }

    /// A program was there for a message: it is not held any more.
    fn had(&mut self, program: &Arc<[u8]>) {
        let Some(lane) = self.programs.get_mut(program) else { return };
        if lane.hold.times > 0 {
            self.held.remove(&(lane.hold.until_ms, Arc::clone(program)));
            lane.hold = Hold::default();
        }
    }

    /// Puts a message where it belongs: ready, or aside until it is due.
    fn place(&mut self, entry: Entry) {
        if entry.due_ms > 0 {
            self.due.insert((entry.due_ms, entry.id));
            self.aside.insert(entry.id, entry);
        } else if let Some(lane) = self.programs.get_mut(&entry.program) {
            lane.ready.insert(entry.came, entry);
        }
    }

    fn land(&mut self, id: MessageId) -> Option<Entry> {
        let entry = self.flying.remove(&id)?;
        if let Some(lane) = self.programs.get_mut(&entry.program) {
            lane.in_flight -= 1;
        }
        Some(entry)
    }

    /// A message is gone: the one behind it may come.
    fn forget(&mut self, gone: &Entry) {
        self.len -= 1;
        let Some(lane) = self.programs.get_mut(&gone.program) else { return };
        lane.len -= 1;
        if lane.len == 0 {
            self.programs.remove(&gone.program);
        } else if let Some(key) = &gone.key {
            match lane.behind.get_mut(key).and_then(VecDeque::pop_front) {
                Some(next) => self.place(next),
                None => {
                    lane.behind.remove(key);
                }
            }
        }
    }
}

impl Lane {
    /// Whether a message can be given now.
    fn gives(&self) -> bool {
        let shows = self.hold.times == 0 || self.hold.until_ms == 0 && self.in_flight == 0;
        shows && !self.ready.is_empty()
    }
}

impl Entry {
    fn waiting(&self) -> Waiting {
        Waiting {
            id: self.id,
            program: Arc::clone(&self.program),
            key: self.key.as_ref().map(|key| key.to_vec()),
            bytes: self.bytes,
            tries: self.tries,
            due_ms: self.due_ms,
        }
    }
}

fn wait_ms(tries: u32) -> u64 {
    let doublings = tries.saturating_sub(1).min(16);
    (WAIT_MS_MIN << doublings).min(WAIT_MS_MAX)
}

#[cfg(test)]
mod tests {
    use super::super::Ids;
    use super::*;
    use proptest::prelude::*;

    fn waiting(ids: &mut Ids, program: u8, key: Option<u8>) -> Waiting {
        Waiting {
            id: ids.next(1),
            program: Arc::from([program]),
            key: key.map(|key| vec![key]),
            bytes: 1,
            tries: 0,
            due_ms: 0,
        }
    }

    #[test]
    fn a_failed_message_without_a_key_lets_others_pass_and_comes_again_when_due() {
        let (mut queue, mut ids) = (Queue::new(), Ids::new(1));
        let (a, b) = (waiting(&mut ids, 1, None), waiting(&mut ids, 1, None));
        queue.push(a.clone());
        queue.push(b.clone());
        assert_eq!(queue.next(&[1]).unwrap().id, a.id);
        let again = queue.failed(a.id, 10_000, TRIES).unwrap();
        assert_eq!(again, Verdict::Again(Waiting { tries: 1, due_ms: 11_000, ..a.clone() }));
        assert_eq!(queue.next(&[1]).unwrap().id, b.id);
        queue.tick(10_999);
        assert_eq!(queue.next(&[1]), None);
        assert_eq!(queue.next_due_ms(), Some(11_000));
        queue.tick(11_000);
        assert_eq!(queue.next(&[1]).unwrap().id, a.id);
    }

    #[test]
    fn a_message_that_always_fails_holds_its_key_until_it_is_dead() {
        let (mut queue, mut ids) = (Queue::new(), Ids::new(1));
        let (a, b) = (waiting(&mut ids, 1, Some(1)), waiting(&mut ids, 1, Some(1)));
        queue.push(a.clone());
        queue.push(b.clone());
        let mut now = 0;
        let mut waits = Vec::new();
        loop {
            assert_eq!(queue.next(&[1]).unwrap().id, a.id);
            assert_eq!(queue.next(&[1]), None);
            match queue.failed(a.id, now, TRIES).unwrap() {
                Verdict::Again(again) => {
                    waits.push(again.due_ms - now);
                    now = again.due_ms;
                    assert_eq!(queue.next(&[1]), None);
                    queue.tick(now);
                }
                Verdict::Dead(dead) => {
                    assert_eq!(dead.tries, TRIES);
                    break;
                }
            }
        }
        assert_eq!(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000]);
        assert_eq!(queue.next(&[1]).unwrap().id, b.id);
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn a_program_whose_directory_stays_gone_is_given_up_and_one_that_comes_back_is_not() {
        let why = "no-program: gone";
        let hold = |queue: &mut Queue, now: u64, directory| {
            queue.tick(now);
            let next = queue.next(&[1]).unwrap();
            queue.hold(next.id, now, why, directory)
        };
        let (mut queue, mut ids) = (Queue::new(), Ids::new(1));
        let (a, b) = (waiting(&mut ids, 1, Some(1)), waiting(&mut ids, 1, Some(1)));
        queue.push(a.clone());
        queue.push(b.clone());
        let mut now = 1_000;
        assert_eq!(hold(&mut queue, now, Directory::Gone), None);
        while now + WAIT_MS_MAX < 1_000 + GONE_MS_MAX {
            now += WAIT_MS_MAX;
            assert_eq!(hold(&mut queue, now, Directory::Gone), None, "after {now} ms");
        }
        // It was only away.
        now += WAIT_MS_MAX;
        assert_eq!(hold(&mut queue, now, Directory::There), None);
        now += WAIT_MS_MAX;
        assert_eq!(hold(&mut queue, now, Directory::Gone), None);
        now += GONE_MS_MAX;
        // Now it is gone for good: one after the other.
        assert_eq!(hold(&mut queue, now, Directory::Gone), Some(a));
        assert_eq!(queue.held(), (1, Some(why)));
        assert_eq!(hold(&mut queue, now, Directory::Gone), Some(b));
        assert!(queue.is_empty() && queue.next_due_ms().is_none() && queue.held().0 == 0);
    }

    #[test]
    fn what_was_put_back_is_next_again() {
        let (mut queue, mut ids) = (Queue::new(), Ids::new(1));
        let (a, b) = (waiting(&mut ids, 1, None), waiting(&mut ids, 1, None));
        queue.push(a.clone());
        queue.push(b);
        queue.next(&[1]).unwrap();
        queue.put_back(a.id);
        assert_eq!((queue.in_flight(&[1]), queue.next(&[1]).unwrap().id), (0, a.id));
    }

    #[test]
    fn a_program_that_cannot_be_had_is_held_as_a_whole_and_counts_no_try() {
        let (mut queue, mut ids) = (Queue::new(), Ids::new(1));
        let (a, b) = (waiting(&mut ids, 1, None), waiting(&mut ids, 1, None));
        let other = waiting(&mut ids, 2, None);
        [&a, &b, &other].into_iter().for_each(|message| queue.push(message.clone()));
        assert_eq!(queue.next(&[1]).unwrap().id, a.id);
        assert_eq!(queue.next(&[1]).unwrap().id, b.id);
        assert_eq!(queue.hold(a.id, 0, "untrusted", Directory::There), None);
        assert_eq!(queue.hold(b.id, 0, "untrusted", Directory::There), None);
        assert_eq!((queue.held(), queue.len()), ((2, Some("untrusted")), 3));
        assert_eq!((queue.next(&[1]), queue.next_due_ms()), (None, Some(1_000)));
        assert_eq!(queue.next(&[2]).unwrap().id, other.id);
        // One shows that it still cannot be had, however often that happens.
        let mut now = 0;
        for _ in 0..20 {
            now = queue.next_due_ms().unwrap();
            queue.tick(now);
            assert_eq!(queue.next(&[1]), Some(a.clone()));
            assert_eq!(queue.next(&[1]), None);
            assert_eq!(queue.hold(a.id, now, "untrusted", Directory::There), None);
        }
        assert_eq!(queue.next_due_ms(), Some(now + WAIT_MS_MAX));
        queue.look_again();
        assert_eq!(queue.next(&[1]), Some(a.clone()));
        assert_eq!(queue.next(&[1]), None);
        queue.finished(a.id).unwrap();
        assert_eq!(queue.held(), (0, None));
        assert_eq!(queue.next(&[1]), Some(b));
    }

    /// What may be done to a queue.
    #[derive(Debug, Clone)]
    enum Step {
        Push(u8, Option<u8>),
        Next(u8),
        Finish(usize),
        Fail(usize),
        PutBack(usize),
        Hold(usize),
        Tick(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let program = 0..2u8;
        prop_oneof![
            4 => (program.clone(), proptest::option::of(0..3u8)).prop_map(|(p, k)| Step::Push(p, k)),
            4 => program.prop_map(Step::Next),
            2 => any::<usize>().prop_map(Step::Finish),
            2 => any::<usize>().prop_map(Step::Fail),
            1 => any::<usize>().prop_map(Step::PutBack),
            1 => any::<usize>().prop_map(Step::Hold),
            1 => (0..100_000u64).prop_map(Step::Tick),
        ]
    }

    proptest! {
        #[test]
        fn every_message_is_delivered_until_it_ends_and_keys_keep_their_order(
            steps in proptest::collection::vec(step(), 0..300)
        ) {
            let (mut queue, mut ids) = (Queue::new(), Ids::new(1));
            let mut now = 0;
            let mut live: BTreeMap<MessageId, Waiting> = BTreeMap::new();
            let mut flying: Vec<MessageId> = Vec::new();
            let finale = (0..2_000).flat_map(|_| {
                [Step::Tick(WAIT_MS_MAX), Step::Next(0), Step::Next(1), Step::Finish(0), Step::Finish(0)]
            });
            for step in steps.into_iter().chain(finale) {
                match step {
                    Step::Push(program, key) => {
                        let message = waiting(&mut ids, program, key);
                        live.insert(message.id, message.clone());
                        queue.push(message);
                    }
                    Step::Next(program) => {
                        let Some(given) = queue.next(&[program]) else { continue };
                        prop_assert!(live.contains_key(&given.id) && !flying.contains(&given.id));
                        let same = |other: &&Waiting| {
                            other.program == given.program && other.key == given.key
                        };
                        if given.key.is_some() {
                            // None before it with its key is left.
                            prop_assert_eq!(live.values().find(same).map(|one| one.id), Some(given.id));
                        }
                        flying.push(given.id);
                    }
                    Step::Finish(which) if !flying.is_empty() => {
                        let id = flying.remove(which % flying.len());
                        prop_assert_eq!(queue.finished(id).map(|one| one.id), Some(id));
                        live.remove(&id);
                    }
                    Step::Fail(which) if !flying.is_empty() => {
                        let id = flying.remove(which % flying.len());
                        match queue.failed(id, now, TRIES).unwrap() {
                            Verdict::Again(again) => prop_assert!(again.due_ms > now),
                            Verdict::Dead(_) => _ = live.remove(&id),
                        }
                    }
                    Step::PutBack(which) if !flying.is_empty() => {
                        queue.put_back(flying.remove(which % flying.len()));
                    }
                    Step::Hold(which) if !flying.is_empty() => {
                        assert_eq!(queue.hold(flying.remove(which % flying.len()), now, "untrusted", Directory::There), None);
                    }
                    Step::Tick(later) => {
                        now += later;
                        queue.tick(now);
                    }
                    Step::Finish(_) | Step::Fail(_) | Step::PutBack(_) | Step::Hold(_) => {}
                }
                prop_assert_eq!(queue.len(), live.len());
                prop_assert_eq!(queue.flying(), flying.len());
            }
            prop_assert!(queue.is_empty() && live.is_empty());
            prop_assert!(queue.programs.is_empty() && queue.aside.is_empty() && queue.due.is_empty() && queue.held.is_empty());
        }
    }
}
