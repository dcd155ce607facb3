/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dump.h - leat-dump: from the bytes of a capture to one line per RPC-over-RDMA message
 *
 * Each layer is a file: records of the file, frames of the wire, connections and their messages, the RPC
 * in a message, the line, the rules. All input is untrusted: a length is used only within the bytes that
 * exist, and memory does not grow with lengths that a file claims.
 */
#ifndef LEAT_TOOL_DUMP_H
#define LEAT_TOOL_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/list.h"
#include "base/util.h"
#include "hdr.h"

struct wire_get;

/* ---- dump_file.c: pcap and pcapng -------------------------------------------------------------- */

struct dump_packet {
	uint64_t ns;         /* since 1970; 0 if the file has no time */
	uint32_t link;       /* LINKTYPE_ of the interface */
	const uint8_t *data; /* valid until the next packet is read */
	size_t len;          /* bytes captured */
};

#define DUMP_INTERFACES_MAX 64u

struct dump_file {
	FILE *in;
	bool ng, swapped;
	uint32_t nifaces;
	struct dump_iface {
		uint32_t link;
		uint8_t resolution; /* unit of time: 10^-n s, or 2^-n with bit 7 */
	} ifaces[DUMP_INTERFACES_MAX];
	uint8_t *buf;
	size_t cap;
};

/** dump_file_init - reads the beginning of a capture
 *
 * Return: 0, and the caller calls dump_file_fini(); -EBADMSG: not a capture; -EIO, -ENOMEM.
 */
must_check int dump_file_init(struct dump_file *f, FILE *in);
void dump_file_fini(struct dump_file *f);

/** dump_file_next - reads the next packet
 *
 * Return: 1; 0 at the end; -ENODATA: the file ends in the middle of a record; -EBADMSG: not a valid record; -EIO,
 * -ENOMEM.
 */
must_check int dump_file_next(struct dump_file *f, struct dump_packet *ret);

/* ---- dump_frame.c: link, IP, UDP, InfiniBand ----------------------------------------------------- */

/* IPv4 as ::ffff:a.b.c.d */
struct dump_addr {
	uint8_t bytes[16];
};

struct dump_frame {
	uint64_t ns;
	struct dump_addr src, dst;
	uint8_t opcode;
	uint32_t qpn, psn;   /* qpn: of the receiver; psn: of the packet */
	const uint8_t *body; /* after the BTH; without pad and checksum if it is complete */
	size_t len;
	bool cut;            /* the packet was not captured completely */
};

/** dump_frame_parse - is this a RoCEv2 packet for a queue pair? */
bool dump_frame_parse(const struct dump_packet *p, struct dump_frame *ret);

/** dump_addr_print - "10.0.0.1", "fd77::1"; Return: @buf */
#define DUMP_ADDR_TEXT 48
const char *dump_addr_print(const struct dump_addr *a, char buf[DUMP_ADDR_TEXT]);

/* ---- dump_rpc.c, dump_block.c, dump_stripes.c, dump_volumes.c: RPC messages -------------------------- */

struct dump_rpc {
	bool known; /* the captured bytes include the procedure of a call, or the status of a reply */
	bool call;
	uint32_t xid, prog, vers, proc; /* in a reply: those of its call, 0 if unknown */

	/* replies */
	bool denied;
	uint32_t accept; /* accept status, or the reason of a denial */
	bool has_status;
	uint32_t status;
	bool has_eof, eof;

	bool has_offset, has_count;
	uint64_t offset;
	uint32_t count;

	/* the item that may be moved by chunk: data of READ and WRITE (of block volumes and stripes, too), path of READLINK and
	 * SYMLINK */
	bool has_item;
	size_t item_at; /* offset of its first byte in the message without chunks */
	uint32_t item_bytes;

