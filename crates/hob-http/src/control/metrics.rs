//! The tally and the loop's pools as metrics, in the text that Prometheus has always read, or in
//! OpenMetrics for who asks for that.
//!
//! Values are taken when they are asked for. Names do not change; one that is no longer right gets a
//! new name.

use std::fmt;
use std::sync::Arc;

use hdrhistogram::Histogram;
use hob_core::http::counts::MountCounts;
use hob_core::status::Status;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeMetric, NoLabelSet, prometheus_text, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::meter::{Counted, Meter, Tally};

/// The upper bounds of the buckets of times, in microseconds; one more holds the rest.
const BUCKETS_US: [u64; 14] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 5_000_000, 10_000_000,
];
const US: f64 = 1e6;

/// How metrics are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text {
    /// Version 0.0.4, which each reader knows.
    Prometheus,
    /// OpenMetrics 1.0.0.
    Open,
}

impl Text {
    /// What an `Accept` header prefers; the older one where it does not say.
    pub(crate) fn wanted(accept: &str) -> Text {
        let mut of = [0.0, 0.0];
        for each in accept.split(',') {
            let mut words = each.split(';').map(str::trim);
            let kind = words.next().unwrap_or_default();
            let (mut weight, mut version) = (1.0, None);
            for (name, value) in words.filter_map(|word| word.split_once('=')) {
                match name.trim().to_ascii_lowercase().as_str() {
                    // One that cannot be read is not wanted.
                    "q" => weight = value.trim().parse().unwrap_or(0.0),
                    "version" => version = Some(value.trim().trim_matches('"')),
                    _ => {}
                }
            }
            let at = match kind.to_ascii_lowercase().as_str() {
                "application/openmetrics-text" if version.is_none_or(|it| it == "1.0.0") => 1,
                "text/plain" if version.is_none_or(|it| it == "0.0.4") => 0,
                _ => continue,
            };
            of[at] = f64::max(of[at], weight);
        }
        if of[1] > 0.0 && of[1] >= of[0] { Text::Open } else { Text::Prometheus }
    }

    /// Its `Content-Type`.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Text::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Text::Open => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The metrics of a front, and of its loop if that is known.
pub(crate) fn text(
    meter: &Arc<Meter>,
    status: Option<Status>,
    form: Text,
) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("hob");
    registry.register_collector(Box::new(Taken { meter: Arc::clone(meter), status }));
    let mut text = String::new();
    match form {
        Text::Prometheus => prometheus_text::encode(&mut text, &registry)?,
        Text::Open => text::encode(&mut text, &registry)?,
    }
    Ok(text)
}

#[derive(Debug)]
struct Taken {
    meter: Arc<Meter>,
    status: Option<Status>,
}

type Label = (&'static str, String);

impl Collector for Taken {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let counts = self.meter.counts();
        let one = |value: u64| vec![(Vec::new(), value)];
        let counter = MetricType::Counter;
        let gauge = MetricType::Gauge;
        let named = |name: &'static str, counts: &std::collections::BTreeMap<String, u64>| {
            counts.iter().map(|(key, n)| (vec![(name, key.clone())], *n)).collect::<Vec<_>>()
        };
        let mut put = |name: &str, help: &str, kind, rows: Vec<(Vec<Label>, u64)>| {
            family(&mut encoder, name, help, kind, &rows)
        };
        put("uptime_seconds", "Since the site started", gauge, one(counts.uptime_s))?;
        put("http_connections", "Connections that are open", gauge, one(counts.connections))?;
        put("http_accepts", "1 while requests are accepted", gauge, one(counts.accepts.into()))?;
        put(
            "log_lines_dropped",
            "Lines of the access log that nobody read in time",
            counter,
            one(counts.lines_dropped),
        )?;
        let heads = named("status", &counts.refused_heads);
        put(
            "http_refused_heads",
            "Requests whose head broke a rule or came too late",
            counter,
            heads,
        )?;
        let of_mounts = |each: &dyn Fn(&MountCounts) -> u64| {
            let mounts = counts.mounts.iter();
            mounts
                .map(|mount| (vec![("mount", mount.path.clone())], each(mount)))
                .collect::<Vec<_>>()
        };
        put("http_active", "Requests that are being answered", gauge, of_mounts(&|m| m.active))?;
        put("http_sent_bytes", "Bytes of bodies that went out", counter, of_mounts(&|m| m.bytes))?;
        let (mut answers, mut failures) = (Vec::new(), Vec::new());
        for mount in &counts.mounts {
            let of = |name, key: &String| vec![("mount", mount.path.clone()), (name, key.clone())];
            answers.extend(mount.statuses.iter().map(|(key, n)| (of("status", key), *n)));
            failures.extend(mount.failures.iter().map(|(key, n)| (of("reason", key), *n)));
        }
        put("http_requests", "Requests that were answered", counter, answers)?;
        put("http_failures", "Requests that no app has answered to the end", counter, failures)?;
        if let Some(status) = &self.status {
            pools(status, &counts.mounts, &mut put)?;
        }
        times(&mut encoder, self.meter.tallies())
    }
}

