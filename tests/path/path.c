/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * path.c - `make path`: the files, functions and indirect calls of one READ and of one WRITE of 1 MiB
 *
 * Operation:  leatd and libleat run in this program, which is compiled with -finstrument-functions: a hook runs at
 *             each entry and exit of a function. Both ends poll and never sleep, so that no wakeup depends on the
 *             load. An edge is a call site and the function that it calls.
 *
 *             Each operation is repeated. An edge that also occurs while nothing is requested is polling. A call
 *             of a polling edge counts only if it leads to a call of another edge, or if the same function makes such a call right
 *             after it (the poll that found something). It counts once, however often it runs. Of all other edges
 *             each call counts, if most repetitions agree on the number: timers and waiting callers do not.
 *
 *             addr2line tells the file of a function. The instruction before a return address tells whether a call
 *             is indirect. Inlined functions are entered, but not called. Calls into libraries are not seen. Calls
 *             by libtirpc, one for each word of a message, are counted apart. Files are .c files.
 *
 *                 path [local | tcp | rdma ADDRESS]     $PATH_LIST=1: each edge, with its count
 * Memory:     Static tables. If they do not suffice, the program fails.
 * Threads:    Any thread records. Edges are inserted without a lock.
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
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <fcntl.h>

#include "base/log.h"
#include "base/util.h"
#include "leat.h"
#include "leat_flow.h"
#include "server.h"

LOG_DEFINE("path");

#define UNTRACED __attribute__((no_instrument_function))
#define EDGES_MAX (1u << 15) /* a power of two */
#define LOG_MAX (1u << 16)   /* entries and exits of one operation */
#define DEPTH_MAX 512u
#define THREADS_MAX 64u
#define BYTES (1u << 20)
#define WARM_UPS 3u
#define RUNS 9u
#define TRIES_MAX 100u
#define QUIET_MS 100u        /* ten times as long on an emulated machine: after it an operation has ended at both ends; then only polling occurs, for as long */

struct edge {
	_Atomic(const uint8_t *) site, fn; /* return address of the call; the function */
	bool indirect;
	atomic_bool polling;
	atomic_uint count; /* in this run */
	unsigned runs[RUNS];
};

struct event {
	struct edge *edge;
	unsigned thread;
	bool is_exit;
};

/* A function that runs on a thread. */
struct frame {
	const uint8_t *site;
	struct edge *edge;
	struct edge *poll; /* polling edge that it called last */
	unsigned run;      /* run in which it was entered */
	unsigned kept;     /* run in which it was counted */
	bool is_logged;
};

struct place { /* of a function, or of a call */
	const uint8_t *at;
	char file[96], name[96];
};

enum phase { IGNORE, LEARN_POLLING, COUNT };

static struct edge edges[EDGES_MAX];
static struct event events[RUNS][LOG_MAX];
static unsigned nlogged[RUNS];
static atomic_uint nedges, npolling, nevents, nthreads;
static _Atomic(enum phase) phase;
static atomic_uint run = 1, nth_run;
static unsigned quiet_ms = QUIET_MS;
static _Thread_local struct frame stack[DEPTH_MAX];
static _Thread_local unsigned depth, thread;

void __cyg_profile_func_enter(void *fn, void *site) UNTRACED;
void __cyg_profile_func_exit(void *fn, void *site) UNTRACED;
ssize_t __real_preadv2(int fd, const struct iovec *iov, int n, off_t off, int flags);
ssize_t __wrap_preadv2(int fd, const struct iovec *iov, int n, off_t off, int flags);
ssize_t __real_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);

/* ---- the hooks ---- */

/* call *REGISTER or *MEMORY is FF /2, of 2 to 7 bytes; a direct call is E8 and four bytes */
static UNTRACED bool is_indirect(const uint8_t *site, const uint8_t *fn)
{
	int32_t to;

	memcpy(&to, site - 4, sizeof(to));
	if (site[-5] == 0xe8 && site + to == fn)
		return false;
	for (int n = 2; n <= 7; n++)
		if (site[-n] == 0xff && (site[-n + 1] & 0x38) == 0x10)
			return true;
	return false;
}

