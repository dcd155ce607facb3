/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leat_block.h - access to block volumes of a leatd: disks that one or several machines use over the network
 *
 *     struct leat_block *b;
 *     if (leat_block_attach("rdma://server/block/vol0", NULL, 0, &b) < 0) ...
 *     ssize_t n = leat_block_pwrite(b, buf, 4096, 0, 0);
 *     if (leat_block_flush(b) < 0) ...
 *     leat_block_detach(b);
 *
 * URLs:     SCHEME://HOST[:PORT]/block/NAME?OPTION=VALUE&...  with the schemes and options of leat.h, and
 *             local:///run/leat/leatd.sock/block/NAME. NAME has 1 to 63 bytes and no slash. Attachments with the server
 *             and settings of a mount of the same session share its connections. conns=N spreads a volume over
 *             connections.
 *           holder=NAME names the holder of the attachment, with 1 to 63 bytes. Default: 16 random hexadecimal digits,
 *             the same for all attachments of a process.
 * Holders:  An exclusive volume has one holder, a shared volume any number. If a holder attaches again, its earlier
 *           attachment to the volume ends: functions of that one return -ESTALE. So do those of a holder that another
 *           one took over from. Nothing that they have sent is executed after the new attachment exists.
 * Ranges:   Offsets and lengths are multiples of the block size: otherwise -EINVAL. A range beyond the end fails as a
 *           whole: -EINVAL to read, -ENOSPC to change. Before that, the library asks the server whether the volume has
 *           grown. A function succeeds for its whole range, or fails. After a failure, any part of a range to change may
 *           be changed.
 * Flushing: Completed changes survive a crash of the server's machine when a leat_block_flush() that started after their
 *           completion has succeeded; a write with LEAT_BLOCK_FUA, when it has completed. If the server lost changes that
 *           were not flushed, the next flush or write with LEAT_BLOCK_FUA returns -EIO, and so do all later ones:
 *           detach, attach, and write again what was not flushed.
 * Others:   Threads, memory, fork and errors are as in leat.h. leat_block_handle() returns a handle for its functions:
 *           leat_error(), leat_cancel(), leat_interrupt(), leat_session(), leat_info(), leat_stats() ...
 */
#ifndef LEAT_BLOCK_H
#define LEAT_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "leat.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct leat_block; /* an attachment to a volume */

#define LEAT_BLOCK_NAME_MAX 63u
#define LEAT_BLOCK_TEXT_MAX 127u

/* ---- attaching ------------------------------------------------------------------------------ */

/* Flags of leat_block_attach() */
#define LEAT_BLOCK_RDONLY 1u      /* functions that change the volume return -EROFS */
#define LEAT_BLOCK_TAKE_OVER 2u   /* of an exclusive volume: end the attachment of any other holder first */
#define LEAT_BLOCK_LOOK 4u        /* connect without attaching: only functions that say so work. The URL may have no
                                   * /NAME, and no /block */

/** leat_block_attach - connects and attaches to a volume; blocks
 * @opts: may be NULL
 * @flags: LEAT_BLOCK_RDONLY, LEAT_BLOCK_TAKE_OVER, LEAT_BLOCK_LOOK
 *
 * leat_error(NULL) has the reason of a failure; that of -EBUSY names the present holder.
 *
 * Return: 0; as leat_mount(); -EBUSY: another holder has the volume; -ENOENT: no such volume; -EACCES: this user or host
 * may not use it, or not take it over; -EROFS: the volume is read-only, use LEAT_BLOCK_RDONLY; -ETIMEDOUT: operations of
 * the earlier attachment have not ended within 30 s, they are fenced: try again; -EPROTONOSUPPORT: the server has no
 * volumes; -EREMOTEIO: invalid reply.
 */
int leat_block_attach(const char *url, const struct leat_opts *opts, unsigned flags, struct leat_block **ret);

/** leat_session_attach - the same, as a part of the session @s: see leat_session_mount()
 * @opts: NULL: those of the session
 *
 * Return: also -EINVAL: @opts or the URL contradict the settings of the session; -EDEADLK: from a callback.
 */
int leat_session_attach(struct leat_session *s, const char *url, const struct leat_opts *opts, unsigned flags,
			struct leat_block **ret);

/** leat_block_detach - waits for operations in flight, and detaches. NULL is fine.
 * It does not flush. While the server of a hard attachment does not reply, this function does not return.
 *
 * Return: as leat_block_detach_within().
 */
int leat_block_detach(struct leat_block *b);

