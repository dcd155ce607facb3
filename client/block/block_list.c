/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * block_list.c - lists of volumes and of holders
 *
 * Operation:  The server sends a list in pages, in the order of names. Each page begins after the last name of the one
 *             before. The function of the program runs on its own thread, after each page.
 * Memory:     The codec allocates a page, which belongs to the caller's frame from the end of the call on.
 * Threads:    As the functions of leat.h.
 * Errors:     -EREMOTEIO: a page that is empty and not the last, or names that are not in order: the list might never
 *             end.
 */
#include <errno.h>

#include "base/text.h"
#include "lt_block.h"
#include "sync.h"

/* One page. */
struct page {
	uint32_t proc;
	char after[BLOCK_NAME_MAX + 1];
	BLOCKLISTres list;
	BLOCKINFOres info;
};

/* The results move to the page, which frees them. */
static void page_done(struct lt_op *op, int err)
{
	struct page *page = op->block.ret;

	if (err) {
		lt_op_free_results(op);
	} else if (page->proc == BLOCKPROC_LIST) {
		page->list = op->res.block_list;
	} else {
		page->info = op->res.block_info;
	}
	lt_op_finish(op, err);
}

static void page_start(struct lt_op *op, int err)
{
	struct page *page = op->block.ret;

	(void)err; /* a first step */
	if (page->proc == BLOCKPROC_LIST)
		op->args.block_list.after = page->after;
	else
		op->args.block_info = (BLOCKINFOargs){ .volume = op->block.of->name, .after = page->after };
	lt_op_call_block(op, page->proc, NULL, page_done);
}

static int submit_page(struct leat_block *b, struct page *page, const char *verb, struct leat_cb cb)
{
	struct lt_op *op;
	int rc = lt_block_op(b, false, verb, cb, &op);

	if (rc)
		return rc;
	op->block.ret = page;
	return lt_op_submit(op, page_start);
}

static int get_page(struct leat_block *b, struct page *page, const char *verb)
{
	return (int)LT_WAIT_FOR_AS(leat_block_handle(b), verb, submit_page(b, page, verb, w.cb));
}

/* Takes the name of the next element. Return: false: it is not behind the one before */
static bool take_name(struct page *page, const char *name)
{
	if (!name || !name[0] || strcmp(name, page->after) <= 0)
		return false;
	snprintf(page->after, sizeof(page->after), "%s", name); /* the codec limits its length */
	return true;
}

static int refuse_page(struct leat_block *b, const char *verb)
{
	lt_handle_tell(b->m, NULL, NULL, verb, -EREMOTEIO, "an impossible list");
	return -EREMOTEIO;
}

static int tell_volumes(const BLOCKLISTresok *ok, struct page *page,
			void (*fn)(void *ctx, const struct leat_block_info *info), void *ctx)
{
	struct leat_block_info info;

	for (u_int i = 0; i < ok->volumes.volumes_len; i++) {
		if (!take_name(page, ok->volumes.volumes_val[i].name) ||
		    lt_block_describe(NULL, &ok->volumes.volumes_val[i], &info))
			return -EREMOTEIO;
		fn(ctx, &info);
	}
	return ok->eof || ok->volumes.volumes_len ? 0 : -EREMOTEIO;
}

int leat_block_list(struct leat_block *b, void (*fn)(void *ctx, const struct leat_block_info *info), void *ctx)
{
	static const char verb[] = "list volumes";
	struct page page = { .proc = BLOCKPROC_LIST };
	bool eof = false;
	int rc = 0;

	while (!rc && !eof) {
		rc = get_page(b, &page, verb);
		if (rc)
			return rc;
		eof = page.list.BLOCKLISTres_u.resok.eof;
		rc = tell_volumes(&page.list.BLOCKLISTres_u.resok, &page, fn, ctx);
		xdr_free((xdrproc_t)xdr_BLOCKLISTres, (char *)&page.list);
	}
	return rc ? refuse_page(b, verb) : 0;
}

static int tell_holders(const BLOCKINFOresok *ok, struct page *page,
			void (*fn)(void *ctx, const struct leat_block_holder *h), void *ctx)
{
	for (u_int i = 0; i < ok->holders.holders_len; i++) {
		const block_holder *h = &ok->holders.holders_val[i];
		const struct leat_block_holder told = { h->name, h->peer, h->app, h->since, h->conns, h->silent,
							h->rdonly };

		if (!take_name(page, h->name) || !h->peer || !h->app)
			return -EREMOTEIO;
		text_clean(h->name);
		text_clean(h->peer);
		text_clean(h->app);
		fn(ctx, &told);
	}
	return ok->eof || ok->holders.holders_len ? 0 : -EREMOTEIO;
}

int leat_block_holders(struct leat_block *b, void (*fn)(void *ctx, const struct leat_block_holder *h), void *ctx)
{
	static const char verb[] = "list holders";
	struct page page = { .proc = BLOCKPROC_INFO };
	bool eof = false;
	int rc;

	rc = lt_block_check_name(b, verb);
	if (rc)
		return rc;
	while (!rc && !eof) {
		rc = get_page(b, &page, verb);
		if (rc)
			return rc;
		eof = page.info.BLOCKINFOres_u.resok.eof;
		rc = tell_holders(&page.info.BLOCKINFOres_u.resok, &page, fn, ctx);
		xdr_free((xdrproc_t)xdr_BLOCKINFOres, (char *)&page.info);
	}
	return rc ? refuse_page(b, verb) : 0;
}
