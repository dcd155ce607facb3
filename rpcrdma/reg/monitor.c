/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * monitor.c - reports unmapped memory, by events of a userfaultfd without faults
 *
 * Operation:  Ranges are registered with a userfaultfd for write-protection but never protected, so it never
 *             delivers a fault: accesses, pinning and huge pages work as before. Only its events are used. The
 *             kernel blocks the unmapping thread until the event is read, which happens under the lock for
 *             lookups. So a lookup after the call has returned does not find the registration.
 *
 *             A blocked thread has already unmapped, and another thread may get the same address before the
 *             event is read. The kernel counts changes in progress and meanwhile refuses UFFDIO_COPY with
 *             EAGAIN, whatever its arguments. rr_monitor_settle() tests for that.
 *
 *             Memory that others can change without an event is not watched: shared memory and files, which
 *             lose pages by ftruncate(). The kernel's list of mappings tells which it is: one query per mapping
 *             (Linux 6.11), or the text of /proc/self/maps.
 *
 *             A forked child does not have the thread, and its memory is not watched. All of a process's
 *             monitor state depends on one page that the kernel clears in a child of any kind of fork. There
 *             the monitor is off, and a new one may be created. A child of fork(3) closes the inherited
 *             descriptor. While a copy is open anywhere, a parent that has closed its own and unmaps memory
 *             that was watched to the end would block on events that no process reads.
 * Memory:     The page is never freed. The monitor is allocated with the first reference, and freed with the
 *             last. Events are read to the stack.
 * Threads:    home->lock for references; m->lock for users and events. The thread takes m->lock only, and is
 *             joined without it. It closes the descriptor itself: after its end no thread reads events, and
 *             even a free() in the joining thread may unmap watched memory.
 * Errors:     If the program closes or replaces the descriptor, all users get a report that all memory is gone, and
 *             the monitor is off.
 * See:        userfaultfd(2), ioctl_userfaultfd(2).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/thread.h"
#include "monitor.h"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

#define STACK_BYTES ((size_t)256 << 10)
#define SETTLE_TRIES 100 /* one yield each: together about the time for a thread to wake up */

/* Per-process state. Zeros are an unlocked mutex and no monitor: a child starts without one. */
struct home {
	pthread_mutex_t lock;
	_Atomic(struct rr_monitor *) monitor;
};

static _Atomic(struct home *) the_home;

struct rr_monitor {
	struct home *home;
	unsigned refs; /* home->lock */
	pthread_mutex_t lock;
	struct list users;
	atomic_bool lost; /* the descriptor is not ours any more */
	int uffd, maps, stop;
	uintptr_t page;
	pthread_t thread;
};

/* ---- which mappings there are ---- */

/* PROCMAP_QUERY of <linux/fs.h>, which may be older than the kernel */
struct query {
	uint64_t size, flags, addr;
	uint64_t start, end, vma_flags, page_size, offset, inode;
	uint32_t dev_major, dev_minor;
	uint32_t name_bytes, id_bytes;
	uint64_t name, id;
};
#define QUERY _IOWR('f', 17, struct query)
#define QUERY_SHARED 8u /* in vma_flags */

struct mapping {
	uintptr_t start, end;
	bool anonymous; /* private, and not of a file */
};

static int query_mapping(int maps, uintptr_t at, struct mapping *ret)
{
	struct query q = { .size = sizeof(q), .addr = at };

	if (ioctl(maps, QUERY, &q))
		return -errno;
	*ret = (struct mapping){ (uintptr_t)q.start, (uintptr_t)q.end,
				 !(q.vma_flags & QUERY_SHARED) && !q.inode && !q.dev_major &&
					 !q.dev_minor };
	return 0;
}

