//! How a WebSocket ends: who ends it, and what the other side learns.

use std::io::Write;

use hob_tests::{World, wait};
use rustix::process::Signal;
use tungstenite::Message;
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;

use super::{closed, each, forget, noted, open, pid, serve, serve_with, text};

#[test]
fn each_side_learns_how_the_other_has_ended_it() {
    each(|world, isolation| {
        let site = serve(world, isolation);
        let gone = world.path("work/gone");
        let mut client = open(&site, "/close");
        assert_eq!(closed(&mut client), (4001, "enough".to_owned()), "{isolation}");
        assert!(noted(world, "said").contains("'code': 4001"));
        assert_eq!(closed(&mut open(&site, "/return")).0, 1000, "{isolation}");
        let mut client = open(&site, "/echo");
        let frame = CloseFrame { code: CloseCode::Library(3007), reason: "as agreed".into() };
        client.close(Some(frame)).unwrap();
        assert_eq!(closed(&mut client), (3007, "as agreed".to_owned()), "{isolation}");
        assert_eq!(noted(world, "gone"), "3007 as agreed", "{isolation}");
        forget(&gone);
        drop(open(&site, "/echo"));
        assert_eq!(noted(world, "gone"), "1006 ", "{isolation}");
        forget(&gone);
        // It sends, and never receives.
        let mut client = open(&site, "/endless");
        text(&mut client);
        drop(client);
        noted(world, "gone");
        // The same, and it waits for room.
        let mut client = open(&site, "/flood");
        assert_eq!(client.read().unwrap().len(), 65536);
        drop(client);
        assert_eq!(site.get("/app/").text(), "here", "{isolation}");
        site.stop();
    });
}

#[test]
fn an_app_that_fails_ends_it_with_1011() {
    each(|world, isolation| {
        let site = serve(world, isolation);
        let mut client = open(&site, "/raise");
        text(&mut client);
        client.send(Message::text("go on")).unwrap();
        let (code, reason) = closed(&mut client);
        assert_eq!((code, reason.as_str()), (1011, ""), "{isolation}");
        wait::until("the log", || site.err().contains("a secret of the app").then_some(()));
        let mut client = open(&site, "/raise");
        rustix::process::kill_process(pid(&text(&mut client)), Signal::KILL).unwrap();
        assert_eq!(closed(&mut client).0, 1011, "{isolation}");
        assert_eq!(site.get("/app/").text(), "here", "{isolation}");
        site.stop();
        let outcomes: Vec<_> =
            world.records(3).into_iter().map(|one| one["outcome"]["kind"].clone()).collect();
        assert_eq!(outcomes[1..], ["lost", "answered"], "{isolation}");
    });
}

#[test]
fn a_client_that_breaks_a_rule_is_told_which() {
    let world = World::new();
    let site = serve(&world, "prefork");
    let gone = world.path("work/gone");
    let mut client = open(&site, "/echo");
    // The site stops reading in the middle of it.
    let _ = client.send(Message::binary(vec![0; (16 << 20) + 1]));
    assert_eq!(closed(&mut client).0, 1009);
    assert!(noted(&world, "gone").starts_with("1009"));
    for (bytes, code) in [
        // Text that is no UTF-8; bytes without a mask; an opcode that there is not.
        (&[0x81, 0x82, 0, 0, 0, 0, 0xff, 0xff][..], 1007),
        (&[0x82, 0x01, b'a'], 1002),
        (&[0x83, 0x81, 0, 0, 0, 0, b'a'], 1002),
    ] {
        forget(&gone);
        let mut client = open(&site, "/echo");
        client.get_mut().write_all(bytes).unwrap();
        assert_eq!(closed(&mut client).0, code, "{bytes:?}");
        assert_eq!(noted(&world, "gone"), format!("{code} "));
    }
    site.stop();
}

#[test]
fn a_site_that_stops_says_so_to_both_sides() {
    each(|world, isolation| {
        for by_verb in [false, true] {
            let site = serve(world, isolation);
            let mut client = open(&site, "/pid");
            text(&mut client);
            let port = site.address().port().to_string();
            let stopping = std::thread::scope(|scope| {
                let stopping = scope.spawn(|| {
                    if by_verb {
                        world.hob(&["serve", "stop", &port]).go().succeeded();
                        site.stopped()
                    } else {
                        site.stop()
                    }
                });
                assert_eq!(closed(&mut client).0, 1001, "{isolation} {by_verb}");
                assert_eq!(noted(world, "gone"), "1001 ", "{isolation} {by_verb}");
                stopping.join().unwrap()
            });
            let log = String::from_utf8(stopping.out).unwrap();
            assert!(log.contains("GET /app/pid"), "{log}");
            forget(&world.path("work/gone"));
        }
    });
}

#[test]
fn a_mount_has_its_own_bound_of_a_message() {
    let world = World::new();
    let limits = world.hob(&["serve", "status", "--limits"]).go();
    let limits = String::from_utf8(limits.out).unwrap();
    assert!(limits.contains("message_bytes      16777216 bytes"), "{limits}");
    assert!(limits.contains("ping_ms               30000 ms"), "{limits}");
    let site = serve_with(&world, "prefork", ["", "limits = { message = \"1KiB\" }"]);
    let mut client = open(&site, "/echo");
    client.send(Message::binary(vec![7; 1024])).unwrap();
    assert_eq!(client.read().unwrap().len(), 1024);
    client.send(Message::binary(vec![7; 1025])).unwrap();
    assert_eq!(closed(&mut client).0, 1009);
    site.stop();
    let plain = "[mount.\"/\"]\nwsgi = \"wsgi.py\"\nlimits = { message = \"1KiB\" }\n";
    world.file("hob.toml", plain);
    let complaint = world.hob(&["trust"]).go().complaint();
    assert!(complaint.contains("wsgi takes no WebSockets"), "{complaint}");
}

#[test]
fn a_client_that_answers_no_ping_has_left() {
    let world = World::new();
    let site = serve_with(&world, "prefork", ["[serve]\ntimeouts = { ping = \"50ms\" }", ""]);
    // It says nothing itself, but answers.
    let mut client = open(&site, "/echo");
    for _ in 0..5 {
        assert!(client.read().unwrap().is_ping());
    }
    client.send(Message::text("here")).unwrap();
    while client.read().unwrap() != Message::text("here") {}
    client.close(None).unwrap();
    closed(&mut client);
    assert_eq!(noted(&world, "gone"), "1005 ");
    forget(&world.path("work/gone"));
    let silent = open(&site, "/echo");
    assert_eq!(noted(&world, "gone"), "1006 ");
    drop(silent);
    site.stop();
}
