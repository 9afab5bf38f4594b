//! A Python program's imports: the stamps that `sitecustomize.py` wrote, and which imports are
//! the dearest. For other runtimes: the files that they opened while loading. Pure.

use serde::Serialize;

use super::run::Opened;

/// How many are shown.
pub(super) const DEAREST: usize = 10;

/// One import, as it was stamped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Import {
    /// 0 for what nothing else was importing.
    pub(super) depth: usize,
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    pub(super) name: String,
}

/// All that was stamped in a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Stamps {
    /// When the stamping began.
    pub(super) installed_ns: Option<u64>,
    /// The interpreter's version.
    pub(super) version: Option<(u32, u32)>,
    /// In the order in which they ended.
    pub(super) imports: Vec<Import>,
    /// When the interpreter began to finalise; absent for a program that leaves without that.
    pub(super) finalising_ns: Option<u64>,
}

/// What one import cost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Dear {
    /// The module, or the file.
    pub name: String,
    /// Without what it imported itself.
    pub self_us: u64,
    /// With that.
    pub total_us: u64,
}

/// Reads the stamps; a line that is cut short or odd is skipped.
pub(super) fn parse(text: &str) -> Stamps {
    let mut stamps = Stamps::default();
    for line in text.lines() {
        let mut words = line.splitn(5, ' ');
        let tag = words.next();
        let mut number = || words.next()?.parse::<u64>().ok();
        match tag {
            Some("I") => {
                let numbers = (number(), number(), number());
                if let ((Some(depth), Some(begin_ns), Some(end_ns)), Some(name)) =
                    (numbers, words.next())
                {
                    let depth = usize::try_from(depth).unwrap_or(usize::MAX);
                    let name = name.to_owned();
                    stamps.imports.push(Import { depth, begin_ns, end_ns, name });
                }
            }
            Some("V") => {
                stamps.installed_ns = number();
                let part = |part: Option<u64>| part.and_then(|part| u32::try_from(part).ok());
                stamps.version = part(number()).zip(part(number()));
            }
            Some("F") => stamps.finalising_ns = number(),
            _ => {}
        }
    }
    stamps
}

/// The time of outermost imports that lie wholly within these bounds.
pub(super) fn time_ns(imports: &[Import], from_ns: u64, to_ns: u64) -> u64 {
    let outermost = imports.iter().filter(|one| one.depth == 0);
    let within = outermost.filter(|one| one.begin_ns >= from_ns && one.end_ns <= to_ns);
    within.map(|one| one.end_ns.saturating_sub(one.begin_ns)).sum()
}

/// What each import after `from_ns` cost, the dearest by itself first. Of one name, all together.
pub(super) fn dearest(imports: &[Import], from_ns: u64) -> Vec<Dear> {
    let mut costs: Vec<(&Import, u64)> = Vec::new();
    // Those that an import made stand before it, one deeper, and are not taken yet.
    let mut open: Vec<(usize, u64)> = Vec::new();
    for import in imports.iter().filter(|one| one.begin_ns >= from_ns) {
        let total = import.end_ns.saturating_sub(import.begin_ns);
        let mut inner = 0;
        while let Some((_, ns)) = open.pop_if(|(depth, _)| *depth > import.depth) {
            inner += ns;
        }
        open.push((import.depth, total));
        costs.push((import, total.saturating_sub(inner)));
    }
    let mut dear: Vec<Dear> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for (import, self_ns) in costs {
        let total = import.end_ns.saturating_sub(import.begin_ns);
        let at = *places.entry(import.name.as_str()).or_insert_with(|| {
            dear.push(Dear { name: import.name.clone(), self_us: 0, total_us: 0 });
            dear.len() - 1
        });
        dear[at].self_us += self_ns / 1000;
        dear[at].total_us += total / 1000;
    }
    sort(&mut dear);
    dear
}

/// What each opened module cost: the time to the next one's opening. What stands between two
/// openings was done for the first one, as far as can be seen from outside.
pub(super) fn dearest_opened(opened: &[&Opened]) -> Vec<Dear> {
    let pairs = opened.iter().zip(opened.iter().skip(1));
    let mut dear: Vec<Dear> = pairs
        .map(|(one, next)| {
            let us = next.at_ns.saturating_sub(one.at_ns) / 1000;
            let name = String::from_utf8_lossy(&one.path).into_owned();
            Dear { name, self_us: us, total_us: us }
        })
        .collect();
    sort(&mut dear);
    dear
}

fn sort(dear: &mut [Dear]) {
    dear.sort_by_key(|one| std::cmp::Reverse((one.self_us, one.total_us)));
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "I 0 10000 20000 site_thing\nV 30000 3 11\nI 2 50000 60000 c\n\
        I 1 45000 70000 b\nI 1 70000 75000 d\nI 0 40000 100000 a\nI 0 110000 112000 lazy\n\
        F 200000\nI 0 210000 220000 late\nI 0 5\n\nnoise\n";

    #[test]
    fn stamps_are_read_and_odd_lines_skipped() {
        let stamps = parse(TEXT);
        assert_eq!((stamps.installed_ns, stamps.version), (Some(30_000), Some((3, 11))));
        assert_eq!((stamps.finalising_ns, stamps.imports.len()), (Some(200_000), 7));
        assert_eq!(parse("I x y z w\nV\nF\n").imports, []);
    }

    #[test]
    fn only_outermost_imports_within_the_bounds_count() {
        let imports = parse(TEXT).imports;
        assert_eq!(time_ns(&imports, 30_000, 200_000), 60_000 + 2_000);
        assert_eq!(time_ns(&imports, 0, 300_000), 10_000 + 60_000 + 2_000 + 10_000);
        assert_eq!(time_ns(&imports, 40_001, 300_000), 2_000 + 10_000);
    }

    #[test]
    fn an_imports_own_time_is_without_what_it_imported() {
        let dear = dearest(&parse(TEXT).imports, 30_000);
        let of = |name: &str| {
            let one = dear.iter().find(|one| one.name == name).unwrap();
            (one.self_us, one.total_us)
        };
        assert_eq!((of("a"), of("b"), of("c")), ((30, 60), (15, 25), (10, 10)));
        assert_eq!(dear[0].name, "a");
        let all: u64 = dear.iter().map(|one| one.self_us).sum();
        assert_eq!(all, 60 + 2 + 10);
    }

    #[test]
    fn an_opened_module_costs_the_time_to_the_next() {
        let opened = [(10, "a.rb"), (5_010, "b.rb"), (6_010, "c.rb")]
            .map(|(us, path)| Opened { at_ns: us * 1000, path: path.as_bytes().to_vec() });
        let dear = dearest_opened(&opened.iter().collect::<Vec<_>>());
        let names: Vec<_> = dear.iter().map(|one| (one.name.as_str(), one.self_us)).collect();
        assert_eq!(names, [("a.rb", 5_000), ("b.rb", 1_000)]);
    }
}
