//! Where the person at the screen is: what is shown, selected, ordered and left out. Pure.
//!
//! ```text
//!            Tab              Enter
//!   programs ◀──▶ calls ───────────▶ one call
//!                        ◀────────── Esc
//! ```
//! Invariants: what is selected stays selected while rows come and go, but for the first row, which
//! is always the first one; no key does anything to the daemon.

use super::Failure;
use super::keys::Key;
use super::snapshot::Order;
use crate::show::clock::Clock;
use crate::show::entries::Entry;
use crate::show::entries::filter::Filter;
use crate::show::style::{Colour, Look, Tone};
use crate::show::text::{fit, printable, width};
use crate::show::{table, waterfall};

/// What stands before the selected row, and before the others.
const MARKS: [&str; 2] = ["> ", "  "];

/// What each key does.
const HELP: [&str; 12] = [
    "Up Down k j   the row before, behind; a line of what is longer than the screen",
    "PgUp PgDn     a screen of them",
    "Home End g G  the first, the last",
    "Tab           programs, calls",
    "Enter         where the time of the selected call went",
    "Esc           back",
    "s             another order: by calls, by memory; of calls the slowest first",
    "/             only what has this in its name; Enter keeps it, Esc ends it",
    "c             only cold calls",
    "f             only calls that failed",
    "?             this, and back",
    "q             quits",
];

/// What is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum View {
    #[default]
    Programs,
    Calls,
    Call,
}

/// Whether the screen stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Stay,
    Quit,
}

#[derive(Debug, Default)]
pub(super) struct Explorer {
    pub(super) view: View,
    /// The first line shown of what is longer than the screen.
    top: usize,
    /// The selected call, which is shown alone after `Enter`. None: whatever is first.
    selected: Option<Entry>,
    /// The calls as they were drawn last.
    rows: Vec<Entry>,
    /// Lines for what changes, and how many it has, as they were drawn last.
    room: usize,
    length: usize,
    slowest: bool,
    order: Order,
    only: Filter,
    name: String,
    typing: bool,
    help: bool,
}

impl Explorer {
    pub(super) fn order(&self) -> Order {
        self.order
    }

    /// Whether a program of this name is shown.
    pub(super) fn takes(&self, names: [&str; 2]) -> bool {
        let wanted = self.name.to_lowercase();
        names.iter().any(|name| name.to_lowercase().contains(&wanted))
    }

    /// What a key does.
    pub(super) fn press(&mut self, key: Key) -> Next {
        if self.typing {
            self.write(key);
            return Next::Stay;
        }
        match key {
            Key::Char('q' | 'Q') | Key::Over => return Next::Quit,
            Key::Char('?') => self.help = !self.help,
            _ if self.help => self.help = false,
            Key::Tab => {
                self.go(if self.view == View::Programs { View::Calls } else { View::Programs })
            }
            Key::Enter if self.view == View::Calls && !self.rows.is_empty() => {
                self.selected = self.rows.get(self.at()).cloned();
                self.go(View::Call);
            }
            Key::Escape | Key::Erase if self.view == View::Call => self.go(View::Calls),
            Key::Escape if !self.name.is_empty() => self.name.clear(),
            Key::Escape => self.go(View::Programs),
            Key::Char('/') if self.view != View::Call => self.typing = true,
            Key::Char('s') if self.view == View::Programs => self.order = self.order.next(),
            Key::Char(what @ ('s' | 'c' | 'f')) if self.view == View::Calls => self.choose(what),
            Key::Up | Key::Char('k') => self.step(|at, _| at.saturating_sub(1)),
            Key::Down | Key::Char('j') => self.step(|at, _| at + 1),
            Key::PageUp => self.step(usize::saturating_sub),
            Key::PageDown => self.step(|at, page| at + page),
            Key::Home | Key::Char('g') => self.step(|_, _| 0),
            Key::End | Key::Char('G') => self.step(|_, _| usize::MAX),
            Key::Enter | Key::Erase | Key::Char(_) => {}
        }
        Next::Stay
    }

    fn write(&mut self, key: Key) {
        match key {
            Key::Char(typed) => self.name.push(typed),
            Key::Erase => drop(self.name.pop()),
            Key::Enter => self.typing = false,
            Key::Escape | Key::Over => {
                self.typing = false;
                self.name.clear();
            }
            Key::Up | Key::Down | Key::PageUp | Key::PageDown | Key::Home | Key::End | Key::Tab => {
            }
        }
    }

    /// Other calls, or another order of them, from the first one on.
    fn choose(&mut self, what: char) {
        self.selected = None;
        match what {
            'c' => self.only.cold = !self.only.cold,
            'f' => self.only.failed = !self.only.failed,
            _ => self.slowest = !self.slowest,
        }
    }

    fn go(&mut self, view: View) {
        (self.view, self.top) = (view, 0);
    }

    /// To another row, or another line: from where it is, by how much a screen has.
    fn step(&mut self, to: impl Fn(usize, usize) -> usize) {
        let page = self.room.max(1);
        if self.view == View::Calls {
            let at = to(self.at(), page).min(self.rows.len().saturating_sub(1));
            self.selected = if at == 0 { None } else { self.rows.get(at).cloned() };
        } else {
            self.top = to(self.top, page).min(self.length.saturating_sub(page));
        }
    }

    /// The selected row; the first one, where that has gone.
    fn at(&self) -> usize {
        let selected = self.selected.as_ref();
        let found = selected.and_then(|one| self.rows.iter().position(|row| same(row, one)));
        found.unwrap_or(0)
    }

