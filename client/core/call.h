/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * call.h - one NFS call, from its arguments to an errno
 */
#ifndef LT_CALL_H
#define LT_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "nfs3.h"
#include "nfsacl.h"
#include "rpcrdma.h"

struct leat;

/* A file handle that owns its bytes. */
struct lt_fh {
	uint32_t len;
	char data[NFS3_FHSIZE];
};

static inline bool lt_fh_is_equal(const struct lt_fh *a, const struct lt_fh *b)
{
	return a->len == b->len && !memcmp(a->data, b->data, a->len);
}

/** lt_fh_wire - as the codec wants it; points into @fh */
static inline nfs_fh3 lt_fh_wire(struct lt_fh *fh)
{
	nfs_fh3 w;

	w.data.data_len = fh->len;
	w.data.data_val = fh->data;
	return w;
}

/** lt_fh_take - from results; their length is bounded by the codec */
static inline void lt_fh_take(struct lt_fh *fh, const nfs_fh3 *w)
{
	fh->len = w->data.data_len;
	if (fh->len)
		memcpy(fh->data, w->data.data_val, fh->len);
}

/* Where lists of NFSACL are decoded. */
struct lt_acl_room {
	aclent access[NFS_ACL_MAX_ENTRIES], dflt[NFS_ACL_MAX_ENTRIES];
};

/* Embedded in whatever makes calls, one after the other. */
struct lt_call {
	struct rpcrdma_call rpc;
	struct leat *m;
	void (*done)(struct lt_call *c, int err);
	char *fh_room;     /* where a handle among the results goes: NFS3_FHSIZE bytes */
	struct lt_acl_room *acl_room; /* where lists among the results go; NULL: no GETACL */
	uint32_t proc;
	uint32_t status;   /* nfsstat3 of the last reply; 0 when the RPC itself failed */
	uint32_t delay_ms; /* before the next attempt after JUKEBOX */
	uint64_t give_up_ns;
	uint64_t stamp, sent_ns; /* of the last attempt: see cache.h */
	uint32_t listed;         /* entries of READDIRPLUS that the cache has taken, over all calls */
	int err;
	struct rpcrdma_timer timer;
};

/** lt_call_xdr_nothing - filter of arguments or results that are void (libtirpc's xdr_void has
 * another type than it is called by) */
bool_t lt_call_xdr_nothing(XDR *xdrs, void *nothing);

/** lt_call_init - before the first use */
void lt_call_init(struct lt_call *c, struct leat *m, char *fh_room);

/** lt_call_start - make an NFS call
 * @args, @res: of the procedure's types; valid until done
 * @reply_extra: bytes of results beyond the procedure's fixed ones (READDIR, READDIRPLUS)
 * @sink: memory for the results' payload, or NULL
 *
 * done(0) or done(-errno) runs exactly once, never from in here.
 */
void lt_call_start(struct lt_call *c, uint32_t proc, const void *args, void *res,
		   uint32_t reply_extra, const struct iovec *sink, int sinkcnt,
		   void (*done)(struct lt_call *c, int err));

/** lt_call_start_acl - the same for a call of NFSACL */
void lt_call_start_acl(struct lt_call *c, uint32_t proc, const void *args, void *res,
		       void (*done)(struct lt_call *c, int err));

/** lt_call_start_other - a call of another program: no status in its results, no retry */
void lt_call_start_other(struct lt_call *c, uint32_t prog, uint32_t vers, uint32_t proc,
			 xdrproc_t decode, void *res, uint32_t reply_max,
			 void (*done)(struct lt_call *c, int err));

/** lt_call_name - "LOOKUP"; lt_call_cause - of one that failed: "NFS3ERR_NOENT"; "" if unknown */
const char *lt_call_name(const struct lt_call *c);
const char *lt_call_cause(const struct lt_call *c);

#endif
