//! Copies beside what `execve` makes: the same script both ways must see the same.

use std::ffi::{CStr, CString};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use hob_os::spawn::{self, Wait, Waited};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_timeout};

use super::*;

struct Ground {
    dir: tempfile::TempDir,
    null: OwnedFd,
}

impl Ground {
    fn new() -> Ground {
        let null = std::fs::File::options().read(true).write(true).open("/dev/null").unwrap();
        let null = rustix::io::fcntl_dupfd_cloexec(&null, 10).unwrap();
        Ground { dir: tempfile::tempdir().unwrap(), null }
    }

    fn script(&self, name: &str, text: &str) -> CString {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        CString::new(path.to_str().unwrap()).unwrap()
    }

    fn zygote(&self, script: &CStr, env: &[CString]) -> Zygote {
        let program = Program { file: script, argv: &[script], env };
        Zygote::start(&program, &self.null, &Place::default()).unwrap().unwrap()
    }

    fn both(
        &self,
        start: impl FnOnce(&Streams<'_>) -> Child,
    ) -> (String, u32, Result<Waited, io::Errno>) {
        let (out, out_in) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let streams = Streams { stdin: &self.null, stdout: &out_in, stderr: &out_in };
        let child = start(&streams);
        drop(out_in);
        let mut text = String::new();
        std::io::Read::read_to_string(&mut std::fs::File::from(out), &mut text).unwrap();
        (text, child.pid, spawn::wait(child.pid, Wait::Block))
    }
}

/// What two processes said, with their own numbers: the same, but for these numbers. (A limit may
/// be the number of one of them, or hold it.)
fn assert_alike(one: (&str, u32), other: (&str, u32), what: &str) {
    // Each piece a number, perhaps none, and what follows it.
    let pieces = |text: &str| -> Vec<String> {
        text.split_inclusive(|c: char| !c.is_ascii_digit()).map(str::to_owned).collect()
    };
    let numbered = |(text, pid): (&str, u32)| (pieces(text), pid.to_string());
    let ((mut one, own), (other, others)) = (numbered(one), numbered(other));
    for (piece, wanted) in one.iter_mut().zip(&other) {
        let end = piece.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned();
        if *piece == format!("{own}{end}") && *wanted == format!("{others}{end}") {
            piece.clone_from(wanted);
        }
    }
    assert_eq!(one.concat(), other.concat(), "{what}");
}

#[test]
fn a_number_that_holds_ones_own_is_a_number_of_its_own() {
    assert_alike(("819200 1920 192\n", 1920), ("819200 7 192\n", 7), "");
    let differs = std::panic::catch_unwind(|| assert_alike(("8 1920\n", 1920), ("7 7\n", 7), ""));
    assert!(differs.is_err());
}

fn environment(entries: &[&str]) -> Vec<CString> {
    entries.iter().map(|entry| CString::new(*entry).unwrap()).collect()
}

fn copy<'a>(file: &'a CStr, env: &'a [CString]) -> Copy<'a> {
    Copy { file, env, directory: None, umask: None, begins: Begins::Anywhere }
}

/// All that a script can see of its own process. Addresses and times are left out. What it catches
/// it reads by itself: while it waits for a child, and not before, bash catches SIGINT too.
const LOOK: &str = r#"
echo "$0|$#|$$|$PPID|$-|$A|$B"
env | sort
tr '\0' '|' </proc/$$/cmdline; echo
tr '\0' '|' </proc/$$/environ; echo
cat /proc/$$/comm
readlink /proc/$$/exe /proc/$$/cwd /proc/$$/root
ls /proc/self/fd
readlink /proc/self/fd/0
grep -E 'Sig(Blk|Ign)' /proc/self/status
grep -E 'SigIgn|Umask|Threads|Cpus|Cap|NoNew|NSpid|NStgid|Tracer|Name|Seccomp:' /proc/$$/status
while read -r name value; do case $name in SigCgt:) echo "$value" ;; esac; done </proc/$$/status
sed -E 's/.*\) . ([0-9]+ [0-9]+ [0-9]+ [0-9]+ -?[0-9]+) .*/\1/' /proc/$$/stat
cat /proc/$$/limits /proc/$$/cgroup /proc/$$/oom_score_adj
ulimit -a
umask
pwd
trap
f() { return 3; }; f; echo $?
cat <<END
here $A
END
(echo sub $$; exit 4); echo $?
trap 'echo bye' EXIT
set -e
false
echo not here
"#;

