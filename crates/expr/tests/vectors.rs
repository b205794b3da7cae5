//! Vectorized programs must have the same results as evaluation row by row.

mod support;

use cohort_expr::{EvalContext, Expr, UNKNOWN, VectorCompiler, YES};
use cohort_types::{Collation, Uninterrupted, Value, Vector, VectorType};
use support::{TestSession, bind, row_of_g, session_env};

/// Returns the vector types of columns i, d, s, t of table `g`.
fn type_of(column: usize) -> Option<VectorType> {
    match column {
        0 => Some(VectorType::Int),
        2 => Some(VectorType::Decimal { scale: 2 }),
        4 => Some(VectorType::Text(Collation::UTF8MB4_GENERAL_CI)),
        5 => Some(VectorType::DateTime),
        _ => None,
    }
}

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn pick<'p>(&mut self, list: &[&'p str]) -> &'p str {
        list[self.below(list.len() as u64) as usize]
    }

    fn row(&mut self) -> Vec<Value> {
        let texts = ["", "a", "A", "abc", "ABd ", "ä", "straße", "special requests", "b%"];
        let times = ["2020-01-01", "1999-12-31 23:59:59.5", "2020-01-01 00:00:00.001", "2024-02-29"];
        let int = self.below(9) as i64 - 4;
        let cents = i128::from(self.below(900)) - 400;
        let text = self.pick(&texts);
        let time = self.pick(&times);
        let mut row = row_of_g(int, 1, cents, 0.5, text, time, (1, "z"));
        for column in [0, 2, 4, 5] {
            if self.below(6) == 0 {
                row[column] = Value::Null;
            }
        }
        row
    }

    fn number(&mut self, depth: u32) -> String {
        if depth == 0 || self.below(3) == 0 {
            return self
                .pick(&["i", "d", "3", "-1", "2.50", "0.125", "LENGTH(s)", "CHAR_LENGTH(s)"])
                .to_owned();
        }
        match self.below(4) {
            0 => {
                let (condition, then) = (self.condition(depth - 1), self.number(depth - 1));
                match self.below(2) {
                    0 => format!("CASE WHEN {condition} THEN {then} END"),
                    _ => format!("CASE WHEN {condition} THEN {then} ELSE {} END", self.number(depth - 1)),
                }
            }
            _ => {
                let op = self.pick(&["+", "-", "*"]);
                format!("({} {op} {})", self.number(depth - 1), self.number(depth - 1))
            }
        }
    }

    fn text(&mut self) -> &'static str {
        let parts = [
            "s",
            "s",
            "SUBSTRING(s, 1, 2)",
            "SUBSTR(s FROM 2)",
            "LEFT(s, 1)",
            "MID(s, 4, 3)",
            "LEFT(s, 0)",
            "SUBSTRING(s, 2, -1)",
            "SUBSTRING(s, 0, 2)",
            "SUBSTRING(s, -2)",
        ];
        parts[self.below(parts.len() as u64) as usize]
    }

    fn condition(&mut self, depth: u32) -> String {
        let op = self.pick(&["=", "<>", "<", "<=", ">", ">="]);
        if depth > 0 && self.below(2) == 0 {
            let (a, b) = (self.condition(depth - 1), self.condition(depth - 1));
            return match self.below(3) {
                0 => format!("({a} AND {b})"),
                1 => format!("({a} OR {b})"),
                _ => format!("NOT ({a})"),
            };
        }
        let not = self.pick(&["", "NOT "]);
        match self.below(8) {
            0 | 1 => format!("{} {op} {}", self.number(depth), self.number(depth)),
            2 => format!("t {op} {}", self.pick(&["DATE '2020-01-01'", "'1999-12-31 23:59:59.5'", "t"])),
            3 => format!("{} {op} {}", self.text(), self.pick(&["'a'", "'ABC  '", "'Ä'", "s", "LEFT(s, 2)"])),
            4 => format!(
                "{} {not}LIKE {}",
                self.text(),
                self.pick(&["'a%'", "'%special%requests%'", "'%'", "'%SS%'", "'abc'"])
            ),
            5 => format!("{} {not}IN (1, 2.5, -1, 0, 3, 100)", self.pick(&["i", "d"])),
            6 => format!("{} {not}IN ('A', 'straße', 'x', 'STRASSE', 'ab')", self.text()),
            _ => match self.below(3) {
                0 => format!("d {not}BETWEEN {} AND {}", self.number(depth), self.number(depth)),
                1 => format!("t {not}BETWEEN '2000-01-01' AND DATE '2020-01-01'"),
                _ => format!("{} IS {not}NULL", self.pick(&["i", "d", "s", "t", "(i + d)", "LEFT(s, 1)"])),
            },
        }
    }
}

fn vectors(columns: &[usize], rows: &[Vec<Value>]) -> Vec<Vector> {
    let vector = |column: &usize| {
        let mut vector = Vector::default();
        let ty = type_of(*column).expect("an input has a lane");
        assert!(rows.iter().all(|row| vector.push_value(&row[*column], ty)));
        vector
    };
    columns.iter().map(vector).collect()
}

