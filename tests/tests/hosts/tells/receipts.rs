//! Who tells has receipts of what a stream has accepted, and the host that performs it has its own.

use hob_tests::{World, wait};
use serde_json::Value;

use super::super::{Server, connected, host, offered, project};
use super::{HANDLERS, Store, empty, performed, tell, tells, words};

/// Tells of one part; the server is killed between two, and the daemon stops after them.
const PART: u64 = 400;

/// The receipts of `notes` with this outcome.
fn of_notes(world: &World, outcome: &str) -> Vec<Value> {
    let mut records = world.records(10_000);
    records.retain(|record| {
        (&record["program"]["name"], &record["outcome"]["kind"])
            == (&"notes".into(), &outcome.into())
    });
    records
}

/// For how many tells these stand.
fn counted(records: &[Value]) -> u64 {
    records.iter().filter_map(|record| record["message"]["stands_for"].as_u64()).sum()
}

#[test]
fn who_tells_has_receipts_that_stand_for_each_tell_that_its_stream_has() {
    let store = Store::new();
    let server = Server::start(&store.config());
    let web = host("web-1", &server.url(), "");
    project(&web, HANDLERS, &offered("notes", "notes", ""));
    connected(&web, 1);
    let desk = host("desk", &server.url(), "");
    desk.hob(&["start"]).go().succeeded();
    connected(&desk, 0);
    tell(&desk, "one");
    empty(&desk);
    let here = super::super::receipt(&desk, |record| record["reason"] == "stream");
    assert_eq!(
        (&here["isolation"], &here["warm"]),
        (&"other-host".into(), &false.into()),
        "{here}"
    );
    let (outcome, message) = (&here["outcome"]["kind"], &here["message"]);
    assert_eq!((outcome, &message["bytes"]), (&"accepted".into(), &3.into()), "{here}");
    // A stream has it, and no host is known.
    assert_eq!((&message["stands_for"], &message["host"]), (&1.into(), &Value::Null), "{here}");
    let shown = desk.hob(&["last"]).go();
    assert!(shown.text().contains("accepted"), "{shown:?}");
    assert!(shown.text().contains("elsewhere: stream"), "{shown:?}");
    assert!(shown.text().contains("why: a stream between hosts has it"), "{shown:?}");
    assert!(shown.text().lines().all(|line| line.chars().count() <= 80), "{shown:?}");
    let failed = desk.hob(&["log", "--failed"]).go();
    assert!(!failed.text().contains("notes"), "{failed:?}");

    tells(&desk, 0..PART);
    let port = server.kill();
    // What the killed server had taken without a word of it is told again, and counted then.
    tells(&desk, PART..2 * PART);
    let _server = Server::at(port, &store.config());
    empty(&desk);
    wait::until("all of them", || {
        (words(&performed(&web)).len() as u64 == 2 * PART + 1).then_some(())
    });
    // The daemon leaves what it has not told yet when it stops.
    tells(&desk, 2 * PART..3 * PART);
    empty(&desk);
    desk.hob(&["stop"]).go().succeeded();
    let records = of_notes(&desk, "accepted");
    assert_eq!(counted(&records), 3 * PART + 1, "{} receipts", records.len());
    assert!((records.len() as u64) < 3 * PART, "{} receipts are not sampled", records.len());
    // And each run there is counted there, as ever.
    let all = wait::until("the rest", || {
        Some(performed(&web)).filter(|all| words(all).len() as u64 == 3 * PART + 1)
    });
    wait::until("receipts of them", || {
        (counted(&of_notes(&web, "answered")) == all.len() as u64).then_some(())
    });
}
