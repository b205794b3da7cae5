//! The grammar: recursive descent over the token list of one statement.
//!
//! # Concepts
//! A [`Parser`] is a cursor over tokens. Each grammar rule is a method that either consumes its construct or
//! fails at the token where MariaDB's parser fails, because clients see the text at that token. No rule
//! backtracks over an expression.
//!
//! # Bounds
//! A recursive rule checks the space on the stack ([`Parser::enter`]). The height of a tree is limited, too
//! ([`HEIGHT_MAX`]): chains such as `a + b + c` are parsed in a loop, but copied, dropped and evaluated by
//! recursion. Some constructs may have any length: chains of AND and OR are built balanced, chains of set
//! operators are lists, and parentheses create no nodes. SELECTs may be nested as deeply as in MariaDB
//! ([`SELECT_DEPTH_MAX`]).
//!
//! # Literals
//! Each literal token has an ordinal, the same as in [`crate::Digest`]. A literal counts as a parameter if it
//! becomes an `Expr::Literal` whose value may change. The statement is cacheable if all its literals are
//! parameters and no rule has set `fixed`. So a rule that consumes a literal in any other way makes the
//! statement uncacheable without further code.
//!
//! | file | rules |
//! |---|---|
//! | `expr`, `function` | expressions, calls |
//! | `query`, `table_ref` | SELECT and FROM |
//! | `dml` | INSERT, REPLACE, UPDATE, DELETE |
//! | `data_type` | types |
//! | `table`, `alter`, `schema` | CREATE TABLE, ALTER TABLE, databases and indexes |
//! | `view` | CREATE VIEW, ALTER VIEW |
//! | `program` | stored programs, compound statements, CALL, SIGNAL |
//! | `session`, `set`, `admin`, `show`, `account` | the rest |
//! | `quick` | BEGIN, COMMIT, ROLLBACK and XA in their usual forms, without tokens |

use std::ops::Range;

use cohort_base::StackFloor;
use cohort_types::{SqlError, SqlResult, check_floor};

pub use function::{function_without_parens, is_window_function};

use crate::ast::{Expr, ObjectName, Statement, Target};
use crate::first_words::has_compound_body;
use crate::lexer::{Kind, Lexer, Token};
use crate::literal;
use crate::{ParseMode, ParseOptions};

mod account;
mod admin;
mod alter;
mod data_type;
mod dml;
mod expr;
mod file;
mod function;
mod function_names;
mod handler;
mod json_table;
mod oracle;
mod program;
mod query;
mod quick;
mod schema;
mod sequence;
mod session;
mod set;
mod show;
mod table;
mod table_ref;
mod view;
pub(crate) mod words;

/// Maximum height of an expression tree. A tree of this height can be copied and dropped within the reserve
/// below a stack's floor.
const HEIGHT_MAX: u32 = 1000;

/// Maximum nesting depth of SELECTs.
const SELECT_DEPTH_MAX: u32 = 64;

/// Bytes of the statement that an error message needs: the 80 that it shows, and a whole character more.
const NEAR_MAX: usize = 84;

/// A parsed statement with properties of its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    pub statement: Statement,
    /// Number of `?`.
    pub params: u32,
    /// The offset of each `?` in the text.
    pub param_at: Vec<u32>,
    /// Whether a plan of this statement can be used for every statement with the same digest: all literals
    /// are an `Expr::Literal` with an ordinal, and none determines more than a value. A plan that depends on
    /// the value of a literal (a pin) is used only for equal values.
    pub cacheable: bool,
    /// LIMIT ROWS EXAMINED: a literal or a parameter. It applies to the whole statement, wherever it is
    /// written; the last one counts.
    pub rows_examined: Option<Expr>,
    /// Approximate memory of tokens, tree and plan.
    pub memory_bytes: usize,
}

/// Measured memory of tokens, tree and plan per token, for ordinary statements and for rows of values.
const BYTES_OF_A_TOKEN: usize = 176;
/// Memory per token of a long text with many short values elsewhere, for instance in lists that are sorted
/// and converted. Each SELECT takes [`BYTES_OF_A_SELECT`] in addition.
const BYTES_ELSEWHERE: usize = 500;
const BYTES_OF_A_SELECT: usize = 600;
/// Maximum length of an ordinary statement.
const ORDINARY_BYTES: usize = 16 << 10;
/// Copies of a long literal: one in the tree, and one in the plan.
const LITERAL_COPIES: usize = 2;

