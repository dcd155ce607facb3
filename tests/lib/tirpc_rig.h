/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * tirpc_rig.h - a program of libtirpc in a process of its own, and calls to it
 *
 * The service is a child of the test: the loops of libtirpc keep state in the process, and each test begins without any.
 */
#ifndef TIRPC_RIG_H
#define TIRPC_RIG_H

#include <sys/types.h>

#include <rpc/rpc.h>

#define RIG_PROG 0x20049911u
#define RIG_VERS 1u
#define RIG_VERS2 3u       /* of the same program */
#define RIG_PROG2 0x20049912u

enum rig_proc {
	RIG_NULL,
	RIG_ECHO,     /* struct rig_bytes: the same back */
	RIG_WHO,      /* struct rig_who: the caller as the service sees it */
	RIG_BAD_ARGS, /* its filter refuses: svcerr_decode() */
	RIG_TWICE,    /* replies twice */
	RIG_NEVER,    /* does not reply */
	RIG_BAD_RES,  /* its results do not encode, and nothing else follows */
	RIG_WEAK,     /* svcerr_weakauth() */
	RIG_SYSTEM,   /* svcerr_systemerr() */
	RIG_COUNT,    /* a word: requests dispatched so far */
	RIG_UNREG,    /* svc_unreg() of RIG_PROG2 */
	RIG_QUIT,     /* replies, then svc_exit() */
	RIG_PROCS,
	RIG_OWN = 100 /* procedures of a test begin here */
};

/* xdr_void() has another type. */
bool_t xdr_rig_void(XDR *x, void *nothing);

struct rig_bytes {
	u_int len;
	char *val;
};
bool_t xdr_rig_bytes(XDR *x, struct rig_bytes *b);

#define RIG_GIDS 16
struct rig_who {
	u_int vers, family, addr, port, flavor, uid, gid, ngids;
	u_int gids[RIG_GIDS];
};
bool_t xdr_rig_who(XDR *x, struct rig_who *w);

/* What a service does; in the child. */
struct rig_service {
	int (*create)(void);          /* Return: 0, or -errno */
	void (*run)(void);            /* returns after svc_exit() */
	const char *url[8];           /* whose URL with the selected port the parent gets; NULL at the end */
	const unsigned short *ports;  /* of libtirpc's own transports: TCP, UDP; NULL: none */
};

struct rig {
	pid_t pid;
	char url[8][300];
	unsigned short ports[2];
};

/** rig_start - starts the service; fails the test if create() does */
void rig_start(struct rig *r, const struct rig_service *s);
/** rig_stop - calls RIG_QUIT at url[0], and returns the exit status of the child */
int rig_stop(struct rig *r);

/** rig_dispatch - the dispatch function of all programs */
void rig_dispatch(struct svc_req *q, SVCXPRT *x);

/** rig_reply_who - replies with the caller */
void rig_reply_who(struct svc_req *q);

/** rig_call - makes one call, over a new connection: of libtirpc's own client to tcp://, else of librpcrdma
 * Return: as clnt_call() */
enum clnt_stat rig_call(const char *url, rpcprog_t prog, rpcvers_t vers, rpcproc_t proc, xdrproc_t encode, void *args,
			xdrproc_t decode, void *res);

struct rpcrdma_call;
/** rig_raw - makes one call with librpcrdma, over a new connection; Return: as rpcrdma_clnt_call_wait() */
int rig_raw(const char *url, struct rpcrdma_call *call);

/** rig_try - a NULL call that may fail to connect; Return: as clnt_call() */
enum clnt_stat rig_try(const char *url);

/** rig_who_as - RIG_WHO from a process of another user, with AUTH_SYS that says 4711 and 4712 */
void rig_who_as(const char *url, uid_t uid, gid_t gid, const gid_t *gids, size_t ngids, struct rig_who *ret);

/** rig_call_udp - makes one call of libtirpc's UDP client to this host, without arguments and results */
enum clnt_stat rig_call_udp(unsigned short port, rpcprog_t prog, rpcvers_t vers, rpcproc_t proc);

/* A client of librpcrdma with calls in flight. */
struct rig_clnt {
	struct rpcrdma_engine *engine;
	struct rpcrdma_clnt *clnt;
};
void rig_clnt_open(struct rig_clnt *c, const char *url);
void rig_clnt_close(struct rig_clnt *c);

/** rig_port - the port of a URL */
unsigned short rig_port(const char *url);

/** rig_local - a URL of the local fabric in $TMPDIR, in static memory */
const char *rig_local(const char *name);

#endif
