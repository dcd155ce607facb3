#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Copyright (c) 2026 The leat authors
#
# test_cli_noproc.sh - leat cp where the files of this machine answer as few do: without /proc, as in a chroot, on
# a file system that counts no names, and where a list cannot be read
#
# A preloaded library gives the answers, so this needs no privilege and a sanitizer still has its /proc.

set -eu
. tests/lib/checks.sh
cli_start

cat >"$work/without.c" <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#define NEXT(f) ((__typeof__(f) *)dlsym(RTLD_NEXT, #f))
#define UNLESS_PROC(call) \
	(strcmp(getenv("WITHOUT"), "proc") || strncmp(path, "/proc/self/fd", 13) ? (call) : (errno = ENOENT, -1))
int open(const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = va_arg(ap, mode_t);
	va_end(ap);
	return UNLESS_PROC(NEXT(open)(path, flags, mode));
}
int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
	return UNLESS_PROC(NEXT(__open_2)(path, flags));
}
int access(const char *path, int mode)
{
	return UNLESS_PROC(NEXT(access)(path, mode));
}
int chmod(const char *path, mode_t mode)
{
	return UNLESS_PROC(NEXT(chmod)(path, mode));
}
int utimensat(int dir, const char *path, const struct timespec times[2], int flags)
{
	return UNLESS_PROC(NEXT(utimensat)(dir, path, times, flags));
}
ssize_t getxattr(const char *path, const char *name, void *value, size_t size)
{
	return UNLESS_PROC(NEXT(getxattr)(path, name, value, size));
}
int setxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
	return UNLESS_PROC(NEXT(setxattr)(path, name, value, size, flags));
}
ssize_t fgetxattr(int fd, const char *name, void *value, size_t size)
{
	if (strcmp(getenv("WITHOUT"), "lists"))
		return NEXT(fgetxattr)(fd, name, value, size);
	errno = EIO;
	return -1;
}
int fstat(int fd, struct stat *ret)
{
	int rc = NEXT(fstat)(fd, ret);

	if (!rc && !strcmp(getenv("WITHOUT"), "counts") && !S_ISDIR(ret->st_mode))
		ret->st_nlink = 0;
	return rc;
}
C
${CC:-gcc} -shared -fPIC -o "$work/without.so" "$work/without.c" || fail 'no library to answer'
without() { # WHAT LEAT'S ARGUMENTS...
	what=$1
	shift
	env "LD_PRELOAD=$work/without.so" "WITHOUT=$what" \
		"ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" "$LEAT" "$@"
}
same() { # WHAT A B
	[ "$2" = "$3" ] || fail "$1: '$2' is not '$3'"
	checks=$((checks + 1))
}
tree() { # DIR: all of it
	(cd "$1" && find . -exec stat -c '%n %F %a %Y' {} + | sort)
}
copied() { # WITHOUT FROM TO TO-DIR: a tree with all attributes
	ok without "$1" cp -rp "$2" "$3"
	same "cp -rp $2 $3 without $1" "$(tree "$4/copy")" "$(tree "$work/copy")"
	chmod -R u+w "$4/copy"
	rm -r "$4/copy"
}

mkdir -p "$work/copy/a/b" "$work/copy/closed" "$work/here"
echo 1 >"$work/copy/a/file"
ln -s file "$work/copy/a/link"
chmod 700 "$work/copy/a/b"
chmod 2755 "$work/copy/a"
find "$work/copy" -exec touch -h -d @1000000000 {} +
chmod 555 "$work/copy/closed"
for url in "$local_url" "$tcp_url"; do
	for what in proc counts; do
		copied $what "$work/copy" "$url" "$export_dir"
		copied $what "$work/copy" "$work/here" "$work/here"
		cp -a "$work/copy" "$export_dir/copy"
		copied $what "$url/copy" "$work/here" "$work/here"
		# without -p, a directory that its owner cannot write to
		ok without $what get -r "$url/copy" "$work/here/plain"
		same 'mode' "$(stat -c %a "$work/here/plain/closed")" 555
		chmod -R u+w "$export_dir/copy" "$work/here/plain"
		rm -r "$export_dir/copy" "$work/here/plain"
	done
	# a directory that is there, and that its owner cannot list
	mkdir -m 300 "$work/here/copy"
	copied counts "$work/copy" "$work/here" "$work/here"
	# a file that is there is replaced, and not written over
	echo 2 >"$export_dir/new"
	echo old >"$work/here/file"
	chmod 640 "$work/here/file"
	before=$(stat -c %i "$work/here/file")
	exec 5<"$work/here/file"
	ok without proc get "$url/new" "$work/here/file"
	same 'mode' "$(stat -c %a "$work/here/file")" 640
	same 'content' "$(cat "$work/here/file")" 2
	same 'old content' "$(cat <&5)" old
	exec 5<&-
	[ "$(stat -c %i "$work/here/file")" != "$before" ] || fail 'get: a file was written in place'
	# what cannot be read of the source is not the target's failure
	bad 1 "^leat: $work/copy/closed: getxattr: Input/output error" without lists put -rp "$work/copy/closed" "$url/x"
	bad 1 "^leat: $work/copy/a/file: getxattr: Input/output error" without lists put -p "$work/copy/a/file" "$url/y"
	rm -r "$work/here/file" "$export_dir/x" "$export_dir/new"
	[ ! -e "$export_dir/y" ] || fail 'put -p: a file without its list stayed'
done

# what cannot be opened has no other way than a call of newer kernels
mkfifo -m 666 "$work/fifo"
rc=0
without proc cp -rp "$work/fifo" "$work/here" 2>"$work/err" || rc=$?
if [ $rc -eq 0 ]; then
	same 'mode' "$(stat -c %a "$work/here/fifo")" 666
else
	grep -q 'fifo: chmod: Function not implemented' "$work/err" || fail "cp -rp fifo: $(cat "$work/err")"
fi
echo "$checks checks"