/* "START-END rwxp OFFSET MAJOR:MINOR INODE ..." */
static bool parse_mapping(const char *line, struct mapping *ret)
{
	char *p;

	ret->start = strtoul(line, &p, 16);
	if (*p != '-')
		return false;
	ret->end = strtoul(p + 1, &p, 16);
	if (strnlen(p, 6) < 6)
		return false;
	ret->anonymous = p[4] == 'p';
	(void)strtoul(p + 5, &p, 16);
	ret->anonymous &= !strtoul(p, &p, 16);
	if (*p != ':')
		return false;
	ret->anonymous &= !strtoul(p + 1, &p, 16);
	ret->anonymous &= !strtoul(p, &p, 10);
	return *p == ' ' || !*p;
}

/* Returns how far watchable mappings cover [at, end), given the next mapping of a text in order. */
static uintptr_t cover(uintptr_t at, uintptr_t end, const char *line)
{
	struct mapping map;

	if (at < end && parse_mapping(line, &map) && map.anonymous && map.start <= at &&
	    at < map.end)
		return map.end;
	return at;
}

static bool text_is_anonymous(uintptr_t at, uintptr_t end)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	char text[4096], line[128]; /* only the start of a line matters, names can be long */
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return false;
	while (at < end && (n = read(fd, text, sizeof(text))) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (text[i] != '\n') {
				if (len < sizeof(line) - 1)
					line[len++] = text[i];
				continue;
			}
			line[len] = '\0';
			len = 0;
			at = cover(at, end, line);
		}
	}
	close(fd);
	return at >= end;
}

static bool is_anonymous(const struct rr_monitor *m, uintptr_t at, uintptr_t end)
{
	struct mapping map = { .anonymous = false };
	int rc;

	for (; at < end; at = map.end) {
		rc = query_mapping(m->maps, at, &map);
		if (rc == -ENOENT)
			return false;
		if (rc) /* an older kernel, or a filter */
			return text_is_anonymous(at, end);
		if (!map.anonymous || map.start > at || map.end <= at)
			return false;
	}
	return true;
}

/* ---- events ---- */

static bool is_forked(const struct rr_monitor *m)
{
	return atomic_load_explicit(&m->home->monitor, memory_order_relaxed) != m;
}

bool rr_monitor_is_off(const struct rr_monitor *m)
{
	return is_forked(m) || atomic_load_explicit(&m->lost, memory_order_relaxed);
}

static void report(struct rr_monitor *m, uintptr_t start, uintptr_t end)
{
	list_for_each_safe(node, &m->users) {
		struct rr_monitor_user *u = list_entry(node, struct rr_monitor_user, link);

		u->gone(u, start, end);
	}
}

static void lose(struct rr_monitor *m)
{
	atomic_store(&m->lost, true);
	report(m, 0, UINTPTR_MAX);
}

static void on_event(struct rr_monitor *m, const struct uffd_msg *msg)
{
	switch (msg->event) {
	case UFFD_EVENT_REMAP:
		report(m, (uintptr_t)msg->arg.remap.from,
		     (uintptr_t)(msg->arg.remap.from + msg->arg.remap.len));
		break;
	case UFFD_EVENT_REMOVE:
	case UFFD_EVENT_UNMAP:
		report(m, (uintptr_t)msg->arg.remove.start, (uintptr_t)msg->arg.remove.end);
		break;
	default: /* not requested */
		break;
	}
}

/* Reading an event resumes the unmapping thread: only call with the lock held. */
static void read_events(struct rr_monitor *m)
{
	struct uffd_msg msgs[8];

	while (!atomic_load_explicit(&m->lost, memory_order_relaxed)) {
		ssize_t n = read(m->uffd, msgs, sizeof(msgs));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0 || (size_t)n % sizeof(msgs[0])) {
			lose(m);
			return;
		}
		for (size_t i = 0; i < (size_t)n / sizeof(msgs[0]); i++)
			on_event(m, &msgs[i]);
	}
}

