// SPDX-License-Identifier: MIT OR Apache-2.0
//! Races that are the same whatever the waiter sleeps on.

/// The tests, of a waiter in `$slot` of `$bell` that sleeps by `$sleeper`; and `wait`, which waits
/// so for a number of messages.
macro_rules! any_waiter {
    ($slot:expr, |$bell:ident| $sleeper:expr) => {
        fn wait($bell: &Bell, wanted: u32) {
            let mut waiters = [Waiter::new(&$bell.words, $slot)];
            let waited = wait_until(&mut waiters, &mut $sleeper, || $bell.has(wanted)).unwrap();
            assert!(waited.ready);
        }

        #[test]
        fn publish_and_wait() {
            explore(|| {
                let bell = Arc::new(Bell::new());
                let notifier = Arc::clone(&bell);
                let notifier = thread::spawn(move || notifier.publish());
                wait(&bell, 1);
                notifier.join().unwrap();
            });
        }

        #[test]
        fn publish_twice_and_wait_twice() {
            explore_bounded(|| {
                let bell = Arc::new(Bell::new());
                let notifier = Arc::clone(&bell);
                let notifier = thread::spawn(move || {
                    notifier.publish();
                    notifier.publish();
                });
                wait(&bell, 1);
                wait(&bell, 2);
                notifier.join().unwrap();
            });
        }

        #[test]
        fn timeout_and_publish_and_wait_again() {
            explore(|| {
                let shared = Arc::new(Bell::new());
                let notifier = Arc::clone(&shared);
                let notifier = thread::spawn(move || notifier.publish());
                let $bell: &Bell = &shared;
                let mut waiters = [Waiter::new(&$bell.words, $slot)];
                let mut sleeper = Impatient($sleeper, true);
                let first = wait_until(&mut waiters, &mut sleeper, || $bell.has(1)).unwrap();
                if !first.ready {
                    let second = wait_until(&mut waiters, &mut sleeper, || $bell.has(1)).unwrap();
                    assert!(second.ready);
                }
                notifier.join().unwrap();
            });
        }
    };
}
pub(super) use any_waiter;
