//! A handler for `hob ask` and `hob tell`, in Rust. Beside a `hob.toml` with
//!
//! ```toml
//! [program.greeter]
//! runtime = "native"
//! handler = "target/release/examples/greeter"
//! ```
//! build it, run `hob trust`, and then `hob ask greeter you`.

use hob_actor::{Actor, Context, Handler, System};
use hob_worker::{self as worker, Answer, Incoming};

/// Has state, so it is an actor; a closure and [`worker::serve`] would do too.
#[derive(Default)]
struct Greeter {
    greeted: u64,
}

impl Actor for Greeter {}

impl Handler<Incoming> for Greeter {
    fn handle(&mut self, message: Incoming, _: &mut Context<'_, Self>) -> Result<Answer, String> {
        let name = String::from_utf8(message.into_payload()).map_err(|why| why.to_string())?;
        self.greeted += 1;
        Ok(format!("hello {name}, you are number {}", self.greeted).into())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let system = System::with_shards(1)?;
    worker::serve_actor(&system.spawn(Greeter::default()))?;
    Ok(())
}
