// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * One thread wakes another, by SENDUIPI and by eventfd in turns, and every single
 * wake-up is timed. Both threads are bound to a CPU of their own. Prints what it
 * measured once it has measured all of it; `figures` makes medians and ratios.
 *
 * A wake-up lasts from just before the notifier's call to the waiter's first
 * instruction after its wait; for SENDUIPI that is the first of its handler. In
 * the two ping-pongs it is there and back. Notifications carry no number of their
 * own: the next is sent when the one before was seen, so each is accounted for.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <x86gprintrin.h>

#include <linux/uintr.h>

/* No wake-up takes that long, whatever else the emulator's host does. */
#define LOST_AFTER 60

enum means { EVENTFD, SENDUIPI };

enum waiting {
	RUNS,       /* it never blocks: it looks at memory, or reads without blocking */
	MAY_BLOCK,  /* it calls, and the notifier does not care how far it got */
	BLOCKED,    /* it is seen asleep before it is notified */
};

static const struct variant {
	const char *name;
	enum means means;
	enum waiting waiting;
	bool back;  /* the waiter answers, and there and back is timed */
} variants[] = {
	{ "running-senduipi", SENDUIPI, RUNS, false },
	{ "running-eventfd", EVENTFD, RUNS, false },
	{ "call-senduipi", SENDUIPI, MAY_BLOCK, false },
	{ "call-eventfd", EVENTFD, MAY_BLOCK, false },
	{ "blocked-senduipi", SENDUIPI, BLOCKED, false },
	{ "blocked-eventfd", EVENTFD, BLOCKED, false },
	{ "ping-pong-senduipi", SENDUIPI, RUNS, true },
	{ "ping-pong-eventfd", EVENTFD, MAY_BLOCK, true },
};
#define VARIANTS (sizeof(variants) / sizeof(*variants))

/* One of the two threads. What the other one writes has a cache line of its own. */
static struct side {
	_Alignas(64) atomic_ulong ready;  /* waits for this notification, from 1 */
	_Alignas(64) atomic_ulong seen;   /* notifications */
	atomic_ulong awake;               /* ticks, at the last of them */
	_Alignas(64) int status;          /* /proc/.../status of this thread */
	int cpu;
	int event;
	int receiver, vector;             /* its own descriptors */
	long index;                       /* of the other side, for SENDUIPI */
	unsigned long calls;              /* that waited */
	unsigned long switches;           /* voluntary ones, up to the last sleep that was seen */
	unsigned long slept;
	unsigned long woken;              /* by the driver */
} sides[2];

static int device;

/* What a block came to. */
struct block {
	size_t variant;
	unsigned int round;
	unsigned long sent, seen, calls, slept, woken;
	uint64_t *ticks;
};

static struct {
	unsigned int rounds, count;
	uint64_t seed;
	size_t variants[VARIANTS], n_variants;  /* all if none is named */
} want = { .rounds = 20, .count = 500, .seed = 1 };

static pthread_barrier_t barrier;
static struct block *current;

static uint64_t ticks(void)
{
	return __builtin_ia32_rdtsc();
}

static uint64_t nanoseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

__attribute__((noreturn, format(printf, 1, 2)))
static void fail(const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "wakeups: ");
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "\n");
	exit(1);
}

static void see(struct side *own)
{
	atomic_store_explicit(&own->awake, ticks(), memory_order_relaxed);
	/* Pairs with the acquire in await(). */
	atomic_fetch_add_explicit(&own->seen, 1, memory_order_release);
}

/* The thread that a handler interrupts is known from which one it is. */
#define HANDLER(name, side) \
	__attribute__((interrupt, target("general-regs-only"))) \
	static void name(struct __uintr_frame *frame, unsigned long long vector) \
	{ \
		(void)frame; \
		(void)vector; \
		atomic_store_explicit(&sides[side].awake, __builtin_ia32_rdtsc(), memory_order_relaxed); \
		atomic_fetch_add_explicit(&sides[side].seen, 1, memory_order_release); \
	}
