//! The gate: what a JVM lacks to take on a caller's world. One raw system call, and a few doors
//! that the JDK keeps shut.
//!
//! `hob-runtimes/build.rs` makes a shared object of this one file (`--cfg shared`), without a libc
//! and without any library that it needs, so that the same file is loaded by a JVM of any libc. All
//! policy stays in Java (`runtimes/jvm`). A JVM calls these functions by the names that it derives
//! from the class `hob.Gate`.
//!
//! Invariants: nothing is allocated; no function keeps what it was given, but for the reference to
//! the class in [`Java_hob_Gate_hook`]; what a JNI function refuses is a zero.
#![no_std]

use core::ffi::{c_char, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

/// A function of the JVM, by its place in the table that a `JNIEnv` points to.
type Table = *const *const c_void;
/// `JNIEnv *`.
type Env = *const Table;
/// `jobject`, `jclass`, `jthrowable`.
type Object = *mut c_void;

const FIND_CLASS: usize = 6;
const EXCEPTION_CLEAR: usize = 17;
const NEW_GLOBAL_REF: usize = 21;
const GET_STATIC_METHOD: usize = 113;
const CALL_STATIC_VOID: usize = 141;
const GET_STATIC_FIELD: usize = 144;
const GET_STATIC_OBJECT: usize = 145;
const REGISTER_NATIVES: usize = 215;

/// `JNINativeMethod`.
#[repr(C)]
struct Native {
    name: *const c_char,
    signature: *const c_char,
    function: *const c_void,
}

unsafe extern "C" {
    /// The C library's own: what `getenv` reads, and what a child gets.
    static mut environ: *mut *mut c_char;
    /// The JVM's own: what `Shutdown.halt0` calls without the gate.
    fn JVM_Halt(code: i32) -> !;
}

/// `hob.Gate`, and its method that is called before the VM halts.
static CLASS: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static METHOD: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// The function of this number, as the type that the JNI specification gives it.
macro_rules! jni {
    ($env:expr, $number:expr, $type:ty) => {
        // SAFETY: the JVM gives a valid table; the number and the type are the specification's.
        unsafe { core::mem::transmute::<*const c_void, $type>(*(*$env).add($number)) }
    };
}

type Find = unsafe extern "C" fn(Env, *const c_char) -> Object;
type Member = unsafe extern "C" fn(Env, Object, *const c_char, *const c_char) -> *mut c_void;
type Static = unsafe extern "C" fn(Env, Object, *mut c_void) -> Object;
type Register = unsafe extern "C" fn(Env, Object, *const Native, i32) -> i32;
type Call = unsafe extern "C" fn(Env, Object, *mut c_void, ...);
type Of = unsafe extern "C" fn(Env, Object) -> Object;
type Clear = unsafe extern "C" fn(Env);

/// A system call: what the kernel returns, a negative number of an error among it.
///
/// # Safety
/// What the call reads and writes is memory that its caller owns.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_hob_Gate_syscall(
    _env: Env,
    _class: Object,
    number: i64,
    a: i64,
    b: i64,
    c: i64,
    d: i64,
    e: i64,
    f: i64,
) -> i64 {
    let result;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the kernel's own convention; what the call does is its caller's to answer for.
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: likewise.
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    result
}

/// `MethodHandles.Lookup.IMPL_LOOKUP`: what `--add-opens` would open, without a program noticing.
///
/// # Safety
/// Called by a JVM, with an environment that is valid in this thread.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_hob_Gate_lookup(env: Env, _class: Object) -> Object {
    let class = c"java/lang/invoke/MethodHandles$Lookup";
    let (name, kind) = (c"IMPL_LOOKUP", c"Ljava/lang/invoke/MethodHandles$Lookup;");
    let (find, member) = (jni!(env, FIND_CLASS, Find), jni!(env, GET_STATIC_FIELD, Member));
    let get = jni!(env, GET_STATIC_OBJECT, Static);
    // SAFETY: each result is looked at before it is used.
    unsafe {
        let class = find(env, class.as_ptr());
        if class.is_null() {
            return class;
        }
        let field = member(env, class, name.as_ptr(), kind.as_ptr());
        if field.is_null() { field } else { get(env, class, field) }
    }
}

/// Puts another array in the place of the C library's `environ`.
///
/// # Safety
/// The array and its strings live as long as the process, and no other thread reads it meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_hob_Gate_environ(_env: Env, _class: Object, array: i64) {
    // SAFETY: as its caller promises.
    unsafe { environ = array as *mut *mut c_char }
}

/// From now on `hob.Gate.halting(code)` is called before the VM halts, by whichever way. `false`:
/// this JDK has no such place.
///
/// # Safety
/// Called by a JVM, with an environment that is valid in this thread.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_hob_Gate_hook(env: Env, class: Object) -> bool {
    let (find, member) = (jni!(env, FIND_CLASS, Find), jni!(env, GET_STATIC_METHOD, Member));
    let (keep, register) = (jni!(env, NEW_GLOBAL_REF, Of), jni!(env, REGISTER_NATIVES, Register));
    let native = Native {
        name: c"halt0".as_ptr(),
        signature: c"(I)V".as_ptr(),
        function: halt as *const c_void,
    };
    // SAFETY: each result is looked at before it is used; the JVM copies what `native` says.
    unsafe {
        let shutdown = find(env, c"java/lang/Shutdown".as_ptr());
        let method = member(env, class, c"halting".as_ptr(), c"(I)V".as_ptr());
        if shutdown.is_null() || method.is_null() {
            return false;
        }
        CLASS.store(keep(env, class), Ordering::Relaxed);
        METHOD.store(method, Ordering::Release);
        register(env, shutdown, &raw const native, 1) == 0
    }
}

/// What stands in the place of `Shutdown.halt0`.
unsafe extern "system" fn halt(env: Env, _shutdown: Object, code: i32) {
    let (method, class) = (METHOD.load(Ordering::Acquire), CLASS.load(Ordering::Relaxed));
    let (call, clear) = (jni!(env, CALL_STATIC_VOID, Call), jni!(env, EXCEPTION_CLEAR, Clear));
    // SAFETY: both were stored before this function was registered.
    unsafe {
        call(env, class, method, code);
        clear(env);
        JVM_Halt(code)
    }
}

/// Nothing here can panic.
#[cfg(shared)]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
