//! XML as EXTRACTVALUE and UPDATEXML parse it: no namespaces, no entities, and any number of top-level
//! elements.

use cohort_types::{Interrupt, SqlResult};

use crate::context::EvalContext;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeKind {
    /// An element. The document is one, too: the first node, which is its own parent.
    Tag,
    Attribute,
    Text,
}

/// A node, with byte positions in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub kind: NodeKind,
    pub parent: usize,
    /// Number of ancestors.
    pub level: usize,
    /// Start of its name, or of its text.
    pub start: usize,
    pub end: usize,
    /// End position of the element's end tag, before its `>`.
    pub closed: usize,
}

/// A text and its nodes in document order.
pub(crate) struct Document<'t> {
    pub text: &'t [u8],
    pub nodes: Vec<Node>,
    /// Bytes charged for the nodes; the caller must release them.
    pub charged_bytes: usize,
}

impl Document<'_> {
    pub fn name(&self, node: usize) -> &[u8] {
        &self.text[self.nodes[node].start..self.nodes[node].end]
    }

    /// Returns the descendants of a node.
    pub fn inside(&self, node: usize) -> std::ops::Range<usize> {
        let level = self.nodes[node].level;
        let descendants = self.nodes[node + 1..].iter().position(|other| other.level <= level);
        node + 1..descendants.map_or(self.nodes.len(), |count| node + 1 + count)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    End,
    Text,
    Name,
    CData,
    Comment,
    Sign(u8),
    Unknown,
}

impl Token {
    fn shown(self) -> String {
        match self {
            Token::End => "END-OF-INPUT".to_owned(),
            Token::Text => "STRING".to_owned(),
            Token::Name => "IDENT".to_owned(),
            Token::CData => "CDATA".to_owned(),
            Token::Comment => "COMMENT".to_owned(),
            Token::Sign(byte) => format!("'{}'", char::from(byte)),
            Token::Unknown => "unknown token".to_owned(),
        }
    }
}

/// Bytes of a name shown in an error message.
const SHOWN_BYTES: usize = 31;
/// Memory of a node.
const NODE_BYTES: usize = std::mem::size_of::<Node>();
/// Number of nodes whose memory is charged in one step; fewer nodes are not charged.
const CHARGED_TOGETHER: usize = 1024;

struct Reader<'t, 'c, 's> {
    text: &'t [u8],
    at: usize,
    nodes: Vec<Node>,
    /// The element that is open.
    open: usize,
    level: usize,
    /// Number of nodes whose memory is charged.
    charged: usize,
    ctx: &'c EvalContext<'s>,
}

/// A parse error at the reader's position.
struct Wrong(String);

type Read<T> = Result<T, Wrong>;

/// Parses a text. The inner error is the message for invalid XML.
pub(crate) fn parsed<'t>(text: &'t [u8], ctx: &EvalContext<'_>) -> SqlResult<Result<Document<'t>, String>> {
    let root = Node { kind: NodeKind::Tag, parent: 0, level: 0, start: 0, end: 0, closed: text.len() };
    let mut reader = Reader { text, at: 0, nodes: vec![root], open: 0, level: 0, charged: 0, ctx };
    let outcome = reader.document();
    let charged_bytes = reader.charged * NODE_BYTES;
    if !matches!(outcome, Ok(Ok(()))) {
        ctx.let_go(charged_bytes);
    }
    if let Err(Wrong(what)) = outcome? {
        let before = &text[..reader.at];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let start = before.iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
        return Ok(Err(format!("parse error at line {line} pos {}: {what}", reader.at - start + 1)));
    }
    Ok(Ok(Document { text, nodes: reader.nodes, charged_bytes }))
}

