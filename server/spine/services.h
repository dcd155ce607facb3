/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * services.h - calls the hooks of all services of a server (prog.h describes each)
 */
#ifndef LEAT_SERVER_SERVICES_H
#define LEAT_SERVER_SERVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "prog.h"

/** service_create - creates the services of @srv; logs errors. Return: 0 or -errno */
int must_check service_create(struct server *srv, const struct conf *conf, unsigned nreactors);

/** service_current - what a service serves now, held for the caller: served_put(). Any thread */
struct served *service_current(struct server *srv, enum service_slot slot);

/** service_stop - no reload begins from now on; waits for one in progress */
void service_stop(struct server *srv);

/** service_destroy - destroys the services that were created; all threads have ended */
void service_destroy(struct server *srv);

/** service_create_reactor, service_start_reactor, service_stop_reactor, service_is_busy, service_destroy_reactor - the
 * hooks of a reactor. service_destroy_reactor() destroys what service_create_reactor() has created, whatever it returned
 */
int must_check service_create_reactor(struct reactor *re);
void service_start_reactor(struct reactor *re);
void service_stop_reactor(struct reactor *re);
bool service_is_busy(const struct reactor *re);
void service_destroy_reactor(struct reactor *re);

/** service_accept - may the peer of @c connect? Yes, if one of the services admits it
 *
 * Return: 0, service_closed() follows; -ENOMEM; -EACCES, and @ret_why has a text for the log.
 */
int must_check service_accept(struct conn *c, const char **ret_why);

/** service_closed - the connection has ended; any thread */
void service_closed(struct conn *c);

/** service_prog - finds a program by its number; NULL: no service has it */
const struct prog *service_prog(const struct server *srv, uint32_t number);

/** service_req_bytes - returns the memory of a request, with the largest part of a program */
size_t service_req_bytes(const struct server *srv);

#endif
