/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * leat_volume.h - administration of striped volumes
 *
 *     const char *urls[] = { "tcp://10.0.0.1", "tcp://10.0.0.2" };
 *     struct leat_volume_plan plan = { .size = sizeof(plan), .name = "big", .servers = urls, .nservers = 2,
 *                                      .clients = "10.0.0.0/24", .listen = "tcp://10.0.0.9" };
 *     if (leat_volume_create("/srv/big", &plan, &id, why, sizeof(why)) < 0) ...
 *
 * Files in a volume are read and written with leat.h: a mount finds out by itself that its export is a volume.
 *
 * Growth:    Structures that the library allocates, and those that begin with their size, get members at the end in later
 *            releases. So lists are lists of pointers.
 * Threads:   As functions of leat.h.
 * Errors:    @why gets a text for the administrator, of at most @why_bytes bytes with its NUL. Functions of a mount have
 *            it in leat_error().
 */
#ifndef LEAT_VOLUME_H
#define LEAT_VOLUME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "leat.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---- a new volume --------------------------------------------------------------------------- */

struct leat_volume_plan {
	size_t size;                /* set by the caller: sizeof(struct leat_volume_plan) */
	const char *name;           /* clients mount /NAME: 1 to 63 bytes, no slash */
	const char *const *servers; /* URLs at which the stripe servers are to listen; server N is the Nth one, from 1 */
	size_t nservers;            /* 1 to 256 */
	const char *listen;         /* URL at which the manager is to listen; NULL: local://DIR/sock */
	const char *clients;        /* option of leatd.conf, with the manager's machine; needed if a URL is not local */
	uint32_t stripe;            /* bytes of a stripe unit: a power of two from 64 KiB to 16 MiB; 0: 1 MiB */
	uint32_t width;             /* stripes of a file, at most @nservers; 0: all servers */
};

/** leat_volume_create - creates the directory @dir with what the servers of a new volume need
 * @dir: must not exist; its parent must
 * @ret_volume: gets the id of the volume; may be NULL
 *
 *     names/            an empty directory, with mode 0755; the manager makes what it needs in it
 *     key               the key of the volume, with mode 0600: it permits everything
 *     map               the first map: all servers
 *     manager.conf      configuration of the manager's leatd
 *     server-N.conf     configuration of the leatd of server N
 *     stripes-N/        for the stripes of server N, with mode 0700; only if its URL is local
 *
 * A server on another machine needs its own server-N.conf, the key and an empty directory, at the same paths there.
 * If root creates the volume, and the manager is local, root of this machine may use it as root.
 * Nothing that exists is changed. If the function fails, it removes what it has created.
 *
 * Return: 0; -EINVAL: not a possible plan; -EEXIST: @dir exists; -ENOMEM; -errno of a file operation.
 */
int leat_volume_create(const char *dir, const struct leat_volume_plan *plan, uint64_t *ret_volume, char *why,
		       size_t why_bytes);

/* ---- its map -------------------------------------------------------------------------------- */

struct leat_volume_server {
	uint32_t id;
	bool out;                   /* new files get no stripes there */
	const char *url;
};

struct leat_volume_map {
	uint64_t volume, version;
	uint32_t stripe, width;     /* of new files: bytes of a unit, stripes. 0: not known, of a map from a file */
	size_t nservers;
	const struct leat_volume_server *const *servers;
};

/** leat_volume_map_read - reads the file of a map
 * @ret: the caller frees it with leat_volume_map_free()
 *
 * Return: 0; -EINVAL: it is not a map; -EFBIG, -ENOMEM, -errno of a file operation.
 */
int leat_volume_map_read(const char *file, struct leat_volume_map **ret, char *why, size_t why_bytes);
void leat_volume_map_free(struct leat_volume_map *m); /* NULL is fine */

enum leat_volume_state { LEAT_VOLUME_KEEP, LEAT_VOLUME_FULL, LEAT_VOLUME_OUT };

struct leat_volume_change {
	size_t size;                /* set by the caller: sizeof(struct leat_volume_change) */
	uint32_t server;            /* id; 0: a new server, which gets the next id */
	const char *url;            /* NULL: as before */
	enum leat_volume_state state; /* LEAT_VOLUME_FULL: new files get stripes there; OUT: they get none; KEEP: as before */
};

