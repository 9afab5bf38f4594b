//! Reads the heads of functions: the name, what the parameters look like, whether a `bool` comes.
//!
//! Deliberately not a parser: a head is `fn`, a name, bounds, parameters, and what is returned.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::super::tokens::{after_attribute, as_ident, is_mark};

/// One function.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) name: String,
    /// From 1.
    pub(super) line: usize,
    /// How many parameters are tuples, taken apart.
    pub(super) tuples: usize,
    /// Whether it takes `&mut self`.
    pub(super) changes: bool,
    /// Whether there is a `bool` in what it returns.
    pub(super) says: bool,
}

/// The functions of one file, but for those of tests and of traits' implementations.
pub(super) fn heads(text: &str) -> Result<Vec<Head>, String> {
    let stream: TokenStream = text.parse().map_err(|error| format!("cannot read it: {error}"))?;
    let mut heads = Vec::new();
    level(stream, false, &mut heads);
    Ok(heads)
}

/// Reads what stands between two braces; `is_given` where a trait gives the heads.
fn level(stream: TokenStream, is_given: bool, heads: &mut Vec<Head>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let mut at = 0;
    let mut is_next_given = false;
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                at += after_attribute(&tokens[at..]);
                continue;
            }
            TokenTree::Ident(word) if word == "fn" && !is_given => {
                heads.extend(head(&tokens[at..]));
            }
            TokenTree::Ident(word) if word == "impl" => is_next_given = of_trait(&tokens[at..]),
            TokenTree::Group(group) => {
                let is_body = group.delimiter() == Delimiter::Brace;
                level(group.stream(), is_body && is_next_given, heads);
                is_next_given &= !is_body;
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => (),
        }
        at += 1;
    }
}

/// Whether `for` stands between `impl` and the body, other than in `for<'a>`.
fn of_trait(tokens: &[TokenTree]) -> bool {
    let head = tokens.iter().take_while(|token| !is_group(token, Delimiter::Brace));
    let head: Vec<&TokenTree> = head.collect();
    head.windows(2)
        .any(|pair| as_ident(pair[0]).is_some_and(|word| word == "for") && !is_mark(pair[1], '<'))
}

/// Reads from `fn` on. A pointer's type, `fn(u8)`, has no name.
fn head(tokens: &[TokenTree]) -> Option<Head> {
    let TokenTree::Ident(name) = tokens.get(1)? else { return None };
    let mut depth = 0_usize;
    let mut before = '\0';
    let at = tokens.iter().position(|token| match token {
        TokenTree::Punct(mark) => {
            match mark.as_char() {
                '<' => depth += 1,
                '>' if before != '-' => depth = depth.saturating_sub(1),
                _ => (),
            }
            before = mark.as_char();
            false
        }
        TokenTree::Group(group) => depth == 0 && group.delimiter() == Delimiter::Parenthesis,
        TokenTree::Ident(_) | TokenTree::Literal(_) => false,
    })?;
    let TokenTree::Group(parameters) = &tokens[at] else { return None };
    let is_end = |token: &&TokenTree| {
        is_group(token, Delimiter::Brace)
            || is_mark(token, ';')
            || as_ident(token).is_some_and(|word| word == "where")
    };
    let mut returned = tokens[at + 1..].iter().take_while(|token| !is_end(token));
    let tokens: Vec<TokenTree> = parameters.stream().into_iter().collect();
    let each = || tokens.split(|token| is_mark(token, ','));
    Some(Head {
        name: name.to_string(),
        line: name.span().start().line,
        tuples: each().filter(|parameter| is_tuple(parameter)).count(),
        changes: each().next().is_some_and(is_self_to_change),
        says: returned.any(holds_bool),
    })
}

/// `(a, b): …`, also behind `&`.
fn is_tuple(parameter: &[TokenTree]) -> bool {
    let parameter = match parameter {
        [mark, rest @ ..] if is_mark(mark, '&') => rest,
        _ => parameter,
    };
    let is_pair = |group: &Group| group.stream().into_iter().any(|token| is_mark(&token, ','));
    match parameter {
        [TokenTree::Group(group), mark, ..] => {
            group.delimiter() == Delimiter::Parenthesis && is_mark(mark, ':') && is_pair(group)
        }
        _ => false,
    }
}

fn is_self_to_change(parameter: &[TokenTree]) -> bool {
    let has = |wanted: &str| {
        parameter.iter().filter_map(as_ident).any(|word| word.eq_ignore_ascii_case(wanted))
    };
    parameter.iter().any(|token| is_mark(token, '&')) && has("mut") && has("self")
}

fn holds_bool(token: &TokenTree) -> bool {
    match token {
        TokenTree::Ident(word) => word == "bool",
        TokenTree::Group(group) => group.stream().into_iter().any(|token| holds_bool(&token)),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    }
}

fn is_group(token: &TokenTree, delimiter: Delimiter) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == delimiter)
}
