/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verbs_hostile.c - what bad input gets, over a real device: verbs_hostile HOST:PORT EXPORT CASE
 *
 * Operation:  Each CASE is one way to behave badly towards a leatd, with the answer that is due
 *             (doc/protocol.md 1.5 and 7). The export holds `small` (64 KiB), `big` (8 MiB),
 *             `target`, which may be written, and `link` (to 1500 bytes); hostile.sh makes them, has
 *             an honest client copy beside all this, and looks afterwards at what leatd still holds.
 *             Never said here, because kernels do not survive it: an invalidation.
 * Memory:     That of the peers (verbs_peer.h). Memory that the server must not write is checked.
 * Threads:    One. Peers that are to be killed are children.
 * Errors:     Exit status 1 and a line that says what was not so.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_int.h"
#include "verbs_peer.h"

#define MIB (1u << 20)
#define SMALL 65536u
#define FLOOD 48
#define SILENT 16

static const char *export;

static void ready(struct peer *p, const struct peer_opts *opts)
{
	peer_open(p, opts);
	mount_it(p, export);
	look_up(p, "small", &file);
	look_up(p, "big", &big);
	look_up(p, "link", &link_fh);
}

static void untouched(const struct peer *p, size_t from, size_t to)
{
	const uint8_t *d = p->data + from;

	/* all alike, and the first one as it was */
	if (d[0] != 0xee || memcmp(d, d + 1, to - from - 1) != 0)
		die("memory was written that nobody offered");
}

/* ---- the rows of 1.5: an answer, and the connection is as good as before ---- */

static void row_version(struct peer *p)
{
	static const uint32_t versions[] = { 0, 2, 0xffffffff };

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		const uint8_t *got;

		begin(RR_MSG, NFS, P_NULL);
		finish();
		put_be32(m.raw + 4, versions[i]);
		peer_send(p, m.raw, m.raw_len);
		got = peer_hear(p, &heard_len);
		must(heard_len == RR_ERR_VERS_BYTES);
		must(get_be32(got) == m.xid && get_be32(got + 4) == versions[i]);
		must(get_be32(got + 8) > 0 && get_be32(got + 12) == RR_ERROR);
		must(get_be32(got + 16) == RR_ERR_VERS);
		must(get_be32(got + 20) == 1 && get_be32(got + 24) == 1);
	}
}

static void row_procedure(struct peer *p)
{
	static const uint32_t procs[] = { RR_MSGP, 5, 0xffffffff };

	for (size_t i = 0; i < ARRAY_SIZE(procs); i++) {
		begin(RR_MSG, NFS, P_NULL);
		finish();
		put_be32(m.raw + 12, procs[i]);
		peer_send(p, m.raw, m.raw_len);
		hear_err_chunk(p);
	}
}

static void row_done_and_error(struct peer *p)
{
	uint8_t msg[28];
	size_t len;

	put_be32(msg, XID);
	put_be32(msg + 4, 1);
	put_be32(msg + 8, 1);
	put_be32(msg + 12, RR_DONE);
	peer_send(p, msg, 16);
	still_serves(p); /* its answer is the next message there is */
	must(rr_hdr_encode_error(XID, 1, 1, RR_ERR_CHUNK, msg, sizeof(msg), &len) == 0);
	peer_send(p, msg, len);
	peer_send(p, msg, 16);
}

/* Every length at which a header with all its lists may end. */
static void row_truncated(struct peer *p)
{
	size_t lists;

	write_call(RR_MSG, &file, 0, 4096);
	offer_read(at(), seg(p->readable, 0, 4096));
	offer_write(seg(p->writable, 0, 1024));
	offer_reply(seg(p->writable, 2048, 1024));
	lists = rr_hdr_bytes(&m.hdr);
	finish();
	for (size_t len = 8; len < lists; len += len < 16 ? 1 : 3) {
		peer_send(p, m.raw, len);
		hear_err_chunk(p);
	}
}