/// Longer than what the zygote was started with.
static LONG: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| "long".repeat(1000));

#[test]
fn a_copy_sees_what_a_process_of_its_own_sees() {
    let ground = Ground::new();
    for shell in ["#!/bin/sh", "#!/bin/sh -u", "#!/bin/bash", "#! /bin/bash --norc"] {
        if !Path::new(shell.split(' ').next().unwrap().trim_start_matches("#!")).exists() {
            continue;
        }
        let first = ground.script("a", &format!("{shell}\necho wrong\n"));
        let name = format!("look {}", "x".repeat(shell.len()));
        let look = ground.script(&name, &format!("{shell}\n{LOOK}"));
        let env = |b: &str| environment(&["PATH=/usr/bin:/bin", "A=1 2", &format!("B={b}")]);
        let mut zygote = ground.zygote(&first, &env(""));
        for b in ["", "\n=", &LONG] {
            let env = env(b);
            let forked = ground.both(|streams| zygote.fork(&copy(&look, &env), streams).unwrap());
            let program = Program { file: &look, argv: &[&look], env: &env };
            let place = Place::default();
            let afresh = ground.both(|streams| vfork::start(&program, streams, &place).unwrap());
            assert_alike((&forked.0, forked.1), (&afresh.0, afresh.1), shell);
            assert!(forked.0.contains("bye") && !forked.0.contains("not here"), "{}", forked.0);
            for (_, _, waited) in [forked, afresh] {
                assert!(matches!(waited, Ok(Waited::Ended(0x100, ..))), "{waited:?}");
            }
        }
    }
}

#[test]
fn a_copy_takes_its_directory_and_mask_and_begins_near_without_staying_there() {
    let ground = Ground::new();
    let script = ground.script("a", "#!/bin/sh\npwd; umask; grep Cpus_allowed: /proc/$$/status\n");
    let env = environment(&["A=1"]);
    let mut zygote = ground.zygote(&script, &env);
    let directory: OwnedFd = std::fs::File::open("/usr").unwrap().into();
    let mut all = Vec::new();
    for begins in [Begins::Near, Begins::Anywhere, Begins::Near] {
        let copy = Copy {
            directory: Some(directory.as_fd()),
            umask: Some(0o27),
            begins,
            ..copy(&script, &env)
        };
        all.push(ground.both(|streams| zygote.fork(&copy, streams).unwrap()).0);
    }
    let own = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let own = own.lines().find(|line| line.starts_with("Cpus_allowed:")).unwrap();
    let want = format!("/usr\n0027\n{own}\n");
    assert_eq!(all, [want.clone(), want.clone(), want]);
}

#[test]
fn a_copy_has_nothing_of_an_earlier_ones_environment() {
    let ground = Ground::new();
    let script = ground.script("a", "#!/bin/sh\nkill -STOP $$\n");
    let env = |value: &str| environment(&["PATH=/usr/bin:/bin", &format!("A={value}")]);
    let mut zygote = ground.zygote(&script, &env("of-the-first-that-came"));
    let streams = Streams { stdin: &ground.null, stdout: &ground.null, stderr: &ground.null };
    for (value, others) in [
        ("1".to_owned(), "of-the-first"),
        ("another's-".repeat(400), "of-the-first"),
        ("1".to_owned(), "another's-"),
    ] {
        let child = zygote.fork(&copy(&script, &env(&value)), &streams).unwrap();
        let pid = child.pid.cast_signed();
        let mut status = 0;
        // SAFETY: the kernel writes the status of this process's own child.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, libc::WUNTRACED) }, pid);
        assert!(libc::WIFSTOPPED(status), "{status}");
        let stack = stack_of(child.pid);
        let has = |text: &str| stack.windows(text.len()).any(|bytes| bytes == text.as_bytes());
        assert!(has(&format!("A={value}")) && !has(others), "{value}");
        trace::discard(&child);
    }
}

