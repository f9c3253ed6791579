/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Messages that are written and read where they lie, between a parent and the child it starts; a receiver in an event
 * loop; and what happens to a sender whose receiver is behind.
 */
#include "check.h"

#include <poll.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MESSAGES = 1000, REQUESTS = 0, ANSWERS = 1 };

/* Answers each number with its square, until there are no more. */
static int child(void)
{
	doorbell_connection *connection;
	doorbell_receiver *requests;
	doorbell_sender *answers;
	doorbell_status status;
	const void *message;
	size_t length;

	check(doorbell_inherit(&connection));
	check(doorbell_connection_receiver(connection, REQUESTS, &requests));
	check(doorbell_connection_sender(connection, ANSWERS, &answers));
	while ((status = doorbell_receiver_recv(requests, DOORBELL_FOREVER, &message, &length)) ==
	       DOORBELL_OK) {
		uint64_t number;
		void *place;

		if (length != sizeof number)
			return 1;
		memcpy(&number, message, sizeof number);
		check(doorbell_receiver_release(requests));
		number *= number;
		check(doorbell_sender_reserve(answers, 100, DOORBELL_FOREVER, &place));
		memcpy(place, &number, sizeof number);
		check(doorbell_sender_commit(answers, sizeof number));
	}
	if (status != DOORBELL_CLOSED)
		check(status);
	doorbell_sender_free(answers);
	doorbell_receiver_free(requests);
	doorbell_connection_free(connection);
	return 0;
}

int main(int argc, char **argv)
{
	doorbell_offer offer;
	doorbell_segment *segment;
	doorbell_pending *pending;
	doorbell_connection *connection;
	doorbell_sender *requests;
	doorbell_receiver *answers;
	struct pollfd file = { .events = POLLIN };
	doorbell_status heard;
	uint64_t answer;
	size_t length;
	int status;

	if (argc == 2 && strcmp(argv[1], "child") == 0)
		return child();
	doorbell_offer_init(&offer);
	offer.lanes = 2;
	offer.lane_capacity = 4096;
	check(doorbell_segment_new(&offer, &segment));
	check(doorbell_pending_new(&pending));
	pid_t pid = fork();
	if (pid < 0) {
		perror("fork");
		return 1;
	}
	if (pid == 0) {
		check(doorbell_pending_in_child(pending));
		execl(argv[0], argv[0], "child", (char *)NULL);
		perror("execl");
		_exit(1);
	}
	check(doorbell_pending_meet(pending, segment, (uint32_t)pid, &connection));
	doorbell_pending_free(pending);
	/* Ends of a segment that is shared with somebody untrusted are taken at the connection. */
	if (doorbell_segment_sender(segment, REQUESTS, &requests) != DOORBELL_UNTRUSTED)
		return 1;
	check(doorbell_connection_sender(connection, REQUESTS, &requests));
	check(doorbell_connection_receiver(connection, ANSWERS, &answers));
	/* They keep the connection. */
	doorbell_connection_free(connection);

	check(doorbell_receiver_fd(answers, &file.fd));
	for (uint64_t number = 0; number < MESSAGES; number++) {
		check(doorbell_sender_send(requests, &number, sizeof number, DOORBELL_FOREVER));
		while ((heard = doorbell_receiver_copy(answers, 0, &answer, sizeof answer, &length)) ==
		       DOORBELL_TIMED_OUT) {
			bool something;

			check(doorbell_receiver_listen(answers, &something));
			if (!something && poll(&file, 1, 60000) != 1) {
				fprintf(stderr, "no answer to %llu\n", (unsigned long long)number);
				return 1;
			}
		}
		check(heard);
		if (length != sizeof answer || answer != number * number) {
			fprintf(stderr, "%llu was answered %llu\n", (unsigned long long)number,
				(unsigned long long)answer);
			return 1;
		}
	}

	/* A batch: the receiver is woken once. */
	for (uint64_t number = 1; number <= 3; number++)
		check(doorbell_sender_push(requests, &number, sizeof number));
	check(doorbell_sender_ring(requests));
	for (uint64_t number = 1; number <= 3; number++) {
		check(doorbell_receiver_copy(answers, DOORBELL_FOREVER, &answer, sizeof answer, &length));
		if (answer != number * number)
			return 1;
	}
	/* No more will come: there is a deadline to such a wait, and this one has passed. */
	if (doorbell_receiver_wait_for_bytes(answers, 32, 0) != DOORBELL_TIMED_OUT ||
	    doorbell_receiver_wait_for_bytes(answers, 32, DOORBELL_FOREVER) != DOORBELL_INVALID_ARGUMENT)
		return 1;

	/* Mistakes are told by name and change nothing. */
	void *place;
	static char text[1 << 20];
	if (doorbell_sender_send(requests, text, sizeof text, 0) != DOORBELL_TOO_LONG ||
	    doorbell_sender_commit(requests, 1) != DOORBELL_INVALID_ARGUMENT)
		return 1;
	check(doorbell_sender_reserve(requests, 8, 0, &place));
	if (doorbell_sender_send(requests, text, 1, 0) != DOORBELL_INVALID_ARGUMENT ||
	    doorbell_sender_commit(requests, sizeof text) != DOORBELL_INVALID_ARGUMENT)
		return 1;
	check(doorbell_sender_abandon(requests));
	/* A message that is too long for the place it is to be copied to stays. */
	check(doorbell_sender_send(requests, &(uint64_t){ 7 }, sizeof(uint64_t), DOORBELL_FOREVER));
	if (doorbell_receiver_copy(answers, DOORBELL_FOREVER, text, 1, &length) != DOORBELL_TOO_LONG ||
	    length != sizeof answer)
		return 1;
	check(doorbell_receiver_copy(answers, DOORBELL_FOREVER, &answer, sizeof answer, &length));
	if (answer != 49)
		return 1;

	doorbell_sender_free(requests);
	waitpid(pid, &status, 0);
	heard = doorbell_receiver_copy(answers, DOORBELL_FOREVER, &answer, sizeof answer, &length);
	if (heard != DOORBELL_CLOSED)
		check(heard == DOORBELL_OK ? DOORBELL_VIOLATION : heard);
	printf("%d answers\n", MESSAGES);

	doorbell_receiver_free(answers);
	doorbell_segment_free(segment);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
