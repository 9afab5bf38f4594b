//! What hosts say of their programs: to `hob hosts`, and to whoever speaks the services API of NATS.

use hob_tests::{World, wait};
use serde_json::Value;

use super::foreign::Client;
use super::{Server, ask, connected, host, offered, project};

const HANDLERS: &str = r#"
def echo(payload, message):
    return payload

def raises(payload, message):
    raise ValueError("no")
"#;

fn hosts(world: &World) -> Value {
    let outcome = world.hob(&["hosts", "--json"]).go();
    outcome.succeeded();
    serde_json::from_slice(&outcome.out).unwrap()
}

#[test]
fn each_host_sees_the_programs_of_all_and_how_they_do() {
    let server = Server::start("");
    let desk = host("desk", &server.url(), "");
    desk.hob(&["start"]).go().succeeded();
    connected(&desk, 0);
    let none = desk.hob(&["hosts"]).go();
    none.succeeded();
    assert_eq!(
        none.text(),
        format!("desk is connected to {}\nno host offers a program\n", server.url())
    );
    let web = host("web-1", &server.url(), "");
    project(&web, HANDLERS, &(offered("echo", "echo", "") + &offered("raises", "raises", "")));
    let mail = host("mail", &server.url(), "");
    project(&mail, HANDLERS, &offered("post", "echo", ""));
    connected(&web, 2);
    connected(&mail, 1);
    for _ in 0..3 {
        ask(&desk, &["echo", "x"]).succeeded();
    }
    assert_eq!(ask(&desk, &["raises", "x"]).end, hob_tests::End::Code(1));
    // Offered and said so are two steps of a host's connection.
    let seen = wait::until("three programs", || {
        let seen = hosts(&desk);
        (seen["programs"].as_array().unwrap().len() == 3).then_some(seen)
    });
    assert_eq!((&seen["schema"], &seen["this"]["host"]), (&"hob.hosts/1".into(), &"desk".into()));
    let names = seen["programs"].as_array().unwrap().iter().map(|each| {
        let text = |key: &str| each[key].as_str().unwrap().to_owned();
        (text("host"), text("program"), each["asked"].as_u64(), each["failed"].as_u64())
    });
    let want = |host: &str, program: &str, asked, failed| {
        (host.to_owned(), program.to_owned(), Some(asked), Some(failed))
    };
    assert_eq!(
        names.collect::<Vec<_>>(),
        [want("mail", "post", 0, 0), want("web-1", "echo", 3, 0), want("web-1", "raises", 1, 1)]
    );
    assert_eq!(seen["programs"][2]["last_failure"], "raised");
    assert_eq!(seen["programs"][1]["version"], "1.2.0");
    assert!(seen["programs"][1]["ready"].as_u64() > Some(0), "{seen}");
    let table = mail.hob(&["hosts"]).go();
    table.succeeded();
    assert!(table.text().contains("web-1  echo     1.2.0"), "{table:?}");
    web.stop();
    wait::until("one is left", || {
        (hosts(&desk)["programs"].as_array().unwrap().len() == 1).then_some(())
    });
}

#[test]
fn without_a_configuration_or_a_server_it_says_so() {
    let world = World::new();
    let outcome = world.hob(&["hosts"]).go();
    outcome.succeeded();
    assert!(outcome.text().contains("[nats]"), "{outcome:?}");
    let server = Server::start("");
    let desk = host("desk", &server.url(), "");
    server.kill();
    desk.hob(&["start"]).go().succeeded();
    wait::until("it is known that there is none", || {
        let outcome = desk.hob(&["hosts"]).go();
        outcome.text().contains("cannot be reached").then_some(())
    });
}

