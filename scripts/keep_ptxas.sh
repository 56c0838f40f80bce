#!/bin/sh
# Runs a compilation of CUDA code, COMPILER ... -o OBJECT ..., and keeps what ptxas says of each kernel in OBJECT.ptxas, where
# scripts/kernel_resources.py reads it. All else goes on to standard error.
previous=
for word; do
  [ "$previous" = -o ] && object=$word
  previous=$word
done
"$@" 2>"$object.ptxas"
status=$?
grep -vE '^ptxas info|bytes stack frame' "$object.ptxas" >&2
exit $status
