#!/bin/bash
# Uses the package as an administrator does, in a Debian root with mariadb-server; see test.sh.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin
# The caller's directory for temporary files is not that of the root.
unset TMPDIR
cd /test
DEB="$(ls cohort-server_*.deb)"
CONFIGURATION=/etc/cohort/cohort.cnf
passed=0

step() { current="$*"; begun="$(date +%s%N)"; }
ok() { passed=$((passed + 1)); printf 'ok   %s (%d ms)\n' "$current" $((($(date +%s%N) - begun) / 1000000)); }
fail() { printf 'FAILED   %s: %s\n' "$current" "$*"; exit 1; }
trap 'fail "line $LINENO: $BASH_COMMAND"' ERR

present() { for file; do [ -e "$file" ] || fail "$file is missing"; done; }
absent() { for file; do [ ! -e "$file" ] || fail "$file is left"; done; }
same() { [ "$1" = "$2" ] || fail "'$1', expected '$2'"; }
# has FILE TEXT
has() { grep -qF -- "$2" "$1" || { cat "$1"; fail "'$2' is missing in $1"; }; }

cohort_root() { mariadb --defaults-file=$CONFIGURATION --user=root --batch --skip-column-names "$@"; }
mariadb_root() { mariadb --no-defaults --socket=/run/mysqld/mysqld.sock --user=root --batch --skip-column-names "$@"; }

# The unit's command, by its user; there is no service manager here. Arguments: more options.
start() {
  local command
  command="$(sed -n 's/^ExecStart=//p' /lib/systemd/system/cohort.service)"
  install -d -o cohort -g cohort -m 755 /run/cohort
  setpriv --reuid=cohort --regid=cohort --init-groups --no-new-privs $command "$@" &
  server=$!
  for _ in $(seq 300); do
    cohort_root -e 'SELECT 1' >/dev/null 2>&1 && return
    kill -0 $server 2>/dev/null || { wait $server && return 1 || return $?; }
    sleep 0.1
  done
  fail "no answer"
}
stop() { kill $server; wait $server; }
# refused FILE [OPTION...]: the start ends by itself with exit code 1; its words go to the file.
refused() {
  local file="$1"
  shift
  if start "$@" >"$file" 2>&1; then fail "it started"; fi
  cat /var/log/cohort/error.log >>"$file"
}

printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod +x /usr/sbin/policy-rc.d

step "mariadb-server runs, with accounts and data"
install -d -o mysql -g mysql /run/mysqld
mariadbd --user=mysql >/test/mariadbd.log 2>&1 &
for _ in $(seq 600); do mariadb_root -e 'SELECT 1' >/dev/null 2>&1 && break; sleep 0.1; done
mariadb_root <<'SQL'
CREATE DATABASE shop; USE shop;
CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(40), price DECIMAL(9,2));
INSERT INTO orders SELECT seq, CONCAT('order ', seq), seq / 7 FROM seq_1_to_20000;
CREATE ROLE clerk; GRANT SELECT, INSERT ON shop.* TO clerk;
CREATE USER app@'%' IDENTIFIED BY 'x'; GRANT clerk TO app@'%'; SET DEFAULT ROLE clerk FOR app@'%';
CREATE USER `o'neil`@'10.0.0.%' IDENTIFIED BY 'it''s';
GRANT SELECT (id, note), UPDATE (price) ON shop.orders TO `o'neil`@'10.0.0.%';
INSTALL SONAME 'auth_ed25519';
CREATE USER signer@localhost IDENTIFIED VIA ed25519 USING PASSWORD('secret') OR unix_socket;
CREATE USER locked@localhost ACCOUNT LOCK PASSWORD EXPIRE;
SQL
mariadb_files="$(find /etc/mysql /usr/sbin/mariadbd /lib/systemd/system/mariadb* -type f -exec md5sum {} + | sort)"
ok

step "the package installs"
dpkg -i "$DEB" >install.log 2>&1 || { cat install.log; fail "dpkg -i"; }
same "$(stat -c '%U %a' /var/lib/cohort)" "cohort 700"
same "$(stat -c '%U %a' /var/log/cohort)" "cohort 2750"
present /var/lib/cohort/cohort.version
same "$(find /var/lib/cohort ! -user cohort | wc -l)" 0
present /etc/systemd/system/multi-user.target.wants/cohort.service
ok

step "it serves"
start
ok

step "root logs in by the system user, others do not"
same "$(cohort_root -e 'SELECT CURRENT_USER()')" root@localhost
if setpriv --reuid=nobody --regid=nogroup --clear-groups mariadb --defaults-file=$CONFIGURATION --user=root -e 'SELECT 1' >other.log 2>&1; then fail "nobody is root"; fi
has other.log 'ERROR 1698'
same "$(cohort_root -e 'SELECT @@port, @@bind_address, @@datadir')" $'3307\t127.0.0.1\t/var/lib/cohort/'
cohort_root -e 'SHOW DATABASES' >databases.log
if grep -qx test databases.log; then fail "there is a database for everybody"; fi
ok

step "a dump of the MariaDB loads, and its accounts"
mariadb-dump --no-defaults --socket=/run/mysqld/mysqld.sock --single-transaction --databases shop >shop.sql
mariadb-dump --no-defaults --socket=/run/mysqld/mysqld.sock --system=users --insert-ignore >accounts.sql
cohort_root <shop.sql
cohort_root --force <accounts.sql 2>accounts.log || true
same "$(cohort_root -e 'CHECKSUM TABLE shop.orders')" "$(mariadb_root -e 'CHECKSUM TABLE shop.orders')"
for account in "app@'%'" "\`o'neil\`@'10.0.0.%'" "signer@localhost" clerk; do
  same "$(cohort_root -e "SHOW GRANTS FOR $account")" "$(mariadb_root -e "SHOW GRANTS FOR $account")"
