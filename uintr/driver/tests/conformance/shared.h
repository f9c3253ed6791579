/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the cases are made of. */
#ifndef CONFORMANCE_SHARED_H
#define CONFORMANCE_SHARED_H

#define _GNU_SOURCE
#include "../others.h"
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <uintr.h>

/* Passed if its process ends with 0, or by this signal. */
struct item {
	const char *name;
	void (*run)(void);
	int signal;	/* 0 for none */
};

/* One table a file, ended by one without a name. */
extern const struct item starts[], handlers[], waits[], vectors[], ends[], polls[], storms[], timers[], eventfds[];

/* Seconds: an emulator's host may be busy. */
#ifndef LOST_AFTER
#define LOST_AFTER	300
#endif

/* What a case ends with that could not be tried. */
#define SKIPPED		77

/* What this run is about: UINTR_HARDWARE or UINTR_SIGNALS. */
extern unsigned int backend;
/* How often each sender of a storm sends. */
extern int times;
extern volatile int last_vector;
/* Of receives(): vector 5 of the calling thread, and the index by which the process sends it. */
extern int vector, own_index;

void handler(unsigned int vector, void *argument);
__attribute__((noreturn)) void skip(const char *reason);
void begins(void);
void receives_with(unsigned int flags);
void receives(void);
void await(int times);
int64_t now(void);
/* A child that runs this and ends with 0. */
pid_t on_child(void (*run)(void));
/* Called by another thread once the one that called this is asleep. */
void once_i_sleep(void (*act)(void));
/* Sends @own_index once the thread that called this is asleep. */
void sends_to_me_asleep(void);
/* A thread that sends @own_index until @enough. */
extern volatile bool enough;
void *sends_until_enough(void *nothing);
/* Shared with children made later. */
void *shared(size_t size);
void passes_some_time(void);
int open_descriptors(void);

#endif
