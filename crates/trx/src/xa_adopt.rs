//! Restores the locks of prepared XA branches that recovery has found, when the server starts.

use cohort_base::{Budget, Reservation};
use cohort_commit::{XaBody, XaHeld};
use cohort_locks::{KillFlag, LockError, LockOwner, RowMode, WaitLimit};

use crate::env::TrxEnv;

/// Takes the locks of each prepared branch, before any session begins. Only other branches can hold locks at
/// this time, and those were prepared concurrently with it.
pub fn adopt(env: &TrxEnv) {
    let adopted: Result<usize, std::convert::Infallible> =
        env.commit.xa().adopt(|body| Ok(XaHeld { locks: locked(env, body), memory: charged(env, body) }));
    let Ok(adopted) = adopted;
    if adopted > 0 {
        log::info!(
            "{adopted} XA transactions are prepared; XA RECOVER lists them, XA COMMIT or XA ROLLBACK ends each"
        );
    }
}

/// Charges a prepared branch. It is kept even if that exceeds today's limits.
fn charged(env: &TrxEnv, body: &XaBody) -> Reservation {
    let mut memory = Reservation::new(Budget::of_session(&env.memory));
    let _ = memory.grow(body.bytes().len() as u64);
    memory
}

fn locked(env: &TrxEnv, body: &XaBody) -> LockOwner {
    let mut owner = env.locks.owner(env.trx_ids.next());
    let locks = std::cell::RefCell::new((&mut owner, 0_u64));
    let kill = KillFlag::default();
    let note = |outcome: Result<(), LockError>, refused: &mut u64| *refused += u64::from(outcome.is_err());
    let walked: Result<(), std::convert::Infallible> = body.walk(
        &mut |name, mode| {
            let (owner, refused) = &mut *locks.borrow_mut();
            note(env.locks.lock_metadata(owner, &name, mode, WaitLimit::NoWait, &kill), refused);
            Ok(())
        },
        &mut |index, key, mode| {
            let (owner, refused) = &mut *locks.borrow_mut();
            let granted = env.locks.lock_row(owner, index, key, mode, WaitLimit::NoWait, &kill);
            note(granted.map(drop), refused);
            Ok(())
        },
        &mut |write| {
            let (owner, refused) = &mut *locks.borrow_mut();
            let (index, key, wait) = (write.index, write.key, WaitLimit::NoWait);
            let granted = env.locks.lock_row(owner, index, key, RowMode::Exclusive, wait, &kill);
            note(granted.map(drop), refused);
            if write.value.is_some() {
                note(env.locks.put_key(owner, index, key, wait, &kill).map(drop), refused);
            }
            Ok(())
        },
    );
    let Ok(()) = walked;
    let (_, refused) = locks.into_inner();
    if refused > 0 {
        // The keys of two branches share a lock by their hashes, and the other branch holds it.
        log::warn!(
            "XA transaction {}: {refused} of its locks are held by another prepared transaction; end this one first",
            body.head().xid.to_sql()
        );
    }
    owner
}
