//! Values that are shown to other threads. `model.rs` checks the protocol.

use cohort_observe::Published;

#[test]
fn values_nest_and_are_retracted() {
    let published: Published<str> = Published::default();
    let shown = || published.read(str::to_owned);
    assert_eq!(shown(), None);
    published.during("outer", || {
        assert_eq!(shown().as_deref(), Some("outer"));
        published.during("inner", || assert_eq!(shown().as_deref(), Some("inner")));
        assert_eq!(shown().as_deref(), Some("outer"));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            published.during("failing", || panic!("expected"))
        }));
        assert!(panicked.is_err());
        assert_eq!(shown().as_deref(), Some("outer"));
    });
    assert_eq!(shown(), None);
}
