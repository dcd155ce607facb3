/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_leat_session.c - several mounts of one session: what they share, and what they do not
 */
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "inside.h"
#include "rpcrdma.h"
#include "test_leat_mount.h"

LOG_DEFINE("test_leat_session");

static struct leat *mount_in(struct leat_session *s, const char *base, const char *options)
{
	struct leat *m = NULL;
	char url[512];

	snprintf(url, sizeof(url), "%s%s%s", base, options ? "?" : "", options ? options : "");
	if (leat_session_mount(s, url, NULL, &m))
		fail_msg("%s", leat_error(NULL));
	return m;
}

static uint64_t conns_of_server(void)
{
	struct rpcrdma_stats s;

	rpcrdma_domain_stats(server_domain(flow.server), &s);
	return s.conns;
}

/* The connections of earlier tests are closed soon. */
static void await_no_conns(void)
{
	for (unsigned i = 0; i < 1000000 && conns_of_server(); i++)
		sched_yield();
	assert_int_equal(conns_of_server(), 0);
}

static uint64_t regs_of(struct leat *m)
{
	return leat_flow_stat(m, "regs");
}

static void write_file(struct leat *m, const char *path, unsigned seed)
{
	static char data[65536];
	struct leat_file *f;

	leat_flow_fill(data, sizeof(data), seed);
	assert_int_equal(leat_open(m, path, O_WRONLY | O_CREAT | O_TRUNC, 0600, &f), 0);
	assert_int_equal(leat_pwrite(f, data, sizeof(data), 0), sizeof(data));
	assert_int_equal(leat_close(f), 0);
}

static void read_file(struct leat *m, const char *path, unsigned seed, char *buf)
{
	static char want[65536];
	struct leat_file *f;

	leat_flow_fill(want, sizeof(want), seed);
	assert_int_equal(leat_open(m, path, O_RDONLY, 0, &f), 0);
	assert_int_equal(leat_pread(f, buf, sizeof(want), 0), sizeof(want));
	assert_memory_equal(buf, want, sizeof(want));
	assert_int_equal(leat_close(f), 0);
}

/* Mounts of one server share its connections if the settings are equal, and only then. */
static void connections(void **state)
{
	struct leat_session *s;
	struct leat *a, *b, *c, *d;

	(void)state;
	await_no_conns();
	assert_int_equal(leat_session_create(NULL, &s), 0);
	a = mount_in(s, flow.local_url, NULL);
	b = mount_in(s, flow.local_url, "readahead=0&cache=none&rsize=4096");
	assert_int_equal(conns_of_server(), 1);
	c = mount_in(s, flow.local_url, "credits=8");
	assert_int_equal(conns_of_server(), 2);
	d = mount_in(s, flow.local_url, "uid=1&gid=1");
	assert_int_equal(conns_of_server(), 3);
	assert_ptr_equal(leat_session(a), s);
	assert_ptr_equal(leat_session(d), s);
	write_file(a, "one", 1);
	/* the first mount ends; the connections are still those of the second */
	leat_umount(a);
	assert_int_equal(leat_null(b), 0);
	assert_int_equal(leat_session_free(s), -EBUSY);
	assert_int_equal(leat_unlink(b, "one"), 0);
	leat_umount(b);
	leat_umount(c);
	leat_umount(d);
	assert_int_equal(leat_session_free(s), 0);
	assert_int_equal(leat_session_free(NULL), 0);
}

/* A private session ends with its mount; two of them have nothing in common. */
static void private_sessions(void **state)
{
	struct leat *a, *b;

	(void)state;
	await_no_conns();
	a = leat_flow_mount(flow.local_url, NULL);
	b = leat_flow_mount(flow.local_url, NULL);
	assert_int_equal(conns_of_server(), 2);
	assert_ptr_not_equal(leat_session(a), leat_session(b));
	assert_int_equal(leat_session_free(leat_session(a)), -EBUSY);
	assert_int_equal(leat_null(a), 0);
	leat_umount(a);
	assert_int_equal(leat_null(b), 0);
	leat_umount(b);
}

