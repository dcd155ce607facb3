/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * account.c - clients of the responder, and the resources that each one holds
 *
 * Operation, memory, threads, errors: account.h
 */
#include "account.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/wire.h"

/* ---- identity ---- */

static void id_of_ipv4(uint32_t addr, struct rpcrdma_client_id *ret)
{
	if (addr >> 24 == 127) {
		ret->kind = RPCRDMA_CLIENT_LOOPBACK;
	} else {
		ret->kind = RPCRDMA_CLIENT_IPV4;
		ret->key = addr;
	}
}

static void id_of_ipv6(const struct sockaddr_in6 *in6, struct rpcrdma_client_id *ret)
{
	if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
		id_of_ipv4(get_be32(in6->sin6_addr.s6_addr + 12), ret);
		return;
	}
	if (IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr)) {
		ret->kind = RPCRDMA_CLIENT_LOOPBACK;
		return;
	}
	ret->kind = RPCRDMA_CLIENT_IPV6;
	ret->key = get_be64(in6->sin6_addr.s6_addr);
	if (IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
		ret->scope = in6->sin6_scope_id;
}

void rpcrdma_client_id_of(const struct rpcrdma_peer *peer, struct rpcrdma_client_id *ret)
{
	*ret = (struct rpcrdma_client_id){ .kind = RPCRDMA_CLIENT_UNKNOWN };
	if (peer->transport == RPCRDMA_LOCAL) {
		if (peer->has_cred) {
			ret->kind = RPCRDMA_CLIENT_USER;
			ret->key = peer->uid;
		}
	} else if (peer->addr.ss_family == AF_INET) {
		id_of_ipv4(ntohl(((const struct sockaddr_in *)&peer->addr)->sin_addr.s_addr), ret);
	} else if (peer->addr.ss_family == AF_INET6) {
		id_of_ipv6((const struct sockaddr_in6 *)&peer->addr, ret);
	}
}

char *rpcrdma_client_id_print(const struct rpcrdma_client_id *id, char *buf, size_t cap)
{
	char text[INET6_ADDRSTRLEN] = "?";

	switch (id->kind) {
	case RPCRDMA_CLIENT_USER:
		snprintf(buf, cap, "uid %u", (unsigned)id->key);
		break;
	case RPCRDMA_CLIENT_LOOPBACK:
		snprintf(buf, cap, "loopback");
		break;
	case RPCRDMA_CLIENT_IPV4: {
		struct in_addr in = { .s_addr = htonl((uint32_t)id->key) };

		inet_ntop(AF_INET, &in, text, sizeof(text));
		snprintf(buf, cap, "%s", text);
		break;
	}
	case RPCRDMA_CLIENT_IPV6: {
		struct in6_addr in6 = { 0 };

		put_be64(in6.s6_addr, id->key);
		inet_ntop(AF_INET6, &in6, text, sizeof(text));
		if (id->scope)
			snprintf(buf, cap, "%s%%%u/64", text, id->scope);
		else
			snprintf(buf, cap, "%s/64", text);
		break;
	}
	default:
		snprintf(buf, cap, "unknown");
	}
	return buf;
}

/* ---- clients ---- */

static int compare(const void *a, const void *b)
{
	const struct rr_client *x = a, *y = b;

	return memcmp(&x->id, &y->id, sizeof(x->id));
}

void rr_clients_init(struct rr_clients *all)
{
	memset(all, 0, sizeof(*all));
	pthread_mutex_init(&all->lock, NULL);
	list_init(&all->list);
	for (unsigned i = 0; i < RR_SHARES; i++) {
		all->budgets[i].max = SIZE_MAX;
		all->budgets[i].factor = 1;
	}
}

void rr_clients_fini(struct rr_clients *all)
{
	pthread_mutex_destroy(&all->lock);
}

int rr_client_get(struct rr_clients *all, const struct rpcrdma_client_id *id, struct rr_client **ret)
{
	struct rr_client key = { .id = *id }, *c = NULL, **found;

	pthread_mutex_lock(&all->lock);
	found = tfind(&key, &all->tree, compare);
	if (found) {
		c = *found;
		c->refs++;
	} else {
		c = calloc(1, sizeof(*c));
		if (c) {
			c->id = *id;
			c->all = all;
			c->refs = 1;
			list_init(&c->conns);
			list_init(&c->link);
			for (unsigned i = 0; i < RR_SHARES; i++)
				list_init(&c->lines[i].waiters);
			if (tsearch(c, &all->tree, compare)) {
				list_add_tail(&all->list, &c->link);
				atomic_fetch_add_explicit(&all->n, 1, memory_order_relaxed);
			} else {
				free(c);
				c = NULL;
			}
		}
	}
	pthread_mutex_unlock(&all->lock);
	if (!c)
		return -ENOMEM;
	*ret = c;
	return 0;
}

