// SPDX-License-Identifier: MIT OR Apache-2.0
#define _GNU_SOURCE
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "backend.h"
#include "message.h"

#ifndef SCM_PIDFD
#define SCM_PIDFD	4
#endif

union control {
	struct cmsghdr header;
	char space[CMSG_SPACE(MESSAGE_DESCRIPTORS * sizeof(int))];
};

int uintr_message_put(int end, const void *data, size_t size, const int *descriptors, int count)
{
	union control control = { .header = { CMSG_LEN(count * sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec part = { (void *)data, size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(count * sizeof(int)) };

	memcpy(CMSG_DATA(&control.header), descriptors, count * sizeof(int));
	return sendmsg(end, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size ? 0 : -1;
}

int uintr_message_peek(int fd, void *data, size_t size, int descriptors[MESSAGE_DESCRIPTORS], int least, int most)
{
	union control control;
	struct iovec part = { data, size };
	/* Without the padding at the end, which has room for one more. */
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_LEN(MESSAGE_DESCRIPTORS * sizeof(int)),
	};
	ssize_t came = recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int count = 0;

	if (came < 0)
		return refuse(errno == EBADF || errno == EMFILE ? errno : EOPNOTSUPP);
	/* A peer may have asked the socket for more than was sent, such as credentials in front of it, and a descriptor of the sender. */
	for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
		size_t bytes = header->cmsg_len - CMSG_LEN(0);

		if (header->cmsg_level != SOL_SOCKET || (header->cmsg_type != SCM_RIGHTS && header->cmsg_type != SCM_PIDFD))
			continue;
		memcpy(descriptors + count, CMSG_DATA(header), bytes);
		count += bytes / sizeof(int);
	}
	if (came == (ssize_t)size && !(message.msg_flags & MSG_CTRUNC) && count >= least && count <= most)
		return count;
	uintr_message_close(descriptors, count);
	/* Some that did not fit into the process's table are left out. */
	return refuse(message.msg_flags & MSG_CTRUNC ? EMFILE : EOPNOTSUPP);
}

void uintr_message_close(const int *descriptors, int count)
{
	for (int i = 0; i < count; i++)
		close(descriptors[i]);
}
