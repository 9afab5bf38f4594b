//! What is on the disk: one redb file with five tables.
//!
//! ```text
//!   messages  id ─▶ program's number, key, content type, created, payload
//!   programs  number ─▶ program, once for all its messages
//!   tries     id ─▶ how often it failed, when it is due, why        only after a failure
//!   dead      id ─▶ when it was given up, after how many tries, why
//!   meta      "version" ─▶ 1
//! ```
//! Invariants:
//! - a batch is one transaction: after [`Store::commit`] returns `Ok`, all of it is synced, and
//!   after a crash either all or nothing of a batch is there (redb's pages carry checksums);
//! - the file is ours, 0600, in a directory of ours, 0700, and no link is followed to it;
//! - redb holds a lock on the file, so no second process opens it.
//!
//! The rule for a change: a higher version is refused by an older build (it would lose what it
//! does not know of), and an older one is read by every later build. It waits for the disk, so
//! only the outbox's thread calls it.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use redb::backends::FileBackend;
use redb::{
    AccessGuard, Builder, Database, DatabaseError, ReadableDatabase, ReadableTable,
    ReadableTableMetadata, StorageBackend, TableDefinition, WriteTransaction,
};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::id::MessageId;
use super::{DeadLetter, Message, Waiting, size};
use crate::recorder::{Missing, PlaceError, is_our_file, open_place};

/// The name of the directory under the state directory.
pub(super) const PLACE: &str = "outbox";
/// The name of the file in it.
pub(super) const FILE: &str = "outbox.redb";
/// What it is called until it is whole.
const NEW_FILE: &str = "outbox.redb.new";
/// The version that this build writes.
const VERSION: u64 = 1;
/// How much of the file redb keeps in memory.
const CACHE_BYTES: usize = 8 * 1024 * 1024;
/// So many programs stay known while there are no messages.
const PROGRAMS_IDLE_MAX: usize = 64;
/// A file that is not larger is never compacted.
const COMPACT_BYTES_MIN: u64 = 16 * 1024 * 1024;
/// A file is compacted when it is so many times larger than what it holds.
const COMPACT_TIMES: u64 = 4;

type Body = (u64, Option<&'static [u8]>, &'static [u8], u64, &'static [u8]);
const MESSAGES: TableDefinition<'_, u128, Body> = TableDefinition::new("messages");
const PROGRAMS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("programs");
const TRIES: TableDefinition<'_, u128, (u32, u64, &str)> = TableDefinition::new("tries");
const DEAD: TableDefinition<'_, u128, (u64, u32, &str)> = TableDefinition::new("dead");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

/// One change of what is on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// A new message.
    Put(Message),
    /// It is finished, or was dropped.
    Remove(MessageId),
    /// It failed, and is tried again.
    Again { id: MessageId, tries: u32, due_ms: u64, why: String },
    /// It failed too often.
    Bury { id: MessageId, at_ms: u64, tries: u32, why: String },
    /// A dead letter is to be tried again, as if it were new.
    Revive(MessageId),
}

/// What an opened store holds.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// What is to be delivered, by id.
    pub(super) waiting: Vec<Waiting>,
    /// How many dead letters there are, and how many bytes they hold.
    pub(super) dead: u64,
    pub(super) dead_bytes: u64,
    /// The highest id of all.
    pub(super) last: Option<MessageId>,
}

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    /// The place cannot be used.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// There is none yet.
    #[error("outbox-missing: there is no outbox")]
    Missing,
    /// Something else stands in the file's place.
    #[error("outbox-foreign: {0} is not a file of ours")]
    Foreign(PathBuf),
    /// Another process has it open.
    #[error("outbox-taken: {0} is open in another process; `hob doctor` names it")]
    Taken(PathBuf),
    /// A later build has written it.
    #[error("outbox-newer: {path} has version {version}, and this build knows {VERSION}")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u64,
    },
    /// The disk has no room, or the user's share of it is used up.
    #[error("outbox-disk-full: {0}")]
    DiskFull(std::io::Error),
    /// The disk failed.
    #[error("outbox-disk-failed: {0}")]
    Disk(std::io::Error),
    /// The content is not what redb or this module wrote.
    #[error("outbox-damaged: {path}: {why}; move it away to go on without what it holds")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What redb says.
        why: String,
    },
}

