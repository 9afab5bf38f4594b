//! What a link's bytes are: `frame`, header and payload; `buffers`, what is gathered to go out and
//! what came in. Pure.

pub(super) mod buffers;
pub(super) mod frame;
