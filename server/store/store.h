/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store.h - the interface to the storage of file contents
 *
 * There is one store per backing and reactor, of the kind that its options name. The contract, which the wrappers below
 * assert on both sides: A store never blocks the reactor. So on the reactor's thread it writes only to memory,
 * because RWF_NOWAIT does not prevent waiting for a frozen file system. Every member of store_ops is set. A completion
 * runs on the reactor's thread, once, and never inside store_submit(). The last completion may destroy the store.
 * STORE_SYNC syncs the file of the descriptor, whatever backing it belongs to.
 *
 * A file is a regular file or a block device (store_device.h).
 *
 * DISCARD, ZERO and EXTENTS move no data. Their range has at most STORE_RANGE_MAX bytes and lies within the file, else
 * they end with -EINVAL. No byte outside of the range changes, whatever its alignment. io->res is 0 to io->bytes, or
 * -errno.
 * - ZERO: when it ends, every READ of the range returns zeroes, cached or direct, by any descriptor. Where file system
 *   or device can do nothing else, zeroes are written. The result is all or -errno; after an error a part may be zeroes.
 * - DISCARD: the contents are undefined then, and the space may be released. -EOPNOTSUPP: that is not possible, and the
 *   contents are unchanged. All or -errno, as ZERO.
 * - EXTENTS: what the range consists of, from its beginning; io->res is the length of the part that is covered. A hole
 *   stays one only until the next write; DATA may be zeroes.
 * DISCARD and ZERO run on workers in strides of at most STORE_STRIDE bytes, and between two of them the worker serves
 * others. So no stride holds a worker, or a lock of the file system, for longer than it takes to write that many
 * zeroes. In a queue (store_queue.h) an operation keeps its slot for all its strides. How many of these operations are
 * in progress at once is the caller's to bound (client_begin_long()).
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
#include "backing.h"
#include "creds.h"
#include "latency.h"
#include "loop.h"
#include "store_device.h"
#include "store_queue.h"
#include "store_sched.h"
#include "worker.h"

struct store;

/* A second descriptor of a file, which bypasses the page cache (store_aio.c). */
enum store_direct_state {
	STORE_DIRECT_UNTRIED,
	STORE_DIRECT_OPENING, /* a worker opens it; operations that arrive meanwhile wait */
	STORE_DIRECT_NONE,    /* the file system does not support it */
	STORE_DIRECT_OPEN,    /* there is a descriptor */
	STORE_DIRECT_REFUSED, /* there is a descriptor, but the file system rejects I/O by it */
};

struct store_direct {
	enum store_direct_state state;
	int fd;			     /* O_DIRECT; valid if state says so */
	uint32_t mem_align;	     /* alignment of memory, */
	uint32_t read_align;	     /* of offsets and lengths of reads, */
	uint32_t write_align;	     /* of writes: whole pages */
	uint32_t part_bytes;	     /* the device splits I/O that is longer */
	bool no_nowait;		     /* the file system cannot tell whether a read would block */
};

struct store_io;

/* What a store keeps for an open file; embedded in a structure of its own. */
struct store_use {
	void (*end)(struct store_use *u); /* the file is about to be closed; on its reactor's thread */
};

/* A file that is open for I/O, by store_open(). Owned by the program, or its descriptor cache (fdcache.c). Only the stores
 * of one reactor use it. store_close() ends it. */
struct store_file {
	int fd;
	bool writable;
	bool no_nowait_read; /* the file system does not support RWF_NOWAIT; learnt from its first reply */
	bool at_once, in_memory; /* struct fs_limits of its backing: answers_at_once, in_memory */
	bool sets_atime; /* a read by it may set the access time, and so may wait for the disk */
	struct store_direct direct;
	uint64_t fs; /* dev of its backing */
	uint64_t dev, ino; /* identifies the file on all reactors, for syncs and queues; the owner sets them */
	struct store_use *use; /* NULL: nothing. Only a file of the descriptor cache may have one */
	struct store_io *opening; /* newest of a circle of operations that wait for STORE_DIRECT_OPENING; NULL: none */
	pthread_rwlock_t syncs; /* store_file.c. Do not copy a structure that is in use. */
};

enum store_op { STORE_READ, STORE_WRITE, STORE_SYNC, STORE_DISCARD, STORE_ZERO, STORE_EXTENTS };

#define STORE_RANGE_MAX (1u << 30) /* bytes of DISCARD, ZERO, EXTENTS */
#define STORE_STRIDE (64u << 20)
#define STORE_EXTENTS_MAX 256u

enum store_extent_kind {
	STORE_DATA_EXTENT,
	STORE_HOLE_EXTENT, /* reads as zeroes; no space is allocated, or space that was never written to */
	STORE_ZERO_EXTENT, /* reads as zeroes */
};

