/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cp_file.c - copies one file, link or special file
 *
 * Operation:  The source is opened first, so an unreadable source does not affect the target. A target
 *             known to be the source is refused. A file that is new, or replaces one, is written under a
 *             temporary name in the same directory and renamed when it is complete and closed. A target is
 *             written in place if it has several names, is not a regular file, or is in a directory where
 *             no file can be created: the copy overwrites the old content from its beginning and truncates
 *             the rest at the end. So an undetected copy of a file onto itself changes nothing. If the
 *             server was restarted and lost unstable data, the file is copied again.
 * Memory:     The copier's.
 * Threads:    Any, each with its own struct cp.
 * Errors:     Logged once; the exit status is returned. A temporary file is removed on failure.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cp.h"
#include "signals.h"

#define REPORTED (-ECANCELED) /* by signals_file_end() */
#define COPIES_MAX 4 /* of one file, if the server loses unstable data */

/* An open source. */
struct source {
	struct fs_file file;
	struct stat st;
};

/* The user's argument is a path, an entry found in a directory is a name. */
static const char *name_in(struct fs_base b, const struct tool_path *path)
{
	const char *slash = strrchr(path->text, '/');

	return b.no_links && slash ? slash + 1 : path->text;
}

const char *cp_source_name(const struct cp *cp)
{
	return name_in(cp->from_base, &cp->from);
}

const char *cp_target_name(const struct cp *cp)
{
	return name_in(cp->to_base, &cp->to);
}

const char *cp_place(const struct cp *cp, enum copy_side side, char buf[TOOL_PLACE_BYTES])
{
	return side == COPY_FROM ? tool_place(cp->from_t.m, cp->from.text, buf) :
				   tool_place(cp->to_t.m, cp->to.text, buf);
}

int cp_say(const struct cp *cp, enum copy_side side, const char *text)
{
	char place[TOOL_PLACE_BYTES];

	progress_hide(cp->progress);
	log_err("%s: %s", cp_place(cp, side, place), text);
	return TOOL_FAILED;
}

int cp_report(struct cp *cp, enum copy_side side, int err)
{
	if (tool_is_interruption(err))
		return cp_say(cp, COPY_TO, "interrupted");
	progress_hide(cp->progress);
	return side == COPY_FROM ? tool_fail(cp->from_t.m, cp->from.text, err) :
				   tool_fail(cp->to_t.m, cp->to.text, err);
}

/* The target cannot be created, usually because its directory does not exist. */
static int report_missing(struct cp *cp)
{
	const char *slash = strrchr(cp->to.text, '/');
	struct tool_path to = cp->to;
	struct stat st;

	if (slash && slash > cp->to.text)
		tool_path_cut(&cp->to, (size_t)(slash - cp->to.text));
	if (fs_stat(fs_base(cp->to_t.m), cp->to.text, &st) != -ENOENT)
		cp->to = to;
	(void)cp_report(cp, COPY_TO, -ENOENT);
	cp->to = to;
	return TOOL_FAILED;
}

bool cp_is_same(const struct cp *cp, const struct stat *from, const struct stat *to)
{
	return cp->one_server && from->st_dev == to->st_dev && from->st_ino == to->st_ino;
}

int cp_refuse_same(struct cp *cp)
{
	char from[TOOL_PLACE_BYTES], to[TOOL_PLACE_BYTES];

	progress_hide(cp->progress);
	log_err("'%s' and '%s' are the same file", cp_place(cp, COPY_FROM, from), cp_place(cp, COPY_TO, to));
	return TOOL_FAILED;
}

/* ---- temporary names ---- */

/* A temporary file. If a signal comes, the handler removes a local one; this file's code removes one on a server. */
struct temp {
	struct tool_path path;
	int slot; /* of signals_file_add(), or -1 */
	bool held;
};

/* Creates a name that does not exist yet, next to that of cp->to. */
static int make_temp_path(const struct cp *cp, struct tool_path *ret)
{
	const char *to = cp_target_name(cp), *slash = strrchr(to, '/');
	char name[TOOL_TEMP_NAME_BYTES];
	int rc = tool_temp_name(name);

	if (rc)
		return rc;
	if (!slash)
		return tool_path_init(ret, name);
	*ret = cp->to;
	tool_path_cut(ret, (size_t)(slash - to) + 1);
	return tool_path_push(ret, name);
}

