#!/bin/sh
# quick: apply, build test, run, revert (own worktree)
cd /work/wt/b5
for m in "$@"; do
 p=$(ls tests/mutants/$m*); t=$(sed -n 's/^Test: //p' $p)
 patch -p1 -sf <$p || { echo BAD $p; continue; }
 make -s DEV=1 CC="ccache gcc" build/obj/default/tests/$t >/tmp/b5mut.log 2>&1 || { make -s CC="ccache gcc" CFLAGS="-O2 -g -w" build/obj/default/tests/$t >/tmp/b5mut.log 2>&1 || echo "build failed $p"; }
 if TMPDIR=$(mktemp -d) timeout 120 build/obj/default/tests/$t >/tmp/b5mut.out 2>&1; then echo "SURVIVED $p"; else echo "killed $p"; fi
 patch -p1 -sRf <$p; sleep 1; touch $(sed -n "s,^+++ b/,,p" $p)
done
