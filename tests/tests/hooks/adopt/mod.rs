//! A repository's hooks through hob: what they see is what they saw, and they can be had back.

mod agent;
mod commit;

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use hob_tests::{End, Outcome, Run, World};

/// Shows all that a hook sees of its caller, and ends with 7.
const SHOWS: &str = "#!/usr/bin/env python3\n\"\"\"Doc.\"\"\"\nimport os, sys\n\
    print(sys.argv, __file__, __doc__, os.getcwd(), sys.path[0], sys.flags.dont_write_bytecode)\n\
    print(list(os.environb.items()))\nprint(sys.stdin.buffer.read(), sys._getframe().f_lineno)\n\
    sys.stderr.write('err\\n')\nsys.exit(7)\n";

/// A repository in the working folder, with git's own settings only.
fn repository(world: &World) -> PathBuf {
    for words in [
        &["git", "init", "-q", "repo"][..],
        &["git", "-C", "repo", "config", "user.email", "a@b"],
        &["git", "-C", "repo", "config", "user.name", "n"],
        &["git", "-C", "repo", "commit", "-q", "--allow-empty", "-m", "first"],
    ] {
        world.run(words).go().succeeded();
    }
    world.path("work/repo")
}

fn hook(world: &World, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    world.executable(&format!("repo/.git/hooks/{name}"), text)
}

fn hooks(world: &World, words: &[&str]) -> Outcome {
    world.hob(&["hooks"]).args(words).go()
}

/// The hook as git calls it.
fn called(world: &World, name: &str) -> Run {
    world
        .run(&[format!(".git/hooks/{name}")])
        .args(&["one", "two words", ""])
        .within(world.path("work/repo"))
        .env("GIT_DIR", ".git")
        .env("PWD", "/not/here")
        .env("odd.name%%", "x")
        .stdin(b"to read\xff\n".to_vec())
}

/// What is there, with everything that a file is known by.
fn identity(file: &Path) -> (u64, u32, i64, i64, Vec<u8>) {
    let meta = file.symlink_metadata().unwrap();
    (meta.ino(), meta.mode(), meta.mtime(), meta.mtime_nsec(), std::fs::read(file).unwrap())
}

/// The names in the repository's folder.
fn kept(world: &World) -> bool {
    world.path("work/repo/.git/hob").exists()
}

#[test]
fn an_adopted_hook_is_warm_and_sees_what_it_saw() {
    let world = World::started();
    repository(&world);
    let python = world.run(&["sh", "-c", "command -v python3"]).go().text();
    let absolute = SHOWS.replace("/usr/bin/env python3", &format!("{} -B", python.trim()));
    for (name, text) in [("pre-push", SHOWS), ("pre-commit", &absolute)] {
        let file = hook(&world, name, text);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o751)).unwrap();
        let before = identity(&file);
        let want = called(&world, name).go();
        assert_eq!(want.end, End::Code(7), "{want:?}");
        let adopted = hooks(&world, &["adopt", "git", "repo"]);
        adopted.succeeded();
        assert!(adopted.text().contains(&format!("{name}: runs through hob")), "{adopted:?}");
        world.warm(&called(&world, name), |outcome| assert_eq!(outcome, &want));
        let around = called(&world, name).env("HOB", "0");
        let want_around = Outcome { out: around_of(&want), ..want.clone() };
        assert_eq!(Outcome { out: around_of(&around.go()), ..want.clone() }, want_around);
        let restored = hooks(&world, &["restore", "repo"]);
        restored.succeeded();
        assert_eq!(restored.text(), format!("{name}: as it was\n"));
        assert_eq!(identity(&file), before);
        std::fs::remove_file(file).unwrap();
    }
    assert!(!kept(&world), "nothing is left in the repository");
}

/// What a hook said, but for `HOB=0` itself.
fn around_of(outcome: &Outcome) -> Vec<u8> {
    outcome.text().replace(", (b'HOB', b'0')", "").replace("(b'HOB', b'0'), ", "").into_bytes()
}

#[test]
fn git_calls_an_adopted_hook_and_obeys_its_exit_code() {
    let world = World::started();
    let repo = repository(&world);
    let checks = "#!/usr/bin/env python3\nimport sys\ntext = open(sys.argv[1]).read()\n\
                  print('checked', text.strip())\nsys.exit('bad' in text)\n";
    hook(&world, "commit-msg", checks);
    // From another work tree too, whose hooks are the same.
    world.run(&["git", "-C", "repo", "worktree", "add", "-q", "../tree"]).go().succeeded();
    hooks(&world, &["adopt", "git", "tree"]).succeeded();
    for tree in [repo, world.path("work/tree")] {
        let commit = |message: &str| {
            world.run(&["git", "commit", "--allow-empty", "-m", message]).within(&tree).go()
        };
        let good = commit("good");
        good.succeeded();
        assert!(good.text().contains("checked good") || good.complaint().contains("checked good"));
        assert_eq!(commit("bad").end, End::Code(1));
    }
    hooks(&world, &["restore", "tree"]).succeeded();
    assert_eq!(
        std::fs::read(world.path("work/repo/.git/hooks/commit-msg")).unwrap(),
        checks.as_bytes()
    );
}

