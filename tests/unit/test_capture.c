/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_capture.c - what tshark makes of a capture
 */
#include <sys/stat.h>

#include "base/wire.h"
#include "capture_ops.c"
#include "test_local_pair.h"
#include "lab.h"

static char pcap[64];

/* An NFS call or reply with an RPC-over-RDMA header that has one Write chunk of @len, or none. */
static uint32_t put_rpc(uint8_t *buf, uint32_t xid, bool call, uint32_t proc, uint32_t rkey,
			uint64_t addr, uint32_t len)
{
	struct wire_put p;

	wire_put_init(&p, buf, RECV_BYTES);
	wire_put_u32(&p, xid);
	wire_put_u32(&p, 1);
	wire_put_u32(&p, 32);
	wire_put_u32(&p, 0);
	wire_put_u32(&p, 0);
	wire_put_u32(&p, len ? 1 : 0);
	if (len) {
		wire_put_u32(&p, 1);
		wire_put_u32(&p, rkey);
		wire_put_u32(&p, len);
		wire_put_u64(&p, addr);
		wire_put_u32(&p, 0);
	}
	wire_put_u32(&p, 0);
	wire_put_u32(&p, xid);
	wire_put_u32(&p, call ? 0 : 1);
	if (call) {
		wire_put_u32(&p, 2);
		wire_put_u32(&p, 100003);
		wire_put_u32(&p, 3);
		wire_put_u32(&p, proc);
		for (int i = 0; i < 4; i++)
			wire_put_u32(&p, 0);
	} else {
		for (int i = 0; i < 4; i++)
			wire_put_u32(&p, 0);
	}
	assert_true(wire_put_ok(&p));
	return (uint32_t)wire_put_len(&p);
}

static void exchange(struct end *c, struct end *s)
{
	static uint8_t mem[3 * 4096 + 5], data[sizeof(mem)];
	struct rr_mr *mr = end_reg(c, mem, sizeof(mem),
				   RR_ACCESS_LOCAL_WRITE | RR_ACCESS_REMOTE, -1);
	struct rr_mr *dm = end_reg(s, data, sizeof(data), RR_ACCESS_LOCAL_WRITE, -1);
	uint32_t n;

	/* NULL, then a call with a Write chunk that is written and read back */
	n = put_rpc(end_msg(c, 0), 0x1234, true, 0, 0, 0, 0);
	assert_int_equal(end_send(c, 0, n, RR_WR_SIGNALED), 0);
	pair_wait(s, c, 1);
	n = put_rpc(end_msg(s, 0), 0x1234, false, 0, 0, 0, 0);
	assert_int_equal(end_send(s, 0, n, RR_WR_SIGNALED), 0);
	pair_wait(c, s, 2);
	n = put_rpc(end_msg(c, 0), 0x1235, true, 0, mr->rkey, (uintptr_t)mem, sizeof(mem));
	assert_int_equal(end_send(c, 0, n, RR_WR_SIGNALED), 0);
	pair_wait(s, c, 3);
	assert_int_equal(end_rdma(s, RR_WR_WRITE, data, sizeof(data), dm, mem, mr->rkey), 0);
	assert_int_equal(end_rdma(s, RR_WR_READ, data, sizeof(data), dm, mem, mr->rkey), 0);
	n = put_rpc(end_msg(s, 0), 0x1235, false, 0, mr->rkey, (uintptr_t)mem, sizeof(mem));
	assert_int_equal(end_send(s, 0, n, RR_WR_SIGNALED), 0);
	pair_wait(s, c, 6);
	for (int i = 0; i < s->nwc; i++)
		assert_int_equal(s->wc[i].status, RR_WC_OK);
	pair_wait(c, s, 4);
	assert_int_equal(rr_mr_dereg(mr), 0);
	assert_int_equal(rr_mr_dereg(dm), 0);
}

/* Without it captures are written, and not checked. */
static void need_tshark(void)
{
	if (!system("command -v tshark >/dev/null 2>&1"))
		return;
	print_message("SKIP: tshark is not installed\n");
	skip();
}

/* How many frames of the capture match @filter. */
static int count(const char *filter)
{
	char cmd[512];
	FILE *p;
	int n = -1;

	snprintf(cmd, sizeof(cmd), "tshark -r %s -Y '%s' 2>/dev/null | wc -l", pcap, filter);
	p = popen(cmd, "r");
	assert_non_null(p);
	assert_int_equal(fscanf(p, "%d", &n), 1);
	pclose(p);
	return n;
}

