/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mount.c - leat_mount() and leat_umount()
 *
 * Operation:  URL -> engine -> connection (choose.c) -> export's handle (mntsvc.c) -> FSINFO and PATHCONF
 *             for the sizes -> the other connections -> the URL's path inside the export. That path
 *             becomes the base of relative names if it is a directory.
 * Memory:     The handle; on failure a partly built one is destroyed.
 * Threads:    The caller's; blocks.
 * Errors:     leat_error(NULL) has the reason.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/text.h"
#include "choose.h"
#include "ctl.h"
#include "file.h"
#include "handle.h"
#include "lt_mount.h"
#include "lt_volume.h"
#include "mntsvc.h"
#include "nfs_errno.h"
#include "op.h"
#include "opts.h"
#include "removed.h"
#include "sync.h"
#include "task.h"

#define IO_BYTES_MAX (1u << 20)    /* limit per call if the server does not state its own */
#define IO_BYTES_MIN 512u
#define DIR_BYTES_MAX (256u << 10)
#define DIR_BYTES_MIN 8192u
#define PAGE_BYTES 4096u

/* The smaller of the server's and the client's size, in whole pages if it is at least one page. */
static uint32_t io_bytes(uint32_t server_max, uint32_t wanted)
{
	uint32_t n = MIN(server_max, wanted ? wanted : IO_BYTES_MAX);

	n = MIN(n, NFS3_DATA_MAX);
	return n >= PAGE_BYTES ? n / PAGE_BYTES * PAGE_BYTES : n;
}

static int ask_fsinfo(struct leat *m, char *why, size_t cap)
{
	FSINFO3args args = { .fsroot = lt_fh_wire(&m->root) };
	FSINFO3res res = { 0 };
	const FSINFO3resok *ok = &res.FSINFO3res_u.resok;
	struct lt_rpc rpc = LT_RPC(NFS_PROGRAM, NFS_V3, NFSPROC3_FSINFO,
				   xdr_FSINFO3args, &args, xdr_FSINFO3res, &res, 256);
	int rc = lt_sync_rpc(m->server, m->server->clnt[0], &rpc);

	if (!rc)
		rc = nfs3_errno(res.status);
	if (rc) {
		snprintf(why, cap, "FSINFO of the export: %s", strerror(-rc));
		return rc;
	}
	if (ok->rtmax < IO_BYTES_MIN || ok->wtmax < IO_BYTES_MIN) {
		snprintf(why, cap, "the server takes only %u bytes to read and %u to write at once",
			 ok->rtmax, ok->wtmax);
		return -EREMOTEIO;
	}
	m->rsize = io_bytes(ok->rtmax, m->url.rsize);
	m->wsize = io_bytes(ok->wtmax, m->url.wsize);
	m->dirsize = MIN(MAX(ok->dtpref, DIR_BYTES_MIN), DIR_BYTES_MAX);
	return 0;
}

/* Checks that the registration limit is enough for the largest call. @other: what else the user can do */
static int check_registration(const struct leat *m, const char *other, char *why, size_t cap)
{
	uint64_t need = (uint64_t)MAX(m->rsize, m->wsize) + 2 * PAGE_BYTES;
	struct rpcrdma_clnt_info info;

	lt_server_look(m->server, m->server->clnt[0], &info);
	if (!info.reg_bytes || info.reg_bytes >= need)
		return 0;
	if (m->url.reg_bytes)
		snprintf(why, cap, "reg_bytes=%" PRIu64 " is less than one request needs: at least "
			 "%" PRIu64 "%s", m->url.reg_bytes, need, other);
	else
		snprintf(why, cap, "this process may lock too little memory for one request: it "
			 "needs `ulimit -l %" PRIu64 "` or more (KiB)%s",
			 (2 * need + 1023) / 1024, other);
	return -EINVAL;
}

/* Optional: if the server does not reply, the usual limits apply. */
static void ask_pathconf(struct leat *m)
{
	PATHCONF3args args = { .object = lt_fh_wire(&m->root) };
	PATHCONF3res res = { 0 };
	struct lt_rpc rpc = LT_RPC(NFS_PROGRAM, NFS_V3, NFSPROC3_PATHCONF,
				   xdr_PATHCONF3args, &args, xdr_PATHCONF3res, &res, 256);

	m->name_max = LT_NAME_MAX;
	if (!lt_sync_rpc(m->server, m->server->clnt[0], &rpc) && res.status == NFS3_OK)
		m->name_max = res.PATHCONF3res_u.resok.name_max;
}

