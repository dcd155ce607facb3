/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_mount.c - which server, which way, which export; what is said when it does not work;
 * loops, callbacks and threads
 */
#include "test_leat_mount.h"

LOG_DEFINE("test_leat_mount");

static void info(void **state)
{
	struct leat *m = leat_flow_mount(flow.tcp_url, "conns=3&rsize=8192");
	struct leat_info i = { .size = sizeof(i) };

	(void)state;
	leat_info(m, &i);
	assert_string_equal(leat_flow_text(m, LEAT_TEXT_TRANSPORT, 0), leat_flow_rdma() ? "rdma" : "tcp");
	assert_string_equal(leat_flow_text(m, LEAT_TEXT_URL, 0), flow.tcp_url);
	assert_string_equal(leat_flow_text(m, LEAT_TEXT_PATH, 0), "");
	assert_non_null(strstr(leat_flow_text(m, LEAT_TEXT_CHOSEN, 0), "URL"));
	assert_true(i.is_leatd);
	assert_non_null(strstr(leat_flow_text(m, LEAT_TEXT_SERVER, 0), "leatd "));
	assert_int_equal(i.conns, 3);
	assert_int_equal(i.rsize, 8192);
	assert_int_equal(i.wsize, 1 << 20);
	assert_int_equal(leat_null(m), 0);
	leat_umount(m);
	leat_umount(NULL);
}

static void inner_paths(void **state)
{
	char url[256], path[256];
	struct leat_file *f;
	struct leat_info i = { .size = sizeof(i) };
	struct leat *m;
	struct stat st;

	(void)state;
	snprintf(path, sizeof(path), "%s/sub", flow.export);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(url, sizeof(url), "%s/sub/", flow.tcp_url);
	m = leat_flow_mount(url, NULL);
	leat_info(m, &i);
	assert_string_equal(leat_flow_text(m, LEAT_TEXT_PATH, 0), "sub");
	assert_int_equal(leat_open(m, "file", O_WRONLY | O_CREAT, 0600, &f), 0);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_stat(m, "/sub/file", &st), 0);
	assert_int_equal(leat_stat(m, "/file", &st), -ENOENT);
	assert_int_equal(leat_stat(m, "", &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	/* like a working directory: it is held on to, not looked up again */
	assert_int_equal(leat_rename(m, "/sub", "/away"), 0);
	assert_int_equal(leat_stat(m, "file", &st), 0);
	assert_int_equal(leat_stat(m, "/sub/file", &st), -ENOENT);
	assert_int_equal(leat_rename(m, "/away", "/sub"), 0);
	leat_umount(m);
	/* a URL may name a file, or what is not there yet */
	snprintf(url, sizeof(url), "%s/sub/file", flow.local_url);
	m = leat_flow_mount(url, NULL);
	assert_int_equal(leat_stat(m, "", &st), 0);
	assert_true(S_ISREG(st.st_mode));
	leat_umount(m);
	snprintf(url, sizeof(url), "%s/sub/new", flow.local_url);
	m = leat_flow_mount(url, NULL);
	assert_int_equal(leat_stat(m, "", &st), -ENOENT);
	assert_int_equal(leat_open(m, "", O_WRONLY | O_CREAT, 0600, &f), 0);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_stat(m, "/sub/new", &st), 0);
	leat_umount(m);
	leat_flow_remove(path);
}