static void row_unparseable(struct peer *p)
{
	static const uint32_t positions[] = { 1, 2, 47 };

	for (size_t i = 0; i < ARRAY_SIZE(positions); i++) {
		write_call(RR_MSG, &file, 0, 4096);
		offer_read(at(), seg(p->readable, 0, 4096));
		finish();
		put_be32(m.raw + 20, positions[i]);
		peer_send(p, m.raw, m.raw_len);
		hear_err_chunk(p);
	}
	for (unsigned word = 16; word < 28; word += 4) { /* neither true nor false */
		begin(RR_MSG, NFS, P_NULL);
		finish();
		put_be32(m.raw + word, 2);
		peer_send(p, m.raw, m.raw_len);
		hear_err_chunk(p);
	}
	read_call(&file, 0, 4096); /* more segments than the message has bytes */
	offer_write(seg(p->writable, 0, 4096));
	finish();
	put_be32(m.raw + 24, 0xffffffff);
	peer_send(p, m.raw, m.raw_len);
	hear_err_chunk(p);
}

static void row_tiny(struct peer *p)
{
	static const uint8_t bytes[8] = { 0x5e, 0xed, 0, 0, 0, 0, 0, 1 };

	for (size_t len = 0; len < 8; len++)
		peer_send(p, bytes, len);
}

static void row_nothing_said(struct peer *p)
{
	begin(RR_NOMSG, NFS, P_NULL);
	say(p);
	hear_err_chunk(p);
	begin(RR_MSG, NFS, P_NULL);
	finish();
	peer_send(p, m.raw, RR_HDR_MIN);
	hear_err_chunk(p);
}

static void row_read_list_too_long(struct peer *p)
{
	uint8_t msg[RR_HDR_FIXED + 65 * RR_READ_SEG_BYTES + 12];
	struct wire_put w;

	for (unsigned nsegs = 2; nsegs <= 65; nsegs += 63) { /* too many bytes, then too many segments */
		begin(RR_NOMSG, NFS, P_NULL);
		wire_put_init(&w, msg, sizeof(msg));
		wire_put_u32(&w, m.xid);
		wire_put_u32(&w, 1);
		wire_put_u32(&w, 8);
		wire_put_u32(&w, RR_NOMSG);
		for (unsigned i = 0; i < nsegs; i++) {
			wire_put_u32(&w, 1);
			wire_put_u32(&w, 0);
			wire_put_u32(&w, p->readable->rkey);
			wire_put_u32(&w, nsegs == 2 ? MIB : 64);
			wire_put_u64(&w, (uintptr_t)p->data);
		}
		for (unsigned i = 0; i < 3; i++)
			wire_put_u32(&w, 0);
		must(wire_put_ok(&w));
		peer_send(p, msg, wire_put_len(&w));
		hear_err_chunk(p);
	}
	/* the largest there can be, twice: the sum is no small number */
	write_call(RR_MSG, &file, 0, 4096);
	offer_read(at(), seg(p->readable, 0, 0xffffffff));
	offer_read(at(), seg(p->readable, 0, 0xffffffff));
	say(p);
	hear_err_chunk(p);
}

static void row_position_beyond(struct peer *p)
{
	static const uint32_t positions[] = { 4096, 0x7ffffffc, 0xfffffffc };

	for (size_t i = 0; i < ARRAY_SIZE(positions); i++) {
		write_call(RR_MSG, &file, 0, 4096);
		offer_read(positions[i], seg(p->readable, 0, 4096));
		say(p);
		hear_err_chunk(p);
	}
}

static void row_garbage(struct peer *p)
{
	uint32_t pos;

	begin(RR_MSG, NFS, P_GETATTR); /* a handle of 65 bytes */
	arg_bytes(m.raw, 65);
	say(p);
	hear_accepted(p, RR_GARBAGE_ARGS);
	begin(RR_MSG, NFS, P_GETATTR); /* none at all */
	say(p);
	hear_accepted(p, RR_GARBAGE_ARGS);
	pos = write_call(RR_MSG, &file, 0, 5001); /* chunk and length disagree */
	offer_read(pos, seg(p->readable, 0, 4000));
	say(p);
	hear_accepted(p, RR_GARBAGE_ARGS);
	read_call(&file, 0, 4096); /* a chunk where no payload is */
	offer_read(at(), seg(p->readable, 0, 4096));
	say(p);
	hear_accepted(p, RR_GARBAGE_ARGS);
}

