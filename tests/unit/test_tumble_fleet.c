/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_tumble_fleet.c - the tester of striped volumes finds what it is for: a volume in memory that lies in one way at a time,
 * and one that is honest
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "tests/tumble/fleet.h"

#define FILE_MAX 16384u
#define UNIT 1024u
#define SERVERS 4u
#define FILES 3u
#define CLIENTS 4u
#define LATE_MAX 256u

enum lie {
	HONEST,
	LOSES_A_WRITE,             /* by one server */
	DROPS_A_BYTE,
	LOSES_A_FAILED_READ,       /* says that it has read, and has not */
	STALE_READ,                /* as it was before the last write */
	OTHER_CLIENTS_SEE_LATER,   /* a client's write */
	LATE_WRITE,                /* a write that its client gave up comes behind a later one of the client */
	LATE_BEHIND_A_CUT,         /* or behind a cut */
	LATE_OF_THE_DEAD,          /* of a client that has ended, behind a cut */
	CUT_MISSES_A_SERVER,
	CUT_COMES_BACK,            /* when the file grows */
	CUT_TAKES_MORE,            /* than it should */
	GROWS_LATE,                /* an old size report is accepted behind a cut */
	SIZE_IS_LOST,              /* that was synced */
	SHORT_READ,                /* although no server is away */
	READS_BEHIND_THE_END,
	FAILS,                     /* with EIO, although no server is away */
	WRONG_ERROR,
	RENAME_KEEPS_THE_OLD,
	UNLINK_KEEPS_THE_OLD,
	CUT_IS_NEVER_DONE,
	LOSS_UNTOLD,               /* of unstable data, when a server is killed */
	LIES
};

struct file {
	uint8_t bytes[FILE_MAX], before[FILE_MAX];
	uint64_t size, before_size, epoch;
};

/* A part of a write, in a server that does not reply */
struct late {
	bool used, dead;           /* dead: the client has ended, or has called this server again */
	struct file *f;
	unsigned client, server;
	uint64_t epoch, off, len;
	uint8_t bytes[UNIT];
};

struct liar {
	struct fleet_back back;
	enum lie lie;
	unsigned countdown, turn, nwaiting;
	struct fleet_io *waiting[FLEET_DEPTH_MAX];
	struct file *names[FILES], *opened[CLIENTS][FILES], all[512];
	unsigned nall;
	bool wrote[CLIENTS][FILES], lost[CLIENTS][FILES]; /* unstable data; and a server was killed since */
	bool away[SERVERS + 1];
	bool held[SERVERS + 1][CLIENTS]; /* the connection of a client; it makes another one after a call has failed */
	struct late late[LATE_MAX];
};

static struct liar *liar(struct fleet_back *b)
{
	return container_of(b, struct liar, back);
}

/* Is this the time? */
static bool lies(struct liar *l, enum lie lie)
{
	if (l->lie != lie || --l->countdown)
		return false;
	l->countdown = 5;
	return true;
}

static struct file *new_file(struct liar *l)
{
	assert_true(l->nall < ARRAY_SIZE(l->all));
	return &l->all[l->nall++];
}

/* ---- data -------------------------------------------------------------------------------- */

static unsigned server_of(uint64_t off)
{
	return (unsigned)(off / UNIT % SERVERS);
}

static bool is_away(struct liar *l, unsigned client, unsigned server)
{
	bool held = l->held[server][client];

	l->held[server][client] = false;
	return l->away[server] || held;
}

static void call_again(struct liar *l, unsigned client, unsigned server)
{
	for (unsigned i = 0; i < LATE_MAX; i++)
		if (l->late[i].client == client && l->late[i].server == server)
			l->late[i].dead = true;
}

static void keep_late(struct liar *l, struct file *f, const struct fleet_op *op, uint64_t off, uint64_t len, const uint8_t *from)
{
	unsigned i = 0;

	while (l->late[i].used)
		assert_true(++i < LATE_MAX);
	l->late[i] = (struct late){ .used = true, .f = f, .client = op->client, .server = server_of(off), .epoch = f->epoch,
				    .off = off, .len = len };
	memcpy(l->late[i].bytes, from, len);
}

