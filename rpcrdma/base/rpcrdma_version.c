/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpcrdma_version.c - the version of the library that a program runs with
 */
#include "rpcrdma_addr.h"

const char *rpcrdma_version(void)
{
	return LEAT_VERSION;
}
