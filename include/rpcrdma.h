/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpcrdma.h - ONC RPC over RDMA (RFC 8166), over the same-host fabric, and over TCP (RFC 5531)
 *
 * Objects, from the outside in:
 *   domain   one per process: devices, pinned memory, the pool of data buffers
 *   engine   one thread's event loop: completion queue, sockets, timers, inbox
 *   clnt     a requester's connection to one server; it survives reconnects
 *   listener, conn, req   objects of a responder
 *
 * The parts, in reading order:
 *   rpcrdma_addr.h     addresses, version
 *   rpcrdma_loop.h     domain, engine, messages, watches, timers, counters
 *   rpcrdma_mem.h      registered memory, data buffers
 *   rpcrdma_payload.h  how a codec marks the bulk item of a message
 *   rpcrdma_clnt.h     client, calls
 *   rpcrdma_svc.h      listener, connection, request
 *   rpcrdma_prog.h     a service as tables of procedures
 * rpcrdma_lab.h, for measurements and tests, is not included. rpcrdma(7) has a picture of the objects.
 *
 * Threads:  A domain may be used by several threads. An engine and all objects on it belong to
 *           one thread at a time. Other threads may call rpcrdma_engine_post(), rpcrdma_engine_enter() and after
 *           it what it permits, rpcrdma_task_finish(), rpcrdma_task_is_lost(), and what the headers mark "any
 *           thread". Callbacks run inside functions that run the engine (rpcrdma_engine_poll(), _wait(),
 *           rpcrdma_clnt_call_wait(), rpcrdma_service_destroy()) on the owning thread, and inside
 *           rpcrdma_engine_linger() and _leave() on the thread that entered. They never run inside the call
 *           that started an operation.
 * Memory:   Memory passed by a caller stays the caller's and must stay valid until the callback
 *           that ends the operation. Strings and attributes are copied.
 * Errors:   0 or -errno; outputs (ret_*, *ret) are written on success only.
 * Growth:   Structures of attributes begin with their size. 0 stands for the size in the first release of the library:
 *           members added since are not read. So set it, if you set newer members. A structure that is larger than the
 *           library's own is accepted if the rest is zero, else refused with -E2BIG.
 */
#ifndef RPCRDMA_H
#define RPCRDMA_H

#include "rpcrdma_addr.h"
#include "rpcrdma_loop.h"
#include "rpcrdma_mem.h"
#include "rpcrdma_payload.h"
#include "rpcrdma_clnt.h"
#include "rpcrdma_svc.h"
#include "rpcrdma_prog.h"

#endif
