/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_server_repeat.c - retransmitted calls, and what the duplicate request cache keeps
 */
#include "test_server_once.h"

#define FEW 6 /* entries of a small cache, and as many for WRITEs */

/* ---- the bytes of the reply ---- */

/* Results as they are on the wire, whatever they mean. */
struct raw {
	uint32_t bytes;
	uint8_t data[512];
};

static bool_t xdr_raw(XDR *xdrs, void *arg)
{
	struct raw *r = arg;

	r->bytes = 0;
	while (r->bytes < sizeof(r->data) && XDR_GETBYTES(xdrs, (char *)r->data + r->bytes, 4))
		r->bytes += 4;
	return TRUE;
}

/* Retransmits the call with its XID, over another connection and perhaps another transport. */
static void repeat(struct nfs_peer *p, enum rpcrdma_transport transport, uint32_t xid,
		   const MKDIR3args *a, struct raw *ret)
{
	nfs_peer_disconnect(p);
	nfs_peer_connect(p, transport, 0);
	clnt_next_xid(p->clnt, xid);
	assert_int_equal(nfs_peer_rpc(p, NFS_PROGRAM, NFS_V3, NFSPROC3_MKDIR,
				      (xdrproc_t)xdr_MKDIR3args, a, (xdrproc_t)xdr_raw, ret, NULL,
				      0),
			 0);
}

static void same_bytes(void **state)
{
	struct ctx *c = *state;
	struct nfs_peer *p = &c->peer;
	enum rpcrdma_transport transport =
		c->hooks ? RPCRDMA_LOCAL : RPCRDMA_TCP;
	MKDIR3args a = { .where = in_root(p, x) };
	struct raw first, again;

	clean();
	repeat(p, transport, 0x4321, &a, &first);
	assert_true(first.bytes > 100);
	make(y, 0644); /* changes the attributes of the directory */
	for (int i = 0; i < 3; i++) {
		repeat(p, transport, 0x4321, &a, &again);
		assert_int_equal(again.bytes, first.bytes);
		assert_memory_equal(again.data, first.data, first.bytes);
	}
	/* replies with errors are kept as well */
	repeat(p, transport, 0x4322, &a, &first);
	remove_x_dir();
	repeat(p, transport, 0x4322, &a, &again);
	assert_int_equal(first.data[3], NFS3ERR_EXIST);
	assert_int_equal(again.bytes, first.bytes);
	assert_memory_equal(again.data, first.data, first.bytes);
	assert_true(x_is_gone());
}

/* A call with a reused XID and other arguments, or of another client, is executed. */
static void other_calls(void **state)
{
	struct ctx *c = *state;
	struct nfs_peer *p = &c->peer;
	enum rpcrdma_transport transport =
		c->hooks ? RPCRDMA_LOCAL : RPCRDMA_TCP;
	MKDIR3args a = { .where = in_root(p, x) }, b = { .where = in_root(p, y) };
	struct raw res;

	clean();
	repeat(p, transport, 77, &a, &res);
	assert_int_equal(res.data[3], NFS3_OK);
	repeat(p, transport, 77, &b, &res);
	assert_int_equal(res.data[3], NFS3_OK);
	assert_true(is_there(y));
	/* another process of this host */
	p->cred.stamp++;
	repeat(p, transport, 77, &a, &res);
	assert_int_equal(res.data[3], NFS3ERR_EXIST);
	p->cred.stamp--;
	repeat(p, transport, 77, &a, &res);
	assert_int_equal(res.data[3], NFS3_OK);
	/* and another user of it */
	p->cred.machine[0]++;
	repeat(p, transport, 77, &a, &res);
	assert_int_equal(res.data[3], NFS3ERR_EXIST);
	p->cred.machine[0]--;
	assert_int_equal(unlinkat(dir, y, AT_REMOVEDIR), 0);
	clean();
}

static void other_data(void **state)
{
	struct ctx *c = *state;
	struct nfs_peer *p = &c->peer;
	char bytes[2] = { 'b', 'd' };

	prepare(p, &deeds[1]);
	for (int i = 0; i < 2; i++) {
		clnt_next_xid(p->clnt, 0x10000);
		assert_int_equal(nfs_peer_write(p, &file, 0, &bytes[i], 1, FILE_SYNC, NULL),
				 NFS3_OK);
		assert_int_equal(is_written(), i == 0);
	}
	/* the first call is retransmitted with its own arguments */
	clnt_next_xid(p->clnt, 0x10000);
	assert_int_equal(nfs_peer_write(p, &file, 0, &bytes[0], 1, FILE_SYNC, NULL), NFS3_OK);
	assert_false(is_written());
	clean();
}

