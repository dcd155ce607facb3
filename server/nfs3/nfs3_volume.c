/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs3_volume.c - the program of volumes (xdr/volumes.x), and what NFS procedures do otherwise with striped files
 *
 * Operation: A volume is an export with a manager. LAYOUT asks the kernel what the caller may do with the file, as READ and
 *            WRITE would, and signs a handle for each stripe. REPORT and RESERVE need no such question: a handle with the right to
 *            write proves it. ALLOCATE and SEEK of striped files are refused.
 * Memory:    Stripes of a layout are in r->scratch. The map belongs to the exports that the request holds.
 * Threads:   Workers; MAP on the reactor.
 * Errors:    As statuses in the results.
 */
#include "nfs3_volume.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "nfs.h"
#include "nfs3_conv.h"
#include "nfs3_meta.h"
#include "nfs_reserve.h"
#include "volume_calls.h"
#include "volume_layout.h"
#include "volume_manager.h"
#include "volume_pending.h"
#include "volume_reach.h"
#include "volumes.h"

_Static_assert(offsetof(volume_fh, volume_fh_len) == offsetof(nfs_fh3, data.data_len) &&
		       offsetof(volume_fh, volume_fh_val) == offsetof(nfs_fh3, data.data_val) && VOLUME_FH_MAX == NFS3_FHSIZE,
	       "arguments begin with a handle of NFS");

#define NAMES_TRIES 16u

/* ---- refusals of NFS ------------------------------------------------------------------------ */

int nfs3_volume_refuse(const struct req *r)
{
	struct volume_manager *m = nfs_manager(r);

	if (!m)
		return 0;
	nfs_count(r->reactor, volume_refused);
	if (log_limit_ok_under(&m->dir->log_lock, &m->dir->refusals))
		log_warn("volume %s: %s refused: not yet possible for striped files", m->name + 1, r->proc->name);
	return -EOPNOTSUPP;
}

void nfs3_volume_space(const struct req *r, FSSTAT3resok *ok)
{
	struct volume_manager *m = nfs_manager(r);
	struct volume_space s;

	if (!m || !volume_reach_space(m->dir->reach, &s))
		return;
	ok->tbytes = s.bytes;
	ok->fbytes = s.bytes - MIN(s.bytes_used, s.bytes);
	ok->abytes = s.bytes_free;
}

int nfs3_volume_size(const struct req *r, const struct fh_obj *o, struct vfs_sattr *sa)
{
	bool waits;
	int err;

	if (!o->exp->manager || !(sa->set & VFS_SET_SIZE) || !S_ISREG(o->stx.stx_mode))
		return 0;
	sa->set &= ~(unsigned)VFS_SET_SIZE;
	/* it waits for stripe servers, and one of them may be this leatd, which needs workers for that */
	waits = sa->size <= o->stx.stx_size || volume_has_writers(o); /* as long: for an earlier cut */
	if (waits && !client_begin_long(r->conn->client))
		return -EAGAIN;
	err = volume_set_size(o, sa->size, waits, &r->creds);
	if (waits)
		client_end_long(r->conn->client);
	return err;
}

/* ---- names that go -------------------------------------------------------------------------- */

/* Return: 0; as vfs_lookup() */
static int find_names(const struct req *r, struct nfs3_volume_names *n)
{
	struct fh_set *fhs = nfs_handles(r);
	int err;

	n->moved.fd = n->victim.fd = -1;
	err = n->from ? vfs_lookup(fhs, n->from, n->from_name, &r->creds, &n->moved) : 0;
	if (err)
		return err;
	err = vfs_lookup(fhs, n->dir, n->name, &r->creds, &n->victim);
	return n->from && err == -ENOENT ? 0 : err;
}

static bool is_file(const struct fh_obj *o)
{
	return o->fd >= 0 && S_ISREG(o->stx.stx_mode);
}

/* What has the names is locked, and only then do they stay. Return: 0; -EAGAIN: they have changed; as volume_unlink_begin() */
static int lock_names(struct nfs3_volume_names *n)
{
	const struct fh_obj *a = n->from ? &n->moved : &n->victim;
	int err = 0;

	volume_lock_names(a, &n->victim);
	if ((n->from && !fh_has_name(&n->moved, n->from, n->from_name)) ||
	    (n->victim.fd >= 0 && !fh_has_name(&n->victim, n->dir, n->name)))
		err = -EAGAIN;
	else if (is_file(&n->victim))
		err = volume_unlink_begin(&n->victim);
	if (err)
		volume_unlock_names(a, &n->victim);
	return err;
}

static void close_names(struct nfs3_volume_names *n)
{
	fh_close(&n->moved);
	fh_close(&n->victim);
}

int nfs3_volume_names_begin(const struct req *r, struct nfs3_volume_names *n)
{
	int err = -EAGAIN;

	n->moved.fd = n->victim.fd = -1;
	if (!n->dir->exp->manager || (n->from && n->from->exp != n->dir->exp))
		return 0;
	for (unsigned i = 0; i < NAMES_TRIES && err == -EAGAIN; i++) {
		err = find_names(r, n);
		if (!err)
			err = lock_names(n);
		if (err)
			close_names(n);
	}
	return err;
}

