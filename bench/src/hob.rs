//! A hob of the measurement's own: a private socket directory, a private state directory, a
//! private home, and a daemon that ends with it.
//!
//! What is known of the daemon comes from `hob status`, `hob last` and `hob log`, as a user has it.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::measure::{Environment, Fresh, Output, Side, Slot, Stdout, same};
use crate::progress::Progress;

/// How often a program may run before it must be warm, and how long that may take.
const WARMING_RUNS_MAX: usize = 400;
const WARMING_MAX: Duration = Duration::from_secs(180);
/// Warm calls before anything is measured: the number of copies that wait has settled.
const WARM_RUNS: usize = 10;
const WARM_GAP: Duration = Duration::from_millis(40);
/// How long a receipt may take to be written, and how often it is looked for.
const RECEIPT_MAX: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(10);
/// How long the daemon may take to leave.
const STOP_MAX: Duration = Duration::from_secs(20);

/// A program that can be run both ways.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) name: String,
    /// What stands after `hob run`.
    pub(crate) warm: Vec<OsString>,
    /// What a caller without hob executes.
    pub(crate) cold: Vec<OsString>,
    pub(crate) folder: PathBuf,
    pub(crate) fresh: Option<Fresh>,
}

/// The private hob.
#[derive(Debug)]
pub(crate) struct Hob {
    binary: PathBuf,
    folder: PathBuf,
    environment: Environment,
    watch: Child,
}