/* A temporary file on a server, with its whole path. */
static const char *temp_place(const struct cp *cp, const struct temp *t, char buf[TOOL_PLACE_BYTES])
{
	const char *slash = strrchr(t->path.text, '/');
	struct tool_path whole = cp->to;
	char *end = strrchr(whole.text, '/');

	tool_path_cut(&whole, end ? (size_t)(end - whole.text) + 1 : 0);
	if (tool_path_push(&whole, slash ? slash + 1 : t->path.text))
		return t->path.text;
	return tool_place(cp->to_t.m, whole.text, buf);
}

static int add_temp(const struct cp *cp, const struct temp *t)
{
	char place[TOOL_PLACE_BYTES], temp[TOOL_PLACE_BYTES];
	struct signals_file f = { .kind = cp->to_t.m ? SIGNALS_STAYS : SIGNALS_REMOVE, .dir = cp->to_base.dir };

	f.place = cp_place(cp, COPY_TO, place);
	f.path = cp->to_t.m ? temp_place(cp, t, temp) : t->path.text;
	return signals_file_add(&f);
}

/* Return: 0, and the caller calls signals_file_made() and end_temp(); or -errno */
static int begin_temp(const struct cp *cp, struct temp *t)
{
	int rc = make_temp_path(cp, &t->path);

	if (rc)
		return rc;
	t->slot = add_temp(cp, t);
	if (t->slot == SIGNALS_CAME)
		return -EINTR;
	t->held = cp->to_t.m || t->slot < 0;
	if (t->held && !signals_hold()) {
		signals_file_del(t->slot);
		signals_release();
		return -EINTR;
	}
	return 0;
}

static void end_temp(struct temp *t)
{
	signals_file_del(t->slot);
	if (t->held)
		signals_release();
}

/* Did a signal handler end the copy, and remove and report the file? */
static bool is_ended(const struct temp *t)
{
	return tool_interrupted() && signals_file_end(t->slot);
}

/* Removes the file on the target's side. Return: false: the server did not reply to that, which was reported. */
static bool remove_temp(const struct cp *cp, const struct temp *t)
{
	if (!tool_is_interruption(fs_unlink(cp->to_base, t->path.text)))
		return true;
	progress_hide(cp->progress);
	return !signals_file_leave(t->slot);
}

/* Renames @temp to the target's name. A server that restarted after the rename but before its reply executes it again
 * and does not find @temp; then the target's inode number shows that the rename succeeded. */
static int rename_temp(const struct cp *cp, const char *temp)
{
	struct stat ours, there;
	int rc = cp->to_t.m ? fs_lstat(cp->to_base, temp, &ours) : 0;

	if (rc)
		return rc;
	signals_mount_defer(cp->to_t.m, true);
	rc = fs_rename(cp->to_base, temp, cp_target_name(cp));
	signals_mount_defer(cp->to_t.m, false);
	if (rc == -ENOENT && cp->to_t.m && !fs_lstat(cp->to_base, cp_target_name(cp), &there) &&
	    there.st_ino == ours.st_ino && there.st_dev == ours.st_dev)
		rc = 0;
	return rc;
}

/* ---- data ---- */

/* An object found as a regular file is read only if it still is one; with -r, links are not followed. */
static int open_named(struct cp *cp, const struct stat *seen, struct fs_file *ret)
{
	struct fs_base b = cp->from_base;

	if (!S_ISREG(seen->st_mode))
		return fs_open(b, cp_source_name(cp), O_RDONLY, 0, ret);
	b.no_links |= cp->recursive;
	return fs_open_regular(b, cp_source_name(cp), ret);
}

static int open_source(struct cp *cp, const struct stat *seen, struct source *ret)
{
	int rc;

	rc = cp->from_std ? fs_std(STDIN_FILENO, &ret->file) : open_named(cp, seen, &ret->file);
	if (rc)
		return rc;
	rc = fs_fstat(&ret->file, &ret->st);
	if (!rc && !cp->from_std && S_ISREG(seen->st_mode) && !S_ISREG(ret->st.st_mode))
		rc = S_ISDIR(ret->st.st_mode) ? -EISDIR : -ENXIO;
	if (!rc && S_ISDIR(ret->st.st_mode))
		rc = -EISDIR;
	if (rc)
		fs_drop(&ret->file);
	return rc;
}

/* Attributes of a pipe or device are not preserved. */
static bool preserves(const struct cp *cp, const struct source *src)
{
	return cp->preserve && S_ISREG(src->st.st_mode);
}

/* Sets the size of a regular file to that of the copy: cuts old content, or adds a hole. */
static int set_end(struct cp *cp, struct fs_file *out)
{
	uint64_t end = copier_end(cp->copier);
	struct stat st;
	int rc;

	rc = fs_fstat(out, &st);
	if (rc || !S_ISREG(st.st_mode) || (uint64_t)st.st_size == end)
		return rc;
	return fs_ftruncate(out, end);
}

