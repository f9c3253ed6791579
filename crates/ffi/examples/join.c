/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Meets host.c at a path, says hello, and waits for the answer. Usage: join PATH */
#include "check.h"

int main(int argc, char **argv)
{
	static const char hello[] = "hello from C";
	doorbell_session *session;
	doorbell_board *board;
	doorbell_bell *theirs, *ours;
	doorbell_peer peer;
	char text[64] = "";

	if (argc != 2) {
		fprintf(stderr, "usage: join PATH\n");
		return 2;
	}
	check(doorbell_join(argv[1], &session));
	check(doorbell_session_peer(session, &peer));
	check(doorbell_session_board(session, &board));
	check(doorbell_session_bell(session, 0, DOORBELL_ADAPTIVE, &theirs));
	check(doorbell_session_bell(session, 1, DOORBELL_ADAPTIVE, &ours));

	check(doorbell_board_write(board, 0, (const uint8_t *)hello, sizeof hello));
	doorbell_bell_ring(theirs);
	check(doorbell_bell_wait_deadline(ours, doorbell_after(60000000000), NULL));
	check(doorbell_board_read(board, 0, (uint8_t *)text, sizeof text - 1));
	printf("process %u says: %s\n", peer.process, text);

	doorbell_bell_free(ours);
	doorbell_bell_free(theirs);
	doorbell_board_free(board);
	doorbell_session_free(session);
	return 0;
}