/* Two mounts that read into one buffer register it once: they share the connection, or its cache of registrations. */
static void one_registration(void **state)
{
	static const struct {
		const char *first, *second;
		bool own_memory;
	} ways[] = {
		{ "registration=slab", "registration=slab&rsize=8192", false },
		{ "registration=cache&bounce=0", "registration=cache&bounce=0&rsize=8192", true },
		{ "registration=cache&bounce=0", "registration=cache&bounce=0&credits=8", true },
	};
	struct leat_session *s;
	struct leat *a, *b;
	uint64_t regs;
	void *buf, *warm;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		assert_int_equal(leat_session_create(NULL, &s), 0);
		a = mount_in(s, flow.local_url, ways[i].first);
		b = mount_in(s, flow.local_url, ways[i].second);
		write_file(a, "reg", 2);
		/* memory for messages and the like, first */
		assert_int_equal(leat_buf_alloc(s, 65536, &warm), 0);
		read_file(b, "reg", 2, warm);
		regs = regs_of(a);
		if (ways[i].own_memory)
			assert_int_equal(posix_memalign(&buf, 4096, 65536), 0);
		else
			assert_int_equal(leat_buf_alloc(s, 65536, &buf), 0);
		read_file(a, "reg", 2, buf);
		assert_int_equal(regs_of(a), regs + 1);
		read_file(b, "reg", 2, buf);
		read_file(a, "reg", 2, buf);
		assert_int_equal(regs_of(b), regs + 1);
		assert_int_equal(leat_unlink(a, "reg"), 0);
		if (ways[i].own_memory)
			free(buf);
		else
			leat_buf_free(s, buf);
		leat_buf_free(s, warm);
		leat_umount(a);
		leat_umount(b);
		assert_int_equal(leat_session_free(s), 0);
	}
}

/* Settings of the session that the URL contradicts are refused, with their name. */
static void conflicts(void **state)
{
	static const char *const options[] = { "poll=busy", "spin=7us", "unsafe_inv=yes", "registration=arena",
						 "threads=2" };
	static const char *const names[] = { "poll", "spin", "unsafe_inv", "registration", "threads" };
	static const struct { const char *name, *value; } named[] = { { "capture", "none.pcap" }, { "reg_cost", "1us" } };
	struct leat_session *s;
	struct leat *m = NULL, *own;
	char url[256];

	(void)state;
	assert_int_equal(leat_session_create(NULL, &s), 0);
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		snprintf(url, sizeof(url), "%s?%s", flow.local_url, options[i]);
		assert_int_equal(leat_session_mount(s, url, NULL, &m), -EINVAL);
		assert_non_null(strstr(leat_error(NULL), names[i]));
		assert_non_null(strstr(leat_error(NULL), "session"));
	}
	for (size_t i = 0; i < ARRAY_SIZE(named); i++) {
		struct leat_opts *o = leat_opts_create();

		assert_int_equal(leat_set(o, named[i].name, named[i].value), 0);
		assert_int_equal(leat_session_mount(s, flow.local_url, o, &m), -EINVAL);
		assert_non_null(strstr(leat_error(NULL), named[i].name));
		leat_opts_destroy(o);
	}
	assert_null(m);
	snprintf(url, sizeof(url), "%s/none", flow.dir);
	assert_int_equal(leat_session_mount(s, url, NULL, &m), -EINVAL);
	assert_int_equal(leat_session_mount(s, "tcp://127.0.0.1:1/x", NULL, &m), -ECONNREFUSED);
	assert_int_equal(leat_session_mount(NULL, flow.local_url, NULL, &m), -EINVAL);
	/* a private session ends with its only mount */
	own = leat_flow_mount(flow.local_url, NULL);
	assert_int_equal(leat_session_mount(leat_session(own), flow.local_url, NULL, &m), -EINVAL);
	assert_non_null(strstr(leat_error(NULL), "session"));
	leat_umount(own);
	assert_null(m);
	/* what failed has left nothing behind */
	assert_int_equal(leat_session_free(s), 0);
}

