#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_cli_signals.sh - SIGINT, SIGTERM, SIGHUP and SIGQUIT: commands end at once, or clean up first; a
#                       terminal shows that a server is away; ping and doctor give up on it
#
# A server that is stopped (SIGSTOP) takes connections and never answers, so a command that is asked
# something by it waits for ever.

set -eu
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}"
. scripts/private-leatd.sh
. tests/lib/checks.sh

work=$(mktemp -d)
finish() {
	[ -z "$leatd_pid" ] || kill -CONT "$leatd_pid" 2>/dev/null || :
	leatd_stop
	rm -rf "$work"
}
trap finish EXIT

export_dir=$work/export
mkdir "$export_dir"
echo data >"$export_dir/file"
leatd_start "$export_dir" || exit 1
ulimit -c 0 # SIGQUIT

until_true() { # WHAT COMMAND...: looks again and again, and gives up with the test's own time
	what=$1
	shift
	until "$@"; do
		kill -0 "$command_pid" 2>/dev/null || fail "$what: the command has ended: $(cat "$work/err")"
	done
}

# begin COMMAND...: in the background, with the signals as a terminal would have them (a shell's own
# background commands ignore SIGINT)
begin() {
	env --default-signal=INT,TERM,HUP,QUIT "$@" >"$work/out" 2>"$work/err" &
	command_pid=$!
}
begin_closed() { # COMMAND...: without standard descriptors
	: >"$work/err"
	"$@" <&- >&- 2>&- &
	command_pid=$!
}
ends_with() { # STATUS WHAT
	rc=0
	wait "$command_pid" || rc=$?
	[ "$rc" -eq "$1" ] || fail "$2: status $rc instead of $1: $(cat "$work/err")"
	checks=$((checks + 1))
}

# it has a connection, and waits for the server
connections() { ls -l "/proc/$command_pid/fd" 2>/dev/null | grep -c 'socket:' || :; }
waits() { [ "$(connections)" -gt 0 ] && sleeps_in "$command_pid" 'epoll|ep_poll'; }

# stop_server: none of its threads runs any more; a signal alone takes its time
stop_server() {
	kill -STOP "$leatd_pid"
	until ! cat "/proc/$leatd_pid/task/"*/status | grep '^State:' | grep -qv 'T (stopped)'; do :; done
}

# ---- nothing to clean up: it ends at once, by the signal ---------------------------------------------

stop_server
for url in "$tcp_url" "$local_url"; do
	for sig in INT:130 TERM:143 HUP:129 QUIT:131; do
		begin "$LEAT" ls "$url"
		until_true "ls $url" waits
		kill "-${sig%:*}" "$command_pid"
		ends_with "${sig#*:}" "ls $url, ${sig%:*}"
	done
done
begin "$LEAT" rm "$tcp_url/file"
until_true 'rm' waits
kill -INT "$command_pid"
ends_with 130 'rm'
kill -CONT "$leatd_pid"
[ -e "$export_dir/file" ] || fail 'it was removed all the same'

# ---- a signal that was ignored stays ignored ------------------------------------------------------------

stop_server
(
	trap '' HUP
	exec "$LEAT" ls "$tcp_url"
) >"$work/out" 2>"$work/err" &
command_pid=$!
until_true 'ls under nohup' waits
kill -HUP "$command_pid"
kill -CONT "$leatd_pid"
ends_with 0 'ls under nohup'
[ "$(cat "$work/out")" = file ] || fail "under nohup it said: $(cat "$work/out")"

# ---- a copy cleans up what would be left over on the server ------------------------------------------------

leftover() { ls -A "$export_dir" | grep -q '^\.leat-'; }
mkfifo "$work/slow"
for sig in INT:130 TERM:143 HUP:129 QUIT:131; do
	begin "$LEAT" put "$work/slow" "$tcp_url/from-pipe"
	exec 4>"$work/slow"
	head -c 100000 /dev/zero >&4
	kill "-${sig%:*}" "$command_pid"
	ends_with "${sig#*:}" "put, ${sig%:*}"
	exec 4>&-
	[ -z "$(ls -A "$export_dir" | grep -v '^file$')" ] || fail "put, $sig, left $(ls -A "$export_dir")"
	checks=$((checks + 1))