static int64_t write_it(struct liar *l, struct file *f, const struct fleet_op *op, const uint8_t *from)
{
	uint64_t n, lost = lies(l, LOSES_A_WRITE) ? op->off : UINT64_MAX;
	bool away = false;

	memcpy(f->before, f->bytes, FILE_MAX);
	f->before_size = f->size;
	for (uint64_t off = op->off, end = op->off + op->len; off < end; off += n) {
		n = MIN(end, (off / UNIT + 1) * UNIT) - off;
		if (is_away(l, op->client, server_of(off))) {
			keep_late(l, f, op, off, n, from + (off - op->off));
			away = true;
			continue;
		}
		call_again(l, op->client, server_of(off));
		if (off != lost)
			memcpy(f->bytes + off, from + (off - op->off), n - (n > 1 && lies(l, DROPS_A_BYTE)));
	}
	if (away)
		return -EIO;
	f->size = MAX(f->size, op->off + op->len);
	return (int64_t)op->len;
}

static int64_t read_it(struct liar *l, struct file *f, const struct fleet_op *op, uint8_t *to)
{
	uint64_t n = op->off < f->size ? MIN(op->len, f->size - op->off) : 0;
	const uint8_t *from = f->bytes;

	for (uint64_t off = op->off; off < op->off + n; off = (off / UNIT + 1) * UNIT) {
		if (is_away(l, op->client, server_of(off)))
			return -EIO;
		call_again(l, op->client, server_of(off));
	}
	if (n && lies(l, SHORT_READ))
		n--;
	if (n && n < op->len && f->size + 1 < FILE_MAX && lies(l, READS_BEHIND_THE_END))
		n++;
	if (n > 8 && lies(l, LOSES_A_FAILED_READ))
		return (int64_t)n;
	if (memcmp(f->before + op->off, f->bytes + op->off, n) && (lies(l, STALE_READ) || lies(l, OTHER_CLIENTS_SEE_LATER)))
		from = f->before;
	memcpy(to, from + op->off, n);
	return (int64_t)n;
}

static int64_t truncate_it(struct liar *l, struct file *f, uint64_t size)
{
	if (size < f->size) {
		f->epoch++;
		for (uint64_t off = size; off < FILE_MAX; off++)
			if (l->lie != CUT_COMES_BACK && (l->lie != CUT_MISSES_A_SERVER || server_of(off) != 2))
				f->bytes[off] = 0;
		if (size && lies(l, CUT_TAKES_MORE))
			f->bytes[size - 1] = 0;
		memset(f->before, 0, sizeof(f->before));
		f->before_size = f->size;
	}
	f->size = size;
	return 0;
}

static int64_t rename_it(struct liar *l, const struct fleet_op *op)
{
	if (!lies(l, RENAME_KEEPS_THE_OLD))
		l->names[op->to] = l->names[op->file];
	l->names[op->file] = NULL;
	return 0;
}

static int64_t sync_it(struct liar *l, struct file *f)
{
	if (f->size > 1 && lies(l, SIZE_IS_LOST))
		f->size--;
	else if (f->before_size > f->size && lies(l, GROWS_LATE))
		f->size = f->before_size;
	return 0;
}

/* Return: true if the file has lost data, which its client learns from fsync */
static bool is_lost(struct liar *l, const struct fleet_op *op)
{
	bool syncs = op->kind == SHARED_FSYNC || op->kind == SHARED_CLOSE || op->kind == SHARED_TRUNCATE;
	bool lost = l->lost[op->client][op->file];

	l->wrote[op->client][op->file] |= op->kind == SHARED_WRITE;
	if (syncs && (!lost || l->lie == LOSS_UNTOLD))
		l->wrote[op->client][op->file] = false;
	if (op->kind == SHARED_CLOSE || op->kind == SHARED_OPEN)
		l->lost[op->client][op->file] = l->wrote[op->client][op->file] = false;
	return syncs && lost && l->lie != LOSS_UNTOLD;
}

