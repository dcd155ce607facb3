/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fuzz_nfs3.c - libFuzzer harness: the arguments of every procedure of every program of leatd
 *
 * Operation:  Byte 0 chooses the program (its highest 3 bits) and the procedure, byte 1 how the payload is missing (not, in a chunk, in
 *             the rest of a record), bytes 2 and 3 where and how much; the rest are the arguments.
 *             They are decoded as req.c does it, into a request's own memory; what goes through the
 *             duplicate request cache must encode again, as drc_check.c relies on.
 * Memory:     Decoding may allocate nothing: of that nothing is freed here, and the leak checker watches.
 * Errors:     abort() on a broken promise.
 */
#include <stdlib.h>
#include <string.h>

#include "server/base/client.h"
#include "block_service.h"
#include "nfs.h"
#include "rpcrdma/wire/stream.h"
#include "stripe_service.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* large, and recycled as the server does */
static _Alignas(max_align_t) char memory[sizeof(struct req) + 64 * 1024];
static struct req *const r = (struct req *)(void *)memory;
static struct clients clients;
static struct conn conn;
static struct reactor reactor;

static void must(bool promise)
{
	if (!promise)
		abort();
}

/* Sets r->prog. Return: the procedure */
static const struct prog_proc *choose(uint8_t n)
{
	static const struct prog *const progs[] = { &prog_nfs3, &prog_mount3, &prog_ctl,
						    &prog_nfsacl, &prog_space, &prog_block, &prog_stripes, &prog_volumes };

	r->prog = progs[n >> 5];
	return &r->prog->procs[(n & 31) % r->prog->nprocs];
}

static void start(struct rr_stream *s, uint8_t *args, size_t len, uint8_t away, size_t extra)
{
	switch (away % 3) {
	case 0:
		rr_stream_decode(s, args, len);
		break;
	case 1:
		rr_stream_decode_chunk(s, args, len, extra & ~(size_t)3, extra * 17);
		break;
	default:
		rr_stream_decode_tail(s, args, len, len + extra);
	}
}

static void check_payload(const struct rr_stream *s, size_t len)
{
	if (!s->has_payload)
		return;
	must(s->payload.iovcnt == 0 || s->payload.iovcnt == 1);
	if (s->payload.iovcnt) {
		const uint8_t *p = s->payload.iov[0].iov_base;

		must(p >= s->buf && s->payload.length <= len &&
		     (size_t)(p - s->buf) <= len - s->payload.length);
	}
	must(s->payload_here <= s->payload.length);
}

static void check_encodes(const struct prog_proc *proc)
{
	struct rpcrdma_payload *data;
	static char again[DRC_ARGS_MAX];
	XDR x;

	data = proc->move == PLACE_PULL ? &nfs_call(r)->args.symlink.symlink.symlink_data : &nfs_call(r)->args.write.data;
	if (proc->payload)
		data->length = 0;
	xdrmem_create(&x, again, sizeof(again), XDR_ENCODE);
	must(((bool_t(*)(XDR *, void *))proc->decode)(&x, req_args(r)));
	xdr_destroy(&x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct prog_proc *proc;
	struct rr_stream s;
	uint8_t *args;
	size_t len;

	if (size < 4)
		return 0;
	proc = choose(data[0]);
	if (!proc->decode)
		return 0;
	len = (size - 4) & ~(size_t)3;
	args = malloc(len ? len : 1); /* of its exact size, so that an overrun is seen */
	must(args);
	memcpy(args, data + 4, len);
	r->proc = proc;
	r->reactor = &reactor;
	memset(req_args(r), 0, proc->args_bytes);
	if (r->prog->init)
		r->prog->init(r);
	if (!r->conn) {
		clients_init(&clients);
		must(!client_get(&clients, &conn.peer, &conn.client));
		r->conn = &conn;
	}
	must(r->prog->call_bytes <= sizeof(memory) - sizeof(struct req));
	must(!req_args_init(r));
	start(&s, args, len, data[1], (size_t)data[2] << 8 | data[3]);
	if (((bool_t(*)(XDR *, void *))proc->decode)(&s.xdr, req_args(r)) &&
	    !rr_stream_decode_done(&s)) {
		check_payload(&s, len);
		if (proc->once)
			check_encodes(proc);
	}
	free(args);
	client_scratch_put(r->conn->client, r->scratch, r->scratch_bytes);
	r->scratch = NULL;
	return 0;
}
