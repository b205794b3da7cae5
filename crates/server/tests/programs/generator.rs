//! Random programs: nested blocks, declarations, handlers, cursors, loops, signals, row changes.
//!
//! Programs end: every loop counts its rounds. They are deterministic: no clock, no random numbers, and rows
//! are read in the order of a key.
//!
//! Columns are compared with integers only. With other values, MariaDB's warnings depend on its plan, and it
//! rounds bounds: `MAX(a)` of rows with `a < 1.3` ignores 1.

use std::fmt::Write;

use crate::random::Random;

/// Types of variables, each with values that fit and values that do not.
const TYPES: [(&str, &[&str]); 6] = [
    ("INT", &["0", "1", "7", "-3", "NULL", "'12'", "2147483648", "'abc'", "1.5"]),
    ("TINYINT", &["0", "5", "127", "128", "-129", "NULL", "'3x'"]),
    ("BIGINT UNSIGNED", &["0", "9", "-1", "18446744073709551615", "NULL"]),
    ("VARCHAR(4)", &["'a'", "'abcd'", "'abcde'", "''", "17", "NULL"]),
    ("DECIMAL(4,1)", &["0", "1.25", "999.9", "1000", "'x'", "NULL"]),
    ("DATE", &["'2024-02-29'", "'2024-02-30'", "'x'", "NULL", "20240101"]),
];

const CONDITIONS: [&str; 11] = [
    "SQLEXCEPTION",
    "SQLWARNING",
    "NOT FOUND",
    "1062",
    "SQLSTATE '45000'",
    "SQLSTATE '23000'",
    "1264",
    "SQLSTATE '22007'",
    "1365",
    "c1",
    "c2",
];

const SIGNALS: [&str; 8] = [
    "SIGNAL SQLSTATE '45000'",
    "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'own', MYSQL_ERRNO = 5001",
    "SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'soft'",
    "SIGNAL SQLSTATE '02000'",
    "SIGNAL c2",
    "SIGNAL c2 SET MESSAGE_TEXT = 'named', CLASS_ORIGIN = 'me'",
    "RESIGNAL",
    "RESIGNAL SET MESSAGE_TEXT = 'again'",
];

/// A generator of one program.
pub struct Generator {
    random: Random,
    text: String,
    /// The variables in scope with the indexes of their types.
    variables: Vec<(String, usize)>,
    /// Labels in scope, and whether each is a loop's.
    labels: Vec<(String, bool)>,
    cursors: Vec<String>,
    names: u32,
    /// Statements that may still be generated.
    left: u32,
}

impl Generator {
    /// Returns the body of a program.
    pub fn body(seed: u64) -> String {
        let mut generator = Generator {
            random: Random::new(seed),
            text: String::new(),
            variables: Vec::new(),
            labels: Vec::new(),
            cursors: Vec::new(),
            names: 0,
            left: 25,
        };
        generator.block(0, None);
        generator.text
    }

    fn one_of(&mut self, count: usize) -> usize {
        self.random.one_to(count as u32) as usize - 1
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.random.one_to(100) <= percent
    }

