//! Receipts of requests that the front answers itself.

use std::collections::BTreeMap;

use hob_tests::{World, wait};
use serde_json::Value;

use super::{commit, serve, world};

/// The receipts of the front, once they stand for so many requests.
fn told(world: &World, requests: u64) -> Vec<Value> {
    wait::until("their receipts", || {
        let all = world.records(400);
        let of_front: Vec<_> = all.into_iter().filter(|each| each["reason"] == "front").collect();
        let told: u64 = of_front.iter().map(stands_for).sum();
        assert!(told <= requests, "{told} of {requests}");
        (told == requests).then_some(of_front)
    })
}

fn stands_for(receipt: &Value) -> u64 {
    receipt["message"]["stands_for"].as_u64().unwrap()
}

fn phases(receipt: &Value) -> Vec<&str> {
    let phases = receipt["phases"].as_array().unwrap();
    phases.iter().map(|phase| phase["name"].as_str().unwrap()).collect()
}

#[test]
fn a_file_of_a_repository_has_a_receipt_that_says_where_its_time_went() {
    let world = world("");
    commit(&world, "acme", &[("f", b"0123456789")]);
    let site = serve(&world);
    let tag = site.get("/git/blob/acme/main?path=f").header("etag").unwrap().to_owned();
    let receipt = told(&world, 1).remove(0);
    assert_eq!(phases(&receipt), ["head", "queue", "ref", "object", "write"], "{receipt}");
    assert_eq!(receipt["program"]["name"], "/git");
    assert_eq!((&receipt["warm"], &receipt["isolation"]), (&false.into(), &"front".into()));
    let said = &receipt["message"];
    assert_eq!((&said["status"], &said["bytes"]), (&200.into(), &10.into()), "{receipt}");
    assert_eq!(said["protocol"], "HTTP/1.1");
    assert!(said.get("rights").is_none(), "{receipt}");
    // What the client has is not read.
    let has = format!("If-None-Match: {tag}\r\n");
    assert_eq!(site.ask("GET", "/git/blob/acme/main?path=f", &has, b"").status, 304);
    let kept = told(&world, 2).into_iter().find(|each| each["message"]["status"] == 304).unwrap();
    assert_eq!(phases(&kept), ["head", "queue", "ref", "write"], "{kept}");
    let shown = world.hob(&["log"]).go().text();
    assert!(shown.contains("front") && !shown.contains("not run"), "{shown}");
    let gain = world.hob(&["gain"]).go().text();
    assert!(!gain.contains("/git"), "nothing was saved: {gain}");
    site.stop();
}

#[test]
fn receipts_stand_for_each_request_once() {
    let world = world("");
    commit(&world, "acme", &[("f", b"0123456789")]);
    let site = serve(&world);
    let mut kept = site.keep();
    for _ in 0..300 {
        assert_eq!(kept.get("/git/blob/acme/main?path=f").status, 200);
        assert_eq!(kept.get("/git/blob/acme/main?path=none").status, 404);
    }
    let mut by_status = BTreeMap::new();
    let receipts = told(&world, 600);
    for receipt in &receipts {
        let status = receipt["message"]["status"].as_u64().unwrap();
        *by_status.entry(status).or_insert(0) += stands_for(receipt);
    }
    assert_eq!(by_status, BTreeMap::from([(200, 300), (404, 300)]));
    site.stop();
}
