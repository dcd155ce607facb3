/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * vectors.h - golden messages of tests/vectors for the tests
 *
 * A vector is a text file of hex digits; white space is ignored and `#` starts a comment that ends
 * with the line. NAME.hex is one Send, from the transport header to the last RPC byte;
 * NAME.rpc.hex is an RPC message alone, as it lay in a chunk. The directory is
 * $LEAT_TESTS_DIR/vectors, else the macro LEAT_TESTS_DIR's, else tests/vectors.
 */
#ifndef LEAT_TESTS_VECTORS_H
#define LEAT_TESTS_VECTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vector {
	char name[64];	/* file name without .hex */
	uint8_t *bytes; /* owned; exactly len bytes, so that a sanitizer sees every overrun */
	size_t len;
};

typedef void (*vector_fn)(const struct vector *v, void *arg);

/** vector_load - read one; a missing or malformed file ends the test program with a message */
void vector_load(const char *name, struct vector *ret);

/** vector_unload - give back its bytes */
void vector_unload(struct vector *v);

/** vector_is_rpc - is it a NAME.rpc? */
bool vector_is_rpc(const struct vector *v);

/** vector_each - call @fn with each vector in order of names; Return: how many there were */
unsigned vector_each(vector_fn fn, void *arg);

#endif
