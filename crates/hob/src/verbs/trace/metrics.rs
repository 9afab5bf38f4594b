//! `hob trace export prometheus`: the daemon's counts as metrics, in the text that Prometheus has always
//! read, or in that of OpenMetrics.
//!
//! Values are those of `hob status`, at this moment. Counters begin with the daemon. Names do not
//! change; one that is no longer right gets a new name. No label has a path, a user or an argument.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use hob_core::status::{PoolPart, Status};
use hob_os::start::Start;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, prometheus_text, text};
use prometheus_client::metrics::MetricType::{self, Counter, Gauge, Histogram, Info, Unknown};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::super::{named_file, request};
use crate::failure::Failure;
use crate::output::out;

/// The most programs that have labels of their own, those that were called last.
const PROGRAMS_MAX: usize = 256;
/// The label of the others. No program's: those are names of files, handlers or modules.
const OTHERS: &str = "(others)";

/// Writes them; without a daemon, that there is none.
pub(super) fn run(start: &Start, file: Option<&Path>, open: bool) -> Result<(), Failure> {
    let status = match request::ask(start, "status") {
        Ok((answer, _)) => Some(serde_json::from_value::<Status>(answer).map_err(|error| {
            Failure::new(format!(
                "the daemon is of another build ({error}); `hob restart` replaces it"
            ))
        })?),
        Err(request::RequestError::NoDaemon) => None,
        Err(error) => return Err(Failure::new(error.to_string())),
    };
    let text = metrics(status, open).map_err(|_| Failure::new("the metrics cannot be written"))?;
    let Some(file) = file else { return out(&text) };
    // Whole or not at all: a collector may read the file at any moment.
    named_file::write(file, |out| std::io::Write::write_all(out, text.as_bytes()))
        .map_err(|error| Failure::new(format!("cannot write {}: {error}", file.display())))
}

fn metrics(status: Option<Status>, open: bool) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("hob");
    registry.register_collector(Box::new(Taken { status }));
    let mut text = String::new();
    if open {
        text::encode(&mut text, &registry)?;
    } else {
        prometheus_text::encode(&mut text, &registry)?;
    }
    Ok(text)
}

#[derive(Debug)]
struct Taken {
    status: Option<Status>,
}

type Labels = Vec<(&'static str, String)>;

impl Collector for Taken {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut put = |name: &str, help: &str, kind, rows: Vec<(Labels, u64)>| {
            family(&mut encoder, (name, help, kind), &rows)
        };
        let one = |value: u64| vec![(Labels::new(), value)];
        put("up", "1 if a daemon answers", Gauge, one(self.status.is_some().into()))?;
        let Some(status) = &self.status else { return Ok(()) };
        let (calls, told, kept) = (&status.calls, &status.messages, &status.recorder);
        put("uptime_seconds", "Since the daemon started", Gauge, one(status.uptime_s))?;
        let how = [
            ("warm", calls.warm_total),
            ("cold", calls.cold_total),
            ("refused", calls.refused_total),
            ("lost", calls.lost_total),
        ];
        let how = how.map(|(how, total)| (vec![("how", how.to_owned())], total)).to_vec();
        put("calls", "Calls and messages, by what became of them", Counter, how)?;
        let cold = status.cold.iter().map(|it| (vec![("reason", it.reason.clone())], it.total));
        put("cold", "Calls that were sent cold, by reason", Counter, cold.collect())?;
        put("running", "Calls that are performed", Gauge, one(calls.running))?;
        put("waiting", "Calls that wait for a worker", Gauge, one(calls.queued))?;
        put("memory_bytes", "What all processes use (PSS)", Gauge, one(status.memory_kib * 1024))?;
        let budget = one(status.budget_kib * 1024);
        put("memory_budget_bytes", "What they may use", Gauge, budget)?;
        programs(&status.pools, &mut put)?;
        put("tells_waiting", "Tells that are not handled yet", Gauge, one(told.waiting))?;
        put("tells_held", "Those whose program cannot be had now", Gauge, one(told.held))?;
        put("dead_letters", "Tells that were given up", Gauge, one(told.dead))?;
        put("receipts_written", "Receipts that reached the disk", Counter, one(kept.written))?;
        put("receipts_dropped", "Receipts that did not", Counter, one(kept.dropped))?;
        let Some(push) = &status.push else { return Ok(()) };
        put("export_waiting", "Receipts that wait for the collector", Gauge, one(push.waiting))?;
        put("export_sent", "Receipts that the collector took", Counter, one(push.sent))?;
        put("export_dropped", "Receipts that it never had", Counter, one(push.dropped))?;
        let rejected = one(push.rejected_spans);
        put("export_rejected_spans", "Spans that it did not keep", Counter, rejected)
    }
}

