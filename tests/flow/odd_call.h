/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * odd_call.h - NFS calls of every procedure with whatever arguments, and a tree that must not change
 *
 * For test_bad_input.c, whose tables say what is called and what must be the answer. In the directory
 * of export /e0 there is one file of each kind, see odd_tree_make().
 */
#ifndef ODD_CALL_H
#define ODD_CALL_H

#include "nfs_peer.h"

/* What the handles are of. */
enum odd_file {
	ODD_ROOT, /* of /e0: a directory with all of the following */
	ODD_REG,  /* "file", 5 bytes */
	ODD_DIR,  /* "dir", with the file "in" */
	ODD_LNK,  /* "link", to "file" */
	ODD_FIFO,
	ODD_SOCK,
	ODD_CHR, /* only where root makes them */
	ODD_BLK,
	ODD_REAL, /* how many there are up to here */
	ODD_GONE = ODD_REAL, /* of a file that is no more */
	ODD_GONE_DIR,
	ODD_FORGED, /* ODD_REG with one bit of its signature changed */
	ODD_OTHER,  /* ODD_REG with one bit of what it names changed */
	ODD_CUT,    /* ODD_REG without its last byte */
	ODD_LONGER, /* ODD_REG and one byte more */
	ODD_SHORT,  /* one byte */
	ODD_EMPTY,  /* none */
	ODD_NOISE,  /* 64 bytes of it */
	ODD_ZERO,   /* 64 zeros */
	ODD_TREE2,  /* the root of /e1, another export */
	ODD_FILES,
};

/* One call. What a procedure has no use for is not looked at. */
struct odd_call {
	uint32_t proc;
	enum odd_file fh, fh2;	   /* fh2: RENAME's and LINK's directory of the new name */
	const char *name, *name2;
	bool nul; /* of ODD_NUL_INSIDE the byte in the middle travels as NUL */
	uint64_t offset, cookie;
	uint32_t count, count2; /* READDIRPLUS: maxcount, dircount; ACCESS: the bits; MKNOD: device */
	uint32_t bytes;		/* WRITE, SYMLINK: of the payload */
	const char *payload;	/* NULL: letters */
	stable_how stable;
	createmode3 how;
	ftype3 type;
	sattr3 sa;
	sattrguard3 guard;
};

#define ODD_NUL_INSIDE "a\x02" "b"
#define ODD_PAYLOAD_MAX (2u << 20)

/* Answers that are none of NFS. */
#define ODD_GARBAGE (-1)  /* RPC: arguments not understood */
#define ODD_HUNG_UP (-2)  /* the connection is gone */

struct odd {
	struct nfs_peer p;
	struct nfs_fh fhs[ODD_FILES];
	bool has[ODD_FILES]; /* devices are root's to make */
	char *before;	     /* the tree, as text */
	char *payload;
	uint64_t value; /* of the last READ, WRITE, ACCESS: count, count, bits */
};

void odd_create(struct odd *o, enum rpcrdma_transport t);
void odd_destroy(struct odd *o);

/** odd_tree_make - makes the tree again, and looks up the handles of what is in it */
void odd_tree_make(struct odd *o);

/** odd_tree_changed - is anything in the exports not what it was when it was made?
 *
 * Names, types, modes, owners, sizes, link counts, contents, times but that of access.
 *
 * Return: NULL, or the first line that differs; valid until the next call
 */
const char *odd_tree_changed(struct odd *o);

/** odd_answer - make the call; Return: an nfsstat3, or ODD_... */
int odd_answer(struct odd *o, const struct odd_call *c);

/** odd_raw - a call of @proc whose arguments are these bytes; Return: as odd_answer() */
int odd_raw(struct odd *o, uint32_t proc, const void *bytes, uint32_t len);

/** odd_word - how people call it; Return: a static string */
const char *odd_word(int answer);
const char *odd_file_word(enum odd_file f);

#endif
