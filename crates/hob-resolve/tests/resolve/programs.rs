//! What runs, by what the caller typed: tables over temporary trees.

use crate::tree::{self, BINARY, Tree};

/// A tree with a system-like `python3` that is a link, and a few scripts.
fn system() -> Tree {
    Tree::new()
        .file("lib/python3.11", 0o755, BINARY)
        .link("bin/python3", "../lib/python3.11")
        .file("work/plain.py", 0o644, "print()\n")
        .file("work/deep/er/plain.py", 0o644, "print()\n")
}

#[test]
fn a_python_file_runs_in_the_first_interpreter_that_is_at_hand() {
    let tree = system();
    let want = "@/bin/python3: python3 | plain.py a b | Script @/work/plain.py";
    tree.check("work", "plain.py a b", want);
    tree.check(
        "work",
        "./plain.py",
        "@/bin/python3: python3 | ./plain.py | Script @/work/./plain.py",
    );
    let want = "@/bin/python3: python3 | @/work/plain.py | Script @/work/plain.py";
    tree.check("", "@/work/plain.py", want);

    let tree = tree.file("work/.venv/bin/python", 0o755, BINARY);
    let want = "@/work/.venv/bin/python: @/work/.venv/bin/python | er/plain.py | Script @/work/deep/er/plain.py";
    // A venv's python that is no link to a real one is still judged by its own name.
    tree.check("work/deep", "er/plain.py", want);

    let tree = tree.file("active/bin/python", 0o755, BINARY).with("VIRTUAL_ENV", "@/active");
    let want = "@/active/bin/python: @/active/bin/python | plain.py | Script @/work/plain.py";
    tree.check("work", "plain.py", want);
    let tree = tree.with("VIRTUAL_ENV", "@/gone").with("PATH", "@/nothing");
    let want =
        "@/work/.venv/bin/python: @/work/.venv/bin/python | plain.py | Script @/work/plain.py";
    tree.check("work", "plain.py", want);
}

#[test]
fn python_without_a_number_is_the_last_resort() {
    let tree = Tree::new().file("bin/python", 0o755, BINARY).file("s.py", 0o644, "");
    tree.check("", "s.py", "@/bin/python: python | s.py | Script @/s.py");
    let tree = Tree::new().file("s.py", 0o644, "");
    tree.check("", "s.py", "127 python3: not found");
}

#[test]
fn a_module_runs_from_the_working_directory() {
    let tree = system();
    let want = "@/bin/python3: python3 -m | json.tool f.json | Module json.tool (cwd)";
    tree.check("work", "-m json.tool f.json", want);
    let tree = tree.file(".venv/bin/python", 0o755, BINARY);
    let want = "@/.venv/bin/python: @/.venv/bin/python -m | json.tool | Module json.tool (cwd)";
    tree.check("work/deep", "-m json.tool", want);
    tree.check("work", "-m", "2 -m: a module name is missing");
}

#[test]
fn a_named_interpreter_has_its_command_line_read() {
    let tree = system();
    tree.check(
        "work",
        "python3 plain.py a",
        "@/bin/python3: python3 | plain.py a | Script @/work/plain.py",
    );
    tree.check(
        "work",
        "python3 -uB plain.py -x",
        "@/bin/python3: python3 -uB | plain.py -x | Script @/work/plain.py",
    );
    tree.check(
        "work",
        "@/bin/python3 -Im a.b c",
        "@/bin/python3: @/bin/python3 -Im | a.b c | Module a.b (cwd)",
    );
    tree.check(
        "work",
        "../bin/python3 plain.py",
        "@/work/../bin/python3: ../bin/python3 | plain.py | Script @/work/plain.py",
    );
    tree.check("work", "python3 -c pass", "exec @/bin/python3: python3 -c pass (InlineCode)");
    tree.check("work", "python3", "exec @/bin/python3: python3 (Interactive)");
    tree.check("work", "python3 -", "exec @/bin/python3: python3 - (StandardInput)");
    tree.check("work", "python3 -V", "exec @/bin/python3: python3 -V (UnknownOption)");
    tree.check("work", "python3 gone.py", "exec @/bin/python3: python3 gone.py (ScriptMissing)");
    tree.check("work", "python3 deep", "exec @/bin/python3: python3 deep (Archive)");
}

