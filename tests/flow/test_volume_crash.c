/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_crash.c - the manager of a volume, its stripe servers or the client are killed after each message, and after each
 * change or sync of their disks, while a file is created, extended, appended to, cut, removed or replaced
 *
 * For each of these operations and each party: it is killed at its first point (tests/lib/crash_points.h), then at its second
 * one, until the operation and what is pending after it end without. The stripe servers are one party: the one that comes to
 * point N is killed. A server is started again at once, while the operation is in progress. When nothing is pending any more,
 * and leases have ended, leat volume fsck has nothing to repair, the file is the old or the new one, and no object is left of
 * a file that is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "crash_points.h"
#include "leat.h"
#include "leat_volume.h"
#include "leat_flow.h"
#include "nfs_peer.h"
#include "server.h"
#include "volume_fsck.h"
#include "volume_pending.h"
#include "volume_rig.h"

LOG_DEFINE("test_volume_crash");

#define BYTES (512u << 10)
#define HALF 60000u /* in the first unit: what is behind makes an object */
#define RECORD (BYTES - HALF)
#define CUT 100000u
#define OVER_TCP "replies are counted on their way to sockets"
#define ROOM (BYTES + 2 * RECORD)

enum { PARTY_CLIENT = 1, PARTY_MANAGER, PARTY_SERVER /* the first one */ };

static struct leat *m;
static uint8_t data[BYTES], other[BYTES], mem[ROOM];

/* ---- the servers ---------------------------------------------------------------------------- */

static void restart(unsigned party)
{
	crash_points_join(party);
	if (party == PARTY_MANAGER)
		volume_rig_end_manager();
	else
		volume_rig_end_server(party - PARTY_SERVER);
	crash_points_revive();
	if (party == PARTY_MANAGER)
		volume_rig_start_manager();
	else
		volume_rig_start_server(party - PARTY_SERVER);
	crash_points_join(CRASH_NOBODY);
}

static int setup(void **state)
{
	(void)state;
	volume_rig_start(true, "stripe=64K,width=2");
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++)
		restart(PARTY_SERVER + i);
	restart(PARTY_MANAGER);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	volume_rig_stop();
	return 0;
}

/* What is asynchronous ends some time. */
static void wait_for_leases(void)
{
	uint64_t until = clock_now_ns() + 20 * NS_PER_S;

	while (volume_rig_entries("m/writers") && clock_now_ns() < until)
		(void)poll(NULL, 0, 1);
	assert_int_equal(volume_rig_entries("m/writers"), 0);
}

/* ---- operations ----------------------------------------------------------------------------- */

static int act_create(struct leat *on)
{
	struct leat_file *f;
	int err = leat_open(on, "f", O_RDWR | O_CREAT | O_EXCL, 0644, &f);

	return err ? err : leat_close(f);
}

/* Return: the first error of several */
static int first(int err, int64_t rc)
{
	return err || rc >= 0 ? err : (int)rc;
}

static int act_extend(struct leat *on)
{
	struct leat_file *f;
	int err = leat_open(on, "f", O_RDWR, 0, &f);

	if (err)
		return err;
	err = first(err, leat_pwrite(f, data + HALF, RECORD, HALF));
	err = first(err, leat_fsync(f));
	return first(err, leat_close(f));
}

static int act_append(struct leat *on)
{
	struct leat_file *f;
	int err = leat_open(on, "f", O_RDWR | O_APPEND, 0, &f);

	if (err)
		return err;
	err = first(err, leat_write(f, data + HALF, RECORD));
	err = first(err, leat_fsync(f));
	return first(err, leat_close(f));
}

static struct nfs_peer peer;
static struct nfs_fh nfs_file;

static int commit(writeverf3 *ret)
{
	COMMIT3args a = { .file = nfs_peer_fh(&nfs_file) };
	COMMIT3res res = { 0 };
	int err = nfs_peer_rpc(&peer, NFS_PROGRAM, NFS_V3, NFSPROC3_COMMIT, (xdrproc_t)xdr_COMMIT3args, &a,
			       (xdrproc_t)xdr_COMMIT3res, &res, NULL, 0);

	if (err || res.status)
		return err ? err : -EIO;
	memcpy(ret, res.COMMIT3res_u.resok.verf, sizeof(*ret));
	return 0;
}

