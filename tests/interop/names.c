/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * names.c - what a mount knows of the names in a directory that is changed locally at the same time
 *
 *   names MOUNT EXPORT ROUNDS [SEED]
 *
 * EXPORT is the directory that is mounted at MOUNT, on the same machine. A thread creates, unlinks, renames, moves
 * in and out, chmods and touches by way of EXPORT; the other does the same by way of MOUNT. From time to
 * time the first pauses, the clock ticks, the mount makes one more change, and each name must be the same by both
 * ways. The last line says how many comparisons there were.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAMES 8u
#define CHECK_EVERY 10u

struct way { /* into the export: locally, or by the mount */
	int dir, aside;
	unsigned seed;
};

static struct way local, mount;
/* The threads wait for each other without using a processor: the server and the client's kernel need both. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned long rounds_done; /* these under the lock */
static bool pausing, paused, ending;
static unsigned long local_changes;

static unsigned below(struct way *w, unsigned n)
{
	return (unsigned)rand_r(&w->seed) / 7u % n;
}

static void make(int dir, const char *name, int flags)
{
	int fd = openat(dir, name, O_CREAT | O_WRONLY | O_CLOEXEC | flags, 0644);

	if (fd >= 0)
		close(fd);
}

static void change(struct way *w, bool attributes)
{
	char a[8], b[8];

	(void)snprintf(a, sizeof(a), "n%u", below(w, NAMES));
	(void)snprintf(b, sizeof(b), "n%u", below(w, NAMES));
	switch (below(w, attributes ? 10 : 8)) {
	case 0:
	case 1:
		make(w->dir, a, O_EXCL);
		break;
	case 2:
		make(w->dir, a, 0);
		break;
	case 3:
	case 4:
		(void)unlinkat(w->dir, a, 0);
		break;
	case 5:
		(void)renameat(w->dir, a, w->dir, b);
		break;
	case 6:
		make(w->aside, attributes ? "local" : "remote", 0);
		(void)renameat(w->aside, attributes ? "local" : "remote", w->dir, a);
		break;
	case 7:
		(void)renameat(w->dir, a, w->aside, "gone");
		break;
	case 8:
		(void)fchmod(w->dir, below(w, 2) ? 0755 : 0711);
		break;
	default:
		(void)futimens(w->dir, NULL);
		break;
	}
}

static void set(bool *flag, bool value)
{
	pthread_mutex_lock(&lock);
	*flag = value;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void *run_local(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	while (!ending) {
		unsigned long next = rounds_done + below(&local, 4);

		if (pausing) {
			paused = true;
			pthread_cond_broadcast(&changed);
			while (pausing && !ending)
				pthread_cond_wait(&changed, &lock);
			paused = false;
		}
		pthread_mutex_unlock(&lock);
		change(&local, true);
		local_changes++;
		pthread_mutex_lock(&lock);
		while (rounds_done < next && !pausing && !ending)
			pthread_cond_wait(&changed, &lock);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* until the next change has another ctime */
static void wait_tick(void)
{
	const struct timespec pause = { .tv_nsec = 500000 };
	struct timespec from, now;

	clock_gettime(CLOCK_REALTIME_COARSE, &from);
	do {
		(void)nanosleep(&pause, NULL);
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	} while (now.tv_sec == from.tv_sec && now.tv_nsec == from.tv_nsec);
}

/* Returns the inode number of @name; 0: @name does not exist. */
static ino_t number(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) ? 0 : st.st_ino;
}

static void compare(unsigned long round, unsigned long *same, unsigned long *stale)
{
	for (unsigned i = 0; i < NAMES; i++) {
		ino_t here, there;
		char name[8];

		(void)snprintf(name, sizeof(name), "n%u", i);
		here = number(mount.dir, name);
		there = number(local.dir, name);
		if (here == there) {
			(*same)++;
			continue;
		}
		(*stale)++;
		printf("round %lu: %s is %lu, and to the mount %lu\n", round, name, (unsigned long)there,
		       (unsigned long)here);
	}
}

static void check(unsigned long round, unsigned long *same, unsigned long *stale)
{
	set(&pausing, true);
	pthread_mutex_lock(&lock);
	while (!paused)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	wait_tick(); /* a change within the tick of the last one need not show in the ctime */
	if (round / CHECK_EVERY % 2)
		make(mount.dir, "own", 0);
	else
		(void)unlinkat(mount.dir, "own", 0);
	compare(round, same, stale);
	set(&pausing, false);
}

static int open_below(const char *top, const char *name)
{
	char path[4096];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", top, name);
	(void)mkdir(path, 0755);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

int main(int argc, char **argv)
{
	unsigned long rounds, same = 0, stale = 0;
	pthread_t thread;
	unsigned seed;

	if (argc < 4 || argc > 5)
		return 2;
	rounds = strtoul(argv[3], NULL, 0);
	seed = argc > 4 ? (unsigned)strtoul(argv[4], NULL, 0) : 1;
	local = (struct way){ open_below(argv[2], "race"), open_below(argv[2], "aside"), seed };
	mount = (struct way){ open_below(argv[1], "race"), open_below(argv[1], "aside"), ~seed };
	if (pthread_create(&thread, NULL, run_local, NULL))
		return 1;
	for (unsigned long i = 1; i <= rounds; i++) {
		char name[8];

		(void)snprintf(name, sizeof(name), "n%u", below(&mount, NAMES));
		(void)number(mount.dir, name);
		change(&mount, false);
		pthread_mutex_lock(&lock);
		rounds_done = i;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
		if (i % CHECK_EVERY == 0)
			check(i, &same, &stale);
	}
	set(&ending, true);
	(void)pthread_join(thread, NULL);
	printf("%lu changes by the mount, %lu locally\n", rounds, local_changes);
	printf("names: %lu passed, %lu failed\n", same, stale);
	return stale > 0;
}
