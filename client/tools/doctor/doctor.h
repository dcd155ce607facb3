/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * doctor.h - leat doctor: one line per subject, and what the lines are judged by
 *
 * doctor.c        the command, and what a connection shows
 * doctor_host.c   this machine: limits, memory, processors, routes, O_DIRECT
 * doctor_rdma.c   its RDMA devices
 * doctor_judge.c  the rules and the parsers of /proc and /sys, all pure
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

/* What is found out about a subject. */
struct doctor_finding {
	enum doctor_verdict verdict;
	char text[512];
};

/** doctor_find - fill in a finding */
void doctor_find(struct doctor_finding *f, enum doctor_verdict verdict, const char *fmt, ...)
	printf_like(3, 4);

/** doctor_say - its line on standard output; control characters of others become '?' */
void doctor_say(const char *subject, const struct doctor_finding *f);

/** doctor_host - say what this machine is like; Return: does it have an RDMA device? */
bool doctor_host(void);

/** doctor_route - say what the way to @host is like */
void doctor_route(const char *host, bool rdma);

/** doctor_direct - say what O_DIRECT needs for files at or below @path
 *
 * Return: 0, or the -errno of looking at it, which was said.
 */
int doctor_direct(const char *path);

/** doctor_rdma - say what each RDMA device is like; Return: how many there are */
unsigned doctor_rdma(void);

/** doctor_read - the first bytes of a small file, as a string without the last newline
 * Return: 0 or -errno. */
int must_check doctor_read(const char *path, char *buf, size_t cap);

/* ---- doctor_judge.c ---------------------------------------------------------------------------- */

#define DOCTOR_CAP_IPC_LOCK 14u
#define DOCTOR_CAP_SYS_PTRACE 19u
#define DOCTOR_UNLIMITED UINT64_MAX

/** doctor_number - a decimal number, alone on its line */
bool must_check doctor_number(const char *text, uint64_t *ret);

/** doctor_choice - of "always [madvise] never" the one in brackets; Return: @buf, "" if there is none */
const char *doctor_choice(const char *text, char *buf, size_t cap);

/** doctor_has_cap - is capability @cap effective? @status: of /proc/PID/status */
bool doctor_has_cap(const char *status, unsigned cap);

/** doctor_smaps_kib - @field ("AnonHugePages") of the mapping that contains @addr
 * @smaps: of /proc/PID/smaps. Return: false if there is no such mapping or field */
bool must_check doctor_smaps_kib(const char *smaps, uintptr_t addr, const char *field, uint64_t *ret);

/** doctor_state - "4: ACTIVE" as "ACTIVE"; other texts as they are */
const char *doctor_state(const char *text);

/** doctor_gid - a GID of /sys as an address: IPv4 where it holds one
 * Return: false for one that is not set, is malformed, or of the link alone */
bool must_check doctor_gid(const char *text, char *buf, size_t cap);

/** doctor_roce_mtu - the path MTU of RoCE on a network device of @netdev_mtu bytes; 0: too small */
unsigned doctor_roce_mtu(unsigned netdev_mtu);

/* Limits in bytes; DOCTOR_UNLIMITED for none. */
void doctor_judge_memlock(uint64_t limit, bool privileged, bool has_device, struct doctor_finding *f);
/* @scope: kernel.yama.ptrace_scope, -1 without Yama. @privileged: CAP_SYS_PTRACE */
void doctor_judge_ptrace(int scope, bool privileged, struct doctor_finding *f);
/* @pool_kib, @buf_kib: what trials of @asked_kib each came to */
void doctor_judge_huge(const char *anon, uint64_t pool_kib, uint64_t buf_kib, uint64_t asked_kib,
		       struct doctor_finding *f);
void doctor_judge_files(uint64_t soft, uint64_t hard, struct doctor_finding *f);
void doctor_judge_aio(uint64_t used, uint64_t max, struct doctor_finding *f);
void doctor_judge_cpus(unsigned usable, unsigned online, struct doctor_finding *f);
void doctor_judge_mtu(const char *host, unsigned mtu, bool rdma, struct doctor_finding *f);

#endif