/* Extends the file through the manager, and writes again what may be lost, as NFS clients do. */
static int act_nfs(struct leat *on)
{
	writeverf3 verf;
	WRITE3resok ok;
	int err = 0;

	(void)on;
	do {
		if (nfs_peer_write(&peer, &nfs_file, HALF, data + HALF, RECORD, UNSTABLE, &ok))
			return -EIO;
		err = commit(&verf);
	} while (!err && memcmp(verf, ok.verf, sizeof(verf)) != 0);
	return err;
}

static void connect_nfs(void)
{
	nfs_peer_join(&peer, server_listener(volume_rig.manager, 0), "/v");
	assert_int_equal(nfs_peer_lookup(&peer, &peer.root, "f", &nfs_file), NFS3_OK);
}

static int act_cut(struct leat *on)
{
	struct leat_file *f;
	int err = leat_open(on, "f", O_RDWR, 0, &f);

	if (err)
		return err;
	err = first(err, leat_ftruncate(f, CUT));
	return first(err, leat_close(f));
}

/* The second cut is longer than the first one: it must not bring back what that one has cut. */
static int act_cut_twice(struct leat *on)
{
	struct leat_file *f;
	int err = leat_open(on, "f", O_RDWR, 0, &f);

	if (err)
		return err;
	err = first(err, leat_ftruncate(f, CUT));
	err = first(err, leat_ftruncate(f, BYTES));
	err = first(err, leat_ftruncate(f, 2 * CUT));
	return first(err, leat_close(f));
}

static int act_unlink(struct leat *on)
{
	return leat_unlink(on, "f");
}

static int act_replace(struct leat *on)
{
	return leat_rename(on, "new", "f");
}

/* ---- what is found -------------------------------------------------------------------------- */

static void write_file(const char *name, const uint8_t *from, uint64_t bytes)
{
	struct leat_file *f = volume_rig_open(m, name, O_RDWR | O_CREAT);

	assert_int_equal(leat_pwrite(f, from, bytes, 0), bytes);
	assert_int_equal(leat_close(f), 0);
}

/* Makes the file grow to ROOM, and reads it. Return: its size before; -1: it is gone */
static int64_t read_file(struct leat *from, const char *name)
{
	struct leat_file *f;
	struct stat st;
	int err = leat_open(from, name, O_RDWR, 0, &f);

	if (err == -ENOENT)
		return -1;
	assert_int_equal(err, 0);
	assert_int_equal(leat_fstat(f, &st), 0);
	assert_true(st.st_size <= ROOM);
	assert_int_equal(leat_ftruncate(f, ROOM), 0);
	memset(mem, 0xee, ROOM);
	assert_int_equal(leat_pread(f, mem, ROOM, 0), ROOM);
	assert_int_equal(leat_close(f), 0);
	return (int64_t)st.st_size;
}

/* Is all of mem zeroes from @off? */
static bool is_zero(uint64_t off)
{
	for (uint64_t i = off; i < ROOM; i++)
		if (mem[i])
			return false;
	return true;
}

/* The first @bytes are those of @want, and nothing is behind them. */
static bool has(const uint8_t *want, int64_t bytes)
{
	return bytes >= 0 && !memcmp(mem, want, (size_t)bytes) && is_zero((uint64_t)bytes);
}

/* Behind HALF are bytes of the record that begins at @off, or zeroes, up to @bytes. @ret_whole: is it complete? */
static bool has_record(uint64_t off, int64_t bytes, bool *ret_whole)
{
	bool whole = true;

	for (uint64_t i = HALF; i < (uint64_t)bytes; i++) {
		bool inside = i >= off && i < off + RECORD;

		if (mem[i] && (!inside || mem[i] != data[HALF + i - off]))
			return false;
		whole = whole && (!inside || mem[i]);
	}
	*ret_whole = whole && (uint64_t)bytes >= off + RECORD;
	return !memcmp(mem, data, HALF) && is_zero((uint64_t)bytes);
}

static bool is_created(int64_t bytes, bool done)
{
	return bytes == 0 || (bytes == -1 && !done);
}

static bool is_extended(int64_t bytes, bool done)
{
	bool whole;

	return bytes >= HALF && bytes <= BYTES && has_record(HALF, bytes, &whole) && (!done || whole);
}

/* A range that the next manager gave is behind one that the client does not know. */
static bool is_appended(int64_t bytes, bool done)
{
	for (uint64_t off = HALF; bytes >= HALF && off <= ROOM - RECORD; off += RECORD) {
		bool whole;

		if (has_record(off, bytes, &whole) && (!done || whole))
			return true;
	}
	return false;
}

