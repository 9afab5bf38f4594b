//! What an asker hears of a panic: the text, whichever way the handler answers.
#![expect(clippy::unwrap_used, reason = "a test fails where its setup does")]
#![expect(clippy::manual_async_fn, reason = "a handler's future must not borrow its actor")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use hob_actor::{
    Actor, Address, AskError, AsyncHandler, Context, Handler, Message, PanicText, Reply,
    ReplyHandler, System,
};

/// For waits that a broken build would make endless. No test measures it.
const LONG: Duration = Duration::from_secs(120);

macro_rules! messages {
    ($($name:ident;)*) => {$(
        struct $name;
        impl Message for $name { type Answer = u64; }
    )*};
}

messages! { AtOnce; ByFuture; AfterAWait; ByReply; Keep; DropKept; CatchKept; ElsewhereKept; NoText; Fine; }

#[derive(Default)]
struct Baker {
    kept: Vec<Reply<u64>>,
}
impl Actor for Baker {
    fn stopped(&mut self) {
        let kept = std::mem::take(&mut self.kept);
        assert!(kept.is_empty(), "closed with open orders");
    }
}
impl Handler<AtOnce> for Baker {
    fn handle(&mut self, _: AtOnce, _: &mut Context<'_, Self>) -> u64 {
        panic!("no {} left", "bread")
    }
}
impl Handler<NoText> for Baker {
    fn handle(&mut self, _: NoText, _: &mut Context<'_, Self>) -> u64 {
        std::panic::panic_any(7_u8)
    }
}
impl Handler<Fine> for Baker {
    fn handle(&mut self, _: Fine, _: &mut Context<'_, Self>) -> u64 {
        1
    }
}
impl AsyncHandler<ByFuture> for Baker {
    fn handle(
        &mut self,
        _: ByFuture,
        _: &mut Context<'_, Self>,
    ) -> impl Future<Output = u64> + 'static {
        async { panic!("the oven is cold") }
    }
}
impl AsyncHandler<AfterAWait> for Baker {
    fn handle(
        &mut self,
        _: AfterAWait,
        cx: &mut Context<'_, Self>,
    ) -> impl Future<Output = u64> + 'static {
        let ask = cx.ask(&cx.address(), Fine);
        async move {
            let answer = ask.await;
            panic!("the oven went cold after {answer:?}")
        }
    }
}
impl ReplyHandler<ByReply> for Baker {
    fn handle(&mut self, _: ByReply, reply: Reply<u64>, _: &mut Context<'_, Self>) {
        let awaited = reply.is_awaited();
        panic!("awaited: {awaited}")
    }
}
impl ReplyHandler<Keep> for Baker {
    fn handle(&mut self, _: Keep, reply: Reply<u64>, _: &mut Context<'_, Self>) {
        self.kept.push(reply);
    }
}
impl Handler<DropKept> for Baker {
    fn handle(&mut self, _: DropKept, _: &mut Context<'_, Self>) -> u64 {
        let _all = std::mem::take(&mut self.kept);
        panic!("all orders are lost")
    }
}
impl Handler<CatchKept> for Baker {
    fn handle(&mut self, _: CatchKept, _: &mut Context<'_, Self>) -> u64 {
        let kept = std::mem::take(&mut self.kept);
        let caught = catch_unwind(AssertUnwindSafe(move || {
            let _all = kept;
            panic!("nobody's business")
        }));
        u64::from(caught.is_err())
    }
}
impl Handler<ElsewhereKept> for Baker {
    fn handle(&mut self, _: ElsewhereKept, _: &mut Context<'_, Self>) -> u64 {
        let kept = std::mem::take(&mut self.kept);
        let thread = std::thread::spawn(move || {
            let _all = kept;
            panic!("another thread's")
        });
        u64::from(thread.join().is_err())
    }
}

fn baker() -> (System, Address<Baker>) {
    let system = System::with_shards(1).unwrap();
    let baker = system.spawn(Baker::default());
    (system, baker)
}

fn said<T>(text: &str) -> Result<T, AskError> {
    Err(AskError::Panicked(text.into()))
}

#[test]
fn the_asker_hears_what_a_panic_says_however_the_message_is_handled() {
    let (_system, baker) = baker();
    assert_eq!(baker.ask(AtOnce).wait(), said("no bread left"));
    assert_eq!(baker.ask(ByFuture).wait(), said("the oven is cold"));
    assert_eq!(baker.ask(AfterAWait).wait(), said("the oven went cold after Ok(1)"));
    assert_eq!(baker.ask(ByReply).wait(), said("awaited: true"));
    let no_text = baker.ask(NoText).wait();
    assert_eq!(no_text, Err(AskError::Panicked(PanicText::default())));
    assert_eq!(baker.ask(Fine).wait(), Ok(1), "the actor goes on");
}

#[test]
fn the_error_shows_it_to_people() {
    let (_system, baker) = baker();
    let error = baker.ask(AtOnce).wait().unwrap_err();
    assert_eq!(error.to_string(), "the handler panicked: no bread left");
    let AskError::Panicked(text) = error else { panic!("{error:?}") };
    assert_eq!(text.text(), Some("no bread left"));
}

#[test]
fn every_reply_that_a_panic_drops_says_why() {
    let (_system, baker) = baker();
    let kept = [baker.ask(Keep), baker.ask(Keep)];
    assert_eq!(baker.ask(DropKept).wait(), said("all orders are lost"));
    for ask in kept {
        assert_eq!(ask.wait(), said("all orders are lost"));
    }
}

#[test]
fn a_panic_that_a_handler_catches_lends_no_text_to_the_next_one() {
    let (_system, baker) = baker();
    let kept = baker.ask(Keep);
    // All three are sent before the first is handled, or not; either way nothing is mixed up.
    let (caught, next) = (baker.ask(CatchKept), baker.ask(AtOnce));
    assert_eq!(caught.wait(), Ok(1));
    assert_eq!(next.wait(), said("no bread left"));
    assert_eq!(kept.wait(), Err(AskError::Panicked(PanicText::default())));
}

#[test]
fn a_panic_of_another_thread_is_told_without_a_text() {
    let (_system, baker) = baker();
    let kept = baker.ask_within(Keep, LONG);
    assert_eq!(baker.ask(ElsewhereKept).wait(), Ok(1));
    assert_eq!(kept.wait(), Err(AskError::Panicked(PanicText::default())));
}

#[test]
fn an_actor_that_panics_at_its_end_says_why_to_those_who_wait() {
    let (system, baker) = baker();
    let kept = baker.ask_within(Keep, LONG);
    baker.stop();
    assert_eq!(kept.wait(), said("closed with open orders"));
    let other = system.spawn(Baker::default());
    let kept = other.ask_within(Keep, LONG);
    assert_eq!(other.ask(Fine).wait(), Ok(1));
    system.shutdown();
    assert_eq!(kept.wait(), said("closed with open orders"));
}
