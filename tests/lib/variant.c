/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * variant.c - the flow tests once more, with other thresholds, credits and private data
 *
 * Operation:  Flow tests are linked with --wrap of the functions below; every client, listener
 *             and local fabric of the program goes through here, and rr_credit_grant() of its
 *             responders. Without the variables nothing changes:
 *
 *               LEAT_TEST_INLINE=N          inline threshold of both sides
 *               LEAT_TEST_NO_PRIV=clnt|svc  that side sends and reads no private data
 *               LEAT_TEST_CREDITS=N         no responder grants more
 *               LEAT_TEST_CREDITS=falling   each grant is half of the one before, down to 1, then
 *                                           it starts again
 *               LEAT_TEST_SRQ=1             responders' connections share their receives
 *               LEAT_TEST_CHAOS=N           seed of the local fabric's chaos where the test sets none
 *               LEAT_TEST_MODES=NAMES       clients want these modes, and responders offer them
 *               LEAT_TEST_VM=never          no side reaches into the other's memory: its owner has
 *                                           to poll for anything to move
 *               LEAT_TEST_PIN=1             registered memory is what it was then, as for a device
 *               LEAT_TEST_REGISTRATION=NAME strategy of clients that ask for none
 *               LEAT_TEST_OVERLAP=streams|ordered  exports move data in pieces of 4 KiB, as if from
 *                                           three members of 8 KiB each
 *
 *             A program in which a variable took effect says so on stderr, once; test_variant_*.sh
 *             want to see that.
 * Memory:     None.
 * Threads:    Any.
 * Errors:     Those of the functions themselves.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "credit.h"
#include "data_conf.h"
#include "hooks.h"
#include "local.h"
#include "rpcrdma.h"
#include "rpcrdma_lab.h"

int __real_rpcrdma_clnt_open(struct rpcrdma_engine *e, const struct rpcrdma_clnt_attr *attr,
			     struct rpcrdma_clnt **ret);
int __wrap_rpcrdma_clnt_open(struct rpcrdma_engine *e, const struct rpcrdma_clnt_attr *attr,
			     struct rpcrdma_clnt **ret);
int __real_rpcrdma_listen(struct rpcrdma_engine *e, const struct rpcrdma_addr *addr,
			  const struct rpcrdma_svc_attr *attr, const struct rpcrdma_svc_ops *ops,
			  void *ctx, struct rpcrdma_listener **ret);
int __wrap_rpcrdma_listen(struct rpcrdma_engine *e, const struct rpcrdma_addr *addr,
			  const struct rpcrdma_svc_attr *attr, const struct rpcrdma_svc_ops *ops,
			  void *ctx, struct rpcrdma_listener **ret);
int __real_rr_local_open(const struct rr_local_attr *attr, struct rr_fabric **ret);
int __wrap_rr_local_open(const struct rr_local_attr *attr, struct rr_fabric **ret);
void __real_data_conf_init(struct data_conf *d);
void __wrap_data_conf_init(struct data_conf *d);
uint32_t __real_rr_credit_grant(uint32_t asked, uint32_t posted, uint32_t cap);
uint32_t __wrap_rr_credit_grant(uint32_t asked, uint32_t posted, uint32_t cap);

static const char *wanted(const char *name)
{
	static atomic_bool said;
	const char *value = getenv(name);

	if (value && !atomic_exchange(&said, true))
		fprintf(stderr, "variant: %s=%s\n", name, value);
	return value;
}

static uint32_t wanted_u32(const char *name, uint32_t otherwise)
{
	const char *value = wanted(name);

	return value ? (uint32_t)strtoul(value, NULL, 10) : otherwise;
}

static bool is_without(const char *side)
{
	const char *value = wanted("LEAT_TEST_NO_PRIV");

	return value && !strcmp(value, side);
}

static unsigned wanted_modes(unsigned otherwise)
{
	const char *value = wanted("LEAT_TEST_MODES");
	unsigned modes;

	return value && !rpcrdma_modes_parse(value, &modes) ? modes : otherwise;
}

int __wrap_rpcrdma_clnt_open(struct rpcrdma_engine *e, const struct rpcrdma_clnt_attr *attr,
			     struct rpcrdma_clnt **ret)
{
	struct rpcrdma_clnt_attr a = *attr;
	struct rpcrdma_lab lab = a.lab ? *a.lab : (struct rpcrdma_lab){ 0 };

	a.inline_bytes = wanted_u32("LEAT_TEST_INLINE", a.inline_bytes);
	lab.no_private_data |= is_without("clnt");
	if (!a.registration)
		a.registration = wanted("LEAT_TEST_REGISTRATION");
	if (a.addr.transport != RPCRDMA_TCP)
		lab.modes = wanted_modes(lab.modes);
	a.lab = &lab;
	return __real_rpcrdma_clnt_open(e, &a, ret);
}

int __wrap_rpcrdma_listen(struct rpcrdma_engine *e, const struct rpcrdma_addr *addr,
			  const struct rpcrdma_svc_attr *attr, const struct rpcrdma_svc_ops *ops,
			  void *ctx, struct rpcrdma_listener **ret)
{
	struct rpcrdma_svc_attr a = { 0 };
	struct rpcrdma_lab lab = { 0 };

	if (attr)
		a = *attr;
	if (a.lab)
		lab = *a.lab;
	a.inline_bytes = wanted_u32("LEAT_TEST_INLINE", a.inline_bytes);
	lab.no_private_data |= is_without("svc");
	a.srq |= addr->transport != RPCRDMA_TCP && wanted("LEAT_TEST_SRQ");
	lab.modes = wanted_modes(lab.modes);
	a.lab = &lab;
	return __real_rpcrdma_listen(e, addr, &a, ops, ctx, ret);
}

int __wrap_rr_local_open(const struct rr_local_attr *attr, struct rr_fabric **ret)
{
	struct rr_local_attr a = { 0 };
	uint32_t seed = wanted_u32("LEAT_TEST_CHAOS", 0);
	int rc;

	if (attr)
		a = *attr;
	if (wanted("LEAT_TEST_VM"))
		a.vm = RR_LOCAL_VM_NEVER;
	rc = __real_rr_local_open(&a, ret);
	if (!rc && wanted("LEAT_TEST_PIN"))
		rc = pins_push(*ret);
	if (!rc && seed)
		rc = chaos_push(*ret, seed);
	return rc;
}

void __wrap_data_conf_init(struct data_conf *d)
{
	const char *value = wanted("LEAT_TEST_OVERLAP");

	__real_data_conf_init(d);
	if (!value)
		return;
	d->overlap = !strcmp(value, "ordered") ? DATA_OVERLAP_ORDERED : DATA_OVERLAP_STREAMS;
	d->grain = 4096;
	d->streams = 3;
	d->chunk = 8192;
}

uint32_t __wrap_rr_credit_grant(uint32_t asked, uint32_t posted, uint32_t cap)
{
	static atomic_uint serial;
	const char *value = wanted("LEAT_TEST_CREDITS");
	uint32_t grant = __real_rr_credit_grant(asked, posted, cap), most = grant;

	if (value && !strcmp(value, "falling"))
		most = grant >> (atomic_fetch_add(&serial, 1) % 8);
	else if (value)
		most = wanted_u32("LEAT_TEST_CREDITS", grant);
	return MAX(MIN(grant, most), 1u);
}