fn memory_bytes(tokens: usize, text_bytes: usize) -> usize {
    tokens * BYTES_OF_A_TOKEN + text_bytes * LITERAL_COPIES
}

/// Returns the approximate memory of a text's tokens, tree and plan ([`Parsed::memory_bytes`]).
pub fn syntax_bytes(sql: &[u8], mode: ParseMode) -> usize {
    let mut lexer = Lexer::new(sql, mode);
    let tokens = std::iter::from_fn(|| Some(lexer.next()).filter(|token| token.kind != Kind::End));
    memory_bytes(tokens.count(), sql.len())
}

/// Requests memory for a text. The argument is the total.
pub type Charge<'c> = &'c mut dyn FnMut(usize) -> SqlResult<()>;

/// Parses one statement (a `;` at the end is allowed). Errors: 1064 with the text at the error, 1065 for an
/// empty text, 1235 for parts of MariaDB's language that are not supported yet.
pub fn parse(sql: &[u8], options: &ParseOptions) -> SqlResult<Parsed> {
    parse_charged(sql, options, &mut |_| Ok(()))
}

/// Parses one statement and requests its memory in advance. A refusal is returned as the error.
pub fn parse_charged(sql: &[u8], options: &ParseOptions, charge: Charge<'_>) -> SqlResult<Parsed> {
    match quick::statement(sql) {
        // None of them has a plan. Names of XA branches are literals that are not parameters.
        Some(statement) => {
            let cacheable = !matches!(statement, Statement::Xa(_));
            let (param_at, memory_bytes) = (Vec::new(), sql.len());
            Ok(Parsed { statement, params: 0, param_at, cacheable, rows_examined: None, memory_bytes })
        }
        None => parse_by_grammar(sql, options, charge),
    }
}

/// Parses a statement that the server has printed itself with [`print`](crate::print). Modes of a session or
/// an event do not affect it.
pub fn parse_own(sql: &str) -> SqlResult<Parsed> {
    parse(sql.as_bytes(), &ParseOptions::default())
}

fn parse_by_grammar(sql: &[u8], options: &ParseOptions, charge: Charge<'_>) -> SqlResult<Parsed> {
    if u32::try_from(sql.len()).is_err() {
        return Err(SqlError::out_of_memory());
    }
    let mut parser = Parser::new(sql, options, charge)?;
    let memory_bytes = parser.memory_bytes();
    charge(memory_bytes)?;
    if parser.kind() == Kind::End {
        return Err(SqlError::empty_query());
    }
    let statement = parser.statement()?;
    parser.eat(Kind::Semicolon);
    if parser.kind() != Kind::End {
        return Err(parser.error());
    }
    let all_are_parameters = parser.literal_params == parser.literals;
    Ok(Parsed {
        statement,
        params: parser.params,
        param_at: parser.param_places(),
        cacheable: all_are_parameters && !parser.fixed && !parser.version_comment,
        rows_examined: parser.rows_examined,
        memory_bytes,
    })
}

/// Finds the first statement of `sql`. Returns its range without the `;`, and the position after it. Returns
/// `None` if only spaces and comments are left, perhaps with `;` at the end.
///
/// A stored program or a compound statement contains `;`, so the grammar finds its end, and `charge` is asked
/// for the memory of its tokens and tree. If it has an error, or the memory is refused, the statement is the
/// rest of the text: parsing it returns that error. So is a `;` without a statement, as in MariaDB.
pub fn next_statement(sql: &[u8], mode: ParseMode, charge: Charge<'_>) -> Option<(Range<usize>, usize)> {
    // Most packets contain one statement, which begins with a word.
    if sql.first()?.is_ascii_alphabetic() && !sql.contains(&b';') {
        return Some((0..trim_end(sql, 0, sql.len()), sql.len()));
    }
    let start = start_of_statement(sql, mode)?;
    let rest = &sql[start..];
    let end = match () {
        () if !rest.contains(&b';') || is_semicolon(rest, mode) => rest.len(),
        () if has_compound_body(rest, mode) => end_of_program(rest, mode, charge).unwrap_or(rest.len()),
        () => {
            let mut lexer = Lexer::new(rest, mode);
            loop {
                let token = lexer.next();
                if matches!(token.kind, Kind::Semicolon | Kind::End) {
                    break token.start;
                }
            }
        }
    };
    let next = (start + end + 1).min(sql.len());
    Some((start..trim_end(sql, start, start + end), next))
}