/** leat_volume_map_change - changes one server in the file of a map, and raises its version
 * @ret_server: gets the id; may be NULL
 *
 * The file is replaced at once, so that a reader sees the old or the new map. The manager reads it when it
 * reloads.
 *
 * Return: 0; -ENOENT: no such server, or no such file; -EINVAL: not a possible URL, or not a map; -EEXIST: FILE.new exists,
 * so another change is being made, or was interrupted; -ENOSPC: 256 servers; -errno of a file operation.
 */
int leat_volume_map_change(const char *file, const struct leat_volume_change *change, uint32_t *ret_server, char *why,
			   size_t why_bytes);

/** leat_volume_map - gets the map of the volume that @m is a mount of
 * @ret: the caller frees it with leat_volume_map_free()
 *
 * Return: 0; -EOPNOTSUPP: the export is not a striped volume; -EREMOTEIO: no possible map; -ENOMEM; the error of the call.
 */
int leat_volume_map(struct leat *m, struct leat_volume_map **ret);

/* What the manager of a volume knows of a stripe server */
enum leat_volume_reach { LEAT_VOLUME_UNKNOWN, LEAT_VOLUME_IN_REACH, LEAT_VOLUME_AWAY };

struct leat_volume_seen {
	size_t size;                /* set by the library */
	uint32_t server;            /* id in the map */
	enum leat_volume_reach reach; /* UNKNOWN: it was not asked yet */
	uint64_t for_ms;            /* since when */
};

/* Takes what is known of a server; @seen is valid until it returns. Return: 0; another value ends the list */
typedef int (*leat_volume_seen_fn)(void *ctx, const struct leat_volume_seen *seen);

/** leat_volume_servers - asks the manager of a mount which stripe servers it can reach, in the order of the map
 * The manager asks them every 5 seconds. New files get no stripes on a server that is away.
 * @fn: called on this thread
 *
 * Return: 0; -EOPNOTSUPP: the export is not a striped volume; -EREMOTEIO: no possible list; -ENOMEM; the error of the call;
 * what @fn returned.
 */
int leat_volume_servers(struct leat *m, leat_volume_seen_fn fn, void *ctx);

/* ---- where a file lies ---------------------------------------------------------------------- */

struct leat_volume_stripe {
	uint32_t server;            /* id in the map */
	uint64_t bytes;             /* of its object, if the file has no holes */
};

struct leat_volume_layout {
	unsigned char object[16];
	uint64_t epoch;
	uint64_t bytes;             /* size of the file, as far as the manager knows */
	uint32_t stripe;            /* bytes of a unit */
	size_t nstripes;
	const struct leat_volume_stripe *const *stripes; /* unit i of the file is in stripe i modulo nstripes */
};

/** leat_volume_layout - gets the layout of a file, for which the right to read is needed
 * @ret: the caller frees it with leat_volume_layout_free()
 *
 * Return: 0; -EOPNOTSUPP: the export is not a striped volume; -EINVAL: not a regular file; -EBADMSG: its layout is missing,
 * damaged, or not signed for this file; errors of the path; -ENOMEM; the error of the call.
 */
int leat_volume_layout(struct leat *m, const char *path, struct leat_volume_layout **ret);
void leat_volume_layout_free(struct leat_volume_layout *l); /* NULL is fine */

/** leat_volume_raise - raises the size of a file to at least @bytes, and sets its modification time
 * @as: the layout from which the caller has learnt that
 * For data that a client wrote, and did not report before it ended. The right to write is needed. The size is never lowered.
 *
 * Return: as leat_volume_layout(); -ESTALE: the path leads to another file than @as, or that was cut since; -EFBIG.
 */
int leat_volume_raise(struct leat *m, const char *path, const struct leat_volume_layout *as, uint64_t bytes);

struct leat_volume_place {
	size_t size;                /* set by the caller: sizeof(struct leat_volume_place) */
	uint32_t stripe, server;
	uint64_t off;               /* in the object */
	uint64_t run;               /* bytes from there to the end of the unit */
};

/** leat_volume_find - computes where the byte @off of a file lies; Return: 0; -EINVAL: impossible size or offset */
int leat_volume_find(const struct leat_volume_layout *l, uint64_t off, struct leat_volume_place *ret);

