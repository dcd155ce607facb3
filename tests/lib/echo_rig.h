/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * echo_rig.h - a small service in a process of its own, for tests of a CLIENT: libtirpc's over TCP, librpcrdma's elsewhere
 */
#ifndef TESTS_ECHO_RIG_H
#define TESTS_ECHO_RIG_H

#include <sys/types.h>

#include <rpc/rpc.h>

#include "rpcrdma_addr.h"

#define ER_PROG 0x20001200u
#define ER_VERS 2u

enum er_proc {
	ER_NULL,
	ER_ECHO,    /* bytes -> the same */
	ER_FILL,    /* struct er_fill -> bytes: er_byte() */
	ER_NEVER,   /* no reply */
	ER_COUNT,   /* void -> calls that the process has executed */
	ER_SYSTEM,  /* SYSTEM_ERR */
	ER_GARBAGE, /* GARBAGE_ARGS, whatever they are */
	ER_AUTH,    /* AUTH_ERROR, AUTH_TOOWEAK */
	ER_DIE,     /* ends the process */
	ER_SLOW,    /* ms -> void, later */
	ER_UID,     /* void -> uid of AUTH_SYS, or -1 */
	ER_ADD,     /* word: appended to the log; no reply */
	ER_LOG,     /* void -> bytes: the words, in host order */
	ER_HOLD,    /* word -> the same, when it is released; not over TCP, as are the next two */
	ER_RELEASE, /* word: of a call that is held */
	ER_HELD,    /* void -> calls that are held */
	ER_ONCE,    /* void -> er_once(): the first one ends the process */
};

struct er_bytes {
	u_int n;
	char *data;
};

static inline uint8_t er_byte(u_int i)
{
	return (uint8_t)(i * 11 + i / 251);
}

bool_t xdr_er_bytes(XDR *x, struct er_bytes *b);

struct er_rig {
	enum rpcrdma_transport transport;
	char url[200];
	pid_t pid;
};

/** er_start - starts the service; TCP: libtirpc's
 * @port: 0: any; TCP only: the same as before */
void er_start(struct er_rig *r, enum rpcrdma_transport transport);
/** er_restart - starts it again at the same URL, after it has ended */
void er_restart(struct er_rig *r);
/** er_stop - kills it, and waits */
void er_stop(struct er_rig *r);
/** er_spare - starts a process that serves at the same URL when the service has ended; Return: its pid */
pid_t er_spare(const struct er_rig *r);
/** er_once - how often ER_ONCE was executed since er_start(), by any process */
unsigned er_once(void);

#endif
