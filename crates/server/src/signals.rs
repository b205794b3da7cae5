//! Signals: one thread waits for them; all other threads block them.

use std::io;
use std::thread::Builder;

/// An operator's request, made by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM, SIGINT, SIGQUIT: stop.
    Stop,
    /// SIGHUP: flush logs.
    Flush,
    /// A signal that means nothing to the server, but would end the process if no thread waited for it.
    Meaningless(&'static str),
}

const SIGNALS: [(i32, Signal); 6] = [
    (libc::SIGTERM, Signal::Stop),
    (libc::SIGINT, Signal::Stop),
    (libc::SIGQUIT, Signal::Stop),
    (libc::SIGHUP, Signal::Flush),
    (libc::SIGUSR1, Signal::Meaningless("SIGUSR1")),
    (libc::SIGUSR2, Signal::Meaningless("SIGUSR2")),
];

/// Blocks the signals in this thread and in those that it starts. Call it before any other thread runs.
pub fn block() {
    let set = signal_set();
    // SAFETY: the set is initialised, and the old mask is not needed. SIGPIPE would end the process when a
    // client disconnects.
    unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
    }
}

/// Starts the thread that calls `handle` for each signal, for the life of the process.
pub fn listen(handle: impl Fn(Signal) + Send + 'static) -> io::Result<()> {
    let run = move || {
        let set = signal_set();
        loop {
            let mut signal = 0;
            // SAFETY: both pointers are to live variables.
            let is_received = unsafe { libc::sigwait(&set, &mut signal) } == 0;
            if let Some((_, meaning)) = SIGNALS.iter().find(|(number, _)| is_received && *number == signal) {
                handle(*meaning);
            }
        }
    };
    Builder::new().name("signals".into()).spawn(run).map(drop)
}

fn signal_set() -> libc::sigset_t {
    // SAFETY: sigemptyset initialises the whole set before it is read.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for (number, _) in SIGNALS {
            libc::sigaddset(&mut set, number);
        }
        set
    }
}
