# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# mutants.awk - reads tests/mutants.txt: lists, checks or applies mutants
#
#   -v mode=list               a line each: NAME TEST FILE...
#   -v mode=items              a line for each item: NAME ITEM TEST
#   -v mode=check              is each of them complete, and does its old text occur exactly once?
#   -v mode=apply -v name=X    writes the files of mutant X, changed, below the current directory
#
# Source files are read below the current directory. Exit status 1 after a complaint.

function complain(text) {
	print "mutants: " mutant ": " text >"/dev/stderr"
	bad = 1
}

# The lines of a file, once: line[path, 1..lines[path]]
function load(path,    n, text, rc) {
	if (path in lines)
		return lines[path] > 0
	n = 0
	while ((rc = getline text <path) > 0)
		line[path, ++n] = text
	close(path)
	lines[path] = n
	return n > 0
}

# A function begins where its name stands in a line that is not indented and that "{" follows before a blank line, and
# ends with "}" in the first column. Sets first and last. Return: 0: there is none
function find_function(path, fn,    i, j) {
	first = 1
	last = lines[path]
	if (fn == "")
		return 1
	for (i = 1; i <= lines[path]; i++) {
		if (line[path, i] !~ /^[A-Za-z_]/ || line[path, i] !~ ("(^|[^A-Za-z0-9_])" fn "\\("))
			continue
		for (j = i; j <= lines[path] && line[path, j] !~ /^[{]/ && line[path, j] !~ /;$/ && line[path, j] != ""; j++)
			;
		if (line[path, j] !~ /^[{]/)
			continue
		first = i
		for (last = j; last < lines[path] && line[path, last] !~ /^[}]/; last++)
			;
		return 1
	}
	return 0
}

# Where the old text of the change stands in its function. Return: the line; 0 after a complaint
function find_old(    i, k, at, found) {
	found = 0
	for (i = first; i + nold - 1 <= last; i++) {
		for (k = 1; k <= nold && line[path, i + k - 1] == old[k]; k++)
			;
		if (k > nold) {
			found++
			at = i
		}
	}
	if (found != 1)
		complain("its text is there " found " times in " path (fn == "" ? "" : ", " fn "()"))
	return found == 1 ? at : 0
}

# One change ends. Changes of one mutant are made one after the other, so the next one sees this one.
function end_change(    at, i, d) {
	if (path == "")
		return
	if (!nold)
		complain("a change without a line that is there")
	else if (!load(path))
		complain("no file " path)
	else if (!find_function(path, fn))
		complain("no function " fn "() in " path)
	else if ((at = find_old()) && wanted()) {
		d = nnew - nold
		if (d > 0)
			for (i = lines[path]; i >= at + nold; i--)
				line[path, i + d] = line[path, i]
		else
			for (i = at + nold; i <= lines[path]; i++)
				line[path, i + d] = line[path, i]
		for (i = 1; i <= nnew; i++)
			line[path, at + i - 1] = new[i]
		lines[path] += d
		changed[path] = 1
	}
	path = ""
}

function wanted() {
	return mode == "apply" && mutant == name
}

function end_mutant(    i, n, item, known) {
	if (mutant == "")
		return
	if (mode == "check" || wanted())
		end_change()
	path = ""
	if (test == "")
		complain("names no test")
	if (why == "")
		complain("says nothing")
	if (files == "")
		complain("changes nothing")
	if (mode == "list")
		print mutant, test files
	n = split(items, item, " ")
	for (i = 1; i <= n && mode == "items"; i++)
		print mutant, item[i], test
	mutant = ""
}

function begin_change() {
	if (mode == "check" || wanted())
		end_change()
	path = $2
	fn = $3
	nold = nnew = 0
	if (index(files " ", " " path " ") == 0)
		files = files " " path
}

/^#/ && mutant == "" { next }
$0 == "" {
	end_mutant()
	next
}
mutant == "" {
	if ($1 != "mutant" || NF != 2) {
		mutant = "line " FNR
		complain("no `mutant NAME' after an empty line")
	}
	mutant = $2
	if (mutant in seen)
		complain("is there twice")
	seen[mutant] = 1
	why = test = items = files = path = ""
	next
}
$1 == "test" && path == "" { test = $2; next }
$1 == "item" && path == "" { items = items " " $2; next }
/^in / { begin_change(); next }
path == "" { why = why $0; next }
/^-/ { old[++nold] = substr($0, 2); next }
/^[+]/ { new[++nnew] = substr($0, 2); next }
/^ / { old[++nold] = new[++nnew] = substr($0, 2); next }
{ complain("line " FNR " begins with neither blank, - nor +") }

END {
	end_mutant()
	for (p in changed) {
		for (i = 1; i <= lines[p]; i++)
			print line[p, i] >p
		close(p)
	}
	exit bad
}
