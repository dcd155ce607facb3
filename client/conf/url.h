/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * url.h - the checked settings of a leat URL
 */
#ifndef LT_URL_H
#define LT_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "leat.h"
#include "rpcrdma.h"

#define LT_PATH_MAX 4096 /* with its NUL, as PATH_MAX */
#define LT_CONNS_MAX 16
#define LT_THREADS_MAX 16
#define LT_SPIN_US_DEFAULT 50u

#define LT_REFUSED_MAX 8

/* A transport that was tried and failed, for users */
struct lt_refused {
	char url[300];          /* "rdma://10.0.0.7:20049"; "rdma" if the server has no such listener */
	char why[160];
};

enum lt_scheme { LT_SCHEME_LEAT, LT_SCHEME_RDMA, LT_SCHEME_TCP, LT_SCHEME_LOCAL };

struct lt_url {
	/* server and path */
	enum lt_scheme scheme;
	char host[256];         /* "" for local; an IPv6 address without its brackets */
	uint16_t port;          /* 0: the default of the scheme */
	char path[LT_PATH_MAX]; /* decoded, starts with '/'; local: begins with the socket's path */

	/* settings; zero: default */
	unsigned threads;       /* 1..LT_THREADS_MAX */
	unsigned conns;         /* 1..LT_CONNS_MAX */
	unsigned credits;
	uint32_t inline_bytes;
	uint32_t readahead_bytes;
	uint32_t timeo_ms;
	bool soft;
	uint16_t mountport;
	char registration[16], monitor[16]; /* "": the library's default */
	uint32_t bounce_bytes;
	bool no_bounce;         /* bounce=0 */
	unsigned reg_entries, dirty_watermark;
	uint64_t reg_bytes;
	enum rpcrdma_poll poll; /* index of the word of poll= */
	unsigned spin_us;
	bool has_uid, has_gid;
	uint32_t uid, gid;
	uint32_t rsize, wsize;
	unsigned design;        /* index of the name */
	unsigned modes;         /* enum rpcrdma_mode: design=, fast_write= */
	uint32_t fast_write_bytes;
	bool no_cache;          /* then readahead_bytes is 0 */
	uint32_t acmax_s;
	bool unsafe_inv;
	char holder[64];        /* of block volumes; "": the default of the process */
	uint64_t budget_bytes;  /* of striped volumes */
	uint32_t stripe_timeo_ms;
	char shares[17];        /* not an option: servers of one striped volume share registrations; "": no volume */
	uint32_t socket_uid;    /* leat:// accepts sockets of this user, of root and of the process's user; 0: no
	                         * additional user */
};

/** lt_url_parse - parses a URL; leat.h has the grammar
 * @given: values of options that the URL does not set; may be NULL
 * @why: receives an error message (one line) on failure
 *
 * Return: 0, or -EINVAL (@why names the wrong part), -ENAMETOOLONG.
 */
must_check int lt_url_parse(const char *url, const struct leat_opts *given, struct lt_url *ret,
			    char *why, size_t cap);

/** lt_url_split_socket - splits the path of a local URL at the longest prefix that is a socket
 * @socket: receives that prefix; @rest: the remainder, at least "/"
 *
 * Return: 0; -ENOENT: no prefix is a socket; -ENAMETOOLONG: it does not fit @cap.
 */
must_check int lt_url_split_socket(const char *path, char *socket, size_t cap,
				   char rest[LT_PATH_MAX]);

/** lt_url_scheme_name - "leat", "rdma", "tcp", "local" */
const char *lt_url_scheme_name(enum lt_scheme s);

#endif
