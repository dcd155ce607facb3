/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fork.h - what a child of fork() closes of its parent's descriptors (engine_fork.c)
 */
#ifndef RR_FORK_H
#define RR_FORK_H

/** rr_fork_close - in a child: closes its copies of what the epoll descriptor @epfd of the parent watches: sockets, and
 * event channels of the RDMA connection manager
 * @mark: epoll_event.data of one of its entries, that no other epoll descriptor has; if it has no such entry, @epfd
 * is now something of the child's own, and nothing is closed
 */
void rr_fork_close(int epfd, const void *mark);

#endif