void rr_client_hold(struct rr_client *c)
{
	pthread_mutex_lock(&c->all->lock);
	c->refs++;
	pthread_mutex_unlock(&c->all->lock);
}

void rr_client_put(struct rr_client *c)
{
	struct rr_clients *all;
	bool last;

	if (!c)
		return;
	all = c->all;
	pthread_mutex_lock(&all->lock);
	last = --c->refs == 0;
	if (last) {
		(void)tdelete(c, &all->tree, compare);
		list_del(&c->link);
		atomic_fetch_sub_explicit(&all->n, 1, memory_order_relaxed);
	}
	pthread_mutex_unlock(&all->lock);
	if (last)
		free(c);
}

/* ---- connections ---- */

void rr_client_conn_add(struct rr_client *c, struct rr_client_conn *conn)
{
	pthread_mutex_lock(&c->all->lock);
	list_add_tail(&c->conns, &conn->link);
	pthread_mutex_unlock(&c->all->lock);
}

bool rr_client_conn_del(struct rr_client *c, struct rr_client_conn *conn)
{
	bool out;

	pthread_mutex_lock(&c->all->lock);
	out = conn->msg_out;
	if (!out)
		list_del(&conn->link);
	pthread_mutex_unlock(&c->all->lock);
	return !out;
}

void rr_client_conn_told(struct rr_client *c, struct rr_client_conn *conn)
{
	pthread_mutex_lock(&c->all->lock);
	conn->msg_out = false;
	pthread_mutex_unlock(&c->all->lock);
}

void rr_client_conn_left(struct rr_client *c, bool going)
{
	pthread_mutex_lock(&c->all->lock);
	c->going -= going;
	rr_client_uncharge(c, RR_SHARE_CONNS, 1);
	pthread_mutex_unlock(&c->all->lock);
}

static struct rr_client *most_over(const struct rr_clients *all)
{
	size_t most = rr_client_fair(all, RR_SHARE_CONNS);
	struct rr_client *found = NULL;

	list_for_each(n, &all->list) {
		struct rr_client *c = list_entry(n, struct rr_client, link);
		size_t used = rr_client_used(c, RR_SHARE_CONNS);

		used -= MIN(used, (size_t)c->going);
		if (used > most) {
			most = used;
			found = c;
		}
	}
	return found;
}

struct rr_client_conn *rr_client_idlest(struct rr_clients *all)
{
	struct rr_client_conn *found = NULL;
	uint64_t heard, least = UINT64_MAX;
	struct rr_client *c;

	pthread_mutex_lock(&all->lock);
	c = most_over(all);
	for (struct list *n = c ? c->conns.next : NULL; c && n != &c->conns; n = n->next) {
		struct rr_client_conn *conn = list_entry(n, struct rr_client_conn, link);

		heard = atomic_load_explicit(&conn->heard_ns, memory_order_relaxed);
		if (!conn->going && heard < least) {
			least = heard;
			found = conn;
		}
	}
	if (found) {
		found->going = found->msg_out = true;
		c->going++;
	}
	pthread_mutex_unlock(&all->lock);
	return found;
}

/* ---- shares ---- */

/* For budgets with a reserve: number of clients that find room in it, each for at least the initial needs of a
 * connection with messages of 4 KiB. */
#define LATE_CLIENTS 8u
#define LITTLE_LEAST ((size_t)64 << 10)

/* Snapshot of a budget for a client that holds @mine of it. The client may hold @limit. All clients together
 * may take @left, of which @kept is reserved for clients that hold at most @little. */
struct view {
	size_t left, kept, mine, limit, little;
};

static struct view view_of(const struct rr_budget *b, size_t all, size_t mine)
{
	struct view v = { .mine = mine };
	size_t gone, rest;

	if (__builtin_add_overflow(all, atomic_load_explicit(&b->idle, memory_order_relaxed), &gone))
		gone = SIZE_MAX;
	v.left = b->max - MIN(gone, b->max);
	if (b->kept) {
		v.kept = b->max / b->kept;
		v.little = MAX(v.kept / LATE_CLIENTS, LITTLE_LEAST);
	}
	rest = b->even ? v.left - MIN(v.kept, v.left) : v.left;
	if (__builtin_mul_overflow(rest, (size_t)b->factor, &v.limit))
		v.limit = SIZE_MAX;
	return v;
}

static struct view view_now(const struct rr_client *c, enum rr_share share)
{
	const struct rr_budget *b = &c->all->budgets[share];

	return view_of(b, atomic_load_explicit(&b->used, memory_order_relaxed), rr_client_used(c, share));
}

