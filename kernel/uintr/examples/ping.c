// SPDX-License-Identifier: MIT OR Apache-2.0
// Wakes pong and is woken by it, by SENDUIPI: ping SOCKET SECONDS & pong SOCKET
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <x86gprintrin.h>
#include <linux/uintr.h>

static volatile unsigned long heard;

static void __attribute__((interrupt, target("general-regs-only"))) handler(struct __uintr_frame *frame, unsigned long long vector)
{
	(void)frame, (void)vector;
	heard++;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		errx(2, "usage: ping SOCKET SECONDS");
	struct uintr_receive receive = { .handler = (unsigned long)handler };
	int device = open(UINTR_DEVICE, O_RDWR | O_CLOEXEC), receiver = ioctl(device, UINTR_RECEIVE, &receive);
	int vector = ioctl(receiver, UINTR_VECTOR, 0), theirs;
	if (vector < 0)
		err(1, UINTR_DEVICE);

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

	long index = ioctl(theirs, UINTR_CONNECT, 0);
	struct uintr_wait forever = { .deadline = -1 };
	for (time_t end = time(NULL) + atoi(argv[2]); index >= 0 && time(NULL) < end; _stui(), _clui())
		for (unsigned long next = heard + (_senduipi(index), 1); heard < next; _stui(), _clui())
			if (ioctl(receiver, UINTR_WAIT, &forever) && errno != EINTR)
				err(1, "UINTR_WAIT");
	printf("%lu times there and back\n", heard);
	return index < 0;
}
