/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * std_fds.h - keeps descriptors 0, 1 and 2 occupied
 */
#ifndef LEAT_BASE_STD_FDS_H
#define LEAT_BASE_STD_FDS_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/** std_fds_fill - opens /dev/null on each standard descriptor that is closed
 *
 * Otherwise the first file or socket would get its number, and messages would be written into that file. Reading from
 * such a standard input and writing to such an output still fail with EBADF, as on a closed descriptor. Call it first
 * in main(), before any thread exists.
 */
static inline void std_fds_fill(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* open() returns the lowest free number, and all lower ones are in use */
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
			_exit(1);
	}
}

#endif
