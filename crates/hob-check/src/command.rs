//! One command of a check: a call through hob, its output bounded, its time bounded.

use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hob_os::process;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

use super::request::BODY_MAX;
use super::sample::Sample;

/// So often a command looks whether the user has ended the run.
const GLANCE: Duration = Duration::from_millis(50);

/// What a command is started with.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) words: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) timeout: Duration,
    /// Set when the user has ended the run.
    pub(crate) stop: Arc<AtomicBool>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) took: Duration,
    pub(crate) code: i64,
    pub(crate) printed: Vec<u8>,
}

/// Runs a command to its end. It waits: this is for a thread of its own.
pub(crate) fn run(job: &Job) -> Result<Ended, Sample> {
    let begun = Instant::now();
    let failed = |text: String| Sample::failed(begun.elapsed(), text);
    let own = std::env::current_exe().map_err(|error| failed(format!("cannot run: {error}")))?;
    let mut command = Command::new(own);
    command.args(["run", "--purpose", "check", "--"]).args(&job.words);
    command.envs(job.env.iter().map(|(name, value)| (name, value)));
    // A group of its own: what is late is ended with all that it has started.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| failed(format!("cannot run: {error}")))?;
    let ended = watch(job, &mut child, begun);
    if ended.is_err() {
        end(&child);
    }
    let status = child.wait();
    let printed = ended.map_err(failed)?;
    let took = begun.elapsed();
    let status = status.map_err(|error| Sample::failed(took, format!("cannot wait: {error}")))?;
    match status.code() {
        Some(code) => Ok(Ended { took, code: code.into(), printed }),
        None => Err(Sample::failed(took, format!("ended by a signal: {status}"))),
    }
}

/// Reads what it prints until it has ended.
fn watch(job: &Job, child: &mut Child, begun: Instant) -> Result<Vec<u8>, String> {
    let cannot = |error: std::io::Error| format!("cannot watch it: {error}");
    let pidfd = process::pidfd(child.id()).map_err(|error| cannot(error.into()))?;
    let mut pipe = child.stdout.take().ok_or("has no output")?;
    rustix::io::ioctl_fionbio(&pipe, true).map_err(|error| cannot(error.into()))?;
    let (mut printed, mut open) = (Vec::new(), true);
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let left = job.timeout.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Err(format!("has not ended within {:?}", job.timeout));
        }
        if job.stop.load(Ordering::Relaxed) {
            return Err("interrupted".to_owned());
        }
        let ended = wait(&pidfd, open.then_some(&pipe), left.min(GLANCE));
        while open {
            match pipe.read(&mut chunk) {
                Ok(0) => open = false,
                Ok(count) => {
                    if printed.len() + count > BODY_MAX {
                        return Err(format!("prints more than {} MiB", BODY_MAX >> 20));
                    }
                    printed.extend_from_slice(&chunk[..count]);
                }
                Err(_) => break,
            }
        }
        // What its children print after its end is not its output.
        if ended {
            return Ok(printed);
        }
    }
}

/// Waits for output or the end; whether it has ended.
fn wait(pidfd: &OwnedFd, pipe: Option<&impl AsFd>, within: Duration) -> bool {
    let mut fds = vec![PollFd::new(pidfd, PollFlags::IN)];
    if let Some(pipe) = pipe {
        fds.push(PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN));
    }
    let within = Timespec {
        tv_sec: i64::try_from(within.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(within.subsec_nanos()),
    };
    poll(&mut fds, Some(&within)).is_ok() && !fds[0].revents().is_empty()
}

fn end(child: &Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // One that has just ended needs no signal.
        let _ = kill_process_group(group, Signal::KILL);
    }
}