/* Did the server lose written data, while the source can be read again? */
static bool is_lost(const struct cp *cp, const struct source *src, enum copy_side side, int rc)
{
	return rc == -EIO && side == COPY_TO && cp->to_t.m && S_ISREG(src->st.st_mode) &&
	       !cp->from_std && strstr(leat_error(cp->to_t.m), "the server lost data");
}

static int open_target(struct cp *cp, const struct source *src, struct fs_file *ret)
{
	int rc;

	if (cp->to_std)
		return fs_std(STDOUT_FILENO, ret);
	/* O_CREAT only for a new file: fs.protected_regular refuses it for files of others in /tmp */
	rc = fs_open(cp->to_base, cp_target_name(cp), O_WRONLY, 0, ret);
	if (rc == -ENOENT)
		rc = fs_open(cp->to_base, cp_target_name(cp), O_WRONLY | O_CREAT,
			     cp_new_mode(cp, &src->st), ret);
	return rc;
}

/* Sets the times last, because data that a server writes later would change them. */
static int preserve_file(struct cp *cp, struct source *src, struct fs_file *out, enum copy_side *side)
{
	int rc = out->m && copier_end(cp->copier) ? fs_fsync(out) : 0;

	return rc ? rc : cp_preserve(cp, &src->file, out, &src->st, side);
}

/* Does the open target, with attributes @st, have content that the copy destroys? */
static bool is_in_place(const struct cp *cp, const struct stat *st)
{
	return S_ISREG(st->st_mode) && !cp->to_std;
}

/* Reports a failed copy over old content. */
static int report_in_place(struct cp *cp, enum copy_side side, int err)
{
	if (err == REPORTED)
		return TOOL_FAILED;
	if (!copier_has_written(cp->copier))
		return cp_report(cp, side, err);
	if (tool_is_interruption(err))
		return cp_say(cp, COPY_TO, "interrupted; " SIGNALS_PART_TEXT);
	(void)cp_report(cp, side, err);
	return cp_say(cp, COPY_TO, SIGNALS_PART_TEXT);
}

/* copier_run() over the old content of a regular file */
static int run_in_place(struct cp *cp, struct source *src, struct fs_file *out, enum copy_side *side)
{
	char place[TOOL_PLACE_BYTES];
	struct signals_file f = { .kind = SIGNALS_IN_PLACE, .place = cp_place(cp, COPY_TO, place) };
	int slot = signals_file_add(&f), rc;

	copier_in_place(cp->copier, slot);
	rc = copier_run(cp->copier, &src->file, out, (uint64_t)src->st.st_size, 0, side);
	copier_in_place(cp->copier, -1);
	if (!rc) {
		*side = COPY_TO;
		rc = set_end(cp, out);
	}
	if (rc && tool_interrupted() && signals_file_end(slot))
		rc = REPORTED;
	signals_file_del(slot);
	return rc;
}

/* Copies from the beginning of the source over the content of the open target, with attributes @st. */
static int overwrite_target(struct cp *cp, struct source *src, struct fs_file *out,
			    const struct stat *st, enum copy_side *side)
{
	bool regular = is_in_place(cp, st);
	unsigned how = S_ISBLK(st->st_mode) && !cp->to_std ? 0 : COPY_ORDERED;
	int rc = 0;

	if (regular && !preserves(cp, src))
		rc = cp_clear_set_id(out, false);
	if (rc)
		return rc;
	if (!regular)
		return copier_run(cp->copier, &src->file, out, (uint64_t)src->st.st_size, how, side);
	rc = run_in_place(cp, src, out, side);
	if (!rc && preserves(cp, src))
		return preserve_file(cp, src, out, side);
	return rc ? rc : cp_clear_set_id(out, true);
}

static int copy_in_place(struct cp *cp, struct source *src)
{
	enum copy_side side;
	struct fs_file out;
	struct stat st;
	bool same, in_place;
	int rc, err, copies = 0;

	do {
		side = COPY_TO;
		rc = open_target(cp, src, &out);
		if (rc)
			return cp_report(cp, COPY_TO, rc);
		rc = fs_fstat(&out, &st);
		in_place = !rc && is_in_place(cp, &st);
		same = !rc && S_ISREG(st.st_mode) && cp_is_same(cp, &src->st, &st);
		if (!rc && !same)
			rc = overwrite_target(cp, src, &out, &st, &side);
		err = fs_close(&out);
		if (same)
			return cp_refuse_same(cp);
		if (!rc && err) {
			rc = err;
			side = COPY_TO;
		}
	} while (is_lost(cp, src, side, rc) && ++copies < COPIES_MAX);
	if (!rc)
		return TOOL_OK;
	return in_place ? report_in_place(cp, side, rc) : cp_report(cp, side, rc);
}