static void refusals(void **state)
{
	struct leat *m = NULL;
	char url[256];

	(void)state;
	assert_int_equal(leat_mount("nonsense", NULL, &m), -EINVAL);
	assert_non_null(strstr(leat_error(NULL), "nonsense"));
	snprintf(url, sizeof(url), "tcp://127.0.0.1:%u/y", flow.port);
	assert_int_equal(leat_mount(url, NULL, &m), -ENOENT);
	assert_non_null(strstr(leat_error(NULL), "/y"));
	assert_int_equal(leat_mount("tcp://127.0.0.1:1/x", NULL, &m), -ECONNREFUSED);
	assert_non_null(strstr(leat_error(NULL), "127.0.0.1:1"));
	snprintf(url, sizeof(url), "local://%s/none/x", flow.dir);
	assert_int_equal(leat_mount(url, NULL, &m), -ENOENT);
	assert_non_null(strstr(leat_error(NULL), "socket"));
	snprintf(url, sizeof(url), "local://%s/sock/x?mountport=5", flow.dir);
	assert_int_equal(leat_mount(url, NULL, &m), -EINVAL);
	snprintf(url, sizeof(url), "%s?registration=frob", flow.local_url);
	assert_int_equal(leat_mount(url, NULL, &m), -EINVAL);
	assert_null(m);
}

/* Options that only a program can set */
static void by_name(void **state)
{
	struct leat_opts *opts = leat_opts_create();
	char capture[128], url[256];
	struct leat *m;
	struct stat st;

	(void)state;
	snprintf(capture, sizeof(capture), "%s/pcap", flow.dir);
	snprintf(url, sizeof(url), "%s/no-such-export", flow.local_url);
	url[strlen(flow.local_url) - 1] = 'n';
	assert_int_equal(leat_mount(url, opts, &m), -ENOENT);
	assert_int_equal(leat_set(opts, "connect_only", "yes"), 0);
	assert_int_equal(leat_mount(url, opts, &m), 0);
	assert_int_equal(leat_null(m), 0);
	leat_umount(m);
	assert_int_equal(stat(capture, &st), -1);
	assert_int_equal(leat_set(opts, "connect_only", "no"), 0);
	assert_int_equal(leat_set(opts, "capture", capture), 0);
	assert_int_equal(leat_mount(flow.local_url, opts, &m), 0);
	leat_opts_destroy(opts); /* the mount goes on without */
	assert_int_equal(leat_stat(m, "/", &st), 0);
	leat_umount(m);
	assert_int_equal(stat(capture, &st), 0);
	assert_true(leat_flow_rdma() || st.st_size > 1000); /* it captures the local fabric alone */
	assert_int_equal(unlink(capture), 0);
}

static void error_text(void **state)
{
	struct leat *m = leat_flow_mount(flow.tcp_url, NULL);
	static char name[4000], want[512];
	struct leat_file *f;
	struct stat st;

	(void)state;
	assert_string_equal(leat_error(m), "");
	assert_int_equal(leat_stat(m, "/no/such", &st), -ENOENT);
	snprintf(want, sizeof(want), "%s/no/such: LOOKUP: No such file or directory (NFS3ERR_NOENT)",
		 flow.tcp_url);
	assert_string_equal(leat_error(m), want);
	assert_int_equal(leat_rename(m, "no", "/d/new"), -ENOENT);
	snprintf(want, sizeof(want), "%s/no to /d/new: LOOKUP: No such file or directory "
		 "(NFS3ERR_NOENT)", flow.tcp_url);
	assert_string_equal(leat_error(m), want);
	/* refused without asking: the operation is named, and not what was found on the way */
	assert_int_equal(leat_open(m, "none/", O_RDWR | O_CREAT, 0644, &f), -EISDIR);
	snprintf(want, sizeof(want), "%s/none/: open: Is a directory", flow.tcp_url);
	assert_string_equal(leat_error(m), want);
	/* however long the name is, the reason is there */
	memset(name, 'n', sizeof(name) - 1);
	assert_int_equal(leat_stat(m, name, &st), -ENAMETOOLONG);
	assert_non_null(strstr(leat_error(m), "nnn: stat: File name too long"));
	assert_non_null(strstr(leat_error(m), flow.tcp_url));
	leat_umount(m);
}

