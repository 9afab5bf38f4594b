//! Feeds libFuzzer's bytes to what finds and reads messages of bencode.
#![no_main]

#[path = "../messages.rs"]
mod messages;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    messages::stream(bytes);
});
