//! What `--where` asks of a request: `status>=500`, `total>200ms and mount=/shop`.

use hob_core::http::access::Access;
use hob_daemon::project::site;

use crate::durations;

/// The fields that are numbers, and what they are counted in.
const NUMBERS: [&str; 2] = ["status", "bytes"];
/// Those that are times.
const TIMES: [&str; 8] = ["total", "rights-time", "body", "app", "queue", "ref", "object", "write"];
/// Those that are texts.
const TEXTS: [&str; 9] =
    ["method", "path", "query", "mount", "client", "agent", "referer", "failure", "rights"];
/// What a field is compared by, the longer before what they begin with.
const OPERATORS: [(&str, Operator); 8] = [
    (">=", Operator::AtLeast),
    ("<=", Operator::AtMost),
    ("!=", Operator::Not),
    ("==", Operator::Is),
    ("=", Operator::Is),
    (">", Operator::Over),
    ("<", Operator::Under),
    ("~", Operator::Has),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Is,
    Not,
    Over,
    Under,
    AtLeast,
    AtMost,
    /// The text has that in it.
    Has,
}

/// What is asked of a request: all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Condition(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    field: &'static str,
    operator: Operator,
    value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Number(u64),
    Text(String),
}

impl Condition {
    /// Adds what a text asks.
    ///
    /// # Errors
    /// In words, with what is possible.
    pub(super) fn add(&mut self, text: &str) -> Result<(), String> {
        for part in text.split(" and ") {
            self.0.push(parse(part.trim())?);
        }
        Ok(())
    }

    /// Asks for what took at least so long.
    pub(super) fn add_slower(&mut self, us: u64) {
        let (field, operator) = ("total", Operator::AtLeast);
        self.0.push(Part { field, operator, value: Value::Number(us) });
    }

    /// Whether a request is such a one. What it has not is none.
    pub(super) fn takes(&self, access: &Access) -> bool {
        self.0.iter().all(|part| match &part.value {
            Value::Number(asked) => number(access, part.field)
                .is_some_and(|number| part.operator.holds(&number.cmp(asked))),
            Value::Text(asked) => {
                let text = text(access, part.field);
                if part.operator == Operator::Has {
                    text.contains(asked.as_str())
                } else {
                    part.operator.holds(&text.cmp(asked.as_str()))
                }
            }
        })
    }
}

impl Operator {
    fn holds(self, is: &std::cmp::Ordering) -> bool {
        match self {
            Operator::Is => is.is_eq(),
            Operator::Not => is.is_ne(),
            Operator::Over => is.is_gt(),
            Operator::Under => is.is_lt(),
            Operator::AtLeast => is.is_ge(),
            Operator::AtMost => is.is_le(),
            Operator::Has => false,
        }
    }
}

fn parse(part: &str) -> Result<Part, String> {
    let at = part.find(['>', '<', '!', '=', '~']);
    let found = at.and_then(|at| {
        let (name, rest) = part.split_at(at);
        let (sign, operator) = OPERATORS.iter().find(|(sign, _)| rest.starts_with(sign))?;
        Some((name.trim(), *operator, rest.get(sign.len()..)?.trim()))
    });
    let Some((name, operator, value)) = found else {
        return Err(format!("`{part}` compares nothing; try status>=500, or path~/shop"));
    };
    let of = |names: &[&'static str]| names.iter().copied().find(|known| *known == name);
    if let Some(field) = of(&NUMBERS).or_else(|| of(&TIMES)) {
        if operator == Operator::Has {
            return Err(format!("`{part}`: {field} is a number; compare it with = != > >= < <="));
        }
        let value = if TIMES.contains(&field) { time(value) } else { plain(value) };
        let value = value.map_err(|why| format!("`{part}`: {why}"))?;
        return Ok(Part { field, operator, value: Value::Number(value) });
    }
    let Some(field) = of(&TEXTS) else {
        let all = [&NUMBERS[..], &TIMES, &TEXTS].concat();
        return Err(format!("`{part}`: there is no field {name}; there is {}", all.join(", ")));
    };
    if !matches!(operator, Operator::Is | Operator::Not | Operator::Has) {
        return Err(format!("`{part}`: {field} is a text; compare it with = != ~"));
    }
    Ok(Part { field, operator, value: Value::Text(value.to_owned()) })
}

fn time(value: &str) -> Result<u64, String> {
    let time = durations::parse(value).map_err(|wrong| wrong.to_string())?;
    Ok(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

fn plain(value: &str) -> Result<u64, String> {
    let number = value.parse::<u64>().ok().or_else(|| site::bytes(value));
    number.ok_or_else(|| format!("`{value}` is no number; try 500, or 64KiB"))
}

fn number(access: &Access, field: &str) -> Option<u64> {
    let times = &access.times;
    match field {
        "status" => Some(u64::from(access.status)),
        "bytes" => Some(access.bytes),
        "total" => Some(access.total_us),
        "rights-time" => times.rights_us,
        "body" => times.body_us,
        "app" => times.app_us,
        "queue" => times.queue_us,
        "ref" => times.ref_us,
        "object" => times.object_us,
        _ => times.write_us,
    }
}

fn text<'a>(access: &'a Access, field: &str) -> &'a str {
    let (path, query) = access.target.split_once('?').unwrap_or((&access.target, ""));
    match field {
        "method" => &access.method,
        "path" => path,
        "query" => query,
        "mount" => &access.mount,
        "client" => &access.client,
        "agent" => &access.agent,
        "referer" => &access.referer,
        "failure" => access.failure.as_deref().unwrap_or(""),
        _ => access.rights.as_deref().unwrap_or(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(text: &str) -> Result<Condition, String> {
        let mut condition = Condition::default();
        condition.add(text).map(|()| condition)
    }

    #[test]
    fn all_that_is_asked_must_hold() {
        let mut access = Access {
            method: "GET".to_owned(),
            target: "/shop/a?b=c".to_owned(),
            status: 503,
            bytes: 70_000,
            total_us: 250_000,
            ..Access::default()
        };
        access.times.app_us = Some(9);
        for (text, holds) in [
            ("status>=500", true),
            ("status >= 500 and total>200ms", true),
            ("status=503 and total<=200ms", false),
            ("bytes>64KiB", true),
            ("path=/shop/a and query~b=", true),
            ("path~shop and method!=GET", false),
            ("failure!=", false),
            ("app<1ms", true),
            // It read no repository.
            ("object<1s", false),
        ] {
            assert_eq!(condition(text).expect(text).takes(&access), holds, "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_says_what_is() {
        for (text, said) in [
            ("status", "compares nothing"),
            ("", "compares nothing"),
            ("stauts=5", "there is no field stauts; there is status"),
            ("status~5", "is a number"),
            ("path>a", "is a text"),
            ("status>=abc", "no number"),
            ("total>5", "total>5"),
            ("bytes>99999999999GiB", "no number"),
        ] {
            let why = condition(text).expect_err(text);
            assert!(why.contains(said), "{text}: {why}");
        }
    }
}