static UNTRACED struct edge *find_edge(const uint8_t *site, const uint8_t *fn, bool called)
{
	size_t at = ((uintptr_t)site * 31 + (uintptr_t)fn) * UINT64_C(0x9e3779b97f4a7c15) >> 40;

	for (;; at++) {
		struct edge *e = &edges[at % EDGES_MAX];
		const uint8_t *none = NULL, *other = atomic_load_explicit(&e->fn, memory_order_acquire);

		if (other == fn && atomic_load(&e->site) == site)
			return e;
		if (other)
			continue;
		if (!atomic_compare_exchange_strong(&e->site, &none, site)) {
			while (!atomic_load_explicit(&e->fn, memory_order_acquire))
				; /* another thread inserts an edge here, perhaps this one */
			at--;
			continue;
		}
		if (atomic_fetch_add(&nedges, 1) > EDGES_MAX / 2)
			abort();
		e->indirect = called && is_indirect(site, fn);
		atomic_store_explicit(&e->fn, fn, memory_order_release);
		return e;
	}
}

static UNTRACED void log_event(struct edge *e, bool is_exit)
{
	unsigned i = atomic_fetch_add(&nevents, 1);

	if (i < LOG_MAX)
		events[nth_run][i] = (struct event){ .edge = e, .thread = thread, .is_exit = is_exit };
}

/* Counts the calls that led to the function at the top of the stack, and the poll before it. */
static UNTRACED void keep_callers(unsigned now)
{
	struct edge *poll = depth > 0 ? stack[depth - 1].poll : NULL;

	if (poll)
		atomic_store(&poll->count, 1);
	for (unsigned i = depth; i-- > 0 && stack[i].kept != now;) {
		stack[i].kept = now;
		if (atomic_load(&stack[i].edge->polling) || stack[i].run != now)
			atomic_store(&stack[i].edge->count, 1);
	}
}

/* An inlined function returns to where its caller returns to. */
void __cyg_profile_func_enter(void *fn, void *site)
{
	unsigned now = atomic_load_explicit(&run, memory_order_relaxed);
	bool inlined = depth > 0 && stack[depth - 1].site == site;
	struct frame *f = &stack[depth];
	struct edge *e;

	if (depth == DEPTH_MAX)
		abort();
	if (!thread)
		thread = atomic_fetch_add(&nthreads, 1) + 1;
	e = find_edge(site, fn, depth > 0 && !inlined);
	*f = (struct frame){ .site = site, .edge = e, .run = now };
	switch (atomic_load_explicit(&phase, memory_order_relaxed)) {
	case LEARN_POLLING:
		if (!atomic_exchange(&e->polling, true))
			atomic_fetch_add(&npolling, 1);
		break;
	case COUNT:
		if (atomic_load_explicit(&e->polling, memory_order_relaxed)) {
			if (depth > 0)
				stack[depth - 1].poll = e;
			break;
		}
		atomic_fetch_add(&e->count, 1);
		log_event(e, false);
		keep_callers(now);
		f->kept = now;
		f->is_logged = true;
		break;
	case IGNORE:
		break;
	}
	depth++;
}

void __cyg_profile_func_exit(void *fn, void *site)
{
	(void)fn;
	(void)site;
	if (!depth)
		return;
	depth--;
	if (stack[depth].is_logged && stack[depth].run == atomic_load(&run))
		log_event(stack[depth].edge, true);
}

/* ---- the system calls that end a part of the path ---- */

ssize_t __wrap_preadv2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	return __real_preadv2(fd, iov, n, off, flags);
}

ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	return __real_pwritev2(fd, iov, n, off, flags);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	return __real_sendmsg(fd, m, flags);
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
	static const char *const folders[] = { "/tests/", "/rpcrdma/", "/server/", "/client/", "/xdr/", "/include/", "/gen/" };

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

static UNTRACED int by_number(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return x < y ? -1 : x > y;
}

static UNTRACED unsigned median(const unsigned runs[RUNS])
{
	unsigned sorted[RUNS];

	memcpy(sorted, runs, sizeof(sorted));
	qsort(sorted, RUNS, sizeof(*sorted), by_number);
	return sorted[RUNS / 2];
}

/* Return: the median if most repetitions agree, else 0: the edge depends on the load, as a caller that waits does */
static UNTRACED unsigned typical(const unsigned runs[RUNS])
{
	unsigned middle = median(runs), same = 0;

	for (unsigned i = 0; i < RUNS; i++)
		same += runs[i] == middle;
	return same > RUNS / 2 ? middle : 0;
}