/** leat_volume_assemble - puts a file together from directories of stripes, without their servers
 * @l: its layout
 * @volume: id in the map
 * @dirs: directories of stripe servers, or copies of them with extended attributes; in any order
 * @file: new; with mode 0600
 *
 * Nothing may write the file meanwhile. What an object does not have becomes a hole.
 *
 * Return: 0; -EEXIST: @file exists; -ENOENT: there is no directory of a server of the file; -EINVAL: one is not of this
 * volume; -ESTALE: an object has another epoch than @l, or was removed; -EBADMSG: the record of an object is damaged;
 * -ENOMEM, -errno of a file operation. Then there is no new file.
 */
int leat_volume_assemble(const struct leat_volume_layout *l, uint64_t volume, const char *const *dirs, size_t ndirs,
			 const char *file, char *why, size_t why_bytes);

/* ---- the layout of new files ---------------------------------------------------------------- */

#define LEAT_VOLUME_SAME UINT32_MAX

struct leat_volume_defaults {
	size_t size;                /* set by the caller: sizeof(struct leat_volume_defaults) */
	uint32_t stripe;            /* bytes of a unit: a power of two from 64 KiB to 16 MiB; 0: as the volume says */
	uint32_t width;             /* stripes, at most as many as there are servers; 0: as the volume says */
};

/** leat_volume_defaults - what a directory says of new files in it
 * leat_volume_set_defaults - changes that; members that are LEAT_VOLUME_SAME stay as they are
 * Directories that are created there later inherit it. Files keep the layout with which they were created.
 *
 * Return: 0; -EPERM, -EACCES: neither the owner of the directory nor root; -EINVAL: not possible, or not a directory;
 * -EROFS; -EOPNOTSUPP: the export is not a striped volume; errors of the path; the error of the call.
 */
int leat_volume_defaults(struct leat *m, const char *path, struct leat_volume_defaults *ret);
int leat_volume_set_defaults(struct leat *m, const char *path, const struct leat_volume_defaults *d);

/** leat_volume_create_file - creates an empty file with a layout of its own
 * @d: 0: as the directory says, or else the volume
 *
 * Return: 0; -EEXIST; as leat_volume_set_defaults(), and what creating a file returns.
 */
int leat_volume_create_file(struct leat *m, const char *path, mode_t mode, const struct leat_volume_defaults *d);

/* ---- a stripe server ------------------------------------------------------------------------ */

struct leat_volume_info {
	size_t size;                /* set by the caller: sizeof(struct leat_volume_info) */
	uint32_t server;            /* its id */
	uint64_t term;              /* the newest term of a manager that it has obeyed */
	uint64_t verf;              /* changes when data that was acknowledged, and not committed, may be lost */
	uint64_t bytes, bytes_free; /* of the file system of its stripes; free: that leatd may use */
	int64_t skew_ms;            /* its clock minus this machine's; 0: not more than a round trip */
	uint64_t bytes_used;        /* of the file system; the rest is reserved */
};

/* The key of a volume, with its id. */
struct leat_volume_key;

/** leat_volume_key_read - reads a key file
 * @ret: the caller frees it with leat_volume_key_free(); several mounts and threads may use it
 *
 * Return: 0; -EINVAL: it is not a key file; -EKEYREJECTED: other users may read it; -ENOMEM, -errno of a file operation.
 */
int leat_volume_key_read(const char *file, struct leat_volume_key **ret, char *why, size_t why_bytes);
void leat_volume_key_free(struct leat_volume_key *k); /* NULL is fine */

/** leat_volume_ask - asks a stripe server about its stripes of a volume
 * @m: the server; a mount of its URL with connect_only will do
 * @server: the id that the map gives it
 *
 * Return: 0; -EINVAL: no key, or impossible size; -EKEYREJECTED: the server has another key or another id; -ETIME: its clock
 * differs by more than a minute; -ENXIO: it has no stripes of the volume; -EACCES: it does not admit this host; -EREMOTEIO: an
 * impossible reply; the error of the call.
 */
int leat_volume_ask(struct leat *m, const struct leat_volume_key *key, uint32_t server, struct leat_volume_info *ret);

