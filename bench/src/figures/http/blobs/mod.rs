//! Files of repositories: read in this process by `hob-git`, by `git show`, by one `git cat-file
//! --batch` that is kept open, and over HTTP on kept connections; by cgit and gitweb, by a clone, and
//! a plain file of the same bytes over HTTP; all on the same machine and files. The ref is read again
//! for each read. The time of git, cgit and gitweb is that of whole processes.

mod peers;
mod stale;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use hob_git::{Asked, Reader, Root, Terms};

use crate::Setting;
use crate::hob::Hob;
use crate::report::{Figure, Want};
use crate::stats;

use super::client::{Connections, Load, Page};
use super::server::Server;
use super::{fact, take_turns, trusted};
use peers::Cgi;
use stale::Moved;

/// The file's size: that of the description that the original read.
const BYTES: usize = 24 << 10;
const PROJECTS: usize = 100;
const ROUNDS: usize = 10;
/// Reads in a round of what takes microseconds, and of what takes a process.
const READS: usize = 2000;
const PROCESSES: usize = 20;
const REQUESTS: usize = 4096;
const WIDTH: usize = 16;
/// Requests one after another, and clones, in a round.
const ALONE: usize = 500;
const CLONES: usize = 10;
const STALE_ROUNDS: usize = 100_000;
const FILE: &str = "application.xml";

/// What was measured, in microseconds.
#[derive(Debug, Default)]
struct Measured {
    warm: Vec<f64>,
    show: Vec<f64>,
    batch: Vec<f64>,
    first: Vec<f64>,
    shown: Vec<f64>,
    load: Load,
    cpu_us: f64,
    /// Over HTTP, one at a time: a file of a repository, the same again as 304, a plain file.
    alone: Load,
    not_modified: Load,
    not_modified_cpu_us: f64,
    plain: Load,
    cgit: Vec<f64>,
    gitweb: Vec<f64>,
    cloned: Vec<f64>,
}

pub(super) fn blobs(setting: &Setting, hob: &Hob, figure: &mut Figure) -> Result<()> {
    let folder = hob.folder("blobs")?;
    let root = folder.join("srv");
    let text = projects(&root)?;
    let tables = "[mount.\"/git\"]\ngit = \"srv\"\n[mount.\"/files\"]\nstatic = \"srv/p0\"\n";
    let mut recipe = trusted(hob, "hob, git", &folder, tables)?;
    recipe.page = Page::new(&format!("/git/blob/p0/main?path={FILE}"), &text[..64]);
    let plain = Page::new(&format!("/files/{FILE}"), &text[..64]);
    let oid = git(&root.join("p0")).args(["rev-parse", &format!("main:{FILE}")]).output()?.stdout;
    let oid = String::from_utf8(oid)?;
    let head = format!("If-None-Match: \"{}\"\r\n", oid.trim());
    let known = Page { status: 304, head, words: Vec::new(), ..recipe.page.clone() };
    let (cgit, gitweb) = (Cgi::cgit(&folder, &root)?, Cgi::gitweb(&folder, &root)?);
    let mut seen = Measured::default();
    let mut reader = reader(&root);
    let mut cat = Cat::start(&root.join("p0"))?;
    take_turns("http, blobs", setting.rounds(ROUNDS), 5, |at| match at {
        0 => in_process(&mut reader, &text, &mut seen),
        1 => by_git(&root, &mut cat, &text, &mut seen),
        2 => never_opened(&root, &mut seen),
        3 => {
            let server = recipe.start(&folder, &hob.environment())?;
            over_http(&server, &known, &plain, &mut seen)
        }
        _ => {
            by_others([&cgit, &gitweb], &text, &mut seen)?;
            cloned(&folder, &root, &mut seen)
        }
    })?;
    cat.end();
    told(figure, &seen);
    let count = if setting.is_quick() { STALE_ROUNDS / 20 } else { STALE_ROUNDS };
    let mut told = |name: &str, moved: &Moved| -> Result<()> {
        let seen = stale::rounds(moved, count)?;
        fact(figure, &format!("rounds of a moved branch, {name}"), count as f64);
        let wrong = (seen.stale + seen.failed) as f64;
        let name = format!("stale or failed reads in them, {name}");
        figure.target(&name, Want::AtMost(0.0), wrong);
        Ok(())
    };
    told("refs in files", &Moved::files(&folder)?)?;
    if let Some(moved) = Moved::tables(&folder)? {
        told("refs in tables", &moved)?;
    }
    Ok(())
}

