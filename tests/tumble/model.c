/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * model.c - what a file has to be: its bytes in memory
 *
 * Operation:  Whatever is done to the file is done to the model; bytes beyond the size are zero, so
 *             that growing shows a hole. Where file and model differ, model_explain() looks the
 *             bytes up in the log of operations and says which wrote the ones that should be there,
 *             and which the ones that are.
 * Memory:     As large as the file may become.
 * Threads:    The tester's.
 * Errors:     -ENOMEM; those of files.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "tumble.h"

/** model_init - an empty file. Return: 0, -ENOMEM. */
int model_init(struct model *m, uint64_t max)
{
	uint8_t *bytes = calloc(1, max);

	if (!bytes)
		return -ENOMEM;
	*m = (struct model){ .bytes = bytes, .max = max };
	return 0;
}

/** model_fini - frees the model; harmless if it was not initialised */
void model_fini(struct model *m)
{
	free(m->bytes);
	*m = (struct model){ 0 };
}

/** model_write - within max */
void model_write(struct model *m, uint64_t off, const uint8_t *p, uint64_t len)
{
	memcpy(m->bytes + off, p, len);
	m->size = MAX(m->size, off + len);
}

/** model_truncate - to at most max; what grows is zero */
void model_truncate(struct model *m, uint64_t size)
{
	if (size < m->size)
		memset(m->bytes + size, 0, m->size - size);
	m->size = size;
}

/** model_readable - how many bytes a read has to return */
uint64_t model_readable(const struct model *m, uint64_t off, uint64_t len)
{
	return off < m->size ? MIN(len, m->size - off) : 0;
}

static bool covers(const struct op *op, uint64_t off)
{
	return op->kind == OP_WRITE && off >= op->off && off - op->off < op->len;
}

/* The last operation, if any, that gave the byte at @off this value. */
static void tell_origin(const struct oplog *log, uint64_t seed, uint64_t off, const uint8_t *p,
			uint64_t len, FILE *out)
{
	for (size_t i = log->count; i-- > 0;) {
		const struct op *op = &log->ops[i];
		uint64_t key = rnd_mix(seed, op->number), n = 0;

		if (!covers(op, off))
			continue;
		while (n < len && n < 8 && covers(op, off + n) &&
		       p[n] == pattern_byte(key, off + n))
			n++;
		/* a byte alone may look like another's */
		if (n == len || n >= 4 || !covers(op, off + n)) {
			fprintf(out, ", as written by: ");
			op_print(out, op);
			return;
		}
	}
	fprintf(out, *p ? ", as written by nobody there\n" : ", as in a hole\n");
}

static void tell_bytes(const char *what, const uint8_t *p, uint64_t len, FILE *out)
{
	fprintf(out, "  %s", what);
	for (uint64_t i = 0; i < len && i < 16; i++)
		fprintf(out, " %02x", p[i]);
}

/** model_explain - where a read differs, and whose bytes these are
 * @got: @len bytes, that were read at @off and are not what the model says
 */
void model_explain(const struct model *m, const struct oplog *log, uint64_t seed, uint64_t off,
		   const uint8_t *got, uint64_t len, FILE *out)
{
	const uint8_t *want = m->bytes + off;
	uint64_t first = 0, last = len - 1, wrong = 0;

	while (first < len && got[first] == want[first])
		first++;
	if (first == len)
		return;
	while (got[last] == want[last])
		last--;
	for (uint64_t i = first; i <= last; i++)
		wrong += got[i] != want[i];
	fprintf(out,
		"  %" PRIu64 " bytes differ, from offset %" PRIu64 " (0x%" PRIx64 ") to %" PRIu64
		" of a file of %" PRIu64 "\n",
		wrong, off + first, off + first, off + last, m->size);
	tell_bytes("expected", want + first, len - first, out);
	tell_origin(log, seed, off + first, want + first, last - first + 1, out);
	tell_bytes("got     ", got + first, len - first, out);
	tell_origin(log, seed, off + first, got + first, last - first + 1, out);
}

/** model_save - as a file. Return: 0, -errno. */
int model_save(const struct model *m, const char *path)
{
	FILE *f = fopen(path, "w");
	int rc = 0;

	if (!f)
		return -errno;
	if (fwrite(m->bytes, 1, m->size, f) != m->size)
		rc = -EIO;
	if (fclose(f) && !rc)
		rc = -errno;
	return rc;
}
