/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * loop_dev.h - a block device for one test
 */
#ifndef LOOP_DEV_H
#define LOOP_DEV_H

struct loop_dev {
	char path[32];
	int fd; /* the last one closed ends the device */
};

/** loop_dev_create - a loop device on @file with logical blocks of @block bytes
 *
 * Return: 0, or -errno: this machine, or this user, has none.
 */
int loop_dev_create(struct loop_dev *d, const char *file, unsigned block);

/** loop_dev_destroy - the device ends when all have closed it */
void loop_dev_destroy(struct loop_dev *d);

#endif