/// Stops the daemon and removes the folder when this process ends without having done so (by ^C,
/// by a signal): the shell waits for the end of its input, which only this process holds open.
const WATCH: &str = "trap '' INT TERM HUP
while read -r line; do :; done
[ -d \"$1\" ] || exit 0
\"$2\" stop
rm -rf \"$1\"";

impl Hob {
    /// Makes the directories; the first call starts the daemon. `first` stands at the head of PATH;
    /// `more` is added to the environment.
    pub(crate) fn new(binary: &Path, first: &Path, more: &[(&str, &str)]) -> Result<Hob> {
        let binary = binary
            .canonicalize()
            .with_context(|| format!("{} is missing: run `make build` first", binary.display()))?;
        let folder = unused_folder()?;
        let mut environment: Vec<(OsString, OsString)> = Vec::new();
        let mut set = |name: &str, value: OsString| environment.push((name.into(), value));
        for (name, below) in [
            ("HOME", "home"),
            ("HOB_DIR", "run"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_CONFIG_HOME", "config"),
            ("PYLINTHOME", "cache"),
        ] {
            let path = folder.join(below);
            if name != "HOB_DIR" {
                std::fs::create_dir_all(&path)?;
            }
            set(name, path.into_os_string());
        }
        let mut path = first.as_os_str().to_owned();
        path.push(":/usr/local/bin:/usr/bin:/bin");
        set("PATH", path);
        set("LC_ALL", "C.UTF-8".into());
        set("TERM", "dumb".into());
        set("USER", "bench".into());
        for (name, value) in more {
            set(name, (*value).into());
        }
        let watch = Command::new("/bin/sh")
            .args(["-c", WATCH, "watch"])
            .args([&folder, &binary])
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the shell that cleans up")?;
        Ok(Hob { binary, folder, environment: Arc::new(environment), watch })
    }

    /// The binary that is measured.
    pub(crate) fn binary(&self) -> &Path {
        &self.binary
    }

    /// The environment that everything is run in.
    pub(crate) fn environment(&self) -> Environment {
        Arc::clone(&self.environment)
    }

    /// A folder for input files, private to this hob.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// Anything, run in this environment.
    pub(crate) fn plain(&self, name: &str, argv: &[&OsStr], group: Option<u8>) -> Side {
        Side {
            name: name.to_owned(),
            argv: argv.iter().map(OsString::from).collect(),
            folder: self.folder.clone(),
            environment: self.environment.clone(),
            fresh: None,
            stdout: Stdout::File,
            more: 0,
            group,
        }
    }

    /// The program through `hob run`, with these options.
    pub(crate) fn warm(&self, program: &Program, options: &[&str], group: u8) -> Side {
        let mut argv: Vec<OsString> = vec![self.binary.clone().into(), "run".into()];
        argv.extend(options.iter().map(OsString::from));
        argv.extend(program.warm.iter().cloned());
        Side {
            name: format!("{}, hob", program.name),
            argv,
            folder: program.folder.clone(),
            environment: self.environment.clone(),
            fresh: program.fresh.clone(),
            stdout: Stdout::File,
            more: 0,
            group: Some(group),
        }
    }

    /// The program without hob.
    pub(crate) fn cold(&self, program: &Program, group: u8) -> Side {
        Side {
            name: format!("{}, cold", program.name),
            argv: program.cold.clone(),
            folder: program.folder.clone(),
            environment: self.environment.clone(),
            fresh: program.fresh.clone(),
            stdout: Stdout::File,
            more: 0,
            group: Some(group),
        }
    }

    /// Runs the side until its receipt says `warm`, and then some more. What it says must be
    /// what `want` says, from the first call on.
    pub(crate) fn warm_up(&self, side: &Side, want: &Output) -> Result<()> {
        let mut progress = Progress::new(&format!("warming: {}", side.name));
        let mut slot = Slot::new()?;
        let start = Instant::now();
        for run in 0..WARMING_RUNS_MAX {
            progress.at(run, WARMING_RUNS_MAX);
            let ran = side.run(&mut slot)?;
            same("cold", want, &side.name, &ran.output)?;
            let receipt = self.receipt_of(ran.pid)?;
            if receipt["warm"] == Value::Bool(true) {
                progress.done();
                return self.settle(side, want);
            }
            let reason = receipt["reason"].as_str().unwrap_or("unknown");
            let passes = ["learning", "being-learned", "warming", "stale", "busy", "no-daemon"];
            ensure!(passes.contains(&reason), "{} stays cold: {reason}", side.name);
            ensure!(start.elapsed() < WARMING_MAX, "{} is still cold: {reason}", side.name);
            std::thread::sleep(POLL);
        }
        bail!("{} is still cold after {WARMING_RUNS_MAX} runs", side.name)
    }

    fn settle(&self, side: &Side, want: &Output) -> Result<()> {
        let mut slot = Slot::new()?;
        for _ in 0..WARM_RUNS {
            std::thread::sleep(WARM_GAP);
            same("cold", want, &side.name, &side.run(&mut slot)?.output)?;
        }
        Ok(())
    }

    /// The receipt of the call that this process made. A call that found no daemon leaves none;
    /// it is reported as cold with the reason `no-daemon`.
    pub(crate) fn receipt_of(&self, pid: u32) -> Result<Value> {
        let start = Instant::now();
        while start.elapsed() < RECEIPT_MAX {
            let receipts = self.receipts(3)?;
            if let Some(receipt) = receipts.into_iter().find(|one| one["caller_pid"] == pid) {
                return Ok(receipt);
            }
            std::thread::sleep(POLL);
        }
        Ok(serde_json::json!({"warm": false, "reason": "no-daemon"}))
    }

    /// The newest receipts.
    pub(crate) fn receipts(&self, count: usize) -> Result<Vec<Value>> {
        let text = self.ask(&["log", "-n", &count.to_string(), "--json"])?;
        text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    }

    /// Which part of the calls that these processes made was warm and came to its own end, by
    /// their receipts.
    pub(crate) fn warm_part(&self, pids: &[u32]) -> Result<f64> {
        let warm: HashMap<u64, bool> = self
            .receipts(pids.len() * 3 + 50)?
            .iter()
            .filter_map(|one| {
                let good = one["warm"].as_bool()? && one["outcome"]["kind"] == "exited";
                Some((one["caller_pid"].as_u64()?, good))
            })
            .collect();
        let known: Vec<bool> =
            pids.iter().filter_map(|pid| warm.get(&u64::from(*pid)).copied()).collect();
        ensure!(!known.is_empty(), "no receipt of the measured calls was found");
        #[expect(clippy::cast_precision_loss, reason = "some thousand calls")]
        let part = known.iter().filter(|warm| **warm).count() as f64 / known.len() as f64;
        Ok(part)
    }

    /// The socket's directory.
    pub(crate) fn directory(&self) -> PathBuf {
        self.folder.join("run")
    }

    /// The daemon's process.
    pub(crate) fn pid(&self) -> Result<u32> {
        let status: Value = serde_json::from_str(&self.ask(&["status", "--json"])?)?;
        let pid = status["pid"].as_u64().context("`hob status --json` has no pid")?;
        Ok(u32::try_from(pid)?)
    }

    /// Gives a command this environment, and nothing else.
    pub(crate) fn place(&self, command: &mut Command) {
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(&self.folder);
    }

    /// What a person sees of the last call.
    pub(crate) fn last(&self) -> Result<String> {
        self.ask(&["last"])
    }

    /// The environment as a sender of messages names it.
    pub(crate) fn variables(&self) -> Vec<Vec<u8>> {
        let entry = |(name, value): &(OsString, OsString)| {
            [name.as_bytes(), b"=", value.as_bytes()].concat()
        };
        self.environment.iter().map(entry).collect()
    }

    /// `hob` with these words: what it prints.
    pub(crate) fn ask(&self, arguments: &[&str]) -> Result<String> {
        let output = Command::new(&self.binary)
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            // What is shown has figures, whoever measures.
            .env("TERM", "xterm")
            .stdin(Stdio::null())
            .output()?;
        ensure!(
            output.status.success(),
            "`hob {}` failed: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Stops the daemon and waits until its process is gone.
    pub(crate) fn stop(&self) -> Result<()> {
        let Ok(pid) = self.pid() else { return Ok(()) };
        self.ask(&["stop"])?;
        let start = Instant::now();
        while Path::new(&format!("/proc/{pid}")).exists() {
            ensure!(start.elapsed() < STOP_MAX, "the daemon {pid} is still there after `hob stop`");
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Hob {
    /// Nothing stays behind, whatever happened before.
    fn drop(&mut self) {
        if let Ok(pid) = self.pid()
            && self.stop().is_err()
            && let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw)
        {
            // It did not leave when asked; the kernel ends it and, with it, its workers.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        // What cannot be removed is below the temporary directory, and says whose it is.
        let _ = std::fs::remove_dir_all(&self.folder);
        drop(self.watch.stdin.take());
        let _ = self.watch.wait();
    }
}

/// A new folder with a short name: a socket's path has at most 108 bytes.
fn unused_folder() -> Result<PathBuf> {
    for number in 0..1000 {
        let name = format!("hob-bench-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        match std::fs::create_dir(&folder) {
            Ok(()) => return Ok(folder.canonicalize()?),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => (),
            Err(error) => return Err(error).context("cannot make a temporary folder"),
        }
    }
    bail!("the temporary directory is full of our folders")
}
