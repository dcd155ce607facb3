/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leat.h - access to files on a leat (or any NFSv3) server from a program, without a kernel mount
 *
 *     struct leat *m;
 *     struct leat_file *f;
 *     if (leat_mount("leat://server/export", NULL, &m) < 0) ...
 *     if (leat_open(m, "/dir/file", O_RDONLY, 0, &f) < 0) ...
 *     ssize_t n = leat_pread(f, buf, sizeof(buf), 0);
 *
 * C:        In strict ISO modes (cc -std=c99), define _POSIX_C_SOURCE as 200809L before the first #include; the default
 *           (-std=gnu..) needs nothing. FALLOC_FL_*, O_PATH, SEEK_DATA and SEEK_HOLE need _GNU_SOURCE.
 * URLs:     SCHEME://HOST[:PORT]/EXPORT/PATH?OPTION=VALUE&...  with SCHEME one of
 *             leat   connects by address, then switches to the fastest transport on which the same
 *                    server instance replies: local, RDMA, TCP (`leat ping` shows which, and why
 *                    no faster one)
 *             rdma, tcp   that transport only
 *             local  local:///run/leat/leatd.sock/EXPORT/PATH: the socket is the longest prefix of
 *                    the path that is a socket
 *           The export is the longest prefix of the path that the server exports; the rest is a
 *           path inside it.
 * Options:  (in the URL, or by leat_set(); defaults in parentheses)
 *             conns=N          connections, 1..16; large I/O is spread over them (1)
 *             threads=N        threads of the session that move data of several connections, 1..16 (1). All but the
 *                              first are the library's; callbacks run on the session's thread as always
 *             credits=N        calls in flight per connection (64)
 *             inline=BYTES     1K..64K, a multiple of 1K (4K)
 *             readahead=BYTES  for sequential leat_read(); 0: none (1 MiB)
 *             cache=auto|none  cache attributes and names, for acmax=TIME at most (auto, 60s);
 *                              none: ask the server each time, no readahead
 *             timeo=TIME       without a reply: reconnect and retransmit (60s; a bare number is in ms)
 *             retry=hard|soft  soft: give up after timeo with ETIMEDOUT (hard)
 *             mountport=N      MOUNT service, if it is not on the NFS port
 *             design=read-write|read-read|hybrid  which side moves the data (read-write, as in RFC 8166);
 *             fast_write=BYTES  writes up to this size go with the call itself, 4k..64k (off). Both are
 *                              for comparison, and the mount fails unless a leatd offers them (`modes`)
 *             registration=auto|dynamic|cache|batch|slab|arena|window,
 *             monitor=uffd|explicit|none,
 *             bounce=BYTES, reg_entries=N, reg_bytes=BYTES, dirty_watermark=N
 *                              how RDMA accesses the caller's memory: leat(7)
 *             socket_user=NAME|UID  leat:// also accepts a local socket of this user (only those of root
 *                              and of the process's own user)
 *             holder=NAME      of block volumes: leat_block.h
 *             unsafe_inv=yes|no  let the server invalidate windows on soft RoCE, too (no)
 *             poll=adaptive|busy|event, spin=TIME  (adaptive, 50us)
 *             uid=N, gid=N     claimed by AUTH_SYS (those of the process)
 *             rsize=, wsize=BYTES  (the server's)
 * Threads:  A session, its mounts and all their files belong to one thread at a time. With leat_service_start()
 *           the library's own thread owns them instead: every function may then be called from any
 *           thread, and callbacks run on the service thread.
 * Memory:   Buffers, paths and structures passed to a function stay the caller's. Data buffers and
 *           ret_ outputs of asynchronous calls must stay valid until the callback has run. Data may
 *           be in any memory; leat_buf_alloc() memory is the fastest.
 * Fork:     Sessions, mounts, files, directories and nodes belong to the process that created them. In its children,
 *           functions on them return -EOWNERDEAD and touch nothing that is shared with the parent. A child may close
 *           its handles: leat_umount() and leat_session_free() then close its copies of the sockets, so that servers
 *           notice the end of the parent. It may create others, also over RDMA.
 *           Memory of leat_buf_alloc() is shared with children of fork(): what a child stores there, the parent and
 *           its servers see. A child must not write to it.
 * Errors:   Functions return 0 (or a count) or -errno and do not set errno; leat_error() has details.
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

struct leat_session; /* an event loop, its thread, registered memory */
struct leat;      /* a mount */
struct leat_file; /* an open file of a mount */
struct leat_dir;  /* an open directory */
struct leat_node; /* a reference to a file or directory */

/** leat_version - version of the library, "0.1.0" */
const char *leat_version(void);

/** leat_registration - name of the @n-th strategy accepted by registration=; NULL: no more */
const char *leat_registration(size_t n);

/* ---- mounting ----------------------------------------------------------------------------- */

/* Options of a mount. Each has the name, values and default of the URL's option; options in the URL take precedence. */
struct leat_opts;

/** leat_opts_create - returns options with all defaults, or NULL: out of memory */
struct leat_opts *leat_opts_create(void);
void leat_opts_destroy(struct leat_opts *o); /* NULL is fine. Mounts do not need the options afterwards */

/** leat_set - sets an option: leat_set(o, "rsize", "1M")
 * @name: of an option of URLs, or one of these, which a URL must not contain:
 *          connect_only=yes   connect without a mount, whatever the server exports. Only leat_info(), leat_null() and
 *                             the functions of leat_admin.h work then
 *          capture=FILE       write the traffic of the local fabric to a file, in pcap format
 *          reg_cost=TIME, reg_page_cost=TIME, dereg_cost=TIME, dereg_page_cost=TIME
 *                             benchmarks only: simulated cost of memory registration on the local fabric, per
 *                             registration, per page of it, and the same of deregistration. The calling thread is
 *                             busy for that time
 *
 * Return: 0; -EINVAL: no such option (leat_error(NULL) names the nearest one, if one is near; leat_option_name() lists
 * all), or an invalid value; -ENOMEM, also if @o is NULL. A failure leaves the options unchanged.
 */
int leat_set(struct leat_opts *o, const char *name, const char *value);

/** leat_set_away - sets a function for messages to the user about a server that does not reply
 * @fn: called with @away true and a reason in @why if the server has not replied for five seconds, and with false when
 * it replies again. It runs on the thread that drives the handle, also during leat_mount(), and must not use the
 * handle. NULL: none
 */
void leat_set_away(struct leat_opts *o, void (*fn)(void *ctx, bool away, const char *why), void *ctx);

/** leat_option_name - name of the @i-th option of leat_set(); NULL: no more */
const char *leat_option_name(size_t i);

/** leat_mount - connects and mounts; blocks
 * @url: see above; its path inside the export, if any, is the base of relative names
 * @opts: may be NULL
 *
 * Return: 0; -EINVAL: invalid URL (see leat_error()); -ECONNREFUSED, -EHOSTUNREACH, -ENOENT (no such export),
 * -EACCES, -ETIMEDOUT, -ENOMEM ...
 */
int leat_mount(const char *url, const struct leat_opts *opts, struct leat **ret);

/* ---- sessions ------------------------------------------------------------------------------ */

/* A session owns an event loop, the thread that runs it, and the buffers; any number of mounts share it. leat_mount()
 * makes a private session for its mount, which leat_umount() ends. A program with several mounts makes a session of
 * its own: its mounts share one loop, one thread, and one registration of their buffers. Mounts of the same server with
 * equal settings share its connections, too. Sessions share nothing with each other. */

/** leat_session_create - creates a session without mounts
 * @opts: poll, spin, threads, unsafe_inv, registration=arena with its reg_bytes, and the laboratory's options are
 * settings of the session; all are defaults of its mounts. May be NULL
 *
 * Return: 0; -ENOMEM; the errno of opening a device or the capture file.
 */
int leat_session_create(const struct leat_opts *opts, struct leat_session **ret);

/** leat_session_mount - connects and mounts, as leat_mount(), as a part of the session @s
 *
 * @opts: NULL: those of the session
 *
 * With the service thread, any thread may call it; without, the thread that owns the session.
 *
 * Return: as leat_mount(); -EINVAL also: @opts or the URL contradict the settings of the session, or @s is the private
 * session of another mount; -EDEADLK: from a
 * callback.
 */
int leat_session_mount(struct leat_session *s, const char *url, const struct leat_opts *opts, struct leat **ret);

/** leat_session_free - ends a session and its service thread. NULL is fine.
 *
 * Its mounts must have ended, and its buffers must have been freed (leat_buf_free(), leat_buf_unregister()).
 *
 * Return: 0; -EBUSY: it has mounts, or buffers that were not freed or unregistered; -EDEADLK: from a callback. In both
 * cases the session continues.
 */
int leat_session_free(struct leat_session *s);

/** leat_session - the session of a mount, for the functions below; valid until leat_umount(). NULL of NULL. */
struct leat_session *leat_session(const struct leat *m);

/** leat_umount - waits for operations in flight, closes all files, ends the mount. NULL is fine.
 * While a hard mount's server does not reply, this function does not return. */
void leat_umount(struct leat *m);

/** leat_umount_within - as leat_umount(), with a time limit
 * @timeout_ms: after this time, operations that are still in flight are cancelled, as by leat_cancel_all(), and files
 * are closed without waiting for the server. -1: no limit
 *
 * Until then, operations that callbacks start are waited for, too; afterwards, functions that start operations return
 * -ECANCELED. If the session is not private and has a service thread, another thread may start an operation as well,
 * as long as the callback of an earlier one has not returned: the mount may end then. With a private session, no other
 * thread may be in a function of the mount. leat_interrupt() does not end this function.
 *
 * The mount has ended when this function returns, except with -EDEADLK.
 *
 * Return: 0; -ETIMEDOUT: operations were cancelled, and data written last may not be stable; -ENOMEM: a file could not
 * be closed, and data written last may not be stable; -EDEADLK: from a callback; -EOWNERDEAD: in a child.
 */
int leat_umount_within(struct leat *m, int timeout_ms);

/** leat_error - text of the last failure on this handle: server and path, procedure, cause
 * "leat://host/export/dir/file: LOOKUP: Permission denied (NFS3ERR_ACCES)"
 * The server is named as in the mounted URL, whatever transport leat:// selected. A function that fails without a call
 * is named instead: "leat://host/export: fallocate: Bad file descriptor". An asynchronous function that returns an
 * error at once may leave the text as it was; so do leat_cancel() and leat_cancel_all().
 * @m: NULL: the last failure of this thread in a function without a handle, such as leat_mount() and leat_set()
 */
const char *leat_error(const struct leat *m);

enum leat_transport { LEAT_TRANSPORT_TCP = 1, LEAT_TRANSPORT_RDMA, LEAT_TRANSPORT_LOCAL };

/* Why a transport is in use */
enum leat_choice {
	LEAT_CHOICE_URL = 1,        /* the URL names it */
	LEAT_CHOICE_FASTEST,        /* leat://: the fastest one that works; LEAT_TEXT_REFUSED has the others */
	LEAT_CHOICE_UNKNOWN_SERVER  /* leat://: the server is no leatd, so only TCP is known */
};

/* The user as which a leatd runs the calls */
enum leat_identity {
	LEAT_IDENTITY_OWN,          /* the caller, as far as the library knows */
	LEAT_IDENTITY_ROOT_SQUASHED, /* the caller is root, and the export squashes root */
	LEAT_IDENTITY_ALL_SQUASHED, /* the export squashes all users */
	LEAT_IDENTITY_SERVER        /* the user of an unprivileged leatd */
};

/* How the server accesses memory of this process */
enum leat_reach {
	LEAT_REACH_NONE,            /* not connected */
	LEAT_REACH_DEVICE,          /* directly, by the RDMA device */
	LEAT_REACH_PROCESS_VM,      /* leat_buf memory directly, other memory by process_vm calls */
	LEAT_REACH_BOUNCE,          /* leat_buf memory directly, other memory by copies */
	LEAT_REACH_SOCKET           /* by copies through a socket */
};

/* Agreed data transfer modes other than RFC 8166: bits of leat_info.modes */
#define LEAT_MODE_READ_READ 1u
#define LEAT_MODE_FAST_WRITE 2u
#define LEAT_MODE_HYBRID 4u

/* Later releases add members at the end. */
struct leat_info {
	size_t size;               /* set by the caller: sizeof(struct leat_info) */
	enum leat_transport transport;
	enum leat_choice choice;
	enum leat_reach reach;
	enum leat_identity identity;
	uint32_t run_uid;          /* uid of this user, unless it is LEAT_IDENTITY_OWN */
	uint32_t uid, gid;         /* claimed by AUTH_SYS; on a local connection the server uses the kernel's
	                            * credentials instead */
	uint32_t nrefused;         /* transports that were tried first and failed: LEAT_TEXT_REFUSED */
	uint32_t conns;
	uint32_t credits;          /* the sum over the connections */
	uint32_t credits_low;      /* the lowest grant of a connection so far */
	uint32_t send_inline, recv_inline; /* 0: a stream */
	uint32_t rsize, wsize;
	uint32_t modes;            /* LEAT_MODE_ bits */
	uint32_t fast_write;       /* maximum bytes of a fast write; 0: no fast writes */
	bool is_leatd;
	bool remote_inv;
	uint64_t instance[2];      /* of a leatd: random, differs after a restart */
	uint64_t reg_bytes;        /* limit of the registrations that are kept after a call; 0: no limit set by the
	                            * library */
	uint64_t reconnects;
};

/** leat_info - describes the connections of a mount in numbers and codes
 * @info: size is set; a program built for an older release gets the members that it knows, and one built for a newer
 * release gets zeros in the others
 *
 * Return: 0; -EINVAL: impossible size.
 */
int leat_info(struct leat *m, struct leat_info *info);

enum leat_text {
	LEAT_TEXT_URL = 1,         /* server and export, with the address in use */
	LEAT_TEXT_GIVEN_URL,       /* server and export as in the caller's URL; leat_error() uses it */
	LEAT_TEXT_PATH,            /* path of the URL inside the export; "" for its root */
	LEAT_TEXT_TRANSPORT,       /* "local", "rdma", "tcp" */
	LEAT_TEXT_CHOSEN,          /* why this transport was selected, and why no faster one */
	LEAT_TEXT_REFUSED,         /* a transport that was tried first, and why it failed: "rdma://10.0.0.7:20049: ...",
	                            * or "rdma: ..." if the server has no such listener; index 0 to nrefused - 1 */
	LEAT_TEXT_SERVER,          /* "leatd 0.1.0 instance 1a2b...", or "unknown NFS server" */
	LEAT_TEXT_IDENTITY,        /* how a leatd maps this user: "export /x squashes root ..."; "": not mapped */
	LEAT_TEXT_DEVICE,
	LEAT_TEXT_REACH,           /* how the server accesses memory of this process */
	LEAT_TEXT_REGISTRATION,    /* the strategy in use */
	LEAT_TEXT_KEPT,            /* which registrations are kept after a call, or why it is not the requested strategy */
	LEAT_TEXT_MODES            /* agreed modes, "read-read"; "": those of RFC 8166 only */
};

/** leat_describe - writes a text for users about a mount
 * @index: 0, except for LEAT_TEXT_REFUSED
 * @buf: receives up to @cap - 1 bytes and NUL; "" on failure
 *
 * Return: length of the whole text, also if @buf has the beginning only; -ENOENT: no such text; -EINVAL: @cap is 0.
 */
int leat_describe(struct leat *m, enum leat_text what, size_t index, char *buf, size_t cap);

/* ---- event loops -------------------------------------------------------------------------- */

/** leat_fd - descriptor for poll or epoll: readable when leat_poll() has work */
int leat_fd(const struct leat_session *s);

/** leat_poll - processes ready events; callbacks run inside this function
 * @timeout_ms: 0: do not wait; -1: wait indefinitely
 * Before sleeping on leat_fd(), call it with 0 until it returns 0. That arms the descriptor.
 *
 * Return: number of processed events, or -errno.
 */
int leat_poll(struct leat_session *s, int timeout_ms);

/** leat_service_start - passes the session to a thread of the library
 * The caller must not use leat_poll() until leat_service_stop(). */
int leat_service_start(struct leat_session *s);
void leat_service_stop(struct leat_session *s);

/* ---- callbacks ---------------------------------------------------------------------------- */

/* Completion of an asynchronous call. fn(user_data, result) runs once; result is the return value of the synchronous
 * function. Then free(user_data) runs, if set. If the asynchronous call itself returns an error, only free runs. So
 * user_data is consumed in every outcome. */
struct leat_cb {
	void (*fn)(void *user_data, int64_t result);
	void *user_data;
	void (*free)(void *user_data);
};

/* ---- cancelling -------------------------------------------------------------------------- */

/* A cancelled operation runs its callback once, as any other. The callback does not run inside the function that
 * cancels, and no server can access the memory of the operation when it runs. Its result is
 *   the result of the operation, if it has ended in the meantime. Of a write, the number of bytes may be short.
 *   -ECANCELED     the operation has changed nothing at the server
 *   -EINPROGRESS   the operation changes something, and the server may have executed it or a part of it, or may
 *                  execute it later: a call that was sent cannot be taken back
 * A file whose leat_close() is cancelled is closed; data written last may not be stable. Instead of
 * -ECANCELED, it returns -EINPROGRESS if the file was removed while it was open: the close removes its hidden name.
 * Cancelling waits for no server. It blocks only while a server on the same host copies to or from the memory of a
 * call. */

/** leat_cancel - cancels all operations of @m in flight whose callback has this @user_data; also in a callback
 * With the service thread, any thread may call it.
 *
 * Return: 0: they end soon; -ENOENT: there are none, or they have ended already.
 */
int leat_cancel(struct leat *m, const void *user_data);

/** leat_cancel_all - cancels all operations of @m in flight, synchronous ones of other threads too; else as leat_cancel()
 */
int leat_cancel_all(struct leat *m);

/** leat_interrupt - ends the synchronous call of @m in progress with -EINTR, or with -EINPROGRESS, as above. Without
 * such a call, the next one ends at once with -EINTR. leat_close() that ends with either has closed the file.
 *
 * Any thread; also in a signal handler: it is async-signal-safe. A signal alone ends no call: synchronous functions
 * continue after signal handlers, as with SA_RESTART. Asynchronous operations continue.
 */
void leat_interrupt(struct leat *m);

/* ---- data buffers ------------------------------------------------------------------------- */

/** leat_buf_alloc - allocates page-aligned memory for zero-copy I/O: registered once, and mapped by a server on the
 * same host
 *
 * One large buffer, divided by the program, is better than many small ones. A buffer of 2 MiB or more lies in huge
 * pages where Linux supports it (6.1); a server on the same host then reads from its disk into a few segments instead
 * of hundreds. A server on the same host reads into it without a copy if address and length are multiples of the page
 * size.
 *
 * A call may time out or be retransmitted while the server's disk still uses its buffer. The library then replaces
 * the pages of that buffer with others of the same content; the address stays. A program that has pinned the pages by
 * other means (fixed buffers of io_uring, a registration of another library) must pin them again.
 *
 * Children of fork() share the memory, and must not write to it: see "Fork" above.
 *
 * Return: 0, -ENOMEM, -EINVAL. */
int leat_buf_alloc(struct leat_session *s, size_t bytes, void **ret);
/** leat_buf_free - frees a buffer; no I/O may be in flight in it. NULL is fine.
 * Call it before the session ends: before leat_session_free(), or before leat_umount() of a mount of leat_mount(). */
void leat_buf_free(struct leat_session *s, void *buf);

/** leat_buf_register - marks the program's own memory for registration at first use; the registration is kept
 * @mem: must stay mapped to the same pages until leat_buf_unregister(), which must come before the session ends
 *
 * Read-only memory can be used for writes to files.
 *
 * Return: 0; -EINVAL: 0 bytes; -EFAULT: not mapped; -EEXIST: overlaps leat_buf memory; -ENOMEM.
 */
int leat_buf_register(struct leat_session *s, void *mem, size_t bytes);
/** leat_buf_unregister - waits until no call in flight uses it; after the return no server can access it
 *
 * Return: 0; -ENOENT: no registration begins at this address; -EDEADLK: inside a callback.
 */
int leat_buf_unregister(struct leat_session *s, void *mem);

/* ---- files: asynchronous ------------------------------------------------------------------ */

/* Each function starts the operation and returns 0, or fails at once with -errno (-ENOMEM, -EINVAL). Paths are
 * absolute from the root of the export, or relative to the path of the URL. Requests on one handle may complete in
 * any order. pread and pwrite accept any length and split it by rsize or wsize. A short count means end of file
 * (read), or an error at a higher offset (write). */
int leat_aio_open(struct leat *m, const char *path, int flags, mode_t mode,
		  struct leat_file **ret_file, struct leat_cb cb);
int leat_aio_close(struct leat_file *f, struct leat_cb cb); /* commits unstable writes */
int leat_aio_pread(struct leat_file *f, void *buf, size_t len, uint64_t off, struct leat_cb cb);
int leat_aio_pwrite(struct leat_file *f, const void *buf, size_t len, uint64_t off,
		    struct leat_cb cb);
int leat_aio_preadv(struct leat_file *f, const struct iovec *iov, int cnt, uint64_t off,
		    struct leat_cb cb);
int leat_aio_pwritev(struct leat_file *f, const struct iovec *iov, int cnt, uint64_t off,
		     struct leat_cb cb);
int leat_aio_fsync(struct leat_file *f, struct leat_cb cb);
int leat_aio_ftruncate(struct leat_file *f, uint64_t size, struct leat_cb cb);
int leat_aio_fallocate(struct leat_file *f, int mode, uint64_t off, uint64_t len, struct leat_cb cb);
int leat_aio_seek_data(struct leat_file *f, uint64_t off, struct leat_cb cb);
int leat_aio_seek_hole(struct leat_file *f, uint64_t off, struct leat_cb cb);
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
		     struct leat_cb cb); /* NULL: now; UTIME_NOW and UTIME_OMIT are supported */
