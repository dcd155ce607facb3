/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * lt_stage.c - small parts of a call's memory, copied through a buffer
 *
 * Operation:  lt_bulk.c assigns memory to a subrequest with lt_stage_take() instead of its own function if
 *             lt_stage_wants() says so.
 * Memory:     Staging buffers are registered once, as those of leat_buf_alloc(). A session has LT_STAGES_MAX at most, whose
 *             memory is the budget of such operations (session->stages), and keeps up to POOLED_MAX.
 * Threads:    The owner's.
 * Errors:     None.
 */
#include <stdlib.h>
#include <string.h>

#include "handle.h"
#include "lt_stage.h"

#define POOLED_MAX 16u

static struct lt_stage *get_stage(struct leat_session *s)
{
	struct lt_stage *stage = s->free_stages;
	void *mem;

	if (stage) {
		s->free_stages = stage->next;
		s->free_stages_count--;
		return stage;
	}
	stage = malloc(sizeof(*stage));
	if (!stage || rpcrdma_mem_alloc(s->domain, LT_STAGE_BYTES, &mem)) {
		free(stage);
		return NULL;
	}
	stage->mem = mem;
	return stage;
}

static void free_stage(struct leat_session *s, struct lt_stage *stage)
{
	rpcrdma_mem_free(s->domain, stage->mem);
	free(stage);
}

void lt_stage_put(struct lt_subreq *p)
{
	struct leat_session *s = p->bulk->task.m->session;
	struct lt_stage *stage = p->stage;

	if (likely(!stage))
		return;
	p->stage = NULL;
	if (s->free_stages_count == POOLED_MAX) {
		free_stage(s, stage);
		return;
	}
	stage->next = s->free_stages;
	s->free_stages = stage;
	s->free_stages_count++;
}

void lt_stage_free_pool(struct leat_session *s)
{
	while (s->free_stages) {
		struct lt_stage *stage = s->free_stages;

		s->free_stages = stage->next;
		free_stage(s, stage);
	}
	s->free_stages_count = 0;
}

static bool is_small(const struct iovec *v)
{
	return v->iov_len < LT_STAGE_PART;
}

bool lt_stage_wants(const struct iovec *iov, int cnt)
{
	if (cnt > 1)
		for (int i = 0; i < cnt; i++)
			if (iov[i].iov_len && is_small(&iov[i]))
				return true;
	return false;
}

/* Adds @n bytes at @at to the parts of @p. @staged: they, and the last part, end the used staging memory */
static bool add_part(struct lt_subreq *p, void *at, size_t n, bool staged, bool *was_staged)
{
	struct iovec *last = p->iov_cnt ? &p->iov[p->iov_cnt - 1] : NULL;

	if (staged && *was_staged) {
		last->iov_len += n;
		return true;
	}
	if (p->iov_cnt == p->bulk->ops->parts)
		return false;
	p->iov[p->iov_cnt++] = (struct iovec){ at, n };
	*was_staged = staged;
	return true;
}

uint32_t lt_stage_take(struct lt_bulk *b, struct lt_subreq *p, uint64_t max)
{
	uint32_t len = 0, used = 0, parts = 0;
	bool was_staged = false;
	char *first = NULL;

	if (!p->stage)
		p->stage = get_stage(b->task.m->session);
	p->iov_first = p->iov_cnt = 0;
	p->from_at = b->iov_at;
	p->from_off = b->iov_off;
	while (len < max) {
		const struct iovec *v = &b->iov[b->iov_at];
		size_t n = MIN(v->iov_len - b->iov_off, (size_t)(max - len));
		char *at = (char *)v->iov_base + b->iov_off;
		bool staged = p->stage && is_small(v);

		if (n) {
			if (staged && used + n > LT_STAGE_BYTES)
				break;
			if (!add_part(p, staged ? p->stage->mem + used : (void *)at, n, staged, &was_staged))
				break;
			if (staged && b->write)
				memcpy(p->stage->mem + used, at, n);
			used += staged ? (uint32_t)n : 0;
			first = parts++ ? first : at;
			len += (uint32_t)n;
			b->iov_off += n;
		}
		if (b->iov_off == v->iov_len) {
			b->iov_at++;
			b->iov_off = 0;
		}
	}
	if (parts == 1) /* the call's only one */
		p->iov[0].iov_base = first;
	if (parts <= 1 || !used) {
		lt_stage_put(p);
		used = 0;
	}
	p->from_len = len;
	p->staged = used;
	return len;
}

void lt_stage_read(struct lt_subreq *p)
{
	const struct lt_bulk *b = p->bulk;
	size_t off = p->from_off, n;
	const uint8_t *from;
	uint32_t len = p->from_len; /* several replies may have brought it */

	if (likely(!p->stage))
		return;
	from = p->stage->mem;
	for (const struct iovec *v = &b->iov[p->from_at]; len; v++, off = 0, len -= (uint32_t)n) {
		n = MIN(v->iov_len - off, (size_t)len);
		if (!n || !is_small(v))
			continue;
		memcpy((char *)v->iov_base + off, from, n);
		from += n;
	}
}
