//! A hob whose file lends rights: it takes none, and says so.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use hob_tests::{End, Run, World};
use rustix::fs::{Gid, Uid};

const NOBODY: u32 = 65534;

/// Copies of hob whose file changes the user, the group, or both.
fn lending(world: &World) -> Vec<PathBuf> {
    let copy = |mode: u32, name: &str| {
        let path = world.path("work").join(name);
        {
            let _alone = hob_tests::alone();
            fs::copy(world.binary(), &path).unwrap();
        }
        let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        rustix::fs::chown(&path, Some(uid), Some(gid)).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    };
    vec![copy(0o4755, "hob-user"), copy(0o2755, "hob-group"), copy(0o6755, "hob-both")]
}

#[test]
fn a_hob_that_lends_rights_runs_nothing_and_starts_nothing() {
    if !rustix::process::getuid().is_root() {
        return hob_tests::skipped("only root can make a file that lends another user's rights");
    }
    let world = World::new();
    for parent in [world.path(""), world.path("work")] {
        fs::set_permissions(parent, Permissions::from_mode(0o777)).unwrap();
    }
    for hob in lending(&world) {
        let refused = |run: Run| {
            let outcome = run.go();
            assert_eq!(outcome.end, End::Code(126), "{outcome:?}");
            assert!(outcome.out.is_empty(), "{outcome:?}");
            let said = outcome.complaint();
            assert!(said.contains("nothing is run") && said.contains("chmod u-s,g-s"), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        };
        refused(world.run(&[&hob]).args(&["run", "touch", "ran"]));
        refused(world.run(&[&hob]).args(&["run", "touch", "ran"]).env("HOB", "0"));
        refused(world.run(&[&hob]).args(&["daemon"]));
        refused(world.run(&[&hob]).args(&["start"]));
        refused(world.run(&[&hob]).args(&["status"]));
        // As a shim.
        std::os::unix::fs::symlink(&hob, world.path("work/touch")).unwrap();
        refused(world.run(&["./touch", "ran"]));
        fs::remove_file(world.path("work/touch")).unwrap();
    }
    assert!(!world.path("work/ran").exists(), "a program was run");
    assert!(!world.hob_dir().exists(), "a daemon was started");
    // Without what it lent it is a hob like another.
    let hob = world.path("work/hob-user");
    fs::set_permissions(&hob, Permissions::from_mode(0o755)).unwrap();
    world.run(&[&hob]).args(&["run", "touch", "ran"]).go().succeeded();
    assert!(world.path("work/ran").exists());
}
