/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * prog.h - RPC programs as tables, and the service that they belong to
 *
 * The spine (req.c), the mover (place.c) and the stores know no program. A program gives them a row for each procedure
 * and fills in struct place_plan of a request. Errors are -errno everywhere; fail() maps one to a status of the
 * program.
 */
#ifndef LEAT_SERVER_PROG_H
#define LEAT_SERVER_PROG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rpc/types.h>
#include <rpc/xdr.h>

#include "place.h"

struct conf;
struct conn;
struct reactor;
struct req;
struct served;
struct served_use;
struct server;

/* Returned by prog_proc.begin. */
enum prog_begin {
	PROG_MOVE,  /* r->plan is complete: its data moves */
	PROG_OPEN,  /* a worker has to run open() first; then begin() runs again */
	PROG_WAIT,  /* begin() runs again after req_resume(); prog.cancel() ends the wait */
	PROG_REPLY, /* the results are there */
};

/* The description of a procedure. req.c runs it:
 *
 *   preset, decode -> prog.authorize -> [payload, pull] -> [duplicate?] -> [begin, move] or [fast, or work]
 *       -> finish -> reply
 *
 * Hooks run on the reactor, except open() and work(). */
struct prog_proc {
	const char *name;
	xdrproc_t decode, encode;
	size_t args_bytes, res_bytes;  /* that are zeroed, of prog.args_at and prog.res_at */
	size_t scratch_bytes;	       /* of r->scratch, allocated before preset(): for long arguments */
	size_t (*room)(const struct req *r); /* bytes at r->room for long results, allocated before work(): a pool
					      * buffer, for which the request may wait. NULL, 0: none */
	void (*preset)(struct req *r); /* points the arguments' pointers at the request's memory, as far as prog.init()
					* has not done it; NULL: nothing to do */
	enum place_kind move;	       /* READ, WRITE, STORE: with begin(); WRITE, PULL: with payload() */
	bool modifies;		       /* for prog.authorize */
	bool by_handle;		       /* for prog.authorize: the arguments begin with a handle */
	bool once;		       /* non-idempotent: a retransmission gets the original reply. Arguments without
					* payload have at most DRC_ARGS_MAX bytes, results DRC_RES_MAX; drc_check.h, drc.h */
	/* Checks the arguments and fills in the first part of r->plan. A whole call has at most 1 MiB + 8 KiB: cm.c sets
	 * no other limit. Return: 0 or -errno */
	int (*payload)(struct req *r);
	/* Fills in the rest of r->plan, READ and STORE: all of it */
	enum prog_begin (*begin)(struct req *r);
	void (*open)(struct req *r);   /* on a worker, between two runs of begin(). If the connection is lost before,
					* neither runs: prog.release() is the only end that is certain */
	bool (*fast)(struct req *r);  /* fast path instead of work, from cached objects, without blocking; false: not
					* possible. NULL: no fast path */
	void (*work)(struct req *r);   /* on a worker; NULL: nothing blocks */
	void (*finish)(struct req *r); /* before the reply; r->place has the outcome. NULL: nothing to do */
};

struct prog {
	uint32_t number, vers;
	const char *name;
	const struct prog_proc *procs;
	uint32_t nprocs;
	bool for_servers;	/* requests of other programs may wait for it, also in this server: at shutdown it ends last */
	size_t call_bytes;	/* of its part of a request, r->call */
	size_t args_at, res_at; /* of arguments and results in r->call */
	/* Prepares r->call of a new request, whose arguments are zero; NULL: nothing to do */
	void (*init)(struct req *r);
	/* After decoding: may this client do this? Sets r->dev, and changes r->creds to what the request runs as.
	 * Return: 0; -EINPROGRESS: runs again after req_resume(), cancel() ends the wait; -errno. NULL: all may. */
	int (*authorize)(struct req *r);
	/* Ends the wait of authorize() or begin(); Return: false: it does not wait. With hooks that wait only. */
	bool (*cancel)(struct req *r);
	/* Sets the results to the status for @err, -errno; -EAGAIN: the client shall try again later. With authorize(),
	 * and with procedures that have room(), payload() or .once. begin() and finish() may use it, too. */
	void (*fail)(struct req *r, int err);
	/* Do the results say that nothing was done, so that a retransmission must be executed? With .once only. */
	bool (*undone)(const struct req *r);
	/* The request has ended: releases what r->call refers to; NULL: nothing */
	void (*release)(struct req *r);
};

