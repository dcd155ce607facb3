/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * call.h - one call, from its arguments to an errno
 */
#ifndef LT_CALL_H
#define LT_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/util.h"
#include "block.h"
#include "nfs3.h"
#include "nfsacl.h"
#include "rpcrdma.h"
#include "space.h"
#include "stripes.h"
#include "volumes.h"

struct leat;

/* A program, and the statuses with which its results begin. */
struct lt_program {
	uint32_t prog, vers;
	bool (*is_later)(uint32_t status); /* not 0: the server did nothing, and the call is made again */
	uint32_t old_lane;                 /* the lane of the call has a newer connection; 0: calls have no lanes */
	int (*to_errno)(uint32_t status);
	const char *(*name)(uint32_t status); /* NULL: results do not begin with a status */
	bool feeds;                        /* results have attributes and names for the cache */
};

/* A procedure: all that call.c knows of it. */
struct lt_proc {
	xdrproc_t encode, decode;
	size_t res_bytes;   /* of results that begin with a status; 0: they do not */
	uint32_t reply_max; /* results without payload and without @reply_extra */
	bool changes;       /* it matters whether the server has executed the call */
	bool moves_data;    /* READ or WRITE */
	bool has_lane;      /* struct lt_call_laned */
	bool allocates;     /* the codec allocates parts of the results: lt_call_free() */
	const struct lt_program *program;
};

#define LT_STATUS_BYTES 4u /* of XDR */

/* A struct lt_proc whose results begin with a status
 * @in, @out: the types of arguments and results, without "args" and "res"
 * @max: bytes of the longest results behind the status
 * The last arguments set .program and what else is not zero.
 */
