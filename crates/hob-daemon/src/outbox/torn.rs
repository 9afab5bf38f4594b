//! The store on a disk that loses power: at every write, with what was not synced there in part.
//!
//! The disk is in memory and remembers every write. A crash keeps all that was synced, and of the
//! writes after the last sync a chosen part, each whole, cut at a byte, or not at all. After each
//! crash the store must hold what it held after the last commit that returned, or after the one
//! that was under way, and nothing else.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use redb::StorageBackend;
use rustix::io::Errno;

use super::store::{Change, Store, StoreError};
use super::tests::message;
use super::{Ids, Message, MessageId};

/// A write that is shorter is of redb's head; all others are of pages.
const HEAD_BYTES_MAX: usize = 1_000;

/// What the disk was told to do.
#[derive(Debug, Clone)]
enum Op {
    Write(usize, Vec<u8>),
    Length(usize),
    Sync,
}

#[derive(Debug, Default)]
struct Plates {
    bytes: Vec<u8>,
    ops: Vec<Op>,
    /// After so many more operations there is no room.
    room: Option<usize>,
}

#[derive(Debug, Clone, Default)]
struct Disk(Arc<Mutex<Plates>>);

fn write(bytes: &mut Vec<u8>, at: usize, data: &[u8]) {
    if bytes.len() < at + data.len() {
        bytes.resize(at + data.len(), 0);
    }
    bytes[at..at + data.len()].copy_from_slice(data);
}

impl Op {
    fn perform(&self, bytes: &mut Vec<u8>) {
        match self {
            Op::Write(at, data) => write(bytes, *at, data),
            Op::Length(length) => bytes.resize(*length, 0),
            Op::Sync => {}
        }
    }
}

impl Disk {
    fn holding(bytes: Vec<u8>) -> Disk {
        Disk(Arc::new(Mutex::new(Plates { bytes, ..Plates::default() })))
    }

    fn take(&self, op: Op) -> io::Result<()> {
        let mut plates = self.0.lock().unwrap();
        if let Some(room) = &mut plates.room {
            match room.checked_sub(1) {
                Some(left) => *room = left,
                None => return Err(Errno::NOSPC.into()),
            }
        }
        op.perform(&mut plates.bytes);
        plates.ops.push(op);
        Ok(())
    }

    fn ops(&self) -> usize {
        self.0.lock().unwrap().ops.len()
    }

    fn open(&self) -> Result<Store, StoreError> {
        Store::on(self.clone(), PathBuf::from("disk"))
    }

    /// What is there after a crash before operation `at`: `part` says of each operation since the
    /// last sync how many bytes of it reached the disk.
    fn crash(&self, start: &[u8], at: usize, mut part: impl FnMut(usize, &Op) -> usize) -> Disk {
        let plates = self.0.lock().unwrap();
        let done = &plates.ops[..at];
        let synced = done.iter().rposition(|op| matches!(op, Op::Sync)).map_or(0, |sync| sync + 1);
        let mut bytes = start.to_vec();
        for op in &done[..synced] {
            op.perform(&mut bytes);
        }
        for (number, op) in done.iter().enumerate().skip(synced) {
            match op {
                Op::Write(at, data) => {
                    let kept = part(number, op).min(data.len());
                    if kept > 0 {
                        write(&mut bytes, *at, &data[..kept]);
                    }
                }
                Op::Length(_) if part(number, op) > 0 => op.perform(&mut bytes),
                Op::Length(_) | Op::Sync => {}
            }
        }
        Disk::holding(bytes)
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().unwrap().bytes.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let plates = self.0.lock().unwrap();
        let at = usize::try_from(offset).unwrap();
        let source = plates.bytes.get(at..at + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(source);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.take(Op::Length(usize::try_from(len).unwrap()))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.take(Op::Sync)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.take(Op::Write(usize::try_from(offset).unwrap(), data.to_vec()))
    }
}

/// What a store holds, as the changes say it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Model {
    messages: BTreeMap<MessageId, Message>,
    tries: BTreeMap<MessageId, (u32, u64)>,
    dead: BTreeMap<MessageId, (u64, u32, String)>,
}

