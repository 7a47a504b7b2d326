//! Entries into the kernel, counted.

use std::cell::Cell;
use std::io;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
    static LATEST: Cell<i64> = const { Cell::new(0) };
}

/// Does the work on a thread of its own and says how many system calls it made, and which the last one was. Waiting for a lock
/// that another holds, waking another thread, memory that the allocator has not got, a file, a socket, a sleep: all of them
/// are system calls.
///
/// `None`, and the work is not done, where the kernel has no filters of system calls, or this is no x86-64.
///
/// # Panics
/// As the work does.
pub fn system_calls(work: impl FnOnce() + Send) -> Option<(u64, i64)> {
    std::thread::scope(|scope| {
        let watched = scope.spawn(|| {
            trap::all().ok()?;
            let before = CALLS.get();
            work();
            Some((CALLS.get() - before, LATEST.get()))
        });
        watched.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
mod trap {
    pub(super) fn all() -> super::io::Result<()> {
        Err(super::io::ErrorKind::Unsupported.into())
    }
}

/// A filter of the kernel's (seccomp) turns each system call of the thread into a signal, whose handler counts it and makes it
/// in the thread's stead, from the one place in the program that the filter lets pass.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod trap {
    use std::mem::{offset_of, zeroed};
    use std::sync::Once;

    use super::{CALLS, LATEST, io};

    // A system call by its number and six arguments, which lie at RDI.
    std::arch::global_asm!(
        ".global strowger_kit_enter",
        ".global strowger_kit_entered",
        "strowger_kit_enter:",
        "mov rax, [rdi]",
        "mov rsi, [rdi + 16]",
        "mov rdx, [rdi + 24]",
        "mov r10, [rdi + 32]",
        "mov r8, [rdi + 40]",
        "mov r9, [rdi + 48]",
        "mov rdi, [rdi + 8]",
        "syscall",
        "strowger_kit_entered:",
        "ret",
    );
    unsafe extern "C" {
        fn strowger_kit_enter(call: *const [i64; 7]) -> i64;
        fn strowger_kit_entered();
    }

    /// Traps every system call of the calling thread from here on.
    pub(super) fn all() -> io::Result<()> {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(|| {
            // SAFETY: all-zero bytes are a valid `sigaction`, and the handler has the form that SA_SIGINFO asks for.
            unsafe {
                let mut action: libc::sigaction = zeroed();
                action.sa_sigaction = trapped as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
                libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut());
            }
        });
        let load = |offset: usize| (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset as u32, 0, 0);
        // Goes on with the next step, or skips so many when the value is another (or the same).
        let equal = |value: u32, skip: u8| (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value, 0, skip);
        let other = |value: u32, skip: u8| (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value, skip, 0);
        let say = |verdict: u32| (libc::BPF_RET | libc::BPF_K, verdict, 0, 0);
        let at = offset_of!(libc::seccomp_data, instruction_pointer);
        let pass = strowger_kit_entered as *const () as u64;
        let steps = [
            load(at),
            equal(pass as u32, 3),
            load(at + 4),
            equal((pass >> 32) as u32, 1),
            say(libc::SECCOMP_RET_ALLOW),
            load(offset_of!(libc::seccomp_data, nr)),
            // These two work on the very stack that they are called on.
            other(libc::SYS_rt_sigreturn as u32, 2),
            other(libc::SYS_exit as u32, 1),
            say(libc::SECCOMP_RET_TRAP),
            say(libc::SECCOMP_RET_ALLOW),
        ];
        let mut steps = steps.map(|(code, k, jt, jf)| libc::sock_filter { code: code as u16, jt, jf, k });
        let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
        // SAFETY: the program and its steps outlive the calls, and its length is theirs.
        let result = unsafe {
            match libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) {
                0 => libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program),
                failed => failed,
            }
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// SIGSYS: counts the call and makes it.
    extern "C" fn trapped(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
        use libc::{REG_R8, REG_R9, REG_R10, REG_RAX, REG_RDI, REG_RDX, REG_RSI};
        let context = context.cast::<libc::ucontext_t>();
        // SAFETY: the kernel hands a handler with SA_SIGINFO the registers of the thread that it interrupted, and nobody else
        // has them meanwhile. A trapped call leaves its number and arguments in them, and takes its result from RAX; the
        // call is the one that the thread was making, with the same arguments. Beside it only thread-local cells without
        // destructors are touched.
        unsafe {
            let registers = &mut (*context).uc_mcontext.gregs;
            let order = [REG_RAX, REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8, REG_R9];
            let call = order.map(|register| registers[register as usize]);
            LATEST.set(call[0]);
            CALLS.set(CALLS.get() + 1);
            registers[REG_RAX as usize] = strowger_kit_enter(&raw const call);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_enters_the_kernel_is_counted_and_what_does_not_is_not() {
        let mut sum = 0_u64;
        let Some((calls, _)) = system_calls(|| sum = (0..1000).sum()) else {
            println!("skipped: no filters of system calls here");
            return;
        };
        assert_eq!((calls, sum), (0, 499_500));
        let (calls, latest) = system_calls(std::thread::yield_now).unwrap();
        assert_eq!((calls, latest), (1, libc::SYS_sched_yield));
        let (calls, latest) = system_calls(|| drop(std::fs::metadata("/"))).unwrap();
        assert!(calls > 0 && latest > 0, "{calls} {latest}");
    }

    #[test]
    #[should_panic(expected = "as the work does")]
    fn a_panic_of_the_work_is_the_tests_own() {
        system_calls(|| panic!("as the work does"));
        panic!("as the work does, where there are no filters");
    }
}