/* A kept reply is sent without another check of handle or permissions. */
static void file_is_gone(void **state)
{
	struct ctx *c = *state;
	struct nfs_peer *p = &c->peer;

	prepare(p, &deeds[1]);
	clnt_next_xid(p->clnt, 0x20000);
	assert_int_equal(call_write(p), NFS3_OK);
	remove_x();
	clnt_next_xid(p->clnt, 0x20000);
	assert_int_equal(call_write(p), NFS3_OK);
	assert_int_equal(call_write(p), NFS3ERR_STALE);
}

static uint64_t counter(struct nfs_peer *p, const char *name)
{
	uint64_t value = UINT64_MAX;
	ctl_stats res = { 0 };

	assert_int_equal(nfs_peer_rpc(p, LEAT_CTL, LEAT_CTL_V1, CTL_STATS, (xdrproc_t)nfs_peer_xdr_nothing,
				      NULL, (xdrproc_t)xdr_ctl_stats, &res, NULL, 0),
			 0);
	for (u_int i = 0; i < res.stats.stats_len; i++) {
		if (!strcmp(res.stats.stats_val[i].name, name))
			value = res.stats.stats_val[i].value;
	}
	xdr_free((xdrproc_t)xdr_ctl_stats, (char *)&res);
	return value;
}

/* a small cache, whose size the counters report */
static void bounds_and_counters(void **state)
{
	struct ctx *c = *state;
	struct nfs_peer *p = &c->peer;

	for (uint32_t i = 0; i < 20; i++) {
		clean();
		clnt_next_xid(p->clnt, i);
		assert_int_equal(call_mkdir(p), NFS3_OK);
	}
	assert_int_equal(counter(p, "drc_entries"), FEW);
	assert_int_equal(counter(p, "drc_evictions"), 20 - FEW);
	assert_in_range(counter(p, "drc_bytes"), FEW * 300, FEW * 1000);
	assert_int_equal(counter(p, "drc_hits"), 0);
	assert_int_equal(counter(p, "drc_joins"), 0);
	clnt_next_xid(p->clnt, 19);
	assert_int_equal(call_mkdir(p), NFS3_OK);
	assert_int_equal(counter(p, "drc_hits"), 1);
	clnt_next_xid(p->clnt, 0); /* evicted */
	assert_int_equal(call_mkdir(p), NFS3ERR_EXIST);
	/* replies to calls that change nothing are not kept */
	for (int i = 0; i < 5; i++)
		assert_int_equal(nfs_peer_lookup(p, &p->root, x, NULL), NFS3_OK);
	assert_int_equal(counter(p, "drc_evictions"), 21 - FEW);
	clean();
}

/* Neither WRITEs of the same client nor changes by other clients evict the reply to a change. One client uses TCP, on a
 * loopback address, the other one the local socket. */
static void others_leave_room(void **state)
{
	struct ctx *c = *state;
	struct nfs_peer *p = &c->peer;

	clean();
	make_y(p);
	clnt_next_xid(p->clnt, 5);
	assert_int_equal(call_mkdir(p), NFS3_OK);
	for (unsigned i = 0; i < 4 * FEW; i++)
		assert_int_equal(call_write(p), NFS3_OK);
	clnt_next_xid(p->clnt, 5);
	assert_int_equal(call_mkdir(p), NFS3_OK);
	nfs_peer_disconnect(p);
	nfs_peer_connect(p, RPCRDMA_TCP, 0);
	clnt_next_xid(p->clnt, 100);
	for (unsigned i = 0; i < 2 * FEW; i++) {
		remove_x_dir();
		assert_int_equal(call_mkdir(p), NFS3_OK);
	}
	nfs_peer_disconnect(p);
	nfs_peer_connect(p, RPCRDMA_LOCAL, 0);
	clnt_next_xid(p->clnt, 5);
	assert_int_equal(call_mkdir(p), NFS3_OK);
	assert_int_equal(call_mkdir(p), NFS3ERR_EXIST);
	assert_int_equal(counter(p, "drc_hits"), 2);
	clean();
}

/* ---- around each test ---- */

static void few_entries(struct conf *conf)
{
	conf->drc_entries = 2 * FEW;
}

static int setup_few(void **state)
{
	return setup(state, RPCRDMA_LOCAL, few_entries);
}

#define BOTH(f) { #f " (tcp)", f, setup_tcp, teardown, NULL }, { #f " (local)", f, setup_local, teardown, NULL }

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bounds_and_counters, setup_few, teardown),
		cmocka_unit_test_setup_teardown(others_leave_room, setup_few, teardown),
		BOTH(same_bytes),
		BOTH(other_calls),
		BOTH(other_data),
		BOTH(file_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
