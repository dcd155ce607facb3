/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_key.c - the key file of a volume
 *
 * Operation: The file is opened once, and what was opened is checked: its type, owner, mode and length.
 * Memory:    The text is on the stack, and cleared.
 * Threads:   Any. At start, and at a reload.
 * Errors:    A text for the user, without any part of a key.
 */
#include "stripe_key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/opt.h"
#include "base/text.h"

/* Return: NULL, or what is wrong */
static const char *parse_line(char *line, uint64_t *volume, struct stripe_keys *keys)
{
	char *eq = strchr(line, '=');
	const char *name, *value;
	uint8_t bytes[16];

	if (!eq)
		return "not name = value";
	*eq = '\0';
	name = text_trim(line);
	value = text_trim(eq + 1);
	if (!strcmp(name, "volume")) {
		if (*volume || !text_parse_hex(value, 8, bytes) || !get_be64(bytes))
			return "volume: must be once, 16 hexadecimal digits, not all 0";
		*volume = get_be64(bytes);
		return NULL;
	}
	if (strcmp(name, "key"))
		return "there are only volume and key";
	if (keys->n == STRIPE_KEYS_MAX)
		return "more than two keys";
	if (!text_parse_hex(value, sizeof(bytes), bytes))
		return "key: must be 32 hexadecimal digits";
	keys->v[keys->n++] = (struct siphash_key){ get_be64(bytes), get_be64(bytes + 8) };
	return NULL;
}

int stripe_key_parse(char *text, uint64_t *ret_volume, struct stripe_keys *ret_keys, char *why, size_t why_bytes)
{
	struct stripe_keys keys = { .n = 0 };
	const char *wrong = NULL;
	uint64_t volume = 0;
	unsigned line = 0;
	char *at = text, *next;

	for (; at && !wrong; at = next) {
		next = strchr(at, '\n');
		if (next)
			*next++ = '\0';
		line++;
		at = text_trim(at);
		if (*at && *at != '#')
			wrong = parse_line(at, &volume, &keys);
	}
	if (wrong)
		return opt_fail(-EINVAL, why, why_bytes, "line %u: %s", line, wrong);
	if (!volume || !keys.n)
		return opt_fail(-EINVAL, why, why_bytes, "it lacks its %s", volume ? "key" : "volume");
	*ret_volume = volume;
	*ret_keys = keys;
	return 0;
}

/* Return: the length; -errno, with @why */
static ssize_t read_text(int fd, char text[STRIPE_KEY_FILE_MAX + 1], char *why, size_t why_bytes)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st))
		return opt_fail(-errno, why, why_bytes, "%s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return opt_fail(-EINVAL, why, why_bytes, "not a regular file");
	if (st.st_mode & 077 || st.st_uid != geteuid())
		return opt_fail(-EKEYREJECTED, why, why_bytes,
				"it must be its user's own, with mode 0600: with it, all files of the volume can be read and changed");
	n = read(fd, text, STRIPE_KEY_FILE_MAX + 1);
	if (n < 0)
		return opt_fail(-errno, why, why_bytes, "%s", strerror(errno));
	if (n > (ssize_t)STRIPE_KEY_FILE_MAX || memchr(text, 0, (size_t)n))
		return opt_fail(-EINVAL, why, why_bytes, "not the text of a key");
	text[n] = '\0';
	return n;
}

int stripe_key_load(const char *path, uint64_t *ret_volume, struct stripe_keys *ret_keys, char *why, size_t why_bytes)
{
	char text[STRIPE_KEY_FILE_MAX + 1], reason[256] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), err;
	ssize_t n;

	if (fd < 0)
		return opt_fail(-errno, why, why_bytes, "key %s: %s", path, strerror(errno));
	n = read_text(fd, text, reason, sizeof(reason));
	close(fd);
	err = n < 0 ? (int)n : stripe_key_parse(text, ret_volume, ret_keys, reason, sizeof(reason));
	explicit_bzero(text, sizeof(text));
	return err ? opt_fail(err, why, why_bytes, "key %s: %s", path, reason) : 0;
}
