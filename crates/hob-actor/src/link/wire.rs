//! How values become bytes and back: fixed-width little-endian numbers, lengths of 32 bits, no
//! names and no tags. Both ends have agreed on the schema of every message before the first one
//! travels (see `table.rs`), so the bytes need not describe themselves.
//!
//! Invariants: decoding never panics and never allocates more than the bytes at hand could hold;
//! what is left over is an error, like what is missing.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::time::Duration;

use super::names::Along;

/// Why bytes are not the value that they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The bytes end in the middle of a value.
    #[error("the bytes end in the middle of a value")]
    Short,
    /// There are bytes after the value.
    #[error("there are bytes after the value")]
    Long,
    /// A byte has no meaning at its place: a truth that is neither 0 nor 1, a variant that the
    /// type does not have, text that is not UTF-8.
    #[error("a byte that has no meaning there")]
    Meaning,
    /// An address of a peer that this process cannot reach.
    #[error("an address of a peer that is out of reach")]
    Unreachable,
}

/// What can travel between processes. [`wire!`](crate::wire) implements it for types of yours.
pub trait Wire: Sized + Send + 'static {
    /// Describes the type: two types with the same description have the same bytes.
    fn describe(schema: &mut Schema);

    /// Appends the value.
    fn encode(&self, out: &mut Encoder<'_>);

    /// Takes the value off the front.
    ///
    /// # Errors
    /// When the bytes are no such value.
    fn decode(input: &mut Decoder<'_>) -> Result<Self, WireError>;
}

/// The description of a type, as text.
#[derive(Debug, Default)]
pub struct Schema {
    text: String,
    seen: Vec<&'static str>,
}

impl Schema {
    /// Adds the name of a type that is known by it.
    pub fn add(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds a type with parts. A type inside of itself is named, not described again.
    pub fn named(&mut self, name: &'static str, parts: impl FnOnce(&mut Schema)) {
        self.add(name);
        if self.seen.contains(&name) {
            return;
        }
        self.seen.push(name);
        self.add("{");
        parts(self);
        self.add("}");
    }

    /// The number that stands for the description of `T`.
    #[must_use]
    pub fn hash_of<T: Wire>() -> u64 {
        let mut schema = Schema::default();
        T::describe(&mut schema);
        hash(schema.text.as_bytes())
    }
}

/// FNV-1a: nobody attacks the schema of their own program, and it is the same everywhere.
fn hash(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

/// Where values are written to.
#[derive(Debug)]
pub struct Encoder<'a> {
    bytes: &'a mut Vec<u8>,
    /// What addresses need to be named. None in tests of plain values.
    pub(crate) along: Option<Along<'a>>,
}

/// Where values are read from.
#[derive(Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    /// What named addresses need to be found. None in tests of plain values.
    pub(crate) along: Option<Along<'a>>,
}

impl<'a> Encoder<'a> {
    pub(crate) fn new(bytes: &'a mut Vec<u8>, along: Option<Along<'a>>) -> Encoder<'a> {
        Encoder { bytes, along }
    }

    /// Appends bytes as they are.
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends a length.
    ///
    /// # Panics
    /// When it does not fit into 32 bits: a frame cannot hold as much.
    pub fn length(&mut self, length: usize) {
        u32::try_from(length).expect("a frame holds less than 4 GiB").encode(self);
    }
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8], along: Option<Along<'a>>) -> Decoder<'a> {
        Decoder { bytes, along }
    }

    /// The whole of `bytes` as one value.
    pub(crate) fn whole<T: Wire>(
        bytes: &'a [u8],
        along: Option<Along<'a>>,
    ) -> Result<T, WireError> {
        let mut decoder = Decoder::new(bytes, along);
        let value = T::decode(&mut decoder)?;
        if decoder.bytes.is_empty() { Ok(value) } else { Err(WireError::Long) }
    }

    /// Takes this many bytes.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(WireError::Short)?;
        self.bytes = rest;
        Ok(taken)
    }

    /// Takes a length. Nothing that has a length is smaller than a byte, but for `()`; so a
    /// longer one than there are bytes is refused before anything is allocated for it.
    ///
    /// # Errors
    /// When it is longer than what is left.
    pub fn length(&mut self) -> Result<usize, WireError> {
        let length = u32::decode(self)? as usize;
        if length > self.bytes.len() { Err(WireError::Short) } else { Ok(length) }
    }
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Wire for $number {
            fn describe(schema: &mut Schema) {
                schema.add(stringify!($number));
            }

            #[inline]
            fn encode(&self, out: &mut Encoder<'_>) {
                out.put(&self.to_le_bytes());
            }

            #[inline]
            fn decode(input: &mut Decoder<'_>) -> Result<$number, WireError> {
                let bytes = input.take(size_of::<$number>())?;
                Ok(<$number>::from_le_bytes(bytes.try_into().map_err(|_| WireError::Short)?))
            }
        }
    )*};
}

