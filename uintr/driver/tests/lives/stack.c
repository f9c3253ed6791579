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

static int late_file;

/* The page comes when many have been sent; until then the thread sleeps, and its CPU is others'. */
static void *is_late_with_the_page(void *nothing)
{
	struct uffdio_zeropage page = { .mode = 0 };
	struct uffd_msg fault;
	char task[64];
	long switches;

	CHECK(read(late_file, &fault, sizeof(fault)) == sizeof(fault) && fault.event == UFFD_EVENT_PAGEFAULT);
	snprintf(task, sizeof(task), "/proc/self/task/%d", receiving_thread);
	await_state(receiving_thread, 'S');
	switches = line_of(task, "status", "voluntary_ctxt_switches:");
	for (int i = 0; i < 200; i++) {
		_senduipi(0);
		usleep(1000);
	}
	CHECK(line_of(task, "status", "voluntary_ctxt_switches:") - switches < 50);
	CHECK(!handled);
	page.range.start = fault.arg.pagefault.address & ~4095ull;
	page.range.len = 4096;
	CHECK(!ioctl(late_file, UFFDIO_ZEROPAGE, &page));
	return nothing;
}

static void has_a_stack_that_is_late(void)
{
	const size_t size = 1 << 14;
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct uintr_receive args = { .handler = (uintptr_t)handler, .stack_size = size };
	char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	late_file = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (late_file < 0 && errno == ENOSYS)
		skip("this kernel has no userfaultfd(2)");
	CHECK(stack != MAP_FAILED);
	range.range = (struct uffdio_range){ (uintptr_t)stack, size };
	CHECK(late_file >= 0 && !ioctl(late_file, UFFDIO_API, &api) && !ioctl(late_file, UFFDIO_REGISTER, &range));
	args.stack = (uintptr_t)stack;
	receiver = call(device, UINTR_RECEIVE, (uintptr_t)&args);
	CHECK(receiver >= 0);
	vector = call(receiver, UINTR_VECTOR, 5);
	CHECK(call(vector, UINTR_CONNECT, 0) == 0);
	receiving_thread = gettid();
	on_thread(is_late_with_the_page, NULL);
	_stui();
	_senduipi(0);
	await(1);
}

const struct life stack[] = {
	{ .name = "a stack for the handler", .run = has_a_stack },
	{ .name = "who waits for a page of the handler's stack sleeps", .run = has_a_stack_that_is_late },
	{ 0 },
};
