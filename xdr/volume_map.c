/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_map.c - reads and writes the map of a striped volume
 *
 * Operation: Line by line, so that every message has a line number. Nothing is ignored: unknown input is an error. The
 *            parser is not inih's, because libleat has maps, too, and needs no other library for them.
 * Memory:    A line at a time on the stack. The map owns its URLs.
 * Threads:   Any.
 * Errors:    -EINVAL with a text for the administrator; -ENOMEM.
 */
#include "volume_map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "base/text.h"
#include "base/wire.h"

#define LINE_BYTES (VOLUME_URL_MAX + 64)

struct parser {
	struct volume_map *map;
	volume_server *server; /* of the section; NULL: none yet */
	bool has_state;
};

/* Return: false: not a decimal number from 1 to @max */
static bool parse_number(const char *text, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	for (; *text >= '0' && *text <= '9'; text++) {
		if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (unsigned)(*text - '0'), &v))
			return false;
	}
	if (*text || !v || v > max)
		return false;
	*ret = v;
	return true;
}

/* Return: false: not 16 hexadecimal digits, or 0 */
static bool parse_volume(const char *text, uint64_t *ret)
{
	uint8_t bytes[8];

	if (!text_parse_hex(text, sizeof(bytes), bytes))
		return false;
	*ret = get_be64(bytes);
	return *ret;
}

/* HOST, HOST:PORT, [V6], [V6]:PORT */
static bool is_authority(const char *s)
{
	const char *end = *s == '[' ? strchr(s, ']') : strchrnul(s, ':');
	uint64_t port;

	if (!end || end <= s + (*s == '[') || strpbrk(s, "/?#@%"))
		return false;
	end += *s == '[';
	return !*end || (*end == ':' && parse_number(end + 1, UINT16_MAX, &port));
}

bool volume_map_is_url(const char *url)
{
	static const char *const schemes[] = { "leat://", "rdma://", "tcp://" };

	if (strlen(url) > VOLUME_URL_MAX)
		return false;
	for (const char *c = url; *c; c++) {
		if (*c <= ' ' || *c >= 0x7f)
			return false;
	}
	for (unsigned i = 0; i < ARRAY_SIZE(schemes); i++) {
		if (!strncmp(url, schemes[i], strlen(schemes[i])))
			return is_authority(url + strlen(schemes[i]));
	}
	return !strncmp(url, "local:///", 9) && url[9] && !strpbrk(url, "?#%");
}

/* Return: NULL, or what is wrong */
static const char *end_section(const struct parser *p)
{
	return p->server && !p->server->url ? "the section of a server above has no url" : NULL;
}

/* @line: behind the '[' */
static const char *begin_section(struct parser *p, char *line)
{
	struct volume_map *m = p->map;
	char *end = strchr(line, ']');
	const char *wrong = end_section(p);
	uint64_t id;

	if (wrong)
		return wrong;
	if (!end || end[1])
		return "a section is [server N]";
	*end = '\0';
	if (strncmp(line, "server", 6) || !strchr(" \t", line[6]) || !parse_number(text_trim(line + 6), UINT32_MAX, &id))
		return "there are only sections [server N], with N from 1 to 4294967295";
	if (volume_map_find(m, (uint32_t)id))
		return "there is a server of that number already";
	if (m->n == VOLUME_SERVERS_MAX)
		return "more than 256 servers";
	p->server = &m->servers[m->n++];
	*p->server = (volume_server){ .id = (uint32_t)id, .state = VOLUME_SERVER_FULL };
	p->has_state = false;
	return NULL;
}

static const char *set_url(struct parser *p, const char *value, int *ret_err)
{
	if (p->server->url)
		return "a second url";
	if (!volume_map_is_url(value))
		return "url: must be leat://HOST[:PORT], rdma://HOST[:PORT], tcp://HOST[:PORT] or local:///PATH, without options";
	for (unsigned i = 0; i + 1 < p->map->n; i++) {
		if (!strcmp(p->map->servers[i].url, value))
			return "url: another server has it";
	}
	p->server->url = strdup(value);
	if (p->server->url)
		return NULL;
	*ret_err = -ENOMEM;
	return "out of memory";
}

static const char *set_state(struct parser *p, const char *value)
{
	bool out = !strcmp(value, "out");

	if (p->has_state)
		return "a second state";
	if (!out && strcmp(value, "full"))
		return "state: must be full or out";
	p->has_state = true;
	p->server->state = out ? VOLUME_SERVER_OUT : VOLUME_SERVER_FULL;
	return NULL;
}

