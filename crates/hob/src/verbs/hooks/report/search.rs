//! The search of the page: its field and its script, the only one that the page lets run.

use std::io::{self, Write};

/// The script, which stands at the page's end.
const SCRIPT: &str = include_str!("search.js");
/// By this the page's policy knows it: the SHA-256 of the script, in base64.
pub(super) const SCRIPT_SHA256: &str = "ezqnbWQ19SOmCQ8oqiWAwOXIs4lQsYOC/Jn3IEoaPo0=";

/// The field, which the script shows: without it nothing is to be seen of a search.
pub(super) fn field(out: &mut impl Write) -> io::Result<()> {
    out.write_all(
        b"<p class=\"search\" hidden><input id=\"search\" type=\"search\" autocomplete=\"off\" \
          placeholder=\"Find targets: a name, a hook, an error\" aria-label=\"Find targets\"> \
          <output id=\"found\" class=\"soft\"></output></p>\n",
    )
}

/// What makes it work.
pub(super) fn script(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "<script>{SCRIPT}</script>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hob_core::hooks::Bytes;
    use sha2::{Digest as _, Sha256};

    #[test]
    fn the_policy_knows_the_script() {
        let hash = Bytes(Sha256::digest(SCRIPT.as_bytes()).to_vec());
        let hash = serde_json::to_value(hash).unwrap();
        assert_eq!(hash["base64"], SCRIPT_SHA256);
        assert!(!SCRIPT.contains("</"), "nothing in it ends its element");
    }
}
