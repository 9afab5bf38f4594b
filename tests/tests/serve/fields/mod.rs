//! What is told beside heads and bodies: hints before an answer, trailers behind a body.

mod hints;
mod trailers;
