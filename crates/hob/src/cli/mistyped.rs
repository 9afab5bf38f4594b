//! Every example, mistyped: the tip is a line that is taken, and nearly always the one that was meant.

use std::ffi::{CStr, CString};

use hob_os::start::Start;

use super::{complaint, examples};

/// Two letters swapped, or one left out: at each second place of a word's.
fn mistyped(word: &str) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    let from = letters.iter().take_while(|letter| **letter == '-').count();
    let text = |letters: Vec<char>| letters.into_iter().collect::<String>();
    let mut all = Vec::new();
    for at in (from..letters.len()).step_by(2) {
        let mut less = letters.clone();
        less.remove(at);
        let mut swapped = letters.clone();
        if at + 1 < letters.len() {
            swapped.swap(at, at + 1);
        }
        all.extend([text(less), text(swapped)]);
    }
    all.retain(|one| one != word && one.len() > from);
    all.sort();
    all.dedup();
    all
}

fn start(words: &[String]) -> Start {
    let word = |word: &String| -> &'static CStr {
        Box::leak(CString::new(word.as_str()).unwrap().into_boxed_c_str())
    };
    Start { argv: words.iter().map(word).collect(), env: Vec::new() }
}

/// What a line offers to be typed.
fn offered(line: &str) -> Option<Vec<&str>> {
    let (_, rest) = line.split_once("did you mean `")?;
    Some(rest.split('`').next()?.split(' ').collect())
}

/// The words of an example that has none with a space in it, and how many of them are its verb's.
fn words(line: &str, verb: &str) -> Option<(Vec<String>, usize)> {
    let plain = !line.contains(['\'', '|', '>', '"']);
    plain.then(|| (line.split(' ').map(str::to_owned).collect(), verb.split(' ').count()))
}

#[test]
fn what_is_offered_for_a_mistyped_example_is_taken() {
    let root = super::command();
    let (mut tried, mut hits) = (0, 0);
    for (verb, line) in examples::all() {
        let Some((typed, of_verb)) = words(line, verb).filter(|_| !verb.is_empty()) else {
            continue;
        };
        // What `run` and its kin are given behind a program is the program's.
        let program = matches!(verb, "run" | "warm" | "why" | "verify" | "ab" | "check");
        for at in 1..typed.len() {
            let is_verb = at <= of_verb;
            let is_option = typed[at].starts_with("--") && !program;
            if !is_verb && !is_option {
                continue;
            }
            for other in mistyped(&typed[at]) {
                let mut words = typed.clone();
                words[at] = other;
                let Err(error) = root.clone().try_get_matches_from(&words) else { continue };
                let said = complaint(&start(&words), &error);
                let Some(tip) = offered(&said) else { continue };
                tried += 1;
                // Where a program of that name is on PATH, it is offered, too.
                let taken = root.clone().try_get_matches_from(&tip);
                let is_help = taken.as_ref().is_err_and(|error| !error.use_stderr());
                assert!(taken.is_ok() || is_help, "{words:?}: {said}");
                hits += usize::from(tip == typed);
            }
        }
    }
    assert!(tried > 300 && hits * 10 > tried * 9, "{hits} of {tried}");
}

#[test]
fn nearly_each_mistyped_word_gets_a_tip() {
    let root = super::command();
    let (mut all, mut told) = (0, 0);
    for (verb, line) in examples::all() {
        let Some((typed, of_verb)) = words(line, verb).filter(|_| !verb.is_empty()) else {
            continue;
        };
        for other in mistyped(&typed[of_verb]) {
            let mut words = typed.clone();
            words[of_verb] = other;
            let Err(error) = root.clone().try_get_matches_from(&words) else { continue };
            all += 1;
            told += usize::from(offered(&complaint(&start(&words), &error)).is_some());
        }
    }
    assert!(all > 300 && told * 10 > all * 9, "{told} of {all}");
}
