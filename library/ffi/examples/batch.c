/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Many messages with few wakes: a thread pushes them in batches and waits in an event loop for room; the other holds all that
 * are there at once, where they lie.
 */
#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>

enum { MESSAGES = 20000, BATCH = 16 };

static void *send_all(void *channel)
{
	doorbell_sender *sender = channel;
	struct pollfd file = { .events = POLLIN };
	doorbell_status pushed;
	bool something;

	check(doorbell_sender_fd(sender, &file.fd));
	for (uint64_t number = 0; number < MESSAGES; number++) {
		while ((pushed = doorbell_sender_push(sender, &number, sizeof number)) == DOORBELL_TIMED_OUT) {
			/* Rings, too, for what was pushed. */
			check(doorbell_sender_listen(sender, sizeof number, &something));
			if (!something && poll(&file, 1, 60000) != 1) {
				fprintf(stderr, "no room for %llu\n", (unsigned long long)number);
				exit(1);
			}
		}
		check(pushed);
		if (number % BATCH == BATCH - 1)
			check(doorbell_sender_ring(sender));
	}
	doorbell_sender_free(sender);
	return NULL;
}

int main(void)
{
	doorbell_bytes messages[BATCH];
	doorbell_sender *sender;
	doorbell_receiver *receiver;
	doorbell_status status;
	pthread_t sending;
	uint64_t number, next = 0;
	size_t count, runs = 0;

	check(doorbell_channel(1024, &sender, &receiver));
	if (pthread_create(&sending, NULL, send_all, sender) != 0)
		return 1;
	while ((status = doorbell_receiver_recv_batch(receiver, DOORBELL_FOREVER, messages, BATCH, &count)) ==
	       DOORBELL_OK) {
		if (count == 0 || count > BATCH)
			return 1;
		runs++;
		for (size_t at = 0; at < count; at++) {
			if (messages[at].length != sizeof number)
				return 1;
			memcpy(&number, messages[at].data, sizeof number);
			if (number != next++) {
				fprintf(stderr, "%llu came instead of %llu\n", (unsigned long long)number,
					(unsigned long long)next - 1);
				return 1;
			}
		}
		/* Nothing else is received while they are held. */
		if (doorbell_receiver_recv_batch(receiver, 0, messages, BATCH, &count) != DOORBELL_INVALID_ARGUMENT)
			return 1;
		check(doorbell_receiver_release(receiver));
	}
	if (status != DOORBELL_CLOSED)
		check(status);
	pthread_join(sending, NULL);
	/* There is none, and no room for any. */
	if (doorbell_receiver_recv_batch(receiver, 0, messages, 0, &count) != DOORBELL_INVALID_ARGUMENT)
		return 1;
	doorbell_receiver_free(receiver);
	printf("%llu messages%s\n", (unsigned long long)next, runs < next ? "" : ", each alone");
	return 0;
}
