//! Feeds libFuzzer's bytes to the decoders: as a stream of frames, and as a payload of every kind.
#![no_main]

#[path = "../decode.rs"]
mod decode;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    decode::stream(bytes);
    decode::as_all(bytes);
});