HANDLER(handle_0, 0)
HANDLER(handle_1, 1)

/* Spins until @counter has come to @number. */
static void await(const atomic_ulong *counter, unsigned long number)
{
	uint64_t deadline = 0;
	unsigned int spins = 0;

	while (atomic_load_explicit(counter, memory_order_acquire) < number) {
		__builtin_ia32_pause();
		if (++spins % 65536)
			continue;
		if (!deadline)
			deadline = nanoseconds() + LOST_AFTER * 1000000000ull;
		else if (nanoseconds() > deadline)
			fail("lost: round %u, %s, notification %lu was not seen within %d s",
			     current->round, variants[current->variant].name, number, LOST_AFTER);
	}
}

/*
 * Until the other thread is asleep: the kernel calls it so, and it has left its
 * CPU of its own accord since the last time. The state alone is set before the
 * thread looks for a reason not to sleep.
 */
static void await_sleep(struct side *other)
{
	char text[4096], *state, *switched;
	unsigned long switches = 0;
	ssize_t length;

	do {
		length = pread(other->status, text, sizeof(text) - 1, 0);
		if (length <= 0)
			fail("the waiter's state cannot be read: %s", strerror(errno));
		text[length] = 0;
		state = strstr(text, "\nState:\t");
		switched = strstr(text, "\nvoluntary_ctxt_switches:\t");
		if (!state || !switched)
			fail("the waiter's status has no state, or no count of switches");
		switches = strtoul(strchr(switched, '\t'), NULL, 10);
	} while (state[strlen("\nState:\t")] != 'S' || switches <= other->switches);
	other->switches = switches;
}

static void notify(struct side *own, struct side *other, enum means means)
{
	if (means == SENDUIPI)
		_senduipi(own->index);
	else if (eventfd_write(other->event, 1))
		fail("eventfd: %s", strerror(errno));
}

/* Waits for notification @number. */
static void wait(struct side *own, const struct variant *variant, unsigned long number)
{
	struct uintr_wait forever = { .deadline = -1 };
	eventfd_t value = 0;

	if (variant->means == SENDUIPI && variant->waiting == RUNS) {
		atomic_store_explicit(&own->ready, number, memory_order_release);
		await(&own->seen, number);
	} else if (variant->means == SENDUIPI) {
		/* Shut, look, wait, open: nothing comes between the look and the wait. */
		_clui();
		atomic_store_explicit(&own->ready, number, memory_order_release);
		while (atomic_load_explicit(&own->seen, memory_order_relaxed) < number) {
			if (ioctl(own->receiver, UINTR_WAIT, &forever))
				fail("UINTR_WAIT: %s", strerror(errno));
			own->calls++;
			_stui();
			_clui();
		}
		_stui();
	} else {
		atomic_store_explicit(&own->ready, number, memory_order_release);
		do {
			own->calls++;
		} while (eventfd_read(own->event, &value) && errno == EAGAIN);
		see(own);
		if (value != 1)
			fail("an eventfd that was written once read %lu", value);
	}
}

static unsigned long switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

static void notifier(const struct variant *variant)
{
	struct side *own = &sides[0], *other = &sides[1];
	uint64_t start;

	for (unsigned long number = 1; number <= want.count; number++) {
		await(&other->ready, number);
		if (variant->waiting == BLOCKED)
			await_sleep(other);
		start = ticks();
		notify(own, other, variant->means);
		current->sent++;
		if (variant->back)
			wait(own, variant, number);
		else
			await(&other->seen, number);
		current->ticks[number - 1] = (variant->back ? own : other)->awake - start;
	}
}

static void waiter(const struct variant *variant)
{
	struct side *own = &sides[1], *other = &sides[0];
	unsigned long before = switches();

	/* Published with the first `ready`. */
	own->switches = before;
	for (unsigned long number = 1; number <= want.count; number++) {
		wait(own, variant, number);
		if (variant->back)
			notify(own, other, variant->means);
	}
	own->slept = switches() - before;
}