/// Returns whether the text has a statement: more than spaces and comments, with `;` at the end.
pub fn has_statement(sql: &[u8], mode: ParseMode) -> bool {
    !sql.is_empty() && start_of_statement(sql, mode).is_some()
}

/// Returns where the first statement starts, with its leading comments.
fn start_of_statement(sql: &[u8], mode: ParseMode) -> Option<usize> {
    let is_filler = |byte: &u8| byte.is_ascii_whitespace() || *byte == b';';
    let sql = &sql[..sql.iter().rposition(|byte| !is_filler(byte))? + 1];
    let start = sql.iter().take_while(|b| b.is_ascii_whitespace()).count();
    (Lexer::new(&sql[start..], mode).next().kind != Kind::End).then_some(start)
}

fn is_semicolon(sql: &[u8], mode: ParseMode) -> bool {
    Lexer::new(sql, mode).next().kind == Kind::Semicolon
}

/// Returns the offset of the `;` after a statement with a compound body, or the length of the text. Returns
/// `None` after an error.
fn end_of_program(sql: &[u8], mode: ParseMode, charge: Charge<'_>) -> Option<usize> {
    let options = ParseOptions { mode, ..ParseOptions::default() };
    let mut parser = Parser::new(sql, &options, charge).ok()?;
    charge(parser.memory_bytes()).ok()?;
    parser.statement().ok()?;
    matches!(parser.kind(), Kind::Semicolon | Kind::End).then(|| parser.token().start)
}

fn trim_end(sql: &[u8], start: usize, end: usize) -> usize {
    end - sql[start..end].iter().rev().take_while(|b| b.is_ascii_whitespace()).count()
}

/// The parser's compact form of a token: texts are shorter than 4 GiB.
#[derive(Clone, Copy)]
struct Packed {
    start: u32,
    end: u32,
    /// Number of literal tokens before it.
    ordinal: u32,
    kind: Kind,
}

impl Packed {
    fn token(self) -> Token {
        Token { kind: self.kind, start: self.start as usize, end: self.end as usize }
    }
}

/// A cursor over the tokens of one statement.
struct Parser<'a> {
    sql: &'a [u8],
    options: &'a ParseOptions,
    /// The last one is `End`. An `Invalid` is followed by it, too.
    tokens: Vec<Packed>,
    at: usize,
    /// Number of `?` so far.
    params: u32,
    /// Number of literal tokens in the statement.
    literals: u32,
    /// Number of literals that became parameters.
    literal_params: u32,
    /// Whether a literal determines more than a value.
    fixed: bool,
    /// LIMIT ROWS EXAMINED.
    rows_examined: Option<Expr>,
    version_comment: bool,
    /// Whether the column names of the current query are used.
    names_matter: bool,
    /// Whether the last operand of a set operation was in parentheses.
    ends_in_parens: bool,
    /// INTO of the current SELECT, if it precedes FROM.
    into: Vec<Target>,
    /// Index of the FROM token after the last INTO.
    from_after_into: Option<usize>,
    /// The last INTO.
    into_at: usize,
    /// Whether the parser is in ON DUPLICATE KEY UPDATE, where VALUES(a) is the new value of a column.
    in_on_duplicate: bool,
    /// The local variables in scope, if the parser is in the body of a program.
    locals: Option<Box<program::Locals>>,
    /// INTO OUTFILE or DUMPFILE of the statement, and whether it follows FROM.
    into_file: Option<(crate::ast::IntoFile, bool)>,
    /// WAIT n of the statement; 0 for NOWAIT.
    lock_wait: Option<u64>,
    floor: StackFloor,
    /// Number of SELECTs around the current token.
    select_depth: u32,
    /// Height of the tallest expression completed in the current rule.
    height: u32,
}

