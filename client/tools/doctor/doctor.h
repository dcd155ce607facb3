/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * doctor.h - leat doctor: one line per subject, and the rules behind them
 *
 * doctor.c        the command, and checks of a connection
 * doctor_host.c   this machine: limits, memory, processors, routes, O_DIRECT
 * doctor_rdma.c   its RDMA devices
 * doctor_judge.c  the rules and the parsers of /proc and /sys, pure functions
 */
#ifndef LEAT_DOCTOR_H
#define LEAT_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

enum doctor_verdict {
	DOCTOR_OK,
	DOCTOR_SLOWER,  /* it works, and could be faster */
	DOCTOR_MISSING, /* something will not work */
};

/* The result about one subject. */
struct doctor_finding {
	enum doctor_verdict verdict;
	char text[512];
};

/** doctor_find - fills in a finding */
void doctor_find(struct doctor_finding *f, enum doctor_verdict verdict, const char *fmt, ...)
	printf_like(3, 4);

/** doctor_say - prints its line on standard output; control characters in foreign text become '?' */
void doctor_say(const char *subject, const struct doctor_finding *f);

/** doctor_report - doctor_find() and doctor_say() */
void doctor_report(const char *subject, enum doctor_verdict verdict, const char *fmt, ...)
	printf_like(3, 4);

/** doctor_host - reports on this machine; Return: does it have an RDMA device? */
bool doctor_host(void);

/** doctor_route - reports on the route to @host */
void doctor_route(const char *host, bool rdma);

/** doctor_direct - reports the O_DIRECT requirements of files at or below @path
 *
 * Return: 0, or the -errno of accessing it, which was reported.
 */
int doctor_direct(const char *path);

/** doctor_rdma - reports on each RDMA device; Return: their number */
unsigned doctor_rdma(void);

/** doctor_read - reads the first bytes of a small file, as a string without the last newline
 * Return: 0 or -errno. */
int must_check doctor_read(const char *path, char *buf, size_t cap);

/* ---- doctor_judge.c ---------------------------------------------------------------------------- */

#define DOCTOR_CAP_IPC_LOCK 14u
#define DOCTOR_CAP_SYS_PTRACE 19u
#define DOCTOR_UNLIMITED UINT64_MAX

/** doctor_number - parses a decimal number that is alone on its line */
bool must_check doctor_number(const char *text, uint64_t *ret);

/** doctor_choice - the bracketed word of "always [madvise] never"; Return: @buf, "" without one */
const char *doctor_choice(const char *text, char *buf, size_t cap);

/** doctor_has_cap - is capability @cap effective? @status: of /proc/PID/status */
bool doctor_has_cap(const char *status, unsigned cap);

/** doctor_smaps_kib - @field ("AnonHugePages") of the mapping that contains @addr
 * @smaps: of /proc/PID/smaps. Return: false if there is no such mapping or field */
bool must_check doctor_smaps_kib(const char *smaps, uintptr_t addr, const char *field, uint64_t *ret);

/** doctor_state - "4: ACTIVE" as "ACTIVE"; other texts unchanged */
const char *doctor_state(const char *text);

/** doctor_gid - converts a GID of /sys to an address: IPv4 if it contains one
 * Return: false if it is unset, malformed, or link-local */
bool must_check doctor_gid(const char *text, char *buf, size_t cap);

/** doctor_roce_mtu - the path MTU of RoCE on a network device of @netdev_mtu bytes; 0: too small */
unsigned doctor_roce_mtu(unsigned netdev_mtu);

/* Limits in bytes; DOCTOR_UNLIMITED: no limit. */
void doctor_judge_memlock(uint64_t limit, bool privileged, bool has_device, struct doctor_finding *f);
/* @scope: kernel.yama.ptrace_scope, -1 without Yama. @privileged: CAP_SYS_PTRACE */
void doctor_judge_ptrace(int scope, bool privileged, struct doctor_finding *f);
/* @pool_kib, @buf_kib: huge pages found in trial mappings of @asked_kib each */
void doctor_judge_huge(const char *anon, uint64_t pool_kib, uint64_t buf_kib, uint64_t asked_kib,
		       struct doctor_finding *f);
void doctor_judge_files(uint64_t soft, uint64_t hard, struct doctor_finding *f);
void doctor_judge_aio(uint64_t used, uint64_t max, struct doctor_finding *f);
void doctor_judge_cpus(unsigned usable, unsigned online, struct doctor_finding *f);
void doctor_judge_mtu(const char *host, unsigned mtu, bool rdma, struct doctor_finding *f);

#endif