/// The opened file.
pub(super) struct Store {
    path: PathBuf,
    database: Database,
    programs: Programs,
}

/// The programs that are on the disk, by their numbers.
#[derive(Debug, Default)]
struct Programs {
    names: HashMap<u64, Arc<[u8]>>,
    numbers: HashMap<Arc<[u8]>, u64>,
    next: u64,
}

impl Store {
    /// Opens the outbox under `state_dir`, and makes it if there is none.
    pub(super) fn open(state_dir: &Path) -> Result<Store, StoreError> {
        let path = state_dir.join(PLACE).join(FILE);
        let place = open_place(state_dir, PLACE, Missing::Create)?
            .ok_or_else(|| by_cause(Errno::NOENT.into()))?;
        match Store::open_file(&place, FILE, OFlags::empty(), &path) {
            Err(StoreError::Missing) => Store::create(&place, &path),
            opened => opened,
        }
    }

    /// Makes the file under another name first: what a crash leaves of a new file is not one that
    /// can be opened.
    fn create(place: &OwnedFd, path: &Path) -> Result<Store, StoreError> {
        let system = |errno: Errno| by_cause(errno.into());
        match rustix::fs::unlinkat(place, NEW_FILE, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(system(errno)),
        }
        let store = Store::open_file(place, NEW_FILE, OFlags::CREATE | OFlags::EXCL, path)?;
        // Another daemon may have been faster: its file stays.
        let flags = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(place, NEW_FILE, place, FILE, flags) {
            Ok(()) => {}
            Err(Errno::EXIST | Errno::NOENT) => return Err(StoreError::Taken(path.to_owned())),
            Err(errno) => return Err(system(errno)),
        }
        rustix::fs::fsync(place).map_err(system)?;
        Ok(store)
    }

