#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_cli_attrs.sh - leat cp: owner, mode, access control list, times and holes, of old targets and with -p
#
# What needs two users runs as root and is skipped otherwise.

set -eu
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}"
. scripts/private-leatd.sh
. tests/lib/checks.sh
case $LEAT in /*) ;; *) LEAT=$PWD/$LEAT ;; esac

work=$(mktemp -d)
finish() {
	leatd_stop
	rm -rf "$work"
}
trap finish EXIT
umask 022
export_dir=$work/export
mkdir "$export_dir" "$work/here"
chmod 755 "$work"
leatd_start "$export_dir" || exit 1
OWNER=64002 GROUP=64003

same() { # WHAT A B
	[ "$2" = "$3" ] || fail "$1: '$2' is not '$3'"
	checks=$((checks + 1))
}
warns() { # PATTERN COMMAND...: succeeds, and says one line
	pattern=$1
	shift
	"$@" >"$work/out" 2>"$work/err" || fail "$* -> $?: $(cat "$work/err")"
	grep -qE -e "$pattern" "$work/err" || fail "$* said: $(cat "$work/err")"
	[ "$(wc -l <"$work/err")" -eq 1 ] || fail "$*: not one line: $(cat "$work/err")"
	checks=$((checks + 1))
}
new() { # another content each time
	count=$((count + 1))
	echo "content $count" >"$work/new"
}
count=0
attrs() { stat -c '%a %u %g' "$1"; }
list() { getfacl -cpn "$1"; }

is_root=
[ "$(id -u)" -ne 0 ] || is_root=1
has_lists=
: >"$work/here/f"
! setfacl -m "u:$OWNER:rw,g::---" "$work/here/f" 2>/dev/null || has_lists=1
rm "$work/here/f"
[ -n "$is_root" ] || echo 'skipped: files of other users'
[ -n "$has_lists" ] || echo 'skipped: access control lists'

# Without -p a target keeps what it has, but for the set-id bits.
keeps() { # TARGET-PREFIX DIR
	to=$1 dir=$2
	for mode in 600 4755 2755 6711 2644 444; do
		: >"$dir/f"
		chmod "$mode" "$dir/f"
		[ -z "$is_root" ] || { chown "$OWNER:$GROUP" "$dir/f" && chmod "$mode" "$dir/f"; }
		want=$(attrs "$dir/f" | sed -E 's/^[246](...) /\1 /')
		new
		ok "$LEAT" cp "$work/new" "$to/f"
		ok cmp "$work/new" "$dir/f"
		same "over a file of mode $mode" "$(attrs "$dir/f")" "$want"
		rm -f "$dir/f"
	done
	# by a second name: in place
	: >"$dir/f"
	ln "$dir/f" "$dir/g"
	[ -z "$is_root" ] || chown "$OWNER:$GROUP" "$dir/f"
	chmod 6755 "$dir/f"
	ok "$LEAT" cp "$work/new" "$to/g"
	ok cmp "$work/new" "$dir/f"
	same 'in place' "$(attrs "$dir/f")" "755 $(stat -c '%u %g' "$dir/g")"
	rm "$dir/f" "$dir/g"
	[ -n "$has_lists" ] || return 0

	: >"$dir/f"
	chmod 640 "$dir/f"
	setfacl -m "u:$OWNER:rw,g::---,m::rw" "$dir/f"
	want=$(list "$dir/f")
	new
	ok "$LEAT" cp "$work/new" "$to/f"
	ok cmp "$work/new" "$dir/f"
	same 'the list' "$(list "$dir/f")" "$want"
	# in a directory that gives new files a list, one without stays without
	setfacl -d -m "u:$OWNER:rwx" "$dir"
	setfacl -b "$dir/f"
	chmod 640 "$dir/f"
	want=$(list "$dir/f")
	ok "$LEAT" cp "$work/new" "$to/f"
	same 'no list' "$(list "$dir/f")" "$want"
	setfacl -k "$dir"
	rm "$dir/f"
}

# A user who may not give a new file the owner of the old one writes to the old one, if its mode permits.
others() { # TARGET-PREFIX DIR
	to=$1 dir=$2
	[ -n "$is_root" ] || return 0
	mkdir "$dir/his"
	chown "$OWNER" "$dir/his"
	for mode in 666 600; do
		echo old >"$dir/his/f"
		chmod "$mode" "$dir/his/f"
		inode=$(stat -c %i "$dir/his/f")
		new
		chmod 644 "$work/new"
		set -- setpriv --reuid "$OWNER" --regid "$OWNER" --clear-groups "$LEAT" cp "$work/new" "$to/his/f"
		if [ "$mode" = 666 ]; then
			ok "$@"
			ok cmp "$work/new" "$dir/his/f"
		else
			bad 1 'Permission denied' "$@"
			same 'content' "$(cat "$dir/his/f")" old
		fi
		same 'attributes' "$(attrs "$dir/his/f")" "$mode 0 0"
		same 'inode' "$(stat -c %i "$dir/his/f")" "$inode"
		same 'nothing else' "$(ls -A "$dir/his")" f
		rm "$dir/his/f"
	done
	rm -r "$dir/his"
}

# With -p a copy has what the source has.
preserves() { # FROM-PREFIX FROM-DIR TO-PREFIX TO-DIR
	from=$1 fdir=$2 to=$3 tdir=$4
	mkdir "$fdir/s" "$fdir/s/d"
	new
	for f in plain set listed; do cp "$work/new" "$fdir/s/$f"; done
	chmod 604 "$fdir/s/plain"
	ln -s plain "$fdir/s/link"
	ln -s nowhere "$fdir/s/dangling"
	chmod 1750 "$fdir/s/d"
	if [ -n "$is_root" ]; then
		chown -h "$OWNER:$GROUP" "$fdir/s" "$fdir/s"/*
	fi
	chmod 4711 "$fdir/s/set"
	if [ -n "$has_lists" ]; then
		chmod 600 "$fdir/s/listed"
		setfacl -m "u:$OWNER:r,g::---,m::rw" "$fdir/s/listed"
		setfacl -m "u:$OWNER:rx,g::---,m::rwx" "$fdir/s/d"
	fi
	touch -h -d '2001-02-03 04:05:06.789' "$fdir/s"/*
	touch -h -d '2002-03-04 05:06:07.891' "$fdir/s"
	# twice: new ones, and over what is there
	for round in 1 2; do
		ok "$LEAT" cp -rp "$from/s" "$to/t$round"
		[ "$round" -eq 1 ] || ok "$LEAT" cp -rp "$from/s/." "$to/t1"
		for f in . plain set link dangling d listed; do
			same "$f" "$(stat -c '%F %a %u %g %.3Y' "$tdir/t1/$f")" "$(stat -c '%F %a %u %g %.3Y' "$fdir/s/$f")"
			[ -z "$has_lists" ] || [ -L "$fdir/s/$f" ] || same "list of $f" "$(list "$tdir/t1/$f")" "$(list "$fdir/s/$f")"
		done
		ok cmp "$work/new" "$tdir/t1/plain"
		# the old ones are of another owner and mode now
		chmod 777 "$tdir/t1/plain" "$tdir/t1/set"
		[ -z "$has_lists" ] || setfacl -m "u:$OWNER:rwx" "$tdir/t1/plain"
		[ -z "$is_root" ] || chown 0:0 "$tdir/t1/plain" "$tdir/t1/set"
		rm -f "$tdir/t1/link"
		ln -s elsewhere "$tdir/t1/link"
	done
	rm -r "$tdir/t1" "$tdir/t2" "$fdir/s"
}

keeps_times() { # URL
	url=$1
	new
	for when in 1960-01-02 2200-01-02; do
		touch -d "$when" "$work/new"
		touch -a -d 2001-02-03 "$work/new"
		if [ "$(stat -c %.10y "$work/new")" != "$when" ]; then
			echo "skipped: $when, which this file system cannot store"
			continue
		fi
		warns 'times before 1970 or after 2106 are not kept' "$LEAT" put -p "$work/new" "$url/early"
		same 'the other time' "$(stat -c %.10x "$export_dir/early")" 2001-02-03
		ok cmp "$work/new" "$export_dir/early"
		rm "$export_dir/early"
		mkdir "$work/early"
		cp -p "$work/new" "$work/early/f"
		ln -s f "$work/early/l"
		touch -h -d "$when" "$work/early/l" "$work/early"
		"$LEAT" put -rp "$work/early" "$url/early" 2>"$work/err" || fail "put -rp of $when: $(cat "$work/err")"
		same 'warnings' "$(grep -c 'not kept' "$work/err")" 3
		ok cmp "$work/new" "$export_dir/early/f"
		rm -r "$work/early" "$export_dir/early"
		# here they can be stored
		touch -d "$when" "$work/new"
		ok "$LEAT" cp -p "$work/new" "$work/here/f"
		same 'mtime' "$(stat -c %Y "$work/here/f")" "$(stat -c %Y "$work/new")"
		rm "$work/here/f"
	done
}

pipes() { # URL
	url=$1
	for mask in 022 027 077; do
		for p in '' -p; do
			# shellcheck disable=SC2086
			(umask "$mask" && echo x | "$LEAT" put $p - "$url/piped") || fail 'put from a pipe'
			same "mode with umask $mask" "$(stat -c %a "$export_dir/piped")" "$(printf '%o' $((0666 & ~mask)))"
			rm "$export_dir/piped"
		done
	done
}

blocks() { echo $(($(stat -c %b "$1") / 2)); } # KiB

holes() { # URL
	url=$1
	truncate -s 40M "$work/holes"
	head -c 100000 /dev/urandom | dd of="$work/holes" bs=1M seek=10 conv=notrunc status=none
	head -c 70000 /dev/zero | dd of="$work/holes" bs=1M seek=20 conv=notrunc status=none
	echo x | dd of="$work/holes" bs=1 seek=31457279 conv=notrunc status=none
	if [ "$(blocks "$work/holes")" -gt 4096 ]; then
		echo 'skipped: holes, which this file system has not'
		return 0
	fi
	ok "$LEAT" put "$work/holes" "$url/holes"
	ok cmp "$work/holes" "$export_dir/holes"
	ok test "$(blocks "$export_dir/holes")" -lt 4096
	ok "$LEAT" get "$url/holes" "$work/here/holes"
	ok cmp "$work/holes" "$work/here/holes"
	ok test "$(blocks "$work/here/holes")" -lt 4096
	# over old content: beside it, and in place
	for links in 1 2; do
		head -c 41943041 /dev/urandom >"$export_dir/holes"
		[ "$links" -eq 1 ] || ln "$export_dir/holes" "$export_dir/second"
		ok "$LEAT" put "$work/holes" "$url/holes"
		ok cmp "$work/holes" "$export_dir/holes"
	done
	rm "$export_dir/holes" "$export_dir/second" "$work/here/holes" "$work/holes"
	# zeros that take space in the source take it in the copy
	head -c 4194304 /dev/zero >"$work/zeros"
	sync "$work/zeros"
	ok "$LEAT" put "$work/zeros" "$url/zeros"
	sync "$export_dir/zeros"
	ok test "$(blocks "$export_dir/zeros")" -ge 4096
	rm "$export_dir/zeros" "$work/zeros"
}

mkdir "$export_dir/t" "$export_dir/u"
keeps "$work/here" "$work/here"
others "$work/here" "$work/here"
others "$local_url/t" "$export_dir/t" # TCP takes a port below 1024
preserves "$work/here" "$work/here" "$local_url/t" "$export_dir/t"
for url in "$local_url" "$tcp_url"; do
	keeps "$url/t" "$export_dir/t"
	preserves "$url/t" "$export_dir/t" "$work/here" "$work/here"
	preserves "$url/t" "$export_dir/t" "$url/u" "$export_dir/u"
	keeps_times "$url"
	pipes "$url"
	holes "$url"
done
echo "$checks checks"
