/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_monitor_refused.c - memory that cannot be watched, children, and monitors that refuse to watch
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "monitor.c"
#include "test_monitor_notes.h"

/* ---- what cannot be watched ---- */

static void assert_unwatchable(uint8_t *p, size_t pages, int rc)
{
	assert_int_equal(rr_monitor_watch(m, (uintptr_t)p, (uintptr_t)p + pages * PAGE), rc);
}

static void file_over(uint8_t *at, int flags)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, PAGE), 0);
	assert_ptr_equal(mmap(at, PAGE, RW, flags | MAP_FIXED, fd, 0), at);
	at[0] = 1; /* a private one has an anonymous page now, and loses it with the file's */
	close(fd);
}

/* of every kind one, alone and between two pages that could be watched */
static void only_private_memory(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint8_t *p;

	(void)state;
	for (int kind = 0; kind < 6; kind++) {
		p = map_pages(3);
		switch (kind) {
		case 0:
			unmap_pages(p + PAGE, 1);
			break;
		case 1:
			file_over(p + PAGE, MAP_SHARED);
			break;
		case 2:
			file_over(p + PAGE, MAP_PRIVATE);
			break;
		case 3:
			assert_ptr_equal(mmap(p + PAGE, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED,
					      fd, 0), p + PAGE);
			break;
		case 4:
			assert_ptr_equal(mmap(p + PAGE, PAGE, RW,
					      MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
					 p + PAGE);
			break;
		default:
			assert_int_equal(munmap(p, 3 * PAGE), 0);
		}
		assert_unwatchable(p + PAGE, 1, -EINVAL);
		assert_unwatchable(p, 3, -EINVAL);
		unmap_pages(p, 3);
	}
	assert_unwatchable(NULL, 1, -EINVAL);
	assert_unwatchable((uint8_t *)(UINTPTR_MAX & ~(PAGE - 1)), 0, -EINVAL);
	assert_int_equal(rr_monitor_watch(m, UINTPTR_MAX - 1, UINTPTR_MAX), -EINVAL);
	close(fd);
}

static void read_only_memory(void **state)
{
	uint8_t *p = map_pages(2);

	(void)state;
	assert_int_equal(mprotect(p, 2 * PAGE, PROT_READ), 0);
	keep(p, 2 * PAGE);
	unmap_pages(p, 2);
	assert_false(is_kept());
}

static void another_watches(void **state)
{
	struct rr_monitor other = { .page = PAGE };
	uint8_t *p = map_pages(2);
	struct uffdio_register reg = { .range = { (uintptr_t)p, PAGE },
				       .mode = UFFDIO_REGISTER_MODE_WP };

	(void)state;
	assert_int_equal(open_uffd(&other), 0);
	assert_int_equal(ioctl(other.uffd, UFFDIO_REGISTER, &reg), 0);
	assert_unwatchable(p, 2, -EBUSY);
	keep(p + PAGE, PAGE);
	close(other.uffd); /* with it its watch ends */
	keep(p, 2 * PAGE);
	unmap_pages(p, 2);
	assert_false(is_kept());
}

/* ---- other processes, and refusals ---- */

/* In a child: @fn, whose false is a failure. */
static void in_child(bool (*fn)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		alarm(30); /* whatever waits for a thread that is not there waits for ever */
		_exit(fn() ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static uint8_t *shared_with_child;

static bool child_is_alone(void)
{
	uint8_t *p = shared_with_child;
	struct rr_monitor *parents = m;

	if (!rr_monitor_is_off(m) || rr_monitor_watch(m, (uintptr_t)p, (uintptr_t)p + PAGE) != -EINVAL)
		return false;
	rr_monitor_lock(m); /* held by the parent */
	if (rr_monitor_settle(m))
		return false;
	rr_monitor_unwatch(m, (uintptr_t)p, (uintptr_t)p + PAGE);
	rr_monitor_del(m, &user);
	rr_monitor_unlock(m);
	munmap(p, PAGE); /* this would block for ever if it were watched */
	rr_monitor_put(m);
	if (set_up(NULL) || m == parents || rr_monitor_is_off(m))
		return false;
	p = map_pages(1);
	keep(p, PAGE);
	munmap(p, PAGE);
	if (is_kept())
		return false;
	return tear_down(NULL) == 0;
}

static void a_child_is_not_watched(void **state)
{
	(void)state;
	shared_with_child = map_pages(1);
	keep(shared_with_child, PAGE);
	rr_monitor_lock(m);
	in_child(child_is_alone);
	rr_monitor_unlock(m);
	assert_true(is_kept());
	unmap_pages(shared_with_child, 1);
	assert_false(is_kept());
}

static bool child_has_no_descriptor(void)
{
	return fcntl(m->uffd, F_GETFD) < 0 && fcntl(m->maps, F_GETFD) < 0 &&
	       fcntl(m->stop, F_GETFD) < 0 && rr_monitor_is_off(m);
}

/* A child that lives on does not keep the monitor alive, as the child has no thread to serve it. */
static void a_child_inherits_nothing(void **state)
{
	(void)state;
	in_child(child_has_no_descriptor);
	shared_with_child = map_pages(1);
	keep(shared_with_child, PAGE); /* ours is open */
	unmap_pages(shared_with_child, 1);
	assert_false(is_kept());
}

/* From now on system call @nr, with @arg1 as its second argument unless that is 0, fails with @error. */
static bool refuse(int nr, unsigned arg1, int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, arg1, 0, arg1 ? 1 : 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { ARRAY_SIZE(code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog)) {
		fprintf(stderr, "no seccomp filters here\n");
		return false;
	}
	return true;
}

static bool refused_eperm(void)
{
	return refuse(SYS_userfaultfd, 0, EPERM) && rr_monitor_get(&m) == -EPERM;
}

static bool refused_enosys(void)
{
	return refuse(SYS_userfaultfd, 0, ENOSYS) && rr_monitor_get(&m) == -ENOSYS;
}

/* ... one that does not know the flag */
static bool refused_einval(void)
{
	return refuse(SYS_userfaultfd, 0, EINVAL) && rr_monitor_get(&m) == -ENOSYS;
}

static void refusals(void **state)
{
	(void)state;
	in_child(refused_eperm);
	in_child(refused_enosys);
	in_child(refused_einval);
}

static bool by_text(void)
{
	if (set_up(NULL) || !refuse(SYS_ioctl, QUERY, ENOTTY))
		return false;
	only_private_memory(NULL);
	read_only_memory(NULL);
	return tear_down(NULL) == 0;
}

static void an_older_kernel(void **state)
{
	(void)state;
	in_child(by_text);
}

static void lines_of_mappings(void **state)
{
	static const struct {
		const char *line;
		bool ok, anonymous;
	} lines[] = {
		{ "7f0000001000-7f0000003000 rw-p 00000000 00:00 0 ", true, true },
		{ "7f0000001000-7f0000003000 rw-p 00000000 00:00 0", true, true },
		{ "7f0000001000-7f0000003000 ---p 00000000 00:00 0       [heap]", true, true },
		{ "7f0000001000-7f0000003000 rw-s 00000000 00:00 0 ", true, false },
		{ "7f0000001000-7f0000003000 rw-p 00000000 00:01 4711 /memfd:x (deleted)", true, false },
		{ "7f0000001000-7f0000003000 rw-p 00000000 fe:00 12 /x", true, false },
		{ "7f0000001000-7f0000003000 rw-p 00000000 00:00 12 /x", true, false },
		{ "7f0000001000", false, false },
		{ "7f0000001000-7f0000003000 rw-p 0000", false, false },
		{ "7f0000001000-7f0000003000", false, false },
		{ "", false, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct mapping map;

		assert_int_equal(parse_mapping(lines[i].line, &map), lines[i].ok);
		if (!lines[i].ok)
			continue;
		assert_int_equal(map.start, 0x7f0000001000);
		assert_int_equal(map.end, 0x7f0000003000);
		assert_int_equal(map.anonymous, lines[i].anonymous);
	}
}

/* A program may close all descriptors that it does not know, or use their numbers. */
static bool closed_behind_our_back(void)
{
	uint8_t *p = map_pages(2);

	if (set_up(NULL))
		return false;
	keep(p, PAGE);
	close(m->uffd);
	if (is_kept() || !rr_monitor_is_off(m))
		return false;
	unmap_pages(p, 2); /* and no thread blocks for ever */
	return tear_down(NULL) == 0;
}

static bool another_file_in_its_place(void)
{
	uint8_t *p = map_pages(2);
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (set_up(NULL))
		return false;
	keep(p, PAGE);
	if (dup2(fd, m->uffd) < 0 || is_kept() || !rr_monitor_is_off(m))
		return false;
	unmap_pages(p, 2);
	return tear_down(NULL) == 0;
}

static void descriptors_of_others(void **state)
{
	(void)state;
	in_child(closed_behind_our_back);
	in_child(another_file_in_its_place);
}

static void one_for_all(void **state)
{
	struct rr_monitor *a, *b;
	uint8_t *p = map_pages(1);

	(void)state;
	assert_int_equal(rr_monitor_get(&a), 0);
	assert_int_equal(rr_monitor_get(&b), 0);
	assert_ptr_equal(a, b);
	rr_monitor_put(a);
	m = b;
	assert_int_equal(rr_monitor_watch(m, (uintptr_t)p, (uintptr_t)p + 1), 0);
	rr_monitor_put(b);
	unmap_pages(p, 1); /* not watched any more */
	assert_int_equal(rr_monitor_get(&a), 0);
	assert_true(fcntl(a->uffd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(a->stop, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(a->maps, F_GETFD) & FD_CLOEXEC);
	rr_monitor_put(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_USER(only_private_memory),
		WITH_USER(read_only_memory),
		WITH_USER(another_watches),
		WITH_USER(a_child_is_not_watched),
		WITH_USER(a_child_inherits_nothing),
		cmocka_unit_test(refusals),
		cmocka_unit_test(an_older_kernel),
		cmocka_unit_test(lines_of_mappings),
		cmocka_unit_test(descriptors_of_others),
		cmocka_unit_test(one_for_all),
	};
	const struct CMUnitTest without[] = {
		cmocka_unit_test(refusals),
		cmocka_unit_test(lines_of_mappings),
	};

	if (!kernel_has_uffd())
		return cmocka_run_group_tests(without, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
