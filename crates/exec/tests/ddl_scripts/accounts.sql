# Accounts and what they may do.

> CREATE USER u1@localhost IDENTIFIED BY 'x', u2
OK
> CREATE USER u1@localhost
ERROR 1396 (HY000): Operation CREATE USER failed for 'u1'@'localhost'
> CREATE USER IF NOT EXISTS u1@localhost
OK
- Note | 1973 | Can't create user 'u1'@'localhost'; it already exists
> CREATE DATABASE app
OK 1
> CREATE TABLE app.t (a INT)
OK
> INSERT INTO app.t VALUES (1)
OK 1
> GRANT SELECT, INSERT ON app.* TO u1@localhost
OK
> GRANT RELOAD ON *.* TO u2
OK
> GRANT RELOAD ON app.* TO u2
ERROR 1221 (HY000): Incorrect usage of DB GRANT and GLOBAL PRIVILEGES
> GRANT SELECT ON *.* TO nobody
ERROR 1133 (28000): Can't find any matching row in the user table
> SHOW GRANTS FOR u1@localhost
Grants for u1@localhost
GRANT USAGE ON *.* TO `u1`@`localhost` IDENTIFIED BY PASSWORD '*B69027D44F6E5EDC07F1AEAD1477967B16F28227'
GRANT SELECT, INSERT ON `app`.* TO `u1`@`localhost`
> SHOW GRANTS FOR u2
Grants for u2@%
GRANT RELOAD ON *.* TO `u2`@`%`
> SHOW GRANTS
Grants for root@localhost
GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION
GRANT PROXY ON ``@`%` TO `root`@`localhost` WITH GRANT OPTION
> SHOW GRANTS FOR nobody
ERROR 1141 (42000): There is no such grant defined for user 'nobody' on host '%'
> REVOKE INSERT ON app.* FROM u1@localhost
OK
> SHOW GRANTS FOR u1@localhost
Grants for u1@localhost
GRANT USAGE ON *.* TO `u1`@`localhost` IDENTIFIED BY PASSWORD '*B69027D44F6E5EDC07F1AEAD1477967B16F28227'
GRANT SELECT ON `app`.* TO `u1`@`localhost`
> REVOKE UPDATE ON nothing.* FROM u1@localhost
ERROR 1141 (42000): There is no such grant defined for user 'u1' on host 'localhost'
> GRANT ALL ON app.* TO u2 WITH GRANT OPTION
OK
> REVOKE DROP ON app.* FROM u2
OK
> SHOW GRANTS FOR u2
Grants for u2@%
GRANT RELOAD ON *.* TO `u2`@`%`
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER, DELETE HISTORY ON `app`.* TO `u2`@`%` WITH GRANT OPTION
> RENAME USER u2 TO u3@localhost
OK
> SET PASSWORD FOR u3@localhost = PASSWORD('secret')
OK
> SHOW GRANTS FOR u3@localhost
Grants for u3@localhost
GRANT RELOAD ON *.* TO `u3`@`localhost` IDENTIFIED BY PASSWORD '*14E65567ABDB5135D0CFD9A70B3032C179A49EE7'
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER, DELETE HISTORY ON `app`.* TO `u3`@`localhost` WITH GRANT OPTION
> DROP USER u2
ERROR 1396 (HY000): Operation DROP USER failed for 'u2'@'%'
> DROP USER IF EXISTS u2, u3@localhost
OK
- Note | 1974 | Can't drop user 'u2'@'%'; it doesn't exist
