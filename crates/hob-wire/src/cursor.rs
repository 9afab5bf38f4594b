//! Reading integers and strings off a payload, with every bound checked; and appending them.

/// Why bytes are not a frame. Lower-case fragments, fit for "cannot read the frame: {error}".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecodeError {
    /// The first bytes are not hob's.
    NotHob,
    /// A version of the wire that this build does not speak.
    Version(u8),
    /// A kind that this build does not know.
    Kind(u8),
    /// Reserved bytes were not zero.
    Reserved,
    /// The payload ended inside the named field.
    Short(&'static str),
    /// Bytes were left over after the last field.
    Trailing(usize),
    /// A count or length over its cap.
    TooMany(&'static str),
    /// A field held a value outside its set.
    Value(&'static str),
    /// A string held a NUL, or a list did not end in one.
    Nul(&'static str),
}

impl core::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            DecodeError::NotHob => write!(f, "these bytes are not hob's"),
            DecodeError::Version(version) => write!(f, "wire version {version} is not spoken here"),
            DecodeError::Kind(kind) => write!(f, "frame kind {kind} is unknown"),
            DecodeError::Reserved => write!(f, "reserved bytes are not zero"),
            DecodeError::Short(field) => write!(f, "the payload ends inside {field}"),
            DecodeError::Trailing(count) => write!(f, "{count} bytes follow the last field"),
            DecodeError::TooMany(what) => write!(f, "too many {what}"),
            DecodeError::Value(field) => write!(f, "{field} has a value outside its set"),
            DecodeError::Nul(field) => write!(f, "{field} is not a list of NUL-terminated strings"),
        }
    }
}

impl core::error::Error for DecodeError {}

/// A place in a payload that moves forward as fields are read.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Starts at the first byte.
    #[must_use]
    pub fn new(payload: &'a [u8]) -> Self {
        Cursor { rest: payload }
    }

    /// The next `len` bytes.
    pub fn bytes(&mut self, len: usize, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(DecodeError::Short(field))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(DecodeError::Short(field))?;
        self.rest = rest;
        Ok(*taken)
    }

    /// One byte.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, DecodeError> {
        Ok(self.array::<1>(field)?[0])
    }

    /// Four bytes, little-endian.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    /// Eight bytes, little-endian.
    pub fn u64(&mut self, field: &'static str) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    /// One byte that is 0 or 1.
    pub fn flag(&mut self, field: &'static str) -> Result<bool, DecodeError> {
        match self.u8(field)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::Value(field)),
        }
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.rest)
    }

    /// How many bytes are left.
    #[must_use]
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// Sixteen raw bytes.
    pub fn id16(&mut self, field: &'static str) -> Result<[u8; 16], DecodeError> {
        self.array(field)
    }

    /// A `u32` length and that many bytes.
    pub fn blob(&mut self, field: &'static str) -> Result<&'a [u8], DecodeError> {
        let len = self.u32(field)? as usize;
        self.bytes(len, field)
    }

    /// Ends the payload: nothing may be left.
    pub fn end(self) -> Result<(), DecodeError> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(DecodeError::Trailing(left)),
        }
    }
}

/// Appends fields in the order in which [`Cursor`] reads them.
pub trait Append {
    /// One byte.
    fn put_u8(&mut self, value: u8);
    /// Four bytes, little-endian.
    fn put_u32(&mut self, value: u32);
    /// Eight bytes, little-endian.
    fn put_u64(&mut self, value: u64);
    /// A `u32` length and the bytes. Bytes beyond the frame's cap make the frame too large, which
    /// [`crate::frame::append`] reports, so the length saturates here.
    fn put_blob(&mut self, bytes: &[u8]);
}

impl Append for Vec<u8> {
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn put_blob(&mut self, bytes: &[u8]) {
        self.put_u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.extend_from_slice(bytes);
    }
}
