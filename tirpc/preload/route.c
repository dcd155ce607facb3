/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * route.c - where the calls of a program go, and where its services also listen
 *
 * Operation:  A line of the map that has the program, and the host by its name or one of its addresses, names the URL.
 *             Without one, and with an RDMA device, the rpcbind of the host is asked for the netid rdma. A program that
 *             is not registered there is not looked for again for a minute.
 * Memory:     The map lives as long as the process.
 * Threads:    Any. Addresses of the map and what rpcbind did not know have a lock. Libraries that look up names may call
 *             RPC programs themselves (NIS): such calls are nested, and go the original way without this lock.
 * Errors:     Each leads to the original way. A map or a setting that cannot be used is reported once.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>

#include "base/clock.h"
#include "base/text.h"
#include "route.h"
#include "tally.h"

#define RPCBIND 100000u
#define MISSES 64 /* kept */
#define MISS_NS (60 * NS_PER_S)
#define RPCBIND_LIMIT_S 3

static struct rt_map map;
static struct rt_urls urls;
static struct rt_table service_table;
static struct rpcrdma_tirpc_attr service_attr = { .size = sizeof(service_attr) };
static size_t max_bytes;
static bool asks_rpcbind;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rt_host_addrs *addrs; /* of the hosts of the map, by its lines */
static struct miss {
	char host[RT_HOST_BYTES];
	uint32_t prog;
	uint64_t until_ns;
} misses[MISSES];
static size_t next_miss;

static _Thread_local unsigned inside;

bool rt_enter(void)
{
	if (inside)
		return false;
	inside = 1;
	return true;
}

void rt_leave(void)
{
	inside = 0;
}

static void complain(const char *what, const char *why)
{
	(void)fprintf(stderr, "rpcrdma-run: %s: %s\n", what, why);
}

static bool has_device(void)
{
	DIR *dir = opendir("/sys/class/infiniband");
	const struct dirent *d;
	bool found = false;

	if (!dir)
		return false;
	while (!found && (d = readdir(dir)))
		found = d->d_name[0] != '.';
	closedir(dir);
	return found;
}

