/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * local_sock.c - the local fabric's socket: datagrams with descriptors, identity of the peer
 *
 * Operation:  listen and dial create the sockets. They carry the handshake (local_cm.c), then the
 *             descriptors of slabs and the doorbells (local_ring.c). Each call is non-blocking by its
 *             flags, because a peer could change the mode of an open file description that it shares
 *             with us. No socket is shared. For the same reason a doorbell is a datagram, not an
 *             eventfd: the peer could fill an eventfd and make it blocking, and our write() would hang.
 *             A listener replaces a dead socket file only under the lock of PATH.lock, which exists
 *             only during that time: of two servers started at once one succeeds.
 * Memory:     No allocation. The caller owns a received descriptor; further ones go to the closer
 *             (local_close.c).
 * Threads:    Any; one reader per socket.
 * Errors:     -errno. A datagram of another format is -EPROTO.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/caps.h"
#include "local_int.h"
#include "local_path.h"

#define FDS_MAX 4   /* sent at once */
#define RIGHTS_MAX 253 /* received: with less room the kernel would close the others here */

/** rr_local_sock_send - sends one datagram
 * @sock: the connection
 * @msg: NULL for a doorbell
 * @fds: descriptors to pass; the caller keeps them
 * @nfds: number of @fds, <= FDS_MAX
 *
 * Return: 0, -EAGAIN if the peer does not read, -EPIPE or -ECONNRESET if it is gone.
 */
int rr_local_sock_send(int sock, const struct hs_msg *msg, const int *fds, int nfds)
{
	char bell = 'D';
	struct iovec iov = { .iov_base = &bell, .iov_len = 1 };
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} ctl;
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	assert(nfds <= FDS_MAX);
	if (msg) {
		iov.iov_base = (void *)(uintptr_t)msg; /* sendmsg does not write to it */
		iov.iov_len = sizeof(*msg);
	}
	if (nfds) {
		struct cmsghdr *c;

		memset(&ctl, 0, sizeof(ctl));
		mh.msg_control = ctl.buf;
		mh.msg_controllen = CMSG_SPACE((size_t)nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, (size_t)nfds * sizeof(int));
	}
	for (;;) {
		if (sendmsg(sock, &mh, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
			return 0;
		if (errno != EINTR)
			return -errno;
	}
}

/* Takes the descriptors out of a control message. Return: the first, or -1; the closer gets the others. */
static int take_fds(struct local_closer *closer, uint64_t owner, struct msghdr *mh)
{
	int first = -1;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		size_t count;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (first < 0)
				first = fd;
			else
				rr_local_close_later(closer, owner, fd);
		}
	}
	return first;
}

/** rr_local_sock_recv - receives one datagram
 * @closer: for descriptors after the first
 * @owner: of the descriptors, for rr_local_closer_full()
 * @sock: the connection
 * @msg: its content; type 0 for a doorbell
 * @ret_fd: the first descriptor, even with an error, or -1; unless it is of the expected kind, pass it
 *          to rr_local_close_later()
 *
 * Return: 0, -EAGAIN if there is no datagram, -ECONNRESET if the peer is gone, -EPROTO if the datagram is
 * invalid, or was not read because too many of the owner's descriptors wait to be closed.
 */
