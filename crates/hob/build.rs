//! Has the linker write a digest of the binary's contents into it: the build that a client and a
//! daemon compare (`hob_os::build_id`). And has it put the client's path in one place.

fn main() {
    println!("cargo:rustc-link-arg-bins=-Wl,--build-id=sha1");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=client.ld");
    let var = |name| std::env::var(name).unwrap_or_default();
    if var("CARGO_CFG_TARGET_ENV") == "musl" {
        println!("cargo:rustc-link-arg-bins=-Wl,-T,{}/client.ld", var("CARGO_MANIFEST_DIR"));
    }
}
