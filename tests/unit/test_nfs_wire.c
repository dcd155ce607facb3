/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_nfs_wire.c - the NFS codecs against recorded messages, and which items may move by chunk
 *
 * The numbers are those of the checklist in doc/protocol.md.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "base/wire.h"
#include "chunk.h"
#include "mount3.h"
#include "nfs3.h"
#include "nfsacl.h"
#include "space.h"
#include "rpc_msg.h"
#include "stream.h"
#include "vectors.h"

static bool_t xdr_nothing(XDR *xdrs, void *p)
{
	(void)xdrs;
	(void)p;
	return TRUE;
}

#define PROC(name) { #name, (xdrproc_t)xdr_##name##3args, (xdrproc_t)xdr_##name##3res }

static const struct proc {
	const char *name;
	xdrproc_t args, res;
} procs[] = {
	{ "NULL", (xdrproc_t)xdr_nothing, (xdrproc_t)xdr_nothing },
	PROC(GETATTR), PROC(SETATTR), PROC(LOOKUP), PROC(ACCESS), PROC(READLINK), PROC(READ),
	PROC(WRITE), PROC(CREATE), PROC(MKDIR), PROC(SYMLINK), PROC(MKNOD), PROC(REMOVE), PROC(RMDIR),
	PROC(RENAME), PROC(LINK), PROC(READDIR), PROC(READDIRPLUS), PROC(FSSTAT), PROC(FSINFO),
	PROC(PATHCONF), PROC(COMMIT),
	/* and those of NFSACL */
	{ "NULL", (xdrproc_t)xdr_nothing, (xdrproc_t)xdr_nothing }, PROC(GETACL), PROC(SETACL),
	/* and those of SPACE */
	{ "NULL", (xdrproc_t)xdr_nothing, (xdrproc_t)xdr_nothing }, PROC(ALLOCATE), PROC(SEEK),
};

#define NFS_PROCS 22

/* Return: place in the table, or -1: neither NFS nor NFSACL */
static int find_proc(const struct rr_rpc_call *c)
{
	if (c->prog == NFSACL_PROGRAM && c->vers == NFSACL_V3)
		return NFS_PROCS + (int)c->proc;
	return c->prog == NFS_PROGRAM && c->vers == NFS_V3 ? (int)c->proc : -1;
}

/* any arguments or results, as rpcgen's structures go; aligned for all of them */
static union {
	uint64_t align;
	uint8_t bytes[8192];
} what;

static bool run(struct rr_stream *s, xdrproc_t filter)
{
	return ((bool_t(*)(XDR *, void *))filter)(&s->xdr, &what);
}

/* ---- item 69 ---- */

/* Decoded from zeros: every enum and length is 0, every status is success. */
static bool marks_payload(xdrproc_t filter)
{
	static uint8_t zeros[1024];
	struct rr_stream s;

	memset(&what, 0, sizeof(what));
	rr_stream_decode(&s, zeros, sizeof(zeros));
	assert_true(run(&s, filter));
	xdr_free(filter, (char *)&what);
	return s.has_payload;
}

static void item69_four_items_and_no_more(void **state)
{
	(void)state;
	assert_int_equal(ARRAY_SIZE(procs), NFS_PROCS + 3 + 3);
	for (uint32_t i = 0; i < ARRAY_SIZE(procs); i++) {
		assert_int_equal(marks_payload(procs[i].args),
				 i == NFSPROC3_WRITE || i == NFSPROC3_SYMLINK);
		assert_int_equal(marks_payload(procs[i].res),
				 i == NFSPROC3_READ || i == NFSPROC3_READLINK);
	}
	/* none of NFSACL or SPACE was among them, and none is in MOUNT */
	assert_false(marks_payload((xdrproc_t)xdr_dirpath));
	assert_false(marks_payload((xdrproc_t)xdr_mountres3));
	assert_false(marks_payload((xdrproc_t)xdr_mountlist));
	assert_false(marks_payload((xdrproc_t)xdr_mountexports));
}

/* ---- item 70 ---- */

struct counts {
	unsigned calls, replies;
	uint32_t procs_seen;
};

/* Encoded again it must be the very same bytes, payload and pad in their place. */
static void encode_back(xdrproc_t filter, const struct rr_stream *in, const uint8_t *wire, size_t len,
			bool chunk, const char *name)
{
	static uint8_t buf[65536];
	struct rr_stream s;
	size_t at;

	rr_stream_encode(&s, buf, sizeof(buf));
	if (!run(&s, filter))
		fail_msg("%s does not encode", name);
	assert_int_equal(s.has_payload, in->has_payload);
	if (!s.has_payload || chunk) {
		assert_int_equal(rr_stream_len(&s), len);
		assert_memory_equal(buf, wire, len);
		return;
	}
	at = s.payload_pos;
	assert_memory_equal(buf, wire, at);
	assert_int_equal(rr_stream_len(&s) + round_up4(s.payload.length), len);
	assert_memory_equal(buf + at, wire + at + round_up4(s.payload.length), rr_stream_len(&s) - at);
}

static void check(xdrproc_t filter, const uint8_t *wire, size_t len, uint64_t chunk_bytes,
		  const char *name)
{
	void *msg = (void *)(uintptr_t)wire; /* a stream points into it, and only reads here */
	struct rr_stream s;

	memset(&what, 0, sizeof(what));
	if (chunk_bytes)
		rr_stream_decode_chunk(&s, msg, len, RR_STREAM_ANY_POSITION, (size_t)chunk_bytes);
	else
		rr_stream_decode(&s, msg, len);
	if (!run(&s, filter) || rr_stream_decode_done(&s))
		fail_msg("%s does not decode", name);
	assert_int_equal(s.pos, len); /* to its last byte */
	encode_back(filter, &s, wire, len, chunk_bytes > 0, name);
	xdr_free(filter, (char *)&what);
}