done

# what lies on this machine needs no server to be removed
head -c 30000000 /dev/zero >"$export_dir/large"
mkdir "$work/mine"
got_some() { ls -A "$work/mine" | grep -q '^\.leat-'; }
for sig in INT:130 QUIT:131; do
	begin "$LEAT" get "$tcp_url/large?rsize=4096&readahead=0&credits=1" "$work/mine/large"
	until_true 'get' got_some
	stop_server
	kill "-${sig%:*}" "$command_pid"
	ends_with "${sig#*:}" 'get from a server that is away'
	kill -CONT "$leatd_pid"
	[ -z "$(ls -A "$work/mine")" ] || fail "get left $(ls -A "$work/mine")"
	[ "$(cat "$work/err")" = "leat: $work/mine/large: interrupted" ] || fail "get said: $(cat "$work/err")"
done
rm "$export_dir/large"

# ---- a copy in place says that the old content is gone, and only if it is ------------------------------------

echo old >"$export_dir/old"
ln "$export_dir/old" "$export_dir/old too"
is_new() { ! grep -q '^old$' "$export_dir/old"; }
for target in "$export_dir" "$tcp_url" "$local_url"; do
	for sig in INT:130 TERM:143; do
		echo old >"$export_dir/old"
		begin "$LEAT" cp "$work/slow" "$target/old"
		exec 4>"$work/slow"
		head -c 100 /dev/zero >&4
		kill "-${sig%:*}" "$command_pid"
		ends_with "${sig#*:}" "in place, before the first write, $sig"
		exec 4>&-
		[ "$(cat "$export_dir/old")" = old ] || fail 'it was written to all the same'
		[ ! -s "$work/err" ] || fail "in place, unchanged, said: $(cat "$work/err")"
		begin "$LEAT" cp "$work/slow" "$target/old"
		exec 4>"$work/slow"
		head -c 3000000 /dev/zero >&4
		until_true 'in place' is_new
		kill "-${sig%:*}" "$command_pid"
		ends_with "${sig#*:}" "in place, $sig"
		exec 4>&-
		part="leat: $target/old: interrupted; it was written in place and now holds part of the new content"
		[ "$(cat "$work/err")" = "$part" ] || fail "in place said: $(cat "$work/err")"
	done
done
rm "$export_dir/old" "$export_dir/old too"

# put_and_stop: a copy that has begun, to a server that is then stopped
put_and_stop() {
	begin "$LEAT" put "$work/slow" "$tcp_url/from-pipe"
	exec 4>"$work/slow"
	until_true 'put' leftover
	stop_server
	kill -TERM "$command_pid"
}

# gave_up: the command was ended in the middle of its cleanup
gave_up() { grep -q 'took too long' "$work/err"; }
may_stay() { # NAME URL
	echo "leat: $2/$1: interrupted; the server does not reply, so $left may stay in $2 (leat rm --leftovers removes it after a day)"
}

# one whose server does not reply to the removal gives up by itself; the server may remove the file later
put_and_stop
ends_with 143 'put to a server that is away'
left=$(ls -A "$export_dir" | grep '^\.leat-')
[ "$(cat "$work/err")" = "$(may_stay from-pipe "$tcp_url")" ] || fail "it said: $(cat "$work/err")"
exec 4>&-
kill -CONT "$leatd_pid"
rm -f "$export_dir/$left"