static void note_identity(struct leat *m, const ctl_whoami *res)
{
	if (res->identity == CTL_ROOT_SQUASHED)
		m->identity = LEAT_IDENTITY_ROOT_SQUASHED;
	else if (res->identity == CTL_ALL_SQUASHED)
		m->identity = LEAT_IDENTITY_ALL_SQUASHED;
	else if (res->identity == CTL_SERVERS && res->uid != m->server->cred.uid)
		m->identity = LEAT_IDENTITY_SERVER;
	if (m->identity != LEAT_IDENTITY_OWN)
		m->run_uid = res->uid;
}

/* Optional: used only to explain a refusal. */
static void ask_identity(struct leat *m)
{
	ctl_path path = m->export;
	ctl_whoami res = { 0 };
	struct lt_rpc rpc = LT_RPC(LEAT_CTL, LEAT_CTL_V1, CTL_WHOAMI, xdr_ctl_path, &path, xdr_ctl_whoami, &res, 12);

	if (!m->server->is_leatd || strlen(m->export) > CTL_PATH_MAX || lt_sync_rpc(m->server, m->server->clnt[0], &rpc))
		return;
	note_identity(m, &res);
	if (m->identity == LEAT_IDENTITY_ROOT_SQUASHED)
		snprintf(m->runs_as, sizeof(m->runs_as), "export %.50s squashes root to uid %u: use "
			 "no_root_squash, or run leat as another user", m->export, res.uid);
	else if (m->identity == LEAT_IDENTITY_ALL_SQUASHED)
		snprintf(m->runs_as, sizeof(m->runs_as), "export %.50s squashes all users to uid %u",
			 m->export, res.uid);
	else if (m->identity == LEAT_IDENTITY_SERVER)
		snprintf(m->runs_as, sizeof(m->runs_as), "this leatd does everything as uid %u", res.uid);
}

/* Prints the server as the URL names it. A leat:// URL keeps its scheme whatever transport was selected. */
static void print_given(const struct leat *m, char *buf, size_t cap)
{
	const struct lt_url *u = &m->url;
	char port[8] = "";

	if (u->scheme == LT_SCHEME_LOCAL) {
		(void)rpcrdma_addr_print(&m->server->addr, buf, cap);
		return;
	}
	if (u->port)
		snprintf(port, sizeof(port), ":%u", u->port);
	snprintf(buf, cap, strchr(u->host, ':') ? "%s://[%s]%s" : "%s://%s%s",
		 lt_url_scheme_name(u->scheme), u->host, port);
}

static void name_server(struct leat *m)
{
	const char *slash = m->export[0] == '/' ? "" : "/";
	char addr[320];

	snprintf(m->server_url, sizeof(m->server_url), "%.250s%s%.250s",
		 rpcrdma_addr_print(&m->server->addr, addr, sizeof(addr)), slash, m->export);
	print_given(m, addr, sizeof(addr));
	snprintf(m->given_url, sizeof(m->given_url), "%.250s%s%.250s", addr, slash, m->export);
}

static void base_found(struct lt_op *op, int err)
{
	struct leat *m = op->task.m;

	if (!err && op->walk.attr.type == NF3DIR) {
		m->base = op->walk.fh;
		m->has_base = true;
	}
	lt_op_finish(op, err);
}

static int walk_to_base(struct leat *m, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = lt_op_create(m, "mount", "", NULL, cb, &op);

	return rc ? rc : lt_walk_submit_typed(op, LT_WALK_FOLLOW, base_found);
}

/* The URL's path may not be a directory, may not exist (yet), or may be a dangling link. The mount succeeds
 * nevertheless; calls that use the path report the error, and calls about the link itself work. Other failures fail
 * the mount: the base must not depend on chance. */
static int find_base(struct leat *m, char *why, size_t cap)
{
	int rc = (int)LT_WAIT_FOR_AS(m, "mount", walk_to_base(m, w.cb));

	switch (rc) {
	case 0:
	case -ENOENT:
	case -ENOTDIR:
	case -EACCES:
	case -ELOOP:
	case -ENAMETOOLONG:
		return 0;
	default:
		snprintf(why, cap, "%.300s: %s", m->path, strerror(-rc));
		return rc;
	}
}

