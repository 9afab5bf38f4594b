//! What a hook's command says to a shell, as far as hob must know it: where its simple commands
//! are, and what their words would be. Pure.
//!
//! Only what is understood wholly is changed. A command in parentheses, in backquotes, of several
//! lines, or with a word that governs others (`if`, `for`, `!`) is left as it is.

use std::ops::Range;

/// Words that begin more than a simple command.
const RESERVED: &[&str] = &[
    "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "in", "select", "function", "coproc", "time", "!", "{", "}", "[[",
];

/// One simple command of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Simple {
    /// All of it, without the blanks around it.
    pub(super) all: Range<usize>,
    /// Where its first word begins that is no assignment.
    pub(super) program: usize,
    /// Its words from there, without redirections, as a shell would have them.
    pub(super) words: Vec<String>,
}

/// What the shell would put in place of a variable.
pub(super) type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The simple commands of a text, in their order; or why it is left as it is.
pub(super) fn commands(text: &str, variables: Variables<'_>) -> Result<Vec<Simple>, String> {
    if text.contains(['\n', '\r']) {
        return Err("it has several lines".to_owned());
    }
    let mut all = Vec::new();
    let mut from = 0;
    for part in split(text)? {
        let (range, next) = part;
        all.extend(simple(text, range, variables)?);
        from = next;
    }
    all.extend(simple(text, from..text.len(), variables)?);
    Ok(all)
}

/// The ranges before each operator, and where the next one begins.
fn split(text: &str) -> Result<Vec<(Range<usize>, usize)>, String> {
    let bytes = text.as_bytes();
    let mut parts = Vec::new();
    let (mut at, mut from) = (0, 0);
    let mut quote = None;
    let mut begins_word = true;
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied();
        let escaped = byte == b'\\' && quote != Some(b'\'');
        match (quote, byte) {
            _ if escaped => at += 1,
            (Some(open), _) if open == byte => quote = None,
            (Some(b'\''), _) => {}
            (_, b'`') => return Err("it has a command in backquotes".to_owned()),
            (_, b'$') if next == Some(b'(') => return Err("it has a command in $()".to_owned()),
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'(' | b')') => return Err("it has parentheses".to_owned()),
            (None, b'#') if begins_word => return Err("it has a comment".to_owned()),
            (None, b'<') if next == Some(b'<') => return Err("it has a document".to_owned()),
            (None, b'<' | b'>') if next == Some(b'&') => at += 1,
            (None, b'&' | b'|') if next == Some(byte) => {
                parts.push((from..at, at + 2));
                at += 1;
                from = at + 1;
            }
            (None, b'|' | b';') if next != Some(b'&') && next != Some(b';') => {
                parts.push((from..at, at + 1));
                from = at + 1;
            }
            (None, b'&' | b'|' | b';') => {
                return Err(format!(
                    "it has an operator that hob does not carry over: {}",
                    byte as char
                ));
            }
            (None, _) => {}
        }
        begins_word = quote.is_none() && !escaped && b" \t;|&".contains(&byte);
        at += 1;
    }
    if quote.is_some() {
        return Err("a quote in it is not closed".to_owned());
    }
    Ok(parts)
}

/// The simple command in a range; none if it is blank.
fn simple(
    text: &str,
    range: Range<usize>,
    variables: Variables<'_>,
) -> Result<Option<Simple>, String> {
    let part = &text[range.clone()];
    let start = range.start + (part.len() - part.trim_start().len());
    let end = range.start + part.trim_end().len();
    if start >= end {
        return Ok(None);
    }
    let mut found = Simple { all: start..end, program: end, words: Vec::new() };
    for word in raw_words(text, start..end) {
        let raw = &text[word.clone()];
        if raw.contains(['<', '>']) && is_redirection(raw) {
            continue;
        }
        if found.words.is_empty() && is_assignment(raw) {
            continue;
        }
        if found.words.is_empty() {
            found.program = word.start;
        }
        found.words.push(unquoted(raw, variables));
    }
    if let Some(first) = found.words.first().filter(|first| RESERVED.contains(&first.as_str())) {
        return Err(format!("it has a `{first}`"));
    }
    Ok(Some(found))
}

