/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dump_session.c - plays a conversation between a client and a server, and captures it
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/wire.h"
#include "capture.h"
#include "dump_session.h"

#define PATH_BYTES 1001u

struct session {
	struct rr_capture *capture;
	struct rr_capture_conn client, server;
	doctor_fn doctor;
	uint8_t memory[8192];
};

/* ---- messages ---------------------------------------------------------------------------------------- */

static struct wire_put begin_call(struct said *m, uint32_t xid, uint32_t prog, uint32_t proc)
{
	struct wire_put p;

	memset(m, 0, sizeof(*m));
	rr_hdr_init(&m->hdr, xid, 64, RR_MSG);
	wire_put_init(&p, m->rpc, sizeof(m->rpc));
	wire_put_u32(&p, xid);
	wire_put_u32(&p, RR_RPC_CALL);
	wire_put_u32(&p, RR_RPC_VERS);
	wire_put_u32(&p, prog);
	wire_put_u32(&p, 3);
	wire_put_u32(&p, proc);
	wire_put_u32(&p, RR_AUTH_SYS);
	wire_put_u32(&p, 20); /* of an odd name, so that positions are not those of Linux */
	for (int i = 0; i < 5; i++)
		wire_put_u32(&p, 0);
	wire_put_u64(&p, 0);
	if (proc) {
		wire_put_u32(&p, 12); /* file handle */
		wire_put_bytes(&p, "abcdefghijkl", 12);
	}
	return p;
}

static struct wire_put begin_reply(struct said *m, uint32_t xid, uint32_t credits)
{
	struct wire_put p;

	memset(m, 0, sizeof(*m));
	rr_hdr_init(&m->hdr, xid, credits, RR_MSG);
	wire_put_init(&p, m->rpc, sizeof(m->rpc));
	wire_put_u32(&p, xid);
	wire_put_u32(&p, RR_RPC_REPLY);
	for (int i = 0; i < 4; i++)
		wire_put_u32(&p, 0); /* accepted, verifier, success */
	return p;
}

static void end_said(struct said *m, const struct wire_put *p)
{
	assert_true(wire_put_ok(p));
	m->rpc_bytes = wire_put_len(p);
}

static void put_fattr(struct wire_put *p)
{
	for (int i = 0; i < 21; i++)
		wire_put_u32(p, 1);
}

static void put_post_op(struct wire_put *p)
{
	wire_put_u32(p, 1);
	put_fattr(p);
}

void said_null(struct said *m, uint32_t xid, bool call, uint32_t credits)
{
	struct wire_put p = call ? begin_call(m, xid, 100003, 0) : begin_reply(m, xid, credits);

	end_said(m, &p);
}

static void said_read(struct said *m, uint32_t xid, uint32_t count)
{
	struct wire_put p = begin_call(m, xid, 100003, 6);

	wire_put_u64(&p, 65536);
	wire_put_u32(&p, count);
	end_said(m, &p);
}

/* @inline_bytes: of the @count that were read */
static void said_read_reply(struct said *m, uint32_t xid, uint32_t count, size_t inline_bytes)
{
	static const uint8_t zero[4096];
	struct wire_put p = begin_reply(m, xid, 2);

	wire_put_u32(&p, 0);
	put_post_op(&p);
	wire_put_u32(&p, count);
	wire_put_u32(&p, 1);
	wire_put_u32(&p, count);
	wire_put_bytes(&p, zero, round_up4(inline_bytes));
	end_said(m, &p);
}

static void said_write(struct said *m, uint32_t xid, uint32_t count)
{
	struct wire_put p = begin_call(m, xid, 100003, 7);

	wire_put_u64(&p, 0);
	wire_put_u32(&p, count);
	wire_put_u32(&p, 2);
	wire_put_u32(&p, count);
	end_said(m, &p);
}

static void said_write_reply(struct said *m, uint32_t xid, uint32_t count)
{
	struct wire_put p = begin_reply(m, xid, 2);

	wire_put_u32(&p, 0);
	wire_put_u32(&p, 0);
	put_post_op(&p);
	wire_put_u32(&p, count);
	wire_put_u32(&p, 2);
	wire_put_u64(&p, 77);
	end_said(m, &p);
}

