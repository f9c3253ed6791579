/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Several children send to one parent, which gathers their messages in an event loop; then the parent publishes to all
 * of them. Each child has a segment of its own, so that none can disturb another.
 */
#include "check.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 3, MESSAGES = 500, TO_PARENT = 0, FROM_PARENT = 1 };

/* Sends its numbers, and then hears what is published until the publisher leaves. */
static int child(void)
{
	doorbell_connection *connection;
	doorbell_sender *sender;
	doorbell_subscriber *subscriber;
	doorbell_status status;
	struct pollfd file = { .events = POLLIN };
	uint64_t missed, heard = 0, text;
	size_t length;
	bool something;

	check(doorbell_inherit(&connection));
	check(doorbell_connection_sender(connection, TO_PARENT, &sender));
	for (uint64_t number = 0; number < MESSAGES; number++)
		check(doorbell_sender_send(sender, &number, sizeof number, DOORBELL_FOREVER));
	check(doorbell_connection_subscribe(connection, FROM_PARENT, &subscriber));
	doorbell_connection_free(connection);
	/* A message that is too long for the place it is to be copied to is kept. */
	if (doorbell_subscriber_copy(subscriber, DOORBELL_FOREVER, &text, 1, &length, &missed) !=
	    DOORBELL_TOO_LONG)
		return 1;
	/* What is kept is there for an event loop too. */
	check(doorbell_subscriber_listen(subscriber, &something));
	if (!something)
		return 1;
	check(doorbell_subscriber_fd(subscriber, &file.fd));
	for (;;) {
		status = doorbell_subscriber_copy(subscriber, 0, &text, sizeof text, &length, &missed);
		if (status == DOORBELL_TIMED_OUT) {
			check(doorbell_subscriber_listen(subscriber, &something));
			if (!something && poll(&file, 1, 60000) < 1) {
				fprintf(stderr, "%d messages were published, and no more\n", (int)heard);
				return 1;
			}
			continue;
		}
		if (status != DOORBELL_OK)
			break;
		if (missed != 0 || length != sizeof text || text != heard)
			return 1;
		heard++;
	}
	if (status != DOORBELL_CLOSED && status != DOORBELL_PEER_GONE)
		check(status);
	doorbell_subscriber_free(subscriber);
	doorbell_sender_free(sender);
	return heard == MESSAGES ? 0 : 1;
}

static doorbell_connection *start(const char *program, const doorbell_segment *segment)
{
	doorbell_pending *pending;
	doorbell_connection *connection;

	check(doorbell_pending_new(&pending));
	pid_t pid = fork();
	if (pid < 0) {
		perror("fork");
		exit(1);
	}
	if (pid == 0) {
		check(doorbell_pending_in_child(pending));
		execl(program, program, "child", (char *)NULL);
		perror("execl");
		_exit(1);
	}
	check(doorbell_pending_meet(pending, segment, (uint32_t)pid, &connection));
	doorbell_pending_free(pending);
	return connection;
}

static void on_alarm(int number)
{
	(void)number;
}

