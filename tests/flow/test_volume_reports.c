/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_reports.c - the manager of a volume: reports, leases, ranges, sizes, and handles that are none
 */
#include "test_volume_manager.h"

static void resign(const struct got *l, void (*change)(struct stripe_handle *h), const struct stripe_keys *k, char ret[STRIPE_HANDLE_BYTES])
{
	struct stripe_handle h;

	assert_int_equal(stripe_handle_read(&keys, l->stripes[0].handle, &h), 0);
	if (change)
		change(&h);
	stripe_handle_make(k, &h, ret);
}

static void make_expired(struct stripe_handle *h)
{
	h->expiry = (uint64_t)time(NULL) - 60;
}

static void make_readable(struct stripe_handle *h)
{
	h->rights = STRIPE_MAY_READ;
}

static void make_newer(struct stripe_handle *h)
{
	h->epoch++;
}

static void make_foreign(struct stripe_handle *h)
{
	h->volume++;
}

static void make_other_stripe(struct stripe_handle *h)
{
	h->name.stripe = 3;
}

static void make_other_server(struct stripe_handle *h)
{
	h->server ^= 2;
}

static void make_other_object(struct stripe_handle *h)
{
	h->name.object[15] ^= 1;
}

static void reports(void **state)
{
	static const struct {
		void (*change)(struct stripe_handle *h);
		volume_status status;
	} bad[] = {
		{ make_expired, VOLUME_ERR_OLDEPOCH },	  { make_readable, VOLUME_ERR_ACCES },
		{ make_newer, VOLUME_ERR_OLDEPOCH },	  { make_foreign, VOLUME_ERR_ACCES },
		{ make_other_stripe, VOLUME_ERR_ACCES }, { make_other_object, VOLUME_ERR_ACCES },
		{ make_other_server, VOLUME_ERR_ACCES },
	};
	static const struct stripe_keys forged = { .v = { { 1, 2 } }, .n = 1 };
	char handle[STRIPE_HANDLE_BYTES];
	struct nfs_fh fh;
	struct stat st;
	struct got l;
	uint64_t bytes = 0;

	(void)state;
	create_file("f", &fh);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(report(&fh, l.stripes[2].handle, 5000, &bytes), VOLUME_OK);
	assert_int_equal(bytes, 5000);
	assert_false(atomic_load(&unsynced));
	assert_int_equal(report(&fh, l.stripes[0].handle, 10, &bytes), VOLUME_OK);
	assert_int_equal(bytes, 5000);
	assert_int_equal(stat(path_of("f"), &st), 0);
	assert_int_equal(st.st_size, 5000);
	assert_true(st.st_blocks <= 8); /* of the attribute */
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(l.ok.bytes, 5000);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		resign(&l, bad[i].change, &keys, handle);
		assert_int_equal(report(&fh, handle, 9000, &bytes), bad[i].status);
	}
	resign(&l, NULL, &forged, handle);
	assert_int_equal(report(&fh, handle, 9000, &bytes), VOLUME_ERR_ACCES);
	assert_int_equal(report(&fh, l.stripes[0].handle, UINT64_C(1) << 63, &bytes), VOLUME_ERR_FBIG);
	assert_int_equal(report(&peer->root, l.stripes[0].handle, 9000, &bytes), VOLUME_ERR_NOTVOLUME);
	assert_int_equal(stat(path_of("f"), &st), 0);
	assert_int_equal(st.st_size, 5000);
}