/* The result of EXTENTS. At least one, unless the range is empty. */
struct store_extents {
	unsigned n;
	struct store_extent {
		uint64_t length; /* never 0 */
		enum store_extent_kind kind;
	} v[STORE_EXTENTS_MAX];
};

/* What a file supports by itself. */
struct store_caps {
	bool discard;	/* DISCARD does not return -EOPNOTSUPP */
	bool fast_zero; /* ZERO writes no data, */
	bool fast_keep; /* nor does it with io->keep */
	bool extents;	/* EXTENTS finds holes; otherwise all is data */
};

enum store_stable { /* stable_how of RFC 1813 */
		    STORE_UNSTABLE,
		    STORE_DATA_SYNC,
		    STORE_FILE_SYNC,
};

/* An operation. Owned by the store from submit to done; the memory of iov must not move meanwhile. */
struct store_io {
	enum store_op op;
	struct store_file *file;
	const struct iovec *iov; /* READ, WRITE */
	int iovcnt;
	uint64_t off;
	uint32_t bytes;		   /* sum of iov; without iov: length of the range; SYNC: 0: the whole file */
	uint32_t pad_head, pad_tail; /* READ: bytes around iov that may be overwritten */
	uint64_t size_hint;	   /* READ: the file's recent size; a short read that reaches it is
	                              * known to be complete */
	enum store_stable stable;  /* WRITE, DISCARD, ZERO */
	bool keep;		   /* ZERO: the space stays allocated */
	struct store_extents *extents; /* EXTENTS: the caller's memory for the result */
	const struct creds *creds; /* WRITE, DISCARD, ZERO: credentials to write with (quota); NULL: the server's own */
	struct worker_client *client; /* the client it runs for; NULL: the server itself */
	void (*done)(struct store_io *io);
	struct latency *latency; /* of its request, which store_turn() tells when the turn has come; NULL: not measured */
	uint32_t unit_off;	 /* of its unit, for latency */

	int32_t res;	  /* bytes, or -errno; SYNC: 0 or -errno */
	bool sync_failed; /* data written earlier may be lost */
	uint32_t copied;  /* bytes that a CPU copied */
	uint64_t begun_ns; /* with latency: its turn came, after a wait in a queue if there is one; 0: not yet */
	/* private to the store */
	struct store *store;
	struct worker_job job;
	struct list link; /* in a queue of its store */
	uint32_t head;	 /* bytes that are done already: the operation continues there */
	/* private to store_aio.c */
	struct store_io *next;	    /* in file->opening: the one after it; of the newest, the oldest */
	struct store_direct direct; /* copy of the file's, for a worker */
	uint32_t ext_head, ext_tail; /* bytes of pad_head and pad_tail that are overwritten */
	uint32_t end;		    /* parts in flight: all bytes before it are good */
	int end_err;		    /* why it ends there */
	unsigned parts;		    /* in flight */
	bool refused;		    /* the file system rejects direct operations after all */
	struct { /* private to store_queue.c */
		struct sched_node node;
		struct store *store;
		void (*done)(struct store_io *io);
		struct rpcrdma_msg msg;
	} queue;
	struct { /* private to store_sim.c */
		uint64_t due_ns;
		bool fails;
	} sim;
};

/* Counters of the stores of one reactor: SUM(name) is added up over the reactors, MAX(name) is a maximum of all.
 *
 *   store_now, store_worker, store_aio   operations done at once, by a worker, by asynchronous I/O
 *   aio_submits      system calls for store_aio
 *   aio_again        asynchronous operations that a worker had to finish
 *   submit_blocked   submissions that took longer than allowed
 *   sched_waits      operations that waited for their turn
 *   sched_wait_max   maximum number that waited, on all reactors together
 *   sched_late       operations that waited too long, and went before their turn
 *   sim_requests, sim_seeks              of modelled disks; members of a RAID seek separately */
#define STORE_COUNTERS(SUM, MAX)                                                                   \
	SUM(store_now) SUM(store_worker) SUM(store_aio) SUM(aio_submits) SUM(aio_again)            \
	SUM(submit_blocked) SUM(sched_waits) MAX(sched_wait_max) SUM(sched_late)                   \
	SUM(sim_requests) SUM(sim_seeks)

#define STORE_COUNTER(name) _Atomic uint64_t name;

/* Only the thread of the reactor writes; any thread may read. */
struct store_counters {
	STORE_COUNTERS(STORE_COUNTER, STORE_COUNTER)
};

/* The thread that a store works for. Owned by its reactor, which outlives the store. */
struct store_env {
	struct loop *loop;
	struct store_counters *counters;
};

