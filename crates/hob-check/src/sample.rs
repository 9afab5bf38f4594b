//! One time that a check was done, and what is wrong with its output.

use std::time::Duration;

use serde_json::Value;

use super::plan::Check;
use super::secrets::Secrets;

/// So much of an answer is kept to be shown.
pub(crate) const SHOWN_BYTES: usize = 4096;

/// One time.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) took: Duration,
    /// The status, or the exit code.
    pub(crate) code: Option<i64>,
    /// What is not as the file says.
    pub(crate) faults: Vec<String>,
    /// The body, or what was printed.
    pub(crate) left: Vec<u8>,
}

impl Sample {
    /// How long it took, in microseconds.
    pub(crate) fn took_us(&self) -> u64 {
        u64::try_from(self.took.as_micros()).unwrap_or(u64::MAX)
    }

    /// Whether there was an answer, and as it should be.
    pub(crate) fn is_right(&self) -> bool {
        self.code.is_some() && self.faults.is_empty()
    }

    /// One without an answer.
    pub(crate) fn failed(took: Duration, text: String) -> Sample {
        Sample { took, code: None, faults: vec![text], left: Vec::new() }
    }
}

/// What is wrong with a body, or with what a command has printed.
pub(crate) fn body_faults(
    check: &Check,
    body: &[u8],
    encoding: Option<&str>,
    secrets: &Secrets,
) -> Vec<String> {
    let mut faults = Vec::new();
    if check.json.is_empty() && check.contains.is_empty() {
        return faults;
    }
    if let Some(encoding) = encoding {
        // Decoding is where a few bytes become gigabytes.
        faults.push(format!("the body is encoded as {encoding}, which was not asked for"));
        return faults;
    }
    for part in &check.contains {
        if !body.windows(part.len().max(1)).any(|window| window == part.as_bytes())
            && !part.is_empty()
        {
            faults.push(format!("does not contain `{part}`"));
        }
    }
    if check.json.is_empty() {
        return faults;
    }
    let value: Value = match serde_json::from_slice(body) {
        Ok(value) => value,
        Err(error) => {
            faults.push(format!("is no JSON: {error}"));
            return faults;
        }
    };
    for (text, path, test) in &check.json {
        if let Some(fault) = test.fault(&path.query(&value).all(), secrets) {
            faults.push(format!("{text} {fault}"));
        }
    }
    faults
}
