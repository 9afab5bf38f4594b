//! What a runner's hooks see, and what it keeps of them.

use std::os::unix::fs::PermissionsExt;

use hob_os::signals::Set as Mask;

use super::active::Hook;
use super::*;
use crate::listing::{Identity, Place};
use crate::set::Variables;

/// What two shell hooks, one after the other, say of the signals that are blocked in them.
fn blocked_in_hooks() -> Vec<u64> {
    let dir = tempfile::tempdir().unwrap();
    for name in ["1", "2"] {
        let file = dir.path().join(name);
        // By the shell alone: whoever held it has seen all that it blocks.
        let script = "#!/bin/sh\nwhile read -r name value; do\n\
                      [ \"$name\" != SigBlk: ] || echo \"$value\"\n\
                      done </proc/self/status\n";
        std::fs::write(&file, script).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut said = Vec::new();
    let mut runner = Runner::new(Limits::default()).unwrap();
    let directory = dir.path().to_str().unwrap().as_bytes().to_vec();
    let mut sets = Some(Set::new(directory, &Variables::default())).into_iter();
    let mut take = |event: Event<'_>| {
        if let Event::SetEnded(record) = event {
            for hook in &record.hooks {
                let text = String::from_utf8(hook.stdout.shown()).unwrap();
                said.push(u64::from_str_radix(text.trim(), 16).unwrap());
            }
        }
    };
    runner.run_all(&mut || sets.next(), &mut take).unwrap();
    said
}

#[test]
fn hooks_block_what_the_runners_own_thread_blocks() {
    // Not the first thread, which may be just about to start one and block everything.
    for numbers in [&[][..], &[10, 12], &[5, 10]] {
        let mask = Mask::of(numbers);
        let thread = std::thread::spawn(move || {
            signals::set_mask(mask);
            blocked_in_hooks()
        });
        assert_eq!(thread.join().unwrap(), [mask.0; 2], "{numbers:?}");
    }
}

/// How many ends of hooks' pipes are kept.
fn kept(runner: &Runner) -> usize {
    let running = runner.active().filter_map(|active| match &active.hook {
        Hook::Running(running) => running.theirs.as_ref(),
        Hook::Due | Hook::Again { .. } | Hook::Retry { .. } => None,
    });
    running.count()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn what_is_kept_of_a_lone_hook_is_let_go_before_its_neighbour_begins() {
    let dir = tempfile::tempdir().unwrap();
    let gate = dir.path().join("gate");
    rustix::fs::mkfifoat(rustix::fs::CWD, &gate, rustix::fs::Mode::RWXU).unwrap();
    let hooks = dir.path().join("hooks");
    std::fs::create_dir(&hooks).unwrap();
    let file = hooks.join("1");
    std::fs::write(&file, format!("#!/bin/sh\nread line <{}\n", gate.display())).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::ffi::CString::new(file.to_str().unwrap()).unwrap();
    while Identity::at(Place::Own, &path).unwrap().is_too_new() {
        std::thread::yield_now();
    }
    let mut variables = Variables::default();
    variables.set(b"PATH", b"/usr/bin:/bin").unwrap();
    let set = || Set::new(hooks.to_str().unwrap().as_bytes(), &variables);
    let mut runner = Runner::new(Limits { jobs: 2, ..Limits::default() }).unwrap();
    let mut started = 0;
    let mut ended = Vec::new();
    for count in 1..=2 {
        let id = runner.shared().next_id();
        runner.take(id, set());
        while started < count {
            runner
                .turn(Wait::AtMost(Duration::ZERO), &mut |event| {
                    started += usize::from(matches!(event, Event::HookStarted { .. }));
                })
                .unwrap();
        }
        assert_eq!(kept(&runner), usize::from(count == 1), "{count} at work");
    }
    // Both read a line of it.
    let mut gate = std::fs::OpenOptions::new().read(true).write(true).open(gate).unwrap();
    std::io::Write::write_all(&mut gate, b"1\n2\n").unwrap();
    while !runner.is_idle() {
        runner
            .turn(Wait::Forever, &mut |event| {
                // What other tests start meanwhile may hold their pipes: it is one process.
                if let Event::SetEnded(record) = event {
                    ended.push(record.outcome);
                }
            })
            .unwrap();
    }
    assert_eq!(ended, [hob_core::hooks::HookOutcome::Ok; 2]);
}
