/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * filter.c - stacks filters in front of a fabric
 *
 * Operation, memory, threads, errors: filter.h.
 */
#include "filter.h"

/* The topmost filter's close; each removes itself, then closes what is below. */
static void filter_close(struct rr_fabric *fabric)
{
	struct rr_filter *filter = fabric->filter;

	fabric->ops = filter->next;
	fabric->filter = filter->below;
	filter->free(filter);
	fabric->ops->close(fabric);
}

void rr_filter_push(struct rr_fabric *fabric, struct rr_filter *filter)
{
	filter->next = fabric->ops;
	filter->below = fabric->filter;
	filter->ops = *filter->next;
	filter->ops.close = filter_close;
	fabric->filter = filter;
	fabric->ops = &filter->ops;
}

struct rr_filter *rr_filter_find(const struct rr_fabric *fabric, const char *name)
{
	struct rr_filter *filter = fabric->filter;

	while (filter && filter->name != name)
		filter = filter->below;
	return filter;
}

struct rr_filter_state *rr_filter_state(struct rr_filter_state *states, const struct rr_filter *filter)
{
	while (states && states->filter != filter)
		states = states->next;
	return states;
}

void rr_filter_keep(struct rr_filter_state **states, const struct rr_filter *filter, struct rr_filter_state *state)
{
	state->filter = filter;
	state->next = *states;
	*states = state;
}

struct rr_filter_state *rr_filter_forget(struct rr_filter_state **states, const struct rr_filter *filter)
{
	struct rr_filter_state *state;

	while (*states && (*states)->filter != filter)
		states = &(*states)->next;
	state = *states;
	if (state)
		*states = state->next;
	return state;
}
