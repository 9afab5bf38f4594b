//! Other users, and other callers of the same user: what they cannot reach and cannot see.

mod canary;
mod uids;
