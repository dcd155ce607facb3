/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs.h - the file service: what NFS, NFSACL, SPACE, VOLUME, MOUNT and CTL share per server, reactor, connection and request
 *
 * The spine keeps these structures as `service` and `call` and does not look inside (prog.h).
 */
#ifndef LEAT_SERVER_NFS_H
#define LEAT_SERVER_NFS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "fsync_batch.h"
#include "conf.h"
#include "conn.h"
#include "creds.h"
#include "dir_watch.h"
#include "exports.h"
#include "fh.h"
#include "files.h"
#include "groups.h"
#include "mount3.h"
#include "nfs_types.h"
#include "nfs_room.h"
#include "reactor.h"
#include "req.h"
#include "server_int.h"
#include "vfs.h"
#include "write_verf.h"

struct mount_table;

#define NFS3_IO_MAX (1u << 20) /* rtmax, wtmax in FSINFO */

/* Of the server. Written before the threads start and after they end; members that change in between are locked. */
struct nfs_server {
	struct fh_set *fhs; /* belongs to no export; those of the exports are views of it */
	enum fh_kind fh_kind; /* kind for all exports, or 0: the best one for each */
	char *state_dir;      /* directory of the handle map, or NULL */
	bool state_dir_usual; /* the default directory: it may be missing */
	size_t files_max;     /* limit of open files of one reactor */
	size_t room_max;      /* nfs_room.h: of one reactor */
	bool manage_gids;     /* look up the groups of users */
	struct mount_table *mounts;
	struct fsync_batch *fsyncs;
	struct dir_watches *dirs;
	struct write_verf write_verf;
};

/* Counters of one reactor, which are added up over the reactors.
 *
 *   group_waits      calls that waited for their user's groups
 *   file_hits, file_misses   READ, WRITE, COMMIT: were descriptor and permission in the cache?
 *   sync_failed      failed syncs: the write verifier changes
 *   refused          calls for an export that does not admit their peer
 *   volume_refused   calls that are not possible for striped files
 *   volume_waits     READs and WRITEs of striped files that waited, since others waited for stripe servers */
#define NFS_COUNTERS(SUM) \
	SUM(group_waits) SUM(file_hits) SUM(file_misses) SUM(sync_failed) SUM(refused) SUM(volume_refused) SUM(volume_waits)

/* Only the thread of the reactor writes; any thread may read. */
struct nfs_counters {
	NFS_COUNTERS(STORE_COUNTER)
};

/* Of a reactor. Owned by its thread. */
struct nfs_reactor {
	struct nfs_counters counters;
	struct reactor *reactor;
	struct files files;
	struct nfs_room room;
	struct groups *groups; /* supplementary groups of users; NULL: the call's own groups apply */
	/* Longest data of a reply that is sent inside the reply instead of a separate chunk: a READ over TCP, a
	 * READDIR. With a low limit of buffer memory it is less than NFS3_IO_MAX. A multiple of 4096. */
	uint32_t inline_max;
};

/* Of a connection, on its reactor. */
struct nfs_conn {
	struct served_verdicts verdicts; /* enum peer_verdict */
};

/* The procedures' arguments and results. */
union nfs_args {
	nfs_fh3 fh; /* NFS arguments begin with it */
	NFS_TYPES(NFS_ARGS)
	READ3args read;
	WRITE3args write;
	READDIR3args readdir;
	READDIRPLUS3args readdirplus;
	FSINFO3args fsinfo;
	PATHCONF3args pathconf;
	dirpath mnt;
};

/* Results of READDIR and READDIRPLUS: entries are encoded as they are found (nfs3_dir.c). */
struct nfs_dir_res {
	nfsstat3 status;
	post_op_attr attr;
	const uint8_t *entries;
	uint32_t entries_len;
	bool_t eof;
};

union nfs_res {
	nfsstat3 status; /* NFS results begin with it */
	volume_status volume; /* results of VOLUME begin with it */
	NFS_TYPES(NFS_RES)
	READ3res read;
	WRITE3res write;
	struct nfs_dir_res dir;
	FSINFO3res fsinfo;
	PATHCONF3res pathconf;
	mountres3 mnt;
	mountlist dump;
	mountexports exports;
};

/* Memory for the arguments' pointers: decoding allocates nothing. */
struct nfs_memory {
	char fh[2][NFS3_FHSIZE];
	char name[2][FILENAME3_ROOM];
	char path[NFS3_PATH_MAX + 1]; /* MOUNT's path; READLINK's result; SYMLINK's with its NUL */
	char fh_res[NFS3_FHSIZE];
	int flavors[2];
};

