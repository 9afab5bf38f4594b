//! Completions: what a shell offers, asked by a real one.

use std::process::Command;

use hob_tests::World;

/// What bash offers for this line, of which the last word is being typed, but for options where none is
/// begun.
fn offered(world: &World, words: &[&str]) -> Vec<String> {
    let script = r#"
        eval "$(hob completions bash)"
        COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMP_TYPE=9
        _clap_complete_hob hob "${COMP_WORDS[COMP_CWORD]}" ""
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let path = format!("{}:/usr/bin:/bin", world.binary().parent().unwrap().display());
    let output = Command::new("bash")
        .args(["--norc", "-c", script, "bash", "hob"])
        .args(words)
        .env_clear()
        .envs(world.environment())
        .env("PATH", path)
        .current_dir(world.path("work"))
        .output()
        .unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let begun = words.last().is_some_and(|word| word.starts_with('-'));
    let is_offer = |line: &&str| !line.is_empty() && (begun || !line.starts_with('-'));
    text.lines().map(str::trim).filter(is_offer).map(str::to_owned).collect()
}

#[test]
fn verbs_and_their_options_are_offered_without_a_daemon() {
    let world = World::new();
    let verbs = offered(&world, &["ver"]);
    assert_eq!(verbs, ["verify"]);
    let all = offered(&world, &[""]);
    assert!(all.contains(&"run".to_owned()) && !all.contains(&"daemon".to_owned()), "{all:?}");
    assert_eq!(offered(&world, &["run", "--iso"]), ["--isolation"]);
    assert_eq!(offered(&world, &["run", "--isolation", "st"]), ["standby"]);
    assert_eq!(offered(&world, &["kill", ""]), [""; 0]);
    assert!(!world.hob_dir().exists(), "no daemon was started");
}

#[test]
fn programs_calls_and_files_are_those_that_there_are() {
    let world = World::started();
    world.file("hob.toml", "[program.greeter]\nhandler = \"app.py:greet\"\n");
    world.file("tool.py", "print(1)\n");
    world.file("data.csv", "1\n");
    assert_eq!(offered(&world, &["ask", "gr"]), ["greeter"]);
    assert_eq!(offered(&world, &["run", "too"]), ["tool.py"]);
    world.hob(&["run", "/bin/true"]).go().succeeded();
    let call = world.records(1)[0]["call"].to_string();
    assert_eq!(offered(&world, &["show", ""]), [call.as_str()]);
    assert_eq!(offered(&world, &["run", "/bin/true"]), ["/bin/true"]);
    assert_eq!(offered(&world, &["run", "tool.py", "da"]), ["data.csv"]);
}
