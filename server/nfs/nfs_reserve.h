/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs_reserve.h - RESERVE of the program of volumes
 */
#ifndef LEAT_SERVER_NFS_RESERVE_H
#define LEAT_SERVER_NFS_RESERVE_H

#include "prog.h"

#define NFS_RESERVE_BYTES 256u /* of r->scratch */

/** nfs_reserve_begin, nfs_reserve_open - begin() and open() of its row */
enum prog_begin nfs_reserve_begin(struct req *r);
void nfs_reserve_open(struct req *r);

#endif
