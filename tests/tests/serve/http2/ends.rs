//! What becomes of requests that do not come to their end, and of the others on their connection.

use hob_tests::{World, wait};
use rustix::process::Signal;

use super::client::Client;
use super::site;

fn given(world: &World) -> String {
    std::fs::read_to_string(world.path("work/given")).unwrap_or_default()
}

fn until_given(world: &World, path: &str) {
    wait::until("it is given", || given(world).contains(path).then_some(()));
}

/// How often requests of the app failed for this reason.
fn until_failed(world: &World, site: &hob_tests::site::Site, reason: &str) {
    let line = format!("hob_http_failures_total{{mount=\"/\",reason=\"{reason}\"}} 1\n");
    wait::until("it is counted", || {
        site.control(world, "/metrics").text().contains(&line).then_some(())
    });
}

#[test]
fn a_request_that_is_taken_back_frees_its_worker_and_its_connection_goes_on() {
    let world = World::new();
    let site = site(&world, "", "workers = 1");
    let client = Client::connect(&site, 65_535);
    let held = client.ask(("GET", "/hold"), &[], None).unwrap();
    until_given(&world, "/hold");
    held.reset();
    until_failed(&world, &site, "cancelled");
    assert_eq!(client.get("/next").body, "/next 0");
    site.stop();
}

#[test]
fn an_answer_whose_client_takes_it_back_ends_in_the_app_too() {
    let world = World::new();
    let site = site(&world, "", "workers = 1");
    let client = Client::connect(&site, 65_535);
    let asked = client.ask(("GET", "/endless"), &[], None).unwrap();
    let response = client.begun(asked).unwrap();
    let mut body = response.into_body();
    assert!(!client.piece(&mut body, true).unwrap().unwrap().is_empty());
    // Dropped, its stream is reset.
    drop(body);
    assert_eq!(client.get("/next").body, "/next 0");
    // A client that leaves does the same to all its requests.
    let asked = client.ask(("GET", "/endless"), &[], None).unwrap();
    let _body = client.begun(asked).unwrap();
    client.leave();
    assert_eq!(site.get("/then").text(), "/then 0");
    site.stop();
}

#[test]
fn a_full_queue_and_a_lost_worker_are_answers_and_the_connection_goes_on() {
    let world = World::new();
    let site = site(&world, "", "workers = 1\nqueue = 1");
    let client = Client::connect(&site, 65_535);
    let held = client.ask(("GET", "/hold"), &[], None).unwrap();
    until_given(&world, "/hold");
    let waits = client.ask(("GET", "/die"), &[], None).unwrap();
    wait::until("it waits", || {
        let active = "hob_http_active{mount=\"/\"} 2\n";
        site.control(&world, "/metrics").text().contains(active).then_some(())
    });
    let refused = client.get("/refused");
    assert_eq!((refused.status, &refused.headers["retry-after"]), (503, &"1".parse().unwrap()));
    world.file("go", "");
    assert_eq!(client.answer(held).unwrap().body, "/hold 0");
    let lost = client.answer(waits).unwrap();
    assert_eq!((lost.status, lost.body.as_str()), (502, "the app ended before it answered\n"));
    assert_eq!(client.get("/next").body, "/next 0");
    assert_eq!(given(&world), "/hold\n/die\n/next\n");
    site.stop();
}

#[test]
fn a_site_that_stops_answers_what_it_has_begun_and_takes_no_more() {
    let world = World::new();
    let site = site(&world, "", "workers = 2");
    let mut client = Client::connect(&site, 65_535);
    let held = client.ask(("GET", "/hold"), &[], None).unwrap();
    until_given(&world, "/hold");
    site.signal(Signal::TERM);
    wait::until("it refuses", || client.ask(("GET", "/late"), &[], None).err());
    world.file("go", "");
    assert_eq!(client.answer(held).unwrap().body, "/hold 0");
    client.ended().expect("it ends well");
    site.stopped();
}
