/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_command.c - commands to stripe servers, signed with the key of their volume
 *
 * Operation: Each function makes one call to the server of a mount, and waits; leat_volume_aio_ask() makes one to a stripe server
 *            of leat_volume_mount(), and does not wait. The command is valid for a minute. It may be
 *            repeated, so that librpcrdma sends it again where it has no reply.
 * Memory:    Arguments and results are the caller's stack. Keys are cleared.
 * Threads:   As functions of leat.h.
 * Errors:    -errno; leat_error() has the reason.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/opt.h"
#include "base/text.h"
#include "leat_volume.h"
#include "handle.h"
#include "lt_sized.h"
#include "lt_source.h"
#include "lt_volume.h"
#include "op.h"
#include "stripe_key.h"
#include "stripe_status.h"
#include "sync.h"
#include "volume_key.h"

#define VERB "command to a stripe server"
#define IMPOSSIBLE "the reply is of another server, or impossible"
#define COMMAND_S 60u /* a command is valid for as long */
#define STAT_BYTES (4 * 8u + 2 * 4u)
#define ENTRY_BYTES (STRIPE_OBJECT_BYTES + 4u + STAT_BYTES)
#define TERMS_MAX 16u /* newer terms that a server may tell for one call */

/* One call. */
struct command {
	struct lt_op_asked asked;
	union {
		char command[STRIPE_COMMAND_BYTES]; /* arguments begin with it */
		STRIPEINFOargs info;
		STRIPESTATargs stat;
		STRIPEFENCEargs fence;
		STRIPEREMOVEargs remove;
		STRIPELISTargs list;
		STRIPEASIDEargs aside;
	} args;
	union {
		stripe_status status; /* results begin with it */
		STRIPEINFOres info;
		STRIPESTATres stat;
		STRIPELISTres list;
	} res;
};

/* ---- statuses ------------------------------------------------------------------------------- */

static bool is_later(uint32_t status)
{
	return status == STRIPE_ERR_LATER;
}

/* Other than for data, each refusal has its own errno. */
static int errno_of(uint32_t status)
{
	switch (status) {
	case STRIPE_ERR_BADHANDLE:
		return -EKEYREJECTED;
	case STRIPE_ERR_EXPIRED:
		return -ETIME;
	case STRIPE_ERR_NOVOLUME:
		return -ENXIO;
	case STRIPE_ERR_OLDTERM:
		return -EPERM;
	case STRIPE_ERR_TIMEDOUT:
		return -EBUSY;
	default:
		return stripe_errno(status);
	}
}

/* The name of a status; with an explanation if the errno alone misleads */
static const char *explain_status(uint32_t status)
{
	switch (status) {
	case STRIPE_ERR_ACCES:
		return "STRIPE_ERR_ACCES: the server does not admit this host";
	case STRIPE_ERR_BADHANDLE:
		return "STRIPE_ERR_BADHANDLE: the server has another id, or another key";
	case STRIPE_ERR_EXPIRED:
		return "STRIPE_ERR_EXPIRED: the clocks of the server and of this machine differ by more than a minute";
	case STRIPE_ERR_NOVOLUME:
		return "STRIPE_ERR_NOVOLUME: the server has no stripes of this volume";
	case STRIPE_ERR_OLDTERM:
		return "STRIPE_ERR_OLDTERM: the server has obeyed a newer manager";
	case STRIPE_ERR_TIMEDOUT:
		return "STRIPE_ERR_TIMEDOUT: older operations have not ended yet";
	default:
		return stripe_status_name(status);
	}
}

static const struct lt_program stripes = { LEAT_STRIPES, LEAT_STRIPES_V1, .is_later = is_later, .to_errno = errno_of,
					   .name = explain_status };

#define PROC(in, out, max) LT_PROC(STRIPE##in, STRIPE##out, max, .program = &stripes)

static const struct lt_proc procs[] = {
	[STRIPEPROC_INFO] = PROC(INFO, INFO, 4u + 6 * 8u),
	[STRIPEPROC_STAT] = PROC(STAT, STAT, STAT_BYTES),
	[STRIPEPROC_FENCE] = PROC(FENCE, STAT, STAT_BYTES),
	[STRIPEPROC_REMOVE] = PROC(REMOVE, STAT, STAT_BYTES),
	[STRIPEPROC_SET_ASIDE] = PROC(ASIDE, STAT, STAT_BYTES),
	[STRIPEPROC_LIST] = PROC(LIST, LIST, 4u + STRIPE_LIST_MAX * ENTRY_BYTES + 4u),
};

/* ---- keys ----------------------------------------------------------------------------------- */

