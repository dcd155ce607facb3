/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * fuzz_fh.c - libFuzzer harness: file handles that come back from a client
 *
 * Operation:  A set of handles for one export with one file in it, of each kind that works here. Byte
 *             0 chooses the kind and the way: the input as a handle; a handle that was given out with
 *             a byte changed, or cut; or the input as the body of a handle with a good signature, so
 *             that the code behind the check of the signature is tested, too: a former run with the
 *             same key may have signed anything.
 * Errors:     abort() if a handle that was not given out finds a file.
 */
#include <ftw.h>

#include "server/handles/fh.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

struct kind {
	struct export_table exports;
	struct fh_set *set; /* NULL: does not work here */
	struct fh given;
};

static char dir[64];
static struct kind kinds[2];

static void must(bool promise)
{
	if (!promise)
		abort();
}

static int open_handle(struct kind *k, const void *data, uint32_t len)
{
	struct fh_obj o = { .fd = -1 };
	struct export *exp;
	int rc = fh_open(k->set, data, len, &o), where = fh_export(k->set, data, len, &exp);

	must(rc <= 0 && where <= 0 && (where == 0 || rc == where));
	if (rc)
		return rc;
	must(o.fd >= 0 && o.exp == &k->exports.v[0]);
	fh_close(&o);
	return 0;
}

static void use_foreign(struct kind *k, const uint8_t *data, size_t size)
{
	bool given = size == k->given.len && !memcmp(data, k->given.data, size);

	must(!open_handle(k, data, (uint32_t)size) == given);
}

static void use_damaged(struct kind *k, const uint8_t *data, size_t size)
{
	struct fh fh = k->given;

	if (size < 2)
		return;
	if (data[0] % (fh.len + 1) == fh.len)
		fh.len = data[1] % (FH_MAX + 1);
	else
		fh.data[data[0] % fh.len] ^= data[1];
	use_foreign(k, fh.data, fh.len);
}

static void use_signed(struct kind *k, const uint8_t *data, size_t size)
{
	struct fh fh;

	seal(k->set, &k->exports.v[0], (enum fh_kind)k->exports.v[0].fh_kind, data,
	     (uint32_t)MIN(size, FH_BODY_MAX), &fh);
	(void)open_handle(k, fh.data, fh.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kind *k;

	if (!size)
		return 0;
	k = &kinds[data[0] & 1];
	if (!k->set)
		return 0;
	switch (data[0] >> 1 & 3) {
	case 0:
		use_foreign(k, data + 1, size - 1);
		break;
	case 1:
		use_damaged(k, data + 1, size - 1);
		break;
	default:
		use_signed(k, data + 1, size - 1);
	}
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	(void)remove(path);
	return 0;
}

static void clean_up(void)
{
	for (int i = 0; i < 2; i++) {
		if (kinds[i].set)
			fh_set_destroy(kinds[i].set);
		export_table_close(&kinds[i].exports);
	}
	(void)nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void make_kind(struct kind *k, enum fh_kind kind)
{
	static const struct fh_keys keys = { .v = { { 1, 2 } }, .n = 1 };
	struct export_conf conf;
	struct fh_obj root, o;
	char why[256];
	int map_err;

	must(!export_conf_parse(dir, &conf, why, sizeof(why)));
	must(!export_table_open(&conf, 1, &k->exports, why, sizeof(why)));
	export_conf_fini(&conf);
	if (fh_set_create(&k->exports, &keys, kind, NULL, &map_err, &k->set)) {
		k->set = NULL; /* no privilege for kernel handles */
		return;
	}
	must(!fh_open_root(k->set, &k->exports.v[0], &root));
	must(!fh_lookup(k->set, &root, "f", &o) && !fh_make(k->set, &o, &k->given));
	fh_close(&o);
	fh_close(&root);
	must(!open_handle(k, k->given.data, k->given.len));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char path[80];
	int fd;

	(void)argc;
	(void)argv;
	snprintf(dir, sizeof(dir), "/tmp/leat-fuzz-XXXXXX");
	must(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/f", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	must(fd >= 0);
	close(fd);
	make_kind(&kinds[0], FH_MAP);
	make_kind(&kinds[1], FH_KERNEL);
	atexit(clean_up);
	return 0;
}
