/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * where.c - the cost of the latency breakdown
 *
 *     where ROUNDS
 *
 * Makes the calls of server/base/latency.c for one request, without the request: for a READ of one unit, of which one
 * in LATENCY_ONE_IN is measured, and for one of 64 units, of which all are. The baseline is the two readings of the
 * clock that each disk operation needs anyway, to detect delays; the difference is the cost. The cases take turns,
 * ROUNDS times. The program prints nanoseconds per request, minimum and median: on a busy machine the minimum is
 * the CPU time.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "latency.h"

#define ROUNDS_MAX 1000u
#define TIMES 200000u /* in a round: a few ms */
#define PIECES 64u
#define PIECE 16384u

static struct latency_tracer tracer;
static struct latency_reactor reactor = { .tracer = &tracer };
static struct latency req;
static const struct rpcrdma_peer peer;
static unsigned state;
static volatile uint64_t took;

static void leave_state(void)
{
	state++;
	latency_state(&req, state - 1, state == 3);
}

static void arrive(void)
{
	state = 0;
	latency_begin(&req, &reactor, &peer);
	leave_state();
	leave_state();
}

static void depart(void)
{
	leave_state();
	leave_state();
	latency_end(&req, LATENCY_READ, PIECE);
}

/* as server/io/place.c submits it */
static void disk(uint32_t off)
{
	latency_disk(&req, 1, off);
	took -= latency_now(&req);
	latency_disk(&req, -1, off);
	took += latency_now(&req);
}

static void one_piece(void)
{
	arrive();
	disk(0);
	depart();
}

static void many_pieces(void)
{
	arrive();
	latency_units(&req, 1, false, PIECES * PIECE);
	for (uint32_t i = 0; i < PIECES; i++) {
		latency_unit_begin(&req, i * PIECE, PIECE);
		disk(i * PIECE);
		latency_net(&req, 1, i * PIECE);
	}
	for (uint32_t i = 0; i < PIECES; i++)
		latency_net(&req, -1, i * PIECE);
	depart();
}

static void looks(unsigned n)
{
	while (n--) {
		took -= clock_now_ns();
		took += clock_now_ns();
	}
}

static void one_unseen(void)
{
	looks(1);
}

static void many_unseen(void)
{
	looks(PIECES);
}

static const struct {
	const char *name;
	void (*run)(void);
	unsigned times;
} ways[] = {
	{ "one piece", one_piece, TIMES },
	{ "   unseen", one_unseen, TIMES },
	{ "64 pieces", many_pieces, TIMES / PIECES },
	{ "   unseen", many_unseen, TIMES / PIECES },
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	static double ns[ARRAY_SIZE(ways)][ROUNDS_MAX];
	unsigned rounds = argc == 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;

	if (!rounds || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: where ROUNDS\n");
		return 2;
	}
	latency_tracer_init(&tracer);
	for (unsigned r = 0; r < rounds; r++) {
		for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
			uint64_t start = clock_now_ns();

			for (unsigned n = 0; n < ways[i].times; n++)
				ways[i].run();
			ns[i][r] = (double)(clock_now_ns() - start) / ways[i].times;
		}
	}
	printf("%-16s %10s %10s\n", "ns", "least", "median");
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		qsort(ns[i], rounds, sizeof(**ns), compare);
		printf("%-16s %10.1f %10.1f\n", ways[i].name, ns[i][0], ns[i][rounds / 2]);
	}
	latency_tracer_fini(&tracer);
	return 0;
}
