// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * User interrupts by signals, step by step: somebody sends between two steps of a receiver, where a storm comes by
 * once in a million, and a sender is killed between two of its own. What was sent must be handled without a further
 * send. And a handler that interrupted malloc() calls what takes or gives back memory. Compiled with the library's sources, -DUINTR_MOMENTS
 * and -Wl,--wrap=malloc,--wrap=calloc,--wrap=free. Each case is a process. Prints TAP.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#ifdef __x86_64__
#include <x86gprintrin.h>
#endif
#include "../signals.h"

#ifndef LOST_AFTER
#define LOST_AFTER	120
#endif

#define CHECK(statement) \
	do { \
		if (!(statement)) { \
			printf("# line %d: %s (errno %d)\n", __LINE__, #statement, errno); \
			fflush(stdout); \
			_exit(1); \
		} \
	} while (0)

/* The vector that is sent in the ordinary way, and the one that is sent at a moment. */
enum { ORDINARY = 3, EXTRA = 9 };
static volatile int handled[UINTR_VECTORS];

/* What is done at which moment of which thread; once. */
static volatile enum moment at = MOMENTS;
static volatile pid_t of_thread;
static void (*volatile action)(void);

static pid_t own_thread(void)
{
	return bare_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

#ifdef __x86_64__
__attribute__((target("general-regs-only")))
#endif
void uintr_moment(enum moment moment)
{
	if (moment != at || own_thread() != of_thread)
		return;
	at = MOMENTS;
	action();
}

static void when(enum moment moment, void (*does)(void))
{
	action = does;
	of_thread = own_thread();
	at = moment;
}

/* ---- who sends ---- */

struct sender {
	int line;
};
static struct sender ordinary, extra;
/* Of a sender: the line to who asks it. */
static int asker;

static bool is_answered(int line)
{
	char byte;
	long size;

	do
		size = bare_call(SYS_read, line, (long)&byte, 1, 0, 0, 0);
	while (size == -EINTR);
	return size == 1;
}

static void dies(void)
{
	bare_call(SYS_kill, bare_call(SYS_getpid, 0, 0, 0, 0, 0, 0), SIGKILL, 0, 0, 0, 0);
}

/* Until it is asked to go on. */
static void pauses(void)
{
	bare_call(SYS_write, asker, (long)"", 1, 0, 0, 0);
	is_answered(asker);
}

/* A process that sends what @fd stands for when it is asked, and does something at a moment of that. */
static struct sender sender_of(int fd, enum moment moment, void (*does)(void))
{
	char byte;
	int ends[2], index;

	CHECK(fd >= 0 && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[0]);
		asker = ends[1];
		index = uintr_register_sender(fd, 0);
		CHECK(index >= 0 && write(ends[1], "", 1) == 1);
		while (read(ends[1], &byte, 1) == 1) {
			if (does)
				when(moment, does);
			uintr_send(index);
			CHECK(write(ends[1], "", 1) == 1);
		}
		_exit(0);
	}
	close(ends[1]);
	CHECK(read(ends[0], &byte, 1) == 1);
	return (struct sender){ ends[0] };
}

/* Asks it, also from a handler. Returns when it has sent, or pauses, or has died of it: false. */
static bool has_sent(const struct sender *sender)
{
	bare_call(SYS_write, sender->line, (long)"", 1, 0, 0, 0);
	return is_answered(sender->line);
}

static void extra_sends(void)
{
	has_sent(&extra);
}

/* ---- who receives ---- */

static void handler(unsigned int vector, void *argument)
{
	(void)argument;
	handled[vector]++;
}

#ifdef __x86_64__
__attribute__((interrupt, target("general-regs-only")))
static void uiret_handler(struct __uintr_frame *frame, unsigned long long vector)
{
	(void)frame;
	handled[vector]++;
}
#endif

static void begins(bool uiret)
{
	CHECK(uintr_start(UINTR_SIGNALS) == UINTR_SIGNALS);
#ifdef __x86_64__
	if (uiret) {
		CHECK(!uintr_register_handler((void *)uiret_handler, 0));
		return;
	}
#endif
	(void)uiret;
	CHECK(!uintr_handle(handler, NULL, 0));
}

static void both_are_handled(void)
{
	while (handled[ORDINARY] != 1 || handled[EXTRA] != 1)
		CHECK(handled[ORDINARY] <= 1 && handled[EXTRA] <= 1);
	/* It came to that moment. */
	CHECK(at == MOMENTS);
}

static void begins_with_two_vectors(bool uiret)
{
	begins(uiret);
	ordinary = sender_of(uintr_vector_fd(ORDINARY, 0), MOMENTS, NULL);
	extra = sender_of(uintr_vector_fd(EXTRA, 0), MOMENTS, NULL);
}

static void runs(enum moment moment, bool uiret)
{
	begins_with_two_vectors(uiret);
	uintr_unmask();
	when(moment, extra_sends);
	has_sent(&ordinary);
	both_are_handled();
}

static void unmasks(enum moment moment, bool uiret)
{
	begins_with_two_vectors(uiret);
	has_sent(&ordinary);
	when(moment, extra_sends);
	uintr_unmask();
	both_are_handled();
}

/* There is something when it begins, if @something. */
static void waits(enum moment moment, bool something)
{
	begins_with_two_vectors(false);
	if (something)
		has_sent(&ordinary);
	when(moment, extra_sends);
	CHECK(uintr_wait_until(-1, 0) == 0);
	if (!something)
		has_sent(&ordinary);
	uintr_unmask();
	both_are_handled();
}

static int silent;

/* As waits(), in a loop with a descriptor in which nothing comes. */
static void loops(enum moment moment, bool something)
{
	begins_with_two_vectors(false);
	silent = eventfd(0, 0);
	if (something)
		has_sent(&ordinary);
	when(moment, extra_sends);
	while (at != MOMENTS)
		CHECK(uintr_wait_fd(silent, -1, 0) == 0 || errno == EINTR);
	if (!something)
		has_sent(&ordinary);
	uintr_unmask();
	both_are_handled();
}

/* No byte of any is left in the bell: behind a full one who only runs would not be rung for. */
static void loops_often_and_runs(enum moment moment)
{
	begins_with_two_vectors(false);
	silent = eventfd(0, 0);
	for (int i = 1; i <= 1000; i++) {
		uintr_mask();
		when(moment, extra_sends);
		while (at != MOMENTS)
			CHECK(uintr_wait_fd(silent, -1, 0) == 0 || errno == EINTR);
		uintr_unmask();
		CHECK(handled[EXTRA] == i);
	}
	has_sent(&ordinary);
	while (handled[ORDINARY] != 1)
		;
}

/* ---- what senders do between their steps ---- */

static volatile pid_t sleeper;
static void (*once_it_sleeps)(void);
static bool in_a_loop;

static void *waits_for_its_sleep(void *nothing)
{
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", sleeper);
	while (state != 'S') {
		FILE *file = fopen(path, "r");

		CHECK(file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
		fclose(file);
	}
	once_it_sleeps();
	return nothing;
}

/* Sleeps until there is something, which somebody does once it sleeps. */
static void sleeps_until(void (*does)(void))
{
	pthread_t thread;

	once_it_sleeps = does;
	sleeper = own_thread();
	CHECK(!pthread_create(&thread, NULL, waits_for_its_sleep, NULL));
	CHECK((in_a_loop ? uintr_wait_fd(eventfd(0, 0), -1, 0) : uintr_wait_until(-1, 0)) == 0);
	uintr_unmask();
	CHECK(!pthread_join(thread, NULL));
}

/* Of one vector. */
static void one_dies_and_the_other_sends(void)
{
	CHECK(!has_sent(&extra));
	CHECK(has_sent(&ordinary));
}

static void outlives_a_sender(enum moment moment, enum mode mode)
{
	int fd;

	begins(false);
	fd = uintr_vector_fd(ORDINARY, 0);
	extra = sender_of(fd, moment, dies);
	ordinary = sender_of(fd, MOMENTS, NULL);
	if (mode == OPEN)
		uintr_unmask();
	in_a_loop = mode == POLLING;
	if (mode == WAITING || mode == POLLING)
		sleeps_until(one_dies_and_the_other_sends);
	else
		one_dies_and_the_other_sends();
	/* One that is open already is not to look once more. */
	if (mode == SHUT)
		uintr_unmask();
	while (!handled[ORDINARY])
		;
}

static void paused_one_goes_on(void)
{
	CHECK(has_sent(&extra));
}

/* The receiver opens, or falls asleep, while a sender is between two steps. */
static void overtakes_a_sender(enum moment moment, enum mode mode)
{
	begins(false);
	extra = sender_of(uintr_vector_fd(EXTRA, 0), moment, pauses);
	CHECK(has_sent(&extra));
	in_a_loop = mode == POLLING;
	/* What was posted already ends a wait at once. */
	if (mode != OPEN && moment == BEFORE_THE_POST) {
		sleeps_until(paused_one_goes_on);
	} else if (mode != OPEN) {
		CHECK((in_a_loop ? uintr_wait_fd(eventfd(0, 0), -1, 0) : uintr_wait_until(-1, 0)) == 0);
		paused_one_goes_on();
		uintr_unmask();
	} else {
		uintr_unmask();
		paused_one_goes_on();
	}
	while (handled[EXTRA] != 1)
		;
}

/* ---- what handlers leave alone, which may have interrupted malloc() ---- */

/* How often the library, or this, took memory of the heap in a handler, or gave it back. */
static volatile int heap_calls;
static int given;

void *__real_malloc(size_t size);
void *__real_calloc(size_t number, size_t size);
void __real_free(void *memory);

void *__wrap_malloc(size_t size)
{
	heap_calls += !!uintr_handlers_running;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t number, size_t size)
{
	heap_calls += !!uintr_handlers_running;
	return __real_calloc(number, size);
}

void __wrap_free(void *memory)
{
	heap_calls += !!uintr_handlers_running;
	__real_free(memory);
}

static void has_descriptors_below(int number)
{
	CHECK(!setrlimit(RLIMIT_NOFILE, &(struct rlimit){ number, 1024 }));
}

/* With fewer descriptors than that takes it fails at each of its steps. */
static void gives_an_eventfd(unsigned int vector, void *argument)
{
	int lowest = dup(given), failed = 0;

	CHECK(lowest >= 0 && !close(lowest));
	has_descriptors_below(lowest);
	while (uintr_vector_eventfd(EXTRA, given, 0)) {
		CHECK(errno == EMFILE);
		has_descriptors_below(lowest + ++failed);
	}
	/* A page, two ends, a copy, and three that a sender takes. */
	CHECK(failed > 3);
	/* One behind it, of which there is none yet. */
	has_descriptors_below(lowest + 20);
	CHECK(!uintr_vector_eventfd(EXTRA + 1, given, 0) && !uintr_revoke(EXTRA, 0));
	handler(vector, argument);
}

static void forks(unsigned int vector, void *argument)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(heap_calls);
	CHECK(child > 0 && waitpid(child, &status, 0) == child && !status);
	handler(vector, argument);
}

static void leaves_the_heap_alone(void (*in_a_handler)(unsigned int vector, void *argument))
{
	int index;

	CHECK(uintr_start(UINTR_SIGNALS) == UINTR_SIGNALS);
	CHECK(!uintr_handle(in_a_handler, NULL, 0));
	given = eventfd(0, 0);
	/* The first begins the library's thread, and one is over. */
	CHECK(given >= 0 && !uintr_vector_eventfd(EXTRA, given, 0) && !uintr_revoke(EXTRA, 0));
	index = uintr_register_self(ORDINARY, 0);
	CHECK(index >= 0);
	uintr_unmask();
	uintr_send(index);
	while (!handled[ORDINARY])
		;
	CHECK(heap_calls == 0);
}

/* ---- all of them ---- */

static const char *const names[] = {
	"before the post", "behind the post", "before the ring", "behind the ring", "before it opens", "behind opening",
	"behind emptying the bell", "before it says that it waits", "behind saying that it waits", "before it sleeps", "behind the wait",
};
_Static_assert(sizeof(names) / sizeof(*names) == MOMENTS, "a name for each");

static int cases, wrong;

static bool begins_case(void)
{
	fflush(stdout);
	if (fork())
		return false;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LOST_AFTER);
	return true;
}

