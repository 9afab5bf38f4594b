//! What documents owe the code: the wire's tables and its hash, every reason code, every dependency's reason,
//! links that lead somewhere.

use std::path::Path;

use anyhow::{Context, Result};

use super::source::Source;
use super::{Found, arrows};
use crate::wire;

/// Checks all of them.
pub(crate) fn check(root: &Path, sources: &[Source], found: &mut Found) -> Result<()> {
    found.faults.extend(wire::hash::fault(root)?);
    found.faults.extend(wire::faults(root)?);
    reason_codes(root, found)?;
    dependency_reasons(root, found)?;
    for source in sources.iter().filter(|source| source.path.ends_with(".md")) {
        links(root, source, found);
    }
    Ok(())
}

/// Scripts read reason codes, so each one is explained.
fn reason_codes(root: &Path, found: &mut Found) -> Result<()> {
    let outcome = std::fs::read_to_string(root.join("crates/hob-core/src/outcome.rs"))
        .context("cannot read crates/hob-core/src/outcome.rs")?;
    let codes = codes(&outcome);
    if codes.is_empty() {
        found.faults.push("crates/hob-core/src/outcome.rs: no reason code was found".to_owned());
    }
    let page = std::fs::read_to_string(root.join("docs/reason-codes.md")).unwrap_or_default();
    for code in codes {
        if !page.contains(&format!("`{code}`")) {
            found.faults.push(format!("docs/reason-codes.md: the reason code `{code}` is missing"));
        }
    }
    Ok(())
}

/// The codes in lines like `Busy = "busy",`.
fn codes(outcome: &str) -> Vec<&str> {
    let mut codes = Vec::new();
    for line in outcome.lines() {
        let Some((name, rest)) = line.split_once(" = \"") else { continue };
        let Some(code) = rest.strip_suffix("\",") else { continue };
        if name.trim().chars().all(char::is_alphanumeric) {
            codes.push(code);
        }
    }
    codes
}

/// A dependency without a reason is a dependency that nobody decided on.
fn dependency_reasons(root: &Path, found: &mut Found) -> Result<()> {
    let manifest = std::fs::read_to_string(root.join("Cargo.toml"))?;
    let page = std::fs::read_to_string(root.join("docs/why/dependencies.md"))
        .context("cannot read docs/why/dependencies.md")?;
    for name in arrows::dependencies(&manifest) {
        if !name.starts_with("hob") && !page.contains(&format!("| `{name}` |")) {
            found.faults.push(format!("docs/why/dependencies.md: a line for `{name}` is missing"));
        }
    }
    Ok(())
}

/// Relative links must lead to a file.
fn links(root: &Path, source: &Source, found: &mut Found) {
    for (index, line) in source.text.lines().enumerate() {
        for part in line.split("](").skip(1) {
            let Some((target, _)) = part.split_once(')') else { continue };
            let target = target.split('#').next().unwrap_or(target);
            let elsewhere = target.is_empty() || target.contains("://") || target.contains(' ');
            if !elsewhere && !root.join(source.folder()).join(target).exists() {
                found.fault(source, index + 1, &format!("the link to {target} leads nowhere"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_codes_are_read_off_their_declarations() {
        let text =
            "  /// Why.\n  Asked = \"asked\",\n  let x = \"no\";\n  NotHosted = \"not-hosted\",\n";
        assert_eq!(codes(text), ["asked", "not-hosted"]);
    }
}
