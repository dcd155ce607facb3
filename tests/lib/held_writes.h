/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * held_writes.h - writes of a server in this process that wait in its workers until the test lets them go
 *
 * For block volumes and stripes with write=cached. The program is linked with -Wl,$(HELD_WRITES) (tests/build.mk).
 */
#ifndef HELD_WRITES_H
#define HELD_WRITES_H

#include <stdbool.h>

/** held_writes_begin - from now on writes wait */
void held_writes_begin(void);

/** held_writes - the number of writes that have waited since held_writes_begin() */
int held_writes(void);

/** held_writes_are - do at least *@n writes wait? For block_run_until() and stripe_run_until() */
bool held_writes_are(void *n);

/** held_writes_end - lets @n writes go: those that wait, or would wait yet; later ones do not wait */
void held_writes_end(int n);

/** held_writes_forget - none waits any more: those of held_writes_end() that did not come do not count for the next time */
void held_writes_forget(void);

/** held_writes_fail - from now on writes fail with @err, an errno; 0: they work again */
void held_writes_fail(int err);

#endif
