//! Whether anything that is read is older than its request, in many rounds: the branch moves to any of
//! some commits, forwards, backwards and sideways, as a push moves it (lock, rename); refs are packed
//! and objects pruned between.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};

use super::{FILE, git, read, reader};

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

/// Makes its repository in a folder, and does the rounds.
pub(super) fn rounds(folder: &Path, count: usize) -> Result<Seen> {
    let root = folder.join("moved");
    let at = root.join("moved");
    std::fs::create_dir_all(&at)?;
    let commits = commits(&at)?;
    let mut moves = git(&at)
        .args(["update-ref", "--stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("git cannot be started")?;
    let mut asks = moves.stdin.take().context("a pipe")?;
    let mut said = BufReader::new(moves.stdout.take().context("a pipe")?);
    let (mut reader, mut seen) = (reader(&root), Seen::default());
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
            run(&at, &["gc", "--quiet", "--prune=now"])?;
        } else if round % PACK == PACK - 1 {
            run(&at, &["pack-refs", "--all", "--prune"])?;
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

fn run(at: &Path, args: &[&str]) -> Result<()> {
    ensure!(git(at).args(args).status()?.success(), "git {args:?} failed");
    Ok(())
}

/// Makes commits with one file each, which branches of their own keep; their ids.
fn commits(at: &Path) -> Result<Vec<String>> {
    run(at, &["init", "--quiet", "--initial-branch=main"])?;
    let mut import = git(at)
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
    let ids = git(at).args(["for-each-ref", "--format=%(objectname)", "refs/heads/c*"]).output()?;
    let ids: Vec<String> = String::from_utf8(ids.stdout)?.lines().map(str::to_owned).collect();
    ensure!(ids.len() == COMMITS, "{} commits", ids.len());
    Ok(ids)
}