static unsigned count_markers(void)
{
	DIR *d = opendir(tmp_dir_path(&peer->dir, "e0/writers"));
	unsigned n = 0;

	assert_non_null(d);
	for (const struct dirent *e; (e = readdir(d)) != NULL;)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static volume_status reserve(const struct nfs_fh *fh, const char *handle, uint64_t after, uint64_t bytes, uint64_t *ret_off)
{
	VOLRESERVEargs a = { .fh = vol_fh(fh), .instance = 1, .after = after, .bytes = bytes };
	VOLRESERVEres res = { 0 };
	volume_status status;

	memcpy(a.handle, handle, sizeof(a.handle));
	status = call(VOLUMEPROC_RESERVE, (xdrproc_t)xdr_VOLRESERVEargs, &a, (xdrproc_t)xdr_VOLRESERVEres, &res);
	if (status == VOLUME_OK)
		*ret_off = res.VOLRESERVEres_u.resok.offset;
	return status;
}

/* A range begins at the end of the file, which it becomes a part of, and where its client wants it at the earliest. */
static void ranges(void **state)
{
	static const struct {
		void (*change)(struct stripe_handle *h);
		volume_status status;
	} bad[] = {
		{ make_expired, VOLUME_ERR_OLDEPOCH }, { make_readable, VOLUME_ERR_ACCES }, { make_newer, VOLUME_ERR_OLDEPOCH },
		{ make_other_object, VOLUME_ERR_ACCES },
	};
	static const struct stripe_keys forged = { .v = { { 1, 2 } }, .n = 1 };
	char handle[STRIPE_HANDLE_BYTES];
	uint64_t off = 0;
	struct nfs_fh fh;
	struct stat st;
	struct got l;

	(void)state;
	create_filled("f", &fh);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(reserve(&fh, l.stripes[1].handle, 0, 500, &off), VOLUME_OK);
	assert_int_equal(off, 1000);
	assert_false(atomic_load(&unsynced));
	assert_int_equal(stat(path_of("f"), &st), 0);
	assert_int_equal(st.st_size, 1500);
	assert_int_equal(reserve(&fh, l.stripes[0].handle, 1499, 1, &off), VOLUME_OK);
	assert_int_equal(off, 1500);
	assert_int_equal(reserve(&fh, l.stripes[0].handle, 2000, 1, &off), VOLUME_OK);
	assert_int_equal(off, 2000);
	assert_int_equal(count_markers(), 0); /* it needs no lease */
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		resign(&l, bad[i].change, &keys, handle);
		assert_int_equal(reserve(&fh, handle, 0, 1, &off), bad[i].status);
	}
	resign(&l, NULL, &forged, handle);
	assert_int_equal(reserve(&fh, handle, 0, 1, &off), VOLUME_ERR_ACCES);
	assert_int_equal(reserve(&fh, l.stripes[0].handle, 0, 0, &off), VOLUME_ERR_INVAL);
	assert_int_equal(reserve(&fh, l.stripes[0].handle, 0, INT64_MAX, &off), VOLUME_ERR_FBIG);
	assert_int_equal(reserve(&fh, l.stripes[0].handle, UINT64_MAX, 1, &off), VOLUME_ERR_FBIG);
	assert_int_equal(reserve(&fh, l.stripes[0].handle, 0, UINT64_MAX, &off), VOLUME_ERR_FBIG);
	assert_int_equal(reserve(&peer->root, l.stripes[0].handle, 0, 1, &off), VOLUME_ERR_NOTVOLUME);
	/* no server replies that could say what another client has written */
	assert_int_equal(get_lease(&fh, BOTH, (volume_lease){ 1, 1 }, &l), VOLUME_OK);
	assert_int_equal(reserve(&fh, l.stripes[0].handle, 0, 1, &off), VOLUME_OK);
	assert_int_equal(get_lease(&fh, BOTH, (volume_lease){ 2, 1 }, &l), VOLUME_OK);
	assert_int_equal(reserve(&fh, l.stripes[0].handle, 0, 1, &off), VOLUME_ERR_IO);
	assert_int_equal(stat(path_of("f"), &st), 0);
	assert_int_equal(st.st_size, 2002);
}

/* LAYOUT and REPORT begin and renew the lease of their instance, and only the last report ends it. */
static void leases(void **state)
{
	const uint32_t wrote = VOLUME_REPORT_WROTE, last = VOLUME_REPORT_LAST;
	VOLREPORTresok ok = { 0 };
	struct nfs_fh fh;
	struct got l;

	(void)state;
	create_file("f", &fh);
	assert_int_equal(get_lease(&fh, STRIPE_MAY_READ, (volume_lease){ 7, 1 }, &l), VOLUME_ERR_INVAL);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(l.ok.lease, 0);
	assert_int_equal(report_how(&fh, l.stripes[0].handle, (volume_lease){ 0, 0 }, wrote, 10, &ok), VOLUME_OK);
	assert_int_equal(ok.lease, 0);
	assert_int_equal(count_markers(), 0);
	assert_int_equal(get_lease(&fh, BOTH, (volume_lease){ 7, 1 }, &l), VOLUME_OK);
	assert_int_equal(l.ok.lease, 30000);
	assert_int_equal(count_markers(), 1);
	assert_int_equal(report_how(&fh, l.stripes[0].handle, (volume_lease){ 7, 4 }, last | 4, 20, &ok), VOLUME_ERR_INVAL);
	assert_int_equal(report_how(&fh, l.stripes[0].handle, (volume_lease){ 7, 4 }, last, 20, &ok), VOLUME_OK);
	assert_true(ok.bytes == 10 && ok.lease == 0);
	assert_int_equal(count_markers(), 0);
	assert_int_equal(report_how(&fh, l.stripes[0].handle, (volume_lease){ 7, 5 }, wrote, 20, &ok), VOLUME_OK);
	assert_true(ok.bytes == 20 && ok.lease == 30000);
	assert_int_equal(count_markers(), 1);
	assert_int_equal(report_how(&fh, l.stripes[0].handle, (volume_lease){ 7, 4 }, last, 20, &ok), VOLUME_OK); /* late */
	assert_int_equal(count_markers(), 1);
	assert_int_equal(report_how(&fh, l.stripes[0].handle, (volume_lease){ 7, 6 }, wrote | last, 30, &ok), VOLUME_OK);
	assert_true(ok.bytes == 30 && ok.lease == 0);
	assert_int_equal(count_markers(), 0);
}

