//! The process of a recording: it copies what is new in the rings, off everyone's path.
//!
//! It looks four times a second, and more often when a ring fills fast. What was overwritten before
//! it looked is counted. It ends when it is told to, by its time, with a call that it waits for, and
//! always with the daemon.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hob_core::receipt::Receipt;
use hob_daemon::recorder::recording::{self, Head, Kept, Recording};
use hob_daemon::recorder::{format, make_place, reader};
use hob_os::ring::{self, Follower, RECORD_BYTES, RECORDS};
use hob_os::start::Start;
use hob_os::{spawn, uds};
use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde_json::{Value, json};

use super::super::super::log::flush;
use super::super::super::rings::{self, RECORDINGS};
use super::{Begin, ended, talk};
use crate::show::clock::moment;
use crate::show::entries;
use crate::{connect, fallback};

/// How long it is between two looks, and where a ring fills fast.
const LOOK_MS: u64 = 250;
const LOOK_FAST_MS: u64 = 10;
/// Records of a look after which the next one comes sooner.
const FAST: usize = RECORDS / 8;
/// Among how many of the newest calls one is looked for that ends a recording.
const CALLS_A_LOOK: usize = 1000;
/// The most receipts of a recording, the newest.
const RECEIPTS_MAX: usize = 100_000;
/// How long who asked may take to read the answer.
const READS: Duration = Duration::from_secs(10);

/// A recording that is being made.
struct Keeper<'a> {
    start: &'a Start,
    asked: &'a Begin,
    state_dir: PathBuf,
    /// When it began to record; `None`: it waits.
    began: Option<Timestamp>,
    followed: Vec<(PathBuf, Follower)>,
    kept: Vec<Kept>,
    /// Why it could not be written.
    error: Option<String>,
}

/// Records until it ends; the exit code.
pub(super) fn run(start: &Start, asked: &Begin) -> u8 {
    let ready = spawn::readiness();
    let directory = connect::directory(start);
    let (Some(state_dir), Some(daemon)) = (fallback::state_dir(), daemon(&directory)) else {
        return 1;
    };
    let Some(listener) = talk::listen(&directory, &asked.name) else { return 1 };
    let keeper = Keeper {
        start,
        asked,
        state_dir,
        began: None,
        followed: Vec::new(),
        kept: Vec::new(),
        error: None,
    };
    keeper.go_on((&daemon, &listener), ready);
    let _ = std::fs::remove_file(talk::socket(&directory, &asked.name));
    0
}