#[test]
fn conditions_are_those_of_rows() {
    let (env, session) = (session_env(), TestSession::default());
    let ctx = EvalContext::new(&env, &session, &[]);
    let mut random = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut programs = 0;
    for _ in 0..3000 {
        let text = random.condition(2);
        let rows: Vec<_> = (0..40).map(|_| random.row()).collect();
        let expr = bind(&text, &env).expect("a good condition").fold(&ctx);
        let mut compiler = VectorCompiler::new(&type_of, &ctx);
        let Some(truth) = compiler.condition(&expr) else { continue };
        programs += 1;
        let mut program = compiler.finish();
        let vectors = vectors(program.inputs(), &rows);
        let inputs: Vec<&Vector> = vectors.iter().collect();
        program.run(&inputs, rows.len(), &Uninterrupted).expect("nothing interrupts").expect("small numbers");
        for (row, found) in rows.iter().zip(program.truths(truth)) {
            let found = (*found != UNKNOWN).then_some(*found == YES);
            assert_eq!(found, expr.eval_bool(row, &ctx).expect("good"), "{text} for {row:?}");
        }
    }
    assert!(programs > 2000, "only {programs} of 3000 conditions have a program");
}

#[test]
fn numbers_are_those_of_rows() {
    let (env, session) = (session_env(), TestSession::default());
    let ctx = EvalContext::new(&env, &session, &[]);
    let mut random = Numbers(0x2545_f491_4f6c_dd1d);
    let mut programs = 0;
    for _ in 0..2000 {
        let text = random.number(3);
        let rows: Vec<_> = (0..20).map(|_| random.row()).collect();
        let expr = bind(&text, &env).expect("a good number").fold(&ctx);
        let mut compiler = VectorCompiler::new(&type_of, &ctx);
        let Some(at) = compiler.number(&expr) else { continue };
        programs += 1;
        let mut program = compiler.finish();
        let vectors = vectors(program.inputs(), &rows);
        let inputs: Vec<&Vector> = vectors.iter().collect();
        program.run(&inputs, rows.len(), &Uninterrupted).expect("nothing interrupts").expect("small numbers");
        let numbers = program.numbers(at, &inputs);
        let ty = if at.is_int { VectorType::Int } else { VectorType::Decimal { scale: at.scale } };
        for (n, row) in rows.iter().enumerate() {
            let found = if numbers.is_null(n) { Value::Null } else { ty.value_of(numbers.numbers[n]) };
            assert_eq!(found, expr.eval(row, &ctx).expect("good").into_owned(), "{text} for {row:?}");
        }
    }
    assert!(programs > 1500, "only {programs} of 2000 numbers have a program");
}

#[test]
fn oversized_values_return_an_error() {
    let (env, session) = (session_env(), TestSession::default());
    let ctx = EvalContext::new(&env, &session, &[]);
    let expr = bind("i * 4611686018427387904 + i", &env).expect("a number");
    let mut compiler = VectorCompiler::new(&type_of, &ctx);
    compiler.number(&expr).expect("a program");
    let mut program = compiler.finish();
    for (int, fits) in [(1, true), (2, false), (-2, false)] {
        let rows = [row_of_g(int, 0, 0, 0.0, "", "2020-01-01", (1, "z"))];
        let vectors = vectors(program.inputs(), &rows);
        let inputs: Vec<&Vector> = vectors.iter().collect();
        assert_eq!(
            program.run(&inputs, 1, &Uninterrupted).expect("nothing interrupts").is_ok(),
            fits,
            "{int}"
        );
    }
}

#[test]
fn expressions_that_warn_or_vary_have_no_vector_program() {
    let (env, session) = (session_env(), TestSession::default());
    let ctx = EvalContext::new(&env, &session, &[]);
    for text in
        ["i = 'x'", "t < 'no date'", "f > 1", "i < RAND()", "u = 1", "i / 2 > 1", "s = 1", "e = 'z'", "i"]
    {
        let expr: Expr = bind(text, &env).expect("an expression");
        let mut compiler = VectorCompiler::new(&type_of, &ctx);
        assert!(compiler.condition(&expr).is_none(), "{text}");
    }
    assert_eq!(ctx.warning_count(), 0);
}

#[test]
fn text_filters_have_a_vector_program() {
    let (env, session) = (session_env(), TestSession::default());
    let ctx = EvalContext::new(&env, &session, &[]);
    for text in [
        "s = 'a'",
        "'a' < s",
        "s <> LEFT(s, 1)",
        "s BETWEEN 'a' AND 'b'",
        "SUBSTRING(s FROM 1 FOR 2) IN ('ab', 'x')",
        "LEFT(s, 3) LIKE 'a%'",
        "MID(s, 2, 2) = 'bd'",
        "SUBSTR(s, 2) IS NULL",
    ] {
        let expr = bind(text, &env).expect("a condition").fold(&ctx);
        let mut compiler = VectorCompiler::new(&type_of, &ctx);
        assert!(compiler.condition(&expr).is_some(), "{text}");
    }
}

#[test]
fn a_long_condition_has_no_program() {
    let (env, session) = (session_env(), TestSession::default());
    let ctx = EvalContext::new(&env, &session, &[]);
    for (terms, has_program) in [(300, true), (20_000, false)] {
        let terms: Vec<String> = (0..terms).map(|n| format!("i = {n}")).collect();
        let expr = bind(&terms.join(" OR "), &env).expect("a condition").fold(&ctx);
        let mut compiler = VectorCompiler::new(&type_of, &ctx);
        assert_eq!(compiler.condition(&expr).is_some(), has_program, "{} terms", terms.len());
    }
}
