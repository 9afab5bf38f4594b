//! How one field is written and read. The macros of `frames/mod.rs` put these together.
//!
//! Owns: the formats that several frames share. A format of one family lies beside that family.
//!
//! Invariant: a format's `SHAPE` says all that its `take` demands; see `schema.rs`.

use std::borrow::Cow;

use crate::caps::{BEYOND_MAX, BODY_MAX, PAYLOAD_MAX, UMASK_MAX, WORD_MAX};
use crate::cursor::{Append, Cursor, DecodeError};
use crate::schema::{Rule, Shape};
use crate::strings::Strings;

/// A format of values of type `T` that lie in one piece.
pub(crate) trait Format<'a, T> {
    /// The format in data.
    const SHAPE: Shape;
    /// Appends a value.
    fn put(value: &T, out: &mut Vec<u8>);
    /// Reads a value; `label` names the field in errors.
    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<T, DecodeError>;
}

/// A format whose bytes may be in two places: in that of the field, and behind the last field.
pub(crate) trait Codec<'a, T> {
    /// The format in data.
    const SHAPE: Shape;
    /// What is known of a value when its own place was read.
    type Head;
    /// Appends what stands in the field's place.
    fn put(value: &T, out: &mut Vec<u8>);
    /// Appends what stands behind the last field.
    fn put_late(value: &T, out: &mut Vec<u8>);
    /// Reads what stands in the field's place.
    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<Self::Head, DecodeError>;
    /// Reads what stands behind the last field.
    fn take_late(
        head: Self::Head,
        cursor: &mut Cursor<'a>,
        label: &'static str,
    ) -> Result<T, DecodeError>;
}

impl<'a, T, F: Format<'a, T>> Codec<'a, T> for F {
    const SHAPE: Shape = F::SHAPE;
    type Head = T;

    #[inline]
    fn put(value: &T, out: &mut Vec<u8>) {
        F::put(value, out);
    }

    #[inline]
    fn put_late(_: &T, _: &mut Vec<u8>) {}

    #[inline]
    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<T, DecodeError> {
        F::take(cursor, label)
    }

    #[inline]
    fn take_late(head: T, _: &mut Cursor<'a>, _: &'static str) -> Result<T, DecodeError> {
        Ok(head)
    }
}

/// The usual format of a type.
pub(crate) struct Plain;

/// The integers, by the names of their functions.
macro_rules! integers {
    ($($type:ty, $shape:ident, $take:ident, $put:ident, $from:expr, $to:expr;)*) => {$(
        impl<'a> Format<'a, $type> for Plain {
            const SHAPE: Shape = Shape::$shape;

            #[inline]
            fn put(value: &$type, out: &mut Vec<u8>) {
                out.$put($to(*value));
            }

            #[inline]
            fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<$type, DecodeError> {
                cursor.$take(label).map($from)
            }
        }
    )*};
}

integers! {
    u8, U8, u8, put_u8, u8::from, u8::from;
    u32, U32, u32, put_u32, u32::from, u32::from;
    u64, U64, u64, put_u64, u64::from, u64::from;
    i32, I32, u32, put_u32, u32::cast_signed, i32::cast_unsigned;
    i64, I64, u64, put_u64, u64::cast_signed, i64::cast_unsigned;
    bool, Flag, flag, put_u8, bool::from, u8::from;
}

impl<'a> Format<'a, [u8; 16]> for Plain {
    const SHAPE: Shape = Shape::Raw(16);

    fn put(value: &[u8; 16], out: &mut Vec<u8>) {
        out.extend_from_slice(value);
    }

    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<[u8; 16], DecodeError> {
        cursor.id16(label)
    }
}

impl<'a> Format<'a, &'a [u8]> for Plain {
    const SHAPE: Shape = Shape::Blob(PAYLOAD_MAX, Rule::Any);

    #[inline]
    fn put(value: &&'a [u8], out: &mut Vec<u8>) {
        out.put_blob(value);
    }

    #[inline]
    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<&'a [u8], DecodeError> {
        cursor.blob(label)
    }
}

impl<'a> Format<'a, Vec<u8>> for Plain {
    const SHAPE: Shape = Shape::Blob(PAYLOAD_MAX, Rule::Any);

    #[inline]
    fn put(value: &Vec<u8>, out: &mut Vec<u8>) {
        out.put_blob(value);
    }

    #[inline]
    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<Vec<u8>, DecodeError> {
        Ok(cursor.blob(label)?.to_vec())
    }
}

