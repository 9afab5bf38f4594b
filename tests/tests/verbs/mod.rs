//! The verbs beside `run`: what they show, keep and refuse.

mod ab;
mod check;
mod doctor;
mod gain;
mod heals;
mod log;
mod new;
mod setup;
mod shims;
mod top;
mod trace;
mod trust;
mod verify;
mod warm;
mod worlds;
