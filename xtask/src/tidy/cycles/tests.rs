//! Small crates, with and without a cycle.

use super::super::source::made_up;
use super::*;

fn faults(files: &[(&str, &str)], known: &[Known]) -> Vec<String> {
    let path = |file: &str| format!("crates/x/src/{file}");
    let sources: Vec<Source> =
        files.iter().map(|(file, text)| made_up(&path(file), text)).collect();
    let mut found = Found::default();
    check_beside(&sources, known, &mut found);
    found.faults
}

const ROOT: (&str, &str) = ("lib.rs", "mod a;\nmod b;\npub struct Top;\n");

#[test]
fn one_direction_is_no_cycle() {
    let files = [ROOT, ("a.rs", "use crate::b::B;\nfn a(b: B) {}\n"), ("b.rs", "pub struct B;\n")];
    assert_eq!(faults(&files, &[]), [""; 0]);
}

#[test]
fn files_that_know_one_another_are_found_however_they_say_it() {
    for back in [
        "use super::a::A;",
        "use super::a::{self as other, A};",
        "use crate::{Top, a::A};",
        "fn f() { crate::a::f(1); }",
        "use crate::a; fn f() { a::f(1); }",
        "fn f() { assert!(super::a::f(1)); }",
        "fn f() { use crate::a::*; A.g(); }",
        "impl crate::a::T for B {}",
    ] {
        let b = format!("pub struct B;\n{back}\n");
        let files = [ROOT, ("a.rs", "use crate::b::B;\npub struct A;\n"), ("b.rs", &b)];
        let found = faults(&files, &[]);
        assert_eq!(found.len(), 1, "{back}: {found:?}");
        assert!(found[0].starts_with("crates/x/src/: a.rs b.rs: a cycle"), "{found:?}");
        assert!(found[0].contains("\n    a.rs names crate::b::B, of b.rs"), "{found:?}");
    }
}

#[test]
fn what_only_looks_like_a_path_is_none() {
    for back in [
        "// crate::a::A",
        "fn f() { say(\"crate::a::A\"); }",
        "#[cfg(test)]\nmod tests { use crate::a::A; }",
        "#[cfg(test)]\nuse crate::a::{A};",
        "#[cfg(test)]\nfn f() { crate::a::f(1); }",
        "use crate::Top;",
        "use other::a::A;",
    ] {
        let b = format!("pub struct B;\n{back}\n");
        let files = [ROOT, ("a.rs", "use crate::b::B;\npub struct A;\n"), ("b.rs", &b)];
        assert_eq!(faults(&files, &[]), [""; 0], "{back}");
    }
}

#[test]
fn an_item_is_followed_through_those_who_hand_it_on() {
    let root = ("lib.rs", "mod a;\nmod b;\npub use a::A;\npub use b::inner::*;\n");
    let b = ("b/mod.rs", "pub mod inner;\n");
    let inner = ("b/inner.rs", "use crate::A;\npub struct Deep;\n");
    let a = ("a.rs", "use crate::Deep;\npub struct A;\n");
    let found = faults(&[root, a, b, inner], &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("b/inner.rs names crate::A, of a.rs"), "{found:?}");
    // One who only hands it on knows nothing.
    assert_eq!(faults(&[root, ("a.rs", "pub struct A;\n"), b, inner], &[]), [""; 0]);
}

#[test]
fn a_folder_is_one_of_the_modules_beside_it() {
    // No two files know one another, but the folder and the file do.
    let a = ("a.rs", "use crate::b::low::Low;\npub struct A;\n");
    let b = ("b/mod.rs", "mod high;\npub mod low;\n");
    let high = ("b/high.rs", "use crate::a::A;\n");
    let low = ("b/low.rs", "pub struct Low;\n");
    let found = faults(&[ROOT, a, b, high, low], &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("crates/x/src/: a.rs b: a cycle"), "{found:?}");
}

#[test]
fn what_a_mod_rs_writes_belongs_to_its_folder() {
    let a = ("a.rs", "");
    let b = ("b/mod.rs", "mod low;\npub struct B;\nfn f() { low::g(); }\n");
    assert_eq!(faults(&[ROOT, a, b, ("b/low.rs", "use super::B;\n")], &[]), [""; 0]);
    // Between those below it the rule holds.
    let b = ("b/mod.rs", "mod low;\nmod high;\n");
    let low = ("b/low.rs", "use super::high::High;\npub struct Low;\n");
    let high = ("b/high.rs", "pub struct High(super::low::Low);\n");
    let found = faults(&[ROOT, a, b, low, high], &[]);
    assert!(found.len() == 1 && found[0].starts_with("crates/x/src/b/: high.rs low.rs: a cycle"));
}

#[test]
fn a_known_cycle_is_passed_over_and_one_that_is_gone_is_a_fault() {
    let known = [Known { home: "crates/x", folder: "", modules: &["a.rs", "b.rs"], reason: "" }];
    let a = ("a.rs", "use crate::b::B;\npub struct A;\n");
    assert_eq!(faults(&[ROOT, a, ("b.rs", "pub struct B(crate::a::A);\n")], &known), [""; 0]);
    let found = faults(&[ROOT, a, ("b.rs", "pub struct B;\n")], &known);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("crates/x/src/: a.rs b.rs: no such cycle is left"), "{found:?}");
}

#[test]
fn a_file_that_cannot_be_read_as_code_is_a_fault() {
    let found = faults(&[ROOT, ("a.rs", "fn a() {\n"), ("b.rs", "")], &[]);
    assert!(found.len() == 1 && found[0].starts_with("crates/x/src/a.rs: "), "{found:?}");
    let found = faults(&[("lib.rs", "mod a;\n")], &[]);
    assert!(found.len() == 1 && found[0].contains("`mod a` has no file"), "{found:?}");
}