impl<'a> Parser<'a> {
    fn new(sql: &'a [u8], options: &'a ParseOptions, charge: Charge<'_>) -> SqlResult<Parser<'a>> {
        let mut lexer = Lexer::new(sql, options.mode);
        let packed_bytes = |tokens: usize| tokens * size_of::<Packed>();
        charge(packed_bytes(sql.len() / 5 + 4))?;
        let mut tokens = Vec::with_capacity(sql.len() / 5 + 4);
        let mut literals = 0;
        loop {
            let token = lexer.next();
            if tokens.len() == tokens.capacity() {
                // While the vector grows, the old and the new one exist.
                charge(packed_bytes(tokens.len() * 3))?;
            }
            let (start, end) = (token.start as u32, token.end as u32);
            tokens.push(Packed { start, end, ordinal: literals, kind: token.kind });
            literals += u32::from(token.kind.is_literal());
            if token.kind == Kind::End {
                break;
            }
        }
        Ok(Parser {
            sql,
            options,
            tokens,
            at: 0,
            params: 0,
            literals,
            literal_params: 0,
            fixed: false,
            rows_examined: None,
            version_comment: lexer.saw_version_comment,
            names_matter: true,
            ends_in_parens: false,
            into: Vec::new(),
            from_after_into: None,
            into_at: 0,
            in_on_duplicate: false,
            locals: None,
            into_file: None,
            lock_wait: None,
            floor: StackFloor::current(),
            select_depth: 0,
            height: 0,
        })
    }

    /// Returns the approximate memory of tokens, tree and plan.
    fn memory_bytes(&self) -> usize {
        let (tokens, bytes) = (self.tokens.len(), self.sql.len());
        let ordinary = memory_bytes(tokens, bytes);
        if bytes <= ORDINARY_BYTES {
            return ordinary;
        }
        let count = |word: &str| {
            let is_it = |token: &&Packed| {
                let bytes = self.bytes(token.token());
                token.kind == Kind::Word && bytes.eq_ignore_ascii_case(word.as_bytes())
            };
            self.tokens.iter().filter(is_it).count()
        };
        let selects = count("SELECT");
        let is_list = |word: &str| count(word) > 0;
        // Rows of values, without lists or queries.
        if self.is_any(&["INSERT", "REPLACE"])
            && selects == 0
            && !["IN", "OR", "AND"].into_iter().any(is_list)
        {
            return ordinary;
        }
        tokens * BYTES_ELSEWHERE + selects * BYTES_OF_A_SELECT + bytes * LITERAL_COPIES
    }

    /// Returns the offsets of all `?`.
    fn param_places(&self) -> Vec<u32> {
        let marks = self.tokens.iter().filter(|token| token.kind == Kind::Param);
        marks.map(|token| token.start).collect()
    }

    // ---- the cursor

    fn token(&self) -> Token {
        self.tokens[self.at].token()
    }

    fn kind(&self) -> Kind {
        self.token().kind
    }

    /// Returns the n-th token.
    fn token_at(&self, n: usize) -> Token {
        self.tokens[n].token()
    }

    /// Returns the token `ahead` of the current one; `End` after the last.
    fn peek(&self, ahead: usize) -> Token {
        self.token_at((self.at + ahead).min(self.tokens.len() - 1))
    }

    fn bytes(&self, token: Token) -> &'a [u8] {
        &self.sql[token.start..token.end]
    }

    fn advance(&mut self) -> Token {
        let token = self.token();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn eat(&mut self, kind: Kind) -> bool {
        let hit = self.kind() == kind;
        if hit {
            self.advance();
        }
        hit
    }

    fn expect(&mut self, kind: Kind) -> SqlResult<Token> {
        if self.kind() == kind { Ok(self.advance()) } else { Err(self.error()) }
    }

    /// Returns whether the token `ahead` is the word (given in upper case).
    fn is_word_at(&self, ahead: usize, word: &str) -> bool {
        let token = self.peek(ahead);
        token.kind == Kind::Word && self.bytes(token).eq_ignore_ascii_case(word.as_bytes())
    }

    fn is(&self, word: &str) -> bool {
        self.is_word_at(0, word)
    }

    fn is_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }

