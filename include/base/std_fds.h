/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * std_fds.h - descriptors 0, 1 and 2 are taken from the start
 */
#ifndef LEAT_BASE_STD_FDS_H
#define LEAT_BASE_STD_FDS_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/** std_fds_fill - open /dev/null on each standard descriptor that is closed
 *
 * Without it the first file or socket would get its number, and messages would be written into that. Reading
 * from such a standard input and writing to such an output still fail with EBADF, as on a closed descriptor.
 * Call it first in main(), before any thread exists.
 */
static inline void std_fds_fill(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		/* open() takes the lowest free number, and those below are taken */
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
			_exit(1);
	}
}

#endif
