-- Statements for a new data directory of the package: as with Debian's mariadb-server, root logs in by the
-- system user of that name, and there is no database for everybody.
ALTER USER root@localhost IDENTIFIED VIA unix_socket;
DROP DATABASE IF EXISTS test;
