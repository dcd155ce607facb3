# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# abi_types.awk - structures and enumerators of a prefix, from the output of `readelf --debug-dump=info`
#
#   awk -v prefix=leat -f abi_types.awk
#
# Versions of readelf differ in what they print before a value, which is the last word of its line.
# Prints "struct NAME SIZE", "member NAME.MEMBER OFFSET SIZE" and "value NAME NUMBER".

function size_of(id) {
	if (id == "")
		return 0
	if (tag[id] == "pointer_type")
		return 8
	if (tag[id] == "array_type")
		return length_of[id] * size_of(type[id])
	return bytes[id] != "" ? bytes[id] : size_of(type[id])
}

# Returns the structure behind typedefs and arrays if it has no name.
function nameless(id) {
	while (id != "" && tag[id] ~ /^(array_type|typedef|const_type|volatile_type)$/)
		id = type[id]
	return tag[id] ~ /^(structure|union)_type$/ && name[id] == "" ? id : ""
}

function print_members(of, id,    i, n, list, m, inner) {
	n = split(members[id], list, " ")
	for (i = 1; i <= n; i++) {
		m = list[i]
		print "member", of "." name[m], at[m] + 0, size_of(type[m])
		inner = nameless(type[m])
		if (inner != "")
			print_members(of "." name[m], inner)
	}
}

/Abbrev Number: [1-9]/ {
	split($1, part, /[<>]+/)
	depth = part[2]
	id = part[3]
	tag[id] = $NF
	gsub(/^\(DW_TAG_|\)$/, "", tag[id])
	parent[depth] = id
	owner = depth > 0 ? parent[depth - 1] : ""
	if (tag[id] == "member")
		members[owner] = members[owner] " " id
	order[++count] = id
	next
}
$2 == "DW_AT_name" { name[id] = $NF }
$2 == "DW_AT_byte_size" { bytes[id] = $NF }
$2 == "DW_AT_const_value" { number[id] = $NF }
$2 ~ /^DW_AT_data_member_location/ { at[id] = $NF }
$2 == "DW_AT_type" {
	match($0, /<0x[0-9a-f]+>/)
	type[id] = substr($0, RSTART + 3, RLENGTH - 4)
}
$2 == "DW_AT_upper_bound" { length_of[owner] = (length_of[owner] ? length_of[owner] : 1) * ($NF + 1) }
$2 == "DW_AT_count" { length_of[owner] = (length_of[owner] ? length_of[owner] : 1) * $NF }

END {
	for (i = 1; i <= count; i++) {
		id = order[i]
		if (tag[id] == "enumerator" && index(name[id], toupper(prefix) "_") == 1)
			print "value", name[id], number[id]
		if (tag[id] != "structure_type" || index(name[id] "_", prefix "_") != 1 || bytes[id] == "")
			continue
		print "struct", name[id], bytes[id]
		print_members(name[id], id)
	}
}
