//! SELECT, VALUES, UNION, WITH.

use cohort_types::{SqlError, SqlResult, Value};

use super::Parser;
use crate::ast::{
    CommonTable, Expr, Limit, Literal, LockStrength, LockWait, Locking, ObjectName, OrderItem, Query,
    QueryBody, QueryIntoFile, Select, SelectItem, SelectOptions, SetOperand, SetOperator, Statement, Target,
    With,
};
use crate::lexer::Kind;
use crate::literal;

/// The clauses after the body of a query.
#[derive(Default)]
struct Tail {
    order_by: Vec<OrderItem>,
    limit: Option<Limit>,
    locking: Option<Locking>,
    into: Vec<Target>,
}

impl Parser<'_> {
    pub(super) fn query_statement(&mut self) -> SqlResult<Statement> {
        let query = self.query()?;
        Ok(match self.into_file.take() {
            None => Statement::Query(Box::new(query)),
            Some((file, is_behind)) => {
                let is_late = is_behind || matches!(query.body, QueryBody::SetOperation { .. });
                Statement::QueryIntoFile(Box::new(QueryIntoFile { query, file, is_late }))
            }
        })
    }

    /// Returns whether a query starts at the token `ahead`, possibly in parentheses.
    pub(super) fn query_follows(&self, ahead: usize) -> bool {
        let mut ahead = ahead;
        while self.peek(ahead).kind == Kind::LeftParen {
            ahead += 1;
        }
        self.query_word_at(ahead)
    }

    pub(super) fn query_word_at(&self, ahead: usize) -> bool {
        self.is_word_at(ahead, "SELECT") || self.is_word_at(ahead, "WITH") || self.rows_at(ahead)
    }

    /// Returns whether a table value constructor starts there; `VALUES(a)` is the function of ON DUPLICATE
    /// KEY UPDATE.
    fn rows_at(&self, ahead: usize) -> bool {
        if !self.is_word_at(ahead, "VALUES") || self.peek(ahead + 1).kind != Kind::LeftParen {
            return false;
        }
        let mut end = ahead + 2;
        while matches!(self.peek(end).kind, Kind::Word | Kind::Quoted | Kind::Dot) {
            end += 1;
        }
        let is_name = end > ahead + 2 && self.peek(end).kind == Kind::RightParen;
        let has_more = self.peek(end + 1).kind == Kind::Comma && self.peek(end + 2).kind == Kind::LeftParen;
        !is_name || has_more
    }

    /// Parses a query in an expression. Its column names are not used.
    pub(super) fn inner_query(&mut self) -> SqlResult<Query> {
        self.nameless(Self::query)
    }

    /// Parses the rest of a query in an expression, after its first, parenthesised part.
    pub(super) fn continue_inner_query(&mut self, first: Query) -> SqlResult<Query> {
        self.nameless(|p| {
            let outer_into = std::mem::take(&mut p.into);
            let left = nested(first);
            let body = p.set_operations(left)?;
            let query = p.finish_query(None, body)?;
            p.into = outer_into;
            Ok(query)
        })
    }

    /// Runs a rule in a context where column names are not used.
    pub(super) fn nameless<T>(&mut self, rule: impl FnOnce(&mut Self) -> SqlResult<T>) -> SqlResult<T> {
        let outer = std::mem::replace(&mut self.names_matter, false);
        let result = rule(self);
        self.names_matter = outer;
        result
    }

    /// Runs a rule in a context where column names are used (derived tables).
    pub(super) fn named<T>(&mut self, rule: impl FnOnce(&mut Self) -> SqlResult<T>) -> SqlResult<T> {
        let outer = std::mem::replace(&mut self.names_matter, true);
        let result = rule(self);
        self.names_matter = outer;
        result
    }

    /// Parses a whole query.
    pub(super) fn query(&mut self) -> SqlResult<Query> {
        self.enter(|p| {
            // The INTO of a query around this one.
            let outer_into = std::mem::take(&mut p.into);
            let with = if p.is("WITH") { Some(p.with()?) } else { None };
            let first = p.query_term()?;
            let first_end = p.at;
            let body = p.set_operations(first)?;
            // Lock options may follow a whole query in parentheses.
            p.ends_in_parens &= p.at > first_end;
            let query = p.finish_query(with, body)?;
            p.into = outer_into;
            Ok(query)
        })
    }

    pub(super) fn finish_query(&mut self, with: Option<With>, body: QueryBody) -> SqlResult<Query> {
        let outer_into = std::mem::take(&mut self.into);
        let Tail { order_by, limit, locking, into } = self.tail()?;
        let is_set = matches!(body, QueryBody::SetOperation { .. });
        let into_is_late = !into.is_empty() || (is_set && !outer_into.is_empty());
        let into = if into.is_empty() { outer_into } else { into };
        match body {
            // `(SELECT ..)` without further clauses.
            QueryBody::Nested(query)
                if with.is_none()
                    && order_by.is_empty()
                    && limit.is_none()
                    && locking.is_none()
                    && into.is_empty() =>
            {
                Ok(in_parens(*query))
            }
            // Lock options of a parenthesised set operation apply to the tables of its last SELECT.
            QueryBody::Nested(mut query)
                if locking.is_some() && matches!(query.body, QueryBody::SetOperation { .. }) =>
            {
                if let QueryBody::SetOperation { rest, .. } = &mut query.body
                    && let Some(last) = rest.last_mut()
                    && !matches!(last.body, QueryBody::Values(_))
                {
                    let body = std::mem::replace(&mut last.body, QueryBody::Values(Vec::new()));
                    last.body = QueryBody::Nested(Box::new(Query { locking, ..Query::of(body) }));
                }
                Ok(Query {
                    with,
                    body: QueryBody::Nested(query),
                    order_by,
                    limit,
                    locking: None,
                    into,
                    into_is_late,
                })
            }
            QueryBody::SetOperation { first, mut rest } if locking.is_some() => {
                // Lock options apply to the tables of the last SELECT.
                if self.ends_in_parens {
                    return Err(SqlError::wrong_usage("lock options", "SELECT in brackets"));
                }
                let last = rest.last_mut().expect("at least one");
                if !matches!(last.body, QueryBody::Values(_)) {
                    let body = std::mem::replace(&mut last.body, QueryBody::Values(Vec::new()));
                    last.body = QueryBody::Nested(Box::new(Query { locking, ..Query::of(body) }));
                }
                let body = QueryBody::SetOperation { first, rest };
                Ok(Query { with, body, order_by, limit, locking: None, into, into_is_late })
            }
            body => Ok(Query { with, body, order_by, limit, locking, into, into_is_late }),
        }
    }

    fn with(&mut self) -> SqlResult<With> {
        self.advance();
        let recursive = self.eat_word("RECURSIVE");
        let tables = self.list(|p| {
            let name = p.name()?;
            let columns = if p.kind() == Kind::LeftParen { p.paren_list(Self::name)? } else { Vec::new() };
            p.expect_word("AS")?;
            p.expect(Kind::LeftParen)?;
            let query = Box::new(p.named(Self::query)?);
            p.expect(Kind::RightParen)?;
            let mut cycle = Vec::new();
            if recursive && p.eat_word("CYCLE") {
                cycle = p.list(Self::name)?;
                p.expect_word("RESTRICT")?;
            }
            Ok(CommonTable { name, columns, query, cycle })
        })?;
        Ok(With { recursive, tables })
    }

    // ---- bodies

    /// Parses the set operators after `first`, from left to right.
    pub(super) fn set_operations(&mut self, first: QueryBody) -> SqlResult<QueryBody> {
        let tighter = if self.options.mode.oracle { &[][..] } else { &[SetOperator::Intersect] };
        let operand = |p: &mut Self, op| match op {
            SetOperator::Intersect => p.query_term(),
            _ => {
                let first = p.query_term()?;
                p.chain_of(first, |p, _| p.query_term(), tighter)
            }
        };
        self.chain_of(first, operand, &SetOperator::ALL)
    }

    /// Parses a chain of the given set operators after `first`. The result is a list of any length, even with
    /// different operators.
    fn chain_of(
        &mut self,
        first: QueryBody,
        mut operand: impl FnMut(&mut Self, SetOperator) -> SqlResult<QueryBody>,
        operators: &[SetOperator],
    ) -> SqlResult<QueryBody> {
        let mut chain = Vec::new();
        while let Some(op) = self.set_operator().filter(|op| operators.contains(op)) {
            if self.into_file.is_some() || !self.into.is_empty() {
                return Err(self.error());
            }
            if has_into(&first) {
                return Err(self.error_at(self.into_at));
            }
            self.advance();
            let all = self.all_or_distinct();
            let body = operand(self, op)?;
            if has_into(&body) {
                return Err(self.error_at(self.into_at));
            }
            // INTO is allowed only at the end of the last SELECT.
            if let Some(from_at) = self.from_after_into.filter(|_| !self.into.is_empty()) {
                return Err(self.error_at(from_at));
            }
            chain.push(SetOperand { op, all, body });
        }
        Ok(match first {
            first if chain.is_empty() => first,
            QueryBody::SetOperation { first, mut rest } => {
                rest.append(&mut chain);
                QueryBody::SetOperation { first, rest }
            }
            first => QueryBody::SetOperation { first: Box::new(first), rest: chain },
        })
    }

    pub(super) fn set_operator(&self) -> Option<SetOperator> {
        match () {
            () if self.is("UNION") => Some(SetOperator::Union),
            () if self.is("EXCEPT") => Some(SetOperator::Except),
            () if self.is("INTERSECT") => Some(SetOperator::Intersect),
            () if self.options.mode.oracle && self.is("MINUS") => Some(SetOperator::Except),
            () => None,
        }
    }

    fn all_or_distinct(&mut self) -> bool {
        let all = self.eat_word("ALL");
        if !all {
            self.eat_word("DISTINCT");
        }
        all
    }

    fn query_term(&mut self) -> SqlResult<QueryBody> {
        if self.eat(Kind::LeftParen) {
            let query = self.query()?;
            self.expect(Kind::RightParen)?;
            self.ends_in_parens = true;
            return Ok(nested(query));
        }
        if self.eat_word("VALUES") {
            let literals = self.literal_params;
            let rows = self.list(|p| match p.peek(1).kind {
                Kind::RightParen => Err(SqlError::empty_row_of_values()),
                _ => p.paren_list(Self::expr),
            })?;
            self.fixed |= self.names_matter && literals != self.literal_params;
            self.ends_in_parens = false;
            return Ok(QueryBody::Values(rows));
        }
        let select = self.select()?;
        self.ends_in_parens = false;
        Ok(QueryBody::Select(Box::new(select)))
    }

    fn select(&mut self) -> SqlResult<Select> {
        self.enter_select(Self::select_inner)
    }

    fn select_inner(&mut self) -> SqlResult<Select> {
        self.expect_word("SELECT")?;
        let options = self.select_options()?;
        let items = self.list(Self::select_item)?;
        if self.is("INTO") {
            self.into = self.target_variables()?;
            self.from_after_into = self.is("FROM").then_some(self.at);
        }
        let mut select = Select { options, ..Select::of(items) };
        if !self.eat_word("FROM") {
            // WHERE without FROM is allowed, as in `SELECT 1 WHERE 1 = 2`.
        } else if !self.eat_word("DUAL") {
            select.from = Some(self.table_refs()?);
        }
        if self.eat_word("WHERE") {
            select.filter = Some(self.expr()?);
        }
        if self.eat_words(&["GROUP", "BY"]) {
            select.group_by = self.order_items()?;
            if self.is_all(&["WITH", "CUBE"]) {
                return Err(self.unsupported("CUBE"));
            }
            select.with_rollup = self.eat_words(&["WITH", "ROLLUP"]);
        }
        if self.eat_word("HAVING") {
            select.having = Some(self.expr()?);
        }
        if self.eat_word("WINDOW") {
            select.windows = self.list(|p| {
                let name = p.name()?;
                p.expect_word("AS")?;
                Ok((name, p.window_spec()?))
            })?;
        }
        if self.is("PROCEDURE") {
            return Err(self.unsupported("PROCEDURE"));
        }
        Ok(select)
    }

    fn select_options(&mut self) -> SqlResult<SelectOptions> {
        let mut options = SelectOptions::default();
        let mut all = false;
        loop {
            match () {
                () if self.eat_any(&["DISTINCT", "DISTINCTROW"]) => options.distinct = true,
                () if self.eat_word("ALL") => all = true,
                () if self.eat_word("HIGH_PRIORITY") => options.high_priority = true,
                () if self.eat_word("STRAIGHT_JOIN") => options.straight_join = true,
                () if self.eat_word("SQL_CALC_FOUND_ROWS") => options.calc_found_rows = true,
                () if self.eat_word("SQL_NO_CACHE") => options.sql_no_cache = true,
                () if self.eat_any(&[
                    "SQL_BIG_RESULT",
                    "SQL_SMALL_RESULT",
                    "SQL_BUFFER_RESULT",
                    "SQL_CACHE",
                ]) =>
                {
                    options.hints = true;
                }
                () => break,
            }
        }
        if all && options.distinct {
            return Err(SqlError::wrong_usage("ALL", "DISTINCT"));
        }
        Ok(options)
    }

    pub(super) fn select_item(&mut self) -> SqlResult<SelectItem> {
        if self.eat(Kind::Star) {
            return Ok(SelectItem::Wildcard);
        }
        if let Some(item) = self.table_wildcard()? {
            return Ok(item);
        }
        let from = self.at;
        let literals = self.literal_params;
        let expr = self.expr()?;
        let text = self.item_text(&expr, from);
        let alias = self.alias()?;
        self.fixed |= alias.is_none() && self.names_matter && self.literal_params != literals;
        Ok(SelectItem::Expr { expr, alias, text })
    }

    /// Parses `t.*` or `db.t.*`.
    fn table_wildcard(&mut self) -> SqlResult<Option<SelectItem>> {
        let dot_star = |p: &Self, at| p.peek(at).kind == Kind::Dot && p.peek(at + 1).kind == Kind::Star;
        let long = self.peek(1).kind == Kind::Dot && dot_star(self, 3);
        if !self.is_name_at(0) || !(dot_star(self, 1) || long) {
            return Ok(None);
        }
        let mut name = ObjectName { db: None, name: self.name()? };
        self.expect(Kind::Dot)?;
        if long {
            name = ObjectName { db: Some(name.name), name: self.name_after_dot()? };
            self.expect(Kind::Dot)?;
        }
        self.expect(Kind::Star)?;
        Ok(Some(SelectItem::TableWildcard(name)))
    }

    /// Returns the text from one token to another, without the marks of version comments.
    fn without_version_comments(&self, first: usize, last: usize) -> String {
        let mut text = Vec::new();
        for n in first..=last {
            let token = self.token_at(n);
            text.extend_from_slice(self.bytes(token));
            if n < last {
                let gap = &self.sql[token.end..self.token_at(n + 1).start];
                text.extend(crate::lexer::without_version_comments(gap));
            }
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Returns the column name that is derived from the text of an expression.
    fn item_text(&self, expr: &Expr, from: usize) -> String {
        let (mut first, mut last) = (from, self.at - 1);
        while first < last && matches!(expr, Expr::Literal(_)) {
            match self.token_at(first).kind {
                Kind::LeftParen => (first, last) = (first + 1, last - 1),
                Kind::Plus => first += 1,
                _ => break,
            }
        }
        let token = self.token_at(first);
        let whole = || {
            let end = self.token_at(last).end.max(token.start);
            let text = &self.sql[token.start..end];
            match text.windows(3).any(|part| part == b"/*!" || part == b"*M!") {
                true => self.without_version_comments(first, last),
                false => String::from_utf8_lossy(text).into_owned(),
            }
        };
        match (expr, token.kind) {
            (Expr::Column(column), _) => column.name.clone(),
            (Expr::Literal(_), Kind::Text) if first == last => {
                let text = literal::text(self.bytes(token), self.options.mode);
                String::from_utf8_lossy(&text).trim_start().to_string()
            }
            (Expr::Literal(literal), Kind::Text | Kind::NationalText) => literal_text(&literal.value),
            (Expr::Literal(literal), Kind::Word) if self.bytes(token)[0] == b'_' => {
                literal_text(&literal.value)
            }
            (Expr::Literal(_), Kind::Word | Kind::Null) if first == last => {
                let word = if token.kind == Kind::Null { "NULL".into() } else { whole() };
                word.to_ascii_uppercase()
            }
            _ => whole(),
        }
    }

    /// Parses an optional alias: `AS name`, `name` or `'name'`.
    pub(super) fn alias(&mut self) -> SqlResult<Option<String>> {
        if self.eat_word("AS") {
            return self.name_or_text().map(Some);
        }
        if self.is_name_at(0) || self.kind() == Kind::Text {
            return self.name_or_text().map(Some);
        }
        Ok(None)
    }

    // ---- tails

    fn tail(&mut self) -> SqlResult<Tail> {
        let mut tail = Tail { order_by: self.order_by()?, limit: self.query_limit()?, ..Tail::default() };
        if self.is("INTO") {
            tail.into = self.target_variables()?;
        }
        tail.locking = self.locking()?;
        if self.is("INTO") && tail.into.is_empty() {
            tail.into = self.target_variables()?;
        }
        Ok(tail)
    }

    pub(super) fn order_by(&mut self) -> SqlResult<Vec<OrderItem>> {
        if self.eat_words(&["ORDER", "BY"]) { self.order_items() } else { Ok(Vec::new()) }
    }

    pub(super) fn limit(&mut self) -> SqlResult<Option<Limit>> {
        if self.is_any(&["OFFSET", "FETCH"]) {
            return self.fetch().map(Some);
        }
        if !self.eat_word("LIMIT") {
            return Ok(None);
        }
        // ROWS EXAMINED is allowed in queries only.
        if self.is("ROWS") && self.is_word_at(1, "EXAMINED") {
            self.advance();
            return Err(self.error());
        }
        let first = self.limit_value()?;
        let limit = if self.eat(Kind::Comma) {
            Limit { count: self.limit_value()?, offset: Some(first), with_ties: false }
        } else if self.eat_word("OFFSET") {
            Limit { count: first, offset: Some(self.limit_value()?), with_ties: false }
        } else {
            Limit { count: first, offset: None, with_ties: false }
        };
        Ok(Some(limit))
    }

    /// Parses LIMIT of UPDATE or DELETE: only a number of rows.
    pub(super) fn change_limit(&mut self) -> SqlResult<Option<Limit>> {
        if !self.eat_word("LIMIT") {
            return Ok(None);
        }
        if self.is("ROWS") && self.is_word_at(1, "EXAMINED") {
            self.advance();
            return Err(self.error());
        }
        Ok(Some(Limit { count: self.limit_value()?, offset: None, with_ties: false }))
    }

    /// Parses LIMIT of a query: the number of result rows, of examined rows (ROWS EXAMINED), or both.
    fn query_limit(&mut self) -> SqlResult<Option<Limit>> {
        let is_of_examined = self.is("LIMIT") && self.is_word_at(1, "ROWS");
        let limit = match is_of_examined {
            true => {
                self.advance();
                None
            }
            false => self.limit()?,
        };
        if (limit.is_some() || is_of_examined) && self.eat_words(&["ROWS", "EXAMINED"]) {
            self.rows_examined = Some(self.limit_value()?);
            self.fixed = true;
        }
        Ok(limit)
    }

    /// Parses `OFFSET m ROWS`, `FETCH FIRST n ROWS ONLY` or `WITH TIES`, or both.
    fn fetch(&mut self) -> SqlResult<Limit> {
        let rows = &["ROW", "ROWS"];
        let offset = if self.eat_word("OFFSET") {
            let offset = self.limit_value()?;
            self.expect_any(rows)?;
            Some(offset)
        } else {
            None
        };
        let fixed = |count| Expr::Literal(Literal::fixed(Value::UInt(count)));
        if !self.eat_word("FETCH") {
            return Ok(Limit { count: fixed(u64::MAX), offset, with_ties: false });
        }
        self.expect_any(&["FIRST", "NEXT"])?;
        let count = if self.is_any(rows) { fixed(1) } else { self.limit_value()? };
        self.expect_any(rows)?;
        let with_ties = self.eat_words(&["WITH", "TIES"]);
        if !with_ties {
            self.expect_word("ONLY")?;
        }
        Ok(Limit { count, offset, with_ties })
    }

    fn limit_value(&mut self) -> SqlResult<Expr> {
        let at = self.at;
        match self.kind() {
            Kind::Param => self.primary_expr(),
            Kind::Integer => match self.primary_expr()? {
                // The number is larger than any number of rows.
                Expr::Literal(literal) if matches!(literal.value, Value::Decimal(_)) => {
                    Err(self.error_at(at))
                }
                value => Ok(value),
            },
            Kind::Word | Kind::Quoted if self.variable_follows() => self.primary_expr(),
            Kind::Word | Kind::Quoted if self.is_name_at(0) => {
                Err(SqlError::undeclared_variable(&self.name()?))
            }
            _ => Err(self.error()),
        }
    }

    fn locking(&mut self) -> SqlResult<Option<Locking>> {
        let strength = match () {
            () if self.eat_words(&["FOR", "UPDATE"]) => LockStrength::Update,
            () if self.eat_words(&["FOR", "SHARE"]) => LockStrength::Share,
            () if self.eat_words(&["LOCK", "IN", "SHARE", "MODE"]) => LockStrength::Share,
            () => return Ok(None),
        };
        if self.is("OF") {
            return Err(self.unsupported("FOR UPDATE OF"));
        }
        let wait = self.lock_wait()?;
        Ok(Some(Locking { strength, wait }))
    }

    /// Parses NOWAIT, WAIT n or SKIP LOCKED.
    fn lock_wait(&mut self) -> SqlResult<LockWait> {
        if self.eat_word("NOWAIT") {
            return Ok(LockWait::NoWait);
        }
        if self.eat_words(&["SKIP", "LOCKED"]) {
            return Ok(LockWait::SkipLocked);
        }
        if self.eat_word("WAIT") {
            return Ok(LockWait::Seconds(self.number()?));
        }
        Ok(LockWait::Default)
    }

    fn target_variables(&mut self) -> SqlResult<Vec<Target>> {
        self.into_at = self.at;
        self.expect_word("INTO")?;
        if self.is_any(&["OUTFILE", "DUMPFILE"]) {
            // A subquery cannot write to a file, and a statement writes to at most one.
            let is_late = self.select_depth == 0;
            if self.select_depth > 1 || !self.names_matter || self.into_file.is_some() {
                return Err(self.error());
            }
            self.into_file = Some((self.read_into_file()?, is_late));
            return Ok(Vec::new());
        }
        self.list(Self::target)
    }
}

/// Returns whether a parenthesised query has INTO, which no part of a set operation may have.
fn has_into(body: &QueryBody) -> bool {
    matches!(body, QueryBody::Nested(query) if !query.into.is_empty())
}

/// Returns a parenthesised query as a body. The parentheses are kept only if the query has clauses of its
/// own, or is a set operation, whose column types are derived separately.
fn nested(query: Query) -> QueryBody {
    let bare = !matches!(query.body, QueryBody::SetOperation { .. })
        && query.with.is_none()
        && query.order_by.is_empty()
        && query.limit.is_none()
        && query.locking.is_none()
        && query.into.is_empty();
    if bare { in_parens(query).body } else { QueryBody::Nested(Box::new(query)) }
}

/// Marks the SELECT of a query as parenthesised.
fn in_parens(mut query: Query) -> Query {
    if let QueryBody::Select(select) = &mut query.body {
        select.in_parens = true;
    }
    query
}

fn literal_text(value: &cohort_types::Value) -> String {
    match value {
        cohort_types::Value::Str(text) => String::from_utf8_lossy(&text.bytes).trim_start().to_string(),
        _ => String::new(),
    }
}
