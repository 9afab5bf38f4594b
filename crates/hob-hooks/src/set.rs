//! What a caller asks for: sets, their variables, and the limits of a runner.

use std::ffi::CString;
use std::sync::Arc;
use std::time::Duration;

use hob_core::hooks::{Bytes, Suffix};
use hob_entryfork::vfork::Signals;
use rustix::fd::OwnedFd;

/// One run of a hooks directory, for one target.
#[derive(Debug, Clone)]
pub struct Set {
    /// For whom it runs, for people and records; may be empty.
    pub target: Bytes,
    /// The hooks directory: absolute, or relative to [`Set::within`]. A hook sees its `$0` as this
    /// name, a `/` and its own.
    pub dir: Bytes,
    /// Names that end so do not run. [`Suffix::defaults`] unless something else was asked for.
    pub ignored: Arc<[Suffix]>,
    /// The whole environment of its hooks, `NAME=value` each: see [`Variables`].
    pub environment: Arc<[CString]>,
    /// The working directory of its hooks; this process's own if `None`.
    pub within: Option<Arc<OwnedFd>>,
    /// The file mode creation mask of its hooks; this process's own if `None`.
    pub umask: Option<u32>,
    /// A hook that takes longer is ended, with its process group: counted from when its turn came.
    pub kill_after: Option<Duration>,
    /// A hook that takes longer is told of ([`crate::Event::HookSlow`]) and marked as slow.
    pub warn_after: Option<Duration>,
    /// What may make a hook faster.
    pub isolation: Isolation,
    /// Which signals its hooks ignore: what this process does, or none.
    pub signals: Signals,
}

impl Set {
    /// A set of this directory, for nobody in particular, with these variables and no limits.
    #[must_use]
    pub fn new(dir: impl Into<Vec<u8>>, variables: &Variables) -> Set {
        Set {
            target: Bytes::default(),
            dir: Bytes(dir.into()),
            ignored: Suffix::defaults().into(),
            environment: variables.environment(),
            within: None,
            umask: None,
            kill_after: None,
            warn_after: None,
            isolation: Isolation::Fastest,
            signals: Signals::Kept,
        }
    }
}

/// What may make a hook faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Whatever is exact for it: prestarted, warm, or spawned.
    #[default]
    Fastest,
    /// Every hook is spawned.
    Spawn,
}

/// The bounds of a runner.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How many sets run at once; at least 1.
    pub jobs: usize,
    /// How many bytes of each stream of a hook are kept.
    pub capture_bytes_max: usize,
    /// How long a hook that ran out of time may take to end before it is killed.
    pub grace: Duration,
    /// Whether hooks are started before their turn.
    pub prestart: Prestart,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            jobs: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            capture_bytes_max: 1 << 20,
            grace: Duration::from_secs(10),
            prestart: Prestart::WhenIdle,
        }
    }
}

/// Whether hooks are started before their turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prestart {
    /// Never.
    Never,
    /// While a processor has nothing else to do for this runner: `jobs` below their number.
    WhenIdle,
    /// The same, told anew in each turn by how many sets are active: for a runner whose callers
    /// choose how many that are, and whose `jobs` only bounds them.
    WhileIdle,
}

/// The environment of hooks: the caller's own, and over it the parameters of the set. Of two
/// entries with one name the later one counts.
///
/// The two are made apart so that the caller's half is built once for any number of targets:
/// [`Variables::inherit`] it, clone for each target, and [`Variables::set`] its parameters.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    inherited: Arc<[CString]>,
    set: Vec<(Vec<u8>, CString)>,
}

impl Variables {
    /// With this environment below, `NAME=value` each. What is not of that form is kept.
    #[must_use]
    pub fn inherit(environment: impl IntoIterator<Item = CString>) -> Variables {
        Variables { inherited: environment.into_iter().collect(), set: Vec::new() }
    }

    /// Sets a parameter, over whatever had its name.
    pub fn set(&mut self, name: &[u8], value: &[u8]) -> Result<(), VariableError> {
        if name.is_empty() || name.contains(&b'=') {
            return Err(VariableError::Name);
        }
        let entry = CString::new([name, b"=", value].concat()).map_err(|_| VariableError::Nul)?;
        match self.set.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = entry,
            None => self.set.push((name.to_vec(), entry)),
        }
        Ok(())
    }

    /// All of them, as a hook gets them.
    #[must_use]
    pub fn environment(&self) -> Arc<[CString]> {
        if self.set.is_empty() {
            return self.inherited.clone();
        }
        let hidden = |entry: &&CString| {
            let name = entry.to_bytes().split(|byte| *byte == b'=').next().unwrap_or_default();
            !self.set.iter().any(|(set, _)| set == name)
        };
        let kept = self.inherited.iter().filter(hidden).cloned();
        kept.chain(self.set.iter().map(|(_, entry)| entry.clone())).collect()
    }
}

/// Why something cannot be a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableError {
    /// The name is empty or holds a `=`.
    Name,
    /// It holds a NUL byte, which no environment can hold.
    Nul,
}

impl std::fmt::Display for VariableError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            VariableError::Name => "the name is empty or holds a \"=\"",
            VariableError::Nul => "it holds a NUL byte, which no environment can hold",
        })
    }
}

impl std::error::Error for VariableError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_lie_over_what_is_inherited_and_the_last_counts() {
        let own = [c"A=1", c"B=2", c"odd", c"B=3"].map(std::ffi::CStr::to_owned);
        let mut variables = Variables::inherit(own);
        variables.set(b"B", b"4").unwrap();
        variables.set(b"C", b"\xff=").unwrap();
        variables.set(b"C", b"\xfe=").unwrap();
        let all = variables.environment();
        let bytes: Vec<&[u8]> = all.iter().map(|entry| entry.to_bytes()).collect();
        assert_eq!(bytes, [&b"A=1"[..], b"odd", b"B=4", b"C=\xfe="]);
        assert_eq!(variables.set(b"", b""), Err(VariableError::Name));
        assert_eq!(variables.set(b"a=", b""), Err(VariableError::Name));
        assert_eq!(variables.set(b"a", b"\0"), Err(VariableError::Nul));
    }
}