#[test]
fn a_relative_entry_in_pythonpath_makes_the_directory_part_of_the_key() {
    let tree = system().with("PYTHONPATH", "/lib:lib");
    let want = "@/bin/python3: python3 | plain.py | Script @/work/plain.py (cwd)";
    tree.check("work", "plain.py", want);
    let want = "@/bin/python3: python3 -E | plain.py | Script @/work/plain.py";
    tree.check("work", "python3 -E plain.py", want);
    let tree = tree.with("PYTHONPATH", "/lib");
    let want = "@/bin/python3: python3 | plain.py | Script @/work/plain.py";
    tree.check("work", "plain.py", want);
}

#[test]
fn a_command_is_followed_through_its_first_line() {
    let tree = system()
        .file("bin/direct", 0o755, "#!@/lib/python3.11 -s\n")
        .file("bin/named", 0o755, "#!/usr/bin/env python3\n")
        .file("bin/split", 0o755, "#!/usr/bin/env -S python3 -u -W 'error'\n")
        .file(
            "bin/pip-like",
            0o755,
            "#!/bin/sh\n'''exec' \"@/lib/python3.11\" \"$0\" \"$@\"\n' '''\n",
        )
        .file("bin/cleared", 0o755, "#!/usr/bin/env -i python3\n")
        .file("bin/assigned", 0o755, "#!/usr/bin/env -S A=1 python3\n")
        .file("bin/shell", 0o755, "#!/bin/sh\n")
        .file("bin/nothing", 0o755, "echo\n")
        .file("bin/two-options", 0o755, "#!@/lib/python3.11 -u -s\n")
        .file("bin/chained", 0o755, "#!@/bin/direct -x\n")
        .file("bin/app", 0o755, "#!/usr/bin/env python3\nPK\x03\x04")
        .file("bin/hobbed", 0o755, "#!/usr/bin/env -S hob run\n");
    tree.check(
        "",
        "direct a",
        "@/lib/python3.11: @/lib/python3.11 -s | @/bin/direct a | Script @/bin/direct",
    );
    tree.check("", "named a", "@/bin/python3: python3 | @/bin/named a | Script @/bin/named");
    tree.check("", "bin/named a", "@/bin/python3: python3 | bin/named a | Script @/bin/named");
    tree.check(
        "",
        "split a",
        "@/bin/python3: python3 -u -W error | @/bin/split a | Script @/bin/split",
    );
    tree.check(
        "",
        "pip-like a",
        "@/lib/python3.11: @/lib/python3.11 | @/bin/pip-like a | Script @/bin/pip-like",
    );
    tree.check("", "cleared", "exec @/bin/cleared: cleared");
    tree.check("", "assigned a", "exec @/bin/assigned: assigned a");
    tree.check("", "shell a", "exec @/bin/shell: shell a");
    tree.check("", "nothing a", "exec @/bin/nothing: nothing a");
    tree.check("", "two-options", "exec @/bin/two-options: two-options (UnknownOption)");
    let want = "@/lib/python3.11: @/lib/python3.11 -s | @/bin/direct -x @/bin/chained a | Script @/bin/direct";
    tree.check("", "chained a", want);
    tree.check("", "app", "exec @/bin/app: app (Archive)");
    tree.check("", "hobbed a", "@/bin/python3: python3 | @/bin/hobbed a | Script @/bin/hobbed");
}

#[test]
fn a_shebang_counts_before_the_suffix() {
    let tree = system()
        .file("own.py", 0o644, "#!@/lib/python3.11\n")
        .file("shell.py", 0o755, "#!/bin/sh\n")
        .file("idle-shell.py", 0o644, "#!/bin/sh\n")
        .file("lost.py", 0o755, "#!/nowhere/python\r\n")
        .file("idle-lost.py", 0o644, "#!/nowhere/python\r\n");
    tree.check("", "own.py", "@/lib/python3.11: @/lib/python3.11 | own.py | Script @/own.py");
    tree.check("", "shell.py", "exec shell.py: shell.py");
    tree.check(
        "",
        "idle-shell.py",
        "@/bin/python3: python3 | idle-shell.py | Script @/idle-shell.py",
    );
    let want = "127 lost.py: its first line names `/nowhere/python\\r`, which does not exist (the file has Windows line ends; remove the carriage returns)";
    tree.check("", "lost.py", want);
    tree.check("", "idle-lost.py", "@/bin/python3: python3 | idle-lost.py | Script @/idle-lost.py");
}

