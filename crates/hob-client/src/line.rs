//! The line of `--status-fd`: what became of a call, for a program that called hob.

use rustix::fd::OwnedFd;

use hob_os::signals;
use hob_wire::exit::Exit;
use hob_wire::reply::Fate;

/// The JSON line of `--status-fd`.
pub(crate) struct Line<'a> {
    /// The call's number.
    pub(crate) call: u64,
    /// What became of it.
    pub(crate) fate: Fate,
    /// The reason code, if it ran cold.
    pub(crate) cold: Option<&'a str>,
}

impl Line<'_> {
    /// Writes the line if it was asked for. By hand: a JSON library is not worth its pages here,
    /// and reason codes need no escaping.
    pub(crate) fn write(&self, to: Option<&OwnedFd>) {
        if to.is_none() {
            return;
        }
        let (outcome, code, signal) = match self.fate {
            Fate::Exited(Exit::Code(code)) => ("exited", code.to_string(), "null".to_owned()),
            Fate::Exited(Exit::Signal(signal)) => ("exited", "null".to_owned(), signal.to_string()),
            Fate::TimedOut => ("timed-out", "null".to_owned(), "null".to_owned()),
            Fate::Lost => ("lost", "null".to_owned(), "null".to_owned()),
        };
        let reason = self.cold.map_or("null".to_owned(), |reason| format!("\"{reason}\""));
        let call = self.call;
        let warm = match (self.fate, self.cold) {
            // The daemon that knew how far it was has died.
            (Fate::Lost, None) if call == 0 => "null",
            (_, None) => "true",
            (_, Some(_)) => "false",
        };
        Self::put(
            to,
            &format!(
                "{{\"schema\":\"hob.outcome/1\",\"call\":{call},\"outcome\":\"{outcome}\",\
                 \"code\":{code},\"signal\":{signal},\"warm\":{warm},\"reason\":{reason}}}\n"
            ),
        );
    }

    /// Writes that the call was refused, if the line was asked for.
    pub(crate) fn write_refused(to: Option<&OwnedFd>, code: u8) {
        Self::put(
            to,
            &format!(
                "{{\"schema\":\"hob.outcome/1\",\"call\":0,\"outcome\":\"refused\",\
                 \"code\":{code},\"signal\":null,\"warm\":false,\"reason\":null}}\n"
            ),
        );
    }

    fn put(to: Option<&OwnedFd>, line: &str) {
        if let Some(fd) = to {
            // Whoever asked for the line and closed its end does not want it.
            let _ = signals::spared_of_sigxfsz(|| rustix::io::write(fd, line.as_bytes()));
        }
    }
}
