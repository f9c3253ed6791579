// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Eventfds as senders, by signals. The kernel signals nobody for an eventfd (it knows no O_ASYNC), so a thread of the library's own waits
 * for those that were given vectors, and sends as any other sender. One for the process, from the first that is given on.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include "signals.h"

struct watched {
	struct watched *next;
	/* By which the loop tells it; no other ever had it. */
	uint64_t number;
	const struct receiver *receiver;
	unsigned int vector;
	/* Ours: a copy of the eventfd, and what others would be given of the vector. */
	int eventfd, end;
	struct connection connection;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* No memory of these comes from the heap or goes there: a handler that gives or revokes may have interrupted malloc(). */
static struct watched *all, *spare;
static uint64_t numbers;
static int loop = -1;

static void *watches(void *nothing)
{
	struct epoll_event events[16];
	int count;

	/* Else the program has closed what is not its own. */
	while ((count = epoll_wait(loop, events, sizeof(events) / sizeof(*events), -1)) >= 0 || errno == EINTR) {
		pthread_mutex_lock(&lock);
		for (int i = 0; i < count; i++)
			for (struct watched *each = all; each; each = each->next)
				if (each->number == events[i].data.u64)
					uintr_signals_send_apart(&each->connection);
		pthread_mutex_unlock(&lock);
	}
	return nothing;
}

/* Under the lock, with all signals blocked, as the thread's are for good. */
static int starts(void)
{
	pthread_t thread;
	int error;

	if (loop >= 0)
		return 0;
	loop = epoll_create1(EPOLL_CLOEXEC);
	if (loop < 0)
		return -1;
	error = pthread_create(&thread, NULL, watches, NULL);
	if (error) {
		close(loop);
		loop = -1;
		return refuse(error);
	}
	pthread_detach(thread);
	return 0;
}

/* No call tells it, and to write or to read in order to see would be heard by others. */
static int is_eventfd(int fd)
{
	char path[40], name[32];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	length = readlink(path, name, sizeof(name) - 1);
	if (length < 0)
		return -1;
	name[length] = 0;
	return strcmp(name, "anon_inode:[eventfd]") ? refuse(EINVAL) : 0;
}

/* Under the lock, as these. */
static void is_spare(struct watched *watched)
{
	watched->next = spare;
	spare = watched;
}

/* NULL with errno */
static struct watched *takes_spare(void)
{
	struct watched *taken;

	if (!spare) {
		struct watched *more = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (more == MAP_FAILED)
			return NULL;
		for (size_t i = 0; i < PAGE / sizeof(*more); i++)
			is_spare(&more[i]);
	}
	taken = spare;
	spare = taken->next;
	return taken;
}

static void ends(struct watched *watched)
{
	uintr_signals_disconnect_apart(&watched->connection);
	close(watched->eventfd);
	is_spare(watched);
}

/* One that is no part of any list; NULL with errno. */
static struct watched *begins(int eventfd, int end)
{
	struct watched *watched = takes_spare();
	int error;

	if (!watched)
		return NULL;
	watched->eventfd = fcntl(eventfd, F_DUPFD_CLOEXEC, 0);
	if (watched->eventfd >= 0 && !uintr_signals_connect_apart(end, &watched->connection))
		return watched;
	error = errno;
	if (watched->eventfd >= 0)
		close(watched->eventfd);
	is_spare(watched);
	errno = error;
	return NULL;
}

int uintr_signals_watch(int eventfd, int end, const struct receiver *receiver, unsigned int vector)
{
	/* Each write is an edge, read or not; but the loop finds nothing where somebody else has read before it looks. */
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };
	struct watched *watched;
	int error;

	if (is_eventfd(eventfd))
		return -1;
	pthread_mutex_lock(&lock);
	watched = begins(eventfd, end);
	if (watched) {
		watched->receiver = receiver;
		watched->vector = vector;
		watched->end = end;
		watched->number = event.data.u64 = ++numbers;
		if (starts() || epoll_ctl(loop, EPOLL_CTL_ADD, watched->eventfd, &event)) {
			error = errno;
			ends(watched);
			watched = NULL;
			errno = error;
		} else {
			watched->next = all;
			all = watched;
		}
	}
	pthread_mutex_unlock(&lock);
	return watched ? 0 : -1;
}

void uintr_signals_unwatch(const struct receiver *receiver, uint64_t vectors)
{
	struct watched **link = &all, *watched;
	struct held held;

	uintr_locks(&lock, &held);
	while ((watched = *link)) {
		if (watched->receiver != receiver || !(vectors >> watched->vector & 1)) {
			link = &watched->next;
			continue;
		}
		*link = watched->next;
		/* Its copy may be in a child, which would keep it in the loop. */
		epoll_ctl(loop, EPOLL_CTL_DEL, watched->eventfd, NULL);
		close(watched->end);
		ends(watched);
	}
	uintr_unlocks(&lock, &held);
}

void uintr_signals_lock_watched(void)
{
	pthread_mutex_lock(&lock);
}

void uintr_signals_unlock_watched(void)
{
	pthread_mutex_unlock(&lock);
}

/* In a child of fork, which has neither the thread nor the pages. */
void uintr_signals_forget_watched(void)
{
	while (all) {
		struct watched *watched = all;

		all = watched->next;
		close(watched->connection.bell);
		close(watched->eventfd);
		close(watched->end);
		is_spare(watched);
	}
	if (loop >= 0)
		close(loop);
	loop = -1;
	uintr_signals_unlock_watched();
}
