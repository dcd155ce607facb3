/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * striped_io.c - pread and pwrite of files of a striped volume
 *
 * Operation:  begin_io() asks the manager for the layout unless it is known and good (LAYOUT), and a read that may pass
 *             the known size asks for that (GETATTR). Then split/lt_bulk.c sends the calls that stripes/stripe_split.c
 *             makes. What an object does not have reads as zeroes, up to the size of the file.
 *             If a server refuses a handle, the call asks for the layout and is sent again: once, or more often if
 *             each layout has a newer epoch than the last one. The file may be shorter then, so a write of what is
 *             appended ends instead: its range is of one epoch (striped_append.c). A write with O_SYNC or O_DSYNC ends
 *             with a report (REPORT).
 * Memory:     The caller's memory is the payload of the calls; see split/lt_bulk.c.
 * Threads:    The owner's.
 * Errors:     A stripe server that does not reply within stripe_timeo is -EIO with its URL; nothing else fails. A call
 *             that timed out may yet be executed, so its connection is closed: the next one waits for it.
 * See:        doc/tour.md, the life of a striped READ; doc/volumes.md.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "leat_volume.h"
#include "io.h"
#include "lt_stage.h"
#include "nfs3_names.h"
#include "readahead.h"
#include "stripe_split.h"
#include "striped_io.h"
#include "striped_layout.h"
#include "volume_status.h"

/* Each retry needs a newer epoch, so another client has cut the file between a LAYOUT and the call behind it. A burst of cuts
 * ends earlier. A program that cuts without end must not keep the calls of others in progress without end. */
#define RETRIES_MAX 16u

/* lt_bulk.phase */
enum { PHASE_SIZE_UNKNOWN, PHASE_READY, PHASE_REPORTED };

static struct lt_striped *striped_of(const struct lt_bulk *io)
{
	return ((const struct leat_file *)io->object)->striped;
}

static bool is_sync(const struct lt_bulk *io)
{
	return io->how != UNSTABLE;
}

static void stop(struct lt_subreq *p, int err, const char *what, const char *why)
{
	if (p->off < p->bulk->end)
		lt_task_explain(&p->bulk->task, err, what, "%s", why);
	lt_bulk_stop(p->bulk, p->off, err);
}

/* ---- before the first call ---- */

/* The manager knows the size of what is appended. */
static enum lt_striped_use use_of(const struct lt_bulk *io)
{
	if (!io->write)
		return LT_STRIPED_READ;
	return io->epoch ? LT_STRIPED_WRITE_NO_LEASE : LT_STRIPED_WRITE;
}

static void send_layout(struct lt_subreq *p)
{
	struct lt_bulk *io = p->bulk;

	p->args.vollayout = lt_striped_ask(striped_of(io), use_of(io));
	lt_call_start_of(&p->call, lt_volume_procs, VOLUMEPROC_LAYOUT, &p->args, &p->res, lt_bulk_done);
}

static void send_map(struct lt_subreq *p)
{
	struct lt_striped *s = striped_of(p->bulk);

	p->args.volmap.fh = (volume_fh){ s->fh.len, s->fh.data };
	lt_call_start_of(&p->call, lt_volume_procs, VOLUMEPROC_MAP, &p->args, &p->res, lt_bulk_done);
}

static void send_getattr(struct lt_subreq *p)
{
	p->epoch = striped_of(p->bulk)->epoch;
	p->args.getattr.object = lt_fh_wire(&striped_of(p->bulk)->fh);
	lt_call_start(&p->call, NFSPROC3_GETATTR, &p->args, &p->res, 0, NULL, 0, lt_bulk_done);
}

/* Of what was written in the present epoch: older writes may be cut already. */
static void send_report(struct lt_subreq *p)
{
	struct lt_striped *s = striped_of(p->bulk);

	p->mark = s->wrote;
	p->epoch = s->writes.epoch;
	p->args.volreport = lt_striped_report(s, false);
	lt_call_start_of(&p->call, lt_volume_procs, VOLUMEPROC_REPORT, &p->args, &p->res, lt_bulk_done);
}

/* A read ends at the size of the file. */
static void limit_read(struct lt_bulk *io)
{
	if (!io->write)
		lt_bulk_stop(io, MAX(lt_striped_size(striped_of(io)), io->off), 0);
}

static bool passes_size(const struct lt_bulk *io)
{
	return !io->write && io->phase == PHASE_SIZE_UNKNOWN && io->off + io->size > lt_striped_size(striped_of(io));
}

