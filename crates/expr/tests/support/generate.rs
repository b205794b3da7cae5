//! Random expressions of literals of every type and the columns of table h.

use super::world;

/// A deterministic generator of expressions.
pub struct Generator {
    state: u64,
    columns: Vec<&'static str>,
    functions: Vec<(&'static str, usize, usize)>,
}

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "10",
    "12",
    "100",
    "255",
    "2020",
    "1000",
    "20200101",
    "20200230",
    "101112",
    "20200101101112",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "0.5",
    "-1.5",
    "2.5",
    "123.456",
    "0.005",
    "-0.001",
    "1e0",
    "2.5e0",
    "-3.5e0",
    "1e10",
    "1e-3",
    "1.005e2",
    "TRUE",
    "FALSE",
    "0x41",
    "b'101'",
    "0x0A",
    "20200101101112.5678",
    "101112.25",
    "99",
    "69",
    "70",
];

const TEXTS: &[&str] = &[
    "''",
    "'a'",
    "'A'",
    "'abc'",
    "'ABC '",
    "'ab c,d'",
    "'é'",
    "'ß'",
    "'12'",
    "'12abc'",
    "'-1.5'",
    "'1e2'",
    "' 7 '",
    "'aXbXc'",
    "'X'",
    "x'41'",
    "x'4142'",
    "'b'",
    "','",
    "' '",
    "'%'",
    "'a%'",
    "'_b%'",
    "'日本'",
    "_latin1'abc'",
    "'hello world'",
    "'2.50'",
    "'x'",
    "'0'",
    "_utf8mb4'q' COLLATE utf8mb4_bin",
];

const DATETIMES: &[&str] = &[
    "'2020-01-01'",
    "'2020-02-30'",
    "'2020-01-01 10:11:12'",
    "'2020-01-01 10:11:12.5678'",
    "'10:11:12'",
    "'10:11:12.5'",
    "'-838:59:59'",
    "'34:11:12.123456'",
    "'1 02:03:04'",
    "'0000-00-00'",
    "'2020-00-01'",
    "'2020-13-45'",
    "DATE'2020-01-31'",
    "TIME'10:11:12'",
    "TIME'-01:30:00.5'",
    "TIME'34:11:12'",
    "TIMESTAMP'2020-01-01 10:11:12.345'",
    "TIMESTAMP'2020-12-31 23:59:59'",
    "'20200101'",
    "'200101'",
    "'2020-1-5'",
    "'12:30'",
    "'2020-01-01T10:11:12'",
    "'9999-12-31'",
    "DATE'2000-02-29'",
];

const DOCUMENTS: &[&str] = &[
    "'{\"a\": 1}'",
    "'[1, 2, [3, 4]]'",
    "'{\"a\": {\"b\": [1, \"x\"]}, \"c\": null}'",
    "'\"str\"'",
    "'12.5'",
    "'true'",
    "'null'",
    "'{bad'",
    "'[]'",
    "'{}'",
    "'{\"a\":1,\"a\":2}'",
    "'[true, false, null]'",
    "' { \"k\" : [ 1 , 2 ] } '",
    "'{\"n\":\"bob\",\"a\":5}'",
    "'[1'",
    "'\"a\\\\\"b\"'",
    "'[{\"a\":1},{\"a\":2}]'",
    "'1'",
    "'{\"a\":{\"x\":1}}'",
];

const PATHS: &[&str] = &[
    "'$'",
    "'$.a'",
    "'$.a.b'",
    "'$[0]'",
    "'$[1]'",
    "'$[last]'",
    "'$.*'",
    "'$[*]'",
    "'$**.a'",
    "'$.c'",
    "'$.\"a\"'",
    "'$.a.b[1]'",
    "'a'",
    "'$.'",
    "'$[0 to 1]'",
    "'$.a.x'",
    "'$[2][0]'",
    "'$[9]'",
];

const FORMATS: &[&str] = &[
    "'%Y-%m-%d'",
    "'%H:%i:%s.%f'",
    "'%D %M %W %j'",
    "'%y %c %e %k %l %p'",
    "'%r %T'",
    "'%U %u %V %v %X %x %w %a %b'",
    "'%d.%m.%Y'",
    "'%Y'",
    "'%H%i%s'",
];

