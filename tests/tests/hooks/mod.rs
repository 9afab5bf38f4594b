//! Hooks directories, for one target and for many, their reports, and the hooks of repositories.

mod adopt;
mod foreach;
mod reports;
