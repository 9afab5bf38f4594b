//! How often a run of many cells is called slower though none is, and how often a cell that is
//! slower is found: runs that are simulated, on machines that change from run to run. A failure
//! tells the seed; `HOB_PROOF_SEED` sets it.

use hob_proof::runs::{FRESH, RECENT, compare};

use crate::chance::Chance;

/// Times of each cell in a run.
const TIMES: usize = 4;

/// A server and the machine between: how much times scatter, and cells from run to run.
struct World {
    seed: u64,
    chance: Chance,
    cells: usize,
    scatter: f64,
    by_run: f64,
}

impl World {
    fn new(cells: usize, scatter: f64, by_run: f64) -> World {
        let seed = std::env::var("HOB_PROOF_SEED").ok().and_then(|text| text.parse().ok());
        let seed = seed.unwrap_or(20_261_127);
        World { seed, chance: Chance(seed), cells, scatter, by_run }
    }

    /// How the machine is during a stretch of time: up to twice as slow.
    fn machine(&mut self) -> f64 {
        1.0 + self.chance.unit()
    }

    /// A call of a cell; one in fifty is held up.
    fn call(&mut self, usual: f64) -> f64 {
        let held = if self.chance.unit() < 0.02 { 3.0 } else { 1.0 };
        usual * held * (self.scatter * self.chance.normal()).exp()
    }

    /// How each cell is in a run, beside the machine.
    fn cells(&mut self) -> Vec<f64> {
        let usual = |at: usize| 1000.0 * f64::from(u32::try_from(at % 9 + 1).expect("small"));
        (0..self.cells).map(|at| usual(at) * (self.by_run * self.chance.normal()).exp()).collect()
    }

    fn run(&mut self, cells: &[f64]) -> Vec<Vec<f64>> {
        let machine = self.machine();
        let of =
            |world: &mut World, cell: f64| (0..TIMES).map(|_| world.call(cell * machine)).collect();
        cells.iter().map(|cell| of(self, *cell)).collect()
    }

    /// A run after five others, in which the first cell is slower: which cells are surely slower.
    fn slower(&mut self, first: f64) -> Vec<usize> {
        let before: Vec<_> = (0..RECENT)
            .map(|_| {
                let cells = self.cells();
                self.run(&cells)
            })
            .collect();
        let mut cells = self.cells();
        cells[0] *= first;
        let now = self.run(&cells);
        let compared = compare(&before, &now);
        let machine = self.machine();
        let mut fresh = |those: Vec<usize>| -> Vec<(usize, Vec<f64>)> {
            let times = |world: &mut World, at: usize| {
                (0..FRESH).map(|_| world.call(cells[at] * machine)).collect()
            };
            those.into_iter().map(|at| (at, times(self, at))).collect()
        };
        let (suspects, controls) = (fresh(compared.suspects()), fresh(compared.controls()));
        let judged = compared.judge(&suspects, &controls);
        let both = suspects.iter().zip(judged);
        let sure = |judged: hob_proof::runs::Judged| judged.sure && judged.ratio > 1.0;
        both.filter(|(_, judged)| judged.is_some_and(sure)).map(|(one, _)| one.0).collect()
    }
}

#[test]
fn a_run_that_is_as_before_is_called_slower_in_at_most_five_of_a_hundred() {
    let many = [(0.05, 0.0), (0.15, 0.0), (0.30, 0.0), (0.15, 0.05), (0.15, 0.10)];
    let few = [(1, 0.05, 0.0), (3, 0.15, 0.05), (5, 0.15, 0.05), (8, 0.15, 0.05), (8, 0.05, 0.10)];
    let all = many.map(|(scatter, by_run)| (144, scatter, by_run)).into_iter().chain(few);
    for (cells, scatter, by_run) in all {
        let mut world = World::new(cells, scatter, by_run);
        let alarms = (0..1000).filter(|_| !world.slower(1.0).is_empty()).count();
        let told = format!("{cells} cells, scatter {scatter} and {by_run}, seed {}", world.seed);
        println!("{alarms} of 1000 runs: {told}");
        // Five standard deviations of a rate of 5 % in 1,000 are 34.
        assert!(alarms <= 50 + 34, "{alarms} of 1000: {told}");
    }
}

#[test]
fn a_cell_that_takes_half_as_long_again_is_found() {
    for (cells, scatter, by_run, least) in [
        (144, 0.05, 0.0, 490),
        (144, 0.15, 0.0, 475),
        (144, 0.15, 0.05, 440),
        (144, 0.05, 0.05, 475),
        (8, 0.15, 0.0, 450),
    ] {
        let mut world = World::new(cells, scatter, by_run);
        let found = (0..500).filter(|_| world.slower(1.5).contains(&0)).count();
        let told = format!("{cells} cells, scatter {scatter} and {by_run}, seed {}", world.seed);
        println!("{found} of 500 found: {told}");
        assert!(found >= least, "{found} of 500: {told}");
    }
}
