/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_sim_model.h - computes when a modelled disk or RAID 0 completes a request
 */
#ifndef LEAT_SERVER_STORE_SIM_MODEL_H
#define LEAT_SERVER_STORE_SIM_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#define SIM_MEMBERS_MAX 32u

/* What is modelled; plain data. */
struct sim_spec {
	uint32_t members;    /* 1 to SIM_MEMBERS_MAX */
	uint32_t chunk;	     /* bytes of a file on one member before the next member's turn */
	uint64_t rate;	     /* bytes per second of one member */
	uint64_t latency_ns; /* before a request that does not follow the member's last one */
	uint64_t jitter_ns;  /* upper bound of the random extra time per request and member */
	uint64_t seed;	     /* of the random generator */
	uint64_t fail;	     /* number of the request that fails; 0: none */
	bool forgets;	     /* its cache is volatile: store_sim_cut() */
};

struct sim_member {
	uint64_t free_ns;	/* when it has completed all its requests */
	uint64_t dev, ino, pos; /* where its head will be then: file, byte of the member's part */
};

struct sim_model {
	struct sim_spec spec;
	struct sim_member members[SIM_MEMBERS_MAX];
	uint64_t chance;   /* state of the random generator */
	uint64_t requests; /* so far */
};

struct sim_request {
	uint64_t dev, ino; /* which file */
	uint64_t off;
	uint32_t bytes;
};

struct sim_answer {
	uint64_t due_ns; /* when the last of its bytes is moved */
	unsigned seeks;	 /* members that had to move their head for it */
	bool fails;
};

/** sim_model_init - all members are idle, and the first request of each seeks */
void sim_model_init(struct sim_model *m, const struct sim_spec *spec);

/** sim_model_submit - computes the result of a request that arrives at @now_ns, after all earlier ones */
struct sim_answer sim_model_submit(struct sim_model *m, uint64_t now_ns,
				   const struct sim_request *rq);

/** sim_model_idle - Return: when all members have completed their requests, @now_ns or later */
uint64_t sim_model_idle(const struct sim_model *m, uint64_t now_ns);

#endif
