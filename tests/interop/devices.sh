#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# devices.sh - how a server is found: by rpcbind, and by which of two RDMA devices

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 960
setup
m=$work/mnt
mkdir "$m"

# registered PROGRAM NETID ADDRESS
registered() {
	rpcinfo | awk -v program="$1" -v netid="$2" -v addr="$3" \
		'$1 == program && $2 == 3 && $3 == netid && $4 == addr { found = 1 } END { exit !found }'
}

if command -v rpcbind >/dev/null && [ -x /sbin/mount.nfs ]; then
	section 'rpcbind'
	leatd_start --rpcbind
	ok 'a server that finds no rpcbind' timeout 100 "$LEAT" ping -c 1 "tcp://$addr/demo"
	leatd_stop
	ok 'and said so' grep 'no rpcbind to register with' "$work/leatd.log"
	rpcbind -w
	leatd_start --rpcbind --listen 'rdma://[::]:20049' --listen 'tcp://[::]:2049'
	for program in 100003 100005; do
		ok "$program at tcp" wait_for 100 registered "$program" tcp 0.0.0.0.8.1
		ok "$program at tcp6" wait_for 100 registered "$program" tcp6 ::.8.1
		ok "$program at rdma" wait_for 100 registered "$program" rdma 0.0.0.0.78.81
		ok "$program at rdma6" wait_for 100 registered "$program" rdma6 ::.78.81
	done
	head -c 70000 "$work/random" >"$work/export/file"
	for way in rdma tcp; do
		ok "a mount that names no port, $way" timeout 300 mount -t nfs -o "vers=3,proto=$way,nolock" "$addr:/demo" "$m"
		ok "it is $way" grep -q " $m nfs .*proto=$way" /proc/mounts
		ok "and its data, $way" cmp "$m/file" "$work/export/file"
		ok "umount, $way" umount "$m"
	done
	same 'others than these' "$(rpcinfo | awk '$1 == 100003 || $1 == 100005' | wc -l)" 8
	leatd_stop
	same 'what is registered after its end' "$(rpcinfo | awk '$1 == 100003 || $1 == 100005' | wc -l)" 0

	# another server's registration stays, also when leatd ends
	leatd_start --rpcbind
	wait_for 100 registered 100005 tcp 0.0.0.0.8.1
	"$LEATD" --state-dir "$work/state2" --export "/demo=$work/export" --listen tcp://127.0.0.1:0 --rpcbind \
		>"$work/second" 2>&1 &
	second=$!
	ok 'the second server is told' wait_for 100 grep -q 'another server is registered for MOUNT by tcp' "$work/second"
	kill "$second"
	wait "$second"
	ok 'and the first is registered still' registered 100003 tcp 0.0.0.0.8.1
	leatd_stop
else
	echo 'SKIP: rpcbind: no rpcbind or no mount.nfs here'
fi

section 'two devices'
# one end of the wire each; packets between them are forced over it, though both are of this host
ip addr flush dev veth0
ip addr add 10.77.0.1/32 dev veth0
ip addr add 10.77.0.2/32 dev veth1
for i in all veth0 veth1; do
	echo 1 >/proc/sys/net/ipv4/conf/$i/accept_local
	echo 0 >/proc/sys/net/ipv4/conf/$i/rp_filter
done
ip route add 10.77.0.2 dev veth0 src 10.77.0.1 table 102
ip route add 10.77.0.1 dev veth1 src 10.77.0.2 table 101
ip rule add pref 1 iif veth0 lookup local
ip rule add pref 2 iif veth1 lookup local
ip rule add pref 3 to 10.77.0.2 lookup 102
ip rule add pref 4 to 10.77.0.1 lookup 101
ip rule add pref 32765 lookup local
ip rule del pref 0
rdma link add rxe1 type rxe netdev veth1
same 'devices' "$(rdma link show | grep -c 'state ACTIVE')" 2

leatd_start --listen rdma://10.77.0.2:0 --listen rdma://10.77.0.1:20051
port=$(sed -n 's,^leatd: listening on rdma://10.77.0.2:\([1-9][0-9]*\)$,\1,p' "$work/leatd.log" | tail -n 1)
ok 'the port that was chosen is told' test "${port:-0}" -gt 0
ok 'who listens at all addresses is told' grep 'rdma://0.0.0.0:20049 is reached by every RDMA device' "$work/leatd.log"
ok 'the device of an address is told' grep "rdma://10.77.0.2:$port is reached by device rxe1" "$work/leatd.log"
ok 'and of the other' grep 'rdma://10.77.0.1:20051 is reached by device rxe0' "$work/leatd.log"

