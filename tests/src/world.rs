//! One test's own hob: its folder, its commands, its receipts, and its end.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::run::{End, Outcome, Run};
use crate::{leftovers, wait};

/// How often a program may be called until a call of it is warm.
const WARMING_CALLS_MAX: usize = 200;
/// How long a pool may be in the making until the next call is made all the same.
const MAKING_MAX: Duration = Duration::from_secs(10);
/// How often that is looked at, each time by `hob status`.
const MAKING_LOOK: Duration = Duration::from_millis(50);
/// Reasons of a cold call whose program's pool is being made, or will be at once.
const MAKING: [&str; 5] = ["learning", "being-learned", "warming", "edited", "stale"];
/// How many calls may be late, one after another.
const LATE_CALLS_MAX: usize = 20;
/// Why a call runs cold that no daemon had in time: what its caller wrote, and what the daemon did
/// when it saw it.
const LATE: [&str; 3] = ["no-answer", "connect-timeout", "caller-left"];
/// Reasons that pass in tests, beside those that do so everywhere: a zygote that a test killed is
/// made anew after a moment, and a variable that a test has changed stays the same from then on.
const PASSING_HERE: [&str; 2] = ["variables", "warm-failed"];

/// Whether a call with this reason is warm a moment later.
pub(crate) fn is_passing(reason: &str) -> bool {
    PASSING_HERE.contains(&reason) || hob_core::receipt::reason::is_passing(reason)
}

/// A private hob. Dropping it stops its daemon and checks that nothing is left.
#[derive(Debug)]
pub struct World {
    folder: Option<TempDir>,
    binary: PathBuf,
}

/// Where programs are looked for. `HOB_TEST_PATH` comes first: another `python3` to test with.
fn programs() -> OsString {
    let usual = OsStr::new("/usr/local/bin:/usr/bin:/bin");
    let Some(mut path) = std::env::var_os("HOB_TEST_PATH") else { return usual.to_owned() };
    path.push(":");
    path.push(usual);
    path
}

impl World {
    /// Makes the folders. No daemon runs yet.
    ///
    /// # Panics
    /// When there is no binary to test.
    #[must_use]
    pub fn new() -> World {
        World::of(binary())
    }