static int64_t do_op(struct liar *l, struct fleet_io *io)
{
	const struct fleet_op *op = &io->op;
	struct file **f = &l->opened[op->client][op->file], **name = &l->names[op->file];

	if (is_lost(l, op)) {
		*f = op->kind == SHARED_CLOSE ? NULL : *f;
		return -EIO;
	}
	switch (op->kind) {
	case SHARED_READ:
		return lies(l, FAILS) ? -EIO : read_it(l, *f, op, io->mem);
	case SHARED_WRITE:
		return lies(l, WRONG_ERROR) ? -ENOSPC : write_it(l, *f, op, io->mem);
	case SHARED_TRUNCATE:
		return truncate_it(l, *f, op->len);
	case SHARED_STAT:
		io->size = (*f)->size;
		return 0;
	case SHARED_FSYNC:
		return sync_it(l, *f);
	case SHARED_OPEN:
		if (!*name)
			*name = new_file(l);
		*f = *name;
		io->width = SERVERS;
		return 0;
	case SHARED_CLOSE:
		*f = NULL;
		return 0;
	case SHARED_RENAME:
		return rename_it(l, op);
	case SHARED_UNLINK:
		if (!lies(l, UNLINK_KEEPS_THE_OLD))
			*name = NULL;
		return 0;
	default:
		return -EINVAL;
	}
}

/* ---- the back end ------------------------------------------------------------------------ */

static int start(struct fleet_back *b, struct fleet_io *io)
{
	struct liar *l = liar(b);

	l->waiting[l->nwaiting++] = io;
	return 0;
}

/* Without the manager only data moves. */
static bool can_run(const struct liar *l, const struct fleet_op *op)
{
	return !l->away[SERVERS] || op->kind == SHARED_READ || op->kind == SHARED_WRITE;
}

/* Any of those that wait, not the first. */
static void wait_for(struct fleet_back *b, int ms)
{
	struct liar *l = liar(b);

	(void)ms;
	for (unsigned k = 0; k < l->nwaiting; k++) {
		unsigned i = (l->turn++ * 7 + k) % l->nwaiting;
		struct fleet_io *io = l->waiting[i];

		if (!can_run(l, &io->op))
			continue;
		l->waiting[i] = l->waiting[--l->nwaiting];
		io->result = do_op(l, io);
		io->done = true;
		return;
	}
}

static int fail_server(struct fleet_back *b, unsigned server, enum fleet_fault fault)
{
	struct liar *l = liar(b);

	for (unsigned i = 0; i < CLIENTS * FILES && fault == FLEET_KILL && server < SERVERS; i++)
		l->lost[i / FILES][i % FILES] |= l->wrote[i / FILES][i % FILES];
	l->away[server] = fault == FLEET_KILL || fault == FLEET_STOP || server == SERVERS;
	memset(l->held[server], fault == FLEET_HOLD, sizeof(l->held[server]));
	if (fault == FLEET_BREAK)
		l->away[server] = false;
	return 0;
}

/* What the server had received is executed now, or never. */
static void execute_late(struct liar *l, struct late *late)
{
	bool cut = late->epoch != late->f->epoch;

	late->used = false;
	if (cut && l->lie != LATE_BEHIND_A_CUT && l->lie != LATE_OF_THE_DEAD)
		return;
	if (late->dead && l->lie != LATE_WRITE && l->lie != LATE_OF_THE_DEAD)
		return;
	memcpy(late->f->bytes + late->off, late->bytes, late->len);
}

static int heal(struct fleet_back *b, unsigned server, enum fleet_fault fault)
{
	struct liar *l = liar(b);

	l->away[server] = false;
	memset(l->held[server], 0, sizeof(l->held[server]));
	for (unsigned i = 0; i < LATE_MAX; i++) {
		if (!l->late[i].used || l->late[i].server != server)
			continue;
		if (fault == FLEET_KILL)
			l->late[i].used = false;
		else
			execute_late(l, &l->late[i]);
	}
	return 0;
}

static int die(struct fleet_back *b, unsigned client)
{
	struct liar *l = liar(b);
	unsigned kept = 0;

	for (unsigned i = 0; i < l->nwaiting; i++) {
		struct fleet_io *io = l->waiting[i];

		if (io->op.client != client) {
			l->waiting[kept++] = io;
			continue;
		}
		io->result = -ECANCELED;
		io->done = true;
	}
	l->nwaiting = kept;
	memset(l->opened[client], 0, sizeof(l->opened[client]));
	return 0;
}

