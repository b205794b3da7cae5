//! A random generator of SQL statements: most of them pass the parser, and many bind.

use cohort_vfs::{Rng, SeededRng};

/// Statements that create and fill the tables.
pub const TABLES: &[&str] = &[
    "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b BIGINT UNSIGNED NOT NULL DEFAULT 3, c DECIMAL(10,3), d DOUBLE, \
     e VARCHAR(20) COLLATE utf8mb4_bin, f DATETIME(3), g ENUM('x','y','ä'), h SET('p','q','r'), KEY (a), UNIQUE KEY be (b, e))",
    "CREATE TABLE u (id BIGINT, a VARCHAR(30), b DATE, c TIME(2), d TIMESTAMP NULL, e BIT(9), f JSON, g BLOB, h YEAR, \
     PRIMARY KEY (id, a), KEY (b))",
    "CREATE TABLE v (id MEDIUMINT, a TINYINT UNSIGNED, b TEXT CHARACTER SET latin1, c FLOAT, d CHAR(5), e VARBINARY(9), f DECIMAL(65,30), \
     g LONGTEXT, h SMALLINT)",
    "INSERT INTO t (a, b, c, d, e, f, g, h) VALUES (1, 2, 3.5, 4.25, 'five', '2024-02-29 12:34:56.789', 'x', 'p,q'), \
     (NULL, 7, NULL, NULL, NULL, NULL, NULL, NULL), (-1, 8, -99999.999, 1e300, 'Ä', '1000-01-01', 'ä', '')",
    "INSERT INTO u VALUES (1, 'one', '2024-01-31', '-838:59:59', '2024-03-31 02:30:00', b'101010101', '{\"a\":[1,2]}', 0xff00, 1999), \
     (2, '', '0001-01-01', '00:00:00.01', NULL, 0, '[]', '', 2155)",
    "INSERT INTO v VALUES (-8388608, 0, 'x', 1.5, 'ab', 'cd', 1e34, '', 1), (8388607, 255, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
];

/// A generator with a seed.
pub struct Grammar {
    rng: SeededRng,
    /// Name, minimum and maximum number of arguments.
    functions: Vec<(&'static str, usize, usize)>,
}

const COLUMNS: &[&str] = &["id", "a", "b", "c", "d", "e", "f", "g", "h"];
const NAMES: &[&str] = &["t", "u", "v"];
const LITERALS: &str = "0  1  -1  2  10  127  255  -128  65536  2147483648  9223372036854775807  -9223372036854775808  18446744073709551615  \
     18446744073709551616  99999999999999999999999999999999999999999999999999999999999999999  0.0  1.5  \
     -0.000000000000000000000000000001  1e0  1e308  -1e-308  NULL  TRUE  FALSE  ''  'a'  'Ä'  ' 12abc'  '1e5'  '2024-02-30'  \
     '2024-02-29 23:59:59.999999'  '12:34'  '-1 2:3:4'  'x,y'  '%a_'  '\\\\'  '{\"a\": [1, {\"b\": null}]}'  '$.a[last]'  0xff  \
     x''  b'0101'  _binary'\u{1}'  _latin1'\u{e9}'  DATE'2024-01-31'  TIME'10:11:12.5'  TIMESTAMP'9999-12-31 23:59:59'  \
     CURRENT_TIMESTAMP  ?  @v  @@sql_mode";
const OPERATORS: &str = "+  -  *  /  DIV  %  MOD  =  <=>  <>  <  <=  >  >=  AND  OR  XOR  &  |  ^  <<  >>  LIKE  NOT LIKE  REGEXP  NOT REGEXP  ||  \
     &&";
const TYPES: &str = "SIGNED  UNSIGNED  CHAR  CHAR(3)  BINARY(2)  DATE  TIME(3)  DATETIME(6)  DECIMAL(65,30)  DECIMAL(5)  DOUBLE  FLOAT  \
     CHAR CHARACTER SET latin1";
const COLUMN_TYPES: &str = "INT  TINYINT UNSIGNED ZEROFILL  BIGINT(20)  DECIMAL(65,30)  DECIMAL(66,2)  FLOAT(7,3)  DOUBLE  BIT(64)  BIT(65)  CHAR(255)  \
     VARCHAR(16383)  VARCHAR(70000)  TEXT  TINYTEXT CHARACTER SET latin1  BLOB(9)  VARBINARY(3)  DATE  TIME(6)  DATETIME(7)  \
     TIMESTAMP(3)  YEAR  ENUM('a','b')  ENUM('a','a')  SET('a','b,c')  JSON  GEOMETRY  SERIAL  BOOLEAN";
const ATTRIBUTES: &str = "      NOT NULL  NULL  DEFAULT 1  DEFAULT 'x'  DEFAULT NULL  DEFAULT (1 + 1)  AUTO_INCREMENT  PRIMARY KEY  UNIQUE  \
     COMMENT 'c'  ON UPDATE CURRENT_TIMESTAMP  DEFAULT CURRENT_TIMESTAMP  COLLATE utf8mb4_bin  COLLATE nosuch  INVISIBLE  \
     GENERATED ALWAYS AS (a + 1)  CHECK (a > 0)  REFERENCES t (id)";
const UNITS: &str =
    "MICROSECOND  SECOND  DAY  WEEK  MONTH  QUARTER  YEAR  DAY_HOUR  YEAR_MONTH  SECOND_MICROSECOND";
const AGGREGATES: &str = "COUNT  SUM  AVG  MIN  MAX  BIT_OR  BIT_AND  BIT_XOR  STD  VAR_SAMP  GROUP_CONCAT  JSON_ARRAYAGG  ANY_VALUE";
/// Functions that wait.
const NOT_CALLED: &[&str] =
    &["sleep", "benchmark", "get_lock", "master_gtid_wait", "master_pos_wait", "wait_for_executed_gtid_set"];

impl Grammar {
    pub fn new(seed: u64) -> Grammar {
        let callable = cohort_expr::functions().filter(|(name, ..)| !NOT_CALLED.contains(name));
        let mut functions: Vec<_> = callable.collect();
        functions.sort_unstable();
        Grammar { rng: SeededRng::new(seed), functions }
    }

