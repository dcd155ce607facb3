/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * cuts.h - the power of a leatd in this process is cut, and what was promised must be there
 *
 * For programs linked as forgetful.h says.
 */
#ifndef TESTS_FLOW_CUTS_H
#define TESTS_FLOW_CUTS_H

#include <stdbool.h>

/** cuts - numbers @from up to @to; each number is another run; what is missing is asserted
 * @may_fail: the disk loses data now and then before that, and tells it once
 */
void cuts(unsigned from, unsigned to, bool may_fail);

#endif
