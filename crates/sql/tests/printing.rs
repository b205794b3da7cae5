//! Printed text parses to the printed expression: random expressions of all kinds of nodes, and texts whose
//! form changes when they are printed.
//!
//! A failure prints the seed of its expression. `SEED=n cargo test -p cohort-sql --test printing` tests only
//! that one.

use cohort_sql::ast::{
    Aggregate, AggregateKind, BinaryOp, ColumnRef, CommonTable, DataType, DeclaredKind, Expr, IndexHint,
    IndexHintKind, IndexHintScope, IntervalUnit, IsTest, Join, JoinCondition, JoinKind, Limit, Literal,
    LiteralKind, LockStrength, LockWait, Locking, MatchMode, ObjectName, OrderItem, Over, Quantifier, Query,
    QueryBody, Rename, Select, SelectItem, SequenceCall, SequenceOperation, SetOperand, SetOperator,
    Statement, TableFactor, TableRef, TrimSide, UnaryOp, VariableScope, WindowBound, WindowCall, WindowFrame,
    WindowSpec, With,
};
use cohort_sql::print::{Style, expr_in};
use cohort_sql::{ParseMode, ParseOptions, parse};
use cohort_types::{Charset, Collation, Decimal, Str, TypeKind, Value};

const EXPRESSIONS: u64 = 8_000;

