/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cp.h - shared by cp.c (arguments and trees) and cp_file.c (one file)
 */
#ifndef LEAT_TOOL_CP_H
#define LEAT_TOOL_CP_H

#include "copy.h"

struct cp_batch;
struct cp_pool;

/* The walk over one source argument; each worker has its own copy. */
struct cp {
	bool recursive, preserve;
	bool all;                   /* copy temporary files of copies, too */
	bool from_std, to_std;      /* standard input; standard output */
	bool one_server;            /* equal device and inode numbers on both sides mean one file */
	bool to_must_be_dir;        /* the user typed a slash after a name that is not a directory */
	bool name_repeats;          /* an earlier source has the same name in the target directory */
	mode_t mask;
	struct progress *progress;  /* shared by the workers */

	struct tool_target from_t, to_t; /* m is NULL for this machine */
	struct tool_path from, to;
	/* directories that contain the last component of @from.text or @to.text, or the start of an argument */
	struct fs_base from_base, to_base;
	struct copier *copier;
	struct cp_pool *pool;       /* NULL: one file after the other */
	struct cp_batch *batch;     /* of the current directory, or NULL */

	/* the root of the target tree, once it exists */
	size_t top_len;             /* length of its path in @to */
	struct stat top;
};

/** cp_place - formats the file of @side for messages; Return: @buf */
const char *cp_place(const struct cp *cp, enum copy_side side, char buf[TOOL_PLACE_BYTES]);

/** cp_say - logs @text about the file of @side; Return: TOOL_FAILED */
int cp_say(const struct cp *cp, enum copy_side side, const char *text);

/** cp_report - logs that a copy failed at @side with @err; Return: TOOL_FAILED */
int cp_report(struct cp *cp, enum copy_side side, int err);

/** cp_source_name, cp_target_name - the name of cp->from relative to cp->from_base, of cp->to relative to cp->to_base
 */
const char *cp_source_name(const struct cp *cp);
const char *cp_target_name(const struct cp *cp);

/** cp_is_same - are @from, on the source's side, and @to, on the target's, certainly one object?
 * Also false if the two sides cannot be compared. Then nothing of the target may be lost until all of the source has
 * been read.
 */
bool cp_is_same(const struct cp *cp, const struct stat *from, const struct stat *to);

/** cp_refuse_same - logs that source and target are the same file; Return: TOOL_FAILED */
int cp_refuse_same(struct cp *cp);

/** cp_new_mode - the mode of a new object copied from one with @st */
mode_t cp_new_mode(const struct cp *cp, const struct stat *st);

/* ---- cp_attr.c ---- */

/** cp_keep_attributes - gives the new file @out owner, group, list and mode, without set-id bits, of the file that it
 * replaces: @name on the target's side, with attributes @old
 *
 * Return: true; false: some attribute cannot be kept.
 */
must_check bool cp_keep_attributes(const struct cp *cp, const char *name, const struct stat *old,
				   struct fs_file *out);

/** cp_take_owner - gives the new file @out owner and group of the source @st, if permitted
 * @old: attributes of the file that it replaces, or NULL
 *
 * Return: true; false: it would have an owner other than that of @st and of @old.
 */
must_check bool cp_take_owner(struct fs_file *out, const struct stat *st, const struct stat *old);

/** cp_clear_set_id - removes the set-id bits of an open target
 * @last: after the data was written; before that, a failure is ignored because writing may clear the bits
 */
must_check int cp_clear_set_id(struct fs_file *out, bool last);

/** cp_preserve - -p: gives the regular file or directory @out owner (if permitted), list, mode and times of @in, with
 * attributes @st; Return: 0 or -errno, as the one below
 * @side: where it failed
 */
must_check int cp_preserve(struct cp *cp, struct fs_file *in, struct fs_file *out, const struct stat *st,
			   enum copy_side *side);

/** cp_preserve_other - the same for a link or special file created as @name on the target's side, without lists;
 * -ESTALE: the name now means another object, which is not changed
 */
must_check int cp_preserve_other(struct cp *cp, const char *name, const struct stat *st);

/* ---- cp_file.c ---- */

/** cp_copy_file - copies the file cp->from to cp->to; Return: exit status, as those below
 * @seen: its attributes when it was found
 */
int cp_copy_file(struct cp *cp, const struct stat *seen);

/** cp_copy_link - copies a symbolic link with attributes @st as a link */
int cp_copy_link(struct cp *cp, const struct stat *st);

/** cp_copy_special - creates a pipe, socket or device with the attributes @st */
int cp_copy_special(struct cp *cp, const struct stat *st);

#endif
