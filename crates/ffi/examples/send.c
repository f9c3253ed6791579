/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sends messages to receive.c. Usage: send PATH MESSAGE... */
#include "check.h"

#include <string.h>

int main(int argc, char **argv)
{
	doorbell_connection *connection;
	doorbell_sender *sender;

	if (argc < 3) {
		fprintf(stderr, "usage: send PATH MESSAGE...\n");
		return 2;
	}
	check(doorbell_join(argv[1], &connection));
	check(doorbell_connection_sender(connection, 0, &sender));
	for (int i = 2; i < argc; i++)
		check(doorbell_sender_send(sender, argv[i], strlen(argv[i]), DOORBELL_FOREVER));

	doorbell_sender_free(sender);
	doorbell_connection_free(connection);
	return 0;
}