fn stack_of(pid: u32) -> Vec<u8> {
    use std::os::unix::fs::FileExt;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let line = maps.lines().find(|line| line.ends_with("[stack]")).unwrap();
    let (from, to) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
    let [from, to] = [from, to].map(|text| u64::from_str_radix(text, 16).unwrap());
    let mut bytes = vec![0; usize::try_from(to - from).unwrap()];
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    memory.read_exact_at(&mut bytes, from).unwrap();
    bytes
}

#[test]
fn what_does_not_fit_or_has_other_variables_is_refused_before_anything_is_forked() {
    let ground = Ground::new();
    let script = ground.script("a", "#!/bin/sh\necho $A\n");
    let mut zygote = ground.zygote(&script, &environment(&["A=1"]));
    let streams = Streams { stdin: &ground.null, stdout: &ground.null, stderr: &ground.null };
    for entries in [&["B=1"][..], &["A=1", "B=1"], &[], &[&format!("A={}", "x".repeat(20_000))]] {
        let env = environment(entries);
        let refused = zygote.fork(&copy(&script, &env), &streams);
        assert!(matches!(refused, Err(ForkError::Refused(_))), "{refused:?}");
    }
    let env = environment(&["A=2"]);
    let said = ground.both(|streams| zygote.fork(&copy(&script, &env), streams).unwrap()).0;
    assert_eq!(said, "2\n");
}

#[test]
fn a_zygote_that_was_killed_forks_nothing_and_leaves_nothing() {
    let ground = Ground::new();
    let script = ground.script("a", "#!/bin/sh\necho\n");
    let env = environment(&["A=1"]);
    let mut zygote = ground.zygote(&script, &env);
    let pid = zygote.child.pid;
    // SAFETY: a child of this process that was not waited for.
    unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) };
    let streams = Streams { stdin: &ground.null, stdout: &ground.null, stderr: &ground.null };
    assert!(zygote.fork(&copy(&script, &env), &streams).is_err());
    drop(zygote);
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn a_zygote_that_does_not_answer_is_given_up_and_gone() {
    let ground = Ground::new();
    let script = ground.script("a", "#!/bin/sh\necho\n");
    let env = environment(&["A=1"]);
    let mut zygote = ground.zygote(&script, &env);
    let limit = socket_timeout(&zygote.socket, Timeout::Recv).unwrap();
    assert_eq!(limit, Some(Duration::from_secs(ANSWER_S_MAX.unsigned_abs())));
    // No test waits as long.
    set_socket_timeout(&zygote.socket, Timeout::Recv, Some(Duration::from_millis(20))).unwrap();
    let pid = zygote.child.pid;
    // SAFETY: a child of this process that was not waited for.
    unsafe { libc::kill(pid.cast_signed(), libc::SIGSTOP) };
    let streams = Streams { stdin: &ground.null, stdout: &ground.null, stderr: &ground.null };
    assert_eq!(zygote.fork(&copy(&script, &env), &streams).err(), Some(ForkError::Lost));
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn a_shell_that_never_comes_to_its_entry_is_given_up_and_gone() {
    let ground = Ground::new();
    let script = ground.script("never", "#!/bin/sh\n");
    // The dynamic linker waits for somebody to write into it.
    let pipe = ground.dir.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
    let env = [CString::new(format!("LD_PRELOAD={}", pipe.display())).unwrap(), c"A=1".to_owned()];
    let program = Program { file: &script, argv: &[&script], env: &env };
    let started = Zygote::start(&program, &ground.null, &Place::default());
    assert_eq!(started.err(), Some(io::Errno::TIMEDOUT));
    let own = std::process::id();
    let waits = |pid: u32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        pid != own && environ.windows(11).any(|bytes| bytes == b"LD_PRELOAD=")
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    assert!(!pids.any(waits), "it is left");
}
