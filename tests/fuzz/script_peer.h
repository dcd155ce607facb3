/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * script_peer.h - a peer of a leatd in this process, over the local fabric or TCP, that sends any bytes
 *
 * Threads: one. What must not fail here ends the process (abort()).
 */
#ifndef SCRIPT_PEER_H
#define SCRIPT_PEER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "rpcrdma/local/local.h"

#define SCRIPT_MSG_BYTES 4096u
#define SCRIPT_RECVS 16u
#define SCRIPT_REGION_BYTES 65536u
#define SCRIPT_PATIENCE_NS (10 * NS_PER_S)
#define SCRIPT_MARK_LAST 0x80000000u /* of a record */

/* Where leatd listens */
extern struct script_net {
	struct rr_fabric *fabric;
	char sock[128];
	struct sockaddr_in tcp;
} script_net;

struct script_peer {
	struct rr_pd *pd;
	struct rr_cq *cq;
	struct rr_cm *cm;
	struct rr_qp *qp;
	struct rr_mr *mr, *region[2];
	uint8_t *mem;            /* receive buffers, a send buffer, two regions */
	struct rr_done recv_done[SCRIPT_RECVS], send_done;
	unsigned posted, answers;
	bool routed, up, over, sent;
	int status;              /* of a connect that failed */
	uint8_t *answer;         /* the last one; in mem */
	size_t answer_bytes;

	bool tcp, raw;           /* raw: bytes were sent that need not be a record */
	int fd;
	uint8_t mark[4];         /* of the record that is being read */
	size_t mark_len;
	uint32_t record_left;
};

/** script_must - ends the process if a promise is broken */
void script_must(bool promise);

/** script_dial, script_dial_tcp - connects, with a new connection in any case; p->over: it was refused */
void script_dial(struct script_peer *p);
void script_dial_tcp(struct script_peer *p);
void script_hang_up(struct script_peer *p);

/** script_poll - looks for completions; does not wait */
void script_poll(struct script_peer *p);

/** script_wait_for - polls until @cond, but no longer than SCRIPT_PATIENCE_NS */
#define script_wait_for(p, cond)                                                                   \
	for (uint64_t until_ = clock_now_ns() + SCRIPT_PATIENCE_NS; !(cond) && clock_now_ns() < until_;) \
	script_poll(p)

/** script_say - sends one message; over TCP, a record */
void script_say(struct script_peer *p, const uint8_t *msg, size_t len);

/** script_say_tcp - sends bytes over TCP, with a mark in front of them if they are a @record */
void script_say_tcp(struct script_peer *p, const uint8_t *msg, size_t len, bool record);

/** script_wait_for_answer - until there is one more than @before; or until a TCP connection ends, where nothing else can be
 * waited for. Return: is there one more? */
bool script_wait_for_answer(struct script_peer *p, unsigned before);

#endif
