/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * stripe_rig.h - a server of stripes in this process, its manager, and clients that speak its protocol themselves
 *
 * Include it behind <cmocka.h>. One server at a time. A test runs on one thread, which runs the clients' engine while it
 * waits.
 */
#ifndef STRIPE_RIG_H
#define STRIPE_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "rpcrdma.h"
#include "stripe_handle.h"
#include "stripes.h"
#include "tmp_dir.h"

#define STRIPE_RIG_VOLUME UINT64_C(0x1122334455667788)
#define STRIPE_RIG_ID 7
#define STRIPE_RIG_KEY "00112233445566778899aabbccddeeff"
#define STRIPE_RIG_OLD_KEY "0123456789abcdef0123456789abcdef"

struct server;

/* Where the server listens: "tcp://127.0.0.1:0"; NULL: over the RDMA device whose address LEAT_FLOW_RDMA is, else on the
 * local fabric */
extern const char *stripe_rig_url;

/* Time after which clients send a call again by a new connection; 0: the default */
extern uint32_t stripe_rig_timeout_ms;

/* Buffer memory of the server; 0: the default */
extern size_t stripe_rig_pinned;

/* A file that gets the traffic of the local fabric, as pcap; or NULL */
extern const char *stripe_rig_capture;

/* The running server, its directory with "s", the stripes, and "key" */
extern struct stripe_rig {
	struct tmp_dir dir;
	struct server *srv;
	struct rpcrdma_domain *domain;
	struct rpcrdma_engine *engine;
	struct stripe_keys keys, old_keys; /* those of clients and manager */
	uint32_t server; /* that commands name */
	uint64_t term; /* of the manager */
	uint64_t told_term; /* by the last refusal of an older term */
} stripe_rig;

struct stripe_client {
	struct rpcrdma_clnt *clnt;
	stripe_lane lane;
	struct stripe_handle handle; /* each call signs it again */
	uint64_t verf; /* of the last change */
};

struct stripe_rig_call {
	struct rpcrdma_call call;
	union {
		stripe_at at;
		STRIPEINFOargs info;
		STRIPEREADargs read;
		STRIPEWRITEargs write;
		STRIPECOMMITargs commit;
		STRIPESTATargs stat;
		STRIPEFENCEargs fence;
		STRIPEREMOVEargs remove;
		STRIPELISTargs list;
		STRIPEASIDEargs aside;
	} args;
	union {
		stripe_status status;
		STRIPEINFOres info;
		STRIPEREADres read;
		STRIPECHANGEres change;
		STRIPESTATres stat;
		STRIPELISTres list;
	} res;
	struct iovec iov;
	bool done;
	int err;
};

/** stripe_rig_start - makes the directory and the key file, if there are none, and starts a server
 * @options: of the stripes, behind key and id; "" for none
 *
 * Return: 0, or what server_start() returned; stripe_rig_stop() follows in any case
 */
int stripe_rig_start(const char *options);

/** stripe_rig_end_server - ends the server, as leatd does; stripe_rig_start() starts the next one with the same directory */
void stripe_rig_end_server(void);

/** stripe_rig_reload - gives the server other options; Return: as server_reload() */
int stripe_rig_reload(const char *options, char *why, size_t why_bytes);

/** stripe_rig_write_key - replaces the key file; @text NULL: the usual one */
void stripe_rig_write_key(const char *text, unsigned mode);

void stripe_rig_stop(void);

/** stripe_rig_port - the port at which the server listens */
uint16_t stripe_rig_port(void);

/** stripe_rig_server - the URL at which the server listens; Return: @buf */
const char *stripe_rig_server(char *buf, size_t cap);

/** stripe_rig_path - path of the file of an object */
const char *stripe_rig_path(const stripe_name *name);

/** stripe_rig_name - an object of a name, stripe 0 */
stripe_name stripe_rig_name(uint8_t first, uint8_t last);

/** stripe_connect - connects a client, with a lane of incarnation 1 and a handle of @name and epoch 1 that may do all;
 * stripe_close() closes it */
void stripe_connect(struct stripe_client *c, uint64_t instance, uint32_t slot, const stripe_name *name);
void stripe_close(struct stripe_client *c);

/** stripe_reconnect - a new connection with the next incarnation; @old: gets the older one, or NULL: it is closed */
void stripe_reconnect(struct stripe_client *c, struct stripe_client *old);

/** stripe_begin - starts a call; the caller has filled in @call->args, but neither handle, lane nor command */
void stripe_begin(struct stripe_client *c, struct stripe_rig_call *call, uint32_t proc, void *sink, uint32_t bytes);

/** stripe_send - as stripe_begin(), with handle or command as they are */
void stripe_send(struct stripe_client *c, struct stripe_rig_call *call, uint32_t proc, void *sink, uint32_t bytes);

/** stripe_sign - fills in handle and lane, or the command */
void stripe_sign(struct stripe_client *c, struct stripe_rig_call *call, uint32_t proc);

/** stripe_end - waits for the reply; Return: status */
stripe_status stripe_end(struct stripe_rig_call *call);

/** stripe_run_until - runs the clients' engine until @done is true */
void stripe_run_until(bool (*done)(void *arg), void *arg);

/* Whole calls; Return: status */
stripe_status stripe_read(struct stripe_client *c, uint64_t off, void *to, uint32_t count, uint32_t *ret_bytes, bool *ret_eof);
stripe_status stripe_write(struct stripe_client *c, uint64_t off, const void *from, uint32_t bytes, bool sync);
stripe_status stripe_commit(struct stripe_client *c);
stripe_status stripe_info(struct stripe_client *c, STRIPEINFOresok *ret);
stripe_status stripe_stat_of(struct stripe_client *c, const stripe_name *name, stripe_stat *ret);
stripe_status stripe_fence(struct stripe_client *c, const stripe_name *name, uint64_t epoch, const uint64_t *cut, stripe_stat *ret);
stripe_status stripe_remove(struct stripe_client *c, const stripe_name *name, uint64_t until, stripe_stat *ret);

stripe_status stripe_set_aside(struct stripe_client *c, const stripe_name *name, uint64_t until, uint64_t mtime, stripe_stat *ret);

/** stripe_list - Return: status; @ret has room for STRIPE_LIST_MAX, @after NULL: from the beginning */
stripe_status stripe_list(struct stripe_client *c, const stripe_name *after, stripe_entry *ret, unsigned *ret_n, bool *ret_eof);

/** stripe_write_begin - starts a WRITE; stripe_end() ends it */
void stripe_write_begin_at(struct stripe_client *c, struct stripe_rig_call *call, uint64_t off, const void *from, uint32_t bytes,
			   bool sync);

#endif
