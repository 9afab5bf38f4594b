//! What a user can do, and what bad input gets.

mod bytes;
mod complete;
mod faults;
mod grows;
mod jobs;
mod layers;
mod lifecycle;
mod programs;
mod receipts;
mod tips;
mod why;
mod words;
