#!/bin/bash
# All rows of `taskmix reproduce sequences` that are asked for, one process a row, until the time is up.
#     benchmarks/sequence_rows.sh DATA DRAWS PROCESSES SECONDS SET:SIZE ...
# Finished draws are in DRAWS, so the same command goes on where it was stopped; the table is printed by
# `taskmix reproduce sequences DATA --out DRAWS`.
data=$1 draws=$2 processes=$3 seconds=$4
shift 4
export OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1
begin=$(date +%s)
row() {
    left=$(($3 + $4 - $(date +%s)))
    [ "$left" -gt 5 ] || exit 0
    set=${5%%:*} size=${5##*:}
    timeout "$left" python -m taskmix reproduce sequences "$1" --sets "$set" --sizes "$size" \
        --no-synthetic --out "$2" --json >/dev/null 2>"$2/$set-$size.log"
    echo "$5 ended with $? after $(($(date +%s) - $3)) s"
}
export -f row
mkdir -p "$draws"
printf '%s\n' "$@" | xargs -P "$processes" -I{} bash -c 'row "$@"' _ "$data" "$draws" "$begin" "$seconds" {}
