/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * path.c - `make path`: the files, functions and indirect calls of one READ and of one WRITE
 *
 * Operation:  leatd and libleat run in this program, which is compiled with -finstrument-functions: each function
 *             tells of its entry, and from where it was called. A READ and a WRITE of 1 MiB are done three
 *             times, so that handles, registrations and buffers are there; the third is recorded, what threads
 *             do beside it (timers, looks at queues) included. addr2line says which file a function is of; the
 *             instruction before a return address, whether a call was indirect. Inlined functions are entries
 *             as well, without a call.
 *
 *                 path [FABRIC]    local (the default) or tcp; $PATH_LIST=1: the functions, in the order of entry
 * Memory:     A static array of ENTRIES_MAX entries. If they do not suffice, the program fails.
 * Threads:    Any records; entries are numbered by one counter.
 * Errors:     Asserted; status 1.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <fcntl.h>

#include "base/util.h"
#include "leat_flow.h"
#include "base/log.h"

LOG_DEFINE("path");

#define UNTRACED __attribute__((no_instrument_function))
#define ENTRIES_MAX (1u << 20)
#define DEPTH_MAX 512u
#define BYTES (1u << 20)

struct entry {
	const uint8_t *fn, *site; /* a function, and where it returns to */
	bool indirect;
};

struct place { /* of a function, or of a call */
	const uint8_t *at;
	char file[96], name[96];
};

static struct entry entries[ENTRIES_MAX];
static atomic_uint nentries;
static atomic_bool recording;
static _Thread_local const uint8_t *stack[DEPTH_MAX];
static _Thread_local unsigned depth;

void __cyg_profile_func_enter(void *fn, void *site) UNTRACED;
void __cyg_profile_func_exit(void *fn, void *site) UNTRACED;

/* call *REGISTER or *MEMORY is FF /2, of 2 to 7 bytes; a direct call is E8 and four bytes */
static UNTRACED bool is_indirect(const uint8_t *site)
{
	for (int n = 2; n <= 7; n++)
		if (site[-n] == 0xff && (site[-n + 1] & 0x38) == 0x10)
			return true;
	return false;
}

/* That of its caller is where an inlined function returns to, too. */
void __cyg_profile_func_enter(void *fn, void *site)
{
	bool inlined = depth > 0 && depth <= DEPTH_MAX && stack[depth - 1] == site;

	if (depth < DEPTH_MAX)
		stack[depth] = site;
	depth++;
	if (atomic_load_explicit(&recording, memory_order_relaxed)) {
		unsigned i = atomic_fetch_add(&nentries, 1);
		int32_t to;

		if (i >= ENTRIES_MAX)
			return;
		memcpy(&to, (const uint8_t *)site - 4, sizeof(to));
		entries[i] = (struct entry){ .fn = fn, .site = site };
		entries[i].indirect = !inlined &&
				      !(((const uint8_t *)site)[-5] == 0xe8 && (const uint8_t *)site + to == fn) &&
				      is_indirect(site);
	}
}

void __cyg_profile_func_exit(void *fn, void *site)
{
	(void)fn;
	(void)site;
	depth -= depth > 0;
}

/* ---- names ---- */

static UNTRACED int by_address(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* the part of a path below the source tree */
static UNTRACED const char *below_tree(const char *path)
{
	static const char *const folders[] = { "/rpcrdma/", "/server/", "/client/", "/xdr/", "/base/", "/gen/" };

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		const char *at = strstr(path, folders[i]);

		if (at)
			return at + 1;
	}
	return path;
}

/* of all addresses at once: addr2line reads the program each time it is run */
static UNTRACED void find_names(struct place *p, size_t n, const uint8_t *base)
{
	char list[] = "/tmp/leat-path.XXXXXX", command[256], line[512];
	int fd = mkstemp(list);
	FILE *f = fdopen(fd, "w");

	assert_non_null(f);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%" PRIxPTR "\n", (uintptr_t)(p[i].at - base));
	fclose(f);
	snprintf(command, sizeof(command), "addr2line -f -e /proc/%d/exe <%s", (int)getpid(), list);
	f = popen(command, "r");
	assert_non_null(f);
	for (size_t i = 0; i < n; i++) {
		assert_non_null(fgets(line, sizeof(line), f));
		snprintf(p[i].name, sizeof(p[i].name), "%.*s", (int)strcspn(line, "\n"), line);
		assert_non_null(fgets(line, sizeof(line), f));
		snprintf(p[i].file, sizeof(p[i].file), "%.*s", (int)strcspn(below_tree(line), ":\n"), below_tree(line));
	}
	pclose(f);
	unlink(list);
}

