/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What hardware.c and signals.c have to offer; uintr.c chooses one and checks what is the same for both. */
#ifndef UINTR_BACKEND_H
#define UINTR_BACKEND_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stddef.h>
#include <stdlib.h>

struct handler {
	/* Ends by UIRET; or NULL, and */
	const void *uiret;
	void (*function)(unsigned int vector, void *argument);
	void *argument;
};

/* As the calls of uintr.h, with arguments that were looked at. */
struct backend {
	/* 0, or -1 with errno and in @why the reason. Once a process, under a lock. */
	int (*start)(char *why, size_t size);
	/* What that would return; nothing is left of it. */
	int (*can_start)(char *why, size_t size);
	/* Flags of uintr.h. */
	int (*handle)(const struct handler *handler, unsigned int flags);
	/* Of the calling thread. -1: it has no handler. */
	int (*unhandle)(void);
	int (*vector_fd)(unsigned int vector);
	int (*eventfd)(unsigned int vector, int eventfd);
	int (*revoke)(unsigned int vector);
	/* @fd: -1 for none. */
	int (*wait_until)(int fd, int64_t deadline);
	int (*timer)(unsigned int vector, uint64_t first, uint64_t period);
	int (*alt_stack)(void *stack, size_t size);
	int (*poll_fd)(int semaphore, int nonblock);
	int (*connect)(int fd);
	int (*disconnect)(unsigned int index);
	/* Locks and lists around fork(2), and what a child must not keep. No handler comes meanwhile. */
	void (*before_fork)(void);
	void (*in_parent)(void);
	void (*in_child)(void);
	/* For a process that began with uintr_send(). */
	void (*send)(uint64_t index);
	void (*mask)(void);
	void (*unmask)(void);
	int (*unmasked)(void);
};

extern const struct backend uintr_hardware, uintr_signals;

/* The calling thread's handlers that have not returned yet, of those that return. Each interrupted what may be looking at the receiver. */
extern __thread unsigned int uintr_handlers_running __attribute__((tls_model("initial-exec"), visibility("hidden")));

/*
 * The library's locks. While one is held no handler comes, of a user interrupt or of a signal: it may fork, or go on with another
 * user-level thread, and both may want the lock.
 */
struct held {
	sigset_t signals;
	int open;
};
void uintr_holds_off(struct held *held);
void uintr_lets_come(const struct held *held);
void uintr_locks(pthread_mutex_t *lock, struct held *held);
void uintr_unlocks(pthread_mutex_t *lock, const struct held *held);

/* In a child of fork. One that a handler made, which may have interrupted malloc(), keeps it for good. */
static inline void frees_in_child(void *memory)
{
	if (!uintr_handlers_running)
		free(memory);
}

/* Of ipi.c: which descriptor a connection to an own vector was made by. */
void uintr_ipi_keep(int index, int fd);
void uintr_ipi_forget(int index);
void uintr_ipi_before_fork(void);
void uintr_ipi_in_parent(void);
void uintr_ipi_in_child(void);

static inline int refuse(int error)
{
	errno = error;
	return -1;
}

#endif