static void check_frames(void)
{
	assert_int_equal(count("infiniband.mad.attributeid == 0x10"), 1);
	assert_int_equal(count("infiniband.mad.attributeid == 0x13"), 1);
	assert_int_equal(count("infiniband.mad.attributeid == 0x14"), 1);
	assert_int_equal(count("ip.src == 10.0.0.1 && rpcordma && rpc.msgtyp == 0"), 2);
	assert_int_equal(count("ip.src == 10.0.0.2 && rpcordma && rpc.msgtyp == 1"), 2);
	/* tshark found the call of each reply, which takes the connection's datagrams */
	assert_int_equal(count("rpc.repframe && rpc.msgtyp == 1"), 2);
	assert_int_equal(count("rpc.program == 100003"), 4);
	assert_int_equal(count("rpcordma.writes_count == 1"), 2);
	assert_int_equal(count("rpcordma.rdma_length == 12293"), 2);
	/* 12293 bytes at a path MTU of 4096 are First, two Middles, Last */
	assert_int_equal(count("infiniband.bth.opcode == 6"), 1);
	assert_int_equal(count("infiniband.bth.opcode == 7"), 2);
	assert_int_equal(count("infiniband.bth.opcode == 8"), 1);
	assert_int_equal(count("infiniband.bth.opcode == 12"), 1);
	assert_int_equal(count("infiniband.reth.dmalen == 12293"), 2);
	assert_int_equal(count("infiniband.bth.opcode == 13"), 1);
	assert_int_equal(count("infiniband.bth.opcode == 14"), 2);
	assert_int_equal(count("infiniband.bth.opcode == 15"), 1);
	assert_int_equal(count("_ws.malformed"), 0);
}

/* @both: one fabric holds both ends; else only the @active one is watched. */
static void watch(bool both, bool active)
{
	struct rr_fabric *watched = open_fabric(NULL), *plain = both ? watched : open_fabric(NULL);
	struct end c, s;

	assert_int_equal(rr_capture_push(watched, pcap), 0);
	end_open(&c, active ? watched : plain);
	end_open(&s, active ? plain : watched);
	assert_int_equal(rr_listen(s.cm, pair_path(), NULL, &s.l), 0);
	pair_connect(&c, &s);
	exchange(&c, &s);
	pair_close(&c, &s);
	rr_fabric_close(watched);
	if (!both)
		rr_fabric_close(plain);
}

static void test_one_fabric(void **state)
{
	(void)state;
	watch(true, true);
	need_tshark();
	check_frames();
}

static void test_server_side(void **state)
{
	(void)state;
	watch(false, false);
	need_tshark();
	check_frames();
}

static void test_client_side(void **state)
{
	(void)state;
	watch(false, true);
	need_tshark();
	/* what the peer did to our memory is not ours to see; all else is there */
	assert_int_equal(count("rpcordma && rpc.msgtyp == 0"), 2);
	assert_int_equal(count("rpcordma && rpc.msgtyp == 1"), 2);
	assert_int_equal(count("infiniband.reth"), 0);
}

static void test_unwritable(void **state)
{
	const struct rpcrdma_domain_attr attr = { .lab = LAB(.capture = "/nonexistent/x.pcap") };
	struct rpcrdma_domain *d = NULL;

	(void)state;
	assert_int_equal(rpcrdma_domain_create(&attr, &d), -ENOENT);
	assert_null(d);
}

/* Whatever the umask is, other users cannot read the capture or redirect it to another file. */
static void test_private(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	mode_t mask = umask(0);
	char link[sizeof(pcap) + 8];
	struct stat st;

	(void)state;
	(void)unlink(pcap);
	assert_int_equal(rr_capture_push(f, pcap), 0);
	umask(mask);
	rr_fabric_close(f);
	assert_int_equal(stat(pcap, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	snprintf(link, sizeof(link), "%s.link", pcap);
	assert_int_equal(symlink(pcap, link), 0);
	f = open_fabric(NULL);
	assert_int_equal(rr_capture_push(f, link), -ELOOP);
	rr_fabric_close(f);
	assert_int_equal(unlink(link), 0);
}

/* A queue pair or shared queue that ends with receives posted takes their records with it. */
static void test_never_connected(void **state)
{
	struct rr_fabric *f = open_fabric(NULL);
	struct rr_srq_attr sa = { .depth = 4, .recv_bytes = RECV_BYTES };
	struct list *records;
	struct rr_srq *srq;
	struct end c, s;

	(void)state;
	assert_int_equal(rr_capture_push(f, pcap), 0);
	records = &recorder_of(f)->records;
	end_open(&c, f);
	end_open(&s, f);
	assert_int_equal(rr_listen(s.cm, pair_path(), NULL, &s.l), 0);
	assert_int_equal(rr_qp_dial(c.cm, pair_path(), NULL, &c.qp), 0);
	end_wait_event(&c, &s, 1);
	end_setup(&c);
	assert_false(list_is_empty(records));
	sa.pd = c.pd;
	sa.cq = c.cq;
	assert_int_equal(rr_srq_create(f, &sa, &srq), 0);
	assert_int_equal(rr_srq_post(srq, &c.recv[0]), 0);
	rr_qp_destroy(c.qp);
	c.qp = NULL;
	assert_ptr_equal(records->next, records->prev); /* the shared queue's */
	assert_false(list_is_empty(records));
	rr_srq_destroy(srq);
	assert_true(list_is_empty(records));
	end_close(&c);
	end_close(&s);
	rr_fabric_close(f);
}

static int cleanup(void **state)
{
	(void)state;
	return unlink(pcap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_fabric),
		cmocka_unit_test(test_server_side),
		cmocka_unit_test(test_client_side),
		cmocka_unit_test(test_unwritable),
		cmocka_unit_test(test_private),
		cmocka_unit_test(test_never_connected),
	};

	snprintf(pcap, sizeof(pcap), "/tmp/leat-test-%d.pcap", (int)getpid());
	return cmocka_run_group_tests(tests, NULL, cleanup);
}
