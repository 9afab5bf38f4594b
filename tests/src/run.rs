//! One process that a test starts: how, and what became of it.
//!
//! Its output goes to files, so that a program which leaves its output open in a background
//! process cannot hold the test.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with as pipe_with_flags};
use rustix::process::{Pid, Signal, kill_process};

use crate::bytes::contains;
use crate::{leftovers, wait};

/// How to start a process. Only descriptors 0 to 2 are open in it, and its environment is
/// exactly what was said.
#[derive(Debug, Clone)]
pub struct Run {
    wrapping: Vec<OsString>,
    argv: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    directory: PathBuf,
    stdin: Stdin,
    stdout: Option<PathBuf>,
    group: bool,
}

#[derive(Debug, Clone)]
enum Stdin {
    Bytes { bytes: Vec<u8>, at: u64 },
    Filled { bytes: Vec<u8>, flags: PipeFlags },
    Pipe,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

/// What a process did.
#[derive(Clone, Eq)]
pub struct Outcome {
    /// Its process id.
    pub pid: u32,
    /// How it ended.
    pub end: End,
    /// What it wrote to stdout.
    pub out: Vec<u8>,
    /// What it wrote to stderr.
    pub err: Vec<u8>,
}

/// A process that was started; killed if the test ends first.
#[derive(Debug)]
pub struct Running {
    child: Child,
    out: File,
    err: File,
    ended: Option<End>,
}

impl Run {
    /// A run of `argv` in a directory, with an environment.
    #[must_use]
    pub fn new(
        argv: Vec<OsString>,
        directory: &Path,
        environment: Vec<(OsString, OsString)>,
    ) -> Run {
        Run {
            wrapping: Vec::new(),
            argv,
            environment,
            directory: directory.to_owned(),
            stdin: Stdin::Bytes { bytes: Vec::new(), at: 0 },
            stdout: None,
            group: false,
        }
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Run {
        self = self.without(&name);
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Removes a variable.
    #[must_use]
    pub fn without(mut self, name: impl AsRef<OsStr>) -> Run {
        self.environment.retain(|(other, _)| other != name.as_ref());
        self
    }

    /// Runs in this directory.
    #[must_use]
    pub fn within(mut self, directory: impl AsRef<Path>) -> Run {
        directory.as_ref().clone_into(&mut self.directory);
        self
    }

    /// A file with these bytes is standard input.
    #[must_use]
    pub fn stdin(self, bytes: impl Into<Vec<u8>>) -> Run {
        self.stdin_at(bytes, 0)
    }

    /// The same, read up to there already.
    #[must_use]
    pub fn stdin_at(mut self, bytes: impl Into<Vec<u8>>, at: u64) -> Run {
        self.stdin = Stdin::Bytes { bytes: bytes.into(), at };
        self
    }

    /// Standard input is a pipe that holds these bytes, at most as many as fit in, and then ends.
    #[must_use]
    pub fn stdin_filled(mut self, bytes: impl Into<Vec<u8>>, flags: PipeFlags) -> Run {
        self.stdin = Stdin::Filled { bytes: bytes.into(), flags };
        self
    }

    /// Standard input is a pipe that the test holds.
    #[must_use]
    pub fn stdin_pipe(mut self) -> Run {
        self.stdin = Stdin::Pipe;
        self
    }

    /// This path is opened as standard output.
    #[must_use]
    pub fn stdout(mut self, path: impl AsRef<Path>) -> Run {
        self.stdout = Some(path.as_ref().to_owned());
        self
    }

    /// The process gets a group of its own.
    #[must_use]
    pub fn in_own_group(mut self) -> Run {
        self.group = true;
        self
    }

    /// Stands before the command: a program that changes something of the caller's world and
    /// then executes its arguments in its own place (`env`, `prlimit`, `nice`, `setsid`).
    #[must_use]
    pub fn under<S: AsRef<OsStr>>(mut self, words: &[S]) -> Run {
        self.wrapping.extend(words.iter().map(|word| word.as_ref().to_owned()));
        self
    }

    /// Shell commands that run first, in the same process (`umask 027`, `exec 3<file`).
    #[must_use]
    pub fn after(self, commands: &str) -> Run {
        let script = format!("{commands}\nexec \"$@\"");
        self.under(&["bash", "-c", &script, "bash"])
    }

    /// More arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, words: &[S]) -> Run {
        self.argv.extend(words.iter().map(|word| word.as_ref().to_owned()));
        self
    }

    /// The command line as it is executed.
    #[must_use]
    pub fn command_line(&self) -> Vec<OsString> {
        self.wrapping.iter().chain(&self.argv).cloned().collect()
    }

    /// The variables.
    #[must_use]
    pub fn environment(&self) -> &[(OsString, OsString)] {
        &self.environment
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Starts it.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(&self) -> Running {
        use std::os::unix::process::CommandExt;
        let words = self.command_line();
        let out = tempfile::tempfile().expect("a temporary file can be made");
        let err = tempfile::tempfile().expect("a temporary file can be made");
        let copy = |file: &File| Stdio::from(file.try_clone().expect("a descriptor is free"));
        // Found here, so that the standard library starts all of them by the same way, which
        // shows in a process's ignored signals.
        let mut command = Command::new(self.find(&words[0]));
        command
            .arg0(&words[0])
            .args(&words[1..])
            .env_clear()
            .envs(self.environment.iter().cloned());
        command.current_dir(&self.directory).stderr(copy(&err));
        command.stdout(match &self.stdout {
            Some(path) => {
                let file = File::options().append(true).open(path);
                file.expect("what was named as stdout can be opened").into()
            }
            None => copy(&out),
        });
        command.stdin(match &self.stdin {
            Stdin::Bytes { bytes, at } => file_with(bytes, *at).into(),
            Stdin::Filled { bytes, flags } => pipe_with(bytes, *flags),
            Stdin::Pipe => Stdio::piped(),
        });
        if self.group {
            command.process_group(0);
        }
        let _alone = crate::alone();
        let child = command.spawn().unwrap_or_else(|error| panic!("{words:?}: {error}"));
        Running { child, out, err, ended: None }
    }

    fn find(&self, program: &OsStr) -> PathBuf {
        if program.as_encoded_bytes().contains(&b'/') {
            return program.into();
        }
        let path = self.environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value);
        let path = path.map_or(OsStr::new("/usr/bin:/bin"), OsString::as_os_str);
        let found = std::env::split_paths(path).map(|folder| folder.join(program));
        found.into_iter().find(|file| file.is_file()).unwrap_or_else(|| program.into())
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When it does not end within the bound.
    #[must_use]
    pub fn go(&self) -> Outcome {
        self.start().finish()
    }

    /// The same for what works for long on a busy machine, such as `pip`.
    ///
    /// # Panics
    /// When it cannot be started or does not end within some minutes.
    #[must_use]
    pub fn go_long(&self) -> Outcome {
        self.start().finish_within(6 * wait::LONG)
    }
}

fn file_with(bytes: &[u8], at: u64) -> File {
    let mut file = tempfile::tempfile().expect("a temporary file can be made");
    let written = file.write_all(bytes).and_then(|()| file.seek(SeekFrom::Start(at)));
    written.expect("a temporary file can be written");
    file
}

fn pipe_with(bytes: &[u8], flags: PipeFlags) -> Stdio {
    let (from, to) = pipe_with_flags(flags | PipeFlags::CLOEXEC).expect("a pipe can be made");
    File::from(to).write_all(bytes).expect("a pipe holds what fits in");
    from.into()
}

impl Running {
    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has written to stdout so far.
    #[must_use]
    pub fn out(&self) -> Vec<u8> {
        content(&self.out)
    }

    /// What it has written to stderr so far.
    #[must_use]
    pub fn err(&self) -> Vec<u8> {
        content(&self.err)
    }

    /// Waits until stdout contains this.
    ///
    /// # Panics
    /// When it does not come.
    pub fn expect(&self, text: &str) {
        let found = wait::look(wait::LONG, || contains(&self.out(), text.as_bytes()).then_some(()));
        if found.is_none() {
            panic!(
                "{text:?} did not come; stdout: {:?}, stderr: {:?}",
                show(&self.out()),
                show(&content(&self.err))
            );
        }
    }

    /// Waits until every process that writes to this stdout sleeps: it has said something, and
    /// now waits for something.
    ///
    /// # Panics
    /// When it does not come to rest.
    pub fn until_asleep(&self) {
        use std::os::unix::fs::MetadataExt;
        let own = self.out.metadata().map_or((0, 0), |file| (file.dev(), file.ino()));
        wait::until("the program sleeps", || {
            let mut writers = leftovers::all().into_iter().filter(|pid| {
                let stdout = std::fs::metadata(format!("/proc/{pid}/fd/1"));
                stdout.is_ok_and(|file| (file.dev(), file.ino()) == own)
            });
            writers.all(|pid| state(pid) == Some('S')).then_some(())
        });
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal);
    }

    /// Waits until the process is stopped.
    pub fn until_stopped(&self) {
        wait::until("the process is stopped", || (state(self.pid()) == Some('T')).then_some(()));
    }

    /// The end of its standard input that the test holds.
    ///
    /// # Panics
    /// When it was not asked for.
    #[must_use]
    pub fn take_stdin(&mut self) -> std::process::ChildStdin {
        self.child.stdin.take().expect("stdin was asked to be a pipe, and is taken once")
    }

    /// Waits until it has ended.
    ///
    /// # Panics
    /// When it does not end within the bound.
    #[must_use]
    pub fn finish(self) -> Outcome {
        self.finish_within(wait::LONG)
    }

    /// The same for what works for long on a busy machine.
    ///
    /// # Panics
    /// When it does not end within the bound.
    #[must_use]
    pub fn finish_within(self, bound: Duration) -> Outcome {
        if !wait::ended(self.pid(), bound) {
            panic!(
                "it did not end; stdout: {:?}, stderr: {:?}",
                show(&self.out()),
                show(&content(&self.err))
            );
        }
        self.ended()
    }

    /// Waits until it has ended; `None` if it did not within this bound, and was killed.
    #[must_use]
    pub fn finish_if_within(self, bound: Duration) -> Option<Outcome> {
        wait::ended(self.pid(), bound).then(|| self.ended())
    }

    /// The same, with what others write when it has ended itself; waits no longer for them than that.
    #[must_use]
    pub fn settled_if_within(self, bound: Duration, others: Duration) -> Option<Outcome> {
        if !wait::ended(self.pid(), bound) {
            return None;
        }
        // An output that somebody keeps open is read as it is.
        let outputs = [&self.out, &self.err];
        let _ =
            wait::look(others, || leftovers::writers(outputs, self.pid()).is_empty().then_some(()));
        Some(self.ended())
    }

    fn ended(mut self) -> Outcome {
        let status = self.child.wait().expect("a child can be waited for");
        let end = match (status.code(), status.signal()) {
            (Some(code), _) => End::Code(code),
            (None, signal) => End::Signal(signal.unwrap_or(0)),
        };
        self.ended = Some(end);
        Outcome { pid: self.pid(), end, out: self.out(), err: content(&self.err) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl Outcome {
    /// Stdout as text.
    #[must_use]
    pub fn text(&self) -> String {
        show(&self.out)
    }

    /// Stderr as text.
    #[must_use]
    pub fn complaint(&self) -> String {
        show(&self.err)
    }

    /// Panics unless it exited with 0.
    ///
    /// # Panics
    /// When it did not.
    pub fn succeeded(&self) {
        assert_eq!(self.end, End::Code(0), "{self:?}");
    }
}

impl PartialEq for Outcome {
    fn eq(&self, other: &Outcome) -> bool {
        self.end == other.end
            && without_addresses(&self.out) == without_addresses(&other.out)
            && without_addresses(&self.err) == without_addresses(&other.err)
    }
}

impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{:?}\n--- stdout\n{}\n--- stderr\n{}\n---",
            self.end,
            self.text(),
            self.complaint()
        )
    }
}

/// Addresses differ from run to run, cold or warm.
fn without_addresses(bytes: &[u8]) -> Vec<u8> {
    let mut rest = bytes;
    let mut out = Vec::with_capacity(bytes.len());
    while let Some(first) = rest.first() {
        let digits = rest.strip_prefix(b"0x").unwrap_or_default();
        let len = digits.iter().take_while(|digit| digit.is_ascii_hexdigit()).count();
        if len >= 8 {
            out.extend_from_slice(b"0xADDRESS");
            rest = &digits[len..];
        } else {
            out.push(*first);
            rest = &rest[1..];
        }
    }
    out
}

/// Sends a signal to a process, if it is still there.
pub fn kill(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id is positive");
    let _ = kill_process(pid, signal);
}

/// The state of a process as `/proc` shows it; `None` if it is not there.
#[must_use]
pub fn state(pid: u32) -> Option<char> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let end = text.iter().rposition(|byte| *byte == b')')?;
    text.get(end + 2).map(|byte| char::from(*byte))
}

fn content(file: &File) -> Vec<u8> {
    let size = file.metadata().map_or(0, |metadata| metadata.len());
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
    let read = file.read_at(&mut bytes, 0).unwrap_or(0);
    bytes.truncate(read);
    bytes
}

fn show(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Reads a whole file, or nothing.
#[must_use]
pub fn read(path: impl AsRef<Path>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(mut file) = File::open(path) {
        let _ = file.read_to_end(&mut bytes);
    }
    bytes
}
