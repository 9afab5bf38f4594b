//! What happens when something dies, stops, floods or never ends. After each, nothing is left.

mod deaths;
mod excess;
mod load;
mod phases;
mod places;
mod random;
mod stands;
mod tells;
