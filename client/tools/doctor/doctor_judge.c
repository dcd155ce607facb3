/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * doctor_judge.c - leat doctor: the rules, and the parsers for /proc and /sys
 *
 * Operation:  Pure: text and numbers in, findings out. Each requirement is stated once, here.
 * Memory:     The caller's.
 * Threads:    Any.
 * Errors:     Text that does not parse yields "not known", never a verdict.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define MIB (UINT64_C(1) << 20)
/* leatd's default pool, and room for connections of half a MiB each */
#define MEMLOCK_SERVER (320 * MIB)
/* 64 receives and sends of 4 KiB, and eight calls of a MiB in flight */
#define MEMLOCK_CLIENT (16 * MIB)
/* a new connection with a call or two */
#define MEMLOCK_CONNECT (2 * MIB)
#define FILES_ENOUGH 4096u
#define AIO_ENOUGH 4096u
/* IP, UDP and InfiniBand headers of a RoCE packet, as the kernel counts them */
#define ROCE_HEADERS 96u
#define ROCE_FULL 4192u /* network MTU that carries 4096 bytes */

void doctor_find(struct doctor_finding *f, enum doctor_verdict verdict, const char *fmt, ...)
{
	va_list ap;

	f->verdict = verdict;
	va_start(ap, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
}

/* ---- parsers --------------------------------------------------------------------------------- */

bool doctor_number(const char *text, uint64_t *ret)
{
	unsigned long long v;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	v = strtoull(text, &end, 10);
	if (errno || (*end && *end != '\n'))
		return false;
	*ret = v;
	return true;
}

const char *doctor_choice(const char *text, char *buf, size_t cap)
{
	const char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;

	buf[0] = '\0';
	if (close)
		snprintf(buf, cap, "%.*s", (int)(close - open - 1), open + 1);
	return buf;
}

bool doctor_has_cap(const char *status, unsigned cap)
{
	const char *at = strstr(status, "\nCapEff:");

	return at && cap < 64 && strtoull(at + strlen("\nCapEff:"), NULL, 16) >> cap & 1;
}

bool doctor_smaps_kib(const char *smaps, uintptr_t addr, const char *field, uint64_t *ret)
{
	size_t len = strlen(field);
	bool inside = false;

	for (const char *line = smaps; line && *line; line = strchr(line, '\n')) {
		unsigned long long from, to;

		line += *line == '\n';
		/* the first line of a mapping begins with its range, the others with a name */
		if (sscanf(line, "%llx-%llx ", &from, &to) == 2)
			inside = addr >= from && addr < to;
		else if (inside && !strncmp(line, field, len) && line[len] == ':')
			return sscanf(line + len + 1, "%" SCNu64 " kB", ret) == 1;
	}
	return false;
}

const char *doctor_state(const char *text)
{
	const char *colon = strstr(text, ": ");

	return colon ? colon + 2 : text;
}

bool doctor_gid(const char *text, char *buf, size_t cap)
{
	struct in6_addr in6;

	if (inet_pton(AF_INET6, text, &in6) != 1 || IN6_IS_ADDR_UNSPECIFIED(&in6) ||
	    IN6_IS_ADDR_LINKLOCAL(&in6))
		return false;
	if (IN6_IS_ADDR_V4MAPPED(&in6))
		return inet_ntop(AF_INET, &in6.s6_addr[12], buf, (socklen_t)cap) != NULL;
	return inet_ntop(AF_INET6, &in6, buf, (socklen_t)cap) != NULL;
}

unsigned doctor_roce_mtu(unsigned netdev_mtu)
{
	for (unsigned mtu = 4096; mtu >= 256; mtu /= 2) {
		if (netdev_mtu >= mtu + ROCE_HEADERS)
			return mtu;
	}
	return 0;
}

/* ---- rules ----------------------------------------------------------------------------------- */

void doctor_judge_memlock(uint64_t limit, bool privileged, bool has_device, struct doctor_finding *f)
{
	static const char advice[] = "raise it: ulimit -l unlimited, memlock in "
				     "/etc/security/limits.conf, LimitMEMLOCK=infinity of a service";
	unsigned long long mib = limit / MIB;

	if (privileged)
		doctor_find(f, DOCTOR_OK, "no limit: CAP_IPC_LOCK");
	else if (limit == DOCTOR_UNLIMITED)
		doctor_find(f, DOCTOR_OK, "no limit for this user");
	else if (!has_device)
		doctor_find(f, DOCTOR_OK,
			    "%llu MiB for this user; only RDMA devices need it, and this host has no such device", mib);
	else if (limit >= MEMLOCK_SERVER)
		doctor_find(f, DOCTOR_OK, "%llu MiB for this user: enough for leat, and for leatd at "
			    "one device", mib);
	else if (limit >= MEMLOCK_CLIENT)
		doctor_find(f, DOCTOR_SLOWER, "%llu MiB for this user: enough for leat, not for leatd "
			    "(%llu MiB for each device); %s", mib,
			    (unsigned long long)(MEMLOCK_SERVER / MIB), advice);
	else
		doctor_find(f, limit >= MEMLOCK_CONNECT ? DOCTOR_SLOWER : DOCTOR_MISSING,
			    "%llu MiB for this user: %s RDMA (leat wants %llu, leatd %llu MiB for each "
			    "device); %s", mib,
			    limit >= MEMLOCK_CONNECT ? "large transfers may fail over" : "too little for",
			    (unsigned long long)(MEMLOCK_CLIENT / MIB),
			    (unsigned long long)(MEMLOCK_SERVER / MIB), advice);
}

void doctor_judge_ptrace(int scope, bool privileged, struct doctor_finding *f)
{
	static const char instead[] = "on the local fabric memory that is not of leat_buf_alloc(leat_session()) takes "
				      "one more copy";
	char yama[48] = "no Yama";

	if (scope >= 0)
		snprintf(yama, sizeof(yama), "kernel.yama.ptrace_scope is %d", scope);
	if (scope > 0)
		doctor_find(f, DOCTOR_SLOWER, "%s: process_vm_readv is refused between leat and leatd; "
			    "%s; sysctl kernel.yama.ptrace_scope=0 lets one user's processes do it",
			    yama, instead);
	else if (privileged)
		doctor_find(f, DOCTOR_SLOWER, "%s, but a leatd with CAP_SYS_PTRACE, which this "
			    "process has, does not reach into others: then %s; one that is run by "
			    "leat's own unprivileged user does", yama, instead);
	else
		doctor_find(f, DOCTOR_OK, "%s: leatd of this same user reaches memory of leat by "
			    "process_vm_readv; of another user, through copies", yama);
}

void doctor_judge_huge(const char *anon, uint64_t pool_kib, uint64_t buf_kib, uint64_t asked_kib,
		       struct doctor_finding *f)
{
	unsigned long long asked = asked_kib;

	if (pool_kib < asked_kib)
		doctor_find(f, DOCTOR_SLOWER, "transparent huge pages: %s; of %llu KiB on trial %llu "
			    "are huge: the pool is of small pages; echo madvise "
			    ">/sys/kernel/mm/transparent_hugepage/enabled", *anon ? anon : "not known",
			    asked, (unsigned long long)pool_kib);
	else if (buf_kib < asked_kib)
		doctor_find(f, DOCTOR_SLOWER, "transparent huge pages: %s; a trial of %llu KiB is huge, but "
			    "of as much of leat_buf_alloc(leat_session()) only %llu: disks read into single pages of it "
			    "(Linux before 6.1, or no room for huge pages)", anon, asked,
			    (unsigned long long)buf_kib);
	else
		doctor_find(f, DOCTOR_OK, "transparent huge pages: %s; a trial of %llu KiB is huge, of "
			    "leat_buf_alloc(leat_session()) too; nr_hugepages is not needed", anon, asked);
}

void doctor_judge_files(uint64_t soft, uint64_t hard, struct doctor_finding *f)
{
	bool enough = hard >= FILES_ENOUGH;
	char max[32] = "any number";

	if (hard != DOCTOR_UNLIMITED)
		snprintf(max, sizeof(max), "%llu", (unsigned long long)hard);
	doctor_find(f, enough ? DOCTOR_OK : DOCTOR_SLOWER, "%llu, may be raised to %s%s",
		    (unsigned long long)soft, max,
		    enough ? ", which leatd does" : ": leatd keeps few files open; raise the hard "
						    "limit (LimitNOFILE= of a service)");
}

void doctor_judge_aio(uint64_t used, uint64_t max, struct doctor_finding *f)
{
	bool enough = max >= used && max - used >= AIO_ENOUGH;

	doctor_find(f, enough ? DOCTOR_OK : DOCTOR_SLOWER, "%llu of fs.aio-max-nr %llu in use%s",
		    (unsigned long long)used, (unsigned long long)max,
		    enough ? ""
			   : ": too few are left for exports that are read or written directly; "
			     "sysctl fs.aio-max-nr=1048576");
}

void doctor_judge_cpus(unsigned usable, unsigned online, struct doctor_finding *f)
{
	if (usable > 1)
		doctor_find(f, DOCTOR_OK, "%u of %u: polling for replies costs one of them while it "
			    "lasts", usable, online);
	else
		doctor_find(f, DOCTOR_SLOWER, "%u of %u: a client that polls takes it from a server on the "
			    "same host; poll=event does not", usable, online);
}

void doctor_judge_mtu(const char *host, unsigned mtu, bool rdma, struct doctor_finding *f)
{
	unsigned roce = doctor_roce_mtu(mtu);

	if (!rdma || mtu >= ROCE_FULL)
		doctor_find(f, DOCTOR_OK, "%u bytes to %s", mtu, host);
	else
		doctor_find(f, DOCTOR_SLOWER, "%u bytes to %s: RoCE moves %u at once; with %u or more "
			    "on the whole way it would be 4096", mtu, host, roce, ROCE_FULL);
}
