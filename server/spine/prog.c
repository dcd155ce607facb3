/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * prog.c - finds the program and the procedure of a call
 *
 * Operation: A service is a table of program tables. All its programs use the same port, so a client needs no rpcbind.
 * Memory:    Constant.
 * Threads:   Any.
 * Errors:    RFC 5531 section 9 has a status for each reason why a procedure is not found.
 */
#include "prog.h"

#include "base/util.h"

bool_t prog_xdr_void(XDR *xdrs, void *nothing)
{
	(void)xdrs;
	(void)nothing;
	return TRUE;
}

enum prog_found prog_find(const struct service *s, uint32_t prog, uint32_t vers, uint32_t proc,
			  const struct prog **ret_prog, const struct prog_proc **ret_proc, uint32_t *ret_low,
			  uint32_t *ret_high)
{
	for (const struct prog *const *v = s->progs; *v; v++) {
		const struct prog *p = *v;

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

size_t prog_call_bytes(const struct service *s)
{
	size_t most = 0;

	for (const struct prog *const *v = s->progs; *v; v++)
		most = MAX(most, (*v)->call_bytes);
	return most;
}
