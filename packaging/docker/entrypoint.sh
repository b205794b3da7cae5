#!/bin/bash
# Starts the server, and makes its data directory first if the volume is empty. The variables are those of
# MariaDB's image; each may also be given as NAME_FILE, the file that has the value.
set -euo pipefail

CONFIGURATION=/etc/cohort/cohort.cnf
DATA=/var/lib/cohort
# A data directory is made here, and moved to its place when it is complete.
NEW="$DATA/.new"

say() { printf 'entrypoint: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# value NAME: MARIADB_NAME, MYSQL_NAME, or the content of the file that either with _FILE names.
value() {
  local prefix name
  for prefix in MARIADB MYSQL; do
    name="${prefix}_$1"
    if [ -n "${!name:-}" ]; then printf '%s' "${!name}"; return; fi
    name="${prefix}_$1_FILE"
    if [ -n "${!name:-}" ]; then cat "${!name}" || die "$name: no such file"; return; fi
  done
}

# A string of SQL, and a name.
text() { local v="${1//\\/\\\\}"; printf "'%s'" "${v//\'/\'\'}"; }
name() { printf '`%s`' "${1//\`/\`\`}"; }

# identified PASSWORD HASH: the clause for an account.
identified() {
  if [ -n "$2" ]; then printf 'IDENTIFIED BY PASSWORD %s' "$(text "$2")"; else printf 'IDENTIFIED BY %s' "$(text "$1")"; fi
}

# The statements that a new data directory begins with.
first_statements() {
  local password hash host user
  password="$(value ROOT_PASSWORD)" hash="$(value ROOT_PASSWORD_HASH)"
  if [ -z "$password$hash" ]; then
    if [ -n "$(value RANDOM_ROOT_PASSWORD)" ]; then
      password="$(head -c 24 /dev/urandom | base64)"
      say "GENERATED ROOT PASSWORD: $password"
    elif [ -z "$(value ALLOW_EMPTY_ROOT_PASSWORD)$(value ALLOW_EMPTY_PASSWORD)" ]; then
      die "set one of MARIADB_ROOT_PASSWORD, MARIADB_ROOT_PASSWORD_HASH, MARIADB_RANDOM_ROOT_PASSWORD," \
        "MARIADB_ALLOW_EMPTY_ROOT_PASSWORD"
    fi
  fi
  [ -z "$(value MYSQL_LOCALHOST_USER)" ] || die "MARIADB_MYSQL_LOCALHOST_USER is not supported: there is no user mysql"
  echo "DROP DATABASE IF EXISTS test;"
  # The health check logs in by the user that the container runs as.
  echo "CREATE USER cohort@localhost IDENTIFIED VIA unix_socket;"
  echo "GRANT $(value HEALTHCHECK_GRANTS | grep . || echo USAGE) ON *.* TO cohort@localhost;"
  host="$(value ROOT_HOST)" host="${host:-%}"
  if [ "$host" != localhost ]; then
    echo "CREATE USER root@$(text "$host") $(identified "$password" "$hash");"
    echo "GRANT ALL ON *.* TO root@$(text "$host") WITH GRANT OPTION;"
    echo "GRANT PROXY ON ''@'%' TO root@$(text "$host") WITH GRANT OPTION;"
  fi
  local database
  database="$(value DATABASE)"
  [ -z "$database" ] || echo "CREATE DATABASE IF NOT EXISTS $(name "$database");"
  user="$(value USER)"
  if [ -n "$user" ]; then
    [ -n "$(value PASSWORD)$(value PASSWORD_HASH)" ] || die "MARIADB_USER needs MARIADB_PASSWORD or MARIADB_PASSWORD_HASH"
    echo "CREATE USER $(text "$user")@'%' $(identified "$(value PASSWORD)" "$(value PASSWORD_HASH)");"
    [ -z "$database" ] || echo "GRANT ALL ON $(name "${database//_/\\_}").* TO $(text "$user")@'%';"
  fi
  user="$(value REPLICATION_USER)"
  if [ -n "$user" ] && [ -z "$(value MASTER_HOST)" ]; then
    echo "CREATE USER $(text "$user")@'%' $(identified "$(value REPLICATION_PASSWORD)" "$(value REPLICATION_PASSWORD_HASH)");"
    echo "GRANT REPLICATION SLAVE ON *.* TO $(text "$user")@'%';"
  fi
  [ -z "$password$hash" ] || echo "ALTER USER root@localhost $(identified "$password" "$hash");"
}

# client [OPTION...]: as root over the socket of the server that is not open to others yet.
client() { mariadb --no-defaults --socket="$PRIVATE/socket" --user=root "$@"; }

run_file() {
  case "$1" in
  *.sh) if [ -x "$1" ]; then "$1"; else . "$1"; fi ;;
  *.sql) client $DATABASE <"$1" ;;
  *.sql.gz) gunzip -c "$1" | client $DATABASE ;;
  *.sql.xz) xzcat "$1" | client $DATABASE ;;
  *.sql.zst) zstdcat "$1" | client $DATABASE ;;
  *) say "ignored $1" ;;
  esac
}

