//! Renders the README's table and receipt from `bench/results.json`, between markers.

use std::path::Path;

use anyhow::{Context, Result};

use crate::headline;
use crate::report::Results;

/// What stands before and after a part that is rendered.
struct Markers {
    open: &'static str,
    close: &'static str,
}

const FIGURES: Markers = Markers {
    open: "<!-- figures: made by `make readme` from bench/results.json -->\n",
    close: "<!-- end of figures -->",
};
const RECEIPT: Markers =
    Markers { open: "<!-- receipt: likewise -->\n", close: "<!-- end of receipt -->" };

/// Puts the table in its place.
pub(crate) fn render(root: &Path) -> Result<()> {
    let path = root.join("README.md");
    let text = std::fs::read_to_string(&path).context("cannot read README.md")?;
    let results = Results::read(&root.join("bench/results.json"))?;
    let text = replaced(&text, &FIGURES, &table(&results))?;
    let receipt = results.figures.iter().find_map(|figure| figure.receipt.as_deref());
    let receipt = receipt.map(|receipt| format!("```\n{}\n```\n", receipt.trim_end()));
    let text = replaced(&text, &RECEIPT, &receipt.unwrap_or_default())?;
    std::fs::write(&path, text).context("cannot write README.md")
}

fn replaced(text: &str, markers: &Markers, part: &str) -> Result<String> {
    let Markers { open, close } = markers;
    let (before, rest) =
        text.split_once(*open).with_context(|| format!("README.md lacks {open}"))?;
    let (_, after) = rest.split_once(*close).with_context(|| format!("README.md lacks {close}"))?;
    Ok(format!("{before}{open}{part}{close}{after}"))
}

fn table(results: &Results) -> String {
    let machine = &results.machine;
    format!(
        "{}\nMedians of whole processes in interleaved rounds, on {} ({} cores), {}, {}. \
         `make headline` measures them on your machine; [bench/README.md](bench/README.md) says how.\n",
        headline::table(&results.figures),
        machine.processor,
        machine.cores,
        machine.kernel,
        machine.python
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let marked = |part: &str| format!("a\n{}{part}{}\nb\n", FIGURES.open, FIGURES.close);
        assert_eq!(replaced(&marked("old\n"), &FIGURES, "new\n").unwrap(), marked("new\n"));
        assert!(replaced("no markers", &FIGURES, "new").is_err());
    }
}
