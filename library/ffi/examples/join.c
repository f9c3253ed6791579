/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Meets host.c at a path, says hello, and waits for the answer. Usage: join PATH */
#include "check.h"

int main(int argc, char **argv)
{
	static const char hello[] = "hello from C";
	doorbell_connection *connection;
	doorbell_segment *segment;
	doorbell_bell *theirs, *ours;
	doorbell_peer peer;
	char text[64] = "";

	if (argc != 2) {
		fprintf(stderr, "usage: join PATH\n");
		return 2;
	}
	check(doorbell_join(argv[1], &connection));
	check(doorbell_connection_peer(connection, &peer));
	check(doorbell_connection_segment(connection, &segment));
	check(doorbell_connection_bell(connection, 0, DOORBELL_ADAPTIVE, &theirs));
	check(doorbell_connection_bell(connection, 1, DOORBELL_ADAPTIVE, &ours));

	check(doorbell_segment_write(segment, 0, (const uint8_t *)hello, sizeof hello));
	doorbell_bell_ring(theirs);
	check(doorbell_bell_wait_deadline(ours, doorbell_after(60000000000), NULL));
	check(doorbell_segment_read(segment, 0, (uint8_t *)text, sizeof text - 1));
	printf("process %u says: %s\n", peer.process, text);

	doorbell_bell_free(ours);
	doorbell_bell_free(theirs);
	doorbell_segment_free(segment);
	doorbell_connection_free(connection);
	return 0;
}