void nfs3_volume_names_end(struct nfs3_volume_names *n)
{
	const struct fh_obj *a = n->from ? &n->moved : &n->victim;

	if (a->fd < 0)
		return;
	volume_unlock_names(a, &n->victim);
	if (is_file(&n->victim))
		volume_pending_wake(n->dir->exp->manager->dir->pending);
	close_names(n);
}

void nfs3_volume_move_begin(const struct fh_obj *dir)
{
	if (dir->exp->manager)
		atomic_fetch_add(&dir->exp->manager->dir->moves_begun, 1);
}

void nfs3_volume_move_end(const struct fh_obj *dir)
{
	if (dir->exp->manager)
		atomic_fetch_add(&dir->exp->manager->dir->moves_ended, 1);
}

/* ---- statuses ------------------------------------------------------------------------------- */

static const struct prog_status statuses[] = {
	{ 0, VOLUME_OK },
	{ -EACCES, VOLUME_ERR_ACCES },
	{ -EPERM, VOLUME_ERR_ACCES },
	{ -EBADF, VOLUME_ERR_STALE },
	{ -ESTALE, VOLUME_ERR_STALE },
	{ -ENXIO, VOLUME_ERR_NOTVOLUME },
	{ -ENODATA, VOLUME_ERR_LAYOUT },
	{ -EBADMSG, VOLUME_ERR_LAYOUT },
	{ -EKEYREJECTED, VOLUME_ERR_LAYOUT },
	{ -ETIME, VOLUME_ERR_OLDEPOCH },
	{ -EINVAL, VOLUME_ERR_INVAL },
	{ -ENAMETOOLONG, VOLUME_ERR_INVAL },
	{ -EEXIST, VOLUME_ERR_EXIST },
	{ -ENOTDIR, VOLUME_ERR_NOTVOLUME },
	{ -ENOSPC, VOLUME_ERR_NOSPC },
	{ -EDQUOT, VOLUME_ERR_NOSPC },
	{ -EFBIG, VOLUME_ERR_FBIG },
	{ -EROFS, VOLUME_ERR_ROFS },
	{ -EAGAIN, VOLUME_ERR_LATER },
	{ -ENOMEM, VOLUME_ERR_LATER },
	{ -EMFILE, VOLUME_ERR_LATER },
	{ -ENFILE, VOLUME_ERR_LATER },
};

void nfs3_volume_fail(struct req *r, int err)
{
	memset(req_res(r), 0, r->proc->res_bytes);
	nfs_call(r)->res.volume = prog_status_of(statuses, ARRAY_SIZE(statuses), err, VOLUME_ERR_IO);
}

static int authorize(struct req *r)
{
	int err = nfs_authorize(r);

	return !err && r->proc->args_bytes && !nfs_manager(r) ? -ENXIO : err;
}

/* ---- MAP ------------------------------------------------------------------------------------ */

static void find_map(struct req *r)
{
	const struct volume_manager *m = nfs_manager(r);
	VOLMAPresok *ok = &nfs_call(r)->res.volmap.VOLMAPres_u.resok;

	ok->volume = m->dir->volume;
	ok->map = m->map.version;
	ok->unit = m->unit;
	ok->width = m->width;
	ok->servers.servers_len = m->map.n;
	ok->servers.servers_val = nfs_manager(r)->map.servers;
}

/* ---- LAYOUT --------------------------------------------------------------------------------- */

static int check_rights(const struct req *r, const struct fh_obj *o, uint32_t rights)
{
	int err = 0;

	if (rights & STRIPE_MAY_READ)
		err = vfs_may_io(o, &r->creds, false);
	if (!err && rights & STRIPE_MAY_WRITE)
		err = o->exp->conf.ro ? -EROFS : vfs_may_io(o, &r->creds, true);
	return err;
}

/* The caller, with the lease that it wants. */
static struct volume_lessee lessee_of(const struct req *r, const volume_lease *lease)
{
	return (struct volume_lessee){ .instance = lease->instance, .number = lease->number, .client = r->conn->client->id,
				       .fh = nfs_fh_stripped(r) };
}

static uint32_t lease_ms(void)
{
	return (uint32_t)(volume_lease_ns() / NS_PER_MS);
}

static void fill_layout(struct req *r, const struct file_layout *l, uint64_t bytes)
{
	const struct volume_manager *m = nfs_manager(r);
	VOLLAYOUTresok *ok = &nfs_call(r)->res.vollayout.VOLLAYOUTres_u.resok;
	struct stripe_handle h = { .volume = l->volume, .rights = nfs_call(r)->args.vollayout.rights, .epoch = l->epoch,
				   .expiry = (uint64_t)time(NULL) + STRIPE_LIFETIME_S };

	ok->map = m->map.version;
	memcpy(ok->object, l->object, sizeof(ok->object));
	ok->epoch = l->epoch;
	ok->unit = l->at.unit;
	ok->lifetime = STRIPE_LIFETIME_S;
	ok->lease = nfs_call(r)->args.vollayout.lease.instance ? lease_ms() : 0;
	ok->bytes = bytes;
	ok->stripes.stripes_len = l->at.width;
	ok->stripes.stripes_val = r->scratch;
	memcpy(h.name.object, l->object, sizeof(h.name.object));
	for (uint32_t i = 0; i < l->at.width; i++) {
		volume_stripe *s = &ok->stripes.stripes_val[i];

		h.server = s->server = l->servers[i];
		h.name.stripe = i;
		stripe_handle_make(&m->keys, &h, s->handle);
	}
}

