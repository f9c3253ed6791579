// SPDX-License-Identifier: MIT OR Apache-2.0
/* User interrupts as the CPU has them: the ioctls of linux/uintr.h, and a frame around handlers that return. */
#include "backend.h"
#include "uintr.h"

#ifdef __x86_64__

#include <cpuid.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
/* The driver's names for two flags are those of uintr.h, with other types. */
#undef UINTR_VECTORS
#undef UINTR_CONNECTIONS
#undef UINTR_STACK_LEAST
#undef UINTR_SEMAPHORE
#undef UINTR_NONBLOCK
#undef UINTR_TIMER_LEAST
#include <linux/uintr.h>

struct receiver {
	struct receiver *next, *previous;
	int descriptor;
	struct handler handler;
};

static int device = -1;
/* All threads' receivers, and those whose vectors are polled: a child of fork has none of them. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct receiver *receivers, *polled;
static __thread struct receiver *own __attribute__((tls_model("initial-exec")));

/* ---- around a handler that returns: what the ABI lets it change ---- */

/* Of XCR0: x87, SSE, AVX, AVX-512, and APX's R16 to R31, which lie where MPX had its own. */
#define XSAVE_STATES	0x800e7

__attribute__((visibility("hidden"))) uint32_t uintr_xsave_states;
/* XSAVEC, and XGETBV that tells what is in use. */
__attribute__((visibility("hidden"))) uint8_t uintr_xsave_tells;
extern char uintr_entry[] __attribute__((visibility("hidden")));

/*
 * The CPU has pushed RSP, RFLAGS, RIP and the vector, and RSP is a multiple of 16.
 *
 * Of the vector registers what the thread does not use takes no memory: a frame has 576 bytes for them, 832 where the upper halves of
 * YMM are in use, else 2688, the end of the last of these states in the standard form, which is the longer one. So much does each
 * user-level thread keep that is left in its handler. SSE counts always, for MXCSR. XRSTOR wants a header whose unused bytes are
 * zero, and sets what was not saved to what it was: as it is initially.
 */
__asm__(
	".text\n"
	".globl uintr_entry\n"
	".hidden uintr_entry\n"
	".type uintr_entry, @function\n"
	"uintr_entry:\n"
	"	endbr64\n"
	"	pushq %rbp\n"
	"	movq %rsp, %rbp\n"
	"	pushq %rax\n	pushq %rcx\n	pushq %rdx\n	pushq %rsi\n	pushq %rdi\n"
	"	pushq %r8\n	pushq %r9\n	pushq %r10\n	pushq %r11\n"
	"	cld\n"
	"	movl 8(%rbp), %edi\n"
	"	cmpb $0, uintr_xsave_tells(%rip)\n"
	"	je 3f\n"
	"	movl $1, %ecx\n"
	"	xgetbv\n"
	"	andl uintr_xsave_states(%rip), %eax\n"
	"	orl $2, %eax\n"
	"	leaq -576(%rsp), %rsi\n"
	"	testl $~3, %eax\n"
	"	jz 1f\n"
	"	leaq -832(%rsp), %rsi\n"
	"	testl $~7, %eax\n"
	"	jz 1f\n"
	"	leaq -2688(%rsp), %rsi\n"
	"1:	andq $-64, %rsi\n"
	"	movq %rsi, %rsp\n"
	"	xorl %edx, %edx\n"
	"	movq %rdx, 528(%rsp)\n	movq %rdx, 536(%rsp)\n"
	"	movq %rdx, 544(%rsp)\n	movq %rdx, 552(%rsp)\n	movq %rdx, 560(%rsp)\n	movq %rdx, 568(%rsp)\n"
	"	xsavec64 (%rsp)\n"
	"	testb $1, %al\n"
	"	jz 2f\n"
	"	fninit\n"
	"2:	pushq $0x1f80\n"
	"	ldmxcsr (%rsp)\n"
	"	addq $8, %rsp\n"
	"	call uintr_run_handler\n"
	"	xorl %edx, %edx\n"
	"	movl uintr_xsave_states(%rip), %eax\n"
	"	xrstor64 (%rsp)\n"
	"	leaq -72(%rbp), %rsp\n"
	"	popq %r11\n	popq %r10\n	popq %r9\n	popq %r8\n"
	"	popq %rdi\n	popq %rsi\n	popq %rdx\n	popq %rcx\n	popq %rax\n"
	"	popq %rbp\n"
	"	addq $8, %rsp\n"
	"	.byte 0xf3, 0x0f, 0x01, 0xec # uiret\n"
	"3:	subq $2688, %rsp\n"
	"	andq $-64, %rsp\n"
	"	xorl %edx, %edx\n"
	"	movq %rdx, 512(%rsp)\n	movq %rdx, 520(%rsp)\n	movq %rdx, 528(%rsp)\n	movq %rdx, 536(%rsp)\n"
	"	movq %rdx, 544(%rsp)\n	movq %rdx, 552(%rsp)\n	movq %rdx, 560(%rsp)\n	movq %rdx, 568(%rsp)\n"
	"	movl uintr_xsave_states(%rip), %eax\n"
	"	xsave64 (%rsp)\n"
	"	fninit\n"
	"	jmp 2b\n"
	".size uintr_entry, . - uintr_entry\n");

