// SPDX-License-Identifier: MIT OR Apache-2.0
// Wakes another process's epoll loop, by SENDUIPI where there is hardware: loop SOCKET SECONDS & knock SOCKET TIMES
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uintr.h>

int main(int argc, char **argv)
{
	if (argc != 3)
		errx(2, "usage: knock SOCKET TIMES");
	if (uintr_start(0) < 0)
		errx(1, "%s", uintr_backend_reason());
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	strncpy(name.sun_path, argv[1], sizeof(name.sun_path) - 1);
	int door = socket(AF_UNIX, SOCK_SEQPACKET, 0), vector;
	while (connect(door, (void *)&name, sizeof(name)))
		if (usleep(10000), errno != ENOENT && errno != ECONNREFUSED)
			err(1, "%s", argv[1]);
	char byte = 0, space[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
	if (recvmsg(door, &message, 0) != 1)
		err(1, "%s", argv[1]);
	memcpy(&vector, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	int index = uintr_register_sender(vector, 0);
	if (index < 0)
		err(1, "uintr_register_sender");

	long times = atol(argv[2]);
	for (long i = 0; i < times; i++) {
		// With hardware one instruction, and the loop's process is out of epoll_wait(2).
		uintr_send(index);
		if (recv(door, &byte, 1, 0) != 1 || byte != 'k')
			errx(1, "no answer to knock %ld", i);
		if (i % 16)
			continue;
		byte = 'm';
		if (send(door, &byte, 1, 0) != 1 || recv(door, &byte, 1, 0) != 1 || byte != 'm')
			errx(1, "no answer to message %ld", i / 16);
	}
	printf("%ld knocks answered (%s)\n", times, uintr_backend_reason());
	return 0;
}