static void meet(void)
{
	pthread_barrier_wait(&barrier);
}

static unsigned long figure(const char *line, const char *name)
{
	const char *found = strstr(line, name);

	if (!found)
		fail("debugfs has no%sin: %s", name, line);
	return strtoul(found + strlen(name), NULL, 10);
}

/*
 * How often the driver woke the calling thread, by its own account: by the vector,
 * or, what came while the thread was on its way off the CPU, by an interrupt there.
 */
static unsigned long woken(void)
{
	FILE *file = fopen("/sys/kernel/debug/uintr/receivers", "r");
	unsigned long count = 0;
	bool found = false;
	char line[4096], own[32];

	if (!file)
		fail("/sys/kernel/debug/uintr/receivers: %s", strerror(errno));
	snprintf(own, sizeof(own), " thread %d ", gettid());
	while (fgets(line, sizeof(line), file)) {
		if (!strstr(line, own))
			continue;
		count = figure(line, " woken ") + figure(line, " late ");
		found = true;
	}
	fclose(file);
	if (!found)
		fail("debugfs has no receiver with%s", own);
	return count;
}

/* One block, on both sides. */
static void run(int number, const struct variant *variant)
{
	struct side *own = &sides[number], *other = &sides[!number];
	bool receives = number == 1 || variant->back, sends = number == 0 || variant->back;
	eventfd_t left;

	own->ready = own->seen = own->calls = own->slept = own->woken = 0;
	own->event = eventfd(0, variant->waiting == RUNS ? EFD_NONBLOCK : 0);
	if (own->event < 0)
		fail("eventfd: %s", strerror(errno));
	if (variant->means == SENDUIPI) {
		struct uintr_receive receive = { .handler = (uintptr_t)(number ? handle_1 : handle_0) };

		/* The vector is of no matter here; 63 catches shifts of 32 bits. */
		if (receives && ((own->receiver = ioctl(device, UINTR_RECEIVE, &receive)) < 0 ||
				 (own->vector = ioctl(own->receiver, UINTR_VECTOR, 63)) < 0))
			fail("UINTR_RECEIVE: %s", strerror(errno));
		meet();
		if (sends && (own->index = ioctl(other->vector, UINTR_CONNECT, 0)) < 0)
			fail("UINTR_CONNECT: %s", strerror(errno));
		if (receives)
			_stui();
	}
	meet();
	if (number)
		waiter(variant);
	else
		notifier(variant);
	meet();
	if (receives && own->seen != want.count)
		fail("round %u, %s: %lu seen of %u sent", current->round, variant->name, own->seen, want.count);
	if (variant->means == SENDUIPI) {
		if (sends && ioctl(device, UINTR_DISCONNECT, own->index))
			fail("UINTR_DISCONNECT: %s", strerror(errno));
		if (receives) {
			_clui();
			own->woken = woken();
			close(own->vector);
			close(own->receiver);
		}
	} else if (fcntl(own->event, F_SETFL, O_NONBLOCK) == 0 && eventfd_read(own->event, &left) == 0) {
		fail("round %u, %s: %lu more than was sent", current->round, variant->name, left);
	}
	close(own->event);
	if (number) {
		current->seen = own->seen;
		current->calls = own->calls;
		current->slept = own->slept;
		current->woken = own->woken;
	}
	meet();
}

