//! The entry point: `run` before anything else is set up, every other verb after.
//!
//! This file and `client.rs` and `cold.rs` import nothing of the daemon, no argument parser and
//! no runtime: a warm call pays for what it touches, page by page.
#![no_main]

use std::ffi::{c_char, c_int};

/// See `hob_os::arena`: the client's few allocations come from the binary's own image.
#[global_allocator]
static ARENA: hob_os::arena::Arena = hob_os::arena::Arena::new();

// Marks in `client.ld`, of which the addresses count: the client's path, and what it reads of
// constants.
#[cfg(target_env = "musl")]
#[expect(unsafe_code, reason = "the linker makes these symbols")]
unsafe extern "C" {
    static client_text: u8;
    static client_text_end: u8;
    static client_constants: u8;
    static client_constants_end: u8;
}

/// The C runtime's entry. std's own would install handlers and change SIGPIPE, which a client
/// must hand on unchanged; see `hob_os::start`.
#[expect(unsafe_code, reason = "the C runtime calls a symbol by this name")]
#[unsafe(no_mangle)]
extern "C" fn main(argc: c_int, argv: *const *const c_char) -> c_int {
    let begun_ns = hob_os::clock::now_ns();
    // SAFETY: between two of these marks lies a part of the binary that is mapped for reading.
    #[cfg(target_env = "musl")]
    unsafe {
        hob_os::start::read_ahead(&raw const client_text, &raw const client_text_end);
        hob_os::start::read_ahead(&raw const client_constants, &raw const client_constants_end);
    }
    // SAFETY: these are the arguments that the C runtime passed to `main`.
    unsafe { hob_os::start::run(argc, argv, |start| hob::main(&start, begun_ns)) }
}
