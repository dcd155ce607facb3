/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * hostile_nfs.c - the right answers of a server that then spoils them
 *
 * Operation:  A file's handle begins with its type; LOOKUP goes by the name's first letter (d:
 *             directory, l: link, else a file), so that no state is needed. A file has FILE_BYTES.
 * Memory:     None.
 * Threads:    Pure.
 * Errors:     Room that is too little shows in the writer.
 */
#include <string.h>

#include "base/checked.h"
#include "base/util.h"
#include "block.h"
#include "hostile.h"
#include "mount3.h"
#include "nfs3.h"
#include "nfsacl.h"
#include "stripes.h"
#include "volumes.h"

#define FH_BYTES 16u
#define FILE_BYTES 6000u /* more than a client of TCP reads at once */
#define VOLUME_BYTES 65536u
#define CTL_PROGRAM 0x20c5f001u

static void put_opaque(struct wire_put *w, const void *data, size_t len)
{
	wire_put_u32(w, (uint32_t)len);
	wire_put_bytes(w, data, len);
	wire_put_bytes(w, "\0\0\0", round_up4(len) - len);
}

static void put_fh(struct wire_put *w, uint32_t type)
{
	uint8_t fh[FH_BYTES] = { (uint8_t)type };

	put_opaque(w, fh, sizeof(fh));
}

static void put_attr(struct wire_put *w, uint32_t type)
{
	wire_put_u32(w, type);
	wire_put_u32(w, 0644);
	wire_put_u32(w, 1);
	wire_put_u64(w, 0); /* uid, gid */
	wire_put_u64(w, FILE_BYTES);
	wire_put_u64(w, 4096);
	wire_put_u64(w, 0); /* rdev */
	wire_put_u64(w, 7);
	wire_put_u64(w, 40 + type);
	for (int i = 0; i < 6; i++)
		wire_put_u32(w, 1);
}

static void put_post(struct wire_put *w, uint32_t type)
{
	wire_put_u32(w, 1);
	put_attr(w, type);
}

static void put_wcc(struct wire_put *w, uint32_t type)
{
	wire_put_u32(w, 1);
	wire_put_u64(w, FILE_BYTES);
	for (int i = 0; i < 4; i++)
		wire_put_u32(w, 1);
	put_post(w, type);
}

/* The handle in front of most arguments. Return: the type of its file. */
static uint32_t get_fh(struct wire_get *g)
{
	uint32_t len = wire_get_u32(g);
	const uint8_t *p = wire_get_bytes(g, round_up4(len));

	return p && len && p[0] >= NF3REG && p[0] <= NF3FIFO ? p[0] : NF3DIR;
}

static uint32_t type_of_name(struct wire_get *g)
{
	uint32_t len = wire_get_u32(g);
	const uint8_t *p = wire_get_bytes(g, round_up4(len));

	if (!p || !len)
		return NF3DIR;
	return p[0] == 'd' || p[0] == '.' ? NF3DIR : p[0] == 'l' ? NF3LNK : NF3REG;
}

static void put_entry(struct wire_put *w, bool plus, const char *name, uint64_t cookie)
{
	wire_put_u32(w, 1);
	wire_put_u64(w, 40 + cookie);
	put_opaque(w, name, strlen(name));
	wire_put_u64(w, cookie);
	if (!plus)
		return;
	put_post(w, NF3REG);
	wire_put_u32(w, 1);
	put_fh(w, NF3REG);
}

static void put_listing(struct wire_put *w, bool plus)
{
	put_post(w, NF3DIR);
	wire_put_u64(w, 1);
	put_entry(w, plus, ".", 1);
	put_entry(w, plus, "..", 2);
	put_entry(w, plus, "file", 3);
	wire_put_u32(w, 0);
	wire_put_u32(w, 1);
}

static void put_fsinfo(struct wire_put *w)
{
	static const uint32_t sizes[] = { 65536, 65536, 512, 65536, 65536, 512, 4096 };

	put_post(w, NF3DIR);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		wire_put_u32(w, sizes[i]);
	wire_put_u64(w, UINT64_C(1) << 40);
	wire_put_u64(w, 1);
	wire_put_u32(w, 0x1b);
}