static void bind_to(struct side *own)
{
	char path[64];
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(own->cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		fail("cannot be bound to CPU %d: %s", own->cpu, strerror(errno));
	snprintf(path, sizeof(path), "/proc/self/task/%d/status", gettid());
	own->status = open(path, O_RDONLY | O_CLOEXEC);
	if (own->status < 0)
		fail("%s: %s", path, strerror(errno));
}

static void *second(void *nothing)
{
	bind_to(&sides[1]);
	meet();
	for (;;) {
		meet();
		if (!current)
			return nothing;
		run(1, &variants[current->variant]);
	}
}

/* xorshift64, for the order of the variants */
static uint64_t lot(void)
{
	want.seed ^= want.seed << 13;
	want.seed ^= want.seed >> 7;
	want.seed ^= want.seed << 17;
	return want.seed;
}

static uint64_t number_of(const char *option, const char *text)
{
	char *end;
	unsigned long long value;

	if (!text)
		fail("%s needs a number", option);
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || *end || end == text || !value)
		fail("%s %s: not a number above 0", option, text);
	return value;
}

static size_t variant_of(const char *name)
{
	for (size_t i = 0; name && i < VARIANTS; i++)
		if (!strcmp(name, variants[i].name))
			return i;
	fprintf(stderr, "wakeups: --variant takes one of:");
	for (size_t i = 0; i < VARIANTS; i++)
		fprintf(stderr, " %s", variants[i].name);
	fprintf(stderr, "\n");
	exit(1);
}

int main(int argc, char **argv)
{
	size_t blocks;
	pthread_t thread;
	uint64_t start_ticks, start;

	for (int i = 1; i < argc; i += 2) {
		if (!strcmp(argv[i], "--rounds"))
			want.rounds = number_of(argv[i], argv[i + 1]);
		else if (!strcmp(argv[i], "--count"))
			want.count = number_of(argv[i], argv[i + 1]);
		else if (!strcmp(argv[i], "--seed"))
			want.seed = number_of(argv[i], argv[i + 1]);
		else if (!strcmp(argv[i], "--variant") && want.n_variants < VARIANTS)
			want.variants[want.n_variants++] = variant_of(argv[i + 1]);
		else
			fail("%s: usage: wakeups [--rounds N] [--count N] [--seed N] [--variant NAME]...", argv[i]);
	}
	if (!want.n_variants)
		for (; want.n_variants < VARIANTS; want.n_variants++)
			want.variants[want.n_variants] = want.n_variants;
	blocks = want.rounds * want.n_variants;
	struct block *all = calloc(blocks, sizeof(*all));
	if (!all)
		fail("no memory for %zu blocks", blocks);
	device = open(UINTR_DEVICE, O_RDWR | O_CLOEXEC);
	if (device < 0)
		fail(UINTR_DEVICE ": %s", strerror(errno));
	sides[0].cpu = 0;
	sides[1].cpu = 1;
	pthread_barrier_init(&barrier, NULL, 2);
	if (pthread_create(&thread, NULL, second, NULL))
		fail("no second thread");
	bind_to(&sides[0]);
	meet();
	start = nanoseconds();
	start_ticks = ticks();
	for (size_t b = 0; b < blocks; b++) {
		/* Each round takes all variants in a new order. */
		size_t place = b % want.n_variants, other = place + lot() % (want.n_variants - place);
		size_t variant = want.variants[other];

		want.variants[other] = want.variants[place];
		want.variants[place] = variant;
		all[b] = (struct block){ .variant = variant, .round = b / want.n_variants };
		all[b].ticks = malloc(want.count * sizeof(uint64_t));
		if (!all[b].ticks)
			fail("no memory for %u times", want.count);
		current = &all[b];
		meet();
		run(0, &variants[variant]);
	}
	current = NULL;
	meet();
	pthread_join(thread, NULL);
	printf("clock %lu ticks %lu ns\n", ticks() - start_ticks, nanoseconds() - start);
	for (size_t b = 0; b < blocks; b++) {
		struct block *block = &all[b];

		printf("block %u %s sent %lu seen %lu calls %lu slept %lu woken %lu ticks", block->round,
		       variants[block->variant].name, block->sent, block->seen, block->calls, block->slept, block->woken);
		for (unsigned int i = 0; i < want.count; i++)
			printf(" %lu", block->ticks[i]);
		printf("\n");
	}
	return 0;
}
