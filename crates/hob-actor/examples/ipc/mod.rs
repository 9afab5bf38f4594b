//! What the examples between processes share: options, progress on a terminal, one line of JSON
//! at the end.
#![expect(dead_code, reason = "each example uses a part")]

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use hob_actor::PeerError;
use hob_actor::link::Program;

/// What makes a process of an example a worker of it.
pub const WORKER: &str = "--worker";

/// The number after `--name`, or `otherwise`.
pub fn option(name: &str, otherwise: u64) -> Result<u64, String> {
    let mut words = std::env::args().skip_while(|word| word != name).skip(1);
    match words.next() {
        None => Ok(otherwise),
        Some(word) => word.parse().map_err(|_| format!("{name} wants a number, not {word}")),
    }
}

/// Whether this process is a worker.
pub fn is_worker() -> bool {
    std::env::args().any(|word| word == WORKER)
}

/// This program as a worker, `count` times.
pub fn workers(count: u64) -> Result<Vec<Program>, PeerError> {
    let own = std::env::current_exe().map_err(|error| PeerError::Start(error.to_string()))?;
    Ok((0..count).map(|_| Program::new(own.clone()).argument(WORKER)).collect())
}

/// Says on a terminal what is going on; nothing elsewhere.
pub fn progress(what: &str) {
    let mut out = std::io::stderr();
    if out.is_terminal() {
        let _ = write!(out, "\r\x1b[K{what}");
    }
}

/// The line at the end: `hops` of something in `elapsed`, and more numbers.
pub fn tell(
    example: &str,
    (hops, elapsed): (u64, Duration),
    more: &[(&str, u64)],
) -> std::io::Result<()> {
    progress("");
    let ns = elapsed.as_nanos();
    #[expect(clippy::cast_precision_loss, reason = "for people to read")]
    let each = ns as f64 / hops.max(1) as f64;
    let more: String = more.iter().map(|(name, value)| format!(",\"{name}\":{value}")).collect();
    writeln!(
        std::io::stdout(),
        "{{\"example\":\"{example}\",\"hops\":{hops},\"elapsed_ns\":{ns},\"per_hop_ns\":{each:.1}{more}}}"
    )
}

/// The proportional memory of a process in KiB.
pub fn pss_kib(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let value = line.and_then(|line| line.trim().strip_suffix(" kB"));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}
