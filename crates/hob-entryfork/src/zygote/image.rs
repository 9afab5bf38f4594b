//! What a copy must take on to be what its own `execve` would have made: the stack with its argv,
//! environment and auxiliary vector, and what the kernel and the C library know of a process.
//!
//! Owns: the message to the code in a zygote. The arrays of the stack stay where they are (the
//! dynamic linker has taken their addresses), so that argv and environment have as many words as
//! the zygote's; their strings are new. What lies between them (the platform's name, sixteen bytes
//! of chance, and up to 8 KiB of nothing) stays.

use std::ffi::CStr;

use rustix::io;

use super::Copy;
use super::code::{LISTS_BYTES, MESSAGE_AT, MESSAGE_BYTES_MAX, Stopped, word};
use crate::{errno, last_error};

/// The head of a message: see `code.rs` for who reads what.
const HEAD_WORDS: usize = 10;
/// What is longer grows.
const MESSAGE_BYTES_USUAL: usize = 8 * 1024;
const STRINGS_BYTES_USUAL: usize = 4 * 1024;
const CALLS_USUAL: usize = 16;
const CALL_WORDS: usize = 7;
const PR_SET_MM_MAP: u64 = 14;
/// The number of words of the kernel's `prctl_mm_map` before its auxiliary vector.
const MM_WORDS: usize = 11;
const COMM_BYTES: usize = 16;
/// Three streams and a directory.
const FDS_MAX: usize = 4;

/// What is known of a program that stands at its entry.
#[derive(Debug)]
pub(super) struct Layout {
    parent: u64,
    lists: u64,
    entry: u64,
    linker_end: u64,
    stack: u64,
    /// `argc` to the end of the auxiliary vector.
    arrays: Vec<u64>,
    strings_at: u64,
    strings_end: u64,
    /// How many bytes of them, at most, are not zero in the zygote.
    strings_bytes: usize,
    argv: Vec<Vec<u8>>,
    names: Vec<Vec<u8>>,
    /// What the kernel knows of the memory: see `prctl(PR_SET_MM_MAP)`.
    mm: [u64; MM_WORDS],
    thread_at: u64,
    robust: [u64; 2],
    /// The numbers that the kernel gives to the next descriptors: what was inherited lies between.
    free: [u64; FDS_MAX],
}

impl Layout {
    pub(super) fn of(stopped: &Stopped) -> io::Result<Layout> {
        let stack = stopped.registers.rsp;
        let mm = memory_of(stopped)?;
        let (strings_at, environment_end) = (mm[7], mm[10]);
        let above =
            usize::try_from(strings_at.wrapping_sub(stack)).map_err(|_| io::Errno::INVAL)?;
        if above > MESSAGE_BYTES_MAX {
            return Err(io::Errno::TOOBIG);
        }
        let below = stopped.read(stack, above)?;
        let words: Vec<u64> = below.chunks_exact(8).map(|bytes| word(bytes, 0)).collect();
        let argc = usize::try_from(*words.first().ok_or(io::Errno::INVAL)?);
        let argc = argc.map_err(|_| io::Errno::INVAL)?;
        let zero = |from: usize| {
            let rest = words.get(from..).and_then(|rest| rest.iter().position(|word| *word == 0));
            rest.map(|at| from + at).ok_or(io::Errno::INVAL)
        };
        let environment_at = argc + 2;
        let auxiliary_at = zero(environment_at)? + 1;
        let pairs = words[auxiliary_at..].chunks_exact(2);
        let auxiliary = pairs.take_while(|pair| pair[0] != 0).count() + 1;
        let arrays = words[..auxiliary_at + 2 * auxiliary].to_vec();
        let size = usize::try_from(environment_end - strings_at).map_err(|_| io::Errno::INVAL)?;
        let strings = stopped.read(strings_at, size)?;
        let mut strings = strings.split(|byte| *byte == 0).map(<[u8]>::to_vec);
        let argv: Vec<Vec<u8>> = strings.by_ref().take(argc).collect();
        let count = auxiliary_at - 1 - environment_at;
        let names = strings.take(count).map(|entry| name(&entry).to_vec()).collect();
        let layout = Layout {
            parent: std::process::id().into(),
            lists: stopped.lists,
            entry: stopped.registers.rip,
            linker_end: stopped.registers.rdx,
            stack,
            arrays,
            strings_at,
            strings_end: environment_end,
            strings_bytes: size,
            argv,
            names,
            mm,
            thread_at: thread_of(stopped)?,
            robust: robust_of(stopped.pid)?,
            free: free_of(stopped.pid)?,
        };
        layout.try_memory(stopped)?;
        Ok(layout)
    }

