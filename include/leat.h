/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leat.h - files on a leat (or any NFSv3) server, from a program, without a kernel mount
 *
 *     struct leat *m;
 *     struct leat_file *f;
 *     if (leat_mount("leat://server/export", NULL, &m) < 0) ...
 *     if (leat_open(m, "/dir/file", O_RDONLY, 0, &f) < 0) ...
 *     ssize_t n = leat_pread(f, buf, sizeof(buf), 0);
 *
 * URLs:     SCHEME://HOST[:PORT]/EXPORT/PATH?OPTION=VALUE&...  with SCHEME one of
 *             leat   connects by address, then takes the best way that the same server instance
 *                    answers on: local, RDMA, TCP (`leat ping` says which, and why no better)
 *             rdma, tcp   that transport only
 *             local  local:///run/leat/leatd.sock/EXPORT/PATH: the socket is the longest prefix of
 *                    the path that is a socket
 *           The export is the longest prefix of the path that the server exports; what follows is
 *           a path inside it.
 * Options:  (in the URL, or struct leat_opts)
 *             conns=N          connections, 1..16; large I/O is spread over them (1)
 *             credits=N        calls at once per connection (64)
 *             inline=BYTES     1024..65536, a multiple of 1024 (4096)
 *             readahead=BYTES  for sequential readers by leat_read(); 0 is none (1 MiB)
 *             cache=auto|none  keep attributes and names, for acmax=S seconds at most (auto, 60);
 *                              none: ask the server each time, and read nothing ahead
 *             timeo=MS         no answer: reconnect and ask again (60000)
 *             retry=hard|soft  soft: give up after timeo with ETIMEDOUT (hard)
 *             mountport=N      MOUNT service, where it is not on the NFS port
 *             design=read-write|read-read|hybrid  who moves the data (read-write, as RFC 8166 has it);
 *             fast_write=BYTES  write so much with the call itself, 4k..64k (not at all): both for
 *                              comparison, with a leatd that offers them (`modes`); else no mount
 *             registration=auto|dynamic|cache|batch|slab|arena|window,
 *             monitor=uffd|explicit|none,
 *             bounce=BYTES, reg_entries=N, reg_bytes=BYTES, dirty_watermark=N
 *                              how RDMA reaches the caller's memory: leat(7)
 *             socket_user=NAME|UID  leat:// also takes a local socket of this user's leatd (only of
 *                              root's, and of the user's who runs the program)
 *             unsafe_inv=yes|no  windows may be taken back by the server on soft RoCE, too (no)
 *             poll=adaptive|busy|event, spin=US
 *             uid=N, gid=N     claimed by AUTH_SYS (own); rsize=, wsize=BYTES (what the server says)
 * Threads:  A handle and all its files belong to one thread at a time. With leat_service_start()
 *           the library's own thread owns it instead: every function may then be called from any
 *           thread, and callbacks run on the service thread.
 * Memory:   Buffers, paths and structures given to a function stay the caller's. Data buffers and
 *           ret_ outputs of asynchronous calls must stay valid until the callback has run. Any
 *           memory will do for data; that from leat_buf_alloc() is the fastest.
 * Errors:   0 (or a count) or -errno, never errno itself; leat_error() tells more.
 */
#ifndef LEAT_H
#define LEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct leat;      /* a mount */
struct leat_file; /* an open file of it */
struct leat_dir;  /* an open directory */

/** leat_version - "0.1.0" */
const char *leat_version(void);

/** leat_registration - the @n-th strategy's name that registration= takes; NULL: there are no more */
const char *leat_registration(size_t n);

/* ---- mounting ----------------------------------------------------------------------------- */

