/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fsck.h - leat volume fsck: the objects of the stripe servers beside the files of the manager
 *
 * First the objects of all servers are listed, then all directories are read. So an object of the list had a file before the
 * directories were read. What looks wrong is checked once more, in an order in which it cannot be the work of a client or of the
 * manager that is in progress (fsck_walk.c, fsck_orphans.c).
 */
#ifndef LEAT_TOOL_FSCK_H
#define LEAT_TOOL_FSCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat_volume.h"
#include "tool.h"

#define FSCK_OBJECT_BYTES 16u

enum fsck_exit { FSCK_FAULTS = 3, FSCK_REPAIRED = 4 };

enum fsck_flag {
	FSCK_REMOVED = 1u << 0, /* a tombstone */
	FSCK_FOUND = 1u << 1,   /* a file has it */
};

/* An object of a server, as it was listed. */
struct fsck_object {
	unsigned char name[FSCK_OBJECT_BYTES];
	uint64_t bytes;
	uint32_t mtime_s;
	uint32_t epoch; /* at most UINT32_MAX; 0: its record is damaged */
	uint32_t stripe;
	uint32_t flags;
};

struct fsck_server {
	const struct leat_volume_server *is;
	struct leat *m;
	int64_t skew_s;
	bool listed; /* else nothing is known of its objects */
	struct fsck_object *v; /* in the order of name and stripe */
	size_t n, room;
};

struct fsck {
	char *key_file;
	bool repair, resign;
	struct tool_target t; /* the manager */
	struct leat_volume_key *key;
	struct leat_volume_map *map;
	struct fsck_server *servers; /* of the map */
	uint64_t files, directories;
	uint64_t holes;	     /* stripes without an object, which read as zeroes */
	uint64_t unreadable; /* files and directories that could not be looked at */
	uint64_t layouts;    /* files without a valid layout */
	uint64_t faults, repaired;
	bool incomplete;
	bool again; /* directories were read before: faults of files are known */
};

/** fsck_fault - prints a fault, and counts it; fsck_outcome() ends the line
 * @what: path of a file, or name of an object
 */
void fsck_fault(struct fsck *f, const char *what, const char *format, ...) __attribute__((format(printf, 3, 4)));

/** fsck_outcome - with --repair, prints behind a fault what has become of it; else the line ends
 * @rc: of the repair; @m: its mount; NULL: there is no repair
 */
void fsck_outcome(struct fsck *f, int rc, struct leat *m);

/** fsck_incomplete - prints what could not be looked at, and why */
void fsck_incomplete(struct fsck *f, const char *what, const char *why);

/** fsck_resign - leat volume fsck --resign; Return: exit status */
int fsck_resign(const char *dir, const struct leat_volume_key *key, bool repair);

/* ---- fsck_objects.c ---- */

/** fsck_objects_list - connects to all servers, and lists their objects; a server that cannot is a line of the output
 * Return: 0; TOOL_FAILED after a message: no memory, or a signal
 */
must_check int fsck_objects_list(struct fsck *f);
void fsck_objects_free(struct fsck *f);

/** fsck_server_find - Return: NULL: the map has no server of that id */
struct fsck_server *fsck_server_find(const struct fsck *f, uint32_t id);

/** fsck_object_find - Return: NULL: it was not listed */
struct fsck_object *fsck_object_find(const struct fsck_server *s, const unsigned char name[FSCK_OBJECT_BYTES], uint32_t stripe);

/** fsck_object_stat - asks the server once more; Return: 0; -errno after fsck_incomplete() */
must_check int fsck_object_stat(struct fsck *f, const struct fsck_server *s, const unsigned char name[FSCK_OBJECT_BYTES],
				uint32_t stripe, struct leat_volume_object *ret);

#define FSCK_TEXT_BYTES 96
/** fsck_object_text - "server 2: objects/00/00...00.1"; Return: @buf */
char *fsck_object_text(const struct fsck_server *s, const unsigned char name[FSCK_OBJECT_BYTES], uint32_t stripe,
		       char buf[FSCK_TEXT_BYTES]);

/** fsck_age_s - seconds since @mtime_s by the clock of the server */
int64_t fsck_age_s(const struct fsck_server *s, uint64_t mtime_s);

/* ---- fsck_walk.c ---- */

/** fsck_walk - reads all directories, marks the objects of all files, and looks at each file unless f->again
 * Return: 0; TOOL_FAILED after a message */
must_check int fsck_walk(struct fsck *f);

/* ---- fsck_orphans.c ---- */

/** fsck_orphans - the objects that no file has, and what is pending; reads the directories again if names moved
 * @before: of the manager, before the directories were read
 *
 * Return: 0; TOOL_FAILED after a message
 */
must_check int fsck_orphans(struct fsck *f, struct leat_volume_work before);

#endif
