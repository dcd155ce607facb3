/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * hostile.h - a server that answers as a script says, over TCP and over the local fabric
 *
 * It knows enough of NFS and MOUNT to have a right answer to every call; the script says what is
 * wrong with it. For each call that is heard, one step is taken:
 *
 *   0                the right answer
 *   1 at w w w w     ... with its word `at` replaced; over RDMA the transport header counts, too
 *   2 n bytes        accepted, and these n words of results
 *   3 n bytes        these n words as the whole message, behind its XID
 *   4                no answer, and the end of the connection
 *   5 n              the right answer, cut after n words
 *   6 n bytes        n words that need not be a record (TCP), then the end of the connection
 *   7                a stranger's answer, then the right one
 *   8 n              the right answer the long way: in fragments of n + 1 words (TCP), in the Reply
 *                    chunk if there is one (RDMA)
 *
 * In words from the script, f1d0f1d0 stands for the call's XID.
 *
 * When the script is over, every call fails with SYSTEM_ERR. A message that may not be a reply is
 * followed by that error, so that the client does not wait for ever.
 */
#ifndef TESTS_FUZZ_HOSTILE_H
#define TESTS_FUZZ_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/wire.h"

/** hostile_init - once; @path: of the local fabric's socket */
void hostile_init(const char *path);

/** hostile_port - where it listens on 127.0.0.1 */
unsigned hostile_port(void);

/** hostile_start, hostile_stop - serve by this script, in a thread of its own */
void hostile_start(const uint8_t *script, size_t len);
void hostile_stop(void);

/** hostile_fini - at exit */
void hostile_fini(void);

/* What is asked. */
struct hostile_call {
	uint32_t prog, proc;
	const uint8_t *args;
	size_t args_len;
	uint32_t room; /* for a payload */
};

/** hostile_results - the right answer
 * @ret_data: the payload whose length ends the results; NULL without a payload
 */
void hostile_results(struct wire_put *w, const struct hostile_call *c, const char **ret_data);

/* Is the export a striped volume? Set before hostile_start() */
extern bool hostile_is_volume;

/** hostile_put_volume, hostile_put_stripes - the right answers of its manager, and of its stripe servers */
void hostile_put_volume(struct wire_put *w, const struct hostile_call *c);
void hostile_put_stripes(struct wire_put *w, const struct hostile_call *c, const char **ret_data);

#endif
