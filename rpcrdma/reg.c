/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * reg.c - registration strategies by name, and the loop over an iov
 *
 * Operation:  reg.h. Each entry of an iov is one piece and one segment; the strategy is asked piece
 *             by piece, the second one for what the first does not take.
 * Memory:     Pieces are the caller's; on failure those already made are put back.
 * Threads:    The connection's.
 * Errors:     As the strategies say.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "reg.h"

static const struct strategy {
	const char *name;
	const struct rr_reg_ops *ops[2];
} strategies[] = {
	{ "auto", { &rr_reg_slab_ops, &rr_reg_dynamic_ops } },
	{ "dynamic", { &rr_reg_dynamic_ops, NULL } },
	{ "slab", { &rr_reg_slab_ops, NULL } },
};

static const struct strategy *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(strategies); i++)
		if (!strcmp(strategies[i].name, name))
			return &strategies[i];
	return NULL;
}

/** rr_reg_canonical - see reg.h */
const char *rr_reg_canonical(const char *name)
{
	const struct strategy *s = find(name ? name : "auto");

	return s ? s->name : NULL;
}

/** rr_reg_init - see reg.h */
void rr_reg_init(struct rr_reg *reg, struct rpcrdma_engine *e, struct rr_pd *pd, const char *name)
{
	const struct strategy *s = find(name);

	assert(s);
	*reg = (struct rr_reg){ .engine = e, .pd = pd, .ops = { s->ops[0], s->ops[1] } };
	list_init(&reg->slabs);
}

/** rr_reg_revoke - see reg.h */
void rr_reg_revoke(struct rr_reg *reg)
{
	for (size_t i = 0; i < ARRAY_SIZE(reg->ops); i++)
		if (reg->ops[i])
			reg->ops[i]->revoke(reg);
}

/** rr_reg_fini - see reg.h */
void rr_reg_fini(struct rr_reg *reg)
{
	rr_reg_revoke(reg);
}

/** rr_reg_count - see reg.h */
unsigned rr_reg_count(const struct iovec *iov, int iovcnt, uint64_t len)
{
	unsigned n = 0;

	for (int i = 0; i < iovcnt && len; i++) {
		n += iov[i].iov_len > 0;
		len -= MIN(len, (uint64_t)iov[i].iov_len);
	}
	return n;
}

static int get_piece(struct rr_reg *reg, void *addr, size_t len, unsigned access,
		     struct rr_reg_piece *ret)
{
	int rc = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(reg->ops) && rc == -ENOENT && reg->ops[i]; i++)
		rc = reg->ops[i]->get(reg, addr, len, access, ret);
	assert(rc || (ret->ops && ret->seg.length == len && ret->seg.handle));
	return rc;
}

/** rr_reg_get - see reg.h */
int rr_reg_get(struct rr_reg *reg, const struct iovec *iov, int iovcnt, uint64_t len,
	       unsigned access, struct rr_reg_piece *pieces, unsigned *ret_n)
{
	unsigned n = 0;
	int rc;

	if (rr_reg_count(iov, iovcnt, len) > RR_REG_PIECES_MAX)
		return -ENOBUFS;
	for (int i = 0; i < iovcnt && len; i++) {
		size_t take = (size_t)MIN(len, (uint64_t)iov[i].iov_len);

		if (!take)
			continue;
		rc = get_piece(reg, iov[i].iov_base, take, access, &pieces[n]);
		if (rc) {
			rr_reg_put(reg, pieces, n);
			return rc;
		}
		n++;
		len -= take;
	}
	*ret_n = n;
	return 0;
}

/** rr_reg_put - see reg.h */
bool rr_reg_put(struct rr_reg *reg, struct rr_reg_piece *pieces, unsigned n)
{
	bool out_of_reach = true;

	while (n-- > 0) {
		out_of_reach &= !pieces[n].ops->lasting;
		pieces[n].ops->put(reg, &pieces[n]);
	}
	return out_of_reach;
}