head -c 300001 "$work/random" >"$work/data"
# goes WHERE DEVICE: by the device that leads there; at the server it is the other one
goes() {
	ok "to $1" timeout 100 "$LEAT" ping -c 1 "rdma://$1/demo"
	said "to $1 by $2" "^transport *rdma ($2)"
}
carries() { # WHERE: data both ways
	ok "data to $1" timeout 100 "$LEAT" put "$work/data" "rdma://$1/demo/random"
	ok "data from $1" timeout 100 "$LEAT" get "rdma://$1/demo/random" "$work/back"
	ok "and it is right, $1" cmp "$work/data" "$work/back"
	rm -f "$work/back" "$work/export/random"
}
goes 10.77.0.2 rxe0
carries 10.77.0.2
goes 10.77.0.1 rxe1
carries 10.77.0.1
goes "10.77.0.2:$port" rxe0
goes 10.77.0.1:20051 rxe1
ok 'both at once' sh -c "timeout 300 '$LEAT' put '$work/data' rdma://10.77.0.1/demo/one & \
	timeout 300 '$LEAT' put '$work/data' rdma://10.77.0.2/demo/two && wait \$!"
ok 'what one brought' cmp "$work/data" "$work/export/one"
ok 'what the other brought' cmp "$work/data" "$work/export/two"
bad 'a port of the other device' timeout 100 "$LEAT" ping -c 1 rdma://10.77.0.2:20051/demo
bad 'an address that no device has' timeout 100 "$LEAT" ping -c 1 rdma://127.0.0.1/demo
said 'and why' 'no RDMA device of this host leads there'
leatd_stop
bad 'to listen where no device is' timeout 100 "$LEATD" --export "/demo=$work/export" --listen rdma://127.0.0.1:20049
said 'and why' 'no RDMA device has this address'

# a device that cannot be opened: no more memory may be locked than one of them needs, once the pool
# of data buffers has a piece
chmod 755 "$work"
prlimit --memlock=6291456 setpriv --reuid 64001 --regid 64001 --clear-groups "$LEATD" \
	--export "/demo=$work/export,clients=10.77.0.0/16" --listen rdma://0.0.0.0:20052 >"$work/small" 2>&1 &
small=$!
ok 'a server of somebody else' wait_for 100 grep -q 'leatd: ready' "$work/small"
ok 'its first device' timeout 100 "$LEAT" get rdma://10.77.0.1:20052/demo/one "$work/first"
ok 'and its data' cmp "$work/first" "$work/data"
bad 'its second one' timeout 100 "$LEAT" ping -c 1 rdma://10.77.0.2:20052/demo
said 'which is refused' 'refused'
ok 'and why' grep 'turned away (client .*): no memory, or not enough that may be locked' "$work/small"
ok 'the first one still' timeout 100 "$LEAT" ping -c 1 rdma://10.77.0.1:20052/demo
kill "$small"
wait "$small"
same 'no queue pair is left' "$(queue_pairs)" 0

section 'leat doctor'
leatd_start
ok doctor timeout 100 "$LEAT" doctor "leat://10.77.0.2/demo"
said 'both devices: rxe0' '^rdma  *ok  *rxe0 port 1 is ACTIVE, Ethernet, .* veth0, path MTU 4096 of 4096, at 10.77.0.1'
said 'both devices: rxe1' '^rdma  *ok  *rxe1 port 1 is ACTIVE, .* at 10.77.0.2'
said 'the way that is not there' '^way  *missing  *not local: the server has no such listener'
said 'the way that is' '^way  *ok  *rdma (rxe0)'
said 'memory' '^memory  *ok  *all memory directly, by the device'
leatd_stop
bad 'doctor without a server' timeout 100 "$LEAT" doctor rdma://10.77.0.2/demo
said 'what it says' '^server  *missing .*refused'
ip link set veth1 down
ok 'doctor with a device that is down' timeout 100 "$LEAT" doctor /run
said 'what it says' '^rdma  *missing  *rxe1 port 1 is DOWN'
finish
