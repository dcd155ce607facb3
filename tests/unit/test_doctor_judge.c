/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * test_doctor_judge.c - what leat doctor makes of /proc and /sys: the parsers and the rules
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/tools/doctor/doctor_judge.c"

static void numbers(void **state)
{
	static const char *const bad[] = { "", "-1", " 1", "0x10", "1 2", "max",
					   "18446744073709551616" };
	uint64_t n = 77;

	(void)state;
	assert_true(doctor_number("0", &n));
	assert_int_equal(n, 0);
	assert_true(doctor_number("65536\n", &n));
	assert_int_equal(n, 65536);
	n = 77;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(doctor_number(bad[i], &n));
	assert_int_equal(n, 77);
}

static void choices(void **state)
{
	char buf[8];

	(void)state;
	assert_string_equal(doctor_choice("always [madvise] never", buf, sizeof(buf)), "madvise");
	assert_string_equal(doctor_choice("[never]", buf, sizeof(buf)), "never");
	assert_string_equal(doctor_choice("always never", buf, sizeof(buf)), "");
	assert_string_equal(doctor_choice("always [never", buf, sizeof(buf)), "");
	assert_string_equal(doctor_choice("[within_size]", buf, sizeof(buf)), "within_"); /* cut */
}

static void capabilities(void **state)
{
	static const char status[] = "Name:\tleat\nCapPrm:\tffffffffffffffff\n"
				     "CapEff:\t0000000000084000\nCapBnd:\tffffffffffffffff\n";

	(void)state;
	assert_true(doctor_has_cap(status, DOCTOR_CAP_IPC_LOCK));
	assert_true(doctor_has_cap(status, DOCTOR_CAP_SYS_PTRACE));
	assert_false(doctor_has_cap(status, 0));
	assert_false(doctor_has_cap(status, 64));
	assert_false(doctor_has_cap("Name:\tCapEff:\n", DOCTOR_CAP_IPC_LOCK));
	assert_false(doctor_has_cap("", DOCTOR_CAP_IPC_LOCK));
}

static void smaps(void **state)
{
	static const char text[] =
		"7f0000000000-7f0000200000 rw-p 00000000 00:00 0 \n"
		"Size:               2048 kB\nAnonHugePages:         0 kB\nVmFlags: rd wr\n"
		"7f0000400000-7f0000800000 rw-p 00000000 00:00 0 [heap]\n"
		"Size:               4096 kB\nAnonHugePages:      2048 kB\nVmFlags: rd wr\n";
	uint64_t kib = 77;

	(void)state;
	assert_true(doctor_smaps_kib(text, 0x7f0000400000, "AnonHugePages", &kib));
	assert_int_equal(kib, 2048);
	assert_true(doctor_smaps_kib(text, 0x7f00007fffff, "Size", &kib));
	assert_int_equal(kib, 4096);
	assert_true(doctor_smaps_kib(text, 0x7f0000000000, "AnonHugePages", &kib));
	assert_int_equal(kib, 0);
	kib = 77;
	assert_false(doctor_smaps_kib(text, 0x7f0000200000, "AnonHugePages", &kib)); /* between */
	assert_false(doctor_smaps_kib(text, 0x7f0000400000, "AnonHuge", &kib));
	assert_false(doctor_smaps_kib("", 0, "Size", &kib));
	assert_int_equal(kib, 77);
}

