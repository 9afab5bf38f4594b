//! The hash of the wire that stands in `docs/wire.md`.
//!
//! The tables of the page are written from the schema; its sentences are not. Whoever changes the
//! wire is stopped by tidy, reads the page again, and then runs `cargo xtask bless-wire`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use hob_wire::caps::PAYLOAD_MAX;
use hob_wire::frame::{FDS_MAX, HEADER_LEN, MAGIC, VERSION};
use hob_wire::frames::SCHEMA;
use hob_wire::schema::{Field, Shape};

use super::tables::type_of;

const OPEN: &str = "<!-- the wire that was read: ";
const CLOSE: &str = " -->";

/// The page that the hash stands in.
fn page(root: &Path) -> PathBuf {
    root.join("docs/wire.md")
}

/// What is wrong with the hash in the page, if anything.
pub(crate) fn fault(root: &Path) -> Result<Option<String>> {
    let want = hash();
    let text = std::fs::read_to_string(page(root)).context("cannot read docs/wire.md")?;
    Ok(match written(&text) {
        Some(have) if have == want => None,
        Some(have) => Some(format!(
            "docs/wire.md: the wire is {want}, the page was read against {have}: raise VERSION if \
             bytes moved, read the page, then run `cargo xtask bless-wire`"
        )),
        None => Some(
            "docs/wire.md: the line with the hash of the wire is missing: run `cargo xtask \
             bless-wire`"
                .to_owned(),
        ),
    })
}

/// Writes the hash into the page, in its place or at the end.
pub(crate) fn bless(root: &Path) -> Result<String> {
    let hash = hash();
    let path = page(root);
    let text = std::fs::read_to_string(&path).context("cannot read docs/wire.md")?;
    let line = format!("{OPEN}{hash}{CLOSE}");
    let text = match written(&text) {
        Some(old) => text.replace(&format!("{OPEN}{old}{CLOSE}"), &line),
        None => format!("{}\n\n{line}\n", text.trim_end()),
    };
    std::fs::write(&path, text).context("cannot write docs/wire.md")?;
    Ok(format!("docs/wire.md: the wire is {hash}"))
}

fn written(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once(OPEN)?;
    rest.split_once(CLOSE).map(|(hash, _)| hash)
}

/// FNV-1a over all that decides about bytes: the header's constants and, of each kind, its number,
/// who sends it, its descriptors and its fields. What documentation says of them is left out. It
/// guards against forgetting, not against malice.
fn hash() -> String {
    let mut text = format!("{MAGIC:?} {VERSION} {HEADER_LEN} {PAYLOAD_MAX} {FDS_MAX}\n");
    for frame in SCHEMA {
        let number = frame.kind as u8;
        text += &format!("{number} {} {:?} {:?}\n", frame.name, frame.ways, frame.fds);
        describe(frame.fields, &mut text);
    }
    let state = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |state, byte| {
        (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{state:016x}")
}

fn describe(fields: &[Field], text: &mut String) {
    for field in fields {
        *text += &format!("{}: {}\n", field.name, type_of(&field.shape));
        inside(&field.shape, text);
    }
}

/// What a name in a field's type stands for.
fn inside(shape: &Shape, text: &mut String) {
    if let Shape::Part(_, fields) = shape {
        describe(fields, text);
    } else if let Shape::Maybe(inner) | Shape::Times(_, inner) | Shape::Many(_, inner) = shape {
        inside(inner, text);
    } else if let Shape::Number(numbers) = shape {
        for value in numbers.values {
            *text += &format!("{} {}\n", value.number, value.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_that_is_written_is_the_one_that_is_read() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("docs")).unwrap();
        std::fs::write(page(root.path()), "# The wire\n").unwrap();
        assert!(fault(root.path()).unwrap().unwrap().contains("is missing"));
        bless(root.path()).unwrap();
        assert_eq!(fault(root.path()).unwrap(), None);
        let text = std::fs::read_to_string(page(root.path())).unwrap();
        let old = text.replace(&hash(), "0123456789abcdef");
        std::fs::write(page(root.path()), old).unwrap();
        assert!(fault(root.path()).unwrap().unwrap().contains("read against 0123456789abcdef"));
        bless(root.path()).unwrap();
        assert_eq!(std::fs::read_to_string(page(root.path())).unwrap(), text);
    }
}
