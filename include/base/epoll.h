/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * epoll.h - adds a descriptor to an epoll instance
 */
#ifndef LEAT_BASE_EPOLL_H
#define LEAT_BASE_EPOLL_H

#include <errno.h>
#include <sys/epoll.h>

#include "base/util.h"

/** epoll_add - watches @fd
 * @ptr: comes with its events
 *
 * Return: 0 or -errno.
 */
static inline must_check int epoll_add(int epfd, int fd, uint32_t events, void *ptr)
{
	struct epoll_event ev = { .events = events, .data.ptr = ptr };

	return epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

#endif
