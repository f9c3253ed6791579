/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the promises are made of. */
#ifndef LIVES_SHARED_H
#define LIVES_SHARED_H

#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86gprintrin.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <linux/uintr.h>

/* A promise: kept if its process ends with 0, or by this signal. */
struct life {
	const char *name;
	void (*run)(void);
	int signal;	/* 0 for none */
	bool alarms;	/* it uses SIGALRM itself */
};

/* One table a file, ended by one without a name. */
extern const struct life ends[], children[], vectors[], sleeps[], signals[], stops[], again[], stack[],
	polls[], polled_rings[], polled_ends[], polled_loops[], polled_floods[];

#define CHECK(statement) \
	do { \
		if (!(statement)) { \
			printf("# %s:%d: %s (errno %d, handled %d)\n", __FILE__, __LINE__, #statement, errno, handled); \
			fflush(stdout); \
			_exit(1); \
		} \
	} while (0)

/* Seconds. Nothing stands still that long, whatever else the emulator's host does. */
#define LOST_AFTER	120

/* What a case ends with that something else than the driver keeps from being tried. */
#define SKIPPED		77

extern volatile int handled, last_vector;
extern volatile uint64_t handler_sp;
extern int device;
extern int receiver, vector;
extern pid_t receiving_thread;
extern int pipe_ends[2];

__attribute__((interrupt, target("general-regs-only")))
void handler(struct __uintr_frame *frame, unsigned long long vector);
void goes_on(void);
__attribute__((noreturn))
void skip(const char *reason);
long call(int file, unsigned long command, unsigned long argument);
long receive(uint32_t flags);
long wait_until(int receiver, int64_t deadline);
int64_t now(void);
void receives_with(uint32_t flags);
void receives(void);
void await(int times);
void send_to_itself(void);
void on_thread(void *(*run)(void *), void *argument);
void await_state(pid_t tid, char wanted);
void put(const char *folder, const char *file, const char *text);
void *sends_to_sleeper(void *nothing);
void goes_off_asleep(void);
void runs_on(int cpu);
int status_of(pid_t child);
bool killed_by(int status, int signal);
void on_signal(int signal);
long interrupts_of(const char *name, int cpu);
long line_of(const char *folder, const char *name_of_file, const char *name);

void after_exec(char **files);
int takes_core(const char *report);

#endif