    /// The same, of another binary.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn of(binary: PathBuf) -> World {
        let world = World::empty_of(binary);
        world.share_bytecode();
        world
    }

    /// The same, of which even the state has nothing yet: not what interpreters keep.
    ///
    /// # Panics
    /// When there is no binary to test.
    #[must_use]
    pub fn empty() -> World {
        World::empty_of(binary())
    }

    fn empty_of(binary: PathBuf) -> World {
        close_on_exec();
        assert!(
            binary.is_file(),
            "{}: missing; run `make quick`, or set HOB_BIN",
            binary.display()
        );
        let folder = tempfile::Builder::new().prefix("hob-test-").tempdir();
        let world = World { folder: Some(folder.expect("a folder can be made")), binary };
        for name in ["home", "state", "work"] {
            std::fs::create_dir(world.path(name)).expect("a folder can be made");
        }
        world
    }

    /// What interpreters keep of the runtimes as bytecode is named after what it was made of, and is
    /// each world's alike: it is compiled once, not in each.
    fn share_bytecode(&self) {
        use std::os::unix::fs::DirBuilderExt;
        let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tmp/bytecode");
        let private = |folder: &Path| {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.expect("a folder can be made");
        };
        private(&shared);
        private(&self.path("state/hob"));
        let link = std::os::unix::fs::symlink(shared, self.path("state/hob/bytecode"));
        link.expect("a link can be made");
    }

    /// The same, with a daemon that runs.
    #[must_use]
    pub fn started() -> World {
        let world = World::new();
        world.hob(&["start"]).go().succeeded();
        world
    }

    /// A path in this world's folder.
    ///
    /// # Panics
    /// Never: the folder lives as long as the world.
    #[must_use]
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.as_ref().expect("the folder is there until the end").path().join(name)
    }

    /// The socket's directory.
    #[must_use]
    pub fn hob_dir(&self) -> PathBuf {
        self.path("run")
    }

    /// The binary under test.
    #[must_use]
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// Writes a file into the working folder and returns its path.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path("work").join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).expect("a folder can be made");
        }
        let _alone = crate::alone();
        std::fs::write(&path, text).expect("a file can be written");
        path
    }

    /// Writes an executable file.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn executable(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.file(name, text);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("a mode can be set");
        path
    }

    /// Any command in this world.
    #[must_use]
    pub fn run<S: AsRef<OsStr>>(&self, argv: &[S]) -> Run {
        let argv = argv.iter().map(|word| word.as_ref().to_owned()).collect();
        Run::new(argv, &self.path("work"), self.environment())
    }

    /// `hob` with these words.
    #[must_use]
    pub fn hob<S: AsRef<OsStr>>(&self, words: &[S]) -> Run {
        self.run(&[&self.binary]).args(words)
    }

    /// What every process of this world has in its environment.
    #[must_use]
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut environment: Vec<(OsString, OsString)> = Vec::new();
        for (name, below) in [("HOME", "home"), ("HOB_DIR", "run"), ("XDG_STATE_HOME", "state")] {
            environment.push((name.into(), self.path(below).into()));
        }
        environment.push(("PATH".into(), programs()));
        environment.push(("LANG".into(), "C.UTF-8".into()));
        environment.push(("TERM".into(), "dumb".into()));
        environment
    }

    /// The newest records, the newest last.
    ///
    /// # Panics
    /// When `hob log` fails or prints what is not JSON.
    #[must_use]
    pub fn records(&self, count: usize) -> Vec<Value> {
        let log = self.hob(&["log", "-n", &count.to_string(), "--json"]).go();
        log.succeeded();
        let parse = |line: &str| serde_json::from_str(line).expect("each line is JSON");
        log.text().lines().map(parse).collect()
    }

    /// The record of the call that this process made.
    ///
    /// # Panics
    /// When none is written.
    #[must_use]
    pub fn record(&self, pid: u32) -> Value {
        wait::until(&format!("a record of the call of process {pid}"), || {
            self.records(400).into_iter().rev().find(|record| record["caller_pid"] == pid)
        })
    }

    /// The reason in that record.
    #[must_use]
    pub fn reason(&self, pid: u32) -> String {
        self.record(pid)["reason"].as_str().unwrap_or("none").to_owned()
    }

    /// Calls until a call is warm, and returns that call. Each call on the way must do what
    /// `want` says, whether it is cold, learned from, or warm.
    ///
    /// # Panics
    /// When one does something else, or none is ever warm.
    pub fn warm(&self, run: &Run, want: impl Fn(&Outcome)) -> Outcome {
        let mut reasons: Vec<String> = Vec::new();
        for _ in 0..WARMING_CALLS_MAX {
            let outcome = run.go();
            let record = self.record(outcome.pid);
            want(&outcome);
            if is_warm(&record) {
                assert!(has_main(&record), "its phases do not say when it ran: {record}");
                return outcome;
            }
            let reason = record["reason"].as_str().unwrap_or("none").to_owned();
            // A caller that has waited long enough has left: what the daemon saw of it then is moot.
            let left = record["outcome"]["kind"] == "cancelled";
            assert!(left || is_passing(&reason), "stays cold: {reason}: {record}");
            if MAKING.contains(&reason.as_str()) {
                self.until_made(&record["program"]["name"]);
            } else {
                // sleeps: between two calls, whose receipts are the mark.
                std::thread::sleep(Duration::from_millis(10));
            }
            reasons.push(reason);
        }
        let log = ["log", "daemon.log"].map(|name| self.hob_dir().join(name));
        let log = log.map(|path| std::fs::read_to_string(path).unwrap_or_default()).concat();
        panic!("never warm: {reasons:?}\n{log}");
    }

    /// Waits until no pool of this program is in the making, if it is in time: each call meanwhile
    /// would start one more interpreter beside the one that is waited for.
    fn until_made(&self, name: &Value) {
        let is_in_the_making = |pool: &Value| match pool["state"].as_str() {
            Some("warming" | "waiting") => true,
            Some("standby") => pool["ready"] == 0,
            Some(_) | None => false,
        };
        let made = || {
            let pools = self.status_if_any()?["pools"].as_array().cloned()?;
            let mut own = pools.iter().filter(|pool| pool["program"] == *name);
            (!own.any(is_in_the_making)).then_some(())
        };
        let _ = wait::look_every(MAKING_LOOK, MAKING_MAX, made);
    }

    /// Calls until the daemon had a call in time, and returns that call. One that is late, as
    /// happens where a machine stands still for a moment, runs without it, for that reason.
    ///
    /// # Panics
    /// When all are late.
    #[must_use]
    pub fn in_time(&self, run: &Run) -> Outcome {
        for _ in 0..LATE_CALLS_MAX {
            let outcome = run.go();
            let newest = self.records(1);
            let reason = newest.last().and_then(|record| record["reason"].as_str());
            if !reason.is_some_and(|reason| LATE.contains(&reason)) {
                return outcome;
            }
        }
        panic!("{LATE_CALLS_MAX} calls were late");
    }

    /// Calls until a call is warm, each of which must do what it does without hob.
    ///
    /// # Panics
    /// When it does something else.
    pub fn warm_as_cold(&self, run: &Run) -> Outcome {
        let cold = run.clone().env("HOB", "0").go();
        self.warm(run, |outcome| assert_eq!(&cold, outcome, "cold and through hob"))
    }

    /// Calls until a call is warm, whatever it does.
    pub fn warmed(&self, words: &[&str]) -> Outcome {
        self.warm(&self.hob(words), |_| {})
    }

    /// The pools of programs, as `hob status --json` has them: without those of layers.
    ///
    /// # Panics
    /// When no daemon answers.
    #[must_use]
    pub fn pools(&self) -> Vec<Value> {
        let mut pools = self.status()["pools"].as_array().cloned().unwrap_or_default();
        pools.retain(|pool| !pool["program"].as_str().is_some_and(is_layer));
        pools
    }

    /// What `hob status --json` says.
    ///
    /// # Panics
    /// When no daemon answers.
    #[must_use]
    pub fn status(&self) -> Value {
        let status = self.hob(&["status", "--json"]).go();
        status.succeeded();
        serde_json::from_slice(&status.out).expect("the status is JSON")
    }

    /// What `hob status --json` says, if a daemon answers.
    #[must_use]
    pub fn status_if_any(&self) -> Option<Value> {
        serde_json::from_slice(&self.hob(&["status", "--json"]).go().out).ok()
    }

    /// The daemon's process id.
    #[must_use]
    pub fn daemon(&self) -> u32 {
        self.status()["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0)
    }

    /// The daemon's process id if it answers.
    #[must_use]
    pub fn daemon_if_any(&self) -> Option<u32> {
        self.status_if_any()?["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok())
    }

    /// Stops the daemon, and checks that nothing is left of it.
    ///
    /// # Panics
    /// When something is left.
    pub fn stop(&self) {
        let stopped = self.hob(&["stop"]).go();
        assert_eq!(stopped.end, End::Code(0), "hob stop: {stopped:?}");
        self.nothing_is_left();
    }

    /// Checks that no process of this world runs, and that its socket's directory is empty.
    ///
    /// # Panics
    /// When something is left.
    pub fn nothing_is_left(&self) {
        let folder = self.path("");
        let folder = PathBuf::from(folder.as_os_str().to_string_lossy().trim_end_matches('/'));
        // A process that was killed stays visible until its parent has waited for it.
        let gone = wait::look(Duration::from_secs(5), || {
            leftovers::processes(&folder).is_empty().then_some(())
        });
        assert!(gone.is_some(), "processes are left: {:#?}", leftovers::processes(&folder));
        assert_eq!(leftovers::files(&self.hob_dir()), Vec::<PathBuf>::new(), "files are left");
    }
}

impl Default for World {
    fn default() -> World {
        World::new()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            if let Some(folder) = self.folder.take() {
                let kept = folder.keep();
                eprint_kept(&kept);
                self.folder = None;
                let mut stop = std::process::Command::new(&self.binary);
                let _ = stop.arg("stop").env("HOB_DIR", kept.join("run")).output();
            }
            return;
        }
        self.stop();
    }
}