static bool is_settled(struct fleet_back *b)
{
	return liar(b)->lie != CUT_IS_NEVER_DONE;
}

static const char *why(struct fleet_back *b, int client)
{
	(void)b;
	(void)client;
	return "a lie";
}

static const struct fleet_back_ops liar_ops = {
	.start = start,
	.wait = wait_for,
	.fail = fail_server,
	.heal = heal,
	.die = die,
	.is_settled = is_settled,
	.why = why,
};

/* ---- tests ------------------------------------------------------------------------------- */

static int run(enum lie lie, uint64_t seed, uint64_t count, char *told, size_t room, struct fleet_sum *ret_sum)
{
	const struct fleet_opts o = { .seed = seed, .count = count, .size_max = FILE_MAX, .len_max = 5000, .unit = UNIT,
				      .check_every = 500, .clients = CLIENTS, .files = FILES, .servers = SERVERS, .depth = 8,
				      .faults = 20, .patience_ms = 1, .hang_ms = lie == CUT_IS_NEVER_DONE ? 20 : 20000, .relayed = true };
	struct liar *l = calloc(1, sizeof(*l));
	FILE *out = fmemopen(told, room, "w");
	int rc;

	assert_non_null(l);
	assert_non_null(out);
	l->back.ops = &liar_ops;
	l->lie = lie;
	l->countdown = 5;
	rc = fleet_run(&l->back, &o, out, ret_sum);
	fclose(out);
	free(l);
	return rc;
}

static void honest(void **state)
{
	static char told[65536];
	struct fleet_sum sum;

	(void)state;
	for (uint64_t seed = 1; seed <= 8; seed++) {
		if (run(HONEST, seed, 3000, told, sizeof(told), &sum))
			fail_msg("%s", told);
		for (unsigned i = 0; i < SHARED_KINDS; i++)
			if (!sum.ops[i] && i != SHARED_FAULT)
				fail_msg("seed %d: no operation of kind %u", (int)seed, i);
		for (unsigned i = 0; i < FLEET_FAULTS; i++)
			assert_true(sum.faults[i]);
	}
}

static void finds_lies(void **state)
{
	static char told[65536];
	struct fleet_sum sum;

	(void)state;
	for (enum lie lie = HONEST + 1; lie < LIES; lie++) {
		bool found = false;

		for (uint64_t seed = 1; seed <= 80 && !found; seed++) {
			int rc = run(lie, seed, 3000, told, sizeof(told), &sum);

			assert_in_range(rc, 0, 1);
			found = rc;
		}
		if (!found)
			fail_msg("lie %u is not found", lie);
		assert_non_null(strstr(told, "tumble: WRONG in operation "));
	}
}

/* The finding names the operation whose bytes were read. */
static void names_the_writer(void **state)
{
	static char told[65536];
	struct fleet_sum sum;
	bool named = false;

	(void)state;
	for (uint64_t seed = 1; seed <= 10 && !named; seed++) {
		assert_int_equal(run(STALE_READ, seed, 3000, told, sizeof(told), &sum), 1);
		named = strstr(told, "as written by ") != NULL;
		assert_non_null(strstr(told, "  possible: "));
		assert_non_null(strstr(told, " seed "));
	}
	assert_true(named);
}

/* The same seed means the same operations. */
static void repeats(void **state)
{
	const struct fleet_opts o = { .size_max = FILE_MAX, .len_max = 5000, .unit = UNIT, .clients = CLIENTS, .files = FILES,
				      .servers = SERVERS, .faults = 20, .relayed = true };
	struct fleet_op op[2] = { { 0 } };
	uint64_t sizes[2][FLEET_FILES_MAX] = { { 0 } };
	struct rnd rnd[2] = { { 7 }, { 7 } };

	(void)state;
	for (unsigned i = 0; i < 1000; i++) {
		fleet_choose(&rnd[0], &o, sizes[0], &op[0]);
		fleet_choose(&rnd[1], &o, sizes[1], &op[1]);
		assert_memory_equal(&op[0], &op[1], sizeof(op[0]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(honest),
		cmocka_unit_test(finds_lies),
		cmocka_unit_test(names_the_writer),
		cmocka_unit_test(repeats),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
