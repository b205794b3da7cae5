#!/bin/bash
# Runs the image's entry point as a container would; see test.sh.
set -euo pipefail
unset TMPDIR
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
passed=0
trap 'echo "FAILED   $current: line $LINENO: $BASH_COMMAND"; exit 1' ERR
step() { current="$*"; }
ok() { passed=$((passed + 1)); echo "ok   $current"; }
fail() { echo "FAILED   $current: $*"; exit 1; }
same() { [ "$1" = "$2" ] || fail "'$1', expected '$2'"; }
sql() { mariadb --no-defaults --host=127.0.0.1 --batch --skip-column-names "$@"; }

# up [VARIABLE=VALUE...]: a container on the volume as it is.
up() {
  env "$@" entrypoint.sh >/tmp/log 2>&1 &
  server=$!
  for _ in $(seq 300); do
    healthcheck.sh 2>/dev/null && return
    kill -0 $server 2>/dev/null || { cat /tmp/log; fail "it ended"; }
    sleep 0.1
  done
  cat /tmp/log; fail "it does not get healthy"
}
down() { kill $server; wait $server; }
empty() { find /var/lib/cohort -mindepth 1 -delete; }

step "runs as a user"
same "$(id -un)" cohort
ok

step "an empty volume needs a word about root's password"
if entrypoint.sh >/tmp/log 2>&1; then fail "it started"; fi
grep -q 'set one of MARIADB_ROOT_PASSWORD' /tmp/log
same "$(find /var/lib/cohort -mindepth 1 | wc -l)" 0
ok

step "accounts, database and scripts of the variables"
echo "it's a \\ secret" >/tmp/secret
up MARIADB_ROOT_PASSWORD_FILE=/tmp/secret MARIADB_DATABASE=shop_1 MARIADB_USER=app MYSQL_PASSWORD="a'b" MARIADB_REPLICATION_USER=repl MARIADB_REPLICATION_PASSWORD=r
same "$(sql --user=root --password="$(cat /tmp/secret)" -e 'SELECT CURRENT_USER()')" root@localhost
if sql --user=root -e 'SELECT 1' 2>/dev/null; then fail "root without a password"; fi
same "$(sql --user=app --password="a'b" shop_1 -e 'CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2); SELECT SUM(a) FROM t')" 3
if sql --user=app --password="a'b" -e 'CREATE DATABASE other' 2>/dev/null; then fail "too many rights"; fi
sql --user=repl --password=r -e 'SHOW GRANTS' | grep -q 'REPLICATION SLAVE'
same "$(sql --user=root --password="$(cat /tmp/secret)" -e 'SELECT COUNT(*) FROM scripted.t')" 0
[ ! -e /var/lib/cohort/.new ]
ok

step "a second start finds its data"
down
up MARIADB_ROOT_PASSWORD=ignored
same "$(sql --user=app --password="a'b" shop_1 -e 'SELECT COUNT(*) FROM t')" 2
down
ok

step "what was cut short is made again"
empty; mkdir -p /var/lib/cohort/.new/half
up MARIADB_ALLOW_EMPTY_ROOT_PASSWORD=1 MARIADB_ROOT_HOST=localhost
same "$(sql --user=root -e "SELECT COUNT(*) FROM mysql.user WHERE User = 'root'")" 1
down
empty
ok

step "files that are not Cohort's are refused and stay"
touch /var/lib/cohort/ibdata1
if MARIADB_ALLOW_EMPTY_ROOT_PASSWORD=1 entrypoint.sh >/tmp/log 2>&1; then fail "it started"; fi
grep -q 'data directory of MariaDB' /tmp/log
[ -e /var/lib/cohort/ibdata1 ]
empty
ok

step "a random password is printed"
up MARIADB_RANDOM_ROOT_PASSWORD=yes
same "$(sql --user=root --password="$(sed -n 's/.*GENERATED ROOT PASSWORD: //p' /tmp/log)" -e 'SELECT 1')" 1
down
ok

echo "$passed passed, 0 failed"
