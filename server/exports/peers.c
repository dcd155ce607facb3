/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * peers.c - which peers may use an export or a volume: networks, and ports
 *
 * Operation: An IPv4 peer of an IPv6 socket is an IPv4 peer. Without networks, peers on this host are admitted.
 * Memory:    Plain data of the caller's.
 * Threads:   Any.
 * Errors:    A text for the user.
 */
#include "peers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/opt.h"

int peer_net_parse(const char *text, struct peer_net *ret)
{
	struct peer_net c = { .family = AF_INET };
	char host[INET6_ADDRSTRLEN + 1];
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : strlen(text);
	unsigned max;

	if (!n || n >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, n);
	host[n] = '\0';
	if (inet_pton(AF_INET, host, c.addr) != 1) {
		c.family = AF_INET6;
		if (inet_pton(AF_INET6, host, c.addr) != 1)
			return -EINVAL;
	}
	max = c.family == AF_INET ? 32 : 128;
	c.bits = max;
	if (slash) {
		char *end;
		unsigned long bits;

		if (slash[1] < '0' || slash[1] > '9')
			return -EINVAL;
		errno = 0;
		bits = strtoul(slash + 1, &end, 10);
		if (errno || *end || bits > max)
			return -EINVAL;
		c.bits = (unsigned)bits;
	}
	*ret = c;
	return 0;
}

int peers_add(struct peers *p, const char *value, const char *key, char *why, size_t why_bytes)
{
	char *copy = strdup(value ? value : ""), *save = NULL;
	size_t before = p->n;
	int err = 0;

	if (!copy)
		return -ENOMEM;
	for (char *t = strtok_r(copy, ", \t", &save); t && !err;
	     t = strtok_r(NULL, ", \t", &save)) {
		if (p->n == PEERS_MAX)
			err = opt_fail(-E2BIG, why, why_bytes, "%s: more than %d networks", key, PEERS_MAX);
		else if (peer_net_parse(t, &p->nets[p->n]))
			err = opt_fail(-EINVAL, why, why_bytes, "'%s' is not an address or network", t);
		else
			p->n++;
	}
	free(copy);
	if (!err && p->n == before)
		err = opt_fail(-EINVAL, why, why_bytes, "%s: no address or network given", key);
	return err;
}

static int add_clients(const struct opt *o, void *to, const char *value, char *why, size_t why_bytes)
{
	return peers_add(to, value, o->name, why, why_bytes);
}

#define GIVEN_SECURE 1u

static const struct opt opts[] = {
	{ "secure", NULL, NULL, "over TCP only from ports below 1024 (default if run by root)", NULL, OPT_FLAG, 0,
	  OPT_AT(struct peers, secure), .max = true, .given = GIVEN_SECURE },
	{ "insecure", NULL, NULL, "from any port (default if not run by root)", NULL, OPT_FLAG, 0,
	  OPT_AT(struct peers, secure), .min = true, .given = GIVEN_SECURE },
	{ "clients", "CIDR", NULL, "networks that may use it, several with commas; without it this host only", NULL,
	  OPT_OTHER, .set = add_clients },
};

void peers_init(struct peers *p)
{
	memset(p, 0, sizeof(*p));
	p->secure = geteuid() == 0;
}

int peers_option(struct peers *p, const char *key, const char *value, char *why, size_t why_bytes)
{
	const struct opt *o = opt_find(opts, ARRAY_SIZE(opts), key);

	return o ? opt_set_once(o, p, &p->given, value, why, why_bytes) : -ENOENT;
}

const struct opt *peers_opts(size_t *ret_n)
{
	*ret_n = ARRAY_SIZE(opts);
	return opts;
}

bool peers_same(const struct peers *a, const struct peers *b)
{
	return a->secure == b->secure && a->n == b->n && !memcmp(a->nets, b->nets, a->n * sizeof(a->nets[0]));
}

/* Normalizes the address: an IPv4 peer of an IPv6 socket is an IPv4 peer. */
static bool peer_bytes(const struct sockaddr *sa, int *ret_family, uint8_t ret[16])
{
	if (sa->sa_family == AF_INET) {
		struct sockaddr_in in;

		memcpy(&in, sa, sizeof(in));
		*ret_family = AF_INET;
		memcpy(ret, &in.sin_addr, 4);
		return true;
	}
	if (sa->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;

		memcpy(&in6, sa, sizeof(in6));
		if (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)) {
			*ret_family = AF_INET;
			memcpy(ret, in6.sin6_addr.s6_addr + 12, 4);
		} else {
			*ret_family = AF_INET6;
			memcpy(ret, &in6.sin6_addr, 16);
		}
		return true;
	}
	return false;
}

static bool net_holds(const struct peer_net *c, int family, const uint8_t addr[16])
{
	unsigned whole = c->bits / 8, rest = c->bits % 8;
	uint8_t mask = (uint8_t)(0xff00u >> rest);

	if (c->family != family || memcmp(c->addr, addr, whole))
		return false;
	return !rest || !((c->addr[whole] ^ addr[whole]) & mask);
}

bool peer_is_loopback(const struct sockaddr *sa)
{
	static const uint8_t one[16] = { [15] = 1 };
	uint8_t addr[16];
	int family;

	if (!peer_bytes(sa, &family, addr))
		return false;
	return family == AF_INET ? addr[0] == 127 : !memcmp(addr, one, sizeof(one));
}

static bool is_client(const struct peers *p, const struct sockaddr *sa)
{
	uint8_t addr[16];
	int family;

	if (!p->n)
		return peer_is_loopback(sa);
	if (!peer_bytes(sa, &family, addr))
		return false;
	for (size_t i = 0; i < p->n; i++) {
		if (net_holds(&p->nets[i], family, addr))
			return true;
	}
	return false;
}

static unsigned port_of(const struct sockaddr *sa)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	if (sa->sa_family == AF_INET6) {
		memcpy(&in6, sa, sizeof(in6));
		return ntohs(in6.sin6_port);
	}
	memcpy(&in, sa, sizeof(in));
	return ntohs(in.sin_port);
}

enum peer_verdict peers_admit(const struct peers *p, const struct rpcrdma_peer *peer)
{
	const struct sockaddr *sa = (const struct sockaddr *)&peer->addr;

	if (peer->transport == RPCRDMA_LOCAL)
		return PEER_ADMITTED;
	if (!is_client(p, sa))
		return PEER_NOT_ADDRESS;
	if (p->secure && peer->transport == RPCRDMA_TCP && port_of(sa) >= PEER_PORTS_RESERVED)
		return PEER_NOT_PORT;
	return PEER_ADMITTED;
}

const char *peer_verdict_text(enum peer_verdict v, const struct rpcrdma_peer *peer, char *buf,
				size_t bytes)
{
	switch (v) {
	case PEER_ADMITTED:
		(void)snprintf(buf, bytes, "let in");
		break;
	case PEER_NOT_ADDRESS:
		(void)snprintf(buf, bytes, "not among its clients");
		break;
	case PEER_NOT_PORT:
		(void)snprintf(buf, bytes, "source port %u is not below %u (option insecure)",
			       port_of((const struct sockaddr *)&peer->addr), PEER_PORTS_RESERVED);
		break;
	}
	return buf;
}

