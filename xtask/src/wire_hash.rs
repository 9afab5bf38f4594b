//! The hash of hob-wire's sources that stands in `docs/wire.md`.
//!
//! The page says what the bytes are; other languages are written from it. Whoever changes the
//! sources is stopped by tidy, reads the page again, and then runs `cargo xtask bless-wire`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

const OPEN: &str = "<!-- hob-wire sources: ";
const CLOSE: &str = " -->";

/// The page that the hash stands in.
fn page(root: &Path) -> PathBuf {
    root.join("docs/wire.md")
}

/// What is wrong with the hash in the page, if anything.
pub(crate) fn fault(root: &Path) -> Result<Option<String>> {
    let want = hash(root)?;
    let text = std::fs::read_to_string(page(root)).context("cannot read docs/wire.md")?;
    Ok(match written(&text) {
        Some(have) if have == want => None,
        Some(have) => Some(format!(
            "docs/wire.md: hob-wire's sources are {want}, the page was read against {have}: \
             update the page (and VERSION, if bytes moved), then run `cargo xtask bless-wire`"
        )),
        None => Some(
            "docs/wire.md: the line with the hash of hob-wire's sources is missing: \
             run `cargo xtask bless-wire`"
                .to_owned(),
        ),
    })
}

/// Writes the hash into the page, in its place or at the end.
pub(crate) fn bless(root: &Path) -> Result<String> {
    let hash = hash(root)?;
    let path = page(root);
    let text = std::fs::read_to_string(&path).context("cannot read docs/wire.md")?;
    let line = format!("{OPEN}{hash}{CLOSE}");
    let text = match written(&text) {
        Some(old) => text.replace(&format!("{OPEN}{old}{CLOSE}"), &line),
        None => format!("{}\n\n{line}\n", text.trim_end()),
    };
    std::fs::write(&path, text).context("cannot write docs/wire.md")?;
    Ok(format!("docs/wire.md: hob-wire's sources are {hash}"))
}

fn written(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(OPEN)?;
    rest.split_once(CLOSE).map(|(hash, _)| hash)
}

/// FNV-1a over the names and bytes of the sources, in the order of their names. It guards against
/// forgetting, not against malice.
fn hash(root: &Path) -> Result<String> {
    let folder = root.join("crates/hob-wire/src");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .context("cannot read crates/hob-wire/src")?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.sort();
    let mut state: u64 = 0xcbf2_9ce4_8422_2325;
    for file in files {
        let name = file.file_name().map(|name| name.as_encoded_bytes().to_vec());
        for byte in name.unwrap_or_default().into_iter().chain(std::fs::read(&file)?) {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    Ok(format!("{state:016x}"))
}