static const char *set_key(struct parser *p, const char *name, const char *value, int *ret_err)
{
	struct volume_map *m = p->map;

	if (p->server) {
		if (!strcmp(name, "url"))
			return set_url(p, value, ret_err);
		return strcmp(name, "state") ? "a server has url and state" : set_state(p, value);
	}
	if (!strcmp(name, "volume"))
		return !m->volume && parse_volume(value, &m->volume) ?
			       NULL :
			       "volume: must be once, 16 hexadecimal digits, not all 0";
	if (!strcmp(name, "version"))
		return !m->version && parse_number(value, UINT64_MAX, &m->version) ?
			       NULL :
			       "version: must be once, a number from 1 on";
	return "above the servers there are volume and version";
}

/* Return: NULL, or what is wrong; @ret_err stays -EINVAL unless there is a better one */
static const char *parse_line(struct parser *p, char *line, int *ret_err)
{
	char *at = text_trim(line), *eq;

	if (!*at || *at == '#' || *at == ';')
		return NULL;
	if (*at == '[')
		return begin_section(p, at + 1);
	eq = strchr(at, '=');
	if (!eq)
		return "neither a section nor key = value";
	*eq = '\0';
	return set_key(p, text_trim(at), text_trim(eq + 1), ret_err);
}

static int parse(struct parser *p, const char *text, size_t bytes, char *why, size_t why_bytes)
{
	const char *at = text, *end = text + bytes, *wrong = NULL;
	char line[LINE_BYTES];
	unsigned number = 0;
	int err = -EINVAL;

	while (at < end && !wrong) {
		const char *next = memchr(at, '\n', (size_t)(end - at));
		size_t n = (size_t)((next ? next : end) - at);

		number++;
		if (n >= sizeof(line) || memchr(at, 0, n)) {
			wrong = "a NUL, or longer than a line may be";
			break;
		}
		memcpy(line, at, n);
		line[n] = '\0';
		wrong = parse_line(p, line, &err);
		at += n + !!next;
	}
	wrong = wrong ? wrong : end_section(p);
	if (wrong)
		return opt_fail(err, why, why_bytes, "line %u: %s", number, wrong);
	if (!p->map->volume || !p->map->version || !p->map->n)
		return opt_fail(-EINVAL, why, why_bytes, "it lacks its %s",
				!p->map->volume ? "volume" : !p->map->version ? "version" : "servers");
	return 0;
}

int volume_map_parse(const char *text, size_t bytes, struct volume_map *ret, char *why, size_t why_bytes)
{
	struct volume_map map = { .n = 0 };
	struct parser p = { .map = &map };
	int err;

	if (bytes > VOLUME_MAP_FILE_MAX)
		return opt_fail(-EINVAL, why, why_bytes, "longer than %u bytes", VOLUME_MAP_FILE_MAX);
	err = parse(&p, text, bytes, why, why_bytes);
	if (err)
		volume_map_fini(&map);
	else
		*ret = map;
	return err;
}

int volume_map_print(const struct volume_map *m, char **ret)
{
	char *text = NULL;
	size_t bytes;
	FILE *f = open_memstream(&text, &bytes);
	bool failed;

	if (!f)
		return -ENOMEM;
	fprintf(f, "volume = %016" PRIx64 "\nversion = %" PRIu64 "\n", m->volume, m->version);
	for (unsigned i = 0; i < m->n; i++)
		fprintf(f, "\n[server %" PRIu32 "]\nurl = %s\nstate = %s\n", m->servers[i].id, m->servers[i].url,
			m->servers[i].state == VOLUME_SERVER_OUT ? "out" : "full");
	failed = ferror(f);
	if (fclose(f) || failed) {
		free(text);
		return -ENOMEM;
	}
	*ret = text;
	return 0;
}

const volume_server *volume_map_find(const struct volume_map *m, uint32_t id)
{
	for (unsigned i = 0; i < m->n; i++) {
		if (m->servers[i].id == id)
			return &m->servers[i];
	}
	return NULL;
}

void volume_map_fini(struct volume_map *m)
{
	for (unsigned i = 0; i < m->n; i++)
		free(m->servers[i].url);
	m->n = 0;
}