int leat_volume_key_read(const char *file, struct leat_volume_key **ret, char *why, size_t why_bytes)
{
	struct leat_volume_key *k = calloc(1, sizeof(*k));
	int err;

	if (!k)
		return opt_fail(-ENOMEM, why, why_bytes, "out of memory");
	err = stripe_key_load(file, &k->volume, &k->keys, why, why_bytes);
	if (err)
		leat_volume_key_free(k);
	else
		*ret = k;
	return err;
}

void leat_volume_key_free(struct leat_volume_key *k)
{
	if (k)
		explicit_bzero(k, sizeof(*k));
	free(k);
}

/* ---- one command ----------------------------------------------------------------------------- */

/* Return: milliseconds since 1970 */
static uint64_t now_ms(void)
{
	return clock_real_ns() / NS_PER_MS;
}

static void ask(struct lt_op *op, int err)
{
	(void)err; /* a first step */
	lt_op_call_prog(op, lt_op_end);
}

static int submit_ask(struct leat *m, const struct command *c, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = lt_op_create(m, VERB, NULL, NULL, cb, &op);

	if (rc)
		return rc;
	op->asked = &c->asked;
	return lt_op_submit(op, ask);
}

int lt_volume_sign(const struct leat_volume_key *key, uint32_t server, uint64_t term, const struct stripe_order *o,
		   char ret[STRIPE_COMMAND_BYTES])
{
	struct stripe_command head = { .volume = key->volume, .server = server, .term = term,
				       .expiry = now_ms() / 1000 + COMMAND_S };

	if (getrandom(&head.number, sizeof(head.number), 0) != sizeof(head.number))
		return -EIO;
	stripe_command_make(&key->keys, &head, o, ret);
	return 0;
}

/* Fills in the arguments of a call, without the signature. */
static void set_args(struct command *c, const struct stripe_order *o)
{
	switch (o->proc) {
	case STRIPEPROC_STAT:
		c->args.stat.name = o->name;
		break;
	case STRIPEPROC_FENCE:
		c->args.fence.name = o->name;
		c->args.fence.epoch = o->value;
		c->args.fence.cut = o->flag;
		c->args.fence.bytes = o->bytes;
		break;
	case STRIPEPROC_REMOVE:
		c->args.remove.name = o->name;
		c->args.remove.until = o->value;
		break;
	case STRIPEPROC_SET_ASIDE:
		c->args.aside.name = o->name;
		c->args.aside.until = o->value;
		c->args.aside.mtime = o->bytes;
		break;
	case STRIPEPROC_LIST:
		c->args.list.after = o->name;
		c->args.list.first = o->flag;
		break;
	default:
		break;
	}
}

/* @c: gets arguments and results, which are zeroes if there was no call */
static int command(struct leat *m, const struct leat_volume_key *key, uint32_t server, uint64_t term, struct command *c,
		   const struct stripe_order *o)
{
	int err;

	memset(&c->res, 0, sizeof(c->res));
	set_args(c, o);
	err = m && key ? lt_volume_sign(key, server, term, o, c->args.command) : -EINVAL;
	if (err)
		return err;
	c->asked = (struct lt_op_asked){ .proc = o->proc, .p = &procs[o->proc], .args = &c->args, .res = &c->res };
	return (int)LT_WAIT_FOR_AS(m, VERB, submit_ask(m, c, w.cb));
}

/* @term: as command(); 0: the newest one, which it gets. Return: as command() */
static int command_newest(struct leat *m, const struct leat_volume_key *key, uint32_t server, uint64_t *term, struct command *c,
			   const struct stripe_order *o)
{
	bool any = !*term;
	int rc;

	for (unsigned i = 0;; i++) {
		rc = command(m, key, server, *term, c, o);
		if (rc != -EPERM || c->res.status != STRIPE_ERR_OLDTERM || !any || i == TERMS_MAX)
			return rc;
		*term = o->proc == STRIPEPROC_LIST ? c->res.list.STRIPELISTres_u.term : c->res.stat.STRIPESTATres_u.term;
	}
}

/* @began, @ended: of the call, during which the clock of the server was read */
static int64_t skew_of(uint64_t there, uint64_t began, uint64_t ended)
{
	if (there < began)
		return -(int64_t)MIN(began - there, (uint64_t)INT64_MAX);
	return there > ended ? (int64_t)MIN(there - ended, (uint64_t)INT64_MAX) : 0;
}

/* @began: the call, whose reply has just arrived. Return: 0; -EREMOTEIO: of another server, or impossible */
static int take_info(const struct command *c, uint32_t server, uint64_t began, struct leat_volume_info *ret)
{
	const STRIPEINFOresok *ok = &c->res.info.STRIPEINFOres_u.resok;
	const struct leat_volume_info info = { .server = ok->server, .term = ok->term, .verf = ok->verf, .bytes = ok->bytes,
					       .bytes_free = ok->bytes_free, .bytes_used = ok->bytes_used,
					       .skew_ms = skew_of(ok->now, began, now_ms()) };

	if (ok->server != server || ok->bytes_free > ok->bytes || ok->bytes_used > ok->bytes)
		return -EREMOTEIO;
	lt_sized_copy(ret, &info, sizeof(info));
	return 0;
}

