/* SPDX-License-Identifier: BSD-2-Clause
 * Copyright (c) 2026 The leat authors
 *
 * volume_rig.c - a striped volume in this process: its manager, four stripe servers, and mounts of it
 *
 * Operation: The stripe servers start first: the map has their ports.
 * Memory:    Static.
 * Threads:   The servers have their own; these functions belong to the test's.
 * Errors:    Asserted with cmocka.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/util.h"
#include "conf.h"
#include "leat_flow.h"
#include "server.h"
#include "volume_rig.h"

#define STOP_MS 20000
#define KEY "volume = 1122334455667788\nkey = 00112233445566778899aabbccddeeff\n"

struct volume_rig volume_rig;
void (*volume_rig_tune)(struct conf *conf);

static void start(struct conf *conf, struct server **ret)
{
	int err = leat_flow_start_aside(conf, ret);

	if (err)
		fail_msg("server_start: %s", strerror(-err));
	conf_fini(conf);
	free(conf);
}

static struct conf *make_conf(const char *listen)
{
	struct conf *conf = malloc(sizeof(*conf));

	assert_non_null(conf);
	conf_init(conf);
	assert_int_equal(rpcrdma_addr_parse(listen, &conf->listen[0]), 0);
	conf->nlisten = 1;
	conf->reactors = 1;
	return conf;
}

static char manager_url[200];

/* Where servers listen that have no address yet; "": at local sockets */
static const char *network(void)
{
	static char url[100];

	url[0] = '\0';
	if (leat_flow_rdma())
		(void)snprintf(url, sizeof(url), "rdma://%.80s:0", leat_flow_rdma());
	else if (volume_rig.tcp)
		strcpy(url, "tcp://127.0.0.1:0");
	return url;
}

static const char *clients(void)
{
	static char text[120];

	if (!network()[0])
		return "";
	(void)snprintf(text, sizeof(text), ",clients=127.0.0.1%s%.80s,insecure", leat_flow_rdma() ? ",clients=" : "",
		       leat_flow_rdma() ? leat_flow_rdma() : "");
	return text;
}

/* The address at which a server listens, with the port that it was given. */
static void print_url(const struct server *s, char *buf, size_t cap)
{
	(void)rpcrdma_addr_print(server_listener(s, 0), buf, cap);
}

