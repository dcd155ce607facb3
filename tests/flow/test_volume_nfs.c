/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_nfs.c - contents of striped files by NFS: READ, WRITE and COMMIT through the manager
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/util.h"
#include "conf.h"
#include "leat_flow.h"
#include "nfs_peer.h"
#include "server.h"
#include "volume_calls.h"
#include "volume_rig.h"

LOG_DEFINE("test");

#define UNIT 65536u
#define BYTES (20 * UNIT + 12345u)
#define IO (1u << 20)

static uint8_t data[BYTES], to[BYTES + IO];
static struct nfs_peer peer[2]; /* on different reactors of the manager */
static struct leat *m;

/* ---- what is not stable yet ---- */

static atomic_uint unsynced[8192]; /* by inode: changes since the last sync. Of memory without a name: the first */

static atomic_uint *slot_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return &unsynced[st.st_nlink ? st.st_ino % (ARRAY_SIZE(unsynced) - 1) + 1 : 0];
}

ssize_t __real_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags);
int __real_ftruncate(int fd, off_t len);
int __wrap_ftruncate(int fd, off_t len);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

ssize_t __wrap_pwritev2(int fd, const struct iovec *iov, int n, off_t off, int flags)
{
	atomic_fetch_add(slot_of(fd), 1);
	return __real_pwritev2(fd, iov, n, off, flags);
}

int __wrap_ftruncate(int fd, off_t len)
{
	atomic_fetch_add(slot_of(fd), 1);
	return __real_ftruncate(fd, len);
}

int __wrap_fsync(int fd)
{
	atomic_store(slot_of(fd), 0);
	return __real_fsync(fd);
}

int __wrap_fdatasync(int fd)
{
	atomic_store(slot_of(fd), 0);
	return __real_fdatasync(fd);
}

/* Return: files that were changed, and not synced since */
static unsigned count_unsynced(void)
{
	unsigned n = 0;

	for (size_t i = 1; i < ARRAY_SIZE(unsynced); i++)
		n += atomic_load(&unsynced[i]) != 0;
	return n;
}

static void forget_unsynced(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(unsynced); i++)
		atomic_store(&unsynced[i], 0);
}

/* ---- a size that is raised late ---- */

static atomic_bool hold;
static sem_t held, let_go;

int __real_volume_wrote(const struct volume_file *f, uint64_t epoch, uint64_t end, const struct creds *cr);
int __wrap_volume_wrote(const struct volume_file *f, uint64_t epoch, uint64_t end, const struct creds *cr);

int __wrap_volume_wrote(const struct volume_file *f, uint64_t epoch, uint64_t end, const struct creds *cr)
{
	if (atomic_exchange(&hold, false)) {
		(void)sem_post(&held);
		while (sem_wait(&let_go))
			;
	}
	return __real_volume_wrote(f, epoch, end, cr);
}

/* Reactors write to memory themselves, and do not look there for what is to be synced. */
void __real_fs_limits_find(int dir_fd, bool may_write, struct fs_limits *ret);
void __wrap_fs_limits_find(int dir_fd, bool may_write, struct fs_limits *ret);

void __wrap_fs_limits_find(int dir_fd, bool may_write, struct fs_limits *ret)
{
	__real_fs_limits_find(dir_fd, may_write, ret);
	ret->in_memory = false;
}

/* ---- the volume ----------------------------------------------------------------------------- */

static void two_reactors(struct conf *conf)
{
	conf->reactors = 2;
}

static void connect_peer(struct nfs_peer *p)
{
	nfs_peer_join(p, server_listener(volume_rig.manager, 0), "/v");
}

#define PATIENT "stripe=64K,stripe_timeo=60s" /* a slow machine is not away */

static int start(bool tcp, const char *options)
{
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 65521);
	volume_rig_tune = two_reactors;
	volume_rig_start(tcp, options);
	for (unsigned i = 0; i < ARRAY_SIZE(peer); i++)
		connect_peer(&peer[i]);
	m = volume_rig_mount(NULL);
	return 0;
}

static int setup_tcp(void **state)
{
	(void)state;
	return start(true, PATIENT);
}

