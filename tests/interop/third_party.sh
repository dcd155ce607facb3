#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# third_party.sh - RPC programs of Debian, unmodified, under rpcrdma-run over the local fabric and verbs: ypserv with ypcat
# and ypmatch through ypbind, rpc.mountd with showmount, rpc.rstatd with rup, rpcinfo; showmount against leatd. Each
# must give what it gives over its own transport, and the reports must show that the calls went to our URL
#
# WAYS names the transports: "local rdma". Outside of the virtual machine, `WAYS=local tests/interop/third_party.sh here`
# runs the part for the local fabric in namespaces, as root.

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
PATH=$PATH:/usr/sbin:/sbin
: "${WAYS:=local rdma}"

for program in ypserv ypbind ypcat rup rpc.rstatd rpc.mountd showmount rpcinfo rpcbind setpriv; do
	command -v "$program" >/dev/null || { echo "SKIP: no $program here (scripts/deps.sh install interop)"; exit 77; }
done
makedbm=/usr/lib/yp/makedbm
run=build/rpcrdma-run
[ -x "$run" ] || { echo "no $run: make all"; exit 1; }
if [ "${1:-}" = here ]; then
	export LEAT_VM=1 WAYS=local
	exec unshare -n -m -u -p -f --kill-child --mount-proc sh "$0" inside
fi
in_vm 2400
setup
if [ "${1:-}" = inside ]; then # an IPv4 address that is not of the loopback network, as in the machine
	ip link set lo up
	ip addr add "$addr/32" dev lo
	mount -t tmpfs tmpfs /run
	mkdir -p "$work"
	mount -t tmpfs tmpfs "$work" # what is written there, a copy of /etc too, ends with the namespace
	head -c 4194304 /dev/urandom >"$work/random"
fi

# what these programs write is theirs
for dir in /var/yp /var/lib/nfs; do
	mount -t tmpfs tmpfs "$dir"
done
mkdir "$work/etc"
cp -a /etc/. "$work/etc" 2>/dev/null
mount --bind "$work/etc" /etc
touch /var/yp/nicknames /var/lib/nfs/etab /var/lib/nfs/rmtab /run/utmp
mkdir -p /var/yp/lab /var/yp/binding "$work/logs"
domainname lab
entries=100000
key=user$((entries - 23))
map=passwd.byname secret=shadow.byname # the second is for callers with a reserved port
chmod 755 "$work" # reports of another user
nobody='setpriv --reuid 65534 --regid 65534 --clear-groups'
report=$work/report

url_of() { # local|rdma NAME PORT
	case $1 in
	local) echo "local:///run/$2.sock" ;;
	rdma) echo "rdma://$addr:$3" ;;
	esac
}

# daemon NAME COMMAND...: in the background
daemon() {
	log=$work/logs/$1
	shift
	"$@" >"$log" 2>&1 </dev/null &
	last=$!
}

# stop PID: it ends by SIGTERM
stop() {
	kill "$1"
	wait "$1"
}

# under LINE COMMAND...: with that map; its report is in $report, and its output as usual
under() {
	line=$1
	shift
	rm -f "$report"
	RPCRDMA_RUN_REPORT=$report timeout 300 "$run" -c "$line" -- "$@"
}

# As another user, who cannot write where root does
under_nobody() {
	line=$1
	shift
	rm -f "$report"
	: >"$report"
	chmod 666 "$report"
	# shellcheck disable=SC2086
	RPCRDMA_RUN_REPORT=$report timeout 300 $nobody "$run" -c "$line" -- "$@"
}

# went WHAT NUMBER URL: the calls of that program went there, at least one, and none another way
went() {
	same "$1: calls by $3" "$(awk -v p="program=$2" -v w="way=$3" '
		index($0, p " ") { for (i = 1; i <= NF; i++) if ($i ~ /^calls=/) { n = substr($i, 7); if (index($0, w " ")) our += n; else other += n } }
		END { print (our > 0 ? "some" : "none"), other + 0 }' "$report" 2>/dev/null)" 'some 0'
}

answers() { rpcinfo -T "$1" "$addr" "$2" "$3"; } # NETID PROGRAM VERSION

# ---- the programs, and what they say over their own transports -------------------------------------------

section 'the programs over their own transports'
rpcbind || { echo '  FAIL  rpcbind does not start'; failed=$((failed + 1)); finish; }
awk -v n="$entries" 'BEGIN { for (i = 0; i < n; i++)
	printf "user%d user%d:x:%d:%d:User number %d:/home/user%d:/bin/sh\n", i, i, i + 1000, i + 1000, i, i }' |
	"$makedbm" - "/var/yp/lab/$map"
cp "/var/yp/lab/$map" "/var/yp/lab/$secret"
printf '* : * : %s : port\n* : * : * : none\n' "$secret" >/etc/ypserv.conf
printf '255.255.0.0 10.77.0.0\n255.0.0.0 127.0.0.0\n' >/etc/ypserv.securenets
echo "domain lab server $addr" >/etc/yp.conf
mkdir "$work/shared"
printf '%s 10.77.0.0/16(ro,no_subtree_check,fsid=1) 127.0.0.1(ro,no_subtree_check,fsid=1)\n' "$work/shared" >/etc/exports
ok exportfs exportfs -ra

urls='' mount_urls='' stat_urls=''
for way in $WAYS; do
	urls="$urls,$(url_of "$way" yp 20200)"
	mount_urls="$mount_urls,$(url_of "$way" mountd 20210)"
	stat_urls="$stat_urls,$(url_of "$way" rstatd 20220)"
