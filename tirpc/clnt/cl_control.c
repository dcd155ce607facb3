/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cl_control.c - clnt_control(): the requests that libtirpc's handle over TCP knows
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "cl_int.h"

bool rt_cl_time_ok(const struct timeval *t)
{
	return t->tv_sec > -1 && t->tv_sec <= 100000000 && t->tv_usec > -1 && t->tv_usec <= 1000000;
}

static bool_t set_timeout(struct rt_handle *h, const struct timeval *t)
{
	if (!rt_cl_time_ok(t))
		return FALSE;
	pthread_mutex_lock(&h->lock);
	h->wait = *t;
	h->wait_set = true;
	pthread_mutex_unlock(&h->lock);
	return TRUE;
}

static bool_t get_timeout(struct rt_handle *h, struct timeval *ret)
{
	pthread_mutex_lock(&h->lock);
	*ret = h->wait;
	pthread_mutex_unlock(&h->lock);
	return TRUE;
}

bool_t rt_cl_control(CLIENT *clnt, u_int request, void *info)
{
	struct rt_handle *h = rt_handle_of(clnt);
	uint32_t *word = info;

	if (request == CLSET_FD_CLOSE || request == CLSET_FD_NCLOSE)
		return TRUE; /* the connection ends with the handle in any case */
	if (!info)
		return FALSE;
	switch (request) {
	case CLSET_TIMEOUT:
		return set_timeout(h, info);
	case CLGET_TIMEOUT:
		return get_timeout(h, info);
	case CLGET_SERVER_ADDR:
		memcpy(info, h->peer.buf, h->peer.len);
		return TRUE;
	case CLGET_SVC_ADDR:
		*(struct netbuf *)info = h->peer;
		return TRUE;
	case CLGET_FD:
		*(int *)info = rpcrdma_engine_fd(h->engine);
		return TRUE;
	case CLGET_XID:
		*word = h->xid;
		return TRUE;
	case CLGET_VERS:
		*word = h->vers;
		return TRUE;
	case CLSET_VERS:
		h->vers = *word;
		return TRUE;
	case CLGET_PROG:
		*word = h->prog;
		return TRUE;
	case CLSET_PROG:
		h->prog = *word;
		return TRUE;
	}
	return FALSE; /* also CLSET_XID: the transport numbers calls, so that no two of a connection have one number */
}