# Runs the files of /docker-entrypoint-initdb.d and sets a replica up.
run_files() {
  local file source
  DATABASE="$(value DATABASE)"
  for file in /docker-entrypoint-initdb.d/*; do
    [ -e "$file" ] || continue
    say "running $file"
    run_file "$file"
  done
  source="$(value MASTER_HOST)"
  if [ -n "$source" ]; then
    client -e "CHANGE MASTER TO MASTER_HOST=$(text "$source"), MASTER_PORT=$(value MASTER_PORT | grep . || echo 3306),
      MASTER_USER=$(text "$(value REPLICATION_USER)"), MASTER_PASSWORD=$(text "$(value REPLICATION_PASSWORD)"),
      MASTER_CONNECT_RETRY=10, MASTER_USE_GTID=slave_pos"
  fi
}

make_data_directory() {
  say "making the data directory"
  find "$DATA" -mindepth 1 -not -path '*/lost+found*' -delete
  # Root has no password until the end; the directory of the socket is for this user alone.
  PRIVATE="$(mktemp -d)"
  first_statements >"$PRIVATE/all.sql"
  grep -v '^ALTER USER root' "$PRIVATE/all.sql" >"$PRIVATE/first.sql"
  cohortd --defaults-file="$CONFIGURATION" "$@" --initialize --datadir="$NEW" --init-file="$PRIVATE/first.sql"
  cohortd --defaults-file="$CONFIGURATION" "$@" --datadir="$NEW" --skip-networking --socket="$PRIVATE/socket" &
  local server=$!
  until client -e 'SELECT 1' >/dev/null 2>&1; do
    kill -0 "$server" 2>/dev/null || die "the server ended while the data directory was made"
    sleep 0.1
  done
  run_files
  { echo 'SET sql_log_bin = 0;'; grep '^ALTER USER root' "$PRIVATE/all.sql" || true; } | client
  kill "$server"
  wait "$server"
  rm -rf "$PRIVATE"
  # The server takes a directory for its own when it has this file: it comes last.
  mv "$NEW/cohort.version" "$DATA/.cohort.version"
  find "$NEW" -mindepth 1 -maxdepth 1 -not -name cohort.lock -exec mv -t "$DATA" {} +
  rm -rf "$NEW"
  mv "$DATA/.cohort.version" "$DATA/cohort.version"
  sync "$DATA"
}

if [ $# -eq 0 ] || [ "${1#-}" != "$1" ]; then set -- cohortd "$@"; fi
[ "$1" = cohortd ] || exec "$@"
shift
for argument in "$@"; do
  case "$argument" in --help | -\? | --version | -V | --help=* | --print-* | --validate-config) exec cohortd "$@" ;; esac
done

[ "$(id -u)" -ne 0 ] || die "the container runs as the user cohort: leave out --user, or name another that owns $DATA"
[ -w "$DATA" ] || die "$DATA cannot be written by user $(id -u): chown it, or use a volume"
if [ ! -e "$DATA/cohort.version" ]; then
  # Files of somebody else are not removed.
  if [ -e "$DATA/ibdata1" ]; then die "$DATA is a data directory of MariaDB: use another volume and load a dump"; fi
  if [ ! -e "$NEW" ] && [ ! -e "$DATA/.cohort.version" ] && [ -n "$(find "$DATA" -mindepth 1 -maxdepth 1 -not -name lost+found)" ]; then
    die "$DATA has files but no cohort.version: use an empty volume"
  fi
  make_data_directory "$@"
fi
exec cohortd --defaults-file="$CONFIGURATION" "$@"