static void row_reply_too_long(struct peer *p)
{
	struct peer_opts quiet = { .no_priv = true };
	struct peer small;

	peer_open(&small, &quiet); /* a peer that states no sizes has 1024 */
	begin(RR_MSG, NFS, P_READLINK); /* 1500 bytes, and no chunk at all */
	arg_bytes(link_fh.bytes, link_fh.len);
	say(&small);
	hear_err_chunk(&small);
	begin(RR_MSG, NFS, P_READLINK); /* or one of 512 */
	arg_bytes(link_fh.bytes, link_fh.len);
	offer_reply(seg(small.writable, 0, 512));
	say(&small);
	hear_err_chunk(&small);
	untouched(&small, 0, 4096);
	still_serves(&small);
	peer_close(&small);
	read_call(&file, 0, 16384);
	say(p);
	hear_err_chunk(p);
}

static void row_write_chunk_too_small(struct peer *p)
{
	read_call(&file, 0, 8192);
	offer_write(seg(p->writable, 0, 4096));
	say(p);
	hear_err_chunk(p);
	begin(RR_MSG, NFS, P_READLINK);
	arg_bytes(link_fh.bytes, link_fh.len);
	offer_write(seg(p->writable, 0, 1499));
	say(p);
	hear_err_chunk(p);
	untouched(p, 0, 65536); /* not even the part that had room */
}

static void rows(void)
{
	static const struct {
		const char *name;
		void (*fn)(struct peer *p);
	} all[] = {
		{ "another version: ERR_VERS", row_version },
		{ "RDMA_MSGP, unknown procedure: ERR_CHUNK", row_procedure },
		{ "RDMA_DONE, RDMA_ERROR: nothing", row_done_and_error },
		{ "a header cut off: ERR_CHUNK", row_truncated },
		{ "a header that does not parse: ERR_CHUNK", row_unparseable },
		{ "under 8 bytes: nothing", row_tiny },
		{ "no message, no chunk: ERR_CHUNK", row_nothing_said },
		{ "a read list too long: ERR_CHUNK", row_read_list_too_long },
		{ "a position beyond the message: ERR_CHUNK", row_position_beyond },
		{ "arguments that are none: GARBAGE_ARGS", row_garbage },
		{ "a reply too long: ERR_CHUNK", row_reply_too_long },
		{ "a Write chunk too small: ERR_CHUNK", row_write_chunk_too_small },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct peer p;

		doing = "before";
		ready(&p, NULL);
		doing = all[i].name;
		all[i].fn(&p);
		still_serves(&p);
		peer_close(&p);
		printf("%s\n", all[i].name);
	}
}

/* ---- the last row: keys that lead nowhere ---- */

enum { K_NOWHERE, K_BEFORE, K_BEYOND, K_WRONG_RIGHT, K_OTHERS, NKEYS };
enum { H_READ, H_READLINK, H_WRITE, H_LONG, NHOW };

/* A good segment of @len, bent as told. @mr has the right that is needed, @wrong only the other. */
static struct rr_segment bent(int key, const struct rr_mr *mr, const struct rr_mr *wrong,
			      const struct rr_mr *others, uint32_t len)
{
	struct rr_segment s = seg(mr, 4096, len);

	if (key == K_NOWHERE)
		s.handle ^= 0x5a5a5a5a;
	else if (key == K_BEFORE)
		s.offset = (uint64_t)(uintptr_t)mr->addr - 1;
	else if (key == K_BEYOND)
		s.offset = (uint64_t)(uintptr_t)mr->addr + DATA_BYTES - 64;
	else if (key == K_WRONG_RIGHT)
		s.handle = wrong->rkey;
	else
		s = seg(others, 4096, len);
	return s;
}

