//! The services API of NATS (ADR-32): what an offered program says of itself, so that `nats micro`
//! shows it; and what others say, read for `hob hosts`.

use hob_core::hosts::{Offered, OfferedHooks, Seen, Stats};
use serde_json::{Map, Value, json};

/// The queue group: the server gives an ask to one of its members.
pub(crate) const GROUP: &str = "hob";

/// Subjects are `hob.ask.NAME`, and so on.
pub(crate) const ASK: &str = "ask";
/// One of the hosts that take it before they perform it.
pub(crate) const CLAIM: &str = "claim";
/// All of these.
pub(crate) const CLAIM_OF_ALL: &str = "claims";

/// A longer path of a stranger's is none.
const PATH_BYTES_MAX: usize = 4096;

/// The name of a program's service.
pub(crate) fn name(program: &str) -> String {
    format!("hob-{program}")
}

/// A program's service, on one connection.
pub(crate) struct Service {
    pub(crate) offered: Offered,
    /// Different for each connection.
    pub(crate) id: String,
    pub(crate) host: String,
    /// When the connection was made, as RFC 3339 has it.
    pub(crate) started: String,
}

/// What is asked of services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Ping,
    Info,
    Stats,
}

impl Verb {
    /// The verb in a subject: `$SRV.PING`, `$SRV.PING.hob-greeter`, and so on.
    pub(crate) fn of(subject: &str) -> Option<Verb> {
        match subject.split('.').nth(1)? {
            "PING" => Some(Verb::Ping),
            "INFO" => Some(Verb::Info),
            "STATS" => Some(Verb::Stats),
            _ => None,
        }
    }
}

impl Service {
    fn identity(&self, kind: &str) -> Map<String, Value> {
        let mut all = Map::new();
        all.insert("type".to_owned(), format!("io.nats.micro.v1.{kind}_response").into());
        all.insert("name".to_owned(), name(&self.offered.program).into());
        all.insert("id".to_owned(), self.id.as_str().into());
        all.insert("version".to_owned(), self.offered.version.as_str().into());
        all.insert("metadata".to_owned(), self.metadata());
        all
    }

    fn metadata(&self) -> Value {
        let mut all = Map::new();
        all.insert("host".to_owned(), self.host.as_str().into());
        if self.offered.claimed {
            all.insert("claimed".to_owned(), "true".into());
        }
        if self.offered.partitions > 0 {
            all.insert("partitions".to_owned(), self.offered.partitions.to_string().into());
        }
        if let Some(hooks) = &self.offered.hooks {
            all.insert("hooks".to_owned(), hooks.directory.as_str().into());
            all.insert("at_once".to_owned(), hooks.at_once.to_string().into());
        }
        Value::Object(all)
    }

    fn endpoint(&self) -> Map<String, Value> {
        let mut endpoint = Map::new();
        endpoint.insert("name".to_owned(), "ask".into());
        endpoint.insert("subject".to_owned(), format!("hob.ask.{}", self.offered.program).into());
        endpoint.insert("queue_group".to_owned(), GROUP.into());
        endpoint
    }

    pub(crate) fn ping(&self) -> String {
        Value::Object(self.identity("ping")).to_string()
    }

    pub(crate) fn info(&self) -> String {
        let mut all = self.identity("info");
        all.insert("description".to_owned(), "a program of hob's".into());
        let mut endpoint = self.endpoint();
        endpoint.insert("metadata".to_owned(), json!({}));
        all.insert("endpoints".to_owned(), json!([endpoint]));
        Value::Object(all).to_string()
    }

    pub(crate) fn stats(&self, stats: &Stats) -> String {
        let mut all = self.identity("stats");
        all.insert("started".to_owned(), self.started.as_str().into());
        let mut endpoint = self.endpoint();
        let spent_ns = stats.spent_us.saturating_mul(1000);
        endpoint.insert("num_requests".to_owned(), stats.asked.into());
        endpoint.insert("num_errors".to_owned(), stats.failed.into());
        endpoint.insert("last_error".to_owned(), stats.last_failure.as_str().into());
        endpoint.insert("processing_time".to_owned(), spent_ns.into());
        let average = spent_ns.checked_div(stats.asked).unwrap_or(0);
        endpoint.insert("average_processing_time".to_owned(), average.into());
        let data = json!({
            "ready": stats.ready,
            "busy": stats.busy,
            "queued": stats.queued,
            "dead": stats.dead,
        });
        endpoint.insert("data".to_owned(), data);
        all.insert("endpoints".to_owned(), json!([endpoint]));
        Value::Object(all).to_string()
    }
}

