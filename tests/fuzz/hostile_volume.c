/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * hostile_volume.c - the right answers of the manager of a striped volume, and of its stripe servers
 *
 * Operation:  All are the same server, at its port. Objects have FILE_BYTES each.
 * Memory:     None.
 * Threads:    As hostile_start().
 * Errors:     Room that is too little shows in the writer.
 */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "hostile.h"
#include "stripes.h"
#include "volumes.h"

#define FILE_BYTES 6000u
#define SERVERS 2u
#define LANE_BYTES 16u

bool hostile_is_volume;

static void put_opaque(struct wire_put *w, const void *data, size_t len)
{
	wire_put_u32(w, (uint32_t)len);
	wire_put_bytes(w, data, len);
	wire_put_bytes(w, "\0\0\0", round_up4(len) - len);
}

static void put_number(struct wire_put *w, size_t bytes)
{
	for (size_t i = 0; i < bytes / 4; i++)
		wire_put_u32(w, (uint32_t)i);
}

static void put_map(struct wire_put *w)
{
	char url[40];

	(void)snprintf(url, sizeof(url), "tcp://127.0.0.1:%u", hostile_port());
	wire_put_u64(w, 1);
	wire_put_u64(w, 1);
	wire_put_u32(w, 65536);
	wire_put_u32(w, SERVERS);
	wire_put_u32(w, SERVERS);
	for (uint32_t i = 1; i <= SERVERS; i++) {
		wire_put_u32(w, i);
		wire_put_u32(w, VOLUME_SERVER_FULL);
		put_opaque(w, url, strlen(url));
	}
}

static void put_layout(struct wire_put *w)
{
	wire_put_u64(w, 1);
	put_number(w, STRIPE_OBJECT_BYTES);
	wire_put_u64(w, 1);
	wire_put_u32(w, 65536);
	wire_put_u32(w, 600);
	wire_put_u32(w, 30000);
	wire_put_u64(w, FILE_BYTES);
	wire_put_u32(w, SERVERS);
	for (uint32_t i = 1; i <= SERVERS; i++) {
		wire_put_u32(w, i);
		put_number(w, STRIPE_HANDLE_BYTES);
	}
}

static void put_check(struct wire_put *w)
{
	wire_put_u32(w, FALSE);
	wire_put_u32(w, 600);
	wire_put_u64(w, 1);
	wire_put_u64(w, 1);
	wire_put_u32(w, 1);
	put_number(w, STRIPE_OBJECT_BYTES);
	wire_put_u32(w, VOLUME_TODO_CUT);
	wire_put_u32(w, TRUE);
}

void hostile_put_volume(struct wire_put *w, const struct hostile_call *c)
{
	wire_put_u32(w, hostile_is_volume ? VOLUME_OK : VOLUME_ERR_NOTVOLUME);
	if (!hostile_is_volume)
		return;
	switch (c->proc) {
	case VOLUMEPROC_MAP:
		put_map(w);
		break;
	case VOLUMEPROC_LAYOUT:
		put_layout(w);
		break;
	case VOLUMEPROC_REPORT:
		wire_put_u64(w, FILE_BYTES);
		wire_put_u32(w, 30000);
		break;
	case VOLUMEPROC_RESERVE:
		wire_put_u64(w, FILE_BYTES);
		break;
	case VOLUMEPROC_CHECK:
		put_check(w);
		break;
	default: /* SET, CREATE */
		wire_put_u32(w, 65536);
		wire_put_u32(w, SERVERS);
	}
}

static void put_stat(struct wire_put *w)
{
	wire_put_u64(w, FILE_BYTES);
	wire_put_u64(w, 8192);
	wire_put_u64(w, 1);
	wire_put_u64(w, 1);
	wire_put_u32(w, TRUE);
	wire_put_u32(w, FALSE);
}

void hostile_put_stripes(struct wire_put *w, const struct hostile_call *c, const char **ret_data)
{
	static char bytes[FILE_BYTES];
	struct wire_get g;

	wire_put_u32(w, STRIPE_OK);
	wire_get_init(&g, c->args, c->args_len);
	switch (c->proc) {
	case STRIPEPROC_INFO:
		wire_put_u32(w, 1);
		for (int i = 0; i < 6; i++)
			wire_put_u64(w, 1u << 20);
		break;
	case STRIPEPROC_READ:
		(void)wire_get_bytes(&g, STRIPE_HANDLE_BYTES + LANE_BYTES + 8);
		wire_put_u32(w, TRUE);
		wire_put_u32(w, MIN(MIN(wire_get_u32(&g), c->room), FILE_BYTES));
		*ret_data = bytes;
		break;
	case STRIPEPROC_WRITE:
	case STRIPEPROC_COMMIT:
		wire_put_u64(w, 9);
		break;
	case STRIPEPROC_LIST:
		wire_put_u32(w, 1);
		put_number(w, STRIPE_OBJECT_BYTES + 4);
		put_stat(w);
		wire_put_u32(w, TRUE);
		break;
	default:
		put_stat(w);
	}
}
