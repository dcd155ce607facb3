/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * progress.h - the bar that a copy shows on a terminal
 */
#ifndef LEAT_TOOL_PROGRESS_H
#define LEAT_TOOL_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Shared by all who copy. */
struct progress {
	pthread_mutex_t lock; /* of all of it but `on` and start_ns */
	bool on, drawn;
	uint64_t start_ns, drawn_ns;
	uint64_t bytes, files;            /* of all files so far */
	uint64_t file_bytes, file_size;   /* of this one */
	char name[64];
};

/** progress_init - shown only if standard error is a terminal */
void progress_init(struct progress *p);
/** progress_file - @name, of @size bytes (0: not known), comes next */
void progress_file(struct progress *p, const char *name, uint64_t size);
void progress_add(struct progress *p, uint64_t bytes);
/** progress_hide - make room for a message */
void progress_hide(struct progress *p);
/** progress_end - leave the last line standing */
void progress_end(struct progress *p);

#endif