#define LT_PROC(in, out, max, ...)                                                                           \
	{                                                                                                    \
		.encode = (xdrproc_t)xdr_##in##args,                                                         \
		.decode = (xdrproc_t)xdr_##out##res,                                                         \
		.res_bytes = sizeof(out##res),                                                               \
		.reply_max = LT_STATUS_BYTES + (max),                                                        \
		__VA_ARGS__                                                                                  \
	}

/* lt_proc.changes */
#define LT_CHANGES true
#define LT_READS false /* or what may as well be executed twice: COMMIT, FLUSH, REPORT */

/* The tables of lt_call_start_of(). The results of VOLUME are to be freed: lt_call_free(). */
extern const struct lt_proc lt_acl_procs[], lt_space_procs[], lt_volume_procs[];

/* A file handle that owns its bytes. */
struct lt_fh {
	uint32_t len;
	char data[NFS3_FHSIZE];
};

static inline bool lt_fh_is_equal(const struct lt_fh *a, const struct lt_fh *b)
{
	return a->len == b->len && !memcmp(a->data, b->data, a->len);
}

/** lt_fh_wire - converts @fh for the codec; the result points into @fh */
static inline nfs_fh3 lt_fh_wire(struct lt_fh *fh)
{
	nfs_fh3 w;

	w.data.data_len = fh->len;
	w.data.data_val = fh->data;
	return w;
}

/** lt_fh_take - copies a handle from results; the codec limits its length */
static inline void lt_fh_take(struct lt_fh *fh, const nfs_fh3 *w)
{
	fh->len = w->data.data_len;
	if (fh->len)
		memcpy(fh->data, w->data.data_val, fh->len);
}

/* Memory into which the lists of NFSACL are decoded. */
struct lt_acl_room {
	aclent access[NFS_ACL_MAX_ENTRIES], dflt[NFS_ACL_MAX_ENTRIES];
};

/* The end of a call: rpcrdma_call.done. It runs exactly once for each attempt, never from inside the function that
 * starts the call, and calls lt_call_ended() first. */
typedef void (*lt_call_done)(struct rpcrdma_call *rpc, int err);

/* Where the arguments of a call name the connection that they travel by: a block_lane or a stripe_lane. */
struct lt_lane {
	u_quad_t *instance; /* NULL: they do not */
	u_int *slot, *incarnation;
};

/* @lane: a lane in arguments */
#define LT_LANE(lane) ((struct lt_lane){ &(lane)->instance, &(lane)->slot, &(lane)->incarnation })
#define LT_NO_LANE ((struct lt_lane){ 0 })

/* Arguments of a call of block.x or stripes.x. */
struct lt_call_laned {
	const void *args;
	struct lt_lane lane;
};

/* State of one call at a time; embedded in the object that makes the calls. */
struct lt_call {
	struct rpcrdma_call rpc;
	struct leat *m;
	struct lt_server *server; /* that of the mount, or of stripes */
	const struct lt_proc *proc;
	char *fh_room;     /* memory for a handle in the results: NFS3_FHSIZE bytes */
	struct lt_acl_room *acl_room; /* memory for lists in the results; NULL: no GETACL */
	struct lt_call_laned laned;
	uint32_t status;   /* of the last reply: nfsstat3, block_status, ...; 0 if the RPC itself failed */
	uint32_t delay_ms; /* before the next attempt after JUKEBOX */
	uint64_t give_up_ns;
	uint64_t stamp, sent_ns; /* of the last attempt; see cache.h. Lifetimes of VOLUME count from sent_ns */
	uint32_t listed;         /* entries of READDIRPLUS that went into the cache, over all calls */
	int err;
	struct rpcrdma_clnt *clnt;       /* of the last attempt */
	unsigned conn;                   /* its index in the server */
	struct rpcrdma_engine *engine;   /* of the additional thread that makes it, or NULL */
	lt_call_done done;
	struct rpcrdma_msg msg, cancel_msg;
	char why[136];                   /* copy of rpc.why, which belongs to that thread, which writes it; or a text of our own */
	bool has_why;                    /* why explains the status */
	struct lt_call_ask *ask;         /* with BLOCK: the call has failed, and asks for the holder; or NULL */
	bool is_patient;                 /* a failure to connect is not the end before give_up_ns */
	bool cancelled;                  /* by lt_call_cancel(): there is no further attempt */
	bool cancelling, replied;        /* cancel_msg has yet to come back; msg has come back */
	bool waits;                      /* for the timer */
	bool asks;                       /* the program: lt_source.h */
	struct rpcrdma_timer timer;
};

/** lt_call_xdr_nothing - XDR filter for void arguments or results (the type of libtirpc's xdr_void differs from the
 * type of the calls) */
bool_t lt_call_xdr_nothing(XDR *xdrs, void *nothing);

/** lt_call_init - initializes @c before its first use */
void lt_call_init(struct lt_call *c, struct leat *m, char *fh_room);

/** lt_call_ended - takes the outcome of an attempt
 * @err: 0, or -errno of the RPC; becomes -errno of the call
 *
 * Return: the call, which has ended; NULL: the server was not ready, and the call is made again later.
 */
must_check struct lt_call *lt_call_ended(struct rpcrdma_call *rpc, int *err);

/** lt_call_start - starts an NFS call
 * @args, @res: of the procedure's types; valid until done
 * @reply_extra: bytes of results beyond the fixed size of the procedure (READDIR, READDIRPLUS)
 * @sink: memory for the results' payload, or NULL
 */
void lt_call_start(struct lt_call *c, uint32_t proc, const void *args, void *res,
		   uint32_t reply_extra, const struct iovec *sink, int sinkcnt,
		   lt_call_done done);

/** lt_call_start_of - starts the call table[proc] to the mount's server; otherwise as lt_call_start() */
void lt_call_start_of(struct lt_call *c, const struct lt_proc *table, uint32_t proc, const void *args, void *res,
		      lt_call_done done);

/** lt_call_start_block - starts a call of BLOCK, to a leatd; otherwise as lt_call_start()
 * @lane: in @args, or NULL. It is set whenever the arguments are encoded, which may be on another thread until done
 *
 * The codec allocates lists and strings of the results: lt_call_free() frees them.
 */
void lt_call_start_block(struct lt_call *c, uint32_t proc, const void *args, block_lane *lane, void *res,
			 const struct iovec *sink, int sinkcnt, lt_call_done done);

/** lt_call_start_stripes - starts READ, WRITE or COMMIT of STRIPES; otherwise as lt_call_start()
 * @server: which has the stripe
 * @lane: in @args; as for lt_call_start_block()
 * @patience_ms: the call fails with -ETIMEDOUT or -EAGAIN after that; not 0
 *
 * After -ETIMEDOUT of a call that was sent, the server may still execute it: lt_call_retire_lane() comes before the next
 * call of its lane.
 */
void lt_call_start_stripes(struct lt_call *c, struct lt_server *server, uint32_t proc, const void *args, stripe_lane *lane,
			   void *res, const struct iovec *sink, int sinkcnt, uint32_t patience_ms, lt_call_done done);

/** lt_call_retire_lane - closes the connection of a call that timed out after it was sent, unless that has been replaced
 *
 * Other calls in flight there are sent again over the next one. The server lets those end first that had begun.
 */
void lt_call_retire_lane(const struct lt_call *c);

/** lt_call_free - frees what the results of the last call refer to, also after a failure. For BLOCK and VOLUME. */
void lt_call_free(struct lt_call *c);

/** lt_call_ask_holder - the attachment of a call with this status has ended: asks the server for the holder of the volume,
 * for the text of leat_error()
 *
 * Return: false: no reason to ask, or no memory. Else an INFO was sent, and lt_call_told() follows.
 */
bool lt_call_ask_holder(struct lt_call *c, uint32_t status);

/** lt_call_told - the INFO has ended: the call is again what it was, with a text. Return: its status
 * @err: 0 or -errno of the RPC
 */
uint32_t lt_call_told(struct lt_call *c, int err);

/** lt_call_prog - starts the call whose arguments and results c->rpc has, to c->server; for the files of each program
 * @proc: its number
 * @p: valid until done
 * @patience_ms: limit of all attempts; 0: none but that of retry=soft
 */
void lt_call_prog(struct lt_call *c, uint32_t proc, const struct lt_proc *p, uint32_t patience_ms);

/** lt_call_changes - does it matter whether the server has executed the call?
 * False, too, of what may as well be executed twice.
 */
bool lt_call_changes(const struct lt_call *c);

/** lt_call_cancel - ends the call that is in progress, if any
 * done() runs before this function returns, or soon afterwards if the call is on a connection of another thread, or asks the
 * program.
 *
 * lt_call_ended() then returns the call with -ECANCELED; or with -EINPROGRESS, if the call changes something and the
 * server may have executed it. No peer can access the memory of the call any more.
 */
void lt_call_cancel(struct lt_call *c);

/** lt_call_name - "LOOKUP"; lt_call_cause - "NFS3ERR_NOENT" or "BLOCK_ERR_IO" of a failed call; "" if unknown */
const char *lt_call_name(const struct lt_call *c);
const char *lt_call_cause(const struct lt_call *c);

#endif