static bool is_cut(int64_t bytes, bool done)
{
	return (bytes == CUT && has(data, CUT)) || (!done && bytes == BYTES && has(data, BYTES));
}

static bool is_cut_twice(int64_t bytes, bool done)
{
	bool once = (bytes == CUT || bytes == BYTES || bytes == 2 * CUT) && !memcmp(mem, data, CUT) && is_zero(CUT);

	return (once && (!done || bytes == 2 * CUT)) || (!done && bytes == BYTES && has(data, BYTES));
}

static bool is_removed(int64_t bytes, bool done)
{
	return bytes == -1 || (!done && bytes == BYTES && has(data, BYTES));
}

static bool is_replaced(int64_t bytes, bool done)
{
	bool was = bytes == BYTES && has(data, BYTES), is = bytes == HALF && has(other, HALF);
	int64_t left = read_file(m, "new");

	return (is && left == -1) || (was && !done && left == HALF && has(other, HALF));
}

/* ---- tests ---------------------------------------------------------------------------------- */

struct scene {
	int (*act)(struct leat *on);
	bool (*is_right)(int64_t bytes, bool done);
	uint64_t bytes; /* of the file at first; 0: there is none */
	bool replaces;
	bool away; /* a stripe server is, until the act has ended */
	unsigned long points[3]; /* at least, of client, manager, stripe servers */
};

struct act {
	const struct scene *scene;
	unsigned first, last;
	unsigned away; /* a stripe server */
	unsigned long n;
	int err;
	atomic_bool ended;
};

/* The client */
static void *run_act(void *arg)
{
	struct act *a = arg;
	struct leat *on;

	crash_points_join(PARTY_CLIENT);
	a->err = leat_mount(volume_rig.url, NULL, &on);
	crash_points_arm(a->first, a->last, a->n);
	if (!a->err) {
		a->err = a->scene->act(on);
		(void)leat_umount_within(on, crash_points_killed() == PARTY_CLIENT ? 0 : 10000);
	}
	atomic_store(&a->ended, true);
	return NULL;
}

/* The parties @first to @last are killed at point @n. Return: false: all has ended before that */
static bool stop_at(struct act *a)
{
	uint64_t until = clock_now_ns() + 60 * NS_PER_S;
	pthread_t client;
	unsigned who;

	crash_points_arm(CRASH_NOBODY, CRASH_NOBODY, 0);
	assert_int_equal(pthread_create(&client, NULL, run_act, a), 0);
	while (!crash_points_killed() && (!atomic_load(&a->ended) || (!a->scene->away && volume_rig_entries("m/pending"))) &&
	       clock_now_ns() < until)
		(void)poll(NULL, 0, 1);
	who = crash_points_killed();
	if (who && who != PARTY_CLIENT)
		restart(who);
	assert_int_equal(pthread_join(client, NULL), 0);
	crash_points_disarm();
	crash_points_revive();
	if (a->scene->away) {
		crash_points_join(PARTY_SERVER + a->away);
		volume_rig_start_server(a->away);
		crash_points_join(CRASH_NOBODY);
	}
	volume_rig_settle();
	wait_for_leases();
	return who != CRASH_NOBODY;
}

static uint64_t object_bytes;

/* fsck excuses objects that were written a short time ago. */
static int see_object(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const struct timespec t[2] = { { .tv_sec = time(NULL) - 3600 }, { .tv_sec = time(NULL) - 3600 } };

	(void)ftw;
	if (type != FTW_F || !st->st_size)
		return 0;
	object_bytes += (uint64_t)st->st_size;
	return utimensat(AT_FDCWD, path, t, 0);
}

/* Makes all objects old. Return: their bytes */
static uint64_t see_objects(void)
{
	char name[16];

	object_bytes = 0;
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++) {
		(void)snprintf(name, sizeof(name), "s%u/objects", i + 1);
		assert_int_equal(nftw(tmp_dir_path(&volume_rig.dir, name), see_object, 8, FTW_PHYS), 0);
	}
	return object_bytes;
}

static void check_volume(void)
{
	char out[2000];
	int rc;

	(void)see_objects();
	rc = volume_fsck("", NULL, out, sizeof(out));
	if (rc)
		fail_msg("fsck: status %d: %s", rc, out);
}

