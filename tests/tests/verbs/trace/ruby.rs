//! Spans that programs in Ruby make themselves (`Hob.span`), as `hob trace` has them.

use hob_tests::site::Site;
use hob_tests::{World, wait};
use serde_json::{Value, json};

use super::spans::{of_requests, own, trace};
use crate::messages::{ask, trusted};

const CLIENT: &[u8] = include_bytes!("../../../../clients/ruby/hob.rb");
/// It does what its words say.
const SCRIPT: &str = r#"require_relative "hob"
def named(name)
  Hob.span(name) { Hob.span("inner") { 7 } }
end
ARGV.each do |word|
  case word
  when "many" then 100_000.times { Hob.span("x") { nil } }
  when "fork"
    Hob.span("forked") { Process.wait(fork { named("of the child") }) }
  when "thread"
    Hob.span("main") { Thread.new { named("of the thread") }.join }
  when "odd"
    ["", "\0 \e[31m<b>\xff", :symbol, nil, "ä" * 1000].each do |name|
      named(name)
      # What begins in the same microsecond is in the order of its depth.
      sleep(0.0001)
    end
  when "raise"
    begin
      Hob.span("raises") { raise "x" }
    rescue RuntimeError
      Hob.span("behind") { nil }
    end
  when "exit" then Hob.span("left") { exit!(0) }
  when "end" then Hob.span("ended") { exit(0) }
  when "spoil" then Hob::SPANS_OF_THIS_CALL.replace([7])
  else print named(word)
  end
end
"#;

/// A world in which the script is warm.
fn warm() -> World {
    let world = World::started();
    world.file("hob.rb", CLIENT);
    world.file("s.rb", SCRIPT);
    wait::until("the script is warm with what it loads", || {
        let run = world.hob(&["run", "ruby", "s.rb", "first"]).go();
        run.succeeded();
        assert_eq!(run.text(), "7");
        (own(&trace(&world)) == [json!(["first", 0, false]), json!(["inner", 1, false])])
            .then_some(())
    });
    world
}

fn spans_of(world: &World, words: &[&str]) -> (Vec<Value>, u64) {
    let run = world.warm(&world.hob(&["run", "ruby", "s.rb"]).args(words), |_| {});
    assert_eq!(run.complaint(), "");
    let trace = trace(world);
    assert_eq!(trace["receipt"]["warm"], true, "{trace}");
    (own(&trace), trace["dropped"].as_u64().unwrap())
}

#[test]
fn a_program_in_ruby_says_what_its_time_went_into() {
    let world = warm();
    let check = |words: &[&str], want: &[(&str, u64, bool)]| {
        let want: Vec<Value> =
            want.iter().map(|(name, depth, open)| json!([name, depth, open])).collect();
        assert_eq!(spans_of(&world, words), (want, 0), "{words:?}");
    };
    check(&["thread"], &[("main", 0, false), ("of the thread", 0, false), ("inner", 1, false)]);
    check(&["fork"], &[("forked", 0, false)]);
    check(&["raise"], &[("raises", 0, false), ("behind", 0, false)]);
    check(&["end"], &[("ended", 0, false)]);
    // Its process leaves at once, and the child's spans were not the call's.
    check(&["exit"], &[]);
    check(&["spoil"], &[]);
    let long = "ä".repeat(24);
    check(
        &["odd"],
        &[
            ("", 0, false),
            ("inner", 1, false),
            ("  \u{1b}[31m<b>\u{fffd}", 0, false),
            ("inner", 1, false),
            ("symbol", 0, false),
            ("inner", 1, false),
            ("", 0, false),
            ("inner", 1, false),
            (&long, 0, false),
            ("inner", 1, false),
        ],
    );
    let (many, dropped) = spans_of(&world, &["many"]);
    assert_eq!((many.len(), dropped), (256, 100_000 - 256));
    assert!(many.iter().all(|span| *span == json!(["x", 0, false])), "{:?}", many.last());
}

#[test]
fn a_handler_in_ruby_has_spans_of_its_own() {
    let world = World::new();
    world.file("hob.rb", CLIENT);
    let handler = "require_relative 'hob'\n\
        def told(payload)\n  Hob.span('told ' + payload) { Hob.span('inner') { payload } }\nend\n";
    world.file("told.rb", handler);
    trusted(&world, "[program.told]\nhandler = \"told.rb:told\"\n");
    for word in ["one", "two"] {
        assert_eq!(ask(&world, &["told", word]), word);
        let spans = own(&trace(&world));
        assert_eq!(spans, [json!([format!("told {word}"), 0, false]), json!(["inner", 1, false])]);
    }
}

#[test]
fn requests_of_a_rack_app_have_their_spans() {
    let world = World::new();
    world.file("hob.rb", CLIENT);
    world.file(
        "config.ru",
        "require_relative 'hob'\n\
         run ->(env) { Hob.span(env['PATH_INFO']) { Hob.span('inner') { [200, {}, ['fine']] } } }\n",
    );
    trusted(&world, "[mount.\"/\"]\nrack = \"config.ru\"\nisolation = \"fork\"\n");
    let site = Site::serve(&world, &["."]);
    for path in ["/a", "/b"] {
        assert_eq!(site.get(path).text(), "fine");
    }
    let spans = |path: &str| json!([[path, 0, false], ["inner", 1, false]]);
    assert_eq!(of_requests(&world, 2), [spans("/a"), spans("/b")]);
    site.stop();
}
