//! What the verbs share that run programs again and again (`verify`, `ab`, `check`, `hooks`): what is
//! read, the signals that come meanwhile, how far it is, a digest of what came out, and reports.

pub(in crate::verbs) mod input;
pub(in crate::verbs) mod interrupts;
pub(in crate::verbs) mod progress;
pub(in crate::verbs) mod report_file;

/// What a digest begins with.
pub(in crate::verbs) const DIGEST: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a: tells outputs apart, and does not have to withstand anybody.
pub(in crate::verbs) fn digest(before: u64, bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(before, |digest, byte| (digest ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// `5%`, `0.05`: more than nothing, and less than ten times.
pub(in crate::verbs) fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number, 0.01),
        None => (text, 1.0),
    };
    let share = number.trim().parse::<f64>().map(|number| number * unit);
    match share {
        Ok(share) if share > 0.0 && share < 10.0 => Ok(share),
        Ok(_) => Err("a share is more than 0% and less than 1000%".to_owned()),
        Err(_) => Err("no share: write it as 5% or 0.05".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_written_either_way() {
        assert_eq!(share("5%"), Ok(0.05));
        assert_eq!(share("0.1"), Ok(0.1));
        for wrong in ["0%", "-3%", "NaN", "nan%", "inf", "", "%", "five", "1000%"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
