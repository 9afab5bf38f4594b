//! Pages of HTML: one file that needs nothing else, and no network. Light or dark as the reader's
//! system is, readable on a narrow screen, on paper, and without script.

pub(crate) mod calls;
pub(crate) mod markup;

use std::fmt::Display;

/// What every page looks like.
const STYLE: &str = include_str!("page.css");

/// What a page begins with, up to its body. It forbids scripts and foreign resources to itself.
pub(crate) fn head(title: &str) -> String {
    head_and(title, "")
}

/// The same of a page with one script, of this SHA-256 (in base64): no other runs.
pub(crate) fn head_with_script(title: &str, sha256: &'static str) -> String {
    head_and(title, &format!("; script-src 'sha256-{sha256}'"))
}

fn head_and(title: &str, policy: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
         'unsafe-inline'{policy}\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
        markup::text(title.as_bytes())
    )
}

/// A page that is written part by part. Markup can only be what the program itself holds
/// (`&'static str`), so a text from elsewhere cannot become markup by an escape that was forgotten.
#[derive(Debug)]
pub(crate) struct Page(String);

impl Page {
    /// A page, begun.
    pub(crate) fn new(title: &str) -> Page {
        Page(head(title))
    }

    /// Markup.
    pub(crate) fn raw(&mut self, markup: &'static str) -> &mut Page {
        self.0.push_str(markup);
        self
    }

    /// A text.
    pub(crate) fn text(&mut self, text: impl Display) -> &mut Page {
        self.0.push_str(&markup::text(text.to_string().as_bytes()));
        self
    }

    /// The value of an attribute, without its quotes.
    pub(crate) fn attribute(&mut self, text: impl Display) -> &mut Page {
        self.0.push_str(&markup::attribute(text.to_string().as_bytes()));
        self
    }

    /// The whole page.
    pub(crate) fn end(mut self) -> String {
        self.raw("</body>\n</html>\n");
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_never_markup() {
        let mut page = Page::new("<title>");
        page.raw("<p title=\"").attribute("\"x\"\n").raw("\">").text("<script>\u{1b}").raw("</p>");
        let page = page.end();
        assert!(page.contains("<title>&lt;title&gt;</title>"), "{page}");
        let part = "<p title=\"&quot;x&quot;\\n\">&lt;script&gt;\\x1b</p></body>";
        assert!(page.contains(part), "{page}");
    }
}
