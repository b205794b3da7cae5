//! Calls: ordinary functions, functions with special syntax, aggregates, window functions.

use std::ops::RangeInclusive;

use cohort_types::{SqlError, SqlResult, TypeKind, Value};

use super::Parser;
use super::expr::date_arith;
use crate::ast::{
    Aggregate, AggregateKind, DataType, DeclaredKind, Expr, Literal, MatchMode, OrderItem, Over, TrimSide,
    WindowBound, WindowCall, WindowFrame, WindowSpec,
};
use crate::lexer::Kind;
use crate::parser::function_names::{aggregate_kind, canonical_name, is_reserved_function, window_arguments};

/// Words that call a function without parentheses.
const WITHOUT_PARENS: &[(&str, &str)] = &[
    ("CURRENT_DATE", "curdate"),
    ("CURRENT_ROLE", "current_role"),
    ("CURRENT_TIME", "curtime"),
    ("CURRENT_TIMESTAMP", "now"),
    ("CURRENT_USER", "current_user"),
    ("LOCALTIME", "now"),
    ("LOCALTIMESTAMP", "now"),
    ("UTC_DATE", "utc_date"),
    ("UTC_TIME", "utc_time"),
    ("UTC_TIMESTAMP", "utc_timestamp"),
];

/// Returns the function that a word calls without parentheses.
pub fn function_without_parens(word: &[u8]) -> Option<&'static str> {
    let known = WITHOUT_PARENS.iter().find(|(known, _)| word.eq_ignore_ascii_case(known.as_bytes()));
    known.map(|(_, name)| *name)
}

