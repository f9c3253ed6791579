// SPDX-License-Identifier: MIT OR Apache-2.0
// An epoll loop that serves a timer, a socket, and what knock sends: loop SOCKET SECONDS & knock SOCKET TIMES
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>
#include <uintr.h>

static int loop;

static void serve(int file)
{
	if (file < 0 || epoll_ctl(loop, EPOLL_CTL_ADD, file, &(struct epoll_event){ .events = EPOLLIN, .data.fd = file }))
		err(1, "loop");
}

int main(int argc, char **argv)
{
	if (argc != 3)
		errx(2, "usage: loop SOCKET SECONDS");
	if (uintr_start(0) < 0)
		errx(1, "%s", uintr_backend_reason());
	// No handler: what is sent is read, as from an eventfd.
	int vector = uintr_poll_fd(UINTR_NONBLOCK);
	if (vector < 0)
		err(1, "uintr_poll_fd");

	struct sockaddr_un name = { .sun_family = AF_UNIX };
	strncpy(name.sun_path, argv[1], sizeof(name.sun_path) - 1);
	int door = socket(AF_UNIX, SOCK_SEQPACKET, 0), timer = timerfd_create(CLOCK_MONOTONIC, 0), client = -1;
	if (bind(door, (void *)&name, sizeof(name)) || listen(door, 1) ||
	    timerfd_settime(timer, 0, &(struct itimerspec){ { 0, 10000000 }, { 0, 10000000 } }, NULL))
		err(1, "%s", argv[1]);
	loop = epoll_create1(0);
	serve(vector), serve(timer), serve(door);

	uint64_t knocks = 0, ticks = 0, messages = 0, number;
	while (ticks < 100 * strtoull(argv[2], NULL, 10)) {
		struct epoll_event event;
		char byte = 'k', space[CMSG_SPACE(sizeof(int))] = { 0 };
		struct iovec data = { &byte, 1 };
		if (epoll_wait(loop, &event, 1, -1) != 1)
			err(1, "epoll_wait");
		if (event.data.fd == vector && read(vector, &number, 8) == 8) {
			knocks += number;
			send(client, &byte, 1, MSG_NOSIGNAL);
		} else if (event.data.fd == timer && read(timer, &number, 8) == 8) {
			ticks += number;
		} else if (event.data.fd == door) {
			struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
			*CMSG_FIRSTHDR(&message) = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
			memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &vector, sizeof(int));
			serve(client = accept(door, NULL, NULL));
			if (sendmsg(client, &message, MSG_NOSIGNAL) != 1)
				err(1, "%s", argv[1]);
		} else if (event.data.fd == client) {
			if (recv(client, &byte, 1, 0) != 1)
				break;
			messages += send(client, &byte, 1, MSG_NOSIGNAL) == 1;
		}
	}
	printf("%lu knocks, %lu messages, %lu ticks of 10 ms (%s)\n", knocks, messages, ticks, uintr_backend_reason());
	return 0;
}
