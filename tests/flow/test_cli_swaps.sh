#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_cli_swaps.sh - leat cp while another process exchanges names in its directories: no link is followed
#
# A preloaded library runs a command at one system call of leat or leatd, so each exchange comes at the worst moment.

set -eu
: "${LEAT:=build/leat}" "${LEATD:=build/leatd}"
. scripts/private-leatd.sh
. tests/lib/checks.sh
case $LEATD in /*) ;; *) LEATD=$PWD/$LEATD ;; esac

work=$(mktemp -d)
finish() {
	leatd_stop
	rm -rf "$work"
}
trap finish EXIT
umask 022

# SWAP="CALL NAME COMMAND": the first time that CALL is given a path whose last part is NAME, COMMAND runs: just
# before an openat, just after the others. It runs where $SWAP_IN is.
cat >"$work/swap.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static atomic_int done;
static void swap(const char *call, const char *path)
{
	const char *file = getenv("SWAP_FILE"), *slash = strrchr(path, '/');
	char want[32], name[64], command[400], run[800];
	FILE *f = file ? fopen(file, "re") : NULL;
	int n;

	if (!f)
		return;
	n = fscanf(f, "%31s %63s %399[^\n]", want, name, command);
	fclose(f);
	if (n != 3 || strcmp(want, call) || strcmp(name, slash ? slash + 1 : path) || atomic_exchange(&done, 1))
		return;
	unlink(file);
	snprintf(run, sizeof(run), "unset LD_PRELOAD; cd \"$SWAP_IN\" && %s", command);
	if (system(run))
		abort();
	atomic_store(&done, 0);
}
#define NEXT(f) ((__typeof__(f) *)dlsym(RTLD_NEXT, #f))
int openat(int dir, const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = va_arg(ap, mode_t);
	va_end(ap);
	swap("openat", path);
	return NEXT(openat)(dir, path, flags, mode);
}
int __openat_2(int dir, const char *path, int flags);
int __openat_2(int dir, const char *path, int flags)
{
	return openat(dir, path, flags, 0);
}
int mkdirat(int dir, const char *path, mode_t mode)
{
	int rc = NEXT(mkdirat)(dir, path, mode);

	swap("mkdirat", path);
	return rc;
}
int mknodat(int dir, const char *path, mode_t mode, dev_t dev)
{
	int rc = NEXT(mknodat)(dir, path, mode, dev);

	swap("mknodat", path);
	return rc;
}
int symlinkat(const char *target, int dir, const char *path)
{
	int rc = NEXT(symlinkat)(target, dir, path);

	swap("symlinkat", path);
	return rc;
}
C
${CC:-gcc} -shared -fPIC -o "$work/swap.so" "$work/swap.c" || fail 'no library to exchange names with'
preload="LD_PRELOAD=$work/swap.so ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"

export_dir=$work/export
mkdir "$export_dir" "$work/here"
printf '#!/bin/sh\nexec env %s SWAP_FILE="%s" SWAP_IN="%s" "%s" "$@"\n' "$preload" "$work/server-swap" "$export_dir" \
	"$LEATD" >"$work/leatd"
chmod +x "$work/leatd"
LEATD=$work/leatd
leatd_start "$export_dir" || exit 1

same() { # WHAT A B
	[ "$2" = "$3" ] || fail "$1: '$2' is not '$3'"
	checks=$((checks + 1))
}
# swaps WHERE IN CALL NAME COMMAND -- LEAT'S ARGUMENTS...: sets $rc
swaps() {
	where=$1 in=$2 call=$3 name=$4 command=$5
	shift 6
	echo "$call $name $command" >"$work/$where-swap"
	rc=0
	# shellcheck disable=SC2086
	timeout 30 env $preload SWAP_FILE="$work/client-swap" SWAP_IN="$in" "$LEAT" "$@" >"$work/out" 2>"$work/err" || rc=$?
	[ ! -e "$work/$where-swap" ] || fail "leat $*: nothing was exchanged: $(cat "$work/err")"
}

# ---- directories of the source ----------------------------------------------------------------------------------

fill() { # DIR
	mkdir -p "$1/tree/a" "$1/secret"
	echo mine >"$1/tree/a/notes"
	echo secret >"$1/secret/notes"
	echo secret >"$1/secret/more"
}
exchange='mv tree/a tree/b && ln -s ../secret tree/a'

# once the directory is entered, it is that one which is copied; where it was a link by then, it is an error
source_dirs() { # FROM-DIR FROM TO-DIR TO CALL NAME STATUS
	from_dir=$1 from=$2 to_dir=$3 to=$4
	fill "$from_dir"
	swaps client "$from_dir" "$5" "$6" "$exchange" -- cp -r "$from/tree" "$to/copy"
	! grep -qr secret "$to_dir/copy" || fail "cp -r $from $to: a link was followed at $5 $6"
	same "cp -r $from $to, $5 $6" "$rc" "$7"
	[ "$7" -ne 0 ] || same 'what arrived' "$(cat "$to_dir/copy/a/notes")" mine
	rm -r "$from_dir/tree" "$from_dir/secret" "$to_dir/copy"
}
for url in "$local_url" "$tcp_url"; do
	source_dirs "$work/here" "$work/here" "$export_dir" "$url" openat notes 0
	source_dirs "$work/here" "$work/here" "$export_dir" "$url" openat a 1
	source_dirs "$export_dir" "$url" "$work/here" "$work/here" mkdirat a 0
done
mkdir "$work/there"
source_dirs "$work/here" "$work/here" "$work/there" "$work/there" openat notes 0
source_dirs "$work/here" "$work/here" "$work/there" "$work/there" openat a 1
source_dirs "$work/here" "$work/here" "$work/there" "$work/there" mkdirat a 0

# ---- files of the source ----------------------------------------------------------------------------------------

# a name that is a file at stat() and a pipe at open() does not block the command; no link is followed
source_files() { # FROM TO-DIR TO COMMAND: FROM is below $work/here
	fill "$work/here"
	swaps client "$work/here" openat notes "rm tree/a/notes && $4" -- cp -r "$work/here/$1" "$3/copy"
	same "cp -r $1, $4" "$rc" 1
	[ ! -e "$2/copy" ] || ! grep -qr secret "$2/copy" || fail "cp -r $1: a link was followed"
	rm -rf "$work/here/tree" "$work/here/secret" "$2/copy"
}
for puts in 'mkfifo tree/a/notes' 'ln -s ../../secret/notes tree/a/notes'; do
	for from in tree tree/a/notes; do
		source_files "$from" "$export_dir" "$tcp_url" "$puts"
		source_files "$from" "$work/there" "$work/there" "$puts"
	done
done

# ---- attributes of pipes and links ------------------------------------------------------------------------------

# what is made gets its attributes with -p, and nothing that takes its name does
made() { # WHERE TO-DIR TO CALL HOW...
	where=$1 to_dir=$2 to=$3 call=$4
	shift 4
	mkdir "$to_dir/d"
	echo precious >"$to_dir/file"
	chmod 600 "$to_dir/file"
	touch -d @1000000000 "$to_dir/file"
	before=$(stat -c '%a %u %Y %s' "$to_dir/file")
	swaps "$where" "$to_dir" "$call" new "mv d/new d/away && $* d/new" -- cp -rp "$work/here/new" "$to/d"
	same "attributes after $call and $*" "$(stat -c '%a %u %Y %s' "$to_dir/file")" "$before"
	same "status after $call and $*" "$rc" 1
	rm -r "$to_dir/d" "$to_dir/file"
}
for kind in fifo link; do
	case $kind in
	fifo) call=mknodat && mkfifo -m 666 "$work/here/new" ;;
	link) call=symlinkat && ln -s x "$work/here/new" ;;
	esac
	for how in 'ln -s ../file' 'ln file'; do
		# a link for a link is what was asked for
		[ "$kind$how" != 'linkln -s ../file' ] || continue
		made server "$export_dir" "$local_url" "$call" "$how"
		made server "$export_dir" "$tcp_url" "$call" "$how"
		made client "$work/there" "$work/there" "$call" "$how"
	done
	# and without any of that they have them
	for to in "$work/there" "$local_url"; do
		touch -h -d @1200000000 "$work/here/new"
		ok "$LEAT" cp -rp "$work/here/new" "$to"
		dir=$export_dir
		[ "$to" = "$local_url" ] || dir=$to
		same "a $kind with -p" "$(stat -c '%F %a %Y' "$dir/new")" "$(stat -c '%F %a %Y' "$work/here/new")"
		rm "$dir/new"
	done
	rm "$work/here/new"
done
echo "$checks checks"
