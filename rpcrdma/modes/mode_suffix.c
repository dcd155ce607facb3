/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * mode_suffix.c - the modes of a connection: names, and the suffix of the private data
 *
 * Operation:  The requester appends a suffix to the eight bytes of RFC 8797, with the modes that it
 *             requests. A responder that supports suffixes replies with one, with the modes that it
 *             grants. Other peers ignore what follows the eight bytes, as the RFC requires.
 *
 *                 0  'leat'          4  version 2    5  bytes: 32     6  modes    7  status
 *                 8  bytes of a slot                12  slots u16    14  0
 *                16  handle of the slots            20  maximum bytes of a grant
 *                24  offset of the slots u64
 *
 *             If the responder has windows, the handle is a window's, bound by the first request that
 *             the responder posts. A requester therefore uses no slot before it has received a message
 *             from the responder, which is sent after the bind.
 * Memory:     None.
 * Threads:    Pure functions.
 * Errors:     A suffix of another format is ignored: both ends then use no mode, and a requester that
 *             requested one reports that it is not available.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/wire.h"
#include "mode.h"
#include "rpcrdma_lab.h"

#define SUFFIX_MAGIC 0x6c656174u /* "leat" */
#define SUFFIX_VERSION 2u /* version 1 had no such rule */

static const struct {
	const char *name;
	unsigned mode;
} names[] = {
	{ "read-read", RPCRDMA_READ_READ },
	{ "fast-write", RPCRDMA_FAST_WRITE },
	{ "hybrid", RPCRDMA_HYBRID },
};

static int find(const char *name, size_t len, unsigned *modes)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strlen(names[i].name) == len && !strncmp(names[i].name, name, len)) {
			*modes |= names[i].mode;
			return 0;
		}
	}
	return -EINVAL;
}

int rpcrdma_modes_parse(const char *text, unsigned *ret)
{
	static const char between[] = " \t,";
	unsigned modes = 0;

	if (strcmp(text, "none") != 0) {
		for (text += strspn(text, between); *text; text += strspn(text, between)) {
			size_t len = strcspn(text, between);

			if (find(text, len, &modes))
				return -EINVAL;
			text += len;
		}
		if (!modes)
			return -EINVAL;
	}
	*ret = modes;
	return 0;
}

char *rpcrdma_modes_print(unsigned modes, char *buf, size_t cap)
{
	size_t n = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(names) && n < cap; i++)
		if (modes & names[i].mode)
			n += (size_t)snprintf(buf + n, cap - n, "%s%s", n ? ", " : "", names[i].name);
	if (!n)
		(void)snprintf(buf, cap, "none");
	return buf;
}

void rr_suffix_encode(const struct rr_suffix *s, uint8_t out[RR_SUFFIX_BYTES])
{
	memset(out, 0, RR_SUFFIX_BYTES);
	put_be32(out, SUFFIX_MAGIC);
	out[4] = SUFFIX_VERSION;
	out[5] = RR_SUFFIX_BYTES;
	out[6] = (uint8_t)s->modes;
	out[7] = s->status;
	put_be32(out + 8, s->slot_bytes);
	put_be32(out + 12, (uint32_t)s->slots << 16);
	put_be32(out + 16, s->handle);
	put_be32(out + 20, s->grant_max);
	put_be64(out + 24, s->offset);
}

bool rr_suffix_decode(const void *priv, size_t len, struct rr_suffix *ret)
{
	const uint8_t *b = priv;
	struct rr_priv rfc;

	rr_priv_decode(priv, len, &rfc);
	if (!rfc.present || len < RR_PRIV_BYTES + RR_SUFFIX_BYTES)
		return false;
	b += RR_PRIV_BYTES;
	if (get_be32(b) != SUFFIX_MAGIC || b[4] != SUFFIX_VERSION || b[5] != RR_SUFFIX_BYTES ||
	    b[6] & ~RPCRDMA_MODES_ALL || get_be32(b + 12) & 0xffff)
		return false;
	*ret = (struct rr_suffix){
		.modes = b[6],
		.status = b[7],
		.slot_bytes = get_be32(b + 8),
		.slots = (uint16_t)(get_be32(b + 12) >> 16),
		.handle = get_be32(b + 16),
		.grant_max = get_be32(b + 20),
		.offset = get_be64(b + 24),
	};
	return true;
}
