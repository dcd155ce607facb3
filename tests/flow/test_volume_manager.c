/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_volume_manager.c - the manager of a volume: its map, layouts of files, and reloads
 */
#include "test_volume_manager.h"

static void map_of_a_volume(void **state)
{
	static const struct {
		uint32_t id;
		volume_server_state server_state;
		const char *url;
	} want[] = {
		{ 1, VOLUME_SERVER_FULL, "local:///s1" },
		{ 20, VOLUME_SERVER_FULL, "local:///s2" },
		{ 3, VOLUME_SERVER_OUT, "tcp://127.0.0.3:1" },
		{ 4, VOLUME_SERVER_FULL, "local:///s4" },
	};
	struct nfs_fh other, file, bad = { .len = 5, .data = "nodns" };
	VOLMAPres res;
	const VOLMAPresok *ok = &res.VOLMAPres_u.resok;
	struct got l;

	(void)state;
	create_file("f", &file);
	for (unsigned k = 0; k < 2; k++) { /* of the root, and of a file */
		assert_int_equal(get_map(k ? &file : &peer->root, &res), VOLUME_OK);
		assert_true(ok->volume == VOLUME && ok->map == 5 && ok->unit == UNIT && ok->width == 4);
		assert_int_equal(ok->servers.servers_len, ARRAY_SIZE(want));
		for (unsigned i = 0; i < ARRAY_SIZE(want); i++) {
			assert_int_equal(ok->servers.servers_val[i].id, want[i].id);
			assert_int_equal(ok->servers.servers_val[i].state, want[i].server_state);
			assert_string_equal(ok->servers.servers_val[i].url, want[i].url);
		}
		xdr_free((xdrproc_t)xdr_VOLMAPres, (char *)&res);
	}
	assert_int_equal(nfs_peer_mount(peer, "/e1", &other), MNT3_OK);
	assert_int_equal(get_map(&other, &res), VOLUME_ERR_NOTVOLUME);
	assert_int_equal(get_layout(&other, BOTH, &l), VOLUME_ERR_NOTVOLUME);
	assert_int_equal(get_map(&bad, &res), VOLUME_ERR_STALE);
	assert_int_equal(get_layout(&bad, BOTH, &l), VOLUME_ERR_STALE);
	assert_int_equal(get_layout(&peer->root, BOTH, &l), VOLUME_ERR_NOTVOLUME);
	assert_int_equal(get_layout(&file, 0, &l), VOLUME_ERR_INVAL);
	assert_int_equal(get_layout(&file, 4 | BOTH, &l), VOLUME_ERR_INVAL);
	assert_int_equal(nfs_peer_null(peer, LEAT_VOLUME, LEAT_VOLUME_V1, VOLUMEPROC_NULL), 0);
}

static void check_handles(const struct got *l, uint32_t rights)
{
	uint64_t now = (uint64_t)time(NULL);

	for (uint32_t i = 0; i < l->ok.stripes.stripes_len; i++) {
		struct stripe_handle h;

		assert_int_equal(stripe_handle_read(&keys, l->stripes[i].handle, &h), 0);
		assert_true(h.volume == VOLUME && h.epoch == 1 && h.rights == rights && h.name.stripe == i);
		assert_int_equal(h.server, l->stripes[i].server);
		assert_memory_equal(h.name.object, l->ok.object, STRIPE_OBJECT_BYTES);
		assert_true(h.expiry > now + 500 && h.expiry <= now + 600);
	}
}

