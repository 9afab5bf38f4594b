//! Payloads made of the schema alone, with random values, are decoded by every kind's decoder and
//! encoded to the same bytes again. The golden files have one value of each field; this has many.
#![expect(clippy::unwrap_used, reason = "a test that cannot decode has failed")]

use hob_wire::caps::PAYLOAD_MAX;
use hob_wire::frames::{SCHEMA, again};
use hob_wire::schema::{Field, Rule, Shape, offset, walk};
use proptest::prelude::*;
use proptest::test_runner::TestRng;

/// Appends fields with random values.
fn fields(fields: &[Field], random: &mut TestRng, out: &mut Vec<u8>) {
    let mut late = Vec::new();
    for field in fields {
        if let Shape::Late(most) = field.shape {
            let word = bytes(random, most);
            out.extend_from_slice(&count(word.len()));
            late.extend_from_slice(&word);
        } else if let Shape::Rest(_) = field.shape {
            late.extend_from_slice(&bytes(random, 4096));
        } else {
            value(&field.shape, random, out);
        }
    }
    out.extend_from_slice(&late);
}

fn count(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap().to_le_bytes()
}

/// Mostly few bytes, at times none, at times as many as there may be.
fn bytes(random: &mut TestRng, most: usize) -> Vec<u8> {
    let most = most.min(8192);
    let length = match random.next_u32() % 8 {
        0 => 0,
        1 => most,
        _ => usize::try_from(random.next_u32() % 24).unwrap().min(most),
    };
    let mut bytes = vec![0; length];
    random.fill_bytes(&mut bytes);
    bytes
}

fn without_nul(random: &mut TestRng, most: usize) -> Vec<u8> {
    let mut bytes = bytes(random, most);
    bytes.retain(|byte| *byte != 0);
    bytes
}

/// Appends one random value.
fn value(shape: &Shape, random: &mut TestRng, out: &mut Vec<u8>) {
    let number = random.next_u32();
    match *shape {
        Shape::Within(low, high) => {
            out.extend_from_slice(&(low + number % (high - low + 1)).to_le_bytes());
        }
        Shape::Flag => out.push(u8::from(number % 2 == 1)),
        Shape::Number(numbers) => out.push(one(numbers.values, number).number),
        Shape::Bits(bits) => out.push(u8::try_from(number % (1 << bits.len())).unwrap()),
        Shape::Pair(choices) => {
            let choice = one(choices, number);
            let (low, high) = (u32::from(choice.value.0), u32::from(choice.value.1));
            let value = low + random.next_u32() % (high - low + 1);
            out.extend_from_slice(&[choice.number, u8::try_from(value).unwrap()]);
        }
        Shape::Blob(most, rule) => {
            let blob = match rule {
                Rule::Any => bytes(random, most),
                Rule::File => [b"x".to_vec(), without_nul(random, most)].concat(),
                Rule::Absolute => [b"/".to_vec(), without_nul(random, most)].concat(),
            };
            out.extend_from_slice(&count(blob.len()));
            out.extend_from_slice(&blob);
        }
        Shape::Strings(some) => {
            let strings: Vec<Vec<u8>> = (0..number % 5 + u32::from(some))
                .map(|_| [without_nul(random, 200), vec![0]].concat())
                .collect();
            out.extend_from_slice(&count(strings.len()));
            let blob = strings.concat();
            out.extend_from_slice(&count(blob.len()));
            out.extend_from_slice(&blob);
        }
        Shape::Maybe(inner) => {
            out.push(u8::from(number % 2 == 1));
            if number % 2 == 1 {
                value(inner, random, out);
            }
        }
        Shape::Times(times, each) => (0..times).for_each(|_| value(each, random, out)),
        Shape::Many(most, each) => {
            let times = usize::try_from(number % 6).unwrap().min(most);
            out.extend_from_slice(&count(times));
            (0..times).for_each(|_| value(each, random, out));
        }
        Shape::Part(_, inner) => fields(inner, random, out),
        Shape::Late(_) | Shape::Rest(_) => unreachable!("{shape:?} lies behind the others"),
        Shape::U8 | Shape::U32 | Shape::U64 | Shape::I32 | Shape::I64 | Shape::Raw(_) => {
            let mut raw = vec![0; shape.size().unwrap()];
            random.fill_bytes(&mut raw);
            out.extend_from_slice(&raw);
        }
    }
}

fn one<T>(list: &[T], number: u32) -> &T {
    &list[usize::try_from(number).unwrap() % list.len()]
}

proptest! {
    #[test]
    fn what_the_schema_describes_is_decoded_and_encoded_the_same(
        mut random in any::<u64>().prop_perturb(|_, random| random),
    ) {
        for frame in SCHEMA {
            let mut payload = Vec::new();
            fields(frame.fields, &mut random, &mut payload);
            prop_assert!(payload.len() <= PAYLOAD_MAX);
            let mut again_bytes = Vec::new();
            prop_assert_eq!(again(frame.kind, &payload, &mut again_bytes), Ok(()), "{}", frame.name);
            prop_assert_eq!(&again_bytes, &payload, "{}", frame.name);
            prop_assert_eq!(walk(frame.fields, &payload), Ok(()), "{}", frame.name);
        }
    }
}

#[test]
fn a_field_behind_one_of_no_fixed_size_has_no_offset() {
    for frame in SCHEMA {
        let mut fixed = Some(0);
        for field in frame.fields {
            assert_eq!(offset(frame.fields, field.name), fixed, "{} {}", frame.name, field.name);
            fixed = fixed.and_then(|at| Some(at + field.shape.size()?));
        }
    }
}
