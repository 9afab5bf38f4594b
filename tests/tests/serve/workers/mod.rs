//! Workers of apps: how requests reach them, and what becomes of them.

mod concurrency;
mod deaths;
mod lanes;
mod phases;
mod unbegun;
