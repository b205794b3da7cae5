//! Searches of MATCH .. AGAINST: parsing, and the relevance of a row.
//!
//! In boolean mode, words with `+` must occur and words with `-` must not. Without any `+`, at least one
//! other word must occur. `>` and `<` add and subtract 1, `~` excludes a word from the sum. A word that
//! indexes ignore is never found.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use cohort_base::IndexId;
use cohort_types::full_text::{is_indexed, put_word_key, raw_words, word_key, word_prefix_key};
use cohort_types::{Collation, Interrupt, SqlError, SqlResult};

/// Syntax of the text of AGAINST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchMode {
    /// Words, at least one of which must occur.
    Natural,
    /// Words with operators.
    Boolean,
}

/// The index with the word frequencies.
#[derive(Clone, Debug, PartialEq)]
pub struct WordSource {
    pub engine: Arc<str>,
    pub index: IndexId,
    /// The clustered index, with one entry per row.
    pub rows: IndexId,
    pub collation: Collation,
}

/// Properties of the call in addition to text and columns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Match {
    pub mode: SearchMode,
    pub source: WordSource,
}

/// A search that the statement has already parsed.
pub(crate) struct KnownSearch {
    /// The MATCH it belongs to. The `Arc` identifies it, because the address of a freed node could be reused.
    pub asked: Arc<Match>,
    pub text: Option<String>,
    pub search: Arc<Search>,
}

/// A parsed search.
#[derive(Debug)]
pub(crate) struct Search {
    pub terms: Vec<Term>,
    /// Positions in `terms` of whole words.
    by_key: HashMap<Vec<u8>, usize>,
    /// Positions in `terms` of prefixes.
    by_prefix: HashMap<Vec<u8>, usize>,
    /// Lengths of the prefixes.
    prefix_lengths: BTreeSet<usize>,
    pub phrases: Vec<Phrase>,
    /// Words of phrases with their numbers, including words that indexes ignore.
    phrase_words: HashMap<Vec<u8>, u32>,
    pub root: Vec<(Operator, Node)>,
    collation: Collation,
}

/// A word, or a prefix of words.
#[derive(Debug)]
pub(crate) struct Term {
    pub key: Vec<u8>,
    is_prefix: bool,
    /// Number of rows with the word.
    pub rows: u64,
    /// log10(all rows / rows with the word).
    pub frequency: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    None,
    Must,
    MustNot,
    More,
    Less,
    Uncounted,
}

#[derive(Debug)]
pub(crate) enum Node {
    /// Position of a term; `None` if indexes ignore the word.
    Word(Option<usize>),
    /// Position of a phrase.
    Phrase(usize),
    Group(Vec<(Operator, Node)>),
}

/// Consecutive words, or words within a distance.
#[derive(Debug)]
pub(crate) struct Phrase {
    /// Word numbers of `phrase_words`.
    words: Vec<u32>,
    distance: Option<usize>,
    terms: Vec<usize>,
}

/// Occurrences of a search's words in a row.
pub(crate) struct Found {
    /// Number of occurrences by term.
    counts: Vec<u32>,
    /// For each phrase, true if it occurs.
    phrases: Vec<bool>,
    /// The row's words as numbers of `phrase_words`, or [`OTHER`]; [`BREAK`] after each column.
    words: Vec<u32>,
}

const OTHER: u32 = u32::MAX;
const BREAK: u32 = u32::MAX - 1;
/// Number of words between checks for KILL.
const LOOK_EVERY: usize = 256;
/// Maximum nesting of groups.
const DEPTH_MAX: usize = 64;
/// Maximum bytes of memory per byte of a search's text: a node, a term and the term's position.
pub(crate) const SEARCH_BYTES_EACH: usize = 80;
/// Maximum number of words looked up in the index. A search that needs more evaluates all rows.
pub(crate) const NEEDED_MAX: usize = 256;

impl Found {
    pub fn new(search: &Search) -> Found {
        Found { counts: vec![0; search.terms.len()], phrases: Vec::new(), words: Vec::new() }
    }

    pub fn look_at(&mut self, search: &Search, text: &str, interrupt: &dyn Interrupt) -> SqlResult<()> {
        let mut key = Vec::new();
        for (n, word) in raw_words(text).enumerate() {
            if n % LOOK_EVERY == 0 {
                interrupt.step()?;
            }
            key.clear();
            put_word_key(word, search.collation, &mut key);
            if let Some(&term) = search.by_key.get(&key) {
                self.counts[term] += 1;
            }
            if !search.by_prefix.is_empty() && is_indexed(word) {
                for &length in search.prefix_lengths.range(..=key.len()) {
                    if let Some(&term) = search.by_prefix.get(&key[..length]) {
                        self.counts[term] += 1;
                    }
                }
            }
            if !search.phrase_words.is_empty() {
                self.words.push(search.phrase_words.get(&key).copied().unwrap_or(OTHER));
            }
        }
        self.words.push(BREAK);
        Ok(())
    }

