/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * trace.h - static trace points of the data path (USDT), without cost when not in use
 *
 * TRACE(provider_point, a, b) becomes a nop that perf, bpftrace or gdb can hook if <sys/sdt.h> exists, and
 * nothing otherwise. To list them: `readelf -n build/leatd`.
 */
#ifndef LEAT_BASE_TRACE_H
#define LEAT_BASE_TRACE_H

#if defined(__has_include)
#if __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#ifdef __clang__
/* these system macros, expanded in our lines, cause pedantic warnings */
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#endif
#define TRACE2(point, a, b) DTRACE_PROBE2(leat, point, a, b)
#define TRACE3(point, a, b, c) DTRACE_PROBE3(leat, point, a, b, c)
#endif
#endif

#ifndef TRACE2
#define TRACE2(point, a, b) ((void)(a), (void)(b))
#define TRACE3(point, a, b, c) ((void)(a), (void)(b), (void)(c))
#endif

#endif