/* ---- commands of a manager ------------------------------------------------------------------ */

/* A command is for one stripe of one object on one server. It may be repeated, and a program repeats it after any error
 * but -EPERM and -ESTALE, since the server may have executed it. Only one manager at a time may use a term. */
struct leat_volume_command {
	size_t size;                /* set by the caller: sizeof(struct leat_volume_command) */
	const struct leat_volume_key *key;
	uint64_t term;              /* of the manager. 0, for all but fence and remove: the newest one that the server has obeyed */
	uint32_t server;            /* id in the map */
	uint32_t stripe;            /* number in the layout of the file */
	unsigned char object[16];
};

struct leat_volume_object {
	size_t size;                /* set by the caller: sizeof(struct leat_volume_object) */
	uint64_t bytes, used;       /* length; bytes allocated */
	uint64_t epoch;
	uint64_t mtime_ns;          /* since 1970 */
	bool exists;
	bool removed;               /* a tombstone */
};

/** leat_volume_object_stat - gets the state of an object, which need not exist
 * leat_volume_object_fence - raises its epoch durably, and cuts the object to @cut bytes
 * @epoch: at least 2
 * @cut: NULL: it keeps its length
 * When it returns 0, operations of older epochs have ended, and none begins any more.
 *
 * leat_volume_object_remove - removes it; until @until, seconds since 1970, a tombstone makes late writes fail
 *
 * @ret: the state behind it; may be NULL
 * @newest: with -EPERM it gets the newest term; may be NULL
 *
 * Return: as leat_volume_ask(); -EPERM: the server has obeyed a newer term; -ESTALE: the object has a newer epoch, or was
 * removed; -EBUSY: older operations have not ended within 30 seconds, but no more begin; -ENOSPC, -EIO of its disk.
 */
int leat_volume_object_stat(struct leat *m, const struct leat_volume_command *c, struct leat_volume_object *ret,
			    uint64_t *newest);
int leat_volume_object_fence(struct leat *m, const struct leat_volume_command *c, uint64_t epoch, const uint64_t *cut,
			     struct leat_volume_object *ret, uint64_t *newest);
int leat_volume_object_remove(struct leat *m, const struct leat_volume_command *c, uint64_t until,
			      struct leat_volume_object *ret, uint64_t *newest);

/** leat_volume_object_set_aside - moves an object that no file has to lost+found/ of its directory of stripes
 * @until: seconds since 1970; until then a tombstone makes late writes fail
 * @mtime_ns: that leat_volume_object_stat() told: an object that was written since is not moved
 * @ret: the state behind it: removed, unless the object does not exist; may be NULL
 *
 * Return: as leat_volume_object_remove(); -ESTALE: the object was written; -EBUSY: it is in use.
 */
int leat_volume_object_set_aside(struct leat *m, const struct leat_volume_command *c, uint64_t until, uint64_t mtime_ns,
				 struct leat_volume_object *ret, uint64_t *newest);

/* Takes an object of a list; @o is valid until it returns. Return: 0; another value ends the list */
typedef int (*leat_volume_object_fn)(void *ctx, const unsigned char object[16], uint32_t stripe,
				     const struct leat_volume_object *o);

/** leat_volume_object_list - lists the objects of a server, in the order of object and stripe
 * @c: its object and stripe are not looked at
 * @fn: called on this thread; it may call functions of leat.h. The epoch of an object whose record is damaged is 0
 *
 * Objects that come into being or are removed meanwhile may be in the list or not.
 * Return: as leat_volume_object_stat(); -EREMOTEIO: no possible list; what @fn returned.
 */
int leat_volume_object_list(struct leat *m, const struct leat_volume_command *c, leat_volume_object_fn fn, void *ctx,
			    uint64_t *newest);

/* ---- layouts that are signed again ---------------------------------------------------------- */