void volume_rig_start_server(unsigned i)
{
	static unsigned addresses;
	struct volume_rig *r = &volume_rig;
	char text[512], why[256], url[160];
	struct conf *conf;

	if (r->server_url[i][0])
		strcpy(url, r->server_url[i]);
	else if (network()[0])
		strcpy(url, network());
	else
		(void)snprintf(url, sizeof(url), "local://%.100s/sock%u.%u", r->dir.path, i + 1, addresses++);
	conf = make_conf(url);
	(void)snprintf(text, sizeof(text), "v=%.100s/s%u,key=%.100s/key,id=%u%s", r->dir.path, i + 1, r->dir.path, i + 1,
		       clients());
	if (stripes_conf_parse(text, &conf->stripes[conf->nstripes++], why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	start(conf, &r->server[i]);
	print_url(r->server[i], r->server_url[i], sizeof(r->server_url[i]));
}

void volume_rig_end_server(unsigned i)
{
	assert_int_equal(server_stop(volume_rig.server[i], STOP_MS), 0);
	volume_rig.server[i] = NULL;
}

static unsigned map_version;

static void write_map(void)
{
	char text[1024];

	(void)snprintf(text, sizeof(text), "volume = 1122334455667788\nversion = %u\n", ++map_version);
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "[server %u]\nurl = %s\n", i + 1,
			       volume_rig.server_url[i]);
	tmp_dir_write(&volume_rig.dir, "map", text);
}

static struct conf *manager_conf(void)
{
	struct volume_rig *r = &volume_rig;
	char text[512], why[256], addr[200];
	struct conf *conf;

	if (network()[0])
		(void)snprintf(addr, sizeof(addr), "%s", manager_url[0] ? manager_url : network());
	else
		(void)snprintf(addr, sizeof(addr), "local://%.100s/sock", r->dir.path);
	conf = make_conf(addr);
	conf->state_dir = strdup(tmp_dir_path(&r->dir, "state"));
	(void)snprintf(text, sizeof(text), "v=%.100s/m,key=%.100s/key,map=%.100s/map,no_root_squash%s%s%.100s", r->dir.path, r->dir.path, r->dir.path,
		       clients(), r->volume ? "," : "", r->volume ? r->volume : "");
	if (volume_conf_parse(text, &conf->exports[conf->nexports++], why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	if (volume_rig_tune)
		volume_rig_tune(conf);
	return conf;
}

void volume_rig_end_manager(void)
{
	assert_int_equal(server_stop(volume_rig.manager, STOP_MS), 0);
	volume_rig.manager = NULL;
}

void volume_rig_start_manager(void)
{
	struct volume_rig *r = &volume_rig;

	start(manager_conf(), &r->manager);
	print_url(r->manager, manager_url, sizeof(manager_url));
	(void)snprintf(r->url, sizeof(r->url), "%.180s/v", manager_url);
}

void volume_rig_new_map(void)
{
	struct conf *conf = manager_conf();
	char why[512];

	write_map();
	if (server_reload(volume_rig.manager, conf, why, sizeof(why)))
		fail_msg("%s", why);
	conf_fini(conf);
	free(conf);
}

void volume_rig_start(bool tcp, const char *volume)
{
	struct volume_rig *r = &volume_rig;
	char name[8];

	memset(r, 0, sizeof(*r));
	manager_url[0] = '\0';
	r->tcp = tcp;
	r->volume = volume;
	log_state.level = LOG_LEVEL_ERR;
	tmp_dir_create(&r->dir);
	tmp_dir_mkdir(&r->dir, "m");
	tmp_dir_mkdir(&r->dir, "state");
	tmp_dir_write(&r->dir, "key", KEY);
	assert_int_equal(chmod(tmp_dir_path(&r->dir, "key"), 0600), 0);
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++) {
		(void)snprintf(name, sizeof(name), "s%u", i + 1);
		tmp_dir_mkdir(&r->dir, name);
		volume_rig_start_server(i);
	}
	write_map();
	volume_rig_start_manager();
}

void volume_rig_stop(void)
{
	assert_int_equal(server_stop(volume_rig.manager, STOP_MS), 0);
	for (unsigned i = 0; i < VOLUME_RIG_SERVERS; i++)
		if (volume_rig.server[i])
			volume_rig_end_server(i);
	tmp_dir_destroy(&volume_rig.dir);
}

struct leat *volume_rig_mount(const char *options)
{
	char url[400];
	struct leat *m;

	bool own = options && strstr(options, "stripe_timeo=");

	(void)snprintf(url, sizeof(url), "%s?%s%s%s", volume_rig.url, own ? "" : "stripe_timeo=60s", options && !own ? "&" : "",
		       options ? options : "");
	if (leat_mount(url, NULL, &m))
		fail_msg("%s", leat_error(NULL));
	return m;
}

/* ---- what is there -------------------------------------------------------------------------- */

struct leat_file *volume_rig_open(struct leat *m, const char *name, int flags)
{
	struct leat_file *f;

	if (leat_open(m, name, flags, 0644, &f))
		fail_msg("%s: %s", name, leat_error(m));
	return f;
}

/* Adds up the files of a directory, which need not exist. Return: how many */
static unsigned add_files(const char *path, uint64_t *bytes)
{
	DIR *d = opendir(path);
	const struct dirent *e;
	struct stat st;
	unsigned n = 0;

	while (d && (e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		assert_int_equal(fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW), 0);
		*bytes += (uint64_t)st.st_size;
		n++;
	}
	if (d)
		closedir(d);
	return n;
}

unsigned volume_rig_entries(const char *dir)
{
	DIR *d = opendir(tmp_dir_path(&volume_rig.dir, dir));
	unsigned n = 0;

	assert_non_null(d);
	for (const struct dirent *e; (e = readdir(d)) != NULL;)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

/* What is asynchronous ends some time. */
void volume_rig_settle(void)
{
	uint64_t until = clock_now_ns() + 20 * NS_PER_S;

	while (volume_rig_entries("m/pending") && clock_now_ns() < until)
		(void)poll(NULL, 0, 1);
	assert_int_equal(volume_rig_entries("m/pending"), 0);
}

uint64_t volume_rig_objects(unsigned i, unsigned *ret_n)
{
	uint64_t bytes = 0;
	unsigned n = 0;

	for (unsigned fan = 0; fan < 256; fan++) {
		char path[300];

		(void)snprintf(path, sizeof(path), "%s/s%u/objects/%02x", volume_rig.dir.path, i + 1, fan);
		n += add_files(path, &bytes);
	}
	if (ret_n)
		*ret_n = n;
	return bytes;
}

int volume_rig_setup(void **state)
{
	(void)state;
	volume_rig_start(false, "stripe=64K");
	return 0;
}

int volume_rig_teardown(void **state)
{
	(void)state;
	volume_rig_stop();
	return 0;
}