static void said_link_reply(struct said *m, uint32_t xid)
{
	struct wire_put p = begin_reply(m, xid, 2);
	uint8_t path[PATH_BYTES + 3] = { 0 };

	memset(path, 'p', PATH_BYTES);
	wire_put_u32(&p, 0);
	put_post_op(&p);
	wire_put_u32(&p, PATH_BYTES);
	wire_put_bytes(&p, path, sizeof(path));
	end_said(m, &p);
}

static void add_read(struct said *m, uint32_t position, uint32_t handle, uint32_t len)
{
	m->hdr.reads[m->hdr.nreads++] = (struct rr_read_seg){
		.position = position,
		.seg = { .handle = handle, .length = len, .offset = (uint64_t)handle << 32 },
	};
}

static void add_seg(struct rr_chunk *c, uint32_t handle, uint32_t len)
{
	c->segs[c->nsegs++] = (struct rr_segment){ .handle = handle, .length = len,
						   .offset = (uint64_t)handle << 32 };
}

/* ---- the wire -------------------------------------------------------------------------------------------- */

static void mirror(const struct rr_capture_conn *from, struct rr_capture_conn *to)
{
	to->psn = from->peer_psn;
	to->peer_psn = from->psn;
	to->msn = from->peer_msn;
	to->peer_msn = from->msn;
}

void session_say(struct session *s, bool from_client, const struct said *m)
{
	uint8_t msg[4096 + sizeof(m->rpc)];
	size_t hdr_bytes;

	assert_int_equal(rr_hdr_encode(&m->hdr, msg, 4096, &hdr_bytes), 0);
	memcpy(msg + hdr_bytes, m->rpc, m->rpc_bytes);
	rr_capture_send(s->capture, &s->client, from_client, msg, hdr_bytes + m->rpc_bytes, m->inv, m->inv_rkey);
	mirror(&s->client, &s->server);
}

void session_move(struct session *s, const struct moved *m)
{
	struct rr_capture_conn *by = m->by_client ? &s->client : &s->server;

	if (m->write)
		rr_capture_write(s->capture, by, m->bytes, m->len, m->va, m->rkey, NULL);
	else
		rr_capture_read(s->capture, by, m->bytes, m->len, m->va, m->rkey);
	mirror(by, m->by_client ? &s->server : &s->client);
}

static void say(struct session *s, enum step step, bool from_client, struct said *m)
{
	struct patient p = { .s = s, .step = step, .said = m };

	if (s->doctor)
		s->doctor(&p);
	session_say(s, from_client, m);
}

static void move(struct session *s, enum step step, bool write, uint32_t handle, uint8_t *bytes,
		 size_t len)
{
	struct moved m = { .write = write, .rkey = handle, .va = (uint64_t)handle << 32,
			   .bytes = bytes, .len = len };
	struct patient p = { .s = s, .step = step, .moved = &m };

	if (s->doctor)
		s->doctor(&p);
	session_move(s, &m);
}

static void connect_both(struct session *s)
{
	struct rr_priv dialled = { .present = true, .remote_inv = true, .send_bytes = 4096,
				   .recv_bytes = 4096 };
	struct rr_priv listened = { .present = true, .send_bytes = 4096, .recv_bytes = 4096 };
	struct patient p = { .s = s, .step = STEP_CM, .dialled = &dialled, .listened = &listened };
	uint8_t priv[RR_PRIV_BYTES];

	s->client = (struct rr_capture_conn){ .active = true, .qpn = 0x111, .peer_qpn = 0x222,
					      .psn = 0xfffffe, .peer_psn = 0x777 };
	s->server = (struct rr_capture_conn){ .qpn = 0x222, .peer_qpn = 0x111, .psn = 0x777,
					      .peer_psn = 0xfffffe };
	if (s->doctor)
		s->doctor(&p);
	rr_priv_encode(&dialled, priv);
	rr_capture_cm(s->capture, &s->client, RR_CAPTURE_REQ, priv, dialled.present ? sizeof(priv) : 0);
	rr_priv_encode(&listened, priv);
	rr_capture_cm(s->capture, &s->client, RR_CAPTURE_REP, priv, listened.present ? sizeof(priv) : 0);
	rr_capture_cm(s->capture, &s->client, RR_CAPTURE_RTU, NULL, 0);
}

