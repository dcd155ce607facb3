/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store.h - the seam to what holds the bytes of files
 *
 * One store per export and reactor, of the kind the export asks for. The contract, which the
 * wrappers below assert on both sides: a store never blocks the reactor, so nothing is written there but to
 * memory (RWF_NOWAIT waits for a frozen file system); every member is there;
 * completions run on the reactor's thread, once, and never inside store_submit(). The last of them may
 * end the store. io->begins() comes before, inside store_submit() unless the operation has to wait for
 * its turn in a queue first. STORE_SYNC syncs the file that the descriptor says, of whatever export it is.
 */
#ifndef LEAT_SERVER_STORE_H
#define LEAT_SERVER_STORE_H

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/list.h"
#include "base/util.h"
#include "creds.h"
#include "fh.h"
#include "store_queue.h"
#include "store_sched.h"
#include "worker.h"

struct reactor;
struct store;

/* The way into a file that leaves the page cache out (store_aio.c). */
enum store_direct_state {
	STORE_DIRECT_UNTRIED,
	STORE_DIRECT_OPENING, /* a worker does it; what comes meanwhile waits */
	STORE_DIRECT_NONE,    /* the file system has no such thing */
	STORE_DIRECT_OPEN,    /* there is a descriptor */
	STORE_DIRECT_REFUSED, /* there is one, but the file system does nothing by it */
};

struct store_direct {
	enum store_direct_state state;
	int fd;			     /* O_DIRECT; where state says that there is one */
	uint32_t mem_align;	     /* of memory, */
	uint32_t read_align;	     /* offsets and lengths of reads, */
	uint32_t write_align;	     /* of writes: whole pages, which they share with nobody */
	uint32_t part_bytes;	     /* more than this the device takes in several parts */
	bool no_nowait;		     /* it cannot tell whether a read would block */
};

struct store_io;

/* A file's contents, open. Owned by the descriptor cache (fdcache.c). */
struct store_file {
	int fd;
	bool writable;
	bool no_nowait_read; /* the file system cannot tell whether it would block; learnt from its first answer */
	bool at_once, in_memory; /* struct fs_limits of its export: answers_at_once, in_memory */
	bool sets_atime; /* to read by it may set the access time, and so wait for a disk */
	struct store_direct direct;
	uint64_t fs; /* st_dev of its export */
	uint64_t dev, ino; /* which file it is, the same for all reactors; fdcache_insert() says */
	struct store_io *opening; /* wait for it, the last that came first */
	pthread_rwlock_t syncs; /* store_file.c. A structure that is in use is not copied. */
};

enum store_op { STORE_READ, STORE_WRITE, STORE_SYNC };

enum store_stable { /* stable_how of RFC 1813 */
		    STORE_UNSTABLE,
		    STORE_DATA_SYNC,
		    STORE_FILE_SYNC,
};

/* An operation. Caller-owned from submit to done; the memory of iov stays put as long. */
struct store_io {
	enum store_op op;
	struct store_file *file;
	const struct iovec *iov; /* READ, WRITE */
	int iovcnt;
	uint64_t off;
	uint32_t bytes;		   /* sum of iov; SYNC: of the range, 0: all of the file */
	uint32_t pad_head, pad_tail; /* READ: bytes around iov that may be read over */
	uint64_t size_hint;	   /* READ: the file's size a moment ago, so that a short answer is
	                              * known to be its end */
	enum store_stable stable;  /* WRITE */
	const struct creds *creds; /* WRITE: whose quota it is */
	struct worker_client *client; /* that it is done for; NULL: for the server itself */
	void (*begins)(struct store_io *io); /* it has waited for its turn, if it had to; or NULL */
	void (*done)(struct store_io *io);