/* A regular file to be replaced by a new file; or the name is free or a link. */
struct place {
	const struct stat *old; /* NULL: not a regular file */
	bool taken;             /* the name exists */
};

/* Sets the attributes of the new file @out before its content is written, so that no unauthorized user can read it. */
static bool prepare_new(struct cp *cp, const struct source *src, const struct place *place,
			struct fs_file *out)
{
	if (preserves(cp, src))
		return cp_take_owner(out, &src->st, place->old);
	return !place->old || cp_keep_attributes(cp, cp_target_name(cp), place->old, out);
}

static int fill_new(struct cp *cp, struct source *src, const struct place *place, struct fs_file *out,
		    enum copy_side *side)
{
	bool regular = S_ISREG(src->st.st_mode);
	/* zeros are searched only in a file with holes; they need not be written because the new file is empty */
	bool sparse = regular && (uint64_t)src->st.st_blocks * 512 < (uint64_t)src->st.st_size;
	int rc;

	rc = copier_run(cp->copier, &src->file, out, (uint64_t)src->st.st_size,
			sparse ? COPY_SPARSE : 0, side);
	if (rc)
		return rc;
	*side = COPY_TO;
	if (sparse)
		rc = set_end(cp, out);
	if (!rc && preserves(cp, src))
		rc = preserve_file(cp, src, out, side);
	/* a rename may reach the local disk before the data; a crash would then lose both contents */
	if (!rc && place->taken && !out->m)
		rc = fs_fsync(out);
	return rc;
}

/* The copy has failed with @err. Return: -EAGAIN if @again; or an exit status */
static int give_up(struct cp *cp, const struct temp *temp, bool again, enum copy_side side, int err)
{
	bool interrupted = tool_is_interruption(err);
	int rc = again ? -EAGAIN : TOOL_FAILED;

	if (is_ended(temp))
		return TOOL_FAILED;
	/* before the removal, which may fail and change the error text */
	if (!again && !interrupted)
		rc = cp_report(cp, side, err);
	/* the report of an interruption is after the removal: if the server does not reply to it, that is reported instead */
	return remove_temp(cp, temp) && interrupted ? cp_report(cp, side, err) : rc;
}

/* Return: 0; -EINPROGRESS: the file may exist; -errno */
static int create_temp(const struct cp *cp, const struct temp *temp, mode_t mode, struct fs_file *ret)
{
	int rc;

	signals_mount_defer(cp->to_t.m, true);
	rc = fs_open(cp->to_base, temp->path.text, O_WRONLY | O_CREAT | O_EXCL, mode, ret);
	signals_mount_defer(cp->to_t.m, false);
	return rc;
}

/* Copies into a new file, and renames it over the existing one when it is complete.
 *
 * Return: an exit status; or -EAGAIN: the server lost data; the caller may try again unless @last; -EACCES, -EPERM:
 * no file can be created there, or none that may replace the old one.
 */
static int copy_beside(struct cp *cp, struct source *src, const struct place *place, bool last)
{
	mode_t mode = place->old || preserves(cp, src) ? 0600 : cp_new_mode(cp, &src->st) & 0777;
	enum copy_side side = COPY_TO;
	struct fs_file out;
	struct temp temp;
	int rc, err;

	rc = begin_temp(cp, &temp);
	if (rc)
		return cp_report(cp, COPY_TO, rc);
	rc = create_temp(cp, &temp, mode, &out);
	if (rc) {
		if (rc == -EINPROGRESS)
			rc = give_up(cp, &temp, false, COPY_TO, rc);
		else if (rc == -ENOENT)
			rc = report_missing(cp);
		else if (rc != -EACCES && rc != -EPERM)
			rc = cp_report(cp, COPY_TO, rc);
		end_temp(&temp);
		return rc;
	}
	signals_file_made(temp.slot);
	if (!prepare_new(cp, src, place, &out)) {
		fs_drop(&out);
		rc = -EPERM;
		if (tool_interrupted()) /* perhaps only that has prevented it */
			rc = give_up(cp, &temp, false, COPY_TO, -EINTR);
		else
			fs_unlink(cp->to_base, temp.path.text);
		end_temp(&temp);
		return rc;
	}
	rc = fill_new(cp, src, place, &out, &side);
	err = fs_close(&out);
	if (!rc) {
		side = COPY_TO;
		rc = err;
	}
	if (!rc)
		rc = rename_temp(cp, temp.path.text);
	if (rc)
		rc = give_up(cp, &temp, !last && is_lost(cp, src, side, rc), side, rc);
	end_temp(&temp);
	return rc;
}