    fn open_file(
        place: &OwnedFd,
        name: &str,
        more: OFlags,
        path: &Path,
    ) -> Result<Store, StoreError> {
        let system = |errno: Errno| by_cause(errno.into());
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | more;
        let file = match rustix::fs::openat(place, name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Err(StoreError::Missing),
            Err(Errno::LOOP | Errno::ISDIR) => return Err(StoreError::Foreign(path.to_owned())),
            Err(errno) => return Err(system(errno)),
        };
        if !is_our_file(&rustix::fs::fstat(&file).map_err(system)?) {
            return Err(StoreError::Foreign(path.to_owned()));
        }
        rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR).map_err(system)?;
        let backend = FileBackend::new(File::from(file)).map_err(|error| opening(path, error))?;
        Store::on(backend, path.to_owned())
    }

    /// Opens what a backend holds. `path` is what it is called.
    pub(super) fn on(backend: impl StorageBackend, path: PathBuf) -> Result<Store, StoreError> {
        let mut builder = Builder::new();
        builder.set_cache_size(CACHE_BYTES);
        let database =
            builder.create_with_backend(backend).map_err(|error| opening(&path, error))?;
        let mut store = Store { path, database, programs: Programs::default() };
        store.check_version()?;
        store.read_programs()?;
        Ok(store)
    }

    /// Writes the version into a new file, and refuses one from a later build.
    fn check_version(&self) -> Result<(), StoreError> {
        let found = self.reading(|| {
            let transaction = self.database.begin_read()?;
            match transaction.open_table(META) {
                Ok(meta) => Ok(meta.get("version")?.map(|version| version.value())),
                Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
                Err(error) => Err(error.into()),
            }
        })?;
        match found {
            Some(version) if version > VERSION => {
                Err(StoreError::Newer { path: self.path.clone(), version })
            }
            Some(_) => Ok(()),
            None => self.writing(|transaction| {
                transaction.open_table(META)?.insert("version", VERSION)?;
                transaction.open_table(MESSAGES)?;
                transaction.open_table(PROGRAMS)?;
                transaction.open_table(TRIES)?;
                transaction.open_table(DEAD)?;
                Ok(())
            }),
        }
    }

    fn read_programs(&mut self) -> Result<(), StoreError> {
        let mut programs = Programs::default();
        self.reading(|| {
            for entry in self.database.begin_read()?.open_table(PROGRAMS)?.iter()? {
                let (number, name) = entry?;
                programs.add(number.value(), Arc::from(name.value()));
            }
            Ok(())
        })?;
        self.programs = programs;
        Ok(())
    }

    /// Reads everything but the payloads, in the order of the ids.
    pub(super) fn held(&self) -> Result<Held, StoreError> {
        self.reading(|| {
            let transaction = self.database.begin_read()?;
            let (messages, tries, dead) = (
                transaction.open_table(MESSAGES)?,
                transaction.open_table(TRIES)?,
                transaction.open_table(DEAD)?,
            );
            let mut held = Held::default();
            for entry in messages.iter()? {
                let (id, body) = entry?;
                let id = MessageId::from_number(id.value());
                let (program, key, content_type, _, payload) = body.value();
                let mut waiting = Waiting {
                    id,
                    program: self.programs.name(program)?,
                    key: key.map(<[u8]>::to_vec),
                    bytes: size(key, content_type, payload),
                    tries: 0,
                    due_ms: 0,
                };
                held.last = Some(id);
                if dead.get(id.number())?.is_some() {
                    held.dead += 1;
                    held.dead_bytes += waiting.bytes;
                    continue;
                }
                if let Some(tried) = tries.get(id.number())? {
                    (waiting.tries, waiting.due_ms, _) = tried.value();
                }
                held.waiting.push(waiting);
            }
            Ok(held)
        })
    }

    /// Reads one message whole.
    pub(super) fn read(&self, id: MessageId) -> Result<Option<Message>, StoreError> {
        self.reading(|| {
            let messages = self.database.begin_read()?.open_table(MESSAGES)?;
            messages.get(id.number())?.map(|body| self.message(id, &body)).transpose()
        })
    }

    /// The first `max` dead letters, by id.
    pub(super) fn dead(&self, max: usize) -> Result<Vec<DeadLetter>, StoreError> {
        self.reading(|| {
            let transaction = self.database.begin_read()?;
            let (messages, dead) =
                (transaction.open_table(MESSAGES)?, transaction.open_table(DEAD)?);
            let mut letters = Vec::new();
            for entry in dead.iter()?.take(max) {
                let (id, end) = entry?;
                let Some(body) = messages.get(id.value())? else { continue };
                let (at_ms, tries, why) = end.value();
                letters.push(DeadLetter {
                    message: self.message(MessageId::from_number(id.value()), &body)?,
                    at_ms,
                    tries,
                    why: why.to_owned(),
                });
            }
            Ok(letters)
        })
    }

    fn message(&self, id: MessageId, body: &AccessGuard<'_, Body>) -> Result<Message, redb::Error> {
        let (program, key, content_type, created_ms, payload) = body.value();
        Ok(Message {
            id,
            program: self.programs.name(program)?,
            key: key.map(<[u8]>::to_vec),
            content_type: content_type.to_vec(),
            payload: Bytes::copy_from_slice(payload),
            created_ms,
        })
    }

    /// Makes these changes in one transaction, and syncs it.
    pub(super) fn commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let new = self.programs.number(changes);
        self.writing(|transaction| {
            for number in new {
                let name = self.programs.name(number)?;
                transaction.open_table(PROGRAMS)?.insert(number, &*name)?;
            }
            let mut messages = transaction.open_table(MESSAGES)?;
            let mut tries = transaction.open_table(TRIES)?;
            let mut dead = transaction.open_table(DEAD)?;
            let mut newest = None;
            for change in changes {
                match change {
                    Change::Put(message) => {
                        let body: (u64, Option<&[u8]>, &[u8], u64, &[u8]) = (
                            self.programs.number_of(&message.program, &mut newest),
                            message.key.as_deref(),
                            &message.content_type,
                            message.created_ms,
                            &message.payload,
                        );
                        messages.insert(message.id.number(), body)?;
                    }
                    Change::Remove(id) => {
                        messages.remove(id.number())?;
                        tries.remove(id.number())?;
                        dead.remove(id.number())?;
                    }
                    Change::Again { id, tries: count, due_ms, why } => {
                        let alive = dead.get(id.number())?.is_none();
                        if alive && messages.get(id.number())?.is_some() {
                            tries.insert(id.number(), (*count, *due_ms, why.as_str()))?;
                        }
                    }
                    Change::Bury { id, at_ms, tries: count, why } => {
                        tries.remove(id.number())?;
                        if messages.get(id.number())?.is_some() {
                            dead.insert(id.number(), (*at_ms, *count, why.as_str()))?;
                        }
                    }
                    Change::Revive(id) => {
                        dead.remove(id.number())?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Forgets programs without messages, when there are many names and no message.
    pub(super) fn forget_programs(&mut self) -> Result<(), StoreError> {
        if self.programs.names.len() <= PROGRAMS_IDLE_MAX {
            return Ok(());
        }
        self.writing(|transaction| {
            // Whoever says that there is no message may not know of one that a failed sync left.
            if transaction.open_table(MESSAGES)?.is_empty()? {
                transaction.open_table(PROGRAMS)?.retain(|_, _| false)?;
            }
            Ok(())
        })?;
        self.read_programs()
    }

    /// Gives back to the file system what the messages that are gone have left, if it is much.
    /// `bytes` is what the messages hold.
    pub(super) fn compact(&mut self, bytes: u64) -> Result<(), StoreError> {
        let size = std::fs::metadata(&self.path).map_err(by_cause)?.len();
        if size < COMPACT_BYTES_MIN || size / COMPACT_TIMES < bytes {
            return Ok(());
        }
        match self.database.compact() {
            Ok(_) => Ok(()),
            Err(redb::CompactionError::Storage(error)) => Err(damage(&self.path, error.into())),
            Err(other) => Err(damage(&self.path, other.into())),
        }
    }

    fn reading<T>(&self, read: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, StoreError> {
        read().map_err(|error| damage(&self.path, error))
    }

    fn writing(
        &self,
        write: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), StoreError> {
        let commit = || {
            let transaction = self.database.begin_write()?;
            write(&transaction)?;
            transaction.commit()?;
            Ok(())
        };
        commit().map_err(|error| damage(&self.path, error))
    }
}

impl Programs {
    fn add(&mut self, number: u64, name: Arc<[u8]>) {
        self.next = self.next.max(number + 1);
        self.numbers.insert(Arc::clone(&name), number);
        self.names.insert(number, name);
    }

    fn name(&self, number: u64) -> Result<Arc<[u8]>, redb::Error> {
        let missing = || redb::Error::Corrupted(format!("no program has the number {number}"));
        self.names.get(&number).cloned().ok_or_else(missing)
    }

    /// The number of a program that has one. Its name is long, and most often in memory where the
    /// one before it is.
    fn number_of<'a>(&self, name: &'a Arc<[u8]>, newest: &mut Option<(&'a Arc<[u8]>, u64)>) -> u64 {
        if let Some((known, number)) = newest
            && Arc::ptr_eq(known, name)
        {
            return *number;
        }
        let number = self.numbers.get(name).copied().unwrap_or_default();
        *newest = Some((name, number));
        number
    }

    /// Gives numbers to the programs of new messages that have none, and says which.
    fn number(&mut self, changes: &[Change]) -> Vec<u64> {
        let mut new = Vec::new();
        let mut newest: Option<&Arc<[u8]>> = None;
        for change in changes {
            if let Change::Put(message) = change
                && !newest.is_some_and(|known| Arc::ptr_eq(known, &message.program))
                && !self.numbers.contains_key(*newest.insert(&message.program))
            {
                new.push(self.next);
                self.add(self.next, Arc::clone(&message.program));
            }
        }
        new
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.path).finish_non_exhaustive()
    }
}

fn opening(path: &Path, error: DatabaseError) -> StoreError {
    if matches!(error, DatabaseError::DatabaseAlreadyOpen) {
        return StoreError::Taken(path.to_owned());
    }
    damage(path, error.into())
}

fn damage(path: &Path, error: redb::Error) -> StoreError {
    let why = error.to_string();
    if let redb::Error::Io(error) = error
        && error.kind() != std::io::ErrorKind::InvalidData
    {
        return by_cause(error);
    }
    StoreError::Damaged { path: path.to_owned(), why }
}

fn by_cause(error: std::io::Error) -> StoreError {
    // The last is what a limit of the file's size gives.
    let full = [Errno::NOSPC, Errno::DQUOT, Errno::FBIG];
    if Errno::from_io_error(&error).is_some_and(|errno| full.contains(&errno)) {
        return StoreError::DiskFull(error);
    }
    StoreError::Disk(error)
}
