//! The explorer's keys and lines, with records of samples.

use super::*;
use crate::show::samples;
use crate::show::style::Figures;
use crate::show::text::Charset;

const LOOK: Look = Look {
    colour: Colour::Off,
    charset: Charset::Ascii,
    figures: Figures::Drawn,
    columns: Some(80),
};

/// A call of this number, as long as that, of a program of this name.
fn call(number: u64, total_us: u64, name: &str) -> Entry {
    let mut receipt = samples::warm();
    receipt.call = number;
    receipt.total_us = total_us;
    receipt.at = format!("2026-11-21T21:38:{number:02}.000000Z");
    receipt.program.name = name.to_owned();
    receipt.program.target = format!("/srv/{name}");
    Entry::Receipt(Box::new(receipt))
}

fn calls() -> Vec<Entry> {
    (1..=20).map(|number| call(number, 1000 * (30 - number), &format!("job{number}.py"))).collect()
}

fn draw(explorer: &mut Explorer, rows: usize, calls: Vec<Entry>) -> Vec<String> {
    let programs = (1..=50).map(|line| format!("line {line}")).collect();
    let calls = (explorer.view == View::Calls).then_some(Ok(calls));
    explorer.lines((rows, &LOOK, &samples::clock()), programs, calls)
}

fn press(explorer: &mut Explorer, keys: &str) {
    for key in keys.chars() {
        let key = match key {
            '\n' => Key::Enter,
            '\t' => Key::Tab,
            '\x1b' => Key::Escape,
            '<' => Key::Up,
            '>' => Key::Down,
            '#' => Key::PageDown,
            typed => Key::Char(typed),
        };
        assert_eq!(explorer.press(key), Next::Stay);
    }
}

/// The numbers of the calls on the screen, and the selected one.
fn shown(lines: &[String]) -> (Vec<u64>, Option<u64>) {
    let number = |line: &String| line.get(2..)?.split_whitespace().next()?.parse().ok();
    // Behind the heading, before the sums.
    let rows: Vec<_> = lines.iter().filter(|line| line.contains(".py")).collect();
    let selected = rows.iter().find(|line| line.starts_with("> ")).and_then(|line| number(line));
    (rows.into_iter().filter_map(number).collect(), selected)
}

#[test]
fn a_screen_has_as_many_lines_as_there_are_and_no_more() {
    let mut explorer = Explorer::default();
    for rows in [2, 3, 7, 24] {
        assert_eq!(draw(&mut explorer, rows, calls()).len(), rows);
        press(&mut explorer, "\t");
        assert!(draw(&mut explorer, rows, calls()).len() <= rows);
        press(&mut explorer, "?");
        assert!(draw(&mut explorer, rows, calls()).len() <= rows);
        press(&mut explorer, "?\t");
    }
}

#[test]
fn what_is_longer_than_the_screen_is_moved_line_by_line_and_by_screens() {
    let mut explorer = Explorer::default();
    let first = |explorer: &mut Explorer| draw(explorer, 11, Vec::new())[0].clone();
    assert_eq!(first(&mut explorer), "line 1");
    press(&mut explorer, "jj");
    assert_eq!(first(&mut explorer), "line 3");
    press(&mut explorer, "#");
    assert_eq!(first(&mut explorer), "line 13");
    press(&mut explorer, "G");
    assert_eq!(first(&mut explorer), "line 41");
    press(&mut explorer, "k");
    assert_eq!(first(&mut explorer), "line 40");
    press(&mut explorer, "g");
    assert_eq!(first(&mut explorer), "line 1");
}

#[test]
fn the_newest_call_is_first_and_a_selected_one_stays_while_others_come() {
    let mut explorer = Explorer::default();
    press(&mut explorer, "\t");
    let (rows, selected) = shown(&draw(&mut explorer, 8, calls()));
    assert_eq!((rows, selected), (vec![20, 19, 18, 17, 16], Some(20)));
    let mut more = calls();
    more.push(call(21, 5, "new.py"));
    // Whoever has selected nothing sees what is new.
    assert_eq!(shown(&draw(&mut explorer, 8, more.clone())).1, Some(21));
    press(&mut explorer, ">>");
    assert_eq!(shown(&draw(&mut explorer, 8, more.clone())).1, Some(19));
    more.push(call(22, 5, "new.py"));
    let (rows, selected) = shown(&draw(&mut explorer, 8, more.clone()));
    assert_eq!((rows[0], selected), (22, Some(19)));
    press(&mut explorer, "G");
    let (rows, selected) = shown(&draw(&mut explorer, 8, more));
    assert_eq!((rows, selected), (vec![5, 4, 3, 2, 1], Some(1)));
}

#[test]
fn a_call_is_opened_and_left_and_is_selected_then() {
    let mut explorer = Explorer::default();
    press(&mut explorer, "\t");
    draw(&mut explorer, 12, calls());
    press(&mut explorer, "<>>\n");
    let lines = draw(&mut explorer, 12, calls());
    assert!(lines[0].contains("job18.py"), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("Esc back")), "{lines:?}");
    press(&mut explorer, "\x1b");
    assert_eq!(shown(&draw(&mut explorer, 12, calls())).1, Some(18));
}

#[test]
fn calls_are_ordered_by_time_and_left_out_by_name_and_outcome() {
    let mut explorer = Explorer::default();
    press(&mut explorer, "\ts");
    let lines = draw(&mut explorer, 8, calls());
    assert_eq!(shown(&lines).0, [1, 2, 3, 4, 5]);
    assert!(lines[7].contains("slowest first"), "{lines:?}");
    press(&mut explorer, "/JOB1q");
    assert_eq!(draw(&mut explorer, 8, calls()).last().unwrap(), "name: JOB1q_");
    explorer.press(Key::Erase);
    press(&mut explorer, "2\n");
    let lines = draw(&mut explorer, 8, calls());
    assert_eq!(shown(&lines).0, [12]);
    assert!(lines.last().is_some_and(|foot| foot.contains("only JOB12")), "{lines:?}");
    press(&mut explorer, "f");
    let lines = draw(&mut explorer, 8, calls());
    assert!(lines[0].contains("no call that is kept"), "{lines:?}");
    press(&mut explorer, "\n");
    assert_eq!(explorer.view, View::Calls, "there is none to open");
    press(&mut explorer, "f\x1b");
    assert_eq!(shown(&draw(&mut explorer, 8, calls())).0.len(), 5);
}

#[test]
fn keys_of_the_end_end_it_and_those_that_are_typed_do_not() {
    let mut explorer = Explorer::default();
    press(&mut explorer, "/");
    assert_eq!(explorer.press(Key::Char('q')), Next::Stay);
    press(&mut explorer, "\x1b");
    assert_eq!(explorer.press(Key::Char('q')), Next::Quit);
    assert_eq!(explorer.press(Key::Over), Next::Quit);
}

#[test]
fn help_fits_eighty_columns() {
    assert!(HELP.iter().all(|line| width(line) <= 80), "{HELP:#?}");
}

#[test]
fn in_forty_columns_nothing_is_wider() {
    let look = Look { columns: Some(40), ..LOOK };
    let mut explorer = Explorer::default();
    press(&mut explorer, "\ts/py\n");
    for keys in ["", "?", "?", "\n"] {
        press(&mut explorer, keys);
        let listed = (explorer.view == View::Calls).then(|| Ok(calls()));
        let lines = explorer.lines((24, &look, &samples::clock()), Vec::new(), listed);
        assert!(lines.iter().all(|line| width(line) <= 40), "{lines:#?}");
    }
}