/* Of a request. */
struct nfs_call {
	struct req *req;
	struct nfs_reactor *re;
	struct groups_wait groups_wait;
	struct files_waiter opener; /* waits until more files may be opened */
	struct nfs_room_use room;   /* READ, WRITE of a volume */
	bool authorized;	    /* READ, WRITE: nfs_authorize() has run */
	struct served_use *exports; /* in force when it was decoded: held */
	struct export *exp;	    /* of the first handle */
	struct fdcache_entry *file; /* READ, WRITE, COMMIT: held */
	struct statx stx;	    /* of that file, when it was found */
	struct timespec looked;	    /* time before that */
	struct fh_obj found;	    /* object the worker opened; GETATTR, ACCESS, LOOKUP: to be cached */
	unsigned asked, rights;	    /* access to @found that the worker checked, and granted: R_OK, W_OK, X_OK */
	struct store_file opened;
	bool open_tried;
	bool must_sync; /* WRITE: its client has used up its share of files that wait for a sync */
	bool cached; /* set by nfs3_fast.c: the objects its worker needs are already open */
	bool keeps; /* objects its worker opens may stay open: files_may_open() */
	int err;	      /* of that worker */
	uint64_t verf;	      /* WRITE: in force when the data was taken */
	uint64_t sync_seq;    /* COMMIT: the writes that it covers */
	uint64_t sync_began_ns;
	struct vfs_made made; /* CREATE: the descriptor goes to the cache */
	union nfs_args args;
	union nfs_res res;
	struct nfs_memory mem;
};

/* Members of struct prog that are the same for all programs that use struct nfs_call. */
#define NFS_CALL                                                                                   \
	.call_bytes = sizeof(struct nfs_call), .args_at = offsetof(struct nfs_call, args),         \
	.res_at = offsetof(struct nfs_call, res), .init = nfs_init, .cancel = nfs_cancel,          \
	.release = nfs_release

/** nfs_service - the hooks of the file service, and its programs */
extern const struct service nfs_service;

extern const struct prog prog_nfs3, prog_nfsacl, prog_space, prog_volumes, prog_mount3, prog_ctl;

static inline struct nfs_server *nfs_server(const struct server *srv)
{
	return srv->service[SERVICE_NFS];
}

static inline struct nfs_reactor *nfs_reactor(const struct reactor *re)
{
	return re->service[SERVICE_NFS];
}

static inline struct nfs_conn *nfs_conn(const struct conn *c)
{
	return c->service[SERVICE_NFS];
}

#define nfs_count(re, field)                                                                       \
	atomic_fetch_add_explicit(&nfs_reactor(re)->counters.field, 1, memory_order_relaxed)

static inline struct nfs_call *nfs_call(const struct req *r)
{
	return (struct nfs_call *)(void *)(uintptr_t)r->call;
}

/** nfs_handles - the handles of the exports that apply to @r: after nfs_hold_exports() */
static inline struct fh_set *nfs_handles(const struct req *r)
{
	return exports_of(nfs_call(r)->exports)->fhs;
}

/** nfs_manager - the manager of the volume of the first handle; NULL: its export is of another kind */
static inline struct volume_manager *nfs_manager(const struct req *r)
{
	return nfs_call(r)->exp->manager;
}

/* Hooks of nfs_service for the server (nfs_server.c); prog.h describes them. */
int nfs_server_create(struct server *srv, const struct conf *conf, unsigned nreactors);
void nfs_server_changed(struct server *srv, struct served *old, struct served *now);
void nfs_server_destroy(struct server *srv);

/** nfs_init - prog.init of all programs whose prog.call_bytes is that of struct nfs_call */
void nfs_init(struct req *r);

/** nfs_authorize - prog.authorize of programs whose arguments begin with a handle
 *
 * Finds the export, checks its rules, and squashes the user; the user's groups may have to be looked up.
 */
int nfs_authorize(struct req *r);

/** nfs_find_groups - determines the groups of the caller, if they are looked up here
 *
 * Return: 0; -EINPROGRESS: req_resume() follows.
 */
int must_check nfs_find_groups(struct req *r);

/** nfs_open_type - finds the object of the first handle, which must be of one type; for workers
 * @type: S_IFREG or S_IFDIR
 *
 * Return: 0; the caller closes @ret with fh_close(); -ENXIO: it is of another type; -errno */
int must_check nfs_open_type(struct req *r, unsigned type, struct fh_obj *ret);

/** nfs_fh_stripped - fh_strip() of the first handle of the arguments */
struct fh nfs_fh_stripped(const struct req *r);

/** nfs_hold_exports - lets the exports in force apply to @r until it ends */
void nfs_hold_exports(struct req *r);

/** nfs_cancel, nfs_release - prog.cancel, prog.release of all programs that use struct nfs_call */
bool nfs_cancel(struct req *r);
void nfs_release(struct req *r);

#endif
