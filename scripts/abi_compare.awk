# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# abi_compare.awk - compares two lists of scripts/abi.sh, and tells compatible differences from others
#
#   awk -v grows="NAME ..." -f abi_compare.awk OLD NEW
#
# Prints a line for each difference. Begins it with "new: " if programs that were linked with the old library work with
# the new one, else with "incompatible: ". All differences are new if the soname differs.
# @grows: structures that only the library allocates, or of which the caller passes the size to a function, and counts
# of enumerators. A structure whose first member is `size` grows as well.

function struct_of(key) { # "member NAME.MEMBER"
	sub(/^member /, "", key)
	sub(/\..*/, "", key)
	return key
}

function may_grow(s) { return index(" " grows " ", " " s " ") || old["member " s ".size"] == "0 8" }

# Returns whether bytes [@at, end) were reserved in the old structure.
function was_reserved(s, at,    r) {
	if (split(old["member " s ".reserved"], r, " ") != 2)
		return 0
	return at >= r[1] && at < r[1] + r[2]
}

function is_appended(key,    s, where) {
	s = struct_of(key)
	if (!(("struct " s) in old))
		return 1
	if (key ~ /\..*\./)
		return 0
	split(now[key], where, " ")
	return was_reserved(s, where[1]) || (may_grow(s) && where[1] >= old["struct " s] + 0)
}

function is_compatible_addition(key) {
	if (key ~ /^symbol /)
		return !(now[key] in nodes)
	return key ~ /^member / ? is_appended(key) : 1
}

# A growing last array, or the rest of what is reserved
function is_compatible_member(key,    s, was, is) {
	s = struct_of(key)
	split(old[key], was, " ")
	split(now[key], is, " ")
	if (key == "member " s ".reserved")
		return now["struct " s] + 0 >= old["struct " s] + 0
	return may_grow(s) && was[1] == is[1] && is[2] > was[2] && was[1] + was[2] == old["struct " s] + 0
}

function is_compatible_change(key,    k) {
	split(key, k, " ")
	if (k[1] == "struct")
		return may_grow(k[2]) && now[key] + 0 > old[key] + 0
	if (k[1] == "member")
		return is_compatible_member(key)
	return k[1] == "value" && may_grow(k[2]) && now[key] + 0 > old[key] + 0
}

function report(ok, text) { print (ok || soname_differs ? "new: " : "incompatible: ") text }

/^#/ || NF == 0 { next }
{
	key = $1 == "soname" ? $1 : $1 " " $2
	rest = substr($0, length(key) + 2)
}
FNR == NR {
	old[key] = rest
	if ($1 == "symbol")
		nodes[rest] = 1
	next
}
{
	now[key] = rest
	order[++count] = key
}

END {
	soname_differs = old["soname"] != now["soname"]
	for (i = 1; i <= count; i++) {
		key = order[i]
		if (!(key in old))
			report(is_compatible_addition(key), key " " now[key])
		else if (old[key] != now[key])
			report(is_compatible_change(key), key " was " old[key] ", is " now[key])
	}
	for (key in old)
		if (!(key in now) && !(key ~ /\.reserved$/ && now["struct " struct_of(key)] + 0 >= old["struct " struct_of(key)] + 0))
			report(0, key " is gone")
}