enum leat_volume_layout_state {
	LEAT_VOLUME_LAYOUT_OLD_KEY, /* signed for its file, but not with the first key of the key file */
	LEAT_VOLUME_LAYOUT_COPIED,  /* signed for another file, as behind a restore from a backup */
	LEAT_VOLUME_LAYOUT_SHARED,  /* as COPIED, and another file has the same object */
	LEAT_VOLUME_LAYOUT_DAMAGED, /* none of this volume */
	LEAT_VOLUME_LAYOUT_MISSING, /* of a file that is not empty */
	LEAT_VOLUME_LAYOUT_UNREAD,  /* it could not be read or written, or a directory could not: @err says why */
	LEAT_VOLUME_LAYOUT_UNSURE,  /* as COPIED, and one that could not be read may be of a file with the same object */
};

/* Takes what was found of the file @path, below the directory; files whose layout is valid are left out. @err: 0: it is signed
 * again, or would be; else it stays as it is: -EKEYREJECTED, or -errno. Return: 0; another value ends the search */
typedef int (*leat_volume_resign_fn)(void *ctx, const char *path, enum leat_volume_layout_state state, int err);

/** leat_volume_resign - signs layouts again for the files that have them, with the first key
 * @dir: the directory of the manager, which must not run
 * @repair: false: nothing is changed
 *
 * The key no longer proves anything of a layout that was copied with its file. So users that may not read
 * and write all files of the volume must not have been able to write in @dir. Layouts of two files with one object are not signed, nor
 * are copies if something could not be read.
 * Return: 0; -EBUSY: a manager runs; -ENOENT, -ENOTDIR: not the directory of a manager; -ENOMEM; -errno; what @fn returned.
 */
int leat_volume_resign(const char *dir, const struct leat_volume_key *key, bool repair, leat_volume_resign_fn fn, void *ctx,
		       char *why, size_t why_bytes);

/* ---- a check -------------------------------------------------------------------------------- */

enum leat_volume_todo {
	LEAT_VOLUME_TODO_NOTHING,   /* the manager forgets it soon */
	LEAT_VOLUME_TODO_CUT,
	LEAT_VOLUME_TODO_REMOVE,
	LEAT_VOLUME_TODO_DAMAGED,   /* the layout of the file is not valid, so the manager cannot do it */
};

struct leat_volume_work {
	size_t size;                /* set by the caller: sizeof(struct leat_volume_work) */
	uint64_t moves;             /* differs if a name was moved or linked meanwhile, or the manager was started again */
	bool moving;                /* one is being moved or linked: as if it differed */
	bool deposed;               /* another manager is at work: this one cuts and removes nothing */
	uint32_t lifetime_s;        /* of handles */
};

/* Takes what is pending for an object. Return: 0; another value ends the list */
typedef int (*leat_volume_work_fn)(void *ctx, const unsigned char object[16], enum leat_volume_todo todo);

/** leat_volume_pending - asks the manager of a mount what it still has to do on stripe servers, in the order of objects
 * @fn: called on this thread; NULL: the list is not wanted
 * @ret: the state before the list; may be NULL
 *
 * Between two states of equal moves, of which none is moving, each file that existed all the time kept its names. So a program
 * that read all directories between them has seen it.
 * Return: 0; -EOPNOTSUPP: the export is not a striped volume; -EACCES: the manager has another key, or its clock differs by
 * more than a minute; -EINVAL; -EREMOTEIO: no possible list; -ENOMEM; the error of the call; what @fn returned.
 */
int leat_volume_pending(struct leat *m, const struct leat_volume_key *key, leat_volume_work_fn fn, void *ctx,
			struct leat_volume_work *ret);

/* ---- data, for the program that manages the volume ------------------------------------------- */

/* A manager knows the layouts itself. It mounts the volume without asking a server: the library asks it for layouts, signs
 * handles with all rights, and moves data between memory and stripe servers. The program checks permissions, and keeps the
 * sizes of files: reads do not end at the end of a file, and no write raises a size. Of a mount by leat_volume_mount() only
 * the functions here, those of its files to read, leat_aio_fsync() and leat_aio_close(), and the ones of leat.h for mounts
 * and sessions work; others fail with -EOPNOTSUPP. All of them belong to the thread that owns the session. */

struct leat_volume_question;
struct leat_volume_unstable;

struct leat_volume_answer {
	size_t size;                /* set by the caller: sizeof(struct leat_volume_answer) */
	unsigned char object[16];
	uint64_t epoch;
	uint32_t stripe;            /* bytes of a unit */
	uint32_t nstripes;
	const uint32_t *servers;    /* ids: of each stripe */
	uint64_t term;              /* of the manager: once a stripe server has obeyed it, nothing of an older one is executed
				     * there. 0: as a client without one */
};

