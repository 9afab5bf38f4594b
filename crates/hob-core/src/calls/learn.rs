//! Programs: learned, not learned after all, stale, slower warm.

use super::pace::{Pace, Pacing};
use crate::event::{Aim, Lesson, Took};
use crate::ids::ProgramId;
use crate::isolation::Name;
use crate::key::Key;
use crate::outcome::ColdReason;

use crate::pool::engine::{Engine, Stage};
use crate::pool::timers::Timer;
use crate::terms::Terms;

use super::Calls;
use super::tables::{LessonState, Program, Wish};

impl Calls {
    pub(crate) fn learned(
        &mut self,
        engine: &mut Engine,
        id: ProgramId,
        lesson: Lesson,
        key: Option<Key>,
    ) {
        self.remember_program(engine, id);
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
                engine.timers.set(Timer::Program(id), None);
            }
            Lesson::Nothing => self.count_nothing(engine, id),
        }
        let learned = self
            .programs
            .get(&id)
            .is_some_and(|program| matches!(program.lesson, LessonState::Learned(_)));
        if let (true, Some(key), Stage::Open) = (learned, key, engine.stage) {
            self.warm_up(engine, id, key, wish);
        }
    }

    /// Begins the pool before a call asks for it, so that the second call can be warm.
    fn warm_up(&mut self, engine: &mut Engine, id: ProgramId, key: Key, wish: Wish) {
        let failing = self.programs.get(&id).is_some_and(|program| {
            program.failed_until.is_some_and(|until| until > engine.now)
                || program.pace.is_given_up(engine.now)
                || program.ends.differs().is_some()
        });
        let recipe = self.recipe(engine, id, wish);
        if failing || recipe.name() == Name::Spawn {
            return;
        }
        let terms = Terms::of_calls(recipe, &engine.limits);
        if let Some(pool) = engine.pool_for(id, key, terms) {
            let aim = self.programs.get(&id).map_or(Aim::Perform, |program| program.aim);
            engine.begin_pool(pool, wish.ahead, aim);
        }
    }

    /// A learning run left nothing. A program that never leaves anything counts as learned: there
    /// is nothing to preload but the interpreter itself.
    fn count_nothing(&mut self, engine: &mut Engine, id: ProgramId) {
        engine.timers.set(Timer::Program(id), None);
        let Some(program) = self.programs.get_mut(&id) else {
            return;
        };
        let LessonState::Learning(run) = program.lesson else {
            return;
        };
        program.nothings += 1;
        let enough = program.nothings >= engine.limits.lessons_max;
        program.lesson = if enough { LessonState::Learned(run.wish) } else { LessonState::None };
    }

    /// The notes of an ended learning run are overdue.
    pub(crate) fn learning_due(&mut self, engine: &mut Engine, id: ProgramId) {
        self.count_nothing(engine, id);
    }

    pub(crate) fn stale(&mut self, engine: &mut Engine, id: ProgramId) {
        self.remember_program(engine, id);
        let mut fresh = Program::new(engine.now);
        fresh.lesson = LessonState::Stale;
        self.programs.insert(id, fresh);
        engine.timers.set(Timer::Program(id), None);
        self.drop_pools_of(engine, id, ColdReason::Stale);
    }

    /// What its pools have loaded is not what would be loaded now.
    pub(crate) fn loads_anew(&mut self, engine: &mut Engine, id: ProgramId) {
        if let Some(program) = self.programs.get_mut(&id) {
            (program.amended, program.pace) = (0, Pace::default());
            program.ends.loads_anew();
        }
        self.drop_pools_of(engine, id, ColdReason::Warming);
    }

    /// A call of the program has ended by itself, and took so long.
    pub(crate) fn measured(&mut self, engine: &mut Engine, id: ProgramId, took: Took) {
        let Some(program) = self.programs.get_mut(&id) else {
            engine.ignore();
            return;
        };
        match program.pace.take(engine.now, took, &engine.limits) {
            Pacing::AsBefore => {}
            Pacing::Slower => self.drop_pools_of(engine, id, ColdReason::SlowerWarm),
        }
    }

    /// A program is over the budget by itself: it runs cold for a while.
    pub(crate) fn too_large(&mut self, engine: &mut Engine, id: ProgramId) {
        let until = engine.now.after_us(engine.limits.memory_wait_us);
        if let Some(program) = self.programs.get_mut(&id) {
            program.memory_until = Some(until);
        }
        self.drop_pools_of(engine, id, ColdReason::Memory);
    }
}
