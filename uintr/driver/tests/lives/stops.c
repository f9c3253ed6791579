// SPDX-License-Identifier: MIT OR Apache-2.0
/* Stopped, traced, frozen, and dumped. */
#include "shared.h"

static void is_stopped(void)
{
	volatile int *heard = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	CHECK(heard != MAP_FAILED);
	receives();
	child = fork();
	if (!child) {
		pid_t parent = getppid();

		CHECK(call(vector, UINTR_CONNECT, 0) == 0);
		for (int i = 0; i < 50; i++) {
			CHECK(!kill(parent, SIGSTOP));
			await_state(parent, 'T');
			_senduipi(0);
			CHECK(!kill(parent, SIGCONT));
			while (*heard != i + 1)
				usleep(100);
		}
		_exit(0);
	}
	while (handled < 50)
		*heard = handled;
	*heard = 50;
	CHECK(status_of(child) == 0);
	send_to_itself();
}

static void is_traced(void)
{
	pid_t tracee;
	int status;

	tracee = fork();
	if (!tracee) {
		CHECK(!ptrace(PTRACE_TRACEME, 0, 0, 0));
		raise(SIGSTOP);
		receives();
		for (int i = 0; i < 200; i++)
			send_to_itself();
		_exit(handled == 200 ? 0 : 1);
	}
	CHECK(waitpid(tracee, &status, 0) == tracee && WIFSTOPPED(status));
	/* System call by system call, then some thousand instructions one by one, then free. */
	for (int i = 0; i < 20; i++) {
		CHECK(!ptrace(PTRACE_SYSCALL, tracee, 0, 0));
		CHECK(waitpid(tracee, &status, 0) == tracee);
		if (!WIFSTOPPED(status))
			break;
	}
	for (int i = 0; WIFSTOPPED(status) && i < 3000; i++) {
		CHECK(!ptrace(PTRACE_SINGLESTEP, tracee, 0, 0));
		CHECK(waitpid(tracee, &status, 0) == tracee);
	}
	if (WIFSTOPPED(status)) {
		CHECK(!ptrace(PTRACE_DETACH, tracee, 0, 0));
		CHECK(waitpid(tracee, &status, 0) == tracee);
	}
	CHECK(status == 0);
}

/* By its cgroup, asleep: a request does not wake it, again and again, until it is thawed. */
static void is_frozen(void)
{
	const char *group = "/sys/fs/cgroup/lives";
	char process[64], id[16];
	long switches;
	pid_t child;

	if (geteuid())
		skip("only root may freeze");
	if (access("/sys/fs/cgroup/cgroup.procs", F_OK))
		skip("there are no cgroups, or version 1's");
	CHECK(!pipe(pipe_ends));
	CHECK(!mkdir(group, 0755) || errno == EEXIST);
	receives();
	child = fork();
	if (!child) {
		CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
		close(receiver);
		vector = 0;
		receives();
		CHECK(write(pipe_ends[1], &vector, sizeof(vector)) == sizeof(vector));
		while (!handled)
			poll(NULL, 0, 100);
		_exit(0);
	}
	CHECK(read(pipe_ends[0], &vector, sizeof(vector)) == sizeof(vector));
	vector = syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, child, 0), vector, 0);
	CHECK(vector >= 0);
	CHECK(call(vector, UINTR_CONNECT, 0) == 1);
	await_state(child, 'S');
	snprintf(id, sizeof(id), "%d", child);
	put(group, "cgroup.procs", id);
	put(group, "cgroup.freeze", "1");
	while (!line_of(group, "cgroup.events", "frozen "))
		usleep(1000);
	snprintf(process, sizeof(process), "/proc/%d", child);
	switches = line_of(process, "status", "voluntary_ctxt_switches:");
	_senduipi(1);
	for (int i = 0; i < 200; i++)
		usleep(1000);
	CHECK(line_of(process, "status", "voluntary_ctxt_switches:") - switches < 50);
	put(group, "cgroup.freeze", "0");
	CHECK(status_of(child) == 0);
	CHECK(!rmdir(group));
}

/* What the dump goes to, a program of the kernel's choosing: it reads slowly, so that the dump sleeps, and says whether all of it came. */
int takes_core(const char *report)
{
	const size_t most = 64 << 20;
	char *core = malloc(most);
	size_t length = 0, whole = 0;
	const Elf64_Ehdr *head = (void *)core;
	const Elf64_Phdr *part = (void *)(core + sizeof(*head));
	ssize_t more;
	char done[128];
	int file;

	while ((more = read(0, core + length, most - length < 4096 ? most - length : 4096)) > 0) {
		length += more;
		if (length % (1 << 20) < 4096)
			usleep(1000);
	}
	for (int i = 0; length > sizeof(*head) && i < head->e_phnum; i++)
		if (part[i].p_offset + part[i].p_filesz > whole)
			whole = part[i].p_offset + part[i].p_filesz;
	snprintf(done, sizeof(done), "%s.part", report);
	file = open(done, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	dprintf(file, "%zu %zu\n", length, whole);
	close(file);
	return rename(done, report);
}

/* Into a pipe, while it is sent to all the time: the core is whole. */
static void dumps_core(void)
{
	const char *report = "/tmp/lives.core", *setting = "/proc/sys/kernel/core_pattern";
	char self[256] = "", pattern[512], before[128] = "";
	size_t length = 0, whole = 0;
	pid_t child;
	FILE *file;
	int old;

	if (geteuid())
		skip("only root may say where cores go");
	if (access(setting, F_OK))
		skip("this kernel dumps no cores");
	CHECK(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	snprintf(pattern, sizeof(pattern), "|%s --take-core %s", self, report);
	/* So long the kernel lets it be. */
	CHECK(strlen(pattern) < 127);
	old = open(setting, O_RDONLY);
	CHECK(old >= 0 && read(old, before, sizeof(before) - 1) > 0);
	close(old);
	unlink(report);
	CHECK(!pipe(pipe_ends));
	receives();
	child = fork();
	if (!child) {
		char *filled = malloc(8 << 20);

		CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
		CHECK(!setrlimit(RLIMIT_CORE, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }));
		memset(filled, 1, 8 << 20);
		close(receiver);
		receives();
		CHECK(write(pipe_ends[1], &vector, sizeof(vector)) == sizeof(vector));
		await(1);
		abort();
	}
	CHECK(read(pipe_ends[0], &vector, sizeof(vector)) == sizeof(vector));
	vector = syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, child, 0), vector, 0);
	CHECK(vector >= 0);
	CHECK(call(vector, UINTR_CONNECT, 0) == 1);
	put("/proc/sys/kernel", "core_pattern", pattern);
	while (access(report, F_OK)) {
		_senduipi(1);
		usleep(100);
	}
	put("/proc/sys/kernel", "core_pattern", before);
	CHECK(status_of(child) == (SIGABRT | 0x80));
	file = fopen(report, "r");
	CHECK(file && fscanf(file, "%zu %zu", &length, &whole) == 2);
	printf("# %zu of %zu bytes\n", length, whole);
	CHECK(whole > (8 << 20) && length >= whole);
	fclose(file);
	unlink(report);
}

const struct life stops[] = {
	{ .name = "who is frozen sleeps on", .run = is_frozen },
	{ .name = "a core is dumped to its end", .run = dumps_core },
	{ .name = "SIGSTOP and SIGCONT", .run = is_stopped },
	{ .name = "ptrace, by system calls and single steps", .run = is_traced },
	{ 0 },
};