static void each_mode_of_create(void **state)
{
	static const createmode3 modes[] = { UNCHECKED, GUARDED, EXCLUSIVE };
	static const char *const names[] = { "u", "g", "x" };
	struct got l[3], again;
	struct nfs_fh fh;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		uint8_t bytes[FILE_LAYOUT_MAX];

		assert_int_equal(create_how(names[i], modes[i], modes[i] == UNCHECKED, 0, &fh), NFS3_OK);
		assert_false(atomic_load(&unsynced));
		assert_int_equal(get_attribute(names[i], bytes), FILE_LAYOUT_HEAD + 3 * 4 + 8);
		assert_int_equal(get_layout(&fh, BOTH, &l[i]), VOLUME_OK);
		assert_true(l[i].ok.map == 5 && l[i].ok.epoch == 1 && l[i].ok.unit == UNIT && l[i].ok.lifetime == 600 && !l[i].ok.bytes);
		assert_int_equal(l[i].ok.stripes.stripes_len, 3); /* server 3 is out */
		check_handles(&l[i], BOTH);
		for (unsigned k = 0; k < i; k++)
			assert_memory_not_equal(l[i].ok.object, l[k].ok.object, STRIPE_OBJECT_BYTES);
	}
	/* servers in turn: the second one of a file is the first one of the next */
	for (unsigned i = 1; i < 3; i++)
		assert_int_equal(l[i].stripes[0].server, l[i - 1].stripes[1].server);
	for (unsigned i = 0; i < 3; i++)
		assert_true(l[0].stripes[i].server == 1 || l[0].stripes[i].server == 20 || l[0].stripes[i].server == 4);
	/* the same file again keeps its layout */
	assert_int_equal(create_how("u", UNCHECKED, true, 0, &fh), NFS3_OK);
	assert_int_equal(get_layout(&fh, STRIPE_MAY_READ, &again), VOLUME_OK);
	assert_memory_equal(again.ok.object, l[0].ok.object, STRIPE_OBJECT_BYTES);
	check_handles(&again, STRIPE_MAY_READ);
	assert_int_equal(create_how("x", EXCLUSIVE, false, 0, &fh), NFS3_OK);
	assert_int_equal(create_how("g", GUARDED, false, 0, &fh), NFS3ERR_EXIST);
}

/* The owner may, whatever the mode says, as with READ and WRITE; others as the kernel says. */
static void rights_of_the_caller(void **state)
{
	struct nfs_fh fh;
	struct got l;

	(void)state;
	create_file("f", &fh);
	assert_int_equal(set_mode(&fh, 0), NFS3_OK);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	if (!creds_can_assume())
		skip();
	peer->cred.uid = peer->cred.gid = OTHER;
	assert_int_equal(get_layout(&fh, STRIPE_MAY_READ, &l), VOLUME_ERR_ACCES);
	assert_int_equal(chmod(path_of("f"), 0644), 0);
	assert_int_equal(get_layout(&fh, STRIPE_MAY_READ, &l), VOLUME_OK);
	check_handles(&l, STRIPE_MAY_READ);
	assert_int_equal(get_layout(&fh, STRIPE_MAY_WRITE, &l), VOLUME_ERR_ACCES);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_ERR_ACCES);
	assert_int_equal(chmod(path_of("f"), 0222), 0);
	assert_int_equal(get_layout(&fh, STRIPE_MAY_WRITE, &l), VOLUME_OK);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_ERR_ACCES);
}