const UNITS: &[&str] = &[
    "MICROSECOND",
    "SECOND",
    "MINUTE",
    "HOUR",
    "DAY",
    "WEEK",
    "MONTH",
    "QUARTER",
    "YEAR",
    "SECOND_MICROSECOND",
    "MINUTE_MICROSECOND",
    "MINUTE_SECOND",
    "HOUR_MICROSECOND",
    "HOUR_SECOND",
    "HOUR_MINUTE",
    "DAY_MICROSECOND",
    "DAY_SECOND",
    "DAY_MINUTE",
    "DAY_HOUR",
    "YEAR_MONTH",
];

const CASTS: &[&str] = &[
    "SIGNED",
    "UNSIGNED",
    "CHAR",
    "CHAR(3)",
    "BINARY",
    "BINARY(4)",
    "DATE",
    "TIME",
    "TIME(2)",
    "DATETIME",
    "DATETIME(3)",
    "DOUBLE",
    "FLOAT",
    "DECIMAL(10,2)",
    "DECIMAL(4,1)",
    "DOUBLE(5,2)",
    "YEAR",
];

const COMPARISONS: &[&str] = &["=", "<", ">", "<=", ">=", "<>", "<=>"];
const OPERATORS: &[&str] = &["+", "-", "*", "/", "DIV", "%", "|", "&", "^", "<<", ">>", "XOR", "AND", "OR"];

/// Functions whose result does not depend on the arguments alone, and functions with special syntax.
const LEFT_OUT: &[&str] = &[
    "rand",
    "uuid",
    "uuid_short",
    "sys_guid",
    "sysdate",
    "sleep",
    "benchmark",
    "get_lock",
    "release_lock",
    "release_all_locks",
    "is_free_lock",
    "is_used_lock",
    "connection_id",
    "user",
    "current_user",
    "session_user",
    "system_user",
    "database",
    "schema",
    "version",
    "last_insert_id",
    "row_count",
    "found_rows",
    "binlog_gtid_pos",
    "master_gtid_wait",
    "master_pos_wait",
    "name_const",
    "get_format",
    "char",
    "trim",
    "position",
    "password",
    "timestampdiff",
    "extract",
    "date_add",
    "date_sub",
    "convert_tz",
    "random_bytes",
    "aes_encrypt",
];

impl Generator {
    pub fn new(seed: u64) -> Generator {
        let mut functions: Vec<_> =
            cohort_expr::functions().filter(|(name, _, _)| !LEFT_OUT.contains(name)).collect();
        functions.sort_unstable();
        Generator { state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1, columns: world::names(), functions }
    }

    fn below(&mut self, n: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % n
    }

    fn pick(&mut self, list: &[&str]) -> String {
        list[self.below(list.len())].to_owned()
    }

    fn leaf(&mut self) -> String {
        match self.below(12) {
            0..=2 => self.pick(NUMBERS),
            3..=4 => self.pick(TEXTS),
            5..=6 => self.pick(DATETIMES),
            7 => self.pick(DOCUMENTS),
            8 if self.below(3) == 0 => "NULL".to_owned(),
            _ => {
                let chosen = self.below(self.columns.len());
                self.columns[chosen].to_owned()
            }
        }
    }