/* Buffers belong to their session, which stays until they have been freed. */
static void buffers_left(void **state)
{
	static uint8_t own[4096];
	struct leat_session *s;
	void *mem;

	(void)state;
	assert_int_equal(leat_session_create(NULL, &s), 0);
	assert_int_equal(leat_buf_alloc(s, 4096, &mem), 0);
	assert_int_equal(leat_session_free(s), -EBUSY);
	leat_buf_free(s, mem);
	assert_int_equal(leat_buf_register(s, own, sizeof(own)), 0);
	assert_int_equal(leat_session_free(s), -EBUSY);
	assert_int_equal(leat_buf_unregister(s, own), 0);
	assert_int_equal(leat_session_free(s), 0);
}

/* One loop completes the operations of all mounts. */
static void one_loop(void **state)
{
	struct count c[3] = { 0 };
	struct leat_session *s;
	struct leat *a, *b;

	(void)state;
	assert_int_equal(leat_session_create(NULL, &s), 0);
	a = mount_in(s, flow.local_url, NULL);
	b = mount_in(s, flow.tcp_url, NULL);
	assert_int_equal(leat_aio_null(a, (struct leat_cb){ count_fn, &c[0], count_free }), 0);
	assert_int_equal(leat_aio_null(b, (struct leat_cb){ count_fn, &c[1], count_free }), 0);
	while (!c[0].free || !c[1].free)
		assert_true(leat_poll(s, 1000) >= 0);
	assert_int_equal(c[0].result, 0);
	assert_int_equal(c[1].result, 0);
	/* waiting for one mount runs the callbacks of the other */
	assert_int_equal(leat_aio_null(a, (struct leat_cb){ count_fn, &c[2], count_free }), 0);
	while (!c[2].free)
		assert_int_equal(leat_null(b), 0);
	assert_int_equal(c[2].result, 0);
	leat_umount(a);
	leat_umount(b);
	assert_int_equal(leat_session_free(s), 0);
}

#define THREADS 4
#define ROUNDS 25

static struct leat_session *served;

static void *mount_and_work(void *arg)
{
	unsigned id = (unsigned)(uintptr_t)arg;
	uintptr_t bad = 0;
	char name[32];

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct leat *m = NULL;
		struct stat st;

		snprintf(name, sizeof(name), "d%u-%u", id, i);
		if (leat_session_mount(served, i % 2 ? flow.local_url : flow.tcp_url, NULL, &m))
			return (void *)(uintptr_t)1;
		bad += leat_mkdir(m, name, 0700) != 0;
		bad += leat_stat(m, name, &st) != 0;
		bad += leat_aio_rmdir(m, name, (struct leat_cb){ NULL, NULL, NULL }) != 0;
		leat_umount(m); /* waits for it */
	}
	return (void *)bad;
}

/* With the service thread, any thread mounts and unmounts, beside the others. */
static void served_mounts(void **state)
{
	pthread_t threads[THREADS];
	struct leat *m;

	(void)state;
	assert_int_equal(leat_session_create(NULL, &served), 0);
	m = mount_in(served, flow.local_url, NULL);
	assert_int_equal(leat_service_start(served), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, mount_and_work, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		void *bad;

		pthread_join(threads[i], &bad);
		assert_null(bad);
	}
	assert_int_equal(leat_null(m), 0);
	assert_int_equal(leat_session_free(served), -EBUSY);
	assert_int_equal(leat_null(m), 0);
	leat_umount(m); /* the service thread goes on without mounts */
	m = mount_in(served, flow.local_url, NULL);
	leat_umount(m);
	assert_int_equal(leat_session_free(served), 0);
}

/* ---- additional threads ---- */

#define PARTS 64
#define PART_BYTES 300000

