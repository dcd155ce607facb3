/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * dump_main.c - leat-dump, run by `leat dump`: shows the RPC-over-RDMA messages in a capture of RoCEv2
 *
 * Operation:  Opens the file, feeds its packets to dump_flow.c, prints a summary. The capture comes from
 *             tcpdump on the wire, or from leatd's --capture, which records the traffic of the local
 *             fabric. A program of its own, since it parses the wire with the library's internal decoders;
 *             the leat command sees leat.h only.
 * Memory:     See dump_conn.c.
 * Threads:    One.
 * Errors:     Status 1 if the file cannot be read, or is not a capture. With --check, also if a rule is
 *             broken or the file contains nothing to check. A capture that ends in the middle of a packet,
 *             because its writer was stopped, is read up to there.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/std_fds.h"
#include "dump.h"

LOG_DEFINE("leat");

enum { STATUS_OK, STATUS_FAILED, STATUS_USAGE }; /* exit status, as that of every leat command */

static int usage(void)
{
	fputs("usage: leat dump [-v] [--check] FILE\n", stderr);
	return STATUS_USAGE;
}

static int fail(const char *name, int err)
{
	log_err("%s: %s", name, strerror(-err));
	return STATUS_FAILED;
}

static int read_all(struct dump *d, struct dump_file *f, const char *name)
{
	struct dump_packet p;
	int rc;

	for (;;) {
		rc = dump_file_next(f, &p);
		if (rc <= 0)
			break;
		rc = dump_packet(d, &p);
		if (rc)
			break;
	}
	if (rc == -ENODATA) {
		log_warn("%s ends in the middle of a packet", name);
		return 0;
	}
	return rc;
}

static int dump_stream(FILE *in, const char *name, const struct dump_options *options)
{
	struct dump_file f;
	struct dump d;
	int rc;

	rc = dump_file_init(&f, in);
	if (rc == -EBADMSG) {
		log_err("%s: neither pcap nor pcapng", name);
		return STATUS_FAILED;
	}
	if (rc)
		return fail(name, rc);
	dump_init(&d, stdout, options);
	rc = read_all(&d, &f, name);
	dump_print_end(&d);
	dump_fini(&d);
	dump_file_fini(&f);
	if (rc == -EBADMSG) {
		log_err("%s: a record is malformed, the rest was not read", name);
		return STATUS_FAILED;
	}
	if (rc)
		return fail(name, rc);
	if (options->check && !d.messages) {
		log_err("%s: no RPC-over-RDMA in it", name);
		return STATUS_FAILED;
	}
	return options->check && (d.broken || d.cut) ? STATUS_FAILED : STATUS_OK;
}

static int dump(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "check", no_argument, NULL, 'c' },
		{ "verbose", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	struct dump_options options = { .lines = true };
	bool verbose = false;
	int opt, rc;
	FILE *in;

	while ((opt = getopt_long(argc, argv, "cv", longs, NULL)) != -1) {
		if (opt == 'c')
			options.check = true;
		else if (opt == 'v')
			verbose = true;
		else
			return usage();
	}
	if (argc - optind != 1)
		return usage();
	options.lines = verbose || !options.check;
	options.transfers = verbose;
	if (!strcmp(argv[optind], "-"))
		return dump_stream(stdin, "standard input", &options);
	in = fopen(argv[optind], "re");
	if (!in)
		return fail(argv[optind], -errno);
	rc = dump_stream(in, argv[optind], &options);
	fclose(in);
	return rc;
}

int main(int argc, char **argv)
{
	int rc;

	std_fds_fill();
	rc = dump(argc, argv);
	if (fflush(stdout) && errno != EPIPE)
		rc = fail("standard output", -errno);
	return rc;
}
