//! Files of revisions of repositories over HTTP: mounts of the kind `git`.

mod bad;
mod files;
mod listing;
mod receipts;
mod rights;

use hob_tests::World;
use hob_tests::site::Site;

/// A world whose `hob.toml` serves the folder `srv` at `/git`, with these keys besides.
fn world(keys: &str) -> World {
    let world = World::new();
    std::fs::create_dir_all(world.path("work/srv")).unwrap();
    world.file(
        "hob.toml",
        format!("[serve]\nlog = \"json\"\n[mount.\"/git\"]\ngit = \"srv\"\n{keys}"),
    );
    world
}

fn serve(world: &World) -> Site {
    let trusted = world.hob(&["trust", "."]).go();
    trusted.succeeded();
    Site::serve(world, &["."])
}

/// What git says in a folder below `srv`.
fn git(world: &World, at: &str, args: &[&str]) -> String {
    let dir = world.path("work/srv").join(at);
    std::fs::create_dir_all(&dir).unwrap();
    let who = ["AUTHOR", "COMMITTER"].map(|who| format!("GIT_{who}_"));
    let output = std::process::Command::new("git")
        .args(["-c", "init.defaultBranch=main"])
        .args(args)
        .current_dir(dir)
        .env("HOME", world.path("home"))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs(who.iter().map(|who| (format!("{who}NAME"), "A")))
        .envs(who.iter().map(|who| (format!("{who}EMAIL"), "a@example.org")))
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Commits these files in a repository, which is made if it is not there; the commit's id.
fn commit(world: &World, project: &str, files: &[(&str, &[u8])]) -> String {
    git(world, project, &["init", "--quiet"]);
    for (path, bytes) in files {
        world.file(&format!("srv/{project}/{path}"), bytes);
    }
    git(world, project, &["add", "--all"]);
    git(world, project, &["commit", "--quiet", "--message", "x"]);
    git(world, project, &["rev-parse", "HEAD"])
}