# the server does not reply to the creation of the temporary file, whose name is random; what it does later, and in
# which order, is its own affair
mkdir "$export_dir/never"
cat >"$work/stop.c" <<'C'
#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>
ssize_t getrandom(void *buf, size_t len, unsigned flags)
{
	const char *armed = getenv("STOP_IF");

	if (armed && len == 8 && !access(armed, F_OK)) {
		kill(atoi(getenv("STOP_PID")), SIGSTOP);
		while (!access(armed, F_OK))
			usleep(1000);
	}
	return syscall(SYS_getrandom, buf, len, flags);
}
C
${CC:-gcc} -shared -fPIC -o "$work/stop.so" "$work/stop.c" || fail 'no library that stops the server'
opens_pipe() { sleeps_in "$command_pid" 'fifo|wait_for_partner'; }
is_stopped() { ! cat "/proc/$leatd_pid/task/"*/status | grep '^State:' | grep -qv 'T (stopped)'; }
begin LD_PRELOAD="$work/stop.so" STOP_IF="$work/armed" STOP_PID="$leatd_pid" \
	ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" \
	"$LEAT" put "$work/slow" "$tcp_url/never/never"
until_true 'put opens its source' opens_pipe
: >"$work/armed"
exec 4>"$work/slow"
until_true 'put creates its file' is_stopped
rm "$work/armed"
until_true 'put waits for its file' waits
kill -TERM "$command_pid"
ends_with 143 'put whose file may exist'
left=$(grep -o '\.leat-[0-9a-f]*' "$work/err" || :)
[ "$(cat "$work/err")" = "$(may_stay never "$tcp_url/never")" ] || fail "it said: $(cat "$work/err")"
exec 4>&-
kill -CONT "$leatd_pid"

# all workers of a tree give up, too, and unmount
mkdir "$work/forest"
for i in 1 2 3 4; do
	head -c 30000000 /dev/zero >"$work/forest/f$i"
done
got_tree() { find "$export_dir/forest" -name '.leat-*' -size +0 2>/dev/null | grep -q .; }
begin "$LEAT" cp -r "$work/forest" "$tcp_url/?wsize=4096&credits=1"
until_true 'cp -r' got_tree
stop_server
kill -TERM "$command_pid"
ends_with 143 'cp -r to a server that is away'
grep -q 'forest/f.: interrupted' "$work/err" || fail "cp -r said: $(cat "$work/err")"
! gave_up || fail "cp -r did not end by itself: $(cat "$work/err")"
kill -CONT "$leatd_pid"
rm -r "$work/forest"

# ---- a benchmark prints its results so far, a latency breakdown its interval -----------------------------------

# bench_and_wait URL: it has filled its file and writes to it
bench_and_wait() {
	begin "$LEAT" bench write "$1" --size 4M --bs 64K --seconds 3600
	until_true 'bench' has_size 4194304
	at=$(stat -c %y "$export_dir"/.leat-*)
	until_true 'bench writes' has_changed
}
has_size() { [ "$(stat -c %s "$export_dir"/.leat-* 2>/dev/null)" = "$1" ]; }
has_changed() { [ "$(stat -c %y "$export_dir"/.leat-*)" != "$at" ]; }
for url in "$tcp_url" "$local_url"; do
	bench_and_wait "$url"
	kill -INT "$command_pid"
	ends_with 130 "bench $url"
	grep -q throughput "$work/out" || fail "bench printed nothing: $(cat "$work/err")"
	[ ! -s "$work/err" ] || fail "bench said: $(cat "$work/err")"
	! leftover || fail 'bench left its file'
done
bench_and_wait "$tcp_url"
stop_server
kill -INT "$command_pid"
ends_with 130 'bench of a server that is away'
grep -q throughput "$work/out" || fail "bench printed nothing: $(cat "$work/err")"
grep -q 'left behind, because' "$work/err" || fail "bench said: $(cat "$work/err")"
! gave_up || fail "bench did not end by itself: $(cat "$work/err")"
kill -CONT "$leatd_pid"
rm "$export_dir"/.leat-*