/* @ret_data: the payload, which goes behind the results or into a chunk */
static void put_nfs(struct wire_put *w, const struct hostile_call *c, const char **ret_data)
{
	static const char bytes[FILE_BYTES];
	struct wire_get g;
	uint32_t type, count;
	bool at_end;

	wire_get_init(&g, c->args, c->args_len);
	type = get_fh(&g);
	wire_put_u32(w, NFS3_OK);
	switch (c->proc) {
	case NFSPROC3_GETATTR:
		put_attr(w, type);
		break;
	case NFSPROC3_LOOKUP:
		type = type_of_name(&g);
		put_fh(w, type);
		put_post(w, type);
		put_post(w, NF3DIR);
		break;
	case NFSPROC3_ACCESS:
		put_post(w, type);
		wire_put_u32(w, 0x3f);
		break;
	case NFSPROC3_READLINK:
		put_post(w, type);
		*ret_data = "file";
		wire_put_u32(w, 4);
		break;
	case NFSPROC3_READ:
		at_end = wire_get_u64(&g) >= FILE_BYTES;
		count = wire_get_u32(&g);
		count = at_end ? 0 : MIN(MIN(count, c->room), FILE_BYTES);
		put_post(w, type);
		wire_put_u32(w, count);
		wire_put_u32(w, 1);
		*ret_data = bytes;
		wire_put_u32(w, count);
		break;
	case NFSPROC3_WRITE:
		(void)wire_get_u64(&g);
		put_wcc(w, type);
		wire_put_u32(w, wire_get_u32(&g));
		wire_put_u32(w, UNSTABLE);
		wire_put_u64(w, 9);
		break;
	case NFSPROC3_CREATE:
	case NFSPROC3_MKDIR:
	case NFSPROC3_SYMLINK:
	case NFSPROC3_MKNOD:
		type = c->proc == NFSPROC3_MKDIR ? NF3DIR : NF3REG;
		wire_put_u32(w, 1);
		put_fh(w, type);
		put_post(w, type);
		put_wcc(w, NF3DIR);
		break;
	case NFSPROC3_RENAME:
		put_wcc(w, NF3DIR);
		put_wcc(w, NF3DIR);
		break;
	case NFSPROC3_LINK:
		put_post(w, NF3REG);
		put_wcc(w, NF3DIR);
		break;
	case NFSPROC3_READDIR:
	case NFSPROC3_READDIRPLUS:
		put_listing(w, c->proc == NFSPROC3_READDIRPLUS);
		break;
	case NFSPROC3_FSSTAT:
		put_post(w, NF3DIR);
		for (int i = 0; i < 6; i++)
			wire_put_u64(w, 1u << 20);
		wire_put_u32(w, 0);
		break;
	case NFSPROC3_FSINFO:
		put_fsinfo(w);
		break;
	case NFSPROC3_PATHCONF:
		put_post(w, NF3DIR);
		wire_put_u32(w, 32000);
		wire_put_u32(w, 255);
		for (int i = 0; i < 4; i++)
			wire_put_u32(w, 1);
		break;
	case NFSPROC3_COMMIT:
		put_wcc(w, type);
		wire_put_u64(w, 9);
		break;
	default: /* SETATTR, REMOVE, RMDIR */
		put_wcc(w, type);
	}
}

/* Of a directory the default list, of all else a list with a mask. */
static void put_acl(struct wire_put *w, const struct hostile_call *c)
{
	static const uint32_t tags[] = { 1, 2, 4, 16, 32 };
	struct wire_get g;
	uint32_t type;

	wire_get_init(&g, c->args, c->args_len);
	type = get_fh(&g);
	wire_put_u32(w, NFS3_OK);
	put_post(w, type);
	if (c->proc != NFSACLPROC3_GETACL)
		return;
	wire_put_u32(w, wire_get_u32(&g));
	for (uint32_t is_default = 0; is_default < 2; is_default++) {
		uint32_t n = is_default == (type == NF3DIR) ? ARRAY_SIZE(tags) : 0;

		wire_put_u32(w, n);
		wire_put_u32(w, n);
		for (uint32_t i = 0; i < n; i++) {
			wire_put_u32(w, tags[i] | (is_default ? NFS_ACL_DEFAULT : 0));
			wire_put_u32(w, 77);
			wire_put_u32(w, i);
		}
	}
}

static void put_volume(struct wire_put *w)
{
	put_opaque(w, "v", 1);
	wire_put_u64(w, VOLUME_BYTES);
	wire_put_u32(w, 512);
	wire_put_u32(w, 4096);
	wire_put_u32(w, BLOCK_CAN_DISCARD | BLOCK_CAN_EXTENTS);
	wire_put_u32(w, 1);
}

static void put_holder(struct wire_put *w)
{
	put_opaque(w, "h", 1);
	put_opaque(w, "10.0.0.1", 8);
	put_opaque(w, "app", 3);
	wire_put_u64(w, 1);
	for (int i = 0; i < 3; i++)
		wire_put_u32(w, 0);
}

