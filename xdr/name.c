/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * name.c - file names and paths on the wire: XDR strings from untrusted peers
 *
 * Operation:  Filters that the generated codecs call by name. libtirpc's xdr_string() would end a name at
 *             a NUL inside it, so that "a\0b" became "a". Also, a name that is too long would make the
 *             whole message invalid, although NFS has a status for it. So a filename3 that cannot name a
 *             file still decodes, into a name that every server refuses:
 *               longer than NFS3_MAXNAMLEN, up to NAME_WIRE_MAX: its first 256 bytes, which are
 *               more than NFS3_MAXNAMLEN, so the reply is NFS3ERR_NAMETOOLONG;
 *               with a NUL inside: "/", which as a name is NFS3ERR_ACCES.
 *             A path with a NUL inside decodes into the empty path, which names no export; "/" could name one.
 * Memory:     Into *name if that is not NULL (FILENAME3_ROOM, MNTPATHLEN + 1, MNTNAMLEN + 1 bytes);
 *             allocated otherwise, and then freed by XDR_FREE.
 * Threads:    Any.
 * Errors:     FALSE: too long, or the stream ended, or no memory. Memory allocated before the failure
 *             stays in *name, for xdr_free().
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "mount3.h"
#include "nfs3.h"

#define NAME_WIRE_MAX 4096u

/* Reads bytes and pad. xdr_opaque() would read the pad into one static buffer shared by all threads. */
static bool get_bytes(XDR *xdrs, char *to, uint32_t len)
{
	uint32_t whole = len & ~UINT32_C(3);
	char last[4];

	if (!xdr_opaque(xdrs, to, whole))
		return false;
	if (whole == len)
		return true;
	if (!xdr_opaque(xdrs, last, sizeof(last)))
		return false;
	memcpy(to + whole, last, len - whole);
	return true;
}

static bool skip_bytes(XDR *xdrs, uint32_t n)
{
	char sink[64];

	while (n) {
		uint32_t step = MIN(n, (uint32_t)sizeof(sink));

		if (!xdr_opaque(xdrs, sink, step))
			return false;
		n -= step;
	}
	return true;
}

/* @keep: maximum bytes to store; @max: maximum bytes to accept; the name has room for @keep + 1 */
static bool_t decode_name(XDR *xdrs, char **name, uint32_t keep, uint32_t max)
{
	uint32_t len, stored, padded;

	if (!xdr_uint32_t(xdrs, &len) || len > max)
		return FALSE;
	stored = MIN(len, keep);
	if (!*name) {
		*name = malloc(stored + 1);
		if (!*name)
			return FALSE;
	}
	(*name)[0] = '\0';
	if (stored == len) {
		if (!get_bytes(xdrs, *name, len))
			return FALSE;
		/* only names are accepted beyond what is stored, because their length has its own error; not paths */
		if (keep == max && memchr(*name, '\0', len)) {
			(*name)[0] = '\0';
			return TRUE;
		}
	} else {
		/* keep is a multiple of 4: xdr_opaque() expects no pad there */
		padded = (uint32_t)round_up4(len);
		if (!xdr_opaque(xdrs, *name, stored) || !skip_bytes(xdrs, padded - stored))
			return FALSE;
	}
	(*name)[stored] = '\0';
	if (strlen(*name) != stored)
		memcpy(*name, "/", 2); /* fits: at least one byte and its NUL were stored */
	return TRUE;
}

static bool_t code_name(XDR *xdrs, char **name, uint32_t keep, uint32_t max)
{
	size_t len;
	uint32_t word;

	switch (xdrs->x_op) {
	case XDR_DECODE:
		return decode_name(xdrs, name, keep, max);
	case XDR_ENCODE:
		if (!*name)
			return FALSE;
		len = strlen(*name);
		if (len > max)
			return FALSE;
		word = (uint32_t)len;
		return xdr_uint32_t(xdrs, &word) && xdr_opaque(xdrs, *name, word);
	case XDR_FREE:
		free(*name);
		*name = NULL;
		return TRUE;
	}
	return FALSE;
}

/** xdr_filename3 - filename3: string<NFS3_MAXNAMLEN>; decoding tolerates invalid names as above
 *
 * Encoding accepts up to NAME_WIRE_MAX bytes too: the server returns NAMETOOLONG.
 */
bool_t xdr_filename3(XDR *xdrs, filename3 *name)
{
	return code_name(xdrs, name, NFS3_MAXNAMLEN + 1, NAME_WIRE_MAX);
}

/** xdr_dirpath - MOUNT's dirpath: string<MNTPATHLEN> */
bool_t xdr_dirpath(XDR *xdrs, dirpath *path)
{
	return code_name(xdrs, path, MNTPATHLEN, MNTPATHLEN);
}

/** xdr_mountname - MOUNT's name: string<MNTNAMLEN> */
bool_t xdr_mountname(XDR *xdrs, mountname *name)
{
	return code_name(xdrs, name, MNTNAMLEN, MNTNAMLEN);
}