impl<'a> Format<'a, Strings> for Plain {
    const SHAPE: Shape = Shape::Strings(false);

    #[inline]
    fn put(value: &Strings, out: &mut Vec<u8>) {
        value.encode(out);
    }

    #[inline]
    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<Strings, DecodeError> {
        Strings::decode(cursor, label)
    }
}

/// Numbers of descriptors.
impl<'a> Format<'a, Vec<u32>> for Plain {
    const SHAPE: Shape = Shape::Many(BEYOND_MAX, &Shape::U32);

    #[inline]
    fn put(value: &Vec<u32>, out: &mut Vec<u8>) {
        out.put_u32(u32::try_from(value.len()).unwrap_or(u32::MAX));
        value.iter().for_each(|number| out.put_u32(*number));
    }

    #[inline]
    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<Vec<u32>, DecodeError> {
        match cursor.u32(label)? as usize {
            count if count <= BEYOND_MAX => (0..count).map(|_| cursor.u32(label)).collect(),
            _ => Err(DecodeError::TooMany(label)),
        }
    }
}

/// A value that is lent to be written, and owned when it was read.
impl<'a, T: Clone> Format<'a, Cow<'a, T>> for Plain
where
    Plain: Format<'a, T>,
{
    const SHAPE: Shape = <Plain as Format<'a, T>>::SHAPE;

    #[inline]
    fn put(value: &Cow<'a, T>, out: &mut Vec<u8>) {
        <Plain as Format<'a, T>>::put(value, out);
    }

    #[inline]
    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<Cow<'a, T>, DecodeError> {
        <Plain as Format<'a, T>>::take(cursor, label).map(Cow::Owned)
    }
}

/// A flag, and the value if there is one.
pub(crate) struct Maybe;

impl<'a, T> Format<'a, Option<T>> for Maybe
where
    Plain: Format<'a, T>,
{
    const SHAPE: Shape = Shape::Maybe(&<Plain as Format<'a, T>>::SHAPE);

    #[inline]
    fn put(value: &Option<T>, out: &mut Vec<u8>) {
        out.put_u8(u8::from(value.is_some()));
        if let Some(value) = value {
            <Plain as Format<'a, T>>::put(value, out);
        }
    }

    #[inline]
    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<Option<T>, DecodeError> {
        match cursor.flag(label)? {
            true => <Plain as Format<'a, T>>::take(cursor, label).map(Some),
            false => Ok(None),
        }
    }
}

/// Strings, of which there is at least one.
pub(crate) struct Filled;

impl<'a> Format<'a, Strings> for Filled {
    const SHAPE: Shape = Shape::Strings(true);

    #[inline]
    fn put(value: &Strings, out: &mut Vec<u8>) {
        value.encode(out);
    }

    #[inline]
    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<Strings, DecodeError> {
        let strings = Strings::decode(cursor, label)?;
        if strings.is_empty() {
            return Err(DecodeError::Value(label));
        }
        Ok(strings)
    }
}

/// A blob that keeps a rule.
fn ruled(cursor: &mut Cursor<'_>, label: &'static str, rule: Rule) -> Result<Vec<u8>, DecodeError> {
    let bytes = cursor.blob(label)?;
    if !rule.holds(bytes) {
        return Err(DecodeError::Value(label));
    }
    Ok(bytes.to_vec())
}

/// The path of a file to execute.
pub(crate) struct File;

impl<'a> Format<'a, Vec<u8>> for File {
    const SHAPE: Shape = Shape::Blob(PAYLOAD_MAX, Rule::File);

    #[inline]
    fn put(value: &Vec<u8>, out: &mut Vec<u8>) {
        out.put_blob(value);
    }

    #[inline]
    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<Vec<u8>, DecodeError> {
        ruled(cursor, label, Rule::File)
    }
}

/// An absolute path.
pub(crate) struct Absolute;

impl<'a> Format<'a, Vec<u8>> for Absolute {
    const SHAPE: Shape = Shape::Blob(PAYLOAD_MAX, Rule::Absolute);

    #[inline]
    fn put(value: &Vec<u8>, out: &mut Vec<u8>) {
        out.put_blob(value);
    }

    #[inline]
    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<Vec<u8>, DecodeError> {
        ruled(cursor, label, Rule::Absolute)
    }
}

/// A file mode creation mask.
pub(crate) struct Mask;

impl<'a> Format<'a, u32> for Mask {
    const SHAPE: Shape = Shape::Within(0, UMASK_MAX);

    #[inline]
    fn put(value: &u32, out: &mut Vec<u8>) {
        out.put_u32(*value);
    }

    #[inline]
    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<u32, DecodeError> {
        match cursor.u32(label)? {
            mask if mask <= UMASK_MAX => Ok(mask),
            _ => Err(DecodeError::Value(label)),
        }
    }
}

/// Which of the streams 0 to 2 a program finds closed.
pub(crate) struct Closed;

impl<'a> Format<'a, u8> for Closed {
    const SHAPE: Shape = Shape::Bits(&["0 is closed", "1 is", "2 is"]);

    #[inline]
    fn put(value: &u8, out: &mut Vec<u8>) {
        out.put_u8(*value);
    }

    #[inline]
    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<u8, DecodeError> {
        match cursor.u8(label)? {
            closed @ 0..=0b111 => Ok(closed),
            _ => Err(DecodeError::Value(label)),
        }
    }
}

fn word_length(cursor: &mut Cursor<'_>) -> Result<usize, DecodeError> {
    match cursor.u32("length")? as usize {
        length if length <= WORD_MAX => Ok(length),
        _ => Err(DecodeError::TooMany("bytes of a word")),
    }
}

/// A blob of at most [`WORD_MAX`] bytes.
pub(crate) struct Word;

impl<'a> Format<'a, &'a [u8]> for Word {
    const SHAPE: Shape = Shape::Blob(WORD_MAX, Rule::Any);

    #[inline]
    fn put(value: &&'a [u8], out: &mut Vec<u8>) {
        out.put_blob(value);
    }

    #[inline]
    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<&'a [u8], DecodeError> {
        let length = word_length(cursor)?;
        cursor.bytes(length, label)
    }
}