    /// Finds the phrases, after all columns have been read.
    pub fn look_for_phrases(&mut self, search: &Search, interrupt: &dyn Interrupt) -> SqlResult<()> {
        for phrase in &search.phrases {
            let has_its_terms = phrase.terms.iter().all(|term| self.counts[*term] > 0);
            let is_there = has_its_terms
                && match phrase.distance {
                    None => has_run(&self.words, &phrase.words, interrupt)?,
                    Some(distance) => has_nearby(&self.words, &phrase.words, distance, interrupt)?,
                };
            self.phrases.push(is_there);
        }
        Ok(())
    }
}

/// Returns true if the words occur consecutively.
fn has_run(row: &[u32], words: &[u32], interrupt: &dyn Interrupt) -> SqlResult<bool> {
    for place in row.windows(words.len()) {
        let same = place.iter().zip(words).take_while(|(one, other)| one == other).count();
        if same == words.len() {
            return Ok(true);
        }
        interrupt.steps(u32::from(same > 0) + (same / LOOK_EVERY) as u32)?;
    }
    Ok(false)
}

/// Returns true if the words occur within a distance in one column.
fn has_nearby(row: &[u32], words: &[u32], distance: usize, interrupt: &dyn Interrupt) -> SqlResult<bool> {
    // Occurrences of each word among the last `distance` words.
    let mut near: HashMap<u32, usize> = words.iter().map(|word| (*word, 0)).collect();
    for column in row.split(|word| *word == BREAK) {
        near.values_mut().for_each(|count| *count = 0);
        let mut missing = near.len();
        for (n, word) in column.iter().enumerate() {
            if n % LOOK_EVERY == 0 {
                interrupt.step()?;
            }
            if let Some(count) = near.get_mut(word) {
                missing -= usize::from(*count == 0);
                *count += 1;
            }
            let passed = n.checked_sub(distance.max(1)).and_then(|n| near.get_mut(&column[n]));
            if let Some(count) = passed {
                *count -= 1;
                missing += usize::from(*count == 0);
            }
            if missing == 0 {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// First key of the range, and the key after its end.
pub type WordRange = (Vec<u8>, Option<Vec<u8>>);

impl Search {
    /// Returns words of which every found row has at least one: with `+`, those of the rarest node, otherwise
    /// those of all nodes.
    pub fn needed(&self, nodes: &[(Operator, Node)]) -> Option<Vec<usize>> {
        let rows = |terms: &[usize]| terms.iter().map(|term| self.terms[*term].rows).sum::<u64>();
        let must = nodes.iter().filter(|(operator, _)| *operator == Operator::Must);
        let needed = must.clone().filter_map(|(_, node)| self.needed_of(node));
        if must.count() > 0 {
            return needed.min_by_key(|terms| rows(terms));
        }
        let mut all = Vec::new();
        for (_, node) in nodes.iter().filter(|(operator, _)| *operator != Operator::MustNot) {
            all.extend(self.needed_of(node)?);
        }
        all.sort_unstable();
        all.dedup();
        Some(all)
    }

    fn needed_of(&self, node: &Node) -> Option<Vec<usize>> {
        match node {
            Node::Word(None) => Some(Vec::new()),
            Node::Word(Some(term)) if self.terms[*term].is_prefix => None,
            Node::Word(Some(term)) => Some(vec![*term]),
            Node::Phrase(n) => {
                let terms = self.phrases[*n].terms.iter();
                terms.min_by_key(|term| self.terms[**term].rows).map(|term| vec![*term])
            }
            Node::Group(nodes) => self.needed(nodes),
        }
    }

    /// Returns a search that finds nothing.
    pub fn empty(collation: Collation) -> Search {
        Search {
            terms: Vec::new(),
            by_key: HashMap::new(),
            by_prefix: HashMap::new(),
            prefix_lengths: BTreeSet::new(),
            phrases: Vec::new(),
            phrase_words: HashMap::new(),
            root: Vec::new(),
            collation,
        }
    }

    pub fn read(
        mode: SearchMode,
        text: &str,
        collation: Collation,
        interrupt: &dyn Interrupt,
    ) -> SqlResult<Search> {
        let mut search = Search::empty(collation);
        search.root = match mode {
            SearchMode::Natural => search.natural(text, interrupt)?,
            SearchMode::Boolean => {
                let marks = text.matches('"').count();
                Reader { search: &mut search, rest: text, marks, interrupt }.list(0)?
            }
        };
        Ok(search)
    }

    /// Returns the distinct words of a text and its quoted phrases, any of which suffices. An unpaired
    /// quotation mark is ignored.
    fn natural(&mut self, text: &str, interrupt: &dyn Interrupt) -> SqlResult<Vec<(Operator, Node)>> {
        let (mut nodes, mut asked, mut rest) = (Vec::new(), HashSet::new(), text);
        loop {
            let phrase = rest.split_once('"').and_then(|(before, after)| {
                let (phrase, after) = after.split_once('"')?;
                Some((before, phrase, after))
            });
            let words = phrase.map_or(rest, |(before, ..)| before);
            for word in raw_words(words) {
                interrupt.step()?;
                // A natural search ignores words that indexes ignore.
                if let Some(term) = self.term(word).filter(|term| asked.insert(*term)) {
                    nodes.push((Operator::None, Node::Word(Some(term))));
                }
            }
            let Some((_, phrase, after)) = phrase else { return Ok(nodes) };
            nodes.push((Operator::None, self.phrase(phrase, None, interrupt)?));
            rest = after;
        }
    }

    fn term(&mut self, word: &str) -> Option<usize> {
        if !is_indexed(word) {
            return None;
        }
        let key = word_key(word, self.collation);
        let next = self.terms.len();
        let term = *self.by_key.entry(key.clone()).or_insert(next);
        if term == next {
            self.terms.push(Term { key, is_prefix: false, rows: 0, frequency: 0.0 });
        }
        Some(term)
    }

    fn prefix(&mut self, prefix: &str) -> usize {
        let key = word_prefix_key(prefix, self.collation);
        let next = self.terms.len();
        let term = *self.by_prefix.entry(key.clone()).or_insert(next);
        if term == next {
            self.prefix_lengths.insert(key.len());
            self.terms.push(Term { key, is_prefix: true, rows: 0, frequency: 0.0 });
        }
        term
    }

    fn phrase(&mut self, text: &str, distance: Option<usize>, interrupt: &dyn Interrupt) -> SqlResult<Node> {
        let (mut words, mut terms) = (Vec::new(), Vec::new());
        for word in raw_words(text) {
            interrupt.step()?;
            // As in InnoDB: words that indexes ignore are skipped at the start of a phrase, and in a search
            // with a distance.
            if (words.is_empty() || distance.is_some()) && !is_indexed(word) {
                continue;
            }
            let next = self.phrase_words.len() as u32;
            words.push(*self.phrase_words.entry(word_key(word, self.collation)).or_insert(next));
            terms.extend(self.term(word));
        }
        // A phrase without an indexed word is never found.
        if terms.is_empty() {
            return Ok(Node::Word(None));
        }
        if let [_] = words[..] {
            return Ok(Node::Word(terms.first().copied()));
        }
        self.phrases.push(Phrase { words, distance, terms });
        Ok(Node::Phrase(self.phrases.len() - 1))
    }

    fn is_there(&self, node: &Node, found: &Found) -> bool {
        match node {
            Node::Word(term) => term.is_some_and(|term| found.counts[term] > 0),
            Node::Phrase(n) => found.phrases[*n],
            Node::Group(nodes) => self.matches(nodes, found),
        }
    }

    pub fn matches(&self, nodes: &[(Operator, Node)], found: &Found) -> bool {
        let (mut has_must, mut any) = (false, false);
        for (operator, node) in nodes {
            let is_there = self.is_there(node, found);
            match operator {
                Operator::Must if !is_there => return false,
                Operator::MustNot if is_there => return false,
                Operator::Must => has_must = true,
                Operator::MustNot => {}
                _ => any |= is_there,
            }
        }
        has_must || any
    }

    /// Returns the relevance of a found row: adds the operators first, then the distinct words in key order.
    pub fn relevance(&self, found: &Found) -> f32 {
        let mut terms = Vec::new();
        self.add_terms(&self.root, found, &mut terms);
        terms.sort_unstable_by_key(|term| &self.terms[*term].key);
        terms.dedup();
        let of_term = |term: &usize| {
            let frequency = self.terms[*term].frequency;
            (f64::from(found.counts[*term]) * frequency * frequency) as f32
        };
        terms.iter().fold(self.adjusted(&self.root, found), |sum, term| sum + of_term(term))
    }

    /// Appends the words that contribute to the relevance.
    fn add_terms(&self, nodes: &[(Operator, Node)], found: &Found, out: &mut Vec<usize>) {
        for (_, node) in self.counted(nodes, found) {
            match node {
                Node::Word(term) => out.extend(term),
                Node::Phrase(n) => out.extend(&self.phrases[*n].terms),
                Node::Group(nodes) => self.add_terms(nodes, found, out),
            }
        }
    }

    /// Returns the sum of the `>` and `<` operators.
    fn adjusted(&self, nodes: &[(Operator, Node)], found: &Found) -> f32 {
        let of_node = |(operator, node): &(Operator, Node)| {
            let own = match operator {
                Operator::More => 1.0,
                Operator::Less => -1.0,
                _ => 0.0,
            };
            match node {
                Node::Group(nodes) => own + self.adjusted(nodes, found),
                _ => own,
            }
        };
        self.counted(nodes, found).map(of_node).sum()
    }

    fn counted<'n>(
        &'n self,
        nodes: &'n [(Operator, Node)],
        found: &'n Found,
    ) -> impl Iterator<Item = &'n (Operator, Node)> {
        nodes.iter().filter(|(operator, node)| {
            !matches!(operator, Operator::MustNot | Operator::Uncounted) && self.is_there(node, found)
        })
    }
}

/// Parser of a boolean search.
struct Reader<'s> {
    search: &'s mut Search,
    rest: &'s str,
    /// Quotation marks in `rest`.
    marks: usize,
    interrupt: &'s dyn Interrupt,
}

const SIGNS: &[char] = &['*', '(', ')', '+', '-', '<', '>', '~', '@', '"', ' ', '\t', '\n', '%'];

fn syntax_error(unexpected: &str) -> SqlError {
    SqlError::unexpected_in_search(unexpected)
}

impl Reader<'_> {
    /// Skips white space and an unpaired quotation mark.
    fn skip_space(&mut self) {
        let is_space = |c: char| matches!(c, ' ' | '\t' | '\n' | '%');
        self.rest = self.rest.trim_start_matches(is_space);
        if self.marks == 1 && self.rest.starts_with('"') {
            self.marks = 0;
            self.rest = self.rest[1..].trim_start_matches(is_space);
        }
    }

    fn unexpected(&self) -> SqlError {
        match self.rest.chars().next() {
            None => syntax_error("$end"),
            Some(c) if SIGNS.contains(&c) => syntax_error(&format!("'{c}'")),
            Some(c) if c.is_ascii_digit() => syntax_error("FTS_NUMB"),
            Some(_) => syntax_error("FTS_TERM"),
        }
    }

    fn eat(&mut self, sign: char) -> bool {
        self.skip_space();
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Parses nodes up to the end, or to the closing parenthesis of the group.
    fn list(&mut self, depth: usize) -> SqlResult<Vec<(Operator, Node)>> {
        let mut nodes = Vec::new();
        loop {
            self.interrupt.step()?;
            self.skip_space();
            if depth > 0 && self.eat(')') {
                return Ok(nodes);
            }
            if self.rest.is_empty() && depth == 0 {
                return Ok(nodes);
            }
            let operator = match self.rest.chars().next() {
                Some('+') => Operator::Must,
                Some('-') => Operator::MustNot,
                Some('>') => Operator::More,
                Some('<') => Operator::Less,
                Some('~') => Operator::Uncounted,
                _ => Operator::None,
            };
            if operator != Operator::None {
                self.rest = &self.rest[1..];
            }
            nodes.push((operator, self.node(depth)?));
        }
    }

    fn node(&mut self, depth: usize) -> SqlResult<Node> {
        if self.eat('(') {
            return match depth < DEPTH_MAX {
                true => self.list(depth + 1).map(Node::Group),
                false => Err(syntax_error("'('")),
            };
        }
        if let Some((phrase, rest)) = self.rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
            self.rest = rest;
            self.marks -= 2;
            let distance = if self.eat('@') { Some(self.number()?) } else { None };
            return self.search.phrase(phrase, distance, self.interrupt);
        }
        // `*` before a word is ignored.
        if self.rest.trim_start_matches('*').starts_with(|c| !SIGNS.contains(&c)) {
            self.rest = self.rest.trim_start_matches('*');
        }
        let end = self.rest.find(SIGNS).unwrap_or(self.rest.len());
        let (term, rest) = self.rest.split_at(end);
        if term.is_empty() {
            return Err(self.unexpected());
        }
        self.rest = rest;
        let is_prefix = self.eat('*');
        let mut words: Vec<&str> = raw_words(term).collect();
        let last = if is_prefix { words.pop() } else { None };
        let mut nodes: Vec<(Operator, Node)> = Vec::new();
        for word in words {
            self.interrupt.step()?;
            nodes.push((Operator::None, Node::Word(self.search.term(word))));
        }
        if let Some(last) = last {
            nodes.push((Operator::None, Node::Word(Some(self.search.prefix(last)))));
        }
        Ok(match nodes.len() {
            1 => nodes.pop().expect("one").1,
            _ => Node::Group(nodes),
        })
    }

    fn number(&mut self) -> SqlResult<usize> {
        self.skip_space();
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        let number = digits.parse().map_err(|_| self.unexpected())?;
        self.rest = rest;
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use cohort_types::Uninterrupted;

    use super::*;

    pub fn relevance(mode: SearchMode, text: &str, columns: &[&str]) -> f32 {
        let mut search =
            Search::read(mode, text, Collation::UTF8MB4_GENERAL_CI, &Uninterrupted).expect("a search");
        search.terms.iter_mut().for_each(|term| term.frequency = 1.0);
        let mut found = Found::new(&search);
        columns.iter().for_each(|column| found.look_at(&search, column, &Uninterrupted).expect("looks"));
        found.look_for_phrases(&search, &Uninterrupted).expect("looks");
        if search.matches(&search.root, &found) { search.relevance(&found) } else { 0.0 }
    }

    #[test]
    fn natural_searches_count_each_word_as_often_as_it_is_there() {
        let natural = |text, row| relevance(SearchMode::Natural, text, &[row]);
        assert_eq!(natural("quick fox quick", "The quick fox, the other FOX"), 3.0);
        assert_eq!(natural("the of", "the of"), 0.0);
        assert_eq!(natural("cat", "cats"), 0.0);
    }

    #[test]
    fn operators_ask_for_words_and_weigh_them() {
        let boolean =
            |text| relevance(SearchMode::Boolean, text, &["the quick brown fox", "jumps and jumps"]);
        for (text, expected) in [
            ("fox cat", 1.0),
            ("+fox cat", 1.0),
            ("+cat fox", 0.0),
            ("+fox -jumps", 0.0),
            ("-cat", 0.0),
            ("fox -cat", 1.0),
            ("+fox ~jumps", 1.0),
            ("+fox >jumps", 4.0),
            ("+fox <jumps", 2.0),
            ("jum*", 2.0),
            ("ju*,fox", 3.0),
            ("\"quick brown\"", 2.0),
            ("\"brown quick\"", 0.0),
            ("\"the quick\"", 1.0),
            ("\"fox jumps\"", 0.0),
            ("\"fox quick\" @3", 2.0),
            ("\"fox quick\" @2", 0.0),
            ("\"fox brown\" @2", 2.0),
            ("\"jumps fox\" @9", 0.0),
            ("\"jumps jumps and\" @3", 3.0),
            ("ju* jum* ju*", 4.0),
            ("\"fox \" \"brown", 2.0),
            ("+(cat fox) +(quick dog)", 2.0),
            ("+(cat dog) fox", 0.0),
            ("+the +fox", 0.0),
            ("well-known fox", 1.0),
            ("", 0.0),
        ] {
            assert_eq!(boolean(text), expected, "{text}");
        }
    }

    #[test]
    fn invalid_searches_are_refused() {
        let refused = |text: &str| {
            let read = Search::read(SearchMode::Boolean, text, Collation::UTF8MB4_GENERAL_CI, &Uninterrupted);
            read.expect_err("refused").message
        };
        assert_eq!(
            relevance(SearchMode::Boolean, "\"fox", &["fox"]),
            1.0,
            "a mark that is not closed is none"
        );
        assert_eq!(refused("+"), "syntax error, unexpected $end");
        assert_eq!(refused("(fox"), "syntax error, unexpected $end");
        assert_eq!(refused("+-fox"), "syntax error, unexpected '-'");
        assert_eq!(refused("fox )"), "syntax error, unexpected ')'");
        assert_eq!(refused("fox@"), "syntax error, unexpected '@'");
        assert_eq!(refused("\"a\" @x"), "syntax error, unexpected FTS_TERM");
        assert_eq!(refused(&"(".repeat(1000)), "syntax error, unexpected '('");
    }
}
