//! The command hooks of coding agents through hob: what the agent sees of them is what it saw, in
//! particular where they block by failing.

use std::path::PathBuf;

use hob_tests::{End, Outcome, Run, World};

/// Shows all that a hook sees of its agent, but for bash's own `_`, and ends as its argument says.
const SHOWS: &str = "#!/usr/bin/env python3\nimport os, sys\n\
    print(sys.argv, os.getcwd(), sorted(e for e in os.environb.items() if e[0] != b'_'))\nprint(sys.stdin.buffer.read())\n\
    sys.stderr.write('err\\n')\nsys.exit(int(sys.argv[1]))\n";
/// What an agent gives a hook.
const INPUT: &[u8] = b"{\"tool_name\": \"Bash\"}";

/// A project with an agent's settings, in a style of their own.
fn settings(world: &World, file: &str, text: &str) -> PathBuf {
    world.executable("project/hooks/guard.py", SHOWS);
    world.file(&format!("project/{file}"), text);
    world.path("work/project").join(file)
}

fn hooks(world: &World, words: &[&str]) -> Outcome {
    world.hob(&["hooks"]).args(words).go()
}

fn text(file: &PathBuf) -> String {
    std::fs::read_to_string(file).unwrap()
}

/// A command as an agent runs it: by a shell, in the project.
fn called(world: &World, shell: &str, command: &str) -> Run {
    world
        .run(&[shell, "-c", command])
        .within(world.path("work/project"))
        .env("CLAUDE_PROJECT_DIR", world.path("work/project").to_str().unwrap())
        .stdin(INPUT.to_vec())
}

/// The commands of a settings file, in its order.
fn commands(world: &World, file: &PathBuf) -> Vec<String> {
    let script = "import json, sys\ndef walk(x):\n if isinstance(x, dict):\n  \
                  if 'command' in x: print(x['command'])\n  [walk(v) for v in x.values()]\n \
                  if isinstance(x, list): [walk(v) for v in x]\nwalk(json.load(open(sys.argv[1])))\n";
    let lines = world.run(&["python3", "-c", script]).args(&[file]).go().text();
    lines.lines().map(str::to_owned).collect()
}

/// How many calls may be needed until one is warm.
const CALLS_MAX: usize = 40;

/// Calls until hob has had a call warm: its process is not the shell's, so the last record is it.
fn warm_in_the_end(world: &World, run: &Run, want: &Outcome) {
    let before = world.records(0).len();
    for calls in 1..=CALLS_MAX {
        assert_eq!(&run.go(), want);
        let records = world.records(before + calls);
        if records.last().is_some_and(|record| record["warm"] == true) {
            return;
        }
    }
    panic!("never warm: {:?}", world.records(0));
}

/// Claude Code's shape, with bytes that a writer of JSON would not keep.
const CLAUDE: &str = "{\t\"permissions\": {\"allow\": [\"Bash(ls:*)\"]},\r\n  \"hooks\" : { \"PreToolUse\": [\n\
    {\"matcher\":\"Bash\", \"hooks\":[\n      {\"type\" : \"command\",\"command\":\"python3 hooks/guard.py 2\", \"timeout\":5},\n\
    {\"type\":\"command\",\"command\":\"\\\"$CLAUDE_PROJECT_DIR\\\"/hooks/guard.py 1 || exit \\u0032\"},\n\
    {\"type\":\"command\",\"command\":\"echo plain\"},\n\
    {\"type\":\"prompt\",\"prompt\":\"python3 hooks/guard.py 2\"} ]} ] }\r\n}\n\n";

#[test]
fn adopted_hooks_are_warm_and_block_as_they_did() {
    let world = World::started();
    let file = settings(&world, ".claude/settings.json", CLAUDE);
    let plain = commands(&world, &file);
    let adopted = hooks(&world, &["adopt", "agent", "project/.claude/settings.json"]);
    adopted.succeeded();
    let said = adopted.text();
    assert_eq!(said.matches("runs through hob from now on").count(), 2, "{said}");
    assert!(said.contains("echo plain: left as it is: hob does not keep"), "{said}");
    let changed = commands(&world, &file);
    assert_eq!((changed.len(), &changed[2]), (3, &plain[2]));
    for shell in ["sh", "bash"] {
        for (was, is) in plain.iter().zip(&changed).take(2) {
            let want = called(&world, shell, was).go();
            assert_eq!(want.end, End::Code(2), "{was}: {want:?}");
            warm_in_the_end(&world, &called(&world, shell, is), &want);
        }
    }
    hooks(&world, &["restore", "project/.claude/settings.json"]).succeeded();
    assert_eq!(text(&file), CLAUDE);
    assert!(!world.path("work/project/.claude/.hob").exists(), "nothing is left");
}

