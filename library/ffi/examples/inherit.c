/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A parent starts a program (this one, as a child) that inherits a segment of bells. */
#include "check.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int child(void)
{
	doorbell_connection *connection;
	doorbell_bell *parents;

	check(doorbell_inherit(&connection));
	check(doorbell_connection_bell(connection, 0, DOORBELL_ADAPTIVE, &parents));
	for (int i = 0; i < 3; i++)
		doorbell_bell_ring(parents);
	doorbell_bell_free(parents);
	doorbell_connection_free(connection);
	return 0;
}

int main(int argc, char **argv)
{
	doorbell_segment *segment;
	doorbell_pending *pending;
	doorbell_connection *connection;
	doorbell_bell *bell;
	uint32_t rings, all = 0;
	int status;

	if (argc == 2 && strcmp(argv[1], "child") == 0)
		return child();
	check(doorbell_segment_new(NULL, &segment));
	check(doorbell_segment_bell(segment, 0, DOORBELL_ADAPTIVE, &bell));
	check(doorbell_pending_new(&pending));

	pid_t pid = fork();
	if (pid < 0) {
		perror("fork");
		return 1;
	}
	if (pid == 0) {
		check(doorbell_pending_in_child(pending));
		execl(argv[0], argv[0], "child", (char *)NULL);
		perror("execl");
		_exit(1);
	}
	check(doorbell_pending_meet(pending, segment, (uint32_t)pid, &connection));
	doorbell_pending_free(pending);

	doorbell_status heard;
	while ((heard = doorbell_bell_wait(bell, &rings)) == DOORBELL_OK)
		all += rings;
	if (heard != DOORBELL_PEER_GONE)
		check(heard);
	printf("process %u rang %u times and left\n", doorbell_last_error()->peer_process, all);

	waitpid(pid, &status, 0);
	doorbell_connection_free(connection);
	doorbell_bell_free(bell);
	doorbell_segment_free(segment);
	return all == 3 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
