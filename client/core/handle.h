/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * handle.h - a mount: its connections, its thread, its last error
 */
#ifndef LT_HANDLE_H
#define LT_HANDLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/list.h"
#include "call.h"
#include "leat.h"
#include "rpcrdma.h"
#include "url.h"

#define LT_ERROR_BYTES 1024

struct lt_cache;
struct lt_io;
struct lt_mount_ref;
struct lt_subreq;

struct leat {
	/* set by leat_mount(), constant afterwards */
	struct lt_url url;
	uint32_t timeo_ms;
	uint64_t (*clock)(void);           /* of tests; NULL: clock_now_ns() */
	struct rpcrdma_domain *domain;
	struct rpcrdma_engine *engine;
	struct rpcrdma_addr addr;          /* of the selected transport */
	struct rpcrdma_cred cred;
	struct rpcrdma_clnt *clnt[LT_CONNS_MAX];
	unsigned clnts;
	struct lt_fh root, base;           /* root: of the export; base: of the URL's path, if has_base */
	char export[LT_PATH_MAX];
	char path[LT_PATH_MAX];            /* path of the URL inside the export, without '/' at either end */
	char server_url[512], chosen[256], server[64];
	char given_url[512];               /* server and export as the caller spelled them, for messages */
	struct lt_refused refused[LT_REFUSED_MAX];
	unsigned nrefused;
	bool mounted;
	uint16_t mnt_port;                 /* of the MOUNT service; 0: it shares the NFS connection */
	bool is_leatd;
	uint8_t instance[16];
	char runs_as[160];                 /* text of the next two */
	enum leat_identity identity;
	uint32_t run_uid;
	uint32_t rsize, wsize, dirsize;
	uint32_t name_max;
	struct lt_mount_ref *ref;          /* through which nodes point here */

	/* owner's thread only */
	bool has_cwd;                      /* relative paths start at cwd: leat_fchdir() */
	struct lt_fh cwd;
	bool has_base;                     /* false: the URL's path is not a directory (yet, or any more) */
	struct lt_cache *cache;            /* NULL: cache=none */
	uint64_t jukebox_retries;
	void (*away)(void *ctx, bool away, const char *why); /* opts->away, or NULL */
	void *away_ctx;
	bool is_away;                      /* the last call of away() passed true */
	unsigned clnt_next;
	unsigned tasks;                    /* started, but callback not yet run */
	bool in_callback;
	struct list files;
	struct lt_subreq *free_subreqs;

	/* the service thread */
	atomic_bool has_service;           /* changed only by start and stop, which the caller must not run
	                                    * concurrently */
	pthread_t service;
	bool service_stop;                 /* set and read by the service thread only */
	struct rpcrdma_msg service_msg;

	pthread_mutex_t lock;              /* protects the members below; a leaf lock: no other lock is taken under
	                                    * it */
	char error[LT_ERROR_BYTES];
	char cwd_path[LT_PATH_MAX];        /* path of cwd from the root of the export, for messages; may be truncated */
	struct lt_io *free_ios;
	unsigned free_ios_count;
};

/** lt_handle_create - creates a handle with an engine and no connections */
must_check int lt_handle_create(const struct lt_url *url, const struct leat_opts *opts,
				struct leat **ret);

/** lt_handle_destroy - destroys a handle, also a partly built one, or NULL; nothing may be in flight */
void lt_handle_destroy(struct leat *m);

/** lt_handle_is_serving - is this the service thread of the handle? */
bool lt_handle_is_serving(const struct leat *m);

/** lt_handle_is_mine - may the calling thread touch the members of the owner's thread? */
static inline bool lt_handle_is_mine(const struct leat *m)
{
	return !atomic_load_explicit(&m->has_service, memory_order_acquire) || lt_handle_is_serving(m);
}

/** lt_handle_now - returns the time, in ns */
static inline uint64_t lt_handle_now(const struct leat *m)
{
	return m->clock ? m->clock() : clock_now_ns();
}

/* cause if ACCESS succeeds but grants less than is needed */
#define LT_NOT_GRANTED "the server grants this user no such access"

/** lt_thread_error - returns the text of leat_error(NULL), in LT_ERROR_BYTES bytes */
char *lt_thread_error(void);

/** lt_handle_tell - sets the text that leat_error() returns:
 * "tcp://host:2049/export/dir/file: LOOKUP: Permission denied (NFS3ERR_ACCES)"
 * @path, @path2: as the user gave them, or NULL
 * @what: the procedure, or the operation if no procedure failed
 * @cause: "" if unknown
 */
void lt_handle_tell(struct leat *m, const char *path, const char *path2, const char *what, int err,
		    const char *cause);

#endif
