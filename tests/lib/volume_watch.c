/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_watch.c - what clients and the manager of a volume send
 */
#include "volume_watch.h"

#include "leat_volume.h"
#include "volumes.h"

struct volume_watch volume_watch;

bool_t __real_xdr_VOLREPORTargs(XDR *xdrs, VOLREPORTargs *a);
bool_t __wrap_xdr_VOLREPORTargs(XDR *xdrs, VOLREPORTargs *a);
int __real_leat_volume_object_stat(struct leat *to, const struct leat_volume_command *c, struct leat_volume_object *ret,
				   uint64_t *newest);
int __wrap_leat_volume_object_stat(struct leat *to, const struct leat_volume_command *c, struct leat_volume_object *ret,
				   uint64_t *newest);

bool_t __wrap_xdr_VOLREPORTargs(XDR *xdrs, VOLREPORTargs *a)
{
	if (xdrs->x_op == XDR_ENCODE && atomic_load(&volume_watch.is_silent))
		return FALSE;
	return __real_xdr_VOLREPORTargs(xdrs, a);
}

int __wrap_leat_volume_object_stat(struct leat *to, const struct leat_volume_command *c, struct leat_volume_object *ret,
				   uint64_t *newest)
{
	void (*sent)(void) = atomic_load(&volume_watch.sent), (*replied)(void) = atomic_load(&volume_watch.replied);
	int failure = atomic_exchange(&volume_watch.failure, 0);
	int rc;

	if (sent)
		sent();
	rc = failure ? failure : __real_leat_volume_object_stat(to, c, ret, newest);
	atomic_fetch_add(&volume_watch.stats, 1);
	if (replied)
		replied();
	return rc;
}
