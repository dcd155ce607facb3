/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * store_volume.h - the store of a volume's manager: contents are on stripe servers
 */
#ifndef LEAT_SERVER_STORE_VOLUME_H
#define LEAT_SERVER_STORE_VOLUME_H

#include "store.h"

extern const struct store_ops store_volume_ops; /* of the volume of a struct export with a manager */

#endif
