/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Receives messages from send.c, until it leaves. Usage: receive NAME */
#include "check.h"

int main(int argc, char **argv)
{
	doorbell_service *service;
	doorbell_sender *sender;
	doorbell_receiver *receiver;
	doorbell_status status;
	char message[4096];
	size_t length;

	if (argc != 2) {
		fprintf(stderr, "usage: receive NAME\n");
		return 2;
	}
	check(doorbell_listen(argv[1], &service));
	check(doorbell_service_accept(service, DOORBELL_FOREVER, &sender, &receiver));

	while ((status = doorbell_receiver_copy(receiver, DOORBELL_FOREVER, message, sizeof message,
						&length)) == DOORBELL_OK)
		printf("%.*s\n", (int)length, message);
	/* It left, or was killed: either way all it had sent was received. */
	if (status != DOORBELL_CLOSED && status != DOORBELL_PEER_GONE)
		check(status);

	doorbell_receiver_free(receiver);
	doorbell_sender_free(sender);
	doorbell_service_free(service);
	return 0;
}
