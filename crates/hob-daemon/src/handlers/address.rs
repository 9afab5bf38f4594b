//! The address of a message that the outbox keeps: words, each with a NUL behind it.

use std::sync::Arc;

use hob_wire::strings::Strings;

use crate::warm::programs;

use super::route::From;

/// The third word of an address at other hosts, where what is told has a key.
const BY_KEY: &[u8] = b"by-key";

/// The directory and the program of an address.
pub(crate) fn destination(address: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut words = words(address)?;
    Some((words.next()?, words.next()?))
}

/// All of its words.
pub(crate) fn words(address: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    Some(address.strip_suffix(b"\0")?.split(|byte| *byte == 0))
}

/// The program that an address names at other hosts: it has no directory.
pub(crate) fn elsewhere(address: &[u8]) -> Option<&[u8]> {
    destination(address).filter(|(directory, _)| directory.is_empty()).map(|(_, program)| program)
}

/// The address of a program of other hosts. What is told with a key has one of its own: its stream may
/// be there where the other is not.
pub(crate) fn of_others(program: &[u8], has_key: bool) -> Arc<[u8]> {
    let mut words = Strings::new();
    words.push(b"");
    words.push(program);
    if has_key {
        words.push(BY_KEY);
    }
    Arc::from(words.as_bytes())
}

/// Whether what is told there has a key.
pub(crate) fn has_key(address: &[u8]) -> bool {
    elsewhere(address).is_some() && words(address).is_some_and(|mut all| all.nth(2) == Some(BY_KEY))
}

/// What a message needs to find its program again, when its sender has long gone: the directory,
/// the program's name, and of the environment what a handler may have.
pub(crate) fn address(from: &From, program: &[u8], variables: &[String]) -> Arc<[u8]> {
    let names = variables.iter().map(|name| name.clone().into_bytes()).collect();
    let env = programs::kept(&from.env, &names, programs::any_runtime());
    let mut words = Strings::new();
    words.push(&from.directory);
    words.push(program);
    env.iter().for_each(|entry| words.push(entry));
    Arc::from(words.as_bytes())
}

/// Where a message comes from, and its program's name.
pub(crate) fn parse(address: &[u8]) -> Option<(Arc<From>, Vec<u8>)> {
    let (directory, program) = destination(address)?;
    let env: Strings = words(address)?.skip(2).collect();
    Some((Arc::new(From::new(directory.to_vec(), env)), program.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_was_written_without_what_is_nobodys_business() {
        let env = ["PATH=/bin", "TOKEN=secret", "MINE=1"].into_iter().collect();
        let from = From::new(b"/srv/app".to_vec(), env);
        let address = address(&from, b"greeter", &["MINE".to_owned()]);
        let (read, program) = parse(&address).unwrap();
        assert_eq!(
            (read.directory.as_slice(), program.as_slice()),
            (&b"/srv/app"[..], &b"greeter"[..])
        );
        assert_eq!(read.env.iter().collect::<Vec<_>>(), [&b"PATH=/bin"[..], b"MINE=1"]);
        for with in [false, true] {
            let there = of_others(b"greeter", with);
            assert_eq!((elsewhere(&there), has_key(&there)), (Some(&b"greeter"[..]), with));
        }
        assert!(parse(b"").is_none() && parse(b"/only\0").is_none());
    }
}