struct leat_opts {         /* zero-initialise; zero means the default; the URL's options win */
	unsigned conns, credits;
	uint32_t inline_bytes;
	uint32_t readahead_bytes;
	bool no_readahead;
	uint32_t timeo_ms;
	bool soft;
	uint16_t mountport;
	const char *registration;
	const char *poll;          /* "adaptive", "busy", "event" */
	unsigned spin_us;
	bool has_ids;              /* use uid and gid below instead of the process's */
	uint32_t uid, gid;
	uint32_t rsize, wsize;
	const char *capture;       /* pcap of local-fabric traffic */
	bool connect_only;         /* mount nothing: for leat_info(), leat_null() and leat_server_...()
	                            * alone, whatever the server exports; all else fails */
	const char *cache;         /* "auto", "none" */
	uint32_t acmax_s;
	const char *design;        /* "read-write", "read-read", "hybrid" */
	uint32_t fast_write;
	const char *monitor;
	uint32_t bounce_bytes;
	bool no_bounce;            /* bounce=0 */
	unsigned reg_entries;
	uint64_t reg_bytes;
	unsigned dirty_watermark;
	bool unsafe_inv;
	const char *socket_user;
	struct leat_reg_cost {     /* benchmarks over a local socket: how long it shall keep the caller's */
		uint32_t reg_ns, reg_page_ns;     /* thread busy to register memory: in all, and for */
		uint32_t dereg_ns, dereg_page_ns; /* each page of it, as a device would */
	} reg_cost;
	/* The server has not answered for five seconds (@away true, @why in words), or answers again (false).
	 * For messages to people: runs on whichever thread drives the handle, also during leat_mount(), and
	 * must not use the handle. May be NULL. */
	void (*away)(void *ctx, bool away, const char *why);
	void *away_ctx;
};

/** leat_mount - connect and mount; blocks
 * @url: see above; its path inside the export, if any, becomes the root of relative names
 * @opts: may be NULL
 *
 * Return: 0; -EINVAL: the URL (leat_mount_error() tells); -ECONNREFUSED, -EHOSTUNREACH, -ENOENT
 * (no such export), -EACCES, -ETIMEDOUT, -ENOMEM ...
 */
int leat_mount(const char *url, const struct leat_opts *opts, struct leat **ret);

/** leat_mount_error - why the last leat_mount() of this thread failed: one line naming what and why */
const char *leat_mount_error(void);

/** leat_umount - waits for what is in flight, closes everything. NULL is fine. */
void leat_umount(struct leat *m);

/** leat_error - text of the last failure on this handle: server and path, procedure, cause
 * "leat://host/export/dir/file: LOOKUP: Permission denied (NFS3ERR_ACCES)"
 * The server is named as in the URL that was mounted, whatever transport leat:// chose.
 */
const char *leat_error(const struct leat *m);

struct leat_info {
	char transport[8];         /* "local", "rdma", "tcp" */
	char url[512];             /* server and export as mounted */
	char path[4096];           /* part of the URL inside the export, "" for its root */
	char chosen[256];          /* why this transport, and why no better one */
	char server[64];           /* "leatd 0.1.0 instance 1a2b...", or "unknown NFS server" */
	bool is_leatd;
	uint32_t credits, credits_low, send_inline, recv_inline;
	uint32_t rsize, wsize;
	unsigned conns;
	bool remote_inv;
	char registration[16];
	char kept[128];            /* what stays registered after a call, in words */
	uint64_t reg_bytes;        /* so much of it at most; 0: no limit of ours */
	char device[64];
	char reach[96];            /* how the server reaches memory of this process, in words */
	unsigned nrefused;         /* ways that were tried before, in this order, and why not */
	struct leat_way {
		char url[300];     /* "rdma://10.0.0.7:20049"; "rdma" if there is no such listener */
		char why[160];
	} refused[8];
	char runs_as[160];         /* who a leatd takes this user for, in words: "export /x squashes root ...";
	                            * "": himself, or it is no leatd */
	uint64_t reconnects;
	char modes[40];            /* other ways of moving data that were agreed: "read-read"; "none" */
	uint32_t fast_write;       /* most bytes of a fast write; 0: there are none */
	uint32_t uid, gid;         /* claimed by AUTH_SYS; over local the server asks the kernel instead */
	char given[512];           /* server and export as the caller's URL names them: leat_error()'s */
};
void leat_info(struct leat *m, struct leat_info *ret);