static void devices(void **state)
{
	static const struct {
		const char *gid, *text;
	} good[] = {
		{ "0000:0000:0000:0000:0000:ffff:0a4d:0001", "10.77.0.1" },
		{ "fd77:0000:0000:0000:0000:0000:0000:0001", "fd77::1" },
	};
	static const char *const bad[] = {
		"0000:0000:0000:0000:0000:0000:0000:0000",
		"fe80:0000:0000:0000:5054:00ff:fe12:3456", "", "0000:0000", "10.0.0.1",
	};
	char buf[64];

	(void)state;
	assert_string_equal(doctor_state("4: ACTIVE"), "ACTIVE");
	assert_string_equal(doctor_state("DOWN"), "DOWN");
	assert_string_equal(doctor_state(""), "");
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_true(doctor_gid(good[i].gid, buf, sizeof(buf)));
		assert_string_equal(buf, good[i].text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(doctor_gid(bad[i], buf, sizeof(buf)));
	assert_int_equal(doctor_roce_mtu(9000), 4096);
	assert_int_equal(doctor_roce_mtu(4192), 4096);
	assert_int_equal(doctor_roce_mtu(4191), 2048);
	assert_int_equal(doctor_roce_mtu(1500), 1024);
	assert_int_equal(doctor_roce_mtu(351), 0);
}

static void memlock(void **state)
{
	static const struct {
		uint64_t limit;
		bool privileged, device;
		enum doctor_verdict verdict;
		const char *words;
	} cases[] = {
		{ 0, true, true, DOCTOR_OK, "CAP_IPC_LOCK" },
		{ DOCTOR_UNLIMITED, false, true, DOCTOR_OK, "no limit" },
		{ 65536, false, false, DOCTOR_OK, "no such device" },
		{ MEMLOCK_SERVER, false, true, DOCTOR_OK, "320 MiB" },
		{ MEMLOCK_SERVER - 1, false, true, DOCTOR_SLOWER, "not for leatd" },
		{ MEMLOCK_CLIENT, false, true, DOCTOR_SLOWER, "ulimit -l unlimited" },
		{ MEMLOCK_CLIENT - 1, false, true, DOCTOR_SLOWER, "may fail over RDMA" },
		{ MEMLOCK_CONNECT, false, true, DOCTOR_SLOWER, "LimitMEMLOCK=infinity" },
		{ MEMLOCK_CONNECT - 1, false, true, DOCTOR_MISSING, "too little for RDMA" },
	};
	struct doctor_finding f;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		doctor_judge_memlock(cases[i].limit, cases[i].privileged, cases[i].device, &f);
		assert_int_equal(f.verdict, cases[i].verdict);
		assert_non_null(strstr(f.text, cases[i].words));
		assert_true(strlen(f.text) < sizeof(f.text) - 1);
	}
}

static void other_rules(void **state)
{
	struct doctor_finding f;

	(void)state;
	doctor_judge_ptrace(-1, false, &f);
	assert_int_equal(f.verdict, DOCTOR_OK);
	doctor_judge_ptrace(0, false, &f);
	assert_int_equal(f.verdict, DOCTOR_OK);
	doctor_judge_ptrace(0, true, &f);
	assert_int_equal(f.verdict, DOCTOR_SLOWER);
	assert_non_null(strstr(f.text, "CAP_SYS_PTRACE"));
	doctor_judge_ptrace(1, false, &f);
	assert_int_equal(f.verdict, DOCTOR_SLOWER);
	assert_non_null(strstr(f.text, "ptrace_scope is 1"));

	doctor_judge_huge("madvise", 4096, 4096, 4096, &f);
	assert_int_equal(f.verdict, DOCTOR_OK);
	assert_non_null(strstr(f.text, "leat_buf_alloc(leat_session()) too"));
	doctor_judge_huge("madvise", 4096, 2048, 4096, &f);
	assert_int_equal(f.verdict, DOCTOR_SLOWER);
	assert_non_null(strstr(f.text, "leat_buf_alloc(leat_session()) only 2048"));
	doctor_judge_huge("never", 0, 4096, 4096, &f);
	assert_int_equal(f.verdict, DOCTOR_SLOWER);
	assert_non_null(strstr(f.text, "of small pages"));
	doctor_judge_huge("", 2048, 0, 4096, &f);
	assert_int_equal(f.verdict, DOCTOR_SLOWER);
	assert_non_null(strstr(f.text, "not known"));

	doctor_judge_files(1024, DOCTOR_UNLIMITED, &f);
	assert_int_equal(f.verdict, DOCTOR_OK);
	doctor_judge_files(1024, 1024, &f);
	assert_int_equal(f.verdict, DOCTOR_SLOWER);
	doctor_judge_aio(0, 65536, &f);
	assert_int_equal(f.verdict, DOCTOR_OK);
	doctor_judge_aio(65000, 65536, &f);
	assert_int_equal(f.verdict, DOCTOR_SLOWER);
	doctor_judge_aio(70000, 65536, &f); /* it was lowered afterwards */
	assert_int_equal(f.verdict, DOCTOR_SLOWER);
	doctor_judge_cpus(2, 4, &f);
	assert_int_equal(f.verdict, DOCTOR_OK);
	doctor_judge_cpus(1, 4, &f);
	assert_int_equal(f.verdict, DOCTOR_SLOWER);

	doctor_judge_mtu("10.0.0.7", 1500, false, &f);
	assert_int_equal(f.verdict, DOCTOR_OK);
	doctor_judge_mtu("10.0.0.7", 1500, true, &f);
	assert_int_equal(f.verdict, DOCTOR_SLOWER);
	assert_non_null(strstr(f.text, "1024 at once"));
	doctor_judge_mtu("10.0.0.7", 4192, true, &f);
	assert_int_equal(f.verdict, DOCTOR_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers), cmocka_unit_test(choices), cmocka_unit_test(capabilities),
		cmocka_unit_test(smaps), cmocka_unit_test(devices), cmocka_unit_test(memlock),
		cmocka_unit_test(other_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