__attribute__((visibility("hidden"), used)) void uintr_run_handler(unsigned int vector)
{
	int error = errno;

	uintr_handlers_running++;
	own->handler.function(vector, own->handler.argument);
	uintr_handlers_running--;
	errno = error;
}

/* ---- the process ---- */

static const char *about_the_cpu(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & 1 << 5 ? "this CPU has user interrupts" : "this CPU has no user interrupts";
}

static int opens(char *why, size_t size)
{
	int fd = open(UINTR_DEVICE, O_RDWR | O_CLOEXEC), error = errno;

	if (fd >= 0)
		return fd;
	snprintf(why, size, UINTR_DEVICE ": %s (%s)", strerror(error), about_the_cpu());
	/* As a kernel that has no such calls. */
	return refuse(error == ENOENT || error == ENODEV ? ENOSYS : error);
}

static int can_start(char *why, size_t size)
{
	int fd = opens(why, size);

	return fd < 0 ? -1 : close(fd);
}

static void looks_at_registers(void)
{
	unsigned int a, b, c, d;

	/* The kernel has XSAVE on wherever it is, and so wherever these are. */
	__asm__("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	uintr_xsave_states = a & XSAVE_STATES;
	uintr_xsave_tells = __get_cpuid_count(0xd, 1, &a, &b, &c, &d) && (a >> 1 & 3) == 3;
}

static int start(char *why, size_t size)
{
	device = opens(why, size);
	if (device < 0)
		return -1;
	looks_at_registers();
	return 0;
}

static void before_fork(void)
{
	pthread_mutex_lock(&list_lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&list_lock);
}

static void forget(struct receiver **list)
{
	while (*list) {
		struct receiver *receiver = *list;

		*list = receiver->next;
		close(receiver->descriptor);
		frees_in_child(receiver);
	}
}

static void in_child(void)
{
	own = NULL;
	forget(&receivers);
	forget(&polled);
	pthread_mutex_unlock(&list_lock);
}

/* ---- receiving ---- */

/* Makes a receiver of the driver's and lists it. NULL with errno. */
static struct receiver *receives(struct receiver **list, struct uintr_receive *how)
{
	struct receiver *receiver = calloc(1, sizeof(*receiver));

	if (!receiver)
		return NULL;
	receiver->descriptor = ioctl(device, UINTR_RECEIVE, how);
	if (receiver->descriptor < 0) {
		free(receiver);
		return NULL;
	}
	receiver->next = *list;
	if (*list)
		(*list)->previous = receiver;
	*list = receiver;
	return receiver;
}

static int handle(const struct handler *handler, unsigned int flags)
{
	struct uintr_receive how = { .handler = (uintptr_t)(handler->uiret ? handler->uiret : uintr_entry) };
	struct receiver *receiver;
	struct held held;

	how.flags = (flags & UINTR_HANDLER_FLAG_WAITING_ANY ? UINTR_INTERRUPTS : 0) | (flags & UINTR_HANDLER_FLAG_RESUMES ? UINTR_RESUMES : 0);
	if (own)
		return refuse(EBUSY);
	uintr_locks(&list_lock, &held);
	receiver = receives(&receivers, &how);
	if (receiver) {
		receiver->handler = *handler;
		/* UIF is shut now, however it was: nobody looks at this yet. */
		held.open = 0;
	}
	own = receiver;
	uintr_unlocks(&list_lock, &held);
	return receiver ? 0 : -1;
}

static int unhandle(void)
{
	struct receiver *receiver = own;
	struct held held;

	if (!receiver)
		return refuse(EINVAL);
	/* The handler may run up to here, and needs what it is called with. A child may have the descriptor yet. */
	if (ioctl(receiver->descriptor, UINTR_END, 0))
		return -1;
	close(receiver->descriptor);
	own = NULL;
	uintr_locks(&list_lock, &held);
	if (receiver->next)
		receiver->next->previous = receiver->previous;
	if (receiver->previous)
		receiver->previous->next = receiver->next;
	else
		receivers = receiver->next;
	uintr_unlocks(&list_lock, &held);
	free(receiver);
	return 0;
}

static int vector_fd(unsigned int vector)
{
	if (!own)
		return refuse(EINVAL);
	return vector >= UINTR_VECTORS ? refuse(ENOSPC) : ioctl(own->descriptor, UINTR_VECTOR, (unsigned long)vector);
}

static int takes_eventfd(unsigned int vector, int eventfd)
{
	struct uintr_eventfd source = { .eventfd = eventfd, .vector = vector };

	return own ? ioctl(own->descriptor, UINTR_EVENTFD, &source) : refuse(EINVAL);
}

static int takes_back(unsigned int vector)
{
	return own ? ioctl(own->descriptor, UINTR_REVOKE, (unsigned long)vector) : refuse(EINVAL);
}

static int wait_until(int fd, int64_t deadline)
{
	struct uintr_wait until = { .deadline = deadline, .flags = fd < 0 ? 0 : UINTR_WAIT_FILE, .file = fd < 0 ? 0 : fd };

	return own ? ioctl(own->descriptor, UINTR_WAIT, &until) : refuse(EINVAL);
}

static int timer(unsigned int vector, uint64_t first, uint64_t period)
{
	struct uintr_timer times = { .first = first, .period = period, .vector = vector };

	return own ? ioctl(own->descriptor, UINTR_TIMER, &times) : refuse(EINVAL);
}

static int alt_stack(void *stack, size_t size)
{
	struct uintr_receive how = { .stack = (uintptr_t)stack, .stack_size = size };

	if (!own || (stack && own->handler.function && size < UINTR_HANDLE_STACK_LEAST))
		return refuse(EINVAL);
	return ioctl(own->descriptor, UINTR_STACK, &how);
}

/* The numbers of vectors mean nothing here: the first that has no descriptor, of a receiver that serves 64. */
static int poll_fd(int semaphore, int nonblock)
{
	struct uintr_receive how = { .flags = UINTR_POLLED };
	unsigned long flags = (semaphore ? UINTR_SEMAPHORE : 0) | (nonblock ? UINTR_NONBLOCK : 0);
	struct receiver *receiver;
	struct held held;
	int fd = -1, error;

	uintr_locks(&list_lock, &held);
	errno = EBUSY;
	for (receiver = polled; fd < 0 && errno == EBUSY && receiver; receiver = receiver->next)
		for (unsigned long vector = 0; fd < 0 && errno == EBUSY && vector < UINTR_VECTORS; vector++)
			fd = ioctl(receiver->descriptor, UINTR_VECTOR, vector | flags);
	if (fd < 0 && errno == EBUSY) {
		receiver = receives(&polled, &how);
		if (receiver)
			fd = ioctl(receiver->descriptor, UINTR_VECTOR, flags);
	}
	error = errno;
	uintr_unlocks(&list_lock, &held);
	errno = error;
	return fd;
}

/* ---- sending ---- */

static int connects(int fd)
{
	int index = ioctl(fd, UINTR_CONNECT, 0);

	return index < 0 && (errno == ENOTTY || errno == EINVAL) ? refuse(EOPNOTSUPP) : index;
}

static int disconnects(unsigned int index)
{
	return ioctl(device, UINTR_DISCONNECT, (unsigned long)index);
}

/* As the functions of uintr.h, which do not come here. */
static void sends(uint64_t index)
{
	uintr_send(index);
}

const struct backend uintr_hardware = {
	.start = start, .can_start = can_start, .handle = handle, .unhandle = unhandle, .vector_fd = vector_fd, .eventfd = takes_eventfd, .revoke = takes_back, .wait_until = wait_until,
	.timer = timer, .alt_stack = alt_stack, .poll_fd = poll_fd, .connect = connects, .disconnect = disconnects,
	.before_fork = before_fork, .in_parent = in_parent, .in_child = in_child,
	.send = sends, .mask = uintr_mask, .unmask = uintr_unmask, .unmasked = uintr_unmasked,
};

#else

#include <stdio.h>

static int start(char *why, size_t size)
{
	snprintf(why, size, "only x86-64 has them");
	return refuse(ENOSYS);
}

const struct backend uintr_hardware = { .start = start, .can_start = start };

#endif
