/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Waits at a path for join.c, answers what it says, and hears it leave. Usage: host PATH */
#include "check.h"

#include <string.h>

int main(int argc, char **argv)
{
	doorbell_offer offer;
	doorbell_segment *segment;
	doorbell_host *host;
	doorbell_connection *connection;
	doorbell_bell *theirs, *ours;
	char text[64] = "";

	if (argc != 2) {
		fprintf(stderr, "usage: host PATH\n");
		return 2;
	}
	doorbell_offer_init(&offer);
	offer.payload = sizeof text;
	check(doorbell_segment_new(&offer, &segment));
	/* Before anybody can ring them. */
	check(doorbell_segment_bell(segment, 0, DOORBELL_ADAPTIVE, &ours));
	check(doorbell_segment_bell(segment, 1, DOORBELL_ADAPTIVE, &theirs));
	check(doorbell_host_bind(argv[1], &host));
	check(doorbell_host_accept(host, segment, &connection));

	check(doorbell_bell_wait(ours, NULL));
	check(doorbell_segment_read(segment, 0, (uint8_t *)text, sizeof text - 1));
	printf("heard: %s\n", text);
	strcpy(text, "hello to you");
	check(doorbell_segment_write(segment, 0, (uint8_t *)text, sizeof text));
	doorbell_bell_ring(theirs);

	/* No more rings: what ends this wait is the other's end. */
	doorbell_status status = doorbell_bell_wait(ours, NULL);
	if (status != DOORBELL_PEER_GONE)
		check(status == DOORBELL_OK ? DOORBELL_TIMED_OUT : status);
	printf("%s\n", doorbell_last_error()->message);

	doorbell_connection_free(connection);
	doorbell_host_free(host);
	doorbell_bell_free(theirs);
	doorbell_bell_free(ours);
	doorbell_segment_free(segment);
	return 0;
}