/* A user that may write to a program of another user must not be able to run code as that user. A client need not report. */
static void set_id_bits(void **state)
{
	struct nfs_fh fh;
	struct stat st;
	uint64_t bytes;
	struct got l;

	(void)state;
	if (!creds_can_assume())
		skip();
	create_file("f", &fh);
	assert_int_equal(chmod(path_of("f"), 06777), 0);
	peer->cred.uid = peer->cred.gid = OTHER;
	assert_int_equal(get_layout(&fh, STRIPE_MAY_READ, &l), VOLUME_OK);
	assert_int_equal(stat(path_of("f"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 06777);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(stat(path_of("f"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0777);
	assert_int_equal(chmod(path_of("f"), 06777), 0);
	assert_int_equal(report(&fh, l.stripes[0].handle, 0, &bytes), VOLUME_OK);
	assert_int_equal(stat(path_of("f"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0777);
}

static void read_only(void **state)
{
	char why[512];
	uint64_t bytes;
	struct nfs_fh fh, bare;
	struct got l;

	(void)state;
	create_file("f", &fh);
	create_locally("bare", "");
	assert_int_equal(nfs_peer_lookup(peer, &peer->root, "bare", &bare), NFS3_OK);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	options = "ro";
	assert_int_equal(reload(why), 0);
	assert_int_equal(report(&fh, l.stripes[0].handle, 10, &bytes), VOLUME_ERR_ROFS);
	assert_int_equal(get_layout(&fh, STRIPE_MAY_WRITE, &l), VOLUME_ERR_ROFS);
	assert_int_equal(get_layout(&fh, STRIPE_MAY_READ, &l), VOLUME_OK);
	assert_int_equal(get_layout(&bare, STRIPE_MAY_READ, &l), VOLUME_ERR_LAYOUT);
}

static void copied_and_damaged(void **state)
{
	uint8_t bytes[FILE_LAYOUT_MAX];
	struct nfs_fh from, to;
	struct got l;
	size_t n;

	(void)state;
	create_file("from", &from);
	create_file("to", &to);
	n = get_attribute("from", bytes);
	set_attribute("to", bytes, n);
	assert_int_equal(get_layout(&to, BOTH, &l), VOLUME_ERR_LAYOUT);
	assert_int_equal(get_layout(&from, BOTH, &l), VOLUME_OK);
	bytes[20] ^= 1;
	set_attribute("from", bytes, n);
	assert_int_equal(get_layout(&from, BOTH, &l), VOLUME_ERR_LAYOUT);
	set_attribute("from", bytes, 0);
	assert_int_equal(get_layout(&from, BOTH, &l), VOLUME_ERR_LAYOUT);
	assert_int_equal(nfs_peer_lookup(peer, &peer->root, "from", &from), NFS3_OK); /* it has attributes and a name */
	assert_int_equal(remove_file("from"), NFS3_OK);
}

/* The layout is signed for the file, not for the number of its inode. */
static void recycled_inode(void **state)
{
	uint8_t bytes[FILE_LAYOUT_MAX];
	struct stat st, again = { .st_ino = 0 };
	struct nfs_fh fh;
	struct got l;
	size_t n;

	(void)state;
	create_file("f", &fh);
	n = get_attribute("f", bytes);
	assert_int_equal(stat(path_of("f"), &st), 0);
	assert_int_equal(unlink(path_of("f")), 0);
	for (unsigned i = 0; i < 50 && again.st_ino != st.st_ino; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "n%u", i);
		create_locally(name, "");
		assert_int_equal(stat(path_of(name), &again), 0);
		if (again.st_ino == st.st_ino)
			assert_int_equal(rename(path_of(name), strdupa(path_of("f"))), 0);
	}
	if (again.st_ino != st.st_ino)
		skip(); /* this file system does not use numbers again at once */
	set_attribute("f", bytes, n);
	assert_int_equal(nfs_peer_lookup(peer, &peer->root, "f", &fh), NFS3_OK);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_ERR_LAYOUT);
}

/* What a crash between creation and attribute leaves. */
static void heals(void **state)
{
	struct nfs_fh fh;
	struct got l, again;

	(void)state;
	create_locally("bare", "");
	assert_int_equal(nfs_peer_lookup(peer, &peer->root, "bare", &fh), NFS3_OK);
	assert_int_equal(get_layout(&fh, STRIPE_MAY_READ, &l), VOLUME_OK);
	assert_false(atomic_load(&unsynced));
	assert_int_equal(get_layout(&fh, BOTH, &again), VOLUME_OK);
	assert_memory_equal(l.ok.object, again.ok.object, STRIPE_OBJECT_BYTES);
	create_locally("bare2", "");
	create_file("bare2", &fh);
	assert_false(atomic_load(&unsynced));
	assert_true(get_attribute("bare2", (uint8_t[FILE_LAYOUT_MAX]){ 0 }) > 0);
	create_locally("foreign", "contents");
	assert_int_equal(nfs_peer_lookup(peer, &peer->root, "foreign", &fh), NFS3_OK);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_ERR_LAYOUT);
}

static void no_generation(void **state)
{
	struct nfs_fh fh, other;
	struct stat st;
	struct got l;

	(void)state;
	if (!creds_can_assume()) /* it finds files by name, and needs the kernel's handle for that */
		skip();
	create_file("f", &fh);
	atomic_store(&no_handles, true);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_ERR_LATER);
	assert_int_not_equal(nfs_peer_create_file(peer, &peer->root, "g", &other), NFS3_OK);
	atomic_store(&no_handles, false);
	assert_int_not_equal(stat(path_of("g"), &st), 0);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
}

#define REFUSED(text)                                                                              \
	do {                                                                                       \
		assert_int_not_equal(reload(why), 0);                                              \
		if (!strstr(why, text))                                                            \
			fail_msg("%s, not %s", why, text);                                         \
	} while (0)

static void reload_is_checked(void **state)
{
	char why[512];
	struct nfs_fh fh;
	struct got l;

	(void)state;
	create_file("f", &fh);
	write_map("nonsense\n");
	REFUSED("line 1: neither a section nor key = value");
	write_map("volume = 1122334455667789\nversion = 6\n" SERVERS);
	REFUSED("it is of volume 1122334455667789, and the key of 1122334455667788");
	write_map(VOLUME_LINE "version = 4\n" SERVERS);
	REFUSED("its version, 4, is older than the one in force, 5");
	write_map(VOLUME_LINE "version = 5\n" SERVERS);
	REFUSED("its servers have changed, and its version, 5, has not");
	write_map(MAP);
	options = "width=5";
	REFUSED("width=5: there are 4 servers");
	options = "stripe=1M";
	write_key(VOLUME_LINE KEY, 0640);
	REFUSED("mode 0600");
	write_key("volume = 1122334455667789\n" KEY, 0600);
	write_map("volume = 1122334455667789\nversion = 6\n" SERVERS);
	REFUSED("until now it is of volume 1122334455667788");
	assert_int_equal(unlink(tmp_dir_path(&peer->dir, "map")), 0);
	assert_int_equal(mkdir(tmp_dir_path(&peer->dir, "map"), 0700), 0);
	REFUSED("not a regular file");
	assert_int_equal(rmdir(tmp_dir_path(&peer->dir, "map")), 0);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(l.ok.map, 5);
	check_handles(&l, BOTH);
	write_key(VOLUME_LINE KEY, 0600);
	write_map(VOLUME_LINE "version = 6\n[server 4]\nurl = tcp://127.0.0.9:1\n");
	options = "stripe=128K,width=1";
	assert_int_equal(reload(why), 0);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(l.ok.map, 6);
	assert_int_equal(l.ok.stripes.stripes_len, 3);
	create_file("g", &fh);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(l.ok.unit, 128 << 10);
	assert_int_equal(l.ok.stripes.stripes_len, 1);
	assert_int_equal(l.stripes[0].server, 4);
}

/* A new key signs, and what the old one has signed stays valid until it goes. */
static void key_changes(void **state)
{
	char why[512];
	struct nfs_fh fh, newer;
	struct got old, l;
	struct stripe_handle h;
	uint64_t bytes;

	(void)state;
	create_file("f", &fh);
	assert_int_equal(get_layout(&fh, BOTH, &old), VOLUME_OK);
	write_key(VOLUME_LINE OTHER_KEY KEY, 0600);
	assert_int_equal(reload(why), 0);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_int_equal(stripe_handle_read(&keys, l.stripes[0].handle, &h), -EBADF);
	assert_int_equal(report(&fh, old.stripes[0].handle, 1, &bytes), VOLUME_OK);
	create_file("g", &newer);
	write_key(VOLUME_LINE OTHER_KEY, 0600);
	assert_int_equal(reload(why), 0);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_ERR_LAYOUT);
	assert_int_equal(report(&fh, old.stripes[0].handle, 2, &bytes), VOLUME_ERR_ACCES);
	assert_int_equal(get_layout(&newer, BOTH, &l), VOLUME_OK);
}

static void no_server_is_left(void **state)
{
	char why[512];
	struct nfs_fh fh;
	struct stat st;

	(void)state;
	write_map(VOLUME_LINE "version = 6\n[server 1]\nurl = tcp://127.0.0.1:1\nstate = out\n");
	assert_int_equal(reload(why), 0);
	assert_int_equal(nfs_peer_create_file(peer, &peer->root, "f", &fh), NFS3ERR_NOSPC);
	assert_int_not_equal(stat(path_of("f"), &st), 0);
}

/* Of one directory there is one manager, also while a reload has two of them for a moment; and a restart finds it all. */
static void one_manager(void **state)
{
	struct conf *conf = malloc(sizeof(*conf));
	struct server *second = NULL;
	struct nfs_fh fh;
	char why[512];
	struct got before, l;

	(void)state;
	assert_non_null(conf);
	create_file("f", &fh);
	assert_int_equal(get_layout(&fh, BOTH, &before), VOLUME_OK);
	conf_init(conf);
	conf->nexports = 1;
	tune(conf);
	assert_int_equal(server_start(conf, &second), -EBUSY);
	conf_fini(conf);
	free(conf);
	assert_int_equal(reload(why), 0);
	nfs_peer_stop(peer);
	nfs_peer_start(peer);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	assert_memory_equal(l.ok.object, before.ok.object, STRIPE_OBJECT_BYTES);
}

/* The largest map is a reply of more than 256 KiB. */
static void largest_map(void **state)
{
	size_t room = 512 << 10, n;
	char *text = malloc(room), why[512], path[VOLUME_URL_MAX];
	VOLMAPres res;
	const VOLMAPresok *ok = &res.VOLMAPres_u.resok;

	(void)state;
	assert_non_null(text);
	memset(path, 'p', sizeof(path));
	n = (size_t)snprintf(text, room, VOLUME_LINE "version = 6\n");
	for (unsigned i = 1; i <= VOLUME_SERVERS_MAX; i++)
		n += (size_t)snprintf(text + n, room - n, "[server %u]\nurl = local:///%.*s%03u\n", i, VOLUME_URL_MAX - 12, path, i);
	write_map(text);
	assert_int_equal(reload(why), 0);
	assert_int_equal(get_map(&peer->root, &res), VOLUME_OK);
	assert_int_equal(ok->servers.servers_len, VOLUME_SERVERS_MAX);
	assert_int_equal(ok->width, VOLUME_SERVERS_MAX);
	assert_int_equal(strlen(ok->servers.servers_val[255].url), VOLUME_URL_MAX);
	assert_non_null(strstr(ok->servers.servers_val[255].url, "p256"));
	xdr_free((xdrproc_t)xdr_VOLMAPres, (char *)&res);
	free(text);
}

/* One leatd may be manager and stripe server. */
static void both_in_one(void **state)
{
	char why[512], data[] = "contents of a stripe", map[512];
	struct iovec iov = { data, sizeof(data) };
	STRIPEWRITEargs a = { .at.lane = { .instance = 1, .incarnation = 1 }, .sync = TRUE,
			      .data = { .length = sizeof(data), .iov = &iov, .iovcnt = 1 } };
	STRIPECHANGEres res = { 0 };
	struct nfs_fh fh;
	struct got l;
	uint64_t bytes;

	(void)state;
	tmp_dir_mkdir(&peer->dir, "s");
	has_stripes = true;
	options = "width=1";
	(void)snprintf(map, sizeof(map), VOLUME_LINE "version = 6\n[server 1]\nurl = local://%s/sock\n", peer->dir.path);
	volume_times.server = "60s"; /* it is not away on a slow machine */
	write_map(map);
	assert_int_equal(reload(why), 0);
	create_file("f", &fh);
	assert_int_equal(get_layout(&fh, BOTH, &l), VOLUME_OK);
	memcpy(a.at.handle, l.stripes[0].handle, sizeof(a.at.handle));
	assert_int_equal(nfs_peer_rpc(peer, LEAT_STRIPES, LEAT_STRIPES_V1, STRIPEPROC_WRITE, (xdrproc_t)xdr_STRIPEWRITEargs, &a,
				      (xdrproc_t)xdr_STRIPECHANGEres, &res, NULL, 0), 0);
	assert_int_equal(res.status, STRIPE_OK);
	assert_int_equal(report(&fh, l.stripes[0].handle, sizeof(data), &bytes), VOLUME_OK);
	assert_int_equal(bytes, sizeof(data));
	/* it commands itself */
	assert_int_equal(set_size(&fh, 5), NFS3_OK);
	volume_times.server = manager_times.server;
	assert_int_equal(rmdir(tmp_dir_path(&peer->dir, "e0/pending")), 0); /* it is complete */
	assert_int_equal(mkdir(tmp_dir_path(&peer->dir, "e0/pending"), 0700), 0);
	assert_int_equal(nfs_peer_rpc(peer, LEAT_STRIPES, LEAT_STRIPES_V1, STRIPEPROC_WRITE, (xdrproc_t)xdr_STRIPEWRITEargs, &a,
				      (xdrproc_t)xdr_STRIPECHANGEres, &res, NULL, 0), 0);
	assert_int_equal(res.status, STRIPE_ERR_FENCED);
	a.at.handle[30] ^= 1;
	assert_int_equal(nfs_peer_rpc(peer, LEAT_STRIPES, LEAT_STRIPES_V1, STRIPEPROC_WRITE, (xdrproc_t)xdr_STRIPEWRITEargs, &a,
				      (xdrproc_t)xdr_STRIPECHANGEres, &res, NULL, 0), 0);
	assert_int_equal(res.status, STRIPE_ERR_BADHANDLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(map_of_a_volume, setup_tcp, nfs_peer_teardown),
		MANAGER_TEST(map_of_a_volume), MANAGER_TEST(each_mode_of_create), MANAGER_TEST(rights_of_the_caller),
		MANAGER_TEST(set_id_bits), MANAGER_TEST(read_only), MANAGER_TEST(copied_and_damaged),
		MANAGER_TEST(recycled_inode), MANAGER_TEST(heals), MANAGER_TEST(no_generation), MANAGER_TEST(reload_is_checked),
		MANAGER_TEST(key_changes), MANAGER_TEST(no_server_is_left), MANAGER_TEST(one_manager), MANAGER_TEST(largest_map),
		MANAGER_TEST(both_in_one),
		cmocka_unit_test_setup_teardown(largest_map, setup_tcp, nfs_peer_teardown),
	};

	volume_times = manager_times;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