static int setup_local(void **state)
{
	(void)state;
	return start(false, PATIENT);
}

/* For what waits until a server is away. */
static int setup_hasty(void **state)
{
	(void)state;
	return start(false, "stripe=64K,stripe_timeo=1s");
}

static int teardown(void **state)
{
	(void)state;
	leat_umount(m);
	for (unsigned i = 0; i < ARRAY_SIZE(peer); i++)
		nfs_peer_leave(&peer[i]);
	volume_rig_stop();
	return 0;
}

/* The peers have broken connections then, and make others. */
static void restart_manager(void)
{
	for (unsigned i = 0; i < ARRAY_SIZE(peer); i++)
		nfs_peer_leave(&peer[i]);
	leat_umount(m);
	volume_rig_end_manager();
	volume_rig_start_manager();
	for (unsigned i = 0; i < ARRAY_SIZE(peer); i++)
		connect_peer(&peer[i]);
	m = volume_rig_mount(NULL);
}

/* ---- what the tests do ---------------------------------------------------------------------- */

static struct nfs_fh create(const char *name)
{
	struct nfs_fh fh;

	assert_int_equal(nfs_peer_create_file(&peer[0], &peer[0].root, name, &fh), NFS3_OK);
	return fh;
}

static uint64_t verf_of(const char verf[NFS3_WRITEVERFSIZE])
{
	uint64_t v;

	memcpy(&v, verf, sizeof(v));
	return v;
}

/* COMMIT of the whole file. Return: status */
static nfsstat3 commit(struct nfs_peer *p, const struct nfs_fh *fh, uint64_t *ret_verf)
{
	COMMIT3args a = { .file = nfs_peer_fh(fh) };
	COMMIT3res res = { 0 };

	NFS_PEER_CALL(p, COMMIT, &a, &res, NULL, 0);
	if (res.status == NFS3_OK && ret_verf)
		*ret_verf = verf_of(res.COMMIT3res_u.resok.verf);
	return res.status;
}

static nfsstat3 set_attr(struct nfs_peer *p, const struct nfs_fh *fh, const sattr3 *sa)
{
	SETATTR3args a = { .object = nfs_peer_fh(fh), .new_attributes = *sa };

	NFS_PEER_RETURN_CALL(p, SETATTR, &a);
}

static nfsstat3 set_size(struct nfs_peer *p, const struct nfs_fh *fh, uint64_t bytes)
{
	sattr3 sa = { .size = { .set_it = TRUE, .set_size3_u.size = bytes } };

	return set_attr(p, fh, &sa);
}

static fattr3 attributes(struct nfs_peer *p, const struct nfs_fh *fh)
{
	GETATTR3args a = { .object = nfs_peer_fh(fh) };
	GETATTR3res res = { 0 };

	NFS_PEER_CALL(p, GETATTR, &a, &res, NULL, 0);
	assert_int_equal(res.status, NFS3_OK);
	return res.GETATTR3res_u.resok.obj_attributes;
}