/// What a service says of itself; `None`: it is none of hob's, or cannot be read.
pub(crate) fn seen(payload: &[u8]) -> Option<Seen> {
    let value: Value = serde_json::from_slice(payload).ok()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let program = value["name"].as_str()?.strip_prefix("hob-")?.to_owned();
    let host = value["metadata"]["host"].as_str()?.to_owned();
    if !hob_core::hosts::is_subject(&program) || !hob_core::hosts::is_host(&host) {
        return None;
    }
    let endpoint = value["endpoints"].as_array()?.iter().find(|each| each["name"] == "ask")?;
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let small = |value: &Value| u32::try_from(number(value)).unwrap_or(u32::MAX);
    let line = |text: String| hob_core::hosts::words::line(&text);
    Some(Seen {
        host,
        offered: Offered {
            program,
            version: line(text(&value["version"])?),
            claimed: value["metadata"]["claimed"] == "true",
            partitions: partitions(&value["metadata"]),
            hooks: hooks(&value["metadata"]),
        },
        id: line(text(&value["id"])?),
        stats: Stats {
            asked: number(&endpoint["num_requests"]),
            failed: number(&endpoint["num_errors"]),
            last_failure: line(text(&endpoint["last_error"]).unwrap_or_default()),
            spent_us: number(&endpoint["processing_time"]) / 1000,
            ready: small(&endpoint["data"]["ready"]),
            busy: small(&endpoint["data"]["busy"]),
            queued: small(&endpoint["data"]["queued"]),
            dead: number(&endpoint["data"]["dead"]),
        },
    })
}

/// Whether a service that answers keeps the order of keys.
pub(crate) fn has_partitions(payload: &[u8]) -> bool {
    let value: Value = serde_json::from_slice(payload).unwrap_or_default();
    partitions(&value["metadata"]) > 0
}

fn partitions(metadata: &Value) -> u32 {
    metadata["partitions"].as_str().and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// The hooks directory that a service is, if it says so.
fn hooks(metadata: &Value) -> Option<OfferedHooks> {
    let directory = metadata["hooks"].as_str().filter(|path| path.len() <= PATH_BYTES_MAX)?;
    let at_once = metadata["at_once"].as_str()?.parse().ok().filter(|count| *count > 0)?;
    Some(OfferedHooks { directory: directory.to_owned(), at_once })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> Service {
        Service {
            offered: Offered {
                program: "greeter".to_owned(),
                version: "1.2.0".to_owned(),
                claimed: true,
                partitions: 16,
                hooks: Some(OfferedHooks { directory: "/srv/deploy.d".to_owned(), at_once: 4 }),
            },
            id: "x1".to_owned(),
            host: "web-1".to_owned(),
            started: "2026-01-01T00:00:00Z".to_owned(),
        }
    }

    #[test]
    fn what_one_host_says_of_itself_another_reads() {
        let stats = Stats {
            asked: 4,
            failed: 1,
            last_failure: "raised".to_owned(),
            spent_us: 10,
            ready: 1,
            busy: 2,
            queued: 3,
            dead: 4,
        };
        let seen = seen(service().stats(&stats).as_bytes()).unwrap();
        assert_eq!((seen.host.as_str(), seen.offered.program.as_str()), ("web-1", "greeter"));
        assert_eq!((seen.offered, seen.stats), (service().offered, stats));
    }

    #[test]
    fn what_is_none_of_ours_is_passed_over() {
        let own = service().stats(&Stats::default());
        let texts = [
            own.replace("hob-greeter", "other"),
            own.replace("web-1", "a b"),
            own[..40].to_owned(),
        ];
        for text in texts.iter().map(String::as_str).chain(["", "{}", "[1]", "\u{0}"]) {
            assert!(seen(text.as_bytes()).is_none(), "{text}");
        }
    }

    #[test]
    fn a_verb_is_the_second_word_of_its_subject() {
        assert_eq!(Verb::of("$SRV.PING"), Some(Verb::Ping));
        assert_eq!(Verb::of("$SRV.INFO.hob-greeter"), Some(Verb::Info));
        assert_eq!(Verb::of("$SRV.STATS.hob-greeter.x1"), Some(Verb::Stats));
        assert_eq!((Verb::of("$SRV"), Verb::of("$SRV.OTHER")), (None, None));
    }
}
