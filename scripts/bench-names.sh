#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# bench-names.sh - what files cost apart from their bytes: the second half of `make bench`
#
# Names in memory (tmpfs, so that no disk is measured), by system calls and by way of leatd; what the
# reply cache, signed handles and durability cost, with and without; large directories; and `ls -l`.
# Contenders take turns; medians of ROUNDS (3). FILES (1000) files; LISTINGS (10000,100000) entries.

set -eu
cd "$(dirname "$0")/.."
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}" "${ROUNDS:=3}" "${FILES:=1000}"
: "${LISTINGS:=10000,100000}" "${LS_FILES:=50000}"
. scripts/private-leatd.sh

top=$(mktemp -d "${TMPDIR:-/tmp}/leat-bench.XXXXXX")
disk=$top/disk
mkdir "$disk"
mem=$top/mem
if [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] && [ -w /dev/shm ]; then
	mem=$(mktemp -d /dev/shm/leat-bench.XXXXXX)
else
	echo "bench-names: /dev/shm is no tmpfs: the disk below $top is measured, too"
	mkdir "$mem"
fi

servers=''
finish() {
	for server in $servers; do
		leatd_pid=${server%%:*} leatd_log=${server##*:} leatd_shell=${server#*:}
		leatd_shell=${leatd_shell%:*}
		leatd_stop
	done
	rm -rf "$top" "$mem"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# start NAME DIR OPTION...: one more leatd beside the others; its URLs are in $local_url and $tcp_url
start() {
	work=$top/$1
	dir=$2
	mkdir "$work"
	shift 2
	leatd_options=$*
	leatd_start "$dir" || exit 1
	servers="$servers $leatd_pid:$leatd_shell:$leatd_log"
}

start for-mem "$mem"
mem_url=$local_url mem_tcp=$tcp_url
none='?cache=none' # what the client knows already is not what is measured
start no-drc "$mem" --drc-entries 0
no_drc_url=$local_url
start unsigned "$mem" --sign-handles no
unsigned_url=$local_url
start for-disk "$disk" --export "/async=$disk,rw,no_root_squash,async"
sync_url=$local_url async_url=${local_url%/demo}/async

echo
echo "names: $FILES files in memory, by system calls and by way of leatd (x: to the first column)"
echo
build/bench/names -n "$FILES" -r "$ROUNDS" "$mem" local="$mem_url$none" tcp="$mem_tcp$none"
echo
echo 'names: without the cache of replies; without signed handles, which also are of the other kind then'
echo
build/bench/names -c -n "$FILES" -r "$ROUNDS" "$mem" all="$mem_url$none" no-drc="$no_drc_url$none" \
	unsigned="$unsigned_url$none"
build/bench/handles "$mem" "$ROUNDS"
echo
echo 'names: on disk, each durable before it is answered, and not (async)'
echo
build/bench/names -c -n "$((FILES / 5))" -r "$ROUNDS" "$disk" sync="$sync_url$none" async="$async_url$none"
echo
echo 'names: large directories, entries with attributes (x: to the first line)'
echo
build/bench/names -l "$LISTINGS" -r "$ROUNDS" "$mem" local="$mem_url$none" tcp="$mem_tcp$none"

# ---- ls -l -------------------------------------------------------------------------------------------

now_ms() { echo $(($(date +%s%N) / 1000000)); }
timed() { # NAME COMMAND...: milliseconds to NAME's figures
	name=$1
	shift
	begin=$(now_ms)
	"$@" >/dev/null
	echo $(($(now_ms) - begin)) >>"$top/$name.ms"
}
median_ms() { sort -n "$top/$1.ms" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

mkdir "$mem/ls"
(cd "$mem/ls" && seq -f 'file-%06.0f' "$LS_FILES" | xargs touch)
i=0
while [ "$i" -lt "$ROUNDS" ]; do
	timed plain ls -l "$mem/ls"
	timed local "$LEAT" ls -l "$mem_url/ls"
	timed tcp "$LEAT" ls -l "$mem_tcp/ls"
	i=$((i + 1))
done
echo
plain=$(median_ms plain) over_local=$(median_ms local) over_tcp=$(median_ms tcp)
awk -v n="$LS_FILES" -v p="$plain" -v l="$over_local" -v t="$over_tcp" 'BEGIN {
	printf "ls -l of %d files: %d ms; leat ls -l over local %d ms (%.2f), over TCP %d ms (%.2f)   (wanted: local <= 3)\n",
		n, p, l, l / p, t, t / p }'
