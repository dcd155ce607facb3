/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * req.h - a request; req.c is where to start reading
 */
#ifndef LEAT_SERVER_REQ_H
#define LEAT_SERVER_REQ_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/list.h"
#include "creds.h"
#include "ctl.h"
#include "fdcache.h"
#include "fh.h"
#include "groups.h"
#include "mount3.h"
#include "nfs3.h"
#include "nfsacl.h"
#include "once.h"
#include "place.h"
#include "prog.h"
#include "vfs.h"
#include "latency.h"
#include "worker.h"

struct conn;
struct reactor;
struct server;

enum req_state {
	REQ_NEW,      /* a call: to be understood, and to be let in */
	REQ_ADMITTED, /* counted among the live ones; what it needs is found out */
	REQ_MOVING,   /* payload on its way between caller and store */
	REQ_ENTERING, /* it changes something: has it come before? */
	REQ_RUNNING,  /* on a worker */
	REQ_REPLYING, /* the transport has the answer */
	REQ_FREE,     /* recycled */
};

/** req_state_name - for people */
const char *req_state_name(enum req_state s);

/* How it ends. */
enum req_end {
	REQ_END_REPLY,	/* results */
	REQ_END_KEPT,	/* results as the duplicate request cache has them */
	REQ_END_ERROR,	/* accept_stat */
	REQ_END_AUTH,	/* auth_stat */
	REQ_END_REJECT, /* the caller's chunks are too small */
	REQ_END_DROP,	/* no answer */
};

/* The procedures' arguments and results. */
union req_args {
	nfs_fh3 fh; /* what NFS arguments begin with */
	GETATTR3args getattr;
	SETATTR3args setattr;
	LOOKUP3args lookup;
	ACCESS3args access;
	READLINK3args readlink;
	READ3args read;
	WRITE3args write;
	CREATE3args create;
	MKDIR3args mkdir;
	SYMLINK3args symlink;
	MKNOD3args mknod;
	REMOVE3args remove;
	RMDIR3args rmdir;
	RENAME3args rename;
	LINK3args link;
	READDIR3args readdir;
	READDIRPLUS3args readdirplus;
	FSSTAT3args fsstat;
	FSINFO3args fsinfo;
	PATHCONF3args pathconf;
	COMMIT3args commit;
	GETACL3args getacl;
	SETACL3args setacl;
	dirpath mnt;
	ctl_path whoami;
};

/* Results of READDIR and READDIRPLUS: entries are encoded as they are found (nfs3_dir.c). */
struct req_dir_res {
	nfsstat3 status;
	post_op_attr attr;
	const uint8_t *entries;
	uint32_t entries_len;
	bool_t eof;
};

union req_res {
	nfsstat3 status; /* what NFS results begin with */
	GETATTR3res getattr;
	SETATTR3res setattr;
	LOOKUP3res lookup;
	ACCESS3res access;
	READLINK3res readlink;
	READ3res read;
	WRITE3res write;
	CREATE3res create;
	MKDIR3res mkdir;
	SYMLINK3res symlink;
	MKNOD3res mknod;
	REMOVE3res remove;
	RMDIR3res rmdir;
	RENAME3res rename;
	LINK3res link;
	struct req_dir_res dir;
	FSSTAT3res fsstat;
	FSINFO3res fsinfo;
	PATHCONF3res pathconf;
	COMMIT3res commit;
	GETACL3res getacl;
	SETACL3res setacl;
	mountres3 mnt;
	mountlist dump;
	mountexports exports;
	ctl_info info;
	ctl_stats stats;
	ctl_answer answer;
	ctl_where where;
	ctl_pieces pieces;
	ctl_whoami whoami;
};

/* Where the arguments' pointers point: decoding allocates nothing. */
struct req_memory {
	char fh[2][NFS3_FHSIZE];
	char name[2][FILENAME3_ROOM];
	char path[NFS3_PATH_MAX + 1]; /* MOUNT's path; READLINK's answer; SYMLINK's with its NUL */
	char fh_res[NFS3_FHSIZE];
	int flavors[2];
};

/* Owned by the reactor of its connection; while RUNNING, and only for what its work needs, by a
 * worker. Recycled, and freed while it is not needed. */
struct req {
	enum req_state state;
	struct list link; /* reactor->admission or ->free_reqs */
	struct list of_conn; /* conn->reqs */
	struct groups_wait groups_wait; /* NEW: in reactor->groups */
	struct reactor *reactor;
	struct server *srv;
	struct conn *conn;
	struct rpcrdma_req *rpc;
	uint32_t xid;
	const struct prog *prog;
	const struct prog_proc *proc;
	bool understood; /* NEW: decoded and permitted; missing are the caller's groups and admission */
	bool identified; /* NEW: it is known whose rights it has, only admission is missing */
	bool partial;	 /* NEW: not all of the call is here yet */
	bool admitted; /* it has a slot: admit.h */
	bool running; /* RUNNING: a worker has it, or it is in reactor->openers */
	bool replied; /* REPLYING: the transport is through */
	bool lost; /* its connection was lost while it waited: nothing is done for it */

	struct creds creds;	    /* as the export sees the caller */
	struct exports_use *exports; /* as they were when it was understood: held */
	struct export *exp;	    /* NFS: of the first handle */
	struct fdcache_entry *file; /* READ, WRITE, COMMIT: held */
	struct statx stx;	    /* of that file, when it was found */
	struct timespec looked;	    /* before that */
	struct fh_obj found;	    /* by the worker that opened it; GETATTR, ACCESS, LOOKUP: to be kept */
	unsigned asked, rights;	    /* what the worker found out about @found: R_OK, W_OK, X_OK */
	struct store_file opened;
	bool open_tried;
	struct list opener; /* reactor->openers */
	bool must_sync; /* WRITE: its client has its share of files that wait for a sync */
	bool cached; /* by nfs3_quick.c: what its worker opens is open already */
	bool keeps; /* what its worker opens may stay open: reactor_may_open() */
	int err;	      /* of that worker */
	uint64_t verf;	      /* WRITE: in force when the data was taken */
	uint64_t sync_seq;    /* COMMIT: what it covers */
	uint64_t sync_began_ns;
	struct vfs_made made; /* CREATE: the descriptor goes to the cache */
	void *scratch;	      /* req_scratch(): for long arguments, or by work that answers with much */
	size_t scratch_bytes;
	struct rpcrdma_buf *room; /* for long results: prog_proc.room */
	struct rpcrdma_buf_waiter room_waiter;
	bool room_waits; /* ADMITTED: for it */

	enum req_end end;
	uint32_t end_code, end_low, end_high;
	struct worker_job job;
	struct place place;
	struct where where;
	struct once once;
	union req_args args;
	union req_res res;
	struct req_memory mem;
};

/** req_args_init - r->proc is known: nothing in its arguments, and where decoding them puts things
 *
 * Return: 0, -ENOMEM.
 */
int must_check req_args_init(struct req *r);

/** req_call - a call has come, or more of one that had come in part */
void req_call(struct conn *c, struct rpcrdma_req *rpc);

/** req_conn_lost - ends the calls of @c that wait and have not begun; from the engine's loop only */
void req_conn_lost(struct conn *c);

/** req_run - go on with it as far as it goes */
void req_run(struct req *r);

/** req_fail - NFS: answer @status and nothing else */
void req_fail(struct req *r, nfsstat3 status);

/** req_scratch - zeroed memory for long arguments or a long answer, one piece for a request, of the client's share
 *
 * Return: it goes with the request; NULL: there is none now, and the call is dropped, so that the client sends it again.
 */
void *req_scratch(struct req *r, size_t bytes);

#endif
