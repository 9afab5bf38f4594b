//! An actor in another process, asked and told like one's own: `--rounds N` asks, one after the
//! other.

mod ipc;

use hob_actor::link::Messages;
use hob_actor::{Actor, Context, Handler, Message, Peers, System};

hob_actor::wire! {
    /// Is greeted.
    struct Greet { name: String }
}

impl Message for Greet {
    type Answer = String;
}

struct Greeter;

impl Actor for Greeter {}

impl Handler<Greet> for Greeter {
    fn handle(&mut self, Greet { name }: Greet, _: &mut Context<'_, Self>) -> String {
        format!("hello {name}, from process {}", std::process::id())
    }
}

fn messages() -> Messages {
    Messages::new().takes::<Greeter, Greet, _>("greeter.greet")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let about = "An actor in another process is asked and told like one's own.";
    let options = [("--rounds", "how many asks (1000)")];
    if !ipc::begins("remote_ask", about, &options)? {
        return Ok(());
    }
    let system = System::with_shards(1)?;
    if ipc::is_worker() {
        let peers = Peers::join(&system, messages())?;
        peers.publish("greeter", &system.spawn(Greeter));
        peers.until_drained();
        return Ok(());
    }
    let rounds = ipc::option("--rounds", 1000)?;
    let peers = Peers::start(&system, messages())?;
    let [worker] = peers.spawn_all(ipc::workers(1)?)?[..] else { return Err("one worker".into()) };
    let greeter = system.remote::<Greeter>(worker, "greeter")?;
    let process = peers.process(worker).ok_or("the worker has ended")?;
    let start = std::time::Instant::now();
    for round in 0..rounds {
        let answer = greeter.ask(Greet { name: round.to_string() }).wait()?;
        assert_eq!(answer, format!("hello {round}, from process {process}"), "its own answer");
    }
    let elapsed = start.elapsed();
    let worker_kib = ipc::memory_kib(&[process]);
    peers.drain();
    ipc::tell("remote_ask", (rounds, elapsed), &[("worker_kib", worker_kib)])?;
    Ok(())
}
