//! cargo run -- NAME...: an actor that counts whom it greets.

use std::io::Write as _;

use hob_actor::{Actor, Context, Handler, Message, System};

/// Greet somebody; the answer is what is said.
#[derive(Message)]
#[answer(String)]
struct Greet(String);

/// State that is touched by its own messages alone, one at a time.
struct Greeter {
    greeted: u64,
}

impl Actor for Greeter {}

impl Handler<Greet> for Greeter {
    fn handle(&mut self, Greet(name): Greet, _: &mut Context<'_, Self>) -> String {
        self.greeted += 1;
        format!("Hello, {name}! You are number {}.", self.greeted)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let system = System::start()?;
    let greeter = system.spawn(Greeter { greeted: 0 });
    for name in std::env::args().skip(1) {
        writeln!(std::io::stdout(), "{}", greeter.ask(Greet(name)).wait()?)?;
    }
    Ok(())
}

#[test]
fn each_is_greeted_by_a_number() -> Result<(), Box<dyn std::error::Error>> {
    let system = System::start()?;
    let greeter = system.spawn(Greeter { greeted: 0 });
    for (name, wanted) in
        [("Ada", "Hello, Ada! You are number 1."), ("Bob", "Hello, Bob! You are number 2.")]
    {
        assert_eq!(greeter.ask(Greet(name.into())).wait()?, wanted);
    }
    Ok(())
}