/* ---- loops -------------------------------------------------------------------------------- */

/** leat_fd - for poll or epoll: readable when leat_poll() has work */
int leat_fd(const struct leat *m);

/** leat_poll - run what is ready; callbacks run in here
 * @timeout_ms: 0 not to wait, -1 for ever
 * Before sleeping on leat_fd() call it with 0 until it returns 0: that arms the descriptor.
 *
 * Return: number of things that ran, or -errno.
 */
int leat_poll(struct leat *m, int timeout_ms);

/** leat_service_start - hand the handle to a thread of the library; until leat_service_stop()
 * leat_poll() is not for the caller */
int leat_service_start(struct leat *m);
void leat_service_stop(struct leat *m);

/* ---- callbacks ---------------------------------------------------------------------------- */

/* What an asynchronous call is given. fn(user_data, result) runs once, result is what the
 * synchronous call would return; then free(user_data), if set. All of it is consumed in every
 * outcome: when the call itself returns an error, fn does not run but free does. */
struct leat_cb {
	void (*fn)(void *user_data, int64_t result);
	void *user_data;
	void (*free)(void *user_data);
};

/* ---- data buffers ------------------------------------------------------------------------- */

/** leat_buf_alloc - page-aligned memory that moves without copies: registered once, and mapped by
 * a server on the same host
 *
 * One large buffer, cut up, is better than many: what is 2 MiB long lies in huge pages where Linux has
 * them (6.1), and a server on the same host then reads from its disk into a few pieces instead of hundreds.
 * A server on the same host reads into it without a copy if address and length are multiples of the page size.
 *
 * When a call times out or is sent again while the server's disk still uses its buffer, the library replaces
 * the pages of that buffer by others with the same content; the address stays. A program that has pinned the
 * pages by other means (fixed buffers of io_uring, a registration of another library) must pin them again.
 *
 * Return: 0, -ENOMEM, -EINVAL. */
int leat_buf_alloc(struct leat *m, size_t bytes, void **ret);
/** leat_buf_free - nothing may be in flight in it. NULL is fine. */
void leat_buf_free(struct leat *m, void *buf);

/** leat_buf_register - have memory of the program's own registered at first use, and kept so
 * @mem: stays mapped, and the same memory, until leat_buf_unregister(), which comes before leat_umount()
 *
 * Memory that may not be written is good to be written from.
 *
 * Return: 0; -EINVAL: 0 bytes; -EFAULT: not mapped; -EEXIST: some of it is leat_buf memory; -ENOMEM.
 */
int leat_buf_register(struct leat *m, void *mem, size_t bytes);
/** leat_buf_unregister - waits until no call that is out uses it; on return no server reaches it
 *
 * Return: 0; -ENOENT: nothing was registered that begins there; -EDEADLK: inside a callback.
 */
int leat_buf_unregister(struct leat *m, void *mem);

/* ---- files: asynchronous ------------------------------------------------------------------ */

/* Each starts the operation and returns 0, or -errno at once (-ENOMEM, -EINVAL). Paths: absolute
 * from the root of the export, or relative to the path of the URL. Requests on one handle may
 * complete in any order. pread and pwrite of any length: split by rsize/wsize, joined again; a
 * short count means end of file (read) or an error further on (write). */
int leat_aio_open(struct leat *m, const char *path, int flags, mode_t mode,
		  struct leat_file **ret_file, struct leat_cb cb);
int leat_aio_close(struct leat_file *f, struct leat_cb cb); /* commits what is not yet stable */
int leat_aio_pread(struct leat_file *f, void *buf, size_t len, uint64_t off, struct leat_cb cb);
int leat_aio_pwrite(struct leat_file *f, const void *buf, size_t len, uint64_t off,
		    struct leat_cb cb);