int leat_volume_ask(struct leat *m, const struct leat_volume_key *key, uint32_t server, struct leat_volume_info *ret)
{
	const struct stripe_order o = { .proc = STRIPEPROC_INFO };
	uint64_t began = now_ms();
	struct command c;
	int rc = lt_sized_check(ret);

	if (!rc)
		rc = command(m, key, server, 0, &c, &o);
	if (rc)
		return rc;
	rc = take_info(&c, server, began, ret);
	if (rc)
		lt_handle_tell(m, NULL, NULL, VERB, rc, IMPOSSIBLE);
	return rc;
}

/* INFO of a server of leat_volume_mount(): part of an operation. */
struct asking {
	struct command c;
	uint32_t server;
	uint64_t began;
	struct leat_volume_info *ret;
};

static void end_asking(struct lt_op *op, int err)
{
	struct asking *a = op->ret_any;

	if (err == -ETIMEDOUT && op->call.clnt) /* perhaps only the connection is dead */
		rpcrdma_clnt_reconnect(op->call.clnt, "a question timed out");
	if (err && op->call.clnt)
		lt_task_explain(&op->task, err, NULL, "%s",
				text_without_url(lt_call_cause(&op->call), lt_volume_url(op->task.m->volume, a->server)));
	if (!err) {
		err = take_info(&a->c, a->server, a->began, a->ret);
		if (err)
			lt_task_explain(&op->task, err, NULL, IMPOSSIBLE);
	}
	free(a);
	lt_op_finish(op, err);
}

static void start_asking(struct lt_op *op, int err)
{
	const struct stripe_order o = { .proc = STRIPEPROC_INFO };
	struct asking *a = op->ret_any;
	struct leat *m = op->task.m;
	char why[120];

	err = lt_volume_server(m->volume, a->server, &a->c.asked.server, why, sizeof(why));
	if (err)
		lt_task_explain(&op->task, err, NULL, "%s", why);
	else
		err = lt_volume_sign(m->source->key, a->server, 0, &o, a->c.args.command);
	if (err)
		end_asking(op, err);
	else
		lt_op_call_prog(op, end_asking);
}

int leat_volume_aio_ask(struct leat *m, uint32_t server, struct leat_volume_info *ret, struct leat_cb cb)
{
	struct asking *a;
	struct lt_op *op;
	int rc;

	if (!m || !m->source || lt_sized_check(ret))
		return lt_task_refuse(cb, -EINVAL);
	a = calloc(1, sizeof(*a));
	if (!a)
		return lt_task_refuse(cb, -ENOMEM);
	rc = lt_op_create(m, VERB, NULL, NULL, cb, &op);
	if (rc) {
		free(a);
		return rc;
	}
	a->server = server;
	a->began = now_ms();
	a->ret = ret;
	a->c.asked = (struct lt_op_asked){ .proc = STRIPEPROC_INFO, .p = &procs[STRIPEPROC_INFO], .args = &a->c.args,
					   .res = &a->c.res, .patience_ms = m->url.stripe_timeo_ms };
	op->asked = &a->c.asked;
	op->ret_any = a;
	return lt_op_submit(op, start_asking);
}

/* ---- objects --------------------------------------------------------------------------------- */

/* Copies what the program has of the structure, and its name. Return: 0, -EINVAL */
static int take_command(const struct leat_volume_command *from, struct leat_volume_command *to, stripe_name *name)
{
	*to = (struct leat_volume_command){ .size = sizeof(*to) };
	if (!from || lt_sized_check(from))
		return -EINVAL;
	memcpy(to, from, MIN(from->size, sizeof(*to)));
	memcpy(name->object, to->object, sizeof(name->object));
	name->stripe = to->stripe;
	return 0;
}

static struct leat_volume_object object_of(const stripe_stat *st)
{
	return (struct leat_volume_object){ .size = sizeof(struct leat_volume_object), .bytes = st->bytes, .used = st->used,
					    .epoch = st->epoch, .mtime_ns = st->mtime, .exists = st->exists, .removed = st->removed };
}

/* @o: all but its name. Return: 0 with @ret, unless that is NULL; -errno */
static int command_object(struct leat *m, const struct leat_volume_command *of, struct stripe_order o,
			  struct leat_volume_object *ret, uint64_t *newest)
{
	struct leat_volume_object object;
	struct leat_volume_command head;
	struct command c;
	int rc = take_command(of, &head, &o.name);