/* Data goes over all connections, on several threads; callbacks run on the session's. */
static void threads_over(const char *url, bool cancel)
{
	static char out[PARTS][PART_BYTES], in[PARTS][PART_BYTES];
	struct count c[PARTS] = { 0 };
	struct leat *m = leat_flow_mount(url, "threads=3&conns=4&wsize=64k&rsize=64k");
	struct leat_info info = { .size = sizeof(info) };
	struct leat_file *f;
	unsigned done = 0;

	assert_int_equal(leat_info(m, &info), 0);
	assert_int_equal(info.conns, 4);
	assert_int_equal(leat_open(m, "many", O_RDWR | O_CREAT, 0600, &f), 0);
	for (unsigned i = 0; i < PARTS; i++) {
		leat_flow_fill(out[i], PART_BYTES, i);
		assert_int_equal(leat_aio_pwrite(f, out[i], PART_BYTES, (uint64_t)i * PART_BYTES,
						 (struct leat_cb){ count_fn, &c[i], count_free }), 0);
		if (cancel && i % 3 == 1)
			(void)leat_cancel(m, &c[i - 1]);
	}
	if (cancel)
		(void)leat_cancel_all(m);
	for (; done < PARTS; done = 0) {
		assert_true(leat_poll(leat_session(m), 1000) >= 0);
		while (done < PARTS && c[done].free)
			done++;
		if (done == PARTS)
			break;
	}
	for (unsigned i = 0; i < PARTS; i++) {
		assert_int_equal(c[i].fn, 1);
		if (c[i].result < 0)
			assert_true(cancel && (c[i].result == -ECANCELED || c[i].result == -EINPROGRESS));
		else
			assert_true(cancel || c[i].result == PART_BYTES);
	}
	for (unsigned i = 0; i < PARTS && !cancel; i++) {
		assert_int_equal(leat_pread(f, in[i], PART_BYTES, (uint64_t)i * PART_BYTES), PART_BYTES);
		assert_memory_equal(in[i], out[i], PART_BYTES);
	}
	assert_int_equal(leat_fsync(f), 0);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_unlink(m, "many"), 0);
	leat_umount(m);
}

static void threads(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		threads_over(flow.local_url, i);
		threads_over(flow.tcp_url, i);
	}
}

/* ---- children ---- */

/* Return: 0, or the line of the first check that failed: cmocka runs in the parent only. */
#define CHECK(what)                    \
	do {                           \
		if (!(what))           \
			return __LINE__; \
	} while (0)

/* A mount of the child's own, with data that moves by messages and data that does not. */
static int mount_in_child(const char *url)
{
	static char out[65536], in[65536];
	struct leat_file *f;
	struct leat *own;

	leat_flow_fill(out, sizeof(out), 7);
	CHECK(!leat_mount(url, NULL, &own));
	CHECK(!leat_open(own, "of a child", O_RDWR | O_CREAT, 0600, &f));
	CHECK(leat_pwrite(f, out, sizeof(out), 0) == (ssize_t)sizeof(out));
	CHECK(leat_pread(f, in, sizeof(in), 0) == (ssize_t)sizeof(in) && !memcmp(in, out, sizeof(in)));
	CHECK(leat_pread(f, in, 16, 99) == 16 && !memcmp(in, out + 99, 16));
	CHECK(!leat_close(f) && !leat_unlink(own, "of a child"));
	leat_umount(own);
	return 0;
}

