//! Completions: what a shell offers, asked by a real one.

use std::process::Command;

use hob_tests::World;
use hob_tests::terminal::Terminal;

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
    assert_eq!(offered(&world, &["session", "kill", ""]), [""; 0]);
    assert_eq!(offered(&world, &["why", "--code", "copy-"]), ["copy-ready"]);
    assert_eq!(offered(&world, &["shim", "remove", ""]), [""; 0]);
    world.hob(&["shim", "add", "python3"]).go().succeeded();
    assert_eq!(offered(&world, &["shim", "remove", ""]), ["python3"]);
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
    assert_eq!(offered(&world, &["last", "--call", ""]), [call.as_str()]);
    assert_eq!(offered(&world, &["run", "/bin/true"]), ["/bin/true"]);
    assert_eq!(offered(&world, &["run", "tool.py", "da"]), ["data.csv"]);
}

/// A world with something to offer, where hob is called by its name.
fn with_programs() -> (World, String) {
    let world = World::started();
    world.file("hob.toml", "[program.greeter]\nhandler = \"app.py:greet\"\n");
    world.file("tool.py", "print(1)\n");
    let usual = world.run(&["sh", "-c", "echo $PATH"]).go().text();
    let path = format!("{}:{}", world.binary().parent().unwrap().display(), usual.trim());
    (world, path)
}

/// Lines with a last word that is begun, and what it becomes.
const COMPLETED: [(&str, &str); 4] = [
    ("hob veri", "verify"),
    ("hob ask gr", "greeter"),
    ("hob run too", "tool.py"),
    ("hob run --isolation st", "standby"),
];

#[test]
fn fish_offers_the_same() {
    let (world, path) = with_programs();
    let fish = world.run(&["fish", "--no-config", "-c"]).env("PATH", path);
    for (line, word) in COMPLETED {
        let asks = format!("hob completions fish | source; complete -C '{line}'");
        let offered = fish.clone().args(&[asks]).go();
        offered.succeeded();
        let text = offered.text();
        let words: Vec<_> = text.lines().map(|line| line.split('\t').next().unwrap()).collect();
        assert_eq!(words, [word], "{line}");
    }
}

#[test]
fn zsh_completes_the_same_at_its_prompt() {
    let (world, path) = with_programs();
    let zsh = world.run(&["zsh", "-f", "-i"]).env("PATH", path);
    let mut terminal = Terminal::open(&zsh);
    let begin =
        "PS1='ne''xt '; autoload -U compinit; compinit -u -D; source <(hob completions zsh)";
    // ^T shows the whole line and throws it away: at a key, zsh shows only what differs.
    let shows = "shows() { zle -I; print -r -- \"<$BUFFER>\"; BUFFER= }; zle -N shows; \
                 bindkey '^T' shows";
    terminal.keys(&format!("{begin}; {shows}; echo rea''dy\r"));
    terminal.expect("ready");
    for (line, word) in COMPLETED {
        // Before that, keys are the terminal's own.
        terminal.expect("next ");
        terminal.keys(&format!("{line}\t\u{14}"));
        let begun = line.rsplit_once(' ').unwrap().0;
        terminal.expect(&format!("<{begun} {word} >"));
    }
    terminal.expect("next ");
    terminal.keys("exit\r");
    assert_eq!(terminal.finish().0, hob_tests::End::Code(0));
}
