//! How things look: colour or none, block characters or ASCII, how wide.
//!
//! The decision is made once, by [`Look::of_stdout`], from what the terminal and the user say;
//! everything else takes a [`Look`]. Colour marks, and never carries a meaning of its own: the
//! words say the same.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use hob_os::say::Layout;
use rustix::fd::AsFd;

use super::text::{Charset, fit, width};
use super::units::Micro;

/// The width when nothing is known.
const WIDTH_DEFAULT: usize = 80;
/// Narrower than this is not laid out for: it wraps.
const WIDTH_MIN: usize = 40;

/// Whether there is colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Yes.
    On,
    /// No escape sequence at all.
    Off,
}

/// Whether what is measured is drawn, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figures {
    /// As bars and axes.
    Drawn,
    /// No: the words and numbers beside them say the same.
    Told,
}

/// Everything that rendering needs to know about where its text will stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Whether there is colour.
    pub colour: Colour,
    /// Which characters can be shown.
    pub charset: Charset,
    /// Whether figures are drawn.
    pub figures: Figures,
    /// How many columns there are; `None` when nobody counts them (a file, a pipe).
    pub columns: Option<usize>,
}

/// What a piece of text is, as far as colour goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// As the terminal has it.
    Plain,
    /// The thing that the line is about.
    Title,
    /// What may be skipped.
    Dim,
    /// Warm, saved, good.
    Good,
    /// Cold, waiting, to be looked at.
    Watch,
    /// Failed.
    Bad,
    /// The program's own time.
    Own,
    /// hob's time.
    Ours,
}

/// Whether the command line said `--plain`. A process shows in one way, wherever that is decided.
static PLAIN: AtomicBool = AtomicBool::new(false);

/// From now on everything is shown as for someone to whom it is read aloud.
pub fn be_plain() {
    PLAIN.store(true, Ordering::Relaxed);
}

/// Whether there is to be no colour, no figure and no line that is drawn over: `--plain`,
/// `HOB_PLAIN`, or a terminal that can do none of it.
#[must_use]
pub fn is_plain() -> bool {
    let asked =
        std::env::var_os("HOB_PLAIN").is_some_and(|value| !value.is_empty() && value != "0");
    asked
        || PLAIN.load(Ordering::Relaxed)
        || std::env::var_os("TERM").is_some_and(|it| it == "dumb")
}

impl Look {
    /// For standard output: [`is_plain`], `NO_COLOR`, `CLICOLOR_FORCE` and what is no terminal are
    /// obeyed; ASCII if the locale is not UTF-8.
    #[must_use]
    pub fn of_stdout() -> Look {
        Look::of(&std::io::stdout())
    }

    /// For a line on standard error that is drawn again and again: `None` where that is no
    /// terminal, or one that cannot.
    #[must_use]
    pub fn of_stderr_terminal() -> Option<Look> {
        let stderr = std::io::stderr();
        if !stderr.is_terminal() || std::env::var_os("TERM").is_none() || is_plain() {
            return None;
        }
        // The window as it is now, however narrow: a line that wraps could not be drawn over.
        let told = rustix::termios::tcgetwinsize(&stderr).ok().map(|size| size.ws_col.into());
        let columns = told.filter(|columns| *columns > 0).unwrap_or(WIDTH_DEFAULT);
        Some(Look { columns: Some(columns), ..Look::of(&stderr) })
    }

    fn of<S: anstream::stream::RawStream + AsFd>(stream: &S) -> Look {
        let figures = if is_plain() { Figures::Told } else { Figures::Drawn };
        let asked = ColorChoice::global();
        let choice = match (asked, figures) {
            // A terminal that says little of itself does not outweigh who looks at it.
            (ColorChoice::Always | ColorChoice::AlwaysAnsi, _) => asked,
            (_, Figures::Told) => ColorChoice::Never,
            (_, Figures::Drawn) => AutoStream::choice(stream),
        };
        let colour = match choice {
            ColorChoice::Never => Colour::Off,
            ColorChoice::Auto | ColorChoice::AlwaysAnsi | ColorChoice::Always => Colour::On,
        };
        let columns = if stream.is_terminal() {
            let asked = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
            let told = || rustix::termios::tcgetwinsize(stream).ok().map(|size| size.ws_col.into());
            let known = asked.or_else(told).filter(|columns| *columns > 0);
            Some(known.unwrap_or(WIDTH_DEFAULT).max(WIDTH_MIN))
        } else {
            None
        };
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(|name| std::env::var(name).ok());
        Look { colour, charset: charset(locale), figures, columns }
    }

