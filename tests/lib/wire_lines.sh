# shellcheck shell=sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# wire_lines.sh - the headers of a capture as two decoders see them, in the same words; for sourcing

# A message in a line of numbers: xid, credits, type, entries of the read list, Write chunks, Reply
# chunks, positions, lengths. As leat dump prints it:
of_dump() { # FILE
	"$LEAT" dump "$1" | awk '
		function each(list,  n, i, part) {
			n = split(list, part, "+")
			for (i = 1; i <= n; i++)
				lengths = lengths (lengths == "" ? "" : ",") part[i]
			return n
		}
		BEGIN { type["RDMA_MSG"] = 0; type["RDMA_NOMSG"] = 1; type["RDMA_DONE"] = 3; type["RDMA_ERROR"] = 4 }
		$6 == "CALL" || $6 == "REPLY" {
			xid = credits = lengths = positions = ""
			reads = writes = reply = 0
			for (i = 8; i <= NF && $i !~ /^send=/; i++) {
				if ($i ~ /^xid=/)
					xid = substr($i, 5)
				else if ($i ~ /^cred=/)
					credits = substr($i, 6)
				else if ($i ~ /^READ\[/) {
					position = $i
					gsub(/[^0-9]/, "", position)
					list = $(++i)
					sub(/\]/, "", list)
					n = each(list)
					reads += n
					while (n--)
						positions = positions (positions == "" ? "" : ",") position
				} else if ($i ~ /^(WRITE|REPLY)\[/) {
					if ($i ~ /^WRITE/) writes++; else reply++
					list = $(++i)
					sub(/\]/, "", list)
					each(list)
				}
			}
			print xid, credits, type[$7], reads, writes, reply, "[" positions "]", "[" lengths "]"
		}'
}

# ... and as tshark understands it. A queue pair sends a packet again when no ACK comes in time; tshark decodes it
# each time, a receiver takes the first.
of_tshark() { # FILE
	tshark -r "$1" -Y rpcordma -T fields -E separator='|' -E aggregator=, \
		-e ip.src -e infiniband.bth.destqp -e infiniband.bth.psn \
		-e rpcordma.xid -e rpcordma.flow_control -e rpcordma.msg_type -e rpcordma.reads_count \
		-e rpcordma.writes_count -e rpcordma.reply_count \
		-e rpcordma.position -e rpcordma.rdma_length |
		awk -F'|' '!seen[$1, $2, $3]++ {
			sub(/^0x0*/, "0x", $4)
			print $4, $5, $6, $7 + 0, $8 + 0, $9 + 0, "[" $10 "]", "[" $11 "]"
		}'
}