# while it writes its file
begin "$LEAT" bench write "$tcp_url?wsize=4096&credits=1" --size 1G
until_true 'bench fills' leftover
stop_server
kill -INT "$command_pid"
ends_with 130 'bench that fills its file'
left=$(ls -A "$export_dir" | grep '^\.leat-')
grep -q "so $left may stay" "$work/err" || fail "bench said: $(cat "$work/err")"
! gave_up || fail "bench did not end by itself: $(cat "$work/err")"
kill -CONT "$leatd_pid"
rm "$export_dir/$left"

naps() { sleeps_in "$command_pid" nanosleep; }
begin "$LEAT" stat --latency "$tcp_url" --interval 3600s
until_true 'stat --latency' naps
kill -INT "$command_pid"
ends_with 130 'stat --latency'
[ -s "$work/out" ] || fail "stat --latency printed nothing: $(cat "$work/err")"
begin "$LEAT" stat --latency "$tcp_url" --interval 3600s
until_true 'stat --latency' naps
stop_server
kill -INT "$command_pid"
ends_with 130 'stat --latency of a server that is away'
[ "$(cat "$work/err")" = 'leat: interrupted before the server has replied' ] ||
	fail "stat --latency said: $(cat "$work/err")"
kill -CONT "$leatd_pid"

none_pends() { # of the thread, and of the process
	[ "$(grep -c '^S[ih][gd]Pnd:.*0000$' "/proc/$command_pid/status")" -eq 2 ]
}
# a server that replies again: the file is removed; or, on a slow machine, that has come too late
put_and_stop
until_true 'the signal' none_pends
left=$(ls -A "$export_dir" | grep '^\.leat-')
kill -CONT "$leatd_pid"
ends_with 143 'put to a server that comes back'
if [ "$(cat "$work/err")" = "leat: $tcp_url/from-pipe: interrupted" ]; then
	! leftover || fail 'its file was not removed'
elif [ "$(cat "$work/err")" = "$(may_stay from-pipe "$tcp_url")" ]; then
	rm -f "$export_dir/$left"
else
	fail "it said: $(cat "$work/err")"
fi
exec 4>&-

# the second signal ends it at once
put_and_stop
until_true 'the first' none_pends
kill -HUP "$command_pid"
ends_with 129 'two signals'
! grep -q 'interrupted; ' "$work/err" || fail "two signals: it waited: $(cat "$work/err")"
exec 4>&-
kill -CONT "$leatd_pid"

# ---- commands that ask whether a server answers give up on one that does not ------------------------------------

stop_server
gives_up() { # COMMAND URL OUTPUT
	rc=0
	timeout 40 "$LEAT" "$1" "$2" >"$3" 2>&1 || rc=$?
	[ "$rc" -eq 1 ] && grep -q "cannot mount $2: tcp://[^/]*: Connection timed out" "$3"
}
asked=''
for url in "$tcp_url" "leat://${tcp_url#tcp://}"; do
	for command in ping doctor; do
		gives_up "$command" "$url" "$work/$command.${url%%:*}" &
		asked="$asked $!"
	done
done
for pid in $asked; do
	wait "$pid" || fail "ping or doctor did not give up, or did not say why: $(cat "$work/ping".* "$work/doctor".*)"
	checks=$((checks + 1))
done
kill -CONT "$leatd_pid"

# ---- standard descriptors that are closed: no file or socket gets their numbers --------------------------------

begin_closed "$LEAT" put "$work/slow" "$tcp_url/closed"
exec 4>"$work/slow"
until_true 'put without standard descriptors' leftover
for fd in 0 1 2; do
	[ "$(readlink "/proc/$command_pid/fd/$fd")" = /dev/null ] || fail "$fd is $(readlink "/proc/$command_pid/fd/$fd")"
done
exec 4>&-
ends_with 0 'put without standard descriptors'
rm "$export_dir/closed"
! "$LEAT" ls "$tcp_url" >&- 2>"$work/err" || fail 'ls with no output'
grep -q '^leat: standard output: Bad file descriptor' "$work/err" || fail "ls said: $(cat "$work/err")"

