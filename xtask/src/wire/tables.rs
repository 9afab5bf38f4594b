//! The tables of `docs/wire.md`: frames by family, parts that lie inside others, numbers of enums.

use std::collections::BTreeMap;

use hob_wire::caps::{PAYLOAD_MAX, WORD_MAX};
use hob_wire::frames::{Family, Frame, SCHEMA};
use hob_wire::schema::{Field, Numbers, Rule, Shape, words};

use super::Block;

/// Every block of the page.
pub(crate) fn blocks() -> Vec<Block> {
    let (parts, numbers) = inner();
    let mut said = Said::new();
    // In the order of the page.
    vec![
        Block { name: "calls", lines: family(Family::Calls, &mut said) },
        Block { name: "messages", lines: family(Family::Messages, &mut said) },
        Block { name: "hooks", lines: family(Family::Hooks, &mut said) },
        Block { name: "workers", lines: family(Family::Workers, &mut said) },
        Block { name: "parts", lines: fields_of(&parts, &mut said) },
        Block { name: "numbers", lines: numbers_of(&numbers) },
    ]
}

/// What the page has last said of a field of this name, so that it says nothing twice.
type Said = BTreeMap<&'static str, String>;

/// The two tables of a family: its frames, and their fields.
fn family(family: Family, said: &mut Said) -> Vec<String> {
    let frames: Vec<&Frame> = SCHEMA.iter().filter(|frame| frame.family() == family).collect();
    let mut lines = vec![
        "| kind | name | from → to | says | descriptors |".to_owned(),
        "|--:|---|---|---|---|".to_owned(),
    ];
    for frame in &frames {
        lines.push(format!(
            "| {} | {} | {} | {} | {} |",
            frame.kind as u8,
            words(frame.name),
            ways(frame),
            plain(frame.doc),
            frame.fds.join(", ")
        ));
    }
    lines.push(String::new());
    let fields: Vec<(String, &'static [Field])> =
        frames.iter().map(|frame| (words(frame.name), frame.fields)).collect();
    lines.extend(fields_of(&fields, said));
    lines
}

/// Who sends it to whom; ways with the same end are one.
fn ways(frame: &Frame) -> String {
    let ways: Vec<String> =
        frame.ways.iter().map(|(from, to)| format!("{} → {}", word(from), word(to))).collect();
    ways.join(", ")
}

fn word(name: &impl core::fmt::Debug) -> String {
    words(&format!("{name:?}"))
}

/// A table of fields; an offset is there where it is the same in each payload. Fields that are
/// those of a frame or part above have one row.
fn fields_of(named: &[(String, &'static [Field])], said: &mut Said) -> Vec<String> {
    let mut lines = vec![
        "| of | at | type | field | what it holds |".to_owned(),
        "|---|--:|---|---|---|".to_owned(),
    ];
    for (index, (name, fields)) in named.iter().enumerate() {
        let above = named[..index].iter().find(|(_, above)| are_same(above, fields));
        match above {
            Some((above, _)) if fields.len() > 1 => {
                lines.push(format!("| {name} | 0 | {above} | | |"));
            }
            _ => lines.extend(rows(name, fields, said)),
        }
    }
    lines
}

/// Whether these are the same bytes with the same meaning.
fn are_same(one: &[Field], other: &[Field]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| {
            (one.name, one.doc) == (other.name, other.doc)
                && type_of(&one.shape) == type_of(&other.shape)
        })
}

fn rows(name: &str, fields: &'static [Field], said: &mut Said) -> Vec<String> {
    let mut lines = Vec::new();
    let mut at = Some(0);
    for (index, field) in fields.iter().enumerate() {
        let doc = plain(field.doc);
        let known = said.insert(field.name, doc.clone());
        lines.push(format!(
            "| {} | {} | {} | {} | {} |",
            if index == 0 { name } else { "" },
            at.map_or(String::new(), |at: usize| at.to_string()),
            type_of(&field.shape),
            words(field.name),
            if known.as_ref() == Some(&doc) { "" } else { &doc }
        ));
        at = at.and_then(|at| Some(at + field.shape.size()?));
    }
    lines
}

fn numbers_of(all: &[&Numbers]) -> Vec<String> {
    let mut lines =
        vec!["| of | number | name | what it is |".to_owned(), "|---|--:|---|---|".to_owned()];
    for numbers in all {
        for (index, value) in numbers.values.iter().enumerate() {
            lines.push(format!(
                "| {} | {} | {} | {} |",
                if index == 0 { words(numbers.name) } else { String::new() },
                value.number,
                words(value.name),
                plain(value.doc)
            ));
        }
    }
    lines
}

/// How a field lies there, in the words that the page explains above its tables.
pub(crate) fn type_of(shape: &Shape) -> String {
    match shape {
        Shape::U8 => "`u8`".to_owned(),
        Shape::U32 => "`u32`".to_owned(),
        Shape::U64 => "`u64`".to_owned(),
        Shape::I32 => "`i32`".to_owned(),
        Shape::I64 => "`i64`".to_owned(),
        Shape::Within(low, high) => format!("`u32`, {low} to {high}"),
        Shape::Flag => "flag".to_owned(),
        Shape::Number(numbers) => format!("number: {}", words(numbers.name)),
        Shape::Bits(bits) => {
            let bits = bits.iter().enumerate().map(|(at, bit)| format!("{at} {bit}"));
            format!("`u8`, bits: {}", bits.collect::<Vec<_>>().join(", "))
        }
        Shape::Pair(choices) => {
            let choices = choices.iter().map(|choice| match choice.value {
                (0, 255) => format!("{} {}", choice.number, choice.name),
                (low, high) if low == high => format!("{} {low} {}", choice.number, choice.name),
                (low, high) => format!("{} {} ({low} to {high})", choice.number, choice.name),
            });
            format!("pair: {}", choices.collect::<Vec<_>>().join(", "))
        }
        Shape::Raw(len) => format!("{len} bytes"),
        Shape::Blob(PAYLOAD_MAX, Rule::Absolute) => "path".to_owned(),
        Shape::Blob(PAYLOAD_MAX, Rule::File) => "file".to_owned(),
        Shape::Blob(WORD_MAX, Rule::Any) => "word".to_owned(),
        Shape::Blob(most, rule) => {
            let rule = match rule {
                Rule::Any => "",
                Rule::File => ", not empty, without NUL",
                Rule::Absolute => ", an absolute path without NUL",
            };
            format!("blob{}{rule}", at_most(*most))
        }
        Shape::Late(WORD_MAX) => "late word".to_owned(),
        Shape::Late(most) => format!("late blob{}", at_most(*most)),
        Shape::Rest(most) => format!("the rest{}", at_most(*most)),
        Shape::Strings(false) => "strings".to_owned(),
        Shape::Strings(true) => "strings, at least one".to_owned(),
        Shape::Maybe(value) => format!("maybe {}", type_of(value)),
        Shape::Times(count, each) => format!("{count} × {}", type_of(each)),
        Shape::Many(most, each) => format!("up to {most} × {}", type_of(each)),
        Shape::Part(name, _) => words(name),
    }
}

/// A cap, where it is another than the frame's.
fn at_most(most: usize) -> String {
    if most == PAYLOAD_MAX { String::new() } else { format!(", at most {most} bytes") }
}

/// Documentation as one cell: what links inside Rust is a name here.
fn plain(doc: &str) -> String {
    let text = doc.replace("[`", "`").replace("`]", "`");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Every part and every enum, in the order in which fields name them.
fn inner() -> (Vec<(String, &'static [Field])>, Vec<&'static Numbers>) {
    let (mut parts, mut numbers) = (Vec::new(), Vec::new());
    for frame in SCHEMA {
        look(frame.fields, &mut parts, &mut numbers);
    }
    (parts, numbers)
}

fn look(
    fields: &[Field],
    parts: &mut Vec<(String, &'static [Field])>,
    numbers: &mut Vec<&'static Numbers>,
) {
    for field in fields {
        let mut shape = field.shape;
        while let Shape::Maybe(inner) | Shape::Times(_, inner) | Shape::Many(_, inner) = shape {
            shape = *inner;
        }
        if let Shape::Part(name, inner) = shape {
            if parts.iter().all(|(known, _)| *known != words(name)) {
                parts.push((words(name), inner));
                look(inner, parts, numbers);
            }
        } else if let Shape::Number(found) = shape {
            match numbers.iter_mut().find(|known| known.name == found.name) {
                Some(known) if known.values.len() < found.values.len() => *known = found,
                Some(_) => (),
                None => numbers.push(found),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_is_in_one_table() {
        let page: Vec<String> = blocks().into_iter().flat_map(|block| block.lines).collect();
        for frame in SCHEMA {
            let row = format!("| {} | {} |", frame.kind as u8, words(frame.name));
            let rows = page.iter().filter(|line| line.starts_with(&row)).count();
            assert_eq!(rows, 1, "{}", frame.name);
        }
    }

    #[test]
    fn nothing_is_said_twice_in_a_row_of_names() {
        let mut said = Said::new();
        let fields = SCHEMA.iter().find(|frame| frame.fields.len() > 1).unwrap().fields;
        let named = [("one".to_owned(), fields), ("two".to_owned(), fields)];
        let lines = fields_of(&named, &mut said);
        assert_eq!(lines.last().unwrap(), "| two | 0 | one | | |");
        assert!(rows("three", fields, &mut said).iter().all(|row| row.ends_with("|  |")));
    }

    #[test]
    fn a_subset_of_an_enum_does_not_hide_the_rest() {
        let (_, numbers) = inner();
        let role = numbers.iter().find(|numbers| numbers.name == "Role").unwrap();
        assert_eq!(role.values.len(), 3);
    }

    #[test]
    fn documentation_becomes_one_cell() {
        assert_eq!(plain(" One [`Give`]\n  of many."), "One `Give` of many.");
    }
}
