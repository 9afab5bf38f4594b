//! A daemon for what `hob why` tries, with directories of its own, and an empty script in it: what
//! a warm call costs on this machine, now, however little its program does.
//!
//! Invariants: the caller's daemon, receipts and directories are neither used nor seen; the daemon
//! is killed with this process, and nothing is left of it.
//!
//! Deliberately not here: which calls are made and measured (`trial`).

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::event::poll;

use hob_core::receipt::Receipt;
use hob_core::status::Status;
use hob_daemon::recorder::reader;
use hob_os::clock::now_ns;
use hob_os::spawn::Image;
use hob_os::start::Start;
use hob_os::trace::{self, Child};

use super::hook;
use super::loader::Loader;
use super::run::{How, RunError, Runner};
use crate::connect;
use crate::verbs::request;

/// How long the daemon may take until it listens.
const LISTENS_NS: u64 = 2_000_000_000;
const LOOK_MS: u64 = 2;
/// Calls until one is warm, at most.
const WARMING_MAX: usize = 40;
/// Between calls: long enough that a copy waits again.
pub(super) const GAP_MS: u64 = 25;
const STOPS_MS: u64 = 3_000;
/// What decides about hob itself in the caller's environment: whether it is used, and where.
const PLACE: &[u8] = b"HOB_DIR=";
const SWITCH: &[&[u8]] = &[b"HOB=", PLACE];
const STATE: &[&[u8]] = &[b"XDG_STATE_HOME="];

/// The daemon; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Daemon {
    folder: PathBuf,
    child: Option<Child>,
    /// Where it is, as its callers are told.
    places: Vec<CString>,
}

impl Daemon {
    /// Starts it; `None` where there can be none.
    pub(super) fn begin(runner: &Runner) -> Option<Daemon> {
        let folder = hook::folder().ok()?;
        let place = |name: &str, below: &str| {
            let value = folder.join(below).into_os_string().into_encoded_bytes();
            CString::new([name.as_bytes(), b"=", &value].concat()).ok()
        };
        let places: Vec<CString> = [place("HOB_DIR", "run"), place("XDG_STATE_HOME", "state")]
            .into_iter()
            .flatten()
            .collect();
        let mut env = places.clone();
        env.push(c"HOB_IDLE_EXIT_S=20".to_owned());
        let image = image(&[b"daemon"], env);
        let child = runner.begin(&image).ok();
        // From here on whatever fails takes the folder with it.
        let daemon = Daemon { folder, child, places };
        daemon.child.as_ref()?;
        let deadline_ns = now_ns() + LISTENS_NS;
        while now_ns() < deadline_ns {
            if connect::connect(&daemon.folder.join("run")).is_ok() {
                return Some(daemon);
            }
            pause(LOOK_MS);
        }
        None
    }

    /// The folder of the files inside interpreters, where it has put them.
    pub(super) fn runtimes(&self) -> PathBuf {
        self.folder.join("run")
    }

    /// Where a learning run leaves its notes.
    pub(super) fn notes(&self) -> PathBuf {
        self.folder.join("notes")
    }

    /// The call of an empty script by this interpreter, warm from now on; `None` if it stays cold.
    /// `env` is the program's environment.
    pub(super) fn warm_empty(
        &self,
        runner: &Runner,
        interpreter: &[u8],
        env: &[CString],
    ) -> Result<Option<Image>, RunError> {
        let script = self.folder.join("empty.py");
        if std::fs::write(&script, "").is_err() {
            return Ok(None);
        }
        let words: [&[u8]; 2] = [interpreter, script.as_os_str().as_bytes()];
        // If it is not warm for whatever reason, that is noted in its own state directory.
        let env: Vec<CString> = without(env, STATE).chain(self.places.iter().cloned()).collect();
        let call = self.call(&words, &env);
        for _ in 0..WARMING_MAX {
            pause(GAP_MS);
            runner.run(&call, &Loader::default(), How::Plain)?;
            if self.newest(1).first().is_some_and(Receipt::found_its_own) {
                return Ok(Some(call));
            }
        }
        Ok(None)
    }

    /// A call of this daemon with these words. The environment is the caller's but for the name
    /// of this daemon's directory.
    pub(super) fn call(&self, words: &[&[u8]], env: &[CString]) -> Image {
        let words: Vec<&[u8]> = std::iter::once(&b"run"[..]).chain(words.iter().copied()).collect();
        let place = self.places.iter().filter(|entry| entry.to_bytes().starts_with(PLACE));
        image(&words, without(env, SWITCH).chain(place.cloned()).collect())
    }

    /// The newest receipts, the newest first.
    pub(super) fn newest(&self, count: usize) -> Vec<Receipt> {
        let _ = request::ask(&self.start(), "flush");
        reader::last(&self.folder.join("state/hob"), count).unwrap_or_default()
    }

    /// Whether some program is being made warm at this moment.
    pub(super) fn is_warming(&self) -> bool {
        let status = request::ask(&self.start(), "status").map(|(answer, _)| answer);
        let status = status.ok().and_then(|answer| serde_json::from_value::<Status>(answer).ok());
        let pools = status.map(|status| status.pools).unwrap_or_default();
        pools.iter().any(|pool| match pool.state.as_str() {
            "learning" | "warming" => true,
            "warm" => pool.ready == 0,
            _ => false,
        })
    }

    /// As a caller of this daemon begins.
    fn start(&self) -> Start {
        let kept =
            |entry: &CString| -> &'static CStr { Box::leak(entry.clone().into_boxed_c_str()) };
        Start { argv: Vec::new(), env: self.places.iter().map(kept).collect() }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(child) = &self.child {
            if let Ok((_, connection)) = request::ask(&self.start(), "stop") {
                let _ = request::wait_for_end(connection, STOPS_MS);
            }
            trace::discard(child);
        }
        // What cannot be removed holds an empty script and receipts of it.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// hob itself, with these words.
fn image(words: &[&[u8]], env: Vec<CString>) -> Image {
    let words = words.iter().filter_map(|word| CString::new(*word).ok());
    let argv = std::iter::once(c"hob".to_owned()).chain(words).collect();
    Image { file: c"/proc/self/exe".to_owned(), argv, env }
}

/// The environment without these.
fn without<'a>(env: &'a [CString], names: &'a [&[u8]]) -> impl Iterator<Item = CString> + 'a {
    let is_one = |entry: &&CString| names.iter().any(|name| entry.to_bytes().starts_with(name));
    env.iter().filter(move |entry| !is_one(entry)).cloned()
}

pub(super) fn pause(ms: u64) {
    let _ = poll(&mut [], Some(&connect::milliseconds(ms)));
}
