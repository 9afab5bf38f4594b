//! Verbs under the names that they had before: they go on, and say the new one to who sits before a
//! terminal. Help, completions and man pages have the new names alone.

use std::ffi::CStr;

use hob_os::start::Start;

use crate::say;

/// A verb's former name, and the words that are its name now.
const FORMER: &[(&str, &[&CStr])] = &[
    ("eval", &[c"session", c"eval"]),
    ("repl", &[c"session", c"repl"]),
    ("sessions", &[c"session", c"list"]),
    ("kill", &[c"session", c"kill"]),
    ("logs", &[c"log", c"--output"]),
    ("show", &[c"last", c"--call"]),
    ("record", &[c"trace", c"record"]),
    ("export", &[c"trace", c"export"]),
    ("rights", &[c"serve", c"rights"]),
];

fn of(verb: &[u8]) -> Option<&'static [&'static CStr]> {
    FORMER.iter().find(|(former, _)| former.as_bytes() == verb).map(|(_, now)| *now)
}

/// The command line with the name that its verb has now; `None`: it has that already.
pub(super) fn renamed(start: &Start) -> Option<Start> {
    let verb = start.argv.get(1)?;
    let now = of(verb.to_bytes())?;
    let asks = matches!(start.argv.get(2).map(|word| word.to_bytes()), Some(b"--help" | b"-h"));
    // Who asks for help gives an option no value.
    let now = now.iter().filter(|word| !(asks && word.to_bytes().starts_with(b"-")));
    let now: Vec<&CStr> = now.copied().collect();
    if say::Stream::Err.is_terminal() {
        let words: Vec<_> = now.iter().map(|word| word.to_string_lossy()).collect();
        let (verb, words) = (verb.to_string_lossy(), words.join(" "));
        say::line(format!("`hob {verb}` is `hob {words}` now").as_bytes());
    }
    let first = start.argv.iter().take(1);
    let argv = first.chain(&now).chain(start.argv.iter().skip(2)).copied().collect();
    Some(Start { argv, env: start.env.clone() })
}

/// The words after `hob help`, of which the first may be a former name.
pub(super) fn words(asked: &[String]) -> Vec<String> {
    let now = asked.first().and_then(|first| of(first.as_bytes()));
    let Some(now) = now else { return asked.to_vec() };
    let now = now.iter().map(|word| word.to_string_lossy().into_owned());
    let now = now.filter(|word| !word.starts_with('-'));
    now.chain(asked.iter().skip(1).cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_former_name_is_of_a_verb_that_there_is_and_no_verb_of_today() {
        let root = crate::cli::command();
        for (former, now) in FORMER {
            assert!(root.find_subcommand(former).is_none(), "{former}");
            let mut here = &root;
            for word in now.iter().map(|word| word.to_str().unwrap()) {
                here = match word.strip_prefix("--") {
                    Some(long) => {
                        let is_there = here.get_arguments().any(|arg| arg.get_long() == Some(long));
                        assert!(is_there, "{former}: {word}");
                        here
                    }
                    None => here.find_subcommand(word).unwrap_or_else(|| panic!("{former}")),
                };
            }
        }
    }
}