int leat_aio_lutimens(struct leat *m, const char *path, const struct timespec times[2],
		      struct leat_cb cb);
int leat_aio_access(struct leat *m, const char *path, int mode, struct leat_cb cb);
int leat_aio_statvfs(struct leat *m, const char *path, struct statvfs *ret_st, struct leat_cb cb);
int leat_aio_opendir(struct leat *m, const char *path, struct leat_dir **ret_dir,
		     struct leat_cb cb); /* reads the first page */
int leat_aio_dir_read(struct leat_dir *d, uint64_t cookie, struct leat_cb cb);
int leat_aio_null(struct leat *m, struct leat_cb cb); /* the NULL procedure: one round trip */

/* ---- files: synchronous = asynchronous call + wait ----------------------------------------- */

int leat_open(struct leat *m, const char *path, int flags, mode_t mode, struct leat_file **ret);
int leat_creat(struct leat *m, const char *path, mode_t mode, struct leat_file **ret);
int leat_close(struct leat_file *f); /* 0, or the error of data that did not become stable */
ssize_t leat_pread(struct leat_file *f, void *buf, size_t len, uint64_t off);
ssize_t leat_pwrite(struct leat_file *f, const void *buf, size_t len, uint64_t off);
ssize_t leat_preadv(struct leat_file *f, const struct iovec *iov, int cnt, uint64_t off);
ssize_t leat_pwritev(struct leat_file *f, const struct iovec *iov, int cnt, uint64_t off);
/** leat_read, leat_write, leat_lseek - use the file's own position; leat_read() of a sequential reader uses readahead
 * With O_APPEND, leat_write() writes at the end of the file as last reported by the server, which is all that NFS
 * supports. In a striped volume clients that append do not overlap, also if others cut the file; the place of a write that
 * fails reads as zeroes, or has a part of it. */
