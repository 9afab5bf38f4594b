//! What a site was asked, as text: a line for each mount, and below it what went wrong.

use hob_core::http::counts::{Counts, MountCounts, Phase};

use super::super::style::{Look, Tone};
use super::super::text::{printable, width, wrap};
use super::super::{columns, units};

const HEADS: [&str; COLUMNS] =
    ["MOUNT", "REQUESTS", "ACTIVE", "P50", "P99", "SLOWEST", "SENT", "4XX", "5XX"];
const COLUMNS: usize = 9;
/// A path is not made narrower than this.
const PATH_COLUMNS_MIN: usize = 8;
/// What stands for the requests that no mount serves.
const NOWHERE: &str = "(no mount)";

/// The mounts as a table; what nobody asked outside them is left out.
#[must_use]
pub fn mounts(counts: &Counts, look: &Look) -> String {
    let is_shown = |mount: &&MountCounts| !mount.path.is_empty() || !is_idle(mount);
    let shown: Vec<&MountCounts> = counts.mounts.iter().filter(is_shown).collect();
    let rows: Vec<_> = shown.iter().map(|mount| cells(mount, look)).collect();
    let mut widths = HEADS.map(width);
    for row in &rows {
        for (column, text) in row.iter().enumerate() {
            widths[column] = widths[column].max(width(text));
        }
    }
    if let Some(columns) = look.columns {
        let all = widths.iter().sum::<usize>() + (COLUMNS - 1) * columns::GAP.len();
        let narrower = widths[0].saturating_sub(all.saturating_sub(columns));
        widths[0] = narrower.max(PATH_COLUMNS_MIN).min(widths[0]);
    }
    let mut lines = vec![look.paint(Tone::Dim, &line(&HEADS.map(str::to_owned), &widths, look))];
    for (mount, row) in shown.iter().zip(&rows) {
        lines.push(line(row, &widths, look));
        lines.extend(phases(mount, look));
        if !mount.failures.is_empty() {
            lines.extend(note("failed", &mount.failures, look));
        }
        if !mount.limits.is_empty() {
            lines.extend(note("limits reached", &mount.limits, look));
        }
    }
    if !counts.refused_heads.is_empty() {
        lines.extend(note("refused before their path was known", &counts.refused_heads, look));
    }
    if counts.lines_dropped > 0 {
        let text = format!("{} lines of the log dropped", counts.lines_dropped);
        lines.push(look.paint(Tone::Watch, &text));
    }
    if let Some(what) = &counts.log_fault {
        let text = printable(&format!("the access log: {what}"), look.charset);
        let all = wrap(&text, "  ", look.columns.unwrap_or(usize::MAX), look.charset);
        lines.extend(all.into_iter().map(|line| look.paint(Tone::Watch, &line)));
    }
    lines.into_iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn is_idle(mount: &MountCounts) -> bool {
    mount.requests == 0 && mount.failures.is_empty()
}

/// What the parts of its requests took, if they have some: `p50: body 3 µs, app 1 ms`.
fn phases(mount: &MountCounts, look: &Look) -> Vec<String> {
    let of = |quantile: &str, us: fn(&Phase) -> u64| {
        // In the order in which they come to pass.
        let named = ["body", "app", "write"].iter().filter_map(|name| {
            let time = units::duration(us(mount.phases.get(*name)?), look.micro());
            Some(format!("{name} {time}"))
        });
        format!("{quantile}: {}", named.collect::<Vec<_>>().join(", "))
    };
    if mount.phases.is_empty() {
        return Vec::new();
    }
    let text = format!("{}; {}", of("p50", |p| p.p50_us), of("p99", |p| p.p99_us));
    let lines = wrap(&text, "  ", look.columns.unwrap_or(usize::MAX), look.charset);
    lines.into_iter().map(|line| look.paint(Tone::Dim, &line)).collect()
}

/// How many of each, as `failed: lost 1, timed-out 2`.
fn note(what: &str, counted: &std::collections::BTreeMap<String, u64>, look: &Look) -> Vec<String> {
    let each: Vec<_> = counted.iter().map(|(why, count)| format!("{why} {count}")).collect();
    let text = format!("{what}: {}", printable(&each.join(", "), look.charset));
    let lines = wrap(&text, "  ", look.columns.unwrap_or(usize::MAX), look.charset);
    lines.into_iter().map(|line| look.paint(Tone::Watch, &line)).collect()
}

fn cells(mount: &MountCounts, look: &Look) -> [String; COLUMNS] {
    let path = if mount.path.is_empty() { NOWHERE } else { &mount.path };
    let time = |us| match mount.requests {
        0 => "-".to_owned(),
        _ => units::duration(us, look.micro()),
    };
    let of_class = |class: char| {
        let of_class = mount.statuses.iter().filter(|(status, _)| status.starts_with(class));
        of_class.map(|(_, count)| count).sum::<u64>().to_string()
    };
    [
        printable(path, look.charset),
        mount.requests.to_string(),
        mount.active.to_string(),
        time(mount.p50_us),
        time(mount.p99_us),
        time(mount.max_us),
        units::size(mount.bytes.div_ceil(1024)),
        of_class('4'),
        of_class('5'),
    ]
}

fn line(row: &[String; COLUMNS], widths: &[usize; COLUMNS], look: &Look) -> String {
    columns::line(row, widths, |column| column > 0, look)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::super::samples::in_every_look;
    use super::*;

    fn counted(pairs: &[(&str, u64)]) -> BTreeMap<String, u64> {
        pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    #[test]
    fn mounts_are_listed_with_what_went_wrong() {
        let counts = Counts {
            refused_heads: counted(&[("400", 7), ("431", 1)]),
            lines_dropped: 12,
            log_fault: Some("/var/log/site.ndjson: No space left on device".to_owned()),
            mounts: vec![
                MountCounts {
                    path: "/a-shop-with-a-long-name/and-a-part".to_owned(),
                    requests: 12_345,
                    active: 3,
                    waiting: 1,
                    bytes: 98_765_432,
                    statuses: counted(&[("200", 12_000), ("404", 305), ("500", 30), ("502", 10)]),
                    failures: counted(&[("lost", 10), ("raised", 30), ("cancelled", 4)]),
                    limits: counted(&[("limits.body", 2), ("timeout", 1)]),
                    p50_us: 412,
                    p99_us: 61_000,
                    max_us: 2_100_000,
                    phases: [("body", 3, 900), ("app", 380, 59_000), ("write", 21, 2_000)]
                        .into_iter()
                        .map(|(name, p50_us, p99_us)| (name.to_owned(), Phase { p50_us, p99_us }))
                        .collect(),
                },
                MountCounts { path: "/wiki\u{1b}[31m".to_owned(), ..MountCounts::default() },
                MountCounts { requests: 2, statuses: counted(&[("404", 2)]), ..Default::default() },
            ],
            ..Counts::default()
        };
        in_every_look("mounts", |look| mounts(&counts, look));
    }
}