/* ---- parts of the path, on the threads of the server ---- */

struct names {
	struct place *fns, *sites;
	size_t nfns, nsites;
};

static const struct place *fn_of(const struct names *n, const struct edge *e) UNTRACED;
static const struct place *fn_of(const struct names *n, const struct edge *e)
{
	return find(n->fns, n->nfns, e->fn);
}

/* True for a call by a library: libtirpc calls a function of the stream for each word of a message. */
static UNTRACED bool is_library(const struct names *n, const struct edge *e)
{
	return find(n->sites, n->nsites, e->site - 1)->file[0] == '?';
}

/* Names of all functions and sites that are known so far. */
static UNTRACED void names_init(struct names *n, const uint8_t *base)
{
	size_t all = 0;

	n->fns = calloc(EDGES_MAX, sizeof(*n->fns));
	n->sites = calloc(EDGES_MAX, sizeof(*n->sites));
	assert_true(n->fns && n->sites);
	for (size_t i = 0; i < EDGES_MAX; i++) {
		if (!edges[i].fn)
			continue;
		n->fns[all].at = edges[i].fn;
		n->sites[all++].at = edges[i].site - 1;
	}
	n->nfns = sort_unique(n->fns, all);
	n->nsites = sort_unique(n->sites, all);
	find_names(n->fns, n->nfns, base);
	find_names(n->sites, n->nsites, base);
}

static UNTRACED void names_fini(struct names *n)
{
	free(n->fns);
	free(n->sites);
}

struct parts {
	unsigned to_disk[RUNS], to_wire[RUNS];
};

static UNTRACED bool is_server(const struct names *n, unsigned who, unsigned nth)
{
	for (unsigned i = 0; i < nlogged[nth]; i++)
		if (events[nth][i].thread == who && is_in(fn_of(n, events[nth][i].edge), "server/"))
			return true;
	return false;
}

enum part { CALLED, DECODED, ON_DISK, READ, SENT };

static UNTRACED bool is_disk(const char *name)
{
	return !strcmp(name, "__wrap_preadv2") || !strcmp(name, "__wrap_pwritev2");
}

/* Return: the part of the path that begins with @e */
static UNTRACED enum part next_part(enum part at, const struct event *e, const char *name)
{
	if (at == CALLED && e->is_exit && !strcmp(name, "rpcrdma_req_decode"))
		return DECODED;
	if (at == DECODED && !e->is_exit && is_disk(name))
		return ON_DISK;
	if (at == ON_DISK && e->is_exit && is_disk(name))
		return READ;
	if (at == READ && !e->is_exit && (strstr(name, "post_send") || !strcmp(name, "__wrap_sendmsg")))
		return SENT;
	return at;
}

static UNTRACED unsigned disk_thread(const struct names *n, unsigned nth)
{
	for (unsigned i = 0; i < nlogged[nth]; i++)
		if (is_disk(fn_of(n, events[nth][i].edge)->name))
			return events[nth][i].thread;
	return 0;
}

/* Counts the indirect calls from decoded arguments to the disk, and from there to the first message or RDMA Write. If a
 * worker uses the disk, what a reactor began before the worker belongs to the first part. Of what it begins later,
 * only the reply belongs to the path. */
static UNTRACED void count_parts(const struct names *n, struct parts *p, unsigned nth)
{
	struct {
		bool is_server;
		unsigned nested, later; /* calls that have not returned; indirect calls since the first of them */
		bool began_before;
	} threads[THREADS_MAX] = { 0 };
	unsigned disk = disk_thread(n, nth);
	bool disk_began = false;
	enum part at = CALLED;

	assert_true(atomic_load(&nthreads) < THREADS_MAX);
	for (unsigned i = 0; i < THREADS_MAX; i++)
		threads[i].is_server = is_server(n, i, nth);
	p->to_disk[nth] = p->to_wire[nth] = 0;
	for (unsigned i = 0; i < nlogged[nth] && at != SENT; i++) {
		const struct event *e = &events[nth][i];
		bool counts = !e->is_exit && e->edge->indirect && !is_library(n, e->edge);
		unsigned t = e->thread;

		if (!threads[t].is_server)
			continue;
		disk_began |= t == disk;
		if (!e->is_exit && !threads[t].nested++) {
			threads[t].began_before = !disk_began;
			threads[t].later = 0;
		}
		if (t == disk || threads[t].began_before) {
			p->to_disk[nth] += counts && (at == DECODED || (at > DECODED && t != disk));
			p->to_wire[nth] += counts && at == READ && t == disk;
		} else {
			threads[t].later += counts;
		}
		threads[t].nested -= e->is_exit && threads[t].nested;
		at = next_part(at, e, fn_of(n, e->edge)->name);
		if (at == SENT && t != disk)
			p->to_wire[nth] += threads[t].later;
	}
	assert_true(at == SENT);
}

