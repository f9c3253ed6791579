// SPDX-License-Identifier: MIT OR Apache-2.0
/* What is used again, or no more. */
#include "shared.h"

/*
 * In a process that can have no descriptor more, a vector is made and taken back again; its number may have become another's
 * meanwhile.
 */
static void fails_to_make_a_vector(void)
{
	pid_t child;

	receives();
	child = fork();
	if (!child) {
		CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
		CHECK(!setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, 0 }));
		for (;;) {
			long result = call(receiver, UINTR_VECTOR, 7);

			CHECK(result == -EMFILE || result == -EBUSY);
		}
	}
	for (int i = 0; i < 5000; i++) {
		long file;

		goes_on();
		call(receiver, UINTR_REVOKE, 7);
		file = call(receiver, UINTR_VECTOR, 7);
		if (file < 0)
			continue;
		for (int tries = 0; tries < 3; tries++)
			CHECK(call(receiver, UINTR_VECTOR, 7) == -EBUSY);
		close(file);
	}
	CHECK(!kill(child, SIGKILL));
	CHECK(killed_by(status_of(child), SIGKILL));
}

static volatile bool foreign;

__attribute__((interrupt, target("general-regs-only")))
static void handler_of_1(struct __uintr_frame *frame, unsigned long long vector)
{
	(void)frame;
	foreign |= vector != 1;
}

__attribute__((interrupt, target("general-regs-only")))
static void handler_of_2(struct __uintr_frame *frame, unsigned long long vector)
{
	(void)frame;
	foreign |= vector != 2;
}

static volatile int vector_of[3];

/* Receives one vector for ever, and never another. */
static void *receives_one(void *number)
{
	long own = (long)number;
	struct uintr_receive args = { .handler = (uintptr_t)(own == 1 ? handler_of_1 : handler_of_2) };
	int file = call(device, UINTR_RECEIVE, (uintptr_t)&args);

	CHECK(file >= 0);
	vector_of[own] = call(file, UINTR_VECTOR, own);
	CHECK(vector_of[own] >= 0);
	for (;;) {
		_clui();
		CHECK(wait_until(file, -1) == 0);
		_stui();
	}
	return NULL;
}

/* The 4 bytes of SENDUIPI RAX. */
static void goes_on_behind_it(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 4;
}

static void *sends_index_0(void *nothing)
{
	for (;;)
		asm volatile("senduipi %%rax" : : "a" (0l) : "memory");
	return nothing;
}

/* One entry names this and that receiver in turn while it is sent through: no send takes a half of either. */
static void uses_an_entry_again(void)
{
	sigaction(SIGSEGV, &(struct sigaction){ .sa_sigaction = goes_on_behind_it, .sa_flags = SA_SIGINFO }, NULL);
	on_thread(receives_one, (void *)1);
	on_thread(receives_one, (void *)2);
	while (!vector_of[1] || !vector_of[2])
		usleep(1000);
	CHECK(call(vector_of[1], UINTR_CONNECT, 0) == 0);
	on_thread(sends_index_0, NULL);
	on_thread(sends_index_0, NULL);
	for (int i = 0; i < 3000; i++) {
		goes_on();
		CHECK(call(device, UINTR_DISCONNECT, 0) == 0);
		CHECK(call(vector_of[i % 2 ? 1 : 2], UINTR_CONNECT, 0) == 0);
		for (volatile int spins = i % 100; spins; spins--)
			;
	}
	CHECK(!foreign);
}

/* What was sent before is heard at the latest where it opens UIF; behind that there is nothing more. */
static void is_revoked_in_traffic(void)
{
	sigaction(SIGSEGV, &(struct sigaction){ .sa_sigaction = goes_on_behind_it, .sa_flags = SA_SIGINFO }, NULL);
	receives();
	CHECK(call(device, UINTR_DISCONNECT, 0) == 0);
	on_thread(sends_index_0, NULL);
	on_thread(sends_index_0, NULL);
	for (int i = 0; i < 300; i++) {
		int file = call(receiver, UINTR_VECTOR, 6), before = handled;

		goes_on();
		CHECK(call(file, UINTR_CONNECT, 0) == 0);
		await(before + 1);
		if (i % 2)
			close(file);
		else
			CHECK(call(receiver, UINTR_REVOKE, 6) == 0);
		_clui();
		while (wait_until(receiver, 0) == 0) {
			_stui();
			_clui();
		}
		before = handled;
		_stui();
		for (volatile int spins = 1000; spins; spins--)
			;
		CHECK(wait_until(receiver, 0) == -ETIMEDOUT && handled == before);
		if (!(i % 2))
			close(file);
		CHECK(call(device, UINTR_DISCONNECT, 0) == 0);
	}
}

/* From a page that cannot be read: a driver that does SENDUIPI itself gives up, and the CPU does not mind. */
static void sends_from_an_unreadable_page(void)
{
	static const unsigned char code[] = { 0xf3, 0x0f, 0xc7, 0xf0, 0xc3 };
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t child;

	CHECK(page != MAP_FAILED);
	memcpy(page, code, sizeof(code));
	/* By a protection key, where the CPU has them; else it stays readable. */
	CHECK(!mprotect(page, 4096, PROT_EXEC));
	receives();
	child = fork();
	if (!child) {
		CHECK(call(vector, UINTR_CONNECT, 0) == 0);
		asm volatile("call *%0" : : "r" (page), "a" (0l) : "memory", "cc");
		_exit(0);
	}
	status = status_of(child);
	if (killed_by(status, SIGILL)) {
		CHECK(line_of("/sys/module/uintr", "parameters/count_sends", "Y") == 0);
		return;
	}
	CHECK(status == 0);
	await(1);
}

const struct life again[] = {
	{ .name = "a vector that cannot be made revokes no other", .run = fails_to_make_a_vector },
	{ .name = "an entry that is used again sends nobody another's vector", .run = uses_an_entry_again },
	{ .name = "behind a revocation nothing comes", .run = is_revoked_in_traffic },
	{ .name = "SENDUIPI on a page that cannot be read", .run = sends_from_an_unreadable_page },
	{ 0 },
};
