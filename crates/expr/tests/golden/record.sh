#!/usr/bin/env bash
# Records the answers of a real MariaDB 10.11: record.sh SOCKET FILE...
# Rewrites each FILE in place. A line is `expression`, TAB, `answer`, and with warnings TAB and those
# (`W1292 text | N1105 text`). Lines that start with # stay. An answer is what the client prints in batch mode, or
# `ERROR number (SQLSTATE): text`. FROM=test.g in the environment takes the rows of a table. The server must be fresh (default sql_mode); nothing is created in it.
set -eu
socket=$1
shift
ask() {
  mariadb --no-defaults -uroot -S "$socket" --default-character-set=utf8mb4 -N --batch --show-warnings -e "$1" 2>&1
}
setup="SET time_zone = '+00:00', timestamp = 1700000000.123456"
for file in "$@"; do
  while IFS= read -r line || [ -n "$line" ]; do
    case "$line" in '#'* | '') printf '%s\n' "$line"; continue ;; esac
    expression=${line%%$'\t'*}
    if out=$(ask "$setup; SELECT $expression${FROM:+ FROM $FROM}"); then
      answer=$(printf '%s\n' "$out" | grep -vE '^(Warning|Note|Error) \(Code [0-9]+\): ' || true)
      warnings=$(printf '%s\n' "$out" | sed -nE 's/^(W|N)[a-z]* \(Code ([0-9]+)\): /\1\2 /p' | paste -sd'|' | sed 's/|/ | /g')
    else
      answer=$(printf '%s\n' "$out" | sed -nE 's/^ERROR ([0-9]+ \([0-9A-Z]+\)) at line [0-9]+: /ERROR \1: /p' | head -1)
      warnings=
    fi
    printf '%s\t%s%s\n' "$expression" "$answer" "${warnings:+$'\t'$warnings}"
  done <"$file" >"$file.new"
  mv "$file.new" "$file"
done