/* ---- the report ---- */

/* True for what a waiting thread does between two looks: it reads the clock, and measures its yields. */
static UNTRACED bool is_wait(const struct place *fn, const struct place *from)
{
	return !strcmp(from->name, "lt_sync_end") ||
	       (!strcmp(from->name, "rpcrdma_engine_wait") && strcmp(fn->name, "rpcrdma_engine_poll") != 0);
}

static UNTRACED bool is_source(const char *file)
{
	size_t n = strlen(file);

	return n > 2 && !strcmp(file + n - 2, ".c") && strncmp(file, "tests/", 6) != 0;
}

static UNTRACED void report(const char *what, const struct names *n, const struct parts *p)
{
	unsigned files = 0, fns = 0, indirect = 0, sites = 0, library = 0, across = 0, across_sites = 0;
	bool *used = calloc(n->nfns, sizeof(*used));

	assert_non_null(used);
	for (size_t i = 0; i < EDGES_MAX; i++) {
		const struct edge *e = &edges[i];
		unsigned count = e->fn ? typical(e->runs) : 0;
		const struct place *fn, *from;

		if (!count)
			continue;
		fn = fn_of(n, e);
		from = find(n->sites, n->nsites, e->site - 1);
		if (!strncmp(fn->name, "__wrap_", 7) || is_wait(fn, from))
			continue;
		used[fn - n->fns] = true;
		if (e->indirect && is_library(n, e)) {
			library += count;
		} else if (e->indirect) {
			indirect += count;
			sites++;
		}
		if (!e->polling && is_in(from, "server/") && is_in(fn, "rpcrdma/") && !strncmp(fn->name, "rpcrdma_", 8)) {
			across += count;
			across_sites++;
		}
		if (getenv("PATH_LIST"))
			printf("  %s%s %3u %s:%s <- %s:%s\n", e->indirect ? "*" : " ", e->polling ? "p" : " ", count,
			       fn->file, fn->name, from->file, from->name);
	}
	for (size_t i = 0; i < n->nfns; i++) {
		bool is_new = used[i] && is_source(n->fns[i].file);

		fns += used[i];
		for (size_t k = 0; is_new && k < i; k++)
			is_new = !used[k] || strcmp(n->fns[k].file, n->fns[i].file) != 0;
		files += is_new;
	}
	printf("%-6s files %u, functions %u, indirect calls %u at %u sites (from decoded to disk %u, from disk to wire %u), "
	       "by the XDR library %u; calls from server/ into rpcrdma/ %u at %u sites\n",
	       what, files, fns, indirect, sites, median(p->to_disk), median(p->to_wire), library, across, across_sites);
	free(used);
}

/* ---- what is recorded ---- */

extern const uint8_t __ehdr_start[] __attribute__((visibility("hidden"))); /* where the program was loaded: by the linker */

static UNTRACED void pause_ms(unsigned ms)
{
	const struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	nanosleep(&t, NULL);
}

static UNTRACED void move(struct leat_file *file, void *buf, bool write)
{
	ssize_t n = write ? leat_pwrite(file, buf, BYTES, 0) : leat_pread(file, buf, BYTES, 0);

	assert_int_equal(n, BYTES);
}

