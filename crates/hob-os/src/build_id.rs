//! The hash of this executable, as the linker wrote it.
//!
//! A build is told from another by the GNU build id: a digest of the linked file's contents. It
//! survives `cp` and `strip`, and reading it touches one page that the start has touched already;
//! hashing the file on each call would not be so cheap.

/// The first 16 bytes of the build id; zeros when the linker wrote none, so that two such builds
/// are equal only to each other.
#[must_use]
pub fn own() -> [u8; 16] {
    find().unwrap_or([0; 16])
}

#[repr(C)]
struct ElfHeader {
    ident: [u8; 16],
    kind: u16,
    machine: u16,
    version: u32,
    entry: u64,
    phoff: u64,
    shoff: u64,
    flags: u32,
    ehsize: u16,
    phentsize: u16,
    phnum: u16,
}

#[repr(C)]
struct ProgramHeader {
    kind: u32,
    flags: u32,
    offset: u64,
    vaddr: u64,
    paddr: u64,
    filesz: u64,
    memsz: u64,
    align: u64,
}

const PT_NOTE: u32 = 4;
const NT_GNU_BUILD_ID: u32 = 3;

unsafe extern "C" {
    /// The linker defines it where this executable's ELF header is mapped.
    static __ehdr_start: ElfHeader;
}

fn find() -> Option<[u8; 16]> {
    let base = (&raw const __ehdr_start).cast::<u8>();
    // SAFETY: the linker defines the symbol at the mapped ELF header of this executable.
    let header = unsafe { &*base.cast::<ElfHeader>() };
    let first = usize::try_from(header.phoff).ok()?;
    for index in 0..usize::from(header.phnum) {
        let at = first + index * usize::from(header.phentsize);
        // SAFETY: the program headers follow the ELF header within the first mapped segment; the
        // kernel read them from there to start this process.
        let segment = unsafe { &*base.add(at).cast::<ProgramHeader>() };
        if segment.kind != PT_NOTE {
            continue;
        }
        let offset = usize::try_from(segment.offset).ok()?;
        let len = usize::try_from(segment.filesz).ok()?;
        // SAFETY: note segments lie inside the first loaded segment, so file offsets equal
        // distances from the header, and the kernel mapped `filesz` bytes of it.
        let notes = unsafe { std::slice::from_raw_parts(base.add(offset), len) };
        if let Some(id) = build_id_in(notes) {
            return Some(id);
        }
    }
    None
}

/// Looks for the build id in a note segment: name size, description size, type, name, description,
/// each padded to 4 bytes.
fn build_id_in(mut notes: &[u8]) -> Option<[u8; 16]> {
    while let Some((head, rest)) = notes.split_first_chunk::<12>() {
        let word =
            |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (name_len, desc_len, kind) = (word(0) as usize, word(4) as usize, word(8));
        let (name_end, desc_end) = (name_len.next_multiple_of(4), desc_len.next_multiple_of(4));
        let name = rest.get(..name_len)?;
        let desc = rest.get(name_end..name_end + desc_len)?;
        if kind == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return desc.first_chunk::<16>().copied();
        }
        notes = rest.get(name_end + desc_end..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_id_is_found_behind_another_note() {
        let mut notes = Vec::new();
        for (name, kind, desc) in [(&b"GNU\0"[..], 1_u32, &[7_u8; 16][..]), (b"GNU\0", 3, &[9; 20])]
        {
            notes.extend_from_slice(&u32::try_from(name.len()).unwrap().to_ne_bytes());
            notes.extend_from_slice(&u32::try_from(desc.len()).unwrap().to_ne_bytes());
            notes.extend_from_slice(&kind.to_ne_bytes());
            notes.extend_from_slice(name);
            notes.extend_from_slice(desc);
        }
        assert_eq!(build_id_in(&notes), Some([9; 16]));
        for cut in 0..notes.len() - 1 {
            assert_eq!(build_id_in(&notes[..cut]), None, "cut at {cut}");
        }
    }
}