ssize_t leat_read(struct leat_file *f, void *buf, size_t len);
ssize_t leat_write(struct leat_file *f, const void *buf, size_t len);
int64_t leat_lseek(struct leat_file *f, int64_t off, int whence);
int leat_fsync(struct leat_file *f);
int leat_ftruncate(struct leat_file *f, uint64_t size);
/** leat_fallocate - allocates the space of a range, or frees it; on disk when it returns 0
 * @mode: as of fallocate(2): 0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, or FALLOC_FL_ZERO_RANGE
 * with or without FALLOC_FL_KEEP_SIZE
 *
 * A range of more than 1 GiB takes several calls of the server, except to free it. After a failure a part of the range
 * may be changed.
 *
 * Return: 0; -EBADF: not open for writing; -EINVAL: @len is 0; -EFBIG; -ENOSPC; -EROFS; -EOPNOTSUPP: another mode, the
 * server is not a leatd, or its file system does not support the mode.
 */
int leat_fallocate(struct leat_file *f, int mode, uint64_t off, uint64_t len);
/** leat_seek_data, leat_seek_hole - find the first byte at or after @off that is data, or in a hole
 * The end of the file counts as a hole. The position of leat_read() stays; leat_lseek() with SEEK_DATA or SEEK_HOLE sets
 * it.
 *
 * Return: the offset; -ENXIO: no such byte, or @off is not inside the file; -EBADF: not open for reading; -EOPNOTSUPP:
 * the server is not a leatd.
 */