#define store_count_n(s, field, n)                                                                 \
	atomic_fetch_add_explicit(&(s)->counters->field, n, memory_order_relaxed)
#define store_count(s, field) store_count_n(s, field, 1)

struct store_ops {
	const char *name;
	/* Return: 0 or -errno */
	int (*create)(const struct store_env *env, struct backing *b, struct store **ret);
	/* no operation may be in flight */
	void (*destroy)(struct store *s);
	/* On a worker. Takes over @fd; store_adopt(), and what it leaves for later */
	void (*open)(struct backing *b, int fd, bool write, struct store_file *ret);
	/* Return: 1: finished, io->res is valid and done() will not run; 0: done() will run */
	int (*submit)(struct store *s, struct store_io *io);
};

struct store {
	const struct store_ops *ops;
	struct loop *loop;
	struct store_counters *counters;
	struct backing *backing;
	bool aligned; /* prefers memory that is aligned like the file offset, modulo DATA_ALIGN */
	bool own_memory; /* memory that a client may unmap will not do */
	struct store_queue *queue; /* in front of it, or NULL; store_make() */
	unsigned touching; /* files with an update of the access time in flight: nfs3_atime.c */
};

extern const struct store_ops store_cached_ops;
extern const struct store_ops store_null_ops;
extern const struct store_ops store_sim_ops; /* also serves rate:, a special case */
extern const struct store_ops store_aio_ops; /* built with libaio: HAVE_AIO */

/** store_of - returns the kind of store that the options of @b name */
const struct store_ops *store_of(const struct backing *b);

static inline int must_check store_create(const struct store_ops *ops, const struct store_env *env,
					  struct backing *b, struct store **ret)
{
	int err = ops->create(env, b, ret);

	assert(err <= 0);
	return err;
}

/** store_make - creates the store that the options of @b name, with a queue if they say so
 * @b: must outlive the store
 *
 * Return: 0 or -errno.
 */
int must_check store_make(const struct store_env *env, struct backing *b, struct store **ret);

static inline void store_destroy(struct store *s)
{
	struct store_queue *queue = s ? s->queue : NULL;

	if (s)
		s->ops->destroy(s);
	store_queue_put(queue);
}

/** store_adopt - takes over @fd, a descriptor of a regular file of @b, or of a block device; does not block
 *
 * While a program has the device open with O_EXCL, @fd should be that descriptor or a dup() of it: by others the kernel
 * refuses to discard and zero ranges with dirty pages. They are written back then, and it is asked again.
 * @write: @fd can be written to
 * @ret: owned by the caller; a store opens its direct descriptor at the first operation that wants it
 */
void store_adopt(struct backing *b, int fd, bool write, struct store_file *ret);

/** store_open - opens a file for stores of the kind @ops; on a worker
 * @fd: of a regular file or block device; the caller owns @ret, and with it @fd
 * @write: @fd can be written to
 */
static inline void store_open(const struct store_ops *ops, struct backing *b, int fd, bool write, struct store_file *ret)
{
	ops->open(b, fd, write, ret);
	assert(ret->fd == fd && ret->writable == write);
}

/** store_close - closes the descriptors of a file; may block; no operation may be in flight */
void store_close(struct store_file *f);

/** store_caps_find - finds what a file supports, without changing its contents; on a worker
 *
 * The time of its last change may be updated. What is true then may still turn out to be wrong for a single operation,
 * which then is slow or ends with -EOPNOTSUPP.
 */
void store_caps_find(const struct store_file *f, struct store_caps *ret);

/** store_op_changes - does the operation change contents, so that it needs a file that is open for writing? */
static inline bool store_op_changes(enum store_op op)
{
	return op == STORE_WRITE || op == STORE_DISCARD || op == STORE_ZERO;
}

/** store_submit_below - submits to the store, bypassing the queue; for the layers above the store */
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

/** store_turn - notes that the turn of an operation has come */
static inline void store_turn(struct store_io *io)
{
	if (!io->latency)
		return;
	latency_disk(io->latency, 1, io->unit_off);
	io->begun_ns = latency_now(io->latency);
}

/** store_begin - starts an operation when its turn has come; Return: as store_submit_below() */
static inline int must_check store_begin(struct store *s, struct store_io *io)
{
	store_turn(io);
	return store_submit_below(s, io);
}

/** store_submit - starts an operation
 *
 * Return: 1: it is finished, io->done() will not run; 0: it will.
 */
static inline int must_check store_submit(struct store *s, struct store_io *io)
{
	assert(io->file->fd >= 0 && io->done);
	assert(io->file->writable || !store_op_changes(io->op));
	assert(io->op <= STORE_SYNC || io->bytes <= STORE_RANGE_MAX);
	return s->queue ? store_queue_submit(s, io) : store_begin(s, io);
}

#endif
