/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * export.h - which directories are exported, to which clients, and with which squashing
 */
#ifndef LEAT_SERVER_EXPORT_H
#define LEAT_SERVER_EXPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "peers.h"
#include "spec.h"
#include "backing.h"

struct dir_watch;
struct export;
struct fh_obj;
struct volume_manager;

enum export_squash {
	EXPORT_SQUASH_NONE, /* ids are used as claimed */
	EXPORT_SQUASH_ROOT, /* uid 0 and gid 0 become anonymous: the default */
	EXPORT_SQUASH_ALL,  /* all users become anonymous */
};

#define EXPORT_NAME_MAX 1023 /* MNTPATHLEN of RFC 1813 is 1024 */
#define EXPORT_ANON_ID 65534

enum { /* struct export_conf.given */
       EXPORT_GIVEN_RO = 1u << 0,
       EXPORT_GIVEN_SQUASH = 1u << 1,
       EXPORT_GIVEN_ANONUID = 1u << 2,
       EXPORT_GIVEN_ANONGID = 1u << 3,
       EXPORT_GIVEN_ASYNC = 1u << 7,
};

/* At which stripe server a new file begins */
enum export_start {
	EXPORT_START_TURN,
	EXPORT_START_FREE, /* each server as often as its share of the free bytes is */
};

/* The configuration of an export; plain data, owned by the parser, freed by export_conf_fini(). */
struct export_conf {
	char *name; /* the name that a client mounts: absolute, without a slash at its end (except "/") */
	char *path;	/* the directory */
	unsigned given; /* options set so far, to detect contradictions */
	bool ro;
	bool async; /* replies do not wait for the disk */
	enum export_squash squash;
	uint32_t anonuid, anongid;
	struct peers peers; /* that may use it */
	struct data_conf data;
	/* of the directory of a volume only: */
	char *key, *map;	/* absolute: of the key file and of the map; NULL: an export of another kind */
	uint32_t stripe, width; /* of new files: bytes of a stripe unit, number of stripes; 0: as many as there are servers */
	enum export_start start;  /* of new files */
	uint32_t stripe_timeo_ms; /* a stripe server that has not replied for as long is away */
};

/* An export in service. Read-only from export_table_open() to export_table_close(), except said_cached, so every
 * thread may access it. */
struct export
{
	struct export_conf conf;
	uint32_t id;  /* hash of name and directory, the same at every start: part of each file handle */
	unsigned idx; /* index in its table */
	int root_fd;  /* O_RDONLY on the directory */
	struct backing backing; /* what its stores serve */
	unsigned fh_kind; /* kind of its handles: enum fh_kind */
	int mount_id;	  /* of the root, for FH_KERNEL */
	struct dir_watch *dirs; /* of its file system, or NULL: directories are not watched */
	struct volume_manager *manager; /* NULL: its files are not those of a volume */
	/* A file or directory @o of @dir was created, or is to look so: adds what the export keeps of it besides its
	 * attributes. @how: vfs_sattr.how of its creator, or NULL. On a worker, before the creation is durable; NULL: nothing is
	 * added. Return: 0; 1: something was added, which is not durable yet; -errno */
	int (*made)(const struct fh_obj *dir, const struct fh_obj *o, const void *how);
};

struct export_table {
	struct export *v;
	size_t n;
};

/** export_conf_init - sets the defaults: read and write, root squashed, this host only
 *
 * Accepts only reserved ports if leatd runs as root.
 */
void export_conf_init(struct export_conf *c);

/** export_conf_fini - frees the strings in @c; calling it again is harmless */
void export_conf_fini(struct export_conf *c);

/** export_conf_same - do both say the same, apart from the name? */
bool export_conf_same(const struct export_conf *a, const struct export_conf *b);

/** export_conf_kind - for spec.h, with the table of its own options */
extern const struct spec_kind export_conf_kind;

/** volume_conf_kind - the same for the directory of a volume, whose options are those of an export and a few more: the
 * rows of @opts from export_conf_kind.nopts on. Its name becomes that of an export, with a slash in front */
extern const struct spec_kind volume_conf_kind;

/** export_conf_parse - parses "DIR[,option...]" or "/NAME=DIR[,option...]"
 * @ret: on success the caller frees it with export_conf_fini()
 *
 * Return: as spec_parse().
 */
static inline int must_check export_conf_parse(const char *arg, struct export_conf *ret, char *why, size_t why_bytes)
{
	return spec_parse(&export_conf_kind, arg, ret, why, why_bytes);
}

/** volume_conf_parse - parses "NAME=DIR,key=FILE,map=FILE[,option...]"; @ret and Return: the same */
static inline int must_check volume_conf_parse(const char *arg, struct export_conf *ret, char *why, size_t why_bytes)
{
	int err = spec_parse(&volume_conf_kind, arg, ret, why, why_bytes);

	if (err)
		export_conf_fini(ret);
	return err;
}

/** export_table_open - opens the directories
 *
 * Return: 0, -EEXIST (two exports of one name), -ENOMEM, or the errno of opening a directory; @why has the reason.
 */
int must_check export_table_open(const struct export_conf *confs, size_t n,
				 struct export_table *ret, char *why, size_t why_bytes);

/** export_table_close - closes the directories and frees the table */
void export_table_close(struct export_table *t);

/** export_find_id - Return: the export, or NULL */
static inline struct export *export_find_id(const struct export_table *t, uint32_t id)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].id == id)
			return &t->v[i];
	return NULL;
}

/** export_find_path - finds the export with the longest name that is @path or a directory above it
 * @ret_rest: the remainder, without leading slashes
 *
 * Return: the export, or NULL
 */
struct export *export_find_path(const struct export_table *t, const char *path,
				const char **ret_rest);

#endif