    /// Where the code in the zygote has its stack: the program's own, of which it uses nothing.
    pub(super) fn stack(&self) -> u64 {
        self.stack
    }

    /// Fails where the kernel does not let a process say where its command line is.
    fn try_memory(&self, stopped: &Stopped) -> io::Result<()> {
        let at = self.lists + MESSAGE_AT;
        stopped.write(at, &self.memory(self.mm, 0, 0))?;
        let size = self.memory(self.mm, 0, 0).len() as u64;
        let what = libc::PR_SET_MM.cast_unsigned().into();
        stopped.call(libc::SYS_prctl, [what, PR_SET_MM_MAP, at, size, 0, 0]).map(drop)
    }

    /// The kernel's `prctl_mm_map`.
    fn memory(&self, mm: [u64; MM_WORDS], auxiliary_at: u64, bytes: u32) -> Vec<u8> {
        let mut out = mm.map(u64::to_ne_bytes).concat();
        out.extend(auxiliary_at.to_ne_bytes());
        out.extend(bytes.to_ne_bytes());
        // No other executable.
        out.extend(u32::MAX.to_ne_bytes());
        out
    }

    /// Where the parts of each message go, and how much room is there.
    pub(super) fn parts(&self) -> [(u64, u64); 3] {
        [
            (self.lists + MESSAGE_AT, LISTS_BYTES as u64),
            (self.stack, 8 * self.arrays.len() as u64),
            (self.strings_at, self.strings_end - self.strings_at),
        ]
    }

    /// The message that makes this copy, and how long its strings are: what [`Layout::sent`] is to
    /// be told. `affinity` is put back in the copy; empty: it is as it is.
    pub(super) fn message(&self, copy: &Copy<'_>, affinity: &[u8]) -> io::Result<(Vec<u8>, usize)> {
        let same = copy.env.len() == self.names.len()
            && copy.env.iter().zip(&self.names).all(|(entry, have)| name(entry.to_bytes()) == have);
        if !same {
            return Err(io::Errno::INVAL);
        }
        let image = self.image(copy)?;
        let mut lists = Lists::new(self.lists + MESSAGE_AT);
        let mut calls = Vec::with_capacity(CALLS_USUAL);
        let mut call = |number: i64, arguments: [u64; 5]| {
            let [a, b, c, d, e] = arguments;
            calls.push([number.cast_unsigned(), a, b, c, d, e, 0]);
        };
        let came = &self.free[..if copy.directory.is_some() { 4 } else { 3 }];
        for (stream, fd) in (0..3).zip(came) {
            call(libc::SYS_dup2, [*fd, stream, 0, 0, 0]);
        }
        if let Some(fd) = came.get(3) {
            call(libc::SYS_fchdir, [*fd, 0, 0, 0, 0]);
        }
        for fd in came {
            call(libc::SYS_close, [*fd, 0, 0, 0, 0]);
        }
        call(libc::SYS_setpgid, [0; 5]);
        if let Some(umask) = copy.umask {
            call(libc::SYS_umask, [umask.into(), 0, 0, 0, 0]);
        }
        let [death, comm, memory] = [libc::PR_SET_PDEATHSIG, libc::PR_SET_NAME, libc::PR_SET_MM]
            .map(|what| u64::from(what.cast_unsigned()));
        call(libc::SYS_prctl, [death, libc::SIGKILL.cast_unsigned().into(), 0, 0, 0]);
        call(libc::SYS_prctl, [comm, lists.put(&comm_of(copy.file)), 0, 0, 0]);
        let map = self.memory(image.mm, image.auxiliary_at, image.auxiliary_bytes);
        let arguments = [memory, PR_SET_MM_MAP, lists.put(&map), map.len() as u64, 0];
        call(libc::SYS_prctl, arguments);
        let [head, size] = self.robust;
        call(libc::SYS_set_robust_list, [head, size, 0, 0, 0]);
        if !affinity.is_empty() {
            let (at, size) = (lists.put(affinity), affinity.len() as u64);
            call(libc::SYS_sched_setaffinity, [0, size, at, 0, 0]);
        }
        let closes = came.iter().map(|fd| [libc::SYS_close.cast_unsigned(), *fd, 0, 0, 0, 0, 0]);
        let closes_at = lists.put_calls(closes);
        let calls_at = lists.put_calls(calls.iter().copied());
        // SAFETY: only computes.
        let control = unsafe { libc::CMSG_LEN(if came.len() == 4 { 16 } else { 12 }) };
        let mut message = lists.finish([
            control.into(),
            self.parent,
            self.stack,
            self.entry,
            self.linker_end,
            self.thread_at,
            closes_at,
            came.len() as u64,
            calls_at,
            calls.len() as u64,
        ])?;
        for word in &image.arrays {
            message.extend(word.to_ne_bytes());
        }
        message.extend(&image.strings);
        // The strings of an earlier copy, if they were longer, are not this one's to see.
        let bytes = image.strings.len();
        message.resize(message.len() + self.strings_bytes.saturating_sub(bytes), 0);
        if message.len() > MESSAGE_BYTES_MAX {
            Err(io::Errno::TOOBIG)
        } else {
            Ok((message, bytes))
        }
    }

