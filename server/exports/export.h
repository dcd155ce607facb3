/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * export.h - which directories are served, to whom, and how their callers are seen
 */
#ifndef LEAT_SERVER_EXPORT_H
#define LEAT_SERVER_EXPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/util.h"
#include "export_data.h"
#include "fs_limits.h"
#include "rpcrdma.h"

struct commit;
struct dir_watch;

enum export_squash {
	EXPORT_SQUASH_NONE, /* everyone is who he says */
	EXPORT_SQUASH_ROOT, /* uid 0 and gid 0 become anonymous: the default */
	EXPORT_SQUASH_ALL,  /* everyone is anonymous */
};

#define EXPORT_NAME_MAX 1023 /* MNTPATHLEN of RFC 1813 is 1024 */
#define EXPORT_CLIENTS_MAX 64
#define EXPORT_ANON_ID 65534u

enum { /* struct export_conf.given */
       EXPORT_GIVEN_RO = 1u << 0,
       EXPORT_GIVEN_SQUASH = 1u << 1,
       EXPORT_GIVEN_ANONUID = 1u << 2,
       EXPORT_GIVEN_ANONGID = 1u << 3,
       EXPORT_GIVEN_SECURE = 1u << 4,
       EXPORT_GIVEN_ASYNC = 1u << 7,
};

#define EXPORT_PORTS_RESERVED 1024u /* below: only who has the privilege can call from there */

/* A network: the first @bits bits of an address. */
struct export_cidr {
	int family; /* AF_INET or AF_INET6 */
	uint8_t addr[16];
	unsigned bits;
};

/* What was asked for; plain data, owned by whoever parsed it, freed by export_conf_fini(). */
struct export_conf {
	char *name; /* what a client mounts: absolute, without a slash at its end ("/" itself excepted) */
	char *path;	/* the directory */
	unsigned given; /* what an option has said already, so that no second one contradicts */
	bool ro;
	bool secure; /* over TCP only from a reserved port; by default if we are root */
	bool async; /* answers do not wait for the disk */
	enum export_squash squash;
	uint32_t anonuid, anongid;
	struct export_cidr clients[EXPORT_CLIENTS_MAX];
	size_t nclients; /* 0: this host only */
	struct export_data data;
};

/* An export in service. Read-only from export_table_open() to export_table_close(), but for
 * said_cached, so that every thread may look at it. */
struct export
{
	struct export_conf conf;
	uint32_t id;  /* of name and directory, the same at every start: part of each file handle */
	unsigned idx; /* in its table */
	int root_fd;  /* O_RDONLY on the directory */
	uint64_t root_dev, root_ino;
	struct fs_limits limits;
	unsigned fh_kind; /* how its handles are made: enum fh_kind */
	int mount_id;	  /* of the root, for FH_KERNEL */
	struct commit *commit; /* the server's, or NULL: calls share no syncs */
	struct dir_watch *dirs; /* its file system's, or NULL: no directory is watched */
	atomic_bool said_cached; /* the log knows that its files have no direct I/O */
};

struct export_table {
	struct export *v;
	size_t n;
};

void export_conf_init(struct export_conf *c);
void export_conf_fini(struct export_conf *c);

/** export_conf_option - apply one option, as the command line and the file name it
 * @key: "ro", "rw", "secure", "insecure", "root_squash", "no_root_squash", "all_squash", "anonuid",
 *       "anongid", "clients", "path", and those of export_data_option()
 * @value: NULL for a bare flag
 * @why: gets a text on failure
 *
 * Return: 0, -ENOENT (no such option), -EINVAL (also: contradicts an earlier one), -ENOMEM, -E2BIG (too many clients).
 */
int must_check export_conf_option(struct export_conf *c, const char *key, const char *value,
				  char *why, size_t why_bytes);

/** export_conf_parse - "DIR[,option...]" or "/NAME=DIR[,option...]"
 * @ret: to be freed by export_conf_fini() on success only
 *
 * Return: 0, -EINVAL or as export_conf_option(); @why tells.
 */
int must_check export_conf_parse(const char *arg, struct export_conf *ret, char *why,
				 size_t why_bytes);

/** export_conf_finish - all options are there: make name and path absolute and check them
 *
 * Return: 0, -EINVAL, or the errno of looking at the directory; @why tells.
 */
int must_check export_conf_finish(struct export_conf *c, char *why, size_t why_bytes);

/** export_cidr_parse - "10.0.0.0/8", "fd00::/8", or an address alone
 *
 * Return: 0, -EINVAL.
 */
int must_check export_cidr_parse(const char *text, struct export_cidr *ret);

/** export_addr_is_loopback - 127.0.0.0/8, ::1, ::ffff:127.0.0.0/104 */
bool export_addr_is_loopback(const struct sockaddr *sa);

enum export_verdict {
	EXPORT_ADMITTED,
	EXPORT_NOT_ADDRESS, /* he is not among its clients */
	EXPORT_NOT_PORT,    /* he is, but who calls from such a port may be anybody of his host */
};

/** export_admits - may this peer use the export at all?
 *
 * Someone on the same host who came over the local fabric is known to the kernel and always may.
 * Over a network his address decides; over TCP, where the export is `secure`, his port, too. Over
 * RDMA ports mean nothing: whoever may use the device chooses his.
 */
enum export_verdict export_admits(const struct export_conf *c, const struct rpcrdma_peer *peer);

/** export_verdict_text - why not, for people and logs; Return: @buf */
const char *export_verdict_text(enum export_verdict v, const struct rpcrdma_peer *peer, char *buf,
				size_t bytes);

/** export_table_open - open the directories
 *
 * Return: 0, -EEXIST (two of one name), -ENOMEM, or the errno of opening one; @why tells.
 */
int must_check export_table_open(const struct export_conf *confs, size_t n,
				 struct export_table *ret, char *why, size_t why_bytes);
void export_table_close(struct export_table *t);

/** export_find_id - Return: the export, or NULL */
struct export *export_find_id(const struct export_table *t, uint32_t id);

/** export_find_path - the export with the longest name that is @path or a directory above it
 * @ret_rest: the remainder, without slashes at its start
 *
 * Return: the export, or NULL
 */
struct export *export_find_path(const struct export_table *t, const char *path,
				const char **ret_rest);

#endif