fn in_process(reader: &mut Reader, text: &[u8], seen: &mut Measured) -> Result<()> {
    ensure!(read(reader, "p0")? == text, "hob-git reads something else");
    for _ in 0..READS {
        let begun = Instant::now();
        let bytes = read(reader, "p0")?;
        seen.warm.push(us(begun));
        drop(bytes);
    }
    Ok(())
}

fn by_git(root: &Path, cat: &mut Cat, text: &[u8], seen: &mut Measured) -> Result<()> {
    for _ in 0..PROCESSES {
        let begun = Instant::now();
        ensure!(git_show(&root.join("p0"))? == text, "git shows something else");
        seen.show.push(us(begun));
    }
    for _ in 0..READS {
        let begun = Instant::now();
        let bytes = cat.read()?;
        seen.batch.push(us(begun));
        ensure!(bytes == text.len(), "git's batch reads something else");
    }
    Ok(())
}

fn never_opened(root: &Path, seen: &mut Measured) -> Result<()> {
    let begun = Instant::now();
    let mut fresh = reader(root);
    for project in 0..PROJECTS {
        read(&mut fresh, &format!("p{project}"))?;
    }
    seen.first.push(us(begun));
    let begun = Instant::now();
    for project in 0..PROJECTS {
        git_show(&root.join(format!("p{project}")))?;
    }
    seen.shown.push(us(begun));
    Ok(())
}

fn over_http(server: &Server, known: &Page, plain: &Page, seen: &mut Measured) -> Result<()> {
    server.ask(4, Connections::Kept, 256)?;
    let kept = Connections::Kept;
    let (each, cpu) = server.ask_timed(WIDTH, kept, REQUESTS)?;
    seen.load.add(each);
    seen.cpu_us += cpu;
    let (each, cpu) = server.ask_page_timed(known, WIDTH, kept, REQUESTS)?;
    seen.not_modified.add(each);
    seen.not_modified_cpu_us += cpu;
    seen.alone.add(server.ask(1, kept, ALONE)?);
    seen.plain.add(server.ask_page_timed(plain, 1, kept, ALONE)?.0);
    Ok(())
}

fn by_others([cgit, gitweb]: [&Cgi; 2], text: &[u8], seen: &mut Measured) -> Result<()> {
    let peers = [(cgit, &mut seen.cgit), (gitweb, &mut seen.gitweb)];
    for (peer, times) in peers.into_iter().filter(|(peer, _)| peer.is_there()) {
        for _ in 0..PROCESSES / 2 {
            let begun = Instant::now();
            peer.ask(text)?;
            times.push(us(begun));
        }
    }
    Ok(())
}

fn cloned(folder: &Path, root: &Path, seen: &mut Measured) -> Result<()> {
    let clones = folder.join("clones");
    std::fs::create_dir_all(&clones)?;
    let begun = Instant::now();
    for project in 0..CLONES {
        peers::clone(root, &format!("p{project}"), &clones.join(project.to_string()))?;
    }
    seen.cloned.push(us(begun) / CLONES as f64 * PROJECTS as f64);
    std::fs::remove_dir_all(&clones)?;
    Ok(())
}