int leat_aio_preadv(struct leat_file *f, const struct iovec *iov, int cnt, uint64_t off,
		    struct leat_cb cb);
int leat_aio_pwritev(struct leat_file *f, const struct iovec *iov, int cnt, uint64_t off,
		     struct leat_cb cb);
int leat_aio_fsync(struct leat_file *f, struct leat_cb cb);
int leat_aio_ftruncate(struct leat_file *f, uint64_t size, struct leat_cb cb);
int leat_aio_fstat(struct leat_file *f, struct stat *ret_st, struct leat_cb cb);
int leat_aio_fchmod(struct leat_file *f, mode_t mode, struct leat_cb cb);
int leat_aio_fchown(struct leat_file *f, uid_t uid, gid_t gid, struct leat_cb cb);
int leat_aio_futimens(struct leat_file *f, const struct timespec times[2], struct leat_cb cb);

int leat_aio_stat(struct leat *m, const char *path, struct stat *ret_st, struct leat_cb cb);
int leat_aio_lstat(struct leat *m, const char *path, struct stat *ret_st, struct leat_cb cb);
int leat_aio_truncate(struct leat *m, const char *path, uint64_t size, struct leat_cb cb);
int leat_aio_mkdir(struct leat *m, const char *path, mode_t mode, struct leat_cb cb);
int leat_aio_rmdir(struct leat *m, const char *path, struct leat_cb cb);
int leat_aio_unlink(struct leat *m, const char *path, struct leat_cb cb);
int leat_aio_rename(struct leat *m, const char *from, const char *to, struct leat_cb cb);
int leat_aio_link(struct leat *m, const char *from, const char *to, struct leat_cb cb);
int leat_aio_symlink(struct leat *m, const char *target, const char *path, struct leat_cb cb);
int leat_aio_readlink(struct leat *m, const char *path, char *buf, size_t cap,
		      struct leat_cb cb); /* result: length; not NUL-terminated */
int leat_aio_mknod(struct leat *m, const char *path, mode_t mode, dev_t dev, struct leat_cb cb);
int leat_aio_chmod(struct leat *m, const char *path, mode_t mode, struct leat_cb cb);
int leat_aio_chown(struct leat *m, const char *path, uid_t uid, gid_t gid, struct leat_cb cb);
int leat_aio_utimens(struct leat *m, const char *path, const struct timespec times[2],
		     struct leat_cb cb); /* NULL: now; UTIME_NOW and UTIME_OMIT honoured */
int leat_aio_lutimens(struct leat *m, const char *path, const struct timespec times[2],
		      struct leat_cb cb);
int leat_aio_access(struct leat *m, const char *path, int mode, struct leat_cb cb);
int leat_aio_statvfs(struct leat *m, const char *path, struct statvfs *ret_st, struct leat_cb cb);
int leat_aio_opendir(struct leat *m, const char *path, struct leat_dir **ret_dir,
		     struct leat_cb cb); /* reads it whole */
int leat_aio_null(struct leat *m, struct leat_cb cb); /* the NULL procedure: a round trip */

/* ---- files: synchronous = the above + wait -------------------------------------------------- */

int leat_open(struct leat *m, const char *path, int flags, mode_t mode, struct leat_file **ret);
int leat_creat(struct leat *m, const char *path, mode_t mode, struct leat_file **ret);
int leat_close(struct leat_file *f); /* 0, or the error of data that did not become stable */
ssize_t leat_pread(struct leat_file *f, void *buf, size_t len, uint64_t off);
ssize_t leat_pwrite(struct leat_file *f, const void *buf, size_t len, uint64_t off);
ssize_t leat_preadv(struct leat_file *f, const struct iovec *iov, int cnt, uint64_t off);
ssize_t leat_pwritev(struct leat_file *f, const struct iovec *iov, int cnt, uint64_t off);
/** leat_read, leat_write, leat_lseek - at the file's own position (O_APPEND honoured as NFS can: at the end as
 * last seen); leat_read of a sequential reader is fed by readahead */
