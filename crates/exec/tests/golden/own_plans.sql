-- Plans over tables of known sizes: which index, which join order, what is kept or sorted. EXPLAIN shows the
-- tables in the order in which they are read. A change of a plan is a change here, to be looked at.
CREATE TABLE region (id INT PRIMARY KEY, name VARCHAR(10) NOT NULL);
CREATE TABLE customer (id INT PRIMARY KEY, region INT NOT NULL, name VARCHAR(20) NOT NULL, balance DECIMAL(10,2) NOT NULL, KEY by_region (region), UNIQUE KEY by_name (name));
CREATE TABLE orders (id INT PRIMARY KEY, customer INT NOT NULL, day DATE NOT NULL, state CHAR(1) NOT NULL, KEY by_customer (customer, day), KEY by_day (day));
CREATE TABLE item (orders INT NOT NULL, line INT NOT NULL, part INT NOT NULL, price DECIMAL(10,2) NOT NULL, PRIMARY KEY (orders, line), KEY by_part (part));
CREATE TABLE loose (a INT, b INT);
INSERT INTO region SELECT seq, CONCAT('r', seq) FROM seq_1_to_5;
INSERT INTO customer SELECT seq, seq % 5 + 1, CONCAT('c', seq), seq FROM seq_1_to_200;
INSERT INTO orders SELECT seq, seq % 200 + 1, DATE'2026-01-01' + INTERVAL seq % 365 DAY, 'x' FROM seq_1_to_2000;
INSERT INTO item SELECT seq DIV 4 + 1, seq % 4, seq % 50, seq FROM seq_0_to_7999;
INSERT INTO loose SELECT seq, seq % 10 FROM seq_1_to_300;
-- One table: by a whole unique key, by a range, by the order wanted, by an index alone.
EXPLAIN SELECT * FROM customer WHERE id = 7;
EXPLAIN SELECT * FROM customer WHERE name = 'c7';
EXPLAIN SELECT * FROM customer WHERE id BETWEEN 7 AND 9;
EXPLAIN SELECT * FROM customer WHERE id IN (3, 1, 2);
EXPLAIN SELECT * FROM orders WHERE customer = 7 AND day > '2026-03-01';
EXPLAIN SELECT * FROM orders WHERE customer = 7 ORDER BY day DESC LIMIT 3;
EXPLAIN SELECT * FROM orders ORDER BY day LIMIT 3;
EXPLAIN SELECT customer, day FROM orders WHERE day = '2026-03-01';
EXPLAIN SELECT * FROM orders WHERE state = 'x';
EXPLAIN SELECT * FROM orders IGNORE INDEX (by_customer) WHERE customer = 7;
EXPLAIN SELECT * FROM orders FORCE INDEX (by_day) WHERE customer = 7 AND day > '2026-03-01';
EXPLAIN SELECT customer, COUNT(*) FROM orders GROUP BY customer;
EXPLAIN SELECT DISTINCT state FROM orders;
EXPLAIN UPDATE orders SET state = 'y' WHERE customer = 7;
EXPLAIN DELETE FROM orders WHERE day < '2026-01-05';
-- The start of a text, NULL, labels, moments.
CREATE TABLE post (id INT PRIMARY KEY, name VARCHAR(50) NOT NULL, parent INT, state ENUM('draft','live') NOT NULL, made TIMESTAMP NOT NULL, edited DATETIME, KEY by_name (name), KEY by_parent (parent), KEY by_state (state, id), KEY by_made (made), KEY by_edited (edited));
INSERT INTO post SELECT seq, CONCAT('post', seq), IF(seq % 100, seq DIV 10, NULL), IF(seq % 50, 'live', 'draft'), '2026-01-01' + INTERVAL seq HOUR, '2026-01-01' + INTERVAL seq HOUR FROM seq_1_to_2000;
EXPLAIN SELECT * FROM post WHERE name LIKE 'post12%';
EXPLAIN SELECT * FROM post WHERE name LIKE '%12';
EXPLAIN SELECT * FROM post WHERE parent IS NULL;
EXPLAIN SELECT * FROM post WHERE parent <=> 7;
EXPLAIN SELECT * FROM post WHERE state = 'draft';
EXPLAIN SELECT * FROM post WHERE made > '2026-03-20';
EXPLAIN SELECT * FROM post WHERE made = '2026-03-20';
EXPLAIN SELECT * FROM post WHERE edited > '2026-03-20 00:00:00.123456';
EXPLAIN UPDATE post SET name = 'x' WHERE parent IS NULL;
-- Joins: by index from the few to the many, by a hash table where there is no index, a chain over all.
EXPLAIN SELECT * FROM orders o JOIN customer c ON o.customer = c.id WHERE c.name = 'c7';
EXPLAIN SELECT * FROM orders o JOIN customer c ON o.customer = c.id;
EXPLAIN SELECT * FROM orders o JOIN loose l ON l.a = o.id;
EXPLAIN SELECT * FROM customer c LEFT JOIN orders o ON o.customer = c.id;
EXPLAIN SELECT * FROM customer c LEFT JOIN orders o ON o.customer = c.id WHERE o.day > '2026-03-01';
EXPLAIN SELECT * FROM loose a, loose b WHERE a.a < b.a;
EXPLAIN SELECT STRAIGHT_JOIN * FROM orders o JOIN customer c ON o.customer = c.id WHERE c.name = 'c7';
EXPLAIN SELECT r.name, SUM(i.price) FROM region r, customer c, orders o, item i WHERE c.region = r.id AND o.customer = c.id AND i.orders = o.id AND r.name = 'r3' AND o.day BETWEEN '2026-02-01' AND '2026-02-10' GROUP BY r.name ORDER BY 2 DESC;
EXPLAIN SELECT * FROM item i JOIN orders o ON i.orders = o.id WHERE i.part = 7;
EXPLAIN SELECT * FROM orders o JOIN item i ON i.orders = o.id AND i.line = 1 WHERE o.id = 5;
-- Subqueries, derived tables, common tables, sets.
EXPLAIN SELECT * FROM customer WHERE id = (SELECT MAX(customer) FROM orders);
EXPLAIN SELECT * FROM customer c WHERE EXISTS (SELECT * FROM orders o WHERE o.customer = c.id);
EXPLAIN SELECT * FROM customer c WHERE NOT EXISTS (SELECT * FROM orders o WHERE o.customer = c.id);
EXPLAIN SELECT * FROM customer c WHERE EXISTS (SELECT DISTINCT o.state FROM orders o WHERE o.customer = c.id ORDER BY o.day LIMIT 1);
EXPLAIN SELECT * FROM customer WHERE id IN (SELECT customer FROM orders WHERE day = '2026-03-01');
EXPLAIN SELECT * FROM customer WHERE id NOT IN (SELECT customer FROM orders WHERE day = '2026-03-01');
EXPLAIN SELECT * FROM loose WHERE a IN (SELECT b FROM loose);
EXPLAIN SELECT * FROM customer WHERE id IN (SELECT customer FROM orders GROUP BY customer HAVING COUNT(*) > 9);
EXPLAIN SELECT * FROM loose l WHERE NOT EXISTS (SELECT * FROM loose m WHERE m.a = l.b AND m.b <> l.a);
EXPLAIN SELECT * FROM (SELECT * FROM customer WHERE region = 3) d JOIN orders o ON o.customer = d.id;
EXPLAIN SELECT * FROM (SELECT customer, COUNT(*) n FROM orders GROUP BY customer) d WHERE d.customer = 7;
EXPLAIN WITH t AS (SELECT customer, COUNT(*) n FROM orders GROUP BY customer) SELECT * FROM t a JOIN t b ON a.n = b.n;
EXPLAIN SELECT id FROM customer WHERE id = 1 UNION SELECT id FROM region ORDER BY 1;
EXPLAIN SELECT COUNT(*) FROM customer WHERE 1 = 0;
EXPLAIN SELECT 1;
EXPLAIN SELECT * FROM item ORDER BY orders, line LIMIT 10;
EXPLAIN SELECT orders, line FROM item FORCE INDEX (PRIMARY) ORDER BY orders, line;
EXPLAIN SELECT * FROM item FORCE INDEX (PRIMARY) WHERE (orders > 3) OR (orders = 3 AND line >= 4) ORDER BY orders, line LIMIT 10;
EXPLAIN SELECT * FROM item WHERE (orders > 3 AND orders < 6) OR (orders = 9 AND line = 4) OR (orders IN (1, 2) AND part > 3);
EXPLAIN SELECT * FROM item WHERE (orders > 3 AND part < 6) OR (line = 9 AND part = 4);
SELECT orders, line FROM item FORCE INDEX (PRIMARY) WHERE (orders > 3) OR (orders = 3 AND line >= 2) ORDER BY orders, line LIMIT 5;
SELECT orders, line FROM item WHERE (orders = 5 AND line > 1) OR (orders > 2 AND orders < 4) OR orders = 5 ORDER BY orders DESC, line DESC LIMIT 8;
-- What is equal to one column is equal to another: the customer's region is that of the row that joins it.
EXPLAIN SELECT COUNT(*) FROM region r, customer c, orders o, customer d WHERE c.id = o.customer AND d.region = c.region AND d.region = r.id AND r.name = 'r3' AND o.day = '2026-03-01';
SELECT COUNT(*) FROM region r, customer c, orders o, customer d WHERE c.id = o.customer AND d.region = c.region AND d.region = r.id AND r.name = 'r3' AND o.day = '2026-03-01';
SELECT COUNT(*) FROM customer c, region r, customer d WHERE c.region = r.id AND d.region = r.id AND c.region = d.region AND c.id = d.id;
SELECT COUNT(*) FROM loose a, loose b, loose c WHERE a.b = b.a AND b.a = c.b AND c.a = a.a;
SELECT COUNT(*) FROM loose a, loose b, loose c WHERE a.a = b.a AND b.a = a.b AND b.a = c.a;
-- A document makes rows of the row before it.
EXPLAIN SELECT * FROM region r, JSON_TABLE(r.name, '$' COLUMNS (a INT PATH '$')) j JOIN customer c ON c.id = j.a;
EXPLAIN SELECT * FROM JSON_TABLE('[1, 2]', '$[*]' COLUMNS (a INT PATH '$')) j JOIN customer c ON c.id = j.a;
-- Long runs of a key: an index of few values of its first part is not thought to find few rows.
CREATE TABLE stock (store INT NOT NULL, part INT NOT NULL, quantity INT NOT NULL, PRIMARY KEY (store, part));
INSERT INTO stock SELECT seq DIV 10000, seq % 10000, seq % 90 FROM seq_0_to_19999;
CREATE TABLE line (store INT NOT NULL, bill INT NOT NULL, n INT NOT NULL, part INT NOT NULL, PRIMARY KEY (store, bill, n));
INSERT INTO line SELECT seq DIV 10000, seq DIV 10 % 1000, seq % 10, seq * 7 % 10000 FROM seq_0_to_19999;
EXPLAIN SELECT COUNT(DISTINCT s.part) FROM line l, stock s WHERE l.store = 1 AND l.bill >= 500 AND l.bill < 520 AND s.store = 1 AND s.part = l.part AND s.quantity < 15;
-- A limit: rows in order are read until enough of them pass, which is long where another index knows of few.
CREATE TABLE bill (store INT NOT NULL, id INT NOT NULL, customer INT NOT NULL, sum INT, PRIMARY KEY (store, id), KEY by_customer (store, customer, id));
INSERT INTO bill SELECT seq DIV 2500, seq % 2500, seq % 500, seq FROM seq_0_to_4999;
EXPLAIN SELECT * FROM bill WHERE store = 1 AND customer = 77 ORDER BY id DESC LIMIT 1;
EXPLAIN SELECT * FROM bill WHERE store = 1 AND sum = 77 ORDER BY id DESC LIMIT 1;
EXPLAIN SELECT * FROM bill WHERE store = 1 ORDER BY id LIMIT 1;
