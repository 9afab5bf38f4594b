//! What trusting a file allows, as a person reads it: program, handler, what runs it.

use std::path::Path;

use hob_daemon::project::{Contents, Declaration};
use hob_os::start::Start;
use serde_json::{Value, json};

use crate::show::style::Look;
use crate::show::text::{Align, pad, printable, width};
use crate::verbs::shim::folder;

/// The programs and mounts of a file.
pub(super) struct Listed<'a> {
    contents: &'a Contents,
    /// Where each program's interpreter is; `None`: it is not found, or there is none.
    interpreters: Vec<Option<String>>,
}

/// Looks where the interpreters are, for this environment and this file.
pub(super) fn of<'a>(start: &Start, contents: &'a Contents, file: &Path) -> Listed<'a> {
    let root = file.parent().unwrap_or(file);
    let found = |handler: &Declaration| {
        let name = handler.interpreter.as_str();
        let path = match name.contains('/') {
            true => Some(root.join(name)).filter(|path| path.is_file()),
            false => folder::command(name.as_ref(), start),
        };
        path.map(|path| path.display().to_string())
    };
    Listed { contents, interpreters: contents.programs.iter().map(found).collect() }
}

impl Listed<'_> {
    fn programs(&self) -> impl Iterator<Item = (&Declaration, Option<&str>)> {
        self.contents.programs.iter().zip(self.interpreters.iter().map(Option::as_deref))
    }

    pub(super) fn programs_json(&self) -> Vec<Value> {
        self.programs()
            .map(|(handler, path)| {
                json!({
                    "name": handler.program,
                    "handler": handler.handler,
                    "runtime": handler.runtime,
                    "interpreter": path,
                    "isolation": handler.isolation,
                    "missing": handler.missing,
                })
            })
            .collect()
    }

    pub(super) fn mounts_json(&self) -> Vec<Value> {
        let mounts = self.contents.mounts.iter();
        mounts.map(|(path, serves)| json!({"path": path, "serves": serves})).collect()
    }

    pub(super) fn text(&self, look: &Look) -> String {
        let mut rows: Vec<[String; 4]> = Vec::new();
        for (handler, path) in self.programs() {
            let by = match (handler.interpreter.as_str(), path) {
                ("", _) => "itself".to_owned(),
                (_, Some(path)) => path.to_owned(),
                (name, None) => format!("{name} (not found)"),
            };
            rows.push([
                handler.program.clone(),
                handler.handler.clone(),
                by,
                handler.isolation.to_owned(),
            ]);
        }
        let mut text = String::new();
        if !rows.is_empty() {
            let head = ["PROGRAM", "HANDLER", "RUN BY", "ISOLATION"].map(str::to_owned);
            text += &table(head, rows, look);
            text += "ask one with `hob ask PROGRAM`\n";
        }
        let mounts = &self.contents.mounts;
        if !mounts.is_empty() {
            let rows = mounts.iter().map(|(path, serves)| [path.clone(), serves.clone()]);
            text += &table(["MOUNT", "SERVES"].map(str::to_owned), rows.collect(), look);
            text += "serve them with `hob serve`\n";
        }
        if text.is_empty() { "  it names nothing yet\n".to_owned() } else { text }
    }
}

/// Columns as wide as they need to be, the last one open.
fn table<const N: usize>(head: [String; N], rows: Vec<[String; N]>, look: &Look) -> String {
    let mut all = vec![head];
    all.extend(rows.into_iter().map(|row| row.map(|cell| printable(&cell, look.charset))));
    let widest = |column: usize| all.iter().map(|row| width(&row[column])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(widest).collect();
    let mut text = String::new();
    for row in &all {
        let cells = row.iter().zip(&widths).map(|(cell, width)| pad(cell, *width, Align::Left));
        let line = cells.collect::<Vec<_>>().join("  ");
        text += &format!("  {}\n", line.trim_end());
    }
    text
}