	/* leat's own programs */
	bool has_lane, has_length, has_entries, has_epoch;
	uint32_t slot, incarnation;
	uint64_t length;     /* of a range, or a cut; in the reply to EXTENTS: of all extents */
	uint32_t entries;    /* of the list in a reply */
	bool fua, sync;
	uint64_t epoch;
	/* managers of volumes */
	bool has_layout, has_rights, lease;
	uint32_t unit, width, rights, flags;
	bool has_end;
	size_t end_at;       /* end of a message without such an item */
	const char *flaw;    /* the first field that breaks its rule; NULL: none */
};

/** dump_rpc_call - parses a call; @len bytes of it are there, perhaps not all */
void dump_rpc_call(const uint8_t *p, size_t len, struct dump_rpc *ret);
/** dump_rpc_reply - parses the reply to @call, which may be NULL */
void dump_rpc_reply(const uint8_t *p, size_t len, const struct dump_rpc *call,
		    struct dump_rpc *ret);
/** dump_block_args, dump_block_results - parse those of the block program, behind the head of the message at @start */
void dump_block_args(struct wire_get *g, const uint8_t *start, struct dump_rpc *r);
void dump_block_results(struct wire_get *g, const uint8_t *start, struct dump_rpc *r);
bool dump_is_block(const struct dump_rpc *r);
/** dump_stripes_args, dump_stripes_results - the same for the program of stripes */
void dump_stripes_args(struct wire_get *g, const uint8_t *start, struct dump_rpc *r);
void dump_stripes_results(struct wire_get *g, const uint8_t *start, struct dump_rpc *r);
bool dump_is_stripes(const struct dump_rpc *r);
/** dump_volumes_args, dump_volumes_results - the same for the program of volumes */
void dump_volumes_args(struct wire_get *g, const uint8_t *start, struct dump_rpc *r);
void dump_volumes_results(struct wire_get *g, const uint8_t *start, struct dump_rpc *r);
bool dump_is_volumes(const struct dump_rpc *r);

/** dump_rpc_print - "NFS READ offset=0 count=4096"; Return: @buf */
const char *dump_rpc_print(const struct dump_rpc *r, char *buf, size_t cap);

/* ---- dump_flow.c: messages and transfers of connections ---------------------------------------------- */

#define DUMP_HEAD_BYTES 2048u /* bytes kept of a message that is moved by chunk */
#define DUMP_READS 128u       /* RDMA Reads remembered per side */

/* The beginning of a message that is moved by chunk, while it is reassembled. */
struct dump_head {
	uint8_t *bytes; /* DUMP_HEAD_BYTES, zero where nothing was received; NULL: nothing received */
	size_t len;     /* end of the last byte received */
};

/* A call without a reply. */
struct dump_call {
	struct list node; /* in the list of the connection, oldest first */
	struct list age;  /* in the list of all calls */
	struct dump_conn *conn;
	struct rr_hdr hdr;
	struct dump_rpc rpc;
	size_t inline_bytes;
	struct dump_head args, reply;
	uint64_t read_bytes, written_bytes;
	unsigned reads, writes;
	uint64_t written[RR_WRITE_CHUNKS_MAX + 1]; /* bytes per chunk; the last entry is the Reply chunk */
};

struct dump_read {
	uint32_t psn, packets;
	uint32_t rkey, left;
	uint64_t va;
	struct dump_call *call;
};

/* One side of a connection, and what it sends. */
struct dump_end {
	struct dump_addr addr;
	bool qpn_known, psn_known;
	uint32_t qpn;
	uint32_t psn;     /* of its next request */
	struct rr_priv priv;
	uint8_t reads_served, reads_asked; /* responder_resources, initiator_depth */

	bool in_send, send_cut;
	uint8_t *msg;     /* the Send that is being reassembled */
	size_t msg_len, msg_cap;

	struct dump_call *write_call; /* call of the RDMA Write in progress */
	uint32_t write_rkey;
	uint64_t write_va;

	struct dump_read reads[DUMP_READS]; /* a ring buffer */
	unsigned next_read;
};