ssize_t leat_read(struct leat_file *f, void *buf, size_t len);
ssize_t leat_write(struct leat_file *f, const void *buf, size_t len);
int64_t leat_lseek(struct leat_file *f, int64_t off, int whence);
int leat_fsync(struct leat_file *f);
int leat_ftruncate(struct leat_file *f, uint64_t size);
int leat_fstat(struct leat_file *f, struct stat *ret_st);
int leat_fchmod(struct leat_file *f, mode_t mode);
int leat_fchown(struct leat_file *f, uid_t uid, gid_t gid);
int leat_futimens(struct leat_file *f, const struct timespec times[2]);

int leat_stat(struct leat *m, const char *path, struct stat *ret_st);
int leat_lstat(struct leat *m, const char *path, struct stat *ret_st);
int leat_truncate(struct leat *m, const char *path, uint64_t size);
int leat_mkdir(struct leat *m, const char *path, mode_t mode);
int leat_rmdir(struct leat *m, const char *path);
int leat_unlink(struct leat *m, const char *path);
int leat_rename(struct leat *m, const char *from, const char *to);
int leat_link(struct leat *m, const char *from, const char *to);
int leat_symlink(struct leat *m, const char *target, const char *path);
ssize_t leat_readlink(struct leat *m, const char *path, char *buf, size_t cap);
int leat_mknod(struct leat *m, const char *path, mode_t mode, dev_t dev);
int leat_chmod(struct leat *m, const char *path, mode_t mode);
int leat_chown(struct leat *m, const char *path, uid_t uid, gid_t gid); /* the link itself */
int leat_utimens(struct leat *m, const char *path, const struct timespec times[2]);
int leat_lutimens(struct leat *m, const char *path, const struct timespec times[2]); /* link itself */
int leat_access(struct leat *m, const char *path, int mode);
int leat_statvfs(struct leat *m, const char *path, struct statvfs *ret_st);
int leat_null(struct leat *m);

/** leat_fchdir - have relative paths of @m begin at a directory, whatever its name means by then
 * @dir: open (O_PATH | O_DIRECTORY will do), on @m or on another mount of the same export; it may be closed
 * afterwards. NULL: at the path of the URL again
 *
 * A path of one component, relative to it, cannot be led elsewhere by a symbolic link that someone puts in the
 * place of a directory above. It is for the whole mount, as fchdir(2) is for the whole process: no operation with
 * a relative path may be under way, since each of its paths begins where the mount stands when it is looked up.
 *
 * Return: 0; -EINVAL: no mount; -ENOTDIR.
 */
int leat_fchdir(struct leat *m, const struct leat_file *dir);

/* ---- access control lists ----------------------------------------------------------------- */

/* An entry of a POSIX access control list (acl(5)). Lists go over NFSACL, which leatd and Linux serve. */
enum leat_acl_tag {
	LEAT_ACL_USER_OBJ = 1, /* the owner */
	LEAT_ACL_USER = 2,     /* the user id */
	LEAT_ACL_GROUP_OBJ = 4,
	LEAT_ACL_GROUP = 8,
	LEAT_ACL_MASK = 16,
	LEAT_ACL_OTHER = 32
};

struct leat_acl_entry {
	uint16_t tag;
	uint16_t perm;         /* 4: read, 2: write, 1: execute or search */
	uint32_t id;           /* of USER and GROUP; else 0 */
};

#define LEAT_ACL_MAX 1024u     /* entries of a list */

/** leat_acl_get - read the access control list of a file or directory; symbolic links are followed
 * @v: receives it, up to @cap entries; USER_OBJ, GROUP_OBJ and OTHER alone: the mode says it all
 *
 * Return: the number of entries; -ERANGE: they are more than @cap; -EOPNOTSUPP: the server has no NFSACL.
 */
