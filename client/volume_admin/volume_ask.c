/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_ask.c - asks a stripe server what it says of itself
 *
 * Operation: One INFO, a command that is signed with the key of the volume and changes nothing.
 * Memory:    That of the operation. Keys are cleared.
 * Threads:   As functions of leat.h.
 * Errors:    -errno; leat_error() has the reason.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "leat_volume.h"
#include "lt_sized.h"
#include "op.h"
#include "stripe_key.h"
#include "stripe_status.h"
#include "sync.h"

#define VERB "stripe server information"
#define COMMAND_S 60u /* a command is valid for as long */
#define INFO_BYTES (4u + 4u + 5 * 8u)

static bool is_later(uint32_t status)
{
	return status == STRIPE_ERR_LATER;
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
	default:
		return stripe_status_name(status);
	}
}

static const struct lt_statuses statuses = { .is_later = is_later, .to_errno = stripe_errno, .name = explain_status };

static const struct lt_proc info_proc = { .encode = (xdrproc_t)xdr_STRIPEINFOargs, .decode = (xdrproc_t)xdr_STRIPEINFOres,
					  .res_bytes = sizeof(STRIPEINFOres), .reply_max = INFO_BYTES, .statuses = &statuses };

/* Return: milliseconds since 1970 */
static uint64_t now_ms(void)
{
	struct timespec t;

	if (clock_gettime(CLOCK_REALTIME, &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static int sign(struct leat *m, const char *key_file, uint32_t server, char ret[STRIPE_COMMAND_BYTES])
{
	struct stripe_command c = { .server = server, .expiry = now_ms() / 1000 + COMMAND_S };
	const struct stripe_order order = { .proc = STRIPEPROC_INFO };
	struct stripe_keys keys;
	char why[256] = "";
	int err = stripe_key_load(key_file, &c.volume, &keys, why, sizeof(why));

	if (!err && getrandom(&c.number, sizeof(c.number), 0) != sizeof(c.number))
		err = -EIO;
	if (err)
		lt_handle_tell(m, NULL, NULL, VERB, err, why);
	else
		stripe_command_make(&keys, &c, &order, ret);
	explicit_bzero(&keys, sizeof(keys));
	return err;
}

static void told(struct lt_op *op, int err)
{
	if (!err)
		*(STRIPEINFOresok *)op->ret_any = op->res.stripe_info.STRIPEINFOres_u.resok;
	lt_op_finish(op, err);
}

static void ask(struct lt_op *op, int err)
{
	(void)err; /* a first step */
	lt_op_call_prog(op, LEAT_STRIPES, LEAT_STRIPES_V1, STRIPEPROC_INFO, &info_proc, told);
}

static int submit_ask(struct leat *m, const char command[STRIPE_COMMAND_BYTES], STRIPEINFOresok *ret, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = lt_op_create(m, VERB, NULL, NULL, cb, &op);

	if (rc)
		return rc;
	memcpy(op->args.stripe_info.command, command, STRIPE_COMMAND_BYTES);
	op->ret_any = ret;
	return lt_op_submit(op, ask);
}

/* @began: when the call began. The clock of the server was read in between. */
static int64_t skew_of(uint64_t there, uint64_t began, uint64_t ended)
{
	if (there < began)
		return -(int64_t)MIN(began - there, (uint64_t)INT64_MAX);
	return there > ended ? (int64_t)MIN(there - ended, (uint64_t)INT64_MAX) : 0;
}

int leat_volume_ask(struct leat *m, const char *key_file, uint32_t server, struct leat_volume_info *ret)
{
	char command[STRIPE_COMMAND_BYTES];
	struct leat_volume_info info;
	STRIPEINFOresok ok;
	uint64_t began;
	int rc = m && key_file ? lt_sized_check(ret) : -EINVAL;

	if (!rc)
		rc = sign(m, key_file, server, command);
	if (rc)
		return rc;
	began = now_ms();
	rc = (int)LT_WAIT_FOR_AS(m, VERB, submit_ask(m, command, &ok, w.cb));
	if (rc)
		return rc;
	info = (struct leat_volume_info){ .server = ok.server, .term = ok.term, .verf = ok.verf, .bytes = ok.bytes,
					  .bytes_free = ok.bytes_free, .skew_ms = skew_of(ok.now, began, now_ms()) };
	lt_sized_copy(ret, &info, sizeof(info));
	return 0;
}
