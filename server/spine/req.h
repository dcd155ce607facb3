/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * req.h - a request; start reading at req.c
 */
#ifndef LEAT_SERVER_REQ_H
#define LEAT_SERVER_REQ_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/list.h"
#include "creds.h"
#include "ctl.h"
#include "files.h"
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
	REQ_NEW,      /* arrived: to be decoded, checked and admitted */
	REQ_ADMITTED, /* has a slot, or will get one later; its needs are being determined */
	REQ_MOVING,   /* payload is moving between client and store */
	REQ_ENTERING, /* non-idempotent: duplicate check */
	REQ_RUNNING,  /* on a worker */
	REQ_REPLYING, /* the transport has the reply */
	REQ_FREE,     /* recycled */
};

/** req_state_name - returns the name to print */
const char *req_state_name(enum req_state s);

/* How the request ends. */
enum req_end {
	REQ_END_REPLY,	/* results */
	REQ_END_KEPT,	/* results as the duplicate request cache has them */
	REQ_END_ERROR,	/* accept_stat */
	REQ_END_AUTH,	/* auth_stat */
	REQ_END_REJECT, /* the client's chunks are too small */
	REQ_END_DROP,	/* no reply */
};

/* The procedures' arguments and results. */
union req_args {
	nfs_fh3 fh; /* NFS arguments begin with it */
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
	nfsstat3 status; /* NFS results begin with it */
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

/* Memory for the arguments' pointers: decoding allocates nothing. */
struct req_memory {
	char fh[2][NFS3_FHSIZE];
	char name[2][FILENAME3_ROOM];
	char path[NFS3_PATH_MAX + 1]; /* MOUNT's path; READLINK's result; SYMLINK's with its NUL */
	char fh_res[NFS3_FHSIZE];
	int flavors[2];
};

/* Owned by the reactor of its connection. While RUNNING, the worker owns the parts that its work needs. Recycled, and
 * freed while not needed. */
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
	bool understood; /* NEW: decoded and permitted; the user's groups and admission are missing */
	bool identified; /* NEW: creds are final, only admission is missing */
	bool partial;	 /* NEW: the rest of the request has not arrived yet */
	bool admitted; /* has a slot: admit.h */
	bool running; /* RUNNING: on a worker, or in files->waiting */
	bool replied; /* REPLYING: the transport has finished */
	bool lost; /* its connection was lost while it waited: it is dropped */

	struct creds creds;	    /* as the export maps them */
	struct exports_use *exports; /* in force when it was decoded: held */
	struct export *exp;	    /* NFS: of the first handle */
	struct fdcache_entry *file; /* READ, WRITE, COMMIT: held */
	struct statx stx;	    /* of that file, when it was found */
	struct timespec looked;	    /* time before that */
	struct fh_obj found;	    /* object the worker opened; GETATTR, ACCESS, LOOKUP: to be cached */
	unsigned asked, rights;	    /* access to @found that the worker checked, and granted: R_OK, W_OK, X_OK */
	struct store_file opened;
	bool open_tried;
	struct files_waiter opener;
	bool must_sync; /* WRITE: its client has used up its share of files that wait for a sync */
	bool cached; /* set by nfs3_quick.c: the objects its worker needs are already open */
	bool keeps; /* objects its worker opens may stay open: files_may_open() */
	int err;	      /* of that worker */
	uint64_t verf;	      /* WRITE: in force when the data was taken */
	uint64_t sync_seq;    /* COMMIT: the writes that it covers */
	uint64_t sync_began_ns;
	struct vfs_made made; /* CREATE: the descriptor goes to the cache */
	void *scratch;	      /* req_scratch(): for long arguments or long results */
	size_t scratch_bytes;
	struct rpcrdma_buf *room; /* for long results: prog_proc.room */
	struct rpcrdma_buf_waiter room_waiter;
	bool room_waits; /* ADMITTED: for it */

	enum req_end end;
	uint32_t end_code, end_low, end_high;
	struct worker_job job;
	struct place_plan plan;
	struct place place;
	struct latency latency;
	struct once once;
	union req_args args;
	union req_res res;
	struct req_memory mem;
};

/** req_args_init - zeroes the arguments of r->proc and sets the memory that decoding writes to
 *
 * Return: 0, -ENOMEM.
 */
int must_check req_args_init(struct req *r);

/** req_call - a new request has arrived, or more of one that arrived in part */
void req_call(struct conn *c, struct rpcrdma_req *rpc);

/** req_conn_lost - drops the requests of @c that wait and have not begun; from the engine's loop only */
void req_conn_lost(struct conn *c);

/** req_run - runs the state machine until it has to wait */
void req_run(struct req *r);

/** req_fail - NFS: sets the result to @status, without further data */
void req_fail(struct req *r, nfsstat3 status);

/** req_scratch - allocates zeroed memory for long arguments or results, once per request, from the client's share
 *
 * Return: memory that is freed with the request; NULL: none is free. Then the request is dropped, and the client
 * retransmits it.
 */
void *req_scratch(struct req *r, size_t bytes);

#endif