/** leat_block_detach_within - as leat_block_detach(), with a time limit
 * @timeout_ms: after this time, operations that are still in flight are cancelled. -1: no limit
 *
 * The attachment has ended for this process when the function returns, except with -EDEADLK. If the server was not
 * reached in time, the holder keeps the volume there as long as it has connections, and then for 60 s.
 *
 * Return: 0; -ETIMEDOUT: the time was up, or operations of this holder have not ended at the server; -ESTALE: the
 * attachment had ended before; -EDEADLK: from a callback; -EOWNERDEAD: in a child; other errors of the call.
 */
int leat_block_detach_within(struct leat_block *b, int timeout_ms);

/** leat_block_handle - the handle of an attachment, for leat_error(), leat_cancel(), leat_session() and others
 * Valid until the end of leat_block_detach(); never pass it to leat_umount(). It has no files. NULL of NULL.
 */
struct leat *leat_block_handle(const struct leat_block *b);

/* ---- description ------------------------------------------------------------------------------ */

/* Later releases add members at the end. */
struct leat_block_info {
	size_t size;                        /* set by the caller: sizeof(struct leat_block_info) */
	char name[LEAT_BLOCK_NAME_MAX + 1];
	uint64_t bytes;                     /* a multiple of block */
	uint32_t block;                     /* offsets and lengths are multiples of it; a power of two */
	uint32_t preferred;                 /* bytes: the best unit for large I/O */
	uint32_t holders;                   /* their number */
	bool rdonly;                        /* the volume, or this attachment */
	bool shared;                        /* any number of holders */
	bool can_discard;                   /* else leat_block_discard() returns -EOPNOTSUPP */
	bool fast_zero;                     /* leat_block_zero() writes no data, with LEAT_BLOCK_KEEP or without */
	bool can_extents;                   /* else leat_block_extents() reports data only */
	bool durable;                       /* attachments survive a restart of the server */
};

/** leat_block_info - asks the server for a description of the volume; also with LEAT_BLOCK_LOOK
 * @info: size is set; as for leat_info() the program gets the members that it knows
 *
 * Return: 0; -EINVAL: impossible size, or the URL names no volume; -ENOENT, -EACCES.
 */
int leat_block_info(struct leat_block *b, struct leat_block_info *info);
int leat_aio_block_info(struct leat_block *b, struct leat_block_info *info, struct leat_cb cb);

/** leat_block_size - bytes of the volume, as last reported by the server: no call. 0 of NULL, and without a volume */
uint64_t leat_block_size(const struct leat_block *b);

/** leat_block_holder_name - the name of the holder of @b; "" of NULL */
const char *leat_block_holder_name(const struct leat_block *b);

/** leat_block_list - calls @fn for each volume of the server that this user and host may use, in the order of names;
 * also with LEAT_BLOCK_LOOK
 * @fn: runs in this function; info->size is that of the library
 *
 * Return: 0; -EREMOTEIO: invalid reply.
 */
int leat_block_list(struct leat_block *b, void (*fn)(void *ctx, const struct leat_block_info *info), void *ctx);

/* A holder of a volume. Later releases add members at the end. */
struct leat_block_holder {
	const char *name;
	const char *peer;          /* its host */
	const char *app;           /* its program, as it said */
	uint64_t since;            /* seconds since 1970 */
	uint32_t conns;            /* its connections now */
	uint32_t silent;           /* seconds for which it has had no connection; 0: it has one */
	bool rdonly;
};

/** leat_block_holders - calls @fn for each holder of the volume, in the order of names; also with LEAT_BLOCK_LOOK
 * @fn: runs in this function; texts are valid until it returns
 *
 * Return: as leat_block_info(); -EREMOTEIO: invalid reply.
 */
int leat_block_holders(struct leat_block *b, void (*fn)(void *ctx, const struct leat_block_holder *h), void *ctx);

/** leat_block_take_over - ends the attachment of a holder of the volume; also with LEAT_BLOCK_LOOK
 * @holder: "": any holder, of an exclusive volume
 *
 * When it returns 0, all operations of that holder have ended, and nothing of it is executed later. The volume is free
 * of it: the next leat_block_attach() gets it.
 *
 * Return: 0; -ENOENT: no such volume or holder; -EACCES; -ETIMEDOUT: operations of the holder have not ended within 30 s,
 * they are fenced: call again; -EINVAL: "" on a shared volume, or not the name of a holder.
 */
int leat_block_take_over(struct leat_block *b, const char *holder);

/* ---- data: synchronous ---------------------------------------------------------------------- */

