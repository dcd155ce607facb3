/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * toy_block.h - a block program, which serves the file that the first export names
 */
#ifndef TOY_BLOCK_H
#define TOY_BLOCK_H

#include <stdatomic.h>
#include <stdint.h>

#include "rpcrdma_payload.h"

#define TOY_PROGRAM 0x20000b10u
#define TOY_VERSION 1u
#define TOY_IO_MAX (1u << 20)

enum toy_proc { TOY_NULL, TOY_READ, TOY_WRITE, TOY_SYNC, TOY_PROCS };
enum toy_status { TOY_OK = 700, TOY_BAD_RANGE, TOY_DISK_FAILED, TOY_TRY_LATER };

struct toy_msg { /* arguments and results */
	uint64_t off; /* results of WRITE: its number among those that were executed */
	uint32_t bytes, stable, status;
	struct rpcrdma_payload data; /* of WRITE's arguments and READ's results, of @bytes */
};

bool_t toy_xdr(XDR *x, struct toy_msg *m);
bool_t toy_xdr_data(XDR *x, struct toy_msg *m);

extern const struct service toy_service; /* for server_start_services() */
extern atomic_bool toy_hold; /* the request that opens the file waits while this is set */

#endif