impl Reader<'_, '_, '_> {
    fn document(&mut self) -> SqlResult<Read<()>> {
        while self.at < self.text.len() {
            self.ctx.steps(1)?;
            let more = self.nodes.len() - self.charged;
            if more >= CHARGED_TOGETHER {
                self.ctx.keep(more * NODE_BYTES)?;
                self.charged += more;
            }
            if self.text[self.at] == b'<' {
                if let Err(wrong) = self.markup() {
                    return Ok(Err(wrong));
                }
                continue;
            }
            let rest = &self.text[self.at..];
            let length = rest.iter().position(|byte| *byte == b'<').unwrap_or(rest.len());
            self.add(NodeKind::Text, self.at, self.at + length);
            self.at += length;
        }
        Ok(match self.open {
            0 => Ok(()),
            _ => Err(Wrong("unexpected END-OF-INPUT".to_owned())),
        })
    }

    fn add(&mut self, kind: NodeKind, start: usize, end: usize) -> usize {
        let level = self.level + 1;
        self.nodes.push(Node { kind, parent: self.open, level, start, end, closed: end });
        self.nodes.len() - 1
    }

    fn enter(&mut self, (start, end): (usize, usize)) {
        self.open = self.add(NodeKind::Tag, start, end);
        self.level += 1;
    }

    /// Closes the open element. Checks its name if the end tag has one.
    fn leave(&mut self, name: Option<(usize, usize)>) -> Read<()> {
        if let Some((start, end)) = name {
            let own = self.nodes[self.open];
            let shown = |start: usize, end: usize| {
                String::from_utf8_lossy(&self.text[start..end.min(start + SHOWN_BYTES)]).into_owned()
            };
            if self.open == 0 {
                return Err(Wrong(format!("'</{}>' unexpected (END-OF-INPUT wanted)", shown(start, end))));
            }
            if self.text[start..end] != self.text[own.start..own.end] {
                let (is, should) = (shown(start, end), shown(own.start, own.end));
                return Err(Wrong(format!("'</{is}>' unexpected ('</{should}>' wanted)")));
            }
        }
        let own = &mut self.nodes[self.open];
        own.closed = self.at;
        self.open = own.parent;
        self.level -= 1;
        Ok(())
    }

    /// Returns the next token and its position, without quotation marks.
    fn token(&mut self) -> (Token, (usize, usize)) {
        let text = self.text;
        while text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        let start = self.at;
        let rest = &text[start..];
        let up_to = |end: &[u8]| {
            let found = rest.windows(end.len()).position(|part| part == end);
            start + found.map_or(rest.len(), |at| at + end.len())
        };
        let is_name = |byte: u8, first: bool| {
            byte.is_ascii_alphabetic()
                || byte >= 0x80
                || byte == b'_'
                || byte == b':'
                || (!first && (byte.is_ascii_digit() || byte == b'-' || byte == b'.'))
        };
        let token = match rest.first().copied() {
            None => Token::End,
            Some(_) if rest.starts_with(b"<!--") => {
                self.at = up_to(b"-->");
                Token::Comment
            }
            Some(_) if rest.starts_with(b"<![CDATA[") => {
                self.at = up_to(b"]]>");
                Token::CData
            }
            Some(b'!') if !rest.starts_with(b"!DOCTYPE") => Token::Unknown,
            Some(sign @ (b'<' | b'>' | b'/' | b'=' | b'?' | b'!')) => {
                self.at += 1;
                Token::Sign(sign)
            }
            Some(quote @ (b'"' | b'\'')) => {
                let inner = rest[1..].iter().position(|byte| *byte == quote);
                let end = start + 1 + inner.unwrap_or(rest.len() - 1);
                self.at = (end + 1).min(text.len());
                return (Token::Text, (start + 1, end));
            }
            Some(byte) if is_name(byte, true) => {
                let length = rest.iter().position(|byte| !is_name(*byte, false)).unwrap_or(rest.len());
                self.at += length;
                Token::Name
            }
            Some(_) => Token::Unknown,
        };
        (token, (start, self.at))
    }

    /// Parses markup from `<` to `>`.
    fn markup(&mut self) -> Read<()> {
        let (token, (start, end)) = self.token();
        match token {
            Token::Comment => return Ok(()),
            Token::CData => {
                let begin = start + b"<![CDATA[".len();
                self.add(NodeKind::Text, begin.min(end), end.saturating_sub(3).max(begin.min(end)));
                return Ok(());
            }
            _ => {}
        }
        let (mut token, mut place) = self.token();
        if token == Token::Sign(b'/') {
            (token, place) = self.token();
            if token != Token::Name {
                return Err(Wrong(format!("{} unexpected (ident wanted)", token.shown())));
            }
            self.leave(Some(place))?;
            let (token, _) = self.token();
            return closing(token);
        }
        let opening = token;
        if matches!(token, Token::Sign(b'!' | b'?')) {
            (token, place) = self.token();
        }
        if token != Token::Name {
            return Err(Wrong(format!("{} unexpected (ident or '/' wanted)", token.shown())));
        }
        self.enter(place);
        let mut token = self.attributes(opening == Token::Sign(b'!'))?;
        if token == Token::Sign(b'/') {
            self.leave(None)?;
            token = self.token().0;
        }
        match opening {
            Token::Sign(b'?') => {
                if token != Token::Sign(b'?') {
                    return Err(Wrong(format!("{} unexpected ('?' wanted)", token.shown())));
                }
                self.leave(None)?;
                token = self.token().0;
            }
            Token::Sign(_) => self.leave(None)?,
            _ => {}
        }
        closing(token)
    }

    /// Parses attributes and returns the token after them. A definition may contain texts without names.
    fn attributes(&mut self, is_definition: bool) -> Read<Token> {
        loop {
            let (token, name) = self.token();
            if token != Token::Name && !(is_definition && token == Token::Text) {
                return Ok(token);
            }
            let (token, _) = self.token();
            match token {
                Token::Sign(b'=') => {
                    let (token, value) = self.token();
                    if !matches!(token, Token::Name | Token::Text) {
                        return Err(Wrong(format!("{} unexpected (ident or string wanted)", token.shown())));
                    }
                    self.attribute(name, Some(value));
                }
                // Two consecutive names without values: the first one is an attribute, the second is ignored.
                Token::Name => self.attribute(name, None),
                Token::Text if is_definition => {}
                _ => return Ok(token),
            }
        }
    }

    fn attribute(&mut self, (start, end): (usize, usize), value: Option<(usize, usize)>) {
        let node = self.add(NodeKind::Attribute, start, end);
        self.nodes[node].closed = self.at;
        if let Some((start, end)) = value {
            let level = self.level + 2;
            self.nodes.push(Node { kind: NodeKind::Text, parent: node, level, start, end, closed: end });
        }
    }
}

fn closing(token: Token) -> Read<()> {
    match token {
        Token::Sign(b'>') => Ok(()),
        token => Err(Wrong(format!("{} unexpected ('>' wanted)", token.shown()))),
    }
}
