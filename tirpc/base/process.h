/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * process.h - what the handles of a process share
 */
#ifndef RT_PROCESS_H
#define RT_PROCESS_H

#include <stddef.h>

#include "rpcrdma_loop.h"

#define RT_MEM_BYTES ((size_t)64 << 20) /* default of the memory for messages */

/** rt_domain - returns the domain of this process, which the first call creates; any thread
 * @mem_bytes: limit of its memory for messages of served connections, if this call creates it; 0: RT_MEM_BYTES
 *
 * Return: 0, or the errors of rpcrdma_domain_create().
 */
int rt_domain(size_t mem_bytes, struct rpcrdma_domain **ret);

/** rt_forks - returns a number that differs in a child of fork(), from the first rt_domain() of the process on; any thread */
unsigned rt_forks(void);

#endif