int64_t leat_seek_data(struct leat_file *f, uint64_t off);
int64_t leat_seek_hole(struct leat_file *f, uint64_t off);
int leat_fstat(struct leat_file *f, struct stat *ret_st);
int leat_fchmod(struct leat_file *f, mode_t mode);
int leat_fchown(struct leat_file *f, uid_t uid, gid_t gid);
int leat_futimens(struct leat_file *f, const struct timespec times[2]);

int leat_stat(struct leat *m, const char *path, struct stat *ret_st);
int leat_lstat(struct leat *m, const char *path, struct stat *ret_st);
int leat_truncate(struct leat *m, const char *path, uint64_t size);
int leat_mkdir(struct leat *m, const char *path, mode_t mode);
int leat_rmdir(struct leat *m, const char *path);
/** leat_unlink, leat_rename - a file that loses its last name while this mount has it open remains usable until it is
 * closed. Until then it has a hidden name in its directory, ".leat-removed-" and 16 hexadecimal digits: leat(7) */
int leat_unlink(struct leat *m, const char *path);
int leat_rename(struct leat *m, const char *from, const char *to);
int leat_link(struct leat *m, const char *from, const char *to);
int leat_symlink(struct leat *m, const char *target, const char *path);
ssize_t leat_readlink(struct leat *m, const char *path, char *buf, size_t cap);
int leat_mknod(struct leat *m, const char *path, mode_t mode, dev_t dev);
int leat_chmod(struct leat *m, const char *path, mode_t mode);
int leat_chown(struct leat *m, const char *path, uid_t uid, gid_t gid); /* changes a link itself */
int leat_utimens(struct leat *m, const char *path, const struct timespec times[2]);
int leat_lutimens(struct leat *m, const char *path, const struct timespec times[2]); /* changes a link itself */
int leat_access(struct leat *m, const char *path, int mode);
int leat_statvfs(struct leat *m, const char *path, struct statvfs *ret_st);
int leat_null(struct leat *m);