int main(int argc, char **argv)
{
	doorbell_segment *segments[CHILDREN], *threads;
	doorbell_connection *connections[CHILDREN];
	doorbell_gather *gather;
	doorbell_publisher *publisher;
	doorbell_subscriber *slow;
	doorbell_offer offer;
	doorbell_status status;
	struct pollfd files[CHILDREN];
	uint64_t expected[CHILDREN] = { 0 }, number, missed;
	size_t lane, length, count;
	int fds[CHILDREN], ends = 0;
	bool removed;

	if (argc == 2 && strcmp(argv[1], "child") == 0)
		return child();
	check(doorbell_gather_new(&gather));
	/* Without lanes nobody can come. */
	if (doorbell_gather_copy(gather, 0, &lane, &number, sizeof number, &length) != DOORBELL_CLOSED ||
	    lane != SIZE_MAX)
		return 1;
	/* `lane` is written also if nothing else is right. */
	lane = 0;
	if (doorbell_gather_copy(NULL, 0, &lane, &number, sizeof number, &length) !=
	    DOORBELL_INVALID_ARGUMENT || lane != SIZE_MAX)
		return 1;
	/* For whichever lanes come later. */
	check(doorbell_gather_set_interruptible(gather, true));
	check(doorbell_publisher_new(4096, &publisher));
	doorbell_offer_init(&offer);
	offer.lanes = 2;
	offer.lane_capacity = 4096;
	check(doorbell_segment_new(&offer, &threads));
	/* What it took when it had lanes says nothing once it has none. */
	check(doorbell_gather_add_segment(gather, threads, 0, &lane));
	check(doorbell_gather_remove(gather, lane, &removed));
	if (!removed)
		return 1;
	for (size_t i = 0; i < CHILDREN; i++) {
		uint64_t subscription;

		check(doorbell_segment_new(&offer, &segments[i]));
		connections[i] = start(argv[0], segments[i]);
		check(doorbell_gather_add(gather, connections[i], TO_PARENT, &lane));
		check(doorbell_publisher_admit(publisher, connections[i], FROM_PARENT, DOORBELL_HOLD_BACK,
					       &subscription));
		if (lane != i || subscription != i)
			return 1;
		/* The lanes and the publisher keep the connections. */
		doorbell_connection_free(connections[i]);
	}
	/* Trusted lanes do not go with these. */
	if (doorbell_gather_add_segment(gather, threads, 0, &lane) != DOORBELL_INVALID_ARGUMENT)
		return 1;

	check(doorbell_gather_fds(gather, fds, CHILDREN, &count));
	if (count != CHILDREN)
		return 1;
	for (size_t i = 0; i < CHILDREN; i++)
		files[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
	for (int taken = 0; taken < CHILDREN * MESSAGES; taken++) {
		while ((status = doorbell_gather_copy(gather, 0, &lane, &number, sizeof number, &length)) ==
		       DOORBELL_TIMED_OUT) {
			bool something;

			check(doorbell_gather_listen(gather, &something));
			if (!something && poll(files, CHILDREN, 60000) < 1) {
				fprintf(stderr, "%d messages came, and no more\n", taken);
				return 1;
			}
		}
		check(status);
		if (length != sizeof number || number != expected[lane]++) {
			fprintf(stderr, "out of order\n");
			return 1;
		}
	}
	printf("%d messages of %d senders\n", CHILDREN * MESSAGES, CHILDREN);

	for (number = 0; number < MESSAGES; number++)
		check(doorbell_publisher_publish(publisher, &number, sizeof number, DOORBELL_FOREVER));
	if (doorbell_publisher_subscribers(publisher) != CHILDREN)
		return 1;
	/* One that is too slow is told so, and so is the publisher. */
	check(doorbell_publisher_subscribe(publisher, DOORBELL_DROP, &slow));
	doorbell_publisher_free(publisher);
	if (doorbell_subscriber_copy(slow, 0, &number, sizeof number, &length, &missed) != DOORBELL_CLOSED)
		return 1;
	doorbell_subscriber_free(slow);
	check(doorbell_publisher_new(256, &publisher));
	check(doorbell_publisher_subscribe(publisher, DOORBELL_DROP, &slow));
	for (number = 0; number < 100; number++)
		check(doorbell_publisher_publish(publisher, &number, sizeof number, 0));
	check(doorbell_publisher_ended(publisher, &number, &status));
	if (number != 0 || status != DOORBELL_DROPPED ||
	    doorbell_publisher_ended(publisher, &number, &status) != DOORBELL_TIMED_OUT)
		return 1;
	while ((status = doorbell_subscriber_copy(slow, 0, &number, sizeof number, &length, &missed)) ==
	       DOORBELL_OK)
		;
	if (status != DOORBELL_DROPPED ||
	    doorbell_publisher_subscribe(publisher, 77, &slow) != DOORBELL_INVALID_ARGUMENT)
		return 1;
	doorbell_subscriber_free(slow);
	doorbell_publisher_free(publisher);

	for (size_t i = 0; i < CHILDREN; i++) {
		int result;

		if (wait(&result) < 0 || !WIFEXITED(result) || WEXITSTATUS(result) != 0) {
			fprintf(stderr, "a child failed\n");
			return 1;
		}
	}
	/* All have gone: each is told once if it did not leave, and then that nobody is left. */
	while ((status = doorbell_gather_copy(gather, 0, &lane, &number, sizeof number, &length)) !=
	       DOORBELL_CLOSED) {
		if (status != DOORBELL_PEER_GONE)
			check(status == DOORBELL_OK ? DOORBELL_VIOLATION : status);
		if (++ends > CHILDREN)
			break;
	}
	for (size_t i = 0; i < CHILDREN; i++) {
		check(doorbell_gather_remove(gather, i, &removed));
		if (!removed)
			return 1;
		doorbell_segment_free(segments[i]);
	}
	/* Empty again, it takes lanes of trusted segments. */
	doorbell_sender *sender;
	const void *message;
	check(doorbell_gather_add_segment(gather, threads, 1, &lane));
	check(doorbell_segment_sender(threads, 1, &sender));
	/* It is interruptible still. Again and again: a signal before the sleep does not end it. */
	const struct itimerval often = { { 0, 10000 }, { 0, 10000 } }, never = { 0 };
	const struct sigaction handler = { .sa_handler = on_alarm };
	sigaction(SIGALRM, &handler, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	lane = 0;
	if (doorbell_gather_recv(gather, DOORBELL_FOREVER, &lane, &message, &length) !=
	    DOORBELL_INTERRUPTED || lane != SIZE_MAX)
		return 1;
	setitimer(ITIMER_REAL, &never, NULL);
	check(doorbell_sender_send(sender, "in place", 8, DOORBELL_FOREVER));
	check(doorbell_gather_recv(gather, DOORBELL_FOREVER, &lane, &message, &length));
	if (lane != 0 || length != 8 || memcmp(message, "in place", 8) != 0 ||
	    doorbell_gather_remove(gather, 0, &removed) != DOORBELL_INVALID_ARGUMENT)
		return 1;
	check(doorbell_gather_release(gather));
	doorbell_sender_free(sender);
	doorbell_gather_free(gather);
	doorbell_segment_free(threads);
	printf("%d subscribers heard %d messages\n", CHILDREN, MESSAGES);
	return 0;
}
