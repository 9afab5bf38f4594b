//! A value of an answer's or of a file's.

use serde_json::Value;

use super::super::expect::short;
use super::super::secrets::Secrets;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Held {
    Value(Value),
    /// What need be no text.
    Bytes(Vec<u8>),
}

/// So many bytes are shown.
const SHOWN: usize = 32;

impl Held {
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Held::Value(value) => value.as_str(),
            Held::Bytes(_) => None,
        }
    }

    pub(crate) fn list(&self) -> Option<&Vec<Value>> {
        match self {
            Held::Value(value) => value.as_array(),
            Held::Bytes(_) => None,
        }
    }

    /// How many entries or bytes it has; `None`: it is nothing that is counted.
    pub(crate) fn count(&self) -> Option<usize> {
        match self {
            Held::Value(Value::String(text)) => Some(text.len()),
            Held::Value(Value::Array(all)) => Some(all.len()),
            Held::Value(Value::Object(map)) => Some(map.len()),
            Held::Value(Value::Null | Value::Bool(_) | Value::Number(_)) => None,
            Held::Bytes(bytes) => Some(bytes.len()),
        }
    }

    /// As a person reads it, cut, without secrets.
    pub(crate) fn shown(&self, secrets: &Secrets) -> String {
        match self {
            Held::Value(value) => short(value, secrets),
            Held::Bytes(bytes) => {
                let end = if bytes.len() > SHOWN { "…" } else { "" };
                format!("hex,{}{end};", hex(&bytes[..bytes.len().min(SHOWN)]))
            }
        }
    }
}

impl From<Value> for Held {
    fn from(value: Value) -> Held {
        Held::Value(value)
    }
}

/// Bytes by their digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