impl<'a> Format<'a, Vec<u8>> for Word {
    const SHAPE: Shape = Shape::Blob(WORD_MAX, Rule::Any);

    #[inline]
    fn put(value: &Vec<u8>, out: &mut Vec<u8>) {
        out.put_blob(value);
    }

    #[inline]
    fn take(cursor: &mut Cursor<'a>, label: &'static str) -> Result<Vec<u8>, DecodeError> {
        match cursor.blob(label)? {
            word if word.len() <= WORD_MAX => Ok(word.to_vec()),
            _ => Err(DecodeError::TooMany("bytes of a word")),
        }
    }
}

/// A word whose bytes stand behind the last field, so that the lengths are found in fixed places.
pub(crate) struct LateWord;

impl<'a> Codec<'a, &'a [u8]> for LateWord {
    const SHAPE: Shape = Shape::Late(WORD_MAX);
    type Head = usize;

    #[inline]
    fn put(value: &&'a [u8], out: &mut Vec<u8>) {
        out.put_u32(u32::try_from(value.len()).unwrap_or(u32::MAX));
    }

    #[inline]
    fn put_late(value: &&'a [u8], out: &mut Vec<u8>) {
        out.extend_from_slice(value);
    }

    #[inline]
    fn take(cursor: &mut Cursor<'a>, _: &'static str) -> Result<usize, DecodeError> {
        word_length(cursor)
    }

    #[inline]
    fn take_late(
        length: usize,
        cursor: &mut Cursor<'a>,
        label: &'static str,
    ) -> Result<&'a [u8], DecodeError> {
        cursor.bytes(length, label)
    }
}

/// All that is left of the payload, of at most so many bytes.
pub(crate) struct UpTo<const MOST: usize>;

/// All that is left of the payload.
pub(crate) type Rest = UpTo<PAYLOAD_MAX>;

/// What is left of a message, which has a cap of its own.
pub(crate) type Body = UpTo<BODY_MAX>;

impl<'a, const MOST: usize> Codec<'a, &'a [u8]> for UpTo<MOST> {
    const SHAPE: Shape = Shape::Rest(MOST);
    type Head = ();

    #[inline]
    fn put(_: &&'a [u8], _: &mut Vec<u8>) {}

    #[inline]
    fn put_late(value: &&'a [u8], out: &mut Vec<u8>) {
        out.extend_from_slice(value);
    }

    #[inline]
    fn take(_: &mut Cursor<'a>, _: &'static str) -> Result<(), DecodeError> {
        Ok(())
    }

    #[inline]
    fn take_late(
        (): (),
        cursor: &mut Cursor<'a>,
        _: &'static str,
    ) -> Result<&'a [u8], DecodeError> {
        match cursor.rest() {
            rest if rest.len() <= MOST => Ok(rest),
            _ => Err(DecodeError::TooMany("bytes of a message")),
        }
    }
}
