# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# includes.awk - lists includes: for each #include of a file of the same top folder a line
# FROM-FOLDER TO-FOLDER FILE HEADER, of all the files on the command line; of a file below tests/ for each #include
# of a file of any other top folder

function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
function top(path) { sub(/\/.*/, "", path); return path }

BEGIN {
	for (i = 1; i < ARGC; i++) {
		name = ARGV[i]
		sub(/.*\//, "", name)
		where[top(ARGV[i]), name] = folder(ARGV[i])
		if (top(ARGV[i]) != "tests")
			anywhere[name] = folder(ARGV[i])
	}
}

/^[ \t]*#[ \t]*include[ \t]*"[a-z0-9_\/]+\.[ch]"/ && top(FILENAME) == "tests" {
	split($0, part, "\"")
	name = part[2]
	sub(/.*\//, "", name)
	if (name in anywhere && (part[2] == name || part[2] == anywhere[name] "/" name))
		print folder(FILENAME), anywhere[name], FILENAME, name
	next
}

/^[ \t]*#[ \t]*include[ \t]*"[a-z0-9_]+\.h"/ {
	split($0, part, "\"")
	to = where[top(FILENAME), part[2]]
	if (to != "")
		print folder(FILENAME), to, FILENAME, part[2]
}
