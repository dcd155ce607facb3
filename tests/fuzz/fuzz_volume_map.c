/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fuzz_volume_map.c - libFuzzer harness: the map of a striped volume
 *
 * Operation:  What is accepted keeps the promises of volume_map.h, and is read again as it was printed. What is refused
 *             is refused with a reason.
 * Memory:     The text has its exact size, so that an overrun is seen.
 * Errors:     abort() on a broken promise.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "volume_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool promise)
{
	if (!promise)
		abort();
}

static void check(const struct volume_map *m)
{
	must(m->volume && m->version && m->n && m->n <= VOLUME_SERVERS_MAX);
	for (unsigned i = 0; i < m->n; i++) {
		must(m->servers[i].id && m->servers[i].url && strlen(m->servers[i].url) <= VOLUME_URL_MAX);
		must(volume_map_find(m, m->servers[i].id) == &m->servers[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char why[256] = "", *text = malloc(size + !size), *again;
	struct volume_map m, copy;

	must(text);
	memcpy(text, data, size);
	if (volume_map_parse(text, size, &m, why, sizeof(why))) {
		must(why[0]);
		free(text);
		return 0;
	}
	check(&m);
	must(!volume_map_print(&m, &again));
	must(!volume_map_parse(again, strlen(again), &copy, why, sizeof(why)));
	must(copy.volume == m.volume && copy.version == m.version && copy.n == m.n);
	for (unsigned i = 0; i < m.n; i++)
		must(copy.servers[i].id == m.servers[i].id && copy.servers[i].state == m.servers[i].state &&
		     !strcmp(copy.servers[i].url, m.servers[i].url));
	volume_map_fini(&copy);
	volume_map_fini(&m);
	free(again);
	free(text);
	return 0;
}
