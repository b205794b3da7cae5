//! Expressions, parsed by precedence climbing.
//!
//! Precedences, lowest first: OR, XOR, AND, NOT, comparisons and IS (left associative), predicates (IN,
//! BETWEEN, LIKE, REGEXP), `|`, `&`, shifts, `+ -`, `* / % DIV MOD`, `^`, `||` as concat, unary operators,
//! COLLATE. They were determined from values of expressions in MariaDB 10.11. Three of its peculiarities are
//! reproduced: the upper end of BETWEEN includes further predicates (`a BETWEEN b AND c LIKE d`), the right
//! side of LIKE and REGEXP includes further negated ones (`a LIKE b NOT LIKE c`), and NOT cannot be an
//! operand of an operator of higher precedence (`a = NOT b` is an error).

use cohort_types::{Charset, SqlError, SqlResult, Str, Value};

use super::Parser;
use crate::ast::{
    BinaryOp, ColumnRef, DataType, DeclaredKind, Expr, IntervalUnit, IsTest, Literal, LiteralKind,
    Quantifier, UnaryOp, VariableScope,
};
use crate::lexer::Kind;
use crate::literal;

const OR: u8 = 1;
const XOR: u8 = 2;
const AND: u8 = 3;
const NOT: u8 = 4;
const COMPARISON: u8 = 5;
const PREDICATE: u8 = 6;
const BIT_OR: u8 = 7;
const BIT_AND: u8 = 8;
const SHIFT: u8 = 9;
const SUM: u8 = 10;
const PRODUCT: u8 = 11;
const BIT_XOR: u8 = 12;
const CONCAT: u8 = 13;
const UNARY: u8 = 14;
const COLLATE: u8 = 15;

/// An operator after its left operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Infix {
    Binary(BinaryOp, u8),
    /// `||` with PIPES_AS_CONCAT.
    Concat,
    Is,
    Collate,
    /// IN, BETWEEN, LIKE, REGEXP or SOUNDS LIKE, with an optional NOT before it.
    Predicate {
        negated: bool,
    },
}

impl Infix {
    fn power(self) -> u8 {
        match self {
            Infix::Binary(_, power) => power,
            Infix::Concat => CONCAT,
            Infix::Is => COMPARISON,
            Infix::Collate => COLLATE,
            Infix::Predicate { .. } => PREDICATE,
        }
    }
}

