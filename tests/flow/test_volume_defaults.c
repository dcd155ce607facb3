/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_defaults.c - the manager of a volume: stripe units and widths of directories and new files
 */
#include "test_volume_manager.h"

static void defaults_of_directories(void **state)
{
	uint8_t bytes[DIR_DEFAULTS_BYTES], got[FILE_LAYOUT_MAX];
	struct nfs_fh dir, below, fh;
	struct got l;

	(void)state;
	assert_int_equal(make_dir(&peer->root, "d"), NFS3_OK);
	assert_int_equal(get_attribute("d", got), 0); /* nothing to inherit */
	dir_defaults_encode(&(struct dir_defaults){ 64 << 10, 2 }, bytes);
	set_attribute("d", bytes, sizeof(bytes));
	assert_int_equal(nfs_peer_lookup(peer, &peer->root, "d", &dir), NFS3_OK);
	assert_int_equal(make_dir(&dir, "below"), NFS3_OK);
	assert_int_equal(get_attribute("d/below", got), sizeof(bytes));
	assert_memory_equal(got, bytes, sizeof(bytes));
	assert_int_equal(nfs_peer_lookup(peer, &dir, "below", &below), NFS3_OK);
	assert_int_equal(nfs_peer_create_file(peer, &below, "f", &fh), NFS3_OK);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(l.ok.unit, 64 << 10);
	assert_int_equal(l.ok.stripes.stripes_len, 2);
	dir_defaults_encode(&(struct dir_defaults){ 0, 200 }, bytes); /* more than there are */
	set_attribute("d", bytes, sizeof(bytes));
	assert_int_equal(nfs_peer_create_file(peer, &dir, "g", &fh), NFS3_OK);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(l.ok.unit, UNIT);
	assert_int_equal(l.ok.stripes.stripes_len, 3);
	set_attribute("d", bytes, 5); /* damaged: none */
	assert_int_equal(nfs_peer_create_file(peer, &dir, "h", &fh), NFS3_OK);
}

static volume_status set_defaults(const struct nfs_fh *dir, uint32_t set, uint32_t unit, uint32_t width, volume_defaults *ret)
{
	VOLSETargs a = { .fh = vol_fh(dir), .set = set, .to = { unit, width } };
	VOLSETres res = { 0 };
	volume_status status = call(VOLUMEPROC_SET, (xdrproc_t)xdr_VOLSETargs, &a, (xdrproc_t)xdr_VOLSETres, &res);

	if (status == VOLUME_OK)
		*ret = res.VOLSETres_u.now;
	return status;
}

static volume_status create_with(const struct nfs_fh *dir, const char *name, uint32_t unit, uint32_t width, volume_defaults *ret)
{
	VOLCREATEargs a = { .fh = vol_fh(dir), .name = (char *)(uintptr_t)name, .mode = 0640, .layout = { unit, width } };
	VOLCREATEres res = { 0 };
	volume_status status = call(VOLUMEPROC_CREATE, (xdrproc_t)xdr_VOLCREATEargs, &a, (xdrproc_t)xdr_VOLCREATEres, &res);

	if (status == VOLUME_OK)
		*ret = res.VOLCREATEres_u.made;
	return status;
}

#define SET_BOTH (VOLUME_SET_UNIT | VOLUME_SET_WIDTH)

