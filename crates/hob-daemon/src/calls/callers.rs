//! What callers do after their call: signals, reports of cold runs, answers that they had, leaving;
//! and what a learning run left.

use hob_core::event::{ColdTiming, Event, Lesson as Told};
use hob_core::ids::{CallId, ProgramId, Time};
use hob_core::phase::Mark;
use hob_os::clock;
use hob_wire::call::{ColdEnded, Received, Usage};
use hob_wire::exit::Exit;
use hob_wire::strings::Strings;

use crate::calls::Calls;
use crate::ctx::Ctx;
use crate::inputs::CallerEvent;
use crate::recorder::ring;
use crate::warm::lesson::Lesson;

/// Signals that wait for a call to be given.
const SIGNALS_WAITING_MAX: usize = 64;

impl Calls {
    pub(crate) fn caller(&mut self, ctx: &mut Ctx<'_>, call: CallId, event: CallerEvent) {
        let Some(entry) = self.ledger.get(call) else { return };
        match event {
            CallerEvent::Signal(signal) => match entry.worker {
                Some(worker) if entry.settled.is_none() && !entry.has_had(signal) => {
                    ctx.hands.signal(worker, signal.number);
                }
                Some(_) => {}
                None if entry.signals.len() < SIGNALS_WAITING_MAX => {
                    entry.signals.push(signal.number);
                }
                None => {}
            },
            CallerEvent::ColdEnded(ended) => self.cold_ended(ctx, call, ended),
            // The worker's own word may still be on its way.
            CallerEvent::Received(received) => {
                entry.answered = true;
                // It was so when the caller said it, whenever that is heard here.
                let Received { exit, at_ns } = received;
                for mark in [Mark::Settled, Mark::Ended] {
                    entry.marks.stamp_as_told(mark, Time(at_ns));
                    ring::edge(call, mark, at_ns);
                }
                if let Some(worker) = entry.worker {
                    ctx.events.push_back(Event::Finished { worker, exit });
                }
            }
            CallerEvent::Gone { at_ns } => {
                entry.caller_gone = true;
                entry.stamp(Mark::Ended, at_ns);
                // Nobody will say that its learning run has ended.
                if let Some(path) = entry.notes.take() {
                    self.learn(ctx, call, &path);
                }
                ctx.events.push_back(Event::CallerGone { call });
                self.closing.push(call);
            }
        }
    }

    fn cold_ended(&mut self, ctx: &mut Ctx<'_>, call: CallId, ended: ColdEnded) {
        let Some(entry) = self.ledger.get(call) else { return };
        entry.usage = Some(Usage { ..ended.usage });
        entry.stamp(Mark::Main, ended.main_ns);
        entry.stamp(Mark::Finished, ended.finished_ns);
        let notes = entry.notes.take();
        let timing = if ended.timed_out { ColdTiming::TimedOut } else { ColdTiming::InTime };
        if let Some(path) = notes {
            self.learn(ctx, call, &path);
        }
        let exit: Exit = ended.exit;
        ctx.events.push_back(Event::ColdEnded { call, exit, timing });
    }

    /// Writes the receipt of a call if nothing of it is outstanding.
    pub(crate) fn close(&mut self, ctx: &mut Ctx<'_>, call: CallId) {
        if let Some(entry) = self.ledger.close_if_complete(call, Time(clock::now_ns())) {
            self.record(ctx, call, &entry);
        }
    }

    /// What a learning run left; the file is gone afterwards.
    fn learn(&mut self, ctx: &mut Ctx<'_>, call: CallId, path: &std::path::Path) {
        let notes = std::fs::read(path).ok();
        let _ = std::fs::remove_file(path);
        let Some(entry) = self.ledger.get(call) else { return };
        let program = entry.program;
        let Some(notes) = notes.filter(|notes| notes.ends_with(b"\0")) else {
            return nothing_learned(ctx, program);
        };
        let notes: Strings = notes[..notes.len() - 1].split(|byte| *byte == 0).collect();
        self.learned(ctx, call, program, (Lesson::default(), &notes));
    }

    /// A program was seen to load what the notes of this call say, beside what was known before.
    pub(super) fn learned(
        &mut self,
        ctx: &mut Ctx<'_>,
        call: CallId,
        program: ProgramId,
        (mut lesson, notes): (Lesson, &Strings),
    ) {
        if let Some(open) = self.ledger.get(call) {
            open.profiles = false;
        }
        let entry = ctx.warm.programs.entry(program);
        let _ = lesson.take(notes, entry.runtime.row().variables);
        entry.lesson = Some(lesson);
        let key = self.plant(ctx, call);
        ctx.events.push_back(Event::Learned { program, lesson: Told::Notes, key });
    }
}

/// A profiling run has left nothing: its program was ended from outside, or left without a word.
pub(super) fn nothing_learned(ctx: &mut Ctx<'_>, program: ProgramId) {
    ctx.events.push_back(Event::Learned { program, lesson: Told::Nothing, key: None });
    ctx.warm.programs.entry(program).lesson = Some(Lesson::default());
}
