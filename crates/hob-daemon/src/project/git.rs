//! A mount of the kind `git`: files of revisions of repositories, as a `hob.toml` says it.
//!
//! ```toml
//! [mount."/site/gitty"]
//! git = "/srv/git"             # PROJECT or PROJECT.git below it
//! refs = ["refs/heads/*"]      # what may be named; absent: heads, tags, HEAD, ids
//! oids = true                  # object ids too, where refs are named
//! jobs = 2                     # reads at one time; absent: the processors
//! queue = 256                  # requests that wait
//! cache_mb = 64
//! blob_mb = 32                 # larger: 413
//! owners = ["git", 1001]       # whose repositories are read besides those of the site's user
//! ```

use std::path::{Path, PathBuf};

use serde::Deserialize;

/// What is kept of files that does not say, in mebibytes.
const CACHE_MB: u64 = 64;
/// The largest file that does not say, in mebibytes.
const BLOB_MB: u64 = 32;
/// Most of each, in mebibytes.
const MB_MAX: u64 = 65_536;
/// Requests that wait for a reader.
const QUEUE: u32 = 256;
/// Threads that one mount may have.
const JOBS_MAX: u32 = 256;

/// The keys of such a mount.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Keys {
    refs: Option<Vec<String>>,
    oids: Option<bool>,
    jobs: Option<u32>,
    cache_mb: Option<u64>,
    blob_mb: Option<u64>,
    #[serde(default)]
    owners: Vec<Owner>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Owner {
    Number(u32),
    Name(String),
}

/// Repositories that are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Git {
    /// The directory that has them, absolute.
    pub root: PathBuf,
    /// Which refs may be named, as patterns; `None`: heads, tags and `HEAD`.
    pub refs: Option<Vec<String>>,
    /// Whether object ids may be named; `None`: where `refs` is `None`.
    pub oids: Option<bool>,
    /// How many are read at one time.
    pub jobs: u32,
    /// How many requests may wait.
    pub queue: u32,
    /// Bytes that are kept of files.
    pub cache_bytes: u64,
    /// The most bytes of a file.
    pub blob_bytes: u64,
    /// The numbers of the users whose repositories are read besides those of the site's user.
    pub owners: Vec<u32>,
}

impl Keys {
    /// Whether any of them is there.
    pub(super) fn are_there(&self) -> bool {
        let Keys { refs, oids, jobs, cache_mb, blob_mb, owners } = self;
        refs.is_some()
            || oids.is_some()
            || jobs.is_some()
            || cache_mb.is_some()
            || blob_mb.is_some()
            || !owners.is_empty()
    }

    /// The repositories of a folder.
    pub(super) fn git(self, root: PathBuf, queue: Option<u32>) -> Result<Git, String> {
        if !root.is_dir() {
            return Err(format!("git: {} is no folder", root.display()));
        }
        let mebibytes = |key: &str, asked: Option<u64>, usual: u64, least: u64| match asked {
            None => Ok(usual << 20),
            Some(size) if (least..=MB_MAX).contains(&size) => Ok(size << 20),
            Some(size) => Err(format!("{key} = {size}: it is {least} to {MB_MAX} mebibytes")),
        };
        let jobs = match self.jobs {
            None => {
                std::thread::available_parallelism().map_or(2, |n| n.get().try_into().unwrap_or(2))
            }
            Some(jobs) if (1..=JOBS_MAX).contains(&jobs) => jobs,
            Some(jobs) => return Err(format!("jobs = {jobs}: it is 1 to {JOBS_MAX}")),
        };
        if self.refs.as_ref().is_some_and(Vec::is_empty) {
            return Err("refs: it names no ref; take it out, or name one".to_owned());
        }
        let queue = queue.unwrap_or(QUEUE);
        if queue == 0 {
            return Err("queue = 0: one request at least has to wait for a reader".to_owned());
        }
        let owners = self.owners.into_iter().map(Owner::number).collect::<Result<Vec<u32>, _>>()?;
        Ok(Git {
            root,
            refs: self.refs,
            oids: self.oids,
            jobs,
            queue,
            cache_bytes: mebibytes("cache_mb", self.cache_mb, CACHE_MB, 0)?,
            blob_bytes: mebibytes("blob_mb", self.blob_mb, BLOB_MB, 1)?,
            owners,
        })
    }
}

impl Owner {
    fn number(self) -> Result<u32, String> {
        match self {
            Owner::Number(number) => Ok(number),
            Owner::Name(name) => user(&name, Path::new("/etc/passwd"))
                .ok_or_else(|| format!("owners: there is no user `{name}` here; name a number")),
        }
    }
}

/// The number of a user of this machine.
fn user(name: &str, table: &Path) -> Option<u32> {
    let table = std::fs::read(table).ok()?;
    let table = String::from_utf8_lossy(&table);
    table.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then(|| fields.nth(1)?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_held_and_users_are_found() {
        let here = std::env::temp_dir();
        let usual = Keys::default().git(here.clone(), None).expect("it is right");
        assert_eq!((usual.queue, usual.cache_bytes, usual.blob_bytes), (256, 64 << 20, 32 << 20));
        assert!(usual.jobs >= 1 && usual.refs.is_none() && usual.oids.is_none());
        let root =
            Keys { owners: vec![Owner::Name("root".into()), Owner::Number(7)], ..Keys::default() };
        assert_eq!(root.git(here.clone(), None).map(|git| git.owners), Ok(vec![0, 7]));
        for wrong in [
            Keys { jobs: Some(0), ..Keys::default() },
            Keys { jobs: Some(1000), ..Keys::default() },
            Keys { blob_mb: Some(0), ..Keys::default() },
            Keys { cache_mb: Some(u64::MAX), ..Keys::default() },
            Keys { refs: Some(Vec::new()), ..Keys::default() },
            Keys { owners: vec![Owner::Name("no such user".into())], ..Keys::default() },
        ] {
            assert!(wrong.are_there());
            assert!(wrong.git(here.clone(), None).is_err());
        }
        assert!(Keys::default().git(here.join("absent"), None).is_err());
        assert!(Keys::default().git(here, Some(0)).is_err());
    }
}