    /// A message with strings of so many bytes has gone to the zygote.
    pub(super) fn sent(&mut self, strings_bytes: usize) {
        self.strings_bytes = strings_bytes;
    }

    /// The stack of this copy.
    fn image(&self, copy: &Copy<'_>) -> io::Result<Image> {
        let mut arrays = self.arrays.clone();
        let mut mm = self.mm;
        let mut strings = Vec::with_capacity(STRINGS_BYTES_USUAL);
        let at = |strings: &Vec<u8>| self.strings_at + strings.len() as u64;
        for index in 0..self.argv.len() {
            arrays[1 + index] = at(&strings);
            let last = index + 1 == self.argv.len();
            strings.extend(if last { copy.file.to_bytes() } else { &self.argv[index] });
            strings.push(0);
        }
        // The ends of argv, and the begin and the end of the environment.
        (mm[8], mm[9]) = (at(&strings), at(&strings));
        let first = self.argv.len() + 2;
        for (index, entry) in copy.env.iter().enumerate() {
            arrays[first + index] = at(&strings);
            strings.extend(entry.as_bytes_with_nul());
        }
        mm[10] = at(&strings);
        let auxiliary = first + copy.env.len() + 1;
        for pair in arrays[auxiliary..].chunks_exact_mut(2) {
            if pair[0] == libc::AT_EXECFN {
                pair[1] = at(&strings);
            }
        }
        strings.extend(copy.file.to_bytes_with_nul());
        if at(&strings) > self.strings_end {
            return Err(io::Errno::TOOBIG);
        }
        let auxiliary_at = self.stack + 8 * auxiliary as u64;
        let auxiliary_bytes = u32::try_from(8 * (arrays.len() - auxiliary)).unwrap_or(0);
        Ok(Image { arrays, strings, mm, auxiliary_at, auxiliary_bytes })
    }
}

struct Image {
    arrays: Vec<u64>,
    strings: Vec<u8>,
    mm: [u64; MM_WORDS],
    auxiliary_at: u64,
    auxiliary_bytes: u32,
}

/// The first part of a message, which grows, and the addresses that things in it have in the
/// zygote.
struct Lists {
    begin_at: u64,
    bytes: Vec<u8>,
}

impl Lists {
    fn new(begin_at: u64) -> Lists {
        let mut bytes = Vec::with_capacity(MESSAGE_BYTES_USUAL);
        bytes.resize(8 * HEAD_WORDS, 0);
        Lists { begin_at, bytes }
    }

