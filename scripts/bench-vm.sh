#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# bench-vm.sh - leat on leatd beside Linux's NFS client on Linux's NFS server, both over soft RoCE
#
# One boot of the virtual machine of tests/interop/vm, whose processors may be emulated: a figure
# means nothing but beside its neighbour, so only ratios are printed. Both servers serve the same
# file on tmpfs. The contenders are
#
#     leat      leat bench             on leatd         kernel    aio, O_DIRECT, on a mount   of knfsd
#     leat-k    leat bench             on knfsd         kernel-l  aio, O_DIRECT, on a mount   of leatd
#     leat-1    as leat, but leat and leatd share one processor, as the kernel's threads do by themselves
#
# take turns, and the figure of each is the median of ROUNDS (3) runs of SECS (2) seconds. Every write
# is FILE_SYNC on all four. A row's ratio is > 1 where the contender is better than `kernel`: more
# bytes, shorter latency, less CPU time of the whole machine per byte.
#
# The machine has two processors, each a thread of the emulator here. One that sleeps is woken when this
# host's scheduler finds time for it: let nothing else run, or waking is all that is measured.
#
#   WORK='read:1M:1 randread:4k:16'   these rows only          SIZE_MIB (64)   of the file
#   CONTENDERS='leat kernel'          these columns only       LEAT_ARGS       of leat bench
#   LEAT_QUERY='?registration=dynamic'                         LEATD_ARGS      of leatd
#   RAW=1                             every run as it was, too

set -u
cd "$(dirname "$0")/.." || exit
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}" "${AIO:=build/bench/aio}" "${ROUNDS:=3}" "${SECS:=2}"
: "${SIZE_MIB:=64}" "${CONTENDERS:=leat leat-1 kernel leat-k kernel-l}"
: "${WORK:=read:1M:1 read:1M:8 write:1M:1 write:1M:8 randread:4k:1 randread:4k:16 randwrite:4k:1 randwrite:4k:16}"

if [ -z "${LEAT_VM:-}" ]; then
	for program in "$LEAT" "$LEATD" "$AIO"; do
		[ -x "$program" ] || { echo "no $program: make all bench-tools"; exit 1; }
	done
	rows=$(echo "$WORK" | wc -w) columns=$(echo "$CONTENDERS" | wc -w)
	limit=$((120 + rows * columns * ROUNDS * (SECS + 8)))
	exec tests/interop/vm/vm -t "$limit" "LEAT='$LEAT' LEATD='$LEATD' AIO='$AIO' ROUNDS='$ROUNDS' \
		SECS='$SECS' SIZE_MIB='$SIZE_MIB' CONTENDERS='$CONTENDERS' WORK='$WORK' RAW='${RAW:-}' \
		LEAT_ARGS='${LEAT_ARGS:-}' LEATD_ARGS='${LEATD_ARGS:-}' LEAT_QUERY='${LEAT_QUERY:-}' sh '$0'"
fi

PATH=$PATH:/usr/sbin:/sbin
for tool in rpcbind rpc.mountd rpc.nfsd exportfs mount.nfs; do
	command -v "$tool" >/dev/null || { echo "SKIP: no $tool here (nfs-kernel-server)"; exit 77; }
done
addr=10.77.0.1
export=/run/export
work=$(mktemp -d)
mkdir -p "$export" "$work/kernel" "$work/kernel-l" /run/rpcbind /run/sendsigs.omit.d /var/lib/nfs/sm

fail() {
	echo "bench-vm: $*"
	[ ! -e "$work/leatd.log" ] || tail -n 5 "$work/leatd.log"
	exit 1
}

# ---- two servers, two mounts -------------------------------------------------------------------------

start_knfsd() {
	echo "$export *(rw,no_root_squash,insecure,no_subtree_check,fsid=1,async)" >/etc/exports
	rpcbind -w
	modprobe nfsd
	modprobe rpcrdma
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
	exportfs -ra
	echo 1048576 >/proc/fs/nfsd/max_block_size
	rpc.nfsd -N 4 -V 3 --rdma=20049 8 && rpc.mountd
}

# start_leatd PORT [PREFIX...]: 18000 below it for TCP; sets $pid
start_leatd() {
	port=$1
	shift
	rm -f "$work/words"
	mkfifo "$work/words"
	exec 3<>"$work/words"
	# shellcheck disable=SC2086
	"$@" "$LEATD" --state-dir "$work/state.$port" --export "/demo=$export,rw,no_root_squash,clients=10.77.0.0/16" \
		--listen "rdma://0.0.0.0:$port" --listen "tcp://0.0.0.0:$((port - 18000))" ${LEATD_ARGS:-} \
		>"$work/words" 2>&1 3<&- &
	pid=$!
	while read -r line <&3; do
		echo "$line" >>"$work/leatd.log"
		[ "$line" != 'leatd: ready' ] || break
		kill -0 "$pid" || return 1
	done
	cat <&3 >>"$work/leatd.log" 3<&- &
	exec 3<&-
}