# ---- while workers copy a tree to this machine ----------------------------------------------------------------

# The signal comes when one worker is about to make its temporary file, and that thread goes on when the thread
# that ends the program has looked for that file, or waits.
cat >"$work/late.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#define NEXT(f) ((__typeof__(f) *)dlsym(RTLD_NEXT, #f))
static atomic_int state; /* 1: the signal was sent; 2: and seen; 3: the file was made */
static char late[64];
static sem_t seen, made;
__attribute__((constructor)) static void begin(void)
{
	sem_init(&seen, 0, 0);
	sem_init(&made, 0, 0);
}
static void see(void)
{
	int sent = 1;

	if (atomic_compare_exchange_strong(&state, &sent, 2))
		sem_post(&seen);
}
int openat(int dir, const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;
	int fd, none = 0;

	va_start(ap, flags);
	mode = va_arg(ap, mode_t);
	va_end(ap);
	if (strncmp(path, ".leat-", 6) || syscall(SYS_gettid) == getpid() ||
	    !atomic_compare_exchange_strong(&state, &none, 1))
		return NEXT(openat)(dir, path, flags, mode);
	strncpy(late, path, sizeof(late) - 1);
	syscall(SYS_tgkill, getpid(), getpid(), SIGTERM);
	while (sem_wait(&seen))
		;
	fd = NEXT(openat)(dir, path, flags, mode);
	atomic_store(&state, 3);
	sem_post(&made);
	return fd;
}
int unlinkat(int dir, const char *path, int flags)
{
	int rc = NEXT(unlinkat)(dir, path, flags);

	if (late[0] && !strcmp(path, late) && atomic_load(&state) < 3) {
		see();
		while (sem_wait(&made))
			;
	}
	return rc;
}
int nanosleep(const struct timespec *wait, struct timespec *left)
{
	if (atomic_load(&state) == 1)
		see();
	return NEXT(nanosleep)(wait, left);
}
C
${CC:-gcc} -shared -fPIC -o "$work/late.so" "$work/late.c" -lpthread || fail 'no library to be late with'
mkdir "$export_dir/tree" "$work/copy"
for i in 1 2 3 4 5 6 7 8 9; do
	echo "$i" >"$export_dir/tree/f$i"
done
for url in "$local_url" "$tcp_url"; do
	begin LD_PRELOAD="$work/late.so" ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" \
		"$LEAT" cp -r "$url/tree" "$work/copy"
	ends_with 143 'cp -r, TERM'
	[ -z "$(find "$work/copy" -name '.leat-*')" ] || fail "cp -r left $(find "$work/copy" -name '.leat-*')"
	grep -q ': interrupted$' "$work/err" || fail "cp -r said: $(cat "$work/err")"
	[ -z "$(sort "$work/err" | uniq -d)" ] || fail "cp -r said twice: $(cat "$work/err")"
	checks=$((checks + 1))
	rm -r "$work/copy/tree"
done
rm -r "$export_dir/tree"

# ---- a terminal shows that a server is away -----------------------------------------------------------------

if command -v script >/dev/null; then
	mkfifo "$work/stdin"
	: >"$work/typescript"
	stop_server
	script -qefc "$LEAT ls $tcp_url" "$work/typescript" <"$work/stdin" >/dev/null 2>"$work/err" &
	command_pid=$!
	exec 4>"$work/stdin"
	until_true 'away' grep -q "$tcp_url: no reply for 5 s" "$work/typescript"
	kill -CONT "$leatd_pid"
	ends_with 0 'ls on a terminal'
	exec 4>&-
	grep -q "$tcp_url: the server replies again" "$work/typescript" || fail "it did not say that it is back: $(cat "$work/typescript")"
	[ "$(grep -c 'no reply' "$work/typescript")" -eq 1 ] || fail "more than once: $(cat "$work/typescript")"
	checks=$((checks + 1))
fi

echo "$checks checks passed"
