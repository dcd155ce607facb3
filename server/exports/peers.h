/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * peers.h - which peers may use an export or a volume: networks, and ports
 */
#ifndef LEAT_SERVER_PEERS_H
#define LEAT_SERVER_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/util.h"
#include "rpcrdma.h"

#define PEERS_MAX 64
#define PEER_PORTS_RESERVED 1024u /* only privileged programs can call from ports below this one */

/* A network: the first @bits bits of an address. */
struct peer_net {
	int family; /* AF_INET or AF_INET6 */
	uint8_t addr[16];
	unsigned bits;
};

/* Plain data of a configuration. */
struct peers {
	bool secure; /* over TCP only from a reserved port */
	unsigned given; /* by options; for peers_option() */
	struct peer_net nets[PEERS_MAX];
	size_t n; /* 0: this host only */
};

/** peer_net_parse - parses "10.0.0.0/8", "fd00::/8", or a single address
 *
 * Return: 0, -EINVAL.
 */
int must_check peer_net_parse(const char *text, struct peer_net *ret);

/** peers_init - sets the defaults: this host only; only reserved ports if leatd runs as root
 *
 * As root leatd uses the ids that callers claim. Otherwise it does not, and the clients are ordinary users like leatd's
 * own: requiring a port reserved for root would exclude them.
 */
void peers_init(struct peers *p);

/** peers_option - applies one option of an export or a volume
 *
 * Return: 0; -ENOENT: it is none of peers_opts(); -EINVAL, -E2BIG, with @why; -ENOMEM.
 */
int must_check peers_option(struct peers *p, const char *key, const char *value, char *why, size_t why_bytes);

/** peers_opts - the table of these options; @ret_n: their number */
const struct opt *peers_opts(size_t *ret_n);

/** peers_add - adds networks, separated by commas or blanks
 * @value: may be NULL
 * @key: of the option, for the message
 *
 * Return: 0; -EINVAL: not a network, or none; -E2BIG: too many; -ENOMEM. @why has the reason.
 */
int must_check peers_add(struct peers *p, const char *value, const char *key, char *why, size_t why_bytes);

/** peers_same - do both say the same? */
bool peers_same(const struct peers *a, const struct peers *b);

/** peer_is_loopback - 127.0.0.0/8, ::1, ::ffff:127.0.0.0/104 */
bool peer_is_loopback(const struct sockaddr *sa);

enum peer_verdict { /* the best one first, as served_judge() wants it */
	PEER_ADMITTED,
	PEER_NOT_PORT,    /* the address is in a network, but an unprivileged program can use this port */
	PEER_NOT_ADDRESS, /* its address is in none of the networks */
};

/** peers_admit - may this peer use it at all?
 *
 * A peer over the local fabric is always admitted, because the kernel identifies it. Over a network the address of
 * the peer decides; over TCP, with `secure`, its port, too. Over RDMA ports are not checked, because any user of the
 * device can choose the port.
 */
enum peer_verdict peers_admit(const struct peers *p, const struct rpcrdma_peer *peer);

/** peer_verdict_text - text of a refusal, for messages and logs; Return: @buf */
const char *peer_verdict_text(enum peer_verdict v, const struct rpcrdma_peer *peer, char *buf, size_t bytes);

#endif
