//! The entry point: `run` before anything else is set up, every other verb after.
//!
//! This file and `hob-client` import nothing of the daemon, no argument parser and no runtime: a
//! warm call pays for what it touches, page by page.
#![no_main]

use std::ffi::{c_char, c_int};

use hob_os::start::Ahead;

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

/// What a warm call executes and reads of the binary, where it lies together.
#[cfg(target_env = "musl")]
static PATH: [Ahead; 2] = [
    Ahead { from: &raw const client_text, to: &raw const client_text_end },
    Ahead { from: &raw const client_constants, to: &raw const client_constants_end },
];
#[cfg(not(target_env = "musl"))]
static PATH: [Ahead; 0] = [];

/// The C runtime's entry. std's own would install handlers and change SIGPIPE, which a client
/// must hand on unchanged; see `hob_os::start`.
#[expect(unsafe_code, reason = "the C runtime calls a symbol by this name")]
#[unsafe(no_mangle)]
extern "C" fn main(argc: c_int, argv: *const *const c_char) -> c_int {
    let begun_ns = hob_os::clock::rare::now_ns();
    // SAFETY: these are the arguments that the C runtime passed to `main`; and between two of the
    // marks lies a part of the binary that is mapped for reading.
    unsafe { hob_os::start::run(argc, argv, &PATH, |start| hob::main(&start, begun_ns)) }
}