head -c "$((SIZE_MIB * 1048576))" /dev/urandom >"$export/file"
start_knfsd || fail 'no knfsd'
start_leatd 20050 env || fail 'no leatd'
leatd=$pid
start_leatd 20051 taskset 1 || fail 'no leatd'
leatd_1=$pid
rdma=vers=3,proto=rdma,nolock,rsize=1048576,wsize=1048576
mount -t nfs -o "$rdma,port=20049" "$addr:$export" "$work/kernel" || fail 'cannot mount knfsd'
mount -t nfs -o "$rdma,port=20050,mountport=2050,mountproto=tcp" "$addr:/demo" "$work/kernel-l" ||
	fail 'cannot mount leatd'

# ---- measuring ---------------------------------------------------------------------------------------

bytes() {
	case $1 in
	*k) echo $((${1%k} * 1024)) ;;
	*M) echo $((${1%M} * 1048576)) ;;
	*) echo "$1" ;;
	esac
}

# run CONTENDER KIND BLOCK QD: one line of JSON to that contender's results
run() {
	case $1 in
	leat | leat-1 | leat-k)
		url=rdma://$addr:20050/demo/file on='env'
		[ "$1" != leat-1 ] || { url=rdma://$addr:20051/demo/file on='taskset 1'; }
		[ "$1" != leat-k ] || url=rdma://$addr:20049$export/file
		# shellcheck disable=SC2086
		$on "$LEAT" bench "$2" "$url${LEAT_QUERY:-}" --bs "$3" --qd "$4" --seconds "$SECS" --sync --json \
			--overwrite --size "${SIZE_MIB}M" ${LEAT_ARGS:-}
		;;
	*)
		"$AIO" "$2" "$work/$1/file" "$(bytes "$3")" "$4" "$SECS"
		;;
	esac >"$work/line" || fail "$1: $2 $3 $4"
	[ -z "${RAW:-}" ] || echo "    $1 $2 $3 $4 $(cat "$work/line")"
	cat "$work/line" >>"$work/$1.$2.$3.$4"
}

median() { # FILE MEMBER
	sed -n 's/.*"'"$2"'":\([^,"}]*\).*/\1/p' "$work/$1" | sort -n |
		awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : 0 }'
}

# ratio A B: of two contenders' figures
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0) printf "%.2f", a / b; else printf "-" }'; }

echo "bench-vm: $(uname -r), $(nproc) CPUs, MTU of rxe0 $(cat /sys/class/net/veth0/mtu) (device)"
echo "bench-vm: median of $ROUNDS runs of $SECS s, taking turns; a file of $SIZE_MIB MiB on tmpfs"
echo "bench-vm: better than the kernel's client on the kernel's server: > 1 everywhere"
echo
printf '%-18s %-9s %10s %10s %10s %10s\n' '' '' bytes/s p50 p99 'CPU/byte'
for row in $WORK; do
	kind=${row%%:*} rest=${row#*:}
	block=${rest%%:*} qd=${rest#*:}
	i=0
	while [ "$i" -lt "$ROUNDS" ]; do
		for who in $CONTENDERS; do run "$who" "$kind" "$block" "$qd"; done
		i=$((i + 1))
	done
	what="$kind $block QD $qd"
	for who in $CONTENDERS; do
		[ "$who" != kernel ] || continue
		a=$who.$kind.$block.$qd b=kernel.$kind.$block.$qd
		printf '%-18s %-9s %10s %10s %10s %10s\n' "$what" "$who" \
			"$(ratio "$(median "$a" mb_s)" "$(median "$b" mb_s)")" \
			"$(ratio "$(median "$b" p50_us)" "$(median "$a" p50_us)")" \
			"$(ratio "$(median "$b" p99_us)" "$(median "$a" p99_us)")" \
			"$(ratio "$(median "$b" machine_cpu_s_gib)" "$(median "$a" machine_cpu_s_gib)")"
		what=''
	done
done
# nothing was left to be made stable afterwards
commits=$(awk '/^[ \t]*COMMIT:/ { n += $2 } END { print n + 0 }' /proc/self/mountstats)
[ "$commits" -eq 0 ] || fail "Linux's client wrote UNSTABLE and sent $commits COMMITs: not what leat did"
umount "$work/kernel" "$work/kernel-l" || fail 'cannot unmount'
rpc.nfsd 0
kill "$leatd" "$leatd_1"
wait "$leatd" && wait "$leatd_1" || fail "leatd ended with status $?"
