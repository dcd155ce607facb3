/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * rpcrdma_info.c - rpcrdma-info: the programs that answer at a URL, their versions, the transport, the time of a NULL call
 *
 * Operation:  A NULL call of a version that no program has gets PROG_MISMATCH, with the versions that there are, from a
 *             program that is served, and PROG_UNAVAIL from one that is not. Then it makes NULL calls of each version.
 * Memory:     The round-trip times.
 * Threads:    One.
 * Errors:     Status 1: no connection, or no program answers; 2: usage.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "rpcrdma.h"

#define NO_VERSION UINT32_MAX /* of no program */
#define VERSIONS_MAX 32u      /* of one program: what a peer claims can be 2^32 */
#define PROGS_MAX 16
#define CALLS_MAX 1000000ul

#define MS_PER_S 1000u
#define CALL_SECONDS 10u

struct info {
	struct rpcrdma_clnt *clnt;
	unsigned long calls;    /* of each version, timed */
	uint64_t *ns;
	unsigned found;         /* programs */
};

struct prog {
	uint32_t number;
	const char *name;       /* of /etc/rpc; NULL: none */
};

static int null_call(struct info *in, uint32_t prog, uint32_t vers, struct rpcrdma_status *ret, const char **ret_why)
{
	struct rpcrdma_call call = {
		.prog = prog, .vers = vers, .deadline_ms = CALL_SECONDS * MS_PER_S, .no_resend = true, .status = ret,
	};
	int rc;

	*ret = (struct rpcrdma_status){ .reply_stat = UINT32_MAX };
	rc = rpcrdma_clnt_call_wait(in->clnt, &call);
	*ret_why = call.why;
	return rc;
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Return: 0; -errno: of a NULL call, or of its reply. */
static int time_calls(struct info *in, uint32_t prog, uint32_t vers, const char **ret_why)
{
	struct rpcrdma_status status;
	int rc = 0;

	for (unsigned long i = 0; i < in->calls && !rc; i++) {
		uint64_t start = clock_now_ns();

		rc = null_call(in, prog, vers, &status, ret_why);
		in->ns[i] = clock_now_ns() - start;
	}
	qsort(in->ns, in->calls, sizeof(in->ns[0]), compare_times);
	return rc;
}

static double us(uint64_t ns)
{
	return (double)ns / 1000;
}

static void print_version(struct info *in, const struct prog *p, uint32_t vers)
{
	const char *why = NULL;
	int rc = time_calls(in, p->number, vers, &why);

	printf("%10" PRIu32 " %4" PRIu32 "  %-16s ", p->number, vers, p->name ? p->name : "-");
	if (rc)
		printf("%s\n", why ? why : strerror(-rc));
	else
		printf("%.1f us, 99%% within %.1f us\n", us(in->ns[in->calls / 2]), us(in->ns[in->calls * 99 / 100]));
}

/* Return: 0; -errno: the server does not answer. */
static int show_program(struct info *in, const struct prog *p, bool wanted, const char **ret_why)
{
	struct rpcrdma_status s;
	int rc = null_call(in, p->number, NO_VERSION, &s, ret_why);

	if (rc && s.reply_stat == UINT32_MAX)
		return rc;
	if (s.reply_stat == 0 && s.stat == RPCRDMA_PROG_UNAVAIL) {
		if (wanted)
			printf("%10" PRIu32 "    -  %-16s not served\n", p->number, p->name ? p->name : "-");
		return 0;
	}
	in->found++;
	if (s.reply_stat != 0 || s.stat != RPCRDMA_PROG_MISMATCH || s.low > s.high) {
		printf("%10" PRIu32 "    ?  %-16s %s\n", p->number, p->name ? p->name : "-",
		       rc ? *ret_why : "accepts any version");
		return 0;
	}
	for (uint32_t v = s.low, n = 0; n < VERSIONS_MAX; v++, n++) {
		print_version(in, p, v);
		if (v == s.high)
			return 0;
	}
	printf("%10" PRIu32 "  ...  versions up to %" PRIu32 "\n", p->number, s.high);
	return 0;
}

static void print_transport(struct info *in)
{
	static const char *const reach[] = {
		[RPCRDMA_REACH_NONE] = "not connected",
		[RPCRDMA_REACH_DEVICE] = "by the device",
		[RPCRDMA_REACH_PROCESS_VM] = "shared memory directly, other memory by the kernel",
		[RPCRDMA_REACH_BOUNCE] = "shared memory directly, other memory by a bounce area",
		[RPCRDMA_REACH_SOCKET] = "by copies through the socket",
	};
	struct rpcrdma_clnt_info info;

	rpcrdma_clnt_info(in->clnt, &info);
	printf("transport   %s", rpcrdma_transport_name(info.addr.transport));
	if (info.device[0] && strcmp(info.device, rpcrdma_transport_name(info.addr.transport)) != 0)
		printf(" (%s)", info.device);
	printf("\ncredits     %u\n", info.credits);
	if (info.addr.transport != RPCRDMA_TCP)
		printf("inline      %u bytes to the server, %u from it\n", info.send_inline, info.recv_inline);
	printf("bulk data   %s\n", (size_t)info.reach < ARRAY_SIZE(reach) ? reach[info.reach] : "?");
}

/* ---- which programs ---- */

/* The name is static memory of libc, or of the command line. */
static int find_program(const char *text, struct prog *ret)
{
	const struct rpcent *e = NULL;
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 0);
	if (text[0] >= '0' && text[0] <= '9' && !*end && !errno && n <= UINT32_MAX) {
		*ret = (struct prog){ .number = (uint32_t)n };
		return 0;
	}
	e = getrpcbyname(text);
	if (!e)
		return -ENOENT;
	*ret = (struct prog){ .number = (uint32_t)e->r_number, .name = text };
	return 0;
}

