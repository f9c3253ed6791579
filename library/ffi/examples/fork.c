/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A parent and the child it forks ring for each other; what they say lies in memory they share. */
#include "check.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 1000 };

int main(void)
{
	doorbell_bell *to_child, *to_parent, *childs_own, *parents_own;
	int status;
	char *said = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (said == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	check(doorbell_bell_new_for_children(DOORBELL_ADAPTIVE, 1, &to_child));
	check(doorbell_bell_new_for_children(DOORBELL_ADAPTIVE, 1, &to_parent));
	/* Each side waits with a handle of its own, made before the fork. */
	check(doorbell_bell_clone(to_child, DOORBELL_ADAPTIVE, &childs_own));
	check(doorbell_bell_clone(to_parent, DOORBELL_ADAPTIVE, &parents_own));

	pid_t child = fork();
	if (child < 0) {
		perror("fork");
		return 1;
	}
	if (child == 0) {
		for (int round = 0; round < ROUNDS; round++) {
			check(doorbell_bell_wait(childs_own, NULL));
			said[0]++;
			doorbell_bell_ring(to_parent);
		}
		_exit(0);
	}
	for (int round = 0; round < ROUNDS; round++) {
		doorbell_bell_ring(to_child);
		check(doorbell_bell_wait_deadline(parents_own, doorbell_after(60000000000), NULL));
		if (said[0] != (char)(round + 1)) {
			fprintf(stderr, "round %d: the child said %d\n", round, said[0]);
			return 1;
		}
	}
	waitpid(child, &status, 0);
	printf("%d rounds\n", ROUNDS);

	doorbell_bell_free(parents_own);
	doorbell_bell_free(childs_own);
	doorbell_bell_free(to_parent);
	doorbell_bell_free(to_child);
	munmap(said, 4096);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