/// Pseudorandom numbers from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn coin(&mut self) -> bool {
        self.next() & 1 == 0
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.coin() { Some(make(self)) } else { None }
    }

    fn list<T>(&mut self, from: usize, to: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..from + self.below(to - from + 1)).map(|_| make(self)).collect()
    }

    fn name(&mut self) -> String {
        self.pick(&["a", "b1", "select", "two words", "back`quote", "quote\"d", "é", "_utf8mb4", "x.y"])
            .into()
    }

    fn text(&mut self) -> String {
        let pieces =
            ["a", "B ", "'", "\"", "\\", "%", "_", "\\%", "\n", "\r", "\0", "\x1a", "\t", "é", "😀", "`", ""];
        self.list(0, 4, |r| r.pick(&pieces)).concat()
    }

    fn object(&mut self) -> ObjectName {
        ObjectName { db: self.maybe(Self::name), name: self.name() }
    }

    fn column(&mut self) -> ColumnRef {
        let table = self.maybe(Self::name);
        let db = table.as_ref().and(self.maybe(Self::name));
        ColumnRef { db, table, name: self.name() }
    }

    fn literal(&mut self) -> Expr {
        use LiteralKind as K;
        let binary =
            |r: &mut Self| Value::binary((0..=r.below(4)).map(|_| r.next() as u8).collect::<Vec<u8>>());
        let (value, kind) = match self.below(14) {
            0 => (Value::Null, K::Plain),
            1 => (Value::Int(self.pick(&[0, 1, 7, i64::MAX])), K::Plain),
            2 => (Value::UInt(self.pick(&[1 << 63, u64::MAX])), K::Plain),
            3 => {
                let digits =
                    ["0.5", "1.50", "5.", "0.", "18446744073709551616", "123456789012345678901234.5"];
                (Value::Decimal(Decimal::parse(self.pick(&digits).as_bytes()).0), K::Plain)
            }
            4 => (Value::Double(self.pick(&[0.0, 1.5, 1e10, 1e-10, 1.7976931348623157e308])), K::Plain),
            5 => (Value::Int(self.below(2) as i64), K::Boolean),
            6 => (binary(self), K::Hex),
            7 => (binary(self), K::HexText),
            8 => (Value::binary(Vec::new()), K::HexText),
            9 => (Value::text(self.pick(&["2001-02-03", "it's"])), K::Date),
            10 => (Value::text("10:11:12.5"), K::Time),
            11 => (Value::text("2001-02-03 04:05:06"), K::Timestamp),
            12 => (self.introduced(), K::Introduced),
            _ => (Value::text(self.text()), K::Plain),
        };
        Expr::Literal(Literal { value, kind, ordinal: None })
    }

    /// Returns a string that is valid in its character set.
    fn introduced(&mut self) -> Value {
        let (charset, texts): (Charset, &[&str]) = self.pick(&[
            (Charset::Binary, &["a", "\u{e9}", "", "it's"] as &[&str]),
            (Charset::Utf8mb4, &["a", "\u{e9}😀", ""]),
            (Charset::Utf8mb3, &["a\\", "\u{e9}"]),
            (Charset::Latin1, &["abc", "\u{e9}t\u{e9}", "'"]),
            (Charset::Ucs2, &["a", "\u{e9}", ""]),
            (Charset::Utf16, &["a😀"]),
            (Charset::Utf32, &["ab"]),
            (Charset::Swe7, &["abc", "\u{d6}"]),
            (Charset::Sjis, &["abc", "\u{8868}"]),
        ]);
        let bytes = match self.below(8) {
            0 if charset == Charset::Binary => vec![0xff, 0, 0x80],
            _ => self.pick(texts).as_bytes().to_vec(),
        };
        Value::Str(Str { bytes, collation: charset.default_collation() })
    }

    fn cast_type(&mut self) -> DataType {
        use TypeKind as T;
        let mut to = DataType::of(match self.below(12) {
            0 => DeclaredKind::Signed,
            1 => DeclaredKind::Unsigned,
            n => DeclaredKind::Column(
                [
                    T::Char,
                    T::Date,
                    T::Time,
                    T::DateTime,
                    T::Decimal,
                    T::Float,
                    T::Double,
                    T::Uuid,
                    T::Inet6,
                    T::Inet4,
                ][n - 2],
            ),
        });
        match to.kind {
            DeclaredKind::Column(T::Char) => {
                to.length = self.maybe(|r| 1 + r.below(9) as u64);
                to.charset = self.maybe(|r| r.pick(&["latin1", "binary", "utf8mb4"]).to_owned());
                to.binary = self.below(4) == 0;
                to.collation = self.maybe(|_| "utf8mb4_unicode_ci".to_owned()).filter(|_| !to.binary);
            }
            // The parser reads a precision of 0 as none.
            DeclaredKind::Column(T::Time | T::DateTime) => {
                to.length = self.maybe(|r| r.below(7) as u64).filter(|precision| *precision > 0);
            }
            DeclaredKind::Column(T::Decimal) => {
                (to.length, to.decimals) = (Some(10), Some(self.below(5) as u64))
            }
            DeclaredKind::Column(T::Double) => {
                (to.length, to.decimals) = self.maybe(|_| (Some(10), Some(2))).unwrap_or_default();
            }
            _ => {}
        }
        to
    }

    fn unit(&mut self) -> IntervalUnit {
        use IntervalUnit as U;
        self.pick(&[
            U::Microsecond,
            U::Second,
            U::Minute,
            U::Hour,
            U::Day,
            U::Week,
            U::Month,
            U::Quarter,
            U::Year,
            U::SecondMicrosecond,
            U::MinuteMicrosecond,
            U::MinuteSecond,
            U::HourMicrosecond,
            U::HourSecond,
            U::HourMinute,
            U::DayMicrosecond,
            U::DaySecond,
            U::DayMinute,
            U::DayHour,
            U::YearMonth,
        ])
    }

    fn boxed(&mut self, depth: usize) -> Box<Expr> {
        Box::new(self.expr(depth))
    }

    fn exprs(&mut self, from: usize, to: usize, depth: usize) -> Vec<Expr> {
        self.list(from, to, |r| r.expr(depth))
    }

    fn order(&mut self, from: usize, depth: usize) -> Vec<OrderItem> {
        self.list(from, 2, |r| OrderItem { expr: r.expr(depth), descending: r.coin() })
    }

    fn expr(&mut self, depth: usize) -> Expr {
        if depth == 0 {
            return match self.below(6) {
                0 => Expr::Param(0),
                1 => Expr::UserVariable(self.name()),
                2 | 3 => Expr::Column(self.column()),
                _ => self.literal(),
            };
        }
        let d = depth - 1;
        match self.below(36) {
            0 => self.literal(),
            1 => Expr::Assign { name: self.name(), value: self.boxed(d) },
            2 => {
                use VariableScope as S;
                let scope = self.pick(&[S::Unspecified, S::Session, S::Global]);
                Expr::SystemVariable { scope, name: "sql_mode".into() }
            }
            3 | 4 => self.unary(d),
            5..=9 => self.binary(d),
            10 => {
                let test = self.pick(&[IsTest::Null, IsTest::True, IsTest::False]);
                Expr::Is { expr: self.boxed(d), negated: self.coin(), test }
            }
            11 | 12 => Expr::Between {
                expr: self.boxed(d),
                negated: self.coin(),
                low: self.boxed(d),
                high: self.boxed(d),
            },
            13 => {
                let mut list = self.exprs(2, 3, d);
                // IN (VALUES(a), (b)) contains a query.
                if matches!(list[0], Expr::Values(_)) {
                    list[0] = self.expr(0);
                }
                Expr::InList { expr: self.boxed(d), negated: self.coin(), list }
            }
            14 => Expr::InQuery { expr: self.boxed(d), negated: false, query: self.query(d) },
            15 | 16 => Expr::Like {
                expr: self.boxed(d),
                negated: self.coin(),
                pattern: self.boxed(d),
                escape: self.maybe(|r| r.boxed(d)),
            },
            17 => Expr::Regexp { expr: self.boxed(d), negated: false, pattern: self.boxed(d) },
            18 => Expr::Case {
                operand: self.maybe(|r| r.boxed(d)),
                branches: self.list(1, 2, |r| (r.expr(d), r.expr(d))),
                otherwise: self.maybe(|r| r.boxed(d)),
            },
            19 => Expr::Cast { expr: self.boxed(d), to: Box::new(self.cast_type()) },
            20 => Expr::ConvertUsing { expr: self.boxed(d), charset: "latin1".into() },
            21 => Expr::Collate { expr: self.boxed(d), collation: "latin1_bin".into() },
            22 => {
                let (expr, amount) = (self.boxed(d), self.boxed(d));
                Expr::DateArith { expr, subtract: self.coin(), amount, unit: self.unit() }
            }
            23 => Expr::Extract { unit: self.unit(), expr: self.boxed(d) },
            24 => Expr::TimestampDiff { unit: self.unit(), from: self.boxed(d), to: self.boxed(d) },
            25 => Expr::Trim {
                side: self.pick(&[TrimSide::Both, TrimSide::Leading, TrimSide::Trailing]),
                what: self.maybe(|r| r.boxed(d)),
                expr: self.boxed(d),
            },
            26 => Expr::CharFunction {
                args: self.exprs(1, 3, d),
                charset: self.maybe(|r| r.pick(&["latin1", "binary"]).into()),
            },
            27 => self.sequence(d),
            28 => self.function(d),
            29 => match self.coin() {
                true => self.function(d),
                false => Expr::StoredFunction {
                    db: Some("d b".into()),
                    name: "f`".into(),
                    args: self.exprs(0, 2, d),
                },
            },
            30 => Expr::Aggregate(Box::new(self.aggregate(d))),
            31 => self.window(d),
            32 => {
                let mut items = self.exprs(2, 3, d);
                // (VALUES(a), (b)) is a query.
                if matches!(items[0], Expr::Values(_)) {
                    items[0] = self.expr(0);
                }
                Expr::Row(items)
            }
            33 => match self.below(3) {
                0 => Expr::Subquery(self.query(d)),
                1 => {
                    let mut query = self.query(d);
                    let one = Expr::Literal(Literal::fixed(Value::Int(1)));
                    query.limit = Some(Limit { count: one, offset: None, with_ties: false });
                    query.locking = None;
                    Expr::Exists(query)
                }
                _ => Expr::Quantified {
                    expr: self.boxed(d),
                    op: self.pick(&[BinaryOp::Equal, BinaryOp::Less]),
                    quantifier: self.pick(&[Quantifier::Any, Quantifier::All]),
                    query: self.query(d),
                },
            },
            34 => match self.below(3) {
                0 => Expr::Default(Some(self.column())),
                1 => Expr::Values(self.column()),
                _ => Expr::Param(0),
            },
            _ => Expr::Match {
                columns: self.list(1, 2, |r| Expr::Column(r.column())),
                text: self.boxed(d),
                mode: self.pick(&[MatchMode::Natural, MatchMode::Boolean, MatchMode::Expansion]),
            },
        }
    }

    /// NOT before a condition that has an opposite is printed as the opposite.
    fn unary(&mut self, d: usize) -> Expr {
        let op = self.pick(&[UnaryOp::Negate, UnaryOp::BitNot, UnaryOp::Not]);
        let expr = self.expr(d);
        let is_turned = match &expr {
            Expr::Binary { op, .. } => {
                use BinaryOp as B;
                matches!(op, B::Equal | B::NotEqual | B::Less | B::LessEqual | B::Greater | B::GreaterEqual)
            }
            Expr::Is { test, .. } => *test == IsTest::Null,
            Expr::Between { .. } | Expr::InList { .. } | Expr::Like { .. } => true,
            _ => false,
        };
        let op = if op == UnaryOp::Not && is_turned { UnaryOp::BitNot } else { op };
        Expr::Unary { op, expr: Box::new(expr) }
    }

    /// AND and OR with more than two operands are chains.
    fn binary(&mut self, d: usize) -> Expr {
        use BinaryOp as B;
        let op = self.pick(&[
            B::Or,
            B::Xor,
            B::And,
            B::Equal,
            B::NullSafeEqual,
            B::NotEqual,
            B::Less,
            B::LessEqual,
            B::Greater,
            B::GreaterEqual,
            B::BitOr,
            B::BitAnd,
            B::BitXor,
            B::ShiftLeft,
            B::ShiftRight,
            B::Add,
            B::Subtract,
            B::Multiply,
            B::Divide,
            B::IntDivide,
            B::Modulo,
        ]);
        let is_same = |expr: &Expr| matches!(expr, Expr::Binary { op: inner, .. } if *inner == op);
        let (left, right) = (self.expr(d), self.expr(d));
        let is_chain = matches!(op, B::And | B::Or) && (is_same(&left) || is_same(&right));
        let op = if is_chain { B::Xor } else { op };
        Expr::Binary { op, left: Box::new(left), right: Box::new(right) }
    }

    fn sequence(&mut self, d: usize) -> Expr {
        use SequenceOperation as Op;
        let operation = self.pick(&[Op::Next, Op::Last, Op::Set]);
        let name = self.object();
        let one = Expr::Literal(Literal::fixed(Value::Int(1)));
        let _ = d;
        let args = if operation == Op::Set { vec![one] } else { Vec::new() };
        Expr::Sequence(Box::new(SequenceCall { operation, name, args }))
    }

    fn function(&mut self, d: usize) -> Expr {
        const PLAIN: &[&str] = &[
            "if",
            "left",
            "right",
            "replace",
            "insert",
            "repeat",
            "truncate",
            "concat",
            "coalesce",
            "substring",
            "locate",
            "octet_length",
            "lcase",
            "dayofmonth",
            "date_format",
            "json_extract",
            "nullif",
            "round",
            "concat_operator_oracle",
            "rpad_oracle",
            "user",
            "from_unixtime",
        ];
        let int = |n: usize| Expr::Literal(Literal::fixed(Value::Int(n as i64)));
        let function = |name: &str, args: Vec<Expr>| Expr::Function { name: name.into(), args };
        match self.below(9) {
            0 => {
                let flags = self.below(4);
                let args = vec![self.expr(d), int(self.below(3)), int(flags)];
                function("weight_string", args)
            }
            1 => {
                let word = self.pick(&["DATE", "TIME", "DATETIME"]);
                function("get_format", vec![Expr::Literal(Literal::fixed(Value::text(word))), self.expr(d)])
            }
            2 => {
                let digits = self.maybe(|r| int(r.below(7)));
                let name = self.pick(&["now", "curtime", "utc_time", "utc_timestamp", "sysdate"]);
                function(name, digits.into_iter().collect())
            }
            3 => function(
                self.pick(&["curdate", "utc_date", "current_user", "current_role", "database"]),
                vec![],
            ),
            4 => {
                let add = self.coin();
                let mut args = if add { vec![self.expr(d)] } else { Vec::new() };
                for _ in 0..=self.below(2) {
                    args.push(self.expr(d));
                    let value = self.expr(d);
                    let word = ["as unsigned int", "as decimal", "as date", "as time", "as datetime"];
                    args.push(if self.coin() { function(self.pick(&word), vec![value]) } else { value });
                }
                function(if add { "column_add" } else { "column_create" }, args)
            }
            5 => {
                let get = function("column_get", vec![self.expr(d), self.expr(d)]);
                Expr::Cast { expr: Box::new(get), to: Box::new(self.cast_type()) }
            }
            6 => function("interval", self.exprs(2, 3, d)),
            7 => {
                let trimmed = Expr::Trim { side: TrimSide::Both, what: None, expr: self.boxed(d) };
                function("null if empty", vec![trimmed])
            }
            _ => function(self.pick(PLAIN), self.exprs(1, 3, d)),
        }
    }

    fn aggregate(&mut self, d: usize) -> Aggregate {
        use AggregateKind as K;
        let kind = self.pick(&[
            K::Count,
            K::Sum,
            K::Avg,
            K::Min,
            K::Max,
            K::BitAnd,
            K::BitOr,
            K::BitXor,
            K::StdDevPop,
            K::StdDevSamp,
            K::VarPop,
            K::VarSamp,
            K::GroupConcat,
            K::JsonArrayAgg,
            K::JsonObjectAgg,
        ]);
        let distinct = self.coin();
        let is_list = matches!(kind, K::GroupConcat | K::JsonArrayAgg);
        let args = match kind {
            K::JsonObjectAgg => self.exprs(2, 2, d),
            K::GroupConcat => self.exprs(1, 2, d),
            K::Count if distinct => self.exprs(1, 2, d),
            _ => self.exprs(1, 1, d),
        };
        Aggregate {
            kind,
            distinct,
            args,
            order_by: if is_list { self.order(0, d) } else { Vec::new() },
            separator: (kind == K::GroupConcat).then(|| self.text()),
            limit: self.maybe(|r| (r.maybe(|_| 2), 3)).filter(|_| is_list),
        }
    }

    fn window(&mut self, d: usize) -> Expr {
        let function = |name: &str, args: Vec<Expr>| Expr::Function { name: name.into(), args };
        if self.below(3) == 0 {
            let name = self.pick(&["percentile_cont", "percentile_disc"]);
            let spec = WindowSpec {
                partition_by: self.exprs(0, 2, d),
                order_by: self.order(1, d),
                ..WindowSpec::default()
            };
            let function = function(name, self.exprs(1, 1, d));
            return Expr::Window(Box::new(WindowCall { function, over: Over::Spec(Box::new(spec)) }));
        }
        let function = match self.below(4) {
            0 => Expr::Aggregate(Box::new(self.aggregate(d))),
            1 => function(self.pick(&["row_number", "rank", "cume_dist"]), Vec::new()),
            2 => function(self.pick(&["ntile", "median", "first_value"]), self.exprs(1, 1, d)),
            _ => function(self.pick(&["lag", "lead"]), self.exprs(1, 2, d)),
        };
        let over = match self.below(4) {
            0 => Over::Name(self.name()),
            _ => {
                let frame =
                    self.maybe(|r| WindowFrame { is_range: r.coin(), start: r.bound(d), end: r.bound(d) });
                let (base, partition_by) = (self.maybe(Self::name), self.exprs(0, 2, d));
                Over::Spec(Box::new(WindowSpec { base, partition_by, order_by: self.order(0, d), frame }))
            }
        };
        Expr::Window(Box::new(WindowCall { function, over }))
    }

    fn bound(&mut self, _depth: usize) -> WindowBound {
        let distance = Expr::Literal(Literal::fixed(Value::Int(self.below(9) as i64)));
        match self.below(5) {
            0 => WindowBound::UnboundedPreceding,
            1 => WindowBound::Preceding(distance),
            2 => WindowBound::CurrentRow,
            3 => WindowBound::Following(distance),
            _ => WindowBound::UnboundedFollowing,
        }
    }

    // ---- queries

    fn query(&mut self, d: usize) -> Box<Query> {
        let body = match self.below(6) {
            0 if d > 0 => {
                let op = self.pick(&SetOperator::ALL);
                let operand = |r: &mut Self| match r.below(3) {
                    0 => {
                        let mut nested = Query::of(r.select(d - 1));
                        nested.order_by = r.order(1, 0);
                        nested.limit = Some(r.limit());
                        QueryBody::Nested(Box::new(nested))
                    }
                    _ => r.select(d - 1),
                };
                let (first, rest) = (self.select(d - 1), self.list(1, 3, operand));
                let all = |r: &mut Self| op != SetOperator::Intersect && r.coin();
                let rest = rest.into_iter().map(|body| SetOperand { op, all: all(self), body }).collect();
                QueryBody::SetOperation { first: Box::new(first), rest }
            }
            1 => QueryBody::Values(self.list(1, 2, |r| vec![r.literal(), r.literal()])),
            _ => self.select(d),
        };
        let is_select = matches!(body, QueryBody::Select(_));
        let mut query = Query::of(body);
        if d > 0 && is_select {
            query.with = self.maybe(|r| {
                let recursive = r.coin();
                With {
                    recursive,
                    tables: r.list(1, 2, |r| CommonTable {
                        name: r.name(),
                        columns: r.list(0, 2, Self::name),
                        query: Box::new(Query::of(r.select(d - 1))),
                        // CYCLE requires WITH RECURSIVE.
                        cycle: if recursive { r.list(0, 2, Self::name) } else { Vec::new() },
                    }),
                }
            });
            query.order_by = self.order(0, d - 1);
            query.limit = self.maybe(Self::limit);
            query.locking = self.maybe(|r| Locking {
                strength: r.pick(&[LockStrength::Share, LockStrength::Update]),
                wait: r.pick(&[
                    LockWait::Default,
                    LockWait::NoWait,
                    LockWait::Seconds(3),
                    LockWait::SkipLocked,
                ]),
            });
        }
        Box::new(query)
    }

    fn limit(&mut self) -> Limit {
        let number = |n: usize| Expr::Literal(Literal::fixed(Value::Int(n as i64)));
        let count = number(self.below(9));
        Limit { count, offset: self.maybe(|_| number(3)), with_ties: self.below(3) == 0 }
    }

    fn select(&mut self, d: usize) -> QueryBody {
        let sub = d.saturating_sub(1);
        let items = self.list(1, 2, |r| match r.below(6) {
            0 => SelectItem::TableWildcard(r.object()),
            _ => SelectItem::Expr { expr: r.expr(sub), alias: Some(r.name()), text: String::new() },
        });
        let mut select = Select::of(items);
        if self.coin() {
            select.from = Some(self.table(d));
            select.filter = self.maybe(|r| r.expr(sub));
            select.group_by = self.order(0, sub);
            select.with_rollup = !select.group_by.is_empty() && self.coin();
            select.having = self.maybe(|r| r.expr(sub));
        }
        let options = &mut select.options;
        (options.distinct, options.straight_join) = (self.coin(), self.below(4) == 0);
        QueryBody::Select(Box::new(select))
    }

    fn table(&mut self, d: usize) -> TableRef {
        match self.below(4) {
            0 if d > 0 => TableRef::Derived {
                query: Box::new(Query::of(self.select(d - 1))),
                alias: self.name(),
                columns: Vec::new(),
            },
            1 if d > 0 => {
                let condition = match self.below(2) {
                    0 => JoinCondition::Using(self.list(1, 2, Self::name)),
                    _ => JoinCondition::On(self.expr(d - 1)),
                };
                let kind = self.pick(&[JoinKind::Inner, JoinKind::Left]);
                let (left, right) = (self.table(d - 1), self.table(d - 1));
                TableRef::Join(Box::new(Join { kind, left, right, condition }))
            }
            _ => {
                let hint = |r: &mut Self| IndexHint {
                    kind: r.pick(&[IndexHintKind::Use, IndexHintKind::Force, IndexHintKind::Ignore]),
                    scope: r.pick(&[IndexHintScope::All, IndexHintScope::Join, IndexHintScope::OrderBy]),
                    names: r.list(1, 2, Self::name),
                };
                let (name, alias) = (self.object(), self.maybe(Self::name));
                let index_hints = self.list(0, 1, hint);
                TableRef::Table(Box::new(TableFactor { name, alias, index_hints, partitions: Vec::new() }))
            }
        }
    }
}