static void bad_key(struct peer *p, const struct peer *other, int how, int key)
{
	static const char *const hows[] = { "READ", "READLINK", "WRITE", "a long call" };
	static const char *const names[] = { "a key of nothing", "memory before it",
					     "memory beyond it", "the wrong right", "another's key" };
	static char what[64];
	uint32_t pos;

	snprintf(what, sizeof(what), "%s with %s", hows[how], names[key]);
	doing = what;

	switch (how) {
	case H_READ:
		read_call(&file, 0, 32768);
		offer_write(bent(key, p->writable, p->readable, other->writable, 32768));
		break;
	case H_READLINK: /* by the Reply chunk: 1500 bytes do not fit 1024 */
		begin(RR_MSG, NFS, P_READLINK);
		arg_bytes(link_fh.bytes, link_fh.len);
		offer_reply(bent(key, p->writable, p->readable, other->writable, 2048));
		break;
	case H_WRITE:
		pos = write_call(RR_MSG, &file, 0, 32768);
		offer_read(pos, bent(key, p->readable, p->writable, other->readable, 32768));
		break;
	default: /* the whole call */
		begin(RR_NOMSG, NFS, P_NULL);
		offer_read(0, bent(key, p->readable, p->writable, other->readable, 32768));
		break;
	}
	finish();
	memcpy(p->mem + RECVS * MSG_BYTES, m.raw, m.raw_len);
	must(peer_post(p, p->mem + RECVS * MSG_BYTES, m.raw_len));
	until(p, p->dead || p->taken < p->ngot);
	must(p->taken == p->ngot); /* no message can help: the connection ends */
	untouched(p, 0, DATA_BYTES);
	untouched(other, 0, DATA_BYTES);
}

static void keys(void)
{
	struct peer_opts small = { .no_priv = true };
	struct peer other;

	ready(&other, NULL);
	for (int how = 0; how < NHOW; how++) {
		for (int key = 0; key < NKEYS; key++) {
			struct peer p;

			peer_open(&p, &small);
			bad_key(&p, &other, how, key);
			peer_close(&p);
		}
		still_serves(&other);
	}
	peer_close(&other);
}

/* ---- more calls than were granted ---- */

static void overrun(void)
{
	uint8_t *mem;

	for (unsigned round = 0; round < 3; round++) {
		unsigned sent = 0;
		struct peer p;

		ready(&p, NULL);
		mem = p.mem + RECVS * MSG_BYTES;
		read_call(&big, 0, MIB);
		offer_write(seg(p.writable, 0, MIB));
		finish();
		memcpy(mem, m.raw, m.raw_len);
		while (sent < 400 && peer_post(&p, mem, m.raw_len))
			sent++;
		until(&p, p.dead);
		peer_close(&p);
	}
}

/* ---- peers that call and take no reply ---- */

static void wait_for_end_of_input(void)
{
	while (getchar() != EOF)
		;
}

/* Without a receive nothing tells them of their end: hostile.sh looks at their queue pairs. */
static void deaf(void)
{
	static struct peer peers[3];
	struct peer_opts none = { .recvs = PEER_DEAF };

	ready(&peers[0], NULL); /* for the handles */
	peer_close(&peers[0]);
	for (unsigned k = 0; k < ARRAY_SIZE(peers); k++) {
		struct peer *p = &peers[k];

		peer_open(p, &none);
		for (unsigned i = 0; i < 8 && !p->dead; i++) {
			read_call(&big, i * MIB, MIB);
			offer_write(seg(p->writable, i % 2 * MIB, MIB));
			finish();
			memcpy(p->mem + i * MSG_BYTES, m.raw, m.raw_len);
			(void)peer_post(p, p->mem + i * MSG_BYTES, m.raw_len); /* it may have ended */
		}
	}
	printf("deaf\n");
	fflush(stdout);
	wait_for_end_of_input();
	for (unsigned k = 0; k < ARRAY_SIZE(peers); k++)
		peer_close(&peers[k]);
}

/* ---- peers that die in mid-transfer ---- */

static int open_fabric(void)
{
	return rr_verbs_open(&(struct rr_verbs_attr){ 0 }, &fabric);
}

