//! What a program is called where people read of it.
//!
//! A caller may have typed an interpreter, or `-m`: neither says which program it was. Two programs
//! may have the same name: then each is shown with as much of its path as tells them apart.

use std::collections::BTreeMap;

use super::ProgramPart;

/// How many directories stand before a name at most. Beyond that the whole path does.
const PARENTS_MAX: usize = 4;

/// What is known of a program's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Naming<'a> {
    /// The name as it was typed.
    pub name: &'a str,
    /// The file or module that it resolved to; empty where it did not.
    pub target: &'a str,
    /// Its interpreter's path.
    pub interpreter: Option<&'a str>,
}

impl<'a> From<&'a ProgramPart> for Naming<'a> {
    fn from(program: &'a ProgramPart) -> Naming<'a> {
        Naming {
            name: &program.name,
            target: &program.target,
            interpreter: program.interpreter.as_deref(),
        }
    }
}

impl Naming<'_> {
    /// The name that says something.
    #[must_use]
    pub fn title(&self) -> String {
        if self.target.is_empty() {
            return self.name.to_owned();
        }
        let is_interpreter = self.interpreter.is_some_and(|interpreter| {
            let typed = base(self.name);
            !typed.is_empty() && base(interpreter).starts_with(typed)
        });
        match (self.name, self.target.contains('/')) {
            ("-m", _) => format!("-m {}", self.target),
            (_, false) if is_interpreter => format!("-m {}", self.target),
            (_, true) if is_interpreter => base(self.target).to_owned(),
            (name, _) => name.strip_prefix("./").unwrap_or(name).to_owned(),
        }
    }

    /// The end of the target's path that has so many directories before its name; nothing where it
    /// has not so many.
    fn with_parents(&self, count: usize) -> Option<&str> {
        let slashes = self.target.rmatch_indices('/').nth(count)?;
        self.target.get(slashes.0 + 1..)
    }
}

/// The titles of programs that stand in one list, told apart where they are not the same.
#[must_use]
pub fn distinct(list: &[Naming<'_>]) -> Vec<String> {
    let titles: Vec<String> = list.iter().map(Naming::title).collect();
    let mut targets: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (title, naming) in titles.iter().zip(list) {
        let known = targets.entry(title).or_default();
        if !naming.target.is_empty() && !known.contains(&naming.target) {
            known.push(naming.target);
        }
    }
    let told_apart = |title: &String, naming: &Naming<'_>| {
        let Some(others) = targets.get(title.as_str()).filter(|others| others.len() > 1) else {
            return title.clone();
        };
        if naming.target.is_empty() {
            return title.clone();
        }
        let is_unique = |end: &str| {
            let ends = |other: &&&str| {
                **other == end || other.strip_suffix(end).is_some_and(|rest| rest.ends_with('/'))
            };
            others.iter().filter(ends).count() == 1
        };
        let ends = (1..=PARENTS_MAX).filter_map(|count| naming.with_parents(count));
        let shortest = ends.into_iter().find(|end| is_unique(end));
        shortest.unwrap_or(naming.target).to_owned()
    };
    titles.iter().zip(list).map(|(title, naming)| told_apart(title, naming)).collect()
}

/// The last component of a path.
#[must_use]
pub fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naming<'a>(name: &'a str, target: &'a str, interpreter: &'a str) -> Naming<'a> {
        Naming { name, target, interpreter: Some(interpreter).filter(|text| !text.is_empty()) }
    }

    #[test]
    fn an_interpreter_and_an_option_are_no_names() {
        for (name, target, interpreter, title) in [
            ("-m", "json.tool", "/usr/bin/python3.11", "-m json.tool"),
            ("python3", "/srv/app/job.py", "/usr/bin/python3.11", "job.py"),
            ("/usr/bin/python3", "pytest", "/usr/bin/python3.11", "-m pytest"),
            ("ruby", "/srv/app/job.rb", "/usr/bin/ruby", "job.rb"),
            ("./hello.py", "/srv/hello.py", "/usr/bin/python3.11", "hello.py"),
            ("black", "/srv/venv/bin/black", "/srv/venv/bin/python", "black"),
            ("/bin/true", "/bin/true", "", "/bin/true"),
            ("no-such-tool", "", "", "no-such-tool"),
        ] {
            assert_eq!(naming(name, target, interpreter).title(), title);
        }
    }

    #[test]
    fn the_same_name_of_several_programs_is_told_apart_by_its_path() {
        let python = "/usr/bin/python3.11";
        let list = [
            naming("hello.py", "/srv/a/hello.py", python),
            naming("python3", "/srv/b/hello.py", python),
            naming("./hello.py", "/srv/a/hello.py", python),
            naming("black", "/one/venv/bin/black", python),
            naming("black", "/two/venv/bin/black", python),
            naming("yamllint", "/one/venv/bin/yamllint", python),
            naming("hello.py", "", ""),
        ];
        let expected = [
            "a/hello.py",
            "b/hello.py",
            "a/hello.py",
            "one/venv/bin/black",
            "two/venv/bin/black",
            "yamllint",
            "hello.py",
        ];
        assert_eq!(distinct(&list), expected);
    }

    #[test]
    fn what_has_no_more_directories_is_shown_whole() {
        let list = [naming("x", "/x", ""), naming("x", "/a/x", ""), naming("x", "/b/a/x", "")];
        assert_eq!(distinct(&list), ["/x", "/a/x", "b/a/x"]);
    }
}
