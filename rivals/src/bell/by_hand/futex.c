// SPDX-License-Identifier: MIT OR Apache-2.0
// A ping-pong on two futex words as one writes it by hand: store, wake, and wait while the word has the old value. One wake
// for each store, for the writer keeps no account of sleepers.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static void pass(_Atomic uint32_t *word, uint32_t turn, int flags)
{
	atomic_store(word, turn);
	syscall(SYS_futex, word, FUTEX_WAKE | flags, 1, NULL, NULL, 0);
}

static void wait_for(_Atomic uint32_t *word, uint32_t turn, int flags)
{
	while (atomic_load_explicit(word, memory_order_acquire) != turn)
		syscall(SYS_futex, word, FUTEX_WAIT | flags, turn - 1, NULL, NULL, 0);
}

// The words count the turns; `private` is whether both sides are threads of one process.
void futex_call(_Atomic uint32_t *there, _Atomic uint32_t *back, uint32_t turn, uint32_t times, int private)
{
	int flags = private ? FUTEX_PRIVATE_FLAG : 0;

	while (times--) {
		pass(there, ++turn, flags);
		wait_for(back, turn, flags);
	}
}

void futex_answer(_Atomic uint32_t *there, _Atomic uint32_t *back, uint32_t turn, uint32_t times, int private)
{
	int flags = private ? FUTEX_PRIVATE_FLAG : 0;

	while (times--) {
		wait_for(there, ++turn, flags);
		pass(back, turn, flags);
	}
}
