//! The same command executed by the kernel and by hand from its resolution: the program must not
//! be able to tell. This is what makes a cold run by hob a cold run.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tree::{self, Tree};
use hob_resolve::Program;

/// Prints everything of the start that a program can see.
const DUMP: &str = r#"import os, sys
me = sys.modules["__main__"]
print([sys.executable, getattr(sys, "orig_argv", None), sys.argv, me.__file__, sys.path[0]])
print(sorted(os.environb.items()))
"#;

/// A real interpreter: not a shim, not a link.
fn python() -> PathBuf {
    let mut ask = Command::new("/usr/bin/env");
    ask.args(["python3", "-c", "import sys; print(sys.executable)"]);
    let output = ask.output().unwrap();
    let path = String::from_utf8(output.stdout).unwrap();
    PathBuf::from(path.trim_end()).canonicalize().unwrap()
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn resolved(env: &[(String, String)], cwd: &Path, argv: &[&str]) -> Program {
    let words: Vec<&[u8]> = argv.iter().map(|word| word.as_bytes()).collect();
    match tree::resolve_with(env, cwd, &words) {
        Ok(program) if program.is_hosted() => program,
        other => panic!("{argv:?}: {other:?}"),
    }
}

/// Executes `argv` (or, for a file that is not executable, what a user would type instead) and
/// its resolution, and compares all that they print.
#[track_caller]
fn check(env: &[(String, String)], cwd: &Path, argv: &[&str], typed: &[&str]) {
    let mut plain = Command::new(typed[0]);
    plain.args(&typed[1..]).env_clear().envs(env.iter().cloned()).current_dir(cwd);
    let python = resolved(env, cwd, argv);
    let (file, words) = python.cold_argv();
    let os = std::ffi::OsStr::from_bytes;
    let mut ours = Command::new(os(file));
    ours.arg0(os(words[0])).args(words[1..].iter().map(|word| os(word)));
    ours.env_clear().envs(env.iter().cloned()).current_dir(cwd);
    for name in &python.env.unset {
        ours.env_remove(os(name));
    }
    ours.envs(python.env.set.iter().map(|(name, value)| (os(name), os(value))));
    let (plain, ours) = (output(&mut plain), output(&mut ours));
    assert!(plain.starts_with("exit status: 0"), "{argv:?}: {plain}");
    assert_eq!(plain, ours, "{argv:?}");
}

#[test]
fn a_program_cannot_tell_the_kernel_from_a_resolution() {
    let real = python();
    let real = real.to_str().unwrap();
    let tree = Tree::new()
        .link("bin/python3", real)
        .file("bin/direct", 0o755, &format!("#!{real} -s\n{DUMP}"))
        .file("bin/named", 0o755, &format!("#!/usr/bin/env python3\n{DUMP}"))
        .file("bin/split", 0o755, &format!("#!/usr/bin/env -S python3 -u -W 'error'\n{DUMP}"))
        .file(
            "bin/shell",
            0o755,
            &format!("#!/bin/sh\n'''exec' \"{real}\" \"$0\" \"$@\"\n' '''\n{DUMP}"),
        )
        .file("work/plain.py", 0o644, DUMP)
        .file("work/module.py", 0o644, DUMP);
    let cwd = tree.path("work");
    let tree = tree.with("PWD", "@/work").with("A", "1");
    let env = &tree.env;
    for line in [
        "direct a",
        "named a b",
        "split a",
        "shell a",
        "../bin/named",
        "python3 plain.py a",
        "python3 -uB plain.py",
        "python3 -m module a",
        "python3 -Bm module",
        "../bin/python3 ./plain.py",
    ] {
        let argv: Vec<&str> = line.split(' ').collect();
        // Rust's own search for a program looks at this process's PATH only when env is unset.
        check(env, &cwd, &argv, &argv);
    }
    check(env, &cwd, &["plain.py", "a"], &["python3", "plain.py", "a"]);
    check(env, &cwd, &["-m", "module", "a"], &["python3", "-m", "module", "a"]);
}

/// The environment of a user of pyenv, or the reason why there is none.
fn pyenv() -> Result<(PathBuf, Vec<(String, String)>), String> {
    let home = std::env::var("HOME").map_err(|_| "HOME is unset".to_owned())?;
    let root = std::env::var("PYENV_ROOT").unwrap_or_else(|_| format!("{home}/.pyenv"));
    let root = PathBuf::from(root);
    if !root.join("shims/python3").exists() {
        return Err(format!("no pyenv is installed in {}", root.display()));
    }
    let path = format!("{}/shims:{}/bin:/usr/bin:/bin", root.display(), root.display());
    Ok((root, vec![("PATH".into(), path), ("HOME".into(), home)]))
}

#[test]
fn a_pyenv_shim_is_skipped_without_a_trace() {
    let (root, env) = match pyenv() {
        Ok(found) => found,
        Err(reason) => {
            println!("skipped: {reason}");
            return;
        }
    };
    let tree = Tree::new().file("s.py", 0o644, DUMP).file(
        "n",
        0o755,
        &format!("#!/usr/bin/env python3\n{DUMP}"),
    );
    let cwd = tree.path("");
    let with = |more: &[(&str, &str)]| {
        let mut env = env.clone();
        env.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        env
    };
    let here = cwd.to_str().unwrap().trim_end_matches('/');
    let cwd = Path::new(here);
    let shim = root.join("shims/python3");
    let shim = shim.to_str().unwrap();
    check(&env, cwd, &["python3", "s.py", "a"], &[shim, "s.py", "a"]);
    check(
        &with(&[("PWD", here), ("SHLVL", "2"), ("_", "/bin/x"), ("OLDPWD", "/none")]),
        cwd,
        &["python3", "-u", "s.py"],
        &[shim, "-u", "s.py"],
    );
    check(
        &with(&[("PYENV_VERSION", "system"), ("OLDPWD", "/")]),
        cwd,
        &["./n", "a"],
        &["./n", "a"],
    );
    check(
        &with(&[("PYENV_HOOK_PATH", "/x:/y"), ("PYENV_DIR", "/usr")]),
        cwd,
        &["s.py"],
        &[shim, "s.py"],
    );
    let versions = std::fs::read_dir(root.join("versions")).unwrap();
    for version in versions {
        let name = version.unwrap().file_name().into_string().unwrap();
        if !name.starts_with("3.")
            || !root.join("versions").join(&name).join("bin/python3").exists()
        {
            continue;
        }
        std::fs::write(cwd.join(".python-version"), format!("# pinned\n{name}\n")).unwrap();
        check(&env, cwd, &["s.py"], &[shim, "s.py"]);
        let minor = name.rsplit_once('.').unwrap().0;
        check(&with(&[("PYENV_VERSION", minor)]), cwd, &["s.py"], &[shim, "s.py"]);
    }
}
