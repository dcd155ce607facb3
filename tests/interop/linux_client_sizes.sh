#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# linux_client_sizes.sh - Linux's NFS client and a leatd with other inline thresholds and credits, and
# the calls and replies that change their form with them
#
# What was agreed on is what the client's trace points say; which form a call had, its counters.

set -u
cd "$(dirname "$0")/../.." || exit
. tests/interop/lib.sh
in_vm 2400
setup
[ -x /sbin/mount.nfs ] || { echo 'SKIP: no mount.nfs here (nfs-common)'; exit 77; }
odd=$O/tests/interop/odd
[ -x "$odd" ] || { echo "SKIP: no $odd here (make interop-tools)"; exit 77; }

m=$work/mnt
mkdir "$m"
tracing=/sys/kernel/tracing
modprobe rpcrdma
mount -t tracefs tracefs $tracing

# client READ WRITE SLOTS: its largest inline reply and call, and how many calls at once
client() {
	ok "a client of $1, $2, $3" sysctl -q "sunrpc.rdma_max_inline_read=$1" \
		"sunrpc.rdma_max_inline_write=$2" "sunrpc.rdma_slot_table_entries=$3"
}

# traced EVENT SED: the different things that it says
traced() { sed -n "s/.* $1: .*$2.*/\1/p" $tracing/trace | sort -un | tr '\n' ' ' | sed 's/ $//'; }

begin() { # CASE SEND/RECEIVE LEATD-OPTION...
	case=$1 wanted=$2
	shift 2
	section "$case"
	rm -rf "$work/export"
	leatd_start "$@"
	: >$tracing/trace
	for event in xprtrdma_inline_thresh xprtrdma_reply; do
		echo 1 >$tracing/events/rpcrdma/$event/enable
	done
	ok "mount, $case" mounted "$m" rdma
	same "thresholds, $case" "$(traced xprtrdma_inline_thresh 'neg send\/recv=\([0-9]*\/[0-9]*\)')" "$wanted"
}

end() { # [CREDITS]: granted by all replies
	[ $# -eq 0 ] || same "credits, $case" "$(traced xprtrdma_reply 'credits=\([0-9]*\)')" "$1"
	ok "umount, $case" timeout 100 umount "$m"
	leatd_stop
}

# files and links of which some travel inline and some do not, long names, and how many of their calls
# do not fit: as a user with as many groups as a credential can hold, which makes the longest calls
work_with() { # LENGTHS LINKS LONG-CALLS
	# shellcheck disable=SC2086
	counted "lengths past the cache, $case" "$odd" direct "$m" "$work/export" $1 4095 4097 65537 1048577
	counted "lengths, $case" "$odd" buffered "$m" "$work/export" 1 1025 4099 1048577
	# shellcheck disable=SC2086
	counted "links, $case" "$odd" links "$m" "$work/export" 1 2 3 4 5 $2 4000
	before=$(rdma_count "$m" long)
	counted "names, $case" setpriv --groups "$(seq -s , 1001 1016)" "$odd" names "$m" "$work/export"
	same "long calls, $case" $(($(rdma_count "$m" long) - before)) "$3"
	same "ls -l, $case" "$(cd "$m" && ls -lA | cksum)" "$(cd "$work/export" && ls -lA | cksum)"
}

# form LENGTH SEGMENTS: of Read chunks for a WRITE of LENGTH bytes, and of Write chunks for a READ
form() {
	before=$(rdma_count "$m" reads)
	dd if="$work/random" of="$m/form" bs="$1" count=1 oflag=direct status=none 2>"$work/out"
	reads=$(($(rdma_count "$m" reads) - before))
	before=$(rdma_count "$m" writes)
	dd if="$m/form" of="$work/form" bs="$1" count=1 iflag=direct status=none 2>"$work/out"
	same "chunks for $1 bytes, $case" "$reads $(($(rdma_count "$m" writes) - before))" "$2"
	ok "$1 bytes, $case" cmp -n "$1" "$work/form" "$work/random"
}

# A WRITE has 124 bytes before its data, a READ's reply 128; a SYMLINK 148 before the path, a READLINK's
# reply 200 with the header. Of a call 708 bytes go inline with 1024, 3780 with 4096 and 65220 with
# 65536; of a reply 812, 3884 and 65340.
at_1024='581 583 584 585 588 681 683 684 685 688' links_1024='555 559 560 561 564 823 824 825 828'
at_4096='3653 3655 3656 3657 3660 3753 3755 3756 3757 3760'
at_65536='65093 65095 65096 65097 65100 65209 65211 65212 65213 65216'

client 1024 1024 128
begin 'a client of 1024' 1024/1024
form 500 '0 0'
form 752 '1 1'
work_with "$at_1024" "$links_1024" 2
end

client 65536 65536 128
begin 'both of 65536' 65536/65536 --inline 65536
form 60000 '0 0'
form 65536 '1 1'
work_with "$at_65536" '3700 3900' 0
end

client 1024 65536 128
begin 'calls of 65536, replies of 1024' 65536/1024 --inline 65536
form 60000 '0 1'
work_with "$at_1024" "$links_1024" 0
end

client 65536 1024 128
begin 'calls of 1024, replies of 65536' 1024/65536 --inline 65536
form 60000 '1 0'
work_with "$at_1024" "$links_1024" 2
end

client 65536 65536 128
begin 'one credit, and only the client of 65536' 4096/4096 --credits 1
form 3500 '0 0'
form 3800 '1 1'
work_with "$at_4096" '3632 3636' 0
end 1

client 4096 4096 4
begin 'four slots, and leatd of 1024' 1024/1024 --inline 1024
form 752 '1 1'
work_with "$at_1024" "$links_1024" 2
end 4

client 4096 4096 128
begin 'leatd without private data' 1024/1024 --no-private-data
form 752 '1 1'
work_with "$at_1024" "$links_1024" 2
end

same 'no queue pair is left' "$(queue_pairs)" 0
finish
