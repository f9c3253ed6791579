/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A message with descriptors that lies in a socket's queue for good: whoever is given the socket's other end peeks. */
#ifndef UINTR_MESSAGE_H
#define UINTR_MESSAGE_H

#include <stddef.h>

/* SCM_MAX_FD of the kernel's. */
#define MESSAGE_DESCRIPTORS	253

int uintr_message_put(int end, const void *data, size_t size, const int *descriptors, int count);
/*
 * Of whatever another process put there, one of @size with @least to @most descriptors: how many, which are the caller's.
 * -1 with errno: EMFILE if this process has no room for them; EOPNOTSUPP if it is another message, or another kind of file.
 */
int uintr_message_peek(int fd, void *data, size_t size, int descriptors[MESSAGE_DESCRIPTORS], int least, int most);
void uintr_message_close(const int *descriptors, int count);

#endif