/// Returns the number of an expression's kind. A new kind of node must get a number here and a case in
/// [`Random::expr`].
fn kind(expr: &Expr) -> usize {
    match expr {
        Expr::Literal(_) => 0,
        Expr::Param(_) => 1,
        Expr::Column(_) => 2,
        Expr::UserVariable(_) => 3,
        Expr::Assign { .. } => 4,
        Expr::SystemVariable { .. } => 5,
        Expr::Unary { .. } => 6,
        Expr::Binary { .. } => 7,
        Expr::Is { .. } => 8,
        Expr::Between { .. } => 9,
        Expr::InList { .. } => 10,
        Expr::InQuery { .. } => 11,
        Expr::Like { .. } => 12,
        Expr::Regexp { .. } => 13,
        Expr::Case { .. } => 14,
        Expr::Cast { .. } => 15,
        Expr::ConvertUsing { .. } => 16,
        Expr::Collate { .. } => 17,
        Expr::DateArith { .. } => 18,
        Expr::Extract { .. } => 19,
        Expr::TimestampDiff { .. } => 20,
        Expr::Trim { .. } => 21,
        Expr::Sequence(_) => 22,
        Expr::CharFunction { .. } => 23,
        Expr::Function { .. } => 24,
        Expr::Aggregate(_) => 25,
        Expr::Window(_) => 26,
        Expr::Row(_) => 27,
        Expr::Subquery(_) => 28,
        Expr::Exists(_) => 29,
        Expr::Quantified { .. } => 30,
        Expr::Default(_) => 31,
        Expr::Match { .. } => 32,
        Expr::Values(_) => 33,
        Expr::StoredFunction { .. } => 34,
    }
}

