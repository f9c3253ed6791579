// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What uintr.h promises, whatever user interrupts are made of. Each case is a process of its own. Prints TAP.
 *   conformance hardware|signals [--as USER-ID] [--times N] [--only TEXT]
 * --times: how often each sender of a storm sends [4000]; --only: the cases whose names hold that
 */
#include "shared.h"
#include <sys/uio.h>

static const struct item *const themes[] = { starts, handlers, waits, vectors, ends, polls, timers, eventfds, storms };

/* What the program is executed as by one of its own cases: it lives until it is killed. */
__attribute__((noreturn)) static void after_exec(void)
{
	alarm(LOST_AFTER);
	for (;;)
		pause();
}

static int handled_by(pid_t child)
{
	int number = -1;
	struct iovec here = { &number, sizeof(number) }, there = { (void *)&handled, sizeof(handled) };

	CHECK(process_vm_readv(child, &here, 1, &there, 1, 0) == sizeof(number) || errno == ESRCH);
	return number;
}

/*
 * One that is lost stands still; on a machine that others keep busy a case may take long, and goes on. Looked at from outside: a
 * signal would help a sleeper up.
 */
static int ends_or_stands_still(pid_t child)
{
	int status, before = 0, number;
	pid_t ended = 0;

	for (;; before = number) {
		for (int i = 0; i < LOST_AFTER * 100 && !(ended = waitpid(child, &status, WNOHANG)); i++)
			usleep(10000);
		if (ended)
			break;
		number = handled_by(child);
		if (number == before) {
			printf("# nothing was handled for %d s\n", LOST_AFTER);
			kill(child, SIGKILL);
		}
	}
	CHECK(ended == child);
	return status;
}

static bool passes(const struct item *item, int number)
{
	pid_t child = fork();
	bool good, skipped;
	int status;

	if (!child) {
		item->run();
		exit(0);
	}
	status = ends_or_stands_still(child);
	skipped = WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED;
	good = skipped || (item->signal ? WIFSIGNALED(status) && WTERMSIG(status) == item->signal : status == 0);
	if (!good)
		printf("# it ended with status %#x\n", status);
	printf("%s %d - %s%s\n", good ? "ok" : "not ok", number, item->name, skipped ? " # SKIP" : "");
	return good;
}

int main(int argc, char **argv)
{
	const char *only = "";
	int wrong = 0, n = 0;
	uid_t user = geteuid();

	setlinebuf(stdout);
	if (argc == 2 && !strcmp(argv[1], "--after-exec"))
		after_exec();
	if (argc > 1)
		backend = !strcmp(argv[1], "hardware") ? UINTR_HARDWARE : !strcmp(argv[1], "signals") ? UINTR_SIGNALS : 0;
	for (int i = 2; backend && i < argc; i += 2) {
		if (i + 1 < argc && !strcmp(argv[i], "--as"))
			user = atoi(argv[i + 1]);
		else if (i + 1 < argc && !strcmp(argv[i], "--times"))
			times = atoi(argv[i + 1]);
		else if (i + 1 < argc && !strcmp(argv[i], "--only"))
			only = argv[i + 1];
		else
			backend = 0;
	}
	if (!backend) {
		fprintf(stderr, "usage: conformance hardware|signals [--as USER-ID] [--times N] [--only TEXT]\n");
		return 2;
	}
	CHECK(!setresgid(user, user, user) && !setresuid(user, user, user) && !prctl(PR_SET_DUMPABLE, 1));
	for (size_t theme = 0; theme < sizeof(themes) / sizeof(*themes); theme++)
		for (const struct item *item = themes[theme]; item->name; item++)
			if (strstr(item->name, only))
				wrong += !passes(item, ++n);
	printf("1..%d\n", n);
	return wrong || !n;
}
