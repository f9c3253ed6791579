// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of any type that serde knows.

use doorbell::channel::{
    Lanes, Receiver, RecvError, SendError, Sender, ValueError, ValueReceiver, ValueSender,
};
use doorbell::peer::Untrusted;
use doorbell::rendezvous::{Join, Offer, Segment, socket};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
enum Order {
    Nothing,
    Buy { symbol: String, shares: u32 },
    Cancel(Vec<u64>),
    Both(Box<Order>, BTreeMap<String, f64>),
}

fn orders() -> Vec<Order> {
    let buy = Order::Buy { symbol: "BELL".into(), shares: 7 };
    let prices = [("a".to_owned(), 0.5), ("b".to_owned(), f64::MAX)].into();
    vec![Order::Nothing, buy.clone(), Order::Cancel((0..100).collect()), Order::Both(Box::new(buy), prices)]
}

#[test]
fn values_arrive_as_they_were_sent() {
    let (sender, receiver) = doorbell::channel(4096).unwrap();
    let (mut sender, mut receiver) = (ValueSender::new(sender), ValueReceiver::<Order, _, _>::new(receiver));
    assert_eq!(receiver.try_recv(), Ok(None));
    for _ in 0..100 {
        for order in orders() {
            sender.try_send(&order).unwrap();
            assert_eq!(receiver.recv(), Ok(order));
        }
    }
    drop(sender);
    assert_eq!(receiver.recv(), Err(ValueError::Channel(RecvError::Closed)));
}

#[test]
fn a_message_that_is_no_value_is_told_and_gone() {
    let (ours, theirs) = socket::pair().unwrap();
    let segment = Arc::new(Segment::new(&Offer::of_lanes(Lanes::new(1, 1, 4096).unwrap())).unwrap());
    let joining = std::thread::spawn(move || Join::default().over(theirs).unwrap());
    let host = socket::host_over(ours, &segment).unwrap();
    let join = joining.join().unwrap();
    let mut hostile = Sender::<Untrusted>::attach(&join, 0).unwrap();
    let receiver = Receiver::<Untrusted>::attach(&host, 0).unwrap();
    let mut receiver = ValueReceiver::<Order, _, _>::new(receiver);

    let mut cut = postcard::to_allocvec(&orders()[1]).unwrap();
    cut.pop();
    let mut longer = postcard::to_allocvec(&Order::Nothing).unwrap();
    longer.extend([0; 3]);
    // A list that says it has more elements than there is memory for.
    let endless = [[2].as_slice(), &[0xff; 9], &[1]].concat();
    for (message, error) in [
        (cut, ValueError::Format(postcard::Error::DeserializeUnexpectedEnd)),
        (longer, ValueError::TrailingBytes(3)),
        (endless, ValueError::Format(postcard::Error::DeserializeUnexpectedEnd)),
        (vec![9], ValueError::Format(postcard::Error::SerdeDeCustom)),
    ] {
        hostile.send(&message).unwrap();
        assert_eq!(receiver.recv(), Err(error));
    }
    hostile.send(&postcard::to_allocvec(&Order::Nothing).unwrap()).unwrap();
    assert_eq!(receiver.try_recv(), Ok(Some(Order::Nothing)));
}

#[test]
fn a_value_that_does_not_fit_is_not_sent() {
    let (sender, receiver) = doorbell::channel(256).unwrap();
    let mut sender = ValueSender::<Order, _, _>::new(sender);
    let long = Order::Cancel((0..1000).collect());
    assert!(matches!(sender.send(&long), Err(ValueError::Channel(SendError::TooLong { .. }))));
    let short = Order::Buy { symbol: "x".repeat(60), shares: 1 };
    while sender.try_send(&short).is_ok() {}
    assert_eq!(sender.try_send(&short), Err(ValueError::Channel(SendError::Full)));
    let mut receiver = ValueReceiver::<Order, _, _>::new(receiver);
    assert_eq!(receiver.recv(), Ok(short));
}

#[cfg(feature = "tokio")]
#[tokio::test]
async fn a_task_sleeps_until_there_is_room_for_a_value() {
    let (sender, receiver) = doorbell::channel(1024).unwrap();
    let mut sender = doorbell::Async::new(ValueSender::new(sender)).unwrap();
    let mut receiver = doorbell::Async::new(ValueReceiver::<Order, _, _>::new(receiver)).unwrap();
    let sends = tokio::spawn(async move {
        for _ in 0..100 {
            for order in orders() {
                sender.send(&order).await.unwrap();
            }
        }
    });
    for _ in 0..100 {
        for order in orders() {
            assert_eq!(receiver.recv().await, Ok(order));
        }
    }
    sends.await.unwrap();
    assert_eq!(receiver.recv().await, Err(ValueError::Channel(RecvError::Closed)));
}
