//! The states of each part, one transition after the other in a fixed order.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use crate::ownership::{Events, Ownership};
use crate::pool::{WorkerLimits, Workers};
use crate::ready::{Next, Ready, WaitEnd, WakeupEvent};
use crate::sync::thread;
use crate::{Tally, check};

#[test]
fn an_event_is_remembered_until_the_owner_hears_of_it() {
    check(1, || {
        let owner = Ownership::new();
        assert!(!owner.take(), "it has an owner");
        assert_eq!(owner.release(), Events::Missed);
        assert_eq!(owner.release(), Events::None);
        assert!(owner.take());
        owner.park();
        assert!(!owner.take());
        assert_eq!(owner.unpark(), Some(Events::Missed));
        assert_eq!(owner.unpark(), None, "only once");
        owner.close();
        assert!(!owner.take());
        assert_eq!(owner.unpark(), None);
    });
}

#[derive(Default)]
struct Notified(Cell<usize>);

impl WakeupEvent for Notified {
    fn notify(&self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn the_bell_goes_from_worker_to_worker() {
    check(1, || {
        let ready: Ready<u32, Notified> = Ready::new(Notified::default());
        ready.push(0);
        assert_eq!(ready.wakeup().0.get(), 0, "no worker is idle");
        assert_eq!(ready.next(|| panic!("there is work"), |_| WaitEnd::Other(())), Next::Work(0));
        // Two workers are idle. Both pushes signal the wakeup event once; the worker that handles it signals
        // it for the other.
        let outer = ready.next(
            || true,
            |_| {
                let inner = ready.next(
                    || true,
                    |_| {
                        ready.push(1);
                        ready.push(2);
                        assert_eq!(ready.wakeup().0.get(), 1);
                        WaitEnd::<()>::Wakeup
                    },
                );
                assert_eq!(inner, Next::Work(1));
                assert_eq!(ready.wakeup().0.get(), 2, "work is left, and a worker rests");
                WaitEnd::<()>::Wakeup
            },
        );
        assert_eq!(outer, Next::Work(2));
        // A worker that is woken by another event leaves the wakeup event to the next worker.
        let event = ready.next(
            || true,
            |_| {
                ready.push(3);
                WaitEnd::Other("event")
            },
        );
        assert_eq!((event, ready.wakeup().0.get()), (Next::Event("event"), 3));
        assert_eq!(ready.pop(), Some(3));
        assert_eq!(ready.next(|| true, |_| WaitEnd::<()>::Wakeup), Next::Nothing);
        assert_eq!(ready.next(|| false, |_| WaitEnd::Other(())), Next::Leave);
    });
}

#[test]
fn blocked_workers_are_replaced_up_to_the_bound() {
    check(200, || {
        let limits = WorkerLimits { active: 2, total_max: 4, stack_bytes: 1 << 16, idle: Duration::ZERO };
        let workers = Arc::new(Workers::new(limits));
        let (gate, begun) = (Arc::new(Tally::default()), Arc::new(Tally::default()));
        let main = {
            let (workers, gate, begun) = (Arc::downgrade(&workers), gate.clone(), begun.clone());
            move || {
                let blocking = workers.upgrade().expect("they are joined before");
                blocking.begin();
                begun.add();
                gate.wait_for(1);
                blocking.end();
            }
        };
        workers.start(Arc::new(main)).expect("threads");
        begun.wait_for(4);
        assert_eq!(workers.total(), 4, "two first ones and two replacements");
        assert!(!workers.top_up(), "the bound is reached");
        gate.add();
        workers.stop();
        assert_eq!((workers.total(), workers.active()), (0, 0), "no worker is counted");
    });
}

/// An additional worker starts while it is needed, and one worker becomes idle afterwards.
#[test]
fn one_more_worker_comes_and_goes() {
    check(200, || {
        let limits = WorkerLimits { active: 2, total_max: 4, stack_bytes: 1 << 16, idle: Duration::ZERO };
        let workers = Arc::new(Workers::new(limits));
        let (asks, end) = (Arc::new(Tally::default()), Arc::new(Tally::default()));
        let main = {
            let (workers, asks, end) = (Arc::downgrade(&workers), asks.clone(), end.clone());
            move || {
                asks.wait_for(1);
                let workers = workers.upgrade().expect("they are joined before");
                if workers.stay(|| ()) {
                    end.wait_for(1);
                }
            }
        };
        workers.start(Arc::new(main)).expect("threads");
        assert_eq!((workers.active(), workers.is_short()), (2, false));
        workers.want_more(1);
        assert!(workers.is_short() && workers.top_up());
        assert_eq!((workers.active(), workers.is_short()), (3, false));
        workers.want_more(0);
        asks.add();
        // Needed workers stay until `end`, so the number falls only when one becomes idle.
        while workers.active() > 2 {
            thread::yield_now();
        }
        end.add();
        workers.stop();
        assert_eq!((workers.total(), workers.active()), (0, 0), "no worker is counted");
    });
}