/* A report of a writer sets mtime, also if the file is as long already. */
static void reports_set_mtime(void **state)
{
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	struct nfs_fh fh;
	struct stat st;
	struct got l;
	uint64_t bytes;

	(void)state;
	create_filled("f", &fh);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(utimensat(AT_FDCWD, path_of("f"), old, 0), 0);
	assert_int_equal(report(&fh, l.stripes[0].handle, 1, &bytes), VOLUME_OK);
	assert_int_equal(stat(path_of("f"), &st), 0);
	assert_int_equal(st.st_atim.tv_sec, 1000);
	assert_true(st.st_mtim.tv_sec > 1000);
}

static void contents_are_not_here(void **state)
{
	ALLOCATE3args alloc = { .length = 10 };
	ALLOCATE3res alloc_res = { 0 };
	SEEK3args seek = { .offset = 0 };
	SEEK3res seek_res = { 0 };
	char buf[16] = "";
	struct nfs_fh fh;
	WRITE3resok ok;
	uint32_t n;
	bool eof;

	(void)state;
	create_filled("f", &fh);
	assert_int_equal(nfs_peer_read(peer, &fh, 0, buf, 10, &n, &eof), NFS3ERR_IO); /* their servers are not there */
	assert_int_equal(nfs_peer_write(peer, &fh, 0, buf, 10, FILE_SYNC, &ok), NFS3ERR_IO);
	alloc.object = seek.object = nfs_peer_fh(&fh);
	assert_int_equal(nfs_peer_rpc(peer, LEAT_SPACE, LEAT_SPACE_V1, SPACEPROC_ALLOCATE, (xdrproc_t)xdr_ALLOCATE3args, &alloc,
				      (xdrproc_t)xdr_ALLOCATE3res, &alloc_res, NULL, 0), 0);
	assert_int_equal(alloc_res.status, NFS3ERR_NOTSUPP);
	assert_int_equal(nfs_peer_rpc(peer, LEAT_SPACE, LEAT_SPACE_V1, SPACEPROC_SEEK, (xdrproc_t)xdr_SEEK3args, &seek,
				      (xdrproc_t)xdr_SEEK3res, &seek_res, NULL, 0), 0);
	assert_int_equal(seek_res.status, NFS3ERR_NOTSUPP);
}

/* No stripe server is there: what is to be done on them stays pending, and everything else is done. */
static void sizes_and_names(void **state)
{
	struct nfs_fh fh, empty, again;
	struct stat st;
	struct got l;

	(void)state;
	create_filled("f", &fh);
	create_file("empty", &empty);
	assert_int_equal(set_size(&fh, 2000), NFS3_OK);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_true(l.ok.epoch == 1 && l.ok.bytes == 2000); /* growing needs no new epoch */
	assert_int_equal(set_size(&fh, 500), NFS3_OK);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_true(l.ok.epoch == 2 && l.ok.bytes == 500);
	assert_int_equal(set_size(&fh, 800), NFS3_OK);
	assert_int_equal(set_size(&fh, 600), NFS3_OK); /* the first cut is not complete */
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_true(l.ok.epoch == 3 && l.ok.bytes == 600);
	assert_int_equal(set_size(&empty, 0), NFS3_OK);
	assert_int_equal(create_how("f", UNCHECKED, false, 0, &again), NFS3_OK);
	assert_int_equal(create_how("empty", UNCHECKED, true, 0, &again), NFS3_OK);
	assert_int_equal(create_how("new", UNCHECKED, true, 77, &again), NFS3_OK);
	assert_int_equal(stat(path_of("new"), &st), 0);
	assert_int_equal(st.st_size, 77);
	assert_int_equal(create_how("new", UNCHECKED, true, 0, &again), NFS3_OK);
	assert_int_equal(get_layout(&again, BOTH, &l), VOLUME_OK);
	assert_true(l.ok.epoch == 2 && !l.ok.bytes);
	assert_int_equal(rename_file("empty", "f"), NFS3_OK);
	assert_int_equal(remove_file("new"), NFS3_OK);
	assert_int_equal(get_layout(&again, BOTH, &l), VOLUME_ERR_STALE);
	assert_int_equal(link_file(&again, "back"), NFS3ERR_STALE);
}

/* A report with a handle from before a cut does not raise the size again. */
static void reports_of_old_epochs(void **state)
{
	struct nfs_fh fh;
	struct got l;
	uint64_t bytes;

	(void)state;
	create_filled("f", &fh);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(set_size(&fh, 0), NFS3_OK);
	assert_int_equal(report(&fh, l.stripes[0].handle, 5000, &bytes), VOLUME_ERR_OLDEPOCH);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(l.ok.bytes, 0);
	assert_int_equal(report(&fh, l.stripes[0].handle, 5000, &bytes), VOLUME_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MANAGER_TEST(reports), MANAGER_TEST(leases), MANAGER_TEST(ranges), MANAGER_TEST(reports_set_mtime),
		MANAGER_TEST(contents_are_not_here), MANAGER_TEST(sizes_and_names), MANAGER_TEST(reports_of_old_epochs),
	};

	volume_times = manager_times;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
