/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Receives messages from send.c, until it leaves. Usage: receive PATH */
#include "check.h"

int main(int argc, char **argv)
{
	doorbell_offer offer;
	doorbell_segment *segment;
	doorbell_host *host;
	doorbell_connection *connection;
	doorbell_receiver *receiver;
	doorbell_status status;
	char message[4096];
	size_t length;

	if (argc != 2) {
		fprintf(stderr, "usage: receive PATH\n");
		return 2;
	}
	doorbell_offer_init(&offer);
	offer.lanes = 1;
	check(doorbell_segment_new(&offer, &segment));
	check(doorbell_host_bind(argv[1], &host));
	check(doorbell_host_accept(host, segment, &connection));
	check(doorbell_connection_receiver(connection, 0, &receiver));

	while ((status = doorbell_receiver_copy(receiver, DOORBELL_FOREVER, message, sizeof message,
						&length)) == DOORBELL_OK)
		printf("%.*s\n", (int)length, message);
	/* It left, or was killed: either way all it had sent was received. */
	if (status != DOORBELL_CLOSED && status != DOORBELL_PEER_GONE)
		check(status);

	doorbell_receiver_free(receiver);
	doorbell_connection_free(connection);
	doorbell_host_free(host);
	doorbell_segment_free(segment);
	return 0;
}