#[test]
fn a_py_file_in_the_working_directory_goes_before_one_on_the_path() {
    let tree = system().file("bin/plain.py", 0o755, "#!/bin/sh\n");
    tree.check("work", "plain.py", "@/bin/python3: python3 | plain.py | Script @/work/plain.py");
    tree.check("", "plain.py", "exec @/bin/plain.py: plain.py");
    // Without the suffix the working directory counts for nothing, as in any shell.
    let tree = tree.file("work/tool", 0o755, "#!/bin/sh\n");
    tree.check("work", "tool", "127 tool: not found");
    let tree = tree.file("-v.py", 0o644, "");
    tree.check("", "-v.py", "@/bin/python3: python3 | ./-v.py | Script @/./-v.py");
}

#[test]
fn the_path_is_searched_as_execvp_does() {
    let tree = Tree::new()
        .file("a/tool", 0o644, "#!/bin/sh\n")
        .file("b/tool", 0o755, "#!/bin/sh\n")
        .file("a/only", 0o644, "")
        .file("c/tool/x", 0o644, "")
        .with("PATH", "@/none:@/c:@/a:@/b");
    tree.check("", "tool x", "exec @/b/tool: tool x");
    tree.check("", "only", "126 @/a/only: cannot execute: permission denied");
    tree.check("", "none", "127 none: not found");
    let tree = tree.with("PATH", "b:");
    tree.check("", "tool", "exec b/tool: tool");
    tree.check("b", "tool", "exec tool: tool");
}

#[test]
fn what_cannot_run_says_why() {
    let tree = Tree::new()
        .file("idle", 0o644, "#!/bin/sh\n")
        .file("lost", 0o755, "#!/nowhere/sh\n")
        .file("unnamed", 0o755, "#!/usr/bin/env nowhere\n")
        .file("worded", 0o755, "#!/usr/bin/env python3 -u\n")
        .file("via-idle", 0o755, "#!@/idle\n");
    tree.check("", "./none", "127 ./none: not found");
    tree.check("", "idle/x", "127 idle/x: not found");
    tree.check("", "none.py", "127 none.py: not found");
    tree.check("", "./idle", "126 ./idle: cannot execute: permission denied");
    tree.check("", "./bin", "126 ./bin: is a directory");
    tree.check("", "/dev/null", "126 /dev/null: cannot execute: it is not a regular file");
    tree.check(
        "",
        "./lost",
        "127 ./lost: its first line names `/nowhere/sh`, which does not exist",
    );
    tree.check(
        "",
        "./unnamed",
        "127 ./unnamed: its first line names `nowhere`, which does not exist",
    );
    let want = "127 ./worded: its first line names `python3 -u`, which does not exist (more than one word after env needs `env -S`)";
    tree.check("", "./worded", want);
    let want = "126 @/idle: cannot execute: it is named as an interpreter, but is not executable";
    tree.check("", "./via-idle", want);
    tree.check("", "\x1b[2J", "127 \\u{1b}[2J: not found");
    tree.check("", "", "127 : not found");
}

#[test]
fn a_binary_counts_by_its_real_name() {
    let tree = Tree::new()
        .file("lib/python3.13t", 0o755, BINARY)
        .file("lib/manager", 0o755, BINARY)
        .file("lib/python2.7", 0o755, BINARY)
        .file("bin/python3-config", 0o755, BINARY)
        .file("bin/setid/python3", 0o4755, BINARY)
        .link("bin/mypy", "../lib/python3.13t")
        .link("bin/python3", "../lib/manager")
        .link("bin/python", "../lib/python2.7")
        .file("s.py", 0o644, "");
    tree.check("", "mypy s.py", "@/bin/mypy: mypy | s.py | Script @/s.py");
    tree.check("", "python3 s.py", "exec @/bin/python3: python3 s.py");
    tree.check("", "python s.py", "exec @/bin/python: python s.py");
    tree.check("", "python3-config s.py", "exec @/bin/python3-config: python3-config s.py");
    tree.check(
        "",
        "bin/setid/python3 s.py",
        "exec bin/setid/python3: bin/setid/python3 s.py (SetId)",
    );
}

