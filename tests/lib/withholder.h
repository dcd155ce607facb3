/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * withholder.h - clients that have made calls, and do not move the data of these calls
 *
 * Over the local fabric the server cannot reach the memory of such a client, which copies the data itself, and waits with
 * all but the first unit. Over TCP a client receives no data.
 * One at a time. Include it behind <cmocka.h>.
 */
#ifndef WITHHOLDER_H
#define WITHHOLDER_H

#include <stddef.h>
#include <stdint.h>

#include <rpc/xdr.h>

#include "rpcrdma.h"

#define WITHHOLDER_UNIT ((size_t)16 << 10) /* data options of the server: */
#define WITHHOLDER_UNITS "overlap=streams,streams=1,grain=16K"

/** withholder_local - makes an engine for clients that withhold @bytes from @from on, except for the first unit */
struct rpcrdma_engine *withholder_local(const uint8_t *from, size_t bytes);

/** withholder_run - runs that engine from now on, on another thread */
void withholder_run(void);

/** withholder_dial - connects to @port of 127.0.0.1, and will receive nothing */
void withholder_dial(uint16_t port);

/** withholder_send - sends a call by that connection */
void withholder_send(uint32_t prog, uint32_t vers, uint32_t proc, xdrproc_t encode, void *args);

/** withholder_let_go - moves the data after all, and ends the thread of the engine */
void withholder_let_go(void);

/** withholder_end - closes engine or connection; clients of the engine are closed */
void withholder_end(void);

#endif
