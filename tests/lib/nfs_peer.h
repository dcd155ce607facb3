/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * nfs_peer.h - a leatd in this process, and a client that sends it single NFS calls
 *
 * For what a well-behaved client never does, and for statuses as they come. The program that uses it
 * links the server's log variable; everything lies in a temporary directory.
 */
#ifndef NFS_PEER_H
#define NFS_PEER_H

#include "creds.h"
#include "ctl.h"
#include "mount3.h"
#include "nfs3.h"
#include "nfsacl.h"
#include "rpcrdma.h"
#include "tmp_dir.h"

#define NFS_PEER_EXPORTS 4

struct server;

struct nfs_fh {
	uint32_t len;
	char data[NFS3_FHSIZE];
};

struct conf;
struct rr_local_attr;

struct nfs_peer {
	struct tmp_dir dir;
	const char *options[NFS_PEER_EXPORTS]; /* export /eN is DIR/eN with these; NULL ends */
	struct server *srv;
	struct rpcrdma_addr tcp, local;
	struct rpcrdma_domain *domain;
	struct rpcrdma_engine *engine;
	struct rpcrdma_clnt *clnt;
	struct rpcrdma_cred cred;
	struct nfs_fh root; /* of /e0 */
	const char *why;    /* of the last call that failed */
	unsigned descriptors; /* of this process, before the server */
	int port_fd;          /* holds the port of tcp; 0: not yet */
	void (*tune)(struct conf *conf);      /* of the server, before it starts; or NULL */
	void (*down)(struct nfs_peer *p);     /* the connection broke; before the next one; or NULL */
};

/** nfs_peer_create - directories, a server, and a connection over @transport
 * @options: of each export, for instance { "rw,no_root_squash", "ro", NULL }
 */
void nfs_peer_create(struct nfs_peer *p, enum rpcrdma_transport transport,
		     const char *const *options);
void nfs_peer_destroy(struct nfs_peer *p);

/** nfs_peer_setup, nfs_peer_teardown - for cmocka: one of its own for each test, in *@state */
int nfs_peer_setup(void **state, enum rpcrdma_transport transport, const char *const *options);
int nfs_peer_teardown(void **state);

/* setup_tcp() and setup_local(): nfs_peer_setup() with these options */
#define NFS_PEER_SETUPS(options)                                                                   \
	static int setup_tcp(void **state)                                                         \
	{                                                                                          \
		return nfs_peer_setup(state, RPCRDMA_TCP, options);                                \
	}                                                                                          \
                                                                                                   \
	static int setup_local(void **state)                                                       \
	{                                                                                          \
		return nfs_peer_setup(state, RPCRDMA_LOCAL, options);                              \
	}

/** nfs_peer_create_tuned - the same with a server that @tune has a say in */
void nfs_peer_create_tuned(struct nfs_peer *p, enum rpcrdma_transport transport,
			   const char *const *options, void (*tune)(struct conf *conf));

/** nfs_peer_start, nfs_peer_stop - the server alone, at the same addresses */
void nfs_peer_start(struct nfs_peer *p);
void nfs_peer_stop(struct nfs_peer *p);

/** nfs_peer_reload - makes the configuration again, and gives it to the server; Return: as server_reload() */
int nfs_peer_reload(struct nfs_peer *p, char *why, size_t why_bytes);

/** nfs_peer_connect, nfs_peer_disconnect - the client alone */
void nfs_peer_connect(struct nfs_peer *p, enum rpcrdma_transport transport, uint32_t inline_bytes);
void nfs_peer_disconnect(struct nfs_peer *p);

/** nfs_peer_join - a client of a server that is there already, as the user of this process; mounts @path as p->root
 * nfs_peer_leave - ends it; then @p is as before
 */
void nfs_peer_join(struct nfs_peer *p, const struct rpcrdma_addr *at, const char *path);
void nfs_peer_leave(struct nfs_peer *p);

/** nfs_peer_rpc - one call, to its end; @sink of @sink_bytes for the results' payload, or NULL
 *
 * Return: as struct rpcrdma_call says; 0: @res is filled in, for xdr_free()
 */
int nfs_peer_rpc(struct nfs_peer *p, uint32_t prog, uint32_t vers, uint32_t proc, xdrproc_t encode,
		 const void *args, xdrproc_t decode, void *res, void *sink, size_t sink_bytes);

/* An NFS call by its name in RFC 1813, which must get an answer. */
#define NFS_PEER_CALL(p, proc, args, res, sink, sink_bytes)                                        \
	assert_int_equal(nfs_peer_rpc(p, NFS_PROGRAM, NFS_V3, NFSPROC3_##proc,                     \
				      (xdrproc_t)xdr_##proc##3args, args,                          \
				      (xdrproc_t)xdr_##proc##3res, res, sink, sink_bytes),         \
			 0)

/* Makes a call and returns its status from the function; frees what the results point to. */
#define NFS_PEER_RETURN_CALL(p, PROC, args)                                                        \
	do {                                                                                       \
		PROC##3res res = { 0 };                                                            \
		nfsstat3 status;                                                                   \
                                                                                                   \
		NFS_PEER_CALL(p, PROC, args, &res, NULL, 0);                                       \
		status = res.status;                                                               \
		xdr_free((xdrproc_t)xdr_##PROC##3res, (char *)&res);                               \
		return status;                                                                     \
	} while (0)

/** nfs_peer_xdr_nothing - the filter of void arguments and results */
bool_t nfs_peer_xdr_nothing(XDR *xdrs, void *arg);

/** nfs_peer_null - a call without arguments and results; Return: as nfs_peer_rpc() */
int nfs_peer_null(struct nfs_peer *p, uint32_t prog, uint32_t vers, uint32_t proc);

/** nfs_peer_mount - MNT; Return: status */
mountstat3 nfs_peer_mount(struct nfs_peer *p, const char *path, struct nfs_fh *ret);

/** nfs_peer_fh - a handle as arguments want it */
nfs_fh3 nfs_peer_fh(const struct nfs_fh *fh);

/** nfs_peer_lookup - LOOKUP; Return: status */
nfsstat3 nfs_peer_lookup(struct nfs_peer *p, const struct nfs_fh *dir, const char *name,
			 struct nfs_fh *ret);

/** nfs_peer_create_file - CREATE UNCHECKED, mode 0644; Return: status */
nfsstat3 nfs_peer_create_file(struct nfs_peer *p, const struct nfs_fh *dir, const char *name,
			      struct nfs_fh *ret);

/** nfs_peer_write, nfs_peer_read - one WRITE or READ; Return: status */
nfsstat3 nfs_peer_write(struct nfs_peer *p, const struct nfs_fh *fh, uint64_t off, const void *data,
			uint32_t len, stable_how stable, WRITE3resok *ret);
nfsstat3 nfs_peer_read(struct nfs_peer *p, const struct nfs_fh *fh, uint64_t off, void *data,
		       uint32_t count, uint32_t *ret_count, bool *ret_eof);

/** nfs_peer_setacl, nfs_peer_getacl - one call of NFSACL; Return: status
 * @ret: for xdr_free()
 */
nfsstat3 nfs_peer_setacl(struct nfs_peer *p, const struct nfs_fh *fh, const secattr *acl);
nfsstat3 nfs_peer_getacl(struct nfs_peer *p, const struct nfs_fh *fh, uint32_t mask,
			 GETACL3res *ret);

/** nfs_peer_access - ACCESS; Return: the bits, of all there are */
uint32_t nfs_peer_access(struct nfs_peer *p, const struct nfs_fh *fh);

#endif