    fn add(&mut self, text: &str) {
        self.text += text;
    }

    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    fn block(&mut self, depth: u32, label: Option<&str>) {
        let scope = (self.variables.len(), self.labels.len(), self.cursors.len());
        match label {
            Some(label) => {
                let _ = writeln!(self.text, "{label}: BEGIN");
                self.labels.push((label.to_owned(), false));
            }
            None if depth == 0 => self.add("BEGIN\n"),
            None => self.add("BEGIN\n"),
        }
        if depth == 0 {
            self.add("DECLARE c1 CONDITION FOR 1062;\nDECLARE c2 CONDITION FOR SQLSTATE '42S99';\n");
            self.add("DECLARE n INT DEFAULT 0;\n");
            self.variables.push(("n".to_owned(), 0));
        }
        for _ in 0..self.one_of(4) {
            let ty = self.one_of(TYPES.len());
            let name = match self.chance(15) && depth > 0 {
                true => "n".to_owned(),
                false => self.name("v"),
            };
            let default = match self.chance(70) {
                true => format!(" DEFAULT {}", self.value(ty)),
                false => String::new(),
            };
            let _ = writeln!(self.text, "DECLARE {name} {}{default};", TYPES[ty].0);
            self.variables.push((name, ty));
        }
        for _ in 0..self.one_of(2) {
            let name = self.name("k");
            let condition = self.condition("t.a");
            let _ = writeln!(
                self.text,
                "DECLARE {name} CURSOR FOR SELECT a, b FROM t WHERE {condition} ORDER BY a;"
            );
            self.cursors.push(name);
        }
        let mut used: Vec<&str> = Vec::new();
        for _ in 0..self.one_of(4) {
            let condition = CONDITIONS[self.one_of(CONDITIONS.len())];
            // `c1` is 1062.
            let key = if condition == "c1" { "1062" } else { condition };
            if used.contains(&key) {
                continue;
            }
            used.push(key);
            let action = if self.chance(60) { "CONTINUE" } else { "EXIT" };
            let _ = write!(self.text, "DECLARE {action} HANDLER FOR {condition} ");
            let labels = std::mem::take(&mut self.labels);
            match self.chance(50) {
                true => {
                    let _ = writeln!(self.text, "SELECT '{condition}' AS handled, n;");
                    // A quote in the name of the condition ends the text.
                    let fixed = self.text.replace(&format!("SELECT '{condition}'"), "SELECT 'handled'");
                    self.text = fixed;
                }
                false => {
                    self.add(
                        "BEGIN GET DIAGNOSTICS CONDITION 1 @e = MYSQL_ERRNO, @m = MESSAGE_TEXT, @s = \
                              RETURNED_SQLSTATE; SELECT @e, @m, @s;\n",
                    );
                    self.statements(depth + 2, 2);
                    self.add("END;\n");
                }
            }
            self.labels = labels;
        }
        self.statements(depth, 5);
        self.add("END");
        self.variables.truncate(scope.0);
        self.labels.truncate(scope.1);
        self.cursors.truncate(scope.2);
    }

    fn statements(&mut self, depth: u32, at_most: usize) {
        for _ in 0..=self.one_of(at_most) {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            self.statement(depth);
            self.add(";\n");
        }
        self.add("SET n = n;\n");
    }

    fn variable(&mut self) -> (String, usize) {
        let index = self.one_of(self.variables.len());
        self.variables[index].clone()
    }

    /// Returns an integer variable that no inner one hides.
    fn integer(&mut self) -> String {
        let is_hidden =
            |n: usize| self.variables[n + 1..].iter().any(|(name, _)| *name == self.variables[n].0);
        let is_wanted = |n: &usize| TYPES[self.variables[*n].1].0.contains("INT") && !is_hidden(*n);
        let known: Vec<usize> = (0..self.variables.len()).filter(is_wanted).collect();
        match known.len() {
            0 => "0".to_owned(),
            count => {
                let chosen = known[self.one_of(count)];
                self.variables[chosen].0.clone()
            }
        }
    }

    fn value(&mut self, ty: usize) -> String {
        let values = TYPES[ty].1;
        values[self.one_of(values.len())].to_owned()
    }

    fn expression(&mut self) -> String {
        let (name, ty) = self.variable();
        match self.one_of(9) {
            0 => name,
            1 => self.value(ty),
            2 => format!("{name} + 1"),
            3 => format!("CONCAT({name}, 'x')"),
            4 => format!("{name} * {}", self.variable().0),
            5 => format!("IFNULL({name}, {})", self.value(ty)),
            6 => format!("(SELECT MAX(a) FROM t WHERE a < {})", self.integer()),
            7 => format!("{name} / 0"),
            _ => format!("CASE WHEN {name} IS NULL THEN {} ELSE {name} END", self.value(ty)),
        }
    }

    fn condition(&mut self, left: &str) -> String {
        let operators = ["=", "<", ">", "<=>", "<>"];
        let operator = operators[self.one_of(operators.len())];
        let name = self.integer();
        match self.one_of(4) {
            0 => format!("{} IS NULL", self.variable().0),
            1 => format!("{left} {operator} {name}"),
            2 => format!("{left} {operator} {}", self.random.one_to(9)),
            _ => format!("EXISTS (SELECT 1 FROM t AS s WHERE s.a {operator} {left})"),
        }
    }

