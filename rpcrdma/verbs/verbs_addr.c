/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * verbs_addr.c - addresses of the verbs fabric and their devices
 *
 * Operation:  An address of this host belongs to the device that librdmacm binds an identifier to.
 *             For a peer's address a connected datagram socket, which sends nothing, shows the source
 *             address that the kernel's routes select; the device is that of the source address.
 *             A requester has a reserved port, which some servers require, if it may. The wildcard address leaves the
 *             device to the route.
 * Memory:     None.
 * Threads:    Any. Resolving a name blocks; a literal address does not.
 * Errors:     -errno; -ENXIO if no RDMA device has the address.
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "resv_ports.h"
#include "verbs_int.h"

/** rr_verbs_addr_parse - parses "host:port" or "[v6]:port"; a literal address is not resolved
 *
 * Return: 0, -EINVAL, -ENAMETOOLONG, -EHOSTUNREACH for an unknown name, -ENOMEM, an errno of the
 * resolver.
 */
int rr_verbs_addr_parse(const char *addr, bool passive, struct sockaddr_storage *ret)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_NUMERICSERV | AI_NUMERICHOST |
					      (passive ? AI_PASSIVE : 0) };
	const char *colon = strrchr(addr, ':');
	struct addrinfo *ai;
	char host[256];
	size_t len;
	int rc;

	if (!colon)
		return -EINVAL;
	len = (size_t)(colon - addr);
	if (len >= 2 && addr[0] == '[' && addr[len - 1] == ']') {
		addr++;
		len -= 2;
	}
	if (len >= sizeof(host))
		return -ENAMETOOLONG;
	memcpy(host, addr, len);
	host[len] = 0;
	rc = getaddrinfo(len ? host : NULL, colon + 1, &hints, &ai);
	if (rc == EAI_NONAME) {
		hints.ai_flags &= ~AI_NUMERICHOST;
		rc = getaddrinfo(len ? host : NULL, colon + 1, &hints, &ai);
	}
	if (rc)
		return rc == EAI_MEMORY ? -ENOMEM : rc == EAI_SYSTEM ? verbs_err(errno) :
								       -EHOSTUNREACH;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, ai->ai_addr, ai->ai_addrlen);
	freeaddrinfo(ai);
	return 0;
}

static in_port_t *port_of(struct sockaddr_storage *ss)
{
	return ss->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)(void *)ss)->sin6_port :
					   &((struct sockaddr_in *)(void *)ss)->sin_port;
}

/** rr_verbs_addr_is_any - true if it stands for all addresses of this host */
bool rr_verbs_addr_is_any(const struct sockaddr_storage *ss)
{
	if (ss->ss_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)(const void *)ss)->sin6_addr);
	return ((const struct sockaddr_in *)(const void *)ss)->sin_addr.s_addr == htonl(INADDR_ANY);
}

/* Replaces @ss by the source address that this host uses to reach it. */
static int source_of(struct sockaddr_storage *ss)
{
	socklen_t len = ss->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						    sizeof(struct sockaddr_in);
	int fd = socket(ss->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)ss, len))
		rc = -errno;
	len = sizeof(*ss);
	if (!rc && getsockname(fd, (struct sockaddr *)ss, &len))
		rc = -errno;
	close(fd);
	return rc;
}

static bool is_linklocal(const struct sockaddr_storage *ss)
{
	return ss->ss_family == AF_INET6 &&
	       IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)ss)->sin6_addr);
}

/** rr_verbs_bind_resv - binds to a reserved port for dialling @peer, if the process is allowed to and one is free
 *
 * Otherwise @id stays unbound, and gets any port when it is resolved. A port belongs to one connection of the host:
 * the kernel reports one in use as EADDRNOTAVAIL, because a wildcard address is involved. Bound to the wildcard address,
 * @id would lose the interface of a link-local peer, so it is then bound to the source address.
 */
void rr_verbs_bind_resv(struct rdma_cm_id *id, const struct sockaddr_storage *peer)
{
	struct sockaddr_storage ss = { .ss_family = peer->ss_family };
	struct rr_resv_ports ports;
	uint16_t port;
	int rc;

	if (is_linklocal(peer)) {
		ss = *peer;
		if (source_of(&ss))
			return;
	}
	rr_resv_ports_init(&ports, clock_now_ns());
	do {
		port = rr_resv_ports_next(&ports);
		if (!port)
			return;
		*port_of(&ss) = htons(port);
		rc = rdma_bind_addr(id, (struct sockaddr *)&ss);
	} while (rc && (errno == EADDRINUSE || errno == EADDRNOTAVAIL));
}

static int device_that_has(struct sockaddr_storage *ss, char *device, size_t cap)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	int rc = rr_verbs_channel(&channel);

	if (rc)
		return rc;
	if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP)) {
		rc = verbs_err(errno);
		goto out;
	}
	*port_of(ss) = 0; /* that port may be in use */
	if (rdma_bind_addr(id, (struct sockaddr *)ss))
		rc = errno == ENODEV ? -ENXIO : verbs_err(errno);
	else if (!id->verbs)
		rc = -ENXIO;
	else
		snprintf(device, cap, "%s", ibv_get_device_name(id->verbs->device));
	(void)rdma_destroy_id(id);
out:
	rdma_destroy_event_channel(channel);
	return rc;
}

int rr_verbs_device_of(const char *addr, bool passive, char *device, size_t cap)
{
	struct sockaddr_storage ss;
	int rc;

	if (!rr_verbs_any_device())
		return -ENODEV;
	rc = rr_verbs_addr_parse(addr, passive, &ss);
	if (!rc && passive && rr_verbs_addr_is_any(&ss)) {
		*device = '\0';
		return 0;
	}
	if (!rc && !passive)
		rc = source_of(&ss);
	return rc ? rc : device_that_has(&ss, device, cap);
}
