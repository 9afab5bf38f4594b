//! The examples of each verb's help: command lines that can be typed, and what they are for.

use clap::Command;

/// A command line, and what it is for.
type Example = (&'static str, &'static str);

/// The examples by the words of their verb.
const TABLE: &[(&str, &[Example])] = &[
    (
        "",
        &[
            ("hob run black src", "Run a command; from the second call on it is warm"),
            ("hob last", "Show what became of the last call"),
            ("hob doctor", "Look for what keeps calls cold"),
            ("hob help run", "Show the help of a verb"),
        ],
    ),
    (
        "run",
        &[
            ("hob run black src", "A command on PATH"),
            ("hob run tools/report.py --month 5", "A script, with its arguments"),
            ("hob run -m pytest -q", "A module"),
            ("hob run -S work report.clj 5", "A script in the session `work`"),
            ("hob run --timeout 30s --cold x.py", "Options of hob stand before the program"),
        ],
    ),
    (
        "warm",
        &[
            ("hob warm java -cp app.jar Main", "The next call of it finds a process that waits"),
            ("hob warm --ahead 4 clojure -M:dev -m my.ns", "Four of them"),
        ],
    ),
    (
        "ask",
        &[
            ("hob ask greet World", "Print what the program `greet` answers"),
            ("hob ask resize @photo.jpg > small.jpg", "Send a file"),
            ("hob ask greet World --count 1000 --jobs 4", "Measure 1000 answers"),
        ],
    ),
    (
        "tell",
        &[
            ("hob tell mail '{\"to\": \"ada\"}'", "Keep the message until it is done"),
            ("date | hob tell note -", "Send standard input"),
        ],
    ),
    (
        "dead",
        &[("hob dead", "List dead letters"), ("hob dead retry --all", "Try all of them again")],
    ),
    (
        "session",
        &[
            ("hob session eval -S work '(def x 1)'", "Define something in the session `work`"),
            ("hob session list", "What is kept, and how much memory it takes"),
        ],
    ),
    (
        "session eval",
        &[
            ("hob session eval -S work '(def x 1)'", "Define something in the session `work`"),
            ("hob session eval -S work x", "And use it in another command"),
            (
                "cat script.clj | hob session eval -S work -",
                "Evaluate what comes on standard input",
            ),
        ],
    ),
    (
        "setup",
        &[
            ("hob setup --dry-run", "Name the files that it would write"),
            ("hob setup", "Write them"),
            ("hob setup --remove", "Take all of them away"),
        ],
    ),
    (
        "new",
        &[
            ("hob new py hello", "A script, a function and a test, in the directory `hello`"),
            ("hob new app shop", "A web app, and a page"),
        ],
    ),
    (
        "session repl",
        &[
            ("hob session repl -S work", "For editors that connect to a Unix socket"),
            ("hob session repl -S work --port 0", "And on a free port, which .nrepl-port names"),
        ],
    ),
    ("hosts", &[("hob hosts", "Which hosts offer what, and how it does there")]),
    ("session list", &[("hob session list", "What is kept, and how much memory it takes")]),
    (
        "session kill",
        &[("hob session kill work", "End one session"), ("hob session kill all", "End all")],
    ),
    ("dead list", &[("hob dead list --json", "List them for a program")]),
    ("dead retry", &[("hob dead retry --all", "Once their handler is repaired")]),
    ("dead drop", &[("hob dead drop --all", "Forget them")]),
    (
        "hooks",
        &[
            ("hob hooks list hooks", "Show what would run, and why other files would not"),
            ("hob hooks run hooks", "Run them"),
        ],
    ),
    (
        "hooks run",
        &[
            ("hob hooks run hooks", "Run each hook once, one after the other"),
            ("hob hooks run hooks --set SITE=web1 --kill-after 5m", "With a variable and a limit"),
            ("hob hooks run hooks --for-each hosts.csv --jobs 8", "Once for each row of a table"),
            ("hob hooks run hooks --for-each hosts.csv --dry-run", "Show what would run"),
            ("hob hooks run hooks --for-each t.csv --hosts 'web-*'", "On other hosts, over NATS"),
        ],
    ),
    ("hooks list", &[("hob hooks list hooks", "Show the order, and what is left out")]),
    (
        "hooks adopt",
        &[("hob hooks adopt pre-commit .", "Let the hooks of this repository run warm")],
    ),
    ("hooks adopt git", &[("hob hooks adopt git .", "Adopt the hooks of this repository")]),
    ("hooks adopt pre-commit", &[("hob hooks adopt pre-commit .", "Adopt what it installed")]),
    (
        "hooks adopt agent",
        &[("hob hooks adopt agent .claude/settings.json", "Let its command hooks run warm")],
    ),
    ("hooks restore", &[("hob hooks restore .", "Put the hooks back as they were")]),
    (
        "serve",
        &[
            ("hob serve", "Serve this directory at 127.0.0.1:8000"),
            ("hob serve shop --listen 8080", "Serve another one, at another port"),
            ("hob serve status", "Show what is served"),
        ],
    ),
    ("serve status", &[("hob serve status", "Show what is served")]),
    (
        "serve reload",
        &[
            ("hob serve reload", "Load all apps anew; the old ones answer until that is done"),
            ("hob serve reload /shop", "Load one app anew"),
        ],
    ),
    ("serve stop", &[("hob serve stop 8000", "Stop the site at a port")]),
    ("serve rights", &[("hob serve rights forget", "Ask again for the rights of all users")]),
    (
        "serve rights forget",
        &[
            ("hob serve rights forget", "Ask again for the rights of all users"),
            ("hob serve rights forget 192.0.2.7 --site 8000", "Those of one, at one site"),
        ],
    ),
    (
        "last",
        &[
            ("hob last --json", "Print the receipt for a program"),
            ("hob last --call 412", "Show the receipt of call 412"),
            ("hob last 20 --html > calls.html", "Show the last 20 calls as a page"),
        ],
    ),
    (
        "trace",
        &[
            ("hob trace", "Where the last call waited, and for whom"),
            ("hob trace --slowest", "The same of the slowest of the last 1000"),
            ("hob trace 412 --json", "Of call 412, for a program"),
            ("hob trace --file now.recording", "Of the last call of a recording"),
            ("hob trace export perfetto -o trace", "All of them, for https://ui.perfetto.dev"),
        ],
    ),
    ("trace record", &[("hob trace record start night", "Keep what is noted from now on")]),
    (
        "trace record start",
        &[
            (
                "hob trace record start night --for 8h",
                "Keep what is noted from now on, for 8 hours",
            ),
            ("hob trace record start slow --when slower=200ms", "Until a call takes 200 ms"),
        ],
    ),
    (
        "trace record list",
        &[("hob trace record list", "Show those that go on, and those that are kept")],
    ),
    (
        "trace record dump",
        &[
            ("hob trace record dump -o now.recording", "Keep what is noted of the last while"),
            ("hob trace record dump night -o so-far", "Write what a recording has"),
        ],
    ),
    ("trace record stop", &[("hob trace record stop night", "End it, and say where it is kept")]),
    (
        "log",
        &[
            ("hob log -n 50", "List the last 50 calls"),
            ("hob log black --slower 200ms --since 1h", "List the slow ones of one program"),
            (
                "hob log --http --follow --where 'status>=500'",
                "Requests of sites that failed, live",
            ),
            ("hob log --daemon --on pool,tells --follow", "Why the daemon does what it does, live"),
            ("hob log --daemon --off all", "No more of that"),
            ("hob log greet --output -f", "What the program `greet` of hob.toml prints, live"),
        ],
    ),
    (
        "trace export",
        &[
            ("hob trace export perfetto --since 1h -o trace", "For https://ui.perfetto.dev"),
            ("hob trace export otlp black -n 100 > spans.json", "For a collector of OpenTelemetry"),
            ("hob trace export prometheus -o hob.prom", "The daemon's counts, for Prometheus"),
        ],
    ),
    ("gain", &[("hob gain --days 7", "Show the last week")]),
    (
        "verify",
        &[
            ("hob verify black --check src", "Compare in all worlds"),
            ("hob verify --copy --worlds none ./build.sh", "In a private copy, in this world"),
        ],
    ),
    (
        "ab",
        &[
            (
                "hob ab --differ 'sort -u a.txt' 'sort a.txt'",
                "Is the second slower than the first?",
            ),
            ("hob ab --metric cpu --gate 5% ./base ./head", "Fail in CI if head is 5 % slower"),
            ("hob ab --warm black --check src", "What does warmth save?"),
            ("hob ab --rev main --build make -- ./app in.json", "Before and after this change"),
        ],
    ),
    (
        "check",
        &[
            ("hob check site.check.toml", "Does it still answer, as each profile?"),
            ("hob check site.check.toml --only 'list *' --times 5", "Some of it, five times each"),
            (
                "hob check site.check.toml --base http://127.0.0.1:8080",
                "The same of another server",
            ),
        ],
    ),
    ("status", &[("hob status --json", "Print it for a program")]),
    (
        "top",
        &[
            ("hob top", "Watch; Tab lists calls, Enter opens one, ? names the keys"),
            ("hob top --once", "Show one second, and end"),
        ],
    ),
    (
        "trust",
        &[
            ("hob trust", "Trust the hob.toml of this project"),
            ("hob trust --list", "List what is trusted"),
            ("hob trust --remove", "Trust it no longer"),
        ],
    ),
    (
        "why",
        &[
            ("hob why pytest -q tests/test_a.py", "Show what a cold start spends"),
            ("hob why --code stale", "Say what that reason in a receipt means"),
        ],
    ),
    ("start", &[("hob start", "Start the daemon before the first call")]),
    ("stop", &[("hob stop", "Stop the daemon and all that waits")]),
    ("restart", &[("hob restart", "Give everything up, and begin again")]),
    ("doctor", &[("hob doctor", "Look for faults of this shell and machine")]),
    (
        "shim",
        &[
            ("hob shim add black", "Make `black` warm wherever it is called"),
            ("hob shim list", "Show whether each shim works"),
        ],
    ),
    ("activate", &[("hob activate bash", "Print what ~/.bashrc is to evaluate")]),
    (
        "shim add",
        &[
            ("hob shim add black ruff", "Make two commands warm"),
            ("hob shim add --venv .", "Make the commands of ./.venv warm"),
        ],
    ),
    ("shim remove", &[("hob shim remove black", "Let `black` be called without hob")]),
    ("shim list", &[("hob shim list", "Show whether each shim works")]),
    ("help", &[("hob help hooks run", "Show the help of `hob hooks run`")]),
    (
        "completions",
        &[("hob completions bash > ~/.local/share/bash-completion/completions/hob", "For bash")],
    ),
];

