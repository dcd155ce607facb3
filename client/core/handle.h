/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * handle.h - a mount: its connections, its thread, its last error
 */
#ifndef LT_HANDLE_H
#define LT_HANDLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "call.h"
#include "leat.h"
#include "rpcrdma.h"
#include "url.h"

struct lt_cache;
struct lt_io;
struct lt_piece;

struct leat {
	/* set by leat_mount(), constant afterwards */
	struct lt_url url;
	uint32_t timeo_ms;
	uint64_t (*clock)(void);           /* clock_now_ns(), but for tests */
	struct rpcrdma_domain *domain;
	struct rpcrdma_engine *engine;
	struct rpcrdma_addr addr;          /* of the transport that was chosen */
	struct rpcrdma_cred cred;
	struct rpcrdma_clnt *clnt[LT_CONNS_MAX];
	unsigned clnts;
	struct lt_fh root, base;           /* of the export; of the URL's path when has_base */
	char export[LT_PATH_MAX];
	char path[LT_PATH_MAX];            /* of the URL, inside the export: no '/' at either end */
	char server_url[512], chosen[256], server[64];
	char given_url[512];               /* server and export as the caller names them: for messages */
	struct leat_way refused[ARRAY_SIZE(((struct leat_info *)0)->refused)];
	unsigned nrefused;
	bool mounted;
	uint16_t mnt_port;                 /* of the MOUNT service; 0: on the NFS connection */
	bool is_leatd;
	uint8_t instance[16];
	char runs_as[160];                 /* leat_info.runs_as */
	uint32_t rsize, wsize, dirsize;
	uint32_t name_max;

	/* the owner's thread only */
	bool has_cwd;                      /* relative paths begin at cwd: leat_fchdir() */
	struct lt_fh cwd;
	bool has_base;                     /* false: the URL's path is no directory (yet, any more) */
	struct lt_cache *cache;            /* NULL: cache=none */
	uint64_t not_now;                  /* answers JUKEBOX */
	void (*away)(void *ctx, bool away, const char *why); /* opts->away, or NULL */
	void *away_ctx;
	bool is_away;                      /* it was called with true */
	unsigned clnt_next;
	unsigned tasks;                    /* started, callback not yet run */
	bool in_callback;
	struct list files;
	struct lt_piece *free_pieces;

	/* the service thread */
	atomic_bool has_service;           /* changed by start and stop, which nothing else may race */
	pthread_t service;
	bool service_stop;                 /* its own */
	struct rpcrdma_msg service_msg;

	pthread_mutex_t lock;              /* the leaves below; no other lock is taken under it */
	char error[1024];
	char cwd_path[LT_PATH_MAX];        /* of cwd from the root of the export, for messages; may be cut */
	struct lt_io *free_ios;
	unsigned free_ios_count;
};

/** lt_handle_create - an engine and nothing connected */
must_check int lt_handle_create(const struct lt_url *url, const struct leat_opts *opts,
				struct leat **ret);

/** lt_handle_destroy - accepts half-built ones and NULL; nothing may be in flight */
void lt_handle_destroy(struct leat *m);

/** lt_handle_is_mine - may the calling thread touch what belongs to the owner? */
bool lt_handle_is_mine(const struct leat *m);

/* the cause when ACCESS is answered, but with less than is needed */
#define LT_NOT_GRANTED "the server grants this user no such access"

/** lt_handle_tell - what leat_error() will say:
 * "tcp://host:2049/export/dir/file: LOOKUP: Permission denied (NFS3ERR_ACCES)"
 * @path, @path2: as the user gave them, or NULL
 * @what: the procedure, or the operation where none failed
 * @cause: "" if unknown
 */
void lt_handle_tell(struct leat *m, const char *path, const char *path2, const char *what, int err,
		    const char *cause);

#endif