int rr_local_sock_recv(struct local_closer *closer, uint64_t owner, int sock, struct hs_msg *msg,
		       int *ret_fd)
{
	struct iovec iov = { .iov_base = msg, .iov_len = sizeof(*msg) };
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(RIGHTS_MAX * sizeof(int))];
	} ctl;
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1,
			     .msg_control = ctl.buf, .msg_controllen = sizeof(ctl.buf) };
	ssize_t n;

	*ret_fd = -1;
	memset(msg, 0, sizeof(*msg));
	if (unlikely(rr_local_closer_full(closer, owner)))
		return -EPROTO;
	do {
		n = recvmsg(sock, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? -EAGAIN : -ECONNRESET;
	*ret_fd = take_fds(closer, owner, &mh);
	if (n == 0)
		return -ECONNRESET;
	if (n == 1) {
		memset(msg, 0, sizeof(*msg));
		return 0;
	}
	if (n != sizeof(*msg) || mh.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ||
	    msg->magic != HS_MAGIC || msg->version != HS_VERSION || !msg->type ||
	    msg->priv_len > RR_PRIV_MAX)
		return -EPROTO;
	return 0;
}

static int make_addr(const char *path, struct sockaddr_un *sun)
{
	size_t len = strlen(path);

	if (!len)
		return -EINVAL;
	if (len >= sizeof(sun->sun_path))
		return -ENAMETOOLONG;
	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	memcpy(sun->sun_path, path, len);
	return 0;
}

/** rr_local_sock_dial - connects to the socket at @path
 *
 * Return: 0, -ECONNREFUSED if no process listens there, -EAGAIN if the accept queue is full: a
 * non-blocking connect() does not wait, but the caller may retry; -ENAMETOOLONG, or the errno of a call.
 */
int rr_local_sock_dial(const char *path, int *ret_fd)
{
	struct sockaddr_un sun;
	int fd, rc = make_addr(path, &sun);

	if (rc)
		return rc;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun))) {
		/* while a server restarts, the socket is missing for a moment */
		rc = errno == ENOENT ? -ECONNREFUSED : -errno;
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

/** rr_local_sock_dial_trusted - connects to a socket that a user of @trust listens on, at a path where no
 * other user can create one (local_path.c)
 *
 * SO_PEERCRED names the process that called listen(), even after the socket was passed on.
 *
 * Return: 0; -EPERM: not such a socket, @trust->why gives the reason; else as rr_local_sock_dial().
 */
int rr_local_sock_dial_trusted(const char *path, struct rr_trust *trust, int *ret_fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	char link[40], uid[RR_TRUST_UID_BYTES];
	int at, fd, rc = rr_local_path_open(path, trust, &at);

	if (rc)
		return rc == -ENOENT ? -ECONNREFUSED : rc;
	snprintf(link, sizeof(link), "/proc/thread-self/fd/%d", at);
	rc = rr_local_sock_dial(link, &fd);
	close(at);
	if (rc)
		return rc;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		rc = -errno;
	else if (!rr_trust_has(trust, cred.uid)) {
		snprintf(trust->why, sizeof(trust->why), "the listener's %s is neither "
			 "root nor this user (socket_user=%u would accept it)", rr_trust_print_uid(cred.uid, uid),
			 (unsigned)cred.uid);
		rc = -EPERM;
	}
	if (rc) {
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

/* Only the holder may remove a dead socket file. The lock file is removed with the lock, so a lock on a file that was
 * removed meanwhile is void. */
static int lock_path(const char *path, char *lock, size_t room)
{
	(void)snprintf(lock, room, "%s.lock", path);
	for (;;) {
		int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
		struct stat mine, there;
		int rc;

		if (fd < 0)
			return -errno;
		rc = fstat(fd, &mine) ? -errno : 0;
		if (!rc && mine.st_uid != geteuid())
			rc = -EACCES; /* owned by another user that might never release it */
		while (!rc && flock(fd, LOCK_EX))
			rc = errno == EINTR ? 0 : -errno;
		if (!rc && !lstat(lock, &there) && mine.st_dev == there.st_dev &&
		    mine.st_ino == there.st_ino)
			return fd;
		close(fd);
		if (rc)
			return rc;
	}
}

/* Clears @path for a new socket. Return: 0 if it is free, or was a socket without a server that is now removed. */
static int clear_path(const char *path)
{
	struct stat st;
	int other, rc;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	rc = rr_local_sock_dial(path, &other);
	if (rc == 0)
		close(other);
	if (rc != -ECONNREFUSED)
		return -EADDRINUSE;
	return unlink(path) && errno != ENOENT ? -errno : 0;
}

/** rr_local_sock_listen - listens at @path; replaces a socket file without a server
 * @path: of the socket
 * @mode: its permission bits
 * @ret_fd: the listening socket
 *
 * Return: 0, -EADDRINUSE if a process serves it, -EEXIST if it is not a socket, -ENAMETOOLONG, or the errno
 * of a call.
 */
int rr_local_sock_listen(const char *path, mode_t mode, int *ret_fd)
{
	char lock[sizeof(((struct sockaddr_un *)0)->sun_path) + sizeof(".lock")];
	struct sockaddr_un sun;
	int fd, lockfd, rc = make_addr(path, &sun);

	if (rc)
		return rc;
	lockfd = lock_path(path, lock, sizeof(lock));
	if (lockfd < 0)
		return lockfd;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	rc = fd < 0 ? -errno : clear_path(path);
	if (rc)
		goto out;
	if (bind(fd, (struct sockaddr *)&sun, sizeof(sun))) {
		rc = -errno;
		goto out;
	}
	/* before listen(): no peer can connect under the mode of the umask */
	if (fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW) || listen(fd, SOMAXCONN)) {
		rc = -errno;
		(void)unlink(path);
		goto out;
	}
	*ret_fd = fd;
out:
	if (rc && fd >= 0)
		close(fd);
	(void)unlink(lock); /* while we hold it */
	close(lockfd);
	return rc;
}

/** rr_local_sock_gone - true if the peer's process has closed its end */
bool rr_local_sock_gone(int sock)
{
	struct pollfd p = { .fd = sock };

	return sock < 0 || (poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLERR)));
}

