/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Sends messages to receive.c. Usage: send NAME MESSAGE... */
#include "check.h"

#include <string.h>

int main(int argc, char **argv)
{
	doorbell_sender *sender;
	doorbell_receiver *receiver;

	if (argc < 3) {
		fprintf(stderr, "usage: send NAME MESSAGE...\n");
		return 2;
	}
	/* Answers would come to the receiver. */
	check(doorbell_connect(argv[1], doorbell_after(0), &sender, &receiver));
	for (int i = 2; i < argc; i++)
		check(doorbell_sender_send(sender, argv[i], strlen(argv[i]), DOORBELL_FOREVER));

	doorbell_sender_free(sender);
	doorbell_receiver_free(receiver);
	return 0;
}