static void statistics(void **state)
{
	struct leat *m = leat_flow_mount(flow.tcp_url, NULL);
	static const char *const names[] = { "calls", "bytes_in", "bytes_out", "bytes_copied" };
	struct leat_server_stats a = { .size = sizeof(a) }, b = { .size = sizeof(a) - 16, .instance = { 3, 4 } }, c = { 0 };
	uint64_t was[ARRAY_SIZE(names)];
	struct leat_file *f;
	static char buf[100000];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		was[i] = leat_flow_stat(m, names[i]);
	assert_int_equal(leat_server_stats(m, &a), 0);
	assert_int_equal(leat_open(m, "st", O_RDWR | O_CREAT, 0600, &f), 0);
	assert_int_equal(leat_pwrite(f, buf, sizeof(buf), 0), sizeof(buf));
	assert_int_equal(leat_pread(f, buf, sizeof(buf), 0), sizeof(buf));
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_server_stats(m, &b), 0);
	assert_true(leat_flow_stat(m, "calls") >= was[0] + 4);
	assert_int_equal(leat_flow_stat(m, "bytes_in") - was[1], sizeof(buf));
	assert_int_equal(leat_flow_stat(m, "bytes_out") - was[2], sizeof(buf));
	assert_true(leat_flow_rdma() || leat_flow_stat(m, "bytes_copied") > was[3]);
	assert_int_equal(b.bytes_in - a.bytes_in, sizeof(buf));
	assert_int_equal(b.bytes_out - a.bytes_out, sizeof(buf));
	assert_true(b.calls > a.calls);
	assert_true(b.cpu_us >= a.cpu_us && b.cpu_us > 0);
	assert_true(a.instance[0] && a.instance[1]);
	assert_true(b.size == sizeof(b) - 16 && b.instance[0] == 3 && b.instance[1] == 4); /* of an older program */
	assert_int_equal(leat_server_stats(m, &c), -EINVAL);
	assert_int_equal(leat_unlink(m, "st"), 0);
	leat_umount(m);
}

/* Each counter has one name; programs of any release get what fits. */
static void counters(void **state)
{
	struct leat *m = leat_flow_mount(flow.tcp_url, NULL);
	uint64_t v[256], one, n, guard = UINT64_C(0x5555555555555555);
	const char *name;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		v[i] = guard;
	n = leat_stats(m, v, ARRAY_SIZE(v));
	assert_true(n > 40 && n < ARRAY_SIZE(v));
	assert_int_equal(v[n], guard);
	for (size_t i = 0; i < n; i++) {
		name = leat_stat_name(i);
		assert_non_null(name);
		assert_int_equal(leat_stat_value(m, name, &one), 0);
		if (!strcmp(name, "calls"))
			assert_true(one > 0 && one == v[i]);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(leat_stat_name(j), name);
	}
	assert_null(leat_stat_name(n));
	assert_null(leat_stat_name(SIZE_MAX));
	v[1] = guard;
	assert_int_equal(leat_stats(m, v, 1), n);
	assert_int_equal(v[1], guard);
	assert_int_equal(leat_stats(m, NULL, 0), n);
	one = guard;
	assert_int_equal(leat_stat_value(m, "call", &one), -ENOENT);
	assert_int_equal(one, guard);
	leat_umount(m);
}