static int make_layout(struct req *r)
{
	const VOLLAYOUTargs *a = &nfs_call(r)->args.vollayout;
	const struct volume_lessee by = lessee_of(r, &a->lease);
	uint32_t rights = a->rights;
	struct file_layout l;
	uint64_t bytes;
	struct fh_obj o;
	int err;

	if (!rights || rights & ~(uint32_t)(STRIPE_MAY_READ | STRIPE_MAY_WRITE) || (by.instance && !(rights & STRIPE_MAY_WRITE)))
		return -EINVAL;
	err = nfs_open_type(r, S_IFREG, &o);
	if (err)
		return err;
	err = check_rights(r, &o, rights);
	if (!err && rights & STRIPE_MAY_WRITE && o.stx.stx_mode & (S_ISUID | S_ISGID))
		err = volume_take_ids(&o, &r->creds);
	if (!err)
		err = volume_layout_for_client(&o, &by, &l, &bytes);
	if (!err)
		fill_layout(r, &l, bytes);
	fh_close(&o);
	return err;
}

static void run_layout(struct req *r)
{
	int err = make_layout(r);

	if (err)
		nfs3_volume_fail(r, err);
}

/* ---- REPORT --------------------------------------------------------------------------------- */

static int take_report(struct req *r)
{
	const VOLREPORTargs *a = &nfs_call(r)->args.volreport;
	VOLREPORTresok *ok = &nfs_call(r)->res.volreport.VOLREPORTres_u.resok;
	struct volume_report report = { .wrote = a->flags & VOLUME_REPORT_WROTE, .last = a->flags & VOLUME_REPORT_LAST,
					.bytes = a->bytes, .by = lessee_of(r, &a->lease), .creds = &r->creds };
	struct fh_obj o;
	bool leased;
	int err;

	if (a->flags & ~(uint32_t)(VOLUME_REPORT_WROTE | VOLUME_REPORT_LAST))
		return -EINVAL;
	if (stripe_handle_read(&nfs_manager(r)->keys, a->handle, &report.handle))
		return -EACCES;
	err = nfs_open_type(r, S_IFREG, &o);
	if (err)
		return err;
	err = volume_report(&o, &report, &ok->bytes, &leased);
	ok->lease = leased ? lease_ms() : 0;
	fh_close(&o);
	return err;
}

static void run_report(struct req *r)
{
	int err = take_report(r);

	if (err)
		nfs3_volume_fail(r, err);
}

/* ---- the program ---------------------------------------------------------------------------- */

static void preset_create(struct req *r)
{
	nfs_call(r)->args.volcreate.name = nfs_call(r)->mem.name[0];
}

static bool undone(const struct req *r)
{
	return nfs_call(r)->res.volume == VOLUME_ERR_LATER;
}

#define PROC(proc) .name = #proc, PROG_CODECS(VOL##proc##args, VOL##proc##res)

static const struct prog_proc procs[] = {
	[VOLUMEPROC_NULL] = PROG_NULL,
	[VOLUMEPROC_MAP] = { PROC(MAP), .finish = find_map },
	[VOLUMEPROC_LAYOUT] = { PROC(LAYOUT), .scratch_bytes = LAYOUT_WIDTH_MAX * sizeof(volume_stripe), .work = run_layout },
	[VOLUMEPROC_REPORT] = { PROC(REPORT), .modifies = true, .work = run_report },
	[VOLUMEPROC_RESERVE] = { PROC(RESERVE), .modifies = true, .once = true, .scratch_bytes = NFS_RESERVE_BYTES,
				 .begin = nfs_reserve_begin, .open = nfs_reserve_open },
	[VOLUMEPROC_SET] = { PROC(SET), .work = nfs3_volume_set },
	[VOLUMEPROC_CREATE] = { PROC(CREATE), .modifies = true, .once = true, .preset = preset_create,
				.work = nfs3_volume_create },
	[VOLUMEPROC_CHECK] = { PROC(CHECK), .scratch_bytes = VOLUME_CHECK_MAX * sizeof(volume_pending_entry),
			       .work = nfs3_volume_check },
	[VOLUMEPROC_SERVERS] = { PROC(SERVERS), .scratch_bytes = VOLUME_SERVERS_MAX * sizeof(volume_seen),
				 .work = nfs3_volume_servers },
};

const struct prog prog_volumes = {
	.number = LEAT_VOLUME,
	.vers = LEAT_VOLUME_V1,
	.name = "VOLUME",
	.procs = procs,
	.nprocs = ARRAY_SIZE(procs),
	NFS_CALL,
	.authorize = authorize,
	.fail = nfs3_volume_fail,
	.undone = undone,
};