static void sets_defaults(void **state)
{
	volume_defaults d;
	struct nfs_fh dir, file;
	struct stat st;
	struct got l;
	char why[512];

	(void)state;
	assert_int_equal(make_dir(&peer->root, "d"), NFS3_OK);
	assert_int_equal(nfs_peer_lookup(peer, &peer->root, "d", &dir), NFS3_OK);
	assert_int_equal(set_defaults(&dir, 0, 5, 5, &d), VOLUME_OK);
	assert_true(!d.unit && !d.width);
	assert_int_equal(set_defaults(&dir, VOLUME_SET_WIDTH, 5, 2, &d), VOLUME_OK);
	assert_int_equal(set_defaults(&dir, VOLUME_SET_UNIT, 64 << 10, 7, &d), VOLUME_OK);
	assert_true(d.unit == 64 << 10 && d.width == 2);
	assert_int_equal(nfs_peer_create_file(peer, &dir, "f", &file), NFS3_OK);
	assert_int_equal(get_layout(&file, BOTH, &l), VOLUME_OK);
	assert_true(l.ok.unit == 64 << 10 && l.ok.stripes.stripes_len == 2);
	/* not possible; nothing changes */
	assert_int_equal(set_defaults(&dir, SET_BOTH, 96 << 10, 2, &d), VOLUME_ERR_INVAL);
	assert_int_equal(set_defaults(&dir, VOLUME_SET_WIDTH, 0, 5, &d), VOLUME_ERR_INVAL); /* there are 4 */
	assert_int_equal(set_defaults(&dir, 4, 0, 0, &d), VOLUME_ERR_INVAL);
	assert_int_equal(set_defaults(&file, SET_BOTH, 0, 0, &d), VOLUME_ERR_NOTVOLUME);
	peer->cred.uid = peer->cred.gid = OTHER;
	assert_int_equal(set_defaults(&dir, SET_BOTH, 0, 0, &d), VOLUME_ERR_ACCES);
	assert_int_equal(set_defaults(&dir, 0, 0, 0, &d), VOLUME_OK);
	assert_true(d.unit == 64 << 10 && d.width == 2);
	peer->cred.uid = peer->cred.gid = 0;
	assert_int_equal(chown(tmp_dir_path(&peer->dir, "e0/files/d"), OTHER, OTHER), 0);
	peer->cred.uid = peer->cred.gid = OTHER;
	assert_int_equal(set_defaults(&dir, VOLUME_SET_WIDTH, 0, 1, &d), VOLUME_OK);
	assert_true(d.unit == 64 << 10 && d.width == 1);
	/* files with a layout of their own */
	assert_int_equal(create_with(&dir, "g", 128 << 10, 0, &d), VOLUME_OK);
	assert_true(d.unit == 128 << 10 && d.width == 1);
	assert_int_equal(stat(tmp_dir_path(&peer->dir, "e0/files/d/g"), &st), 0);
	assert_true(st.st_uid == OTHER && (st.st_mode & 07777) == 0640 && !st.st_size);
	assert_int_equal(create_with(&dir, "g", 0, 0, &d), VOLUME_ERR_EXIST);
	assert_int_equal(create_with(&dir, "h", 0, 3, &d), VOLUME_OK);
	assert_true(d.unit == 64 << 10 && d.width == 3);
	assert_false(atomic_load(&unsynced));
	assert_int_equal(create_with(&dir, "i", 96 << 10, 0, &d), VOLUME_ERR_INVAL);
	assert_int_equal(create_with(&dir, "i", 0, 5, &d), VOLUME_ERR_INVAL);
	assert_int_equal(create_with(&dir, "a/b", 0, 0, &d), VOLUME_ERR_ACCES);
	assert_int_equal(create_with(&file, "i", 0, 0, &d), VOLUME_ERR_NOTVOLUME);
	assert_int_equal(create_with(&peer->root, "i", 0, 0, &d), VOLUME_ERR_ACCES); /* it is root's */
	assert_int_equal(nfs_peer_lookup(peer, &dir, "i", &file), NFS3ERR_NOENT);
	options = "ro";
	assert_int_equal(reload(why), 0);
	assert_int_equal(set_defaults(&dir, SET_BOTH, 0, 0, &d), VOLUME_ERR_ROFS);
	assert_int_equal(set_defaults(&dir, 0, 0, 0, &d), VOLUME_OK);
	assert_int_equal(create_with(&dir, "i", 0, 0, &d), VOLUME_ERR_ROFS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		MANAGER_TEST(defaults_of_directories), MANAGER_TEST(sets_defaults),
	};

	volume_times = manager_times;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