fn told(figure: &mut Figure, seen: &Measured) {
    let load = &seen.load;
    let [warm, show, batch] = [&seen.warm, &seen.show, &seen.batch].map(|all| stats::median(all));
    let [first, shown, cloned] =
        [&seen.first, &seen.shown, &seen.cloned].map(|all| stats::median(all));
    let alone = stats::median(&seen.alone.us);
    for (name, value) in [
        ("24 KiB by branch, in process: p50 in us", warm),
        ("git show: p50 in us", show),
        ("git cat-file --batch: p50 in us", batch),
        ("100 projects never opened, in process: us", first),
        ("100 projects, git show: us", shown),
        ("hob, git: requests a second", load.throughput()),
        ("hob, git: p50 in us", stats::median(&load.us)),
        ("hob, git, one at a time: p50 in us", alone),
        ("hob, a plain file, one at a time: p50 in us", stats::median(&seen.plain.us)),
        ("100 projects, cloned by git with their checkout: us", cloned),
    ] {
        fact(figure, name, value);
    }
    for (name, times, least) in [("cgit", &seen.cgit, 10.0), ("gitweb", &seen.gitweb, 250.0)] {
        if times.is_empty() {
            continue;
        }
        let took = stats::median(times);
        fact(figure, &format!("{name}, its process alone: p50 in us"), took);
        let name = format!("{name} over hob by HTTP, one at a time");
        figure.target(&name, Want::AtLeast(least), took / alone);
    }
    let each = seen.not_modified_cpu_us / seen.not_modified.us.len() as f64;
    figure.target("processor time of a 304: us", Want::AtMost(20.0), each);
    figure.target("100 projects: clones over it", Want::AtLeast(300.0), cloned / first);
    figure.target("24 KiB by branch, in process: us", Want::AtMost(10.0), warm);
    figure.target("git show over it", Want::AtLeast(300.0), show / warm);
    figure.target("git cat-file --batch over it", Want::AtLeast(40.0), batch / warm);
    figure.target("100 projects never opened: ms", Want::AtMost(60.0), first / 1000.0);
    figure.target("100 projects: git show over it", Want::AtLeast(7.0), shown / first);
    let each = seen.cpu_us / load.us.len() as f64;
    figure.target("processor time of a blob over HTTP: us", Want::AtMost(40.0), each);
}

fn us(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e6
}

fn reader(root: &Path) -> Reader {
    let terms = Terms {
        refs: None,
        oids: None,
        owners: Vec::new(),
        blob_bytes: 32 << 20,
        cache_bytes: 64 << 20,
    };
    Reader::new(Arc::new(Root::new(root.to_path_buf(), terms)))
}

fn read(reader: &mut Reader, project: &str) -> Result<bytes::Bytes> {
    let asked = Asked { project: project.as_bytes(), rev: b"main", path: FILE.as_bytes() };
    let located = reader.locate(&asked)?;
    Ok(reader.read(&located)?.0.bytes)
}

/// Makes the projects, packed as a server has them, and says what is in their file.
fn projects(root: &Path) -> Result<Vec<u8>> {
    let first = root.join("p0");
    std::fs::create_dir_all(&first)?;
    let lines = (0..).map(|number: u32| {
        format!("  <entry name=\"n{}\"/>\n", number.wrapping_mul(2_654_435_761))
    });
    let text: String = lines
        .scan(0, |sum, line| {
            *sum += line.len();
            (*sum <= BYTES).then_some(line)
        })
        .collect();
    std::fs::write(first.join(FILE), &text)?;
    for args in [
        &["init", "--quiet", "--initial-branch=main"][..],
        &["add", "--all"],
        &["-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet", "-m", "x"],
        &["gc", "--quiet"],
    ] {
        let status = git(&first).args(args).status().context("git cannot be started")?;
        ensure!(status.success(), "git {args:?} failed");
    }
    for project in 1..PROJECTS {
        let at: PathBuf = root.join(format!("p{project}"));
        let copied = Command::new("cp").arg("-a").arg(&first).arg(&at).status()?;
        ensure!(copied.success(), "the first project cannot be copied");
    }
    Ok(text.into_bytes())
}

fn git(at: &Path) -> Command {
    git_of(Path::new("git"), at)
}

fn git_of(program: &Path, at: &Path) -> Command {
    let mut git = Command::new(program);
    git.arg("-C").arg(at).env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", at);
    git
}

fn git_show(at: &Path) -> Result<Vec<u8>> {
    let output = git(at).args(["show", &format!("main:{FILE}")]).output()?;
    ensure!(output.status.success(), "git show failed");
    Ok(output.stdout)
}

/// One `git cat-file --batch`.
struct Cat {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Cat {
    fn start(at: &Path) -> Result<Cat> {
        let mut command = git(at);
        command.args(["cat-file", "--batch"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let answers = BufReader::new(child.stdout.take().context("a pipe")?);
        Ok(Cat { child, answers })
    }

    /// Reads the file; its bytes.
    fn read(&mut self) -> Result<usize> {
        let asked = self.child.stdin.as_mut().context("a pipe")?;
        asked.write_all(format!("main:{FILE}\n").as_bytes())?;
        let mut head = String::new();
        self.answers.read_line(&mut head)?;
        let size: usize = head.trim().rsplit(' ').next().context("a size")?.parse()?;
        let mut bytes = vec![0; size + 1];
        self.answers.read_exact(&mut bytes)?;
        Ok(size)
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
