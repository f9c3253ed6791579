/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the promises about receivers without a handler have in common. */
#ifndef LIVES_POLLED_H
#define LIVES_POLLED_H

#include "shared.h"
#include <sys/epoll.h>

#define ROUNDS		200

/* How often hears() was called. */
extern volatile int heard;

/* A receiver without a handler. */
long polled(void);
/* One with vector 5, @receiver and @vector, to which index 0 sends. */
void is_polled(unsigned long flags);
uint64_t read_of(int file);
bool empty(int file);
/* Has the calling thread sent to @times, each once it sleeps and the last was heard; its sleeps have nothing else to end them. */
void goes_off(long times);
void hears(void);
int loop_with(int file, uint32_t events);
/* What the loop says, with a time-out in ms. */
int ready(int loop, int timeout);

#endif