ssize_t leat_acl_get(struct leat *m, const char *path, struct leat_acl_entry *v, size_t cap);

/** leat_acl_set - replace the access control list of a file or directory, and its mode with it
 * @v: at least USER_OBJ, GROUP_OBJ and OTHER; these alone: it has no list from then on
 *
 * The default list of a directory stays as it is.
 *
 * Return: 0; -EINVAL: no list; -EPERM; -EOPNOTSUPP: the server has no NFSACL, or the file system no lists.
 */
int leat_acl_set(struct leat *m, const char *path, const struct leat_acl_entry *v, size_t n);

/** leat_facl_get, leat_facl_set - the same for an open file */
ssize_t leat_facl_get(struct leat_file *f, struct leat_acl_entry *v, size_t cap);
int leat_facl_set(struct leat_file *f, const struct leat_acl_entry *v, size_t n);

int leat_aio_acl_get(struct leat *m, const char *path, struct leat_acl_entry *v, size_t cap,
		     struct leat_cb cb);
int leat_aio_acl_set(struct leat *m, const char *path, const struct leat_acl_entry *v, size_t n,
		     struct leat_cb cb);
int leat_aio_facl_get(struct leat_file *f, struct leat_acl_entry *v, size_t cap, struct leat_cb cb);
int leat_aio_facl_set(struct leat_file *f, const struct leat_acl_entry *v, size_t n, struct leat_cb cb);

/* ---- directories -------------------------------------------------------------------------- */

/* A directory entry; name is valid until the directory is closed. */
struct leat_dirent {
	const char *name;
	uint64_t ino, cookie;
	bool has_stat;
	struct stat st;
};
int leat_opendir(struct leat *m, const char *path, struct leat_dir **ret);
/** leat_readdir - the next entry, "." and ".." among them; NULL at the end */
const struct leat_dirent *leat_readdir(struct leat_dir *d);
void leat_rewinddir(struct leat_dir *d);
void leat_closedir(struct leat_dir *d); /* NULL is fine */

/* ---- what it cost ------------------------------------------------------------------------- */

struct leat_stats {
	uint64_t calls;
	uint64_t bytes_read, bytes_written;
	uint64_t bytes_copied;     /* by a CPU on this side, sockets and process_vm included */
	uint64_t reconnects, timeouts, credit_waits, regs, sleeps;
	uint64_t not_now;          /* answers NFS3ERR_JUKEBOX, after each of which it was asked again */

	/* registrations, for RDMA, of regs: what they were for, and what became of them */
	uint64_t deregs;           /* ended */
	uint64_t reg_reaped;       /* ... by a thread of their own, so that no call had to wait */
	uint64_t reg_hits;         /* times one was found that was kept */
	uint64_t reg_misses;       /* ... was not */
	uint64_t reg_invalidated;  /* kept ones whose memory was unmapped, or given back */
	uint64_t reg_evicted;      /* kept ones that had to make room */
	uint64_t reg_deferred, reg_flushes; /* left to be ended together; times that was done */
	uint64_t reg_uncacheable;  /* times one could not be kept */
	uint64_t reg_bounced;      /* times data was copied instead */
	uint64_t reg_pinned;       /* bytes that are kept now */
	uint64_t reg_binds;        /* windows bound over them */
	uint64_t reg_local_invs;   /* ... and taken back by this side; the rest, by the server */
};
void leat_stats(struct leat *m, struct leat_stats *ret);

/* The same, asked from a leatd (not from other servers: -EOPNOTSUPP). */
struct leat_server_stats {
	uint64_t cpu_us;           /* user + system of the whole process */
	uint64_t bytes_in, bytes_out, bytes_copied, bytes_placed, bytes_pulled, bytes_direct;
	uint64_t calls, conns;
	uint64_t instance[2];      /* random: another one's counters began anew */
};
int leat_server_stats(struct leat *m, struct leat_server_stats *ret);

