# CHECKSUM TABLE answers what MariaDB 10.11 answers for the same rows (recorded).

> CREATE TABLE c1 (a INT NOT NULL, b INT)
OK
> INSERT INTO c1 VALUES (1,2), (3,NULL)
OK 2 (Records: 2  Duplicates: 0  Warnings: 0)
> CREATE TABLE c2 (a INT NOT NULL PRIMARY KEY, v VARCHAR(10), c CHAR(5), t TEXT, d DECIMAL(10,2), dt DATETIME(3), ts TIMESTAMP, dd DATE, tt TIME, e ENUM('a','b'), s SET('x','y'), b BIT(10), f FLOAT, g DOUBLE, y YEAR, bi BINARY(4), vb VARBINARY(5))
OK
> SET time_zone = '+00:00'
OK
> INSERT INTO c2 VALUES (1,'abc','de','text',12.34,'2020-01-02 03:04:05.678','2020-01-02 03:04:05','2021-02-03','-10:11:12','b','x,y',b'1010101010',1.5,-2.5,2001,'ab','xyz'), (2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL), (3,'ä€','ä','ü',-0.01,'1999-12-31 23:59:59.999','2038-01-19 03:14:07','1000-01-01','838:59:59','a','',0,0,0,1901,'','')
OK 3 (Records: 3  Duplicates: 0  Warnings: 0)
> CREATE TABLE c3 (id INT AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', KEY (k))
OK
> INSERT INTO c3 (k, c, pad) VALUES (1,'abc','def'), (7,'x','y')
OK 2 id 1 (Records: 2  Duplicates: 0  Warnings: 0)
> CREATE TABLE c4 (a TINYINT, b SMALLINT, c MEDIUMINT, d BIGINT, e INT, f INT, g INT)
OK
> INSERT INTO c4 VALUES (1,2,3,4,5,6,7), (NULL,-2,-3,NULL,5,NULL,7)
OK 2 (Records: 2  Duplicates: 0  Warnings: 0)
> CREATE TABLE c5 (a TINYINT, b SMALLINT, c MEDIUMINT, d BIGINT, e INT, f INT, g INT, h VARCHAR(10))
OK
> INSERT INTO c5 VALUES (1,2,3,4,5,6,7,'x'), (NULL,-2,-3,NULL,5,NULL,7,NULL)
OK 2 (Records: 2  Duplicates: 0  Warnings: 0)
> CHECKSUM TABLE c1, c2, c3, c4, c5
Table | Checksum
test.c1 | 101160949
test.c2 | 2983315768
test.c3 | 403435404
test.c4 | 1551290784
test.c5 | 210655205
# No generated column counts, stored or not.
> CREATE TABLE c6 (a INT, b INT AS (a + 1) STORED, c INT AS (a * 2) VIRTUAL, d INT)
OK
> INSERT INTO c6 (a, d) VALUES (1, 5), (2, NULL), (NULL, 7)
OK 3 (Records: 3  Duplicates: 0  Warnings: 0)
> CHECKSUM TABLE c6
Table | Checksum
test.c6 | 2751843810
