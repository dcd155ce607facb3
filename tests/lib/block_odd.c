/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_odd.c - for tests of clients of block volumes that do as they like
 *
 * Operation, memory: Static; one server at a time.
 * Threads:   One.
 * Errors:    Asserted with cmocka.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "block_odd.h"

uint8_t odd_data[1 << 20], odd_mem[3 << 20];
bool odd_tcp;

void odd_start(const char *spec, const char *other)
{
	static char text[2][256];
	static const char *specs[3];
	const char *tail = odd_tcp ? ",clients=127.0.0.1,insecure" : "";

	for (size_t i = 0; i < sizeof(odd_data); i++)
		odd_data[i] = (uint8_t)(i * 13 + i / 4099);
	(void)snprintf(text[0], sizeof(text[0]), "%s%s", spec, tail);
	(void)snprintf(text[1], sizeof(text[1]), "%s%s", other ? other : "", tail);
	specs[0] = text[0];
	specs[1] = other ? text[1] : NULL;
	block_rig_url = odd_tcp ? "tcp://127.0.0.1:0" : NULL;
	assert_int_equal(block_rig_start(specs), 0);
}

void odd_end(void)
{
	block_rig_stop();
	block_rig_url = NULL;
}

void odd_attach(struct block_client *c, const char *holder, unsigned flags)
{
	assert_int_equal(block_attach(c, "vol", holder, flags, NULL), BLOCK_OK);
}

/* A client of another process is served: it takes the volume over, writes, reads, and leaves. */
void odd_served(void)
{
	struct block_client c;

	block_connect(&c, 0x600d, 0);
	odd_attach(&c, "honest", BLOCK_TAKE_OVER);
	memset(odd_mem, 0x5a, 4096);
	assert_int_equal(block_write(&c, 1 << 20, odd_mem, 4096, true), BLOCK_OK);
	memset(odd_mem, 0, 4096);
	assert_int_equal(block_read(&c, 1 << 20, odd_mem, 4096), BLOCK_OK);
	for (int i = 0; i < 4096; i++)
		assert_int_equal(odd_mem[i], 0x5a);
	assert_int_equal(block_flush(&c), BLOCK_OK);
	assert_int_equal(block_detach(&c), BLOCK_OK);
	block_close(&c);
}

/* Nothing of the volume's first block has been written. */
void odd_untouched(void)
{
	int fd = block_rig_open("a");
	uint8_t got[4096];

	assert_int_equal(pread(fd, got, sizeof(got), 0), sizeof(got));
	for (size_t i = 0; i < sizeof(got); i++)
		assert_int_equal(got[i], 0);
	close(fd);
}

static const uint32_t with_handle[] = {
	BLOCKPROC_READ, BLOCKPROC_WRITE, BLOCKPROC_DISCARD, BLOCKPROC_FLUSH, BLOCKPROC_ZERO, BLOCKPROC_EXTENTS, BLOCKPROC_DETACH,
};

block_status odd_one(struct block_client *c, uint32_t proc, uint64_t off, uint64_t bytes)
{
	struct block_rig_call call = { .args.at.at = { .handle = "" } };
	struct iovec iov = { odd_data, (size_t)bytes };
	block_status status;

	if (proc == BLOCKPROC_READ)
		call.args.read = (BLOCKREADargs){ .offset = off, .count = (u_int)bytes };
	else if (proc == BLOCKPROC_WRITE)
		call.args.write = (BLOCKWRITEargs){ .offset = off, .data = { .length = (uint32_t)bytes, .iov = &iov, .iovcnt = 1 } };
	else
		call.args.zero = (BLOCKZEROargs){ .offset = off, .length = bytes };
	block_begin(c, &call, proc, proc == BLOCKPROC_READ ? odd_mem : NULL, sizeof(odd_mem));
	status = block_end(&call);
	if (proc == BLOCKPROC_EXTENTS)
		xdr_free((xdrproc_t)xdr_BLOCKEXTENTSres, (char *)&call.res.extents);
	return status;
}

void odd_each(struct block_client *c, block_status want)
{
	for (size_t i = 0; i < ARRAY_SIZE(with_handle); i++) {
		block_status got = odd_one(c, with_handle[i], 0, 4096);

		if (got != want)
			fail_msg("procedure %u: status %u, expected %u", with_handle[i], got, want);
	}
}

int odd_local(void **state)
{
	(void)state;
	odd_tcp = false;
	return 0;
}

int odd_over_tcp(void **state)
{
	(void)state;
	odd_tcp = true;
	return 0;
}