/// The ranges of words, their quotes included; a redirection's target belongs to it.
fn raw_words(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut words: Vec<Range<usize>> = Vec::new();
    let (mut at, mut quote, mut open) = (range.start, None, None);
    let mut joined = false;
    while at < range.end {
        let byte = bytes[at];
        let escaped = byte == b'\\' && quote != Some(b'\'');
        if quote.is_none() && matches!(byte, b' ' | b'\t') {
            if let Some(start) = open.take() {
                joined = matches!(bytes[at - 1], b'<' | b'>');
                words.push(start..at);
            }
        } else {
            if open.is_none() {
                open = Some(if joined { words.pop().map_or(at, |word| word.start) } else { at });
                joined = false;
            }
            match quote {
                Some(mark) if mark == byte && !escaped => quote = None,
                None if matches!(byte, b'\'' | b'"') => quote = Some(byte),
                Some(_) | None => {}
            }
            at += usize::from(escaped);
        }
        at += 1;
    }
    words.extend(open.map(|start| start..range.end));
    words
}

/// `>file`, `2>&1`, `< file`.
fn is_redirection(raw: &str) -> bool {
    raw.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(['<', '>'])
}

/// `NAME=value`.
fn is_assignment(raw: &str) -> bool {
    raw.split_once('=').is_some_and(|(name, _)| {
        let named = |c: char| c.is_ascii_alphanumeric() || c == '_';
        !name.is_empty()
            && name.chars().all(named)
            && !name.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// A word without its quotes, with what is known of its variables.
fn unquoted(raw: &str, variables: Variables<'_>) -> String {
    let mut word = String::new();
    let mut rest = raw;
    let mut quote = None;
    if let Some(after) =
        raw.strip_prefix('~').filter(|after| after.is_empty() || after.starts_with('/'))
        && let Some(home) = variables("HOME")
    {
        word.push_str(&home);
        rest = after;
    }
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        match (quote, character) {
            (Some(mark), _) if mark == character => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None | Some('"'), '\\') => {
                let Some(next) = rest.chars().next() else { break };
                if quote.is_some() && !"$`\"\\".contains(next) {
                    word.push('\\');
                }
                word.push(next);
                rest = &rest[next.len_utf8()..];
            }
            (None | Some('"'), '$') => {
                let (value, after) = variable(rest, variables);
                word.push_str(&value);
                rest = after;
            }
            (_, other) => word.push(other),
        }
    }
    word
}

/// What stands for a variable after its `$`, and what follows it. One that is not known stays.
fn variable<'a>(rest: &'a str, variables: Variables<'_>) -> (String, &'a str) {
    let named = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (name, after, shown) = match rest.strip_prefix('{').and_then(|inner| inner.split_once('}'))
    {
        Some((name, after)) => (name, after, format!("${{{name}}}")),
        None => {
            let end = rest.find(|c: char| !named(c)).unwrap_or(rest.len());
            (&rest[..end], &rest[end..], format!("${}", &rest[..end]))
        }
    };
    let known = (!name.is_empty() && name.chars().all(named)).then(|| variables(name)).flatten();
    (known.unwrap_or(shown), after)
}

/// How a command calls hob, and finds out first whether it can.
#[derive(Debug)]
pub(super) struct Called {
    /// A test in shell, of one command.
    test: String,
    /// What is called.
    word: String,
}

impl Called {
    /// By this path, which has to be quoted nowhere.
    pub(super) fn by_path(hob: &str) -> Called {
        Called { test: format!("[ -x {hob} ]"), word: hob.to_owned() }
    }

    /// By its name, in what others have, too.
    pub(super) fn by_name() -> Called {
        Called { test: "command -v hob >/dev/null 2>&1".to_owned(), word: "hob".to_owned() }
    }
}

