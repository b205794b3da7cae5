#!/bin/bash
# Succeeds when the server answers a statement over TCP and over its socket. The options --connect and
# --innodb_initialized of MariaDB's image ask for nothing else.
set -euo pipefail

: </dev/tcp/127.0.0.1/3306
mariadb --defaults-file=/etc/cohort/cohort.cnf --user=cohort --batch --skip-column-names -e 'SELECT 1' >/dev/null
