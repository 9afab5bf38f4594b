//! Answers of apps that are no single frame: how one begins, and the stream on which its body comes.
//!
//! A small answer that is whole is an `answer`, as that of any message. The others begin with a
//! [`Respond`], by the way of an answer, and with a descriptor: one end of a stream of [`Chunk`]s up
//! to an [`End`], or a file. The `answer` or `failure` that settles the message comes behind.
//! A WebSocket that is accepted begins in the same way; its stream goes in both directions.

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

    /// What an app says of its answer before that begins: an answer of the status 103.
    frame Hint<'a>: Copy {
        /// The number of the message.
        id: u64,
        /// The payload of an answer without a body: status and headers.
        head: &'a [u8] as Rest,
    }

    /// Some bytes of a body.
    frame Chunk<'a>: Copy {
        /// The bytes.
        bytes: &'a [u8] as Rest,
    }

    /// The body is whole. A stream that ends without this has broken off.
    frame End: Copy {}

    /// A message of a WebSocket, or a part of one that is longer than a frame.
    frame MessagePart<'a>: Copy {
        /// Whether the next frame of the same kind has more of this message.
        more: bool,
        /// The bytes; those of a text are UTF-8 when they are joined.
        bytes: &'a [u8] as Rest,
    }

    /// A WebSocket's end, and the last frame in its direction: that the app ends it, or that its
    /// client has left.
    frame Close<'a>: Copy {
        /// The code, as RFC 6455 has it; 1005: the client gave none, 1006: it left without a word.
        code: u32,
        /// The reason, in UTF-8; it may be empty.
        reason: &'a [u8] as Rest,
    }
}

numbers! {
    /// Where a body is.
    enum Source {
        /// It comes in chunks.
        Stream = 0,
        /// It lies in a file.
        File = 1,
        /// There is none: it is a WebSocket, and messages come and go.
        Socket = 2,
        /// It is the client's connection itself: bytes come and go, behind the head if that has a
        /// status other than 0.
        Connection = 3,
    }
}