static void *run(void *arg)
{
	struct rr_monitor *m = arg;
	struct pollfd fds[] = { { .fd = m->stop, .events = POLLIN },
				{ .fd = m->uffd, .events = POLLIN } };

	while (!fds[0].revents) {
		nfds_t nfds = atomic_load(&m->lost) ? 1 : 2;

		fds[1].revents = 0;
		if (poll(fds, nfds, -1) <= 0 || !fds[1].revents)
			continue;
		pthread_mutex_lock(&m->lock);
		if (fds[1].revents & POLLIN)
			read_events(m);
		else
			lose(m);
		pthread_mutex_unlock(&m->lock);
	}
	if (!atomic_load(&m->lost))
		close(m->uffd);
	return NULL;
}

void rr_monitor_lock(struct rr_monitor *m)
{
	if (!is_forked(m)) /* in a child it may be locked for ever */
		pthread_mutex_lock(&m->lock);
}

/** rr_monitor_unlock - releases the lock */
void rr_monitor_unlock(struct rr_monitor *m)
{
	if (!is_forked(m))
		pthread_mutex_unlock(&m->lock);
}

bool rr_monitor_settle(struct rr_monitor *m)
{
	for (unsigned tries = 0; tries < SETTLE_TRIES && !rr_monitor_is_off(m); tries++) {
		struct uffdio_copy nothing = { .len = 0 };

		if (tries)
			sched_yield();
		/* the kernel checks for changes in progress before it checks the arguments */
		if (!ioctl(m->uffd, UFFDIO_COPY, &nothing) || errno == EINVAL)
			return true;
		if (errno == EAGAIN)
			read_events(m);
		else
			lose(m);
	}
	return false;
}

/* ---- ranges ---- */

static bool whole_pages(const struct rr_monitor *m, uintptr_t *start, uintptr_t *end)
{
	return *start < *end && pages_around(*start, *end - *start, m->page, start, end);
}

int rr_monitor_watch(struct rr_monitor *m, uintptr_t start, uintptr_t end)
{
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_WP };

	if (rr_monitor_is_off(m) || !whole_pages(m, &start, &end))
		return -EINVAL;
	reg.range = (struct uffdio_range){ .start = start, .len = end - start };
	if (ioctl(m->uffd, UFFDIO_REGISTER, &reg))
		return errno == EBUSY || errno == ENOMEM ? -errno : -EINVAL;
	/* Check only now: later replacements cause events. If it is refused, it stays watched, since other
	 * users may keep some of it. */
	return is_anonymous(m, start, end) ? 0 : -EINVAL;
}

void rr_monitor_unwatch(struct rr_monitor *m, uintptr_t start, uintptr_t end)
{
	struct uffdio_range range;

	if (rr_monitor_is_off(m) || !whole_pages(m, &start, &end))
		return;
	list_for_each(node, &m->users) {
		struct rr_monitor_user *u = list_entry(node, struct rr_monitor_user, link);

		if (u->keeps(u, start, end))
			return;
	}
	range = (struct uffdio_range){ .start = start, .len = end - start };
	(void)ioctl(m->uffd, UFFDIO_UNREGISTER, &range); /* it may be unmapped already */
}

void rr_monitor_add(struct rr_monitor *m, struct rr_monitor_user *u)
{
	rr_monitor_lock(m);
	list_add_tail(&m->users, &u->link);
	rr_monitor_unlock(m);
}

void rr_monitor_del(struct rr_monitor *m, struct rr_monitor_user *u)
{
	rr_monitor_lock(m);
	list_del(&u->link);
	rr_monitor_unlock(m);
}

/* ---- one per process ---- */

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Locks taken by the forking thread, so that the child inherits all of a monitor's descriptors, or none. */
static __thread struct {
	struct home *home;
	struct rr_monitor *monitor;
} forking;

static void before_fork(void)
{
	struct home *home = atomic_load(&the_home);

	pthread_mutex_lock(&home->lock);
	forking.home = home;
	forking.monitor = atomic_load(&home->monitor);
}

