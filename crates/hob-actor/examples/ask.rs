//! One actor asks another: what an ask and its answer cost, beside a thread that asks.
//!
//! `--messages N` asks, `--ask N` of them open at once; `--nodes 2` puts the two actors on shards
//! of their own, so that each turn's asks travel together. `--rounds N` repeats all of it.

mod ring;

use std::time::Instant;

use hob_actor::{Actor, Address, AskError, AsyncHandler, Context, Handler, Mail, Message, System};
use ring::{Line, Options, Progress};

struct Double(u64);
impl Message for Double {
    type Answer = u64;
}

/// Ask so many times, so many at once.
struct Run {
    asks: u64,
    at_once: u64,
}
impl Message for Run {
    type Answer = Result<u64, AskError>;
}

struct Doubles;
impl Actor for Doubles {}
impl Handler<Double> for Doubles {
    fn handle(&mut self, Double(n): Double, _: &mut Context<'_, Self>) -> u64 {
        n * 2
    }
}

struct Asker(Address<Doubles>);
impl Actor for Asker {}
impl AsyncHandler<Run> for Asker {
    fn handle(
        &mut self,
        run: Run,
        cx: &mut Context<'_, Self>,
    ) -> impl Future<Output = Result<u64, AskError>> + 'static {
        let (this, to) = (cx.this(), self.0.clone());
        async move {
            let mut sum = 0;
            let mut open = std::collections::VecDeque::new();
            for n in 0..run.asks {
                open.push_back(this.ask(&to, Double(n)));
                if open.len() as u64 == run.at_once
                    && let Some(oldest) = open.pop_front()
                {
                    sum += oldest.await?;
                }
            }
            for ask in open {
                sum += ask.await?;
            }
            Ok(sum)
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let otherwise = Options { rounds: 1, nodes: 1, messages: 1_000_000, ask: 16 };
    let about = "One actor asks another: what an ask and its answer cost.";
    let Some(options) = Options::read("ask", about, otherwise)? else { return Ok(()) };
    let progress = Progress::start("ask");
    let system = System::with_shards(usize::try_from(options.nodes)?)?;
    let mail = Mail::bounded(u32::try_from(options.ask.max(1024))?);
    let doubles = system.spawn_on(1, mail, || Doubles);
    let to = doubles.clone();
    let asker = system.spawn_on(0, Mail::default(), move || Asker(to));
    let (asks, at_once) = (options.messages, options.ask);
    let started = Instant::now();
    for round in 0..options.rounds {
        progress.say(&format!("round {round}"));
        let sum = asker.ask(Run { asks, at_once }).wait()??;
        assert_eq!(sum, asks * asks.saturating_sub(1), "every ask was answered");
    }
    let elapsed = started.elapsed();
    let from_thread = Instant::now();
    const THREAD_ASKS: u32 = 1000;
    for n in 0..THREAD_ASKS {
        doubles.ask(Double(u64::from(n))).wait()?;
    }
    let from_thread = from_thread.elapsed() / THREAD_ASKS;
    drop(progress);
    Line::of("ask", &options, elapsed, asks * options.rounds)
        .with("from_a_thread_ns", from_thread.as_nanos())
        .print()?;
    Ok(())
}