#[test]
fn a_hook_works_without_hob_and_in_a_copy_of_the_repository() {
    let world = World::new();
    repository(&world);
    let says = "#!/usr/bin/env python3\nimport sys\nprint('here', sys.argv)\nsys.exit(3)\n";
    hook(&world, "pre-commit", says);
    let image = std::fs::read(world.binary()).unwrap();
    let hob = world.executable("bin/hob", image);
    world.run(&[&hob]).args(&["hooks", "adopt", "git", "repo"]).go().succeeded();
    std::fs::remove_file(hob).unwrap();
    let gone = called(&world, "pre-commit").go();
    assert_eq!(
        (gone.end, gone.text().as_str()),
        (End::Code(3), "here ['.git/hooks/pre-commit', 'one', 'two words', '']\n")
    );
    world.run(&["cp", "-a", "repo", "elsewhere"]).go().succeeded();
    let copied = called(&world, "pre-commit").within(world.path("work/elsewhere")).go();
    assert_eq!((copied.end, copied.text()), (gone.end, gone.text()));
    let bare = called(&world, "pre-commit").without("HOME").go();
    assert_eq!((bare.end, bare.text()), (gone.end, gone.text()));
}

#[test]
fn what_was_edited_replaced_or_removed_since_is_never_lost() {
    let world = World::new();
    repository(&world);
    let text = "#!/usr/bin/env python3\nprint(1)\n";
    let [edited, replaced, removed, off] =
        ["a-edited", "b-replaced", "c-removed", "d-off"].map(|name| hook(&world, name, text));
    hooks(&world, &["adopt", "git", "repo"]).succeeded();
    let now = std::fs::read_to_string(&edited).unwrap();
    world.file("repo/.git/hooks/a-edited", format!("{now}print(2)\n"));
    // As pre-commit does with a hook that it finds.
    std::fs::rename(&replaced, replaced.with_extension("legacy")).unwrap();
    hook(&world, "b-replaced", "#!/bin/sh\necho mine\n");
    std::fs::remove_file(&removed).unwrap();
    std::fs::set_permissions(&off, std::fs::Permissions::from_mode(0o644)).unwrap();
    let restored = hooks(&world, &["restore", "repo"]);
    restored.succeeded();
    let said = restored.text();
    assert!(
        said.contains("a-edited: hob's change is taken back; what was edited since stays\n"),
        "{said}"
    );
    assert!(said.contains("b-replaced: was replaced by another since, which stays"), "{said}");
    assert!(said.contains("c-removed: was removed since; the one that was adopted is "), "{said}");
    assert!(said.contains("d-off: as it was\n"), "{said}");
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    assert_eq!(read(&edited), format!("{text}print(2)\n"));
    assert_eq!(read(&replaced), "#!/bin/sh\necho mine\n");
    assert_eq!(read(&replaced.with_extension("legacy")), text);
    assert!(!removed.exists());
    let kept = said.lines().find(|line| line.starts_with("c-removed")).unwrap();
    assert_eq!(read(Path::new(kept.split(" is ").last().unwrap())), text);
    assert_eq!((read(&off).as_str(), off.metadata().unwrap().mode() & 0o777), (text, 0o644));
    assert_eq!(hooks(&world, &["restore", "repo"]).text().lines().count(), 1, "once is enough");
}

#[test]
fn what_cannot_be_exact_is_left_as_it_is_with_the_reason() {
    let world = World::new();
    let repo = repository(&world);
    let python = "#!/usr/bin/env python3\n";
    hook(&world, "a-shell", "#!/bin/sh\n");
    hook(&world, "b-binary", b"\x7fELF");
    world.file("repo/.git/hooks/c-plain", python);
    let target = world.executable("repo/check.py", python);
    symlink("../../check.py", repo.join(".git/hooks/d-link")).unwrap();
    std::fs::hard_link(target, repo.join(".git/hooks/e-hard")).unwrap();
    hook(&world, "f-odd", "#!/usr/bin/env -S X=1 python3\n");
    hook(&world, "g-sample.sample", python);
    let outcome = hooks(&world, &["adopt", "git", "repo"]);
    assert_eq!(outcome.end, End::Code(1), "{outcome:?}");
    assert_eq!(
        outcome.text(),
        "a-shell: left as it is: run by sh, and hob keeps Python warm\n\
         b-binary: left as it is: no script, and hob keeps scripts warm\n\
         c-plain: left as it is: not executable, so that git does not run it\n\
         d-link: left as it is: a symbolic link to ../../check.py, which hob would have to change\n\
         e-hard: left as it is: the file has another name too, which would be another file then\n\
         f-odd: left as it is: run by X=1, and hob keeps Python warm\n"
    );
    assert!(outcome.complaint().contains("nothing was adopted"), "{outcome:?}");
    assert!(repo.join(".git/hooks/d-link").is_symlink() && !kept(&world));
    let nowhere = world.path("work").display().to_string();
    let none = hooks(&world, &["adopt", "git", &nowhere]);
    assert!(none.complaint().contains("git knows no repository there"), "{none:?}");
}

