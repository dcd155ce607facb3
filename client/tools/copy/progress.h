/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * progress.h - progress bar of a copy on a terminal
 */
#ifndef LEAT_TOOL_PROGRESS_H
#define LEAT_TOOL_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Shared by all copying threads. */
struct progress {
	pthread_mutex_t lock; /* protects everything except `on` and start_ns */
	bool on, drawn;
	uint64_t start_ns, drawn_ns;
	uint64_t bytes, files;            /* of all files so far */
	uint64_t file_bytes, file_size;   /* of the current file */
	char name[64];
};

/** progress_init - shows the bar only if standard error is a terminal */
void progress_init(struct progress *p);
/** progress_file - starts @name, of @size bytes (0: not known) */
void progress_file(struct progress *p, const char *name, uint64_t size);
void progress_add(struct progress *p, uint64_t bytes);
/** progress_hide - erases the bar before a message */
void progress_hide(struct progress *p);
/** progress_end - leaves the last state of the bar on the screen */
void progress_end(struct progress *p);

#endif