static int use_in_child(struct leat *m, struct leat_file *f, struct leat_dir *d, struct leat_node *n)
{
	struct count c = { 0 };
	struct leat_cb cb = { count_fn, &c, count_free };
	const struct leat_dirent *e;
	struct leat_node *n2;
	struct leat *own;
	uint64_t calls;
	struct stat st;
	char buf[16];
	void *mem;

	CHECK(leat_stat(m, "/", &st) == -EOWNERDEAD);
	CHECK(leat_aio_stat(m, "/", &st, cb) == -EOWNERDEAD && !c.fn && c.free == 1);
	CHECK(leat_pread(f, buf, sizeof(buf), 0) == -EOWNERDEAD);
	CHECK(leat_aio_pread(f, buf, sizeof(buf), 0, cb) == -EOWNERDEAD && c.free == 2);
	CHECK(leat_read(f, buf, sizeof(buf)) == -EOWNERDEAD);
	CHECK(leat_readdir(d, &e) == -EOWNERDEAD);
	CHECK(leat_rewinddir(d) == -EOWNERDEAD && leat_fchdir(m, f) == -EOWNERDEAD);
	CHECK(leat_stat_value(m, "calls", &calls) == -EOWNERDEAD);
	CHECK(leat_node_getattr(n, "", &st) == -EOWNERDEAD);
	CHECK(leat_node_export(n, buf, sizeof(buf)) == -EOWNERDEAD && leat_node_export(n, NULL, 0) == -EOWNERDEAD);
	CHECK(leat_node_import(m, buf, sizeof(buf), &n2) == -EOWNERDEAD);
	CHECK(leat_buf_alloc(leat_session(m), 4096, &mem) == -EOWNERDEAD);
	CHECK(leat_fd(leat_session(m)) == -EOWNERDEAD && leat_poll(leat_session(m), 0) == -EOWNERDEAD);
	CHECK(leat_service_start(leat_session(m)) == -EOWNERDEAD);
	CHECK(leat_cancel_all(m) == -EOWNERDEAD);
	CHECK(leat_session_mount(leat_session(m), flow.tcp_url, NULL, &own) == -EOWNERDEAD);
	CHECK(strstr(leat_error(m), "parent"));
	leat_interrupt(m);
	leat_node_put(n);
	leat_closedir(d);
	CHECK(leat_close(f) == -EOWNERDEAD);
	CHECK(leat_umount_within(m, -1) == -EOWNERDEAD);
	CHECK(!mount_in_child(flow.local_url) && !mount_in_child(flow.tcp_url));
	return 0;
}

