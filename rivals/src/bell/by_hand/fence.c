// SPDX-License-Identifier: MIT OR Apache-2.0
// A bare full fence and a load: the least that telling whether somebody sleeps can cost.
#include <stdatomic.h>
#include <stdint.h>

void fence_and_load(const _Atomic uint32_t *word, uint32_t times)
{
	while (times--) {
		atomic_thread_fence(memory_order_seq_cst);
		(void)atomic_load_explicit((_Atomic uint32_t *)word, memory_order_relaxed);
	}
}
