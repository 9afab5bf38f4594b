//! A native worker, as a user would write one: what it does is the first word of its message. A
//! copy of it that is called `actor` answers by an actor.

use std::time::Duration;

use hob_actor::{Actor, AsyncHandler, Context, Handler, Message, System};
use hob_worker::{self as worker, Answer, Incoming, Manner, Worker};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let own = std::env::args_os().next().unwrap_or_default();
    let name = std::path::Path::new(&own).file_name().unwrap_or_default();
    if name == "actor" {
        let system = System::start()?;
        let doubler = system.spawn(Doubler);
        worker::serve_actor(&system.spawn(Front { doubler, asked: 0 }))?;
        return Ok(());
    }
    let mut count = 0;
    Ok(Worker::new().reads("config").serve(|message| answer(&message, &mut count))?)
}

#[expect(clippy::print_stdout, reason = "what a handler prints is tested")]
fn answer(message: &Incoming, count: &mut u64) -> Result<Answer, String> {
    *count += 1;
    let text = String::from_utf8_lossy(message.payload()).into_owned();
    let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
    match word {
        "echo" => Ok(message.payload()[5..].to_vec().into()),
        "count" => Ok(format!("{} {count}", std::process::id()).into()),
        "about" => about(message),
        "print" => {
            println!("printed {rest}");
            Ok(().into())
        }
        "span" => {
            let outer = hob_worker::span("outer");
            drop(hob_worker::span(rest.to_owned()));
            drop(outer);
            Ok(().into())
        }
        "fail" => Err(format!("it said\n{rest}")),
        "panic" => panic!("as asked: {rest}"),
        "huge" => Ok(vec![0; 1 << 20].into()),
        "exit" => end(),
        "kill" => Err(format!("{:?}", kill())),
        // A copy differs from another one in what is appended to it.
        "build" => Ok(build().into()),
        "config" => Ok(std::fs::read("config").unwrap_or_default().into()),
        "append" => append(rest, message),
        "hang" => {
            std::fs::write(rest, std::process::id().to_string()).map_err(|why| why.to_string())?;
            loop {
                std::thread::park();
            }
        }
        _ => Err(format!("{word}: what is that?")),
    }
}

fn about(message: &Incoming) -> Result<Answer, String> {
    let about = serde_json::json!({
        "kind": match message.manner() { Manner::Ask => "ask", Manner::Tell => "tell" },
        "type": message.content_type(),
        "timed": message.remaining().is_some_and(|left| left <= Duration::from_secs(60)),
        "key": message.key().map(String::from_utf8_lossy),
        "cwd": std::env::current_dir().map_err(|why| why.to_string())?,
        "mine": std::env::var("MINE").ok(),
        "token": std::env::var("TOKEN").ok(),
        "stdin": std::io::read_to_string(std::io::stdin()).map_err(|why| why.to_string())?,
    });
    Ok(Answer::json(about.to_string()))
}

#[expect(clippy::exit, clippy::disallowed_methods, reason = "a handler that does this is tested")]
fn end() -> ! {
    std::process::exit(3)
}

fn kill() -> rustix::io::Result<()> {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
}

fn build() -> String {
    let own = std::fs::read("/proc/self/exe").unwrap_or_default();
    String::from_utf8_lossy(&own[own.len().saturating_sub(5)..]).into_owned()
}

/// One line a message: what was told.
fn append(path: &str, message: &Incoming) -> Result<Answer, String> {
    use std::io::Write as _;
    let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
    let line = format!("{} {:?}\n", message.id(), message.manner());
    file.and_then(|mut file| file.write_all(line.as_bytes())).map_err(|why| why.to_string())?;
    Ok(().into())
}

struct Double(u64);

impl Message for Double {
    type Answer = u64;
}

struct Doubler;

impl Actor for Doubler {}

impl Handler<Double> for Doubler {
    fn handle(&mut self, Double(number): Double, _: &mut Context<'_, Self>) -> u64 {
        assert_ne!(number, 13, "not that one");
        number * 2
    }
}

/// Asks another actor before it answers.
struct Front {
    doubler: hob_actor::Address<Doubler>,
    asked: u64,
}

impl Actor for Front {}

impl AsyncHandler<Incoming> for Front {
    fn handle(
        &mut self,
        message: Incoming,
        cx: &mut Context<'_, Self>,
    ) -> impl Future<Output = Result<Answer, String>> + 'static {
        self.asked += 1;
        let (asked, timed) = (self.asked, cx.remaining().is_some());
        let text = String::from_utf8_lossy(message.payload()).into_owned();
        let ask = text.parse().map(|number| cx.ask(&self.doubler, Double(number)));
        async move {
            let ask = ask.map_err(|why| format!("{text}: {why}"))?;
            let doubled = ask.await.map_err(|why| why.to_string())?;
            Ok(format!("{doubled} {asked} {timed}").into())
        }
    }
}
