//! A root with repositories that git makes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use hob_git::{Asked, Blob, Failure, Located, Reader, Root, Terms};
use tempfile::TempDir;

/// A directory for repositories, and git without anybody's configuration.
pub(crate) struct Place {
    pub(crate) dir: TempDir,
    /// The git that makes them.
    program: PathBuf,
}

/// Each commit's time, so that the same commits have the same ids.
const TIME: &str = "1700000000 +0000";

/// What is served if nothing is said.
pub(crate) fn usual() -> Terms {
    Terms { refs: None, oids: None, owners: Vec::new(), blob_bytes: 32 << 20, cache_bytes: 8 << 20 }
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { dir: tempfile::tempdir().expect("a private directory"), program: "git".into() }
    }

    /// With a git that keeps refs in tables, as git 2.45 and later can; `None`: there is none here,
    /// and `make test-deps` can fetch none.
    pub(crate) fn with_reftables() -> Option<Place> {
        let fetched = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/git/git");
        [PathBuf::from("git"), PathBuf::from(fetched)].into_iter().find_map(|program| {
            let place = Place { program, ..Place::new() };
            let knows = place.try_git("try", &["init", "--quiet", "--ref-format=reftable"])?;
            knows.status.success().then_some(place)
        })
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    /// Runs git in a directory below the root; `None`: there is no such program.
    pub(crate) fn try_git(&self, at: &str, args: &[&str]) -> Option<Output> {
        let dir = self.root().join(at);
        std::fs::create_dir_all(&dir).expect("a directory");
        Command::new(&self.program)
            .args(["-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"])
            .args(args)
            .current_dir(dir)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "A")))
            .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "a@example.org")))
            .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_DATE"), TIME)))
            .output()
            .ok()
    }

    pub(crate) fn git(&self, at: &str, args: &[&str]) -> Vec<u8> {
        let output = self.try_git(at, args).expect("git runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?}: {said}");
        output.stdout
    }

    /// One line that git says.
    pub(crate) fn line(&self, at: &str, args: &[&str]) -> String {
        String::from_utf8(self.git(at, args)).expect("text").trim().to_owned()
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, bytes: &[u8]) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, bytes).expect("it is written");
    }

    /// A repository with one commit that has these files.
    pub(crate) fn commit(&self, at: &str, files: &[(&str, &[u8])]) -> String {
        self.git(at, &["init", "--quiet"]);
        for (path, bytes) in files {
            self.write(Path::new(at).join(path), bytes);
        }
        self.git(at, &["add", "--all"]);
        self.git(at, &["commit", "--quiet", "--allow-empty", "--message", "one"]);
        self.line(at, &["rev-parse", "HEAD"])
    }

    pub(crate) fn reader(&self, terms: Terms) -> Reader {
        Reader::new(Arc::new(Root::new(self.root(), terms)))
    }
}

/// A fixed series of numbers without order; the highest bits are the best.
pub(crate) fn series() -> impl Iterator<Item = u64> {
    let next = |state: &u64| {
        Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
    };
    std::iter::successors(Some(1), next).skip(1)
}

/// Finds and reads.
pub(crate) fn get(
    reader: &mut Reader,
    project: &str,
    rev: &str,
    path: &[u8],
) -> Result<(Located, Blob), Failure> {
    let asked = Asked { project: project.as_bytes(), rev: rev.as_bytes(), path };
    let located = reader.locate(&asked)?;
    let (blob, _) = reader.read(&located)?;
    Ok((located, blob))
}

/// The bytes.
pub(crate) fn bytes(
    reader: &mut Reader,
    project: &str,
    rev: &str,
    path: &str,
) -> Result<Vec<u8>, Failure> {
    get(reader, project, rev, path.as_bytes()).map(|(_, blob)| blob.bytes.to_vec())
}
