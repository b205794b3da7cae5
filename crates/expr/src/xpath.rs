//! XPath as MariaDB supports it: a subset of XPath 1.0 with SQL's numbers, texts and comparisons.

use cohort_types::{ErrorCode, SqlError, SqlResult};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    Child,
    OwnName,
    Parent,
    Attribute,
    Descendant { with_own: bool },
    Ancestor { with_own: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Last,
    Position,
    True,
    False,
    Count,
    Sum,
    Not,
    Boolean,
    Number,
    Floor,
    Ceiling,
    Round,
    Concat,
    Contains,
    Substring,
    Length,
}

/// Name, minimum and maximum number of arguments.
const FUNCTIONS: [(&str, usize, usize, Function); 16] = [
    ("last", 0, 0, Function::Last),
    ("position", 0, 0, Function::Position),
    ("true", 0, 0, Function::True),
    ("false", 0, 0, Function::False),
    ("count", 1, 1, Function::Count),
    ("sum", 1, 1, Function::Sum),
    ("not", 1, 1, Function::Not),
    ("boolean", 1, 1, Function::Boolean),
    ("number", 1, 1, Function::Number),
    ("floor", 1, 1, Function::Floor),
    ("ceiling", 1, 1, Function::Ceiling),
    ("round", 1, 1, Function::Round),
    ("concat", 2, 255, Function::Concat),
    ("contains", 2, 2, Function::Contains),
    ("substring", 2, 3, Function::Substring),
    ("string-length", 0, 1, Function::Length),
];

const NODE_TYPES: [&str; 4] = ["text", "node", "comment", "processing-instruction"];

const AXES: [(&str, Axis); 13] = [
    ("ancestor", Axis::Ancestor { with_own: false }),
    ("ancestor-or-self", Axis::Ancestor { with_own: true }),
    ("attribute", Axis::Attribute),
    ("child", Axis::Child),
    ("descendant", Axis::Descendant { with_own: false }),
    ("descendant-or-self", Axis::Descendant { with_own: true }),
    ("parent", Axis::Parent),
    ("self", Axis::OwnName),
    // MariaDB accepts these names, but treats them as `child`.
    ("following", Axis::Child),
    ("following-sibling", Axis::Child),
    ("namespace", Axis::Child),
    ("preceding", Axis::Child),
    ("preceding-sibling", Axis::Child),
];

/// An expression. Node sets start at the document, or at the context node of a predicate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Path {
    Root,
    /// The context node of a predicate.
    Context,
    /// Nodes on an axis, with a name or, for `None`, with any name.
    Step(Box<Path>, Axis, Option<Vec<u8>>),
    /// Nodes for which a condition is true.
    Filter(Box<Path>, Box<Path>),
    /// Nodes at a position.
    Index(Box<Path>, Box<Path>),
    Union(Box<Path>, Box<Path>),
    Text(Vec<u8>),
    Integer(i64),
    /// A number as it is written.
    Fraction(Vec<u8>),
    /// `$@name`.
    Variable(String),
    Negative(Box<Path>),
    Binary(Binary, Box<Path>, Box<Path>),
    Call(Function, Vec<Path>),
}

impl Path {
    pub fn is_nodes(&self) -> bool {
        use Path::*;
        matches!(self, Root | Context | Step(..) | Filter(..) | Index(..) | Union(..))
    }