/* Connects the server of the first mount that uses it. */
static int connect_server(struct leat *m, char *why, size_t cap)
{
	return m->server->clnts ? 0 : lt_choose_connect(m->server, why, cap);
}

/* Opens the other connections, and shares them with later mounts. */
static int complete_server(struct leat *m, char *why, size_t cap)
{
	int rc = lt_choose_more(m->server, why, cap);

	if (!rc)
		lt_server_share(m->server);
	return rc;
}

/* A volume takes the place of an export. The size of its calls is fixed. */
static int prepare_volume(struct leat *m, char *why, size_t cap)
{
	memcpy(m->export, m->url.path, sizeof(m->export));
	m->rsize = m->wsize = BLOCK_IO_MAX;
	return check_registration(m, "", why, cap);
}

static int mount_steps(struct leat *m, const struct leat_opts *opts, char *why, size_t cap)
{
	int rc = connect_server(m, why, cap);

	if (!rc && opts && opts->connect_only) {
		if (opts->of_volume)
			rc = prepare_volume(m, why, cap);
		name_server(m);
		return rc ? rc : complete_server(m, why, cap);
	}
	if (!rc)
		rc = lt_mntsvc_mount(m, why, cap);
	if (!rc)
		rc = ask_fsinfo(m, why, cap);
	if (!rc)
		rc = check_registration(m, ", or smaller rsize and wsize", why, cap);
	if (rc)
		return rc;
	ask_pathconf(m);
	ask_identity(m);
	rc = lt_volume_find(m, why, cap);
	if (rc)
		return rc;
	name_server(m);
	rc = complete_server(m, why, cap);
	if (!rc)
		rc = find_base(m, why, cap);
	m->error[0] = '\0';
	return rc;
}

static void drop_volume(void *of, void *arg)
{
	struct leat *m = of;

	(void)arg;
	lt_volume_destroy(m->volume);
	m->volume = NULL;
}

static void destroy_mount(struct leat *m)
{
	(void)lt_sync_run(m->session, drop_volume, m, NULL);
	lt_handle_destroy(m);
}

static int mount_in(struct leat_session *s, struct lt_url *u, const struct leat_opts *opts, struct leat **ret, char *why,
		    size_t cap)
{
	struct rpcrdma_addr named;
	struct leat *m;
	int rc = lt_choose_address(u, &named, why, cap);

	if (opts && opts->connect_only)
		u->no_cache = true;
	if (!rc)
		rc = lt_handle_create(s, u, &named, opts, &m);
	if (rc)
		return rc;
	rc = mount_steps(m, opts, why, cap);
	if (rc)
		destroy_mount(m);
	else
		*ret = m;
	return rc;
}

static int tell_mount(const char *url, const struct leat_opts *opts, int err, const char *why)
{
	if (err)
		snprintf(lt_thread_error(), LT_ERROR_BYTES, "cannot %s %.250s: %s", opts && opts->of_volume ? "attach to" : "mount",
			 url, why[0] ? text_without_url(why, url) : strerror(-err));
	return err;
}

int leat_session_mount(struct leat_session *s, const char *url, const struct leat_opts *opts, struct leat **ret)
{
	char why[LT_ERROR_BYTES - 300] = "";
	const char *conflict;
	struct lt_url u;
	int rc;

	lt_thread_error()[0] = '\0';
	rc = lt_session_check(s);
	if (rc == -EOWNERDEAD)
		strcpy(why, "the session belongs to the parent of this process; create another");
	if (!rc && s->is_private) { /* it would end with the other mount */
		strcpy(why, "the session is that of leat_mount() for one mount");
		rc = -EINVAL;
	}
	if (rc)
		return tell_mount(url, opts, rc, why);
	if (!opts)
		opts = &s->opts;
	rc = lt_url_parse(url, opts, &u, lt_thread_error(), LT_ERROR_BYTES);
	if (rc)
		return rc;
	conflict = lt_session_conflict(s, &u, opts);
	if (conflict) {
		snprintf(why, sizeof(why), "%s= is a setting of the session, which has another value", conflict);
		return tell_mount(url, opts, -EINVAL, why);
	}
	return tell_mount(url, opts, mount_in(s, &u, opts, ret, why, sizeof(why)), why);
}