#[test]
fn a_file_that_leads_to_itself_ends() {
    let tree = Tree::new().file("a", 0o755, "#!@/b\n").file("b", 0o755, "#!@/a\n");
    tree.check("", "./a", "exec ./a: ./a");
}

#[test]
fn what_decided_is_watched() {
    let tree = system().file("v/bin/python", 0o755, BINARY).with("VIRTUAL_ENV", "@/v");
    let python = tree.resolve("work", "plain.py").unwrap();
    assert!(python.is_hosted());
    let watched: Vec<String> = python.watch.iter().map(|path| tree::text(path)).collect();
    for path in ["v/pyvenv.cfg", "v/bin/pyvenv.cfg", "v/bin/python", "work/plain.py"] {
        let path = tree.path(path);
        assert!(watched.iter().any(|seen| seen == path.to_str().unwrap()), "{path:?}");
    }
}

/// The same with shims of ours before everything else on `PATH`.
fn shimmed(names: &[&str]) -> Tree {
    let tree = system().with("PATH", "@/shims:@/bin").file("app/hob", 0o755, BINARY);
    names.iter().fold(tree, |tree, name| tree.link(&format!("shims/{name}"), "@/app/hob"))
}

#[test]
fn our_own_shims_are_passed_over() {
    let tree = shimmed(&["tool", "gone", "python3", "hob"])
        .file("bin/tool", 0o755, "#!/usr/bin/env python3\n")
        .file("bin/ls", 0o755, BINARY);
    // An interpreter that finds itself by a bare name would find the shim, so it gets a path.
    tree.check("", "tool x", "@/bin/python3: @/bin/python3 | @/bin/tool x | Script @/bin/tool");
    tree.check(
        "work",
        "python3 plain.py",
        "@/bin/python3: @/bin/python3 | plain.py | Script @/work/plain.py",
    );
    tree.check(
        "work",
        "plain.py",
        "@/bin/python3: @/bin/python3 | plain.py | Script @/work/plain.py",
    );
    tree.check("", "python3 -c x", "exec @/bin/python3: @/bin/python3 -c x (InlineCode)");
    tree.check("", "gone", "127 gone: not found");
    tree.check("", "hob status", "exec @/shims/hob: hob status");
    tree.check("", "ls", "exec @/bin/ls: ls");
    let tree = tree.link("shims/ls", "../app/gone/hob-0.1");
    tree.check("", "ls", "exec @/bin/ls: ls");
}

#[test]
fn a_command_behind_a_shim_sees_its_own_name_and_no_change() {
    let tree = shimmed(&["ls"]).file("bin/ls", 0o755, BINARY);
    let exec = tree.resolve("", "ls -l").unwrap();
    assert!(!exec.is_hosted());
    assert_eq!((exec.argv[0].as_slice(), exec.env.set), (&b"ls"[..], Vec::new()));
}

#[test]
fn another_tools_shim_that_comes_back_to_ours_gets_the_next_one() {
    let tree = shimmed(&["node"])
        .with("PATH", "@/shims:@/asdf:@/nodenv:@/bin")
        .file("asdf/node", 0o755, "#!/bin/sh\nexec asdf exec node \"$@\"\n")
        .file("nodenv/node", 0o755, "#!/bin/sh\nexec nodenv exec node \"$@\"\n")
        .file("bin/node", 0o755, BINARY);
    let mut tree = tree;
    for wanted in ["asdf/node", "nodenv/node", "bin/node"] {
        let exec = tree.resolve("", "node").unwrap();
        assert_eq!(exec.interpreter, tree.path(wanted).into_os_string().into_encoded_bytes());
        // What is executed has the guard, as long as it could come back.
        match exec.env.set.as_slice() {
            [(name, value)] if wanted != "bin/node" => {
                tree = tree.with(&tree::text(name), &tree::text(value));
            }
            set => assert!(set.is_empty() && wanted == "bin/node", "{wanted}: {set:?}"),
        }
    }
}
