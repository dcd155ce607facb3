/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * wire.h - bounds-checked access to big-endian words in byte buffers
 *
 * A cursor remembers the first overrun: once `bad` is set, every later get returns 0 and every later put
 * writes nothing. So a codec may run to its end and call wire_get_ok() or wire_put_ok() once. No pointer
 * past the end is ever formed.
 */
#ifndef LEAT_BASE_WIRE_H
#define LEAT_BASE_WIRE_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t get_be16(const void *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return be16toh(v);
}

static inline uint32_t get_be32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return be32toh(v);
}

static inline uint64_t get_be64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64toh(v);
}

static inline void put_be16(void *p, uint16_t v)
{
	v = htobe16(v);
	memcpy(p, &v, sizeof(v));
}

static inline void put_be32(void *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void put_be64(void *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, sizeof(v));
}

struct wire_get {
	const uint8_t *at, *end;
	bool bad;
};

struct wire_put {
	uint8_t *start, *at, *end;
	bool bad;
};

/** wire_get_init - begins to read; @buf may be NULL if @len is 0 */
static inline void wire_get_init(struct wire_get *g, const void *buf, size_t len)
{
	g->at = buf;
	g->end = len ? g->at + len : g->at; /* C does not allow adding even 0 to NULL */
	g->bad = false;
}

static inline size_t wire_get_left(const struct wire_get *g)
{
	return (size_t)(g->end - g->at);
}

static inline uint32_t wire_get_u32(struct wire_get *g)
{
	uint32_t v;

	if (g->bad || wire_get_left(g) < 4) {
		g->bad = true;
		return 0;
	}
	v = get_be32(g->at);
	g->at += 4;
	return v;
}

static inline uint64_t wire_get_u64(struct wire_get *g)
{
	uint64_t hi = wire_get_u32(g);

	return hi << 32 | wire_get_u32(g);
}

/** wire_get_bytes - returns the next @n bytes in place, or NULL past the end */
static inline const uint8_t *wire_get_bytes(struct wire_get *g, size_t n)
{
	const uint8_t *p = g->at;

	if (g->bad || wire_get_left(g) < n) {
		g->bad = true;
		return NULL;
	}
	g->at += n;
	return p;
}

static inline bool wire_get_ok(const struct wire_get *g)
{
	return !g->bad;
}

static inline void wire_put_init(struct wire_put *p, void *buf, size_t cap)
{
	p->start = p->at = buf;
	p->end = p->at + cap;
	p->bad = false;
}

static inline size_t wire_put_len(const struct wire_put *p)
{
	return (size_t)(p->at - p->start);
}

static inline void wire_put_u32(struct wire_put *p, uint32_t v)
{
	if (p->bad || p->end - p->at < 4) {
		p->bad = true;
		return;
	}
	put_be32(p->at, v);
	p->at += 4;
}

static inline void wire_put_u64(struct wire_put *p, uint64_t v)
{
	wire_put_u32(p, (uint32_t)(v >> 32));
	wire_put_u32(p, (uint32_t)v);
}

static inline void wire_put_bytes(struct wire_put *p, const void *src, size_t n)
{
	if (p->bad || (size_t)(p->end - p->at) < n) {
		p->bad = true;
		return;
	}
	if (n)
		memcpy(p->at, src, n);
	p->at += n;
}

static inline bool wire_put_ok(const struct wire_put *p)
{
	return !p->bad;
}

#endif
