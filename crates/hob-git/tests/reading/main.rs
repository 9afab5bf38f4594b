//! Real repositories, made by git, read beside git.

mod broken;
mod equal;
mod reftable;
mod repository;
mod stale;
