/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_device.h - files and block devices: size, blocks, identity
 */
#ifndef LEAT_SERVER_STORE_DEVICE_H
#define LEAT_SERVER_STORE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/util.h"

/** store_file_size - finds the current size of a regular file or block device; may block
 *
 * Return: 0, -EINVAL: something else; or the errno of asking.
 */
int must_check store_file_size(int fd, uint64_t *ret_bytes);

/** store_file_block - finds the smallest unit of I/O
 * @fd: of a regular file or block device
 *
 * Return: the logical block size of a device; of a file the unit of direct I/O if that is known, at least 512. In bytes.
 */
uint32_t store_file_block(int fd);

/** store_file_identify - finds what store_file.dev and .ino should be: the same for all descriptors, and all names, of
 * a file or device
 *
 * A device has its own number as dev: it shares workers with the file system on it, if there is one, and not with the
 * one that has its name.
 *
 * Return: 0 or the errno of fstat().
 */
int must_check store_file_identify(int fd, uint64_t *ret_dev, uint64_t *ret_ino);

/** store_device_limit - reads a limit of the queue of a block device, or of the device that a partition belongs to
 * @name: below /sys/block/DEVICE/queue
 *
 * Return: false: it is not known.
 */
bool must_check store_device_limit(dev_t dev, const char *name, uint64_t *ret);

#endif