static void lock_it(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_it(void)
{
	pthread_mutex_unlock(&lock);
}

void rt_route_init(void)
{
	const char *text;
	char why[RT_WHY_BYTES];

	if ((text = secure_getenv(RT_ENV_MAP)) && rt_map_load(text, &map, why))
		complain("the map is not used", why);
	if (map.n && !(addrs = calloc(map.n, sizeof(*addrs))))
		rt_map_fini(&map);
	if ((text = secure_getenv(RT_ENV_URLS)) && rt_urls_parse(text, &urls, why))
		complain(RT_ENV_URLS " is not used", why);
	if ((text = secure_getenv(RT_ENV_MAX)) && rt_max_parse(text, &max_bytes, why))
		complain(RT_ENV_MAX " is not used", why);
	if ((text = secure_getenv(RT_ENV_TABLE)) && rt_table_load(text, &service_table, why))
		complain("the table is not used", why);
	service_attr.max_bytes = max_bytes;
	service_attr.bulk = service_table.v;
	service_attr.nbulk = service_table.n;
	asks_rpcbind = !getauxval(AT_SECURE) && has_device();
	pthread_atfork(lock_it, unlock_it, unlock_it);
}

const struct rt_urls *rt_route_urls(void)
{
	return &urls;
}

const struct rpcrdma_tirpc_attr *rt_route_attr(void)
{
	return &service_attr;
}

static bool is_in_map(uint32_t prog)
{
	for (size_t i = 0; i < map.n; i++)
		if (map.v[i].prog == prog)
			return true;
	return false;
}

bool rt_route_concerns(uint32_t prog)
{
	/* libtirpc looks up each program of each handle in rpcbind: those calls are not worth a lookup, or a report */
	return is_in_map(prog) || (prog != RPCBIND && (asks_rpcbind || rt_tally_is_on()));
}

static void take_line(size_t i, const char *host, struct rt_way *ret)
{
	const struct rt_route *r = &map.v[i];
	const struct rt_table *t = r->table ? &map.tables[r->table - 1] : NULL;

	*ret = (struct rt_way){
		.attr = { .size = sizeof(ret->attr), .max_bytes = r->max_bytes ? r->max_bytes : max_bytes },
	};
	if (t) {
		ret->attr.bulk = t->v;
		ret->attr.nbulk = t->n;
	}
	(void)snprintf(ret->host, sizeof(ret->host), "%s", host);
	(void)snprintf(ret->url, sizeof(ret->url), "%s", r->url);
}

/* Finds the line that has one of the addresses. With @lock. Return: its index, or map.n. */
static size_t find_line(uint32_t prog, const struct rt_host_addrs *of)
{
	size_t i, j;

	for (i = 0; i < map.n; i++) {
		if (map.v[i].prog != prog || !rt_host_resolve(map.v[i].host, &addrs[i]))
			continue;
		for (j = 0; j < of->n; j++)
			if (rt_host_has(&addrs[i], &of->v[j]))
				return i;
	}
	return i;
}

static bool was_missed(const char *host, uint32_t prog)
{
	uint64_t now = clock_now_ns();
	bool found = false;

	lock_it();
	for (size_t i = 0; i < MISSES && !found; i++)
		found = misses[i].until_ns > now && misses[i].prog == prog && !strcmp(misses[i].host, host);
	unlock_it();
	return found;
}

static void add_miss(const char *host, uint32_t prog)
{
	lock_it();
	(void)snprintf(misses[next_miss].host, RT_HOST_BYTES, "%s", host);
	misses[next_miss].prog = prog;
	misses[next_miss].until_ns = clock_now_ns() + MISS_NS;
	next_miss = (next_miss + 1) % MISSES;
	unlock_it();
}

/* @host: a name or an address. A device does not reach the loopback addresses, nor link-local ones without a scope. */
static bool take_rpcbind(const char *host, uint32_t prog, struct rt_way *ret)
{
	bool is_v6 = strchr(host, ':');

	if (!asks_rpcbind || prog == RPCBIND || strlen(host) > RT_HOST_BYTES - 16 || strpbrk(host, "/[]") ||
	    !strcasecmp(host, "localhost") || !strncmp(host, "127.", 4) || !strcmp(host, "::1") ||
	    !strncasecmp(host, "fe80:", 5) || was_missed(host, prog))
		return false;
	*ret = (struct rt_way){
		.attr = { .size = sizeof(ret->attr), .max_bytes = max_bytes },
		.limit = { .tv_sec = RPCBIND_LIMIT_S },
	};
	(void)snprintf(ret->host, sizeof(ret->host), "%s", host);
	(void)snprintf(ret->url, sizeof(ret->url), is_v6 ? "rdma://[%s]" : "rdma://%s", host);
	return true;
}

bool rt_route_by_name(const char *host, uint32_t prog, struct rt_way *ret)
{
	struct rt_host_addrs of = { .n = 0 };
	size_t i;

	for (i = 0; i < map.n; i++)
		if (map.v[i].prog == prog && !strcasecmp(map.v[i].host, host)) {
			take_line(i, host, ret);
			return true;
		}
	if (is_in_map(prog) && rt_host_resolve(host, &of)) {
		lock_it();
		i = find_line(prog, &of);
		unlock_it();
		if (i < map.n) {
			take_line(i, host, ret);
			return true;
		}
	}
	return take_rpcbind(host, prog, ret);
}

bool rt_route_by_addr(const struct rt_ip *ip, uint32_t prog, struct rt_way *ret)
{
	const struct rt_host_addrs of = { .v = { *ip }, .n = 1 };
	char host[64];
	size_t i = map.n;

	rt_ip_print(ip, host);
	if (is_in_map(prog)) {
		lock_it();
		i = find_line(prog, &of);
		unlock_it();
	}
	if (i < map.n) {
		take_line(i, host, ret);
		return true;
	}
	return take_rpcbind(host, prog, ret);
}

CLIENT *rt_route_open(const struct rt_way *way, uint32_t prog, uint32_t vers, const struct timeval *limit)
{
	bool has_limit = limit && (limit->tv_sec || limit->tv_usec);
	bool is_asked = way->limit.tv_sec; /* of rpcbind */
	CLIENT *clnt;
	char why[128];

	if (is_asked && (!has_limit || limit->tv_sec >= way->limit.tv_sec))
		limit = &way->limit;
	clnt = rpcrdma_clnt_create_timed(way->url, prog, vers, &way->attr, has_limit || is_asked ? limit : NULL);
	if (clnt)
		return clnt;
	if (is_asked) {
		add_miss(way->host, prog);
		return NULL;
	}
	(void)snprintf(why, sizeof(why), "%s", clnt_spcreateerror("no handle"));
	rt_tally_refuse(rt_tally_get(way->host, prog, vers, way->url), why);
	return NULL;
}
