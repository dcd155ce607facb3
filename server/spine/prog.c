/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * prog.c - the programs that leatd serves
 *
 * Operation: A table of program tables. NFS, NFSACL and MOUNT use the same port, so a client needs no rpcbind.
 *            The ctl program identifies the server on every connection.
 * Memory:    Constant.
 * Threads:   Any.
 * Errors:    RFC 5531 section 9 has a status for each reason why a procedure is not found.
 */
#include "prog.h"

#include "base/util.h"

static const struct prog *const programs[] = { &prog_nfs3, &prog_nfsacl, &prog_mount3,
					     &prog_ctl };

bool_t prog_xdr_void(XDR *xdrs, void *nothing)
{
	(void)xdrs;
	(void)nothing;
	return TRUE;
}

enum prog_found prog_find(uint32_t prog, uint32_t vers, uint32_t proc, const struct prog **ret_prog,
			  const struct prog_proc **ret_proc, uint32_t *ret_low, uint32_t *ret_high)
{
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		const struct prog *p = programs[i];

		if (p->number != prog)
			continue;
		if (p->vers != vers) {
			*ret_low = *ret_high = p->vers;
			return PROG_NO_VERS;
		}
		if (proc >= p->nprocs || !p->procs[proc].name)
			return PROG_NO_PROC;
		*ret_prog = p;
		*ret_proc = &p->procs[proc];
		return PROG_FOUND;
	}
	return PROG_NO_PROG;
}
