#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_cli_bench.sh - leat bench writes to no file that it did not make, and removes those that it made

set -eu
. tests/lib/checks.sh
cli_start
bench=''
finish() {
	[ -z "$leatd_pid" ] || kill -CONT "$leatd_pid" 2>/dev/null || :
	[ -z "$bench" ] || kill -KILL "$bench" 2>/dev/null || :
	cli_finish
}
trap finish EXIT

same() { # WHAT A B
	[ "$2" = "$3" ] || fail "$1: '$2' is not '$3'"
	checks=$((checks + 1))
}
holds() { # FILE: what was in it before
	cmp -s "$work/precious" "$1" || fail "$1 has changed: $(wc -c <"$1") bytes"
	checks=$((checks + 1))
}
head -c 100000 /dev/urandom >"$work/precious"
seconds='--seconds 1'

refuses() { # URL
	url=$1
	cp "$work/precious" "$export_dir/f"
	for kind in read randread; do
		bad 1 'less than the 1048576 needed' "$LEAT" bench "$kind" "$url/f"
		bad 1 'No such file' "$LEAT" bench "$kind" "$url/mistyped"
	done
	for kind in write randwrite; do
		bad 1 'there already.*--overwrite' "$LEAT" bench "$kind" "$url/f" --bs 4K --size 64K
		bad 1 'there already' "$LEAT" bench "$kind" "$url/f" --bs 4K --size 1M
	done
	mkfifo "$export_dir/fifo"
	bad 1 'neither' "$LEAT" bench read "$url/fifo" --bs 4K
	rm "$export_dir/fifo"
	case $url in
	tcp:*) ;;
	*)
		bad 1 'there already' "$LEAT" bench registration "$url/f" --bs 4k --jobs 1
		bad 1 'less than' "$LEAT" bench registration "$url/f" --read --bs 1M --jobs 1
		bad 1 'No such file' "$LEAT" bench registration "$url/mistyped" --read --bs 4k --jobs 1
		ok "$LEAT" bench registration "$url/f" --read --bs 4k --buffers 1 --jobs 1 --strategies slab \
			--seconds 0.01
		ok "$LEAT" bench registration "$url" --bs 4k --buffers 1 --jobs 1 --strategies slab --seconds 0.01
		;;
	esac
	# shellcheck disable=SC2086
	ok "$LEAT" bench read "$url/f" --bs 4K $seconds
	holds "$export_dir/f"
	same 'nothing new' "$(ls -A "$export_dir")" f
	# what is wanted happens; the file is the user's, and stays
	# shellcheck disable=SC2086
	ok "$LEAT" bench write "$url/f" --bs 4K --size 64K $seconds --overwrite
	same 'its length' "$(stat -c %s "$export_dir/f")" 100000
	! cmp -s "$work/precious" "$export_dir/f" || fail 'bench --overwrite wrote nothing'
	# a file of the user's keeps its size: a longer --size does not make it longer
	for kind in write randwrite; do
		cp "$work/precious" "$export_dir/f"
		# shellcheck disable=SC2086
		ok "$LEAT" bench $kind "$url/f" --bs 16K --size 1M $seconds --overwrite
		same 'its length' "$(stat -c %s "$export_dir/f")" 100000
		! cmp -s "$work/precious" "$export_dir/f" || fail "bench $kind --overwrite wrote nothing"
		cp "$work/precious" "$export_dir/f"
		bad 1 'has 100000 bytes, less than the 1048576' "$LEAT" bench $kind "$url/f" --overwrite
		holds "$export_dir/f"
	done
	rm "$export_dir/f"
	# shellcheck disable=SC2086
	ok "$LEAT" bench write "$url/new" --bs 4K --size 64K $seconds
	same 'what it made is gone' "$(ls -A "$export_dir")" ''
}

# Ended while it measures, by each of the signals of a terminal and of kill(1).
ended() { # SIGNAL URL KIND
	"$LEAT" bench "$3" "$2" --bs 4K --size 64K --seconds 1000 >"$work/out" 2>"$work/err" &
	bench=$!
	until [ -n "$(ls -A "$export_dir")" ]; do
		kill -0 "$bench" 2>/dev/null || fail "bench has ended: $(cat "$work/err")"
	done
	kill "-$1" "$bench"
	wait "$bench" || :
	bench=''
	same "what bench $3 leaves after SIG$1" "$(ls -A "$export_dir")" ''
}