/* A program that was built for an older or a newer release */
static void info_sizes(void **state)
{
	struct leat *m = leat_flow_mount(flow.tcp_url, "conns=3&rsize=8192");
	struct leat_info now = { .size = sizeof(now) }, old;
	struct {
		struct leat_info info;
		uint8_t more[64];
	} newer;

	(void)state;
	assert_int_equal(leat_info(m, &now), 0);
	assert_int_equal(now.size, sizeof(now));
	assert_int_equal(now.transport, leat_flow_rdma() ? LEAT_TRANSPORT_RDMA : LEAT_TRANSPORT_TCP);
	assert_int_equal(now.choice, LEAT_CHOICE_URL);
	assert_int_equal(now.reach, leat_flow_rdma() ? LEAT_REACH_DEVICE : LEAT_REACH_SOCKET);
	assert_int_equal(now.uid, geteuid());
	assert_true(now.instance[0] && now.instance[1]);

	memset(&old, 0x55, sizeof(old));
	old.size = offsetof(struct leat_info, rsize);
	assert_int_equal(leat_info(m, &old), 0);
	assert_int_equal(old.size, offsetof(struct leat_info, rsize));
	assert_int_equal(old.conns, 3);
	assert_int_equal(old.rsize, 0x55555555);

	memset(&newer, 0x55, sizeof(newer));
	newer.info.size = sizeof(newer);
	assert_int_equal(leat_info(m, &newer.info), 0);
	assert_int_equal(newer.info.size, sizeof(newer));
	assert_int_equal(newer.info.rsize, 8192);
	for (size_t i = 0; i < sizeof(newer.more); i++)
		assert_int_equal(newer.more[i], 0);

	memset(&old, 0x55, sizeof(old)); /* size not set */
	assert_int_equal(leat_info(m, &old), -EINVAL);
	assert_int_equal(old.conns, 0x55555555);
	old.size = 0;
	assert_int_equal(leat_info(m, &old), -EINVAL);
	leat_umount(m);
}

static void describe(void **state)
{
	struct leat *m = leat_flow_mount(flow.tcp_url, NULL);
	char buf[8] = "xxxxxxx";

	(void)state;
	assert_string_equal(leat_flow_text(m, LEAT_TEXT_TRANSPORT, 0), leat_flow_rdma() ? "rdma" : "tcp");
	assert_string_equal(leat_flow_text(m, LEAT_TEXT_GIVEN_URL, 0), flow.tcp_url);
	if (!leat_flow_rdma())
		assert_string_equal(leat_flow_text(m, LEAT_TEXT_REACH, 0), "all memory by copies through a socket");
	if (!leat_flow_rdma() || !getenv("LEAT_TEST_MODES"))
		assert_string_equal(leat_flow_text(m, LEAT_TEXT_MODES, 0), "");
	for (int what = LEAT_TEXT_URL; what <= LEAT_TEXT_MODES; what++) {
		assert_int_equal(leat_describe(m, (enum leat_text)what, 1, buf, sizeof(buf)), -ENOENT);
		assert_string_equal(buf, "");
		assert_true(what == LEAT_TEXT_REFUSED || leat_flow_text(m, (enum leat_text)what, 0));
	}
	assert_int_equal(leat_describe(m, (enum leat_text)0, 0, buf, sizeof(buf)), -ENOENT);
	assert_int_equal(leat_describe(m, (enum leat_text)99, 0, buf, sizeof(buf)), -ENOENT);
	assert_int_equal(leat_describe(m, (enum leat_text)-1, 0, buf, sizeof(buf)), -ENOENT);
	assert_int_equal(leat_describe(m, LEAT_TEXT_REFUSED, 0, buf, sizeof(buf)), -ENOENT); /* no other was tried */
	assert_int_equal(leat_describe(m, LEAT_TEXT_URL, 0, buf, sizeof(buf)), strlen(flow.tcp_url));
	assert_string_equal(buf, leat_flow_rdma() ? "rdma://" : "tcp://1");
	assert_int_equal(leat_describe(m, LEAT_TEXT_URL, 0, buf, 0), -EINVAL);
	leat_umount(m);
}

/* ---- options that change how, not what ---- */

/* Sleeps of a handle that waits @ms in vain. */
static uint64_t sleeps_of(const char *options, int ms)
{
	struct leat *m = leat_flow_mount(flow.local_url, options);
	uint64_t before, after;

	assert_int_equal(leat_null(m), 0);
	while (leat_poll(leat_session(m), 0) > 0)
		;
	before = leat_flow_stat(m, "sleeps");
	assert_int_equal(leat_poll(leat_session(m), ms), 0);
	after = leat_flow_stat(m, "sleeps");
	leat_umount(m);
	return after - before;
}