static int show_listed(struct info *in, const char **ret_why)
{
	const struct rpcent *e;
	int rc = 0;

	setrpcent(1);
	while (!rc && (e = getrpcent())) {
		const struct prog p = { .number = (uint32_t)e->r_number, .name = e->r_name };

		rc = show_program(in, &p, false, ret_why);
	}
	endrpcent();
	return rc;
}

static int show(struct info *in, const struct prog *progs, int n, const char **ret_why)
{
	struct rpcrdma_status s;
	const char *why = NULL;
	int rc = null_call(in, n ? progs[0].number : 0, NO_VERSION, &s, &why); /* connects */

	*ret_why = why;
	if (rc && s.reply_stat == UINT32_MAX)
		return rc;
	print_transport(in);
	printf("   program vers  name             NULL call\n");
	if (!n)
		return show_listed(in, ret_why);
	rc = 0;
	for (int i = 0; i < n && !rc; i++)
		rc = show_program(in, &progs[i], true, ret_why);
	return rc;
}

static int run(const char *url, const struct rpcrdma_addr *addr, struct info *in, const struct prog *progs, int n)
{
	const struct rpcrdma_clnt_attr attr = {
		.size = sizeof(attr), .addr = *addr, .cred = { .none = true }, .connect_ms = CALL_SECONDS * MS_PER_S,
	};
	struct rpcrdma_engine *e = NULL;
	const char *why = NULL;
	int rc = rpcrdma_engine_create(NULL, NULL, &e);

	if (!rc)
		rc = rpcrdma_clnt_open(e, &attr, &in->clnt);
	if (!rc)
		rc = show(in, progs, n, &why);
	if (rc && why && !strncmp(why, url, strlen(url))) /* it begins with the URL where the connection failed */
		fprintf(stderr, "rpcrdma-info: %s\n", why);
	else if (rc)
		fprintf(stderr, "rpcrdma-info: %s: %s\n", url, why ? why : strerror(-rc));
	else if (!in->found)
		fprintf(stderr, "rpcrdma-info: %s: none of %s answers\n", url,
			n ? "these programs" : "the programs in /etc/rpc (see -p)");
	fflush(stdout);
	rpcrdma_clnt_destroy(in->clnt);
	rpcrdma_engine_destroy(e);
	return rc || !in->found;
}

static int usage(FILE *f)
{
	fprintf(f, "usage: rpcrdma-info URL [-p PROGRAM]... [-n CALLS]\n"
		   "  URL          rdma://HOST[:PORT], tcp://HOST[:PORT] or local:///PATH\n"
		   "  -p PROGRAM   a number, or a name of /etc/rpc; without it, all programs of /etc/rpc\n"
		   "  -n CALLS     NULL calls of each version, 1 to %lu; 100 if not given\n", CALLS_MAX);
	return f == stdout ? 0 : 2;
}

static int bad(const char *text, const char *what)
{
	fprintf(stderr, "rpcrdma-info: %s: %s\n", text, what);
	return 2;
}

int main(int argc, char **argv)
{
	struct info in = { .calls = 100 };
	struct prog progs[PROGS_MAX];
	struct rpcrdma_addr addr;
	int c, n = 0, rc;
	char *end;

	while ((c = getopt(argc, argv, "p:n:h")) != -1) {
		switch (c) {
		case 'p':
			if (n == PROGS_MAX)
				return bad(optarg, "too many programs");
			if (find_program(optarg, &progs[n++]))
				return bad(optarg, "neither a number nor a name in /etc/rpc");
			break;
		case 'n':
			in.calls = strtoul(optarg, &end, 10);
			if (*end || in.calls < 1 || in.calls > CALLS_MAX)
				return bad(optarg, "not a number of calls");
			break;
		case 'h':
			return usage(stdout);
		default:
			return usage(stderr);
		}
	}
	if (optind != argc - 1)
		return usage(stderr);
	rc = rpcrdma_addr_parse(argv[optind], &addr);
	if (rc)
		return bad(argv[optind], strerror(-rc));
	in.ns = calloc(in.calls, sizeof(in.ns[0]));
	if (!in.ns)
		return bad(argv[optind], strerror(ENOMEM));
	rc = run(argv[optind], &addr, &in, progs, n);
	free(in.ns);
	return rc;
}
