/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * prog.h - the programs that leatd serves, as tables
 */
#ifndef LEAT_SERVER_PROG_H
#define LEAT_SERVER_PROG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rpc/types.h>
#include <rpc/xdr.h>

#include "place.h"

struct req;

/* The description of a procedure. req.c runs it:
 *
 *   decode arguments -> [pull payload] -> [duplicate?] -> [file and permission] -> [move payload]
 *       -> [quick, or work] -> finish -> reply
 */
struct prog_proc {
	const char *name;
	xdrproc_t decode, encode;
	size_t args_bytes, res_bytes;  /* of struct req's unions: the part that is zeroed */
	size_t scratch_bytes;	       /* of r->scratch, allocated before preset(): for long arguments */
	size_t (*room)(const struct req *r); /* bytes at r->room for long results, allocated before work(): a pool
					      * buffer, for which the request may wait. NULL, 0: none */
	void (*preset)(struct req *r); /* points the arguments' pointers at the request's memory */
	enum place_kind move;	       /* READ, WRITE and SYNC find the file first */
	bool modifies;		       /* refused on a read-only export */
	bool once;		       /* non-idempotent: a retransmission gets the original reply */
	bool (*quick)(struct req *r);  /* fast path on the reactor instead of work, from cached objects, without
					* blocking; false: not possible. NULL: no fast path */
	void (*work)(struct req *r);   /* on a worker; NULL: nothing blocks */
	void (*finish)(struct req *r); /* on the reactor, before the reply; NULL: nothing to do */
};

struct prog {
	uint32_t number, vers;
	const char *name;
	bool is_nfs; /* arguments begin with a handle, results with a status */
	const struct prog_proc *procs;
	uint32_t nprocs;
};

extern const struct prog prog_nfs3, prog_nfsacl, prog_mount3, prog_ctl;

/** prog_xdr_void - xdr_void() with the signature that xdrproc_t requires */
bool_t prog_xdr_void(XDR *xdrs, void *nothing);

enum prog_found { PROG_FOUND, PROG_NO_PROG, PROG_NO_VERS, PROG_NO_PROC };

/** prog_find - looks up a procedure
 * @ret_low, @ret_high: supported versions, set for PROG_NO_VERS
 */
enum prog_found prog_find(uint32_t prog, uint32_t vers, uint32_t proc, const struct prog **ret_prog,
			  const struct prog_proc **ret_proc, uint32_t *ret_low, uint32_t *ret_high);

#endif
