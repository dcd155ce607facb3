/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_map_file.c - the map of a volume for programs: read from a file
 *
 * Operation: The parser of leatd checks it (xdr/volume_map.c).
 * Memory:    A map, its servers and their URLs are one allocation.
 * Threads:   Any.
 * Errors:    -errno with a text for the administrator.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/opt.h"
#include "leat_volume.h"
#include "volume_map.h"
#include "volume_maps.h"

int lt_volume_map_make(uint64_t volume, uint64_t version, const volume_server *servers, unsigned n,
		       struct leat_volume_map **ret)
{
	size_t bytes = sizeof(**ret) + n * (sizeof(struct leat_volume_server) + sizeof(struct leat_volume_server *));
	const struct leat_volume_server **list;
	struct leat_volume_server *to;
	struct leat_volume_map *m;
	char *text;

	for (unsigned i = 0; i < n; i++)
		bytes += strlen(servers[i].url) + 1;
	m = calloc(1, bytes);
	if (!m)
		return -ENOMEM;
	list = (const struct leat_volume_server **)(void *)(m + 1);
	to = (struct leat_volume_server *)(void *)(list + n);
	text = (char *)(to + n);
	for (unsigned i = 0; i < n; i++) {
		size_t len = strlen(servers[i].url) + 1;

		to[i] = (struct leat_volume_server){ .id = servers[i].id, .out = servers[i].state == VOLUME_SERVER_OUT, .url = text };
		memcpy(text, servers[i].url, len);
		text += len;
		list[i] = &to[i];
	}
	*m = (struct leat_volume_map){ .volume = volume, .version = version, .nservers = n, .servers = list };
	*ret = m;
	return 0;
}

int lt_volume_map_text(const struct volume_map *m, char **ret, char *why, size_t why_bytes)
{
	struct volume_map again;
	int err = volume_map_print(m, ret);

	if (err)
		return opt_fail(err, why, why_bytes, "out of memory");
	err = volume_map_parse(*ret, strlen(*ret), &again, why, why_bytes);
	if (!err)
		volume_map_fini(&again);
	else
		free(*ret);
	return err;
}

/* Return: the length, at most VOLUME_MAP_FILE_MAX + 1; -errno */
static ssize_t read_all(int fd, char *text, struct stat *ret_st)
{
	size_t n = 0;
	ssize_t got;

	if (fstat(fd, ret_st))
		return -errno;
	do {
		got = read(fd, text + n, VOLUME_MAP_FILE_MAX + 1 - n);
		if (got < 0)
			return -errno;
		n += (size_t)got;
	} while (got && n <= VOLUME_MAP_FILE_MAX);
	return (ssize_t)n;
}

int lt_volume_map_load(const char *file, struct volume_map *ret, struct stat *ret_st, char *why, size_t why_bytes)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err;
	char *text = malloc(VOLUME_MAP_FILE_MAX + 1);
	ssize_t n;

	n = fd < 0 ? -errno : !text ? -ENOMEM : read_all(fd, text, ret_st);
	if (fd >= 0)
		close(fd);
	if (n > (ssize_t)VOLUME_MAP_FILE_MAX)
		n = -EFBIG;
	if (n < 0)
		err = opt_fail((int)n, why, why_bytes, "%s", strerror((int)-n));
	else
		err = volume_map_parse(text, (size_t)n, ret, why, why_bytes);
	free(text);
	return err;
}

int leat_volume_map_read(const char *file, struct leat_volume_map **ret, char *why, size_t why_bytes)
{
	char reason[256] = "";
	struct volume_map map;
	struct stat st;
	int err = lt_volume_map_load(file, &map, &st, reason, sizeof(reason));

	if (err)
		return opt_fail(err, why, why_bytes, "map %s: %s", file, reason);
	err = lt_volume_map_make(map.volume, map.version, map.servers, map.n, ret);
	volume_map_fini(&map);
	return err ? opt_fail(err, why, why_bytes, "out of memory") : 0;
}

void leat_volume_map_free(struct leat_volume_map *m)
{
	free(m);
}
