/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * local_map.c - the local fabric's shared memory: memfds, checked, charged to a client and mapped
 *
 * Operation:  rr_local_map_make() creates a memfd, rr_local_map_get() accepts one from the peer. The peer's
 *             must be a memfd of ordinary pages that has the claimed size and is sealed against
 *             resizing. The peer controls its pages at any time: it may punch holes, and a page that
 *             is missing may be impossible to allocate. Therefore only the kernel loads from or
 *             stores to a region or a bounce area: a fault is then an error, not a signal.
 *             Reads use pread() on the descriptor. Writes use process_vm_writev() on this process's
 *             mapping, not pwritev(), for two reasons. The peer shares the open file description and
 *             may set O_APPEND. And the peer can hold the inode's lock indefinitely, by a write() of
 *             its own from memory with pages that it withholds.
 * Memory:     A mapping is charged to its client with its full size, since our accesses fill holes
 *             on our account. A region that a client offers on several connections is mapped and
 *             charged once.
 * Threads:    Any. fabric->lock: the list of regions and their reference counts.
 * Errors:     -EPROTO: not such a memfd; -EDQUOT: more than the share of the client.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "local_int.h"
#include "shm_map.h"

#define REGION_CHARGE_MIN (UINT64_C(1) << 20) /* descriptors and mappings are scarce, too */
#define SLOW_FREE (UINT64_C(64) << 20) /* a larger memfd takes long to free */

/** rr_local_memfd_ok - true if @fd is a memfd of ordinary pages that is sealed at @size bytes
 *
 * A memfd of huge pages is refused: its mappings are longer than requested.
 */
bool rr_local_memfd_ok(int fd, uint64_t size)
{
	const int want = F_SEAL_SHRINK | F_SEAL_GROW;
	struct statfs fs;
	struct stat st;
	int seals;

	/* seals first: only a memfd has any; the other calls could sleep in a file system that the peer serves */
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & want) != want || fstatfs(fd, &fs) || fstat(fd, &st))
		return false;
	return fs.f_type == TMPFS_MAGIC && st.st_size > 0 && (uint64_t)st.st_size == size;
}

/** rr_local_map_close - closes memory that is not mapped (any more); ours may be the last descriptor
 * @owner: uid of the peer that also has it
 * @fd: a memfd (rr_local_memfd_ok())
 */
void rr_local_map_close(struct local_fabric *f, uint64_t owner, int fd, uint64_t size)
{
	if (size > SLOW_FREE)
		rr_local_close_later(f->closer, owner | LOCAL_MEMORY, fd);
	else
		close(fd);
}

static void map_free(struct local_fabric *f, struct local_map *m)
{
	if (m->addr)
		(void)munmap(m->addr, m->size); /* cannot fail for a range that we mapped */
	if (m->fd >= 0)
		rr_local_map_close(f, m->owner, m->fd, m->size);
	rr_client_uncharge(m->client, m->share, m->charged);
	rr_client_put(m->client);
	free(m);
}

/* Charges and maps @fd; the mapping owns it if this returns 0. */
static int map_new(struct local_qp *qp, enum rr_share share, int fd, uint64_t size,
		   struct local_map **ret)
{
	uint64_t charge = share == RR_SHARE_REGION ? MAX(size, REGION_CHARGE_MIN) : size;
	struct local_map *m;
	void *addr;
	int rc;

	if (rr_client_charge(qp->client, share, charge))
		return -EDQUOT;
	m = calloc(1, sizeof(*m));
	if (!m) {
		rr_client_uncharge(qp->client, share, charge);
		return -ENOMEM;
	}
	rr_client_hold(qp->client);
	*m = (struct local_map){ .client = qp->client, .owner = peer_owner(qp), .share = share,
				 .charged = charge, .size = size, .fd = -1, .refs = 1 };
	list_init(&m->node);
	addr = rr_shm_map(fd, size);
	if (addr == MAP_FAILED) {
		rc = -errno;
		map_free(to_fabric(qp->base.fabric), m);
		return rc;
	}
	m->addr = addr;
	m->fd = fd;
	*ret = m;
	return 0;
}

/** rr_local_map_make - creates shared memory for the peer of @qp, charged to its part of @share
 *
 * Return: 0, with its descriptor in (*ret)->fd; -EDQUOT, -ENOMEM, or the errno of memfd_create(),
 * ftruncate() or mmap().
 */
int rr_local_map_make(struct local_qp *qp, enum rr_share share, const char *name, uint64_t size,
		      struct local_map **ret)
{
	int rc, fd = rr_shm_create(name, size);

