//! Whether anything that is read is older than its request, in many rounds: the branch moves to any of
//! some commits, forwards, backwards and sideways, as a push moves it (lock, rename); refs are packed
//! and objects pruned between.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::{FILE, git_of, read, reader};

const COMMITS: usize = 64;
/// Refs are packed once in so many rounds, and objects pruned.
const PACK: usize = 50;
const PRUNE: usize = 2000;

/// What was read in all rounds: how often it was older than its request, or not there.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) stale: usize,
    pub(super) failed: usize,
}

/// A repository whose branch is moved.
pub(super) struct Moved {
    git: PathBuf,
    at: PathBuf,
}

impl Moved {
    /// With a file for each ref.
    pub(super) fn files(folder: &Path) -> Result<Moved> {
        let moved = Moved { git: "git".into(), at: folder.join("files/moved") };
        std::fs::create_dir_all(&moved.at)?;
        moved.run(&["init", "--quiet", "--initial-branch=main"])?;
        Ok(moved)
    }

    /// With refs in tables, if there is a git that knows them: `make test-deps` fetches one.
    pub(super) fn tables(folder: &Path) -> Result<Option<Moved>> {
        let fetched = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/tools/git/git");
        let at = folder.join("tables/moved");
        std::fs::create_dir_all(&at)?;
        let all = ["git", fetched].map(|git| Moved { git: git.into(), at: at.clone() });
        let init = ["init", "--quiet", "--initial-branch=main", "--ref-format=reftable"];
        Ok(all.into_iter().find(|moved| moved.run(&init).is_ok()))
    }

    fn git(&self) -> Command {
        git_of(&self.git, &self.at)
    }

    fn run(&self, args: &[&str]) -> Result<()> {
        let status = self.git().args(args).stderr(Stdio::null()).status()?;
        ensure!(status.success(), "git {args:?} failed");
        Ok(())
    }
}

/// Does the rounds.
pub(super) fn rounds(moved: &Moved, count: usize) -> Result<Seen> {
    let commits = commits(moved)?;
    let mut moves = moved
        .git()
        .args(["update-ref", "--stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("git cannot be started")?;
    let mut asks = moves.stdin.take().context("a pipe")?;
    let mut said = BufReader::new(moves.stdout.take().context("a pipe")?);
    let (mut reader, mut seen) = (reader(moved.at.parent().context("a root")?), Seen::default());
    let (mut state, mut line) = (0x9e37_79b9_u64, String::new());
    for round in 0..count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let number = usize::try_from(state >> 33)? % COMMITS;
        write!(asks, "start\nupdate refs/heads/main {}\ncommit\n", commits[number])?;
        asks.flush()?;
        for answer in ["start: ok", "commit: ok"] {
            line.clear();
            said.read_line(&mut line)?;
            ensure!(line.trim() == answer, "git did not move the branch: {line}");
        }
        if round % PRUNE == PRUNE - 1 {
            moved.run(&["gc", "--quiet", "--prune=now"])?;
        } else if round % PACK == PACK - 1 {
            moved.run(&["pack-refs", "--all", "--prune"])?;
        }
        match read(&mut reader, "moved") {
            Ok(bytes) if bytes == text(number) => {}
            Ok(_) => seen.stale += 1,
            Err(_) => seen.failed += 1,
        }
    }
    drop(asks);
    moves.wait()?;
    Ok(seen)
}

fn text(number: usize) -> Vec<u8> {
    format!("<version>{number}</version>\n").repeat(number + 1).into_bytes()
}

/// Makes commits with one file each, which branches of their own keep; their ids.
fn commits(moved: &Moved) -> Result<Vec<String>> {
    let mut import = moved
        .git()
        .args(["fast-import", "--quiet"])
        .stdin(Stdio::piped())
        .spawn()
        .context("git cannot be started")?;
    let mut stream = import.stdin.take().context("a pipe")?;
    for number in 0..COMMITS {
        let text = text(number);
        write!(
            stream,
            "commit refs/heads/c{number:02}\ncommitter A <a@example.org> {number} +0000\ndata 1\nx\n\
             M 100644 inline {FILE}\ndata {}\n",
            text.len()
        )?;
        stream.write_all(&text)?;
        stream.write_all(b"\n")?;
    }
    drop(stream);
    ensure!(import.wait()?.success(), "git fast-import failed");
    let each = ["for-each-ref", "--format=%(objectname)", "refs/heads/c*"];
    let ids = moved.git().args(each).output()?;
    let ids: Vec<String> = String::from_utf8(ids.stdout)?.lines().map(str::to_owned).collect();
    ensure!(ids.len() == COMMITS, "{} commits", ids.len());
    Ok(ids)
}