static void ends_case(const char *what, const char *moment)
{
	int status;
	bool good = wait(&status) > 0 && !status;

	if (!good && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		printf("# LOST\n");
	printf("%s %d - %s %s\n", good ? "ok" : "not ok", ++cases, what, moment);
	wrong += !good;
}

#define CASE(what, call, moment) \
	do { \
		if (begins_case()) { \
			call; \
			_exit(0); \
		} \
		ends_case(what, names[moment]); \
	} while (0)

int main(void)
{
	static const char *const modes[] = { "to a masked receiver", "to one that runs", "to one that sleeps in a wait", NULL, "to one that sleeps in a loop" };
	static const enum moment running[] = { BEHIND_THE_BELL, BEFORE_OPENING, BEHIND_OPENING };
	static const enum moment sending[] = { BEFORE_THE_POST, BEHIND_THE_POST, BEFORE_THE_RING, BEHIND_THE_RING };

	for (int i = 0; i < 3; i++)
		CASE("one is sent to a receiver that runs,", runs(running[i], false), running[i]);
	for (int i = 1; i < 3; i++)
		CASE("one is sent to a receiver that unmasks,", unmasks(running[i], false), running[i]);
#ifdef __x86_64__
	for (int i = 0; i < 3; i++)
		CASE("one is sent to a receiver whose handler ends by UIRET,", runs(running[i], true), running[i]);
	for (int i = 1; i < 3; i++)
		CASE("one is sent to a receiver that unmasks for a handler that ends by UIRET,", unmasks(running[i], true), running[i]);
#endif
	for (enum moment moment = BEFORE_WAITING; moment < BEHIND_THE_WAIT; moment++)
		CASE("one is sent to a receiver that waits,", waits(moment, false), moment);
	CASE("one is sent to a receiver that waits,", waits(BEHIND_THE_WAIT, true), BEHIND_THE_WAIT);
	for (enum moment moment = BEFORE_WAITING; moment < BEHIND_THE_WAIT; moment++)
		CASE("one is sent to a receiver that loops masked,", loops(moment, false), moment);
	CASE("one is sent to a receiver that loops masked,", loops(BEHIND_THE_WAIT, true), BEHIND_THE_WAIT);
	CASE("a thousand are sent to a receiver that loops masked,", loops_often_and_runs(BEHIND_WAITING), BEHIND_WAITING);
	for (enum mode mode = SHUT; mode <= POLLING; mode++)
		for (int i = 0; i < 4; i++) {
			char what[80];

			if (mode == ENDED)
				break;
			snprintf(what, sizeof(what), "another sends %s, whose first sender was killed", modes[mode]);
			/* Who is masked is not rung for. */
			if (mode == SHUT && sending[i] == BEHIND_THE_RING)
				continue;
			CASE(what, outlives_a_sender(sending[i], mode), sending[i]);
		}
	for (int i = 0; i < 3; i++) {
		CASE("a receiver opens while its sender is", overtakes_a_sender(sending[i], OPEN), sending[i]);
		CASE("a receiver waits while its sender is", overtakes_a_sender(sending[i], WAITING), sending[i]);
		CASE("a receiver loops masked while its sender is", overtakes_a_sender(sending[i], POLLING), sending[i]);
	}
	if (begins_case()) {
		leaves_the_heap_alone(gives_an_eventfd);
		_exit(0);
	}
	ends_case("the heap is left alone by a handler", "that gives an eventfd");
	if (begins_case()) {
		leaves_the_heap_alone(forks);
		_exit(0);
	}
	ends_case("the heap is left alone by a handler", "that forks");
	printf("1..%d\n", cases);
	return wrong != 0;
}