	int32_t res;	  /* bytes, or -errno */
	bool sync_failed; /* something written earlier may be lost */
	/* private to the store */
	struct store *store;
	struct worker_job job;
	uint32_t head;	 /* bytes that are done already: what is before it need not be moved */
	uint32_t copied; /* by a CPU, and not counted yet */
	/* private to store_aio.c */
	struct store_io *next;	    /* of those that wait */
	struct store_direct direct; /* the file's, as a worker may look at it */
	uint32_t ext_head, ext_tail; /* of pad_head and pad_tail: read over */
	uint32_t end;		    /* parts under way: up to here all is well */
	int end_err;		    /* why it ends there */
	unsigned parts;		    /* under way */
	bool refused;		    /* the file system wants no direct operation after all */
	struct { /* private to store_queue.c */
		struct sched_node node;
		struct store *store;
		void (*done)(struct store_io *io);
		struct rpcrdma_msg msg;
	} queue;
	struct { /* private to store_sim.c */
		struct list link;
		struct store *store;
		uint64_t due_ns;
		bool fails;
	} sim;
};

struct store_ops {
	const char *name;
	/* Return: 0 or -errno */
	int (*create)(struct reactor *r, struct export *exp, struct store **ret);
	/* nothing is in flight */
	void (*destroy)(struct store *s);
	/* On a worker. Open a file found by its handle; Return: 0 or -errno */
	int (*open)(const struct fh_obj *o, bool write, struct store_file *ret);
	/* A descriptor for reading and writing that came by another way (CREATE) */
	void (*adopt)(const struct export *exp, int fd, struct store_file *ret);
	/* Return: 1, finished already, io->res is valid and done() will not run; 0, it will */
	int (*submit)(struct store *s, struct store_io *io);
};

struct store {
	const struct store_ops *ops;
	struct reactor *reactor;
	struct export *exp;
	bool aligned; /* likes memory to lie as the file does, modulo DATA_ALIGN */
	struct store_queue *queue; /* in front of it, or NULL; store_make() */
	unsigned touching; /* files whose access time is being set: nfs3_atime.c */
};

extern const struct store_ops store_cached_ops;
extern const struct store_ops store_null_ops;
extern const struct store_ops store_sim_ops; /* and a constant rate, which is a simple case of it */
extern const struct store_ops store_aio_ops; /* where libaio is: HAVE_AIO */

/** store_of - the kind of store that an export asks for */
const struct store_ops *store_of(const struct export *exp);

static inline int must_check store_create(const struct store_ops *ops, struct reactor *r,
					  struct export *exp, struct store **ret)
{
	int err = ops->create(r, exp, ret);

	assert(err <= 0);
	return err;
}

/** store_make - a store of the kind that an export asks for, with a queue if it asks for one
 *
 * Return: 0 or -errno.
 */
int must_check store_make(struct reactor *r, struct export *exp, struct store **ret);

static inline void store_destroy(struct store *s)
{
	struct store_queue *queue = s ? s->queue : NULL;

	if (s)
		s->ops->destroy(s);
	store_queue_put(queue);
}

static inline int must_check store_open(const struct store_ops *ops, const struct fh_obj *o,
					bool write, struct store_file *ret)
{
	int err = ops->open(o, write, ret);

	assert(err ? err < 0 : ret->fd >= 0 && ret->writable >= write);
	return err;
}

static inline void store_adopt(const struct store_ops *ops, const struct export *exp, int fd,
			       struct store_file *ret)
{
	ops->adopt(exp, fd, ret);
	assert(ret->fd == fd && ret->writable);
}

/** store_submit_below - past the queue; for who stands in front of the store */
static inline int must_check store_submit_below(struct store *s, struct store_io *io)
{
	int now;

	io->store = s;
	io->res = -EINPROGRESS;
	io->sync_failed = false;
	io->head = io->copied = io->ext_head = io->ext_tail = 0;
	now = s->ops->submit(s, io);
	assert(now == 0 || (io->res <= (int32_t)io->bytes && io->res != -EINPROGRESS));
	return now;
}

/** store_begin - its turn has come; as store_submit_below() */
static inline int must_check store_begin(struct store *s, struct store_io *io)
{
	if (io->begins)
		io->begins(io);
	return store_submit_below(s, io);
}

/** store_submit - start an operation
 *
 * Return: 1: it is finished, io->done() will not run; 0: it will.
 */
static inline int must_check store_submit(struct store *s, struct store_io *io)
{
	assert(io->file->fd >= 0 && io->done);
	assert(io->op == STORE_READ || io->file->writable || io->op == STORE_SYNC);
	return s->queue ? store_queue_submit(s, io) : store_begin(s, io);
}

#endif