static void polling(void **state)
{
	bool spun = false;

	(void)state;
	assert_true(sleeps_of("poll=event", 1) > 0);
	assert_true(sleeps_of("poll=event&spin=1000000", 1) > 0);
	assert_int_equal(sleeps_of("poll=busy", 1), 0);
	assert_int_equal(sleeps_of("poll=busy&spin=1", 20), 0);
	/* adaptive: not before it has spun for so long, or been held up by others on its processor */
	for (int i = 0; i < 1000 && !spun; i++)
		spun = !sleeps_of("spin=1000000", 1);
	assert_true(spun);
	assert_true(sleeps_of("spin=1", 20) > 0);
}

/* Calls that two reads of 4 KiB, one behind the other, take. */
static uint64_t calls_of(const char *options)
{
	struct leat *m = leat_flow_mount(flow.tcp_url, options);
	uint64_t before, after;
	struct leat_file *f;
	static char buf[131072];

	assert_int_equal(leat_open(m, "ra", O_RDWR | O_CREAT, 0600, &f), 0);
	assert_int_equal(leat_pwrite(f, buf, sizeof(buf), 0), sizeof(buf));
	before = leat_flow_stat(m, "calls");
	assert_int_equal(leat_read(f, buf, 4096), 4096);
	assert_int_equal(leat_read(f, buf, 4096), 4096);
	after = leat_flow_stat(m, "calls");
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_unlink(m, "ra"), 0);
	leat_umount(m);
	return after - before;
}

static void reading_ahead(void **state)
{
	(void)state;
	assert_int_equal(calls_of("readahead=0"), 2);
	assert_true(calls_of("readahead=64k") > 2);
	assert_true(calls_of("readahead=64k&rsize=4096") > 2);
}

/* ---- callbacks and loops ---- */

static void other_loop(void **state)
{
	struct leat *m = leat_flow_mount(flow.local_url, NULL);
	struct count c[64] = { 0 };
	struct stat st[64];
	unsigned done = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(c); i++)
		assert_int_equal(leat_aio_stat(m, i % 2 ? "/" : "/none", &st[i],
					       (struct leat_cb){ count_fn, &c[i], count_free }), 0);
	while (done < ARRAY_SIZE(c)) {
		struct pollfd p = { .fd = leat_fd(leat_session(m)), .events = POLLIN };

		done = 0;
		for (size_t i = 0; i < ARRAY_SIZE(c); i++)
			done += c[i].free;
		if (leat_poll(leat_session(m), 0) == 0 && done < ARRAY_SIZE(c))
			assert_int_equal(poll(&p, 1, 30000), 1);
	}
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		assert_int_equal(c[i].fn, 1);
		assert_int_equal(c[i].result, i % 2 ? 0 : -ENOENT);
	}
	leat_umount(m);
}

