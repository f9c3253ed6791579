// SPDX-License-Identifier: MIT OR Apache-2.0
// Wakes pong and is woken by it, by SENDUIPI where there is hardware: ping SOCKET SECONDS & pong SOCKET
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <uintr.h>

static volatile unsigned long heard;

static void handler(unsigned int vector, void *argument)
{
	(void)vector, (void)argument;
	heard++;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		errx(2, "usage: ping SOCKET SECONDS");
	if (uintr_start(0) < 0)
		errx(1, "%s", uintr_backend_reason());
	int vector = uintr_handle(handler, NULL, 0) ? -1 : uintr_vector_fd(0, 0), theirs;
	if (vector < 0)
		err(1, "uintr_vector_fd");

	struct sockaddr_un name = { .sun_family = AF_UNIX };
	strncpy(name.sun_path, argv[1], sizeof(name.sun_path) - 1);
	int door = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	if (bind(door, (void *)&name, sizeof(name)) || listen(door, 1) || (door = accept(door, NULL, NULL)) < 0)
		err(1, "%s", argv[1]);
	char byte = 0, space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
	*CMSG_FIRSTHDR(&message) = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &vector, sizeof(int));
	if (sendmsg(door, &message, 0) != 1 || recvmsg(door, &message, 0) != 1)
		err(1, "%s", argv[1]);
	memcpy(&theirs, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));

	int index = uintr_register_sender(theirs, 0);
	for (time_t end = time(NULL) + atoi(argv[2]); index >= 0 && time(NULL) < end; uintr_unmask(), uintr_mask())
		for (unsigned long next = heard + (uintr_send(index), 1); heard < next; uintr_unmask(), uintr_mask())
			if (uintr_wait_until(-1, 0) && errno != EINTR)
				err(1, "uintr_wait_until");
	printf("%lu times there and back (%s)\n", heard, uintr_backend_reason());
	return index < 0;
}
