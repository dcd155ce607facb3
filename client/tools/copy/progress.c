/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * progress.c - progress bar of a copy on a terminal
 *
 * Operation:  One line on standard error, redrawn at most ten times a second; nothing if that is not a
 *             terminal. With several files at once, the most recently started one is named.
 * Memory:     None.
 * Threads:    Any.
 * Errors:     None: failures to draw are ignored.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "progress.h"
#include "tool.h"

#define BAR_WIDTH 24
#define DRAW_NS (NS_PER_S / 10)

void progress_init(struct progress *p)
{
	*p = (struct progress){ .on = isatty(STDERR_FILENO) != 0, .start_ns = clock_now_ns(),
				.lock = PTHREAD_MUTEX_INITIALIZER };
}

static void draw(struct progress *p, uint64_t now)
{
	char done[16], rate[16], bar[BAR_WIDTH + 1];
	uint64_t ns = now - p->start_ns;
	unsigned filled, percent;

	tool_print_size(p->bytes, done);
	tool_print_size(ns ? (uint64_t)((double)p->bytes * 1e9 / (double)ns) : 0, rate);
	fprintf(stderr, "\r\033[K%-24.24s ", p->name);
	if (p->file_size) {
		double part = (double)MIN(p->file_bytes, p->file_size) / (double)p->file_size;

		filled = (unsigned)(part * BAR_WIDTH);
		percent = (unsigned)(part * 100);
		memset(bar, '-', BAR_WIDTH);
		memset(bar, '#', filled);
		bar[BAR_WIDTH] = '\0';
		fprintf(stderr, "[%s] %3u%% ", bar, percent);
	}
	fprintf(stderr, " %s  %s/s  %llu file%s", done, rate, (unsigned long long)p->files,
		tool_plural(p->files));
	fflush(stderr);
	p->drawn = true;
	p->drawn_ns = now;
}

void progress_file(struct progress *p, const char *name, uint64_t size)
{
	char base[256];

	tool_base_name(name, base, sizeof(base));
	for (char *c = base; *c; c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	}
	pthread_mutex_lock(&p->lock);
	p->files++;
	p->file_bytes = 0;
	p->file_size = size;
	snprintf(p->name, sizeof(p->name), "%.63s", base);
	pthread_mutex_unlock(&p->lock);
}

void progress_add(struct progress *p, uint64_t bytes)
{
	uint64_t now = p->on ? clock_now_ns() : 0;

	pthread_mutex_lock(&p->lock);
	p->bytes += bytes;
	p->file_bytes += bytes;
	if (p->on && now - p->drawn_ns >= DRAW_NS)
		draw(p, now);
	pthread_mutex_unlock(&p->lock);
}

void progress_hide(struct progress *p)
{
	pthread_mutex_lock(&p->lock);
	if (p->drawn)
		fputs("\r\033[K", stderr);
	p->drawn = false;
	pthread_mutex_unlock(&p->lock);
}

void progress_end(struct progress *p)
{
	if (!p->on || !p->files)
		return;
	draw(p, clock_now_ns());
	fputc('\n', stderr);
}
