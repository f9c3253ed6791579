// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mistakes, each a rule of the protocol that is broken.

use super::config::Config;
use crate::model::hazard::hazards;

hazards! {
    "A mistake that the protocol must not have.";

    P1(LEVEL): "looks before it queues",
        "a post between look and queue interrupts, finds nobody and puts the receiver to rest; who \
         then queues sleeps",
        "into the queue, arm, and look behind both";
    P2(LEVEL): "looks before it arms",
        "a post while SN is set only sets its bit; whoever has looked already arms and sleeps in front of it",
        "arm, and look behind that";
    P3(SHARED): "arming leaves ON set",
        "a post between the interrupt's look at ON and its rest leaves ON behind; armed again, no \
         post interrupts",
        "clear ON when arming, and look at what it stood for";
    P4(LEVEL): "PIR taken before ON is cleared",
        "a post between both finds ON set and sends nothing; then ON is cleared, and its bit stays in PIR",
        "clear ON first";
    P5(LEVEL): "wakes in the interrupt",
        "with PREEMPT_RT who holds a queue's lock can be interrupted; the interrupt waits for that \
         lock and for ever",
        "note which queues to wake, and wake them in work outside hard interrupts";
    P6(TOLD): "a look takes the bit from PIR",
        "poll counts the post itself; the interrupt finds nothing, and others that wait are not woken for it",
        "look without taking; who takes a bit wakes the queue";
    P7(MULTISHOT): "rests after each wake-up, until somebody looks",
        "who was woken may be told without looking again, or die before it does; the posts behind \
         that interrupt nobody",
        "rest only where nobody is queued";
    P8(VECTORS): "takes what is to be woken before it may be queued again",
        "an interrupt in between notes another queue and finds the work still queued: nobody will \
         look at the note",
        "allow the work to be queued first, then take the note";
    P9(VECTORS): "decides to rest without the lock",
        "the interrupt sees nobody queued; somebody queues, finds the receiver armed and sleeps; \
         then it is put to rest",
        "look at the queue and rest under the lock that arming takes";
    P10(HOT_PLUG): "nobody looks at those moved off a processor",
        "an interrupt that was sent to the processor before it went is lost with it; ON stays set, \
         so none follows",
        "move, name the other processor, and look at ON";
    P11(VECTORS): "a read takes all of PIR",
        "it counts other vectors' posts too and wakes nobody for them; the interrupt finds nothing",
        "take the own vector's bit alone";
    P12(TOLD): "a read takes a bit and tells nobody",
        "the post is gone when the interrupt comes; others that are told of each post are not told \
         of this one",
        "who takes a bit wakes the queue";
    P13(THROTTLED): "a throttled receiver is armed again, and nobody looks",
        "what was posted while SN was set only set its bit; from then on posts interrupt, and that \
         one is noticed by none",
        "the timer clears SN, and looks behind that";
    P14(THROTTLED): "the timer looks, and then arms again",
        "a post between the look and the clearing of SN only sets its bit",
        "clear SN first";
    P15(THROTTLED_HOT_PLUG): "no timer for those moved off a processor",
        "the throttled go to the other processor's list, whose timer does not run; SN stays set for good",
        "start the other processor's timer with the move";
}
