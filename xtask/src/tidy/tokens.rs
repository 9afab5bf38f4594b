//! What the checks that read tokens share: words, marks, and what is for tests only.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The words after which the name of an item stands.
pub(super) const ITEMS: [&str; 9] =
    ["fn", "struct", "enum", "union", "trait", "type", "const", "static", "macro_rules"];
/// The words with which an item begins, and no field or variant.
const BEGINNINGS: [&str; 7] = ["pub", "unsafe", "async", "extern", "mod", "use", "impl"];

/// How many tokens an attribute takes, with what it belongs to if that is for tests only.
pub(super) fn after_attribute(tokens: &[TokenTree]) -> usize {
    let at = if tokens.get(1).is_some_and(|token| is_mark(token, '!')) { 2 } else { 1 };
    match tokens.get(at) {
        Some(TokenTree::Group(group)) if is_for_tests(group.stream()) => {
            at + 1 + length_of_item(&tokens[at + 1..])
        }
        Some(TokenTree::Group(_)) => at + 1,
        Some(_) | None => 1,
    }
}

/// `cfg(test)`, or `cfg(all(test, ...))`.
fn is_for_tests(attribute: TokenStream) -> bool {
    let text = attribute.to_string().replace(' ', "");
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

fn length_of_item(tokens: &[TokenTree]) -> usize {
    let mut at = 0;
    while tokens.get(at).is_some_and(|token| is_mark(token, '#')) {
        at += 2;
    }
    let is_item = tokens
        .get(at)
        .and_then(as_ident)
        .is_some_and(|word| ITEMS.contains(&word.as_str()) || BEGINNINGS.contains(&word.as_str()));
    let is_use = tokens[at..].iter().take(3).filter_map(as_ident).any(|word| word == "use");
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace && !is_use,
        TokenTree::Punct(mark) => mark.as_char() == ';' || mark.as_char() == ',' && !is_item,
        TokenTree::Ident(_) | TokenTree::Literal(_) => false,
    };
    tokens[at..].iter().position(ends).map_or(tokens.len(), |length| at + length + 1)
}

/// The word, if it is one.
pub(super) fn as_ident(token: &TokenTree) -> Option<String> {
    match token {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        TokenTree::Group(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => None,
    }
}

/// Whether it is this mark.
pub(super) fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}