    /// Returns true if the expression is a condition as a predicate, false if it is a position.
    fn is_condition(&self) -> bool {
        match self {
            Path::Binary(op, ..) => {
                use Binary::*;
                !matches!(op, Add | Subtract | Multiply | Divide | Remainder)
            }
            Path::Call(function, _) => {
                use Function::*;
                matches!(function, True | False | Not | Boolean | Contains)
            }
            other => other.is_nodes(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    End,
    Word,
    Function,
    NodeType,
    Axis,
    Digits,
    Text,
    /// `!=`, `<=`, `>=` if the second field is true, otherwise a single character.
    Sign(u8, bool),
    Unknown,
}

struct Parser<'t> {
    text: &'t [u8],
    token: Token,
    start: usize,
    end: usize,
    /// The context inside a predicate, otherwise `None`.
    context: Option<Path>,
    /// Number of parts so far.
    size: usize,
}

/// Bytes of the unparsed text shown in an error message.
const SHOWN_BYTES: usize = 32;
/// Maximum number of parts of a path, which limits the recursion over it.
const PARTS_MAX: usize = 1000;

type Parsed<T> = Result<T, SqlError>;

fn shown(message: &str, text: &[u8]) -> SqlError {
    let part = String::from_utf8_lossy(&text[..text.len().min(SHOWN_BYTES)]);
    SqlError::new(ErrorCode::UnknownError, format!("{message}: '{part}'"))
}

/// Parses an expression. Error 1105 if it is invalid.
pub(crate) fn parsed(text: &[u8]) -> SqlResult<Path> {
    let mut parser = Parser { text, token: Token::End, start: 0, end: 0, context: None, size: 0 };
    parser.advance();
    let path = parser.expression()?;
    match parser.token {
        Token::End => Ok(path),
        _ => Err(parser.error()),
    }
}

fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn is_in_word(byte: u8) -> bool {
    is_word_start(byte) || byte.is_ascii_digit() || byte == b'-' || byte == b'.'
}

impl<'t> Parser<'t> {
    fn error(&self) -> SqlError {
        shown("XPATH syntax error", &self.text[self.start..])
    }

    fn word(&self) -> &'t [u8] {
        &self.text[self.start..self.end]
    }

    fn is_word(&self, word: &str) -> bool {
        self.token == Token::Word && self.word() == word.as_bytes()
    }

    /// Counts a part of the path.
    fn part(&mut self) -> Parsed<()> {
        self.size += 1;
        match self.size <= PARTS_MAX {
            true => Ok(()),
            false => Err(SqlError::xpath_too_long(PARTS_MAX)),
        }
    }

    fn advance(&mut self) {
        let skipped = |from: usize| {
            let rest = &self.text[from..];
            from + rest.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(rest.len())
        };
        self.start = skipped(self.end);
        let rest = &self.text[self.start..];
        let (token, length) = match rest.first().copied() {
            None => (Token::End, 0),
            Some(byte) if is_word_start(byte) => {
                let length = rest.iter().position(|byte| !is_in_word(*byte)).unwrap_or(rest.len());
                let following = &self.text[skipped(self.start + length)..];
                let word = std::str::from_utf8(&rest[..length]).unwrap_or("");
                let token = match () {
                    () if following.starts_with(b"(") && FUNCTIONS.iter().any(|known| known.0 == word) => {
                        Token::Function
                    }
                    () if following.starts_with(b"(") && NODE_TYPES.contains(&word) => Token::NodeType,
                    () if following.starts_with(b"::") && AXES.iter().any(|known| known.0 == word) => {
                        Token::Axis
                    }
                    () => Token::Word,
                };
                (token, length)
            }
            Some(byte) if byte.is_ascii_digit() => {
                let length = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
                (Token::Digits, length)
            }
            Some(quote @ (b'"' | b'\'')) => match rest[1..].iter().position(|byte| *byte == quote) {
                Some(length) => (Token::Text, length + 2),
                None => (Token::Unknown, 0),
            },
            Some(sign @ (b'!' | b'<' | b'>')) if rest.get(1) == Some(&b'=') => (Token::Sign(sign, true), 2),
            Some(b'!') => (Token::Unknown, 0),
            Some(sign) if b"()[].@,/|*+-=<>$:".contains(&sign) => (Token::Sign(sign, false), 1),
            Some(_) => (Token::Unknown, 0),
        };
        self.token = token;
        self.end = self.start + length;
    }

    fn eat(&mut self, sign: u8) -> bool {
        let is_it = self.token == Token::Sign(sign, false);
        if is_it {
            self.advance();
        }
        is_it
    }

    fn expect(&mut self, sign: u8) -> Parsed<()> {
        match self.eat(sign) {
            true => Ok(()),
            false => Err(self.error()),
        }
    }

    fn expression(&mut self) -> Parsed<Path> {
        cohort_types::check_stack()?;
        let mut left = self.conjunction()?;
        while self.is_word("or") {
            self.advance();
            left = binary(Binary::Or, left, self.conjunction()?);
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Parsed<Path> {
        let mut left = self.equality()?;
        while self.is_word("and") {
            self.advance();
            left = binary(Binary::And, left, self.equality()?);
        }
        Ok(left)
    }

    fn equality(&mut self) -> Parsed<Path> {
        let mut left = self.relation()?;
        loop {
            let op = match self.token {
                Token::Sign(b'=', false) => Binary::Equal,
                Token::Sign(b'!', true) => Binary::Unequal,
                _ => return Ok(left),
            };
            let at = self.start;
            self.advance();
            let right = self.relation()?;
            left = self.comparison(op, left, right, at)?;
        }
    }

    fn relation(&mut self) -> Parsed<Path> {
        let mut left = self.sum()?;
        loop {
            let op = match self.token {
                Token::Sign(b'<', false) => Binary::Less,
                Token::Sign(b'<', true) => Binary::LessOrEqual,
                Token::Sign(b'>', false) => Binary::Greater,
                Token::Sign(b'>', true) => Binary::GreaterOrEqual,
                _ => return Ok(left),
            };
            let at = self.start;
            self.advance();
            let right = self.sum()?;
            left = self.comparison(op, left, right, at)?;
        }
    }

    fn comparison(&self, op: Binary, left: Path, right: Path, at: usize) -> Parsed<Path> {
        match left.is_nodes() && right.is_nodes() {
            true => Err(shown("XPATH error: comparison of two nodesets is not supported", &self.text[at..])),
            false => Ok(binary(op, left, right)),
        }
    }

    fn sum(&mut self) -> Parsed<Path> {
        let mut left = self.product()?;
        loop {
            let op = match self.token {
                Token::Sign(b'+', false) => Binary::Add,
                Token::Sign(b'-', false) => Binary::Subtract,
                _ => return Ok(left),
            };
            self.advance();
            left = binary(op, left, self.product()?);
        }
    }

    fn product(&mut self) -> Parsed<Path> {
        let mut left = self.negative()?;
        loop {
            let op = match self.token {
                Token::Sign(b'*', false) => Binary::Multiply,
                _ if self.is_word("div") => Binary::Divide,
                _ if self.is_word("mod") => Binary::Remainder,
                _ => return Ok(left),
            };
            self.advance();
            left = binary(op, left, self.negative()?);
        }
    }

    fn negative(&mut self) -> Parsed<Path> {
        let mut count = 0;
        while self.eat(b'-') {
            count += 1;
            self.part()?;
        }
        let inner = self.union()?;
        Ok((0..count).fold(inner, |inner, _| Path::Negative(Box::new(inner))))
    }

    fn union(&mut self) -> Parsed<Path> {
        let mut left = self.path()?;
        while self.token == Token::Sign(b'|', false) {
            self.advance();
            if !left.is_nodes() {
                return Err(self.error());
            }
            let right = self.path()?;
            if !right.is_nodes() {
                return Err(self.error());
            }
            left = Path::Union(Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn path(&mut self) -> Parsed<Path> {
        self.part()?;
        let begins_path = match self.token {
            Token::Word | Token::NodeType | Token::Axis => true,
            Token::Sign(sign, false) => b"/.@*".contains(&sign),
            _ => false,
        };
        if begins_path {
            return self.location();
        }
        let filtered = self.primary()?;
        let at = (self.start, self.end, self.token);
        if !self.eat(b'/') {
            return Ok(filtered);
        }
        if !filtered.is_nodes() {
            (self.start, self.end, self.token) = at;
            return Err(self.error());
        }
        let begin = match self.eat(b'/') {
            true => step(filtered, Axis::Descendant { with_own: true }, None),
            false => filtered,
        };
        self.relative(begin)
    }

    fn location(&mut self) -> Parsed<Path> {
        if !self.eat(b'/') {
            let begin = self.context.clone().unwrap_or(Path::Root);
            return self.relative(begin);
        }
        if self.eat(b'/') {
            return self.relative(step(Path::Root, Axis::Descendant { with_own: true }, None));
        }
        let begins_step = match self.token {
            Token::Word | Token::NodeType | Token::Axis => true,
            Token::Sign(sign, false) => b".@*".contains(&sign),
            _ => false,
        };
        match begins_step {
            true => self.relative(Path::Root),
            false => Ok(Path::Root),
        }
    }

    fn relative(&mut self, begin: Path) -> Parsed<Path> {
        let mut path = self.step(begin)?;
        while self.eat(b'/') {
            self.part()?;
            if self.eat(b'/') {
                path = step(path, Axis::Descendant { with_own: true }, None);
            }
            path = self.step(path)?;
        }
        Ok(path)
    }

    fn step(&mut self, from: Path) -> Parsed<Path> {
        if self.eat(b'.') {
            return Ok(match self.eat(b'.') {
                true => step(from, Axis::Parent, None),
                false => from,
            });
        }
        let axis = match self.token {
            Token::Axis => {
                let known = AXES.iter().find(|known| known.0.as_bytes() == self.word());
                let axis = known.expect("the token is one").1;
                self.advance();
                self.expect(b':')?;
                self.expect(b':')?;
                axis
            }
            Token::Sign(b'@', false) => {
                self.advance();
                Axis::Attribute
            }
            _ => Axis::Child,
        };
        let mut path = self.node_test(from, axis)?;
        while self.eat(b'[') {
            self.part()?;
            let outer = self.context.replace(Path::Context);
            let predicate = self.expression()?;
            self.context = outer;
            self.expect(b']')?;
            let (path_before, predicate) = (Box::new(path), Box::new(predicate));
            path = match predicate.is_condition() {
                true => Path::Filter(path_before, predicate),
                false => Path::Index(path_before, predicate),
            };
        }
        Ok(path)
    }

    fn node_test(&mut self, from: Path, axis: Axis) -> Parsed<Path> {
        if self.eat(b'*') {
            return Ok(step(from, axis, None));
        }
        match self.token {
            // A node type selects nothing: the text of a set is that of its elements.
            Token::NodeType => {
                self.advance();
                self.expect(b'(')?;
                self.expect(b')')?;
                Ok(from)
            }
            Token::Word => {
                let start = self.start;
                let mut end = self.end;
                self.advance();
                if self.eat(b':') {
                    if self.token != Token::Word {
                        return Err(self.error());
                    }
                    end = self.end;
                    self.advance();
                }
                Ok(step(from, axis, Some(self.text[start..end].to_vec())))
            }
            _ => Err(self.error()),
        }
    }

    fn primary(&mut self) -> Parsed<Path> {
        match self.token {
            Token::Text => {
                let text = self.text[self.start + 1..self.end - 1].to_vec();
                self.advance();
                Ok(Path::Text(text))
            }
            Token::Digits => {
                let start = self.start;
                let whole = self.word();
                self.advance();
                if !self.eat(b'.') {
                    let digit = |n: u64, digit: &u8| n.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
                    return Ok(Path::Integer(whole.iter().fold(0, digit) as i64));
                }
                let mut end = start + whole.len() + 1;
                if self.token == Token::Digits {
                    end = self.end;
                    self.advance();
                }
                Ok(Path::Fraction(self.text[start..end].to_vec()))
            }
            Token::Function => self.call(),
            Token::Sign(b'(', false) => {
                self.advance();
                let inner = self.expression()?;
                self.expect(b')')?;
                Ok(inner)
            }
            Token::Sign(b'$', false) => self.variable(),
            _ => Err(self.error()),
        }
    }

    fn variable(&mut self) -> Parsed<Path> {
        let at = self.start;
        self.advance();
        let is_user = self.eat(b'@');
        if self.token != Token::Word {
            return Err(self.error());
        }
        let name = String::from_utf8_lossy(self.word()).into_owned();
        self.advance();
        match is_user {
            true => Ok(Path::Variable(name)),
            // Variables of stored programs, which are not supported.
            false => Err(shown("Unknown XPATH variable at", &self.text[at..])),
        }
    }

    fn call(&mut self) -> Parsed<Path> {
        let known = FUNCTIONS.iter().find(|known| known.0.as_bytes() == self.word());
        let &(_, fewest, most, function) = known.expect("the token is one");
        self.advance();
        self.expect(b'(')?;
        let mut args = Vec::new();
        while args.len() < most {
            if args.len() >= fewest && args.is_empty() && self.token == Token::Sign(b')', false) {
                break;
            }
            args.push(self.expression()?);
            if !self.eat(b',') {
                break;
            }
        }
        if args.len() < fewest {
            return Err(self.error());
        }
        self.expect(b')')?;
        let wants_context = matches!(function, Function::Last | Function::Position);
        let wants_nodes = matches!(function, Function::Count | Function::Sum);
        if (wants_context || args.is_empty() && function == Function::Length) && self.context.is_none()
            || wants_nodes && !args[0].is_nodes()
        {
            return Err(self.error());
        }
        Ok(Path::Call(function, args))
    }
}

fn step(from: Path, axis: Axis, name: Option<Vec<u8>>) -> Path {
    Path::Step(Box::new(from), axis, name)
}

fn binary(op: Binary, left: Path, right: Path) -> Path {
    Path::Binary(op, Box::new(left), Box::new(right))
}
