#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_cli_errors.sh - an error of the leat command names the file once, as the user did, and the reason;
# never a temporary file, and never the address of a transport that leat:// chose

set -eu
. tests/lib/checks.sh
cli_start
mkdir "$work/here"

says() { # PLACE PATTERN COMMAND...: fails with one line, "leat: PLACE: PATTERN", and no more than that
	place=$1 pattern=$2
	shift 2
	bad 1 "$pattern" "$@"
	line=$(cat "$work/err")
	case $line in
	"leat: $place: "*) rest=${line#"leat: $place: "} ;;
	*) fail "$* does not begin with '$place': $line" ;;
	esac
	echo "$rest" | grep -qE -e "^$pattern" || fail "$*, behind the place: $line"
	case $rest in
	*://* | *.leat-*) fail "$*: two names: $line" ;;
	esac
}

cd "$work" # relative names of this machine
case $LEAT in /*) ;; *) LEAT=$OLDPWD/$LEAT ;; esac
echo content >"$work/here/f"
no_such='[A-Za-z]+: No such file or directory'

go() { # URL
	url=$1
	echo content >"$export_dir/f"
	mkdir "$export_dir/d"
	for command in ls stat cat df rm 'rm -r' 'rm --leftovers' 'bench read' 'bench meta'; do
		# shellcheck disable=SC2086
		says "$url/none" "$no_such" "$LEAT" $command "$url/none"
	done
	says "$url/n o" "$no_such" "$LEAT" ls "$url/n%20o?cache=none"
	says "$url/a/b" "$no_such" "$LEAT" mkdir "$url/a/b"
	says "$url/d" 'MKDIR: File exists' "$LEAT" mkdir "$url/d"
	says "$url/none to /other" 'RENAME: No such' "$LEAT" mv "$url/none" "$url/other"
	says "$url/f to /f" 'LINK: File exists' "$LEAT" ln "$url/f" "$url/f"
	says "$url/f" 'SYMLINK: File exists' "$LEAT" ln -s a "$url/f"
	says "$url/d" 'is a directory' "$LEAT" rm "$url/d"
	says "$url/d" 'Is a directory' "$LEAT" cat "$url/d"
	bad 1 "cannot mount .*: the server exports no such path; it exports /demo$" "$LEAT" ls "${url%/demo}"
	bad 1 "cannot mount .*/dem: the server exports no such path; it exports /demo$" "$LEAT" ls "${url%o}"
	says none "$no_such" "$LEAT" rm --leftovers none

	# the target's directory is what is missing, and not a temporary file
	says "$url/no/dir" "$no_such" "$LEAT" put here/f "$url/no/dir/f"
	says "$url/no/dir" "$no_such" "$LEAT" cp "$url/f" "$url/no/dir/f"
	says "$url/no" "$no_such" "$LEAT" put here/f "$url/no/"
	says "$work/no" "$no_such" "$LEAT" get "$url/f" "$work/no/f"
	says no "$no_such" "$LEAT" cp here/f no/f
	says no/dir "$no_such" "$LEAT" cp -r "$url/d" no/dir

	# both sides of a copy are called what they are everywhere else
	says "$url/none" "$no_such" "$LEAT" get "$url/none" here
	says here/none "$no_such" "$LEAT" put here/none "$url/f"
	says "$url/f/g" '[a-z]+: Not a directory' "$LEAT" cp here/f "$url/f/g"
	says "$url/f" '([a-z]+: )?Not a directory' "$LEAT" put here/f "$url/f/"
	says "$url/d" 'is a directory' "$LEAT" cp "$url/d" here
	says /dev/full 'write: No space left' "$LEAT" get "$url/f" /dev/full
	bad 1 "^leat: '$url/f' and '$url/d/../f' are the same file$" "$LEAT" cp "$url/f" "$url/d/../f"
	bad 1 "^leat: '$url/f' and '$url/f' are the same file$" "$LEAT" mv "$url/f" "$url/f"
	bad 1 "^leat: $url/d: cannot be copied into itself, $url/d/new$" "$LEAT" cp -r "$url/d" "$url/d/new"
	ln -s nowhere "$export_dir/d/here"
	says "$url/d/here" 'is a symbolic link' "$LEAT" put -r here "$url/d"
	: >"$export_dir/d/.leat-0123456789abcdef"
	bad 1 "^leat: $url/d/.leat-0123456789abcdef: skipped" "$LEAT" get -r "$url/d" here
	rm -r "$work/here/d" "$export_dir/f" "$export_dir/d"
}

go "$local_url"
go "$tcp_url"
# the place is the URL's, though it goes by the local socket
go "leat://${tcp_url#tcp://}"
bad 1 '^leat: /: not a URL' "$LEAT" ls /
bad 2 "^leat: no command 'cpp'" "$LEAT" cpp
bad 2 "^leat: no command 'cpp'" "$LEAT" help cpp
bad 2 "^leat: no such option: -q$" "$LEAT" cp -q a b
bad 2 "^leat: no such option: --none$" "$LEAT" rm --none a
ok "$LEAT" cp --help
grep -q '^usage: leat cp ' "$work/out" || fail "cp --help said: $(cat "$work/out")"
echo "$checks checks"