/* upper bound of what the client may take */
static size_t room_of(const struct view *v)
{
	size_t room = MIN(v->limit - MIN(v->mine, v->limit), v->left - MIN(v->kept, v->left));
	size_t little = MIN(v->little - MIN(v->mine, v->little), v->left);

	return MAX(room, little);
}

/* Does @amount fit when all clients together hold @all and this one @mine? */
static bool has_room(const struct rr_budget *b, size_t all, size_t mine, size_t amount)
{
	struct view v = view_of(b, all, mine);

	return amount <= room_of(&v);
}

bool rr_client_fits(const struct rr_client *c, enum rr_share share, size_t amount)
{
	struct view v = view_now(c, share);

	return !v.mine || amount <= room_of(&v);
}

bool rr_client_leaves(const struct rr_client *c, enum rr_share share, size_t amount)
{
	const struct rr_budget *b = &c->all->budgets[share];
	size_t all = atomic_load_explicit(&b->used, memory_order_relaxed);

	if (all > b->max || amount > b->max - all)
		return false;
	return has_room(b, all + amount, rr_client_used(c, share) + amount, amount);
}

size_t rr_client_room(const struct rr_client *c, enum rr_share share, unsigned times)
{
	struct view v = view_now(c, share);
	size_t room;

	return __builtin_mul_overflow(room_of(&v), (size_t)times, &room) ? SIZE_MAX : room;
}

void rr_client_add(struct rr_client *c, enum rr_share share, size_t amount)
{
	atomic_fetch_add_explicit(&c->all->budgets[share].used, amount, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->used[share], amount, memory_order_relaxed);
}

/* A sum is raised only after the amount fits, so a refused charge does not make another one fail. If the rest
 * of the budget is taken meanwhile, the first sum is lowered again. Each of several racing threads may exceed
 * the client's share by one amount. No charge exceeds the budget. But pool.c adds the segments of receives to the
 * budget of messages without a charge, so a segment may exceed it. The budget is read first, and ordered after
 * queueing: see rr_client_uncharge(). */
int rr_client_charge(struct rr_client *c, enum rr_share share, size_t amount)
{
	struct rr_budget *b = &c->all->budgets[share];
	size_t all, mine;

	do {
		all = atomic_load(&b->used);
		mine = rr_client_used(c, share);
		if (!has_room(b, all, mine, amount))
			return -ENOBUFS;
	} while (!atomic_compare_exchange_weak_explicit(&c->used[share], &mine, mine + amount,
							memory_order_relaxed, memory_order_relaxed));
	while (!atomic_compare_exchange_weak_explicit(&b->used, &all, all + amount, memory_order_relaxed,
						      memory_order_relaxed)) {
		if (!has_room(b, all, mine, amount)) {
			atomic_fetch_sub_explicit(&c->used[share], amount, memory_order_relaxed);
			return -ENOBUFS;
		}
	}
	return 0;
}

/* ordered before a check of the queue: see rr_client_wait() */
void rr_client_uncharge(struct rr_client *c, enum rr_share share, size_t amount)
{
	atomic_fetch_sub_explicit(&c->used[share], amount, memory_order_relaxed);
	atomic_fetch_sub(&c->all->budgets[share].used, amount);
}

void rr_client_wait(struct rr_client *c, enum rr_share share, struct rr_client_waiter *w, bool first)
{
	struct rr_client_line *line = &c->lines[share];

	pthread_mutex_lock(&c->all->lock);
	if (first)
		list_add_head(&line->waiters, &w->link);
	else
		list_add_tail(&line->waiters, &w->link);
	atomic_fetch_add(&line->n, 1);
	pthread_mutex_unlock(&c->all->lock);
}

void rr_client_begin_turn(struct rr_client *c, enum rr_share share)
{
	atomic_fetch_add(&c->lines[share].turns, 1);
	atomic_fetch_add(&c->lines[share].n, 1);
}

void rr_client_end_turn(struct rr_client *c, enum rr_share share)
{
	atomic_fetch_sub(&c->lines[share].turns, 1);
	atomic_fetch_sub(&c->lines[share].n, 1);
}

struct rr_client_waiter *rr_client_next(struct rr_client *c, enum rr_share share)
{
	struct rr_client_line *line = &c->lines[share];
	struct list *n;

	pthread_mutex_lock(&c->all->lock);
	n = list_pop(&line->waiters);
	if (n)
		atomic_fetch_add(&line->turns, 1);
	pthread_mutex_unlock(&c->all->lock);
	return n ? list_entry(n, struct rr_client_waiter, link) : NULL;
}

size_t rr_client_fair(const struct rr_clients *all, enum rr_share share)
{
	unsigned n = atomic_load_explicit(&all->n, memory_order_relaxed);

	return MAX(all->budgets[share].max / MAX(n, 1u), (size_t)1);
}
