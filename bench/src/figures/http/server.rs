//! A server that is measured: started in a session of its own, asked until it answers, and ended
//! with all that it started.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::measure::Environment;

use super::PAGE_WORDS;
use super::client::{Connections, Load, Page, load};

/// How long a server may take to answer for the first time, and to end.
const START_MAX: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(20);
/// The kernel's unit of processor time, `USER_HZ`, which is 100 on every Linux.
const TICK_US: f64 = 10_000.0;

/// How a server is started. In its words, `PORT` stands for its port.
#[derive(Debug, Clone)]
pub(super) struct Recipe {
    pub(super) name: &'static str,
    /// Its command, looked up in PATH; where it is missing, this package has it.
    pub(super) package: &'static str,
    pub(super) words: Vec<OsString>,
    /// What it is asked for.
    pub(super) page: Page,
}

/// A server that runs.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) address: SocketAddr,
    page: Page,
    child: Child,
}

impl Recipe {
    /// A recipe from words.
    pub(super) fn new(name: &'static str, package: &'static str, words: &[&str]) -> Recipe {
        let words = words.iter().map(OsString::from).collect();
        Recipe { name, package, words, page: Page::new("/", PAGE_WORDS) }
    }

    /// Whether its command is there.
    pub(super) fn is_there(&self) -> bool {
        let command = Path::new(&self.words[0]);
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(command).exists())
    }

    /// Starts it in `folder`, and waits until it answers with its page.
    pub(super) fn start(&self, folder: &Path, environment: &Environment) -> Result<Server> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let words = self.words.iter().map(|word| with_port(word, port));
        let words: Vec<OsString> = words.collect();
        let log = folder.join(format!("{}.log", self.name.replace([' ', ':', ','], "-")));
        let out = File::create(&log)?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(folder).stdin(Stdio::null());
        command.stdout(out.try_clone()?).stderr(out).process_group(0);
        command.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
        let child = command.spawn().with_context(|| format!("cannot start {}", self.name))?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut server = Server { address, page: self.page.clone(), child };
        let begun = Instant::now();
        loop {
            let answered = load(address, 1, Connections::Closed, 1, &self.page);
            match answered {
                Ok(_) => return Ok(server),
                Err(_) if begun.elapsed() < START_MAX && server.child.try_wait()?.is_none() => {
                    std::thread::sleep(LOOK);
                }
                Err(error) => {
                    let said = std::fs::read_to_string(&log).unwrap_or_default();
                    server.end();
                    bail!("{} does not serve: {error:#}\n{said}", self.name);
                }
            }
        }
    }
}

fn with_port(word: &OsString, port: u16) -> OsString {
    word.to_string_lossy().replace("PORT", &port.to_string()).into()
}

impl Server {
    /// Asks for its page so many times, at most `width` at one time.
    pub(super) fn ask(&self, width: usize, connections: Connections, count: usize) -> Result<Load> {
        load(self.address, width, connections, count, &self.page)
    }

    /// The same, and the processor time that all of it took, in microseconds.
    pub(super) fn ask_timed(
        &self,
        width: usize,
        connections: Connections,
        count: usize,
    ) -> Result<(Load, f64)> {
        let before = self.cpu_us();
        let load = self.ask(width, connections, count)?;
        Ok((load, self.cpu_us() - before))
    }

    /// Asks for another page of its own in the same way.
    pub(super) fn ask_page_timed(
        &self,
        page: &Page,
        width: usize,
        connections: Connections,
        count: usize,
    ) -> Result<(Load, f64)> {
        let before = self.cpu_us();
        let load = load(self.address, width, connections, count, page)?;
        Ok((load, self.cpu_us() - before))
    }

    /// Its processes: itself, and all that are below it.
    pub(super) fn processes(&self) -> usize {
        self.tree(&processes()).len()
    }

    /// Descriptors that its first process has open.
    pub(super) fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).map_or(0, Iterator::count)
    }

    /// The processor time that it and its processes, ended ones too, have used, in microseconds.
    pub(super) fn cpu_us(&self) -> f64 {
        let table = processes();
        self.tree(&table).iter().map(|pid| table[pid].ticks as f64 * TICK_US).sum()
    }

    /// The memory that its processes have in proportion, in KiB: of the first, and of all.
    pub(super) fn memory_kib(&self) -> (f64, f64) {
        let table = processes();
        let pss = |pid: &u32| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
            let text = text.unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
            line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(0.0)
        };
        (pss(&self.child.id()), self.tree(&table).iter().map(pss).sum())
    }

    fn tree(&self, table: &HashMap<u32, Process>) -> Vec<u32> {
        let mut tree = vec![self.child.id()];
        let mut at = 0;
        while let Some(parent) = tree.get(at).copied() {
            let children = table.iter().filter(|(_, process)| process.parent == parent);
            tree.extend(children.map(|(pid, _)| *pid));
            at += 1;
        }
        tree.retain(|pid| table.contains_key(pid));
        tree
    }

    /// Ends it and what it started.
    pub(super) fn end(&mut self) {
        let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) else { return };
        let _ = kill_process(pid, Signal::TERM);
        let begun = Instant::now();
        while begun.elapsed() < START_MAX {
            match self.child.try_wait() {
                Ok(None) => std::thread::sleep(LOOK),
                Ok(Some(_)) | Err(_) => break,
            }
        }
        let _ = kill_process_group(pid, Signal::KILL);
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// What is read of a process.
struct Process {
    parent: u32,
    ticks: u64,
}

fn processes() -> HashMap<u32, Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let known = entries.filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name may hold anything; what follows it are numbers.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let ticks = (11..15).map(|at| number(at).unwrap_or(0)).sum();
        Some((pid, Process { parent: u32::try_from(number(1)?).ok()?, ticks }))
    });
    known.collect()
}
