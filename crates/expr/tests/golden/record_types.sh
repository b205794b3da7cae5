#!/usr/bin/env bash
# Records the result metadata a real MariaDB 10.11 sends: record_types.sh SOCKET FILE
# A line is `expression`, TAB, `TYPE length decimals [NOT_NULL] [UNSIGNED]`; length is in bytes of utf8mb4.
set -eu
socket=$1
file=$2
while IFS= read -r line || [ -n "$line" ]; do
  case "$line" in '#'* | '') printf '%s\n' "$line"; continue ;; esac
  expression=${line%%$'\t'*}
  out=$(mariadb --no-defaults -uroot -S "$socket" --default-character-set=utf8mb4 -t --column-type-info -e "SELECT $expression")
  field() { printf '%s\n' "$out" | sed -nE "s/^$1: +//p" | head -1 | sed -E 's/ +$//'; }
  flags=$(field Flags | tr ' ' '\n' | grep -E '^(NOT_NULL|UNSIGNED)$' | paste -sd' ' || true)
  kind=$(field Type | sed -E 's/ .*//')
  printf '%s\t%s %s %s%s\n' "$expression" "$kind" "$(field Length)" "$(field Decimals)" "${flags:+ $flags}"
done <"$file" >"$file.new"
mv "$file.new" "$file"