/** leat_fchdir - sets the directory at which relative paths of @m start
 * @dir: open (O_PATH | O_DIRECTORY suffices), on @m or on another mount of the same export; it may be closed
 * afterwards. NULL: the path of the URL again
 *
 * The directory stays the same if it is renamed. A relative path of one component cannot be redirected by a symbolic
 * link that another user puts in place of a parent directory. The setting applies to the whole mount, as fchdir(2)
 * applies to the whole process. No operation with a relative path may be in flight, because each path is resolved
 * from the setting at that time.
 *
 * Return: 0; -EINVAL: no mount; -ENOTDIR.
 */
int leat_fchdir(struct leat *m, const struct leat_file *dir);

/* ---- access control lists ----------------------------------------------------------------- */

/* An entry of a POSIX access control list (acl(5)). Lists are transferred by NFSACL, which leatd and the Linux server
 * support. */
enum leat_acl_tag {
	LEAT_ACL_USER_OBJ = 1, /* the owner */
	LEAT_ACL_USER = 2,     /* a user, by id */
	LEAT_ACL_GROUP_OBJ = 4,
	LEAT_ACL_GROUP = 8,
	LEAT_ACL_MASK = 16,
	LEAT_ACL_OTHER = 32
};

struct leat_acl_entry {
	uint16_t tag;
	uint16_t perm;         /* 4: read, 2: write, 1: execute or search */
	uint32_t id;           /* of USER and GROUP; otherwise 0 */
};