static void begin_io(struct lt_bulk *io)
{
	struct leat_file *f = io->object;
	const struct leat *m = io->task.m;

	lt_file_hold(f);
	if (io->write)
		lt_readahead_drop(f);
	if (!io->size || io->task.cancelled)
		return;
	if (lt_striped_open(f)) {
		lt_bulk_stop(io, io->off, -ENOMEM);
		return;
	}
	if (!lt_striped_may(f->striped, use_of(io), lt_handle_now(m)))
		send_layout(lt_bulk_ask(io));
	else if (passes_size(io))
		send_getattr(lt_bulk_ask(io));
	else
		limit_read(io);
}

/* ---- the calls ---- */

/* Has a cut taken the range of an append? Then nothing more is written there, and lt_io_write_range() says so. */
static bool has_lost_range(struct lt_bulk *io)
{
	if (likely(!io->epoch || striped_of(io)->writes.epoch == io->epoch))
		return false;
	if (io->off < io->end)
		lt_task_explain(&io->task, -ESTALE, "WRITE", "the file was cut");
	lt_bulk_stop(io, io->off, -ESTALE);
	return true;
}

/* Return: false: there is no server for the stripe, so the operation ends there */
static bool find_server(struct lt_subreq *p)
{
	const struct lt_striped *s = striped_of(p->bulk);
	char why[120];
	int rc = lt_volume_server(s->v, s->servers[p->stripe], &p->server, why, sizeof(why));

	if (unlikely(rc))
		stop(p, rc, NULL, why);
	return !rc;
}

static void send_data(struct lt_subreq *p)
{
	struct lt_bulk *io = p->bulk;
	struct lt_striped *s = striped_of(io);
	const struct lt_stripe_handles *h = io->write ? &s->writes : &s->reads;
	const struct iovec *iov = p->iov + p->iov_first;
	uint32_t timeo = io->task.m->url.stripe_timeo_ms, patience = timeo ? MAX(lt_bulk_patience(p, timeo), 1u) : 0;

	p->epoch = h->epoch;
	if (io->write) {
		STRIPEWRITEargs *a = &p->args.stripe_write;

		memcpy(a->at.handle, h->v[p->stripe], sizeof(a->at.handle));
		a->offset = p->mark;
		a->sync = is_sync(io);
		a->data = (stripe_data){ .length = p->len, .iov = iov, .iovcnt = p->iov_cnt };
		lt_call_start_stripes(&p->call, p->server, STRIPEPROC_WRITE, a, &a->at.lane, &p->res, NULL, 0, patience,
				      lt_bulk_done);
	} else {
		STRIPEREADargs *a = &p->args.stripe_read;

		memcpy(a->at.handle, h->v[p->stripe], sizeof(a->at.handle));
		a->offset = p->mark;
		a->count = p->len;
		lt_call_start_stripes(&p->call, p->server, STRIPEPROC_READ, a, &a->at.lane, &p->res, iov, p->iov_cnt, patience,
				      lt_bulk_done);
	}
}

/* Sends what is left of @p; the map may have changed since it was sent first. Return: false: the operation ends there, or
 * has ended */
static bool send_again(struct lt_subreq *p)
{
	if (!lt_bulk_may_continue(p) || !find_server(p) || has_lost_range(p->bulk))
		return false;
	send_data(p);
	return true;
}

/* Has the operation waited for the server of @p as long as it may, behind calls that got no reply? */
static bool is_away(struct lt_subreq *p)
{
	struct lt_bulk *io = p->bulk;
	const struct lt_striped *s = striped_of(io);
	uint32_t timeo = io->task.m->url.stripe_timeo_ms;
	char why[140];

	if (likely(!timeo || lt_bulk_patience(p, timeo)))
		return false;
	(void)snprintf(why, sizeof(why), "stripe server %.90s: no reply in time", lt_volume_url(s->v, s->servers[p->stripe]));
	stop(p, -EIO, io->write ? "WRITE" : "READ", why);
	return true;
}

static bool split_io(struct lt_bulk *io, struct lt_subreq *p)
{
	struct lt_striped *s = striped_of(io);

	while (!has_lost_range(io) && lt_stripe_split(io, p, &s->layout)) {
		if (find_server(p)) {
			p->share = lt_volume_share(s->v, s->servers[p->stripe]);
			if (likely(!is_away(p)))
				return true;
		}
		lt_stage_put(p);
	}
	return false;
}

