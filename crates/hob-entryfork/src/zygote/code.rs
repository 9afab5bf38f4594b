//! What runs in a zygote, and how it gets there: `ptrace` from the `execve` to the entry, a page
//! of code, and off.
//!
//! The code waits for a message, forks, makes the calls that the message lists, and answers; a
//! copy makes its own list and jumps to the entry. What it needs is all in the message
//! (`image.rs`); it holds no address of its own. The message comes in three parts, each to its
//! place: the lists to a page of the stack that the program has not reached yet, the arrays and
//! the strings to where an `execve` puts them. So a copy has nothing to move, and nothing to unmap.

use std::arch::global_asm;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::os::unix::fs::FileExt;

use hob_os::trace;
use rustix::io;

use crate::{errno, last_error};

pub(super) const PAGE: u64 = 4096;
/// How far below the stack's first word the lists' page begins, before it is rounded down.
const LISTS_BELOW: u64 = 4 * PAGE;
/// Where in that page things are; the code below has the same numbers.
pub(super) const PARTS_AT: u64 = 64;
pub(super) const CONTROL_AT: u64 = 112;
pub(super) const CONTROL_BYTES: u64 = 64;
pub(super) const MESSAGE_AT: u64 = 256;
/// The first part of each message, whatever is in it.
pub(super) const LISTS_BYTES: usize = 3840;
/// The longest message: below what a socket of the default size takes at once.
pub(super) const MESSAGE_BYTES_MAX: usize = 128 * 1024;

// The C libraries do not agree on the type of these.
const CONT: c_int = 7;
const GETREGS: c_int = 12;
const SETREGS: c_int = 13;
const DETACH: c_int = 17;

// rbx: the lists' page, which begins with the header for `recvmsg`. Descriptor 0 is the socket.
global_asm!(
    ".pushsection .text.hob_zygote, \"ax\"",
    ".globl hob_zygote_code",
    ".globl hob_zygote_code_end",
    "hob_zygote_code:",
    "2:",
    "mov qword ptr [rbx + 40], 64", // Room for descriptors.
    "mov qword ptr [rbx + 112], 0",
    "mov eax, 47", // recvmsg
    "xor edi, edi",
    "mov rsi, rbx",
    "xor edx, edx",
    "syscall",
    "cmp rax, -4", // EINTR
    "je 2b",
    "cmp rax, 3840", // Less than the first part: the other side is gone.
    "jl 9f",
    "mov qword ptr [rbx + 176], -24", // EMFILE, if descriptors are missing.
    "mov rax, [rbx + 112]",
    "cmp rax, [rbx + 256]",
    "jne 3f",
    "mov eax, 56",        // clone
    "mov edi, 0x1208011", // PARENT, CHILD_CLEARTID, CHILD_SETTID, SIGCHLD
    "xor esi, esi",
    "xor edx, edx",
    "mov r10, [rbx + 296]", // Where the thread's number is.
    "xor r8d, r8d",
    "syscall",
    "test rax, rax",
    "jz 5f",
    "mov [rbx + 176], rax",
    "3:", // The zygote: its list, then the answer.
    "mov r12, [rbx + 304]",
    "mov r13, [rbx + 312]",
    "4:",
    "test r13, r13",
    "jz 8f",
    "mov rax, [r12]",
    "mov rdi, [r12 + 8]",
    "syscall", // Closes a descriptor.
    "add r12, 56",
    "dec r13",
    "jmp 4b",
    "8:",
    "mov eax, 44", // sendto
    "xor edi, edi",
    "lea rsi, [rbx + 176]",
    "mov edx, 8",
    "mov r10d, 0x4000", // NOSIGNAL
    "xor r8d, r8d",
    "xor r9d, r9d",
    "syscall",
    "jmp 2b",
    "5:", // The copy: its list, and off.
    "mov r12, [rbx + 320]",
    "mov r13, [rbx + 328]",
    "6:",
    "test r13, r13",
    "jz 7f",
    "mov rax, [r12]",
    "mov rdi, [r12 + 8]",
    "mov rsi, [r12 + 16]",
    "mov rdx, [r12 + 24]",
    "mov r10, [r12 + 32]",
    "mov r8, [r12 + 40]",
    "xor r9d, r9d",
    "syscall",
    "add r12, 56",
    "dec r13",
    "jmp 6b",
    "7:",
    "mov eax, 110", // getppid: a parent that was killed before the list says nothing any more.
    "syscall",
    "cmp rax, [rbx + 264]",
    "jne 9f",
    "cld",
    "mov rsp, [rbx + 272]",
    "mov r11, [rbx + 280]",
    "mov rdx, [rbx + 288]", // What the dynamic linker wants to be called at the end.
    "xor eax, eax",
    "xor ebx, ebx",
    "xor ecx, ecx",
    "xor esi, esi",
    "xor edi, edi",
    "xor ebp, ebp",
    "jmp r11",
    "9:",
    "mov eax, 231", // exit_group
    "xor edi, edi",
    "syscall",
    "ud2",
    "hob_zygote_code_end:",
    ".popsection",
);

