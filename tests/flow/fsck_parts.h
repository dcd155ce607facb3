/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fsck_parts.h - leat volume fsck in this process, on the volume of the rig: what its tests share
 *
 * Asserts what it says. Programs are linked with $(FSCK_PARTS) (tests/build.mk).
 */
#ifndef TESTS_FLOW_FSCK_PARTS_H
#define TESTS_FLOW_FSCK_PARTS_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "leat.h"
#include "leat_volume.h"

#define FSCK_BYTES 300000u /* of a file: two of its four stripes have two units */

/* exit statuses */
enum { FSCK_CLEAN = 0, FSCK_INCOMPLETE = 1, FSCK_USAGE = 2, FSCK_FAULTS = 3, FSCK_REPAIRED = 4 };

struct fsck_parts {
	struct leat *m;
	struct leat_volume_key *key;
	uint8_t data[FSCK_BYTES];
	char out[65536]; /* of the last command */
	char dir[300];   /* that is checked; "": the volume */

	/* what happens between the steps of the command */
	void (*before_stat)(void), (*after_stat)(void), (*before_layout)(const char *path); /* called once */
	const char *unreadable; /* LAYOUT of this path fails: */
	int unreadable_err;
	_Atomic ino_t unread_ino; /* a file whose attributes cannot be read; 0: none */
};

extern struct fsck_parts fsck;

/** fsck_setup - for a test: a volume of four servers, mounted as fsck.m; fsck_teardown() ends it
 * fsck_setup_away() - what is pending for a server that is away stays so when it is back
 */
int fsck_setup(void **state);
int fsck_setup_away(void **state);
int fsck_teardown(void **state);

/** fsck_try - runs the command with @options; Return: its exit status */
int fsck_try(const char *options);

/** fsck_run - runs the command, whose exit status has to be @status */
void fsck_run(int status, const char *options);

/** fsck_says - the last command has printed @text; fsck_says_not() - it has not */
void fsck_says(const char *text);
void fsck_says_not(const char *text);

struct leat_file *fsck_open(const char *name, int flags);

/** fsck_write_file - makes a file of FSCK_BYTES of fsck.data */
void fsck_write_file(const char *name);

/** fsck_file_path - the file in the directory of the manager; static: until the next call */
const char *fsck_file_path(const char *name);

/** fsck_object_path - the object of a stripe, on disk; static: until the next call
 * @ret_server: gets its server, from 0
 */
const char *fsck_object_path(const char *name, uint32_t stripe, unsigned *ret_server);

/** fsck_make_old - an hour passes for a file */
void fsck_make_old(const char *path);

/** fsck_make_orphan - an object that no file has, on server 1
 * @digits: its name
 */
void fsck_make_orphan(const char *digits, const char *text);

/** fsck_attribute_of - the name of the attribute that holds what leatd keeps of a file */
const char *fsck_attribute_of(const char *path);

/** fsck_digest - of all that is on disk, but for times of access and of the last change of an inode */
uint64_t fsck_digest(void);

/** fsck_wait_for_pending - until nothing is pending any more */
void fsck_wait_for_pending(void);

/** fsck_make_files - files of each kind: cut, linked, empty, sparse, replaced, removed; in directories */
void fsck_make_files(void);

/** fsck_end_manager - ends the manager, and the mount; fsck_start_manager() starts both */
void fsck_end_manager(void);
void fsck_start_manager(void);

/** fsck_restart_server - a server, from 0, forgets what it has in memory */
void fsck_restart_server(unsigned server);

/** fsck_remove_object - tells a server, from 0, to remove an object, as a manager of @term would */
void fsck_remove_object(unsigned server, const unsigned char object[16], uint32_t stripe, uint64_t term);

#endif