/// What the pools of each program have; a program may have several.
fn programs(
    pools: &[PoolPart],
    put: &mut impl FnMut(&str, &str, MetricType, Vec<(Labels, u64)>) -> fmt::Result,
) -> fmt::Result {
    let mut sums = BTreeMap::<&str, [u64; 4]>::new();
    for pool in pools {
        let name = pool.program.as_str();
        let has_own = sums.contains_key(name) || sums.len() < PROGRAMS_MAX;
        let sum = sums.entry(if has_own { name } else { OTHERS }).or_default();
        let own = [pool.ready.into(), pool.busy.into(), pool.queued.into(), pool.memory_kib * 1024];
        sum.iter_mut().zip(own).for_each(|(sum, one)| *sum += one);
    }
    let of = |name: &str| ("program", name.to_owned());
    let workers = sums.iter().flat_map(|(name, [ready, busy, ..])| {
        [("ready", *ready), ("busy", *busy)]
            .map(|(state, count)| (vec![of(name), ("state", state.to_owned())], count))
    });
    put("program_workers", "Workers, by what they do", Gauge, workers.collect())?;
    let waiting = sums.iter().map(|(name, [_, _, waiting, _])| (vec![of(name)], *waiting));
    put("program_waiting", "Calls that wait for a worker", Gauge, waiting.collect())?;
    let bytes = sums.iter().map(|(name, [.., bytes])| (vec![of(name)], *bytes));
    put("program_memory_bytes", "What its processes use (PSS)", Gauge, bytes.collect())
}

fn family(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help, kind): (&str, &str, MetricType),
    rows: &[(Labels, u64)],
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, kind)?;
    for (labels, value) in rows {
        let labels = family.encode_family(labels)?;
        match kind {
            Counter => ConstCounter::new(*value).encode(labels)?,
            Gauge | Histogram | Info | Unknown => {
                ConstGauge::new(i64::try_from(*value).unwrap_or(i64::MAX)).encode(labels)?
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(program: String) -> PoolPart {
        serde_json::from_value(serde_json::json!({
            "program": program, "runtime": "exec", "isolation": "fork", "state": "warm",
            "ready": 1, "busy": 2, "queued": 3, "ahead": 1, "calls": 9, "memory_kib": 4,
            "idle_s": 0,
        }))
        .unwrap()
    }

    #[test]
    fn programs_beyond_the_bound_are_one_and_nothing_is_lost() {
        let pools: Vec<_> = (0..10_000).map(|number| pool(format!("p{number}"))).collect();
        let mut seen = BTreeMap::new();
        programs(&pools, &mut |name, _, _, rows| {
            let sum: u64 = rows.iter().map(|(_, value)| value).sum();
            seen.insert(name.to_owned(), (rows.len(), sum));
            Ok(())
        })
        .unwrap();
        assert_eq!(seen["program_workers"], (2 * (PROGRAMS_MAX + 1), 30_000));
        assert_eq!(seen["program_waiting"], (PROGRAMS_MAX + 1, 30_000));
        assert_eq!(seen["program_memory_bytes"], (PROGRAMS_MAX + 1, 10_000 * 4096));
    }

    #[test]
    fn without_a_daemon_that_is_all_that_is_said() {
        let text = "# HELP hob_up 1 if a daemon answers\n# TYPE hob_up gauge\nhob_up 0\n";
        assert_eq!(metrics(None, false).unwrap(), text);
        assert_eq!(metrics(None, true).unwrap(), format!("{text}# EOF\n"));
    }
}