static void play_read(struct session *s, struct said *m)
{
	said_read(m, 2, 5000);
	m->hdr.nwrites = 1;
	add_seg(&m->hdr.writes[0], 0x11, 3000);
	add_seg(&m->hdr.writes[0], 0x12, 2000);
	say(s, STEP_READ_CALL, true, m);
	move(s, STEP_READ_DATA, true, 0x11, s->memory, 3000);
	move(s, STEP_READ_DATA_2, true, 0x12, s->memory, 1001);
	said_read_reply(m, 2, 4001, 0);
	m->hdr.nwrites = 1;
	add_seg(&m->hdr.writes[0], 0x11, 3000);
	add_seg(&m->hdr.writes[0], 0x12, 1001);
	m->inv = true;
	m->inv_rkey = 0x11;
	say(s, STEP_READ_REPLY, false, m);
}

static void play_write(struct session *s, struct said *m)
{
	said_write(m, 3, 5001);
	add_read(m, (uint32_t)m->rpc_bytes, 0x21, 4999);
	add_read(m, (uint32_t)m->rpc_bytes, 0x22, 2);
	say(s, STEP_WRITE_CALL, true, m);
	move(s, STEP_WRITE_PULL, false, 0x21, s->memory, 4999);
	move(s, STEP_WRITE_PULL_2, false, 0x22, s->memory, 2);
	said_write_reply(m, 3, 5001);
	say(s, STEP_WRITE_REPLY, false, m);
}

static void play_link(struct session *s, struct said *m)
{
	struct wire_put p = begin_call(m, 4, 100003, 5);
	struct said reply;

	end_said(m, &p);
	m->hdr.has_reply = true;
	add_seg(&m->hdr.reply, 0x31, 120);
	add_seg(&m->hdr.reply, 0x32, 4096);
	add_seg(&m->hdr.reply, 0x33, 4);
	say(s, STEP_LINK_CALL, true, m);
	said_link_reply(&reply, 4);
	move(s, STEP_LINK_DATA, true, 0x31, reply.rpc, 120);
	move(s, STEP_LINK_DATA_2, true, 0x32, reply.rpc + 120, reply.rpc_bytes - 120);
	rr_hdr_init(&m->hdr, 4, 2, RR_NOMSG);
	m->hdr.has_reply = true;
	add_seg(&m->hdr.reply, 0x31, 120);
	add_seg(&m->hdr.reply, 0x32, (uint32_t)reply.rpc_bytes - 120);
	add_seg(&m->hdr.reply, 0x33, 0);
	m->rpc_bytes = 0;
	say(s, STEP_LINK_REPLY, false, m);
}

static void play_long(struct session *s, struct said *m)
{
	struct wire_put p = begin_call(m, 5, 100003, 1);
	uint8_t rpc[256];
	size_t len;

	end_said(m, &p);
	len = m->rpc_bytes;
	memcpy(rpc, m->rpc, len);
	m->rpc_bytes = 0;
	m->hdr.proc = RR_NOMSG;
	add_read(m, 0, 0x41, 10);
	add_read(m, 0, 0x42, (uint32_t)len - 10);
	say(s, STEP_LONG_CALL, true, m);
	move(s, STEP_LONG_PULL, false, 0x41, rpc, 10);
	move(s, STEP_LONG_PULL_2, false, 0x42, rpc + 10, len - 10);
	p = begin_reply(m, 5, 2);
	wire_put_u32(&p, 0);
	put_fattr(&p);
	end_said(m, &p);
	say(s, STEP_LONG_REPLY, false, m);
}