/// Others of the project have another home, and may have no hob.
#[test]
fn a_file_that_goes_to_others_has_no_path_of_this_home() {
    let world = World::started();
    let file = settings(&world, ".claude/settings.json", CLAUDE);
    let plain = commands(&world, &file);
    let project = world.path("work/project");
    world.run(&["git", "init", "-q"]).within(&project).go().succeeded();
    let words = ["adopt", "agent", "--dry-run", "project/.claude/settings.json"];
    let dry = hooks(&world, &words);
    assert_eq!(dry.text().matches("would run through hob").count(), 2, "{dry:?}");
    assert_eq!((text(&file), dry.end), (CLAUDE.to_owned(), End::Code(0)));
    let adopted = hooks(&world, &["adopt", "agent", "project/.claude/settings.json"]);
    assert!(adopted.text().contains("no `hob` is on PATH"), "{adopted:?}");
    assert!(!text(&file).contains(world.binary().to_str().unwrap()), "{}", text(&file));
    let links = world.path("links");
    std::fs::create_dir(&links).unwrap();
    std::os::unix::fs::symlink(world.binary(), links.join("hob")).unwrap();
    let usual = world.environment().into_iter().find(|(name, _)| name == "PATH").unwrap().1;
    let with = format!("{}:{}", links.display(), usual.to_str().unwrap());
    for (was, is) in plain.iter().zip(&commands(&world, &file)).take(2) {
        let want = called(&world, "sh", was).go();
        assert_eq!(want.end, End::Code(2), "{want:?}");
        assert_eq!(called(&world, "sh", is).go(), want, "without hob");
        let want = called(&world, "sh", was).env("PATH", &with).go();
        warm_in_the_end(&world, &called(&world, "sh", is).env("PATH", &with), &want);
    }
    hooks(&world, &["restore", "project/.claude/settings.json"]).succeeded();
    assert_eq!(text(&file), CLAUDE);
    // One that git ignores stays here, and names hob by its path.
    world.file("project/.gitignore", "settings.local.json\n");
    let own = settings(&world, ".claude/settings.local.json", CLAUDE);
    hooks(&world, &["adopt", "agent", "project/.claude/settings.local.json"]).succeeded();
    assert!(text(&own).contains(world.binary().to_str().unwrap()), "{}", text(&own));
}

#[test]
fn a_file_with_comments_and_a_byte_order_mark_is_adopted_and_given_back() {
    let world = World::started();
    let text_of = |command: &str| {
        format!(
            "\u{feff}{{ // of the team\n\"hooks\": {{\"PreToolUse\": [{{\"hooks\": [\n\
             {{\"type\": \"command\", \"command\": {command} }}, /* the last */\n]}}, ]}},\n}}\n"
        )
    };
    let before = text_of("\"python3 hooks/guard.py 2\"");
    let file = settings(&world, ".claude/settings.json", &before);
    hooks(&world, &["adopt", "agent", "project/.claude/settings.json"]).succeeded();
    let adopted = text(&file);
    assert!(adopted.contains(" run python3 hooks/guard.py 2; "), "{adopted}");
    assert!(adopted.contains("// of the team") && adopted.contains("/* the last */"), "{adopted}");
    hooks(&world, &["restore", "project/.claude/settings.json"]).succeeded();
    assert_eq!(text(&file), before);
}

