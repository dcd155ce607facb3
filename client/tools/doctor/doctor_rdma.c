/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * doctor_rdma.c - leat doctor: the RDMA devices of this machine, from /sys
 *
 * Operation:  First checks whether this user may open the device files of each device. Then prints a line
 *             for each port: its state, addresses and MTU. The RDMA libraries are not used: if something
 *             is missing they print, block, or fail without a reason.
 * Memory:     Nothing is kept.
 * Threads:    One.
 * Errors:     Facts that cannot be read are omitted.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"

#define DEVICES "/sys/class/infiniband"
#define VERBS "/sys/class/infiniband_verbs"
#define NAME_BYTES 64
#define GIDS_LOOKED_AT 16

/* a file of a port; "" if it cannot be read */
static const char *port_file(const char *device, const char *port, const char *file, char *buf,
			     size_t cap)
{
	char path[320];

	snprintf(path, sizeof(path), DEVICES "/%.64s/ports/%.16s/%.64s", device, port, file);
	if (doctor_read(path, buf, cap))
		buf[0] = '\0';
	return buf;
}

static unsigned netdev_mtu(const char *netdev)
{
	char path[128], text[32];
	uint64_t mtu;

	snprintf(path, sizeof(path), "/sys/class/net/%.32s/mtu", netdev);
	return !doctor_read(path, text, sizeof(text)) && doctor_number(text, &mtu) && mtu < UINT_MAX ?
		       (unsigned)mtu :
		       0;
}

/* The addresses of a port, and the network device that has them. */
static void port_addresses(const char *device, const char *port, char *list, size_t cap,
			   char netdev[NAME_BYTES])
{
	size_t used = 0;

	list[0] = netdev[0] = '\0';
	for (unsigned i = 0; i < GIDS_LOOKED_AT; i++) {
		char file[64], gid[64], text[64];

		snprintf(file, sizeof(file), "gids/%u", i);
		if (!doctor_gid(port_file(device, port, file, gid, sizeof(gid)), text, sizeof(text)))
			continue;
		/* versions 1 and 2 of RoCE list the same addresses twice */
		if (!strstr(list, text) && used + strlen(text) + 2 < cap)
			used += (size_t)snprintf(list + used, cap - used, "%s%s", used ? " " : "", text);
		snprintf(file, sizeof(file), "gid_attrs/ndevs/%u", i);
		if (!netdev[0])
			port_file(device, port, file, netdev, NAME_BYTES);
	}
}

/* the name of the device file of @device: "uverbs0" */
static bool find_uverbs(const char *device, char uverbs[NAME_BYTES])
{
	DIR *dir = opendir(VERBS);
	const struct dirent *e;
	bool found = false;

	while (dir && !found && (e = readdir(dir)) != NULL) {
		char path[320], text[NAME_BYTES];

		snprintf(path, sizeof(path), VERBS "/%.64s/ibdev", e->d_name);
		if (e->d_name[0] == '.' || doctor_read(path, text, sizeof(text)))
			continue;
		found = !strcmp(text, device);
		if (found)
			snprintf(uverbs, NAME_BYTES, "%.63s", e->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* May this user open a device file that @device requires? If not, reports why. */
static bool can_open(const char *device, const char *path)
{
	if (!access(path, R_OK | W_OK))
		return true;
	doctor_report("rdma", DOCTOR_MISSING, "%s: %s: %s; it should be open to all (rdma-core's udev rules)", device,
		      path, strerror(errno));
	return false;
}

/* May this user open both required device files? */
static bool say_access(const char *device)
{
	static const char cm[] = "/dev/infiniband/rdma_cm";
	char uverbs[NAME_BYTES] = "", path[128];

	if (!find_uverbs(device, uverbs)) {
		doctor_report("rdma", DOCTOR_MISSING, "%s: programs have no way to it; modprobe ib_uverbs rdma_ucm",
			      device);
		return false;
	}
	if (access(cm, F_OK) && errno == ENOENT) {
		doctor_report("rdma", DOCTOR_MISSING, "%s: no %s; modprobe rdma_ucm", device, cm);
		return false;
	}
	snprintf(path, sizeof(path), "/dev/infiniband/%s", uverbs);
	return can_open(device, cm) && can_open(device, path);
}

static void say_port(const char *device, const char *port)
{
	char state[64], layer[64], rate[64], netdev[NAME_BYTES], list[200], mtu[96] = "";
	bool active;

	port_file(device, port, "state", state, sizeof(state));
	port_file(device, port, "link_layer", layer, sizeof(layer));
	port_file(device, port, "rate", rate, sizeof(rate));
	port_addresses(device, port, list, sizeof(list), netdev);
	active = !strcmp(doctor_state(state), "ACTIVE");
	if (!strcmp(layer, "Ethernet") && netdev[0])
		snprintf(mtu, sizeof(mtu), ", %s, path MTU %u of 4096", netdev,
			 doctor_roce_mtu(netdev_mtu(netdev)));
	if (!active)
		doctor_report("rdma", DOCTOR_MISSING, "%s port %s is %s: no cable, or its network device is "
			      "down", device, port, *state ? doctor_state(state) : "not readable");
	else if (!list[0])
		doctor_report("rdma", DOCTOR_MISSING, "%s port %s is ACTIVE, %s, %s, but has no IP address: "
			      "ip addr add ... dev %s", device, port, layer, rate,
			      netdev[0] ? netdev : "its network device");
	else
		doctor_report("rdma", DOCTOR_OK, "%s port %s is ACTIVE, %s, %s%s, at %s", device, port, layer,
			      rate, mtu, list);
}

static void each_name(const char *path, void (*fn)(const char *name, void *ctx), void *ctx)
{
	DIR *dir = opendir(path);
	const struct dirent *e;

	while (dir && (e = readdir(dir)) != NULL) {
		if (e->d_name[0] != '.' && strlen(e->d_name) < NAME_BYTES)
			fn(e->d_name, ctx);
	}
	if (dir)
		closedir(dir);
}

static void on_port(const char *name, void *ctx)
{
	say_port(ctx, name);
}

static void on_device(const char *name, void *ctx)
{
	char path[128], device[NAME_BYTES];

	++*(unsigned *)ctx;
	snprintf(device, sizeof(device), "%.63s", name);
	snprintf(path, sizeof(path), DEVICES "/%s/ports", device);
	if (say_access(device))
		each_name(path, on_port, device);
}

unsigned doctor_rdma(void)
{
	unsigned n = 0;

	each_name(DEVICES, on_device, &n);
	if (!n)
		doctor_report("rdma", DOCTOR_MISSING, "no RDMA device: local and TCP serve; a soft one is made "
			      "by root: rdma link add rxe0 type rxe netdev ETH (doc/interop.md)");
	return n;
}
