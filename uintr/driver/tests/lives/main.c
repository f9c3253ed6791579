// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What the driver promises, case by case. Each case is a process of its own, after
 * which the driver must hold nothing. Prints TAP; anybody may run it where the
 * driver is loaded. --only: the cases whose names hold that text.
 */
#include "shared.h"

static const struct life *const themes[] = { ends, children, vectors, sleeps, signals, stops, again, stack,
	polls, polled_rings, polled_ends, polled_loops, polled_floods };
#define THEMES	((int)(sizeof(themes) / sizeof(*themes)))

/* The driver's count of who uses it. */
static int users(void)
{
	char text[32] = "";
	int file = open("/sys/module/uintr/refcnt", O_RDONLY);

	CHECK(file >= 0 && read(file, text, sizeof(text) - 1) > 0);
	close(file);
	return atoi(text);
}

/* Whether it was kept, and nothing is left of it. */
static bool keeps(const struct life *life, int number)
{
	bool good, skipped;
	int status, left;
	pid_t child = fork();
	int64_t end;

	if (!child) {
		alarm(life->alarms ? 0 : LOST_AFTER);
		device = open(UINTR_DEVICE, O_RDWR | O_CLOEXEC);
		CHECK(device >= 0);
		life->run();
		exit(0);
	}
	status = status_of(child);
	skipped = WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED;
	good = skipped || (life->signal ? killed_by(status, life->signal) : status == 0);
	/* The last reference may be given back some time after its parent knows of a thread's end. */
	end = now() + LOST_AFTER * 1000000000ll;
	while ((left = users()) && now() < end)
		usleep(1000);
	if (!good)
		printf("# it ended with status %#x\n", status);
	if (left)
		printf("# %d references are left\n", left);
	good = good && !left;
	printf("%s %d - %s%s\n", good ? "ok" : "not ok", number, life->name, skipped ? " # SKIP" : "");
	return good;
}

int main(int argc, char **argv)
{
	const char *only = "";
	int wrong = 0, n = 0;

	setlinebuf(stdout);
	if (argc > 1 && !strcmp(argv[1], "--nothing"))
		return 0;
	if (argc == 2 && !strcmp(argv[1], "--leave-uif-open")) {
		cpu_set_t one;

		for (int cpu = 0; cpu < sysconf(_SC_NPROCESSORS_CONF); cpu++) {
			CPU_ZERO(&one);
			CPU_SET(cpu, &one);
			/* A CPU may be off-line. */
			if (!sched_setaffinity(0, sizeof(one), &one))
				_stui();
		}
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "--take-core"))
		return takes_core(argv[2]);
	if (argc == 4 && !strcmp(argv[1], "--after-exec")) {
		after_exec(argv + 2);
		return 0;
	}
	if (argc > 2 && !strcmp(argv[1], "--as")) {
		uid_t user = atoi(argv[2]);

		CHECK(!setresgid(user, user, user) && !setresuid(user, user, user));
		argc -= 2, argv += 2;
	}
	if (argc == 3 && !strcmp(argv[1], "--only")) {
		only = argv[2];
	} else if (argc > 1) {
		fprintf(stderr, "usage: lives [--as USER-ID] [--only TEXT] | --leave-uif-open\n");
		return 2;
	}
	for (int theme = 0; theme < THEMES; theme++)
		for (const struct life *life = themes[theme]; life->name; life++)
			if (strstr(life->name, only))
				wrong += !keeps(life, ++n);
	printf("1..%d\n", n);
	return wrong || !n;
}