#[test]
fn a_hook_blocks_without_hob_too() {
    let world = World::new();
    let file = settings(&world, ".claude/settings.json", CLAUDE);
    let image = std::fs::read(world.binary()).unwrap();
    let hob = world.executable("bin/hob", image);
    let adopt = ["hooks", "adopt", "agent", "project/.claude/settings.json"];
    world.run(&[&hob]).args(&adopt).go().succeeded();
    let plain: Vec<String> =
        vec!["python3 hooks/guard.py 2".into(), "hooks/guard.py 1 || exit 2".into()];
    let changed = commands(&world, &file);
    // No daemon can be started: its directory cannot be made.
    for gone in [false, true] {
        if gone {
            std::fs::remove_file(&hob).unwrap();
        }
        for (was, is) in plain.iter().zip(&changed) {
            let want = called(&world, "sh", was).go();
            let got = called(&world, "sh", is).env("HOB_DIR", "/proc/none").go();
            assert_eq!(got.end, End::Code(2), "{is}: {got:?}");
            assert_eq!(got.complaint().lines().last(), want.complaint().lines().last());
        }
    }
}

#[test]
fn every_agents_settings_are_changed_in_the_commands_alone() {
    let group = |event: &str| {
        format!(
            "{{\"hooks\":{{\"{event}\":[{{\"hooks\":[{{\"type\":\"command\",\"command\":\
             \"python3 hooks/guard.py 0\",\"timeout\":30}}]}}]}}}}"
        )
    };
    let cursor = "{\"version\": 1, \"hooks\": {\"beforeShellExecution\": [{\"command\": \
                  \"python3 hooks/guard.py 0\", \"failClosed\": true}]}}";
    let world = World::new();
    for (file, before) in [
        (".claude/settings.local.json", group("PostToolUse")),
        (".gemini/settings.json", group("BeforeTool")),
        (".codex/hooks.json", group("PreToolUse")),
        (".cursor/hooks.json", cursor.to_owned()),
        ("hooks/hooks.json", group("Stop")),
    ] {
        let path = settings(&world, file, &before);
        let named = format!("project/{file}");
        let adopted = hooks(&world, &["adopt", "agent", &named]);
        adopted.succeeded();
        assert_eq!(adopted.text().contains("reviewed it"), file.contains("codex"), "{adopted:?}");
        let after = text(&path);
        let command = commands(&world, &path).remove(0);
        assert!(command.ends_with("; python3 hooks/guard.py 0"), "{command}");
        assert_eq!(after.replace(&command, "python3 hooks/guard.py 0"), before);
        let again = hooks(&world, &["adopt", "agent", &named]);
        assert!(again.text().contains("is adopted already"), "{again:?}");
        assert_eq!(text(&path), after);
        hooks(&world, &["restore", &named]).succeeded();
        assert_eq!(text(&path), before);
    }
}

/// Codex's other file, in a style of its own.
const CODEX: &str = "model = \"x\"  # mine\r\n\n[[hooks.PreToolUse]]\nmatcher = '^Bash$'\n\
    [[hooks.PreToolUse.hooks]]\ntype = \"command\"\ncommand = 'python3 hooks/guard.py 2'\n\
    [hooks.state]\n[mcp_servers.a]\ncommand = \"python3\"\nargs = [ \"b\" ]\n";

#[test]
fn hooks_in_a_file_of_toml_are_warm_and_given_back() {
    let world = World::started();
    let file = settings(&world, ".codex/config.toml", CODEX);
    let named = "project/.codex/config.toml";
    let adopted = hooks(&world, &["adopt", "agent", named]);
    adopted.succeeded();
    assert!(adopted.text().contains("reviewed it"), "{adopted:?}");
    let after = text(&file);
    let literal = after.lines().find_map(|line| line.strip_prefix("command = ")).unwrap();
    assert_eq!(after.replace(literal, "'python3 hooks/guard.py 2'"), CODEX);
    let command: String = serde_json::from_str(literal).unwrap();
    let want = called(&world, "sh", "python3 hooks/guard.py 2").go();
    assert_eq!(want.end, End::Code(2), "{want:?}");
    warm_in_the_end(&world, &called(&world, "sh", &command), &want);
    let again = hooks(&world, &["adopt", "agent", named]);
    assert!(again.text().contains("is adopted already"), "{again:?}");
    hooks(&world, &["restore", named]).succeeded();
    assert_eq!(text(&file), CODEX);
    // Codex has written to it since.
    hooks(&world, &["adopt", "agent", named]).succeeded();
    std::fs::write(&file, text(&file).replace("\"x\"", "\"y\"")).unwrap();
    hooks(&world, &["restore", named]).succeeded();
    assert_eq!(text(&file), CODEX.replace("\"x\"", "\"y\""));
}

