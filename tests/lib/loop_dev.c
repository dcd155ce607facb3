/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * loop_dev.c - a block device for one test
 *
 * Operation:  create, use, destroy.
 * Memory:     The caller's structure.
 * Threads:    Any.
 * Errors:     -errno where there are no loop devices.
 */
#include "loop_dev.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/loop.h>

/* Other tests may take the device that is free. Return: 0; -EBUSY: so it was; -errno */
static int take(struct loop_dev *d, int control, int file, unsigned block)
{
	struct loop_config how = { .fd = (unsigned)file, .block_size = block, .info = { .lo_flags = LO_FLAGS_AUTOCLEAR } };
	int n = ioctl(control, LOOP_CTL_GET_FREE), err;

	if (n < 0)
		return -errno;
	(void)snprintf(d->path, sizeof(d->path), "/dev/loop%d", n);
	d->fd = open(d->path, O_RDWR | O_CLOEXEC);
	if (d->fd < 0)
		return -errno;
	err = ioctl(d->fd, LOOP_CONFIGURE, &how) ? -errno : 0;
	if (err)
		close(d->fd);
	return err;
}

int loop_dev_create(struct loop_dev *d, const char *file, unsigned block)
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), fd, err;

	if (control < 0)
		return -errno;
	fd = open(file, O_RDWR | O_CLOEXEC);
	err = fd < 0 ? -errno : -EBUSY;
	for (unsigned tries = 0; err == -EBUSY && tries < 100; tries++)
		err = take(d, control, fd, block);
	if (fd >= 0)
		close(fd);
	close(control);
	return err;
}

void loop_dev_destroy(struct loop_dev *d)
{
	close(d->fd);
}
