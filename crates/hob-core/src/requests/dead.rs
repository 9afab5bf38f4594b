//! What `hob dead` tells, as data. The daemon fills it, the client prints it. The version rule is
//! that of [`crate::status`].

use serde::{Deserialize, Serialize};

/// The name of the format.
pub const SCHEMA: &str = "hob.dead/1";

/// Dead letters, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dead {
    /// [`SCHEMA`].
    pub schema: String,
    /// How many there are, listed or not.
    pub total: u64,
    /// As many as one answer has room for.
    pub letters: Vec<Letter>,
    /// Those of other hosts.
    #[serde(flatten)]
    pub elsewhere: Elsewhere,
}

/// Dead letters of other hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elsewhere {
    /// By host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<OfHost>,
    /// Hosts that have some and have not said which.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<String>,
}

/// Dead letters of the programs that a host offers, as that host says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OfHost {
    /// Its name.
    pub host: String,
    /// How many of its 1,000 oldest these are, listed or not.
    pub total: u64,
    /// The oldest first.
    pub letters: Vec<Letter>,
}

/// So many bytes a host says of its letters, and so many are taken of all hosts.
pub const OF_HOST_BYTES_MAX: usize = 192 << 10;
/// See [`OF_HOST_BYTES_MAX`].
pub const ELSEWHERE_BYTES_MAX: usize = 512 << 10;

/// A message that failed too often.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Letter {
    /// What its sender was told, and its handler is.
    pub id: String,
    /// The program's name.
    pub program: String,
    /// Where it was told: its `hob.toml` is looked for from there.
    pub directory: String,
    /// Its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What its payload is, if its sender said so.
    pub content_type: String,
    /// The payload's length.
    pub bytes: u64,
    /// When it was told.
    pub told_at: String,
    /// When it was given up.
    pub at: String,
    /// How often it failed.
    pub tries: u32,
    /// What the last failure was.
    pub why: String,
}

/// What became of dead letters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// [`SCHEMA`].
    pub schema: String,
    /// How many are tried again, or dropped.
    pub changed: u64,
    /// Those that are no dead letters.
    pub unknown: Vec<String>,
}
