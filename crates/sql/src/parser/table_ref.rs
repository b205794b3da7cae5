//! FROM: tables, derived tables, joins.
//!
//! The position of a join without a condition depends on the whole FROM. In `a JOIN b LEFT JOIN c ON x` the
//! second join applies to `(a JOIN b)`; in `a JOIN b JOIN c ON x ON y` the ON y belongs to the first join.
//! Operands and joins are therefore kept on a stack until an ON or USING closes the last open join. Joins
//! that remain open at the end are attached to the leftmost leaf of their right side.

use cohort_types::{SqlError, SqlResult};

use super::Parser;
use crate::ast::{
    IndexHint, IndexHintKind, IndexHintScope, Join, JoinCondition, JoinKind, TableFactor, TableRef,
};
use crate::lexer::Kind;

/// Maximum number of tables in a join.
const TABLES_MAX: usize = 61;

/// A join tree that preserves parentheses: an expression in parentheses is a leaf.
enum Node {
    Leaf(TableRef),
    Join { kind: JoinKind, left: Box<Node>, right: Box<Node>, condition: JoinCondition },
}

impl Node {
    fn join(kind: JoinKind, left: Node, right: Node, condition: JoinCondition) -> Node {
        Node::Join { kind, left: Box::new(left), right: Box::new(right), condition }
    }

    /// Joins `outer` with the leftmost leaf.
    fn hang_left(self, kind: JoinKind, outer: Node) -> Node {
        match self {
            leaf @ Node::Leaf(_) => Node::join(kind, outer, leaf, JoinCondition::None),
            Node::Join { kind: own, left, right, condition } => {
                Node::join(own, left.hang_left(kind, outer), *right, condition)
            }
        }
    }

    fn finish(self) -> TableRef {
        match self {
            Node::Leaf(table) => table,
            Node::Join { kind, left, right, condition } => {
                let (left, right) = (left.finish(), right.finish());
                TableRef::Join(Box::new(Join { kind, left, right, condition }))
            }
        }
    }
}

/// Returns error 1116 if a join has too many tables. The limit also bounds the height of the tree.
fn check_table_count(count: usize) -> SqlResult<()> {
    if count <= TABLES_MAX {
        return Ok(());
    }
    Err(SqlError::too_many_tables(TABLES_MAX))
}

/// Keywords of a join.
struct JoinWords {
    kind: JoinKind,
    natural: bool,
}

