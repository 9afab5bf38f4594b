//! TLS, and what the permissions of `docs/hosts.md` let an asker and a host do, at a real server.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hob_tests::{End, Outcome, World, wait};

use super::{Server, ask, configured, connected, host, offered, project};

const HANDLERS: &str = r#"
def fails(payload, message):
    raise ValueError("not this one")

def notes(payload, message):
    with open("performed", "ab") as file:
        file.write(payload + b"\n")
    return payload
"#;

/// The keys of an asker, of a host, of an admin, and of one whose permissions have no bound.
const DESK: [&str; 2] = [
    "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY",
    "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4",
];
const WEB: [&str; 2] = [
    "SUAIO3FHUX5PNV2LQIIP7TZ3N4L7TX3W53MQGEIVYFIGA635OZCKEYHFLM",
    "UD2FLLGFERQVQQ3SBKONNG2QMIMTZQKKLTU3AVG5I3EQEFHBPGPE2XQS",
];
const ADMIN: [&str; 2] = [
    "SUAGIZLGM5UGS2TLNRWW433QOFZHG5DVOZ3XQ6L2PN6H27T7QCAYFA2FG4",
    "UAF3YNDKK5THYOABEC6ZY76X4UOSYX675I342L236QC3FRV7N4WXQBYG",
];
const FREE: [&str; 2] = [
    "SUAACAQDAQCQMBYIBEFAWDANBYHRAEISCMKBKFQXDAMRUGY4DUPB6IC5CQ",
    "UB43KVROR7TFJ6KAPCYRF2FJROTZAH4FHLTJLPWX4DRZCC5NASLGJBFE",
];

/// The permissions of the page, as a reader copies them.
pub(super) fn block() -> &'static str {
    let page = include_str!("../../../docs/hosts.md");
    let at = page.find("# nats-server's configuration").unwrap();
    page[at..].split("```").next().unwrap()
}

/// The same with the keys of users.
fn permissions() -> String {
    let block = block();
    let free = format!("{{ nkey = {} }}\n  ]", FREE[1]);
    let block = block.replace("UDESK", DESK[1]).replace("UWEB", WEB[1]);
    block.replace("UADMIN", ADMIN[1]).replacen("]\n}", &format!("{free}\n}}"), 1)
}

/// A host with a key.
fn keyed(name: &str, server: &Server, key: [&str; 2]) -> World {
    let world = World::new();
    let path = world.path("home").join("seed");
    std::fs::write(&path, key[0]).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let url = server.url();
    let text =
        format!("[nats]\nurl = \"{url}\"\nhost = \"{name}\"\ncreds = \"{}\"\n", path.display());
    configured(&world, &text);
    world
}

fn performed(world: &World) -> String {
    std::fs::read_to_string(world.path("work").join("performed")).unwrap_or_default()
}

/// What the server has refused, or whatever else does not work.
fn trouble(world: &World) -> String {
    let hosts = &world.status()["hosts"];
    format!("{} {}", hosts["why"].as_str().unwrap_or(""), hosts["tells_why"].as_str().unwrap_or(""))
}

#[test]
fn the_permissions_of_the_page_are_enough_and_no_wider() {
    let store = tempfile::tempdir().unwrap();
    let jetstream = format!("jetstream: {{ store_dir: \"{}\" }}\n", store.path().display());
    let server = Server::start(&(jetstream + &permissions()));
    let desk = keyed("desk", &server, DESK);
    for claimed in ["", "claimed = true"] {
        let web = keyed("web-1", &server, WEB);
        project(&web, HANDLERS, &offered("greeter", "notes", claimed));
        connected(&web, 1);
        let answer = ask(&desk, &["greeter", "asked"]);
        answer.succeeded();
        assert_eq!(answer.text(), "asked");
        desk.hob(&["tell", "greeter", "told"]).go().succeeded();
        wait::until("what was told", || performed(&web).contains("told").then_some(()));
        let seen = desk.hob(&["hosts"]).go();
        assert!(seen.text().contains("web-1"), "{seen:?}");
        for world in [&desk, &web] {
            assert_eq!(trouble(world).trim(), "", "with {claimed:?}");
        }
        // It says that it stops, takes its leave, and nothing of that is refused.
        web.hob(&["stop"]).go().succeeded();
    }
    // An asker is no host: nothing comes to what it offers.
    let web = keyed("web-1", &server, WEB);
    project(&web, HANDLERS, &offered("greeter", "notes", ""));
    connected(&web, 1);
    let rogue = keyed("rogue", &server, DESK);
    project(&rogue, HANDLERS, &(offered("greeter", "notes", "") + &offered("other", "notes", "")));
    wait::until("a refusal", || trouble(&rogue).contains("ermissions").then_some(()));
    for _ in 0..10 {
        ask(&desk, &["greeter", "again"]).succeeded();
    }
    assert_eq!(performed(&rogue), "");
    assert_eq!(performed(&web).lines().filter(|line| *line == "again").count(), 10);
    // With its rights another reads none of its answers: they come to its name.
    let other = keyed("desk-2", &server, DESK);
    let unread = other.hob(&["ask", "greeter", "again", "--timeout", "1s"]).go();
    assert_ne!(unread.end, End::Code(0), "{unread:?}");
    wait::until("a refusal", || trouble(&other).contains("_INBOX.desk-2").then_some(()));
    // Nor may it ask, or tell, what it is not named for; and a host asks nothing at all.
    let free = keyed("free", &server, FREE);
    project(&free, HANDLERS, &offered("other", "notes", ""));
    connected(&free, 1);
    for world in [&desk, &web] {
        let asked = world.hob(&["ask", "other", "x", "--timeout", "60s"]).go();
        assert_eq!(asked.end, End::Code(2), "{asked:?}");
        assert!(asked.complaint().contains("hob.claim.other"), "{asked:?}");
        let record = world.records(1).remove(0);
        assert_eq!(
            (&record["outcome"]["kind"], &record["reason"]),
            (&"config".into(), &"config".into())
        );
        wait::until("a refusal", || trouble(world).contains("ermissions").then_some(()));
    }
    desk.hob(&["tell", "other", "x"]).go().succeeded();
    wait::until("a refusal", || trouble(&desk).contains("hob.tell.other").then_some(()));
    assert_eq!(performed(&free), "");
}

