// SPDX-License-Identifier: MIT OR Apache-2.0
// Answers ping, by SENDUIPI, until ping is gone: ping SOCKET SECONDS & pong SOCKET
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <x86gprintrin.h>
#include <linux/uintr.h>

static volatile unsigned long heard;
static long back;

static void __attribute__((interrupt, target("general-regs-only"))) handler(struct __uintr_frame *frame, unsigned long long vector)
{
	(void)frame, (void)vector;
	heard++;
	_senduipi(back);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		errx(2, "usage: pong SOCKET");
	struct uintr_receive receive = { .handler = (unsigned long)handler };
	int device = open(UINTR_DEVICE, O_RDWR | O_CLOEXEC), receiver = ioctl(device, UINTR_RECEIVE, &receive);
	int vector = ioctl(receiver, UINTR_VECTOR, 0), theirs;
	if (vector < 0)
		err(1, UINTR_DEVICE);

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
	back = ioctl(theirs, UINTR_CONNECT, 0);
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &vector, sizeof(int));
	if (back < 0 || sendmsg(door, &message, 0) != 1)
		err(1, "%s", argv[1]);

	// Any system call does: the handler runs in the middle of it. Those that may have a time-out then fail with EINTR.
	for (_stui(); poll(&(struct pollfd){ theirs, 0, 0 }, 1, -1) < 0 && errno == EINTR;)
		;
	printf("%lu answered\n", heard);
	return 0;
}
