//! The wire in data: how each field of a frame lies in a payload.
//!
//! Owns: the words of that description, the offsets that follow from it, and a reading of a payload
//! by the description alone ([`walk`]). `frames/` holds the description itself; the tables of
//! `docs/wire.md` and the constants of the runtimes are written from it.
//!
//! Invariant: `walk` takes exactly the payloads that the decoders take. The fuzz target and its
//! replay hold both to that.

use crate::cursor::{Cursor, DecodeError};

/// One field of a payload.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its name in Rust.
    pub name: &'static str,
    /// Its name in errors.
    pub label: &'static str,
    /// What it says, from its documentation.
    pub doc: &'static str,
    /// How it lies in the payload.
    pub shape: Shape,
}

/// How a field lies in a payload. All integers are little-endian.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// One byte.
    U8,
    /// Four bytes.
    U32,
    /// Eight bytes.
    U64,
    /// Four bytes in two's complement.
    I32,
    /// Eight bytes in two's complement.
    I64,
    /// A `u32` from the first to the second number.
    Within(u32, u32),
    /// One byte: 0 or 1.
    Flag,
    /// One byte: a number of this enum.
    Number(&'static Numbers),
    /// One byte: bit by bit from the lowest on, what these say.
    Bits(&'static [&'static str]),
    /// Two bytes: what it is, and its value.
    Pair(&'static [Choice]),
    /// So many bytes as they are.
    Raw(usize),
    /// A `u32` length, at most so many, and that many bytes that keep a rule.
    Blob(usize, Rule),
    /// A `u32` length, at most so many; the bytes follow the last of the fields that have a place
    /// of their own.
    Late(usize),
    /// All that is left of the payload, at most so many bytes.
    Rest(usize),
    /// A `u32` count and a blob in which each string is followed by a NUL; whether one has to be.
    Strings(bool),
    /// One byte, 0 or 1; after a 1 the value.
    Maybe(&'static Shape),
    /// So many of these.
    Times(usize, &'static Shape),
    /// A `u32` count, at most so many, and the values.
    Many(usize, &'static Shape),
    /// The fields of a part that has a name.
    Part(&'static str, &'static [Field]),
}

/// What bytes have to be beside their length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Anything.
    Any,
    /// Not empty, and without a NUL.
    File,
    /// An absolute path without a NUL.
    Absolute,
}

impl Rule {
    /// Whether the bytes keep it.
    #[must_use]
    pub fn holds(self, bytes: &[u8]) -> bool {
        match self {
            Rule::Any => true,
            Rule::File => !bytes.is_empty() && !bytes.contains(&0),
            Rule::Absolute => bytes.starts_with(b"/") && !bytes.contains(&0),
        }
    }
}

/// One thing that a [`Shape::Pair`] may be.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// The first byte.
    pub number: u8,
    /// What it stands for.
    pub name: &'static str,
    /// The second byte, from the first to the second number.
    pub value: (u8, u8),
}

/// An enum that travels as a number.
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    /// Its name in Rust.
    pub name: &'static str,
    /// What it says, from its documentation.
    pub doc: &'static str,
    /// Its values.
    pub values: &'static [Value],
}

/// One value of [`Numbers`].
#[derive(Debug, Clone, Copy)]
pub struct Value {
    /// The number on the wire.
    pub number: u8,
    /// Its name in Rust.
    pub name: &'static str,
    /// What it says, from its documentation.
    pub doc: &'static str,
}

/// A name of Rust as words: `RunCold` and `run_cold` are "run cold".
#[must_use]
pub fn words(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter == '_' {
            words.push(' ');
        } else if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
            words.push(letter.to_ascii_lowercase());
        } else {
            words.push(letter.to_ascii_lowercase());
        }
    }
    words
}

impl Shape {
    /// How many bytes it takes, if that is the same in each payload.
    #[must_use]
    pub fn size(&self) -> Option<usize> {
        match self {
            Shape::U8 | Shape::Flag | Shape::Number(_) | Shape::Bits(_) => Some(1),
            Shape::Pair(_) => Some(2),
            Shape::U32 | Shape::I32 | Shape::Within(..) | Shape::Late(_) => Some(4),
            Shape::U64 | Shape::I64 => Some(8),
            Shape::Raw(len) => Some(*len),
            Shape::Times(count, each) => Some(count * each.size()?),
            Shape::Part(_, fields) => fields.iter().map(|field| field.shape.size()).sum(),
            Shape::Blob(..)
            | Shape::Rest(_)
            | Shape::Strings(_)
            | Shape::Maybe(_)
            | Shape::Many(..) => None,
        }
    }
}

