//! One run of a command, and all that it leaves: streams, exit, files. Times that it prints of
//! itself are no result.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::hob::Hob;

/// A command that has not ended by then is a server, or waits for somebody.
const TIME_MAX: Duration = Duration::from_secs(30);

/// What a run leaves, part by part.
pub(super) type Left = BTreeMap<String, Vec<u8>>;

/// A run that came to its end.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) left: Left,
    pub(super) took: Duration,
}

/// Runs a command in a folder; `None` if it did not end in time.
pub(super) fn run(hob: &Hob, mut command: Command, folder: &Path) -> Result<Option<Run>> {
    use std::os::unix::process::CommandExt;
    hob.place(&mut command);
    command.env("COLUMNS", "80").env("PYTHONHASHSEED", "0").env("SOURCE_DATE_EPOCH", "1700000000");
    command.current_dir(folder).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let (out, err) = (reader(out), reader(err));
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if start.elapsed() > TIME_MAX {
            let group = rustix::process::Pid::from_child(&child);
            let killed = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            killed.context("cannot end what takes too long")?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let took = start.elapsed();
    let Some(status) = status else { return Ok(None) };
    let mut parts = Left::new();
    parts.insert("exit".to_owned(), format!("{status}").into_bytes());
    for (name, stream) in [("stdout", out), ("stderr", err)] {
        let bytes = stream.join().map_err(|_| anyhow::anyhow!("a reader panicked"))?;
        parts.insert(name.to_owned(), without_times(&bytes));
    }
    files(folder, folder, &mut parts)?;
    Ok(Some(Run { left: parts, took }))
}

/// A stream with `#` for each number of seconds that has a fraction, such as unittest's and pytest's
/// `0.003s`: no two runs need take as long, and mostly they do, so that a chance would be a difference.
fn without_times(stream: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(stream.len());
    let mut rest = stream;
    while let Some(&first) = rest.first() {
        let digits =
            |from: usize| rest[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let whole = digits(0);
        if whole == 0 {
            out.push(first);
            rest = &rest[1..];
            continue;
        }
        let mut end = whole;
        if rest.get(whole) == Some(&b'.') && digits(whole + 1) > 0 {
            end += 1 + digits(whole + 1);
        }
        let is_over = rest.get(end + 1).is_none_or(|byte| !byte.is_ascii_alphanumeric());
        if end > whole && rest.get(end) == Some(&b's') && is_over {
            out.push(b'#');
        } else {
            out.extend_from_slice(&rest[..end]);
        }
        rest = &rest[end..];
    }
    out
}

fn reader(stream: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // What came until an error is what came.
            drop(stream.read_to_end(&mut bytes));
        }
        bytes
    })
}

/// The files below a folder, but for bytecode, which tells when it was made.
fn files(root: &Path, folder: &Path, parts: &mut Left) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_symlink() || path.extension().is_some_and(|end| end == "pyc") {
            continue;
        }
        if path.is_dir() {
            files(root, &path, parts)?;
        } else {
            let name = path.strip_prefix(root)?.display().to_string();
            parts.insert(format!("file {name}"), std::fs::read(&path)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::without_times;

    #[test]
    fn a_printed_time_is_no_difference_and_all_else_is_one() {
        let masked = |text: &str| String::from_utf8(without_times(text.as_bytes())).unwrap();
        assert_eq!(masked("Ran 1 test in 0.003s\n"), "Ran 1 test in #s\n");
        assert_eq!(masked("1 passed in 12.50s"), "1 passed in #s");
        assert_eq!(masked("[0.1s] and (3.25s), then 0.5s."), "[#s] and (#s), then #s.");
        for same in ["3s", "1.5", "1.5sec", "v1.2s3", "1.s", ".5x", "1.2.3", "10.0.1.2", "a 7", ""]
        {
            assert_eq!(masked(same), same);
        }
        assert_eq!(without_times(b"\xff1.5s\xfe"), b"\xff#s\xfe");
    }
}
