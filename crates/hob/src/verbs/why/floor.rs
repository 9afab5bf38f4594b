//! What a warm call costs on this machine, now, however little its program does: an empty script
//! is called warm, by the program's own interpreter, as a caller calls it.
//!
//! Owns: a daemon for that alone, with directories of its own. Invariants: the caller's daemon,
//! receipts and directories are neither used nor seen; the daemon is killed with this process,
//! and nothing is left of it. Whatever goes wrong, there is no figure, and never a wrong one:
//! the receipts of the measured calls must say `warm`.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::event::poll;

use hob_daemon::recorder::reader;
use hob_os::clock::now_ns;
use hob_os::spawn::Image;
use hob_os::start::Start;
use hob_os::trace;

use super::hook;
use super::loader::Loader;
use super::run::{How, RunError, Runner};
use super::split::median;
use crate::connect;
use crate::verbs::request;

/// How long the daemon may take until it listens.
const LISTENS_NS: u64 = 2_000_000_000;
const LOOK_MS: u64 = 2;
/// Calls until one is warm, at most; calls after it, from which a zygote learns what to pay for
/// and the daemon how many copies are to wait; calls that are measured.
const WARMING_MAX: usize = 40;
const SETTLING: usize = 8;
const MEASURED: usize = 9;
/// Between calls: long enough that a copy waits again.
const GAP_MS: u64 = 25;
const STOPS_MS: u64 = 3_000;
/// What decides about hob itself in the caller's environment.
const OURS: [&[u8]; 2] = [b"HOB", b"XDG_STATE_HOME="];

/// The daemon; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Daemon {
    folder: PathBuf,
    pid: u32,
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
        let pid = runner.begin(&image).ok();
        // From here on whatever fails takes the folder with it.
        let daemon = Daemon { folder, pid: pid.unwrap_or(0), places };
        pid?;
        let deadline_ns = now_ns() + LISTENS_NS;
        while now_ns() < deadline_ns {
            if connect::connect(&daemon.folder.join("run")).is_ok() {
                return Some(daemon);
            }
            pause(LOOK_MS);
        }
        None
    }

    /// The file inside interpreters, where it has put that.
    pub(super) fn runtime(&self) -> PathBuf {
        self.folder.join("run/worker.py")
    }

    /// The median wall time of a warm call that does nothing, in nanoseconds; `None` if there
    /// could be none. `env` is the program's environment.
    pub(super) fn measure(
        &self,
        runner: &Runner,
        interpreter: &[u8],
        env: &[CString],
    ) -> Result<Option<u64>, RunError> {
        let script = self.folder.join("empty.py");
        if std::fs::write(&script, "").is_err() {
            return Ok(None);
        }
        let others = |entry: &&CString| !OURS.iter().any(|name| entry.to_bytes().starts_with(name));
        let env = env.iter().filter(others).chain(&self.places).cloned().collect();
        let image = image(&[b"run", interpreter, script.as_os_str().as_bytes()], env);
        let call = || -> Result<u64, RunError> {
            pause(GAP_MS);
            let seen = runner.run(&image, &Loader::default(), How::Plain)?;
            Ok(seen.ended_ns.saturating_sub(seen.begun_ns))
        };
        let mut tries = 0..WARMING_MAX;
        loop {
            if tries.next().is_none() {
                return Ok(None);
            }
            call()?;
            if self.were_warm(1) {
                break;
            }
        }
        for _ in 0..SETTLING {
            call()?;
        }
        let times: Result<Vec<u64>, RunError> = (0..MEASURED).map(|_| call()).collect();
        let times = times?;
        Ok(self.were_warm(MEASURED).then(|| median(times)))
    }

    /// Whether the last calls were warm, each of them.
    fn were_warm(&self, count: usize) -> bool {
        let _ = request::ask(&self.start(), "flush");
        let receipts = reader::last(&self.folder.join("state/hob"), count).unwrap_or_default();
        receipts.len() == count && receipts.iter().all(|receipt| receipt.warm)
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
        if self.pid != 0 {
            if let Ok((_, connection)) = request::ask(&self.start(), "stop") {
                let _ = request::wait_for_end(&connection, STOPS_MS);
            }
            trace::discard(self.pid);
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

fn pause(ms: u64) {
    let _ = poll(&mut [], Some(&connect::milliseconds(ms)));
}