impl Model {
    fn change(&mut self, change: &Change) {
        match change {
            Change::Put(message) => _ = self.messages.insert(message.id, message.clone()),
            Change::Remove(id) => {
                self.messages.remove(id);
                self.tries.remove(id);
                self.dead.remove(id);
            }
            Change::Again { id, tries, due_ms, .. } => {
                if self.messages.contains_key(id) && !self.dead.contains_key(id) {
                    self.tries.insert(*id, (*tries, *due_ms));
                }
            }
            Change::Bury { id, at_ms, tries, why } => {
                self.tries.remove(id);
                if self.messages.contains_key(id) {
                    self.dead.insert(*id, (*at_ms, *tries, why.clone()));
                }
            }
            Change::Revive(id) => _ = self.dead.remove(id),
        }
    }

    fn of(store: &Store) -> Result<Model, StoreError> {
        let mut model = Model::default();
        for waiting in store.held()?.waiting {
            let message = store.read(waiting.id)?.expect("what is held can be read");
            model.messages.insert(waiting.id, message);
            if waiting.tries > 0 {
                model.tries.insert(waiting.id, (waiting.tries, waiting.due_ms));
            }
        }
        for letter in store.dead(usize::MAX)? {
            let id = letter.message.id;
            model.messages.insert(id, letter.message);
            model.dead.insert(id, (letter.at_ms, letter.tries, letter.why));
        }
        Ok(model)
    }
}

/// A history: what the store held after each commit, and how many operations had been made.
struct History {
    disk: Disk,
    held: Vec<(usize, Model)>,
}

/// Batches of changes as random as `choose` is; `choose(n)` is below `n`.
fn batches(mut choose: impl FnMut(usize) -> usize) -> Vec<Vec<Change>> {
    let mut ids = Ids::new(5);
    let mut known: Vec<MessageId> = Vec::new();
    let mut batches = Vec::new();
    for _ in 0..4 + choose(8) {
        let mut batch = Vec::new();
        for _ in 0..1 + choose(12) {
            let old = (!known.is_empty()).then(|| known[choose(known.len())]);
            let change = match (choose(8), old) {
                (0..=1, Some(id)) => Change::Remove(id),
                (2, Some(id)) => {
                    Change::Again { id, tries: 3, due_ms: 77, why: "raised".to_owned() }
                }
                (3, Some(id)) => {
                    Change::Bury { id, at_ms: 99, tries: 8, why: "worker-lost".to_owned() }
                }
                (4, Some(id)) => Change::Revive(id),
                _ => {
                    let key = (choose(2) == 0).then_some("k");
                    let length = if choose(6) == 0 { 9_000 } else { choose(300) };
                    let mut message = message(&mut ids, key, &vec![7; length]);
                    message.program = Arc::from(format!("program-{}", choose(3)).as_bytes());
                    known.push(message.id);
                    Change::Put(message)
                }
            };
            batch.push(change);
        }
        batches.push(batch);
    }
    batches
}

impl History {
    fn of(batches: &[Vec<Change>]) -> History {
        let disk = Disk::default();
        let mut store = disk.open().unwrap();
        let mut model = Model::default();
        let mut held = vec![(disk.ops(), model.clone())];
        for batch in batches {
            store.commit(batch).unwrap();
            for change in batch {
                model.change(change);
            }
            held.push((disk.ops(), model.clone()));
        }
        assert_eq!(Model::of(&store).unwrap(), model);
        History { disk, held }
    }

    /// What may be there after a crash before operation `at`.
    fn allowed(&self, at: usize) -> &[(usize, Model)] {
        let last = self.held.iter().rposition(|(ops, _)| *ops <= at);
        let last = last.expect("a crash is after the making of the file");
        &self.held[last..self.held.len().min(last + 2)]
    }

    fn check(&self, at: usize, disk: &Disk) -> Store {
        let opened = disk.open();
        let store = opened.unwrap_or_else(|error| panic!("crash before operation {at}: {error}"));
        let found = Model::of(&store).unwrap();
        let fits = self.allowed(at).iter().any(|(_, model)| *model == found);
        assert!(fits, "crash before operation {at}: {found:?}");
        store
    }
}

/// A small generator, so that a case of proptest is one number.
fn chooser(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed | 1;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap() % below.max(1)
    }
}

fn part(choose: &mut impl FnMut(usize) -> usize, op: &Op) -> usize {
    let whole = match op {
        Op::Write(_, data) => data.len(),
        Op::Length(_) | Op::Sync => 1,
    };
    match choose(3) {
        0 => 0,
        1 => whole,
        _ => choose(whole + 1),
    }
}

