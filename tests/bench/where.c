/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * where.c - what it costs to know where the time goes
 *
 *     where ROUNDS
 *
 * What server/spine/latency.c is called with for one request, without the request: a READ of one piece, of which
 * one in WHERE_ONE_IN is looked at, and one of 64 pieces, of which all are. Beside them the two looks at the clock
 * that each of their disk operations takes in any case, to see whether it was held up; what is above that is the
 * cost. They take turns, ROUNDS times; printed are nanoseconds for a request, the least and the median: on a
 * busy machine the least is what the processor needs.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "reactor.h"
#include "req.h"
#include "server_int.h"
#include "latency.h"

#define ROUNDS_MAX 1000u
#define TIMES 200000u /* in a round: a few ms */
#define PIECES 64u
#define PIECE 16384u

static struct server srv;
static struct reactor reactor;
static struct req req;
static volatile uint64_t took;

static void leave(enum req_state next)
{
	where_state(&req);
	req.state = next;
}

static void arrive(void)
{
	req.state = REQ_NEW;
	where_begin(&req);
	leave(REQ_ADMITTED);
	leave(REQ_MOVING);
}

static void depart(void)
{
	leave(REQ_REPLYING);
	leave(REQ_FREE);
	where_end(&req);
}

/* as server/io/place.c submits it */
static void disk(uint32_t off)
{
	where_disk(&req, 1, off);
	took -= where_now(&req);
	where_disk(&req, -1, off);
	took += where_now(&req);
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
	where_pieces(&req);
	for (uint32_t i = 0; i < PIECES; i++) {
		where_piece_begin(&req, i * PIECE, PIECE);
		disk(i * PIECE);
		where_net(&req, 1, i * PIECE);
	}
	for (uint32_t i = 0; i < PIECES; i++)
		where_net(&req, -1, i * PIECE);
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
	where_tracer_init(&srv.tracer);
	req.reactor = &reactor;
	req.srv = &srv;
	req.place.kind = PLACE_READ;
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
	where_tracer_fini(&srv.tracer);
	return 0;
}