/// What the loop says of its pools; with the requests that wait in the front.
fn pools(
    status: &Status,
    mounts: &[MountCounts],
    put: &mut impl FnMut(&str, &str, MetricType, Vec<(Vec<Label>, u64)>) -> fmt::Result,
) -> fmt::Result {
    // A mount whose code was changed has two for a while.
    let mut sums = std::collections::BTreeMap::<_, [u64; 4]>::new();
    for pool in &status.pools {
        let sum = sums.entry(pool.program.clone()).or_default();
        let of_pool =
            [pool.ready.into(), pool.busy.into(), pool.queued.into(), pool.memory_kib * 1024];
        sum.iter_mut().zip(of_pool).for_each(|(sum, one)| *sum += one);
    }
    for mount in mounts.iter().filter(|mount| mount.waiting > 0) {
        sums.entry(mount.path.clone()).or_default()[2] += mount.waiting;
    }
    let of = |mount: &String| ("mount", mount.clone());
    let workers = sums.iter().flat_map(|(mount, [ready, busy, ..])| {
        [("ready", *ready), ("busy", *busy)]
            .map(|(state, n)| (vec![of(mount), ("state", state.to_owned())], n))
    });
    put("workers", "Workers, by what they do", MetricType::Gauge, workers.collect())?;
    let queued = sums.iter().map(|(mount, [_, _, queued, _])| (vec![of(mount)], *queued));
    put("queued", "Requests that wait for a worker", MetricType::Gauge, queued.collect())?;
    let bytes = sums.iter().map(|(mount, [.., bytes])| (vec![of(mount)], *bytes));
    put("memory_bytes", "What an app's processes use (PSS)", MetricType::Gauge, bytes.collect())
}

fn family(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    kind: MetricType,
    rows: &[(Vec<Label>, u64)],
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, kind)?;
    for (labels, value) in rows {
        if let MetricType::Counter = kind {
            let value = ConstCounter::new(*value);
            encode(&mut family, labels, &value)?;
        } else {
            let value = ConstGauge::new(i64::try_from(*value).unwrap_or(i64::MAX));
            encode(&mut family, labels, &value)?;
        }
    }
    Ok(())
}

fn encode(
    family: &mut prometheus_client::encoding::MetricEncoder<'_>,
    labels: &Vec<Label>,
    value: &impl EncodeMetric,
) -> fmt::Result {
    value.encode(family.encode_family(labels)?)
}

fn times<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    tallies: impl Iterator<Item = &'a Arc<Tally>>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(
        "http_request_duration",
        "From a request's head to the end of its answer",
        Some(&Unit::Seconds),
        MetricType::Histogram,
    )?;
    for tally in tallies {
        let Counted { times: Some(times), sum_us, .. } = tally.lock().clone() else { continue };
        let labels = [("mount", tally.path.clone())].to_vec();
        let sum = sum_us as f64 / US;
        let mut metric = family.encode_family(&labels)?;
        metric.encode_histogram::<NoLabelSet>(sum, times.len(), &buckets(&times), None)?;
    }
    Ok(())
}

/// The counts of each bucket. Times are known to two digits, which a bound may cut through.
fn buckets(times: &Histogram<u64>) -> Vec<(f64, u64)> {
    let mut buckets: Vec<(f64, u64)> = BUCKETS_US
        .iter()
        .map(|bound| (*bound as f64 / US, 0))
        .chain([(f64::INFINITY, 0)])
        .collect();
    for step in times.iter_recorded() {
        let at = BUCKETS_US.partition_point(|bound| *bound < step.value_iterated_to());
        buckets[at].1 += step.count_since_last_iteration();
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_what_is_accepted_and_the_older_one_where_nothing_is_said() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,\
                          application/openmetrics-text;version=0.0.1;q=0.4,\
                          text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for accept in [
            prometheus,
            "application/openmetrics-text",
            "Application/OpenMetrics-Text; Version=\"1.0.0\"; charset=utf-8",
            "text/plain;q=0.5, application/openmetrics-text;q=0.5",
        ] {
            assert_eq!(Text::wanted(accept), Text::Open, "{accept}");
        }
        for accept in [
            "",
            "*/*",
            "text/plain",
            "text/html,*/*;q=0.8",
            "application/openmetrics-text;version=0.0.1",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=much",
            "application/openmetrics-text;q=0.2,text/plain",
            ";,=;q",
        ] {
            assert_eq!(Text::wanted(accept), Text::Prometheus, "{accept}");
        }
    }
}
