/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * ctl_where.h - where the time of requests goes, for those who ask (xdr/ctl.x)
 */
#ifndef LEAT_SERVER_CTL_WHERE_H
#define LEAT_SERVER_CTL_WHERE_H

struct req;

/** ctl_where_sums - WHERE: the sums of all reactors */
void ctl_where_sums(struct req *r);

/** ctl_where_pieces - PIECES: the last trace, and another one is wanted */
void ctl_where_pieces(struct req *r);

#endif