static UNTRACED const struct place *find(const struct place *p, size_t n, const uint8_t *at)
{
	const struct place key = { .at = at };

	return bsearch(&key, p, n, sizeof(*p), by_address);
}

static UNTRACED size_t sort_unique(struct place *p, size_t n)
{
	size_t kept = 0;

	qsort(p, n, sizeof(*p), by_address);
	for (size_t i = 0; i < n; i++)
		if (!kept || p[kept - 1].at != p[i].at)
			p[kept++] = p[i];
	return kept;
}

static UNTRACED bool is_in(const struct place *p, const char *folder)
{
	return !strncmp(p->file, folder, strlen(folder));
}

static UNTRACED unsigned count_files(const struct place *p, size_t n)
{
	unsigned files = 0;

	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < i && strcmp(p[k].file, p[i].file) != 0)
			k++;
		files += k == i;
	}
	return files;
}

static UNTRACED void report(const char *what, const uint8_t *base)
{
	size_t n = atomic_load(&nentries), nfns, nsites;
	struct place *fns = calloc(n, sizeof(*fns)), *sites = calloc(n, sizeof(*sites));
	unsigned indirect = 0, across = 0;

	assert_true(n > 0 && n < ENTRIES_MAX);
	assert_true(fns && sites);
	for (size_t i = 0; i < n; i++) {
		fns[i].at = entries[i].fn;
		sites[i].at = entries[i].site - 1;
	}
	nfns = sort_unique(fns, n);
	nsites = sort_unique(sites, n);
	find_names(fns, nfns, base);
	find_names(sites, nsites, base);
	for (size_t i = 0; i < n; i++) {
		const struct place *fn = find(fns, nfns, entries[i].fn);
		const struct place *from = find(sites, nsites, entries[i].site - 1);

		indirect += entries[i].indirect;
		across += is_in(from, "server/") && is_in(fn, "rpcrdma/") && !strncmp(fn->name, "rpcrdma_", 8);
		if (getenv("PATH_LIST"))
			printf("  %s %s:%s\n", entries[i].indirect ? "*" : " ", fn->file, fn->name);
	}
	printf("%-6s files %u, functions %zu, calls %zu, indirect calls %u, calls from server/ into rpcrdma/ %u\n", what,
	       count_files(fns, nfns), nfns, n, indirect, across);
	free(fns);
	free(sites);
}

/* ---- what is recorded ---- */

extern const uint8_t __ehdr_start[] __attribute__((visibility("hidden"))); /* where the program was loaded: by the linker */

static UNTRACED void record(struct leat_file *file, void *buf, bool write)
{
	for (int i = 0; i < 3; i++) {
		ssize_t n;

		atomic_store(&nentries, 0);
		atomic_store(&recording, i == 2);
		n = write ? leat_pwrite(file, buf, BYTES, 0) : leat_pread(file, buf, BYTES, 0);
		atomic_store(&recording, false);
		assert_int_equal(n, BYTES);
	}
	report(write ? "WRITE" : "READ", __ehdr_start);
}

int main(int argc, char **argv)
{
	bool tcp = argc > 1 && !strcmp(argv[1], "tcp");
	struct leat_file *file;
	struct leat_flow f;
	void *buf = malloc(BYTES);

	leat_flow_create(&f);
	f.m = leat_flow_mount(tcp ? f.tcp_url : f.local_url, NULL);
	leat_flow_fill(buf, BYTES, 1);
	assert_int_equal(leat_open(f.m, "/file", O_RDWR | O_CREAT, 0644, &file), 0);
	printf("%s\n", tcp ? "tcp" : "local");
	record(file, buf, true);
	record(file, buf, false);
	assert_int_equal(leat_close(file), 0);
	leat_umount(f.m);
	leat_flow_destroy(&f);
	free(buf);
	return 0;
}