/// Each example with the words of its verb.
#[cfg(test)]
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    TABLE.iter().flat_map(|(verb, lines)| lines.iter().map(move |(line, _)| (*verb, *line)))
}

/// The width of a help page that fits everywhere.
const COLUMNS: usize = 80;

/// The examples of a verb; none of a verb that is not described.
pub(super) fn of(verb: &str) -> &'static [Example] {
    TABLE.iter().find(|(name, _)| *name == verb).map_or(&[], |(_, examples)| examples)
}

/// Adds the examples to a command's help, and to those of its verbs.
pub(super) fn add(command: Command) -> Command {
    add_below(command, "")
}

fn add_below(command: Command, verb: &str) -> Command {
    let names: Vec<String> =
        command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let command = names.iter().fold(command, |command, name| {
        let words = if verb.is_empty() { name.clone() } else { format!("{verb} {name}") };
        command.mut_subcommand(name, |sub| add_below(sub, &words))
    });
    let shown = shown(of(verb));
    if shown.is_empty() {
        return command;
    }
    let text = match command.get_after_help().map(ToString::to_string) {
        Some(before) => format!("{shown}\n{before}"),
        None => shown,
    };
    command.after_help(text)
}

/// Examples as lines: what one is for stands behind it, or above it where that is too wide.
fn shown(examples: &[Example]) -> String {
    let mut text = String::new();
    let widest = examples.iter().map(|(line, _)| line.len()).max().unwrap_or(0);
    let beside = examples.iter().all(|(_, what)| 2 + widest + 2 + what.len() <= COLUMNS);
    for (line, what) in examples {
        text += &match beside {
            true => format!("  {line:widest$}  {what}\n"),
            false => format!("  # {what}\n  {line}\n"),
        };
    }
    if text.is_empty() { text } else { format!("Examples:\n{text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verbs that a person can call, by their words.
    fn verbs_of(command: &Command, words: &str, found: &mut Vec<String>) {
        found.push(words.to_owned());
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let words = format!("{words} {}", verb.get_name());
            verbs_of(verb, words.trim_start(), found);
        }
    }

    #[test]
    fn every_verb_has_examples_and_no_example_is_of_an_unknown_verb() {
        let mut verbs = Vec::new();
        verbs_of(&crate::cli::command(), "", &mut verbs);
        for verb in &verbs {
            assert!(!of(verb).is_empty(), "`hob {verb}` has no example");
        }
        for (verb, _) in TABLE {
            assert!(verbs.iter().any(|known| known == verb), "`hob {verb}` is no verb");
        }
    }

    #[test]
    fn every_example_is_taken_by_the_command_line() {
        for (line, _) in TABLE.iter().flat_map(|(_, examples)| *examples) {
            // What a shell makes of a redirection or a pipe is not for hob.
            let own = line.split(" > ").next().unwrap_or(line);
            let own = own.rsplit(" | ").next().unwrap_or(own);
            let quoted =
                own.split_once(" '").map(|(before, rest)| (before, rest.trim_end_matches('\'')));
            let words: Vec<&str> = match quoted {
                Some((before, last)) => before.split(' ').chain([last]).collect(),
                None => own.split(' ').collect(),
            };
            let taken = crate::cli::command().try_get_matches_from(words);
            assert!(
                taken.is_ok(),
                "{line}: {}",
                taken.err().map_or_else(String::new, |e| e.to_string())
            );
        }
    }
}
