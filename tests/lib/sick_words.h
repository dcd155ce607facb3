/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * sick_words.h - a captured conversation of one program, of which single words are changed: leat dump must find that
 *
 * Include it behind <cmocka.h>. Whatever fails is asserted.
 */
#ifndef TEST_SICK_WORDS_H
#define TEST_SICK_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "tests/lib/dump_session.h"

/* A word that is changed is the number of the procedure, or is at an offset from the arguments, from the end of the file
 * handle with which these begin, or from the status. */
enum sick_place { SICK_PROC, SICK_ARGS, SICK_BEHIND_FH, SICK_RESULTS };

struct sick_word {
	const char *rule, *also; /* what is reported then: the first one, and nothing beside both; also "": anything */
	uint32_t proc;
	unsigned nth;            /* call of @proc, from 0 */
	enum sick_place place;
	unsigned at;
	uint32_t value;
};

/** sick_words_load - reads a file that a server has captured; image_fini() to come */
void sick_words_load(const char *path, struct image *ret);

/** sick_words_lines - nothing in @i breaks a rule, and its dump has these @n parts of lines */
void sick_words_lines(const struct image *i, const char *const *lines, size_t n);

/** sick_words_found - each change of a call or reply of @prog, version 1, is found */
void sick_words_found(const struct image *i, uint32_t prog, const struct sick_word *v, size_t n);

#endif
