// SPDX-License-Identifier: MIT OR Apache-2.0
/* The handler's stack. */
#include "shared.h"

static void has_a_stack(void)
{
	const size_t size = 1 << 14;
	char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uintr_receive args = {
		.handler = (uintptr_t)handler, .stack = (uintptr_t)stack, .stack_size = size,
	};

	CHECK(stack != MAP_FAILED);
	receiver = call(device, UINTR_RECEIVE, (uintptr_t)&args);
	CHECK(receiver >= 0);
	vector = call(receiver, UINTR_VECTOR, 5);
	CHECK(call(vector, UINTR_CONNECT, 0) == 0);
	_stui();
	send_to_itself();
	CHECK(handler_sp > (uintptr_t)stack + size - 256 && handler_sp < (uintptr_t)stack + size);
	args.stack = args.stack_size = 0;
	CHECK(call(receiver, UINTR_STACK, (uintptr_t)&args) == 0);
	send_to_itself();
	CHECK(handler_sp < (uintptr_t)stack || handler_sp >= (uintptr_t)stack + size);
	args.stack = (uintptr_t)stack;
	args.stack_size = size;
	CHECK(call(receiver, UINTR_STACK, (uintptr_t)&args) == 0);
	usleep(1000);
	send_to_itself();
	CHECK(handler_sp > (uintptr_t)stack + size - 256 && handler_sp < (uintptr_t)stack + size);
}

const struct life stack[] = {
	{ .name = "a stack for the handler", .run = has_a_stack },
	{ 0 },
};
