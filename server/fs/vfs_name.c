/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * vfs_name.c - creates, renames and removes names with NFS semantics
 *
 * Operation: each operation changes one or two directories with the caller's rights, finds the new object,
 *            sets the requested attributes, and syncs file and directories before it returns: a change
 *            that NFS has confirmed survives a crash. A new file is synced separately if the file system
 *            does not order its inode before its name (struct fs_limits). A failed sync is a failed
 *            operation, although the name may exist.
 * Memory:    struct vfs_made owns the descriptor of the object, and a second one for the data of a new regular file, until
 *            vfs_made_close().
 * Threads:   workers.
 * Errors:    -errno. The names "." and ".." are refused as RFC 1813 says for each procedure.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/wire.h"
#include "dir_watch.h"
#include "vfs_int.h"

#define MODE_FILE 0644u
#define MODE_DIR 0755u

static bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

/* Begins a change of one name; dir_watch_end() must follow. */
static void begin_change(struct dir_turn *t, const struct fh_obj *dir, uint32_t event, const char *name)
{
	struct dir_step step = { .dir = dir, .event = event, .name = name };

	dir_watch_begin(t, &step, 1);
}

static int check_new(const struct fh_obj *dir, const char *name)
{
	int err = vfs_check_name(name);

	if (err)
		return err;
	if (!S_ISDIR(dir->stx.stx_mode))
		return -ENOTDIR;
	return is_dots(name) ? -EEXIST : 0;
}

void vfs_made_close(struct vfs_made *m)
{
	fh_close(&m->obj);
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
}

/* The attributes still to be set on a new file. Only root may change the owner; a client that merely repeats its
 * user's own id should not fail for it. The permission bits were given at creation, and the default list of the
 * directory may have reduced them: that result stays. */
static struct vfs_sattr remaining(const struct fh_obj *o, const struct vfs_sattr *sa,
				  const struct creds *cr)
{
	struct vfs_sattr left = *sa;
	bool may_give = creds_can_assume() && cr->uid == 0;

	if (!may_give || o->stx.stx_uid == left.uid)
		left.set &= ~(unsigned)VFS_SET_UID;
	if ((!may_give && !creds_has_group(cr, left.gid)) || o->stx.stx_gid == left.gid)
		left.set &= ~(unsigned)VFS_SET_GID;
	left.mode = (left.mode & 07000u) | (o->stx.stx_mode & 0777u);
	/* a new owner clears set-id bits */
	if ((o->stx.stx_mode & 07777u) == left.mode && !(left.set & (VFS_SET_UID | VFS_SET_GID)))
		left.set &= ~(unsigned)VFS_SET_MODE;
	return left;
}

/* Removes a new object that could not get its attributes. If another object has taken the name meanwhile, that stays.
 */
static void unmake(struct fh_set *s, const struct fh_obj *dir, const char *name,
		   const struct creds *cr, const struct fh_obj *o)
{
	int flags = S_ISDIR(o->stx.stx_mode) ? AT_REMOVEDIR : 0;
	bool gone;

	if (creds_assume(cr))
		return;
	gone = fh_has_name(o, dir, name) && !unlinkat(dir->fd, name, flags);
	creds_resume();
	if (gone)
		fh_note_unlinked(s, o, dir, name, true);
}

/* Return: as export.made */
static int tell_made(const struct fh_obj *dir, const struct fh_obj *o, const void *how)
{
	return dir->exp->made ? dir->exp->made(dir, o, how) : 0;
}

