//! What the examples between processes share: options, progress on a terminal, one line of JSON
//! at the end.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use hob_actor::PeerError;
use hob_actor::link::Program;

/// What makes a process of an example a worker of it.
const WORKER: &str = "--worker";
/// Links by rings in shared memory, not by sockets.
const SHARED_MEMORY: &str = "--shared-memory";

/// An option of an example, and what its number is.
pub(crate) type Known = (&'static str, &'static str);

/// Whether the example is to go on: it is not when help was asked for, which is printed.
pub(crate) fn begins(name: &str, about: &str, options: &[Known]) -> Result<bool, String> {
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--help" || word == "-h" {
            let mut lines = format!("{about}\n\nusage: {name} [OPTION]...\n");
            for (option, what) in options {
                lines.push_str(&format!("  {:<16} {what}\n", format!("{option} N")));
            }
            lines.push_str("  --shared-memory  links by shared memory, not by sockets\n");
            let printed = writeln!(std::io::stdout(), "{lines}\nIt prints one line of JSON.");
            return printed.map(|()| false).map_err(|error| error.to_string());
        }
        if options.iter().any(|(option, _)| *option == word) {
            words.next();
        } else if word != SHARED_MEMORY && word != WORKER {
            return Err(format!("{name}: there is no {word}; --help lists what there is"));
        }
    }
    Ok(true)
}

/// The number after `--name`, or `otherwise`.
pub(crate) fn option(name: &str, otherwise: u64) -> Result<u64, String> {
    let mut words = std::env::args().skip_while(|word| word != name).skip(1);
    match words.next() {
        None => Ok(otherwise),
        Some(word) => word.parse().map_err(|_| format!("{name} wants a number, not {word}")),
    }
}

/// Whether this process is a worker.
pub(crate) fn is_worker() -> bool {
    std::env::args().any(|word| word == WORKER)
}

/// This program as a worker, `count` times.
pub(crate) fn workers(count: u64) -> Result<Vec<Program>, PeerError> {
    let own = std::env::current_exe().map_err(|error| PeerError::Start(error.to_string()))?;
    let program = Program::new(own).argument(WORKER);
    let shares = std::env::args().any(|word| word == SHARED_MEMORY);
    let program = if shares { program.shared_memory() } else { program };
    Ok((0..count).map(|_| program.clone()).collect())
}

/// Says on a terminal what is going on; nothing elsewhere.
pub(crate) fn progress(what: &str) {
    let mut out = std::io::stderr();
    if out.is_terminal() {
        let _ = write!(out, "\r\x1b[K{what}");
    }
}

/// The proportional memory of these processes in KiB.
pub(crate) fn memory_kib(processes: &[u32]) -> u64 {
    let of = |process: &u32| -> Option<u64> {
        let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
        line.trim().strip_suffix(" kB")?.trim().parse().ok()
    };
    processes.iter().filter_map(of).sum()
}

/// The line at the end: `hops` of something in `elapsed`, and more numbers.
pub(crate) fn tell(
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
