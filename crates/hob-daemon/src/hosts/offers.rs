//! What this host offers to others, and where what is asked of it comes from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hob_core::hosts::Offered;
use hob_core::log::Category;
use hob_wire::strings::Strings;

use crate::handlers::route::From;
use crate::{project, trust};

/// The programs that are offered.
#[derive(Debug, Default)]
pub(crate) struct Offers {
    /// Each by its name; and where its `hob.toml` is.
    offers: BTreeMap<String, (Offered, PathBuf)>,
    /// Where what is asked of them comes from, by their directories.
    froms: BTreeMap<PathBuf, Arc<From>>,
}

impl Offers {
    pub(super) fn is_empty(&self) -> bool {
        self.offers.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.offers.clear();
    }

    /// Finds out what is offered; whether that is not what it was. Where two files offer one name, the
    /// first by its path counts.
    pub(super) fn look(&mut self, home: Option<&Path>) -> bool {
        let trusted = home.map(trust::list).and_then(Result::ok).unwrap_or_default();
        let mut offers = BTreeMap::new();
        let mut files: Vec<PathBuf> = trusted.into_iter().map(|entry| entry.path).collect();
        files.sort();
        for directory in files.iter().filter_map(|file| file.parent()) {
            for offered in project::offered(home, directory) {
                let name = offered.program.clone();
                offers.entry(name).or_insert_with(|| (offered, directory.to_owned()));
            }
        }
        if offers == self.offers {
            return false;
        }
        let names: Vec<&str> = offers.keys().map(String::as_str).collect();
        hob_os::debug!(Category::Hosts, "this host offers: {}", names.join(", "));
        self.offers = offers;
        self.froms.clear();
        true
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Offered> {
        self.offers.values().map(|(offered, _)| offered.clone()).collect()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.offers.keys().cloned().collect()
    }

    /// Whether a program is only performed by one host of all.
    pub(super) fn is_claimed(&self, program: &str) -> bool {
        self.offers.get(program).is_some_and(|(offered, _)| offered.claimed)
    }

    /// Where an offered program's `hob.toml` is.
    pub(super) fn directory(&self, program: &str) -> Option<&Path> {
        self.offers.get(program).map(|(_, directory)| directory.as_path())
    }

    /// Where the messages of other hosts to an offered program come from, as far as that decides
    /// where they go.
    pub(super) fn from(&mut self, program: &str) -> Option<Arc<From>> {
        let (_, directory) = self.offers.get(program)?;
        if let Some(from) = self.froms.get(directory) {
            return Some(Arc::clone(from));
        }
        let bytes = directory.as_os_str().as_encoded_bytes().to_vec();
        let from = Arc::new(From::new(bytes, own_environment()));
        self.froms.insert(directory.clone(), Arc::clone(&from));
        Some(from)
    }
}

/// The environment of this process.
fn own_environment() -> Strings {
    let variables = std::env::vars_os();
    let line = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        let mut line = name.into_encoded_bytes();
        line.push(b'=');
        line.extend_from_slice(value.as_encoded_bytes());
        line
    };
    variables.map(line).collect()
}