static bool get_call(const struct vector *v, struct rr_rpc_call *c, const uint8_t **args, size_t *len,
		     struct rr_hdr *h)
{
	struct wire_get g;
	size_t took;

	if (vector_is_rpc(v) || rr_hdr_decode(v->bytes, v->len, h, &took) || h->proc != RR_MSG)
		return false;
	wire_get_init(&g, v->bytes + took, v->len - took);
	if (rr_rpc_get_call(&g, c))
		return false;
	*args = g.at;
	*len = wire_get_left(&g);
	return true;
}

static void one_call(const struct vector *v, void *arg)
{
	struct counts *n = arg;
	struct rr_read_info reads;
	struct rr_rpc_call c;
	struct rr_hdr h;
	const uint8_t *args;
	size_t len;
	int proc;

	if (!get_call(v, &c, &args, &len, &h))
		return;
	proc = find_proc(&c);
	if (proc < 0)
		return;
	assert_in_range(proc, 0, ARRAY_SIZE(procs) - 1);
	assert_int_equal(rr_chunk_check_reads(&h, v->len, RR_CALL_BYTES_MAX, &reads), 0);
	check(procs[proc].args, args, len, reads.has_item ? reads.item_bytes : 0, v->name);
	n->calls++;
	n->procs_seen |= 1u << proc;
}

/* NAME answers the call of the same name: its procedure, or -1 when that is none of the table's. */
static int proc_answered(const char *name)
{
	const char *dash = strstr(name, "-reply");
	struct rr_rpc_call c;
	struct vector call;
	struct rr_hdr h;
	const uint8_t *args;
	char other[80];
	size_t len;
	int proc = -1;

	if (!dash || !strncmp(name, "long-call", 9)) /* a pair of its own, without a message inline */
		return -1;
	memcpy(other, name, (size_t)(dash - name));
	strcpy(other + (dash - name), "-call");
	vector_load(other, &call);
	if (get_call(&call, &c, &args, &len, &h))
		proc = find_proc(&c);
	vector_unload(&call);
	return proc;
}

/* A long reply as the Reply chunk's lengths say. The recordings lack the last bytes, those of a pad
 * or of the end of a list: they are zeros here. */
static uint8_t *whole_reply(const struct vector *v, size_t *ret_len)
{
	struct vector sent;
	struct rr_hdr h;
	char name[80];
	uint8_t *msg;
	size_t took;

	strcpy(name, v->name);
	*strstr(name, ".rpc") = '\0';
	vector_load(name, &sent);
	assert_int_equal(rr_hdr_decode(sent.bytes, sent.len, &h, &took), 0);
	vector_unload(&sent);
	*ret_len = (size_t)rr_chunk_bytes(&h.reply);
	assert_true(*ret_len >= v->len && *ret_len - v->len <= 8);
	msg = calloc(1, *ret_len);
	assert_non_null(msg);
	memcpy(msg, v->bytes, v->len);
	return msg;
}

static void one_reply(const struct vector *v, void *arg)
{
	int proc = proc_answered(v->name);
	struct counts *n = arg;
	uint8_t *whole = NULL;
	struct rr_rpc_reply r;
	struct wire_get g;
	struct rr_hdr h;
	size_t took, len;

	if (proc < 0)
		return;
	rr_hdr_init(&h, 0, 0, RR_MSG);
	if (vector_is_rpc(v)) {
		whole = whole_reply(v, &len);
		wire_get_init(&g, whole, len);
	} else {
		assert_int_equal(rr_hdr_decode(v->bytes, v->len, &h, &took), 0);
		wire_get_init(&g, v->bytes + took, v->len - took);
	}
	if (h.proc == RR_MSG) {
		assert_int_equal(rr_rpc_get_reply(&g, &r), 0);
		assert_int_equal(r.stat, RR_ACCEPTED);
		assert_int_equal(r.accept, RR_SUCCESS);
		check(procs[proc].res, g.at, wire_get_left(&g),
		      h.nwrites ? rr_chunk_bytes(&h.writes[0]) : 0, v->name);
		n->replies++;
	}
	free(whole);
}

static void item70_recorded_messages(void **state)
{
	static const uint32_t want[] = { NFSPROC3_NULL, NFSPROC3_GETATTR, NFSPROC3_LOOKUP,
					 NFSPROC3_ACCESS, NFSPROC3_READLINK, NFSPROC3_READ,
					 NFSPROC3_WRITE, NFSPROC3_CREATE, NFSPROC3_SYMLINK,
					 NFSPROC3_READDIRPLUS, NFSPROC3_FSSTAT, NFSPROC3_FSINFO,
					 NFSPROC3_PATHCONF, NFS_PROCS + NFSACLPROC3_GETACL };
	struct counts n = { 0 };

	(void)state;
	vector_each(one_call, &n);
	vector_each(one_reply, &n);
	assert_true(n.calls >= 20);
	assert_true(n.replies >= 18);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		if (!(n.procs_seen & 1u << want[i]))
			fail_msg("no vector of procedure %u", want[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(item69_four_items_and_no_more),
		cmocka_unit_test(item70_recorded_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
