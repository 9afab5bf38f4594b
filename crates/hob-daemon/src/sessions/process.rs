//! The process of one session: how it is started, where it listens and prints, how it ends.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hob_core::sessions::SessionId;
use hob_core::sessions::dialogue::Cloned;
use hob_os::spawn::{self, Image, Wait, Waited};
use hob_os::uds;
use hob_runtimes::{Session, session_language};
use hob_wire::exit::Exit;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use crate::inputs::{Input, Wanted};
use crate::workers::runtimes::bytes;

/// What the names of a session's socket and log begin with; its number follows. They are shorter
/// than that of the daemon's own socket, so that there is room for them where there is for that.
const NAME: &str = "s";
/// The end of a log's name.
const LOG: &str = ".log";
/// How much of a log is told to a client.
const TAIL_BYTES: usize = 1024;

/// A session's process.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) name: String,
    pub(super) language: &'static str,
    pub(super) interpreter: String,
    /// Where it takes connections.
    pub(super) socket: PathBuf,
    log: PathBuf,
    /// The directory that it was started in.
    pub(super) place: PathBuf,
    /// What answers in it, once it has said so.
    pub(super) serves: Vec<u8>,
    pub(super) cloned: Arc<Mutex<Cloned>>,
    /// How it has ended, if it has.
    pub(super) end: Option<Exit>,
}

impl Process {
    /// Starts it as its client wants it. What goes wrong is a line for a person.
    pub(super) fn start(
        id: SessionId,
        wanted: &Wanted,
        directory: &Path,
        owner: &mpsc::Sender<Input>,
    ) -> Result<Process, String> {
        let open = &wanted.open;
        let name = String::from_utf8_lossy(&open.name).into_owned();
        let language = core::str::from_utf8(&open.language).ok().and_then(session_language);
        let row =
            language.ok_or_else(|| format!("{name}: no language that hob has sessions of"))?;
        let failed = |what: &str, error: std::io::Error| format!("{name}: {what}: {error}");
        let socket = directory.join(format!("{NAME}{}", id.0));
        let log = directory.join(format!("{NAME}{}{LOG}", id.0));
        let words = (row.command)(Session {
            interpreter: &open.interpreter,
            libraries: &open.libraries,
            folder: &bytes(directory),
            socket: &bytes(&socket),
        });
        let string =
            |word: &[u8]| CString::new(word).map_err(|_| format!("{name}: a NUL in a word"));
        let image = Image {
            file: string(&open.interpreter)?,
            argv: words.iter().map(|word| string(word)).collect::<Result<_, _>>()?,
            env: open.env.iter().map(string).collect::<Result<_, _>>()?,
        };
        let flags = OFlags::WRONLY
            | OFlags::APPEND
            | OFlags::CREATE
            | OFlags::TRUNC
            | OFlags::NOFOLLOW
            | OFlags::CLOEXEC;
        let prints = rustix::fs::open(&log, flags, Mode::from_raw_mode(0o600))
            .map_err(|error| failed("its log cannot be opened", error.into()))?;
        let (ours, theirs) =
            uds::pair().map_err(|error| failed("no channel can be made", error.into()))?;
        // The process reads it in its own time.
        rustix::io::ioctl_fionbio(&theirs, false)
            .map_err(|error| failed("no channel can be made", error.into()))?;
        let place = rustix::fs::readlink(format!("/proc/self/fd/{}", raw(&wanted.directory)), [])
            .map(|path| PathBuf::from(lossless(path)))
            .unwrap_or_default();
        let streams = spawn::Worker {
            channel: &theirs,
            stdout: &prints,
            stderr: &prints,
            directory: Some(&wanted.directory),
            held_below: 0,
        };
        let _ = std::fs::remove_file(&socket);
        let pid = spawn::worker(&image, &streams, spawn::Session::New).map_err(|error| {
            let file = String::from_utf8_lossy(&open.interpreter).into_owned();
            failed(&format!("{file} cannot be started"), error.into())
        })?;
        listen(id, ours, owner).map_err(|error| failed("its channel cannot be read", error))?;
        Ok(Process {
            pid,
            name,
            language: row.name,
            interpreter: String::from_utf8_lossy(&open.interpreter).into_owned(),
            socket,
            log,
            place,
            serves: Vec::new(),
            cloned: Arc::default(),
            end: None,
        })
    }

    /// How it has ended; `None`: it runs.
    pub(super) fn ended(&self) -> Option<Exit> {
        match spawn::wait(self.pid, Wait::Poll) {
            Ok(Waited::Ended(status, ..)) => Some(Exit::from_wait_status(status)),
            Err(rustix::io::Errno::CHILD) => Some(Exit::Signal(9)),
            Ok(Waited::Stopped(_) | Waited::Nothing) | Err(_) => None,
        }
    }

    /// Sends it a signal. Its end was not waited for, so that its number is its own.
    pub(super) fn signal(&self, signal: Signal) {
        if self.end.is_none()
            && let Some(pid) = Pid::from_raw(self.pid.cast_signed())
        {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    /// How it ended, and what it printed last.
    pub(super) fn last_words(&self, name: &str) -> String {
        let how = match self.end {
            Some(Exit::Code(code)) => format!("with exit code {code}"),
            Some(Exit::Signal(number)) => format!("by signal {number}"),
            None => "by itself".to_owned(),
        };
        let printed = std::fs::read(&self.log).unwrap_or_default();
        let tail = printed.get(printed.len().saturating_sub(TAIL_BYTES)..).unwrap_or_default();
        let tail = String::from_utf8_lossy(tail);
        let said = if tail.trim().is_empty() { "" } else { "; it printed:\n" };
        format!("{name}: the session's process ended {how}{said}{}", tail.trim_end())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
        let _ = std::fs::remove_file(&self.log);
    }
}

/// Removes what sessions of a killed daemon have left.
pub(super) fn tidy(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(NAME)) else { continue };
        let number = rest.strip_suffix(LOG).unwrap_or(rest);
        if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Reads what the process says of itself, once, and holds its channel until it ends.
fn listen(id: SessionId, ours: OwnedFd, owner: &mpsc::Sender<Input>) -> std::io::Result<()> {
    const READY: &[u8] = b"ready ";
    let mut channel = UnixStream::from_std(ours.into())?;
    let owner = owner.clone();
    tokio::spawn(async move {
        let (mut said, mut told) = (Vec::new(), false);
        let mut piece = [0; 256];
        while let Ok(count @ 1..) = channel.read(&mut piece).await {
            // What comes after the first line is nothing that is waited for.
            if told {
                continue;
            }
            said.extend_from_slice(piece.get(..count).unwrap_or_default());
            if let Some(end) = said.iter().position(|byte| *byte == b'\n') {
                let line = said.get(..end).and_then(|line| line.strip_prefix(READY));
                let serves = line.unwrap_or_default().to_vec();
                told = true;
                if owner.send(Input::SessionReady { session: id, serves }).await.is_err() {
                    return;
                }
            } else if said.len() > 4096 {
                return;
            }
        }
    });
    Ok(())
}

fn raw(fd: &OwnedFd) -> i32 {
    use std::os::fd::AsRawFd;
    fd.as_raw_fd()
}

fn lossless(path: CString) -> std::ffi::OsString {
    std::os::unix::ffi::OsStringExt::from_vec(path.into_bytes())
}
