#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_readme.sh - the lines of README.md that are to be typed by hand do what they say, for root and for
# an ordinary user: typed as they are, in a network of their own and, for root, on file systems of its own

set -eu
: "${LEATD:=build/leatd}" "${LEAT:=build/leat}"

if [ "${1:-}" != inside ]; then
	work=$(mktemp -d)
	pid=''
	finish() {
		[ -z "$pid" ] || kill "$pid" 2>/dev/null || :
		rm -rf "$work"
	}
	trap finish EXIT
	chmod 755 "$work"
	# where the lines are typed: nothing of this must lie under what root's private mounts hide
	mkdir "$work/tree" "$work/tree/build" "$work/home"
	cp "$LEATD" "$work/tree/build/leatd"
	cp "$LEAT" "$work/tree/build/leat"
	[ ! -e build/nbdkit-leat-plugin.so ] || cp build/nbdkit-leat-plugin.so build/lib*.so.* "$work/tree/build/"
	cp -r doc "$work/tree/doc"
	# the second block of lines under that headline is for root, the third for any user
	awk '/^## / { on = /^## Getting started/; next } !on { next }
		/^    / { if (!in_block) n++; in_block = 1; print substr($0, 5) >(out "/" n); next }
		{ in_block = 0 }' out="$work" README.md
	[ -s "$work/2" ] && [ -s "$work/3" ] && [ ! -e "$work/4" ] || { echo 'README.md has other blocks'; exit 1; }
	for section in Block Striped; do
		awk -v headline="$section volumes" '/^## / { on = $0 == "## " headline; next } on && /^    / { print substr($0, 5) }' \
			README.md >"$work/$section"
		grep -q '^build/leatd' "$work/$section" || { echo "no leatd in README.md, $section volumes"; exit 1; }
	done
	grep -q '^build/leatd' "$work/2" && grep -q '^build/leatd' "$work/3" || { echo 'no leatd in README.md'; exit 1; }

	root_ns='unshare --net --mount' user_ns='unshare --net' user='setpriv --reuid 64001 --regid 64001 --clear-groups'
	if [ "$(id -u)" -ne 0 ]; then
		root_ns='' user_ns='unshare --user --map-current-user --keep-caps --net' user=''
	elif ! $user "$work/tree/build/leat" --version >/dev/null 2>&1; then
		user_ns=''
	fi
	ran=''
	# shellcheck disable=SC2086
	for who in root user; do
		case $who in
		root) ns=$root_ns block=2 as='' ;;
		user) ns=$user_ns block=3 as=$user ;;
		esac
		case $who$work in root/srv/* | root/run/* | root/root/* | root/var/lib/*) ns='' ;; esac
		if [ -z "$ns" ] || ! $ns sh -c 'ip link set lo up' >/dev/null 2>&1; then
			echo "skipped: $who: no namespaces of one's own here, or no other user"
			continue
		fi
		rm -rf "$work/home"
		mkdir "$work/home"
		[ -z "$as" ] || chown 64001:64001 "$work/home"
		LEAT_AS="$as" $ns sh "$0" inside "$who" "$work" "$work/$block" || exit 1
		ran="$ran $who"
	done
	[ -n "$ran" ] || { echo 'SKIP: neither for root nor for a user'; exit 77; }
	echo "README.md works for:$ran"
	exit 0
fi

# ---- in namespaces of our own ----

who=$2 work=$3 lines=$4
fail() {
	echo "FAILED as $who: $*"
	exit 1
}
ip link set lo up || fail 'no loopback'
if [ "$who" = root ]; then
	for dir in /srv /run /root /var/lib; do
		mount -t tmpfs tmpfs $dir || fail "no file system of its own at $dir"
	done
	HOME=/root data=/srv/data
else
	HOME=$work/home data=$work/home/data
fi
export HOME
unset XDG_RUNTIME_DIR XDG_STATE_HOME
as=${LEAT_AS-}
cd "$work/tree"

cat >"$HOME/type" <<'END'
# Types the lines of $1, each as it is and as fast as they come: the lines themselves have to wait for the
# server. But a benchmark that is left running has to have read something.
set -eu
pids=''
trap 'kill $pids' EXIT
while read -r line; do
	echo "> $line"
	case $line in
	build/leatd*'&' | build/leatd*'& '*)
		eval "$line"
		pids="$pids $!"
		;;
	nbdkit*)
		if ! command -v nbdkit >/dev/null || ! command -v nbdcopy >/dev/null || [ ! -e build/nbdkit-leat-plugin.so ]; then
			echo 'not typed: no nbdkit here'
			continue
		fi
		eval "$line" || { echo "status $?"; exit 1; }
		;;
	*'&' | *'& '*)
		eval "$line"
		url=$(echo "$line" | sed -nE 's|.* (leat://[^/]*)/.*|\1|p')
		until build/leat ctl stats "$url" | grep -qE '^bytes_out +[1-9]'; do
			kill -0 "$!" || { echo "ended: $line"; exit 1; }
		done
		;;
	*)
		eval "$line" || { echo "status $?"; exit 1; }
		;;
	esac
done <"$1"
END
rc=0
# shellcheck disable=SC2086
timeout 120 $as sh "$HOME/type" "$lines" >"$work/out.$who" 2>&1 </dev/null || rc=$?
[ "$rc" -eq 0 ] || fail "status $rc: $(cat "$work/out.$who")"
# in a user namespace / has no owner that is mapped, so that sockets below it are not taken
local='^way  *ok  *local'
[ "$(stat -c %u /)" -eq 0 ] || local='^way  *missing  *not local'
for word in '^transport' ' tour.md' '^  throughput' '^READ +[wDNBf]{50} ' "$local"; do
	grep -qE "$word" "$work/out.$who" || fail "nothing like '$word' in: $(cat "$work/out.$who")"
done
diff -r doc "$data/doc" || fail 'the files did not arrive'
[ "$(ls -A "$data")" = doc ] || fail "left behind: $(ls -A "$data")"

# type_section SECTION WORD...: the lines of "SECTION volumes" do what they say, and their output has the words
type_section() {
	section=$1
	shift
	# shellcheck disable=SC2086
	timeout 120 $as sh "$HOME/type" "$work/$section" >"$work/out.$section" 2>&1 </dev/null ||
		fail "$section volumes: status $?: $(cat "$work/out.$section")"
	for word in "$@"; do
		grep -qE "$word" "$work/out.$section" || fail "$section volumes: nothing like '$word' in: $(cat "$work/out.$section")"
	done
}

type_section Block '^volume +vol0' '1073741824'
cmp -n "$(stat -c %s doc/tour.md)" doc/tour.md "$HOME/vol0.img" || fail 'the file did not arrive in the volume'
type_section Striped '^2 stripes' '^ +2 full' ' 0 faults'
