//! A breakpoint at a program's own first instruction: there the dynamic linker is done.
//!
//! Owns: what differs between the architectures. Invariant: the instruction is put back before
//! it runs, and the thread goes on from it.

use std::ffi::c_int;

use rustix::io;

use super::{address, plain, ptrace};

const PEEKTEXT: c_int = 1;
const POKETEXT: c_int = 4;
const GETREGSET: c_int = 0x4204;
const SETREGSET: c_int = 0x4205;
const NT_PRSTATUS: usize = 1;

/// What the breakpoint is, how far the program counter stands behind it, and where in the
/// registers it is; and this architecture's number in ELF files and for the audit system.
#[cfg(target_arch = "x86_64")]
pub(super) const MACHINE: Machine =
    Machine { breakpoint: &[0xcc], behind: 1, counter: 16, elf: 62, audit: 0xc000_003e };
#[cfg(target_arch = "aarch64")]
pub(super) const MACHINE: Machine = Machine {
    breakpoint: &[0x00, 0x00, 0x20, 0xd4],
    behind: 0,
    counter: 32,
    elf: 183,
    audit: 0xc000_00b7,
};

pub(super) struct Machine {
    breakpoint: &'static [u8],
    behind: u64,
    counter: usize,
    elf: u16,
    pub(super) audit: u32,
}

/// The instruction at a program's entry, while a breakpoint stands in its place.
#[derive(Debug)]
pub struct Entry {
    at: u64,
    word: u64,
}

/// Puts a breakpoint at the entry of a program that was just executed. `None` if nothing comes
/// before it (no dynamic linker), or if it is of another architecture.
pub fn break_at_entry(pid: u32) -> io::Result<Option<Entry>> {
    let (base, at) = auxiliary(pid)?;
    if base == 0 || at == 0 || !is_native(pid) {
        return Ok(None);
    }
    let mut word = 0_u64;
    ptrace(PEEKTEXT, pid, address(at), (&raw mut word).cast())?;
    let mut changed = word.to_ne_bytes();
    changed[..MACHINE.breakpoint.len()].copy_from_slice(MACHINE.breakpoint);
    ptrace(POKETEXT, pid, address(at), plain(address(u64::from_ne_bytes(changed))))?;
    Ok(Some(Entry { at, word }))
}

/// After a `Stop::Trap`: if the thread stands at the entry, puts the instruction back, so that
/// the thread goes on as if nothing had been there.
pub fn at_entry(thread: u32, entry: &Entry) -> io::Result<bool> {
    let mut registers = [0; REGISTERS_MAX];
    transfer(GETREGSET, thread, &mut registers)?;
    if registers[MACHINE.counter] != entry.at + MACHINE.behind {
        return Ok(false);
    }
    ptrace(POKETEXT, thread, address(entry.at), plain(address(entry.word)))?;
    registers[MACHINE.counter] = entry.at;
    transfer(SETREGSET, thread, &mut registers)?;
    Ok(true)
}

/// More registers than either architecture has.
const REGISTERS_MAX: usize = 68;

/// Gets or sets a thread's general registers; the kernel moves as many as there are.
fn transfer(request: c_int, thread: u32, registers: &mut [u64; REGISTERS_MAX]) -> io::Result<()> {
    let mut vector = libc::iovec {
        iov_len: size_of_val(registers),
        iov_base: std::ptr::from_mut(registers).cast(),
    };
    ptrace(request, thread, NT_PRSTATUS, (&raw mut vector).cast())
}

/// `AT_BASE` (7) and `AT_ENTRY` (9) of a process; 0 for what is not there.
fn auxiliary(pid: u32) -> io::Result<(u64, u64)> {
    let bytes = std::fs::read(format!("/proc/{pid}/auxv"))
        .map_err(|error| io::Errno::from_io_error(&error).unwrap_or(io::Errno::IO))?;
    let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
    let find = |wanted: u64| {
        let pair = bytes.chunks_exact(16).find(|pair| number(&pair[..8]) == wanted);
        pair.map_or(0, |pair| number(&pair[8..]))
    };
    Ok((find(7), find(9)))
}

/// Whether the file that a process runs is of this architecture: 64 bits, and its machine.
fn is_native(pid: u32) -> bool {
    use std::io::Read;

    let mut head = [0; 20];
    let file = std::fs::File::open(format!("/proc/{pid}/exe"));
    let read = file.and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head[4] == 2 && u16::from_le_bytes([head[18], head[19]]) == MACHINE.elf
}