done
same "$(mariadb --no-defaults --host=127.0.0.1 --port=3307 --user=app --password=x -BNe 'SELECT COUNT(*) FROM shop.orders')" 20000
ok

step "logs are rotated"
cohort_root -e 'SELECT 1' >/dev/null
logrotate --force /etc/logrotate.d/cohort-server
for _ in $(seq 50); do [ ! -s /var/log/cohort/error.log ] || break; mariadb --no-defaults --host=127.0.0.1 --port=3307 --user=none 2>/dev/null || true; sleep 0.1; done
[ -s /var/log/cohort/error.log ]
present /var/log/cohort/error.log.1
ok

step "the manual pages and completions are read"
man --warnings cohortd >/dev/null 2>man.log; man --warnings cohort-bench >/dev/null 2>>man.log
man --warnings cohort-backup >/dev/null 2>>man.log
same "$(cat man.log)" ""
man cohortd | grep -q -- '--innodb-buffer-pool-size=N'
man cohort-backup | grep -q -- '--rate-limit'
bash -c '. /usr/share/bash-completion/completions/cohortd; COMP_WORDS=(cohortd --innodb-buffer-pool-dump-n); COMP_CWORD=1
  _cohortd 2>/dev/null; test "${COMPREPLY[*]}" = --innodb-buffer-pool-dump-now'
ok

step "an upgrade over itself keeps data and a changed option file"
stop
sed -i 's/^port .*/port = 3399/' $CONFIGURATION
dpkg-deb -R "$DEB" next
sed -i 's/^Version: .*/&.1/' next/DEBIAN/control
echo '# new' >>next/etc/cohort/cohort.cnf
dpkg-deb --root-owner-group -Zgzip -z1 -b next next.deb >/dev/null
dpkg --force-confdef -i next.deb >upgrade.log 2>&1 || { cat upgrade.log; fail "dpkg -i"; }
has $CONFIGURATION 'port = 3399'
has $CONFIGURATION.dpkg-dist '# new'
start
same "$(cohort_root -e 'SELECT @@port, COUNT(*) FROM shop.orders')" $'3399\t20000'
stop
ok

step "bad starts say what is wrong"
cp $CONFIGURATION good.cnf
echo 'max_conections = 10' >>$CONFIGURATION
if dpkg-reconfigure cohort-server >bad.log 2>&1; then fail "a mistake in the option file passed"; fi
has bad.log "unknown variable 'max_conections=10'; did you mean --max-connections? in $CONFIGURATION at line"
cp good.cnf $CONFIGURATION
: >/var/log/cohort/error.log
refused bad.log --port=3306
has bad.log 'port 3306'
has bad.log '--port'
echo 'cohort 9' >/var/lib/cohort/cohort.version
refused bad.log
has bad.log "'cohort 9'"
echo 'cohort 1' >/var/lib/cohort/cohort.version
sed -i 's|^datadir .*|datadir = /var/lib/mysql|' $CONFIGURATION
if dpkg-reconfigure cohort-server >bad.log 2>&1; then fail "MariaDB's directory was taken"; fi
has bad.log 'one of MariaDB'
has bad.log 'dpkg --configure cohort-server'
chown cohort /full
sed -i 's|^datadir .*|datadir = /full/data|' $CONFIGURATION
if dpkg-reconfigure cohort-server >bad.log 2>&1; then fail "a full disk was not noticed"; fi
has bad.log 'space'
cp good.cnf $CONFIGURATION
dpkg --configure -a >bad.log 2>&1
start
same "$(cohort_root -e 'SELECT COUNT(*) FROM shop.orders')" 20000
ok

step "removal keeps data and options, and a new installation has them"
stop
dpkg --remove cohort-server >remove.log 2>&1
absent /usr/sbin/cohortd /lib/systemd/system/cohort.service
present $CONFIGURATION /var/lib/cohort/cohort.version
dpkg --force-confdef -i next.deb >install.log 2>&1
start
same "$(cohort_root -e 'SELECT COUNT(*) FROM shop.orders')" 20000
stop
ok

step "a purge asks, and keeps data unless told otherwise"
dpkg --purge cohort-server >purge.log 2>&1
present /var/lib/cohort/cohort.version
absent /etc/cohort/cohort.cnf /var/log/cohort
getent passwd cohort >/dev/null
dpkg -i "$DEB" >install.log 2>&1
start
same "$(cohort_root -e 'SELECT COUNT(*) FROM shop.orders')" 20000
stop
echo 'cohort-server cohort-server/postrm_remove_databases boolean true' | debconf-set-selections
dpkg --purge cohort-server >purge.log 2>&1
absent /var/lib/cohort /etc/cohort
if getent passwd cohort >/dev/null; then fail "the user is left"; fi
ok

step "mariadb-server was not touched"
same "$(find /etc/mysql /usr/sbin/mariadbd /lib/systemd/system/mariadb* -type f -exec md5sum {} + | sort)" "$mariadb_files"
same "$(mariadb_root -e 'SELECT COUNT(*) FROM shop.orders')" 20000
present /run/mysqld/mysqld.pid
mariadb-admin --no-defaults --socket=/run/mysqld/mysqld.sock shutdown
ok

echo "$passed passed, 0 failed"