struct leat_volume_source {
	size_t size;                /* set by the caller: sizeof(struct leat_volume_source) */
	/* Asks for the layout of a file. Return: 0: leat_volume_reply() follows, not inside this function; -errno */
	int (*layout)(void *file, struct leat_volume_question *q);
};

/** leat_volume_mount - makes a mount of a volume without a manager's server; connects to no server yet
 * @src, @map: copied
 * @key: must exist until leat_volume_use() names another one, or the mount ends
 * @opts: as of leat_mount(); for connections to stripe servers. May be NULL
 *
 * Return: 0; -EINVAL: impossible size, or @opts contradict the session; -EREMOTEIO: impossible map; -ENOMEM.
 */
int leat_volume_mount(struct leat_session *s, const struct leat_volume_source *src, const struct leat_volume_map *map,
		      const struct leat_volume_key *key, const struct leat_opts *opts, struct leat **ret);

/** leat_volume_use - from now on @map and @key are in force
 * Return: 0; -EINVAL: @m is not of leat_volume_mount(); -EREMOTEIO: of another volume, or impossible; -ENOMEM.
 */
int leat_volume_use(struct leat *m, const struct leat_volume_map *map, const struct leat_volume_key *key);

/** leat_volume_aio_ask - asks a stripe server of the map, with the key of the mount, as leat_volume_ask() does
 * The connection is that of the mount's data; it is closed if there is no reply within stripe_timeo.
 * @ret: valid in the callback, if its result is 0
 *
 * The result is that of leat_volume_ask(); -EIO: the map has no such server. Return: 0; -EINVAL: @m is not of
 * leat_volume_mount(), or impossible size; -ENOMEM.
 */
int leat_volume_aio_ask(struct leat *m, uint32_t server, struct leat_volume_info *ret, struct leat_cb cb);

/** leat_volume_reply - replies to a question of source.layout
 * @err: 0; or -errno: operations that need the layout fail with it
 * @a: the layout; copied
 *
 * Callbacks of operations may run inside it. Operations that were cancelled meanwhile end then.
 */
void leat_volume_reply(struct leat_volume_question *q, int err, const struct leat_volume_answer *a);

/** leat_volume_open - opens a file, to read and to write; makes no call
 * @file: for source.layout; valid until the file is closed
 * @u: unstable writes of the same file, of all sessions; must exist until the file is closed
 *
 * leat_aio_fsync() makes stable what @u has. Closing makes nothing stable.
 *
 * Return: 0; -EINVAL: @m is not of leat_volume_mount(); -ENOMEM.
 */
int leat_volume_open(struct leat *m, void *file, struct leat_volume_unstable *u, struct leat_file **ret);

/* What the result of a write says of the size of the file. */
struct leat_volume_written {
	uint64_t epoch;             /* newest layout by which something was written; 0: nothing was */
	uint64_t end;               /* of what was written in that epoch */
};

/** leat_volume_aio_pwritev - as leat_aio_pwritev()
 * @stable: on stable storage before the callback; else recorded as unstable
 * @ret: valid in the callback
 *
 * If the epoch of the file is a newer one by then, it was cut since: what was written counts as written before that.
 */
int leat_volume_aio_pwritev(struct leat_file *f, const struct iovec *iov, int cnt, uint64_t off, bool stable,
			    struct leat_volume_written *ret, struct leat_cb cb);

/** leat_volume_unstable_create - creates the record of what was written to a file, by any session, and is not stable
 * @lost: unstable data of the file may be lost. Runs before an fsync that began after the loss can end; any thread, with
 * a lock: it must call no function of the library
 *
 * Return: 0, -ENOMEM.
 */
int leat_volume_unstable_create(void (*lost)(void *ctx), void *ctx, struct leat_volume_unstable **ret);

/** leat_volume_unstable_any - is anything recorded? Any thread */
bool leat_volume_unstable_any(struct leat_volume_unstable *u);
void leat_volume_unstable_free(struct leat_volume_unstable *u); /* NULL is fine. Files that use it are closed */

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
