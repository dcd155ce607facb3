/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_names.h - names of NFS, MOUNT, ctl and block constants, for messages
 */
#ifndef LEAT_NFS3_NAMES_H
#define LEAT_NFS3_NAMES_H

#include <stdint.h>

/* Static strings, never NULL: "?" for a number without a name. */

/** nfs3_prog_name - "NFS", "NFSACL", "SPACE", "MOUNT", "CTL", "BLOCK" */
const char *nfs3_prog_name(uint32_t prog);

/** nfs3_proc_name - "READ", ... for the procedures of @prog that this project uses */
const char *nfs3_proc_name(uint32_t prog, uint32_t proc);

/** nfs3_stat_name - "NFS3ERR_NOENT", ...; MOUNT uses the same numbers */
const char *nfs3_stat_name(uint32_t status);

#endif