const KINDS: usize = 35;

/// Parses a text as an expression.
fn parsed(text: &str, collation: Collation, mode: ParseMode) -> Result<Expr, String> {
    let options = ParseOptions { collation, mode, ..ParseOptions::default() };
    let parsed = parse(format!("SELECT {text}").as_bytes(), &options).map_err(|error| error.to_string())?;
    let Statement::Query(mut query) = parsed.statement else { return Err("no query".into()) };
    query.rename(&mut WithoutTexts);
    match query.body {
        QueryBody::Select(select) => match select.items.into_iter().next() {
            Some(SelectItem::Expr { expr, .. }) => Ok(expr),
            _ => Err("no expression".into()),
        },
        _ => Err("no SELECT".into()),
    }
}

struct WithoutTexts;

impl Rename for WithoutTexts {
    fn select(&mut self, select: &mut Select, _is_operand: bool) {
        for item in &mut select.items {
            if let SelectItem::Expr { text, .. } = item {
                text.clear();
            }
        }
    }
}

/// Formats an expression without the numbers of literals and parameters, which depend on the whole statement.
fn shape(expr: &Expr) -> String {
    let mut text = format!("{expr:?}");
    for (before, after) in [("ordinal: Some(", ")"), ("Param(", ")")] {
        let mut from = 0;
        while let Some(at) = text[from..].find(before).map(|at| from + at + before.len()) {
            let end = at + text[at..].find(after).expect("it ends");
            text.replace_range(at..end, "");
            from = at;
        }
    }
    text.replace("ordinal: Some()", "ordinal: None")
}