unsafe extern "C" {
    static hob_zygote_code: u8;
    static hob_zygote_code_end: u8;
}

fn code() -> &'static [u8] {
    let (begin, end) = (&raw const hob_zygote_code, &raw const hob_zygote_code_end);
    // SAFETY: both lie in one section of this program, the second behind the first.
    unsafe { std::slice::from_raw_parts(begin, end.offset_from_unsigned(begin)) }
}

/// A child that stands at its entry and is traced by this thread.
#[derive(Debug)]
pub(super) struct Stopped {
    pub(super) pid: u32,
    pub(super) registers: libc::user_regs_struct,
    /// Where the lists' page begins.
    pub(super) lists: u64,
    code: u64,
    memory: File,
}

impl Stopped {
    /// Brings a child that has just executed to its entry. `None`: nothing comes before it.
    pub(super) fn at_entry(pid: u32) -> io::Result<Option<Stopped>> {
        trapped(pid)?;
        let auxv = std::fs::read(format!("/proc/{pid}/auxv")).map_err(|error| errno(&error))?;
        let find = |wanted: u64| {
            let mut pairs = auxv.chunks_exact(16).map(|pair| (word(pair, 0), word(pair, 8)));
            pairs.find(|(kind, _)| *kind == wanted).map_or(0, |(_, value)| value)
        };
        let (base, entry) = (find(libc::AT_BASE), find(libc::AT_ENTRY));
        let memory = File::options().read(true).write(true).open(format!("/proc/{pid}/mem"));
        let memory = memory.map_err(|error| errno(&error))?;
        let mut machine = [0; 20];
        let exe = File::open(format!("/proc/{pid}/exe")).map_err(|error| errno(&error))?;
        exe.read_exact_at(&mut machine, 0).map_err(|error| errno(&error))?;
        if base == 0 || entry == 0 || machine[4] != 2 || machine[18] != 62 {
            return Ok(None);
        }
        let mut before = [0];
        memory.read_exact_at(&mut before, entry).map_err(|error| errno(&error))?;
        memory.write_all_at(&[0xcc], entry).map_err(|error| errno(&error))?;
        request(CONT, pid, std::ptr::null_mut())?;
        trapped(pid)?;
        memory.write_all_at(&before, entry).map_err(|error| errno(&error))?;
        let mut registers = registers_of(pid)?;
        if registers.rip != entry + 1 {
            return Ok(None);
        }
        registers.rip = entry;
        let lists = registers.rsp.saturating_sub(LISTS_BELOW) & !(PAGE - 1);
        let mut stopped = Stopped { pid, registers, lists, code: 0, memory };
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        let [protection, flags] = [protection, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS]
            .map(|bits| u64::from(bits.cast_unsigned()));
        stopped.code = stopped.call(libc::SYS_mmap, [0, PAGE, protection, flags, u64::MAX, 0])?;
        Ok(Some(stopped))
    }

