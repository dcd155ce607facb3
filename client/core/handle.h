/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * handle.h - a mount: its export, its open files, its cache, its last error
 */
#ifndef LT_HANDLE_H
#define LT_HANDLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/list.h"
#include "call.h"
#include "leat.h"
#include "lt_server.h"
#include "session.h"
#include "url.h"

struct lt_cache;
struct lt_mount_ref;
struct lt_source;
struct lt_volume;
struct lt_wait;

/* Before a SETATTR that changes the size of @fh: tells the manager of a striped volume what was written before; then runs
 * next(op, 0), or next(-ECANCELED) */
struct lt_op;
typedef void (*lt_before_resize)(struct lt_op *op, const struct lt_fh *fh, void (*next)(struct lt_op *op, int err));

/* The counters of a mount itself; leat_stats() adds those of librpcrdma. */
#define LT_COUNTERS(X) X(jukebox_retries)

struct lt_counters {
	LT_COUNTERS(RPCRDMA_COUNTER)
};

struct leat {
	/* set by leat_mount(), constant afterwards */
	struct lt_url url;
	uint32_t timeo_ms;
	uint64_t (*clock)(void);           /* of tests; NULL: clock_now_ns() */
	struct leat_session *session;
	struct lt_server *server;
	struct lt_fh root, base;           /* root: of the export; base: of the URL's path, if has_base */
	char export[LT_PATH_MAX];
	char path[LT_PATH_MAX];            /* path of the URL inside the export, without '/' at either end */
	char server_url[512];
	char given_url[512];               /* server and export as the caller spelled them, for messages */
	bool mounted;
	uint16_t mnt_port;                 /* of the MOUNT service; 0: it shares the NFS connection */
	char runs_as[160];                 /* text of the next two */
	enum leat_identity identity;
	uint32_t run_uid;
	uint32_t rsize, wsize, dirsize;
	uint32_t name_max;
	struct lt_mount_ref *ref;          /* through which nodes and directories point here */

	/* owner's thread only */
	struct list link;                  /* in server->mounts */
	bool has_cwd;                      /* relative paths start at cwd: leat_fchdir() */
	struct lt_fh cwd;
	bool has_base;                     /* false: the URL's path is not a directory (yet, or any more) */
	struct lt_cache *cache;            /* NULL: cache=none */
	struct lt_counters counters;
	void (*away)(void *ctx, bool away, const char *why); /* opts->away, or NULL */
	void *away_ctx;
	struct list tasks;                 /* struct lt_task: started, but callback not yet run */
	bool no_background;                /* no task without a caller may be started */
	atomic_bool interrupted;           /* the synchronous call in progress, or the next one, ends with -EINTR */
	atomic_bool interrupt_posted;
	struct rpcrdma_msg interrupt_msg;
	atomic_bool ending;                /* leat_umount_within() has cancelled: nothing more can be started */
	struct lt_wait *drain;             /* waits until there are no tasks; NULL: no one waits */
	struct list files;
	struct lt_volume *volume;          /* NULL: not a striped volume */
	/* Makes a call instead of the server, which is never connected; as lt_source_call(). NULL: the server */
	int (*make_call)(struct lt_call *c);
	struct lt_source *source;          /* its state */
	lt_before_resize before_resize;    /* NULL: not a striped volume */
	struct list grown;                 /* struct lt_grown */
	struct list opening, removed;      /* see removed.h, also for the next five */
	bool hides;                        /* has hidden a name at least once */
	bool touches;                      /* touch_timer is armed */
	unsigned sweeps, touching;         /* in flight */
	struct rpcrdma_timer touch_timer;

	pthread_mutex_t lock;              /* protects the members below; a leaf lock: no other lock is taken under
	                                    * it */
	char error[LT_ERROR_BYTES];
	char cwd_path[LT_PATH_MAX];        /* path of cwd from the root of the export, for messages; may be truncated */
};

/** lt_handle_create - creates a mount in @s, with a server that may have to be connected yet
 * @named: address of the server
 * @opts: as of leat_mount(), or NULL
 *
 * Return: 0, -ENOMEM; -EIO: no random numbers.
 */
must_check int lt_handle_create(struct leat_session *s, const struct lt_url *url, const struct rpcrdma_addr *named,
				const struct leat_opts *opts, struct leat **ret);

/** lt_handle_destroy - ends a mount without operations in flight, also a partly built one, and its private session */
void lt_handle_destroy(struct leat *m);

/** lt_handle_is_mine - may the calling thread touch the members of the owner's thread? */
static inline bool lt_handle_is_mine(const struct leat *m)
{
	return lt_session_is_mine(m->session);
}

/** lt_handle_check - may an operation be started on @m?
 * Return: 0; -EINVAL: no mount; -EOWNERDEAD: as lt_session_check(); -ECANCELED: the mount is ending
 */
static inline int lt_handle_check(const struct leat *m)
{
	int rc = m ? lt_session_check(m->session) : -EINVAL;

	return rc || likely(!atomic_load_explicit(&m->ending, memory_order_relaxed)) ? rc : -ECANCELED;
}

/** lt_handle_now - returns the time, in ns */
static inline uint64_t lt_handle_now(const struct leat *m)
{
	return m->clock ? m->clock() : clock_now_ns();
}

/* cause if ACCESS succeeds but grants less than is needed */
#define LT_NOT_GRANTED "the server grants this user no such access"

/** lt_handle_tell - sets the text that leat_error() returns:
 * "tcp://host:2049/export/dir/file: LOOKUP: Permission denied (NFS3ERR_ACCES)"
 * @path, @path2: as the user gave them, or NULL
 * @what: the procedure, or the operation if no procedure failed
 * @cause: "" if unknown
 */
void lt_handle_tell(struct leat *m, const char *path, const char *path2, const char *what, int err,
		    const char *cause);

/** lt_handle_untold - a function of this thread begins that may set the text, of whatever mount */
void lt_handle_untold(void);
/** lt_handle_is_told - has it done so? */
bool lt_handle_is_told(void);

#endif