    fn statement(&mut self, depth: u32) {
        let kinds = if depth < 5 { 20 } else { 11 };
        match self.one_of(kinds) {
            0 | 1 => {
                let ((name, _), value) = (self.variable(), self.expression());
                let _ = write!(self.text, "SET {name} = {value}");
            }
            2 => {
                let (name, ty) = self.variable();
                let value = self.value(ty);
                let _ = write!(self.text, "SET {name} = {value}, @u = {name}");
            }
            3 => {
                let (key, value) = (self.random.one_to(9), self.expression());
                let _ = write!(self.text, "INSERT INTO t VALUES ({key}, {value})");
            }
            4 => {
                let ((name, _), value) = (self.variable(), self.expression());
                let condition = self.condition("a");
                let _ = write!(
                    self.text,
                    "UPDATE t SET b = {value} WHERE {condition} AND a <> IFNULL({name}, 0)"
                );
            }
            5 => {
                let condition = self.condition("a");
                let _ = write!(self.text, "DELETE FROM t WHERE {condition} ORDER BY a LIMIT 2");
            }
            6 => {
                let ((name, _), condition) = (self.variable(), self.condition("a"));
                let _ = write!(self.text, "SELECT a INTO {name} FROM t WHERE {condition} ORDER BY a LIMIT 1");
            }
            7 => {
                let names: Vec<String> = self.variables.iter().map(|(name, _)| name.clone()).collect();
                let _ = write!(self.text, "SELECT {}", names.join(", "));
            }
            8 => {
                let signal = SIGNALS[self.one_of(SIGNALS.len())];
                self.add(signal);
            }
            9 => match self.one_of(self.labels.len() + 1) {
                0 => self.add("DO 1"),
                n => {
                    let (label, is_loop) = self.labels[n - 1].clone();
                    let word = if is_loop && self.chance(50) { "ITERATE" } else { "LEAVE" };
                    let condition = self.condition("1");
                    let _ = write!(self.text, "IF {condition} THEN {word} {label}; END IF");
                }
            },
            10 => match self.cursors.last().cloned() {
                None => self.add("SELECT ROW_COUNT(), n"),
                Some(cursor) => {
                    let ((first, _), (second, _)) = (self.variable(), self.variable());
                    match self.one_of(4) {
                        0 => self.text += &format!("OPEN {cursor}"),
                        1 => self.text += &format!("CLOSE {cursor}"),
                        _ => self.text += &format!("FETCH {cursor} INTO {first}, {second}"),
                    }
                }
            },
            11 | 12 => {
                let condition = self.condition("n");
                let _ = writeln!(self.text, "IF {condition} THEN");
                self.statements(depth + 1, 2);
                if self.chance(50) {
                    self.add("ELSE\n");
                    self.statements(depth + 1, 2);
                }
                self.add("END IF");
            }
            13 => {
                let operand = self.expression();
                let _ = writeln!(self.text, "CASE {operand}");
                for _ in 0..=self.one_of(2) {
                    let value = self.expression();
                    let _ = writeln!(self.text, "WHEN {value} THEN");
                    self.statements(depth + 1, 2);
                }
                if self.chance(70) {
                    self.add("ELSE\n");
                    self.statements(depth + 1, 2);
                }
                self.add("END CASE");
            }
            14 | 15 => self.repeat(depth),
            16 => {
                let cursor_query = self.condition("t.a");
                let name = self.name("r");
                let _ = write!(
                    self.text,
                    "FOR {name} IN (SELECT a, b FROM t WHERE {cursor_query} ORDER BY a) DO\nSELECT {name}.a, \
                     {name}.b;\n"
                );
                self.statements(depth + 1, 2);
                self.add("END FOR");
            }
            _ => {
                let label = self.chance(50).then(|| self.name("l"));
                self.block(depth + 1, label.as_deref());
            }
        }
    }

    /// Adds a loop of at most three rounds.
    fn repeat(&mut self, depth: u32) {
        let (counter, label) = (self.name("i"), self.name("l"));
        let _ = writeln!(self.text, "BEGIN\nDECLARE {counter} INT DEFAULT 0;");
        let kind = self.one_of(4);
        let opened = match kind {
            0 => format!("{label}: WHILE {counter} < 3 DO\n"),
            1 => format!("{label}: REPEAT\n"),
            2 => format!("{label}: FOR {counter} IN 1..3 DO\n"),
            _ => format!("{label}: LOOP\n"),
        };
        self.add(&opened);
        if kind != 2 {
            let _ = writeln!(self.text, "SET {counter} = {counter} + 1;");
            let _ = writeln!(self.text, "IF {counter} > 3 THEN LEAVE {label}; END IF;");
        }
        self.labels.push((label.clone(), true));
        self.statements(depth + 1, 3);
        self.labels.pop();
        let closed = match kind {
            0 => format!("END WHILE {label};\n"),
            1 => format!("UNTIL {counter} >= 3 END REPEAT {label};\n"),
            2 => format!("END FOR {label};\n"),
            _ => format!("END LOOP {label};\n"),
        };
        self.add(&closed);
        self.add("END");
    }
}