static bool is_zero(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

/* Return: the verifier of the last WRITE */
static uint64_t write_all(struct nfs_peer *p, const struct nfs_fh *fh, uint64_t off, const uint8_t *from, uint32_t bytes,
			  stable_how how)
{
	uint64_t verf = 0;

	for (uint32_t at = 0, n; at < bytes; at += n) {
		WRITE3resok ok;

		n = MIN(bytes - at, IO);
		assert_int_equal(nfs_peer_write(p, fh, off + at, from + at, n, how, &ok), NFS3_OK);
		assert_int_equal(ok.count, n);
		assert_true(ok.committed >= how);
		assert_true(ok.file_wcc.after.attributes_follow);
		assert_true(ok.file_wcc.after.post_op_attr_u.attributes.size >= off + at + n);
		verf = verf_of(ok.verf);
	}
	return verf;
}

/* Reads to the end of the file. Return: bytes */
static uint32_t read_all(struct nfs_peer *p, const struct nfs_fh *fh, uint64_t off)
{
	uint32_t at = 0, n;
	bool eof = false;

	while (!eof) {
		assert_true(at + IO <= sizeof(to));
		assert_int_equal(nfs_peer_read(p, fh, off + at, to + at, IO, &n, &eof), NFS3_OK);
		at += n;
	}
	return at;
}

/* Both reactors try to connect again after a while. Until then its stripes fail. */
static void start_server(unsigned i, const struct nfs_fh *whole)
{
	volume_rig_start_server(i);
	for (unsigned k = 0; k < ARRAY_SIZE(peer); k++) {
		for (uint32_t u = 0, n; u < 4; u++) {
			nfsstat3 status;
			bool eof;

			do {
				status = nfs_peer_read(&peer[k], whole, u * UNIT, to, 1, &n, &eof);
			} while (status == NFS3ERR_IO);
			assert_int_equal(status, NFS3_OK);
		}
	}
}

static struct leat_file *open_file(const char *name, int flags)
{
	struct leat_file *f;

	if (leat_open(m, name, flags, 0644, &f))
		fail_msg("%s", leat_error(m));
	return f;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void reads_what_libleat_wrote(void **state)
{
	struct leat_file *f = open_file("reads", O_RDWR | O_CREAT);
	struct nfs_fh fh;

	(void)state;
	assert_int_equal(leat_pwrite(f, data, BYTES, 0), BYTES);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(nfs_peer_lookup(&peer[0], &peer[0].root, "reads", &fh), NFS3_OK);
	for (unsigned i = 0; i < ARRAY_SIZE(peer); i++) {
		memset(to, 0xee, sizeof(to));
		assert_int_equal(read_all(&peer[i], &fh, 0), BYTES);
		assert_memory_equal(to, data, BYTES);
		assert_int_equal(read_all(&peer[i], &fh, 3 * UNIT - 5), BYTES - 3 * UNIT + 5);
		assert_memory_equal(to, data + 3 * UNIT - 5, BYTES - 3 * UNIT + 5);
		assert_int_equal(read_all(&peer[i], &fh, BYTES), 0);
	}
}

static void libleat_reads_what_nfs_wrote(void **state)
{
	struct nfs_fh fh = create("writes");
	struct leat_file *f;
	struct stat st;

	(void)state;
	(void)write_all(&peer[0], &fh, 0, data, 7 * UNIT, UNSTABLE);
	(void)write_all(&peer[1], &fh, 7 * UNIT, data + 7 * UNIT, BYTES - 7 * UNIT, FILE_SYNC);
	f = open_file("writes", O_RDONLY);
	assert_int_equal(leat_fstat(f, &st), 0);
	assert_int_equal(st.st_size, BYTES);
	assert_int_equal(leat_pread(f, to, sizeof(to), 0), BYTES);
	assert_memory_equal(to, data, BYTES);
	assert_int_equal(leat_close(f), 0);
}

static void holes_and_ends(void **state)
{
	struct nfs_fh fh = create("holes");
	uint32_t n;
	bool eof;

	(void)state;
	assert_int_equal(read_all(&peer[0], &fh, 0), 0);
	(void)write_all(&peer[0], &fh, 9 * UNIT + 7, data, 100, UNSTABLE);
	memset(to, 0xee, sizeof(to));
	assert_int_equal(read_all(&peer[1], &fh, 0), 9 * UNIT + 107);
	assert_true(is_zero(to, 9 * UNIT + 7));
	assert_memory_equal(to + 9 * UNIT + 7, data, 100);
	assert_int_equal(nfs_peer_read(&peer[1], &fh, 9 * UNIT, to, 107, &n, &eof), NFS3_OK);
	assert_true(n == 107 && eof);
	assert_int_equal(nfs_peer_read(&peer[1], &fh, 9 * UNIT, to, 106, &n, &eof), NFS3_OK);
	assert_true(n == 106 && !eof);
	assert_int_equal(set_size(&peer[0], &fh, 20 * UNIT), NFS3_OK);
	assert_int_equal(read_all(&peer[1], &fh, 9 * UNIT + 107), 11 * UNIT - 107);
	assert_true(is_zero(to, 11 * UNIT - 107));
}

/* Handles that the reactors have are those of an older epoch then. */
static void cut_between(void **state)
{
	struct nfs_fh fh = create("cut");

	(void)state;
	(void)write_all(&peer[0], &fh, 0, data, BYTES, UNSTABLE);
	assert_int_equal(read_all(&peer[1], &fh, 0), BYTES);
	if (leat_truncate(m, "cut", 3 * UNIT + 3))
		fail_msg("%s", leat_error(m));
	assert_int_equal(read_all(&peer[1], &fh, 0), 3 * UNIT + 3);
	assert_memory_equal(to, data, 3 * UNIT + 3);
	(void)write_all(&peer[0], &fh, 8 * UNIT, data, UNIT, UNSTABLE);
	assert_int_equal(read_all(&peer[1], &fh, 0), 9 * UNIT);
	assert_memory_equal(to, data, 3 * UNIT + 3);
	assert_true(is_zero(to + 3 * UNIT + 3, 5 * UNIT - 3));
	assert_memory_equal(to + 8 * UNIT, data, UNIT);
	assert_int_equal(commit(&peer[1], &fh, NULL), NFS3_OK);
}

static void *write_unit(void *arg)
{
	return (void *)(intptr_t)nfs_peer_write(&peer[0], arg, 2 * UNIT, data, UNIT, UNSTABLE, NULL);
}

/* A WRITE that is cut before it has raised the size was before the cut. */
static void cut_overtakes(void **state)
{
	struct nfs_fh fh = create("overtakes");
	pthread_t thread;
	void *status;

	(void)state;
	(void)write_all(&peer[0], &fh, 0, data, 10, UNSTABLE);
	atomic_store(&hold, true);
	assert_int_equal(pthread_create(&thread, NULL, write_unit, &fh), 0);
	while (sem_wait(&held))
		;
	assert_int_equal(set_size(&peer[1], &fh, 5), NFS3_OK);
	(void)sem_post(&let_go);
	assert_int_equal(pthread_join(thread, &status), 0);
	assert_int_equal((intptr_t)status, NFS3_OK);
	assert_int_equal(attributes(&peer[1], &fh).size, 5);
	assert_int_equal(read_all(&peer[1], &fh, 0), 5);
	assert_memory_equal(to, data, 5);
}

/* Two reactors write units in turn, and each sees at once what the other one wrote. */
static void both_at_once(void **state)
{
	struct nfs_fh fh = create("both");

	(void)state;
	for (uint32_t u = 0; u < 12; u++) {
		(void)write_all(&peer[u % 2], &fh, u * UNIT, data + u * UNIT, UNIT, UNSTABLE);
		assert_int_equal(read_all(&peer[(u + 1) % 2], &fh, u * UNIT), UNIT);
		assert_memory_equal(to, data + u * UNIT, UNIT);
	}
	assert_int_equal(read_all(&peer[0], &fh, 0), 12 * UNIT);
	assert_memory_equal(to, data, 12 * UNIT);
}

/* A stable WRITE is stable with its size; a COMMIT makes stable what another reactor has written. */
static void stable(void **state)
{
	struct nfs_fh fh = create("stable");
	uint64_t verf, now;

	(void)state;
	forget_unsynced();
	(void)write_all(&peer[0], &fh, 0, data, 5 * UNIT, FILE_SYNC);
	assert_int_equal(count_unsynced(), 0);
	(void)write_all(&peer[0], &fh, 5 * UNIT, data, UNIT, DATA_SYNC);
	assert_int_equal(count_unsynced(), 0);
	verf = write_all(&peer[0], &fh, 4 * UNIT, data, 6 * UNIT, UNSTABLE);
	assert_int_equal(count_unsynced(), 5); /* four objects, and the inode */
	assert_int_equal(commit(&peer[1], &fh, &now), NFS3_OK);
	assert_int_equal(count_unsynced(), 0);
	assert_true(now == verf);
}

/* A stripe server that restarts may have lost unstable data, whichever client sends the COMMIT. */
static void server_restarts(void **state)
{
	struct nfs_fh fh = create("restarts");
	uint64_t verf = write_all(&peer[0], &fh, 0, data, 4 * UNIT, UNSTABLE), now, then;

	(void)state;
	volume_rig_end_server(2);
	start_server(2, &fh);
	assert_int_equal(commit(&peer[1], &fh, &now), NFS3_OK);
	assert_true(now != verf);
	assert_int_equal(commit(&peer[0], &fh, &then), NFS3_OK);
	assert_true(then == now);
	assert_true(write_all(&peer[0], &fh, 0, data, 4 * UNIT, UNSTABLE) == now);
	assert_int_equal(commit(&peer[1], &fh, &then), NFS3_OK);
	assert_true(then == now);
	assert_int_equal(read_all(&peer[0], &fh, 0), 4 * UNIT);
	assert_memory_equal(to, data, 4 * UNIT);
}

static void manager_restarts(void **state)
{
	struct nfs_fh fh = create("manager");
	uint64_t verf = write_all(&peer[0], &fh, 0, data, BYTES, UNSTABLE), now;

	(void)state;
	restart_manager();
	assert_int_equal(commit(&peer[0], &fh, &now), NFS3_OK);
	assert_true(now != verf);
	assert_int_equal(read_all(&peer[0], &fh, 0), BYTES);
	assert_memory_equal(to, data, BYTES);
}

/* What has no stripe there goes on. */
static void server_is_away(void **state)
{
	struct nfs_fh fh = create("away"), whole = create("whole");
	uint32_t n, lost = 0;
	bool eof;

	(void)state;
	(void)write_all(&peer[0], &whole, 0, data, 4 * UNIT, UNSTABLE);
	assert_int_equal(commit(&peer[0], &whole, NULL), NFS3_OK);
	volume_rig_end_server(1);
	for (uint32_t u = 0; u < 4; u++) {
		nfsstat3 status = nfs_peer_read(&peer[0], &whole, u * UNIT, to, UNIT, &n, &eof);

		if (status == NFS3_OK)
			assert_memory_equal(to, data + u * UNIT, UNIT);
		else
			assert_int_equal(status, NFS3ERR_IO);
		lost += status != NFS3_OK;
		assert_int_equal(nfs_peer_write(&peer[1], &whole, u * UNIT, data + u * UNIT, 100, UNSTABLE, NULL), status);
	}
	assert_int_equal(lost, 1);
	assert_int_equal(commit(&peer[0], &whole, NULL), NFS3_OK); /* nothing unstable is on that server */
	start_server(1, &whole);
	assert_int_equal(read_all(&peer[1], &whole, 0), 4 * UNIT);
	assert_memory_equal(to, data, 4 * UNIT);
	(void)write_all(&peer[0], &fh, 0, data, 4 * UNIT, UNSTABLE);
	volume_rig_end_server(1);
	assert_int_equal(commit(&peer[1], &fh, NULL), NFS3ERR_IO);
	start_server(1, &whole);
	assert_int_equal(commit(&peer[1], &fh, NULL), NFS3_OK);
}

static void rights(void **state)
{
	sattr3 sa = { .mode = { .set_it = TRUE, .set_mode3_u.mode = 0640 } };
	struct nfs_fh fh = create("rights");
	struct nfs_peer *p = &peer[1];
	uint32_t n;
	bool eof;

	(void)state;
	if (geteuid()) {
		print_message("not root: the server does everything as this user\n");
		return;
	}
	(void)write_all(&peer[0], &fh, 0, data, 2 * UNIT, UNSTABLE);
	assert_int_equal(set_attr(&peer[0], &fh, &sa), NFS3_OK);
	p->cred.uid = p->cred.gid = 4711;
	assert_int_equal(nfs_peer_read(p, &fh, 0, to, UNIT, &n, &eof), NFS3ERR_ACCES);
	assert_int_equal(nfs_peer_write(p, &fh, 0, data, 10, UNSTABLE, NULL), NFS3ERR_ACCES);
	sa.mode.set_mode3_u.mode = 06777;
	assert_int_equal(set_attr(&peer[0], &fh, &sa), NFS3_OK);
	assert_int_equal(nfs_peer_read(p, &fh, 0, to, UNIT, &n, &eof), NFS3_OK);
	assert_int_equal(attributes(p, &fh).mode, 06777);
	(void)write_all(p, &fh, 0, data, 10, UNSTABLE);
	assert_int_equal(attributes(p, &fh).mode, 0777);
	p->cred.uid = geteuid();
	p->cred.gid = getegid();
}

static void times(void **state)
{
	sattr3 sa = { .mtime = { .set_it = SET_TO_CLIENT_TIME, .set_mtime_u.mtime = { 1000, 0 } } };
	struct nfs_fh fh = create("times");

	(void)state;
	(void)write_all(&peer[0], &fh, 0, data, 10, UNSTABLE);
	assert_int_equal(set_attr(&peer[0], &fh, &sa), NFS3_OK);
	assert_int_equal(commit(&peer[0], &fh, NULL), NFS3_OK);
	assert_int_equal(attributes(&peer[0], &fh).mtime.seconds, 1000);
	(void)write_all(&peer[0], &fh, 0, data, 5, UNSTABLE);
	assert_true(attributes(&peer[0], &fh).mtime.seconds > 1000);
}

static void removed(void **state)
{
	struct nfs_fh fh = create("removed");
	nfsstat3 status;
	uint32_t n;
	bool eof;

	(void)state;
	(void)write_all(&peer[0], &fh, 0, data, UNIT, UNSTABLE);
	assert_int_equal(read_all(&peer[1], &fh, 0), UNIT);
	assert_int_equal(leat_unlink(m, "removed"), 0);
	do { /* the objects are removed soon */
		status = nfs_peer_read(&peer[1], &fh, 0, to, UNIT, &n, &eof);
	} while (status == NFS3_OK);
	assert_int_equal(status, NFS3ERR_STALE);
	assert_int_equal(nfs_peer_write(&peer[0], &fh, 0, data, 10, UNSTABLE, NULL), NFS3ERR_STALE);
}

/* Files that are in use stay so, with a server that has moved. */
static void reload(void **state)
{
	struct nfs_fh fh = create("reload");
	uint64_t verf = write_all(&peer[0], &fh, 0, data, 4 * UNIT, UNSTABLE), now;

	(void)state;
	volume_rig_end_server(3);
	volume_rig.server_url[3][0] = 0;
	volume_rig_start_server(3);
	volume_rig_new_map();
	(void)write_all(&peer[0], &fh, 4 * UNIT, data + 4 * UNIT, BYTES - 4 * UNIT, UNSTABLE);
	assert_int_equal(commit(&peer[1], &fh, &now), NFS3_OK);
	assert_true(now != verf); /* the server has restarted */
	assert_int_equal(read_all(&peer[1], &fh, 0), BYTES);
	assert_memory_equal(to, data, BYTES);
}

#define GROUP                                                                                                   \
	cmocka_unit_test(reads_what_libleat_wrote), cmocka_unit_test(libleat_reads_what_nfs_wrote),             \
		cmocka_unit_test(holes_and_ends), cmocka_unit_test(cut_between), cmocka_unit_test(cut_overtakes), \
		cmocka_unit_test(both_at_once), cmocka_unit_test(stable), cmocka_unit_test(rights), cmocka_unit_test(times), \
		cmocka_unit_test(removed), cmocka_unit_test(reload)

int main(void)
{
	const struct CMUnitTest local[] = { GROUP, cmocka_unit_test(server_restarts), cmocka_unit_test(manager_restarts) };
	const struct CMUnitTest away[] = { cmocka_unit_test(server_is_away) };
	const struct CMUnitTest tcp[] = { GROUP, cmocka_unit_test(server_restarts) };
	int failed;

	sem_init(&held, 0, 0);
	sem_init(&let_go, 0, 0);
	failed = cmocka_run_group_tests_name("local", local, setup_local, teardown);
	failed += cmocka_run_group_tests_name("away", away, setup_hasty, teardown);
	return failed + cmocka_run_group_tests_name("tcp", tcp, setup_tcp, teardown);
}