/* The memory of @p is advanced by @n bytes of its object. */
static void advance(struct lt_subreq *p, uint32_t n)
{
	p->mark += n;
	lt_bulk_advance(p, n);
	if (p->len)
		p->off = lt_stripe_file_off(&striped_of(p->bulk)->layout, p->stripe, p->mark);
}

static void clear_rest(struct lt_subreq *p)
{
	for (int i = p->iov_first; i < p->iov_first + p->iov_cnt; i++)
		memset(p->iov[i].iov_base, 0, p->iov[i].iov_len);
	p->len = 0;
}

/* A server that replies nonsense counts as away. */
static void stop_nonsense(struct lt_subreq *p)
{
	const struct lt_striped *s = striped_of(p->bulk);
	char why[140];

	(void)snprintf(why, sizeof(why), "stripe server %.90s: %u bytes in reply to %u", lt_volume_url(s->v, s->servers[p->stripe]),
		       p->res.stripe_read.STRIPEREADres_u.resok.data.length, p->len);
	stop(p, -EIO, "READ", why);
}

static bool take_read(struct lt_subreq *p)
{
	const STRIPEREADresok *ok = &p->res.stripe_read.STRIPEREADres_u.resok;
	uint32_t n = ok->data.length;

	if (n > p->len || (!n && !ok->eof)) {
		stop_nonsense(p);
		return true;
	}
	advance(p, n);
	if (p->len && ok->eof)
		clear_rest(p);
	if (!p->len) {
		lt_stage_read(p);
		return true;
	}
	return !send_again(p);
}

/* What was written by older layouts was before a cut, and says nothing of the size. */
static void note_written(struct leat_volume_written *w, uint64_t epoch, uint64_t end)
{
	if (epoch < w->epoch)
		return;
	w->end = epoch == w->epoch ? MAX(w->end, end) : end;
	w->epoch = epoch;
}

static bool take_write(struct lt_subreq *p)
{
	struct lt_bulk *io = p->bulk;
	struct lt_striped *s = striped_of(io);
	uint64_t last = lt_stripe_file_off(&s->layout, p->stripe, p->mark + p->len - 1);

	io->changed = true;
	if (io->written)
		note_written(io->written, p->epoch, last + 1);
	else if (p->epoch == s->epoch)
		lt_striped_wrote(s, last + 1);
	if (!is_sync(io) && lt_striped_wrote_unstable(io->object, p->stripe, p->res.stripe_write.STRIPECHANGEres_u.verf))
		stop(p, -ENOMEM, NULL, "");
	return true;
}

/* Continues after LAYOUT, MAP or GETATTR. Return: true: with the calls of the operation, if it goes on; false: @p was sent */
static bool go_on(struct lt_subreq *p)
{
	struct lt_bulk *io = p->bulk;

	if (io->phase == PHASE_REPORTED) {
		send_report(p);
		return false;
	}
	if (passes_size(io) && !p->tries) {
		if (!lt_bulk_may_continue(p))
			return true;
		io->phase = PHASE_READY;
		send_getattr(p);
		return false;
	}
	limit_read(io);
	return !p->tries || !send_again(p);
}

static bool take_layout(struct lt_subreq *p)
{
	struct lt_bulk *io = p->bulk;
	const char *why;
	int what = lt_layout_take(striped_of(io), use_of(io), &p->res.vollayout.VOLLAYOUTres_u.resok, p->call.sent_ns,
				  &p->asked_again, &why);

	lt_call_free(&p->call);
	if (what < 0) {
		stop(p, what, "LAYOUT", why);
		return true;
	}
	if (what != LT_LAYOUT_AGAIN && io->phase == PHASE_SIZE_UNKNOWN)
		io->phase = PHASE_READY; /* it has the size */
	if (what == LT_LAYOUT_GOOD || !lt_bulk_may_continue(p))
		return go_on(p);
	if (what == LT_LAYOUT_AGAIN)
		send_layout(p);
	else
		send_map(p);
	return false;
}

static bool take_map(struct lt_subreq *p)
{
	const char *why;
	int rc = lt_layout_take_map(striped_of(p->bulk), &p->res.volmap.VOLMAPres_u.resok, &why);

	lt_call_free(&p->call);
	if (!rc)
		return go_on(p);
	stop(p, rc, "MAP", why);
	return true;
}

static bool take_size(struct lt_subreq *p)
{
	p->bulk->phase = PHASE_READY;
	lt_striped_grew(striped_of(p->bulk), p->epoch, p->res.getattr.GETATTR3res_u.resok.obj_attributes.size);
	return go_on(p);
}