/* All its counters, by name; and the URLs it listens on. fn() is called before they return. */
int leat_server_counters(struct leat *m,
			 void (*fn)(void *ctx, const char *name, uint64_t value), void *ctx);
int leat_server_listeners(struct leat *m, void (*fn)(void *ctx, const char *url), void *ctx);

/* ---- where the time goes at a leatd ------------------------------------------------------- */

/* What a request does, at each moment one of these. Where nothing moves apart from the message, over
 * TCP and inline, the transfer is part of FINISH; where the server reads a file straight into this
 * process's memory, of DISK. */
enum leat_where_part {
	LEAT_WHERE_WAITING, /* for its turn, memory, a thread */
	LEAT_WHERE_DISK,    /* for the disk alone */
	LEAT_WHERE_NET,     /* for the network alone */
	LEAT_WHERE_BOTH,    /* both are at work for it */
	LEAT_WHERE_FINISH,  /* its answer is on the way */
	LEAT_WHERE_PARTS
};

struct leat_where_kind {
	uint64_t requests, bytes;
	uint64_t ns[LEAT_WHERE_PARTS];
};

struct leat_where_bucket {
	uint64_t ns;               /* at least so long, and less than 1/32 longer */
	uint64_t count;            /* requests */
};

/* Sums since the server was started, of the requests whose times it took: all that were moved in
 * pieces, disk and network side by side, and one in 16 of the others. */
struct leat_where {
	uint64_t instance[2];      /* as in struct leat_server_stats */
	struct leat_where_kind read, write, other;
	unsigned nstates;
	struct leat_where_state {  /* how long requests of any kind were in each state of theirs */
		char name[32];
		size_t nbuckets;
		const struct leat_where_bucket *buckets; /* none of them empty, rising */
	} states[8];
};

/** leat_server_where - ask a leatd for these sums
 * @ret: the caller's, to be given to leat_where_free()
 *
 * Return: as leat_server_stats(); -EPROTO: the answer is none.
 */
int leat_server_where(struct leat *m, struct leat_where **ret);
void leat_where_free(struct leat_where *w); /* NULL is fine */

/* One request that was moved in pieces. Times are since it came; 0: that has not been. */
struct leat_trace {
	uint32_t xid;
	bool is_write;
	uint32_t bytes;
	uint64_t total_ns;         /* until its answer was out */
	size_t npieces;            /* in the order in which they were begun; at most 1024 */
	struct leat_trace_piece {
		uint32_t off, len; /* within the payload */
		uint64_t disk_begin_ns, disk_end_ns, net_begin_ns, net_end_ns;
	} *pieces;
};

/** leat_server_pieces - take the last trace of a leatd, and have it make another one of the next
 * request in pieces
 * @ret: the caller's, to be given to leat_trace_free()
 *
 * Return: as leat_server_stats(); -EAGAIN: there has been no such request since a trace was last
 * asked for.
 */
int leat_server_pieces(struct leat *m, struct leat_trace **ret);
void leat_trace_free(struct leat_trace *t); /* NULL is fine */

/* ---- orders to a leatd -------------------------------------------------------------------- */

/* For the user who runs it, and root, over local only: -EPERM for others. A leatd that runs inside
 * a program may not be able to: -EOPNOTSUPP. */

/** leat_server_reload - have it read its configuration again
 * @said: receives what it says of that, in @cap bytes
 *
 * Return: 0, the new exports are in force; -EINVAL: there is something wrong with them,
 * leat_error() tells what, and nothing has changed.
 */
int leat_server_reload(struct leat *m, char *said, size_t cap);

/** leat_server_drain - have it end: it accepts no more, and answers what it was asked
 *
 * Return: 0 when it has begun.
 */
int leat_server_drain(struct leat *m);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