    pub fn below(&self, n: usize) -> usize {
        self.rng.below(n as u64) as usize
    }

    pub fn pick<T: Copy>(&self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Returns one of the words of a text, which are separated by two spaces.
    fn word(&self, words: &'static str) -> &'static str {
        self.pick(&words.split("  ").collect::<Vec<_>>())
    }

    fn chance(&self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns the text with a probability of `percent`, otherwise an empty text.
    fn maybe(&self, percent: usize, text: impl FnOnce() -> String) -> String {
        if self.chance(percent) { text() } else { String::new() }
    }

    fn list(&self, ends: std::ops::RangeInclusive<usize>, item: impl Fn() -> String) -> String {
        let count = ends.start() + self.below(ends.end() - ends.start() + 1);
        (0..count).map(|_| item()).collect::<Vec<_>>().join(", ")
    }

    fn column(&self) -> String {
        let column = self.pick(COLUMNS);
        match self.below(100) {
            0..3 => format!("{}.{column}", self.pick(NAMES)),
            3..6 => format!("x.{column}"),
            6 => "nosuch".to_owned(),
            _ => column.to_owned(),
        }
    }

    /// Returns an expression with at most `depth` levels.
    pub fn expression(&self, depth: usize) -> String {
        let Some(depth) = depth.checked_sub(1) else {
            return if self.chance(50) { self.column() } else { self.word(LITERALS).to_owned() };
        };
        let e = || self.expression(depth);
        match self.below(22) {
            0..=2 => self.column(),
            3 => self.word(LITERALS).to_owned(),
            4..=6 => format!("({} {} {})", e(), self.word(OPERATORS), e()),
            7..=10 => self.call(depth),
            11 => format!("({} {})", self.pick(&["-", "~", "!", "NOT", "BINARY", "+"]), e()),
            12 => {
                format!(
                    "({} IS {}{})",
                    e(),
                    self.pick(&["", "NOT "]),
                    self.pick(&["NULL", "TRUE", "UNKNOWN"])
                )
            }
            13 => format!("({} {}IN ({}))", e(), self.pick(&["", "NOT "]), self.list(1..=3, e)),
            14 => format!("({} {}BETWEEN {} AND {})", e(), self.pick(&["", "NOT "]), e(), e()),
            15 => format!("CASE {} WHEN {} THEN {} ELSE {} END", self.maybe(50, e), e(), e(), e()),
            16 => format!("CAST({} AS {})", e(), self.word(TYPES)),
            17 => self.special(depth),
            18 if self.chance(30) => self.aggregate(depth),
            18 => self.column(),
            19 => format!("({})", self.select(depth.min(1))),
            20 => self.subquery(depth),
            _ => format!("(({}, {}) = ({}, {}))", e(), e(), e(), e()),
        }
    }

    /// Returns a call, nearly always with a valid number of arguments.
    fn call(&self, depth: usize) -> String {
        let (name, fewest, most) = self.pick(&self.functions);
        let most = most.min(fewest + 2) + usize::from(self.chance(2));
        format!("{name}({})", self.list(fewest..=most, || self.expression(depth)))
    }

    /// Returns a call with its own grammar.
    fn special(&self, depth: usize) -> String {
        let e = || self.expression(depth);
        match self.below(9) {
            0 => format!("DATE_ADD({}, INTERVAL {} {})", e(), e(), self.word(UNITS)),
            1 => format!("({} - INTERVAL {} {})", e(), e(), self.word(UNITS)),
            2 => format!("EXTRACT({} FROM {})", self.word(UNITS), e()),
            3 => format!("TRIM({} {} FROM {})", self.pick(&["BOTH", "LEADING", "TRAILING"]), e(), e()),
            4 => format!("SUBSTRING({} FROM {} FOR {})", e(), e(), e()),
            5 => format!("POSITION({} IN {})", e(), e()),
            6 => format!("CONVERT({} USING {})", e(), self.pick(&["latin1", "utf8mb4", "binary", "nosuch"])),
            7 => format!(
                "({} COLLATE {})",
                e(),
                self.pick(&["utf8mb4_bin", "utf8mb4_general_ci", "latin1_swedish_ci"])
            ),
            _ => format!("TIMESTAMPDIFF({}, {}, {})", self.word(UNITS), e(), e()),
        }
    }

    fn aggregate(&self, depth: usize) -> String {
        let name = self.word(AGGREGATES);
        let distinct = self.maybe(30, || "DISTINCT ".to_owned());
        let over = self.maybe(15, || {
            format!(" OVER (PARTITION BY {} ORDER BY {})", self.expression(depth), self.expression(depth))
        });
        match name {
            "COUNT" if self.chance(30) => format!("COUNT(*){over}"),
            "GROUP_CONCAT" => {
                let e = self.expression(depth);
                let order = self.maybe(40, || format!(" ORDER BY {}", self.expression(depth)));
                format!("GROUP_CONCAT({distinct}{e}{order} SEPARATOR '-')")
            }
            name => format!("{name}({distinct}{}){over}", self.expression(depth)),
        }
    }

    fn subquery(&self, depth: usize) -> String {
        let (e, select) = (self.expression(depth), self.select(depth.min(1)));
        match self.below(4) {
            0 => format!("(EXISTS ({select}))"),
            1 => format!("({e} NOT IN ({select}))"),
            2 => format!("({e} > ANY ({select}))"),
            _ => format!("(({e}, 1) NOT IN ({select}))"),
        }
    }

    fn table_reference(&self, depth: usize) -> String {
        let name = self.pick(NAMES).to_owned();
        match self.below(12) {
            0..=5 => name,
            6 => format!("{name} AS x"),
            7 => format!("{name}, {} x", self.pick(NAMES)),
            8 | 9 => {
                let kind = self.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "STRAIGHT_JOIN", "NATURAL JOIN"]);
                let on = match self.below(3) {
                    _ if kind == "NATURAL JOIN" => String::new(),
                    0 if kind != "STRAIGHT_JOIN" => "USING (a)".to_owned(),
                    _ => format!("ON {}", self.expression(1)),
                };
                format!("{name} {kind} {} x {on}", self.pick(NAMES))
            }
            10 => format!("({}) x", self.select(depth.min(1))),
            _ => "information_schema.columns x".to_owned(),
        }
    }

    /// Returns a SELECT.
    pub fn select(&self, depth: usize) -> String {
        let e = || self.expression(depth);
        let with =
            self.maybe(4, || format!("WITH w AS (SELECT {} FROM {}) ", self.column(), self.pick(NAMES)));
        let options = self.pick(&["", "", "", "DISTINCT ", "SQL_CALC_FOUND_ROWS ", "ALL "]);
        let items = if self.chance(20) {
            "*".to_owned()
        } else {
            self.list(1..=3, || e() + &self.maybe(20, || " AS k".to_owned()))
        };
        let from = format!(" FROM {}", self.table_reference(depth));
        let filter = self.maybe(60, || format!(" WHERE {}", e()));
        let group = self.maybe(25, || {
            let rollup = self.maybe(15, || " WITH ROLLUP".to_owned());
            format!(" GROUP BY {}{rollup}", self.list(1..=2, e))
        });
        let having = self.maybe(15, || format!(" HAVING {}", e()));
        let order = self.maybe(35, || format!(" ORDER BY {}", self.order()));
        let limit = self.maybe(25, || {
            format!(" LIMIT {}", self.pick(&["0", "1", "2, 3", "18446744073709551615", "?", "-1"]))
        });
        let lock = self.maybe(8, || {
            self.pick(&[" FOR UPDATE", " LOCK IN SHARE MODE", " FOR UPDATE SKIP LOCKED"]).to_owned()
        });
        let first = format!("{with}SELECT {options}{items}{from}{filter}{group}{having}");
        let union = self.maybe(6, || {
            let kind = self.pick(&["UNION", "UNION ALL", "INTERSECT", "EXCEPT"]);
            format!(" {kind} SELECT {} FROM {}", e(), self.pick(NAMES))
        });
        format!("{first}{union}{order}{limit}{lock}")
    }

    fn order(&self) -> String {
        self.list(1..=2, || match self.below(4) {
            0 => self.pick(&["1", "2", "9", "k"]).to_owned(),
            _ => self.expression(1) + self.pick(&["", " DESC", " ASC"]),
        })
    }

    /// Returns any statement.
    pub fn statement(&self) -> String {
        let e = || self.expression(2);
        let table = self.pick(NAMES);
        let filter = || self.maybe(70, || format!(" WHERE {}", e()));
        let assignments = || self.list(1..=3, || format!("{} = {}", self.column(), e()));
        match self.below(24) {
            0..=9 => self.select(3),
            10..=12 => {
                let verb = self.pick(&["INSERT INTO", "INSERT IGNORE INTO", "REPLACE INTO", "INSERT"]);
                let count = 1 + self.below(4);
                let from = self.below(COLUMNS.len() - count);
                let columns = COLUMNS[from..from + count].join(", ");
                let source = match self.below(5) {
                    0 => format!("({columns}) {}", self.select(1)),
                    1 => format!("SET {}", assignments()),
                    _ => {
                        let row = || format!("({})", self.list(count..=count, e));
                        format!("({columns}) VALUES {}", self.list(1..=3, row))
                    }
                };
                let update = self.maybe(25, || format!(" ON DUPLICATE KEY UPDATE {}", assignments()));
                let returning = self.maybe(10, || format!(" RETURNING {}", e()));
                format!("{verb} {table} {source}{update}{returning}")
            }
            13..=15 => {
                let order = self.maybe(30, || format!(" ORDER BY {}", self.order()));
                let limit = self.maybe(30, || " LIMIT 2".to_owned());
                format!("UPDATE {} SET {}{}{order}{limit}", self.table_reference(1), assignments(), filter())
            }
            16 => {
                let order = self.maybe(30, || format!(" ORDER BY {}", self.order()));
                format!("DELETE FROM {table}{}{order}{}", filter(), self.maybe(60, || " LIMIT 1".to_owned()))
            }
            17 => format!("EXPLAIN {}", self.select(2)),
            18 => format!(
                "SET {} = {}",
                self.pick(&["@v", "sql_mode", "sort_buffer_size", "@@session.autocommit", "nosuch"]),
                e()
            ),
            19 => format!(
                "CREATE TABLE {} ({})",
                self.pick(&["w", "t", "w2"]),
                self.list(1..=4, || self.definition())
            ),
            20 | 21 => self.alteration(table),
            22 => self
                .pick(&[
                    "SHOW CREATE TABLE t",
                    "SHOW COLUMNS FROM u LIKE 'a%'",
                    "SHOW INDEX FROM w WHERE Non_unique = 0",
                    "SHOW TABLE STATUS",
                    "DROP TABLE w",
                    "DROP TABLE IF EXISTS w, w2",
                    "TRUNCATE w",
                    "CHECK TABLE t, w",
                    "BEGIN",
                    "COMMIT",
                    "ROLLBACK",
                    "SAVEPOINT s",
                    "ROLLBACK TO s",
                    "ANALYZE TABLE u",
                    "CHECKSUM TABLE t, v",
                ])
                .to_owned(),
            _ => format!("DO {}", self.list(1..=2, || self.expression(3))),
        }
    }

    fn definition(&self) -> String {
        match self.below(6) {
            0 => format!(
                "{} ({})",
                self.pick(&["PRIMARY KEY", "KEY", "UNIQUE KEY k", "FULLTEXT KEY", "FOREIGN KEY"]),
                self.list(1..=3, || self.pick(&["a", "b(5)", "c DESC", "nosuch", "a(2000)"]).to_owned())
            ),
            _ => format!("{} {} {}", self.pick(COLUMNS), self.word(COLUMN_TYPES), self.word(ATTRIBUTES)),
        }
    }

    fn alteration(&self, table: &str) -> String {
        let column = self.pick(COLUMNS);
        match self.below(8) {
            0 => format!("CREATE {}INDEX i ON {table} ({column})", self.pick(&["", "UNIQUE "])),
            1 => format!("DROP INDEX i ON {table}"),
            2 => format!("ALTER TABLE {table} ADD {}", self.definition()),
            3 => format!("ALTER TABLE {table} DROP {column}"),
            4 => format!(
                "ALTER TABLE {table} MODIFY {column} {} {}",
                self.word(COLUMN_TYPES),
                self.word(ATTRIBUTES)
            ),
            5 => format!("ALTER TABLE {table} CHANGE {column} {}", self.definition()),
            6 => format!("ALTER TABLE {table} ALTER {column} SET DEFAULT {}", self.expression(1)),
            _ => format!("RENAME TABLE {table} TO {}", self.pick(NAMES)),
        }
    }
}