static void take_report(struct lt_subreq *p)
{
	lt_striped_reported(striped_of(p->bulk), p->mark, &p->res.volreport.VOLREPORTres_u.resok, p->call.sent_ns);
}

static bool subreq_replied(struct lt_subreq *p)
{
	if (likely(p->call.rpc.prog == LEAT_STRIPES))
		return p->bulk->write ? take_write(p) : take_read(p);
	if (p->call.rpc.prog == NFS_PROGRAM)
		return take_size(p);
	if (p->call.rpc.proc == VOLUMEPROC_LAYOUT)
		return take_layout(p);
	if (p->call.rpc.proc == VOLUMEPROC_MAP)
		return take_map(p);
	take_report(p);
	return true;
}

/* ---- failures ---- */

bool lt_striped_needs_layout(uint32_t status)
{
	return status == STRIPE_ERR_FENCED || status == STRIPE_ERR_EXPIRED || status == STRIPE_ERR_BADHANDLE ||
	       status == STRIPE_ERR_OLDTERM;
}

bool lt_striped_may_retry(unsigned *tries, uint64_t *refused_epoch, uint64_t epoch)
{
	if (*tries == RETRIES_MAX || (*tries && epoch <= *refused_epoch))
		return false;
	++*tries;
	*refused_epoch = epoch;
	return true;
}

int lt_striped_away(struct lt_task *t, const struct lt_striped *s, uint32_t stripe, const struct lt_call *c, const char *what,
		    int err)
{
	const char *url = lt_volume_url(s->v, s->servers[stripe]), *cause = lt_call_cause(c);
	bool by_server = c->status && err != -EAGAIN && c->status != STRIPE_ERR_NOVOLUME && c->status != STRIPE_ERR_OLDLANE;

	if (by_server || err == -ECANCELED || err == -EINPROGRESS || err == -EFAULT || err == -ENOMEM)
		return err;
	if (err == -ETIMEDOUT && c->rpc.sent)
		lt_call_retire_lane(c);
	lt_task_explain(t, -EIO, what, "stripe server %.90s: %s", url,
			err == -ETIMEDOUT ? "no reply in time" : cause[0] ? text_without_url(cause, url) : strerror(-err));
	return -EIO;
}

/* Return: true: @p was sent again, or asks for the layout */
static bool subreq_failed(struct lt_subreq *p, int *err)
{
	struct lt_bulk *io = p->bulk;
	struct lt_striped *s = striped_of(io);
	char what[48];

	if (p->call.rpc.prog == LEAT_VOLUME && p->call.rpc.proc == VOLUMEPROC_REPORT && p->call.status == VOLUME_ERR_OLDEPOCH &&
	    lt_striped_may_retry(&p->tries, &p->refused_epoch, p->epoch)) {
		send_layout(p);
		return true;
	}
	if (p->call.rpc.prog != LEAT_STRIPES)
		return false;
	if (lt_striped_needs_layout(p->call.status) && lt_striped_may_retry(&p->tries, &p->refused_epoch, p->epoch) &&
	    lt_bulk_may_continue(p)) {
		if (p->epoch != s->epoch && lt_striped_may(s, use_of(io), lt_handle_now(io->task.m)))
			return !go_on(p);
		send_layout(p);
		return true;
	}
	io->changed |= io->write && *err == -ETIMEDOUT && p->call.rpc.sent;
	(void)snprintf(what, sizeof(what), "%s at offset %llu", lt_call_name(&p->call), (unsigned long long)p->off);
	if (p->off < io->end)
		*err = lt_striped_away(&io->task, s, p->stripe, &p->call, what, *err);
	return false;
}

/* ---- the end ---- */

static bool end_io(struct lt_bulk *io)
{
	struct leat_file *f = io->object;

	lt_readahead_drop(f); /* data read in the meantime may predate the write */
	if (!is_sync(io) || !io->changed || io->phase == PHASE_REPORTED || io->task.cancelled || !lt_striped_owes(f->striped))
		return false;
	io->phase = PHASE_REPORTED;
	send_report(lt_bulk_ask(io));
	return true;
}

const struct lt_bulk_ops lt_striped_ops = {
	.parts = LT_BULK_PARTS_MAX,
	.stages = true,
	.is_whole = false,
	.begin = begin_io,
	.split = split_io,
	.unsplit = lt_stripe_unsplit,
	.send = send_data,
	.replied = subreq_replied,
	.failed = subreq_failed,
	.ending = end_io,
	.release = lt_io_release,
};