impl Parser<'_> {
    /// Parses a function that can be called without parentheses. Returns `None` if none follows.
    pub(super) fn call_without_parens(&mut self) -> SqlResult<Option<Expr>> {
        if self.kind() != Kind::Word || self.peek(1).kind == Kind::Dot {
            return Ok(None);
        }
        let Some(name) = function_without_parens(self.bytes(self.token())) else { return Ok(None) };
        self.advance();
        Ok(Some(function(name, Vec::new())))
    }

    /// Parses a call. The parser is at `name (`.
    pub(super) fn call(&mut self) -> SqlResult<Expr> {
        let token = self.advance();
        let name = String::from_utf8_lossy(self.bytes(token)).to_ascii_lowercase();
        let is_apart = !self.options.mode.ignore_space && token.end != self.token().start;
        if is_apart && super::words::is_bound_function(name.as_bytes()) {
            self.call_args()?;
            return Err(SqlError::unknown_native_function(&name));
        }
        if let Some(kind) = aggregate_kind(&name) {
            return self.aggregate(kind);
        }
        let is_oracle = self.options.mode.oracle;
        let name = if is_oracle { super::oracle::oracle_name(&name).to_owned() } else { name };
        let expr = match self.special_call(&name)? {
            Some(expr) => expr,
            None => {
                if super::words::is_reserved(name.as_bytes()) && !is_reserved_function(&name) {
                    return Err(self.error_at(self.at - 1));
                }
                let name = canonical_name(&name).to_string();
                let args = match window_arguments(&name) {
                    Some(counts) => self.counted_args(&counts)?,
                    None => self.call_args()?,
                };
                Expr::Function { name, args }
            }
        };
        self.over(expr)
    }

    /// Parses the optional window after a call.
    fn over(&mut self, function: Expr) -> SqlResult<Expr> {
        let name = match &function {
            Expr::Function { name, .. } => name.as_str(),
            _ => "",
        };
        // Without a window, LAST_VALUE(a, b, ..) returns its last argument.
        let is_plain_last =
            matches!(&function, Expr::Function { name, args } if name == "last_value" && !args.is_empty());
        if is_window_function(name) && !self.is("OVER") && !self.is("WITHIN") && !is_plain_last {
            let at = if name == "last_value" { self.at - 1 } else { self.at };
            return Err(self.error_at(at));
        }
        let within = match matches!(name, "percentile_cont" | "percentile_disc") {
            true => {
                self.expect_words(&["WITHIN", "GROUP"])?;
                self.expect(Kind::LeftParen)?;
                self.expect_words(&["ORDER", "BY"])?;
                let order = self.order_items()?;
                self.expect(Kind::RightParen)?;
                order
            }
            false => Vec::new(),
        };
        if !self.eat_word("OVER") {
            return if within.is_empty() { Ok(function) } else { Err(self.error()) };
        }
        if within.is_empty() {
            let over = match self.kind() {
                Kind::LeftParen => Over::Spec(Box::new(self.window_spec()?)),
                _ => Over::Name(self.name()?),
            };
            return Ok(Expr::Window(Box::new(WindowCall { function, over })));
        }
        // The function's order is the order of the window, which otherwise can only have partitions.
        self.expect(Kind::LeftParen)?;
        let mut spec = WindowSpec { order_by: within, ..WindowSpec::default() };
        if self.eat_words(&["PARTITION", "BY"]) {
            spec.partition_by = self.list(Self::expr)?;
        }
        self.expect(Kind::RightParen)?;
        let over = Over::Spec(Box::new(spec));
        Ok(Expr::Window(Box::new(WindowCall { function, over })))
    }

    /// Parses `([name] [PARTITION BY ..] [ORDER BY ..] [frame])`.
    pub(super) fn window_spec(&mut self) -> SqlResult<WindowSpec> {
        let mut spec = WindowSpec::default();
        self.expect(Kind::LeftParen)?;
        let starts = ["PARTITION", "ORDER", "ROWS", "RANGE"];
        if self.kind() != Kind::RightParen && !self.is_any(&starts) {
            spec.base = Some(self.name()?);
        }
        if self.eat_words(&["PARTITION", "BY"]) {
            spec.partition_by = self.list(Self::expr)?;
        }
        if self.eat_words(&["ORDER", "BY"]) {
            spec.order_by = self.order_items()?;
        }
        if self.is_any(&["ROWS", "RANGE"]) {
            spec.frame = Some(self.window_frame()?);
        }
        self.expect(Kind::RightParen)?;
        Ok(spec)
    }

    fn window_frame(&mut self) -> SqlResult<WindowFrame> {
        let is_range = self.is("RANGE");
        self.advance();
        let (start, end) = match self.eat_word("BETWEEN") {
            true => {
                let start = self.window_bound()?;
                self.expect_word("AND")?;
                (start, self.window_bound()?)
            }
            false => (self.window_bound()?, WindowBound::CurrentRow),
        };
        if self.is("EXCLUDE") && !self.eat_words(&["EXCLUDE", "NO", "OTHERS"]) {
            return Err(SqlError::no_frame_exclusion());
        }
        Ok(WindowFrame { is_range, start, end })
    }

    fn window_bound(&mut self) -> SqlResult<WindowBound> {
        if self.eat_words(&["CURRENT", "ROW"]) {
            return Ok(WindowBound::CurrentRow);
        }
        if self.eat_words(&["UNBOUNDED", "PRECEDING"]) {
            return Ok(WindowBound::UnboundedPreceding);
        }
        if self.eat_words(&["UNBOUNDED", "FOLLOWING"]) {
            return Ok(WindowBound::UnboundedFollowing);
        }
        let distance = self.window_distance()?;
        match self.eat_word("PRECEDING") {
            true => Ok(WindowBound::Preceding(distance)),
            false => {
                self.expect_word("FOLLOWING")?;
                Ok(WindowBound::Following(distance))
            }
        }
    }

    /// Parses the distance of a frame bound: an unsigned literal. It is constant, so that frames only move
    /// forward.
    fn window_distance(&mut self) -> SqlResult<Expr> {
        let is_introduced = || self.bytes(self.token()).first() == Some(&b'_');
        let is_temporal = || self.is_any(&["DATE", "TIME", "TIMESTAMP"]);
        let is_literal = match self.kind() {
            Kind::Word if self.is_any(&["NULL", "TRUE", "FALSE"]) => true,
            Kind::Word => self.peek(1).kind.is_literal() && (is_introduced() || is_temporal()),
            kind => kind == Kind::Null || kind.is_literal(),
        };
        if !is_literal {
            return Err(self.error());
        }
        match self.primary_expr()? {
            literal @ Expr::Literal(_) => Ok(literal),
            _ => Err(self.error()),
        }
    }

    /// Parses `(expr, ...)`, possibly empty.
    pub(super) fn call_args(&mut self) -> SqlResult<Vec<Expr>> {
        self.expect(Kind::LeftParen)?;
        if self.eat(Kind::RightParen) {
            return Ok(Vec::new());
        }
        let args = self.list(Self::expr)?;
        self.expect(Kind::RightParen)?;
        Ok(args)
    }

    /// Parses arguments whose number the grammar limits.
    fn counted_args(&mut self, counts: &RangeInclusive<usize>) -> SqlResult<Vec<Expr>> {
        self.expect(Kind::LeftParen)?;
        let mut args = Vec::new();
        while args.len() < *counts.start() || self.kind() != Kind::RightParen {
            if args.len() == *counts.end() {
                return Err(self.error());
            }
            args.push(self.expr()?);
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        if args.len() < *counts.start() {
            return Err(self.error());
        }
        self.expect(Kind::RightParen)?;
        Ok(args)
    }

    /// Parses a call whose arguments are not a plain list. The parser is at `(`. Returns `None` for other
    /// functions.
    pub(super) fn special_call(&mut self, name: &str) -> SqlResult<Option<Expr>> {
        Self::form(name).map(|form| form(self, name)).transpose()
    }

    /// Returns the grammar rule of a function whose arguments are not a plain list.
    pub(super) fn form(name: &str) -> Option<fn(&mut Self, &str) -> SqlResult<Expr>> {
        let rule: fn(&mut Self, &str) -> SqlResult<Expr> = match name {
            "cast" => Self::cast,
            "convert" => Self::convert,
            "trim" | "trim_oracle" => Self::trim,
            "substring" | "substr" | "mid" | "substr_oracle" => Self::substring,
            "position" => Self::position,
            "extract" => Self::extract,
            "char" => Self::char_function,
            "date_add" | "date_sub" => Self::date_add,
            "adddate" | "subdate" => Self::date_add,
            "timestampadd" | "timestampdiff" => Self::timestamp_function,
            "get_format" => Self::get_format,
            "default" => Self::default_function,
            "values" | "value" => Self::values_function,
            "row" => Self::row,
            "now" | "current_timestamp" | "localtime" | "localtimestamp" => Self::clock,
            "curtime" | "current_time" | "curdate" | "current_date" => Self::clock,
            "utc_time" | "utc_timestamp" | "utc_date" | "sysdate" => Self::clock,
            "add_months" => Self::add_months,
            "weight_string" => Self::weight_string,
            "column_create" | "column_add" => Self::column_pairs,
            "column_get" => Self::column_get,
            "nextval" | "lastval" | "setval" => Self::sequence_function,
            _ => return None,
        };
        Some(rule)
    }

    /// Parses MATCH. The list of columns needs no parentheses.
    pub(super) fn match_against(&mut self) -> SqlResult<Expr> {
        self.advance();
        let column = |p: &mut Self| p.column_ref().map(Expr::Column);
        let columns = match self.kind() == Kind::LeftParen {
            true => self.paren_list(column)?,
            false => self.list(column)?,
        };
        self.expect_word("AGAINST")?;
        self.expect(Kind::LeftParen)?;
        // IN starts the mode, so the text must bind tighter.
        let text = Box::new(self.bit_expr()?);
        let mut mode = MatchMode::Natural;
        if self.eat_words(&["IN", "BOOLEAN", "MODE"]) {
            mode = MatchMode::Boolean;
        } else {
            self.eat_words(&["IN", "NATURAL", "LANGUAGE", "MODE"]);
            if self.eat_words(&["WITH", "QUERY", "EXPANSION"]) {
                mode = MatchMode::Expansion;
            }
        }
        self.expect(Kind::RightParen)?;
        Ok(Expr::Match { columns, text, mode })
    }

    fn cast(&mut self, _name: &str) -> SqlResult<Expr> {
        self.expect(Kind::LeftParen)?;
        let expr = self.boxed_expr()?;
        self.expect_word("AS")?;
        let to = Box::new(self.cast_type()?);
        self.expect(Kind::RightParen)?;
        Ok(Expr::Cast { expr, to })
    }

    fn convert(&mut self, _name: &str) -> SqlResult<Expr> {
        self.expect(Kind::LeftParen)?;
        let expr = self.boxed_expr()?;
        let result = if self.eat_word("USING") {
            Expr::ConvertUsing { expr, charset: self.charset_word()? }
        } else {
            self.expect(Kind::Comma)?;
            Expr::Cast { expr, to: Box::new(self.cast_type()?) }
        };
        self.expect(Kind::RightParen)?;
        Ok(result)
    }

    /// Parses a type of CAST.
    fn cast_type(&mut self) -> SqlResult<DataType> {
        let kind = match () {
            () if self.eat_word("SIGNED") => DeclaredKind::Signed,
            () if self.eat_word("UNSIGNED") => DeclaredKind::Unsigned,
            () if self.eat_any(&["INT", "INTEGER"]) => return Ok(DataType::of(DeclaredKind::Signed)),
            () => return self.cast_column_type(),
        };
        self.eat_any(&["INT", "INTEGER"]);
        Ok(DataType::of(kind))
    }

    fn cast_column_type(&mut self) -> SqlResult<DataType> {
        let start = self.at;
        let mut data_type = self.data_type()?;
        // A precision of 0 is the default, and printed as such.
        if matches!(data_type.kind, DeclaredKind::Column(TypeKind::DateTime | TypeKind::Time)) {
            data_type.length = data_type.length.filter(|precision| *precision > 0);
        }
        let allowed = matches!(
            data_type.kind,
            DeclaredKind::Column(
                TypeKind::Binary
                    | TypeKind::Char
                    | TypeKind::VarChar
                    | TypeKind::Date
                    | TypeKind::DateTime
                    | TypeKind::Time
                    | TypeKind::Decimal
                    | TypeKind::Double
                    | TypeKind::Float
                    | TypeKind::Uuid
                    | TypeKind::Inet6
                    | TypeKind::Inet4
            )
        );
        if allowed && !data_type.unsigned && !data_type.zerofill {
            Ok(data_type)
        } else {
            Err(self.error_at(start))
        }
    }

    fn trim(&mut self, name: &str) -> SqlResult<Expr> {
        self.expect(Kind::LeftParen)?;
        let side = match () {
            () if self.eat_word("LEADING") => Some(TrimSide::Leading),
            () if self.eat_word("TRAILING") => Some(TrimSide::Trailing),
            () if self.eat_word("BOTH") => Some(TrimSide::Both),
            () => None,
        };
        let mut what = None;
        let expr = if side.is_some() {
            if !self.is("FROM") {
                what = Some(self.boxed_expr()?);
            }
            self.expect_word("FROM")?;
            self.boxed_expr()?
        } else {
            let first = self.boxed_expr()?;
            if self.eat_word("FROM") {
                what = Some(first);
                self.boxed_expr()?
            } else {
                first
            }
        };
        self.expect(Kind::RightParen)?;
        let trimmed = Expr::Trim { side: side.unwrap_or(TrimSide::Both), what, expr };
        Ok(match name {
            "trim_oracle" => function("null if empty", vec![trimmed]),
            _ => trimmed,
        })
    }

    fn substring(&mut self, name: &str) -> SqlResult<Expr> {
        self.expect(Kind::LeftParen)?;
        let mut args = vec![self.expr()?];
        if self.eat_word("FROM") {
            args.push(self.expr()?);
            if self.eat_word("FOR") {
                args.push(self.expr()?);
            }
        } else {
            while self.eat(Kind::Comma) {
                args.push(self.expr()?);
            }
        }
        self.expect(Kind::RightParen)?;
        Ok(function(if name == "substr_oracle" { name } else { "substring" }, args))
    }

    fn position(&mut self, _name: &str) -> SqlResult<Expr> {
        self.expect(Kind::LeftParen)?;
        let what = self.bit_expr()?;
        self.expect_word("IN")?;
        let text = self.expr()?;
        self.expect(Kind::RightParen)?;
        Ok(function("locate", vec![what, text]))
    }

    fn extract(&mut self, _name: &str) -> SqlResult<Expr> {
        self.expect(Kind::LeftParen)?;
        let unit = self.interval_unit()?;
        self.expect_word("FROM")?;
        let expr = self.boxed_expr()?;
        self.expect(Kind::RightParen)?;
        Ok(Expr::Extract { unit, expr })
    }

    fn char_function(&mut self, _name: &str) -> SqlResult<Expr> {
        self.expect(Kind::LeftParen)?;
        let args = self.list(Self::expr)?;
        let charset = if self.eat_word("USING") { Some(self.charset_word()?) } else { None };
        self.expect(Kind::RightParen)?;
        Ok(Expr::CharFunction { args, charset })
    }

    /// Parses DATE_ADD(x, INTERVAL n unit) and its variants. ADDDATE(x, n) adds days.
    fn date_add(&mut self, name: &str) -> SqlResult<Expr> {
        self.expect(Kind::LeftParen)?;
        let expr = self.expr()?;
        self.expect(Kind::Comma)?;
        let subtract = matches!(name, "date_sub" | "subdate");
        let (amount, unit) = if self.is("INTERVAL") || name.starts_with("date_") {
            self.interval()?
        } else {
            (self.expr()?, crate::ast::IntervalUnit::Day)
        };
        self.expect(Kind::RightParen)?;
        Ok(date_arith(expr, subtract, amount, unit))
    }

    /// Parses ADD_MONTHS(date, n).
    fn add_months(&mut self, _name: &str) -> SqlResult<Expr> {
        self.expect(Kind::LeftParen)?;
        let expr = self.expr()?;
        self.expect(Kind::Comma)?;
        let amount = self.expr()?;
        self.expect(Kind::RightParen)?;
        Ok(date_arith(expr, false, amount, crate::ast::IntervalUnit::Month))
    }

    /// Parses COLUMN_CREATE(name, value [AS type], ..), or COLUMN_ADD, which has the columns as its first
    /// argument. A value with a type becomes a cast.
    fn column_pairs(&mut self, name: &str) -> SqlResult<Expr> {
        self.expect(Kind::LeftParen)?;
        let mut args = Vec::new();
        if name == "column_add" {
            args.push(self.expr()?);
            self.expect(Kind::Comma)?;
        }
        loop {
            args.push(self.expr()?);
            self.expect(Kind::Comma)?;
            let value = self.expr()?;
            args.push(match self.eat_word("AS") {
                true => self.column_value(value)?,
                false => value,
            });
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RightParen)?;
        Ok(function(name, args))
    }

    /// Parses the type of a dynamic column's value. Digits and lengths are ignored.
    fn column_value(&mut self, value: Expr) -> SqlResult<Expr> {
        let start = self.at;
        let is_unsigned = self.eat_word("UNSIGNED");
        let to = match () {
            () if self.eat_any(&["INT", "INTEGER"]) => match is_unsigned {
                true => DataType::of(DeclaredKind::Unsigned),
                false => DataType::of(DeclaredKind::Signed),
            },
            () if is_unsigned => return Err(self.error_at(start)),
            () => self.data_type()?,
        };
        let to = match to.kind {
            DeclaredKind::Signed => to,
            DeclaredKind::Unsigned => return Ok(function("as unsigned int", vec![value])),
            DeclaredKind::Column(TypeKind::Decimal) => return Ok(function("as decimal", vec![value])),
            DeclaredKind::Column(TypeKind::Double | TypeKind::Float) => DataType::plain(TypeKind::Double),
            DeclaredKind::Column(TypeKind::Date) => return Ok(function("as date", vec![value])),
            DeclaredKind::Column(TypeKind::Time) => return Ok(function("as time", vec![value])),
            DeclaredKind::Column(TypeKind::DateTime) => return Ok(function("as datetime", vec![value])),
            DeclaredKind::Column(TypeKind::Char) if to.length.is_none() => to,
            _ => return Err(self.error_at(start)),
        };
        Ok(Expr::Cast { expr: Box::new(value), to: Box::new(to) })
    }

    /// Parses COLUMN_GET(columns, name AS type) as a cast of the call.
    fn column_get(&mut self, name: &str) -> SqlResult<Expr> {
        self.expect(Kind::LeftParen)?;
        let columns = self.expr()?;
        self.expect(Kind::Comma)?;
        let column = self.expr()?;
        self.expect_word("AS")?;
        let to = Box::new(self.cast_type()?);
        self.expect(Kind::RightParen)?;
        Ok(Expr::Cast { expr: Box::new(function(name, vec![columns, column])), to })
    }

    /// Parses WEIGHT_STRING(x [AS CHAR(n)|BINARY(n)] [LEVEL levels]). The second argument of the result is
    /// the number of characters, 0 for all; the third is the flags of [`Parser::weight_levels`]. BINARY
    /// becomes a cast.
    fn weight_string(&mut self, name: &str) -> SqlResult<Expr> {
        self.expect(Kind::LeftParen)?;
        let mut expr = self.expr()?;
        let mut characters = 0;
        let mut flags = 0;
        let is_binary = self.eat_word("AS") && {
            let is_binary = self.eat_word("BINARY");
            if !is_binary {
                self.expect_word("CHAR")?;
            }
            self.expect(Kind::LeftParen)?;
            let start = self.at;
            characters = self.number()?;
            if characters == 0 {
                return Err(self.error_at(start));
            }
            self.expect(Kind::RightParen)?;
            is_binary
        };
        if is_binary {
            let mut to = DataType::plain(TypeKind::Binary);
            to.length = Some(std::mem::take(&mut characters));
            expr = Expr::Cast { expr: Box::new(expr), to: Box::new(to) };
        } else if self.eat_word("LEVEL") {
            flags = self.weight_levels()?;
        }
        self.expect(Kind::RightParen)?;
        let number = |n: u64| Expr::Literal(Literal::fixed(Value::Int(i64::try_from(n).unwrap_or(i64::MAX))));
        Ok(function(name, vec![expr, number(characters), number(flags)]))
    }

    /// Parses `1 DESC REVERSE, 2` or `1-3`. Returns the flags of the first level: 1 if it is descending, 2 if
    /// it is reversed, 3 for both. Further levels are parsed and ignored.
    fn weight_levels(&mut self) -> SqlResult<u64> {
        let mut flags = 0;
        let first = self.number()?;
        if self.eat(Kind::Minus) {
            self.number()?;
            return Ok(0);
        }
        let mut level = first;
        loop {
            let descending = !self.eat_word("ASC") && self.eat_word("DESC");
            let reversed = self.eat_word("REVERSE");
            if level <= 1 {
                flags |= u64::from(descending) | u64::from(reversed) << 1;
            }
            if !self.eat(Kind::Comma) {
                return Ok(flags);
            }
            level = self.number()?;
        }
    }

    fn timestamp_function(&mut self, name: &str) -> SqlResult<Expr> {
        self.expect(Kind::LeftParen)?;
        let unit = self.interval_unit()?;
        self.expect(Kind::Comma)?;
        let first = self.expr()?;
        self.expect(Kind::Comma)?;
        let second = self.expr()?;
        self.expect(Kind::RightParen)?;
        if name == "timestampadd" {
            return Ok(date_arith(second, false, first, unit));
        }
        Ok(Expr::TimestampDiff { unit, from: Box::new(first), to: Box::new(second) })
    }

    fn get_format(&mut self, _name: &str) -> SqlResult<Expr> {
        self.expect(Kind::LeftParen)?;
        if !self.is_any(&["DATE", "TIME", "DATETIME", "TIMESTAMP"]) {
            return Err(self.error());
        }
        let kind = Value::text(self.upper_word()?);
        self.expect(Kind::Comma)?;
        let format = self.expr()?;
        self.expect(Kind::RightParen)?;
        Ok(function("get_format", vec![Expr::Literal(Literal::fixed(kind)), format]))
    }

    fn default_function(&mut self, _name: &str) -> SqlResult<Expr> {
        self.expect(Kind::LeftParen)?;
        let column = self.column_ref()?;
        self.expect(Kind::RightParen)?;
        Ok(Expr::Default(Some(column)))
    }

    /// Parses `VALUE(a)`, or `VALUES(a)` in ON DUPLICATE KEY UPDATE.
    fn values_function(&mut self, name: &str) -> SqlResult<Expr> {
        if name == "values" && !self.in_on_duplicate {
            return Err(self.error_at(self.at - 1));
        }
        self.expect(Kind::LeftParen)?;
        let column = self.column_ref()?;
        self.expect(Kind::RightParen)?;
        Ok(Expr::Values(column))
    }

    fn row(&mut self, _name: &str) -> SqlResult<Expr> {
        let items = self.paren_list(Self::expr)?;
        if items.len() < 2 {
            return Err(self.error_at(self.at - 1));
        }
        Ok(Expr::Row(items))
    }

    /// Parses a function of the current time. Its optional argument is a number of digits, not an expression.
    fn clock(&mut self, name: &str) -> SqlResult<Expr> {
        self.expect(Kind::LeftParen)?;
        let takes_digits = !matches!(name, "curdate" | "current_date" | "utc_date");
        let mut args = Vec::new();
        if takes_digits && self.kind() == Kind::Integer {
            let digits = self.number()?;
            args.push(Expr::Literal(Literal::fixed(Value::Int(i64::try_from(digits).unwrap_or(i64::MAX)))));
        }
        self.expect(Kind::RightParen)?;
        Ok(function(canonical_name(name), args))
    }

    // ---- aggregates

    /// Parses the arguments of an aggregate. The parser is at `(`.
    fn aggregate(&mut self, kind: AggregateKind) -> SqlResult<Expr> {
        let mut call = Aggregate {
            kind,
            distinct: false,
            args: Vec::new(),
            order_by: Vec::new(),
            separator: None,
            limit: None,
        };
        self.expect(Kind::LeftParen)?;
        if kind == AggregateKind::Count && self.eat(Kind::Star) {
            self.expect(Kind::RightParen)?;
            return self.finish_aggregate(call);
        }
        call.distinct = self.eat_any(&["DISTINCT"]);
        if !call.distinct {
            self.eat_word("ALL");
        }
        let is_list = matches!(kind, AggregateKind::GroupConcat | AggregateKind::JsonArrayAgg);
        let many = is_list || (kind == AggregateKind::Count && call.distinct);
        call.args = if many { self.list(Self::expr)? } else { vec![self.expr()?] };
        if kind == AggregateKind::JsonObjectAgg {
            self.expect(Kind::Comma)?;
            call.args.push(self.expr()?);
        }
        if is_list {
            self.list_aggregate_rest(&mut call)?;
        }
        self.expect(Kind::RightParen)?;
        if kind == AggregateKind::JsonArrayAgg && call.args.len() > 1 {
            return Err(SqlError::wrong_param_count("JSON_ARRAYAGG"));
        }
        self.finish_aggregate(call)
    }

    fn finish_aggregate(&mut self, call: Aggregate) -> SqlResult<Expr> {
        self.over(Expr::Aggregate(Box::new(call)))
    }

    /// Parses ORDER BY, SEPARATOR and LIMIT.
    fn list_aggregate_rest(&mut self, call: &mut Aggregate) -> SqlResult<()> {
        if self.eat_words(&["ORDER", "BY"]) {
            call.order_by = self.order_items()?;
        }
        if call.kind == AggregateKind::GroupConcat && self.eat_word("SEPARATOR") {
            call.separator = Some(self.text()?);
        }
        if self.eat_word("LIMIT") {
            if self.kind() == Kind::Param {
                return Err(self.unsupported("a parameter in the LIMIT of an aggregate"));
            }
            let first = self.number()?;
            call.limit = Some(match () {
                () if self.eat(Kind::Comma) => (Some(first), self.number()?),
                () if self.eat_word("OFFSET") => (Some(self.number()?), first),
                () => (None, first),
            });
        }
        Ok(())
    }

    /// Parses `expr [ASC|DESC], ...`. A literal may be a column number, so such statements are not cached.
    pub(super) fn order_items(&mut self) -> SqlResult<Vec<OrderItem>> {
        let literals = self.literal_params;
        let items = self.list(|p| {
            let expr = p.expr()?;
            let descending = p.eat_word("DESC");
            if !descending {
                p.eat_word("ASC");
            }
            Ok(OrderItem { expr, descending })
        })?;
        self.fixed |= self.literal_params != literals;
        Ok(items)
    }
}

fn function(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Function { name: name.to_string(), args }
}

/// Returns whether a function requires a window.
pub fn is_window_function(name: &str) -> bool {
    matches!(
        name,
        "row_number"
            | "rank"
            | "dense_rank"
            | "percent_rank"
            | "cume_dist"
            | "ntile"
            | "lag"
            | "lead"
            | "first_value"
            | "last_value"
            | "nth_value"
            | "median"
            | "percentile_cont"
            | "percentile_disc"
    )
}
