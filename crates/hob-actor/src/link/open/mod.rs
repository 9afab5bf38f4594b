//! What is open on links and waits for its end: `tokens`, the numbers and tables of whatever it is;
//! `calls`, what was asked of peers. Pure.

pub(super) mod calls;
pub(super) mod tokens;