#[test]
fn cores_hooks_path_is_respected_within_the_repository_and_no_further() {
    let world = World::new();
    let repo = repository(&world);
    let python = "#!/usr/bin/env python3\nprint('own')\n";
    let setting = |scope: &str, value: &str| {
        world
            .run(&["git", "-C", "repo", "config", scope, "core.hooksPath", value])
            .go()
            .succeeded();
    };
    setting("--local", "own");
    let tracked = world.executable("repo/own/pre-commit", python);
    let ignored = world.executable("repo/own/pre-push", python);
    world.run(&["git", "-C", "repo", "add", "own/pre-commit"]).go().succeeded();
    let outcome = hooks(&world, &["adopt", "git", "repo"]);
    outcome.succeeded();
    assert!(
        outcome.text().contains("pre-commit: left as it is: under version control"),
        "{outcome:?}"
    );
    assert_eq!(std::fs::read_to_string(&tracked).unwrap(), python);
    assert_ne!(std::fs::read_to_string(&ignored).unwrap(), python);
    hooks(&world, &["restore", "repo"]).succeeded();
    assert_eq!(std::fs::read_to_string(&ignored).unwrap(), python);
    world.run(&["git", "-C", "repo", "config", "--unset", "core.hooksPath"]).go().succeeded();
    setting("--global", repo.join("own").to_str().unwrap());
    let shared = hooks(&world, &["adopt", "git", "repo"]);
    assert_eq!(shared.end, End::Code(1), "{shared:?}");
    assert!(shared.complaint().contains("set in the global configuration"), "{shared:?}");
    assert_eq!(std::fs::read_to_string(&ignored).unwrap(), python);
}

/// The hook that pre-commit 3 and 4 write, with its Python.
fn generated(python: &str) -> String {
    format!(
        "#!/usr/bin/env bash\n# File generated by pre-commit: https://pre-commit.com\n\
         # ID: 138fd403232d2ddd5efb44317e38bf03\n\n# start templated\nINSTALL_PYTHON={python}\n\
         ARGS=(hook-impl --config=.pre-commit-config.yaml --hook-type=pre-commit)\n# end templated\n\n\
         HERE=\"$(cd \"$(dirname \"$0\")\" && pwd)\"\nARGS+=(--hook-dir \"$HERE\" -- \"$@\")\n\n\
         if [ -x \"$INSTALL_PYTHON\" ]; then\n    exec \"$INSTALL_PYTHON\" -mpre_commit \"${{ARGS[@]}}\"\n\
         elif command -v pre-commit > /dev/null; then\n    exec pre-commit \"${{ARGS[@]}}\"\nelse\n    exit 1\nfi\n"
    )
}

#[test]
fn pre_commits_own_hook_runs_its_python_warm() {
    let world = World::started();
    repository(&world);
    world.run(&["python3", "-m", "venv", "--without-pip", "venv"]).go().succeeded();
    let python = world.path("work/venv/bin/python").display().to_string();
    let folder = world
        .run(&[python.as_str(), "-c", "import site; print(site.getsitepackages()[0])"])
        .go()
        .text();
    let main = SHOWS.strip_prefix("#!/usr/bin/env python3\n").unwrap();
    let module = Path::new(folder.trim()).join("pre_commit");
    std::fs::create_dir(&module).unwrap();
    std::fs::write(module.join("__init__.py"), "").unwrap();
    std::fs::write(module.join("__main__.py"), main).unwrap();
    let file = hook(&world, "pre-commit", generated(&python));
    let before = identity(&file);
    let want = called(&world, "pre-commit").go();
    assert_eq!(want.end, End::Code(7), "{want:?}");
    let of_git = hooks(&world, &["adopt", "git", "repo"]);
    assert!(
        of_git.text().contains("made by pre-commit; `hob hooks adopt pre-commit`"),
        "{of_git:?}"
    );
    hooks(&world, &["adopt", "pre-commit", "repo"]).succeeded();
    world.warm(&called(&world, "pre-commit"), |outcome| assert_eq!(outcome, &want));
    // Adopted once, however often that is asked for.
    let text = std::fs::read(&file).unwrap();
    hooks(&world, &["adopt", "pre-commit", "repo"]).succeeded();
    assert_eq!(std::fs::read(&file).unwrap(), text);
    hooks(&world, &["restore", "repo"]).succeeded();
    assert_eq!(identity(&file), before);
    hook(&world, "pre-commit", "#!/bin/sh\n");
    let other = hooks(&world, &["adopt", "pre-commit", "repo"]);
    assert!(other.text().contains("left as it is: not made by pre-commit"), "{other:?}");
}