static void after_fork(void)
{
	if (forking.home)
		pthread_mutex_unlock(&forking.home->lock);
	forking.home = NULL;
}

static void after_fork_in_child(void)
{
	const struct rr_monitor *m = forking.home ? forking.monitor : NULL;

	forking.home = NULL; /* its lock has been cleared */
	if (!m)
		return;
	if (!atomic_load(&m->lost))
		close(m->uffd);
	close(m->maps);
	close(m->stop);
}

static int get_home(struct home **ret)
{
	struct home *home = atomic_load(&the_home), *first = NULL;

	if (!home) {
		home = mmap(NULL, sizeof(*home), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (home == MAP_FAILED)
			return -ENOMEM;
		if (madvise(home, sizeof(*home), MADV_WIPEONFORK)) {
			munmap(home, sizeof(*home));
			return -ENOSYS;
		}
		if (!atomic_compare_exchange_strong(&the_home, &first, home)) {
			munmap(home, sizeof(*home));
			home = first;
		} else {
			(void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
		}
	}
	*ret = home;
	return 0;
}

static int open_uffd(struct rr_monitor *m)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_EVENT_REMAP |
			    UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_UNMAP,
	};

	m->uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
	if (m->uffd < 0)
		return errno == EINVAL || errno == EACCES ? -ENOSYS : -errno;
	return ioctl(m->uffd, UFFDIO_API, &api) ? -ENOSYS : 0;
}

static int start_thread(struct rr_monitor *m)
{
	pthread_attr_t attr;
	int rc;

	rc = pthread_attr_init(&attr);
	if (rc)
		return -rc;
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	rc = thread_start(&m->thread, &attr, run, m);
	pthread_attr_destroy(&attr);
	if (!rc)
		(void)pthread_setname_np(m->thread, "leat-monitor");
	return rc;
}

/* Frees all but uffd, which the thread has closed if it ran. */
static void unmake(struct rr_monitor *m)
{
	close_if_open(m->maps);
	close_if_open(m->stop);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

static int make(struct home *home, struct rr_monitor **ret)
{
	struct rr_monitor *m = malloc(sizeof(*m));
	int rc;

	if (!m)
		return -ENOMEM;
	*m = (struct rr_monitor){ .home = home, .refs = 1, .uffd = -1, .maps = -1, .stop = -1,
				  .page = (uintptr_t)sysconf(_SC_PAGESIZE) };
	list_init(&m->users);
	pthread_mutex_init(&m->lock, NULL);
	rc = open_uffd(m);
	if (rc)
		goto fail;
	m->maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	m->stop = eventfd(0, EFD_CLOEXEC);
	if (m->maps < 0 || m->stop < 0) {
		rc = errno == ENOENT ? -ENOSYS : -errno;
		goto fail;
	}
	rc = start_thread(m);
	if (rc)
		goto fail;
	*ret = m;
	return 0;
fail:
	close_if_open(m->uffd);
	unmake(m);
	return rc;
}

int rr_monitor_get(struct rr_monitor **ret)
{
	struct rr_monitor *m;
	struct home *home;
	int rc;

	rc = get_home(&home);
	if (rc)
		return rc;
	pthread_mutex_lock(&home->lock);
	m = atomic_load(&home->monitor);
	if (m) {
		m->refs++;
	} else {
		rc = make(home, &m);
		if (!rc)
			atomic_store(&home->monitor, m);
	}
	pthread_mutex_unlock(&home->lock);
	if (!rc)
		*ret = m;
	return rc;
}

void rr_monitor_put(struct rr_monitor *m)
{
	struct home *home = m->home;

	if (is_forked(m)) /* its thread belongs to another process */
		return;
	pthread_mutex_lock(&home->lock);
	if (!--m->refs) {
		(void)eventfd_write(m->stop, 1);
		pthread_join(m->thread, NULL);
		atomic_store(&home->monitor, NULL);
		unmake(m);
	}
	pthread_mutex_unlock(&home->lock);
}