/* Eight READs and four WRITEs of a megabyte under way, said by a byte in @pipe; does not end. */
static void victim(int pipe, bool after_an_answer)
{
	struct fh target;
	struct peer p;
	uint8_t *mem;

	must(open_fabric() == 0);
	ready(&p, NULL);
	look_up(&p, "target", &target);
	mem = p.mem + (RECVS - 12) * MSG_BYTES; /* receives that have not been used yet are no loss */
	for (unsigned i = 0; i < 12; i++) {
		if (i % 3 == 2) {
			uint32_t pos = write_call(RR_MSG, &target, 0, MIB);

			offer_read(pos, seg(p.readable, 0, MIB));
		} else {
			read_call(&big, 0, MIB);
			offer_write(seg(p.writable, i % 2 * MIB, MIB));
		}
		finish();
		memcpy(mem + i * MSG_BYTES, m.raw, m.raw_len);
		must(peer_post(&p, mem + i * MSG_BYTES, m.raw_len));
	}
	if (after_an_answer)
		until(&p, p.ngot > p.taken);
	must(write(pipe, "!", 1) == 1);
	for (;;)
		pause();
}

static void killed(void)
{
	for (unsigned round = 0; round < 8; round++) {
		int fds[2], status;
		pid_t pid;
		char c;

		must(pipe(fds) == 0);
		pid = fork();
		must(pid >= 0);
		if (!pid)
			victim(fds[1], round % 2);
		close(fds[1]);
		must(read(fds[0], &c, 1) == 1);
		must(kill(pid, SIGKILL) == 0);
		must(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
		close(fds[0]);
	}
}

/* ---- peers that connect and send nothing ---- */

/* Their ends are the server's to make: those that are up see it, those half open cannot. */
static void silent(void)
{
	static struct peer half[FLOOD], up[SILENT];
	struct peer_opts never = { .half = true };
	unsigned ended = 0;

	for (unsigned i = 0; i < FLOOD; i++)
		peer_open(&half[i], &never);
	for (unsigned i = 0; i < SILENT; i++)
		peer_open(&up[i], NULL);
	printf("silent\n");
	fflush(stdout);
	for (uint64_t give_up = clock_now_ns() + 2 * PATIENCE; ended < SILENT;) {
		must(clock_now_ns() < give_up);
		ended = 0;
		for (unsigned i = 0; i < SILENT; i++) {
			turn(&up[i]);
			ended += up[i].dead;
		}
		usleep(20000); /* others want the processor */
	}
	printf("ended\n");
	fflush(stdout);
	wait_for_end_of_input(); /* the half-open ones stay until standard input ends */
}

/* ---- a peer whose machine has gone ---- */

/* Its queue pair acknowledges nothing any more, and nobody says goodbye. Another idle one beside it is well, and calls
 * once more when standard input has ended. */
static void vanished(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct peer gone, here;

	ready(&gone, NULL);
	ready(&here, NULL);
	must(ibv_modify_qp(container_of(gone.qp, struct verbs_qp, base)->id->qp, &attr, IBV_QP_STATE) == 0);
	printf("vanished\n");
	fflush(stdout);
	wait_for_end_of_input();
	look_up(&here, "small", &file);
	peer_close(&here);
}

static const struct {
	const char *name;
	void (*fn)(void);
} cases[] = {
	{ "rows", rows }, { "keys", keys },	  { "overrun", overrun },
	{ "deaf", deaf }, { "killed", killed }, { "silent", silent }, { "vanished", vanished },
};

int main(int argc, char **argv)
{
	size_t i = 0;

	if (argc != 4) {
		fprintf(stderr, "usage: verbs_hostile HOST:PORT EXPORT CASE\n");
		return 2;
	}
	server = argv[1];
	export = argv[2];
	doing = argv[3];
	while (i < ARRAY_SIZE(cases) && strcmp(cases[i].name, argv[3]) != 0)
		i++;
	must(i < ARRAY_SIZE(cases));
	/* the libraries do not live through a fork: children open their own */
	must(cases[i].fn == killed || open_fabric() == 0);
	cases[i].fn();
	return 0;
}