/* Sets attributes, syncs, and reads the attributes again; @m->obj was found. */
static int finish(struct fh_set *s, const struct fh_obj *dir, const char *name,
		  const struct vfs_sattr *sa, const struct creds *cr, struct vfs_made *m)
{
	struct vfs_sattr left = remaining(&m->obj, sa, cr);
	int err = left.set ? vfs_apply(&m->obj, &left, cr) : 0;
	bool added = false;

	if (!err) {
		err = tell_made(dir, &m->obj, sa->how);
		added = err > 0;
		err = MIN(err, 0);
	}
	if (err)
		unmake(s, dir, name, cr, &m->obj);
	/* a new empty file is in the same transaction as its name, if the file system orders names; later changes may
	 * be in a later transaction */
	if (!err && (left.set || added || !dir->exp->backing.limits.orders_names))
		err = m->fd >= 0 ? vfs_sync_fd(&m->obj, m->fd) : vfs_sync(&m->obj);
	if (!err)
		err = vfs_sync(dir);
	return err ? err : vfs_after(vfs_stat(m->obj.fd, &m->obj.stx));
}

static int made(int err, struct vfs_made *m, struct vfs_made *ret)
{
	if (err)
		vfs_made_close(m);
	else
		*ret = *m;
	return err;
}

/* ---- CREATE ------------------------------------------------------------------------------- */

/* The verifier of an exclusive create is stored in the times of the file until the client sets real ones (RFC 1813
 * section 3.3.8). Seconds use 31 bits, which every file system can hold. The other two bits are stored where only a
 * file system with fractions keeps them. */
struct verf_times {
	struct timespec atime, mtime;
};

static struct verf_times verf_times(const uint8_t verf[VFS_VERF_BYTES])
{
	uint32_t a = get_be32(verf), m = get_be32(verf + 4);

	return (struct verf_times){
		.atime = { .tv_sec = a & 0x7fffffffu, .tv_nsec = (long)(a >> 31) * 1000000 },
		.mtime = { .tv_sec = m & 0x7fffffffu, .tv_nsec = (long)(m >> 31) * 1000000 },
	};
}

static bool time_is(const struct statx_timestamp *have, const struct timespec *want)
{
	return have->tv_sec == want->tv_sec && (!have->tv_nsec || have->tv_nsec == want->tv_nsec);
}

static bool is_same_create(const struct statx *stx, const struct verf_times *t)
{
	return S_ISREG(stx->stx_mode) && stx->stx_size == 0 &&
	       time_is(&stx->stx_atime, &t->atime) && time_is(&stx->stx_mtime, &t->mtime);
}

static int open_new(const struct fh_obj *dir, const char *name, uint32_t mode,
		    const struct creds *cr)
{
	int fd, err = creds_assume(cr);

	if (err)
		return err;
	fd = openat(dir->fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    mode & 07777u);
	err = fd >= 0 ? fd : -errno;
	creds_resume();
	return err;
}

/* Creates a file that has its verifier before it has a name. Otherwise a server crash in between would leave a file
 * that the retransmitted call of its own client could not use.
 *
 * Return: a descriptor; -EOPNOTSUPP: this file system cannot create files without names; -EEXIST, ...
 */