#[test]
fn only_who_may_ask_for_dead_letters_sees_those_of_other_hosts() {
    let store = tempfile::tempdir().unwrap();
    let jetstream = format!("jetstream: {{ store_dir: \"{}\" }}\n", store.path().display());
    let server = Server::start(&(jetstream + &permissions()));
    let web = keyed("web-1", &server, WEB);
    project(&web, HANDLERS, &offered("greeter", "fails", "tries = 1"));
    connected(&web, 1);
    let (desk, admin) = (keyed("desk", &server, DESK), keyed("admin", &server, ADMIN));
    desk.hob(&["tell", "greeter", "x"]).go().succeeded();
    let has = || (web.status()["messages"]["dead"] == 1).then_some(());
    wait::until("a dead letter", has);
    for world in [&desk, &admin] {
        world.hob(&["start"]).go().succeeded();
        connected(world, 0);
    }
    let seen = admin.hob(&["dead"]).go();
    seen.succeeded();
    assert!(seen.text().contains("at web-1") && seen.text().contains("not this one"), "{seen:?}");
    assert_eq!(trouble(&admin).trim(), "");
    let seen = desk.hob(&["dead"]).go();
    seen.succeeded();
    assert!(!seen.text().contains("not this one"), "{seen:?}");
    assert!(seen.text().contains("web-1 has dead letters and does not say which"), "{seen:?}");
    wait::until("a refusal", || trouble(&desk).contains("hob.dead").then_some(()));
}

/// A certificate for a name, that vouches for itself; and its key.
fn certificate(world: &World, file: &str, name: &str) -> (PathBuf, PathBuf) {
    let (certificate, key) =
        (world.path(format!("work/{file}.pem")), world.path(format!("work/{file}.key")));
    let made = world.run(&["openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"]);
    let made = made.args(&["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=a test"]);
    let made = made.args(&["-addext", &format!("subjectAltName={name}"), "-keyout"]).args(&[&key]);
    made.args(&["-addext", "basicConstraints=critical,CA:FALSE", "-out"])
        .args(&[&certificate])
        .go()
        .succeeded();
    (certificate, key)
}

fn tls(port: u16, ca: Option<&Path>) -> World {
    let more = ca.map(|file| format!("ca = \"{}\"", file.display())).unwrap_or_default();
    host("desk", &format!("tls://localhost:{port}"), &more)
}

fn asked(world: &World) -> Outcome {
    world.hob(&["ask", "greeter", "x"]).go()
}

#[test]
fn a_server_is_believed_by_its_certificate_and_never_in_plain_text() {
    let files = World::new();
    let server = |(certificate, key): &(PathBuf, PathBuf)| {
        Server::start(&format!(
            "tls: {{ cert_file: \"{}\", key_file: \"{}\" }}",
            certificate.display(),
            key.display()
        ))
    };
    let right = certificate(&files, "right", "DNS:localhost");
    let own = server(&right);
    let desk = tls(own.port(), Some(&right.0));
    let web = tls(own.port(), Some(&right.0));
    project(&web, HANDLERS, &offered("greeter", "notes", ""));
    connected(&web, 1);
    ask(&desk, &["greeter", "x"]).succeeded();
    // By no authority that is known here; by another one; for another name; in plain text.
    let other = certificate(&files, "other", "DNS:elsewhere.example");
    let elsewhere = server(&other);
    let plain = Server::start("");
    for (port, ca) in [
        (own.port(), None),
        (own.port(), Some(&other.0)),
        (elsewhere.port(), Some(&other.0)),
        (plain.port(), Some(&right.0)),
    ] {
        let world = tls(port, ca.map(PathBuf::as_path));
        let outcome = asked(&world);
        assert_eq!(outcome.end, End::Code(125), "{port} {ca:?}: {outcome:?}");
        let complaint = outcome.complaint();
        let url = format!("tls://localhost:{port}");
        assert!(
            complaint.contains("no other can be asked") && complaint.contains(&url),
            "{outcome:?}"
        );
        assert!(complaint.contains("TLS") || complaint.contains("tls"), "{outcome:?}");
    }
}