static void play_pair(struct session *s, struct said *m)
{
	said_read(m, 6, 101);
	say(s, STEP_PAIR_CALL, true, m);
	said_read(m, 7, 101);
	say(s, STEP_PAIR_CALL_2, true, m);
	said_read_reply(m, 7, 101, 101);
	say(s, STEP_PAIR_REPLY, false, m);
	said_read_reply(m, 6, 101, 101);
	say(s, STEP_PAIR_REPLY_2, false, m);
}

/* ---- the file ----------------------------------------------------------------------------------------- */

static void load(const char *path, struct image *ret)
{
	FILE *f = fopen(path, "re");
	long len;

	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	len = ftell(f);
	assert_true(len > 0);
	rewind(f);
	ret->len = (size_t)len;
	ret->bytes = malloc(ret->len);
	assert_non_null(ret->bytes);
	assert_int_equal(fread(ret->bytes, 1, ret->len, f), ret->len);
	fclose(f);
}

void session_make(doctor_fn doctor, struct image *ret)
{
	char path[] = "/tmp/dump-session.XXXXXX";
	struct session *s = calloc(1, sizeof(*s));
	struct said *m = malloc(sizeof(*m));
	struct patient end = { .s = s, .step = STEP_END };
	int fd = mkstemp(path);

	assert_non_null(s);
	assert_non_null(m);
	assert_true(fd >= 0);
	close(fd);
	s->doctor = doctor;
	assert_int_equal(rr_capture_open(path, &s->capture), 0);
	connect_both(s);
	said_null(m, 1, true, 64);
	say(s, STEP_NULL_CALL, true, m);
	said_null(m, 1, false, 2);
	say(s, STEP_NULL_REPLY, false, m);
	play_read(s, m);
	play_write(s, m);
	play_link(s, m);
	play_long(s, m);
	play_pair(s, m);
	if (doctor)
		doctor(&end);
	rr_capture_close(s->capture);
	load(path, ret);
	unlink(path);
	free(m);
	free(s);
}

void image_fini(struct image *i)
{
	free(i->bytes);
	i->bytes = NULL;
}

size_t image_record(const struct image *i, unsigned nth, size_t *ret_len)
{
	size_t at = 24;
	uint32_t len;

	while (at + 16 <= i->len) {
		memcpy(&len, i->bytes + at + 8, sizeof(len));
		at += 16;
		if (!nth--) {
			*ret_len = len;
			return at;
		}
		at += len;
	}
	return 0;
}

void image_insert(struct image *i, size_t at, const void *bytes, size_t len)
{
	uint8_t *copy = malloc(len); /* @bytes may be in the image */

	assert_non_null(copy);
	memcpy(copy, bytes, len);
	i->bytes = realloc(i->bytes, i->len + len);
	assert_non_null(i->bytes);
	memmove(i->bytes + at + len, i->bytes + at, i->len - at);
	memcpy(i->bytes + at, copy, len);
	i->len += len;
	free(copy);
}

void image_remove(struct image *i, size_t at, size_t len)
{
	memmove(i->bytes + at, i->bytes + at + len, i->len - at - len);
	i->len -= len;
}

char *image_dump(const struct image *i, const struct dump_options *options, int *ret_rc,
		 struct dump *ret)
{
	FILE *in = fmemopen(i->bytes, i->len, "r"), *out;
	struct dump_packet p;
	struct dump_file f;
	struct dump d;
	char *text = NULL;
	size_t len = 0;
	int rc;

	assert_non_null(in);
	out = open_memstream(&text, &len);
	assert_non_null(out);
	dump_init(&d, out, options);
	rc = dump_file_init(&f, in);
	if (!rc) {
		while ((rc = dump_file_next(&f, &p)) > 0)
			assert_int_equal(dump_packet(&d, &p), 0);
		dump_print_end(&d);
		dump_file_fini(&f);
	}
	if (ret)
		*ret = d;
	dump_fini(&d);
	fclose(out);
	fclose(in);
	*ret_rc = rc;
	return text;
}