/* Where a service keeps its state. Those of one server have different slots. */
enum service_slot {
	SERVICE_NFS, /* files; a test's only service */
	SERVICE_BLOCK,
	SERVICE_STRIPES,
	SERVICES,
};

/* Programs that belong together, and what they share: srv->service[slot], reactor->service[slot] and conn->service[slot].
 * A hook without anything to do may be NULL. services.c calls them. */
struct service {
	enum service_slot slot;
	const struct prog *const *progs; /* ends with NULL */
	/* On the thread of server_start(), before any other hook: sets the server's state. It may log.
	 * Return: 0 or -errno */
	int (*create)(struct server *srv, const struct conf *conf, unsigned nreactors);
	/* Creates what @conf has the service serve (served.h): srv->served[slot]. Behind create(), and for a reload. NULL: it
	 * serves nothing that can be replaced, and a reload is -EOPNOTSUPP.
	 * @old: in force; NULL: the server starts
	 * Return: 0, and @ret is the caller's; -errno with @why */
	int (*serve)(struct server *srv, const struct conf *conf, struct served *old, struct served **ret, char *why,
		     size_t why_bytes);
	/* The reload for which serve() has returned 0 is not done: @now stays in force */
	void (*stay)(struct served *now);
	/* On each reactor's thread: new requests use @now from here on. The caller releases @old behind it */
	void (*change_over)(struct reactor *re, const struct served_use *old, const struct served_use *now);
	/* All reactors have changed over from @old to @now. @old NULL: the server starts. It may log. Not NULL beside serve() */
	void (*changed)(struct server *srv, struct served *old, struct served *now);
	/* All threads have ended, and nothing is served. Runs if the server's state was set, whatever create() returned */
	void (*destroy)(struct server *srv);
	/* The same thread, before the reactor runs. Sets the reactor's state. Return: 0 or -errno */
	int (*create_reactor)(struct reactor *re);
	/* On the reactor's thread: it has begun, and is about to end */
	void (*start_reactor)(struct reactor *re);
	void (*stop_reactor)(struct reactor *re);
	/* Is work in progress that has no request? Besides loop->flushing */
	bool (*is_busy)(const struct reactor *re);
	/* After the reactor's thread has ended; the engine still exists, and so does re->uses[slot]. Runs if the reactor's
	 * state was set */
	void (*destroy_reactor)(struct reactor *re);
	/* On the listener's thread. May c->peer connect? Sets the connection's state. NULL: all may.
	 * Return: 0; -ENOMEM; -EACCES: not for this service, but another one may admit it. @ret_why is set to a text for
	 * the log */
	int (*accept)(struct conn *c, const char **ret_why);
	/* The connection has ended, or was not admitted, whatever accept() returned; any thread */
	void (*closed)(struct conn *c);
};

/** prog_xdr_void - xdr_void() with the signature that xdrproc_t requires */
static inline bool_t prog_xdr_void(XDR *xdrs, void *nothing)
{
	(void)xdrs;
	(void)nothing;
	return TRUE;
}

/* A row of the errnos that a program has statuses for */
struct prog_status {
	int err; /* -errno */
	uint32_t status;
};

/** prog_status_of - finds the status of @err among @n rows; @other: of errnos that are in none */
static inline uint32_t prog_status_of(const struct prog_status *rows, size_t n, int err, uint32_t other)
{
	for (size_t i = 0; i < n; i++) {
		if (rows[i].err == err)
			return rows[i].status;
	}
	return other;
}

/* Members of a row: the filters of its arguments and results, types that rpcgen made */
#define PROG_CODECS(args, res)                                                                                         \
	.decode = (xdrproc_t)xdr_##args, .encode = (xdrproc_t)xdr_##res, .args_bytes = sizeof(args), .res_bytes = sizeof(res)

/* The row of procedure 0, which every program has */
#define PROG_NULL                                                                                                      \
	{                                                                                                              \
		.name = "NULL", .decode = (xdrproc_t)prog_xdr_void, .encode = (xdrproc_t)prog_xdr_void,                \
	}

#endif
