/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fsck_objects.c - leat volume fsck: what the stripe servers have
 *
 * Operation:  LIST has the order in which objects are found by bisection.
 * Memory:     40 bytes for each object; a table grows to twice its size.
 * Threads:    One.
 * Errors:     As fsck.h says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "fsck.h"

/* ---- the table ------------------------------------------------------------------------------- */

static int compare(const struct fsck_object *a, const unsigned char name[FSCK_OBJECT_BYTES], uint32_t stripe)
{
	int c = memcmp(a->name, name, FSCK_OBJECT_BYTES);

	return c ? c : a->stripe < stripe ? -1 : a->stripe > stripe;
}

struct fsck_object *fsck_object_find(const struct fsck_server *s, const unsigned char name[FSCK_OBJECT_BYTES], uint32_t stripe)
{
	size_t low = 0, high = s->n;

	while (low < high) {
		size_t at = low + (high - low) / 2;
		int c = compare(&s->v[at], name, stripe);

		if (!c)
			return &s->v[at];
		if (c < 0)
			low = at + 1;
		else
			high = at;
	}
	return NULL;
}

static int make_room(struct fsck_server *s)
{
	size_t room = s->room ? 2 * s->room : 1024;
	struct fsck_object *v;

	if (s->n < s->room)
		return 0;
	v = reallocarray(s->v, room, sizeof(*v));
	if (!v)
		return -ENOMEM;
	s->v = v;
	s->room = room;
	return 0;
}

static int add_object(void *ctx, const unsigned char object[16], uint32_t stripe, const struct leat_volume_object *o)
{
	struct fsck_server *s = ctx;
	int err = make_room(s);

	if (err || tool_interrupted())
		return err ? err : -EINTR;
	s->v[s->n] = (struct fsck_object){ .bytes = o->bytes, .stripe = stripe, .flags = o->removed ? FSCK_REMOVED : 0,
					   .mtime_s = (uint32_t)MIN(o->mtime_ns / NS_PER_S, (uint64_t)UINT32_MAX),
					   .epoch = (uint32_t)MIN(o->epoch, (uint64_t)UINT32_MAX) };
	memcpy(s->v[s->n++].name, object, FSCK_OBJECT_BYTES);
	return 0;
}

char *fsck_object_text(const struct fsck_server *s, const unsigned char name[FSCK_OBJECT_BYTES], uint32_t stripe,
		       char buf[FSCK_TEXT_BYTES])
{
	char object[2 * FSCK_OBJECT_BYTES + 1];

	text_put_hex(name, FSCK_OBJECT_BYTES, object);
	(void)snprintf(buf, FSCK_TEXT_BYTES, "server %" PRIu32 ": objects/%.2s/%s.%" PRIu32, s->is->id, object, object, stripe);
	return buf;
}

/* ---- servers --------------------------------------------------------------------------------- */

struct fsck_server *fsck_server_find(const struct fsck *f, uint32_t id)
{
	for (size_t i = 0; i < f->map->nservers; i++) {
		if (f->servers[i].is->id == id)
			return &f->servers[i];
	}
	return NULL;
}

int64_t fsck_age_s(const struct fsck_server *s, uint64_t mtime_s)
{
	return (int64_t)time(NULL) + s->skew_s - (int64_t)MIN(mtime_s, (uint64_t)INT64_MAX / 2);
}

int fsck_object_stat(struct fsck *f, const struct fsck_server *s, const unsigned char name[FSCK_OBJECT_BYTES], uint32_t stripe,
		     struct leat_volume_object *ret)
{
	struct leat_volume_command c = { .size = sizeof(c), .key = f->key, .server = s->is->id, .stripe = stripe };
	char text[FSCK_TEXT_BYTES];
	int rc;

	*ret = (struct leat_volume_object){ .size = sizeof(*ret) };
	memcpy(c.object, name, sizeof(c.object));
	rc = leat_volume_object_stat(s->m, &c, ret, NULL);
	if (rc)
		fsck_incomplete(f, fsck_object_text(s, name, stripe, text), leat_error(s->m));
	return rc;
}

static int list_server(struct fsck *f, struct fsck_server *s)
{
	struct leat_volume_command c = { .size = sizeof(c), .key = f->key, .server = s->is->id };
	struct leat_volume_info info = { .size = sizeof(info) };
	char name[32];
	int rc = tool_mount(s->is->url, "connect_only=yes&" TOOL_IMPATIENT, &s->m);

	if (!rc)
		rc = leat_volume_ask(s->m, f->key, s->is->id, &info);
	if (!rc)
		rc = leat_volume_object_list(s->m, &c, add_object, s, NULL);
	s->skew_s = info.skew_ms / 1000;
	s->listed = !rc;
	if (!rc)
		return 0;
	if (rc == -ENOMEM || rc == -EINTR) {
		log_err("the objects of server %" PRIu32 ": %s", s->is->id, strerror(-rc));
		return TOOL_FAILED;
	}
	(void)snprintf(name, sizeof(name), "server %" PRIu32, s->is->id);
	fsck_incomplete(f, name, leat_error(s->m));
	return 0;
}

int fsck_objects_list(struct fsck *f)
{
	int rc = 0;

	f->servers = calloc(f->map->nservers, sizeof(*f->servers));
	if (!f->servers) {
		log_err("out of memory");
		return TOOL_FAILED;
	}
	for (size_t i = 0; i < f->map->nservers; i++)
		f->servers[i].is = f->map->servers[i];
	for (size_t i = 0; i < f->map->nservers && !rc; i++)
		rc = list_server(f, &f->servers[i]);
	return rc;
}

void fsck_objects_free(struct fsck *f)
{
	for (size_t i = 0; f->servers && i < f->map->nservers; i++) {
		tool_umount(f->servers[i].m);
		free(f->servers[i].v);
	}
	free(f->servers);
}
