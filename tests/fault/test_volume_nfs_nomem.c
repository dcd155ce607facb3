/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_nfs_nomem.c - the Nth allocation of the servers of a volume fails while NFS reads and writes a striped file, for N
 * from 1 until none is left to fail
 *
 * Each call succeeds, or asks the client to try again, or fails with an error; afterwards all work. The sanitizers find leaks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/util.h"
#include "nfs_peer.h"
#include "nomem_server.h"
#include "server.h"
#include "volume_rig.h"

LOG_DEFINE("test");

#define UNIT 65536u
#define BYTES (4 * UNIT)

static uint8_t data[BYTES], to[BYTES];
static struct nfs_peer peer;

static nfsstat3 commit(const struct nfs_fh *fh)
{
	COMMIT3args a = { .file = nfs_peer_fh(fh) };

	NFS_PEER_RETURN_CALL(&peer, COMMIT, &a);
}

/* Return: status of the first call that failed */
static nfsstat3 use_file(const struct nfs_fh *fh)
{
	WRITE3resok ok = { .count = BYTES };
	nfsstat3 status = nfs_peer_write(&peer, fh, 0, data, BYTES, UNSTABLE, &ok);
	uint32_t n = BYTES;
	bool eof;

	if (!status && ok.count < BYTES) /* what follows did not succeed */
		return NFS3ERR_IO;
	if (!status)
		status = commit(fh);
	if (!status)
		status = nfs_peer_read(&peer, fh, 0, to, BYTES, &n, &eof);
	if (!status && n == BYTES)
		assert_memory_equal(to, data, BYTES);
	return status;
}

static void reads_and_writes(void **state)
{
	unsigned long n;

	(void)state;
	for (n = 1;; n++) { /* a file that no reactor has open yet */
		struct nfs_fh fh;
		char name[16];
		nfsstat3 status;
		bool failed;

		(void)snprintf(name, sizeof(name), "f%lu", n);
		assert_int_equal(nfs_peer_create_file(&peer, &peer.root, name, &fh), NFS3_OK);
		nomem_server_serving(n);
		status = use_file(&fh);
		failed = nomem_server_failed();
		nomem_server_serving(0);
		assert_true(!status || (failed && (status == NFS3ERR_JUKEBOX || status == NFS3ERR_IO)));
		assert_int_equal(use_file(&fh), NFS3_OK);
		if (!failed)
			break;
	}
	print_message("%lu allocations\n", n - 1);
	assert_true(n > 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(reads_and_writes) };
	int failed;

	nomem_server_init();
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	volume_rig_start(false, "stripe=64K");
	nfs_peer_join(&peer, server_listener(volume_rig.manager, 0), "/v");
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	nfs_peer_leave(&peer);
	volume_rig_stop();
	return failed;
}