#[test]
fn every_expression_reads_as_it_was_printed() {
    let one = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = one.map_or(0..EXPRESSIONS, |seed| seed..seed + 1);
    let styles = [
        (Style::default(), ParseMode::default()),
        (Style { quote: '"', ..Style::default() }, ParseMode { ansi_quotes: true, ..ParseMode::default() }),
    ];
    let mut seen = [0u32; KINDS];
    let mut failed = Vec::new();
    for seed in seeds {
        let mut random = Random(seed);
        let mut expr = random.expr(1 + (seed % 4) as usize);
        let (style, mode) = styles[(seed / 4 % 2) as usize];
        let text = expr_in(&expr, style);
        let wrong = match parsed(&text, style.collation, mode) {
            Ok(read) if shape(&read) == shape(&expr) => None,
            Ok(read) => Some(format!("{read:?}")),
            Err(error) => Some(error),
        };
        failed.extend(wrong.map(|wrong| (text.len(), format!("seed {seed}: {text}\n{expr:?}\n{wrong}"))));
        expr.each_part(&mut |part| seen[kind(part)] += 1);
    }
    // The shortest failures are the most informative.
    failed.sort();
    failed.truncate(5);
    assert!(failed.is_empty(), "{}", failed.iter().map(|(_, text)| &**text).collect::<Vec<_>>().join("\n\n"));
    let missing = seen.iter().position(|n| *n == 0).filter(|_| one.is_none());
    assert_eq!(missing, None, "a kind of node was not made");
}