    /// Returns an expression with at most `depth` levels.
    pub fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.leaf();
        }
        match self.below(20) {
            0..=1 => self.comparison(depth),
            2..=3 => {
                let op = self.pick(OPERATORS);
                let (left, right) = (self.expression(depth - 1), self.expression(depth - 1));
                format!("({left} {op} {right})")
            }
            4 => self.choice(depth),
            5 => {
                let to = self.pick(CASTS);
                format!("CAST({} AS {to})", self.expression(depth - 1))
            }
            6..=7 => self.calendar(depth),
            8 => self.special(depth),
            _ => self.call(depth),
        }
    }

    fn comparison(&mut self, depth: usize) -> String {
        let left = self.expression(depth - 1);
        match self.below(8) {
            0 => {
                format!("({left} BETWEEN {} AND {})", self.expression(depth - 1), self.expression(depth - 1))
            }
            1 => format!("({left} IN ({}, {}))", self.expression(depth - 1), self.expression(depth - 1)),
            2 => format!("({left} LIKE {})", self.pick(TEXTS)),
            3 => {
                let op = self.pick(COMPARISONS);
                let parts = [self.expression(depth - 1), self.leaf(), self.leaf()];
                format!("(({left}, {}) {op} ({}, {}))", parts[0], parts[1], parts[2])
            }
            _ => {
                let op = self.pick(COMPARISONS);
                format!("({left} {op} {})", self.expression(depth - 1))
            }
        }
    }

    fn choice(&mut self, depth: usize) -> String {
        let (a, b) = (self.expression(depth - 1), self.expression(depth - 1));
        match self.below(4) {
            0 => format!("CASE {a} WHEN {b} THEN {} ELSE {} END", self.leaf(), self.leaf()),
            1 => format!("CASE WHEN {a} THEN {b} ELSE {} END", self.leaf()),
            2 => format!("({a} IS NULL)"),
            _ => format!("({a} IS TRUE)"),
        }
    }

    fn calendar(&mut self, depth: usize) -> String {
        let unit = self.pick(UNITS);
        let datetime = if self.below(2) == 0 { self.pick(DATETIMES) } else { self.expression(depth - 1) };
        match self.below(5) {
            0 | 1 => format!("EXTRACT({unit} FROM {datetime})"),
            2 => {
                let other = self.pick(DATETIMES);
                format!("TIMESTAMPDIFF({}, {datetime}, {other})", UNITS[self.below(9)])
            }
            3 => format!("TIMESTAMPADD({}, {}, {datetime})", UNITS[self.below(9)], self.leaf()),
            _ => {
                let sign = self.pick(&["+", "-"]);
                let amount =
                    self.pick(&["1", "'1'", "'1:2'", "2.5", "-3", "'1 2:3:4.5'", "'-1-2'", "vi", "'x'"]);
                format!("({datetime} {sign} INTERVAL {amount} {unit})")
            }
        }
    }

    fn special(&mut self, depth: usize) -> String {
        let operand = self.expression(depth - 1);
        match self.below(6) {
            0 => format!(
                "TRIM({} {} FROM {operand})",
                self.pick(&["LEADING", "TRAILING", "BOTH"]),
                self.pick(TEXTS)
            ),
            1 => format!("CHAR({operand}, {})", self.leaf()),
            2 => format!("CHAR({operand} USING {})", self.pick(&["utf8mb4", "latin1", "ascii"])),
            3 => format!("CONVERT({operand} USING {})", self.pick(&["utf8mb4", "latin1", "binary"])),
            4 => format!("(- {operand})"),
            _ => format!("(NOT {operand})"),
        }
    }

    /// Returns a suitable argument n of a function.
    fn argument(&mut self, name: &str, n: usize, depth: usize) -> String {
        if self.below(5) == 0 {
            return self.expression(depth - 1);
        }
        let is_json =
            name.starts_with("json_") && !matches!(name, "json_array" | "json_object" | "json_quote");
        match (name, n) {
            ("json_contains_path", 1) => self.pick(&["'one'", "'all'"]),
            (_, 0) if is_json => self.pick(DOCUMENTS),
            (
                "json_merge" | "json_merge_patch" | "json_merge_preserve" | "json_equals" | "json_overlaps",
                _,
            ) => self.pick(DOCUMENTS),
            ("json_set" | "json_insert" | "json_replace" | "json_array_append" | "json_array_insert", n)
                if n % 2 == 0 =>
            {
                self.leaf()
            }
            (_, _) if is_json => self.pick(PATHS),
            ("date_format" | "time_format" | "str_to_date", 1) => self.pick(FORMATS),
            ("format", 2) => self.pick(&["'de_DE'", "'en_US'", "'da_DK'", "'xx'"]),
            _ => self.leaf(),
        }
    }

    fn call(&mut self, depth: usize) -> String {
        let chosen = self.below(self.functions.len());
        let (name, min, max) = self.functions[chosen];
        let mut count = min + self.below(max.min(min + 2) - min + 1);
        if name == "json_object" || name.starts_with("json_set") {
            count = if name == "json_object" { count / 2 * 2 } else { 3 };
        }
        if matches!(name, "json_insert" | "json_replace" | "json_array_append" | "json_array_insert") {
            count = 3;
        }
        let args: Vec<String> = (0..count).map(|n| self.argument(name, n, depth)).collect();
        format!("{}({})", name.to_uppercase(), args.join(", "))
    }
}