static int open_exclusive(const struct fh_obj *dir, const char *name, const struct verf_times *t,
			  const struct creds *cr)
{
	const struct timespec times[2] = { t->atime, t->mtime };
	char buf[VFS_PROC_PATH];
	int fd, err = creds_assume(cr);

	if (err)
		return err;
	fd = openat(dir->fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, S_IRUSR | S_IWUSR);
	if (fd < 0)
		err = errno == EISDIR || errno == EINVAL ? -EOPNOTSUPP : -errno;
	else if (futimens(fd, times))
		err = -errno;
	else if (linkat(AT_FDCWD, vfs_proc_path(fd, buf), dir->fd, name, AT_SYMLINK_FOLLOW))
		err = -errno;
	creds_resume();
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

/* Syncs a file made by an earlier call, which may not have synced it: a call still in progress, or one interrupted by
 * a crash of the server and now retransmitted. So it may lack what the export adds, too. */
static int sync_made(const struct fh_obj *dir, const struct vfs_made *m)
{
	int err = MIN(tell_made(dir, &m->obj, NULL), 0);

	if (!err)
		err = vfs_sync(&m->obj);
	return err ? err : vfs_sync(dir);
}

/* The name exists already. UNCHECKED: success, and only a size is applied to the file, as a local open(O_CREAT |
 * O_TRUNC) would. */
static int create_again(struct fh_set *s, const struct fh_obj *dir, const char *name,
			enum vfs_create how, const struct vfs_sattr *sa, const struct verf_times *t,
			const struct creds *cr, struct vfs_made *m)
{
	struct vfs_sattr size_only = { .set = sa->set & VFS_SET_SIZE, .size = sa->size };
	int err;

	if (how == VFS_GUARDED)
		return -EEXIST;
	err = vfs_lookup(s, dir, name, cr, &m->obj);
	if (err)
		return err;
	if (how == VFS_EXCLUSIVE)
		return is_same_create(&m->obj.stx, t) ? sync_made(dir, m) : -EEXIST;
	if (!S_ISREG(m->obj.stx.stx_mode))
		return -EEXIST;
	err = size_only.set ? vfs_apply(&m->obj, &size_only, cr) : 0;
	if (!err)
		err = sync_made(dir, m);
	return err ? err : vfs_stat(m->obj.fd, &m->obj.stx);
}

/* if the name leads to another file by now, use that of the descriptor */
static int find_made(struct fh_set *s, const struct fh_obj *dir, const char *name,
		     struct vfs_made *m)
{
	struct statx stx;
	int err = vfs_stat(m->fd, &stx);

	if (!err)
		err = fh_lookup(s, dir, name, &m->obj);
	if (!err &&
	    (m->obj.stx.stx_ino != stx.stx_ino || stx_dev(&m->obj.stx) != stx_dev(&stx)))
		err = -ESTALE;
	return err;
}

int vfs_create(struct fh_set *s, const struct fh_obj *dir, const char *name, enum vfs_create how,
	       const struct vfs_sattr *sa, const uint8_t verf[VFS_VERF_BYTES],
	       const struct creds *cr, struct vfs_made *ret)
{
	struct vfs_made m = { .obj.fd = -1, .fd = -1 };
	struct vfs_sattr none = { 0 };
	struct verf_times t = { 0 };
	struct dir_turn turn;
	uint32_t mode = sa && sa->set & VFS_SET_MODE ? sa->mode : MODE_FILE;
	int err = check_new(dir, name);

	if (err)
		return err;
	if (how == VFS_EXCLUSIVE) {
		t = verf_times(verf);
		sa = &none;
		mode = S_IRUSR | S_IWUSR;
	}
	begin_change(&turn, dir, IN_CREATE, name);
	m.fd = how == VFS_EXCLUSIVE ? open_exclusive(dir, name, &t, cr) : -EOPNOTSUPP;
	if (m.fd == -EOPNOTSUPP)
		m.fd = open_new(dir, name, mode, cr);
	dir_watch_end(&turn, m.fd >= 0);
	/* a directory returns EISDIR, a dangling link ELOOP: the name exists */
	if (m.fd == -EEXIST || m.fd == -EISDIR || m.fd == -ELOOP) {
		m.fd = -1;
		return made(create_again(s, dir, name, how, sa, &t, cr, &m), &m, ret);
	}
	if (m.fd < 0) {
		err = m.fd;
		m.fd = -1;
		return err;
	}
	err = vfs_after(find_made(s, dir, name, &m));
	if (!err && how == VFS_EXCLUSIVE) {
		none.set = VFS_SET_ATIME | VFS_SET_MTIME;
		none.atime = t.atime;
		none.mtime = t.mtime;
	}
	if (!err)
		err = finish(s, dir, name, sa, cr, &m);
	return made(err, &m, ret);
}

/* ---- MKDIR, SYMLINK, MKNOD ---------------------------------------------------------------- */

/* Runs as the caller. */
static int make_object(int dir_fd, const char *name, const struct vfs_new *what, uint32_t mode)
{
	int failed;

	if (what->type == S_IFDIR)
		failed = mkdirat(dir_fd, name, mode);
	else if (what->type == S_IFLNK)
		failed = symlinkat(what->target, dir_fd, name);
	else
		failed = mknodat(dir_fd, name, what->type | mode, what->rdev);
	return failed ? -errno : 0;
}

int vfs_make(struct fh_set *s, const struct fh_obj *dir, const char *name, const struct vfs_new *what,
	     const struct vfs_sattr *sa, const struct creds *cr, struct vfs_made *ret)
{
	struct vfs_made m = { .obj.fd = -1, .fd = -1 };
	bool is_dir = what->type == S_IFDIR;
	uint32_t mode = sa->set & VFS_SET_MODE ? sa->mode : is_dir ? MODE_DIR : MODE_FILE;
	struct vfs_sattr rest = *sa;
	struct dir_turn turn;
	int err = check_new(dir, name);

	if (err)
		return err;
	begin_change(&turn, dir, is_dir ? IN_CREATE | IN_ISDIR : IN_CREATE, name);
	err = creds_assume(cr);
	if (!err) {
		err = make_object(dir->fd, name, what, mode & 07777u);
		creds_resume();
	}
	dir_watch_end(&turn, !err);
	if (!err)
		err = vfs_after(fh_lookup(s, dir, name, &m.obj));
	if (err)
		return made(err, &m, ret);
	rest.set &= ~(unsigned)(what->type == S_IFLNK ? VFS_SET_MODE | VFS_SET_SIZE : VFS_SET_SIZE);
	if (is_dir) /* it inherits the set-group-id bit of its parent; keep it */
		rest.mode |= m.obj.stx.stx_mode & S_ISGID;
	return made(finish(s, dir, name, &rest, cr, &m), &m, ret);
}

/* ---- REMOVE, RMDIR, RENAME, LINK ---------------------------------------------------------- */

static void note_gone(const struct fh_obj *o, struct vfs_gone *ret)
{
	struct statx stx;

	ret->gone = !vfs_stat(o->fd, &stx) && !stx.stx_nlink;
	ret->dev = stx_dev(&o->stx);
	ret->ino = o->stx.stx_ino;
}

int vfs_remove(struct fh_set *s, const struct fh_obj *dir, const char *name, bool is_dir,
	       const struct creds *cr, struct vfs_gone *ret)
{
	struct vfs_gone gone = { 0 };
	struct fh_obj o = { .fd = -1 };
	struct dir_turn turn;
	int err = vfs_check_name(name);

	if (err)
		return err;
	if (is_dots(name)) /* RFC 1813 section 3.3.13 refuses both names */
		return !is_dir ? -EISDIR : name[1] ? -EEXIST : -EINVAL;
	err = vfs_lookup(s, dir, name, cr, &o);
	if (err)
		goto out;
	begin_change(&turn, dir, is_dir ? IN_DELETE | IN_ISDIR : IN_DELETE, name);
	err = creds_assume(cr);
	if (!err) {
		err = unlinkat(dir->fd, name, is_dir ? AT_REMOVEDIR : 0) ? -errno : 0;
		creds_resume();
	}
	dir_watch_end(&turn, !err);
	if (err == -EPERM && S_ISDIR(o.stx.stx_mode) && !is_dir)
		err = -EISDIR; /* POSIX allows this error for unlink() of a directory */
	if (err)
		goto out;
	note_gone(&o, &gone);
	fh_note_unlinked(s, &o, dir, name, gone.gone);
	err = vfs_sync(dir);
	*ret = gone;
out:
	fh_close(&o);
	return err;
}

static void begin_rename(struct dir_turn *t, const struct fh_obj *from, const char *from_name,
			 const struct fh_obj *to, const char *to_name, const struct fh_obj *o)
{
	uint32_t is_dir = S_ISDIR(o->stx.stx_mode) ? IN_ISDIR : 0;
	const struct dir_step steps[] = {
		{ .dir = from, .event = IN_MOVED_FROM | is_dir, .name = from_name },
		{ .dir = to, .event = IN_MOVED_TO | is_dir, .name = to_name, .moved = o },
	};

	dir_watch_begin(t, steps, ARRAY_SIZE(steps));
}

static int rename_in(const struct fh_obj *from, const char *from_name, const struct fh_obj *to, const char *to_name,
		     bool replaces)
{
	if (!replaces) {
		if (!renameat2(from->fd, from_name, to->fd, to_name, RENAME_NOREPLACE))
			return 0;
		if (errno != EINVAL)
			return -errno;
	}
	return renameat(from->fd, from_name, to->fd, to_name) ? -errno : 0;
}

/* The earlier object of the new name may lose its last name. */
int vfs_rename(struct fh_set *s, const struct fh_obj *from, const char *from_name,
	       const struct fh_obj *to, const char *to_name, bool replaces, const struct creds *cr,
	       struct vfs_gone *ret)
{
	struct fh_obj o = { .fd = -1 }, old = { .fd = -1 };
	struct vfs_gone gone = { 0 };
	bool other;
	struct dir_turn turn;
	int err = vfs_check_name(from_name);

	if (!err)
		err = vfs_check_name(to_name);
	if (err)
		return err;
	if (is_dots(from_name) || is_dots(to_name))
		return -EINVAL;
	if (from->exp != to->exp)
		return -EXDEV;
	err = vfs_lookup(s, from, from_name, cr, &o);
	if (!err) {
		err = vfs_lookup(s, to, to_name, cr, &old);
		err = err == -ENOENT ? 0 : err;
	}
	if (err)
		goto out;
	begin_rename(&turn, from, from_name, to, to_name, &o);
	err = creds_assume(cr);
	if (!err) {
		err = rename_in(from, from_name, to, to_name, replaces);
		creds_resume();
	}
	/* a rename between two names of one file changes nothing */
	dir_watch_end(&turn, !err && (old.fd < 0 || old.stx.stx_ino != o.stx.stx_ino));
	if (err)
		goto out;
	if (old.fd >= 0) {
		note_gone(&old, &gone);
		fh_note_unlinked(s, &old, to, to_name, gone.gone);
	}
	fh_note_moved(s, &o, from, from_name, to, to_name);
	other = from->stx.stx_ino != to->stx.stx_ino;
	if (other && S_ISDIR(o.stx.stx_mode) && !to->exp->backing.limits.orders_names)
		err = vfs_sync(&o); /* its ".." changed */
	if (!err)
		err = vfs_sync(to);
	if (!err && other)
		err = vfs_sync(from);
	*ret = gone;
out:
	fh_close(&old);
	fh_close(&o);
	return err;
}

int vfs_link(struct fh_set *s, const struct fh_obj *o, const struct fh_obj *dir, const char *name,
	     const struct creds *cr)
{
	char buf[VFS_PROC_PATH];
	struct fh_obj seen = { .fd = -1 };
	struct dir_turn turn;
	int err = check_new(dir, name);

	if (err)
		return err;
	if (o->exp != dir->exp)
		return -EXDEV;
	if (S_ISDIR(o->stx.stx_mode))
		return -EISDIR;
	begin_change(&turn, dir, IN_CREATE, name);
	err = creds_assume(cr);
	if (!err) {
		err = linkat(AT_FDCWD, vfs_proc_path(o->fd, buf), dir->fd, name, AT_SYMLINK_FOLLOW) ? -errno
												    : 0;
		creds_resume();
	}
	dir_watch_end(&turn, !err);
	if (err)
		return err;
	if (!fh_lookup(s, dir, name, &seen)) /* adds the name to the map */
		fh_close(&seen);
	err = vfs_sync(o);
	return err ? err : vfs_sync(dir);
}