    /// Where what is put next will be.
    fn next(&mut self) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self.begin_at + self.bytes.len() as u64
    }

    /// Appends this, and says where it will be.
    fn put(&mut self, bytes: &[u8]) -> u64 {
        let at = self.next();
        self.bytes.extend(bytes);
        at
    }

    fn put_calls(&mut self, calls: impl Iterator<Item = [u64; CALL_WORDS]>) -> u64 {
        let at = self.next();
        for word in calls.flatten() {
            self.bytes.extend(word.to_ne_bytes());
        }
        at
    }

    fn finish(mut self, head: [u64; HEAD_WORDS]) -> io::Result<Vec<u8>> {
        for (slot, value) in self.bytes.chunks_exact_mut(8).zip(head) {
            slot.copy_from_slice(&value.to_ne_bytes());
        }
        if self.bytes.len() > LISTS_BYTES {
            return Err(io::Errno::TOOBIG);
        }
        self.bytes.resize(LISTS_BYTES, 0);
        Ok(self.bytes)
    }
}

/// The name of an entry `NAME=value`.
fn name(entry: &[u8]) -> &[u8] {
    entry.split(|byte| *byte == b'=').next().unwrap_or_default()
}

/// What `execve` makes the process's name: the last part of the file's, cut.
fn comm_of(file: &CStr) -> [u8; COMM_BYTES] {
    let name = file.to_bytes().rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let mut comm = [0; COMM_BYTES];
    let bytes = name.len().min(COMM_BYTES - 1);
    comm[..bytes].copy_from_slice(&name[..bytes]);
    comm
}

/// What the kernel knows of a process's memory, in the order of its `prctl_mm_map`.
fn memory_of(stopped: &Stopped) -> io::Result<[u64; MM_WORDS]> {
    let text =
        std::fs::read(format!("/proc/{}/stat", stopped.pid)).map_err(|error| errno(&error))?;
    // The name before may hold anything, also a parenthesis; the third field follows the last.
    let begin = text.iter().rposition(|byte| *byte == b')').ok_or(io::Errno::INVAL)? + 2;
    let fields: Vec<&[u8]> = text[begin..].split(|byte| byte.is_ascii_whitespace()).collect();
    let field = |number: usize| {
        let text = fields.get(number - 3).and_then(|field| std::str::from_utf8(field).ok());
        text.and_then(|text| text.parse().ok()).ok_or(io::Errno::INVAL)
    };
    let brk = stopped.call(libc::SYS_brk, [0; 6])?;
    let mut mm = [0; MM_WORDS];
    for (slot, number) in [(0, 26), (1, 27), (2, 45), (3, 46), (4, 47), (6, 28)] {
        mm[slot] = field(number)?;
    }
    mm[5] = brk;
    for (slot, number) in [(7, 48), (8, 49), (9, 50), (10, 51)] {
        mm[slot] = field(number)?;
    }
    Ok(mm)
}

/// Where the C library keeps the number of the first thread, which a fork must renew.
fn thread_of(stopped: &Stopped) -> io::Result<u64> {
    let at = stopped.lists + MESSAGE_AT;
    let what = libc::PR_GET_TID_ADDRESS.cast_unsigned().into();
    stopped.call(libc::SYS_prctl, [what, at, 0, 0, 0, 0])?;
    Ok(word(&stopped.read(at, 8)?, 0))
}

/// The robust list of a process's first thread, which a fork must set again: where, how large.
fn robust_of(pid: u32) -> io::Result<[u64; 2]> {
    let mut list = [0_u64; 2];
    let [head, size] = &mut list;
    let (head, size) = (std::ptr::from_mut(head), std::ptr::from_mut(size));
    // SAFETY: the kernel writes one word to each.
    let got = unsafe { libc::syscall(libc::SYS_get_robust_list, pid, head, size) };
    if got < 0 { Err(last_error()) } else { Ok(list) }
}

/// The lowest numbers above the streams that are no descriptors of a process.
fn free_of(pid: u32) -> io::Result<[u64; FDS_MAX]> {
    let mut taken = std::collections::BTreeSet::<u64>::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd")).map_err(|error| errno(&error))? {
        let name = entry.map_err(|error| errno(&error))?.file_name();
        taken.insert(name.to_str().and_then(|name| name.parse().ok()).ok_or(io::Errno::INVAL)?);
    }
    let mut free = (3..).filter(|number| !taken.contains(number));
    Ok(std::array::from_fn(|_| free.next().unwrap_or(u64::MAX)))
}
