/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * machine.h - CPU time of the whole machine and of this process
 */
#ifndef LEAT_BASE_MACHINE_H
#define LEAT_BASE_MACHINE_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/** machine_cpu_us - time that all CPUs have been busy since boot: programs, kernel, interrupts
 * The kernel counts it in ticks, so only differences over seconds are meaningful.
 *
 * Return: microseconds; 0 if unavailable
 */
static inline uint64_t machine_cpu_us(void)
{
	uint64_t user, nice, kernel, idle, iowait, irq, softirq;
	long hz = sysconf(_SC_CLK_TCK);
	FILE *f = fopen("/proc/stat", "re");
	int n;

	if (!f)
		return 0;
	n = fscanf(f, "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64, &user, &nice, &kernel, &idle, &iowait, &irq, &softirq);
	fclose(f);
	if (n != 7 || hz <= 0)
		return 0;
	return (user + nice + kernel + irq + softirq) * 1000000 / (uint64_t)hz;
}

/** machine_own_cpu_us - user and system time of this process, in microseconds */
static inline uint64_t machine_own_cpu_us(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return (uint64_t)(ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(ru.ru_utime.tv_usec + ru.ru_stime.tv_usec);
}

#endif