#[expect(clippy::print_stderr, reason = "a failed test says where its traces are")]
fn eprint_kept(folder: &Path) {
    eprintln!("kept: {}", folder.display());
}

/// The binary under test, as `HOB_BIN` or the build has it.
#[must_use]
pub fn binary() -> PathBuf {
    let named = std::env::var_os("HOB_BIN").map(PathBuf::from);
    let path =
        named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/quick/hob"));
    path.canonicalize().unwrap_or(path)
}

/// A test's caller may have left descriptors open in us. Ours stay here: a call with more than 0
/// to 2 is another call.
fn close_on_exec() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for entry in std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten() {
            let number = entry.file_name().to_str().and_then(|number| number.parse().ok());
            if let Some(Ok(fd)) = number.map(hob_os::process::adopt) {
                // It stays open, and whose it was, it is.
                std::mem::forget(fd);
            }
        }
    });
}

/// Whether this is the name of a pool of what is loaded below programs.
fn is_layer(name: &str) -> bool {
    name.ends_with("(bare)") || name.ends_with("(installed)")
}

/// Whether a receipt says for how long the program ran, and all its phases are all of its time.
#[must_use]
pub fn has_main(record: &Value) -> bool {
    let Some(phases) = record["phases"].as_array() else { return false };
    let whole: u64 = phases.iter().filter_map(|phase| phase["us"].as_u64()).sum();
    phases.iter().any(|phase| phase["name"] == "main")
        && record["total_us"].as_u64().is_some_and(|total| whole.abs_diff(total) <= 20)
}

/// Whether a receipt is of a call that found its own program's warm state; a copy of a layer has
/// none of it.
#[must_use]
pub fn is_warm(record: &Value) -> bool {
    let layers = ["bare-interpreter", "installed-packages"];
    record["warm"] == true && !layers.iter().any(|layer| record["reason"] == *layer)
}