int leat_mount(const char *url, const struct leat_opts *opts, struct leat **ret)
{
	char why[LT_ERROR_BYTES - 300] = "";
	struct leat_session *s;
	struct lt_url u;
	int rc;

	lt_thread_error()[0] = '\0';
	rc = lt_url_parse(url, opts, &u, lt_thread_error(), LT_ERROR_BYTES);
	if (rc)
		return rc;
	rc = lt_session_create(&u, opts, &s);
	if (rc)
		return tell_mount(url, opts, rc, why);
	rc = mount_in(s, &u, opts, ret, why, sizeof(why));
	if (rc)
		lt_session_destroy(s);
	else
		s->is_private = true;
	return tell_mount(url, opts, rc, why);
}

int lt_mount_connect(struct leat_session *s, const char *url, const struct leat_opts *opts, struct leat **ret)
{
	struct leat_opts o;

	lt_opts_init(&o, opts ? opts : s && !lt_session_check(s) ? &s->opts : NULL);
	o.connect_only = o.of_volume = true;
	return s ? leat_session_mount(s, url, &o, ret) : leat_mount(url, &o, ret);
}

int leat_session_create(const struct leat_opts *opts, struct leat_session **ret)
{
	struct leat_opts o;
	int rc;

	lt_thread_error()[0] = '\0';
	lt_opts_init(&o, opts);
	lt_opts_finish(&o.url);
	rc = lt_session_create(&o.url, opts, ret);
	if (rc)
		snprintf(lt_thread_error(), LT_ERROR_BYTES, "cannot create a session: %s", strerror(-rc));
	return rc;
}

static void start_close(void *of, void *arg)
{
	struct leat *m = of;

	(void)arg;
	/* a file that is being closed already has its operation */
	list_for_each_safe(node, &m->files) {
		struct leat_file *f = list_entry(node, struct leat_file, link);

		if (!f->is_closing)
			(void)leat_aio_close(f, (struct leat_cb){ 0 });
	}
}

static void cancel_all(void *of, void *arg)
{
	struct leat *m = of;

	(void)arg;
	atomic_store(&m->ending, true);
	(void)lt_task_cancel(m, NULL, NULL);
}

/* Drops the files that are left: those whose close could not be started, and all if the time is up. No operation refers
 * to them any more. */
static void drop_files(void *of, void *arg)
{
	struct leat *m = of;

	list_for_each_safe(node, &m->files) {
		lt_file_drop(list_entry(node, struct leat_file, link));
		*(int *)arg = -ENOMEM;
	}
	lt_removed_drop(m);
}

/* Ends all operations, and closes the files that the application has left open: it closes them itself if it needs the
 * result. What does not end in time is cancelled; that needs no reply. */
static int end_operations(struct leat *m, uint64_t until_ns)
{
	int rc, dropped = 0;

	(void)lt_sync_run(m->session, lt_task_stop_background, m, NULL);
	rc = lt_sync_drain(m, until_ns);
	if (!rc) {
		(void)lt_sync_run(m->session, start_close, m, NULL);
		rc = lt_sync_drain(m, until_ns);
	}
	if (rc && rc != -ETIMEDOUT)
		return rc;
	if (rc) {
		(void)lt_sync_run(m->session, cancel_all, m, NULL);
		(void)lt_sync_drain(m, 0);
	}
	(void)lt_sync_run(m->session, drop_files, m, &dropped);
	return rc ? rc : dropped;
}

int leat_umount_within(struct leat *m, int timeout_ms)
{
	uint64_t until_ns = timeout_ms < 0 ? 0 : clock_now_ns() + (uint64_t)timeout_ms * NS_PER_MS;
	int rc;

	if (!m)
		return 0;
	rc = lt_session_check(m->session);
	if (rc) {
		lt_session_abandon(m->session);
		return rc;
	}
	if (m->session->is_private)
		leat_service_stop(m->session);
	rc = end_operations(m, until_ns);
	if (rc == -EDEADLK)
		return rc;
	if (!rc)
		lt_mntsvc_umount(m, until_ns);
	if (atomic_load(&m->interrupt_posted))
		lt_sync_flush(m->session);
	destroy_mount(m);
	return rc;
}

void leat_umount(struct leat *m)
{
	(void)leat_umount_within(m, -1);
}
