//! Small functions, with good and bad heads.

use super::super::source::made_up;
use super::*;

fn faults_beside(text: &str, left: &[Left]) -> Vec<String> {
    let mut found = Found::default();
    check_beside(&[made_up("crates/x/src/a.rs", text)], left, &mut found);
    found.faults
}

fn faults(text: &str) -> Vec<String> {
    faults_beside(text, &[])
}

#[test]
fn parameters_that_are_tuples_are_found() {
    for bad in [
        "fn f((a, b): (u8, u8)) {}",
        "fn f<F: Fn(u8) -> u8>(f: F, (a, mut b): (u8, u8)) {}",
        "impl T {\n    fn f(&self, x: Map<u8, u8>, (a, (b, c)): (u8, (u8, u8))) {}\n}",
        "trait T { fn f(&self, &(a, b): &(u8, u8)) {} }",
        "macro_rules! m { () => { fn f((a, b): (u8, u8)) {} } }",
    ] {
        let found = faults(bad);
        assert!(found.len() == 1 && found[0].contains("`f` takes a tuple"), "{bad}: {found:?}");
    }
    assert_eq!(faults("fn f((a, b): (u8, u8), (c, d): (u8, u8)) {}").len(), 2);
    assert!(faults("\n\nfn f((a, b): (u8, u8)) {}")[0].starts_with("crates/x/src/a.rs:3:"));
}

#[test]
fn questions_that_act_or_do_not_say_are_found() {
    for bad in [
        "impl T { fn is_due(&mut self) -> bool { true } }",
        "fn is_due(self: &mut Self) -> bool { true }",
        "fn is_due(now: u64) {}",
        "fn has_room(now: u64) -> u64 { now }",
    ] {
        let found = faults(bad);
        assert!(found.len() == 1 && found[0].contains("has a verb"), "{bad}: {found:?}");
    }
}

#[test]
fn good_heads_traits_implementations_closures_and_tests_are_not() {
    for good in [
        "fn f(a: (u8, u8), P { a, b }: P) { g(|(a, b): (u8, u8)| a) }",
        "impl<T> Add<(u8, u8)> for A where T: for<'a> B<'a> { fn add(self, (a, b): (u8, u8)) {} }",
        "fn is_due(now: u64) -> Result<Option<bool>> { x }",
        "fn is_due<'a>(&'a self, of: &mut T) -> bool where T: U { true }",
        "fn f(is_due: fn(u8)) {}",
        "#[cfg(test)]\nmod t { fn f((a, b): (u8, u8)) {} fn is_due() {} }",
    ] {
        assert_eq!(faults(good), [""; 0], "{good}");
    }
}

#[test]
fn what_is_left_may_only_shrink() {
    let left = |tuples, names| [Left { place: "crates/x", tuples, names }];
    let text = "fn f((a, b): (u8, u8)) {}\nfn is_due() {}\n";
    assert_eq!(faults_beside(text, &left(1, 1)), [""; 0]);
    assert_eq!(faults_beside(text, &left(0, 1)).len(), 1);
    let found = faults_beside(text, &left(2, 2));
    assert!(found.len() == 2 && found[0].contains("1 tuples are left"), "{found:?}");
}
