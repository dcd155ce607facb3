/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * doctor_host.c - leat doctor: checks this machine, except for RDMA devices
 *
 * Operation:  Reads /proc and /sys, and tests what cannot be read reliably: huge pages, the MTU of a
 *             route, O_DIRECT. doctor_judge.c has the rules.
 * Memory:     A trial mapping of 4 MiB, and smaps, temporarily.
 * Threads:    One.
 * Errors:     Facts that cannot be determined are reported as such.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"

#define TRIAL_BYTES ((size_t)4 << 20)
#define HUGE_BYTES ((size_t)2 << 20)
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif
#define SMAPS_BYTES_MAX ((size_t)1 << 20)
#define THP "/sys/kernel/mm/transparent_hugepage/"
#define ALIGN_MAX 65536u

int doctor_read(const char *path, char *buf, size_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = 0;
	size_t len = 0;
	ssize_t n;

	if (fd < 0)
		return -errno;
	do {
		n = read(fd, buf + len, cap - 1 - len);
		if (n < 0)
			err = -errno;
		else
			len += (size_t)n;
	} while (n > 0 && len < cap - 1);
	close(fd);
	if (len && buf[len - 1] == '\n')
		len--;
	buf[len] = '\0';
	return err;
}

static uint64_t bytes_of(rlim_t limit)
{
	return limit == RLIM_INFINITY ? DOCTOR_UNLIMITED : (uint64_t)limit;
}

static void say_memlock(const char *status, bool has_device)
{
	struct rlimit rl = { .rlim_cur = 0 };
	struct doctor_finding f;

	(void)getrlimit(RLIMIT_MEMLOCK, &rl); /* fails only for wrong arguments */
	doctor_judge_memlock(bytes_of(rl.rlim_cur), doctor_has_cap(status, DOCTOR_CAP_IPC_LOCK),
			     has_device, &f);
	doctor_say("memlock", &f);
}

static void say_ptrace(const char *status)
{
	struct doctor_finding f;
	uint64_t scope;
	char text[32];
	bool yama = !doctor_read("/proc/sys/kernel/yama/ptrace_scope", text, sizeof(text)) &&
		    doctor_number(text, &scope);

	doctor_judge_ptrace(yama ? (int)scope : -1, doctor_has_cap(status, DOCTOR_CAP_SYS_PTRACE), &f);
	doctor_say("ptrace", &f);
}

/* Return: KiB in huge pages of the mapping at @mem, from @field of smaps */
static uint64_t huge_kib(const void *mem, const char *field)
{
	char *smaps = malloc(SMAPS_BYTES_MAX);
	uint64_t kib = 0;

	if (!smaps || doctor_read("/proc/self/smaps", smaps, SMAPS_BYTES_MAX) ||
	    !doctor_smaps_kib(smaps, (uintptr_t)mem, field, &kib))
		kib = 0;
	free(smaps);
	return kib;
}