    /// Returns whether the next tokens are these words.
    fn is_all(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(ahead, word)| self.is_word_at(ahead, word))
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let hit = self.is(word);
        if hit {
            self.advance();
        }
        hit
    }

    /// Consumes all the words or none.
    fn eat_words(&mut self, words: &[&str]) -> bool {
        let hit = self.is_all(words);
        if hit {
            words.iter().for_each(|_| {
                self.advance();
            });
        }
        hit
    }

    fn eat_any(&mut self, words: &[&str]) -> bool {
        let hit = self.is_any(words);
        if hit {
            self.advance();
        }
        hit
    }

    fn expect_word(&mut self, word: &str) -> SqlResult<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.error()) }
    }

    fn expect_words(&mut self, words: &[&str]) -> SqlResult<()> {
        words.iter().try_for_each(|word| self.expect_word(word))
    }

    fn expect_any(&mut self, words: &[&str]) -> SqlResult<()> {
        if self.eat_any(words) { Ok(()) } else { Err(self.error()) }
    }

    /// Consumes the current word and returns it in upper case, for options that are kept as text.
    fn upper_word(&mut self) -> SqlResult<String> {
        if self.kind() != Kind::Word {
            return Err(self.error());
        }
        let token = self.advance();
        Ok(String::from_utf8_lossy(self.bytes(token)).to_ascii_uppercase())
    }

    /// Returns whether the statement ends here.
    fn at_end(&self) -> bool {
        matches!(self.kind(), Kind::End | Kind::Semicolon)
    }

    /// Parses `item, item, ...`.
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> SqlResult<T>) -> SqlResult<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.eat(Kind::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Parses `(item, item, ...)`.
    fn paren_list<T>(&mut self, item: impl FnMut(&mut Self) -> SqlResult<T>) -> SqlResult<Vec<T>> {
        self.expect(Kind::LeftParen)?;
        let items = self.list(item)?;
        self.expect(Kind::RightParen)?;
        Ok(items)
    }

    // ---- names and simple literals

    /// Returns whether a name may start at the token `ahead`.
    fn is_name_at(&self, ahead: usize) -> bool {
        let token = self.peek(ahead);
        match token.kind {
            Kind::Quoted => true,
            Kind::Word => {
                let is_minus = self.options.mode.oracle && self.is_word_at(ahead, "MINUS");
                !is_minus && !words::is_reserved(self.bytes(token)) && !self.is_bound_call(ahead)
            }
            _ => false,
        }
    }

    /// Returns whether the token is a function name because a parenthesis follows it.
    fn is_bound_call(&self, ahead: usize) -> bool {
        let (token, next) = (self.peek(ahead), self.peek(ahead + 1));
        next.kind == Kind::LeftParen
            && (self.options.mode.ignore_space || token.end == next.start)
            && words::is_bound_function(self.bytes(token))
            && !words::is_name_before_parenthesis(self.bytes(token))
    }

    fn name(&mut self) -> SqlResult<String> {
        if self.is_name_at(0) { storable(self.any_name()) } else { Err(self.error()) }
    }

    /// Parses a name after a dot, where reserved words are allowed.
    fn name_after_dot(&mut self) -> SqlResult<String> {
        match self.kind() {
            Kind::Word | Kind::Quoted => storable(self.any_name()),
            _ => Err(self.error()),
        }
    }

    fn any_name(&mut self) -> String {
        let token = self.advance();
        self.name_of(token)
    }

    fn name_of(&self, token: Token) -> String {
        let bytes = self.bytes(token);
        match token.kind {
            Kind::Quoted => literal::unquote_name(bytes),
            _ => String::from_utf8_lossy(bytes).into_owned(),
        }
    }

    /// Parses `name`, `db.name`, or `.name`.
    fn object_name(&mut self) -> SqlResult<ObjectName> {
        if self.eat(Kind::Dot) {
            return table_name(None, self.name_after_dot()?);
        }
        let first = self.name()?;
        if self.eat(Kind::Dot) {
            return table_name(Some(first), self.name_after_dot()?);
        }
        table_name(None, first)
    }

    /// Parses the name of a database. Error 1102 if it is invalid.
    fn database_name(&mut self) -> SqlResult<String> {
        let name = self.name()?;
        if is_too_long(&name) { Err(SqlError::wrong_database_name(&name)) } else { Ok(name) }
    }

    /// Parses a name or a string, for instance of a character set or an engine.
    fn name_or_text(&mut self) -> SqlResult<String> {
        if self.kind() == Kind::Text { self.text() } else { self.name() }
    }

    /// Parses a string literal that is not an expression.
    fn text(&mut self) -> SqlResult<String> {
        Ok(String::from_utf8_lossy(&self.text_bytes()?).into_owned())
    }

    fn text_bytes(&mut self) -> SqlResult<Vec<u8>> {
        let token = self.expect(Kind::Text)?;
        let mut bytes = literal::text(self.bytes(token), self.options.mode);
        while self.kind() == Kind::Text {
            let token = self.advance();
            bytes.extend(literal::text(self.bytes(token), self.options.mode));
        }
        Ok(bytes)
    }

    /// Parses an unsigned integer literal that is not an expression.
    fn number(&mut self) -> SqlResult<u64> {
        let token = self.token();
        let number = match token.kind {
            Kind::Integer => std::str::from_utf8(self.bytes(token)).ok().and_then(|t| t.parse().ok()),
            Kind::Hex => self.hex_number(token),
            _ => None,
        };
        match number {
            Some(number) => {
                self.advance();
                Ok(number)
            }
            None => Err(self.error()),
        }
    }

    fn hex_number(&self, token: Token) -> Option<u64> {
        let text = std::str::from_utf8(self.bytes(token)).ok()?;
        u64::from_str_radix(text.trim_end_matches('\'').get(2..)?, 16).ok()
    }

    /// Returns the original text from the token at index `from` to the last consumed one.
    fn source_text(&self, from: usize) -> String {
        let start = self.token_at(from).start;
        let end = self.token_at(self.at.max(1) - 1).end;
        String::from_utf8_lossy(&self.sql[start..end.max(start)]).into_owned()
    }

    // ---- bounds

    /// Runs a recursive rule. Fails if the stack is too small.
    fn enter<T>(&mut self, rule: impl FnOnce(&mut Self) -> SqlResult<T>) -> SqlResult<T> {
        check_floor(self.floor)?;
        rule(self)
    }

    /// Runs the rule for the contents of a SELECT. Fails if SELECTs are nested too deeply.
    fn enter_select<T>(&mut self, rule: impl FnOnce(&mut Self) -> SqlResult<T>) -> SqlResult<T> {
        if self.select_depth >= SELECT_DEPTH_MAX {
            return Err(SqlError::selects_nested_too_deep());
        }
        self.select_depth += 1;
        let result = rule(self);
        self.select_depth -= 1;
        result
    }

    /// Counts one more level of a tree.
    fn grow(&mut self) -> SqlResult<()> {
        self.grow_by(1)
    }

    fn grow_by(&mut self, levels: u32) -> SqlResult<()> {
        self.height += levels;
        if self.height > HEIGHT_MAX { Err(too_deep()) } else { Ok(()) }
    }

    // ---- errors

    /// Returns error 1064 at the current token.
    fn error(&self) -> SqlError {
        self.error_at(self.at)
    }

    fn error_at(&self, index: usize) -> SqlError {
        let token = self.token_at(index);
        // After a comma, MariaDB's lexer has already started its next token, so its message does not include
        // the comma.
        let start = if token.kind == Kind::Comma { token.end } else { token.start };
        let near = &self.sql[start..];
        let line = 1 + self.sql[..start].iter().filter(|&&b| b == b'\n').count();
        let near = String::from_utf8_lossy(&near[..near.len().min(NEAR_MAX)]);
        SqlError::parse_error(&near, line)
    }

    /// Returns error 1235: MariaDB's language has it, this server does not.
    fn unsupported(&self, what: &str) -> SqlError {
        SqlError::not_supported(what)
    }

    // ---- statements

    fn statement(&mut self) -> SqlResult<Statement> {
        let statement = self.enter(Self::statement_inner)?;
        // A query in another statement cannot write to a file.
        if self.into_file.is_some() {
            return Err(self.error());
        }
        Ok(match self.lock_wait.take() {
            Some(seconds) => Statement::WithLockWait { seconds, statement: Box::new(statement) },
            None => statement,
        })
    }

    fn statement_inner(&mut self) -> SqlResult<Statement> {
        if self.kind() == Kind::LeftParen {
            return self.query_statement();
        }
        if self.kind() != Kind::Word {
            return Err(self.error());
        }
        let token = self.token();
        let word = String::from_utf8_lossy(self.bytes(token)).to_ascii_uppercase();
        if self.compound_follows() {
            return self.compound();
        }
        match word.as_str() {
            "SELECT" | "VALUES" | "WITH" | "TABLE" => self.query_statement(),
            "INSERT" | "REPLACE" => self.insert(),
            "UPDATE" => self.update(),
            "DELETE" => self.delete(),
            "DO" => self.do_statement(),
            "CREATE" => self.create(),
            "ALTER" => self.alter(),
            "DROP" => self.drop(),
            "TRUNCATE" => self.truncate(),
            "RENAME" => self.rename(),
            "BEGIN" | "START" | "COMMIT" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" | "LOCK" | "UNLOCK"
            | "XA" => self.transaction_statement(&word),
            "SET" => self.set(),
            "PREPARE" | "EXECUTE" | "DEALLOCATE" => self.prepared_statement(&word),
            "USE" => self.use_statement(),
            "KILL" => self.kill(),
            "SHOW" => self.show(),
            "DESCRIBE" | "DESC" | "EXPLAIN" => self.explain(),
            "HELP" => self.help(),
            "FLUSH" | "RESET" | "PURGE" | "BINLOG" | "BACKUP" | "CLONE" | "SHUTDOWN" | "CHANGE" | "STOP" => {
                self.admin(&word)
            }
            "CHECK" | "ANALYZE" | "OPTIMIZE" | "REPAIR" | "CHECKSUM" => self.maintenance(&word),
            "GRANT" => self.grant(),
            "REVOKE" => self.revoke(),
            "LOAD" => self.load(),
            "HANDLER" => self.handler(),
            "INSTALL" | "UNINSTALL" => self.plugin(&word),
            "GET" => self.get_diagnostics(),
            "CALL" => self.call_statement(),
            "SIGNAL" => self.signal(),
            "RESIGNAL" => self.resignal(),
            "CACHE" => Err(self.unsupported(&word)),
            _ => Err(self.error()),
        }
    }
}