#define LEAT_ACL_MAX 1024u     /* maximum entries of a list */

/** leat_acl_get - reads the access control list of a file or directory; follows symbolic links
 * @v: receives up to @cap entries; only USER_OBJ, GROUP_OBJ and OTHER if the file has no list beyond its mode
 *
 * Return: the number of entries; -ERANGE: more than @cap; -EOPNOTSUPP: the server has no NFSACL.
 */
ssize_t leat_acl_get(struct leat *m, const char *path, struct leat_acl_entry *v, size_t cap);

/** leat_acl_set - replaces the access control list of a file or directory, and with it the mode
 * @v: at least USER_OBJ, GROUP_OBJ and OTHER; with only these, the file has no list afterwards
 *
 * The default list of a directory is not changed.
 *
 * Return: 0; -EINVAL: invalid list; -EPERM; -EOPNOTSUPP: the server has no NFSACL, or the file system has no lists.
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

/* ---- nodes -------------------------------------------------------------------------------- */

/* A counted reference to a file or directory of a mount. It refers to the object itself, whatever its name becomes. In
 * the functions below, @at is the node at which @path begins, as in openat(2): @path is one name or several
 * components; "" or NULL is the node itself; an absolute path begins at the root of the export, and ".." ends there.
 * Functions that create, remove or rename a name need one: "" is -ENOENT, NULL is -EINVAL.
 *
 * If the last component is a symbolic link, leat_node_open() (without O_NOFOLLOW), _create() (without O_EXCL),
 * _opendir(), _access(), _statvfs(), _acl_get() and _acl_set() follow it. The others act on the link. A node of a link
 * is never followed.
 *
 * ret_node (with a reference for the caller), ret_st and other outputs are set on success only. ret_node and ret_st may
 * be NULL.
 *
 * Nodes remain valid memory after leat_umount(), which must not run at the same time as a function of a node of its
 * mount. Afterwards, these functions return -ESTALE.
 *
 * Return, in addition to the errors of the path functions: -EINVAL: no node; -ENOTDIR: a path that begins at a node
 * that is not a directory; -ESTALE: the object is gone from the server, or the mount has ended; -EXDEV: two nodes of
 * different mounts.
 */

/** leat_node_get - returns a node for @path, which begins like that of leat_stat(); follows symbolic links
 * @path: "": the path of the URL
 */
int leat_node_get(struct leat *m, const char *path, struct leat_node **ret_node);

/** leat_node_lookup - returns a node for @path, and its attributes; does not follow a link in the last component */
int leat_node_lookup(struct leat_node *at, const char *path, struct leat_node **ret_node, struct stat *ret_st);

/** leat_node_ref - adds a reference to @n; any thread. Return: @n; NULL of NULL */
struct leat_node *leat_node_ref(struct leat_node *n);

/** leat_node_put - drops a reference; any thread, also after leat_umount(). NULL is fine.
 * Operations hold their nodes, so a node may be dropped while one is in flight.
 */
void leat_node_put(struct leat_node *n);

/** leat_node_open - opens a file or directory; flags and errors as leat_open() */
int leat_node_open(struct leat_node *at, const char *path, int flags, mode_t mode, struct leat_file **ret);

/** leat_node_create - opens a file with O_CREAT and returns its node, its attributes and the open file
 * @flags: an access mode, O_EXCL, O_TRUNC, ... O_CREAT is implied; O_PATH: -EINVAL
 *
 * If there is no memory for the results, the file may have been created nevertheless.
 */
int leat_node_create(struct leat_node *at, const char *path, int flags, mode_t mode, struct leat_node **ret_node,
		     struct stat *ret_st, struct leat_file **ret_file);

/** leat_node_mkdir, leat_node_symlink, leat_node_mknod - create an object and return its node and attributes
 * The reply to the creation usually has both. Otherwise the new name is looked up, if the caller wants one of them.
 */
int leat_node_mkdir(struct leat_node *at, const char *path, mode_t mode, struct leat_node **ret_node,
		    struct stat *ret_st);
int leat_node_symlink(struct leat_node *at, const char *target, const char *path, struct leat_node **ret_node,
		      struct stat *ret_st);
int leat_node_mknod(struct leat_node *at, const char *path, mode_t mode, dev_t dev, struct leat_node **ret_node,
		    struct stat *ret_st);

