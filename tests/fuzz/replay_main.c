/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * replay_main.c - main() that feeds files to a fuzz harness, where libFuzzer is not there to do it
 *
 * Operation:  Each argument is a file, or a directory whose files are taken in order of names.
 *             Linked with any one harness; `make check` replays the corpora this way.
 * Memory:     One input at a time, in an allocation of exactly its size.
 * Errors:     A file that cannot be read, or an argument that holds none, is a failure: an empty
 *             corpus must not look like one that passed. A harness that finds a fault aborts.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* only some harnesses have it */
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);

static int replay_file(const char *path, size_t size)
{
	uint8_t *data = malloc(size ? size : 1);
	FILE *f = fopen(path, "rb");
	int err = -1;

	if (!data || !f) {
		perror(path);
	} else if (fread(data, 1, size, f) != size) {
		fprintf(stderr, "%s: short read\n", path);
	} else {
		(void)LLVMFuzzerTestOneInput(data, size);
		err = 0;
	}
	if (f)
		fclose(f);
	free(data);
	return err;
}

static int is_visible(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

/* Return: inputs replayed, or -1. */
static int replay(const char *path)
{
	struct dirent **list;
	struct stat st;
	int n, count = 0;

	if (stat(path, &st)) {
		perror(path);
		return -1;
	}
	if (!S_ISDIR(st.st_mode))
		return replay_file(path, (size_t)st.st_size) ? -1 : 1;
	n = scandir(path, &list, is_visible, alphasort);
	if (n < 0) {
		perror(path);
		return -1;
	}
	for (int i = 0; i < n; i++) {
		char child[4096];
		int done;

		snprintf(child, sizeof(child), "%s/%s", path, list[i]->d_name);
		free(list[i]);
		done = count < 0 ? -1 : replay(child);
		count = done < 0 ? -1 : count + done;
	}
	free(list);
	return count;
}

int main(int argc, char **argv)
{
	int total = 0;

	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 1; i < argc; i++) {
		int n = replay(argv[i]);

		if (n <= 0) {
			fprintf(stderr, "%s: %s\n", argv[i], n ? "failed" : "no inputs");
			return 1;
		}
		total += n;
	}
	if (!total) {
		fprintf(stderr, "usage: %s FILE-OR-DIRECTORY...\n", argv[0]);
		return 2;
	}
	printf("%s: %d inputs\n", argv[0], total);
	return 0;
}