#[test]
fn a_crash_at_any_write_loses_nothing_that_was_committed() {
    let mut runner = TestRunner::new(Config { cases: 12, ..Config::default() });
    let run = runner.run(&any::<u64>(), |seed| {
        let mut choose = chooser(seed);
        let history = History::of(&batches(&mut choose));
        // Before this the file has another name, and is thrown away after a crash.
        let made = history.held[0].0;
        for at in made..=history.disk.ops() {
            for _ in 0..3 {
                let disk = history.disk.crash(&[], at, |_, op| part(&mut choose, op));
                let start = disk.0.lock().unwrap().bytes.clone();
                let store = history.check(at, &disk);
                if choose(4) > 0 {
                    continue;
                }
                // A second crash, in the repair after the first.
                std::mem::forget(store);
                let again = choose(disk.ops() + 1);
                let disk = disk.crash(&start, again, |_, op| part(&mut choose, op));
                // And what was repaired takes more.
                let mut store = history.check(at, &disk);
                let mut expected = Model::of(&store).unwrap();
                let more = Change::Put(message(&mut Ids::new(9), None, b"more"));
                store.commit(std::slice::from_ref(&more)).unwrap();
                expected.change(&more);
                drop(store);
                assert_eq!(Model::of(&disk.open().unwrap()).unwrap(), expected);
            }
        }
        Ok(())
    });
    run.unwrap();
}

#[test]
fn the_last_commit_cut_short_is_there_whole_or_not_at_all() {
    let mut ids = Ids::new(5);
    let put = |ids: &mut Ids| Change::Put(message(ids, None, b"0123456789"));
    let batches: Vec<Vec<Change>> = (0..4).map(|_| vec![put(&mut ids), put(&mut ids)]).collect();
    let history = History::of(&batches);
    let (from, _) = history.held[history.held.len() - 2];
    let writes: Vec<(usize, usize)> = {
        let plates = history.disk.0.lock().unwrap();
        let ops = plates.ops.iter().enumerate().skip(from);
        ops.filter_map(|(at, op)| match op {
            Op::Write(_, data) => Some((at, data.len())),
            Op::Length(_) | Op::Sync => None,
        })
        .collect()
    };
    assert!(writes.iter().any(|(_, length)| *length < HEAD_BYTES_MAX), "no head: {writes:?}");
    let sync = history.disk.ops();
    let whole = |_: &Op| usize::MAX;
    for (cut, length) in writes {
        // The head, which names the newest commit, at each of its bytes; a page, whose bytes are all
        // covered by one checksum, at some.
        let step = if length < HEAD_BYTES_MAX { 1 } else { 89 };
        for kept in (0..length).step_by(step).chain([length - 1]) {
            // In the order of writing, and with everything but the cut one there.
            let disk =
                history.disk.crash(&[], cut + 1, |at, op| if at == cut { kept } else { whole(op) });
            history.check(cut + 1, &disk);
            let disk = history.disk.crash(
                &[],
                sync - 1,
                |at, op| {
                    if at == cut { kept } else { whole(op) }
                },
            );
            history.check(sync - 1, &disk);
        }
    }
}

#[test]
fn a_full_disk_at_any_write_refuses_the_batch_and_loses_nothing() {
    let mut choose = chooser(0xb0b);
    let batches = batches(&mut choose);
    let reference = History::of(&batches);
    let total = reference.disk.ops();
    for room in 0..total {
        let disk = Disk::default();
        disk.0.lock().unwrap().room = Some(room);
        let mut model = Model::default();
        let mut refused = None;
        match disk.open() {
            // The file was not whole, and has not got its name.
            Err(StoreError::DiskFull(_)) => continue,
            Err(other) => panic!("room for {room}: {other}"),
            Ok(mut store) => {
                for batch in &batches {
                    let mut next = model.clone();
                    batch.iter().for_each(|change| next.change(change));
                    match store.commit(batch) {
                        Ok(()) => model = next,
                        Err(StoreError::DiskFull(_)) => {
                            refused = Some(next);
                            break;
                        }
                        Err(other) => panic!("room for {room}: {other}"),
                    }
                }
            }
        }
        disk.0.lock().unwrap().room = None;
        let found = Model::of(&disk.open().unwrap()).unwrap();
        assert!(found == model || Some(found) == refused, "room for {room}");
    }
}
