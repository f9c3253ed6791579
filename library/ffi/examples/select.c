/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One thread waits for whatever comes first: a message of another thread, a line of a pipe, a bell that says it is over.
 * No event loop is needed. With the argument "files" it sleeps in poll() for all of them.
 */
#include "check.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGES = 1000, LINES = 10 };

struct work {
	doorbell_sender *sender;
	doorbell_bell *done;
	int pipe;
};

static void *run(void *argument)
{
	const struct work *work = argument;

	for (uint64_t number = 0; number < MESSAGES; number++) {
		check(doorbell_sender_send(work->sender, &number, sizeof number, DOORBELL_FOREVER));
		if (number % (MESSAGES / LINES) == 0 && write(work->pipe, ".", 1) != 1)
			exit(1);
	}
	doorbell_bell_ring(work->done);
	return NULL;
}

int main(int argc, char **argv)
{
	struct work work;
	doorbell_receiver *receiver;
	doorbell_bell *done;
	doorbell_select *select;
	pthread_t thread;
	int pipes[2], messages = 0, lines = 0;
	bool is_done = false, by_files = argc > 1 && strcmp(argv[1], "files") == 0;

	check(doorbell_channel(1 << 12, &work.sender, &receiver));
	check(doorbell_bell_new(DOORBELL_ADAPTIVE, 2, &done));
	check(doorbell_bell_clone(done, DOORBELL_ADAPTIVE, &work.done));
	if (pipe(pipes) != 0)
		return 1;
	work.pipe = pipes[1];
	check(doorbell_select_new(by_files, &select));

	doorbell_end ends[] = {
		{ .kind = DOORBELL_END_RECEIVER, .handle = receiver },
		{ .kind = DOORBELL_END_BELL, .handle = done },
		{ .kind = DOORBELL_END_READABLE, .fd = pipes[0] },
	};
	if (pthread_create(&thread, NULL, run, &work) != 0)
		return 1;
	while (!is_done || messages < MESSAGES || lines < LINES) {
		char dots[LINES];
		uint64_t number;
		size_t which, length;
		ssize_t got;

		check(doorbell_select_wait(select, ends, 3, doorbell_after(60000000000), &which));
		switch (which) {
		case 0:
			while (doorbell_receiver_copy(receiver, 0, &number, sizeof number, &length) == DOORBELL_OK)
				if (number != (uint64_t)messages++)
					return 1;
			break;
		case 1:
			is_done |= doorbell_bell_try_wait(done, NULL) == DOORBELL_OK;
			break;
		default:
			got = read(pipes[0], dots, sizeof dots);
			if (got < 1)
				return 1;
			lines += (int)got;
		}
	}
	pthread_join(thread, NULL);
	/* The sender's end is news as well, and a descriptor alone can be waited for. */
	doorbell_sender_free(work.sender);
	size_t which;
	check(doorbell_select_wait(select, ends, 2, doorbell_after(60000000000), &which));
	if (which != 0 || doorbell_select_wait(select, &ends[2], 1, 0, &which) != DOORBELL_TIMED_OUT)
		return 1;
	printf("%d messages, %d lines\n", messages, lines);
	doorbell_select_free(select);
	doorbell_bell_free(work.done);
	doorbell_bell_free(done);
	doorbell_receiver_free(receiver);
	return 0;
}