/* Return: false if an edge turned out to be polling, or if polling has filled the log: do it again */
static UNTRACED bool run_once(struct leat_file *file, void *buf, bool write)
{
	unsigned known = atomic_load(&npolling);

	for (size_t i = 0; i < EDGES_MAX; i++)
		atomic_store(&edges[i].count, 0);
	atomic_store(&nevents, 0);
	atomic_fetch_add(&run, 1);
	atomic_store(&phase, COUNT);
	move(file, buf, write);
	pause_ms(quiet_ms);
	atomic_store(&phase, LEARN_POLLING);
	pause_ms(quiet_ms);
	atomic_store(&phase, IGNORE);
	return atomic_load(&npolling) == known && atomic_load(&nevents) < LOG_MAX;
}

static UNTRACED void record(struct leat_file *file, void *buf, bool write)
{
	struct parts parts;
	struct names names;
	unsigned tries = 0;

	for (unsigned i = 0; i < WARM_UPS; i++)
		(void)run_once(file, buf, write);
	for (unsigned i = 0; i < RUNS; i++) {
		nth_run = i;
		while (!run_once(file, buf, write)) {
			nth_run = i = 0; /* what was counted includes polling */
			assert_true(++tries < TRIES_MAX);
		}
		nlogged[i] = nevents;
		for (size_t k = 0; k < EDGES_MAX; k++)
			edges[k].runs[i] = edges[k].count;
	}
	names_init(&names, __ehdr_start);
	for (unsigned i = 0; i < RUNS; i++)
		count_parts(&names, &parts, i);
	report(write ? "WRITE" : "READ", &names, &parts);
	names_fini(&names);
}

/* ---- both ends ---- */

/* A leatd on @listen that polls and has one reactor. */
static UNTRACED struct server *start(const char *dir, char *listen)
{
	static struct conf conf; /* too large for a stack */
	char export[128], state[96], why[CONF_WHY_BYTES] = "";
	char *argv[] = { (char[]){ "leatd" },	  (char[]){ "--export" },   export,
			 (char[]){ "--listen" },  listen,		    (char[]){ "--state-dir" },
			 state,			  (char[]){ "--poll" },	    (char[]){ "busy" },
			 (char[]){ "--reactors" }, (char[]){ "1" },	    NULL };
	struct server *server;

	snprintf(export, sizeof(export), "/x=%s,rw,no_root_squash,clients=10.77.0.0/16,clients=127.0.0.1", dir);
	snprintf(state, sizeof(state), "%s/.state", dir);
	conf_init(&conf);
	if (conf_args(&conf, (int)ARRAY_SIZE(argv) - 1, argv, why) != CONF_RUN || conf_check(&conf, why))
		fail_msg("configuration: %s", why);
	conf.log_level = log_state.level = LOG_LEVEL_ERR;
	assert_int_equal(server_start(&conf, &server), 0);
	conf_fini(&conf);
	return server;
}

int main(int argc, char **argv)
{
	const char *fabric = argc > 1 ? argv[1] : "local";
	char dir[] = "/tmp/leat-path.XXXXXX", listen[160], url[192];
	struct server *server;
	struct leat_file *file;
	struct leat *m;
	void *buf = malloc(BYTES);

	assert_non_null(mkdtemp(dir));
	if (!strcmp(fabric, "local"))
		snprintf(listen, sizeof(listen), "local://%s/sock", dir);
	else if (!strcmp(fabric, "tcp"))
		snprintf(listen, sizeof(listen), "tcp://127.0.0.1:0");
	else
		snprintf(listen, sizeof(listen), "rdma://%s:20049", argc > 2 ? argv[2] : "10.77.0.1");
	if (!strcmp(fabric, "rdma"))
		quiet_ms = QUIET_MS * 10;
	server = start(dir, listen);
	if (!strcmp(fabric, "tcp"))
		snprintf(listen, sizeof(listen), "tcp://127.0.0.1:%u", server_listener(server, 0)->port);
	snprintf(url, sizeof(url), "%s/x?poll=busy", listen);
	if (leat_mount(url, NULL, &m))
		fail_msg("%s: %s", url, leat_error(NULL));
	memset(buf, 'x', BYTES);
	assert_int_equal(leat_open(m, "/file", O_RDWR | O_CREAT, 0644, &file), 0);
	printf("%s\n", fabric);
	record(file, buf, true);
	record(file, buf, false);
	assert_int_equal(leat_close(file), 0);
	leat_umount(m);
	assert_int_equal(server_stop(server, 20000), 0);
	leat_flow_remove(dir);
	free(buf);
	return 0;
}
