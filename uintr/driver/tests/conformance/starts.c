// SPDX-License-Identifier: MIT OR Apache-2.0
/* Which backend, and that it is told. */
#include "shared.h"

static void says_which(void)
{
	CHECK(uintr_backend() == 0 && uintr_backend_reason()[0]);
	FAILS(uintr_start(4), EINVAL);
	CHECK(uintr_start(backend) == (int)backend && uintr_backend() == (int)backend);
	CHECK(!strncmp(uintr_backend_reason(), backend == UINTR_SIGNALS ? "signals: emulated" : "hardware: ", 10));
	CHECK(uintr_start(0) == (int)backend);
	FAILS(uintr_start(UINTR_HARDWARE + UINTR_SIGNALS - backend), EBUSY);
	CHECK(uintr_signal() == (backend == UINTR_SIGNALS ? SIGURG : 0));
}

static void emulates_nothing_that_was_not_asked_for(void)
{
	unsetenv("UINTR_BACKEND");
	if (uintr_handle(handler, NULL, 0) == 0) {
		CHECK(uintr_backend() == UINTR_HARDWARE);
		return;
	}
	CHECK(errno == ENOSYS || errno == EACCES);
	CHECK(uintr_backend() == 0 && strstr(uintr_backend_reason(), "/dev/uintr: "));
}

static void asks_the_environment(void)
{
	CHECK(!setenv("UINTR_BACKEND", "neither of them", 1));
	FAILS(uintr_handle(handler, NULL, 0), EINVAL);
	CHECK(strstr(uintr_backend_reason(), "neither of them"));
	CHECK(!setenv("UINTR_BACKEND", backend == UINTR_SIGNALS ? "signals" : "hardware", 1));
	CHECK(uintr_handle(handler, NULL, 0) == 0 && uintr_backend() == (int)backend);
}

static void sends_before_anything(void)
{
	uintr_send(0);
}

static void does_nothing_without_a_handler(void)
{
	begins();
	uintr_mask();
	CHECK(!uintr_unmasked());
	FAILS(uintr_unregister_handler(0), EINVAL);
	FAILS(uintr_vector_fd(0, 0), EINVAL);
	FAILS(uintr_revoke(0, 0), EINVAL);
	FAILS(uintr_wait_until(0, 0), EINVAL);
	FAILS(uintr_wait(0, 0), EINVAL);
	FAILS(uintr_alt_stack(NULL, 0, 0), EINVAL);
	FAILS(uintr_unregister_sender(0, 0), EINVAL);
}

const struct item starts[] = {
	{ "the choice is made once, and told", says_which, 0 },
	{ "nothing is emulated that was not asked for", emulates_nothing_that_was_not_asked_for, 0 },
	{ "the environment may ask", asks_the_environment, 0 },
	{ "to send before anything is an invalid instruction", sends_before_anything, SIGILL },
	{ "without a handler there is nothing to end or to wait for", does_nothing_without_a_handler, 0 },
	{ 0 },
};