    pub(super) fn read(&self, at: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; bytes];
        self.memory.read_exact_at(&mut buffer, at).map_err(|error| errno(&error))?;
        Ok(buffer)
    }

    pub(super) fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.memory.write_all_at(bytes, at).map_err(|error| errno(&error))
    }

    /// Has the child make a system call: on the page of code, once there is one.
    pub(super) fn call(&self, number: i64, arguments: [u64; 6]) -> io::Result<u64> {
        const SYSCALL_AND_TRAP: [u8; 3] = [0x0f, 0x05, 0xcc];
        let at = if self.code == 0 { self.registers.rip } else { self.code };
        let before = self.read(at, SYSCALL_AND_TRAP.len())?;
        self.write(at, &SYSCALL_AND_TRAP)?;
        let mut registers = self.registers;
        registers.rip = at;
        registers.rax = number.cast_unsigned();
        // Not in a system call that could be restarted.
        registers.orig_rax = u64::MAX;
        [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9] =
            arguments;
        request(SETREGS, self.pid, (&raw mut registers).cast())?;
        request(CONT, self.pid, std::ptr::null_mut())?;
        trapped(self.pid)?;
        let result = registers_of(self.pid)?.rax;
        self.write(at, &before)?;
        match i32::try_from(result.cast_signed()) {
            Ok(code @ -4095..=-1) => Err(io::Errno::from_raw_os_error(-code)),
            Ok(_) | Err(_) => Ok(result),
        }
    }

    /// Puts the code and what it needs in their places, and lets the child go there: a message
    /// has these three parts (where, how long), and a copy has its stack there.
    pub(super) fn settle(&self, parts: [(u64, u64); 3], stack: u64) -> io::Result<()> {
        self.write(self.code, code())?;
        // The header for `recvmsg`: no name, three parts, room for descriptors.
        let at = self.lists;
        let header = [0, 0, at + PARTS_AT, 3, at + CONTROL_AT, CONTROL_BYTES, 0, 0];
        self.write(at, header.map(u64::to_ne_bytes).as_flattened())?;
        let parts = parts.map(|(at, bytes)| [at, bytes].map(u64::to_ne_bytes));
        self.write(at + PARTS_AT, parts.as_flattened().as_flattened())?;
        let mut registers = self.registers;
        registers.rip = self.code;
        registers.rbx = at;
        registers.rsp = stack;
        registers.orig_rax = u64::MAX;
        request(SETREGS, self.pid, (&raw mut registers).cast())?;
        request(DETACH, self.pid, std::ptr::null_mut())
    }
}

pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u64::from_ne_bytes)
}

fn registers_of(pid: u32) -> io::Result<libc::user_regs_struct> {
    // SAFETY: all zero is a valid value of numbers.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    request(GETREGS, pid, (&raw mut registers).cast())?;
    Ok(registers)
}

fn request(what: c_int, pid: u32, data: *mut c_void) -> io::Result<()> {
    // SAFETY: where `data` is an address of ours, it is that of live, writable registers; the
    // kernel checks everything else.
    let done = unsafe { libc::syscall(libc::SYS_ptrace, what, pid, 0, data) };
    if done < 0 { Err(last_error()) } else { Ok(()) }
}

/// Waits until the child stops with SIGTRAP, within the bound of those that are held (`TIMEDOUT`).
/// Anything else ends the attempt.
fn trapped(pid: u32) -> io::Result<()> {
    let status = trace::within_bound(|| {
        let (mut status, flags) = (0, libc::__WALL | libc::WNOHANG);
        // SAFETY: the kernel writes the status of this process's own child.
        match unsafe { libc::waitpid(pid.cast_signed(), &raw mut status, flags) } {
            0 => Ok(None),
            1.. => Ok(Some(status)),
            _ => Err(last_error()),
        }
    })?;
    let stopped = libc::WIFSTOPPED(status) && status >> 8 == libc::SIGTRAP;
    if stopped { Ok(()) } else { Err(io::Errno::CHILD) }
}