# replaced URL KIND HOW...: between the making of the file and its use by the jobs, another process renames it and
# gives its name to another file, by the command HOW with that name as its last argument
cat >"$work/swap.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
int pthread_barrier_init(pthread_barrier_t *b, const pthread_barrierattr_t *attr, unsigned count)
{
	int (*next)(pthread_barrier_t *, const pthread_barrierattr_t *, unsigned) =
		dlsym(RTLD_NEXT, "pthread_barrier_init");
	const char *command = getenv("SWAP");

	unsetenv("LD_PRELOAD");
	if (command && system(command))
		abort();
	unsetenv("SWAP");
	return next(b, attr, count);
}
END
${CC:-gcc} -shared -fPIC -o "$work/swap.so" "$work/swap.c" || fail 'no library to swap files with'
replaced() {
	url=$1 kind=$2
	shift 2
	mkdir "$export_dir/d"
	cp "$work/precious" "$export_dir/f"
	rc=0
	# shellcheck disable=SC2086
	SWAP='cd "$DIR/d" && n=$(ls -A) && mv "$n" away && $HOW "$n"' DIR=$export_dir HOW=$* LD_PRELOAD=$work/swap.so \
		ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" \
		"$LEAT" bench $kind "$url/d" >"$work/out" 2>"$work/err" || rc=$?
	holds "$export_dir/f"
	same "status of bench $kind after $*" "$rc" 1
	same 'words' "$(grep -c 'replaced by another one' "$work/err")" 2
	same 'what somebody put there' "$(ls -A "$export_dir/d" | wc -l)" 2
	rm -r "$export_dir/d" "$export_dir/f"
}
for how in 'ln -s ../f' 'ln ../f'; do
	replaced "$local_url" 'write --bs 4K --size 64K --seconds 1' "$how"
	replaced "$tcp_url" 'randwrite --bs 4K --size 64K --seconds 1 --jobs 2' "$how"
	replaced "$local_url" 'registration --bs 4k --buffers 1 --jobs 1 --strategies slab --seconds 0.01' "$how"
done

refuses "$local_url"
refuses "$tcp_url"
# a background process of a shell ignores SIGINT
ended TERM "$local_url" read
ended TERM "$tcp_url" randwrite
ended TERM "$local_url/new" write
ended TERM "$local_url" meta

# ended while it makes its file, on a server that answers no more
"$LEAT" bench read "$tcp_url" --size 4G >"$work/out" 2>"$work/err" &
bench=$!
until [ -n "$(ls -A "$export_dir")" ]; do
	kill -0 "$bench" 2>/dev/null || fail "bench has ended: $(cat "$work/err")"
done
kill -STOP "$leatd_pid"
kill -TERM "$bench"
rc=0
wait "$bench" || rc=$?
bench=''
kill -CONT "$leatd_pid"
same 'status' "$rc" 143
# (the removal may have been sent, and then the server makes up for it now)
same 'words' "$(sed -E 's/\.leat-[0-9a-f]{16} /NAME /' "$work/err")" "leat: $tcp_url: interrupted; the server does not reply, so NAME may stay in $tcp_url (leat rm --leftovers removes it after a day)"

# a server that cannot tell which file was made: of the statx() calls for an empty file the last three of a count
# fail
cat >"$work/unknown.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
int statx(int dir, const char *path, int flags, unsigned mask, struct statx *ret)
{
	int (*next)(int, const char *, int, unsigned, struct statx *) = dlsym(RTLD_NEXT, "statx");
	int rc = next(dir, path, flags, mask, ret), n = 0;
	FILE *f = rc || !S_ISREG(ret->stx_mode) || ret->stx_size ? NULL : fopen(getenv("COUNT"), "r+");

	if (!f)
		return rc;
	if (fscanf(f, "%d", &n) == 1 && n > 0) {
		rewind(f);
		fprintf(f, "%d\n", n - 1);
	}
	fclose(f);
	if (n < 1 || n > 3)
		return rc;
	errno = EIO;
	return -1;
}
END
${CC:-gcc} -shared -fPIC -o "$work/unknown.so" "$work/unknown.c" || fail 'no library to fail with'
leatd_stop
case $LEATD in /*) ;; *) LEATD=$PWD/$LEATD ;; esac
printf '#!/bin/sh\nexec env LD_PRELOAD="%s" COUNT="%s" "ASAN_OPTIONS=%s" "%s" "$@"\n' "$work/unknown.so" "$work/count" \
	"${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" "$LEATD" >"$work/leatd"
chmod +x "$work/leatd"
LEATD=$work/leatd
leatd_start "$export_dir" || exit 1
: >"$work/err"
n=3
until grep -q GETATTR "$work/err"; do # earlier ones are part of the making, which then fails
	n=$((n + 1))
	[ $n -lt 20 ] || fail 'nobody asked which file was made'
	rm -f "$export_dir"/.leat-*
	echo $n >"$work/count"
	"$LEAT" bench write "$local_url" --bs 4K --size 64K --seconds 1 >"$work/out" 2>"$work/err" || :
done
same 'words about a file that is not known' "$(wc -l <"$work/err")" 1
same 'what is left of it' "$(ls -A "$export_dir")" ''
echo "$checks checks"