static void remove_all(void)
{
	(void)leat_unlink(m, "f");
	(void)leat_unlink(m, "new");
	volume_rig_settle();
	assert_int_equal(see_objects(), 0);
}

static unsigned server_of(const char *name, unsigned stripe)
{
	struct leat_volume_layout *l;
	unsigned server;

	assert_int_equal(leat_volume_layout(m, name, &l), 0);
	server = l->stripes[stripe]->server - 1;
	leat_volume_layout_free(l);
	return server;
}

static void check_party(const struct scene *s, unsigned first, unsigned last)
{
	static const char *const names[] = { "client", "manager", "stripe servers" };
	unsigned long n = 0;
	bool more = true;

	for (; more; n++) {
		struct act a = { .scene = s, .first = first, .last = last, .n = n };
		int64_t bytes;

		m = volume_rig_mount(NULL);
		if (s->bytes)
			write_file("f", data, s->bytes);
		if (s->replaces)
			write_file("new", other, HALF);
		if (s->away)
			a.away = server_of("f", 1);
		leat_umount(m);
		if (s->act == act_nfs)
			connect_nfs();
		if (s->away)
			volume_rig_end_server(a.away);
		more = stop_at(&a);
		if (s->act == act_nfs)
			nfs_peer_leave(&peer);
		m = volume_rig_mount(NULL);
		check_volume();
		bytes = read_file(m, "f");
		if (!s->is_right(bytes, !a.err) || (!more && a.err))
			fail_msg("%s, %lu points: error %d, %lld bytes", names[first - 1], n, a.err, (long long)bytes);
		remove_all();
		leat_umount(m);
	}
	print_message("%s: %lu points\n", names[first - 1], n - 1);
	assert_true(n > s->points[first - 1]);
}

static void check(const struct scene *s)
{
	leat_flow_skip_rdma(OVER_TCP);
	check_party(s, PARTY_CLIENT, PARTY_CLIENT);
	check_party(s, PARTY_MANAGER, PARTY_MANAGER);
	if (s->away)
		return;
	check_party(s, PARTY_SERVER, PARTY_SERVER + VOLUME_RIG_SERVERS - 1);
}

static void creates(void **state)
{
	(void)state;
	check(&(struct scene){ act_create, is_created, 0, false, false, { 2, 6, 0 } });
}

static void extends(void **state)
{
	(void)state;
	check(&(struct scene){ act_extend, is_extended, HALF, false, false, { 8, 7, 9 } });
}

static void appends(void **state)
{
	(void)state;
	check(&(struct scene){ act_append, is_appended, HALF, false, false, { 8, 7, 9 } });
}

/* The client is one of NFS, so the manager calls the stripe servers. */
static void extends_by_nfs(void **state)
{
	const struct scene s = { act_nfs, is_extended, HALF, false, false, { 0, 6, 8 } };

	(void)state;
	leat_flow_skip_rdma(OVER_TCP);
	check_party(&s, PARTY_MANAGER, PARTY_MANAGER);
	check_party(&s, PARTY_SERVER, PARTY_SERVER + VOLUME_RIG_SERVERS - 1);
}

static void cuts(void **state)
{
	(void)state;
	check(&(struct scene){ act_cut, is_cut, BYTES, false, false, { 3, 14, 12 } });
}

static void cuts_twice(void **state)
{
	(void)state;
	check(&(struct scene){ act_cut_twice, is_cut_twice, BYTES, false, true, { 4, 8, 0 } });
}

static void unlinks(void **state)
{
	(void)state;
	check(&(struct scene){ act_unlink, is_removed, BYTES, false, false, { 1, 7, 12 } });
}

static void replacements(void **state)
{
	(void)state;
	check(&(struct scene){ act_replace, is_replaced, BYTES, true, false, { 1, 7, 12 } });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(creates),
		cmocka_unit_test(extends),
		cmocka_unit_test(extends_by_nfs),
		cmocka_unit_test(appends),
		cmocka_unit_test(cuts),
		cmocka_unit_test(cuts_twice),
		cmocka_unit_test(unlinks),
		cmocka_unit_test(replacements),
	};

	volume_times = (struct volume_times){
		.server = "40ms", .probe_ns = 20 * NS_PER_MS, .retry_ns = 10 * NS_PER_MS, .lease_ns = 50 * NS_PER_MS
	};
	for (size_t i = 0; i < BYTES; i++) {
		data[i] = (uint8_t)(1 + i % 251);
		other[i] = (uint8_t)(1 + i % 199);
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
