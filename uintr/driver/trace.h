/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The protocol's steps as trace events; the executable model replays them
 * (uintr/model/src/model/uintr/replay.rs, polled/replay.rs). @step numbers a receiver's own events:
 * they are in order, whatever the clocks of the CPUs say.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM uintr

#if !defined(UINTR_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define UINTR_TRACE_H

#include <linux/tracepoint.h>

DECLARE_EVENT_CLASS(uintr_step,
	TP_PROTO(const struct receiver *receiver, u64 step, int to, u64 low, u64 pir, u64 uirr, bool uif),
	TP_ARGS(receiver, step, to, low, pir, uirr, uif),
	TP_STRUCT__entry(
		__field(unsigned int, receiver)
		__field(u64, step)
		__field(int, to)
		__field(u64, low)
		__field(u64, pir)
		__field(u64, uirr)
		__field(bool, uif)
	),
	TP_fast_assign(
		__entry->receiver = receiver->number;
		__entry->step = step;
		__entry->to = to;
		__entry->low = low;
		__entry->pir = pir;
		__entry->uirr = uirr;
		__entry->uif = uif;
	),
	TP_printk("receiver=%u step=%llu to=%d low=%016llx pir=%llx uirr=%llx uif=%d",
		  __entry->receiver, __entry->step, __entry->to, __entry->low, __entry->pir,
		  __entry->uirr, __entry->uif)
);

/* Off its CPU: the UPID just before SN was set, and what the CPU had. */
DEFINE_EVENT(uintr_step, uintr_out,
	TP_PROTO(const struct receiver *receiver, u64 step, int to, u64 low, u64 pir, u64 uirr, bool uif),
	TP_ARGS(receiver, step, to, low, pir, uirr, uif));
/* On CPU @to's list, and the look behind that. */
DEFINE_EVENT(uintr_step, uintr_sleep,
	TP_PROTO(const struct receiver *receiver, u64 step, int to, u64 low, u64 pir, u64 uirr, bool uif),
	TP_ARGS(receiver, step, to, low, pir, uirr, uif));
/* It does not sleep: that look found something. */
DEFINE_EVENT(uintr_step, uintr_late,
	TP_PROTO(const struct receiver *receiver, u64 step, int to, u64 low, u64 pir, u64 uirr, bool uif),
	TP_ARGS(receiver, step, to, low, pir, uirr, uif));
/* WAKE took it off the list. */
DEFINE_EVENT(uintr_step, uintr_wake,
	TP_PROTO(const struct receiver *receiver, u64 step, int to, u64 low, u64 pir, u64 uirr, bool uif),
	TP_ARGS(receiver, step, to, low, pir, uirr, uif));
/* It took itself off the list: something else woke it. */
DEFINE_EVENT(uintr_step, uintr_rise,
	TP_PROTO(const struct receiver *receiver, u64 step, int to, u64 low, u64 pir, u64 uirr, bool uif),
	TP_ARGS(receiver, step, to, low, pir, uirr, uif));
/* On a CPU: the UPID's low half just before, what was taken from PIR, and UIRR with it. */
DEFINE_EVENT(uintr_step, uintr_in,
	TP_PROTO(const struct receiver *receiver, u64 step, int to, u64 low, u64 pir, u64 uirr, bool uif),
	TP_ARGS(receiver, step, to, low, pir, uirr, uif));

DECLARE_EVENT_CLASS(uintr_polled_step,
	TP_PROTO(const struct polled *polled, u64 step, int to, u64 low, u64 requests),
	TP_ARGS(polled, step, to, low, requests),
	TP_STRUCT__entry(
		__field(unsigned int, receiver)
		__field(u64, step)
		__field(int, to)
		__field(u64, low)
		__field(u64, requests)
	),
	TP_fast_assign(
		__entry->receiver = polled->receiver->number;
		__entry->step = step;
		__entry->to = to;
		__entry->low = low;
		__entry->requests = requests;
	),
	TP_printk("receiver=%u step=%llu to=%d low=%016llx requests=%llx",
		  __entry->receiver, __entry->step, __entry->to, __entry->low, __entry->requests)
);

/* Onto CPU @to's list: the UPID's low half before, and PIR behind it. */
DEFINE_EVENT(uintr_polled_step, uintr_polled_arm,
	TP_PROTO(const struct polled *polled, u64 step, int to, u64 low, u64 requests), TP_ARGS(polled, step, to, low, requests));
/* An interrupt found ON on CPU @to's list, and took these requests. */
DEFINE_EVENT(uintr_polled_step, uintr_polled_notice,
	TP_PROTO(const struct polled *polled, u64 step, int to, u64 low, u64 requests), TP_ARGS(polled, step, to, low, requests));
/* A read took this request from PIR. */
DEFINE_EVENT(uintr_polled_step, uintr_polled_take,
	TP_PROTO(const struct polled *polled, u64 step, int to, u64 low, u64 requests), TP_ARGS(polled, step, to, low, requests));
/* Nobody waits: off its list. */
DEFINE_EVENT(uintr_polled_step, uintr_polled_rest,
	TP_PROTO(const struct polled *polled, u64 step, int to, u64 low, u64 requests), TP_ARGS(polled, step, to, low, requests));
/* Interrupts have had their share of CPU @to: SN is set though somebody waits. */
DEFINE_EVENT(uintr_polled_step, uintr_polled_throttle,
	TP_PROTO(const struct polled *polled, u64 step, int to, u64 low, u64 requests), TP_ARGS(polled, step, to, low, requests));
/* That is over: armed for CPU @to again, and these requests were taken. */
DEFINE_EVENT(uintr_polled_step, uintr_polled_unthrottle,
	TP_PROTO(const struct polled *polled, u64 step, int to, u64 low, u64 requests), TP_ARGS(polled, step, to, low, requests));

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