/* Each function that takes a callback frees it when it refuses at once. */
static void refused_at_once(void **state)
{
	struct leat *m = leat_flow_mount(flow.local_url, NULL);
	char longest[5000];
	struct count c = { 0 };
	struct leat_cb cb = { count_fn, &c, count_free };
	struct leat_dir *d;
	struct leat_file *f;
	struct statvfs vfs;
	struct stat st;
	unsigned n = 0;

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
#define REFUSED(call, err) \
	do { \
		c = (struct count){ 0 }; \
		assert_int_equal(call, err); \
		assert_true(c.fn == 0 && c.free == 1); \
		n++; \
	} while (0)
	REFUSED(leat_aio_open(m, longest, O_RDONLY, 0, &f, cb), -ENAMETOOLONG);
	REFUSED(leat_aio_open(m, "x", O_ACCMODE, 0, &f, cb), -EINVAL);
	REFUSED(leat_aio_close(NULL, cb), -EBADF);
	REFUSED(leat_aio_pread(NULL, longest, 1, 0, cb), -EBADF);
	REFUSED(leat_aio_pwrite(NULL, longest, 1, 0, cb), -EBADF);
	REFUSED(leat_aio_preadv(NULL, NULL, 0, 0, cb), -EBADF);
	REFUSED(leat_aio_pwritev(NULL, NULL, 0, 0, cb), -EBADF);
	REFUSED(leat_aio_fsync(NULL, cb), -EBADF);
	REFUSED(leat_aio_ftruncate(NULL, 0, cb), -EBADF);
	REFUSED(leat_aio_fstat(NULL, &st, cb), -EBADF);
	REFUSED(leat_aio_stat(m, longest, &st, cb), -ENAMETOOLONG);
	REFUSED(leat_aio_lstat(m, longest, &st, cb), -ENAMETOOLONG);
	REFUSED(leat_aio_truncate(m, "x", UINT64_MAX, cb), -EINVAL);
	REFUSED(leat_aio_mkdir(m, longest, 0, cb), -ENAMETOOLONG);
	REFUSED(leat_aio_rmdir(m, longest, cb), -ENAMETOOLONG);
	REFUSED(leat_aio_unlink(m, longest, cb), -ENAMETOOLONG);
	REFUSED(leat_aio_rename(m, "x", longest, cb), -ENAMETOOLONG);
	REFUSED(leat_aio_link(m, longest, "x", cb), -ENAMETOOLONG);
	REFUSED(leat_aio_symlink(m, longest, "x", cb), -ENAMETOOLONG);
	REFUSED(leat_aio_symlink(m, "", "x", cb), -ENOENT);
	REFUSED(leat_aio_readlink(m, "x", longest, 0, cb), -EINVAL);
	REFUSED(leat_aio_mknod(m, "x", S_IFDIR, 0, cb), -EPERM);
	REFUSED(leat_aio_chmod(m, longest, 0, cb), -ENAMETOOLONG);
	REFUSED(leat_aio_chown(m, longest, 0, 0, cb), -ENAMETOOLONG);
	REFUSED(leat_aio_utimens(m, "x", &(struct timespec[2]){ { 0, -5 }, { 0, 0 } }[0], cb),
		-EINVAL);
	REFUSED(leat_aio_access(m, "x", 99, cb), -EINVAL);
	REFUSED(leat_aio_statvfs(m, longest, &vfs, cb), -ENAMETOOLONG);
	REFUSED(leat_aio_opendir(m, longest, &d, cb), -ENAMETOOLONG);
	REFUSED(leat_aio_null(NULL, cb), -EINVAL);
#undef REFUSED
	assert_true(n >= 27); /* as many as leat.h has */
	leat_umount(m);
}

/* What is in flight at leat_umount() is waited for; files left open are closed. */
static void umount_waits(void **state)
{
	struct leat *m = leat_flow_mount(flow.tcp_url, "credits=2");
	struct count c[20] = { 0 };
	static char buf[20][70000];
	struct leat_file *f;

	(void)state;
	assert_int_equal(leat_open(m, "um", O_RDWR | O_CREAT, 0600, &f), 0);
	for (size_t i = 0; i < ARRAY_SIZE(c); i++)
		assert_int_equal(leat_aio_pwrite(f, buf[i], sizeof(buf[i]), i * sizeof(buf[i]),
						 (struct leat_cb){ count_fn, &c[i], count_free }), 0);
	leat_umount(m);
	for (size_t i = 0; i < ARRAY_SIZE(c); i++)
		assert_true(c[i].fn == 1 && c[i].free == 1 && c[i].result == sizeof(buf[i]));
	m = leat_flow_mount(flow.tcp_url, NULL);
	assert_int_equal(leat_unlink(m, "um"), 0);
	leat_umount(m);
}

/* ---- the service thread ---- */

#define THREADS 4
#define ROUNDS leat_flow_fewer(60)

static struct leat *shared;
static atomic_uint callbacks;

static void count_callback(void *arg, int64_t result)
{
	(void)arg;
	/* waiting would be for ever here, so it is refused */
	if (result == 0 && leat_null(shared) == -EDEADLK)
		atomic_fetch_add(&callbacks, 1);
}

