/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Answers each message of any client with the same, until one says "end". Usage: serve NAME
 * With clients of its own it is a test: serve NAME COUNT starts COUNT of them, each of which is answered 100 times. They and the
 * service are this user's, and of nobody else's.
 */
#include "check.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 50

static int client(const char *name)
{
	doorbell_sender *sender;
	doorbell_receiver *receiver;
	char answer[64];
	static char longest[100000];
	size_t length;
	uint32_t us = geteuid(), them = us + 1;
	struct doorbell_join_options of_others;

	check(doorbell_connect(name, doorbell_after(60000000000), &sender, &receiver));
	doorbell_sender_free(sender);
	doorbell_receiver_free(receiver);
	doorbell_join_options_init(&of_others);
	of_others.host = (struct doorbell_users){.kind = DOORBELL_USERS_LISTED, .count = 1, .listed = &them};
	if (doorbell_connect_with(name, &of_others, 0, &sender, &receiver) != DOORBELL_OTHER_USER)
		return 1;
	of_others.host.listed = &us;
	/* Less than the two rings take. */
	of_others.most_memory = 1 << 20;
	if (doorbell_connect_with(name, &of_others, 0, &sender, &receiver) != DOORBELL_TOO_LARGE)
		return 1;
	of_others.most_memory = UINT64_MAX;
	check(doorbell_connect_with(name, &of_others, 0, &sender, &receiver));
	/* More than a ring of 64 KiB takes. */
	check(doorbell_sender_send(sender, longest, sizeof longest, DOORBELL_FOREVER));
	check(doorbell_receiver_copy(receiver, doorbell_after(60000000000), longest, sizeof longest, &length));
	if (length != sizeof longest || longest[0] != 0 || longest[length - 1] != 0)
		return 1;
	for (int i = 0; i < 100; i++) {
		check(doorbell_sender_send(sender, &i, sizeof i, DOORBELL_FOREVER));
		check(doorbell_receiver_copy(receiver, doorbell_after(60000000000), answer, sizeof answer,
					     &length));
		if (length != sizeof i || memcmp(answer, &i, sizeof i) != 0)
			return 1;
	}
	/* More than there is room for: the service waits for us to take it. */
	check(doorbell_sender_send(sender, "many", 4, DOORBELL_FOREVER));
	for (int i = 0; i < MANY; i++) {
		check(doorbell_receiver_copy(receiver, doorbell_after(60000000000), longest, sizeof longest,
					     &length));
		if (length != sizeof longest)
			return 1;
	}
	check(doorbell_sender_send(sender, "end", 3, DOORBELL_FOREVER));
	doorbell_sender_free(sender);
	doorbell_receiver_free(receiver);
	return 0;
}

int main(int argc, char **argv)
{
	doorbell_service *service;
	static char message[1 << 17];
	size_t length;
	uint64_t who;
	int clients = argc > 2 ? atoi(argv[2]) : 0, ends = 0, status;
	uint32_t us = geteuid();
	struct doorbell_listen_options options;

	if (argc < 2) {
		fprintf(stderr, "usage: serve NAME [COUNT]\n");
		return 2;
	}
	for (int i = 0; i < clients; i++)
		if (fork() == 0)
			return client(argv[1]);
	if (clients == 0)
		check(doorbell_listen(argv[1], &service));
	else {
		doorbell_listen_options_init(&options);
		options.users = (struct doorbell_users){.kind = DOORBELL_USERS_LISTED, .count = 1, .listed = &us};
		options.capacity = 1 << 20;
		check(doorbell_listen_with(argv[1], &options, &service));
	}
	check(doorbell_service_path(service, message, sizeof message));
	printf("listening at %s\n", message);
	while (ends < (clients ? clients : 1)) {
		check(doorbell_service_recv(service, DOORBELL_FOREVER, message, sizeof message, &length, &who));
		if (length == 3 && memcmp(message, "end", 3) == 0)
			ends++;
		else if (length == 4 && memcmp(message, "many", 4) == 0)
			for (int i = 0; i < MANY; i++)
				check(doorbell_service_send(service, who, message, 100000, doorbell_after(60000000000)));
		else
			check(doorbell_service_send(service, who, message, length, doorbell_after(60000000000)));
	}
	doorbell_service_free(service);
	for (int i = 0; i < clients; i++)
		if (wait(&status) < 0 || status != 0)
			return 1;
	printf("%d clients were answered\n", clients);
	return 0;
}
