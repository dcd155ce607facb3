/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * relay.h - TCP connections that can be held up: what was sent arrives late, or not at all
 */
#ifndef TESTS_TUMBLE_RELAY_H
#define TESTS_TUMBLE_RELAY_H

#include <stdint.h>

struct relay;

/** relay_create - starts the thread of a relay for @n servers
 * @ports: of the servers, on 127.0.0.1; @ret_ports: of the relay
 *
 * Return: 0, -errno
 */
int relay_create(const uint16_t *ports, unsigned n, uint16_t *ret_ports, struct relay **ret);
void relay_destroy(struct relay *r); /* NULL is fine */

/** relay_hold - nothing is delivered any more, in both directions, by the connections that exist to server @i
 * Later connections are not held. What a client sends before it closes a connection is kept.
 */
void relay_hold(struct relay *r, unsigned i);

/** relay_queued - bytes that clients have sent and servers have not got yet */
uint64_t relay_queued(struct relay *r);

/** relay_release - what was held is delivered, then later data */
void relay_release(struct relay *r, unsigned i);

/** relay_break - closes the connections to server @i; what was held is lost */
void relay_break(struct relay *r, unsigned i);

#endif
