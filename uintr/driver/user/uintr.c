// SPDX-License-Identifier: MIT OR Apache-2.0
/* The calls of uintr.h: which backend, once and for good, and what is the same for both. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>
#include "uintr.h"
#include "backend.h"

#define WAIT_MOST_USEC	1000000000ull

/* Written once, under @choosing; read by every send. */
int uintr_chosen;
__thread unsigned int uintr_handlers_running;
static pthread_mutex_t choosing = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t thread_ends;
static char reason[320] = "nothing was chosen yet";

static const struct backend *chosen(void)
{
	switch (__atomic_load_n(&uintr_chosen, __ATOMIC_ACQUIRE)) {
	case UINTR_HARDWARE:
		return &uintr_hardware;
	case UINTR_SIGNALS:
		return &uintr_signals;
	}
	return NULL;
}

void uintr_holds_off(struct held *held)
{
	sigset_t every;

	held->open = uintr_backend() == UINTR_HARDWARE && uintr_unmasked();
	if (held->open)
		uintr_mask();
	sigfillset(&every);
	pthread_sigmask(SIG_SETMASK, &every, &held->signals);
}

void uintr_lets_come(const struct held *held)
{
	pthread_sigmask(SIG_SETMASK, &held->signals, NULL);
	if (held->open)
		uintr_unmask();
}

void uintr_locks(pthread_mutex_t *lock, struct held *held)
{
	uintr_holds_off(held);
	pthread_mutex_lock(lock);
}

void uintr_unlocks(pthread_mutex_t *lock, const struct held *held)
{
	pthread_mutex_unlock(lock);
	uintr_lets_come(held);
}

/* Under all locks: of who forks. */
static struct held forking;

static void before_fork(void)
{
	struct held held;

	uintr_locks(&choosing, &held);
	uintr_ipi_before_fork();
	if (chosen())
		chosen()->before_fork();
	forking = held;
}

static void in_parent(void)
{
	struct held held = forking;

	if (chosen())
		chosen()->in_parent();
	uintr_ipi_in_parent();
	uintr_unlocks(&choosing, &held);
}

static void in_child(void)
{
	if (chosen())
		chosen()->in_child();
	uintr_ipi_in_child();
	/* It is no receiver. */
	forking.open = 0;
	uintr_unlocks(&choosing, &forking);
}

static int cannot_follow_forks;

/* Before anything is chosen: when a thread forks another may be choosing, as the child may. */
__attribute__((constructor)) static void follows_forks(void)
{
	cannot_follow_forks = pthread_atfork(before_fork, in_parent, in_child);
}

static void end_of_thread(void *receives)
{
	(void)receives;
	chosen()->unhandle();
}

/* Under @choosing. */
static int begin(int which, const char *why)
{
	int error = cannot_follow_forks;

	if (!error)
		error = pthread_key_create(&thread_ends, end_of_thread);
	if (error) {
		snprintf(reason, sizeof(reason), "neither: %s", strerror(error));
		return refuse(error);
	}
	snprintf(reason, sizeof(reason), "%s", why);
	__atomic_store_n(&uintr_chosen, which, __ATOMIC_RELEASE);
	return which;
}

/* Under @choosing. @begins: the choice is for good. */
static int choose(unsigned int backends, int begins)
{
	char hardware[128] = "not asked for", signals[128] = "not asked for", why[320];
	int error = ENOSYS;

	if (backends & UINTR_HARDWARE) {
		if (!(begins ? uintr_hardware.start : uintr_hardware.can_start)(hardware, sizeof(hardware)))
			return !begins ? UINTR_HARDWARE : begin(UINTR_HARDWARE, "hardware: the CPU's own, by the driver's /dev/uintr");
		error = errno;
	}
	if (backends & UINTR_SIGNALS) {
		if (!(begins ? uintr_signals.start : uintr_signals.can_start)(signals, sizeof(signals))) {
			if (!begins)
				return UINTR_SIGNALS;
			snprintf(why, sizeof(why), "signals: emulated; hardware: %s", hardware);
			return begin(UINTR_SIGNALS, why);
		}
		error = errno;
	}
	snprintf(reason, sizeof(reason), "neither: hardware: %s; signals: %s", hardware, signals);
	return refuse(error);
}

