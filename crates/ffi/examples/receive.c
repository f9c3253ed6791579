/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Receives messages from send.c, until it leaves. Usage: receive PATH */
#include "check.h"

int main(int argc, char **argv)
{
	doorbell_offer offer;
	doorbell_board *board;
	doorbell_host *host;
	doorbell_session *session;
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
	check(doorbell_board_new(&offer, &board));
	check(doorbell_host_bind(argv[1], &host));
	check(doorbell_host_accept(host, board, &session));
	check(doorbell_session_receiver(session, 0, &receiver));

	while ((status = doorbell_receiver_copy(receiver, DOORBELL_FOREVER, message, sizeof message,
						&length)) == DOORBELL_OK)
		printf("%.*s\n", (int)length, message);
	/* It left, or was killed: either way all it had sent was received. */
	if (status != DOORBELL_CLOSED && status != DOORBELL_PEER_GONE)
		check(status);

	doorbell_receiver_free(receiver);
	doorbell_session_free(session);
	doorbell_host_free(host);
	doorbell_board_free(board);
	return 0;
}
