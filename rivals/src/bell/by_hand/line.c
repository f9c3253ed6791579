// SPDX-License-Identifier: MIT OR Apache-2.0
// A ping-pong of two spinners on a cache line for each direction: a plain store, and loads until it is seen.
#include <immintrin.h>
#include <stdatomic.h>
#include <stdint.h>

static void wait_for(_Atomic uint32_t *word, uint32_t turn)
{
	while (atomic_load_explicit(word, memory_order_acquire) != turn)
		_mm_pause();
}

void line_call(_Atomic uint32_t *there, _Atomic uint32_t *back, uint32_t turn, uint32_t times)
{
	while (times--) {
		atomic_store_explicit(there, ++turn, memory_order_release);
		wait_for(back, turn);
	}
}

void line_answer(_Atomic uint32_t *there, _Atomic uint32_t *back, uint32_t turn, uint32_t times)
{
	while (times--) {
		wait_for(there, ++turn);
		atomic_store_explicit(back, turn, memory_order_release);
	}
}