    /// What stays of a text that is shown so.
    #[must_use]
    pub fn layout(&self) -> Layout {
        match self.colour {
            Colour::On => Layout::Coloured,
            Colour::Off => Layout::Lines,
        }
    }

    /// The columns to lay a figure out for.
    #[must_use]
    pub fn figure_columns(&self) -> usize {
        self.columns.unwrap_or(WIDTH_DEFAULT)
    }

    /// The text in this tone.
    #[must_use]
    pub fn paint(&self, tone: Tone, text: &str) -> String {
        match (self.colour, tone) {
            (Colour::Off, _) | (Colour::On, Tone::Plain) => text.to_owned(),
            (Colour::On, _) => {
                let style = style(tone);
                format!("{style}{text}{style:#}")
            }
        }
    }

    /// The text with its colours exchanged, where there is colour.
    #[must_use]
    pub fn invert(&self, text: &str) -> String {
        match self.colour {
            Colour::Off => text.to_owned(),
            Colour::On => {
                let style = Style::new().invert();
                format!("{style}{text}{style:#}")
            }
        }
    }

    /// Parts with dots between them, on as few lines of at most `columns` as they need. A part is
    /// cut only if it is wider than a line.
    #[must_use]
    pub fn flow(&self, parts: &[(Tone, String)], columns: usize) -> Vec<String> {
        let dot = self.dot();
        let mut lines: Vec<String> = Vec::new();
        let mut used = 0;
        for (tone, text) in parts {
            let text = fit(text, columns, self.charset);
            let painted = self.paint(*tone, &text);
            match lines.last_mut() {
                Some(line) if used + width(dot) + width(&text) <= columns => {
                    *line += &self.paint(Tone::Dim, dot);
                    *line += &painted;
                    used += width(dot) + width(&text);
                }
                Some(_) | None => {
                    lines.push(painted);
                    used = width(&text);
                }
            }
        }
        lines
    }

    /// How the micro sign is written.
    #[must_use]
    pub fn micro(&self) -> Micro {
        match self.charset {
            Charset::Unicode => Micro::Sign,
            Charset::Ascii => Micro::Ascii,
        }
    }

    /// What stands between two parts of a line.
    #[must_use]
    pub fn dot(&self) -> &'static str {
        match self.charset {
            Charset::Unicode => " · ",
            Charset::Ascii => " - ",
        }
    }
}

/// The first variable that is set and not empty decides, as in the C library.
fn charset(locale: [Option<String>; 3]) -> Charset {
    let deciding = locale.into_iter().flatten().find(|value| !value.is_empty());
    let name = deciding.unwrap_or_default().to_ascii_lowercase();
    if name.contains("utf-8") || name.contains("utf8") { Charset::Unicode } else { Charset::Ascii }
}

fn style(tone: Tone) -> Style {
    let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
    match tone {
        Tone::Plain => Style::new(),
        Tone::Title => Style::new().bold(),
        Tone::Dim => Style::new().dimmed(),
        Tone::Good | Tone::Own => colour(AnsiColor::Green),
        Tone::Watch => colour(AnsiColor::Yellow),
        Tone::Bad => colour(AnsiColor::Red),
        Tone::Ours => colour(AnsiColor::Cyan),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_decides_the_characters_in_the_c_librarys_order() {
        let check = |locale: [&str; 3], expected| {
            let given = locale.map(|value| Some(value.to_owned()));
            assert_eq!(charset(given), expected, "{locale:?}");
        };
        check(["", "", "C.UTF-8"], Charset::Unicode);
        check(["", "de_DE.utf8", "C"], Charset::Unicode);
        check(["C", "", "en_US.UTF-8"], Charset::Ascii);
        check(["", "", "POSIX"], Charset::Ascii);
        assert_eq!(charset([None, None, None]), Charset::Ascii);
    }

    #[test]
    fn without_colour_there_is_no_escape() {
        let mut look = Look {
            colour: Colour::Off,
            charset: Charset::Ascii,
            figures: Figures::Drawn,
            columns: None,
        };
        assert_eq!(look.paint(Tone::Bad, "x"), "x");
        look.colour = Colour::On;
        assert_eq!(look.paint(Tone::Bad, "x"), "\u{1b}[31mx\u{1b}[0m");
    }
}