enum { DUMP_DIALLED = 0, DUMP_LISTENED = 1 };

/* State of a connection for the rules of dump_check.c. */
struct dump_account {
	bool answered;
	uint32_t grant;    /* the last credit grant */
	uint32_t limit;    /* the last grant before it fell, until the client must have seen the lower one */
	uint32_t falling;  /* the highest grant since then */
	unsigned until;    /* replies until the client must have seen it */
};

struct dump_conn {
	struct list node;
	struct dump_end end[2];  /* with a captured beginning: active side, passive side */
	bool has_cm, up, over;   /* a REQ was seen; both sides are known; one has disconnected */
	bool used;               /* a message was sent */
	bool whole;              /* captured from the beginning, without a gap */
	int client;              /* 0, 1; -1: not yet known */
	uint32_t comm;           /* the active side's communication id */
	uint32_t mtu;            /* 0: unknown */
	struct list calls;
	unsigned ncalls;
	struct dump_account account;
};

enum dump_kind { DUMP_CALL, DUMP_REPLY, DUMP_OTHER };

struct dump_msg {
	const struct dump_frame *frame;
	struct dump_conn *conn;
	int from;
	const uint8_t *bytes;
	size_t len;
	bool cut;
	bool inv;
	uint32_t inv_rkey;
	struct rr_hdr hdr;
	int bad;             /* result of rr_hdr_decode() */
	size_t hdr_bytes;
	enum dump_kind kind;
	struct dump_call *call; /* this call, or the call of this reply; may be NULL */
	struct dump_rpc rpc;
};

enum dump_move { DUMP_READ, DUMP_WRITE };

struct dump_transfer {
	const struct dump_frame *frame;
	struct dump_conn *conn;
	int from;
	enum dump_move what;
	uint32_t rkey, len;
	uint64_t va;
	struct dump_call *call; /* the call that offered the memory; NULL: none did */
};

enum dump_cm_kind {
	DUMP_CM_REQ = 0x10, DUMP_CM_MRA, DUMP_CM_REJ, DUMP_CM_REP, DUMP_CM_RTU, DUMP_CM_DREQ,
	DUMP_CM_DREP,
};

struct dump_cm {
	const struct dump_frame *frame;
	uint16_t kind;
	struct dump_conn *conn; /* REQ and REP */
	int from;
	uint16_t port;          /* REQ */
	uint8_t retry, rnr_retry;
	uint16_t reason;        /* REJ */
};

struct dump_options {
	bool lines;     /* print a line per message */
	bool transfers; /* and a line per RDMA operation */
	bool check;     /* and a line per broken rule */
};

struct dump {
	FILE *out;
	struct dump_options options;
	uint64_t start_ns;
	bool started;
	struct list conns; /* most recently used first */
	unsigned nconns;
	struct list calls; /* of all connections, oldest first */
	unsigned ncalls;

	/* counters for dump_end() */
	uint64_t packets, messages, connections, missing, undecoded, cut;
	uint64_t broken;
};

/** dump_init - @out receives the lines; call dump_fini() at the end */
void dump_init(struct dump *d, FILE *out, const struct dump_options *options);
void dump_fini(struct dump *d);

/** dump_packet - processes the next packet of a capture
 *
 * Return: 0, or -ENOMEM.
 */
must_check int dump_packet(struct dump *d, const struct dump_packet *p);

/** dump_psn_ahead - distance of @psn from @base, modulo 2^24; negative: behind */
static inline int32_t dump_psn_ahead(uint32_t psn, uint32_t base)
{
	return (int32_t)((psn - base) << 8) / 256;
}

/* ---- dump_conn.c: the table of connections ----------------------------------------------------------- */

/** dump_conn_find - finds the connection of a frame
 * @ret_from: the side that sent it
 *
 * Return: NULL if the connection, or this direction of it, is unknown.
 */
struct dump_conn *dump_conn_find(struct dump *d, const struct dump_frame *f, int *ret_from);