/// The text in which these simple commands run through hob where hob is, and as they are where it
/// is not.
///
/// One that is all of the text goes on in the shell's own place. Where others follow it the shell
/// stays, so that an `|| exit 2` sees the very exit code.
pub(super) fn through(text: &str, chosen: &[&Simple], hob: &Called) -> String {
    let Called { test, word } = hob;
    let whole = |one: &Simple| one.all == (0..text.len());
    if let [one] = chosen
        && whole(one)
    {
        let (before, program) = (&text[..one.program], &text[one.program..]);
        return format!("{test} && {before}exec {word} run {program}; {text}");
    }
    let mut changed = String::new();
    let mut from = 0;
    for one in chosen {
        let (before, program) =
            (&text[one.all.start..one.program], &text[one.program..one.all.end]);
        changed += &text[from..one.all.start];
        changed +=
            &format!("if {test}; then {before}{word} run {program}; else {before}{program}; fi");
        from = one.all.end;
    }
    changed + &text[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(name: &str) -> Option<String> {
        match name {
            "HOME" => Some("/home/u".to_owned()),
            "ROOT" => Some("/p q".to_owned()),
            _ => None,
        }
    }

    fn words(text: &str) -> Vec<Vec<String>> {
        commands(text, &known).unwrap().into_iter().map(|one| one.words).collect()
    }

    #[test]
    fn words_are_what_a_shell_makes_of_them() {
        assert_eq!(
            words("python3 a.py 'b c' \"d $HOME\" e\\ f"),
            [["python3", "a.py", "b c", "d /home/u", "e f"]]
        );
        assert_eq!(
            words("\"$ROOT\"/x.py ${ROOT}/y $UNKNOWN ${A:-b}"),
            [["/p q/x.py", "/p q/y", "$UNKNOWN", "${A:-b}"]]
        );
        assert_eq!(words("~/x.py '~/y' a~"), [["/home/u/x.py", "~/y", "a~"]]);
        assert_eq!(
            words("A=1 B='2 3' ruby x.rb c=d 2>/dev/null > out < in 2>&1"),
            [["ruby", "x.rb", "c=d"]]
        );
        assert_eq!(
            words("a '|| b' \"; c\" || d && e; f | g"),
            [vec!["a", "|| b", "; c"], vec!["d"], vec!["e"], vec!["f"], vec!["g"]]
        );
        assert_eq!(words("  "), Vec::<Vec<String>>::new());
    }

    #[test]
    fn what_is_more_than_simple_commands_is_left_with_its_reason() {
        for (text, why) in [
            ("a\nb", "several lines"),
            ("(a)", "parentheses"),
            ("a `b`", "backquotes"),
            ("a $(b)", "$()"),
            ("a \"$(b)\"", "$()"),
            ("a <<E", "document"),
            ("a <(b)", "parentheses"),
            ("if a; then b; fi", "`if`"),
            ("a || ! b", "`!`"),
            ("a &", "operator"),
            ("a # b", "comment"),
            ("a 'b", "not closed"),
            ("a |& b", "operator"),
        ] {
            let refused = commands(text, &known).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
        assert_eq!(words("a b#c '# d'"), [["a", "b#c", "# d"]]);
    }

    #[test]
    fn a_command_alone_takes_the_shells_place_and_another_leaves_it_there() {
        let change = |text: &str| {
            let all = commands(text, &known).unwrap();
            let chosen: Vec<&Simple> =
                all.iter().filter(|one| one.words.first().is_some_and(|w| w == "p")).collect();
            through(text, &chosen, &Called::by_path("/h"))
        };
        assert_eq!(change("p x"), "[ -x /h ] && exec /h run p x; p x");
        assert_eq!(change("A=1 p x"), "[ -x /h ] && A=1 exec /h run p x; A=1 p x");
        assert_eq!(
            change("p x || exit 2"),
            "if [ -x /h ]; then /h run p x; else p x; fi || exit 2"
        );
        assert_eq!(
            change("cat | A=1 p x; p"),
            "cat | if [ -x /h ]; then A=1 /h run p x; else A=1 p x; fi; \
             if [ -x /h ]; then /h run p; else p; fi"
        );
    }
}
