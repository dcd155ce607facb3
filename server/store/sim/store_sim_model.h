/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_sim_model.h - computes when a modelled disk or RAID 0 completes a request
 */
#ifndef LEAT_SERVER_STORE_SIM_MODEL_H
#define LEAT_SERVER_STORE_SIM_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "store_spec.h"

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
	bool no_data; /* nothing is transferred: each member does its part at once, when its head is there */
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
