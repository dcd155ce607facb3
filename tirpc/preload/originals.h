/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * originals.h - the functions of libtirpc that librpcrdma-preload.so replaces
 */
#ifndef RT_ORIGINALS_H
#define RT_ORIGINALS_H

#include <rpc/rpc.h>

#define RT_ORIGINALS(X)                                                                                              \
	X(clnt_create) X(clnt_create_timed) X(clnt_create_vers) X(clnt_create_vers_timed) X(clnt_tp_create)          \
	X(clnt_tp_create_timed) X(clnt_tli_create) X(clnt_vc_create) X(clnt_dg_create) X(clnttcp_create)             \
	X(clntudp_create) X(clntudp_bufcreate) X(clntunix_create) X(callrpc) X(rpc_call) X(svc_reg) X(svc_register)

struct rt_originals {
#define RT_MEMBER(name) __typeof__(name) *name;
	RT_ORIGINALS(RT_MEMBER)
#undef RT_MEMBER
};

/** rt_originals - the functions as libtirpc has them; ends the process if one is missing; any thread */
const struct rt_originals *rt_originals(void);

#endif