/** dump_conn_guess - finds or creates a connection without a captured beginning
 * @response: the frame responds to a request of the other side, which must be known; else it may be the first frame
 * of the connection
 *
 * Return: 1; 0: no connection; -ENOMEM.
 */
must_check int dump_conn_guess(struct dump *d, const struct dump_frame *f, bool response,
			       struct dump_conn **ret, int *ret_from);

/** dump_conn_cm - processes a datagram of the connection manager; prints and checks it
 *
 * Return: 0, -ENOMEM.
 */
must_check int dump_conn_cm(struct dump *d, const struct dump_frame *f);

/** dump_conn_destroy - removes and frees a connection and its outstanding calls */
void dump_conn_destroy(struct dump *d, struct dump_conn *c);

/** dump_call_create - adds an outstanding call of @c; NULL without memory */
struct dump_call *dump_call_create(struct dump *d, struct dump_conn *c, const struct rr_hdr *hdr);
/** dump_call_destroy - removes and frees a call that got its reply, or is dropped */
void dump_call_destroy(struct dump *d, struct dump_call *call);

/** dump_call_find - the oldest call with @xid, or NULL */
struct dump_call *dump_call_find(const struct dump_conn *c, uint32_t xid);

/* Memory offered by a call. */
struct dump_place {
	struct dump_call *call;
	bool to_read;     /* a read list; else a Write chunk or the Reply chunk */
	uint32_t chunk;   /* position, or index; RR_WRITE_CHUNKS_MAX for the Reply chunk */
	uint64_t at;      /* offset of the first byte in the chunk */
};

/** dump_place_find - finds the last outstanding call of @c that offers @len bytes at @va with @rkey */
bool dump_place_find(const struct dump_conn *c, bool to_read, uint32_t rkey, uint64_t va,
		     uint32_t len, struct dump_place *ret);

/** dump_head_put - stores bytes of a message that is moved by chunk; Return: 0, -ENOMEM */
must_check int dump_head_put(struct dump_head *h, uint64_t at, const uint8_t *p, size_t len);

/* ---- dump_print.c: the lines --------------------------------------------------------------------- */

/** dump_print_cm - prints a datagram of the connection manager: "CM REQ port=20049 ..." */
void dump_print_cm(struct dump *d, const struct dump_cm *cm);
/** dump_print_msg - prints a message: "CALL RDMA_MSG xid=... hdr=28 send=132 NFS READ offset=0 count=3000" */
void dump_print_msg(struct dump *d, const struct dump_msg *m);
/** dump_print_transfer - prints an RDMA Read or Write, if options.transfers is set:
 * "RDMA WRITE rkey=0x1f offset=0x7f00 length=4096 xid=0x1"
 */
void dump_print_transfer(struct dump *d, const struct dump_transfer *t);
/** dump_print_nak - prints a negative acknowledgement, RNR NAK included; @syndrome is that of its AETH */
void dump_print_nak(struct dump *d, const struct dump_frame *f, uint8_t syndrome);
/** dump_print_note - prints a remark about @f */
printf_like(3, 4) void dump_print_note(struct dump *d, const struct dump_frame *f,
				       const char *fmt, ...);
/** dump_print_end - prints the counters */
void dump_print_end(const struct dump *d);

/* ---- dump_check.c: the rules of doc/protocol.md ---------------------------------------------------- */

/* Each check runs after the tables of the connection are updated, except for calls (checked before they count as
 * outstanding) and replies (checked before their call is removed). */
void dump_check_cm(struct dump *d, const struct dump_cm *cm);
void dump_check_call(struct dump *d, const struct dump_msg *m);
void dump_check_reply(struct dump *d, const struct dump_msg *m);
void dump_check_transfer(struct dump *d, const struct dump_transfer *t);
void dump_check_nak(struct dump *d, const struct dump_frame *f, uint8_t syndrome);
void dump_check_gap(struct dump *d, const struct dump_frame *f, uint32_t packets);

#endif
