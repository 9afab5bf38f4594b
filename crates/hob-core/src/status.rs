//! What `hob status` tells, as data. The daemon fills it, the client prints it; neither decides
//! anything by it. `docs/json.md` is the same in words.
//!
//! The version rule is that of receipts: a field is added with `#[serde(default)]`, and an older
//! reader ignores it; whatever an older reader cannot ignore raises the number in [`SCHEMA`].

use serde::{Deserialize, Serialize};

/// The name of the format.
pub const SCHEMA: &str = "hob.status/1";

/// One daemon, at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// [`SCHEMA`].
    pub schema: String,
    /// The daemon's process id.
    pub pid: u32,
    /// The hash of its build: a client of another build is not served warm.
    pub build: String,
    /// Its version.
    pub version: String,
    /// Seconds since it started.
    pub uptime_s: u64,
    /// The path of its socket.
    pub socket: String,
    /// The calls it has seen.
    pub calls: CallsPart,
    /// Why calls were sent cold, since the daemon's start: the most frequent reason first.
    #[serde(default)]
    pub cold: Vec<ColdPart>,
    /// What all zygotes and workers use now (PSS), in KiB.
    pub memory_kib: u64,
    /// What they may use at most, in KiB.
    pub budget_kib: u64,
    /// One entry per pool, the most recently used first.
    pub pools: Vec<PoolPart>,
    /// Tells that are kept.
    #[serde(default)]
    pub messages: MessagesPart,
    /// Other hosts; absent where the user's configuration names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<HostsPart>,
    /// What becomes of receipts.
    pub recorder: RecorderPart,
    /// What becomes of those that are pushed to a collector; absent where the user's configuration
    /// names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<PushPart>,
    /// Its own log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogPart>,
}

/// A daemon's own log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPart {
    /// Where it is.
    pub path: String,
    /// The categories that are on.
    #[serde(default)]
    pub on: Vec<String>,
    /// Lines that were not written.
    #[serde(default)]
    pub lost: u64,
    /// Why the newest of them was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The calls that a daemon has seen. Totals count since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallsPart {
    /// Performed at this moment, warm or cold.
    pub running: u64,
    /// Waiting for a worker.
    pub queued: u64,
    /// Settled by a warm worker.
    pub warm_total: u64,
    /// Sent cold.
    pub cold_total: u64,
    /// Refused.
    #[serde(default)]
    pub refused_total: u64,
    /// Lost: given, and nothing is known of their end.
    #[serde(default)]
    pub lost_total: u64,
}

/// One reason of cold calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColdPart {
    /// The stable code.
    pub reason: String,
    /// Calls that it sent cold.
    pub total: u64,
}

/// The workers of one key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolPart {
    /// The program's name, as it was last called.
    pub program: String,
    /// The file or module that it resolved to; empty for a handler, which has a name of its own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// Its interpreter's path, where the name may be the interpreter's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// The runtime's name in the table; `exec`: none hosts it.
    pub runtime: String,
    /// `spawn`, `standby` or `fork`.
    pub isolation: String,
    /// In one word what the pool is doing: `learning`, `warming`, `warm`, `cold`, `retiring`.
    pub state: String,
    /// Workers that wait for a call.
    pub ready: u32,
    /// Workers that perform one.
    pub busy: u32,
    /// Calls that wait for one.
    pub queued: u32,
    /// How many workers are to wait.
    pub ahead: u32,
    /// Calls since the pool was made.
    pub calls: u64,
    /// Its workers, by what they have loaded, the newest first; of a pool of requests alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkersPart>,
    /// Workers that were to go on, and have done enough or grown too large.
    #[serde(default)]
    pub recycled: u64,
    /// What its processes use (PSS), in KiB.
    pub memory_kib: u64,
    /// Seconds since its last call.
    pub idle_s: u64,
    /// What answers is not what would be loaded now: that is being loaded, or does not load.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub old: bool,
    /// Why it is not what was asked for: demoted, failed, out of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The workers of a pool that have loaded the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkersPart {
    /// How often the pool had loaded its program before these were begun.
    pub generation: u64,
    /// Not ready yet.
    pub starting: u32,
    /// They wait.
    pub ready: u32,
    /// They perform something, or have a lane to whoever asks.
    pub busy: u32,
    /// They end.
    pub retiring: u32,
}

/// How this host is connected with others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostsPart {
    /// This host's name; empty where the configuration cannot be used.
    pub host: String,
    /// The server between hosts, as it is configured.
    pub server: String,
    /// Whether there is a connection.
    pub connected: bool,
    /// Why there is none, or what does not work of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The programs that other hosts may ask.
    pub offered: Vec<String>,
    /// Why nothing that is told to them comes, where that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tells_why: Option<String>,
    /// Tells whose streams have not said yet that they have them.
    #[serde(default)]
    pub telling: u64,
    /// Asks that are open at other hosts.
    pub asks: u64,
    /// Asks of other hosts that are open here.
    pub questions: u64,
}

/// Tells that are kept, at this moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagesPart {
    /// Not yet handled, those with a worker included; and those that are handled, until that is on
    /// the disk.
    pub waiting: u64,
    /// Those of them whose program cannot be had now: not trusted, or not loadable.
    pub held: u64,
    /// Why the first of those is held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_why: Option<String>,
    /// Dead letters.
    pub dead: u64,
    /// The process that has the outbox, where it is this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outbox_owner: Option<u32>,
    /// Why this process cannot use it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outbox_why: Option<String>,
}

/// What becomes of receipts that are pushed to a collector. Counts are since the daemon's start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushPart {
    /// The collector, as it is configured; empty where the configuration cannot be used.
    pub to: String,
    /// Receipts that wait, or are on their way.
    pub waiting: u64,
    /// Those that it has taken.
    pub sent: u64,
    /// Those that it never had: it refused them, or was not there for too long.
    pub dropped: u64,
    /// Spans of those sent that it says it did not keep.
    pub rejected_spans: u64,
    /// What was wrong with the last attempt; absent if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What becomes of receipts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecorderPart {
    /// The state directory; absent when there is none to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    /// Receipts that reached the disk since the daemon's start.
    pub written: u64,
    /// Receipts that did not.
    pub dropped: u64,
    /// Why receipts are dropped now; absent while they are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_reason: Option<String>,
}
