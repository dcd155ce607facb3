/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fuzz_nfs3res.c - libFuzzer harness: the results of every procedure that the client calls
 *
 * Operation:  Byte 0 chooses the procedure, byte 1 how the payload is missing (not, in a chunk, in
 *             the rest of a record), bytes 2 and 3 how much; the rest are the results. They are
 *             decoded into memory prepared as the client does it (call.c). What decodes is encoded
 *             again, and that must decode, and encode to the same bytes: pads and names that cannot
 *             be may have changed the first time, but not the second.
 * Memory:     What may allocate is given to xdr_free(), whether it decoded or not, and the leak
 *             checker watches.
 * Errors:     abort() on a broken promise.
 */
#include <stdlib.h>

#include "client/core/call.c"
#include "ctl.h"
#include "mount3.h"
#include "stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BUF_BYTES 65536u

union results {
	GETATTR3res getattr;
	LOOKUP3res lookup;
	READLINK3res readlink;
	READ3res read;
	CREATE3res create;
	READDIR3res readdir;
	READDIRPLUS3res readdirplus;
	FSINFO3res fsinfo;
	PATHCONF3res pathconf;
	RENAME3res rename;
	mountres3 mnt;
	mountlist dump;
	mountexports exports;
	ctl_info info;
	ctl_stats stats;
	BLOCKLISTres blocks;
	BLOCKINFOres block;
	BLOCKATTACHres attach;
	BLOCKREADres block_data;
	BLOCKCHANGEres change;
	BLOCKEXTENTSres extents;
	uint8_t room[512];
};

typedef bool_t (*filter)(XDR *, void *);

static const xdrproc_t others[] = {
	(xdrproc_t)xdr_mountres3, (xdrproc_t)xdr_mountlist,  (xdrproc_t)xdr_mountexports,
	(xdrproc_t)xdr_ctl_info,  (xdrproc_t)xdr_ctl_stats,
	(xdrproc_t)xdr_BLOCKLISTres, (xdrproc_t)xdr_BLOCKINFOres, (xdrproc_t)xdr_BLOCKATTACHres,
	(xdrproc_t)xdr_BLOCKDETACHres, (xdrproc_t)xdr_BLOCKREADres, (xdrproc_t)xdr_BLOCKCHANGEres,
	(xdrproc_t)xdr_BLOCKEXTENTSres,
	(xdrproc_t)xdr_STRIPEINFOres, (xdrproc_t)xdr_STRIPEREADres, (xdrproc_t)xdr_STRIPECHANGEres,
	(xdrproc_t)xdr_STRIPESTATres, (xdrproc_t)xdr_STRIPELISTres,
	(xdrproc_t)xdr_VOLMAPres, (xdrproc_t)xdr_VOLLAYOUTres, (xdrproc_t)xdr_VOLREPORTres, (xdrproc_t)xdr_VOLRESERVEres,
	(xdrproc_t)xdr_VOLSETres, (xdrproc_t)xdr_VOLCREATEres, (xdrproc_t)xdr_VOLCHECKres,
};

static void must(bool promise)
{
	if (!promise)
		abort();
}

/* One message's way into a struct and out again. */
struct codec {
	uint32_t proc;       /* of NFS; beyond that, of others[] */
	filter fn;
	bool allocates;
	union results res;
	char fh[NFS3_FHSIZE];
};

static void choose(struct codec *c, uint8_t n)
{
	c->proc = n % (ARRAY_SIZE(procs) + ARRAY_SIZE(others));
	if (c->proc < ARRAY_SIZE(procs)) {
		c->fn = (filter)procs[c->proc].decode;
		if (c->proc == NFSPROC3_FSINFO) /* mount.c asks for these two without the table */
			c->fn = (filter)xdr_FSINFO3res;
		else if (c->proc == NFSPROC3_PATHCONF)
			c->fn = (filter)xdr_PATHCONF3res;
		c->allocates = c->proc == NFSPROC3_READDIR || c->proc == NFSPROC3_READDIRPLUS;
	} else {
		c->fn = (filter)others[c->proc - ARRAY_SIZE(procs)];
		c->allocates = true;
	}
}

static bool decode(struct codec *c, struct rr_stream *s)
{
	struct lt_call call = { .fh_room = c->fh, .rpc = { .prog = NFS_PROGRAM, .proc = c->proc } };

	memset(&c->res, 0, sizeof(c->res));
	if (c->proc < ARRAY_SIZE(procs)) {
		must(procs[c->proc].res_bytes <= sizeof(c->res));
		call.proc = &procs[c->proc];
		call.rpc.res = &c->res;
		prepare_results(&call);
	}
	return c->fn(&s->xdr, &c->res);
}

static void drop(struct codec *c)
{
	if (c->allocates)
		xdr_free((xdrproc_t)c->fn, &c->res);
}

static void check_payload(const struct rr_stream *s, size_t len)
{
	if (!s->has_payload)
		return;
	must(s->payload_here <= s->payload.length);
	must(s->payload_pos <= len && s->payload_here <= len - s->payload_pos);
	if (s->payload.iovcnt)
		must(s->payload.iov[0].iov_base == s->buf + s->payload_pos);
}

/* Of a message without payload. Return: length, 0: too long */
static size_t encode(struct codec *c, uint8_t *buf)
{
	struct rr_stream s;

	rr_stream_encode(&s, buf, BUF_BYTES);
	if (c->fn(&s.xdr, &c->res))
		return s.has_payload ? 0 : rr_stream_len(&s);
	must(s.overflow);
	return 0;
}

static void go_round(struct codec *c)
{
	static uint8_t first[BUF_BYTES], second[BUF_BYTES];
	static struct codec back;
	size_t len = encode(c, first);
	struct rr_stream s;

	if (!len)
		return;
	back.proc = c->proc;
	back.fn = c->fn;
	back.allocates = c->allocates;
	rr_stream_decode(&s, first, len);
	must(decode(&back, &s) && !rr_stream_decode_done(&s));
	must(encode(&back, second) == len && !memcmp(first, second, len));
	drop(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct codec c;
	struct rr_stream s;
	uint8_t *msg;
	size_t len, extra;

	if (size < 4)
		return 0;
	choose(&c, data[0]);
	extra = (size_t)data[2] << 8 | data[3];
	len = (size - 4) & ~(size_t)3;
	msg = malloc(len ? len : 1); /* of its exact size, so that an overrun is seen */
	must(msg);
	memcpy(msg, data + 4, len);
	switch (data[1] % 3) {
	case 0:
		rr_stream_decode(&s, msg, len);
		break;
	case 1:
		rr_stream_decode_chunk(&s, msg, len, RR_STREAM_ANY_POSITION, extra);
		break;
	default:
		rr_stream_decode_tail(&s, msg, len, len + extra);
	}
	if (decode(&c, &s) && !rr_stream_decode_done(&s)) {
		check_payload(&s, len);
		go_round(&c);
	}
	drop(&c);
	free(msg);
	return 0;
}