static void *worker(void *arg)
{
	unsigned id = (unsigned)(uintptr_t)arg, bad = 0;
	static _Thread_local char out[30000], in[30000];
	struct leat_file *f;
	struct leat_dir *d;
	struct leat_info info = { .size = sizeof(info) };
	uint64_t calls;
	struct stat st;
	char name[32];
	void *buf;

	for (unsigned i = 0; i < ROUNDS; i++) {
		snprintf(name, sizeof(name), "t%u-%u", id, i);
		leat_flow_fill(out, sizeof(out), id * 1000 + i);
		bad += leat_open(shared, name, O_RDWR | O_CREAT | O_EXCL, 0600, &f) != 0;
		if (bad)
			break;
		bad += leat_write(f, out, sizeof(out)) != sizeof(out);
		bad += leat_lseek(f, 0, SEEK_SET) != 0;
		for (size_t at = 0; at < sizeof(in); at += 5000)
			bad += leat_read(f, in + at, 5000) != 5000;
		bad += memcmp(in, out, sizeof(in)) != 0;
		bad += leat_fstat(f, &st) != 0 || st.st_size != sizeof(out);
		bad += leat_close(f) != 0;
		bad += leat_stat(shared, "/absent", &st) != -ENOENT;
		bad += !strstr(leat_error(shared), ": "); /* perhaps another thread's, but whole */
		bad += leat_aio_null(shared, (struct leat_cb){ count_callback, NULL, NULL }) != 0;
		bad += leat_opendir(shared, "/", &d) != 0;
		if (!bad)
			leat_closedir(d);
		bad += leat_unlink(shared, name) != 0;
		leat_info(shared, &info);
		bad += leat_stat_value(shared, "calls", &calls) != 0 || !calls;
		bad += leat_buf_alloc(leat_session(shared), 10000, &buf) != 0;
		leat_buf_free(leat_session(shared), buf);
		bad += leat_poll(leat_session(shared), 0) != -EBUSY;
	}
	return (void *)(uintptr_t)bad;
}

static void service_over(const char *url, const char *options)
{
	pthread_t threads[THREADS];

	shared = leat_flow_mount(url, options);
	atomic_store(&callbacks, 0);
	assert_int_equal(leat_service_start(leat_session(shared)), 0);
	assert_int_equal(leat_service_start(leat_session(shared)), -EALREADY);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, worker, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		void *bad;

		pthread_join(threads[i], &bad);
		assert_null(bad);
	}
	leat_service_stop(leat_session(shared));
	leat_service_stop(leat_session(shared));
	/* taken back: the caller's again */
	assert_int_equal(leat_null(shared), 0);
	while (atomic_load(&callbacks) < THREADS * ROUNDS)
		assert_true(leat_poll(leat_session(shared), 1000) >= 0);
	assert_int_equal(leat_service_start(leat_session(shared)), 0);
	assert_int_equal(leat_null(shared), 0);
	leat_umount(shared); /* stops it */
}

static void service_local(void **state)
{
	(void)state;
	service_over(flow.local_url, "conns=2");
}

static void service_tcp(void **state)
{
	(void)state;
	service_over(flow.tcp_url, NULL);
}

/* Handles that a restarted server still knows: those of the kernel, which need the privilege. */
static bool handles_survive(void)
{
	return !geteuid();
}

/* A server that goes and comes back: a hard mount goes on as if nothing had been, open files too;
 * but unstable writes may be lost, and the client reports that. */