/** leat_node_link - gives the object @n another name, @path at @at */
int leat_node_link(struct leat_node *n, struct leat_node *at, const char *path);
/** leat_node_unlink, leat_node_rmdir - remove a name */
int leat_node_unlink(struct leat_node *at, const char *path);
int leat_node_rmdir(struct leat_node *at, const char *path);
/** leat_node_rename - renames @from at @at to @to at @at2 */
int leat_node_rename(struct leat_node *at, const char *from, struct leat_node *at2, const char *to);
/** leat_node_readlink - reads the target of a link; Return: its length; not NUL-terminated, truncated at @cap */
ssize_t leat_node_readlink(struct leat_node *at, const char *path, char *buf, size_t cap);

/** leat_node_getattr - gets the attributes */
int leat_node_getattr(struct leat_node *at, const char *path, struct stat *ret_st);

enum leat_set {
	LEAT_SET_MODE = 1,
	LEAT_SET_UID = 2,
	LEAT_SET_GID = 4,
	LEAT_SET_SIZE = 8,
	LEAT_SET_ATIME = 16,
	LEAT_SET_MTIME = 32,
	LEAT_SET_GUARD = 64        /* only if the ctime at the server is guard_ctime */
};

/* Attributes to change. Later versions may have more members; those that a program does not know are not set. */
struct leat_setattr {
	size_t size;               /* sizeof(struct leat_setattr) */
	unsigned mask;             /* of enum leat_set: the members below that are used */
	mode_t mode;
	uid_t uid;
	gid_t gid;
	uint64_t file_size;
	struct timespec atime, mtime; /* tv_nsec may be UTIME_NOW, for the server's time */
	struct timespec guard_ctime;  /* st_ctim of an earlier call */
};

/** leat_node_setattr - changes all attributes in @set->mask by one call, and returns the attributes after it
 *
 * Return: -EBUSY: the ctime is not guard_ctime, nothing has changed; -EINVAL: an unknown bit of the mask, a size too
 * small, invalid values, or LEAT_SET_SIZE of what is neither a file nor a directory; -EISDIR; -E2BIG: members of a
 * newer version are set; -EOVERFLOW: a time before 1970 or after 2106.
 */
int leat_node_setattr(struct leat_node *at, const char *path, const struct leat_setattr *set, struct stat *ret_st);

/** leat_node_access, _statvfs, _opendir, _acl_get, _acl_set - as leat_access() ... leat_acl_set() */
int leat_node_access(struct leat_node *at, const char *path, int mode);
int leat_node_statvfs(struct leat_node *at, const char *path, struct statvfs *ret_st);
int leat_node_opendir(struct leat_node *at, const char *path, struct leat_dir **ret);
ssize_t leat_node_acl_get(struct leat_node *at, const char *path, struct leat_acl_entry *v, size_t cap);
int leat_node_acl_set(struct leat_node *at, const char *path, const struct leat_acl_entry *v, size_t n);

#define LEAT_NODE_EXPORT_MAX 81u /* no node has more bytes */

/** leat_node_export - writes @n as bytes from which any mount of the same export, also of another process or host, can
 * make a node
 * @buf: of @cap bytes; with @cap 0 only the length is returned
 *
 * Return: the length; -ERANGE: more than @cap; -ESTALE: the mount has ended.
 */
ssize_t leat_node_export(const struct leat_node *n, void *buf, size_t cap);

/** leat_node_import - returns a node for bytes that leat_node_export() wrote
 * Makes no call to the server. If the object is gone, the first operation on the node fails with -ESTALE. The bytes
 * give no rights: the server checks the handle and the user as for any other call.
 *
 * Return: 0; -EINVAL: no such bytes; -EXDEV: of another export; -ENOMEM.
 */
int leat_node_import(struct leat *m, const void *buf, size_t len, struct leat_node **ret_node);

/* The same, asynchronously. */
int leat_aio_node_get(struct leat *m, const char *path, struct leat_node **ret_node, struct leat_cb cb);
int leat_aio_node_lookup(struct leat_node *at, const char *path, struct leat_node **ret_node, struct stat *ret_st,
			 struct leat_cb cb);
int leat_aio_node_open(struct leat_node *at, const char *path, int flags, mode_t mode, struct leat_file **ret_file,
		       struct leat_cb cb);
int leat_aio_node_create(struct leat_node *at, const char *path, int flags, mode_t mode, struct leat_node **ret_node,
			 struct stat *ret_st, struct leat_file **ret_file, struct leat_cb cb);
int leat_aio_node_mkdir(struct leat_node *at, const char *path, mode_t mode, struct leat_node **ret_node,
			struct stat *ret_st, struct leat_cb cb);
int leat_aio_node_symlink(struct leat_node *at, const char *target, const char *path, struct leat_node **ret_node,
			  struct stat *ret_st, struct leat_cb cb);
int leat_aio_node_mknod(struct leat_node *at, const char *path, mode_t mode, dev_t dev, struct leat_node **ret_node,
			struct stat *ret_st, struct leat_cb cb);
int leat_aio_node_link(struct leat_node *n, struct leat_node *at, const char *path, struct leat_cb cb);
int leat_aio_node_unlink(struct leat_node *at, const char *path, struct leat_cb cb);
int leat_aio_node_rmdir(struct leat_node *at, const char *path, struct leat_cb cb);
int leat_aio_node_rename(struct leat_node *at, const char *from, struct leat_node *at2, const char *to,
			 struct leat_cb cb);
int leat_aio_node_readlink(struct leat_node *at, const char *path, char *buf, size_t cap, struct leat_cb cb);
int leat_aio_node_getattr(struct leat_node *at, const char *path, struct stat *ret_st, struct leat_cb cb);
int leat_aio_node_setattr(struct leat_node *at, const char *path, const struct leat_setattr *set,
			  struct stat *ret_st, struct leat_cb cb);
