/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fleet.h - several clients on the files of a striped volume, whose servers fail: the tester, and what it tests
 */
#ifndef TESTS_TUMBLE_FLEET_H
#define TESTS_TUMBLE_FLEET_H

#include "shared.h"

#define FLEET_FILES_MAX 4u
#define FLEET_SERVERS_MAX 8u
#define FLEET_DEPTH_MAX 32u

enum fleet_fault {
	FLEET_KILL,                /* SIGKILL; started again when it heals */
	FLEET_STOP,                /* SIGSTOP, SIGCONT */
	FLEET_HOLD,                /* what was sent by the present connections arrives when it heals */
	FLEET_BREAK,               /* the present connections break; nothing to heal */
	FLEET_FAULTS
};

/* What is chosen at random; it depends on the seed alone. */
struct fleet_op {
	uint64_t number;
	enum shared_kind kind;
	unsigned client, file, to; /* to: rename */
	uint64_t off, len;         /* truncate: len is the new size */
	bool sync;                 /* open: O_DSYNC */
	unsigned server;           /* fault; the last one is the manager */
	enum fleet_fault fault;
	uint64_t lasts;            /* fault: operations */
};

struct fleet_opts {
	uint64_t seed, count, size_max, len_max, unit, check_every;
	unsigned clients, files, servers, depth;
	unsigned faults;           /* of 1000 operations */
	uint64_t patience_ms;      /* after which a client gives up a stripe server */
	uint64_t hang_ms;          /* after which something has to move, when no server is away */
	bool relayed;              /* FLEET_HOLD and FLEET_BREAK are possible */
	bool verbose;
	const char *log;           /* NULL: none */
	const volatile sig_atomic_t *stop;
};

/* One operation on its way. */
struct fleet_io {
	struct fleet_op op;
	void *mem;                 /* of op.len bytes */
	uint64_t size;             /* stat */
	unsigned width;            /* open: the stripes of the file; 0: not known */
	int64_t result;
	bool done;
};

struct fleet_back;

/* Every member is there. Clients and files are numbers; a client has a file open once at most. */
struct fleet_back_ops {
	/* `done` is set then or in wait(); Return: 0 or -errno */
	int (*start)(struct fleet_back *b, struct fleet_io *io);
	/* until something has ended, or @ms have passed */
	void (*wait)(struct fleet_back *b, int ms);
	int (*fail)(struct fleet_back *b, unsigned server, enum fleet_fault fault);
	int (*heal)(struct fleet_back *b, unsigned server, enum fleet_fault fault);
	/* a client ends: its operations do before this returns, and its files are closed. Then it begins again */
	int (*die)(struct fleet_back *b, unsigned client);
	/* is nothing pending at the manager? */
	bool (*is_settled)(struct fleet_back *b);
	/* more about the last error of a client; about a server that has ended by itself: client = -1 */
	const char *(*why)(struct fleet_back *b, int client);
};

struct fleet_back {
	const struct fleet_back_ops *ops;
};

struct fleet_sum {
	uint64_t ops[SHARED_KINDS], errors, faults[FLEET_FAULTS], slow, incomplete;
};

/** fleet_choose - the next operation; @size: about what the file has */
void fleet_choose(struct rnd *r, const struct fleet_opts *o, uint64_t *size, struct fleet_op *ret);
int fleet_print(FILE *out, const struct fleet_op *op);

/** fleet_run - random operations, each result judged
 * Return: 0; 1: something was wrong, and @out has it; -errno */
int fleet_run(struct fleet_back *b, const struct fleet_opts *o, FILE *out, struct fleet_sum *ret);

/** fleet_main - the command line of "tumble volume"; Return: exit status */
int fleet_main(int argc, char **argv);

/** cluster_create - a volume in the new directory @dir: leatds, and @o->clients mounts of it
 * @scheme: "local" or "tcp"
 * Return: 0; -errno, and @why says what is wrong */
int cluster_create(const char *dir, const char *leatd, const char *scheme, const struct fleet_opts *o, struct fleet_back **ret,
		   char *why, size_t room);

/** cluster_fsck - has `@leat volume fsck` look at the volume; its output goes to stderr
 * Return: 0; -EIO: it finds something to repair, or fails */
int cluster_fsck(struct fleet_back *b, const char *leat);

/** cluster_destroy - ends clients and servers. Return: 0; -EIO: a leatd did not end well */
int cluster_destroy(struct fleet_back *b);

#endif
