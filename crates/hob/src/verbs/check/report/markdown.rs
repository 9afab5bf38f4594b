//! The report for a pull request: Markdown, as sites that show one read it.

use std::fmt::Write as _;

use super::{Counts, Failure, Matrix, Ran, code_word, compared, extent, failures, title};
use crate::show::units::{Micro, duration};
use hob_check::State;

/// A comment of a pull request has 64 KiB; so many rows and failures are shown.
const ROWS_MAX: usize = 100;
const FAILURES_MAX: usize = 30;
/// A failure's cause or curl line is cut to so many characters.
const LINE_MAX: usize = 1000;

/// The whole report.
pub(super) fn markdown(all: &[Ran]) -> String {
    let mut out = String::new();
    for ran in all {
        let _ = write!(
            out,
            "### {}: {}\n\n{}\n\n",
            escaped(&title(ran)),
            Counts::new(&ran.found).verdict(),
            escaped(&extent(ran))
        );
        let words = compared(ran).into_iter().map(|(bad, words)| {
            let words = escaped(&words);
            if bad { format!("**{words}**") } else { words }
        });
        let words: Vec<_> = words.collect();
        if !words.is_empty() {
            let _ = write!(out, "{}\n\n", words.join(" · "));
        }
        matrix(&mut out, ran);
        let failures = failures(&ran.plan, &ran.found);
        for failure in failures.iter().take(FAILURES_MAX) {
            failed(&mut out, ran, failure);
        }
        more(&mut out, failures.len(), FAILURES_MAX, "failure");
    }
    out
}

fn matrix(out: &mut String, ran: &Ran) {
    let (plan, matrix) = (&ran.plan, Matrix::new(&ran.plan));
    if matrix.checks.is_empty() {
        return;
    }
    out.push_str("| |");
    for profile in &matrix.profiles {
        let _ = write!(out, " {} |", escaped(&plan.profiles[*profile].name));
    }
    let _ = writeln!(out, "\n|---|{}", "---|".repeat(matrix.profiles.len()));
    for check in matrix.checks.iter().take(ROWS_MAX) {
        let _ = write!(out, "| {} |", escaped(&plan.checks[*check].name));
        for profile in &matrix.profiles {
            let Some(at) = matrix.cell(*check, *profile) else {
                out.push_str(" |");
                continue;
            };
            let done = &ran.found.cells[at];
            let took = done.median_us().map_or("?".to_owned(), |us| duration(us, Micro::Sign));
            let text = format!("{} {took}", code_word(plan, *check, done));
            let _ = match done.state {
                State::Passed => write!(out, " {text} |"),
                State::Failed | State::Slow => write!(out, " **{text}** ❌ |"),
                State::NotRun(_) => write!(out, " *not run* |"),
            };
        }
        out.push('\n');
    }
    out.push('\n');
    more(out, matrix.checks.len(), ROWS_MAX, "check");
}

fn failed(out: &mut String, ran: &Ran, failure: &Failure) {
    let label = if failure.ran { "Failed" } else { "Not run" };
    let _ = writeln!(out, "**{label}: {}**\n", escaped(&failure.title(&ran.plan, " · ")));
    for cause in &failure.causes {
        let _ = writeln!(out, "- {}", escaped(&cut(cause)));
    }
    let asked = cut(failure.curl.as_ref().unwrap_or(&failure.asked));
    let _ = writeln!(out, "\n{}", block(&asked));
}

fn more(out: &mut String, all: usize, shown: usize, what: &str) {
    if all > shown {
        let _ = writeln!(out, "… and {}.\n", super::many(all - shown, &format!("more {what}")));
    }
}

fn cut(text: &str) -> String {
    let short: String = text.chars().take(LINE_MAX).collect();
    if short.len() < text.len() { format!("{short}…") } else { short }
}

/// A text as itself: no markup, no line end, no name of a person that is called by it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            // A zero-width space: a reader sees the sign, and no notice is sent.
            '@' => out += "@\u{200b}",
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '#' | '+' | '!' | '|'
            | '~' | '$' => {
                out.push('\\');
                out.push(character);
            }
            _ => out.push_str(&crate::show::text::printable(
                character.encode_utf8(&mut [0; 4]),
                crate::show::text::Charset::Unicode,
            )),
        }
    }
    out
}

/// A block of code whose fence is longer than any within.
fn block(text: &str) -> String {
    let text = crate::show::text::printable(text, crate::show::text::Charset::Unicode);
    let longest = text.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}sh\n{text}\n{fence}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_commands_nothing() {
        let text = escaped("a|b <img> [x](y) `c` @all *d*\n# e");
        let want = "a\\|b &lt;img&gt; \\[x\\]\\(y\\) \\`c\\` @\u{200b}all \\*d\\*\\n\\# e";
        assert_eq!(text, want);
        assert_eq!(block("a ``` b"), "````sh\na ``` b\n````\n");
        assert!(block("a\nb").lines().count() == 3, "one line stays one");
    }
}
