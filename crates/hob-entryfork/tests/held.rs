//! A child that was started traced is held before its first own instruction, and let go.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::ffi::{CStr, CString};

use hob_entryfork::vfork::{self, Place, Program, Traced};
use hob_os::spawn::{self, Wait, Waited};
use hob_os::trace::{
    Child, Looks, NotHeld, Streams, arrived, discard, executed, release, towards_entry,
    watched_to_entry,
};
use rustix::fd::OwnedFd;
use rustix::io;

fn started(argv: &[&CStr], out: &OwnedFd) -> Child {
    let null: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
    let streams = Streams { stdin: &null, stdout: out, stderr: out };
    let env = [CString::new("PATH=/usr/bin:/bin").unwrap()];
    let program = Program { file: argv[0], argv, env: &env };
    vfork::start(&program, &streams, &Place { traced: Traced::Yes, ..Place::default() }).unwrap()
}

#[test]
fn a_child_that_is_held_has_done_nothing_and_then_does_everything() {
    let (out, out_in) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let script = c"grep TracerPid /proc/$$/status; echo $$; exit 7";
    let mut seen = Vec::new();
    for watched in [true, false] {
        let child = started(&[c"/bin/sh", c"-c", script], &out_in);
        executed(child.pid).unwrap();
        if watched {
            assert!(watched_to_entry(child.pid, &mut |looks| seen.push(looks)).unwrap());
        } else {
            let entry = towards_entry(child.pid).unwrap().expect("a shell is dynamic");
            arrived(child.pid, &entry).unwrap();
        }
        release(child.pid).unwrap();
        assert!(matches!(spawn::wait(child.pid, Wait::Block), Ok(Waited::Ended(0x700, ..))));
        let mut bytes = [0; 4096];
        let len = io::read(&out, &mut bytes).unwrap();
        let want = format!("TracerPid:\t0\n{}\n", child.pid);
        assert_eq!(String::from_utf8_lossy(&bytes[..len]), want);
    }
    assert!(seen.contains(&Looks::AtFile(b"/etc/ld.so.cache".to_vec())), "{seen:?}");
    let world = seen.iter().any(|one| matches!(one, Looks::AtWorld(_)));
    assert!(!world, "a shell's start looks at files only: {seen:?}");
}

#[test]
fn a_child_that_is_killed_or_signalled_while_it_is_held_says_so() {
    let (_out, out_in) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    for (number, arrives) in [(9, false), (15, true), (18, true)] {
        let child = started(&[c"/bin/sh", c"-c", c":"], &out_in);
        executed(child.pid).unwrap();
        let entry = towards_entry(child.pid).unwrap().expect("a shell is dynamic");
        if arrives {
            arrived(child.pid, &entry).unwrap();
        }
        hob_os::process::signal(&child.pidfd, number).unwrap();
        let held = if arrives { Ok(()) } else { arrived(child.pid, &entry) };
        let held = held.and_then(|()| release(child.pid));
        assert_eq!(held, Err(NotHeld::Disturbed), "{number}");
        discard(&child);
        assert_eq!(spawn::wait(child.pid, Wait::Poll).err(), Some(io::Errno::CHILD));
    }
}

#[test]
fn a_child_that_is_not_wanted_is_gone_wherever_it_is() {
    let (_out, out_in) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    for arrives in [true, false] {
        let child = started(&[c"/bin/sh", c"-c", c":"], &out_in);
        executed(child.pid).unwrap();
        let entry = towards_entry(child.pid).unwrap().expect("a shell is dynamic");
        if arrives {
            arrived(child.pid, &entry).unwrap();
        }
        discard(&child);
        assert_eq!(spawn::wait(child.pid, Wait::Poll).err(), Some(io::Errno::CHILD));
    }
}
