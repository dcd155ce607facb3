/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * caps.h - Linux capabilities
 */
#ifndef LEAT_BASE_CAPS_H
#define LEAT_BASE_CAPS_H

#include <linux/capability.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/** caps_has - does the calling thread have a capability in effect? @if_unknown, if the kernel does not say */
static inline bool caps_has(unsigned cap, bool if_unknown)
{
	struct __user_cap_header_struct hdr = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &hdr, data))
		return if_unknown;
	return data[CAP_TO_INDEX(cap)].effective & CAP_TO_MASK(cap);
}

#endif