int leat_aio_node_access(struct leat_node *at, const char *path, int mode, struct leat_cb cb);
int leat_aio_node_statvfs(struct leat_node *at, const char *path, struct statvfs *ret_st, struct leat_cb cb);
int leat_aio_node_opendir(struct leat_node *at, const char *path, struct leat_dir **ret_dir, struct leat_cb cb);
int leat_aio_node_acl_get(struct leat_node *at, const char *path, struct leat_acl_entry *v, size_t cap,
			  struct leat_cb cb);
int leat_aio_node_acl_set(struct leat_node *at, const char *path, const struct leat_acl_entry *v, size_t n,
			  struct leat_cb cb);

/* ---- directories -------------------------------------------------------------------------- */

/* A directory is read in pages: as many entries as one reply of the server holds. The memory of a directory is that of
 * its largest page, however many entries it has. "." and ".." are entries too. */
struct leat_dirent {
	const char *name;
	uint64_t ino;
	uint64_t cookie;           /* position after this entry, for leat_dir_read() */
	bool has_stat;
	struct stat st;            /* if has_stat: attributes when the page was read; links are not followed */
};

/** leat_opendir - opens a directory and reads its first page
 *
 * Return: 0; -ENOTDIR, -EACCES, -ENOENT ...; as leat_dir_read().
 */
int leat_opendir(struct leat *m, const char *path, struct leat_dir **ret);

/** leat_dir_read - reads the page of entries that follow @cookie into the memory of the directory
 * @cookie: of an entry of this directory, also of an earlier page or another struct leat_dir; 0: the beginning
 *
 * The first call with 0 after leat_opendir() uses the page that leat_opendir() has read. leat_readdir() continues with
 * the first entry of the page. One read of a directory can be in flight.
 *
 * A server that detects an invalid cookie (it never was, or entries have moved) returns NFS3ERR_BAD_COOKIE: -ESTALE.
 * Then only a new listing from the beginning is complete. Other servers, leatd among them, continue at the nearest
 * position after such a cookie.
 *
 * Return: number of entries, 0 at the end; -ESTALE: cookie rejected, or directory removed, or unmounted; -EREMOTEIO:
 * invalid reply; -EBUSY: a read is in flight; -ECANCELED: leat_closedir() was called meanwhile; -EBADF: @d is NULL.
 * After an error the page is empty.
 */
ssize_t leat_dir_read(struct leat_dir *d, uint64_t cookie);

/** leat_dir_entry - returns entry @i of the page
 *
 * Return: valid until the next read or close; NULL: @i is not less than the number of entries, or a read is in flight.
 */
const struct leat_dirent *leat_dir_entry(const struct leat_dir *d, size_t i);

/** leat_readdir - returns the next entry; waits for the next page after the last entry of a page
 * @ret: valid until the next page is read, that is until the next call of any of these functions
 *
 * After an error, a further call tries the same position again.
 *
 * Return: 1: an entry; 0: end of the directory; or as leat_dir_read().
 */
int leat_readdir(struct leat_dir *d, const struct leat_dirent **ret);

/** leat_rewinddir - moves to the beginning; the directory is read again
 *
 * Return: 0; -EBUSY: a read is in flight; -EBADF: @d is NULL; -ESTALE: the mount has ended.
 */
int leat_rewinddir(struct leat_dir *d);

/** leat_closedir - closes a directory, also after leat_umount(); NULL is fine
 * A read in flight ends with -ECANCELED.
 */
void leat_closedir(struct leat_dir *d);

/* ---- counters ------------------------------------------------------------------------------- */

/* Sums since the session was created, over all its mounts (jukebox_retries: of this mount), by name and index. Names
 * never change; later releases add counters.
 *   calls, replies       calls started and finished
 *   bytes_in, bytes_out  data read and written
 *   bytes_copied         copied by a CPU of this host, including socket and process_vm copies
 *   bytes_direct         transferred by the kernel directly into the caller's memory
 *   reconnects, timeouts, credit_waits, sleeps
 *   jukebox_retries      NFS3ERR_JUKEBOX replies; the call is retried after each
 * Registrations for RDMA:
 *   regs, deregs         registrations, deregistrations
 *   reg_reaped           ... in the background, so that no call had to wait
 *   reg_hits, reg_misses lookups that found a cached registration, or none
 *   reg_invalidated      cached registrations that ended because their memory was unmapped or freed
 *   reg_evicted          cached registrations evicted to make room
 *   reg_deferred, reg_flushes    deregistrations deferred for batching; batches
 *   reg_uncacheable      registrations that could not be cached
 *   reg_bounced          payloads copied through a bounce buffer instead
 *   reg_pinned           bytes registered in the cache now
 *   binds, local_invs    memory windows bound over registrations; invalidated by this side, the rest by the server
 * The others are counters of librpcrdma: rpcrdma_loop.h describes them. conns and conns_total are 0: leat_info() has
 * the number of connections. */

/** leat_stat_name - name of the @i-th counter; NULL: no more */
const char *leat_stat_name(size_t i);

/** leat_stats - reads the first @n counters
 *
 * Return: how many counters there are. In a child of the process that mounted, their values are 0.
 */
size_t leat_stats(struct leat *m, uint64_t *values, size_t n);

/** leat_stat_value - reads the counter @name; Return: 0; -ENOENT: no such counter; -EINVAL: no mount */
int leat_stat_value(struct leat *m, const char *name, uint64_t *ret);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
