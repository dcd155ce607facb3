#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# words.sh - lists words that the language rules of doc/design.md avoid, in code, strings and documents
#
#   scripts/words.sh [FOLDER...]    all of the product and its documents, or these
#
# Words for persons are for users and administrators: programs, objects and messages have names. "Whose" is not
# listed: of an object it is plain English for "of which". Exceptions are in scripts/words.allow: FILE, a tab, and a
# part of the line.

set -u
cd "$(dirname "$0")/.." || exit
[ $# -gt 0 ] || set -- include xdr rpcrdma tirpc server client examples tests/tools doc README.md

persons='he|his|him|himself|who|whom|whoever|somebody|nobody|everybody|someone|anybody'
phrases='so many|of no account|anew|to and fro|there is none|is told|are told|is looked at|is to be had|through with|at hand'
list=$(mktemp) || exit
trap 'rm -f "$list"' EXIT
stubs='- see [a-z0-9_]+\.h( \*/)?$'

git ls-files "$@" | grep -E '\.([chx]|md|[1-8])$' | xargs grep -HnowiE "$persons|$phrases" |
	awk -F: -v allow=scripts/words.allow '
		BEGIN { while ((getline line < allow) > 0) if (line !~ /^#/) { split(line, part, "\t"); ok[part[1]] = ok[part[1]] "\n" part[2] } }
		{
			if ($1 != file) { file = $1; n = 0; while ((getline text < file) > 0) lines[++n] = text; close(file) }
			m = split(substr(ok[$1], 2), parts, "\n")
			for (i = 1; i <= m; i++)
				if (parts[i] != "" && index(lines[$2], parts[i])) next
			text = lines[$2]
			sub(/^[ \t*]+/, "", text)
			printf "%s:%s: %s: %s\n", $1, $2, $3, text
		}' >"$list"
git ls-files "$@" | grep -E '\.[ch]$' | xargs grep -HnE -e "$stubs" /dev/null >>"$list"
cat "$list"
n=$(wc -l <"$list")
echo "words: $n lines to rewrite" >&2
[ "$n" = 0 ]