static int starts(unsigned int backends, int begins)
{
	struct held held;
	int result, error;

	if (backends & ~(UINTR_HARDWARE | UINTR_SIGNALS))
		return refuse(EINVAL);
	if (!backends)
		backends = UINTR_HARDWARE | UINTR_SIGNALS;
	uintr_locks(&choosing, &held);
	if (!uintr_chosen)
		result = choose(backends, begins);
	else
		result = backends & uintr_chosen ? uintr_chosen : refuse(EBUSY);
	error = errno;
	uintr_unlocks(&choosing, &held);
	errno = error;
	return result;
}

int uintr_start(unsigned int backends)
{
	return starts(backends, 1);
}

int uintr_can_start(unsigned int backends)
{
	return starts(backends, 0);
}

/* For who called something else first. NULL, with errno: there is none. */
static const struct backend *started(void)
{
	static const char *const words[] = { "any", "hardware", "signals", "any" };
	const struct backend *already = chosen();
	const char *asked;
	unsigned int backends = UINTR_HARDWARE;
	struct held held;

	if (already)
		return already;
	asked = getenv("UINTR_BACKEND");
	if (asked && *asked) {
		for (backends = 1; backends < 4 && strcmp(asked, words[backends]); backends++)
			;
		if (backends == 4) {
			uintr_locks(&choosing, &held);
			snprintf(reason, sizeof(reason), "neither: UINTR_BACKEND is %.40s, and not hardware, signals or any", asked);
			uintr_unlocks(&choosing, &held);
			errno = EINVAL;
			return NULL;
		}
	}
	return uintr_start(backends) < 0 ? NULL : chosen();
}

int uintr_backend(void)
{
	return __atomic_load_n(&uintr_chosen, __ATOMIC_ACQUIRE);
}

const char *uintr_backend_reason(void)
{
	return reason;
}

int uintr_signal(void)
{
	return uintr_backend() == UINTR_SIGNALS ? SIGURG : 0;
}

/* ---- receiving ---- */

static int handles(struct handler handler, unsigned int flags)
{
	const struct backend *by;

	if (flags & ~(UINTR_HANDLER_FLAG_WAITING_ANY | UINTR_HANDLER_FLAG_RESUMES) ||
	    (flags & UINTR_HANDLER_FLAG_WAITING_ANY && flags & UINTR_HANDLER_FLAG_RESUMES))
		return refuse(EINVAL);
	if (!handler.uiret && !handler.function)
		return refuse(EFAULT);
	by = started();
	if (!by || by->handle(&handler, flags))
		return -1;
	/* Any value that is not NULL: the key's destructor runs in threads that have one. */
	pthread_setspecific(thread_ends, (void *)by);
	return 0;
}

int uintr_handle(void (*handler)(unsigned int vector, void *argument), void *argument, unsigned int flags)
{
	return handles((struct handler){ .function = handler, .argument = argument }, flags);
}

int uintr_register_handler(const void *handler, unsigned int flags)
{
	return handles((struct handler){ .uiret = handler }, flags);
}

int uintr_unregister_handler(unsigned int flags)
{
	const struct backend *by = chosen();

	if (flags || !by)
		return refuse(EINVAL);
	return uintr_handlers_running ? refuse(EBUSY) : by->unhandle();
}

int uintr_vector_fd(uint64_t vector, unsigned int flags)
{
	const struct backend *by = chosen();

	if (flags || !by)
		return refuse(EINVAL);
	/* Without a handler EINVAL, whatever the vector; no backend knows 64. */
	return by->vector_fd(vector < UINTR_VECTORS ? vector : UINTR_VECTORS);
}

int uintr_create_fd(uint64_t vector, unsigned int flags)
{
	return uintr_vector_fd(vector, flags);
}

int uintr_vector_eventfd(uint64_t vector, int eventfd, unsigned int flags)
{
	const struct backend *by = chosen();

	if (flags || !by)
		return refuse(EINVAL);
	if (fcntl(eventfd, F_GETFD) < 0)
		return -1;
	/* As uintr_vector_fd() refuses it. */
	return vector < UINTR_VECTORS ? by->eventfd(vector, eventfd) : by->vector_fd(UINTR_VECTORS);
}

int uintr_revoke(uint64_t vector, unsigned int flags)
{
	const struct backend *by = chosen();

	return flags || !by || vector >= UINTR_VECTORS ? refuse(EINVAL) : by->revoke(vector);
}

int uintr_wait_until(int64_t deadline, unsigned int flags)
{
	const struct backend *by = chosen();

	return flags || !by ? refuse(EINVAL) : by->wait_until(-1, deadline);
}

