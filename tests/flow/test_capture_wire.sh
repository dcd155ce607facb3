#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_capture_wire.sh - what leat and leatd say to each other, by leatd --capture: whether it keeps
# the rules, by leat dump --check; and tshark, an independent decoder, shows the same headers,
# and its chunk lists against what was meant
set -u
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}"
. scripts/private-leatd.sh
. tests/lib/wire_lines.sh

work=$(mktemp -d)
trap 'leatd_stop; rm -rf "$work"' EXIT
passed=0 failed=0
check() { # WHAT GOT WANTED
	if [ "$2" = "$3" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "$1: '$2', expected '$3'"
	fi
}

mkdir "$work/export"
leatd_options="--capture $work/wire.pcap"
leatd_start "$work/export" || exit 1
path=$(head -c 3999 /dev/zero | tr '\0' p)
head -c 3000 /dev/urandom >"$work/inline"
head -c 5001 /dev/urandom >"$work/odd"
head -c 1048576 /dev/urandom >"$work/mega"
for f in inline odd mega; do
	"$LEAT" put "$work/$f" "$local_url/$f" || failed=$((failed + 1))
	"$LEAT" cat "$local_url/$f" | cmp - "$work/$f" || failed=$((failed + 1))
done
"$LEAT" ln -s "$path" "$local_url/link" || failed=$((failed + 1))
check "the link's path" "$("$LEAT" ls -l "$local_url" | sed -n 's/.* -> //p')" "$path"
"$LEAT" ls "$local_url" >/dev/null || failed=$((failed + 1))
leatd_stop

"$LEAT" dump --check "$work/wire.pcap" >"$work/check" || failed=$((failed + 1))
check "rules broken" "$(sed 's/.*, //' "$work/check")" "0 rules broken"
of_dump "$work/wire.pcap" >"$work/ours"
command -v tshark >/dev/null || {
	echo "$passed passed, $failed failed"
	[ "$failed" = 0 ] || exit 1
	echo "SKIP: no tshark here (apt-get install tshark): nobody else has read the capture"
	exit 77
}
of_tshark "$work/wire.pcap" >"$work/theirs" 2>"$work/err"
check "messages of a decoder of our own" "$(wc -l <"$work/ours")" "$(wc -l <"$work/theirs")"
diff "$work/ours" "$work/theirs" >"$work/diff" || { head -n 5 "$work/diff"; failed=$((failed + 1)); }

# a packet that is sent again is no second message, to either
frame=$(tshark -r "$work/wire.pcap" -Y rpcordma -T fields -e frame.number 2>"$work/err" | sed -n 20p)
editcap -r "$work/wire.pcap" "$work/again.pcap" "$frame" &&
	mergecap -w "$work/twice.pcap" "$work/wire.pcap" "$work/again.pcap" || failed=$((failed + 1))
check "packets, one of them twice" "$(capinfos -TrcM "$work/twice.pcap" | cut -f 2)" \
	"$(($(capinfos -TrcM "$work/wire.pcap" | cut -f 2) + 1))"
of_dump "$work/twice.pcap" >"$work/ours2"
of_tshark "$work/twice.pcap" >"$work/theirs2" 2>"$work/err"
check "messages of ours, one sent twice" "$(cmp "$work/ours" "$work/ours2" 2>&1)" ""
check "messages of theirs, one sent twice" "$(cmp "$work/theirs" "$work/theirs2" 2>&1)" ""

# proc msgtyp type reads writes reply position lengths, one message per line. tshark shows a call that
# has chunks where their data is complete; the Send itself then has neither proc nor msgtyp: "- -"
tshark -r "$work/wire.pcap" -Y rpcordma -T fields -E separator='|' -E occurrence=f \
	-e nfs.procedure_v3 -e rpc.msgtyp -e rpcordma.msg_type -e rpcordma.reads_count \
	-e rpcordma.writes_count -e rpcordma.reply_count -e rpcordma.position -e rpcordma.rdma_length \
	2>"$work/err" >"$work/raw" || { cat "$work/err"; failed=$((failed + 1)); }
awk -F'|' '{ for (i = 1; i <= 8; i++) printf "%s%s", $i == "" ? "-" : $i, i < 8 ? " " : "\n" }' \
	"$work/raw" >"$work/all"
pick() { # PROC MSGTYP: those lines, without the two
	sed -n "s/^$1 $2 //p" "$work/all"
}

undecoded=$(grep -c '^- - 0 ' "$work/all")
calls=$(($(grep -c '^[-0-9]* 0 ' "$work/all") + undecoded))
replies=$(grep -c '^[-0-9]* 1 ' "$work/all")
check "as many replies as calls" "$replies" "$calls"
check "messages decoded at all" "$([ "$calls" -gt 50 ] && echo many)" many

# Read chunks: WRITE of 5001 bytes and 1 MiB and the path of SYMLINK, one segment each, without pad,
# at a multiple of four
check "Read chunks" "$(pick - - | awk '$2 { print $2, $6, $5 % 4 }' | sort | tr '\n' ';')" \
	"1 1048576 0;1 3999 0;1 5001 0;"
check "calls they completed" "$(tshark -r "$work/wire.pcap" -Y 'rpc.msgtyp == 0 && !rpcordma' -T fields \
	-e nfs.procedure_v3 2>/dev/null | sort | tr '\n' ';')" "10;7;7;"
check "WRITE of 3000 bytes" "$(pick 7 0)" "0 0 0 0 - -"
check "WRITE replies" "$(pick 7 1 | sort | uniq -c | sed 's/^ *//')" "3 0 0 0 0 - -"

# READ: a Write chunk is offered, and returned with what was written: never the pad
check "READ calls" "$(pick 6 0 | awk '{ print $1, $2, $3, $4 }' | sort -u)" "0 0 1 0"
for n in 3000 5001 1048576; do
	check "READ replies of $n" "$(pick 6 1 | grep -c "^0 0 1 0 - $n\$")" 1
done

# READLINK: the path comes back through a chunk
check "READLINK call" "$(pick 5 0 | awk '{ print $1, $2, $3 + $4 }' | sort -u)" "0 0 1"

# READDIRPLUS: a Reply chunk, used or returned empty
check "READDIRPLUS calls" "$(pick 17 0 | awk '{ print $1, $2, $3, $4 }' | sort -u)" "0 0 0 1"

# nothing else has a chunk
check "chunks elsewhere" "$(grep -E '^(1|2|3|4|8|9|1[1-5]|18|19|20|21) [01] ' "$work/all" |
	awk '$3 != 0 || $4 + $5 + $6 { print }')" ""

# the transfers themselves: as many bytes as the chunk lists say
written=$(tshark -r "$work/wire.pcap" -Y 'infiniband.bth.opcode == 10 || infiniband.bth.opcode == 6' \
	-T fields -e infiniband.reth.dmalen 2>/dev/null | awk '{ s += $1 } END { print s }')
pulled=$(tshark -r "$work/wire.pcap" -Y 'infiniband.bth.opcode == 12' \
	-T fields -e infiniband.reth.dmalen 2>/dev/null | awk '{ s += $1 } END { print s }')
check "RDMA Read" "$pulled" $((5001 + 1048576 + 3999))
check "RDMA Write carries the READs" "$([ "$written" -ge $((3000 + 5001 + 1048576)) ] && echo all)" all

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