/// Where a field begins among others, if that is the same in each payload; `world.umask` is a field
/// of a part.
#[must_use]
pub fn offset(fields: &[Field], path: &str) -> Option<usize> {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let mut at = 0;
    for field in fields {
        if field.name == first {
            return match (rest, &field.shape) {
                ("", _) => Some(at),
                (rest, Shape::Part(_, inner)) => Some(at + offset(inner, rest)?),
                _ => None,
            };
        }
        at += field.shape.size()?;
    }
    None
}

/// Reads a payload by its description alone, and forgets what it read.
pub fn walk(fields: &[Field], payload: &[u8]) -> Result<(), DecodeError> {
    let mut cursor = Cursor::new(payload);
    walk_fields(fields, &mut cursor)?;
    cursor.end()
}

fn walk_fields(fields: &[Field], cursor: &mut Cursor<'_>) -> Result<(), DecodeError> {
    let mut late = Vec::new();
    for field in fields {
        if let Shape::Late(most) = field.shape {
            late.push((field.label, counted(cursor, "length", most)?));
        } else if let Shape::Rest(most) = field.shape {
            let taken: usize = late.iter().map(|word| word.1).sum();
            let left = cursor.left().saturating_sub(taken);
            if left > most {
                return Err(DecodeError::TooMany(field.label));
            }
            late.push((field.label, left));
        } else {
            walk_shape(&field.shape, cursor, field.label)?;
        }
    }
    for (label, length) in late {
        cursor.bytes(length, label)?;
    }
    Ok(())
}

fn counted(
    cursor: &mut Cursor<'_>,
    label: &'static str,
    most: usize,
) -> Result<usize, DecodeError> {
    match cursor.u32(label)? as usize {
        count if count <= most => Ok(count),
        _ => Err(DecodeError::TooMany(label)),
    }
}

fn walk_shape(
    shape: &Shape,
    cursor: &mut Cursor<'_>,
    label: &'static str,
) -> Result<(), DecodeError> {
    let right = match *shape {
        Shape::Within(low, high) => (low..=high).contains(&cursor.u32(label)?),
        Shape::Flag => cursor.u8(label)? < 2,
        Shape::Number(numbers) => {
            let number = cursor.u8(label)?;
            numbers.values.iter().any(|value| value.number == number)
        }
        Shape::Bits(bits) => usize::from(cursor.u8(label)?) >> bits.len() == 0,
        Shape::Pair(choices) => {
            let (number, value) = (cursor.u8(label)?, cursor.u8(label)?);
            let found = choices.iter().find(|choice| choice.number == number);
            found.is_some_and(|choice| (choice.value.0..=choice.value.1).contains(&value))
        }
        Shape::Blob(most, rule) => {
            let length = counted(cursor, label, most)?;
            rule.holds(cursor.bytes(length, label)?)
        }
        Shape::Strings(some) => {
            let count = cursor.u32(label)? as usize;
            let bytes = cursor.blob(label)?;
            let nuls = bytes.iter().filter(|byte| **byte == 0).count();
            nuls == count && bytes.last().is_none_or(|last| *last == 0) && (count > 0 || !some)
        }
        Shape::Maybe(value) => match cursor.u8(label)? {
            0 => true,
            1 => return walk_shape(value, cursor, label),
            _ => false,
        },
        Shape::Times(count, each) => {
            return (0..count).try_for_each(|_| walk_shape(each, cursor, label));
        }
        Shape::Many(most, each) => {
            let count = counted(cursor, label, most)?;
            return (0..count).try_for_each(|_| walk_shape(each, cursor, label));
        }
        Shape::Part(_, fields) => return walk_fields(fields, cursor),
        // `Late` and `Rest` were taken by `walk_fields`; the others are bytes that may be anything.
        Shape::U8
        | Shape::U32
        | Shape::U64
        | Shape::I32
        | Shape::I64
        | Shape::Raw(_)
        | Shape::Late(_)
        | Shape::Rest(_) => {
            cursor.bytes(shape.size().unwrap_or(0), label)?;
            true
        }
    };
    if right { Ok(()) } else { Err(DecodeError::Value(label)) }
}