int uintr_wait_fd(int fd, int64_t deadline, unsigned int flags)
{
	const struct backend *by = chosen();

	if (flags || !by)
		return refuse(EINVAL);
	return fd < 0 ? refuse(EBADF) : by->wait_until(fd, deadline);
}

static int64_t in_milliseconds(int timeout)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec + timeout * 1000000ll;
}

int uintr_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout)
{
	/* It looks at its arguments; and a loop that finds events each time sleeps nowhere. */
	int count = epoll_wait(epoll, events, most, 0);
	int64_t deadline = timeout < 0 ? -1 : in_milliseconds(timeout);

	while (!count) {
		int result = uintr_wait_fd(epoll, deadline, 0);

		if (result < 0)
			return errno == ETIMEDOUT ? 0 : -1;
		/* Another thread may have taken them. */
		count = epoll_wait(epoll, events, most, 0);
		if (!count && !result)
			return refuse(EINTR);
	}
	return count;
}

int uintr_wait(uint64_t usec, unsigned int flags)
{
	struct timespec now;

	if (usec > WAIT_MOST_USEC)
		return refuse(EINVAL);
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!uintr_wait_until(now.tv_sec * 1000000000ll + now.tv_nsec + (int64_t)usec * 1000, flags))
		return refuse(EINTR);
	return errno == ETIMEDOUT ? 0 : -1;
}

static int is_no_time(uint64_t nanoseconds)
{
	return nanoseconds && (nanoseconds < UINTR_TIMER_LEAST || nanoseconds > INT64_MAX / 2);
}

int uintr_timer(uint64_t vector, uint64_t first, uint64_t period)
{
	const struct backend *by = chosen();

	if (!by || vector >= UINTR_VECTORS || is_no_time(first) || is_no_time(period))
		return refuse(EINVAL);
	return by->timer(vector, first, period);
}

int uintr_alt_stack(void *stack, size_t size, unsigned int flags)
{
	const struct backend *by = chosen();

	return flags || !by ? refuse(EINVAL) : by->alt_stack(stack, stack ? size : 0);
}

int uintr_poll_fd(unsigned int flags)
{
	const struct backend *by = started();

	if (flags & ~(UINTR_SEMAPHORE | UINTR_NONBLOCK))
		return refuse(EINVAL);
	return by ? by->poll_fd(!!(flags & UINTR_SEMAPHORE), !!(flags & UINTR_NONBLOCK)) : -1;
}

/* ---- sending ---- */

int uintr_register_sender(int fd, unsigned int flags)
{
	const struct backend *by = flags ? NULL : started();

	if (flags)
		return refuse(EINVAL);
	return by ? by->connect(fd) : -1;
}

int uintr_unregister_sender(int index, unsigned int flags)
{
	const struct backend *by = chosen();

	if (flags || index < 0 || index >= UINTR_CONNECTIONS || !by)
		return refuse(EINVAL);
	/* Before another may get this index. */
	uintr_ipi_forget(index);
	return by->disconnect(index) ? refuse(EINVAL) : 0;
}

int uintr_register_senders(const int *fds, uint64_t *indices, size_t count, unsigned int flags)
{
	for (size_t i = 0; i < count; i++) {
		int index = uintr_register_sender(fds[i], flags), error = errno;

		if (index >= 0) {
			indices[i] = index;
			continue;
		}
		while (i--)
			uintr_unregister_sender(indices[i], 0);
		return refuse(error);
	}
	return 0;
}

int uintr_register_self(uint64_t vector, unsigned int flags)
{
	int fd = uintr_vector_fd(vector, flags), index;

	if (fd < 0)
		return -1;
	index = uintr_register_sender(fd, 0);
	if (index < 0) {
		int error = errno;

		uintr_revoke(vector, 0);
		close(fd);
		errno = error;
	} else {
		uintr_ipi_keep(index, fd);
	}
	return index;
}

/* As a CPU without them, or a thread that is connected to nothing. */
static void no_such_instruction(void)
{
#ifdef __x86_64__
	__asm__ volatile("ud2");
#else
	raise(SIGILL);
#endif
}

void uintr_send_call(uint64_t index)
{
	const struct backend *by = chosen();

	if (!by)
		no_such_instruction();
	else
		by->send(index);
}

void uintr_mask_call(void)
{
	const struct backend *by = chosen();

	if (by)
		by->mask();
}

void uintr_unmask_call(void)
{
	const struct backend *by = chosen();

	if (by)
		by->unmask();
}

int uintr_unmasked_call(void)
{
	const struct backend *by = chosen();

	return by ? by->unmasked() : 0;
}
