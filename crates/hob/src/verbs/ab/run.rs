//! One run: started, waited for, and what it took, wrote and ended with.

use std::fs::File;
use std::io::{Read, Seek};
use std::process::{Command, Stdio};
use std::time::Instant;

use hob_os::spawn::{Wait, Waited, wait};
use hob_wire::exit::Exit;
use rustix::fs::MemfdFlags;

use super::side::Side;
use crate::verbs::repeated::input::Input;
use crate::verbs::repeated::interrupts::Interrupts;
use crate::verbs::repeated::{DIGEST, digest};

/// So much of each output is kept to be shown, from its beginning.
const KEPT_BYTES: u64 = 4096;

/// What a run took, and left.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) pid: u32,
    /// From before the start to after the end, in microseconds.
    pub(super) wall_us: f64,
    /// User and system time of it and of what it waited for, in microseconds.
    pub(super) cpu_us: f64,
    pub(super) left: Left,
}

/// What a run left: two runs of the same thing leave the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) exit: Exit,
    pub(super) stdout: Output,
    pub(super) stderr: Output,
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Output {
    bytes: u64,
    digest: u64,
    /// Its beginning.
    pub(super) kept: Vec<u8>,
}

/// Runs a side once. Output goes to files in memory, so that no reader takes turns with it.
pub(super) fn run(side: &Side, input: &Input, interrupts: &Interrupts) -> std::io::Result<Run> {
    let (stdout, stderr) = (memory("stdout")?, memory("stderr")?);
    let (stdin, rest) = input.open()?;
    let mut command = side.command();
    command.stdin(stdin).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    let begun = Instant::now();
    let child = interrupts.spawn(&mut command)?;
    rest.feed();
    interrupts.wait_with(&child)?;
    let waited = wait(child.id(), Wait::Block)?;
    let took = begun.elapsed();
    let Waited::Ended(status, user_us, system_us, _) = waited else {
        return Err(std::io::Error::other("it has not ended"));
    };
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a run")]
    Ok(Run {
        pid: child.id(),
        wall_us: took.as_nanos() as f64 / 1000.0,
        cpu_us: (user_us + system_us) as f64,
        left: Left {
            exit: Exit::from_wait_status(status),
            stdout: output(stdout)?,
            stderr: output(stderr)?,
        },
    })
}

/// Runs a command of the user's that is not measured; what it says goes to standard error.
pub(super) fn by_shell(
    text: &str,
    at: &std::path::Path,
    interrupts: &Interrupts,
) -> std::io::Result<Exit> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(text).current_dir(at).stdin(Stdio::null());
    command.stdout(rustix::io::dup(rustix::stdio::stderr())?);
    let child = interrupts.spawn(&mut command)?;
    interrupts.wait_with(&child)?;
    match wait(child.id(), Wait::Block)? {
        Waited::Ended(status, ..) => Ok(Exit::from_wait_status(status)),
        Waited::Stopped(_) | Waited::Nothing => Err(std::io::Error::other("it has not ended")),
    }
}

fn memory(name: &str) -> std::io::Result<File> {
    Ok(rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)?.into())
}

fn output(mut file: File) -> std::io::Result<Output> {
    file.rewind()?;
    let mut output = Output { bytes: 0, digest: DIGEST, kept: Vec::new() };
    Read::by_ref(&mut file).take(KEPT_BYTES).read_to_end(&mut output.kept)?;
    output.bytes = output.kept.len() as u64;
    output.digest = digest(output.digest, &output.kept);
    if output.bytes == KEPT_BYTES {
        let mut chunk = vec![0; 64 * 1024];
        loop {
            match file.read(&mut chunk)? {
                0 => break,
                count => {
                    output.bytes += count as u64;
                    output.digest = digest(output.digest, &chunk[..count]);
                }
            }
        }
    }
    Ok(output)
}

impl Left {
    /// The first thing in which two differ, in words; `None` where nothing does.
    pub(super) fn difference(&self, other: &Left) -> Option<String> {
        if self.exit != other.exit {
            return Some(format!("{}, and then {}", ended(self.exit), ended(other.exit)));
        }
        let outputs = [
            ("standard output", &self.stdout, &other.stdout),
            ("standard error", &self.stderr, &other.stderr),
        ];
        let (name, one, two) = outputs.into_iter().find(|(_, one, two)| one != two)?;
        let lines =
            one.kept.split(|byte| *byte == b'\n').zip(two.kept.split(|byte| *byte == b'\n'));
        let found = lines.enumerate().find(|(_, (one, two))| one != two);
        Some(match found {
            Some((at, (one, two))) => format!(
                "{name} differs in line {}: `{}`, and then `{}`",
                at + 1,
                shown(one),
                shown(two)
            ),
            None => format!("{name} has {} bytes, and then {}", one.bytes, two.bytes),
        })
    }
}

/// `exit code 1`, `ended by signal 9`.
pub(super) fn ended(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("ended by signal {signal}"),
    }
}

/// The beginning of a line.
fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