	if (fd < 0)
		return fd;
	rc = map_new(qp, share, fd, size, ret);
	if (rc)
		close(fd);
	return rc;
}

/* The lock is held. */
static struct local_map *region_find(struct local_qp *qp, const struct stat *st)
{
	list_for_each(node, &to_fabric(qp->base.fabric)->maps) {
		struct local_map *m = list_entry(node, struct local_map, node);

		if (m->client == qp->client && m->dev == st->st_dev && m->ino == st->st_ino)
			return m;
	}
	return NULL;
}

static int region_get(struct local_qp *qp, int fd, uint64_t size, struct local_map **ret)
{
	struct local_fabric *f = to_fabric(qp->base.fabric);
	struct local_map *m;
	struct stat st;
	int rc = 0;

	if (fstat(fd, &st))
		return -errno;
	pthread_mutex_lock(&f->lock);
	m = region_find(qp, &st);
	if (m) {
		m->refs++;
		close(fd);
	} else {
		rc = map_new(qp, RR_SHARE_REGION, fd, size, &m);
		if (!rc) {
			m->dev = st.st_dev;
			m->ino = st.st_ino;
			list_add_tail(&f->maps, &m->node);
		}
	}
	pthread_mutex_unlock(&f->lock);
	if (!rc)
		*ret = m;
	return rc;
}

/** rr_local_map_get - maps a memfd that the peer of @qp passed
 * @share: RR_SHARE_REGION: memory of the client, a bounce area; RR_SHARE_RING: rings, a small bounce area
 * @fd: from the peer; the mapping owns it if this returns 0
 * @size: that the peer claims
 *
 * Return: 0; -EPROTO: see rr_local_memfd_ok(); -EDQUOT; -ENOMEM, or the errno of mmap().
 */
int rr_local_map_get(struct local_qp *qp, enum rr_share share, int fd, uint64_t size,
		     struct local_map **ret)
{
	if (!rr_local_memfd_ok(fd, size))
		return -EPROTO;
	return share == RR_SHARE_REGION ? region_get(qp, fd, size, ret)
					: map_new(qp, share, fd, size, ret);
}

/** rr_local_map_put - drops a reference; the last one unmaps and uncharges. @m may be NULL */
void rr_local_map_put(struct local_fabric *f, struct local_map *m)
{
	bool last;

	if (!m)
		return;
	pthread_mutex_lock(&f->lock);
	last = !--m->refs;
	if (last)
		list_del(&m->node);
	pthread_mutex_unlock(&f->lock);
	if (last)
		map_free(f, m);
}

/** rr_local_map_close_fd - closes the descriptor of a mapping that is only used by address */
void rr_local_map_close_fd(struct local_map *m)
{
	close(m->fd);
	m->fd = -1;
}

/** rr_local_vm_copy - copies between our memory and a process, which may be this one
 * @pid: of the process
 * @ours: our memory
 * @addr: address in the process
 * @write: copy to the process
 *
 * Return: false if not all of it could be copied.
 */
bool rr_local_vm_copy(pid_t pid, void *ours, uint64_t addr, size_t len, bool write)
{
	while (len) {
		struct iovec here = { .iov_base = ours, .iov_len = len };
		struct iovec there = { .iov_base = (void *)(uintptr_t)addr, .iov_len = len };
		ssize_t got = write ? process_vm_writev(pid, &here, 1, &there, 1, 0)
				    : process_vm_readv(pid, &here, 1, &there, 1, 0);

		if (got <= 0)
			return false;
		ours = (uint8_t *)ours + got;
		addr += (uint64_t)got;
		len -= (size_t)got;
	}
	return true;
}

/** rr_local_map_read - copies from shared memory
 * @off: in the mapping; @off + @len is within its size
 *
 * Return: false if not all of it could be copied.
 */
bool rr_local_map_read(const struct local_map *m, void *to, size_t len, uint64_t off)
{
	while (len) {
		ssize_t got = pread(m->fd, to, len, (off_t)off);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		to = (uint8_t *)to + got;
		off += (uint64_t)got;
		len -= (size_t)got;
	}
	return true;
}

/** rr_local_map_write - copies to shared memory; as rr_local_map_read() */
bool rr_local_map_write(const struct local_map *m, void *from, size_t len, uint64_t off)
{
	return rr_local_vm_copy(getpid(), from, (uintptr_t)m->addr + off, len, true);
}