	if (!rc && ret)
		rc = lt_sized_check(ret);
	if (rc)
		return rc;
	if (o.proc == STRIPEPROC_STAT || o.proc == STRIPEPROC_SET_ASIDE)
		rc = command_newest(m, head.key, head.server, &head.term, &c, &o);
	else
		rc = command(m, head.key, head.server, head.term, &c, &o);
	if (rc == -EPERM && c.res.status == STRIPE_ERR_OLDTERM && newest)
		*newest = c.res.stat.STRIPESTATres_u.term;
	if (rc || !ret)
		return rc;
	object = object_of(&c.res.stat.STRIPESTATres_u.stat);
	lt_sized_copy(ret, &object, sizeof(object));
	return 0;
}

int leat_volume_object_stat(struct leat *m, const struct leat_volume_command *of, struct leat_volume_object *ret,
			    uint64_t *newest)
{
	const struct stripe_order o = { .proc = STRIPEPROC_STAT };

	return command_object(m, of, o, ret, newest);
}

int leat_volume_object_fence(struct leat *m, const struct leat_volume_command *of, uint64_t epoch, const uint64_t *cut,
			     struct leat_volume_object *ret, uint64_t *newest)
{
	const struct stripe_order o = { .proc = STRIPEPROC_FENCE, .value = epoch, .flag = cut != NULL, .bytes = cut ? *cut : 0 };

	return command_object(m, of, o, ret, newest);
}

int leat_volume_object_remove(struct leat *m, const struct leat_volume_command *of, uint64_t until,
			      struct leat_volume_object *ret, uint64_t *newest)
{
	const struct stripe_order o = { .proc = STRIPEPROC_REMOVE, .value = until };

	return command_object(m, of, o, ret, newest);
}

int leat_volume_object_set_aside(struct leat *m, const struct leat_volume_command *of, uint64_t until, uint64_t mtime_ns,
				 struct leat_volume_object *ret, uint64_t *newest)
{
	const struct stripe_order o = { .proc = STRIPEPROC_SET_ASIDE, .value = until, .bytes = mtime_ns };

	return command_object(m, of, o, ret, newest);
}

/* ---- all objects ----------------------------------------------------------------------------- */

/* A list has to get on, or it need not end. @after: NULL: it is the first page */
static int check_page(struct leat *m, const STRIPELISTresok *ok, const stripe_name *after)
{
	bool possible = ok->eof || ok->entries.entries_len;

	for (unsigned i = 0; i < ok->entries.entries_len && possible; i++) {
		const stripe_name *name = &ok->entries.entries_val[i].name;

		possible = !after || stripe_name_compare(name, after) > 0;
		after = name;
	}
	if (possible)
		return 0;
	lt_handle_tell(m, NULL, NULL, "LIST", -EREMOTEIO, "the list of the server has no order");
	return -EREMOTEIO;
}

/* Return: 0; what @fn returned */
static int give_page(const STRIPELISTresok *ok, leat_volume_object_fn fn, void *ctx)
{
	int rc = 0;

	for (unsigned i = 0; i < ok->entries.entries_len && !rc; i++) {
		const stripe_entry *e = &ok->entries.entries_val[i];
		struct leat_volume_object o = object_of(&e->stat);
		unsigned char object[STRIPE_OBJECT_BYTES];

		memcpy(object, e->name.object, sizeof(object));
		rc = fn(ctx, object, e->name.stripe, &o);
	}
	return rc;
}

/* @o: name and flag say where the page begins; then where the next one does. Return: 0; -errno; what @fn returned */
static int list_page(struct leat *m, struct leat_volume_command *of, struct stripe_order *o, leat_volume_object_fn fn, void *ctx,
		     uint64_t *newest, bool *ret_ends)
{
	struct command c;
	const STRIPELISTresok *ok = &c.res.list.STRIPELISTres_u.resok;
	int rc = command_newest(m, of->key, of->server, &of->term, &c, o);

	if (rc == -EPERM && c.res.status == STRIPE_ERR_OLDTERM && newest)
		*newest = c.res.list.STRIPELISTres_u.term;
	if (!rc)
		rc = check_page(m, ok, o->flag ? NULL : &o->name);
	if (!rc)
		rc = give_page(ok, fn, ctx);
	if (!rc && ok->entries.entries_len)
		o->name = ok->entries.entries_val[ok->entries.entries_len - 1].name;
	*ret_ends = ok->eof;
	o->flag = false;
	xdr_free((xdrproc_t)xdr_STRIPELISTres, &c.res.list);
	return rc;
}

int leat_volume_object_list(struct leat *m, const struct leat_volume_command *of, leat_volume_object_fn fn, void *ctx,
			    uint64_t *newest)
{
	struct stripe_order o = { .proc = STRIPEPROC_LIST, .flag = true };
	struct leat_volume_command head;
	stripe_name unused;
	bool ends = false;
	int rc = take_command(of, &head, &unused);

	while (!rc && !ends)
		rc = list_page(m, &head, &o, fn, ctx, newest, &ends);
	return rc;
}