/// A descriptor of the daemon that becomes readable when it has ended.
fn daemon(directory: &Path) -> Option<OwnedFd> {
    let socket = connect::connect(directory).ok()?;
    let pid = i32::try_from(uds::peer_pid(&socket).ok()?).ok().and_then(Pid::from_raw)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

impl Keeper<'_> {
    fn go_on(mut self, (daemon, listener): (&OwnedFd, &UnixListener), ready: Option<OwnedFd>) {
        let begins = Instant::now() + self.asked.after.unwrap_or_default();
        let mut wait_ms = LOOK_MS;
        if self.asked.after.is_none() {
            self.begin();
        }
        if let Some(ready) = ready {
            let _ = rustix::io::write(&ready, &[1]);
        }
        loop {
            let looked = Instant::now();
            let next = [Some(begins), self.ends(begins)].into_iter().flatten();
            let next = next.filter(|at| *at > looked).min();
            let left = next.map_or(u64::MAX, |at| {
                u64::try_from((at - looked).as_millis()).unwrap_or(u64::MAX).saturating_add(1)
            });
            let wait = connect::milliseconds(wait_ms.min(left));
            let mut fds =
                [PollFd::new(daemon, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
            let _ = poll(&mut fds, Some(&wait));
            let [is_over, is_asked] = fds.map(|fd| !fd.revents().is_empty());
            if self.began.is_none() && Instant::now() >= begins {
                self.begin();
            }
            wait_ms = if self.look() >= FAST { LOOK_FAST_MS } else { LOOK_MS };
            if is_over {
                self.exit();
                return;
            }
            if is_asked && self.answer(listener) {
                return;
            }
            if self.error.is_none() {
                let is_late = self.ends(begins).is_some_and(|at| Instant::now() >= at);
                let why = if is_late {
                    "time"
                } else if self.is_met() {
                    "met"
                } else {
                    continue;
                };
                self.look();
                if self.write(why).is_ok() {
                    return;
                }
            }
        }
    }

    /// When its time is over.
    fn ends(&self, begins: Instant) -> Option<Instant> {
        self.asked.time.and_then(|time| begins.checked_add(time))
    }

    /// What the rings have now is passed over.
    fn begin(&mut self) {
        self.began = Some(Timestamp::now());
        self.find();
        self.followed.iter_mut().for_each(|(_, ring)| _ = ring.skip());
    }

    /// Follows rings that are not followed yet.
    fn find(&mut self) {
        for directory in rings::directories(self.start) {
            for file in ring::files(&directory) {
                let Ok(follower) = Follower::open(&file) else { continue };
                let inode = follower.inode();
                let is_known =
                    |(path, known): &(PathBuf, Follower)| *path == file && known.inode() == inode;
                if self.followed.len() < recording::RINGS_MAX && !self.followed.iter().any(is_known)
                {
                    self.followed.push((file, follower));
                    self.kept.push(Kept::default());
                }
            }
        }
    }

    /// Copies what is new; the most new records of a ring.
    fn look(&mut self) -> usize {
        if self.began.is_none() {
            return 0;
        }
        self.find();
        let mut most = 0;
        for ((_, ring), kept) in self.followed.iter_mut().zip(&mut self.kept) {
            let Ok(news) = ring.news() else { continue };
            most = most.max(news.records.len());
            kept.add(news);
        }
        recording::bound(&mut self.kept, self.asked.keep / RECORD_BYTES);
        most
    }

    /// Whether a call has come with which it ends.
    fn is_met(&self) -> bool {
        let (Some(when), Some(began)) = (&self.asked.when, self.began) else { return false };
        flush(self.start);
        let recent = entries::recent(&self.state_dir, CALLS_A_LOOK).unwrap_or_default();
        let newer = recent.iter().filter(|entry| moment(entry.at()).is_some_and(|at| at >= began));
        newer.into_iter().any(|entry| when.is_met_by(entry))
    }

    fn recording(&self, why: &str) -> Recording {
        let began = self.began.unwrap_or_else(Timestamp::now);
        let rings = self.kept.iter().filter(|kept| !kept.is_empty() || kept.gone() != (0, 0));
        let rings = rings.map(Kept::copied).collect();
        flush(self.start);
        let receipts = receipts(&self.state_dir, began);
        recording::of(head(&self.asked.name, began, why), rings, receipts)
    }

    /// Writes it where it is kept.
    fn write(&mut self, why: &str) -> Result<PathBuf, String> {
        let file = rings::kept(&self.state_dir, &self.asked.name);
        let bytes = self.recording(why).encode();
        let written = make_place(&self.state_dir, RECORDINGS).map_err(|error| error.to_string());
        let written = written.and_then(|_| {
            let part = file.with_extension("part");
            let renamed = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, &file));
            renamed.map_err(|error| {
                let _ = std::fs::remove_file(&part);
                format!("cannot write {}: {error}", file.display())
            })
        });
        self.error = written.as_ref().err().cloned();
        ended::forget_old(&self.state_dir);
        written.map(|()| file)
    }

    /// The daemon has ended: it is written where that was asked for, or where it is kept.
    fn exit(&mut self) {
        let asked = self.asked.on_exit.as_ref();
        let written =
            asked.map(|file| std::fs::write(file, self.recording("daemon-ended").encode()));
        if !matches!(written, Some(Ok(()))) {
            let _ = self.write("daemon-ended");
        }
    }

    /// Answers who asks; whether it ends.
    fn answer(&mut self, listener: &UnixListener) -> bool {
        let Ok((mut stream, _)) = listener.accept() else { return false };
        let mut what = [0];
        let timeouts = stream.set_read_timeout(Some(READS));
        let timeouts = timeouts.and_then(|()| stream.set_write_timeout(Some(READS)));
        // Who only looks whether it is there closes at once.
        if timeouts.is_err() || stream.read_exact(&mut what).is_err() {
            return false;
        }
        let say = |mut stream: UnixStream, value: &Value| {
            let _ = stream.write_all(value.to_string().as_bytes());
        };
        match what[0] {
            talk::DUMP => _ = stream.write_all(&self.recording("dumped").encode()),
            talk::STATE => say(stream, &self.state()),
            talk::STOP => match self.write("stopped") {
                Ok(file) => {
                    say(stream, &json!({ "file": file }));
                    return true;
                }
                Err(error) => say(stream, &json!({ "error": error })),
            },
            talk::DROP => {
                say(stream, &json!({}));
                return true;
            }
            _ => {}
        }
        false
    }

    fn state(&self) -> Value {
        let state = match (self.began, &self.error) {
            (_, Some(_)) => "not-written",
            (None, _) => "waits",
            (Some(_), _) => "records",
        };
        let gone = self.kept.iter().map(Kept::gone);
        json!({
            "schema": "hob.record/1", "name": self.asked.name, "state": state,
            "began": self.began.map(format::moment),
            "notes": self.kept.iter().map(Kept::len).sum::<usize>(),
            "gone": gone.map(|(lost, dropped)| lost + dropped).sum::<u64>(),
            "when": self.asked.when.as_ref().map(|when| when.text().to_owned()),
            "error": self.error,
        })
    }
}

/// The head of a recording that ends now.
pub(super) fn head(name: &str, began: Timestamp, why: &str) -> Head {
    Head {
        schema: recording::SCHEMA.to_owned(),
        name: name.to_owned(),
        began: format::moment(began),
        ended: format::moment(Timestamp::now()),
        why: why.to_owned(),
        rings: Vec::new(),
        receipts_bytes: 0,
    }
}

/// The receipts of calls that came after a moment or went on then, the newest first.
pub(super) fn receipts(state_dir: &Path, began: Timestamp) -> Vec<Receipt> {
    let Ok(newest) = reader::newest(state_dir) else { return Vec::new() };
    let began_us = began.as_microsecond();
    let ended = |receipt: &Receipt| {
        let took = i64::try_from(receipt.total_us).unwrap_or(i64::MAX);
        moment(&receipt.at).map_or(i64::MAX, |at| at.as_microsecond().saturating_add(took))
    };
    // They are in the order of their ends.
    newest.take_while(|receipt| ended(receipt) >= began_us).take(RECEIPTS_MAX).collect()
}