static void fork_with(bool service)
{
	struct leat *m = leat_flow_mount(flow.local_url, NULL), *tcp = leat_flow_mount(flow.tcp_url, NULL);
	const struct leat_dirent *e;
	struct leat_file *f;
	struct leat_node *n;
	struct leat_dir *d;
	int status, go[2];
	char byte = 0;
	pid_t pid;

	write_file(m, "forked", 3);
	assert_int_equal(leat_open(m, "forked", O_RDWR, 0, &f), 0);
	assert_int_equal(leat_opendir(m, "/", &d), 0);
	assert_int_equal(leat_readdir(d, &e), 1);
	assert_int_equal(leat_node_get(m, "forked", &n), 0);
	if (service)
		assert_int_equal(leat_service_start(leat_session(m)), 0);
	assert_int_equal(pipe(go), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		int line = use_in_child(m, f, d, n);

		leat_umount(tcp);
		if (line) {
			fprintf(stderr, "line %d fails in the child\n", line);
			_exit(1);
		}
		if (write(go[1], &byte, 1) != 1)
			_exit(3);
		pause(); /* until it is killed: it lives longer than the parent's connections */
		_exit(2);
	}
	close(go[1]);
	assert_int_equal(read(go[0], &byte, 1), 1);
	close(go[0]);
	/* the child has disturbed nothing */
	assert_int_equal(leat_null(m), 0);
	assert_int_equal(leat_null(tcp), 0);
	assert_int_equal(leat_pwrite(f, "x", 1, 0), 1);
	leat_node_put(n);
	leat_closedir(d);
	assert_int_equal(leat_close(f), 0);
	assert_int_equal(leat_unlink(m, "forked"), 0);
	leat_umount(m);
	leat_umount(tcp);
	await_no_conns();
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void children(void **state)
{
	(void)state;
#ifdef __SANITIZE_THREAD__
	print_message("the thread sanitizer ends a child that starts threads\n");
	skip();
#endif
	await_no_conns();
	fork_with(false);
	fork_with(true);
}

/* The parent has no mount any more, but what it opened for the first one may still be there. */
static void child_of_former_mounts(void **state)
{
	const char *const urls[] = { flow.local_url, flow.tcp_url };
	int status;
	pid_t pid;

	(void)state;
#ifdef __SANITIZE_THREAD__
	print_message("the thread sanitizer ends a child that starts threads\n");
	skip();
#endif
	for (unsigned i = 0; i < ARRAY_SIZE(urls); i++) {
		leat_umount(leat_flow_mount(urls[i], NULL));
		pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			int line = mount_in_child(urls[i]);

			if (line)
				fprintf(stderr, "line %d fails in the child\n", line);
			_exit(line != 0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

/* A process that mounts, and ends; its child has closed the handle, says so at @up, and lives until the other end of
 * @down is closed. */
static void end_before_child(const char *url, int up, int down)
{
	struct leat *m;
	char byte = 0;
	pid_t pid;

	if (leat_mount(url, NULL, &m)) {
		fprintf(stderr, "%s\n", leat_error(NULL));
		_exit(1);
	}
	pid = fork();
	if (!pid) {
		leat_umount(m);
		if (write(up, &byte, 1) == 1)
			_exit(read(down, &byte, 1) != 0);
	}
	_exit(pid <= 0);
}

/* The server notices the end of the parent. */
static void children_left(void **state)
{
	const char *const urls[] = { flow.local_url, flow.tcp_url };

	(void)state;
#ifdef __SANITIZE_THREAD__
	print_message("the thread sanitizer ends a child that starts threads\n");
	skip();
#endif
	for (unsigned i = 0; i < ARRAY_SIZE(urls); i++) {
		int up[2], down[2], status;
		char byte = 0;
		pid_t pid;

		assert_int_equal(pipe(up), 0);
		assert_int_equal(pipe(down), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			close(down[1]);
			end_before_child(urls[i], up[1], down[0]);
		}
		close(up[1]);
		close(down[0]);
		assert_int_equal(read(up[0], &byte, 1), 1);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		await_no_conns();
		close(up[0]);
		close(down[1]);
	}
}

/* The child has closed what it inherited, and opened something with the number of the session's descriptor. */
static int umount_after_reuse(struct leat *m, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int pair[2], own = epoll_create1(EPOLL_CLOEXEC);

	CHECK(own >= 0 && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	CHECK(!epoll_ctl(own, EPOLL_CTL_ADD, pair[0], &ev));
	CHECK(dup2(own, fd) == fd);
	leat_umount(m);
	CHECK(fcntl(pair[0], F_GETFD) >= 0);
	return 0;
}

static void child_reuses_numbers(void **state)
{
	struct leat *m = leat_flow_mount(flow.tcp_url, NULL);
	int status, fd = leat_fd(leat_session(m));
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid)
		_exit(umount_after_reuse(m, fd) != 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(leat_null(m), 0);
	leat_umount(m);
}

/* ---- idle mounts ---- */

#define MANY 64

/* The server is in this process, too: what it keeps for a mount counts as well. */
static void idle_mounts(void **state)
{
	struct leat_session *s;
	struct leat *v[MANY];
	size_t before, bytes;

	(void)state;
	if (!mallinfo2().uordblks) {
		print_message("this allocator does not count its bytes\n");
		skip();
	}
	await_no_conns(); /* of tests before, whose memory would be freed meanwhile */
	assert_int_equal(leat_session_create(NULL, &s), 0);
	v[0] = mount_in(s, flow.local_url, NULL);
	before = mallinfo2().uordblks;
	for (size_t i = 1; i < MANY; i++)
		v[i] = mount_in(s, flow.local_url, NULL);
	bytes = mallinfo2().uordblks;
	bytes = bytes > before ? (bytes - before) / (MANY - 1) : 0;
	print_message("%zu KiB for each idle mount\n", bytes / 1024);
	assert_true(bytes <= (size_t)64 * 1024);
	for (size_t i = 0; i < MANY; i++)
		leat_umount(v[i]);
	assert_int_equal(leat_session_free(s), 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(connections),
	cmocka_unit_test(private_sessions),
	cmocka_unit_test(one_registration),
	cmocka_unit_test(conflicts),
	cmocka_unit_test(buffers_left),
	cmocka_unit_test(one_loop),
	cmocka_unit_test(served_mounts),
	cmocka_unit_test(threads),
	cmocka_unit_test(children),
	cmocka_unit_test(child_of_former_mounts),
	cmocka_unit_test(children_left),
	cmocka_unit_test(child_reuses_numbers),
	cmocka_unit_test(idle_mounts),
};

int main(void)
{
	return cmocka_run_group_tests(tests, setup, teardown);
}