/// Returns whether a word is a name only in quotes.
pub(crate) fn is_reserved(word: &str) -> bool {
    words::is_reserved(word.as_bytes())
}

fn too_deep() -> SqlError {
    SqlError::expression_too_deep(HEIGHT_MAX)
}

/// Maximum length of a name in characters.
pub const IDENTIFIER_CHARS_MAX: usize = 64;

/// Returns whether a name is too long.
fn is_too_long(name: &str) -> bool {
    name.chars().count() > IDENTIFIER_CHARS_MAX
}

/// Checks and returns the name of a table. Errors 1102 and 1103 if it is invalid; `#mysql50#` is MariaDB's
/// prefix of file names.
fn table_name(db: Option<String>, name: String) -> SqlResult<ObjectName> {
    if let Some(db) = db.as_deref().filter(|db| is_too_long(db)) {
        return Err(SqlError::wrong_database_name(db));
    }
    match is_too_long(&name) || name.starts_with("#mysql50#") {
        true => Err(SqlError::wrong_table_name(&name)),
        false => Ok(ObjectName { db, name }),
    }
}

/// Checks that a name has only characters of the Basic Multilingual Plane (error 1300). They take up to three
/// bytes each, so the length of 64 of them fits the one byte that binlog events have for it.
fn storable(name: String) -> SqlResult<String> {
    let Some(c) = name.chars().find(|c| *c > '\u{ffff}') else { return Ok(name) };
    let bytes: String = c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("\\x{byte:02X}")).collect();
    Err(SqlError::invalid_characters("utf8mb4", &bytes))
}
