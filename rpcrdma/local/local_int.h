/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * local_int.h - internal structures and functions of the local fabric
 *
 * local.c describes the fabric. There are two kinds of struct: those in memory shared with the peer
 * (shm_*: each word of the peer's half is untrusted, and is read once, checked, then used), and private
 * ones, which are authoritative. No decision depends on a word that both sides may write.
 */
#ifndef RR_LOCAL_INT_H
#define RR_LOCAL_INT_H

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/un.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/util.h"
#include "account.h"
#include "fabric.h"
#include "local.h"

#define LOCAL_REGIONS_MAX 64u      /* slabs of one protection domain; a bit each */
#define LOCAL_DIRECT_FIRST 64u     /* qp_direct tokens that are allocated at first use ... */
#define LOCAL_DIRECT_MAX 4096u     /* ... and at most, for one connection */
#define LOCAL_REQS 128u            /* requests outstanding at the peer; a power of two */
#define LOCAL_REQ_BYTES (256u * 1024) /* per request; both sides work at once on a long transfer */
#define LOCAL_RING_BYTES_MAX (64u << 20)
#define LOCAL_LINE 64
#define LOCAL_STAGE_MAX (UINT64_C(64) << 20) /* a peer's bounce area: we may wait while the peer empties it */
#define LOCAL_KEYS_MAX 65535u
#define LOCAL_OURS UINT64_MAX /* owner of descriptors that belong to no user (local_close.c) */
#define LOCAL_MEMORY (UINT64_C(1) << 32) /* added to the user: a memfd, which only takes long to close */
#define LOCAL_SOCKET (UINT64_C(2) << 32) /* added to the user: a socket, which the closer closes without sleeping */

/* ---- shared with the peer ---- */

/* A remote key. The owner of the memory writes all of it except `busy`. */
struct shm_key {
	_Alignas(LOCAL_LINE) _Atomic uint32_t key; /* 0: unused */
	_Atomic uint32_t busy;                     /* accesses in progress: sum of their BUSY_* */
	uint64_t addr, len;
	uint64_t off;                              /* PLACE_SLAB: offset of addr in the slab */
	uint32_t region;
	uint32_t access;
	uint32_t place;                            /* enum local_place */
};

#define BUSY_COPY 1u          /* a copy by one system call */
#define BUSY_PAGES (1u << 16) /* qp_direct: a disk operation on whole pages */

/* How the peer's side can access the bytes of a key. */
enum local_place {
	PLACE_VM,    /* in the owner's address space: process_vm_readv/writev */
	PLACE_SLAB,  /* in a memfd that we received: pread/pwrite, or mapped for qp_direct */
	PLACE_AGENT, /* the owner moves them, through the bounce area */
};

/* A transfer that the owner of the memory shall carry out. */
struct shm_req {
	uint32_t write; /* 1: bounce area to memory; 0: memory to bounce area */
	uint32_t key;
	uint64_t addr;
	uint64_t off;   /* in the bounce area */
	uint32_t len;
	_Atomic uint32_t status; /* enum rr_wc_status, written by the owner */
};

/* Words that one side publishes; a polling reader reads only the first cache line. */
struct shm_side {
	_Alignas(LOCAL_LINE) _Atomic uint32_t msg_head; /* messages written to the peer's ring */
	_Atomic uint32_t req_head; /* requests written below */
	_Atomic uint32_t req_done; /* requests of the peer completed */
	_Atomic uint32_t closed;
	_Atomic uint32_t restart;  /* the last message that lies at the start of the peer's ring */
	_Alignas(LOCAL_LINE) _Atomic uint32_t posted; /* receives posted in total */
	_Atomic uint32_t taken;    /* messages copied out of our ring */
	_Alignas(LOCAL_LINE) _Atomic uint32_t asleep; /* needs a doorbell; the side that rings clears it */
	_Alignas(LOCAL_LINE) struct shm_req req[LOCAL_REQS];
};

/* A message in the receiver's ring, at a multiple of LOCAL_LINE. */
struct shm_msg {
	uint32_t len;      /* of the data; RING_IMM: of the RDMA Write, without data here */
	uint32_t with;     /* enum ring_with */
	uint32_t word;     /* key to invalidate, immediate */
	uint32_t req_seq; /* requests to carry out before this message is delivered */
	uint8_t data[];
};

/* What a message carries besides its bytes. */
enum ring_with { RING_PLAIN, RING_INV, RING_IMM };

enum hs_type { HS_HELLO = 1, HS_REQ, HS_ACCEPT, HS_REJECT, HS_REGION, HS_REGION_GONE, HS_BOUNCE };

#define HS_MAGIC 0x4c656174u
#define HS_VERSION 2u

/* One datagram of the socket. A doorbell is a datagram of a single byte instead. */
struct hs_msg {
	uint32_t magic, version, type;
	uint32_t rq_depth, recv_bytes, keys; /* REQ, ACCEPT: sizes of the sender's half */
	uint32_t vm;                         /* REQ, ACCEPT: sender reaches your memory by process_vm_* */
	uint64_t region_bytes;               /* REQ, ACCEPT: slabs of yours that the sender accepts, in bytes */
	uint32_t initiator_depth, responder_resources;
	uint32_t qpn;
	uint64_t fabric_id;
	uint64_t cookie_addr;                /* HELLO, REQ: for a test of process_vm_readv */
	uint8_t cookie[16];
	uint64_t region, size;               /* REGION, REGION_GONE, BOUNCE */
	uint32_t priv_len;
	uint8_t priv[RR_PRIV_MAX];
};

/* ---- private ---- */

struct local_closer;

struct local_fabric {
	struct rr_fabric base;
	struct rr_local_attr attr; /* limits filled in */
	uint64_t id;               /* random: detects that both ends belong to this fabric */
	struct local_closer *closer;
	_Atomic uint32_t conns, next_qpn, next_salt, next_region;
	struct rr_clients own_clients, *clients; /* by user */
	pthread_mutex_t lock;      /* protects the members below; last in lock order */
	struct list qps;
	struct list maps;          /* regions of peers */
	struct rr_local_counters gone; /* counts of destroyed queue pairs */
	_Atomic uint64_t regs, deregs;
	uint64_t link_free_ns;         /* time when the modelled link becomes idle */
};

/* An entry of a protection domain's private key space; authoritative for a key. */
struct local_key {
	uint32_t key; /* the key while valid, base of its next value otherwise */
	bool valid;
	struct local_mr *mr;
	struct local_mw *mw; /* not NULL: a window */
	uint64_t addr, len;
	unsigned access;
	struct local_qp *qp; /* windows: the only queue pair that may use it */
	uint32_t next_free;
};

/* Our memfd that peers receive. */
struct local_region {
	int fd; /* -1: slot unused */
	uint32_t id;
	uint64_t dev, ino, size;
	unsigned refs; /* registrations in it */
};

struct local_pd {
	struct rr_pd base;
	pthread_mutex_t lock; /* all below, and our half of the key table of every queue pair */
	struct list qps;      /* connected queue pairs */
	struct list mrs;      /* remotely accessible ones */
	struct local_key *keys;
	uint32_t nkeys, key_bits;
	uint32_t free_head, free_tail; /* FIFO: maximises the time before a key is reused */
	uint32_t salt;
	struct local_region region[LOCAL_REGIONS_MAX];
};

struct local_mr {
	struct rr_mr base;
	struct list node;  /* pd->mrs */
	uint32_t slot;     /* pd->keys; 0: no remote access */
	unsigned region;   /* pd->region, or LOCAL_REGIONS_MAX */
	uint64_t off;
	unsigned windows;  /* windows bound over it */
};

struct local_mw {
	struct rr_mw base;
	uint32_t slot;
};

/* Memory shared with a peer (local_map.c): rings, a bounce area, or a region of the peer. */
struct local_map {
	struct list node; /* fabric->maps, if it is a region */
	struct rr_client *client;
	uint64_t owner;    /* owner for the closer */
	enum rr_share share;
	uint64_t charged, size;
	uint64_t dev, ino; /* of a region */
	int fd;            /* for reads; -1: used by address */
	void *addr;        /* for writes, and for qp_direct */
	unsigned refs;
};

/* A ring of messages, as one side sees it: local_ring.c. */
struct local_ring {
	uint8_t *base;
	size_t bytes, longest; /* of all, of the longest message */
	size_t at;             /* of the next message */
	size_t looked;         /* value of `at` when the sender last looked whether the ring is empty */
};

/* A region of the peer, as this connection knows it. */
struct peer_region {
	struct local_map *map; /* NULL: unused */
	uint64_t id;
	unsigned refs; /* direct tokens */
	bool gone;
};

struct local_direct {
	struct shm_key *key; /* NULL: unused */
	struct peer_region *region;
	uint32_t next;       /* unused: 1 + the next one that is, or 0 */
};

enum sqe_state { SQE_WAIT, SQE_MOVED };

/* A posted send-queue request. */
struct local_sqe {
	struct rr_wr wr;    /* as posted; next is not used */
	enum sqe_state state;
	enum rr_wc_status status;
	bool written;       /* WRITE_IMM: the bytes have been written, the message has not been sent */
	uint64_t due_ns;    /* simulated link: earliest completion */
	uint32_t reqs;      /* requests at the peer, without a reply */
	uint32_t handed;    /* bytes handed to the peer as requests */
};

struct local_srq {
	struct rr_srq base;
	uint32_t depth, mask, head, tail; /* entries from tail to head are posted */
	uint32_t recv_bytes;
	atomic_uint qps;      /* queue pairs set up with it */
	struct list starved;  /* queue pairs with messages but no receive */
	struct rr_recv rqe[];
};

/* A completion not yet polled. */
struct local_cqe {
	struct rr_wc wc;
	uint32_t sq_free, rq_free; /* queue slots that polling it releases */
};

/* Our private record of a request at the peer. */
struct local_req {
	uint32_t sqe; /* index */
	uint32_t off; /* offset in the transfer */
	uint32_t len;
	uint64_t stage_end; /* staging space is free up to here after its reply */
};

struct local_cq {
	struct rr_cq base;
	bool armed, signalled, timer_set;
	int selffd, timerfd;
	unsigned polls;
	bool fds_left; /* more descriptors are ready than were checked */
	struct list active, dormant; /* queue pairs, by cq_node */
	unsigned nactive;
	struct list ready; /* queue pairs with completions */
	struct list work;  /* queue pairs with incomplete send-queue entries */
	_Atomic uint32_t has_incoming;
	pthread_mutex_t lock; /* incoming */
	struct list incoming;
};

enum local_phase {
	PHASE_NEW,       /* no peer yet, or refused */
	PHASE_HELLO,     /* active: waiting for the peer's HELLO. passive: waiting for REQ */
	PHASE_ROUTED,    /* active: ROUTED reported. passive: REQUEST reported */
	PHASE_CONNECT,   /* active: REQ sent */
	PHASE_UP,        /* rings mapped, owned by the completion queue's owner */
	PHASE_DEAD,
};

struct local_qp {
	struct rr_qp base;
	struct list fabric_node;
	struct rr_local_counters n;
	enum local_phase phase;
	bool passive, attached;

	/* connection manager */
	struct local_cm *cm;
	struct list cm_node;
	void *listener_ctx;
	uint64_t deadline_ns; /* passive: of the handshake */
	int sock;
	struct rr_peer peer;
	struct rr_client *client; /* charged for shared memory; NULL: no peer yet */
	struct hs_msg hs;   /* the peer's latest message */
	uint8_t cookie[16];
	bool my_vm, peer_vm; /* this side, the peer may use process_vm_* */
	unsigned read_depth;

	/* shared memory; sizes come from the handshake, never from the shared memory */
	struct local_map *rings;
	struct shm_side *me, *other;
	struct shm_key *my_keys, *peer_keys;
	uint32_t my_nkeys, peer_nkeys, peer_key_mask; /* the mask covers the numbers of peer_keys[] */
	uint32_t peer_depth, my_recv_bytes, peer_recv_bytes;
	struct local_ring my_ring, peer_ring;

	/* completion queue */
	struct list cq_node;    /* active, dormant or incoming */
	bool is_active, is_dormant; /* neither: not yet taken over by the owner, or removed */
	unsigned idle;
	struct list ready_node, work_node;
	struct local_cqe *cqe;
	uint32_t cqe_head, cqe_tail, cqe_mask;

	/* receive queue; with a shared one rq_posted is the number of messages that may arrive, rqe is unused */
	struct rr_recv *rqe;
	uint32_t rq_depth, rq_mask, rq_used, rq_posted, rq_taken;
	struct rr_done *end;
	struct list starved_node;

	/* send queue */
	struct local_sqe *sqe; /* start of the memory of all queues */
	uint32_t sq_depth, sq_mask, sq_used, sq_head, sq_tail, sq_unreleased;
	uint32_t msg_head, peer_posted;
	bool peer_gone;

	/* requests to the peer, requests from the peer */
	struct local_req req[LOCAL_REQS];
	uint32_t req_head, req_acked, req_taken, reads_out;
	struct local_map *stage;       /* our bounce area, for requests to the peer */
	uint64_t stage_head, stage_tail;
	struct local_map *peer_stage;  /* the peer's bounce area */
	struct peer_region region[LOCAL_REGIONS_MAX];
	uint64_t region_bytes;         /* total */
	struct local_direct *direct;   /* by token */
	uint32_t direct_room, direct_free; /* direct_free: 1 + an unused one, or 0 */
	uint32_t ndirect;

	/* as owner of memory; under pd->lock */
	struct list pd_node;
	uint64_t regions_sent;
	uint64_t regions_sent_bytes, peer_takes_bytes;
};

struct local_cm {
	struct rr_cm base;
	int timerfd;
	bool ticking;
	unsigned left;          /* connections that ended without a REQ since left_since_ns */
	uint64_t left_since_ns;
	struct list listeners, qps;
};

struct local_listener {
	struct rr_listener base;
	struct list node;
	int fd;
	bool resting; /* not watched: accepting failed */
	uint64_t dev, ino;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

static inline struct local_fabric *to_fabric(const struct rr_fabric *f)
{
	return container_of(f, struct local_fabric, base);
}

static inline struct local_pd *to_pd(const struct rr_pd *pd)
{
	return container_of(pd, struct local_pd, base);
}

static inline struct local_cq *to_cq(const struct rr_cq *cq)
{
	return container_of(cq, struct local_cq, base);
}

static inline struct local_srq *to_srq(const struct rr_srq *srq)
{
	return container_of(srq, struct local_srq, base);
}

static inline struct local_qp *to_qp(const struct rr_qp *qp)
{
	return container_of(qp, struct local_qp, base);
}

static inline struct local_mr *to_mr(const struct rr_mr *mr)
{
	return container_of(mr, struct local_mr, base);
}

static inline struct local_mw *to_mw(const struct rr_mw *mw)
{
	return container_of(mw, struct local_mw, base);
}

/* Owner, for the closer, of descriptors that the peer of @qp passes. */
static inline uint64_t peer_owner(const struct local_qp *qp)
{
	return qp->peer.has_cred ? qp->peer.uid : LOCAL_OURS - 1;
}

/* One writer, the owner of the queue pair; rr_local_counters() reads from any thread. */
#define rr_local_count(qp, counter, by)                                                        \
	__atomic_store_n(&(qp)->n.counter, (qp)->n.counter + (by), __ATOMIC_RELAXED)

/* local.c */
void rr_local_qp_counted(struct local_qp *qp);
uint64_t rr_local_link_due(struct local_fabric *f, uint64_t bytes);

/* local_mem.c: our memory */
int rr_local_pd_create(struct rr_fabric *fabric, struct rr_pd **ret);
void rr_local_pd_destroy(struct rr_pd *pd);
int rr_local_mr_reg(struct rr_pd *pd, const struct rr_mr_attr *attr, struct rr_mr **ret);
int rr_local_mr_dereg(struct rr_mr *mr);
int rr_local_mw_create(struct rr_pd *pd, struct rr_mw **ret);
void rr_local_mw_destroy(struct rr_mw *mw);
unsigned rr_local_qp_withdraw(struct rr_qp *qp, uint32_t rkey);
void rr_local_mem_attach(struct local_qp *qp);
void rr_local_mem_detach(struct local_qp *qp);
enum rr_wc_status rr_local_mem_bind(struct local_qp *qp, const struct rr_wr *wr);
bool rr_local_mem_invalidate(struct local_qp *qp, uint32_t key);
enum rr_wc_status rr_local_mem_serve(struct local_qp *qp, const struct shm_req *req,
				     const struct local_map *stage);

/* local_map.c: shared memory */
bool rr_local_memfd_ok(int fd, uint64_t size);
int rr_local_map_make(struct local_qp *qp, enum rr_share share, const char *name, uint64_t size,
		      struct local_map **ret);
int rr_local_map_get(struct local_qp *qp, enum rr_share share, int fd, uint64_t size,
		     struct local_map **ret);
void rr_local_map_put(struct local_fabric *f, struct local_map *m);
void rr_local_map_close_fd(struct local_map *m);
void rr_local_map_close(struct local_fabric *f, uint64_t owner, int fd, uint64_t size);
bool rr_local_map_read(const struct local_map *m, void *to, size_t len, uint64_t off);
bool rr_local_map_write(const struct local_map *m, void *from, size_t len, uint64_t off);
bool rr_local_vm_copy(pid_t pid, void *ours, uint64_t addr, size_t len, bool write);

/* local_move.c: memory of the peer */
enum rr_wc_status rr_local_move(struct local_qp *qp, struct local_sqe *e, bool *ret_again);
void rr_local_move_replies(struct local_qp *qp);
bool rr_local_move_serve(struct local_qp *qp, uint32_t until);
bool rr_local_move_drain(struct local_qp *qp);
void rr_local_move_fini(struct local_qp *qp);
int rr_local_qp_direct(struct rr_qp *qp, uint32_t rkey, uint64_t raddr, uint32_t len, unsigned access,
		       void **ret_addr, uint32_t *ret_token);
void rr_local_qp_direct_end(struct rr_qp *qp, uint32_t token);
bool rr_local_qp_is_over(struct rr_qp *qp, bool look);

/* local_ring.c */
int rr_local_ring_create(struct local_qp *qp);
int rr_local_ring_map(struct local_qp *qp, int fd);
void rr_local_ring_unmap(struct local_qp *qp);
uint64_t rr_local_ring_bytes(uint32_t depth, uint32_t recv_bytes);
bool rr_local_ring_check(const struct hs_msg *hs, const struct local_fabric *f);
void rr_local_ring_bell(struct local_qp *qp);
int rr_local_ring_room(struct local_qp *qp);
void rr_local_ring_send(struct local_qp *qp, const struct local_sqe *e);
bool rr_local_ring_pull(struct local_qp *qp);
bool rr_local_ring_idle(struct local_qp *qp);

/* local_qp.c */
int rr_local_qp_new(struct rr_fabric *fabric, struct local_qp **ret);
int rr_local_qp_setup(struct rr_qp *qp, const struct rr_qp_attr *attr);
void rr_local_qp_attach(struct local_qp *qp);
void rr_local_qp_disconnect(struct rr_qp *qp);
void rr_local_qp_destroy(struct rr_qp *qp);
int rr_local_post_send(struct rr_qp *qp, const struct rr_wr *wr);
int rr_local_post_recv(struct rr_qp *qp, const struct rr_recv *recv);
bool rr_local_sge_ok(const struct rr_pd *pd, const struct rr_sge *s, bool write);
void rr_local_qp_run(struct local_qp *qp);
void rr_local_qp_kill(struct local_qp *qp);
void rr_local_qp_expect(struct local_qp *qp, uint32_t messages);
void rr_local_qp_hostile(struct local_qp *qp);
void rr_local_qp_complete(struct local_qp *qp, const struct rr_wc *wc, uint32_t sq_free,
			  uint32_t rq_free);

/* local_cq.c */
int rr_local_cq_create(struct rr_fabric *fabric, struct rr_cq **ret);
void rr_local_cq_destroy(struct rr_cq *cq);
int rr_local_cq_poll(struct rr_cq *cq, struct rr_wc *wc, int max);
int rr_local_cq_arm(struct rr_cq *cq);
void rr_local_cq_signal(struct local_cq *cq);
void rr_local_cq_add(struct local_cq *cq, struct local_qp *qp);
void rr_local_cq_remove(struct local_cq *cq, struct local_qp *qp);
void rr_local_cq_unwatch(struct local_cq *cq, struct local_qp *qp);

/** rr_local_cq_expect - owner only: outside a sleep, makes @qp active, because a reply to what it sends is expected */
void rr_local_cq_expect(struct local_cq *cq, struct local_qp *qp);

/** rr_local_cq_wake - owner only: makes @qp active, because it can continue, and signals the queue */
void rr_local_cq_wake(struct local_cq *cq, struct local_qp *qp);

/* local_srq.c */
int rr_local_srq_create(struct rr_fabric *fabric, const struct rr_srq_attr *attr,
			struct rr_srq **ret);
void rr_local_srq_destroy(struct rr_srq *srq);
int rr_local_srq_post(struct rr_srq *srq, const struct rr_recv *recv);
bool rr_local_srq_take(struct local_qp *qp, struct rr_recv *ret);
bool rr_local_srq_is_empty(struct local_qp *qp);
void rr_local_srq_leave(struct local_qp *qp);

/* local_cm.c */
int rr_local_cm_create(struct rr_fabric *fabric, rr_cm_fn fn, void *ctx, struct rr_cm **ret);
void rr_local_cm_destroy(struct rr_cm *cm);
void rr_local_cm_process(struct rr_cm *cm);
int rr_local_listen(struct rr_cm *cm, const char *addr, void *ctx, struct rr_listener **ret);
void rr_local_unlisten(struct rr_listener *l);
int rr_local_qp_dial(struct rr_cm *cm, const char *addr, struct rr_trust *trust,
		     struct rr_qp **ret);
int rr_local_qp_connect(struct rr_qp *qp, const struct rr_conn_param *param);
int rr_local_qp_accept(struct rr_qp *qp, const struct rr_conn_param *param);
int rr_local_qp_reject(struct rr_qp *qp);
void rr_local_cm_forget(struct local_qp *qp);

/* local_close.c */
int rr_local_closer_new(struct local_closer **ret);
void rr_local_closer_free(struct local_closer *c);
bool rr_local_closer_full(struct local_closer *c, uint64_t owner);
void rr_local_close_later(struct local_closer *c, uint64_t owner, int fd);
void rr_local_close_sock(struct local_closer *c, int sock);

/* local_sock.c */
int rr_local_sock_send(int sock, const struct hs_msg *msg, const int *fds, int nfds);
int rr_local_sock_recv(struct local_closer *closer, uint64_t owner, int sock, struct hs_msg *msg,
		       int *ret_fd);
int rr_local_sock_listen(const char *path, mode_t mode, int *ret_fd);
int rr_local_sock_dial(const char *path, int *ret_fd);
int rr_local_sock_dial_trusted(const char *path, struct rr_trust *trust, int *ret_fd);
bool rr_local_sock_gone(int sock);
void rr_local_sock_peer(int sock, struct rr_peer *peer);
bool rr_local_sock_try_vm(enum rr_local_vm mode, const struct rr_peer *peer,
			  const struct hs_msg *hs);

#endif