    /// The lines of a screen of so many, with `programs` as they are when they are shown.
    pub(super) fn lines(
        &mut self,
        (rows, look, clock): (usize, &Look, &Clock),
        programs: Vec<String>,
        calls: Option<Result<Vec<Entry>, Failure>>,
    ) -> Vec<String> {
        let foot = self.foot(look);
        let mut lines = if self.help {
            HELP.iter().map(|line| fit(line, look.figure_columns(), look.charset)).collect()
        } else {
            match (self.view, calls) {
                (View::Calls, Some(Ok(calls))) => self.calls(rows - 1, (look, clock), calls),
                (View::Calls, Some(Err(error))) => vec![error.text],
                (View::Calls | View::Programs, _) => self.part(rows - 1, programs),
                (View::Call, _) => {
                    let figure = self.selected.as_ref();
                    let figure = figure.map(|entry| waterfall::entry(entry, clock, look));
                    let lines = figure.unwrap_or_default();
                    self.part(rows - 1, lines.lines().map(str::to_owned).collect())
                }
            }
        };
        lines.truncate(rows - 1);
        lines.push(foot);
        lines
    }

    /// What has room of these lines, from the first one that is to be shown.
    fn part(&mut self, room: usize, lines: Vec<String>) -> Vec<String> {
        (self.room, self.length) = (room, lines.len());
        self.top = self.top.min(lines.len().saturating_sub(room));
        lines.into_iter().skip(self.top).take(room).collect()
    }

    fn calls(
        &mut self,
        rows: usize,
        (look, clock): (&Look, &Clock),
        mut calls: Vec<Entry>,
    ) -> Vec<String> {
        calls.retain(|entry| {
            let naming = entry.naming();
            self.only.takes(entry) && self.takes([naming.name, naming.target])
        });
        if self.slowest {
            calls.sort_by_key(total_us);
        }
        if calls.is_empty() {
            self.rows.clear();
            let is_all = self.only.is_empty() && self.name.is_empty();
            let none = if is_all { table::NONE } else { "no call that is kept is such a one" };
            return vec![fit(none, look.figure_columns(), look.charset)];
        }
        let columns = look.columns.map(|columns| columns.saturating_sub(MARKS[0].len()));
        let look = Look { columns, ..*look };
        let plain = Look { colour: Colour::Off, ..look };
        let list = table::list(&calls, calls.len(), clock, &look);
        let selected = table::list(&calls, calls.len(), clock, &plain);
        self.rows = list.rows.iter().rev().filter_map(|(at, _)| calls.get(*at).cloned()).collect();
        let at = self.at();
        self.room = rows.saturating_sub(1 + list.sums.len()).max(1);
        self.top = self.top.clamp(at.saturating_sub(self.room - 1), at);
        let shown = list.rows.iter().rev().zip(selected.rows.iter().rev()).enumerate();
        let shown = shown.skip(self.top).take(self.room).map(|(row, ((_, line), (_, plain)))| {
            if row == at {
                look.invert(&format!("{}{plain}", MARKS[0]))
            } else {
                format!("{}{line}", MARKS[1])
            }
        });
        let mut lines = vec![format!("{}{}", MARKS[1], list.heading)];
        lines.extend(shown);
        lines.extend(list.sums.iter().map(|line| format!("{}{line}", MARKS[1])));
        lines
    }

    /// What can be done from here, and what is left out.
    fn foot(&self, look: &Look) -> String {
        let columns = look.figure_columns();
        if self.typing {
            // The end of what is typed stays in sight.
            let name = printable(&self.name, look.charset);
            let kept = name.chars().rev().take(columns.saturating_sub(8)).collect::<Vec<_>>();
            return format!("name: {}_", kept.into_iter().rev().collect::<String>());
        }
        let mut words = vec!["q quits".to_owned()];
        match self.view {
            _ if self.help => words.push("? back".to_owned()),
            View::Programs => words.push("Tab calls".to_owned()),
            View::Calls => words.extend(["Tab programs".to_owned(), "Enter one call".to_owned()]),
            View::Call => words.push("Esc back".to_owned()),
        }
        if !self.help {
            words.push("? help".to_owned());
        }
        match (self.view, self.order.word()) {
            (View::Programs, Some(order)) => words.push(order.to_owned()),
            (View::Calls, _) if self.slowest => words.push("slowest first".to_owned()),
            (View::Programs | View::Calls | View::Call, _) => {}
        }
        if self.view == View::Calls {
            words.extend(self.only.cold.then(|| "only cold".to_owned()));
            words.extend(self.only.failed.then(|| "only failed".to_owned()));
        }
        if !self.name.is_empty() && self.view != View::Call {
            words.push(format!("only {}", printable(&self.name, look.charset)));
        }
        let mut foot = String::new();
        for word in words {
            let more = if foot.is_empty() { word } else { format!("  {word}") };
            // A word that has no room is left out whole.
            if width(&foot) + width(&more) <= columns {
                foot += &more;
            }
        }
        look.paint(Tone::Dim, &foot)
    }
}

/// Whether two records are of one call.
fn same(one: &Entry, other: &Entry) -> bool {
    let call = |entry: &Entry| match entry {
        Entry::Receipt(receipt) => Some(receipt.call),
        Entry::Fallback(_) => None,
    };
    call(one) == call(other) && one.at() == other.at()
}

/// What no daemon saw has no time, and comes last.
fn total_us(entry: &Entry) -> u64 {
    match entry {
        Entry::Receipt(receipt) => receipt.total_us,
        Entry::Fallback(_) => 0,
    }
}

#[cfg(test)]
mod tests;
