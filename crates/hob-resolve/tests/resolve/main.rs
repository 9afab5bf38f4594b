//! What `hob-resolve` answers, over temporary trees and against the kernel's own answer.

#[cfg(test)]
mod programs;
#[cfg(test)]
mod tree;
#[cfg(test)]
mod truth;