/* A volume "v" of VOLUME_BYTES, with one holder. */
static void put_block(struct wire_put *w, const struct hostile_call *c, const char **ret_data)
{
	static char bytes[FILE_BYTES];
	struct wire_get g;
	uint64_t length;

	wire_put_u32(w, BLOCK_OK);
	wire_get_init(&g, c->args, c->args_len);
	switch (c->proc) {
	case BLOCKPROC_LIST:
		wire_put_u32(w, 1);
		put_volume(w);
		wire_put_u32(w, TRUE);
		break;
	case BLOCKPROC_INFO:
		put_volume(w);
		wire_put_u32(w, 1);
		put_holder(w);
		wire_put_u32(w, TRUE);
		break;
	case BLOCKPROC_ATTACH:
		for (unsigned i = 0; i < BLOCK_HANDLE_BYTES / 4; i++)
			wire_put_u32(w, i);
		put_volume(w);
		wire_put_u64(w, 1);
		break;
	case BLOCKPROC_DETACH:
		break;
	case BLOCKPROC_READ:
		(void)wire_get_bytes(&g, BLOCK_HANDLE_BYTES + 16 + 8);
		wire_put_u32(w, MIN(MIN(wire_get_u32(&g), c->room), FILE_BYTES));
		*ret_data = bytes;
		break;
	case BLOCKPROC_EXTENTS:
		(void)wire_get_bytes(&g, BLOCK_HANDLE_BYTES + 16 + 8);
		length = wire_get_u64(&g);
		wire_put_u32(w, 2);
		wire_put_u64(w, 512);
		wire_put_u32(w, BLOCK_DATA);
		wire_put_u64(w, length - 512);
		wire_put_u32(w, BLOCK_HOLE);
		break;
	default:
		wire_put_u64(w, 1); /* the verifier */
		break;
	}
}

static void put_other(struct wire_put *w, const struct hostile_call *c)
{
	if (c->prog == MOUNT_PROGRAM && c->proc == MOUNTPROC3_MNT) {
		wire_put_u32(w, MNT3_OK);
		put_fh(w, NF3DIR);
		wire_put_u32(w, 1);
		wire_put_u32(w, 1);
	} else if (c->prog == MOUNT_PROGRAM && c->proc == MOUNTPROC3_EXPORT) {
		wire_put_u32(w, 1);
		put_opaque(w, "/e", 2);
		wire_put_u32(w, 1);
		put_opaque(w, "10.0.0.0/8", 10);
		wire_put_u32(w, 0);
		wire_put_u32(w, 0);
	} else if (c->prog == CTL_PROGRAM && c->proc == 1) {
		put_opaque(w, "0.1.0", 5);
		wire_put_u64(w, 1);
		wire_put_u64(w, 2);
		wire_put_u32(w, 0);
	} else if (c->prog == CTL_PROGRAM && c->proc == 2) {
		wire_put_u32(w, 1);
		put_opaque(w, "calls", 5);
		wire_put_u64(w, 3);
	} else if (c->prog == CTL_PROGRAM && c->proc == 5) {
		wire_put_u64(w, 1);
		wire_put_u64(w, 2);
		wire_put_u32(w, 1);
		put_opaque(w, "READ", 4);
		wire_put_u64(w, 3);
		wire_put_u64(w, 4096);
		wire_put_u32(w, 1);
		put_opaque(w, "disk", 4);
		wire_put_u64(w, 1000);
		wire_put_u32(w, 1);
		put_opaque(w, "MOVING", 6);
		wire_put_u32(w, 1);
		wire_put_u32(w, 77);
		wire_put_u64(w, 3);
	} else if (c->prog == CTL_PROGRAM && c->proc == 6) {
		wire_put_u32(w, TRUE);
		wire_put_u32(w, 1);
		wire_put_u32(w, TRUE);
		wire_put_u32(w, 4096);
		wire_put_u32(w, 1000);
		wire_put_u32(w, 1);
		for (uint32_t i = 0; i < 6; i++)
			wire_put_u32(w, i);
	}
}

void hostile_results(struct wire_put *w, const struct hostile_call *c, const char **ret_data)
{
	*ret_data = NULL;
	if (c->prog == NFS_PROGRAM && c->proc)
		put_nfs(w, c, ret_data);
	else if (c->prog == NFSACL_PROGRAM && c->proc)
		put_acl(w, c);
	else if (c->prog == LEAT_BLOCK && c->proc)
		put_block(w, c, ret_data);
	else if (c->prog == LEAT_VOLUME && c->proc)
		hostile_put_volume(w, c);
	else if (c->prog == LEAT_STRIPES && c->proc)
		hostile_put_stripes(w, c, ret_data);
	else
		put_other(w, c);
}