static int copy_opened(struct cp *cp, struct source *src)
{
	struct place place = { 0 };
	struct stat old, target;
	bool is_link;
	int rc, copies = 1;

	if (cp->to_std)
		return copy_in_place(cp, src);
	rc = fs_lstat(cp->to_base, cp_target_name(cp), &old);
	if (rc && rc != -ENOENT)
		return cp_report(cp, COPY_TO, rc);
	place.taken = !rc;
	if (place.taken) {
		is_link = S_ISLNK(old.st_mode) && cp->to_base.no_links;
		target = old;
		/* a dangling link is not a file; its target is created */
		if (S_ISLNK(old.st_mode) && !is_link &&
		    fs_stat(cp->to_base, cp_target_name(cp), &target))
			target = old;
		if (S_ISDIR(target.st_mode))
			return cp_report(cp, COPY_TO, -EISDIR);
		if (!is_link && cp_is_same(cp, &src->st, &target))
			return cp_refuse_same(cp);
		if (!is_link && (!S_ISREG(old.st_mode) || old.st_nlink > 1))
			return copy_in_place(cp, src);
		if (!is_link)
			place.old = &old;
	}
	do
		rc = copy_beside(cp, src, &place, copies == COPIES_MAX);
	while (rc == -EAGAIN && copies++ < COPIES_MAX);
	return rc == -EACCES || rc == -EPERM ? copy_in_place(cp, src) : rc;
}

int cp_copy_file(struct cp *cp, const struct stat *seen)
{
	struct source src;
	int rc, err;

	progress_file(cp->progress, cp->from.text, (uint64_t)seen->st_size);
	rc = open_source(cp, seen, &src);
	if (rc)
		return cp_report(cp, COPY_FROM, rc);
	rc = copy_opened(cp, &src);
	err = fs_close(&src.file);
	return rc == TOOL_OK && err ? cp_report(cp, COPY_FROM, err) : rc;
}

/* ---- links and special files ---- */

/* Would a link to the replaced file leave no copy of that file? */
static bool leads_to_target(struct cp *cp)
{
	struct fs_base b = cp->from_base;
	struct stat from, to;

	b.no_links = false;
	return !fs_stat(b, cp_source_name(cp), &from) &&
	       !fs_lstat(cp->to_base, cp_target_name(cp), &to) && cp_is_same(cp, &from, &to);
}

static int make_link(struct cp *cp, const char *target, const char *path, const struct stat *st)
{
	int rc = fs_symlink(cp->to_base, target, path);

	return rc || !cp->preserve ? rc : cp_preserve_other(cp, path, st);
}

static int replace_by_link(struct cp *cp, const char *target, const struct stat *st)
{
	struct temp temp;
	int rc = begin_temp(cp, &temp);

	if (rc)
		return rc;
	signals_mount_defer(cp->to_t.m, true);
	rc = make_link(cp, target, temp.path.text, st);
	signals_mount_defer(cp->to_t.m, false);
	signals_file_made(temp.slot);
	if (!rc)
		rc = rename_temp(cp, temp.path.text);
	if (rc && is_ended(&temp))
		rc = REPORTED;
	else if (rc && !remove_temp(cp, &temp))
		rc = REPORTED;
	end_temp(&temp);
	return rc;
}

int cp_copy_link(struct cp *cp, const struct stat *st)
{
	char target[TOOL_PATH_MAX + 1];
	int rc;

	rc = fs_readlink(cp->from_base, cp_source_name(cp), target, sizeof(target));
	if (rc)
		return cp_report(cp, COPY_FROM, rc);
	rc = make_link(cp, target, cp_target_name(cp), st);
	if (rc == -EEXIST) {
		if (leads_to_target(cp))
			return cp_refuse_same(cp);
		rc = replace_by_link(cp, target, st);
	}
	return !rc ? TOOL_OK : rc == REPORTED ? TOOL_FAILED : cp_report(cp, COPY_TO, rc);
}

int cp_copy_special(struct cp *cp, const struct stat *st)
{
	int rc = fs_mknod(cp->to_base, cp_target_name(cp), (st->st_mode & S_IFMT) | cp_new_mode(cp, st),
			  st->st_rdev);

	if (!rc && cp->preserve)
		rc = cp_preserve_other(cp, cp_target_name(cp), st);
	return rc ? cp_report(cp, COPY_TO, rc) : TOOL_OK;
}
