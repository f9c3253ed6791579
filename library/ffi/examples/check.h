/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the examples do when a call fails: say why and end. */
#ifndef CHECK_H
#define CHECK_H

#include <doorbell.h>

#include <stdio.h>
#include <stdlib.h>

static inline void check(doorbell_status status)
{
	if (status == DOORBELL_OK)
		return;
	if (status == DOORBELL_TIMED_OUT)
		fprintf(stderr, "nothing came in time\n");
	else
		fprintf(stderr, "%s: %s\n", doorbell_status_text((int32_t)status),
			doorbell_last_error()->message);
	exit(1);
}

#endif
