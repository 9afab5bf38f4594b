//! With which call a recording ends.

use std::time::Duration;

use crate::durations;
use crate::show::entries::filter::Filter;
use crate::show::entries::{Entry, How};

/// With which call a recording ends, as it was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct When {
    text: String,
    what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Slower(Duration),
    Failed,
    Lost,
    Cold,
}

impl When {
    /// What is typed.
    pub(super) fn parse(text: &str) -> Result<When, String> {
        let what = match text.split_once('=') {
            Some(("slower", time)) => {
                What::Slower(durations::parse(time).map_err(|why| why.to_string())?)
            }
            None if text == "failed" => What::Failed,
            None if text == "lost" => What::Lost,
            None if text == "cold" => What::Cold,
            _ => return Err("it is slower=TIME, failed, lost or cold".to_owned()),
        };
        Ok(When { text: text.to_owned(), what })
    }

    /// As it was typed.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether this is such a call.
    pub(super) fn is_met_by(&self, entry: &Entry) -> bool {
        match self.what {
            What::Slower(time) => {
                let slower_us = Some(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
                Filter { slower_us, ..Filter::default() }.takes(entry)
            }
            What::Failed => Filter { failed: true, ..Filter::default() }.takes(entry),
            What::Cold => entry.how() == How::Cold,
            What::Lost => {
                matches!(entry, Entry::Receipt(receipt) if receipt.outcome.kind == "lost")
            }
        }
    }
}