/// Each command with what is said of it.
#[test]
fn a_command_behind_a_change_of_directory_is_found_there_or_told() {
    let world = World::started();
    let warm = [
        "cd \"$CLAUDE_PROJECT_DIR\" && python3 hooks/guard.py 2",
        "cd hooks && ./guard.py 2",
        "cd \"$CLAUDE_PROJECT_DIR/hooks\"; python3 guard.py 1 || exit 2",
    ];
    let told = [
        ("cd \"$ELSEWHERE\" && ./guard.py 2", "`cd $ELSEWHERE` leads where hob cannot tell"),
        ("cd none && python3 guard.py 2", "name the program by a path from the project"),
        ("cd hooks && python3 none.py", "left as it is: "),
    ];
    let all = warm.iter().chain(told.iter().map(|(command, _)| command));
    let hook = |command: &&str| serde_json::json!({"type": "command", "command": command});
    let list: Vec<_> = all.map(hook).collect();
    let before = serde_json::json!({"hooks": {"PreToolUse": [{"hooks": list}]}}).to_string();
    let file = settings(&world, ".claude/settings.json", &before);
    let adopted = hooks(&world, &["adopt", "agent", "project/.claude/settings.json"]);
    adopted.succeeded();
    let said = adopted.text();
    for (command, why) in told {
        let line = said.lines().find(|line| line.contains(command)).unwrap();
        assert!(line.contains("left as it is: ") && line.contains(why), "{line}");
    }
    assert_eq!(said.matches("runs through hob from now on").count(), warm.len(), "{said}");
    for (was, is) in warm.iter().zip(&commands(&world, &file)) {
        let want = called(&world, "sh", was).go();
        assert_eq!(want.end, End::Code(2), "{was}: {want:?}");
        warm_in_the_end(&world, &called(&world, "sh", is), &want);
    }
}

#[test]
fn what_the_agent_wrote_since_stays() {
    let world = World::new();
    let file = settings(&world, ".claude/settings.json", CLAUDE);
    hooks(&world, &["adopt", "agent", "project/.claude/settings.json"]).succeeded();
    // An agent that remembers a permission writes the whole file in a style of its own.
    let rewrite = "import json, sys\nd = json.load(open(sys.argv[1]))\n\
                   d['permissions']['allow'].append('Bash(pwd)')\n\
                   json.dump(d, open(sys.argv[1], 'w'), indent=2)\n";
    world.run(&["python3", "-c", rewrite]).args(&[&file]).go().succeeded();
    let restored = hooks(&world, &["restore", "project/.claude/settings.json"]);
    restored.succeeded();
    assert!(restored.text().contains("hob's change is taken back"), "{restored:?}");
    let now = text(&file);
    assert!(now.contains("Bash(pwd)") && !now.contains("hob run"), "{now}");
    assert_eq!(commands(&world, &file)[0], "python3 hooks/guard.py 2");
}

#[test]
fn what_cannot_be_read_or_changed_says_why_and_stays() {
    let world = World::new();
    for (text_of, why) in [
        ("mine\n{\"hooks\": {}}", "it is no JSON object"),
        ("{\"model\": \"x\"}", "it has no \"hooks\""),
        ("{\"hooks\": {}}", "it has no command hooks"),
        (
            "{\"hooks\": {\"stop\": [{\"command\": \"(python3 hooks/guard.py 0)\"}]}}",
            "no hook there can be warm",
        ),
    ] {
        let file = settings(&world, ".cursor/hooks.json", text_of);
        let refused = hooks(&world, &["adopt", "agent", "project/.cursor/hooks.json"]);
        assert_eq!(refused.end, End::Code(1), "{refused:?}");
        assert!(refused.complaint().contains(why), "{refused:?}");
        assert_eq!(text(&file), text_of);
    }
    world.run(&["ln", "-s", "hooks.json", "project/.cursor/link.json"]).go().succeeded();
    let refused = hooks(&world, &["adopt", "agent", "project/.cursor/link.json"]);
    assert!(refused.complaint().contains("name its target, hooks.json"), "{refused:?}");
    let none = hooks(&world, &["restore", "project/.cursor/hooks.json"]);
    assert!(none.text().contains("no hook is adopted"), "{none:?}");
}
