/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_mount.h - one server and one mount, for tests of mounting
 */
#ifndef TEST_LEAT_MOUNT_H
#define TEST_LEAT_MOUNT_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "leat_admin.h"
#include "leat_count.h"
#include "leat_flow.h"
#include "raw_server.h"

static struct leat_flow flow;

static inline int setup(void **state)
{
	(void)state;
	leat_flow_create(&flow);
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	leat_flow_destroy(&flow);
	return 0;
}

#endif
