//! A repository, opened: its place, its format, its refs and its objects.
//!
//! Of its configuration only what says its format is read, without includes.

use std::path::Path;
use std::sync::Arc;

use gix_config::file::{Metadata, init};
use gix_hash::ObjectId;
use gix_odb::store::init::{Options, Slots};
use rustix::fd::AsFd;

use crate::failure::behind;
use crate::identity::{Stamp, stamp};
use crate::place::{Place, absent};
use crate::refs::{self, Refs};
use crate::root::Terms;
use crate::{Failure, Root};

/// The most bytes of a repository's configuration; git's own have some hundreds.
const CONFIG_BYTES_MAX: usize = 1 << 20;
/// The least that one allocation for what a pack says may take, in bytes: bases of deltas, trees.
const ALLOCATION_BYTES_MIN: u64 = 256 << 20;
/// Extensions of the format that change nothing for who reads objects and refs.
const HARMLESS: [&str; 6] =
    ["noop", "noop-v1", "preciousobjects", "partialclone", "worktreeconfig", "relativeworktrees"];

/// A repository that can be read.
pub(crate) struct Repository {
    pub(crate) place: Place,
    pub(crate) hash: gix_hash::Kind,
    pub(crate) objects: gix_odb::HandleArc,
    pub(crate) refs: Refs,
    stamps: [Option<Stamp>; 2],
}

/// What makes an opened repository another one: its format, and where else its objects lie.
const STAMPED: [&str; 2] = ["config", "objects/info/alternates"];

const UNRESOLVED: Failure = Failure::Repository("its alternates cannot be resolved");
const UNOPENED: Failure = Failure::Repository("its objects cannot be opened");

impl Repository {
    /// Opens what was found.
    pub(crate) fn open(place: Place, root: &Root) -> Result<Repository, Failure> {
        let stamps = stamps(&place);
        let (hash, refs) = format(&place)?;
        let objects = place.path.join("objects");
        let here = Path::new("/");
        let elsewhere = gix_odb::alternate::resolve(objects.clone(), here)
            .map_err(|error| behind(&error, UNRESOLVED))?;
        let top = std::fs::canonicalize(&root.path).map_err(|_| absent())?;
        for each in elsewhere {
            // What is not there has no objects.
            let Ok(real) = std::fs::canonicalize(each) else { continue };
            if !real.starts_with(&top) {
                return Err(Failure::Repository("its alternates lie outside the root"));
            }
        }
        let most = root.terms.blob_bytes.saturating_mul(2).max(ALLOCATION_BYTES_MIN);
        let options = Options {
            slots: Slots::default(),
            alloc_limit_bytes: usize::try_from(most).ok(),
            current_dir: Some(here.to_owned()),
            ..Options::default()
        };
        let store = gix_odb::Store::at_opts(objects, hash, &mut std::iter::empty(), options);
        let store = store.map_err(|error| behind(&error, UNOPENED))?;
        let objects = Arc::new(store).to_cache_arc();
        Ok(Repository { place, hash, objects, refs, stamps })
    }

    /// What a ref of this full name points to in the end, if it may be named and is there. Its name
    /// was judged.
    pub(crate) fn ref_of(
        &mut self,
        name: &[u8],
        terms: &Terms,
    ) -> Result<Option<ObjectId>, Failure> {
        self.refs.resolve(&self.place, self.hash, name, terms)
    }

    /// An object's id, if this is a whole one of this repository's kind.
    pub(crate) fn id(&self, hex: &[u8]) -> Option<ObjectId> {
        refs::id(self.hash, hex)
    }

    /// Whether it is still as it was opened.
    pub(crate) fn is_current(&self) -> bool {
        self.stamps == stamps(&self.place)
    }
}

fn stamps(place: &Place) -> [Option<Stamp>; 2] {
    STAMPED.map(|name| stamp(place.dir.as_fd(), name))
}

/// How a repository names its objects and keeps its refs, if its format is known here.
fn format(place: &Place) -> Result<(gix_hash::Kind, Refs), Failure> {
    let text =
        place.read(Path::new("config"), CONFIG_BYTES_MAX, "its configuration is too large")?;
    let text = text.unwrap_or_default();
    let options = init::Options { lossy: true, ..init::Options::default() };
    let config = gix_config::File::from_bytes_no_includes(&text, Metadata::api(), options)
        .map_err(|_| Failure::Repository("its configuration cannot be read"))?;
    let version = config.integer("core.repositoryFormatVersion");
    let version = version.ok().flatten().unwrap_or(0);
    let (mut hash, mut refs) = (gix_hash::Kind::Sha1, Refs::files());
    if version == 0 {
        return Ok((hash, refs));
    }
    if version > 1 {
        return Err(Failure::Repository("its format is newer than hob knows"));
    }
    for section in config.sections_by_name("extensions").into_iter().flatten() {
        for name in section.value_names() {
            let value = section.value(name.as_ref() as &str).unwrap_or_default();
            match (name.to_ascii_lowercase().as_str(), value.as_slice()) {
                ("objectformat", b"sha1") | ("refstorage", b"files") => {}
                ("objectformat", b"sha256") => hash = gix_hash::Kind::Sha256,
                ("refstorage", b"reftable") => refs = Refs::reftable(),
                (name, _) if HARMLESS.contains(&name) => {}
                _ => {
                    return Err(Failure::Repository(
                        "its format has an extension hob does not know",
                    ));
                }
            }
        }
    }
    Ok((hash, refs))
}