#[test]
fn a_program_is_a_service_of_nats() {
    let server = Server::start("");
    let web = host("web-1", &server.url(), "");
    project(&web, HANDLERS, &offered("greeter", "echo", ""));
    connected(&web, 1);
    wait::until("it says how it does", || {
        (!hosts(&web)["programs"].as_array().unwrap().is_empty()).then_some(())
    });
    let mut client = Client::connect(&server);
    let mut said = |subject: &str, number: u32| -> Value {
        client.send(format!("PUB {subject} mine.{number} 0\r\n\r\n").as_bytes());
        serde_json::from_str(&client.reply(&format!("mine.{number}")).1).unwrap()
    };
    let ping = said("$SRV.PING", 1);
    assert_eq!(ping["type"], "io.nats.micro.v1.ping_response");
    assert_eq!((&ping["name"], &ping["version"]), (&"hob-greeter".into(), &"1.2.0".into()));
    assert_eq!(ping["metadata"]["host"], "web-1");
    let id = ping["id"].as_str().unwrap();
    let info = said(&format!("$SRV.INFO.hob-greeter.{id}"), 2);
    assert_eq!(info["type"], "io.nats.micro.v1.info_response");
    assert!(info["description"].is_string());
    let endpoint = &info["endpoints"][0];
    assert_eq!(endpoint["subject"], "hob.ask.greeter");
    assert_eq!((&endpoint["name"], &endpoint["queue_group"]), (&"ask".into(), &"hob".into()));
    ask(&web, &["greeter", "x"]).succeeded();
    let stats = said("$SRV.STATS.hob-greeter", 3);
    assert_eq!(stats["type"], "io.nats.micro.v1.stats_response");
    assert!(stats["started"].as_str().unwrap().ends_with('Z'));
    let endpoint = &stats["endpoints"][0];
    // What this host asked of itself is not counted: it never left.
    assert_eq!((&endpoint["num_requests"], &endpoint["num_errors"]), (&0.into(), &0.into()));
    for key in ["processing_time", "average_processing_time"] {
        assert!(endpoint[key].is_u64(), "{stats}");
    }
    assert_eq!(endpoint["last_error"], "");
}

/// What `hob doctor` says of other hosts: the level, the text and the fix of each finding.
fn doctor(world: &World) -> Vec<(String, String)> {
    let outcome = world.hob(&["doctor", "--json"]).go();
    let value: Value = serde_json::from_slice(&outcome.out).unwrap();
    let all = value["checks"].as_array().unwrap().iter().filter(|each| each["check"] == "hosts");
    let text = |each: &Value, key: &str| each[key].as_str().unwrap_or_default().to_owned();
    all.map(|each| (text(each, "level"), format!("{} | {}", text(each, "text"), text(each, "fix"))))
        .collect()
}

#[test]
fn the_doctor_names_what_keeps_other_hosts_away_with_its_fix() {
    let said = |world: &World, want: &[(&str, &[&str])]| {
        let found = doctor(world);
        assert_eq!(found.len(), want.len(), "{found:?}");
        for ((level, text), (wanted, words)) in found.iter().zip(want) {
            assert_eq!(level, wanted, "{text}");
            for word in *words {
                assert!(text.contains(word), "{word:?} is not in {text}");
            }
        }
    };
    let server = Server::start("");
    let web = host("web-1", &server.url(), "");
    said(&web, &[("fine", &["web-1", &server.url(), "none runs"])]);
    project(&web, HANDLERS, &offered("echo", "echo", ""));
    connected(&web, 1);
    wait::until("why no tells come", || {
        web.status()["hosts"]["tells_why"].is_string().then_some(())
    });
    let (fine, tells) = (["connected to", "offers 1 program |"], ["JetStream is off", "store_dir"]);
    said(&web, &[("fine", &fine), ("warning", &tells)]);
    server.kill();
    wait::until("it is cut", || (web.status()["hosts"]["connected"] == false).then_some(()));
    said(&web, &[("fault", &["no connection", "start that server", "hob restart"])]);
    let key = web.path("home").join("key");
    std::fs::write(&key, "x").unwrap();
    let config = format!(
        "[nats]\nurl = \"nats://localhost\"\nhost = \"web-1\"\ncreds = \"{}\"\n",
        key.display()
    );
    super::configured(&web, &config);
    let mend = format!("chmod 600 {}", key.display());
    web.run(&["chmod", "644", key.to_str().unwrap()]).go().succeeded();
    said(&web, &[("fault", &["others may read it", &mend])]);
    web.run(&["sh", "-c", &mend]).go().succeeded();
    said(&web, &[("warning", &["another configuration", "hob restart"])]);
    super::configured(&web, "");
    said(&web, &[]);
}