numbers!(u8 u16 u32 u64 u128 i8 i16 i32 i64 i128 f32 f64);

impl Wire for usize {
    fn describe(schema: &mut Schema) {
        schema.add("u64");
    }

    fn encode(&self, out: &mut Encoder<'_>) {
        (*self as u64).encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<usize, WireError> {
        usize::try_from(u64::decode(input)?).map_err(|_| WireError::Meaning)
    }
}

impl Wire for bool {
    fn describe(schema: &mut Schema) {
        schema.add("bool");
    }

    fn encode(&self, out: &mut Encoder<'_>) {
        u8::from(*self).encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<bool, WireError> {
        match u8::decode(input)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(WireError::Meaning),
        }
    }
}

impl Wire for char {
    fn describe(schema: &mut Schema) {
        schema.add("char");
    }

    fn encode(&self, out: &mut Encoder<'_>) {
        u32::from(*self).encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<char, WireError> {
        char::from_u32(u32::decode(input)?).ok_or(WireError::Meaning)
    }
}

impl Wire for () {
    fn describe(schema: &mut Schema) {
        schema.add("()");
    }

    fn encode(&self, _: &mut Encoder<'_>) {}

    fn decode(_: &mut Decoder<'_>) -> Result<(), WireError> {
        Ok(())
    }
}

impl Wire for String {
    fn describe(schema: &mut Schema) {
        schema.add("text");
    }

    fn encode(&self, out: &mut Encoder<'_>) {
        out.length(self.len());
        out.put(self.as_bytes());
    }

    fn decode(input: &mut Decoder<'_>) -> Result<String, WireError> {
        let length = input.length()?;
        let text = std::str::from_utf8(input.take(length)?).map_err(|_| WireError::Meaning)?;
        Ok(text.to_owned())
    }
}

impl Wire for Duration {
    fn describe(schema: &mut Schema) {
        schema.add("duration");
    }