static void server_restart(void **state)
{
	struct leat *m = leat_flow_mount(flow.tcp_url, NULL);
	struct leat_file *safe, *unsafe;
	struct leat_info i = { .size = sizeof(i) };
	char buf[8];

	(void)state;
	if (!handles_survive()) {
		leat_umount(m);
		skip();
	}
	assert_int_equal(leat_open(m, "safe", O_RDWR | O_CREAT, 0600, &safe), 0);
	assert_int_equal(leat_open(m, "unsafe", O_RDWR | O_CREAT, 0600, &unsafe), 0);
	assert_int_equal(leat_pwrite(safe, "before", 6, 0), 6);
	assert_int_equal(leat_fsync(safe), 0);
	assert_int_equal(leat_pwrite(unsafe, "before", 6, 0), 6);
	leat_flow_stop(&flow);
	leat_flow_start(&flow);
	assert_int_equal(leat_pread(safe, buf, sizeof(buf), 0), 6);
	assert_memory_equal(buf, "before", 6);
	assert_int_equal(leat_pwrite(safe, "after!", 6, 0), 6);
	assert_int_equal(leat_fsync(safe), 0);
	assert_int_equal(leat_close(safe), 0);
	assert_int_equal(leat_fsync(unsafe), -EIO);
	assert_non_null(strstr(leat_error(m), "lost"));
	assert_int_equal(leat_close(unsafe), -EIO);
	leat_info(m, &i);
	assert_true(i.reconnects >= 1);
	assert_int_equal(leat_unlink(m, "safe"), 0);
	assert_int_equal(leat_unlink(m, "unsafe"), 0);
	leat_umount(m);
}

/* ... in the middle of reading and writing. */
static void restart_in_mid_io(void **state)
{
	static char out[200][20000], in[20000];
	struct leat *m = leat_flow_mount(flow.local_url, "conns=2&credits=4");
	struct count c[200] = { 0 };
	struct leat_file *f;
	unsigned done = 0;

	(void)state;
	if (!handles_survive()) {
		leat_umount(m);
		skip();
	}
	assert_int_equal(leat_open(m, "mid", O_RDWR | O_CREAT | O_SYNC, 0600, &f), 0);
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		leat_flow_fill(out[i], sizeof(out[i]), (unsigned)i);
		assert_int_equal(leat_aio_pwrite(f, out[i], sizeof(out[i]), i * sizeof(out[i]),
						 (struct leat_cb){ count_fn, &c[i], count_free }), 0);
	}
	while (done < 50) {
		assert_true(leat_poll(leat_session(m), -1) >= 0);
		done = 0;
		for (size_t i = 0; i < ARRAY_SIZE(c); i++)
			done += c[i].fn;
	}
	leat_flow_stop(&flow);
	leat_flow_start(&flow);
	while (done < ARRAY_SIZE(c)) {
		assert_true(leat_poll(leat_session(m), -1) >= 0);
		done = 0;
		for (size_t i = 0; i < ARRAY_SIZE(c); i++)
			done += c[i].fn;
	}
	for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
		assert_int_equal(c[i].result, sizeof(out[i]));
		assert_int_equal(leat_pread(f, in, sizeof(in), i * sizeof(in)), sizeof(in));
		assert_memory_equal(in, out[i], sizeof(in));
	}
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_unlink(m, "mid"), 0);
	leat_umount(m);
}

static void soft_gives_up(void **state)
{
	struct leat *m = leat_flow_mount(flow.tcp_url, "retry=soft&timeo=1000");

	(void)state;
	leat_flow_stop(&flow);
	assert_int_equal(leat_null(m), -ETIMEDOUT);
	assert_non_null(strstr(leat_error(m), ": NULL: "));
	leat_flow_start(&flow);
	leat_umount(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(info),
		cmocka_unit_test(inner_paths),
		cmocka_unit_test(refusals),
		cmocka_unit_test(by_name),
		cmocka_unit_test(error_text),
		cmocka_unit_test(statistics),
		cmocka_unit_test(counters),
		cmocka_unit_test(info_sizes),
		cmocka_unit_test(describe),
		cmocka_unit_test(other_loop),
		cmocka_unit_test(refused_at_once),
		cmocka_unit_test(umount_waits),
		cmocka_unit_test(service_local),
		cmocka_unit_test(service_tcp),
		cmocka_unit_test(polling),
		cmocka_unit_test(reading_ahead),
		cmocka_unit_test(server_restart),
		cmocka_unit_test(restart_in_mid_io),
		cmocka_unit_test(soft_gives_up),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