impl Parser<'_> {
    /// Parses any expression.
    pub(super) fn expr(&mut self) -> SqlResult<Expr> {
        self.operand(0)
    }

    pub(super) fn boxed_expr(&mut self) -> SqlResult<Box<Expr>> {
        self.expr().map(Box::new)
    }

    /// Parses an expression of precedence `|` or higher: the operands of BETWEEN, INTERVAL and similar.
    pub(super) fn bit_expr(&mut self) -> SqlResult<Expr> {
        self.operand(BIT_OR)
    }

    /// Parses one operand without a COLLATE after it, as for the DEFAULT of a column.
    pub(super) fn primary_expr(&mut self) -> SqlResult<Expr> {
        self.operand(COLLATE + 1)
    }

    /// Parses an expression of operators with at least this precedence.
    fn operand(&mut self, power: u8) -> SqlResult<Expr> {
        self.enter(|p| {
            let outer = std::mem::replace(&mut p.height, 0);
            let result = p.climb(power);
            p.height = p.height.max(outer);
            result
        })
    }

    fn climb(&mut self, power: u8) -> SqlResult<Expr> {
        // An operand on the left limits the precedence of operators after it: `a IS NULL + 1` is an error.
        let loosest = if self.is("NOT") && !self.options.mode.high_not_precedence { NOT } else { u8::MAX };
        let left = self.prefix(power)?;
        self.grow()?;
        self.operators(left, power, loosest)
    }

    /// Parses the operators after an operand: at least of precedence `power`, and not above `loosest`, the
    /// precedence of the left operand.
    fn operators(&mut self, mut left: Expr, power: u8, mut loosest: u8) -> SqlResult<Expr> {
        while let Some(infix) = self.infix() {
            if infix.power() < power || infix.power() > loosest {
                break;
            }
            left = self.infix_rest(left, infix)?;
            loosest = infix.power();
            self.grow()?;
        }
        if power <= PREDICATE && self.is("NOT") {
            // Only a predicate could follow NOT, and none does. The error is after the NOT.
            return Err(self.error_at(self.at + 1));
        }
        Ok(left)
    }

    fn infix(&self) -> Option<Infix> {
        use BinaryOp as Op;
        let (op, power) = match self.kind() {
            Kind::Equal => (Op::Equal, COMPARISON),
            Kind::NullSafeEqual => (Op::NullSafeEqual, COMPARISON),
            Kind::NotEqual => (Op::NotEqual, COMPARISON),
            Kind::Less => (Op::Less, COMPARISON),
            Kind::LessEqual => (Op::LessEqual, COMPARISON),
            Kind::Greater => (Op::Greater, COMPARISON),
            Kind::GreaterEqual => (Op::GreaterEqual, COMPARISON),
            Kind::Pipe => (Op::BitOr, BIT_OR),
            Kind::Ampersand => (Op::BitAnd, BIT_AND),
            Kind::ShiftLeft => (Op::ShiftLeft, SHIFT),
            Kind::ShiftRight => (Op::ShiftRight, SHIFT),
            Kind::Plus => (Op::Add, SUM),
            Kind::Minus => (Op::Subtract, SUM),
            Kind::Star => (Op::Multiply, PRODUCT),
            Kind::Slash => (Op::Divide, PRODUCT),
            Kind::Percent => (Op::Modulo, PRODUCT),
            Kind::Caret => (Op::BitXor, BIT_XOR),
            Kind::AmpersandAmpersand => (Op::And, AND),
            Kind::PipePipe if self.options.mode.pipes_as_concat => return Some(Infix::Concat),
            Kind::PipePipe => (Op::Or, OR),
            Kind::Word => return self.word_infix(),
            _ => return None,
        };
        Some(Infix::Binary(op, power))
    }

    fn word_infix(&self) -> Option<Infix> {
        use BinaryOp as Op;
        let bytes = self.bytes(self.token());
        let word = |word: &str| bytes.eq_ignore_ascii_case(word.as_bytes());
        let (op, power) = match bytes.len() {
            2 if word("OR") => (Op::Or, OR),
            2 if word("IS") => return Some(Infix::Is),
            2 if word("IN") => return Some(Infix::Predicate { negated: false }),
            3 if word("AND") => (Op::And, AND),
            3 if word("XOR") => (Op::Xor, XOR),
            3 if word("DIV") => (Op::IntDivide, PRODUCT),
            3 if word("MOD") => (Op::Modulo, PRODUCT),
            3 if word("NOT") => {
                let next = self.peek(1);
                let next = if next.kind == Kind::Word { self.bytes(next) } else { b"" };
                let predicates = ["IN", "BETWEEN", "LIKE", "REGEXP", "RLIKE"];
                let hit = predicates.iter().any(|p| next.eq_ignore_ascii_case(p.as_bytes()));
                return hit.then_some(Infix::Predicate { negated: true });
            }
            4 if word("LIKE") => return Some(Infix::Predicate { negated: false }),
            5 if word("RLIKE") => return Some(Infix::Predicate { negated: false }),
            6 if word("REGEXP") => return Some(Infix::Predicate { negated: false }),
            6 if word("SOUNDS") => return Some(Infix::Predicate { negated: false }),
            7 if word("BETWEEN") => return Some(Infix::Predicate { negated: false }),
            7 if word("COLLATE") => return Some(Infix::Collate),
            _ => return None,
        };
        Some(Infix::Binary(op, power))
    }

    /// Parses the rest of an operation with `left` as its left operand. The parser is at the operator.
    fn infix_rest(&mut self, left: Expr, infix: Infix) -> SqlResult<Expr> {
        match infix {
            Infix::Binary(op @ (BinaryOp::And | BinaryOp::Or), power) => self.chain(left, op, power),
            Infix::Binary(op, power) => {
                self.advance();
                if matches!(op, BinaryOp::Add | BinaryOp::Subtract) && self.at_interval() {
                    let (amount, unit) = self.interval()?;
                    let subtract = op == BinaryOp::Subtract;
                    return Ok(date_arith(left, subtract, amount, unit));
                }
                if power == COMPARISON
                    && op != BinaryOp::NullSafeEqual
                    && self.peek(1).kind == Kind::LeftParen
                    && let Some(quantifier) = self.quantifier()
                {
                    return self.quantified(left, op, quantifier);
                }
                let right = self.operand(power + 1)?;
                Ok(binary(op, left, right))
            }
            Infix::Concat => {
                self.advance();
                let right = self.operand(CONCAT + 1)?;
                let name = if self.options.mode.oracle { "concat_operator_oracle" } else { "concat" };
                Ok(Expr::Function { name: name.into(), args: vec![left, right] })
            }
            Infix::Is => self.is_rest(left),
            Infix::Collate => {
                self.advance();
                let collation = self.charset_word()?;
                Ok(Expr::Collate { expr: Box::new(left), collation })
            }
            Infix::Predicate { negated } => {
                if negated {
                    self.advance();
                }
                self.predicate(left, negated)
            }
        }
    }

    /// Parses `a AND b AND c ...`, or the equivalent with OR, as a balanced tree. The order of evaluation is
    /// unchanged and the height stays low.
    fn chain(&mut self, left: Expr, op: BinaryOp, power: u8) -> SqlResult<Expr> {
        let mut operands = vec![left];
        while self.infix() == Some(Infix::Binary(op, power)) {
            self.advance();
            operands.push(self.operand(power + 1)?);
        }
        self.height += operands.len().ilog2();
        Ok(balance(op, operands))
    }

    fn quantifier(&mut self) -> Option<Quantifier> {
        if self.is_any(&["ANY", "SOME"]) {
            Some(Quantifier::Any)
        } else if self.is("ALL") {
            Some(Quantifier::All)
        } else {
            None
        }
    }

    fn quantified(&mut self, left: Expr, op: BinaryOp, quantifier: Quantifier) -> SqlResult<Expr> {
        self.advance();
        self.expect(Kind::LeftParen)?;
        let query = Box::new(self.inner_query()?);
        self.expect(Kind::RightParen)?;
        Ok(Expr::Quantified { expr: Box::new(left), op, quantifier, query })
    }

    fn is_rest(&mut self, left: Expr) -> SqlResult<Expr> {
        self.advance();
        let negated = self.eat_word("NOT");
        let test = match () {
            () if self.eat_word("NULL") => IsTest::Null,
            () if self.eat_word("TRUE") => IsTest::True,
            () if self.eat_word("FALSE") => IsTest::False,
            () if self.eat_word("UNKNOWN") => IsTest::Unknown,
            () => return Err(self.error()),
        };
        Ok(Expr::Is { expr: Box::new(left), negated, test })
    }

    fn predicate(&mut self, left: Expr, negated: bool) -> SqlResult<Expr> {
        let expr = Box::new(left);
        if self.eat_word("IN") {
            return self.in_rest(expr, negated);
        }
        if self.eat_word("BETWEEN") {
            let low = Box::new(self.operand(PREDICATE)?);
            self.expect_word("AND")?;
            let high = Box::new(self.operand(PREDICATE)?);
            return Ok(Expr::Between { expr, negated, low, high });
        }
        if self.eat_word("LIKE") {
            let pattern = Box::new(self.pattern()?);
            let escape = if self.eat_word("ESCAPE") { Some(Box::new(self.bit_expr()?)) } else { None };
            return Ok(Expr::Like { expr, negated, pattern, escape });
        }
        if self.eat_any(&["REGEXP", "RLIKE"]) {
            let pattern = Box::new(self.pattern()?);
            return Ok(Expr::Regexp { expr, negated, pattern });
        }
        self.expect_words(&["SOUNDS", "LIKE"])?;
        let right = self.bit_expr()?;
        let soundex = |e| Expr::Function { name: "soundex".into(), args: vec![e] };
        Ok(binary(BinaryOp::Equal, soundex(*expr), soundex(right)))
    }

    fn in_rest(&mut self, expr: Box<Expr>, negated: bool) -> SqlResult<Expr> {
        self.expect(Kind::LeftParen)?;
        if self.query_word_at(0) {
            let query = Box::new(self.inner_query()?);
            self.expect(Kind::RightParen)?;
            return Ok(Expr::InQuery { expr, negated, query });
        }
        // A query in parentheses can be the complete operand, the first part of a query, or a value of the
        // list.
        let is_query = self.kind() == Kind::LeftParen && self.query_follows(0);
        let mut list = vec![self.expr()?];
        if let (true, [Expr::Subquery(_)]) = (is_query, &list[..])
            && self.kind() != Kind::Comma
        {
            let Some(Expr::Subquery(mut query)) = list.pop() else { unreachable!("it was looked at") };
            if self.kind() != Kind::RightParen {
                query = Box::new(self.continue_inner_query(*query)?);
            }
            self.expect(Kind::RightParen)?;
            return Ok(Expr::InQuery { expr, negated, query });
        }
        while self.eat(Kind::Comma) {
            list.push(self.expr()?);
        }
        self.expect(Kind::RightParen)?;
        Ok(Expr::InList { expr, negated, list })
    }

    /// Parses the right side of LIKE and REGEXP.
    fn pattern(&mut self) -> SqlResult<Expr> {
        self.enter(|p| {
            let mut right = p.bit_expr()?;
            while let Some(infix @ Infix::Predicate { negated: true }) = p.infix() {
                right = p.infix_rest(right, infix)?;
                p.grow()?;
            }
            Ok(right)
        })
    }

    // ---- operands

    fn prefix(&mut self, power: u8) -> SqlResult<Expr> {
        match self.kind() {
            Kind::Minus | Kind::Tilde | Kind::Bang | Kind::Plus => self.unary(),
            Kind::LeftParen => self.parenthesised(),
            Kind::Word => self.word_operand(power),
            Kind::Quoted | Kind::Dot => self.column_or_call(),
            Kind::Param if !self.is_in_body() => {
                self.advance();
                self.params += 1;
                Ok(Expr::Param(self.params - 1))
            }
            Kind::Null => {
                self.advance();
                Ok(Expr::Literal(Literal::fixed(Value::Null)))
            }
            Kind::AtName | Kind::At => self.user_variable_operand(),
            Kind::AtAt => self.system_variable(),
            Kind::LeftBrace => self.odbc_escape(),
            kind if kind.is_literal() => self.literal(),
            _ => Err(self.error()),
        }
    }

    /// Parses a sequence of unary operators and their operand.
    fn unary(&mut self) -> SqlResult<Expr> {
        let mut ops = Vec::new();
        let mut signs = 0;
        loop {
            match self.kind() {
                Kind::Minus => ops.push(UnaryOp::Negate),
                Kind::Tilde => ops.push(UnaryOp::BitNot),
                Kind::Bang => ops.push(UnaryOp::Not),
                Kind::Plus => {}
                _ => break,
            }
            signs += 1;
            self.advance();
        }
        if self.at_interval() {
            // `-INTERVAL 1 DAY + x` is `x - INTERVAL 1 DAY`. An interval has at most one sign.
            return match ops.as_slice() {
                [] if signs == 1 => self.leading_interval(false),
                [UnaryOp::Negate] if signs == 1 => self.leading_interval(true),
                _ => {
                    self.advance();
                    Err(self.error())
                }
            };
        }
        let operand = self.operand(UNARY)?;
        self.grow_by(u32::try_from(ops.len()).unwrap_or(u32::MAX))?;
        Ok(ops.into_iter().rev().fold(operand, |expr, op| Expr::Unary { op, expr: Box::new(expr) }))
    }

    fn word_operand(&mut self, power: u8) -> SqlResult<Expr> {
        let token = self.token();
        let bytes = self.bytes(token);
        if bytes[0] == b'_' && self.peek(1).kind.is_literal() {
            return self.introduced_text();
        }
        let word = |word: &str| bytes.eq_ignore_ascii_case(word.as_bytes());
        match bytes[0].to_ascii_uppercase() {
            b'N' if word("NULL") => {
                self.advance();
                Ok(Expr::Literal(Literal::fixed(Value::Null)))
            }
            b'N' if word("NOT") => self.not(power),
            b'T' | b'F' if word("TRUE") || word("FALSE") => {
                self.advance();
                let value = Value::Int(i64::from(bytes.len() == 4));
                Ok(Expr::Literal(Literal { value, kind: LiteralKind::Boolean, ordinal: None }))
            }
            b'C' if word("CASE") => self.case(),
            b'M' if word("MATCH") => self.match_against(),
            b'E' if word("EXISTS") && self.peek(1).kind == Kind::LeftParen => {
                self.advance();
                self.advance();
                let query = Box::new(self.inner_query()?);
                self.expect(Kind::RightParen)?;
                Ok(Expr::Exists(query))
            }
            b'B' if word("BINARY") => {
                self.advance();
                let expr = Box::new(self.operand(UNARY)?);
                let to = Box::new(DataType::of(DeclaredKind::Column(cohort_types::TypeKind::Binary)));
                Ok(Expr::Cast { expr, to })
            }
            b'I' if self.at_interval() => self.leading_interval(false),
            b'D' | b'T' if self.peek(1).kind == Kind::Text => self.temporal_literal(),
            b'N' | b'P' if self.is_word_at(1, "VALUE") && self.is_word_at(2, "FOR") => {
                Ok(self.sequence_value()?.expect("its words were looked at"))
            }
            _ => self.column_or_call(),
        }
    }

    fn not(&mut self, power: u8) -> SqlResult<Expr> {
        let high = self.options.mode.high_not_precedence;
        if power > NOT && !high {
            return Err(self.error());
        }
        let mut count = 0;
        while self.eat_word("NOT") {
            count += 1;
        }
        let operand = self.operand(if high { UNARY } else { NOT })?;
        // Two negations convert to a truth value; further pairs have no effect.
        let kept = if count > 2 { 2 - count % 2 } else { count };
        self.grow_by(kept)?;
        Ok((0..kept).fold(operand, |expr, _| Expr::Unary { op: UnaryOp::Not, expr: Box::new(expr) }))
    }

    /// Parses an expression in any number of parentheses. A loop handles the outer levels: it first parses
    /// the innermost expression, then the rest of each level after its closing parenthesis.
    fn parenthesised(&mut self) -> SqlResult<Expr> {
        let mut levels = 0;
        while self.kind() == Kind::LeftParen && !self.query_word_at(1) {
            self.advance();
            levels += 1;
        }
        let mut expr = if self.kind() == Kind::LeftParen {
            self.advance();
            let query = Box::new(self.inner_query()?);
            self.expect(Kind::RightParen)?;
            Expr::Subquery(query)
        } else {
            levels -= 1;
            let first = self.expr()?;
            self.close_parenthesis(first)?
        };
        for _ in 0..levels {
            let first = self.operators(expr, 0, u8::MAX)?;
            expr = self.close_parenthesis(first)?;
        }
        Ok(expr)
    }

    /// Parses the rest after the first expression in parentheses, up to and including the closing one.
    fn close_parenthesis(&mut self, first: Expr) -> SqlResult<Expr> {
        let first = match first {
            Expr::Subquery(query) if self.is_any(&["UNION", "EXCEPT", "INTERSECT", "ORDER", "LIMIT"]) => {
                Expr::Subquery(Box::new(self.continue_inner_query(*query)?))
            }
            first => first,
        };
        if self.kind() == Kind::Comma {
            let mut items = vec![first];
            while self.eat(Kind::Comma) {
                items.push(self.expr()?);
            }
            self.expect(Kind::RightParen)?;
            return Ok(Expr::Row(items));
        }
        self.expect(Kind::RightParen)?;
        Ok(first)
    }

    fn case(&mut self) -> SqlResult<Expr> {
        self.advance();
        let operand = if self.is("WHEN") { None } else { Some(self.boxed_expr()?) };
        let mut branches = Vec::new();
        while self.eat_word("WHEN") {
            let condition = self.expr()?;
            self.expect_word("THEN")?;
            branches.push((condition, self.expr()?));
        }
        if branches.is_empty() {
            return Err(self.error());
        }
        let otherwise = if self.eat_word("ELSE") { Some(self.boxed_expr()?) } else { None };
        self.expect_word("END")?;
        Ok(Expr::Case { operand, branches, otherwise })
    }

    fn column_or_call(&mut self) -> SqlResult<Expr> {
        if self.kind() == Kind::Word && self.peek(1).kind == Kind::LeftParen {
            return self.call();
        }
        if let Some(expr) = self.call_without_parens()? {
            return Ok(expr);
        }
        let from = self.at;
        // A quoted name is never that of a native function.
        let is_quoted = self.kind() == Kind::Quoted;
        let column = self.column_ref()?;
        if self.kind() == Kind::LeftParen && (column.table.is_some() || is_quoted) {
            if let (None, Some(schema)) = (&column.db, column.table.as_deref())
                && let Some(call) = self.call_of_schema(schema, &column.name)?
            {
                return Ok(call);
            }
            if column.db.is_none() {
                let (db, name) = (column.table, column.name);
                return Ok(Expr::StoredFunction { db, name, args: self.call_args()? });
            }
            return Err(self.error());
        }
        Ok(self.variable_use(&column, from)?.unwrap_or(Expr::Column(column)))
    }

    /// Parses `[[db.]table.]column` or `.table.column`.
    pub(super) fn column_ref(&mut self) -> SqlResult<ColumnRef> {
        self.eat(Kind::Dot);
        let mut names = vec![self.name()?];
        while names.len() < 3 && self.kind() == Kind::Dot && self.peek(1).kind != Kind::Star {
            self.advance();
            names.push(self.name_after_dot()?);
        }
        let name = names.pop().expect("one name was read");
        let table = names.pop();
        Ok(ColumnRef { db: names.pop(), table, name })
    }

    // ---- literals

    /// Parses a literal, which may become a parameter of a cached plan.
    fn literal(&mut self) -> SqlResult<Expr> {
        let token = self.token();
        if matches!(token.kind, Kind::Text | Kind::NationalText) && self.peek(1).kind == Kind::Text {
            return self.joined_text();
        }
        let Some(value) = literal::literal_value(self.sql, token, self.options) else {
            let text = String::from_utf8_lossy(self.bytes(token));
            return Err(SqlError::illegal_double(&text));
        };
        let kind = match token.kind {
            Kind::Hex if self.bytes(token).first() == Some(&b'0') => LiteralKind::Hex,
            Kind::Hex => LiteralKind::HexText,
            Kind::Bits => LiteralKind::Bit,
            Kind::NationalText if matches!(value, Value::Str(_)) => LiteralKind::Introduced,
            _ => LiteralKind::Plain,
        };
        let ordinal = Some(self.tokens[self.at].ordinal);
        self.literal_params += 1;
        self.advance();
        Ok(Expr::Literal(Literal { value, kind, ordinal }))
    }

    /// Parses adjacent strings: `'a' 'b'` is 'ab'.
    fn joined_text(&mut self) -> SqlResult<Expr> {
        let token = self.advance();
        let (mut bytes, collation) = match literal::literal_value(self.sql, token, self.options) {
            Some(Value::Str(text)) => (text.bytes, text.collation),
            Some(Value::Null) => (Vec::new(), self.options.collation),
            _ => return Err(self.error()),
        };
        bytes.extend(self.text_bytes()?);
        Ok(Expr::Literal(Literal::fixed(literal::string(bytes, collation, self.options.mode))))
    }

    /// Parses `_charset'..'`.
    fn introduced_text(&mut self) -> SqlResult<Expr> {
        let name = String::from_utf8_lossy(&self.bytes(self.token())[1..]).into_owned();
        let token = self.peek(1);
        if !matches!(token.kind, Kind::Text | Kind::Hex | Kind::Bits) {
            return Err(self.error());
        }
        let Some(charset) = Charset::by_name(&name) else {
            if name.eq_ignore_ascii_case("tis620") {
                return Err(self.unsupported(&format!("character set {name}")));
            }
            // An ordinary name. The string after it may be its alias.
            return self.column_or_call();
        };
        self.advance();
        let mut bytes = if token.kind == Kind::Text {
            let mut sent = Vec::new();
            self.options.client.encode(&self.text_bytes()?, &mut sent);
            sent
        } else {
            self.advance();
            match literal::literal_value(self.sql, token, self.options) {
                Some(Value::Str(text)) => text.bytes,
                _ => return Err(self.error()),
            }
        };
        // An incomplete first unit is padded with zeros on the left.
        let missing = bytes.len().next_multiple_of(charset.mbminlen() as usize) - bytes.len();
        bytes.splice(..0, std::iter::repeat_n(0, missing));
        let mut decoded = Vec::with_capacity(bytes.len());
        if charset.decode(&bytes, &mut decoded).is_err() {
            let shown: String = bytes.iter().take(6).map(|b| format!("{b:02X}")).collect();
            return Err(SqlError::invalid_characters(&name, &shown));
        }
        let collation = charset.default_collation();
        let value = Value::Str(Str { bytes: decoded, collation });
        Ok(Expr::Literal(Literal { value, kind: LiteralKind::Introduced, ordinal: None }))
    }

    /// Parses DATE '..', TIME '..' or TIMESTAMP '..'.
    fn temporal_literal(&mut self) -> SqlResult<Expr> {
        let kind = match () {
            () if self.is("DATE") => LiteralKind::Date,
            () if self.is("TIME") => LiteralKind::Time,
            () if self.is("TIMESTAMP") => LiteralKind::Timestamp,
            () => return self.column_or_call(),
        };
        self.advance();
        let text = self.text()?;
        Ok(Expr::Literal(Literal { value: Value::text(text), kind, ordinal: None }))
    }

    /// Parses `{d '..'}`, `{t '..'}`, `{ts '..'}` or `{fn expr}`.
    fn odbc_escape(&mut self) -> SqlResult<Expr> {
        self.advance();
        let kind = match self.upper_word()?.as_str() {
            "D" => Some(LiteralKind::Date),
            "T" => Some(LiteralKind::Time),
            "TS" => Some(LiteralKind::Timestamp),
            _ => None,
        };
        let expr = match kind {
            Some(kind) if self.kind() == Kind::Text => {
                let value = Value::text(self.text()?);
                Expr::Literal(Literal { value, kind, ordinal: None })
            }
            _ => self.expr()?,
        };
        self.expect(Kind::RightBrace)?;
        Ok(expr)
    }

    // ---- variables

    /// Parses `@name`, `@'name'` or `` @`name` ``.
    pub(super) fn user_variable(&mut self) -> SqlResult<String> {
        let token = self.token();
        match token.kind {
            Kind::AtName if token.end - token.start > 1 => {
                self.advance();
                Ok(String::from_utf8_lossy(&self.bytes(token)[1..]).into_owned())
            }
            Kind::At => {
                self.advance();
                match self.kind() {
                    Kind::Quoted => Ok(self.any_name()),
                    Kind::Text => {
                        let text = self.advance();
                        let bytes = literal::text(self.bytes(text), self.options.mode);
                        Ok(String::from_utf8_lossy(&bytes).into_owned())
                    }
                    _ => Err(self.error()),
                }
            }
            _ => Err(self.error()),
        }
    }

    fn user_variable_operand(&mut self) -> SqlResult<Expr> {
        let name = self.user_variable()?;
        if self.eat(Kind::Assign) {
            return Ok(Expr::Assign { name, value: self.boxed_expr()? });
        }
        Ok(Expr::UserVariable(name))
    }

    fn system_variable(&mut self) -> SqlResult<Expr> {
        self.advance();
        let (scope, name) = self.system_variable_name()?;
        Ok(Expr::SystemVariable { scope, name })
    }

    /// Parses the part after `@@`: `[GLOBAL. | SESSION. | LOCAL.] name [. name]`.
    pub(super) fn system_variable_name(&mut self) -> SqlResult<(VariableScope, String)> {
        let scope = if self.peek(1).kind != Kind::Dot {
            VariableScope::Unspecified
        } else if self.is("GLOBAL") {
            VariableScope::Global
        } else if self.is_any(&["SESSION", "LOCAL"]) {
            VariableScope::Session
        } else {
            VariableScope::Unspecified
        };
        if scope != VariableScope::Unspecified {
            self.advance();
            self.advance();
        }
        let mut name = self.name_after_dot()?;
        if self.eat(Kind::Dot) {
            name = format!("{name}.{}", self.name_after_dot()?);
        }
        name.make_ascii_lowercase();
        Ok((scope, name))
    }

    // ---- intervals

    /// Returns whether INTERVAL starts an interval here, instead of the function INTERVAL(n, a, b, ...).
    fn at_interval(&self) -> bool {
        if !self.is("INTERVAL") {
            return false;
        }
        if self.peek(1).kind != Kind::LeftParen || self.query_word_at(2) {
            return true;
        }
        let mut depth = 0;
        for token in &self.tokens[self.at + 1..] {
            match token.kind {
                Kind::LeftParen => depth += 1,
                Kind::RightParen if depth == 1 => return true,
                Kind::RightParen => depth -= 1,
                Kind::Comma if depth == 1 => return false,
                _ => {}
            }
        }
        true
    }

    /// Parses `INTERVAL amount unit + x`. After a minus sign the interval is subtracted.
    fn leading_interval(&mut self, subtract: bool) -> SqlResult<Expr> {
        let (amount, unit) = self.interval()?;
        self.expect(Kind::Plus)?;
        let expr = self.operand(SUM + 1)?;
        Ok(date_arith(expr, subtract, amount, unit))
    }

    /// Parses INTERVAL amount unit.
    pub(super) fn interval(&mut self) -> SqlResult<(Expr, IntervalUnit)> {
        self.expect_word("INTERVAL")?;
        let amount = self.expr()?;
        Ok((amount, self.interval_unit()?))
    }

    pub(super) fn interval_unit(&mut self) -> SqlResult<IntervalUnit> {
        use IntervalUnit as Unit;
        const UNITS: [(&str, IntervalUnit); 20] = [
            ("SECOND", Unit::Second),
            ("MINUTE", Unit::Minute),
            ("HOUR", Unit::Hour),
            ("DAY", Unit::Day),
            ("WEEK", Unit::Week),
            ("MONTH", Unit::Month),
            ("QUARTER", Unit::Quarter),
            ("YEAR", Unit::Year),
            ("MICROSECOND", Unit::Microsecond),
            ("SECOND_MICROSECOND", Unit::SecondMicrosecond),
            ("MINUTE_MICROSECOND", Unit::MinuteMicrosecond),
            ("MINUTE_SECOND", Unit::MinuteSecond),
            ("HOUR_MICROSECOND", Unit::HourMicrosecond),
            ("HOUR_SECOND", Unit::HourSecond),
            ("HOUR_MINUTE", Unit::HourMinute),
            ("DAY_MICROSECOND", Unit::DayMicrosecond),
            ("DAY_SECOND", Unit::DaySecond),
            ("DAY_MINUTE", Unit::DayMinute),
            ("DAY_HOUR", Unit::DayHour),
            ("YEAR_MONTH", Unit::YearMonth),
        ];
        let found =
            UNITS.iter().find(|(word, _)| self.is(word) || self.is_word_at(0, &format!("SQL_TSI_{word}")));
        match found {
            Some((_, unit)) => {
                self.advance();
                Ok(*unit)
            }
            None => Err(self.error()),
        }
    }
}

pub(super) fn date_arith(expr: Expr, subtract: bool, amount: Expr, unit: IntervalUnit) -> Expr {
    Expr::DateArith { expr: Box::new(expr), subtract, amount: Box::new(amount), unit }
}

fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    Expr::Binary { op, left: Box::new(left), right: Box::new(right) }
}

fn balance(op: BinaryOp, mut operands: Vec<Expr>) -> Expr {
    if operands.len() <= 2 {
        let right = operands.pop().expect("a chain has operands");
        return match operands.pop() {
            Some(left) => binary(op, left, right),
            None => right,
        };
    }
    let right = operands.split_off(operands.len().div_ceil(2));
    binary(op, balance(op, operands), balance(op, right))
}
