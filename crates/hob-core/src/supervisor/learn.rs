//! Programs: learned, not learned after all, stale, slower warm.

use crate::event::{Effect, Lesson, Took};
use crate::ids::ProgramId;
use crate::isolation::Name;
use crate::key::Key;
use crate::outcome::ColdReason;
use crate::pace::Pacing;

use super::drain::Stage;
use super::tables::{LessonState, Program, Wish};
use super::{Supervisor, Timer};

impl Supervisor {
    pub(super) fn learned(
        &mut self,
        id: ProgramId,
        lesson: Lesson,
        key: Option<Key>,
        out: &mut Vec<Effect>,
    ) {
        self.remember_program(id);
        let Some(program) = self.programs.get_mut(&id) else {
            return;
        };
        let wish = match program.lesson {
            LessonState::Learning(run) => run.wish,
            LessonState::Learned(wish) => wish,
            LessonState::None | LessonState::Stale => Wish::default(),
        };
        match lesson {
            Lesson::Notes => {
                program.nothings = 0;
                program.lesson = LessonState::Learned(wish);
                self.timers.set(Timer::Program(id), None);
            }
            Lesson::Nothing => self.count_nothing(id),
        }
        let learned = self
            .programs
            .get(&id)
            .is_some_and(|program| matches!(program.lesson, LessonState::Learned(_)));
        if let (true, Some(key), Stage::Open) = (learned, key, self.stage) {
            self.warm_up(id, key, wish, out);
        }
    }

    /// Begins the pool before a call asks for it, so that the second call can be warm.
    fn warm_up(&mut self, id: ProgramId, key: Key, wish: Wish, out: &mut Vec<Effect>) {
        let failing = self.programs.get(&id).is_some_and(|program| {
            program.failed_until.is_some_and(|until| until > self.now)
                || program.pace.is_given_up(self.now)
        });
        let recipe = self.recipe(id, wish);
        if failing || recipe.name() == Name::Spawn {
            return;
        }
        if let Some(pool) = self.pool_for(id, key, recipe, out) {
            self.begin_pool(pool, wish.ahead);
        }
    }

    /// A learning run left nothing. A program that never leaves anything counts as learned: there
    /// is nothing to preload but the interpreter itself.
    fn count_nothing(&mut self, id: ProgramId) {
        self.timers.set(Timer::Program(id), None);
        let Some(program) = self.programs.get_mut(&id) else {
            return;
        };
        let LessonState::Learning(run) = program.lesson else {
            return;
        };
        program.nothings += 1;
        let enough = program.nothings >= self.limits.lessons_max;
        program.lesson = if enough { LessonState::Learned(run.wish) } else { LessonState::None };
    }

    /// The notes of an ended learning run are overdue.
    pub(super) fn learning_due(&mut self, id: ProgramId) {
        self.count_nothing(id);
    }

    pub(super) fn stale(&mut self, id: ProgramId, out: &mut Vec<Effect>) {
        self.remember_program(id);
        let mut fresh = Program::new(self.now);
        fresh.lesson = LessonState::Stale;
        self.programs.insert(id, fresh);
        self.timers.set(Timer::Program(id), None);
        self.drop_pools_of(id, ColdReason::Stale, out);
    }
    /// A call of the program has ended by itself, and took so long.
    pub(super) fn measured(&mut self, id: ProgramId, took: Took, out: &mut Vec<Effect>) {
        let Some(program) = self.programs.get_mut(&id) else {
            self.ignore();
            return;
        };
        match program.pace.take(self.now, took, &self.limits) {
            Pacing::AsBefore => {}
            Pacing::Slower => self.drop_pools_of(id, ColdReason::SlowerWarm, out),
        }
    }

    /// Whether the program's calls run cold because they were slower warm.
    #[must_use]
    pub fn is_slower_warm(&self, program: ProgramId) -> bool {
        self.programs.get(&program).is_some_and(|program| program.pace.is_cold(self.now))
    }
}