/** rr_local_sock_peer - fills in the peer's identity, as reported by the kernel */
void rr_local_sock_peer(int sock, struct rr_peer *peer)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	memset(peer, 0, sizeof(*peer));
	peer->addr.ss_family = AF_UNSPEC;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return;
	peer->has_cred = true;
	peer->pid = cred.pid;
	peer->uid = cred.uid;
	peer->gid = cred.gid;
	snprintf(peer->text, sizeof(peer->text), "pid %d uid %u", (int)cred.pid,
		 (unsigned)cred.uid);
	len = sizeof(peer->groups);
	/* the kernel returns all groups or none (ERANGE) */
	if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, peer->groups, &len))
		peer->groups_unknown = true;
	else
		peer->ngroups = (unsigned)(len / sizeof(gid_t));
}

/** rr_local_sock_try_vm - tests whether this process may access the peer's memory by process_vm_*
 * @mode: of the fabric
 * @peer: its identity
 * @hs: its HELLO or REQ, with the address of a cookie
 *
 * With CAP_SYS_PTRACE the kernel permits access to any process, even if the peer has executed a setuid
 * program since. Without it and with equal uids, the kernel makes the correct decision.
 */
bool rr_local_sock_try_vm(enum rr_local_vm mode, const struct rr_peer *peer,
			  const struct hs_msg *hs)
{
	uint8_t got[sizeof(hs->cookie)];
	struct iovec mine = { .iov_base = got, .iov_len = sizeof(got) };
	struct iovec theirs = { .iov_base = (void *)(uintptr_t)hs->cookie_addr,
				.iov_len = sizeof(got) };

	if (mode == RR_LOCAL_VM_NEVER || !peer->has_cred || peer->pid <= 0)
		return false;
	if (mode == RR_LOCAL_VM_AUTO && peer->pid != getpid() &&
	    (peer->uid != geteuid() || caps_has(CAP_SYS_PTRACE, true)))
		return false;
	return process_vm_readv(peer->pid, &mine, 1, &theirs, 1, 0) == (ssize_t)sizeof(got) &&
	       memcmp(got, hs->cookie, sizeof(got)) == 0;
}
