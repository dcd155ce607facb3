/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * op.c - operations on a file: chosen at random, written down, read again
 *
 * Operation:  A log is text, a line per operation: its number, what it does, offset and length, the
 *             ways it goes about it. Lines may be taken out: what an operation writes depends on its
 *             number and on the seed in the first line, not on the lines before it.
 * Memory:     struct oplog grows as needed; oplog_fini() frees it.
 * Threads:    Any; none is shared.
 * Errors:     -ENOMEM, -EINVAL for lines that make no sense, those of files.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "tumble.h"

static const char *const kinds[OP_KINDS] = {
	[OP_READ] = "read",   [OP_WRITE] = "write", [OP_TRUNCATE] = "truncate",
	[OP_STAT] = "stat",   [OP_FSYNC] = "fsync", [OP_REOPEN] = "reopen",
	[OP_CHECK] = "check",
};

static const char *const hows[] = { "direct", "map",  "path",  "vector", "seq",
				    "pool",   "sync", "dsync", "busy" };

/* One of @ways, of those in @can, in @percent of all cases. */
static unsigned maybe(struct rnd *r, unsigned can, unsigned way, unsigned percent)
{
	/* the number is taken in any case: the same seed means the same file everywhere */
	bool yes = rnd_chance(r, percent);

	return yes ? way & can : 0;
}

static void choose_data(struct chooser *c, const struct tumble_opts *o, unsigned can, uint64_t size,
			struct op *op)
{
	struct rnd *r = &c->rnd;
	bool append = op->kind == OP_WRITE && rnd_chance(r, 12);

	op->off = append ? size : rnd_place(r, size, o->size_max - 1);
	if (op->off >= o->size_max)
		op->off = o->size_max - 1;
	op->len = rnd_size(r, MIN(o->len_max, o->size_max - op->off));
	op->how = maybe(r, can, HOW_DIRECT, 30) | maybe(r, can, HOW_POOL, 50) |
		  maybe(r, can, HOW_VECTOR, 15);
	op->how |=
		maybe(r, can, HOW_MAP, 15) | (op->kind == OP_READ ? maybe(r, can, HOW_SEQ, 30) : 0);
	if (op->how & HOW_MAP)
		op->how = HOW_MAP;
	if (op->how & HOW_SEQ) {
		/* readers that go on where they were are what read-ahead is for */
		op->how = HOW_SEQ;
		if (c->seq_end < size && rnd_chance(r, 75)) {
			op->off = c->seq_end;
			op->len =
				1 + rnd_below(r, MIN(MIN(o->len_max, 5000), o->size_max - op->off));
		}
		c->seq_end = op->off + op->len;
	}
}

/** op_choose - the next operation on a file of @size bytes
 * @can: HOW_ bits of the back end
 * @ret: its number is left alone
 */
void op_choose(struct chooser *c, const struct tumble_opts *o, unsigned can, uint64_t size,
	       struct op *ret)
{
	struct rnd *r = &c->rnd;
	uint64_t dice = rnd_below(r, 1000);
	struct op op = { .number = ret->number };

	if (dice < 400) {
		op.kind = OP_READ;
		choose_data(c, o, can, size, &op);
	} else if (dice < 800) {
		op.kind = OP_WRITE;
		choose_data(c, o, can, size, &op);
	} else if (dice < 880) {
		op.kind = OP_TRUNCATE;
		op.len = rnd_chance(r, 20) ? 0 : rnd_place(r, size, o->size_max);
		op.how = maybe(r, can, HOW_PATH, 30);
	} else if (dice < 970) {
		op.kind = OP_STAT;
		op.how = maybe(r, can, HOW_PATH, 30);
	} else if (dice < 990) {
		op.kind = OP_FSYNC;
	} else {
		op.kind = OP_REOPEN;
		op.how = maybe(r, can, HOW_SYNC, 4) | maybe(r, can, HOW_DSYNC, 4) |
			 maybe(r, can, HOW_BUSY, 50);
	}
	*ret = op;
}

/** op_print - as one line. Return: what fprintf() does. */
int op_print(FILE *out, const struct op *op)
{
	char words[128] = "";
	size_t at = 0;

	for (size_t i = 0; i < ARRAY_SIZE(hows); i++) {
		if (op->how & 1u << i)
			at += (size_t)snprintf(words + at, sizeof(words) - at, "%s%s",
					       at ? "," : " ", hows[i]);
	}
	return fprintf(out, "%" PRIu64 " %s %" PRIu64 " %" PRIu64 "%s\n", op->number,
		       kinds[op->kind], op->off, op->len, words);
}

