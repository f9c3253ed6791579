/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Three ways for one thread to wait for several things: any of several bells, a bell in poll(), a signal. */
#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static void *ring_later(void *bell)
{
	usleep(20000);
	doorbell_bell_ring(bell);
	return NULL;
}

static void ring_from_a_thread(doorbell_bell *bell, pthread_t *thread)
{
	if (pthread_create(thread, NULL, ring_later, bell) != 0) {
		fprintf(stderr, "pthread_create failed\n");
		exit(1);
	}
}

static void ignore(int signal)
{
	(void)signal;
}

int main(void)
{
	doorbell_bell *bells[3], *file;
	const doorbell_bell *any[3];
	pthread_t thread;
	size_t which;
	uint32_t rings;

	for (int i = 0; i < 3; i++) {
		check(doorbell_bell_new(DOORBELL_ADAPTIVE, 1, &bells[i]));
		any[i] = bells[i];
	}
	ring_from_a_thread(bells[2], &thread);
	check(doorbell_bell_wait_any(any, 3, DOORBELL_FOREVER, &which));
	check(doorbell_bell_try_wait(bells[which], &rings));
	printf("bell %zu rang, %u ring\n", which, rings);
	pthread_join(thread, NULL);

	struct pollfd files[2] = { { .fd = -1, .events = POLLIN }, { .events = POLLIN } };
	check(doorbell_bell_clone(bells[0], DOORBELL_ADAPTIVE, &file));
	check(doorbell_bell_fd(file, &files[1].fd));
	ring_from_a_thread(bells[0], &thread);
	do {
		if (poll(files, 2, 60000) != 1) {
			fprintf(stderr, "poll found nothing\n");
			return 1;
		}
		/* Readable for no reason now and then: then nothing was heard. */
	} while (doorbell_bell_try_wait(file, &rings) == DOORBELL_TIMED_OUT);
	printf("poll: %u ring\n", rings);
	pthread_join(thread, NULL);
	/* A handle that is a file does not also wait. */
	if (doorbell_bell_wait(file, NULL) != DOORBELL_INVALID_ARGUMENT)
		return 1;

	struct sigaction action = { .sa_handler = ignore };
	sigaction(SIGALRM, &action, NULL);
	check(doorbell_bell_set_interruptible(bells[1], true));
	doorbell_status status;
	do {
		/* Again and again: an alarm just before the sleep does not end it, hence the deadline. */
		alarm(1);
		status = doorbell_bell_wait_deadline(bells[1], doorbell_after(2000000000), NULL);
	} while (status == DOORBELL_TIMED_OUT);
	alarm(0);
	if (status != DOORBELL_INTERRUPTED)
		check(status);
	printf("a signal came\n");

	doorbell_bell_free(file);
	for (int i = 0; i < 3; i++)
		doorbell_bell_free(bells[i]);
	return 0;
}