/* Allocates memory as the pool does. */
static uint64_t pool_kib(void)
{
	void *map = mmap(NULL, TRIAL_BYTES + HUGE_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t kib;
	void *mem;

	if (map == MAP_FAILED)
		return 0;
	mem = (void *)(((uintptr_t)map + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES);
	(void)madvise(mem, TRIAL_BYTES, MADV_HUGEPAGE); /* the test measures whether it worked */
	memset(mem, 1, TRIAL_BYTES);
	kib = huge_kib(mem, "AnonHugePages");
	munmap(map, TRIAL_BYTES + HUGE_BYTES);
	return kib;
}

/* Allocates memory as leat_buf_alloc(leat_session()) does. */
static uint64_t buf_kib(void)
{
	int fd = memfd_create("leat-doctor", MFD_CLOEXEC);
	void *map = MAP_FAILED, *mem;
	uint64_t kib = 0;

	if (fd >= 0 && !ftruncate(fd, TRIAL_BYTES))
		map = mmap(NULL, TRIAL_BYTES + HUGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map != MAP_FAILED) {
		mem = (void *)(((uintptr_t)map + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES);
		if (mmap(mem, TRIAL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == mem) {
			memset(mem, 1, TRIAL_BYTES);
			(void)madvise(mem, TRIAL_BYTES, MADV_COLLAPSE);
			kib = huge_kib(mem, "ShmemPmdMapped");
		}
		munmap(map, TRIAL_BYTES + HUGE_BYTES);
	}
	if (fd >= 0)
		close(fd);
	return kib;
}

static void say_huge(void)
{
	char text[128], anon[32] = "";
	struct doctor_finding f;

	if (!doctor_read(THP "enabled", text, sizeof(text)))
		doctor_choice(text, anon, sizeof(anon));
	doctor_judge_huge(anon, pool_kib(), buf_kib(), TRIAL_BYTES >> 10, &f);
	doctor_say("hugepages", &f);
}

static void say_files(void)
{
	struct rlimit rl = { .rlim_cur = 0 };
	struct doctor_finding f;

	(void)getrlimit(RLIMIT_NOFILE, &rl); /* fails only for wrong arguments */
	doctor_judge_files(bytes_of(rl.rlim_cur), bytes_of(rl.rlim_max), &f);
	doctor_say("files", &f);
}

static void say_aio(void)
{
	struct doctor_finding f;
	char used[32], max[32];
	uint64_t u, m;

	if (doctor_read("/proc/sys/fs/aio-nr", used, sizeof(used)) || !doctor_number(used, &u) ||
	    doctor_read("/proc/sys/fs/aio-max-nr", max, sizeof(max)) || !doctor_number(max, &m))
		return; /* not supported by this kernel */
	doctor_judge_aio(u, m, &f);
	doctor_say("aio", &f);
}

static void say_cpus(void)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	struct doctor_finding f;
	cpu_set_t set;
	int usable = (int)online;

	if (!sched_getaffinity(0, sizeof(set), &set))
		usable = CPU_COUNT(&set);
	doctor_judge_cpus((unsigned)usable, (unsigned)online, &f);
	doctor_say("processors", &f);
}

bool doctor_host(void)
{
	char status[8192] = "";
	bool has_device;

	if (doctor_read("/proc/self/status", status, sizeof(status)))
		status[0] = '\0';
	has_device = doctor_rdma() > 0;
	say_memlock(status, has_device);
	say_ptrace(status);
	say_huge();
	say_files();
	say_aio();
	say_cpus();
	return has_device;
}

/* ---- the route to a host ---------------------------------------------------------------------- */

/* The largest packet on the route, from the kernel; sends nothing. Return: bytes or -errno */
static int route_mtu(const struct addrinfo *ai)
{
	bool v6 = ai->ai_family == AF_INET6;
	int fd = socket(ai->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), mtu = 0;
	socklen_t len = sizeof(mtu);

	if (fd < 0)
		return -errno;
	if (connect(fd, ai->ai_addr, ai->ai_addrlen) ||
	    getsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MTU : IP_MTU, &mtu, &len))
		mtu = -errno;
	close(fd);
	return mtu;
}

void doctor_route(const char *host, bool rdma)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_DGRAM };
	struct doctor_finding f;
	struct addrinfo *ai;
	int rc = getaddrinfo(host, "2049", &hints, &ai);

	if (rc) {
		doctor_report("network", DOCTOR_MISSING, "%s: %s", host, gai_strerror(rc));
		return;
	}
	rc = route_mtu(ai);
	freeaddrinfo(ai);
	if (rc < 0) {
		doctor_report("network", DOCTOR_MISSING, "no way to %s: %s", host, strerror(-rc));
		return;
	}
	doctor_judge_mtu(host, (unsigned)rc, rdma, &f);
	doctor_say("network", &f);
}

/* ---- O_DIRECT ---------------------------------------------------------------------------------- */

/* The smallest length that O_DIRECT can write; 0 if none. */
static unsigned try_lengths(int fd, void *buf)
{
	for (unsigned align = 512; align <= ALIGN_MAX; align *= 2) {
		if (pwrite(fd, buf, align, align) == (ssize_t)align)
			return align;
	}
	return 0;
}

static void say_no_direct(const char *path)
{
	doctor_report("direct io", DOCTOR_SLOWER, "%s: this file system has no O_DIRECT", path);
}

static void say_direct(const char *path, int fd)
{
	void *buf = NULL;
	unsigned align = 0;
#ifdef STATX_DIOALIGN
	struct statx st;

	if (!statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &st) && st.stx_mask & STATX_DIOALIGN &&
	    st.stx_dio_offset_align) {
		doctor_report("direct io", DOCTOR_OK, "%s: offsets of %u, memory of %u bytes, as the kernel says",
			      path, st.stx_dio_offset_align, st.stx_dio_mem_align);
		return;
	}
#endif
	if (!posix_memalign(&buf, ALIGN_MAX, ALIGN_MAX)) {
		memset(buf, 0, ALIGN_MAX);
		align = try_lengths(fd, buf);
	}
	free(buf);
	if (align)
		doctor_report("direct io", DOCTOR_OK, "%s: offsets of %u bytes, by trial", path, align);
	else
		say_no_direct(path);
}

int doctor_direct(const char *path)
{
	struct stat st;
	int fd, rc = 0;

	if (stat(path, &st)) {
		rc = -errno;
		doctor_report("direct io", DOCTOR_MISSING, "%s: %s", path, strerror(errno));
		return rc;
	}
	/* an unnamed file in the directory; an existing file is only queried, never written */
	if (S_ISDIR(st.st_mode))
		fd = open(path, O_TMPFILE | O_RDWR | O_DIRECT | O_CLOEXEC, 0600);
	else
		fd = open(path, O_RDONLY | O_DIRECT | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0) {
		say_direct(path, fd);
		close(fd);
	} else if (errno == EINVAL) {
		say_no_direct(path);
	} else {
		doctor_report("direct io", DOCTOR_OK, "%s: not known: %s", path, strerror(errno));
	}
	return 0;
}