impl Parser<'_> {
    /// Parses `a, b JOIN c ON ..., ...`.
    pub(super) fn table_refs(&mut self) -> SqlResult<TableRef> {
        let mut left = self.joined_tables()?;
        let mut count = 1;
        while self.eat(Kind::Comma) {
            count += 1;
            check_table_count(count)?;
            let right = self.joined_tables()?;
            let condition = JoinCondition::None;
            left = TableRef::Join(Box::new(Join { kind: JoinKind::Cross, left, right, condition }));
            self.grow()?;
        }
        Ok(left)
    }

    fn joined_tables(&mut self) -> SqlResult<TableRef> {
        let mut operands = vec![Node::Leaf(self.table_primary()?)];
        let mut open: Vec<JoinKind> = Vec::new();
        let mut count = 1;
        loop {
            if let Some(words) = self.join_words()? {
                count += 1;
                check_table_count(count)?;
                let right = Node::Leaf(self.table_primary()?);
                if words.natural {
                    let left = operands.pop().expect("a join has a left side");
                    operands.push(Node::join(words.kind, left, right, JoinCondition::Natural));
                } else {
                    operands.push(right);
                    open.push(words.kind);
                }
                self.grow()?;
                continue;
            }
            let Some(&kind) = open.last() else { break };
            let Some(condition) = self.join_condition()? else { break };
            open.pop();
            let right = operands.pop().expect("an open join has a right side");
            let left = operands.pop().expect("an open join has a left side");
            operands.push(Node::join(kind, left, right, condition));
        }
        let mut tree = operands.pop().expect("one operand was read");
        while let (Some(kind), Some(left)) = (open.pop(), operands.pop()) {
            if matches!(kind, JoinKind::Left | JoinKind::Right) {
                return Err(self.error());
            }
            tree = tree.hang_left(kind, left);
        }
        Ok(tree.finish())
    }

    fn join_words(&mut self) -> SqlResult<Option<JoinWords>> {
        if self.eat_word("STRAIGHT_JOIN") {
            return Ok(Some(JoinWords { kind: JoinKind::Straight, natural: false }));
        }
        let natural = self.eat_word("NATURAL");
        let kind = match () {
            () if self.eat_word("JOIN") => return Ok(Some(JoinWords { kind: JoinKind::Inner, natural })),
            () if self.eat_word("INNER") => JoinKind::Inner,
            () if !natural && self.eat_word("CROSS") => JoinKind::Cross,
            () if self.is_any(&["LEFT", "RIGHT"]) => {
                let kind = if self.is("LEFT") { JoinKind::Left } else { JoinKind::Right };
                self.advance();
                self.eat_word("OUTER");
                kind
            }
            () if natural => return Err(self.error()),
            () => return Ok(None),
        };
        self.expect_word("JOIN")?;
        Ok(Some(JoinWords { kind, natural }))
    }

    fn join_condition(&mut self) -> SqlResult<Option<JoinCondition>> {
        if self.is_all(&["ON", "DUPLICATE", "KEY"]) {
            return Ok(None);
        }
        if self.eat_word("ON") {
            return Ok(Some(JoinCondition::On(self.expr()?)));
        }
        if self.eat_word("USING") {
            return Ok(Some(JoinCondition::Using(self.paren_list(Self::name)?)));
        }
        Ok(None)
    }

    fn table_primary(&mut self) -> SqlResult<TableRef> {
        self.enter(|p| match p.kind() {
            Kind::LeftParen => p.parenthesised_tables(),
            // ODBC syntax of an outer join. As in MariaDB, any word may replace OJ.
            Kind::LeftBrace => {
                p.advance();
                p.name()?;
                let tables = p.joined_tables()?;
                p.expect(Kind::RightBrace)?;
                Ok(tables)
            }
            _ if p.is("JSON_TABLE") && p.peek(1).kind == Kind::LeftParen => p.json_table(),
            _ if p.is("LATERAL") && p.peek(1).kind == Kind::LeftParen => Err(p.unsupported("LATERAL")),
            _ => Ok(TableRef::Table(Box::new(p.table_factor()?))),
        })
    }

    fn parenthesised_tables(&mut self) -> SqlResult<TableRef> {
        if !self.derived_follows() {
            self.expect(Kind::LeftParen)?;
            let tables = self.table_refs()?;
            self.expect(Kind::RightParen)?;
            return Ok(tables);
        }
        self.expect(Kind::LeftParen)?;
        let query = Box::new(self.named(Self::query)?);
        self.expect(Kind::RightParen)?;
        let Some(alias) = self.alias()? else {
            return Err(self.error());
        };
        let columns = if self.kind() == Kind::LeftParen { self.paren_list(Self::name)? } else { Vec::new() };
        Ok(TableRef::Derived { query, alias, columns })
    }

    /// Returns whether the parenthesis here contains a query, unlike `((SELECT ..) a JOIN ..)`.
    fn derived_follows(&self) -> bool {
        if self.query_word_at(1) || self.is_word_at(1, "VALUES") {
            return true;
        }
        if self.peek(1).kind != Kind::LeftParen || !self.query_follows(1) {
            return false;
        }
        // Each parenthesis before the query closes at the end of the enclosing one, or before a word that
        // continues a query. A derived table would be followed by its alias.
        let inside = &self.tokens[self.at + 1..];
        let mut around = inside.iter().take_while(|token| token.kind == Kind::LeftParen).count();
        let mut depth = 0;
        for (offset, token) in inside.iter().enumerate() {
            match token.kind {
                Kind::LeftParen => depth += 1,
                Kind::RightParen if depth > around => depth -= 1,
                Kind::RightParen => {
                    let words = ["UNION", "EXCEPT", "INTERSECT", "ORDER", "LIMIT"];
                    let after = offset + 2;
                    if self.peek(after).kind != Kind::RightParen {
                        return words.iter().any(|word| self.is_word_at(after, word));
                    }
                    if depth == 1 {
                        return true;
                    }
                    depth -= 1;
                    around = depth;
                }
                _ => {}
            }
        }
        false
    }

    /// Parses `name [PARTITION (..)] [[AS] alias] [index hints]`.
    pub(super) fn table_factor(&mut self) -> SqlResult<TableFactor> {
        let name = self.object_name()?;
        let partitions = if self.eat_word("PARTITION") { self.paren_list(Self::name)? } else { Vec::new() };
        if self.is_all(&["FOR", "SYSTEM_TIME"]) {
            return Err(self.unsupported("FOR SYSTEM_TIME"));
        }
        let alias = if self.is("WINDOW") || self.kind() == Kind::Text { None } else { self.alias()? };
        let mut index_hints = Vec::new();
        while let Some(hint) = self.index_hint()? {
            index_hints.push(hint);
        }
        Ok(TableFactor { name, alias, index_hints, partitions })
    }

    fn index_hint(&mut self) -> SqlResult<Option<IndexHint>> {
        let kind = match () {
            () if self.is("USE") => IndexHintKind::Use,
            () if self.is("FORCE") => IndexHintKind::Force,
            () if self.is("IGNORE") => IndexHintKind::Ignore,
            () => return Ok(None),
        };
        if !(self.is_word_at(1, "INDEX") || self.is_word_at(1, "KEY")) {
            return Ok(None);
        }
        self.advance();
        self.advance();
        let scope = match () {
            () if self.eat_words(&["FOR", "JOIN"]) => IndexHintScope::Join,
            () if self.eat_words(&["FOR", "ORDER", "BY"]) => IndexHintScope::OrderBy,
            () if self.eat_words(&["FOR", "GROUP", "BY"]) => IndexHintScope::GroupBy,
            () => IndexHintScope::All,
        };
        self.expect(Kind::LeftParen)?;
        let names = if self.kind() == Kind::RightParen && kind == IndexHintKind::Use {
            Vec::new()
        } else {
            self.list(Self::index_name)?
        };
        self.expect(Kind::RightParen)?;
        Ok(Some(IndexHint { kind, scope, names }))
    }

    /// Parses the name of an index, including PRIMARY.
    pub(super) fn index_name(&mut self) -> SqlResult<String> {
        if self.eat_word("PRIMARY") { Ok("PRIMARY".to_string()) } else { self.name() }
    }
}
