//! The record of a hook and of a set, as data. Times are microseconds since the runner began, by
//! one clock for all of them; when that was is the caller's to say.

use serde::{Deserialize, Serialize};

use crate::outcome::codes;

use super::{Bytes, HookOutcome, Trouble};
use crate::receipt::UsagePart;

/// One run of a hooks directory, for one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SetRecord {
    /// Its number, unique in its runner.
    pub set: u64,
    /// For whom it ran; empty where nobody was named.
    pub target: Bytes,
    /// The hooks directory, as it was named.
    pub dir: Bytes,
    /// What became of it.
    pub outcome: HookOutcome,
    /// When it began.
    pub at_us: u64,
    /// How long it took.
    pub wall_us: u64,
    /// The hooks that were run, in order; the last may have failed.
    pub hooks: Vec<HookRecord>,
    /// The names of those that were not begun.
    pub not_run: Vec<Bytes>,
    /// Why it ended so, where that is no hook's doing: the directory could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The host that ran it, or was to; absent: the one of who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// One hook's run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookRecord {
    /// The file's name in its directory.
    pub name: Bytes,
    /// What became of it.
    pub outcome: HookOutcome,
    /// The exit code, if it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<u8>,
    /// The signal that ended it, if one did, whoever sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<u8>,
    /// Why it could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Trouble>,
    /// One line for people: what happened, why, what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Its process id; 0 if it was never started.
    pub pid: u32,
    /// When its turn came.
    pub at_us: u64,
    /// From then to its end.
    pub wall_us: u64,
    /// How it was started.
    pub way: Way,
    /// Why it was not started in a faster way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// What it used; absent when nobody could tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsagePart>,
    /// Whether it took longer than was asked to be warned of.
    pub slow: bool,
    /// Whether the file was another than the one listed when it ran.
    pub changed: bool,
    /// Whether something that it left behind still held its output open when it ended. What that
    /// writes later is in no record.
    pub left_behind: bool,
    /// How often its start was tried again because the file was open for writing.
    pub retries: u32,
    /// What it wrote to stdout.
    pub stdout: Capture,
    /// What it wrote to stderr.
    pub stderr: Capture,
}

/// What a hook wrote to one of its two streams: all of it, or its beginning and its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// The bytes, or those before the cut.
    pub head: Bytes,
    /// The bytes after the cut; empty if nothing was cut.
    pub tail: Bytes,
    /// How many bytes it wrote.
    pub total: u64,
    /// How many bytes between `head` and `tail` were left out.
    pub cut: u64,
    /// When which bytes came, in order. Both streams of a hook use one clock, so that their lines
    /// can be put in the order in which they came.
    pub chunks: Vec<Chunk>,
}

impl Capture {
    /// The bytes as they came, if nothing was cut; otherwise with a line that says so in the
    /// middle.
    #[must_use]
    pub fn shown(&self) -> Vec<u8> {
        let mut bytes = self.head.0.clone();
        if self.cut > 0 {
            if bytes.last().is_some_and(|last| *last != b'\n') {
                bytes.push(b'\n');
            }
            let line = format!("[hob: {} of {} bytes left out]\n", self.cut, self.total);
            bytes.extend_from_slice(line.as_bytes());
        }
        bytes.extend_from_slice(&self.tail.0);
        bytes
    }
}

/// Bytes that came together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// When, in nanoseconds since the hook's turn came.
    pub at_ns: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// How a hook was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// As a new process when its turn came.
    #[serde(alias = "afresh")]
    Spawned,
    /// As a new process before its turn, held before its first instruction.
    #[serde(alias = "ahead")]
    Prestarted,
    /// As a fork of its interpreter that was held before its first instruction.
    Forked,
    /// In a fork of a warm interpreter, by the daemon.
    Warm,
}

codes! {
    /// Why a hook was not started in a faster way. The codes are stable; `docs/hooks.md` has them in words.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    Reason {
        /// `--isolation spawn`.
        SpawnAsked = "spawn-asked",
        /// It is the first: there was no time before its turn.
        First = "first",
        /// No processor was free to start it before its turn.
        NoProcessor = "no-processor",
        /// It is no program that can be held before its first instruction.
        NotHeld = "not-held",
        /// The kernel does not let it be traced, or it runs with other rights.
        TraceRefused = "trace-refused",
        /// Its environment tells the dynamic linker, or the C library's start, something.
        LinkerVariables = "linker-variables",
        /// What its start had read was changed before its turn.
        Changed = "changed",
        /// The process that was held was ended by somebody.
        HeldGone = "held-gone",
        /// Its shell cannot be forked before its first instruction.
        NotForked = "not-forked",
        /// The kernel cannot say whether it would execute a file, and so no shell is forked.
        NoCheck = "no-check",
        /// No daemon answered.
        NoDaemon = "no-daemon",
        /// The daemon said to run it cold.
        RunCold = "run-cold",
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A hook's record, for nobody in particular.
    pub(in super::super) fn hook(outcome: HookOutcome) -> HookRecord {
        HookRecord {
            name: "1".into(),
            outcome,
            code: None,
            signal: None,
            trouble: None,
            message: None,
            pid: 7,
            at_us: 0,
            wall_us: 5,
            way: Way::Spawned,
            reason: None,
            usage: Some(UsagePart { user_us: 1, system_us: 2, peak_kib: 3 }),
            slow: false,
            changed: false,
            left_behind: false,
            retries: 0,
            stdout: Capture::default(),
            stderr: Capture::default(),
        }
    }

    /// A set's, without hooks.
    pub(in super::super) fn set() -> SetRecord {
        SetRecord {
            set: 1,
            target: "".into(),
            dir: "d".into(),
            outcome: HookOutcome::Ok,
            at_us: 10,
            wall_us: 20,
            hooks: Vec::new(),
            not_run: Vec::new(),
            message: None,
            host: None,
        }
    }

    #[test]
    fn reasons_are_written_by_their_codes() {
        for reason in Reason::ALL {
            let json = serde_json::to_string(reason).unwrap();
            assert_eq!(json, format!("\"{}\"", reason.code()));
        }
    }

    #[test]
    fn what_was_written_with_earlier_words_is_read() {
        for (word, way) in [("afresh", Way::Spawned), ("ahead", Way::Prestarted)] {
            assert_eq!(serde_json::from_value::<Way>(word.into()).unwrap(), way);
        }
        let text = r#"{"targets":1,"failed":0,"afresh":2,"ahead":3,"forked":0,"warm":0}"#;
        let part: crate::receipt::HooksPart = serde_json::from_str(text).unwrap();
        assert_eq!((part.spawned, part.prestarted), (2, 3));
    }

    #[test]
    fn a_cut_is_said_where_it_is() {
        let whole = Capture { head: "one\n".into(), total: 4, ..Capture::default() };
        assert_eq!(whole.shown(), b"one\n");
        let cut = Capture {
            head: "one".into(),
            tail: "three\n".into(),
            total: 13,
            cut: 4,
            ..Capture::default()
        };
        assert_eq!(cut.shown(), b"one\n[hob: 4 of 13 bytes left out]\nthree\n");
    }
}