/// Strings of another character set than the style's get introducers.
#[test]
fn strings_keep_their_character_set() {
    for collation in [Collation::UTF8MB3_GENERAL_CI, Collation::BINARY, Charset::Latin1.default_collation()] {
        for seed in 0..2_000 {
            let value = match seed % 2 {
                0 => Value::text(Random(seed).text()),
                _ => Random(seed).introduced(),
            };
            // A plain string from a client with another character set has the collation of that set.
            let kind = if seed % 2 == 0 { LiteralKind::Plain } else { LiteralKind::Introduced };
            let expr = Expr::Literal(Literal { value: value.clone(), kind, ordinal: None });
            let text = expr_in(&expr, Style::of(collation));
            match parsed(&text, collation, ParseMode::default()) {
                Ok(Expr::Literal(read)) => assert_eq!(read.value, value, "seed {seed}: {text}"),
                other => panic!("seed {seed}: {text}: {other:?}"),
            }
        }
    }
}

/// Texts that are printed in another form than written: in MariaDB's form, which does not change when it is
/// printed again.
#[test]
fn printed_forms() {
    for (written, printed) in [
        ("weight_string(b as binary(3))", "weight_string(cast(`b` as char(3) charset binary))"),
        (
            "weight_string(b as char(3) level 1 desc reverse)",
            "weight_string(`b` as char(3) level 1 desc reverse)",
        ),
        ("get_format(timestamp,'ISO')", "get_format(DATETIME, 'ISO')"),
        ("_binary'a'", "_binary'a'"),
        ("_binary x'ff00'", "_binary 0xff00"),
        ("_latin1 x'e9'", "_latin1 0xe9"),
        ("N'abc'", "_utf8mb3'abc'"),
        ("b'101'", "0x05"),
        ("x'FF'", "X'ff'"),
        ("5.", "5."),
        ("cast(b as char collate utf8mb4_unicode_ci)", "cast(`b` as char collate utf8mb4_unicode_ci)"),
        ("cast(a as decimal)", "cast(`a` as decimal(10,0))"),
        ("binary a", "cast(`a` as char charset binary)"),
        ("a not regexp 'x'", "!(`a` regexp 'x')"),
        ("not a like 'x'", "`a`  not like 'x'"),
        ("not a is true", "!(`a` is true)"),
        ("a is not unknown", "`a` is not null"),
        ("a in (1)", "`a` = 1"),
        ("a not in (select 1)", "!(`a` in (select 1))"),
        ("a in ((select 1),2)", "`a` in ((select 1),2)"),
        ("a in ((select 1))", "`a` in (select 1)"),
        ("a in ((select 1) union select 2)", "`a` in ((select 1) union select 2)"),
        ("(a like b) not like c", "(`a` like `b`)  not like `c`"),
        ("a like b like c", "`a` like `b` like `c`"),
        ("count(*)", "count(0)"),
        (
            "percentile_cont(0.5) within group (order by a) over (partition by b)",
            "percentile_cont(0.5) within group ( order by `a`) over ( partition by `b`)",
        ),
        ("(select a from t for update skip locked)", "(select `a` from `t` for update skip locked)"),
        ("mod(a+1,b)", "(`a` + 1) MOD `b`"),
        ("a and b and c and d and e", "`a` and `b` and `c` and `d` and `e`"),
    ] {
        let collation = Style::default().collation;
        let read = |text: &str| parsed(text, collation, ParseMode::default()).expect(text);
        assert_eq!(expr_in(&read(written), Style::default()), printed);
        assert_eq!(expr_in(&read(printed), Style::default()), printed, "read again");
    }
}
