/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_services.c - a reload happens in all services or in none; which peers may connect if services disagree
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conn.h"
#include "prog.h"
#include "served.h"
#include "server_int.h"
#include "services.h"

static char order[64];    /* what the hooks did: P, C, S, D, c and the number of the service */
static int results[2];    /* of their next hook */

/* What a service serves */
struct fake {
	struct served served;
	unsigned i; /* of the service */
};

static void note(char what, unsigned i)
{
	size_t n = strlen(order);

	assert_true(n + 2 < sizeof(order));
	(void)snprintf(order + n, sizeof(order) - n, "%c%u", what, i);
}

static unsigned number_of(struct served *s)
{
	return container_of(s, struct fake, served)->i;
}

static void close_fake(struct served *s)
{
	note('D', number_of(s));
}

static int serve(unsigned i, struct served **ret, char *why, size_t why_bytes)
{
	struct fake *f;

	note('P', i);
	if (results[i]) {
		(void)snprintf(why, why_bytes, "service %u", i);
		return results[i];
	}
	f = calloc(1, sizeof(*f));
	assert_non_null(f);
	f->i = i;
	served_init(&f->served, 0, NULL, close_fake);
	*ret = &f->served;
	return 0;
}

static int serve_0(struct server *srv, const struct conf *conf, struct served *old, struct served **ret, char *why,
		   size_t why_bytes)
{
	(void)conf;
	assert_ptr_equal(old, srv->served[SERVICE_NFS]);
	return serve(0, ret, why, why_bytes);
}

static int serve_1(struct server *srv, const struct conf *conf, struct served *old, struct served **ret, char *why,
		   size_t why_bytes)
{
	(void)conf;
	assert_ptr_equal(old, srv->served[SERVICE_BLOCK]);
	return serve(1, ret, why, why_bytes);
}

static void changed(struct server *srv, struct served *old, struct served *now)
{
	(void)srv;
	assert_true(!old || number_of(old) == number_of(now));
	note('C', number_of(now));
}

static void stay(struct served *now)
{
	note('S', number_of(now));
}

static int accept_0(struct conn *c, const char **ret_why)
{
	(void)c;
	*ret_why = "0";
	return results[0];
}

static int accept_1(struct conn *c, const char **ret_why)
{
	(void)c;
	(void)ret_why;
	return results[1];
}

static void closed_0(struct conn *c)
{
	(void)c;
	note('c', 0);
}

static void closed_1(struct conn *c)
{
	(void)c;
	note('c', 1);
}

static const struct service first = { .slot = SERVICE_NFS, .serve = serve_0, .stay = stay, .changed = changed,
				      .accept = accept_0, .closed = closed_0 };
static const struct service second = { .slot = SERVICE_BLOCK, .serve = serve_1, .stay = stay, .changed = changed,
				       .accept = accept_1, .closed = closed_1 };
static const struct service *const services[] = { &first, &second, NULL };
static struct server srv = { .services = services };

static int reload(int of_first, int of_second, char why[64])
{
	order[0] = '\0';
	results[0] = of_first;
	results[1] = of_second;
	return server_reload(&srv, NULL, why, 64);
}

static void reloads(void **state)
{
	char why[64];

	(void)state;
	assert_int_equal(reload(0, 0, why), 0);
	assert_string_equal(order, "P0P1C0C1"); /* all are prepared before the first changes */
	assert_int_equal(reload(0, 0, why), 0);
	assert_string_equal(order, "P0P1C0D0C1D1");
	assert_int_equal(reload(0, -EBUSY, why), -EBUSY);
	assert_string_equal(order, "P0P1D0S0");
	assert_string_equal(why, "service 1");
	assert_int_equal(reload(-EINVAL, 0, why), -EINVAL);
	assert_string_equal(order, "P0");
	assert_string_equal(why, "service 0");
	service_stop(&srv);
	assert_int_equal(reload(0, 0, why), -ESHUTDOWN);
	assert_string_equal(order, "");
	assert_true(why[0]);
	service_destroy(&srv);
	assert_string_equal(order, "D0D1");
}

static int admit(int of_first, int of_second)
{
	struct conn c = { .srv = &srv };
	const char *why = NULL;

	order[0] = '\0';
	results[0] = of_first;
	results[1] = of_second;
	return service_accept(&c, &why);
}

/* One that admits the peer is enough; a connection that is refused has ended for all. */
static void admission(void **state)
{
	(void)state;
	assert_int_equal(admit(0, 0), 0);
	assert_int_equal(admit(0, -EACCES), 0);
	assert_int_equal(admit(-EACCES, 0), 0);
	assert_string_equal(order, "");
	assert_int_equal(admit(-EACCES, -EACCES), -EACCES);
	assert_string_equal(order, "c0c1");
	assert_int_equal(admit(-ENOMEM, 0), -ENOMEM);
	assert_string_equal(order, "c0c1");
	assert_int_equal(admit(0, -ENOMEM), -ENOMEM);
	assert_int_equal(admit(-EACCES, -ENOMEM), -ENOMEM);
}

static int setup(void **state)
{
	(void)state;
	return pthread_mutex_init(&srv.served_lock, NULL) || pthread_mutex_init(&srv.reload_lock, NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(reloads), cmocka_unit_test(admission) };

	return cmocka_run_group_tests_name("services", tests, setup, NULL);
}
