//! Has the linker write a digest of the binary's contents into it: the build that a client and a
//! daemon compare (`hob_os::build_id`). And has it put the client's path in one place. Tells the
//! program its version, with the commit that `make build` names in `HOB_COMMIT`.

fn main() {
    println!("cargo:rustc-link-arg-bins=-Wl,--build-id=sha1");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=client.ld");
    println!("cargo:rerun-if-env-changed=HOB_COMMIT");
    let var = |name| std::env::var(name).unwrap_or_default();
    let (version, commit) = (var("CARGO_PKG_VERSION"), var("HOB_COMMIT"));
    let commit = if commit.is_empty() { commit } else { format!(" ({commit})") };
    println!("cargo:rustc-env=HOB_VERSION={version}{commit}");
    match var("CARGO_CFG_TARGET_ENV").as_str() {
        "musl" => {
            println!("cargo:rustc-link-arg-bins=-Wl,-T,{}/client.ld", var("CARGO_MANIFEST_DIR"));
        }
        // At a fixed address, as what ships is: 190,000 relocations were most of what a start of the
        // quick build cost.
        "gnu" => println!("cargo:rustc-link-arg-bins=-no-pie"),
        _ => {}
    }
}
