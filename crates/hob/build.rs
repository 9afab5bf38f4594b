//! Has the linker write a digest of the binary's contents into it: the build that a client and a
//! daemon compare (`hob_os::build_id`).

fn main() {
    println!("cargo:rustc-link-arg-bins=-Wl,--build-id=sha1");
    println!("cargo:rerun-if-changed=build.rs");
}
