//! What the front of a site has counted, as data. The front fills it, `hob serve status` prints it;
//! neither decides anything by it.
//!
//! The version rule is that of `hob status`: a field is added with `#[serde(default)]`, and an older
//! reader ignores it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The name of the format.
pub const SCHEMA: &str = "hob.serve.front/1";

/// The front of one site, at one moment. Totals count since its start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// [`SCHEMA`].
    pub schema: String,
    /// Where it listens: `http://ADDRESS/` and `unix:PATH`.
    #[serde(default)]
    pub listens: Vec<String>,
    /// Seconds since it started.
    pub uptime_s: u64,
    /// Connections that are open.
    pub connections: u64,
    /// Whether requests are accepted: not any more once the site stops.
    pub accepts: bool,
    /// Requests whose head broke a rule or came too late, by the status of the answer. They belong
    /// to no mount.
    pub refused_heads: BTreeMap<String, u64>,
    /// Lines of the access log that nobody read in time, or that could not be written.
    pub lines_dropped: u64,
    /// What is wrong with the access log's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_fault: Option<String>,
    /// One entry for each mount, by path; the last, with an empty one, is what no mount serves.
    pub mounts: Vec<MountCounts>,
}

/// What was asked at one mount.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MountCounts {
    /// The mount's path.
    pub path: String,
    /// Requests that have been answered.
    pub requests: u64,
    /// Requests that are being answered.
    pub active: u64,
    /// Those of them that wait in the front for a worker.
    #[serde(default)]
    pub waiting: u64,
    /// Bytes of bodies that went out.
    pub bytes: u64,
    /// Answers by status.
    pub statuses: BTreeMap<String, u64>,
    /// Requests that no app answered, by the reason.
    pub failures: BTreeMap<String, u64>,
    /// Requests that reached a limit, by its name.
    #[serde(default)]
    pub limits: BTreeMap<String, u64>,
    /// Microseconds from a request's head to the end of its answer: half took at most this long.
    pub p50_us: u64,
    /// The same for 99 of 100.
    pub p99_us: u64,
    /// The same for the slowest.
    pub max_us: u64,
    /// Parts of that time, by name: `body`, until the body was whole; `app`, until the answer began,
    /// with the wait for a worker; `write`, until the last byte of the answer was passed on. Files
    /// have none.
    #[serde(default)]
    pub phases: BTreeMap<String, Phase>,
}

/// What one part of a request took, in microseconds: at most this for half of them, and for 99 of
/// 100.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// Half.
    pub p50_us: u64,
    /// 99 of 100.
    pub p99_us: u64,
}