static bool parse_hows(char *words, unsigned *ret)
{
	unsigned how = 0;

	for (char *save, *word = strtok_r(words, ",\n", &save); word;
	     word = strtok_r(NULL, ",\n", &save)) {
		size_t i = 0;

		while (i < ARRAY_SIZE(hows) && strcmp(word, hows[i]) != 0)
			i++;
		if (i == ARRAY_SIZE(hows))
			return false;
		how |= 1u << i;
	}
	*ret = how;
	return true;
}

/** op_parse - a line of op_print(). Return: 0, -EINVAL. */
int op_parse(const char *line, struct op *ret)
{
	char kind[16], words[128] = "";
	struct op op = { 0 };
	unsigned k = 0;

	if (sscanf(line, "%" SCNu64 " %15s %" SCNu64 " %" SCNu64 " %127s", &op.number, kind,
		   &op.off, &op.len, words) < 4)
		return -EINVAL;
	while (k < OP_KINDS && strcmp(kind, kinds[k]) != 0)
		k++;
	if (k == OP_KINDS || !parse_hows(words, &op.how))
		return -EINVAL;
	op.kind = (enum op_kind)k;
	*ret = op;
	return 0;
}

/** oplog_add - Return: 0, -ENOMEM. */
int oplog_add(struct oplog *log, const struct op *op)
{
	if (log->count == log->room) {
		size_t room = log->room ? 2 * log->room : 1024;
		struct op *ops = reallocarray(log->ops, room, sizeof(*ops));

		if (!ops)
			return -ENOMEM;
		log->ops = ops;
		log->room = room;
	}
	log->ops[log->count++] = *op;
	return 0;
}

/** oplog_fini - empty again */
void oplog_fini(struct oplog *log)
{
	free(log->ops);
	*log = (struct oplog){ 0 };
}

/** oplog_save - all of it, in a file that oplog_load() takes. Return: 0, -errno. */
int oplog_save(const struct oplog *log, const char *path, const struct tumble_opts *o)
{
	FILE *f = fopen(path, "w");
	int rc;

	if (!f)
		return -errno;
	fprintf(f, "seed %" PRIu64 " size %" PRIu64 " depth %u align %" PRIu32 "\n", o->seed,
		o->size_max, o->depth, o->direct_align);
	for (size_t i = 0; i < log->count; i++)
		op_print(f, &log->ops[i]);
	rc = ferror(f) ? -EIO : 0;
	if (fclose(f) && !rc)
		rc = -errno;
	return rc;
}

/* What a log asks for has to be possible: the model is as large as its first line says. */
static bool is_sane(const struct tumble_opts *o, const struct op *op)
{
	if (op->kind == OP_READ || op->kind == OP_WRITE)
		return op->off < o->size_max && op->len && op->len <= o->size_max - op->off;
	return op->off <= o->size_max && op->len <= o->size_max;
}

static int load_lines(FILE *f, struct tumble_opts *o, struct oplog *log, unsigned *line)
{
	char text[256];
	struct op op;
	int rc = 0;

	*line = 1;
	if (!fgets(text, sizeof(text), f) ||
	    sscanf(text, "seed %" SCNu64 " size %" SCNu64 " depth %u align %" SCNu32, &o->seed,
		   &o->size_max, &o->depth, &o->direct_align) != 4 ||
	    !o->size_max || o->size_max > TUMBLE_BYTES_MAX || !o->depth ||
	    o->depth > TUMBLE_DEPTH_MAX || !o->direct_align || o->direct_align > 65536 ||
	    o->direct_align & (o->direct_align - 1))
		return -EINVAL;
	o->len_max = o->size_max;
	while (!rc && fgets(text, sizeof(text), f)) {
		++*line;
		if (text[0] == '\n' || text[0] == '#')
			continue;
		rc = op_parse(text, &op);
		if (!rc && !is_sane(o, &op))
			rc = -EINVAL;
		if (!rc)
			rc = oplog_add(log, &op);
	}
	return rc;
}

/** oplog_load - a saved log
 * @o: seed, size and depth are set
 * @why: of @room bytes: what is wrong, and in which line
 *
 * Return: 0, -EINVAL, -errno of the file.
 */
int oplog_load(const char *path, struct tumble_opts *o, struct oplog *ret, char *why, size_t room)
{
	struct oplog log = { 0 };
	unsigned line = 0;
	FILE *f = fopen(path, "r");
	int rc = f ? load_lines(f, o, &log, &line) : -errno;

	if (f)
		fclose(f);
	if (rc) {
		snprintf(why, room, "%s, line %u: %s", path, line, strerror(-rc));
		oplog_fini(&log);
		return rc;
	}
	*ret = log;
	return 0;
}
