//! `hob warm` before the first call: a JVM waits, and the first call has it.

use hob_tests::{End, Run, World};
use serde_json::Value;

use super::{compiled, javas, run};

const TELLS: &str = r#"
public class Tells {
    static { System.out.println("initialised"); }
    public static void main(String[] words) { System.out.println(words.length); }
}
"#;

/// The same call, to be made ready only.
fn ready(world: &World, call: &Run) -> Value {
    let words = call.command_line();
    let head = ["warm".as_ref(), "--json".as_ref()];
    let words: Vec<_> = head.into_iter().chain(words.iter().skip(4).map(AsRef::as_ref)).collect();
    let told = world.hob::<&std::ffi::OsStr>(&words).go();
    serde_json::from_slice(&told.out).unwrap_or_else(|why| panic!("{why}: {told:?}"))
}

#[test]
fn the_first_call_is_warm_and_its_class_is_initialised_by_it() {
    for java in javas() {
        let world = World::started();
        let classes = compiled(&world, "classes", "Tells", TELLS);
        let call = run(&world, &java, &["-cp", classes.to_str().unwrap(), "Tells", "a", "b"]);
        let told = ready(&world, &call);
        assert_eq!((&told["ready"], &told["reason"]), (&true.into(), &Value::Null), "{told}");
        assert_eq!(world.pools().len(), 1);
        let first = world.in_time(&call);
        assert_eq!(first.text(), "initialised\n2\n");
        assert_eq!(world.reason(first.pid), "standby-ready");
    }
}

#[test]
fn a_class_that_was_compiled_again_is_made_ready_again() {
    let world = World::started();
    let java = &javas()[0];
    let classes = compiled(&world, "classes", "Tells", TELLS);
    let call = run(&world, java, &["-cp", classes.to_str().unwrap(), "Tells"]);
    assert_eq!(ready(&world, &call)["ready"], true);
    compiled(&world, "classes", "Tells", &TELLS.replace("initialised", "compiled again"));
    let told = ready(&world, &call);
    assert_eq!(told["ready"], true, "{told}");
    let first = world.in_time(&call);
    assert_eq!(first.text(), "compiled again\n0\n");
    assert_eq!(world.reason(first.pid), "standby-ready");
}

#[test]
fn a_class_path_that_is_not_there_starts_a_jvm_that_serves_nobody_wrongly() {
    let world = World::started();
    let java = &javas()[0];
    let call = run(&world, java, &["-cp", "nowhere", "Tells"]);
    let told = ready(&world, &call);
    let cold = call.go();
    assert_ne!(cold.end, End::Code(0));
    assert!(cold.complaint().contains("Tells"), "{told} {cold:?}");
}
