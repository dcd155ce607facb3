/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * memfd_menu.h - descriptors that a hostile peer of the local fabric may pass instead of a memfd of its memory
 */
#ifndef MEMFD_MENU_H
#define MEMFD_MENU_H

#include <stdbool.h>
#include <stdint.h>

enum memfd_kind {
	/* what ends a connection */
	MEMFD_HUGE,        /* of huge pages, of the size it claims */
	MEMFD_HUGE_ODD,    /* of huge pages; it claims no multiple of them */
	MEMFD_UNSEALED,
	MEMFD_SHRINKS,     /* sealed against growth only */
	MEMFD_GROWS,       /* sealed against shrinking only */
	MEMFD_SHORT,       /* a page less than it claims */
	MEMFD_LONG,        /* a page more than it claims */
	MEMFD_SHM_FILE,    /* a file of tmpfs */
	MEMFD_DISK_FILE,
	MEMFD_PIPE,
	MEMFD_DEVICE,      /* /dev/zero */
	MEMFD_EVENT,
	MEMFD_PATH,        /* a proper memfd, opened with O_PATH */
	MEMFD_CUT_KINDS,   /* how many of these there are */

	/* what cannot be mapped: not taken, and no crime */
	MEMFD_READ_ONLY = MEMFD_CUT_KINDS, /* a proper memfd that was opened to be read */
	MEMFD_NO_WRITES,   /* sealed against writing, too */
	MEMFD_KINDS_REFUSED,

	/* what is taken, and does no harm */
	MEMFD_APPEND = MEMFD_KINDS_REFUSED, /* O_APPEND, O_NONBLOCK and O_NOATIME are set */
	MEMFD_SPARSE,      /* nothing but holes */
	MEMFD_KINDS,
};

/** memfd_menu_name - for messages */
const char *memfd_menu_name(enum memfd_kind kind);

/** memfd_menu_make - make one; all those in memory are called "evil"
 * @size: of the memory that it stands for; a multiple of the page size
 * @ret_claim: the size that goes with it
 *
 * Return: the descriptor; -1: this host cannot make it.
 */
int memfd_menu_make(enum memfd_kind kind, uint64_t size, uint64_t *ret_claim);

/** memfd_menu_swap - from now on messages of @type (enum hs_type; 0: none) pass one of @kind instead
 * @size: of what is to be replaced; 0: any
 *
 * For programs that are linked with --wrap=rr_local_sock_send.
 */
void memfd_menu_swap(unsigned type, enum memfd_kind kind, uint64_t size);

/** memfd_menu_evil - the last one that was passed, or -1; it stays open until the next memfd_menu_swap() */
int memfd_menu_evil(void);

/** memfd_menu_mapped - is a descriptor of the menu that is called "evil" mapped anywhere in this process? */
bool memfd_menu_mapped(void);

#endif
