//! What the peers' programs share: their options, and the line of JSON that each ends with.

use std::time::Instant;

/// The value after `--name`, or `default`.
pub fn option(name: &str, default: u64) -> u64 {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.nth(1).map_or(default, |value| value.parse().expect("options are numbers"))
}

/// The highest resident memory of this process so far, in KiB.
pub fn peak_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let value = line.and_then(|line| line.trim().strip_suffix(" kB"));
    value.and_then(|value| value.parse().ok()).expect("a number of kB")
}

/// Ends a measurement: `count` things since `start`, `check` to be compared with other sides.
/// `before_kib` is the peak before the first of them.
pub fn told(count: u64, start: Instant, check: u64, before_kib: u64) {
    let elapsed = start.elapsed().as_nanos();
    let (peak, before) = (peak_kib() * 1024, before_kib * 1024);
    println!(
        "{{\"hops\":{count},\"elapsed_ns\":{elapsed},\"check\":{check},\"peak_rss_bytes\":{peak},\"before_rss_bytes\":{before}}}"
    );
}
