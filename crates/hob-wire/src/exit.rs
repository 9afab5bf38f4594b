//! The exit codes that the client itself chooses. A program's own code or signal is passed on
//! as it is; these follow `timeout(1)`, `env(1)` and POSIX shells.

use crate::schema::Choice;

/// An exit code that hob chose, because the program gave none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// hob's own command line was wrong.
    Usage = 2,
    /// `--timeout` passed.
    TimedOut = 124,
    /// The call was given and its end is unknown, or hob itself failed.
    Lost = 125,
    /// The program was found and cannot be executed.
    NotExecutable = 126,
    /// The program was not found.
    NotFound = 127,
}

/// What a process did: the two ways in which it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// It returned this code (0 to 255).
    Code(u8),
    /// This signal killed it.
    Signal(u8),
}

impl Exit {
    /// The same in data: what the first byte of the pair that travels says.
    pub const CHOICES: [Choice; 2] = [
        Choice { number: 0, name: "code", value: (0, 255) },
        Choice { number: 1, name: "signal", value: (1, 64) },
    ];

    /// The exit that a raw wait status (as `wait4` gives it) stands for.
    #[must_use]
    pub fn from_wait_status(status: u32) -> Exit {
        let signal = (status & 0x7f) as u8;
        if signal == 0 { Exit::Code(((status >> 8) & 0xff) as u8) } else { Exit::Signal(signal) }
    }

    /// The pair that travels: 0 and the code, or 1 and the signal.
    #[must_use]
    pub fn to_pair(self) -> (u8, u8) {
        match self {
            Exit::Code(code) => (0, code),
            Exit::Signal(signal) => (1, signal),
        }
    }

    /// The exit behind a pair, if it is one.
    #[must_use]
    pub fn from_pair(kind: u8, value: u8) -> Option<Exit> {
        match (kind, value) {
            (0, code) => Some(Exit::Code(code)),
            (1, signal) if (1..=64).contains(&signal) => Some(Exit::Signal(signal)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_statuses_are_read_as_the_kernel_writes_them() {
        assert_eq!(Exit::from_wait_status(0), Exit::Code(0));
        assert_eq!(Exit::from_wait_status(3 << 8), Exit::Code(3));
        assert_eq!(Exit::from_wait_status(9), Exit::Signal(9));
        // 0x80 says that a core was written.
        assert_eq!(Exit::from_wait_status(11 | 0x80), Exit::Signal(11));
    }

    #[test]
    fn only_real_exits_come_off_the_wire() {
        for exit in [Exit::Code(0), Exit::Code(255), Exit::Signal(1), Exit::Signal(64)] {
            let (kind, value) = exit.to_pair();
            assert_eq!(Exit::from_pair(kind, value), Some(exit));
        }
        assert_eq!(Exit::from_pair(1, 0), None);
        assert_eq!(Exit::from_pair(1, 65), None);
        assert_eq!(Exit::from_pair(2, 1), None);
    }
}
