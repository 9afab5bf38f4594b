//! The bytes of a connection: from a socket of either kind, and judged before a parser reads them.

pub(crate) mod checked;
pub(crate) mod hints;
pub(crate) mod socket;
