/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * hostile.h - attacks on a leatd, an honest client beside them, and a look at the memory of leatd
 *
 * An attack is a function with a name. It runs in a process of its own, from a seed, until its deadline,
 * and may be killed at any moment. What it does to itself does not matter; what it does to leatd and to
 * the honest client is for tests/flow/test_hostile.sh and tests/interop/long/hostile.sh to see.
 */
#ifndef TESTS_HOSTILE_H
#define TESTS_HOSTILE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "leat.h"

struct nfs_handle {
	uint8_t bytes[64];
	uint32_t len;
};

/* What an attack works with. The export has a large file, a large directory, and a directory that
 * all users may write to. */
struct attack_run {
	const char *name;
	const char *sock;         /* of the local listener */
	struct sockaddr_in tcp;   /* of the other one */
	const char *export;
	struct nfs_handle big, list, area;
	uint64_t rng;
	uint64_t deadline_ns;
	unsigned count;           /* upper bound of connections, or memfds, at once */
	uint64_t bytes;           /* at most so much memory of our own that gets pages */
	char said[160];           /* how far it got */
};

struct attack {
	const char *name;
	void (*run)(struct attack_run *r);
};

extern const struct attack attacks_local[], attacks_sock[], attacks_tcp[]; /* NULL ends each */

/* ---- hostile.c ---- */

/** run_over - is it time to end? */
bool run_over(const struct attack_run *r);

/** run_rand - a number below @below */
uint32_t run_rand(struct attack_run *r, uint32_t below);

/** run_word - a hostile number: small, random, or next to a power of two */
uint32_t run_word(struct attack_run *r);

/** run_nap - sleep for about @ms, but not beyond the deadline */
void run_nap(const struct attack_run *r, unsigned ms);

/** die - a failure of this program, or of its surroundings; exit status 2 */
void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* ---- tamper.c: a thread that writes to what this process shares with leatd ---- */

enum tamper {
	TAMPER_WORDS = 1u << 0, /* any word of the rings becomes another */
	TAMPER_BUSY = 1u << 1,  /* all keys are busy, and stay so */
	TAMPER_HOLES = 1u << 2, /* pages of the rings vanish */
	TAMPER_CALLS = 1u << 3, /* words of calls become others, and their lengths */
};

/** tamper_start - from now on, with all connections of this process; once */
void tamper_start(struct attack_run *r, unsigned what);

/** tamper_sock - socket of the newest connection that is up; -1: none */
int tamper_sock(void);

/* ---- rpc.c: calls by hand, over TCP ---- */

#define CALL_BYTES 4096u

struct rpc_call {
	uint8_t bytes[CALL_BYTES]; /* without a record mark */
	uint32_t len;
};

/** call_begin - header of a call of NFS or MOUNT, with this process's ids */
void call_begin(struct rpc_call *c, uint32_t xid, uint32_t prog, uint32_t proc);
void call_word(struct rpc_call *c, uint32_t word);
void call_opaque(struct rpc_call *c, const void *bytes, uint32_t len);
void call_fh(struct rpc_call *c, const struct nfs_handle *fh);

/** call_read, call_list - READ of @len bytes, READDIRPLUS of @len bytes */
void call_read(struct rpc_call *c, uint32_t xid, const struct nfs_handle *fh, uint64_t off, uint32_t len);
void call_list(struct rpc_call *c, uint32_t xid, const struct nfs_handle *dir, uint32_t len);

/** tcp_dial - connect, without blocking afterwards; @rcvbuf: 0: the usual one; Return: -1 if not */
int tcp_dial(const struct attack_run *r, int rcvbuf);

/** tcp_put - send as a record of one fragment what fits in the socket; Return: false if not all of it */
bool tcp_put(int fd, const struct rpc_call *c);

/** rpc_mount - the handles of the export, by honest calls */
void rpc_mount(struct attack_run *r);

/* ---- victim.c, watch.c: see there; Return: exit status ---- */

int victim_main(int argc, char **argv);
int watch_main(int argc, char **argv);

#endif
