// SPDX-License-Identifier: MIT OR Apache-2.0
// Answers ping, by SENDUIPI where there is hardware, until ping is gone: ping SOCKET SECONDS & pong SOCKET
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uintr.h>

static volatile unsigned long heard;
static int back;

static void handler(unsigned int vector, void *argument)
{
	(void)vector, (void)argument;
	heard++;
	uintr_send(back);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		errx(2, "usage: pong SOCKET");
	if (uintr_start(0) < 0)
		errx(1, "%s", uintr_backend_reason());
	int vector = uintr_handle(handler, NULL, 0) ? -1 : uintr_vector_fd(0, 0), theirs;
	if (vector < 0)
		err(1, "uintr_vector_fd");

	struct sockaddr_un name = { .sun_family = AF_UNIX };
	strncpy(name.sun_path, argv[1], sizeof(name.sun_path) - 1);
	int door = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	while (connect(door, (void *)&name, sizeof(name)))
		if (usleep(10000), errno != ENOENT && errno != ECONNREFUSED)
			err(1, "%s", argv[1]);
	char byte = 0, space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
	if (recvmsg(door, &message, 0) != 1)
		err(1, "%s", argv[1]);
	memcpy(&theirs, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	back = uintr_register_sender(theirs, 0);
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &vector, sizeof(int));
	if (back < 0 || sendmsg(door, &message, 0) != 1)
		err(1, "%s", argv[1]);

	// Any system call does: the handler runs in the middle of it. Those that may have a time-out then fail with EINTR.
	for (uintr_unmask(); poll(&(struct pollfd){ theirs, 0, 0 }, 1, -1) < 0 && errno == EINTR;)
		;
	printf("%lu answered (%s)\n", heard, uintr_backend_reason());
	return 0;
}
