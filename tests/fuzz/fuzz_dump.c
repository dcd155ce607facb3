/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fuzz_dump.c - libFuzzer harness: a capture from anywhere, through all of leat dump
 *
 * Operation:  The input is a file. All of it is read, printed and checked; what is kept meanwhile stays
 *             within bounds, and the sums agree with each other.
 * Errors:     abort() on a broken promise.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/tools/dump/dump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool promise)
{
	if (!promise)
		abort();
}

static void read_all(FILE *in, FILE *out)
{
	static const struct dump_options options = { .lines = true, .transfers = true,
						     .check = true };
	struct dump_packet p;
	struct dump_file f;
	struct dump d;

	if (dump_file_init(&f, in))
		return;
	dump_init(&d, out, &options);
	while (dump_file_next(&f, &p) > 0)
		must(!dump_packet(&d, &p));
	dump_print_end(&d);
	must(d.messages <= d.packets && d.cut + d.undecoded <= d.messages);
	must(d.nconns <= 1024 && d.ncalls <= 8192 && d.nconns <= d.connections);
	dump_fini(&d);
	must(list_is_empty(&d.conns) && list_is_empty(&d.calls) && !d.nconns && !d.ncalls);
	dump_file_fini(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	FILE *in, *out;
	char *text = NULL;
	size_t len = 0;

	if (!size)
		return 0;
	in = fmemopen((void *)(uintptr_t)data, size, "r");
	out = open_memstream(&text, &len);
	must(in && out);
	read_all(in, out);
	fclose(out);
	fclose(in);
	/* nothing of a peer's goes out as it is */
	for (size_t i = 0; i < len; i++)
		must(text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~'));
	free(text);
	return 0;
}