/* Flags of writes and of leat_block_zero() */
#define LEAT_BLOCK_FUA 8u         /* writes: on stable storage when the function returns */
#define LEAT_BLOCK_KEEP 16u       /* zero: keep the space of the range allocated */

/** leat_block_pread, leat_block_pwrite, leat_block_preadv, leat_block_pwritev - read or write a range of the volume
 * @iov: @cnt parts of memory, any number; the sum of their lengths is a multiple of the block size
 * @flags: 0 or LEAT_BLOCK_FUA
 *
 * Parts of 4 KiB and more are transferred directly. Smaller parts of a longer transfer are copied by the library,
 * in buffers of 256 KiB for each call: a session uses up to 16 MiB for them, further calls wait, and it keeps 4 MiB.
 *
 * Return: the length; -EINVAL, -ENOSPC: see "Ranges"; -EROFS; -EIO: see "Flushing", or an error of the disk; -ESTALE:
 * see "Holders"; -ENXIO: the volume is no longer served; -EBADF: not attached; -ENOMEM.
 */
ssize_t leat_block_pread(struct leat_block *b, void *buf, size_t len, uint64_t off);
ssize_t leat_block_pwrite(struct leat_block *b, const void *buf, size_t len, uint64_t off, unsigned flags);
ssize_t leat_block_preadv(struct leat_block *b, const struct iovec *iov, int cnt, uint64_t off);
ssize_t leat_block_pwritev(struct leat_block *b, const struct iovec *iov, int cnt, uint64_t off, unsigned flags);

/** leat_block_flush - makes completed changes durable: those of all holders
 *
 * Return: 0; -EIO: see "Flushing", or the disk failed; others as of leat_block_pwrite().
 */
int leat_block_flush(struct leat_block *b);

/** leat_block_discard - tells the server that the contents of a range are not needed; they become undefined
 *
 * Return: 0; -EOPNOTSUPP: see can_discard; others as of leat_block_pwrite().
 */
int leat_block_discard(struct leat_block *b, uint64_t off, uint64_t len);

/** leat_block_zero - makes a range read as zeroes
 * @flags: 0 or LEAT_BLOCK_KEEP
 *
 * Return: 0; as of leat_block_pwrite().
 */
int leat_block_zero(struct leat_block *b, uint64_t off, uint64_t len, unsigned flags);

enum leat_block_kind {
	LEAT_BLOCK_DATA,
	LEAT_BLOCK_HOLE,           /* no space is allocated; reads as zeroes */
	LEAT_BLOCK_ZERO            /* reads as zeroes */
};

/* Does not grow: it is an element of an array. */
struct leat_block_extent {
	uint64_t off, len;
	enum leat_block_kind kind;
};

/** leat_block_extents - reports what a range consists of
 * @v: receives at most @n extents, from @off on without gaps; neighbours differ in kind. They end at @off + @len, or
 * earlier if there are @n
 *
 * Return: their number; -EREMOTEIO: invalid reply; -EINVAL: @len or @n is 0; others as of leat_block_pread().
 */
ssize_t leat_block_extents(struct leat_block *b, uint64_t off, uint64_t len, struct leat_block_extent *v, size_t n);

/* ---- data: asynchronous --------------------------------------------------------------------- */

/* As the functions of files in leat.h: each starts the operation and returns 0, or fails at once with -errno. The
 * result is the value of the synchronous function. Operations in flight have no order. */
int leat_aio_block_pread(struct leat_block *b, void *buf, size_t len, uint64_t off, struct leat_cb cb);
int leat_aio_block_pwrite(struct leat_block *b, const void *buf, size_t len, uint64_t off, unsigned flags,
			  struct leat_cb cb);
int leat_aio_block_preadv(struct leat_block *b, const struct iovec *iov, int cnt, uint64_t off, struct leat_cb cb);
int leat_aio_block_pwritev(struct leat_block *b, const struct iovec *iov, int cnt, uint64_t off, unsigned flags,
			   struct leat_cb cb);
int leat_aio_block_flush(struct leat_block *b, struct leat_cb cb);
int leat_aio_block_discard(struct leat_block *b, uint64_t off, uint64_t len, struct leat_cb cb);
int leat_aio_block_zero(struct leat_block *b, uint64_t off, uint64_t len, unsigned flags, struct leat_cb cb);
int leat_aio_block_extents(struct leat_block *b, uint64_t off, uint64_t len, struct leat_block_extent *v, size_t n,
			   struct leat_cb cb);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
