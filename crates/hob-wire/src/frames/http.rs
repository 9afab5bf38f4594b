//! Answers of apps that are no single frame: how one begins, and the stream on which its body comes.
//!
//! A small answer that is whole is an `answer`, as that of any message. The others begin with a
//! [`Respond`], by the way of an answer, and with a descriptor: one end of a stream of [`Chunk`]s up
//! to an [`End`], or a file. The `answer` or `failure` that settles the message comes behind.

use crate::codec::Rest;
use crate::frames::{frames, numbers};

frames! {
    /// How an answer begins whose body comes by another way.
    frame Respond<'a>: Copy {
        /// The number of the message.
        id: u64,
        /// What its descriptor is.
        source: Source,
        /// Of a file: where the body begins.
        offset: u64,
        /// Of a file: how many bytes the body has.
        length: u64,
        /// The payload of an answer as far as it is known: status, headers, the body's first bytes.
        head: &'a [u8] as Rest,
    }

    /// Some bytes of a body.
    frame Chunk<'a>: Copy {
        /// The bytes.
        bytes: &'a [u8] as Rest,
    }

    /// The body is whole. A stream that ends without this has broken off.
    frame End: Copy {}
}

numbers! {
    /// Where a body is.
    enum Source {
        /// It comes in chunks.
        Stream = 0,
        /// It lies in a file.
        File = 1,
    }
}