done
export RPCRDMA_RUN_REPORT=1
daemon ypserv "$run" -s "${urls#,}" -- ypserv -f
ypserv=$last
daemon mountd "$run" -s "${mount_urls#,}" -- rpc.mountd -F
mountd=$last
"$run" -s "${stat_urls#,}" -- rpc.rstatd >"$work/logs/rstatd" 2>&1 </dev/null # goes into the background
unset RPCRDMA_RUN_REPORT
for program in 'tcp 100004 2' 'tcp 100005 3' 'udp 100001 3'; do
	# shellcheck disable=SC2086
	ok "$program answers" wait_for 60 answers $program
done
daemon ypbind ypbind -n
ypbind=$last
ok 'ypbind has found ypserv' wait_for 120 ypwhich

ok 'ypcat' timeout 300 ypcat "$map"
all=$(cksum <"$work/out")
same 'entries' "$(wc -l <"$work/out")" "$entries"
ok 'ypmatch' timeout 60 ypmatch "$key" "$map"
one=$(cat "$work/out")
ok 'ypcat of a map for reserved ports' timeout 300 ypcat "$secret"
same 'the bytes of a map for reserved ports' "$(cksum <"$work/out")" "$all"
# shellcheck disable=SC2086 # a command
bad 'ypcat of a map for reserved ports, as another user' timeout 60 $nobody ypcat "$secret"
refused=$(cat "$work/out")
ok 'showmount' timeout 60 showmount -e "$addr"
exports=$(cat "$work/out")
ok 'rup' timeout 60 rup "$addr"
up=$(cut -d ' ' -f 1 "$work/out")
ok 'rpcinfo' timeout 60 rpcinfo -t "$addr" ypserv
versions=$(cat "$work/out")

# ---- the same by our URLs ------------------------------------------------------------------------------

for way in $WAYS; do
	section "over $way"
	url=$(url_of "$way" yp 20200)
	line="$addr ypserv $url"
	ok "$way: ypcat through ypbind" under "$line" ypcat "$map"
	same "$way: the same bytes" "$(cksum <"$work/out")" "$all"
	went "$way: ypcat" 100004 "$url"
	ok "$way: ypmatch" under "$line" ypmatch "$key" "$map"
	same "$way: the same entry" "$(cat "$work/out")" "$one"
	went "$way: ypmatch" 100004 "$url"
	ok "$way: ypcat -h" under "$line" ypcat -h "$addr" -d lab "$map"
	same "$way: ypcat -h, the same bytes" "$(cksum <"$work/out")" "$all"
	went "$way: ypcat -h" 100004 "$url"
	ok "$way: ypcat as another user" under_nobody "$line" ypcat "$map"
	same "$way: the same bytes, as another user" "$(cksum <"$work/out")" "$all"
	went "$way: ypcat as another user" 100004 "$url"
	bad "$way: ypcat of a map for reserved ports, as another user" under_nobody "$line" ypcat "$secret"
	same "$way: refused as over TCP" "$(cat "$work/out")" "$refused"
	went "$way: the refused ypcat" 100004 "$url"
	# local: the kernel says that the caller is root; verbs: the client has bound such a port
	ok "$way: ypcat of a map for reserved ports" under "$line" ypcat "$secret"
	same "$way: the bytes of a map for reserved ports" "$(cksum <"$work/out")" "$all"
	went "$way: ypcat of a map for reserved ports" 100004 "$url"
	# versions by PROG_MISMATCH
	ok "$way: rpcinfo" under "$line" rpcinfo -t "$addr" ypserv
	same "$way: the same versions" "$(cat "$work/out")" "$versions"
	went "$way: rpcinfo" 100004 "$url"

	url=$(url_of "$way" mountd 20210)
	ok "$way: showmount" under "$addr mountd $url" showmount -e "$addr"
	same "$way: the same exports" "$(cat "$work/out")" "$exports"
	went "$way: showmount" 100005 "$url"

	url=$(url_of "$way" rstatd 20220)
	ok "$way: rup" under "$addr rstatd $url" rup "$addr"
	same "$way: the same host is up" "$(cut -d ' ' -f 1 "$work/out")" "$up"
	went "$way: rup" 100001 "$url"
done

# ---- what the services have counted, and showmount against leatd --------------------------------------------

section 'the services end'
stop "$ypserv"
stop "$mountd"
stop "$ypbind"
ways=$(echo "$WAYS" | wc -w)
for log in ypserv mountd; do
	same "requests of $log by our transports" \
		"$(awk '/ way=rpcrdma requests=/ { sub(/.*=/, ""); n += $0 } END { print (n > 0) }' "$work/logs/$log")" 1
done
# over each transport: two of ypcat through ypbind, one each of ypmatch and ypcat -h, three of another user, rpcinfo
same 'enough requests of ypserv' \
	"$(awk -v ways="$ways" '/ way=rpcrdma requests=/ { sub(/.*=/, ""); n += $0 } END { print (n >= 7 * ways) }' "$work/logs/ypserv")" 1

section 'showmount against leatd'
mkdir -p "$work/export"
daemon leatd "$LEATD" --state-dir "$work/state" --export "/demo=$work/export,clients=10.77.0.0/16,clients=127.0.0.1" \
	--listen local:///run/leatd.sock $([ "${WAYS#*rdma}" = "$WAYS" ] || echo "--listen rdma://$addr:20049")
leatd=$last
ok 'leatd is ready' wait_for 60 grep -q '^leatd: ready' "$work/logs/leatd"
for way in $WAYS; do
	url=local:///run/leatd.sock
	[ "$way" = local ] || url=rdma://$addr:20049
	ok "$way: showmount against leatd" under "$addr mountd $url" showmount -e "$addr"
	said "$way: its export" '^/demo '
	went "$way: showmount against leatd" 100005 "$url"
done
stop "$leatd"
same 'exit status of leatd' "$?" 0

[ "$failed" -eq 0 ] || tail -n 5 "$work"/logs/*
finish