    fn encode(&self, out: &mut Encoder<'_>) {
        self.as_secs().encode(out);
        self.subsec_nanos().encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Duration, WireError> {
        let (seconds, nanos) = (u64::decode(input)?, u32::decode(input)?);
        if nanos >= 1_000_000_000 {
            return Err(WireError::Meaning);
        }
        Ok(Duration::new(seconds, nanos))
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn describe(schema: &mut Schema) {
        schema.add("[");
        T::describe(schema);
        schema.add("]");
    }

    fn encode(&self, out: &mut Encoder<'_>) {
        out.length(self.len());
        for value in self {
            value.encode(out);
        }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Vec<T>, WireError> {
        let length = input.length()?;
        // Values may be larger here than their bytes: nothing is reserved for what is not there.
        let room = length.min(input.bytes.len() / size_of::<T>().max(1) + 1);
        let mut values = Vec::with_capacity(room);
        for _ in 0..length {
            values.push(T::decode(input)?);
        }
        Ok(values)
    }
}

impl<T: Wire> Wire for Option<T> {
    fn describe(schema: &mut Schema) {
        schema.add("?");
        T::describe(schema);
    }

    fn encode(&self, out: &mut Encoder<'_>) {
        self.is_some().encode(out);
        if let Some(value) = self {
            value.encode(out);
        }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Option<T>, WireError> {
        Ok(if bool::decode(input)? { Some(T::decode(input)?) } else { None })
    }
}

impl<T: Wire, E: Wire> Wire for Result<T, E> {
    fn describe(schema: &mut Schema) {
        schema.add("result ");
        T::describe(schema);
        schema.add(" or ");
        E::describe(schema);
    }

    fn encode(&self, out: &mut Encoder<'_>) {
        self.is_ok().encode(out);
        match self {
            Ok(value) => value.encode(out),
            Err(error) => error.encode(out),
        }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Result<T, E>, WireError> {
        Ok(if bool::decode(input)? { Ok(T::decode(input)?) } else { Err(E::decode(input)?) })
    }
}

impl<T: Wire> Wire for Box<T> {
    fn describe(schema: &mut Schema) {
        T::describe(schema);
    }

    fn encode(&self, out: &mut Encoder<'_>) {
        (**self).encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Box<T>, WireError> {
        T::decode(input).map(Box::new)
    }
}

impl<K: Wire + Eq + Hash, V: Wire, S: BuildHasher + Default + Send + 'static> Wire
    for HashMap<K, V, S>
{
    fn describe(schema: &mut Schema) {
        schema.add("map ");
        K::describe(schema);
        schema.add(" to ");
        V::describe(schema);
    }

    fn encode(&self, out: &mut Encoder<'_>) {
        out.length(self.len());
        for (key, value) in self {
            key.encode(out);
            value.encode(out);
        }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<HashMap<K, V, S>, WireError> {
        let mut map = HashMap::default();
        for _ in 0..input.length()? {
            map.insert(K::decode(input)?, V::decode(input)?);
        }
        Ok(map)
    }
}

macro_rules! tuples {
    ($($name:ident $at:tt),+) => {
        impl<$($name: Wire),+> Wire for ($($name,)+) {
            fn describe(schema: &mut Schema) {
                schema.add("(");
                $($name::describe(schema); schema.add(",");)+
                schema.add(")");
            }

            fn encode(&self, out: &mut Encoder<'_>) {
                $(self.$at.encode(out);)+
            }

            fn decode(input: &mut Decoder<'_>) -> Result<Self, WireError> {
                Ok(($($name::decode(input)?,)+))
            }
        }
    };
}

tuples!(A 0);
tuples!(A 0, B 1);
tuples!(A 0, B 1, C 2);
tuples!(A 0, B 1, C 2, D 3);

/// Declares types that can travel between processes, and how: a `struct` with named fields, or an
/// `enum` of variants with named fields or none. Every field's type must be [`Wire`] too.
///
/// ```
/// hob_actor::wire! {
///     /// Adds to the sum.
///     #[derive(Debug, PartialEq)]
///     pub struct Add { pub value: u64 }
///
///     #[derive(Debug, PartialEq)]
///     pub enum Shape { Point, Circle { radius: f64 } }
/// }
/// ```
#[macro_export]
macro_rules! wire {
    () => {};
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$inner:meta])* $field_vis:vis $field:ident: $kind:ty),* $(,)?
    } $($rest:tt)*) => {
        $(#[$meta])* $vis struct $name { $($(#[$inner])* $field_vis $field: $kind),* }

        impl $crate::link::Wire for $name {
            fn describe(schema: &mut $crate::link::Schema) {
                schema.named(stringify!($name), |schema| {
                    let _ = &schema;
                    $(
                        schema.add(concat!(stringify!($field), ":"));
                        <$kind as $crate::link::Wire>::describe(schema);
                        schema.add(",");
                    )*
                });
            }

            #[inline]
            fn encode(&self, out: &mut $crate::link::Encoder<'_>) {
                let _ = &out;
                $($crate::link::Wire::encode(&self.$field, out);)*
            }

            #[inline]
            fn decode(
                input: &mut $crate::link::Decoder<'_>,
            ) -> ::std::result::Result<Self, $crate::link::WireError> {
                let _ = &input;
                Ok($name { $($field: $crate::link::Wire::decode(input)?),* })
            }
        }

        $crate::wire! { $($rest)* }
    };
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$inner:meta])* $variant:ident $({ $($field:ident: $kind:ty),* $(,)? })?),* $(,)?
    } $($rest:tt)*) => {
        $(#[$meta])* $vis enum $name {
            $($(#[$inner])* $variant $({ $($field: $kind),* })?),*
        }

        impl $crate::link::Wire for $name {
            fn describe(schema: &mut $crate::link::Schema) {
                schema.named(stringify!($name), |schema| {
                    $(
                        schema.add(concat!(stringify!($variant), "|"));
                        $($(
                            schema.add(concat!(stringify!($field), ":"));
                            <$kind as $crate::link::Wire>::describe(schema);
                            schema.add(",");
                        )*)?
                    )*
                });
            }

            fn encode(&self, out: &mut $crate::link::Encoder<'_>) {
                let mut at = 0u16;
                $(
                    if let $name::$variant $({ $($field),* })? = self {
                        $crate::link::Wire::encode(&at, out);
                        $($($crate::link::Wire::encode($field, out);)*)?
                        return;
                    }
                    at += 1;
                )*
                let _ = at;
            }

            fn decode(
                input: &mut $crate::link::Decoder<'_>,
            ) -> ::std::result::Result<Self, $crate::link::WireError> {
                let mut at = <u16 as $crate::link::Wire>::decode(input)?;
                $(
                    if at == 0 {
                        return Ok($name::$variant $({
                            $($field: $crate::link::Wire::decode(input)?),*
                        })?);
                    }
                    at = at.wrapping_sub(1);
                )*
                let _ = at;
                Err($crate::link::WireError::Meaning)
            }
        }

        $crate::wire! { $($rest)* }
    };
}
