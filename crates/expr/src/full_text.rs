//! MATCH .. AGAINST: parses a search, finds rows and computes their relevance.
//!
//! A search is parsed once per statement: its words, and the number of rows with each word according to the
//! FULLTEXT index. Then every row is evaluated separately. The relevance is InnoDB's: the sum over the found
//! words of the number of occurrences in the row times the square of log10(rows / rows with the word).

use std::sync::Arc;

use cohort_base::IndexId;
use cohort_types::{SqlError, SqlResult, TypeKind, Value, prefix_end};

use crate::args::Args;
use crate::context::{EvalContext, SessionEnv};
use crate::expr::{Call, Expr};
use crate::expr_type::{ExprType, NOT_FIXED_DECIMALS};
use crate::function::{ANY, Extra, Function, Nowhere, Rows, Stability};
use crate::search::{
    Found, KnownSearch, Match, NEEDED_MAX, SEARCH_BYTES_EACH, Search, SearchMode, WordRange, WordSource,
};

pub(crate) static MATCH: Function = Function::new(
    "match",
    2,
    ANY,
    |_: &mut [Expr], _: &SessionEnv| Ok(relevance_type()),
    evaluate,
    Rows,
    Nowhere,
)
.of_statement();

fn relevance_type() -> ExprType {
    ExprType::number(TypeKind::Double, 12, NOT_FIXED_DECIMALS)
}

/// Builds `MATCH (columns) AGAINST (text)`. Error 1210 if the text may differ between rows.
pub fn match_against(
    columns: Vec<Expr>,
    text: Expr,
    mode: SearchMode,
    source: WordSource,
) -> SqlResult<Expr> {
    let mut varies = false;
    text.walk(&mut |part| {
        varies |= match part {
            Expr::Column(_) | Expr::Outer(_) | Expr::Subquery(_) | Expr::CallBack(_) => true,
            Expr::Call(call) => {
                call.function.stability == Stability::Volatile && !matches!(call.function.name, "@" | ":=")
            }
            _ => false,
        };
        !varies
    });
    if varies {
        return Err(SqlError::wrong_arguments("AGAINST"));
    }
    let args = std::iter::once(text).chain(columns).collect();
    let extra = Extra::Match(Arc::new(Match { mode, source }));
    Ok(Expr::Call(Box::new(Call { function: &MATCH, args, extra, ty: relevance_type() })))
}

fn evaluate(a: Args<'_>) -> SqlResult<Value> {
    let search = search_of(a)?;
    if search.root.is_empty() {
        return Ok(Value::Double(0.0));
    }
    let mut found = Found::new(&search);
    let mut bytes = 0;
    for column in 1..a.count() {
        if let Some(text) = a.text(column)? {
            if !search.phrases.is_empty() {
                // A word takes at least two bytes of text.
                bytes += 2 * text.len();
                a.ctx.keep(2 * text.len())?;
            }
            found.look_at(&search, &String::from_utf8_lossy(&text), a.ctx)?;
        }
    }
    found.look_for_phrases(&search, a.ctx)?;
    a.ctx.let_go(bytes);
    let relevance = if search.matches(&search.root, &found) { search.relevance(&found) } else { 0.0 };
    Ok(Value::Double(relevance.into()))
}

/// Returns the search of a MATCH. It is parsed once per statement, although conditions, ORDER BY and columns
/// have separate nodes for the same MATCH.
fn search_of(a: Args<'_>) -> SqlResult<Arc<Search>> {
    let Extra::Match(asked) = &a.call.extra else { unreachable!("only `match_against` makes such calls") };
    if let Some(known) = a.ctx.searches().borrow().iter().find(|known| Arc::ptr_eq(&known.asked, asked)) {
        return Ok(Arc::clone(&known.search));
    }
    let text = a.text(0)?.map(|text| String::from_utf8_lossy(&text).into_owned());
    let is_same = |known: &&KnownSearch| known.asked == *asked && known.text == text;
    let same = a.ctx.searches().borrow().iter().find(is_same).map(|known| Arc::clone(&known.search));
    let search = match (same, &text) {
        (Some(search), _) => search,
        (None, Some(text)) => Arc::new(read_search(a, asked, text)?),
        (None, None) => Arc::new(Search::empty(asked.source.collation)),
    };
    let known = KnownSearch { asked: Arc::clone(asked), text, search: Arc::clone(&search) };
    a.ctx.searches().borrow_mut().push(known);
    Ok(search)
}

fn read_search(a: Args<'_>, asked: &Match, text: &str) -> SqlResult<Search> {
    a.ctx.keep(text.len() * SEARCH_BYTES_EACH)?;
    let mut search = Search::read(asked.mode, text, asked.source.collation, a.ctx)?;
    let rows = a.ctx.hooks.row_count(&asked.source)?;
    for term in &mut search.terms {
        let end = prefix_end(&term.key);
        let with_word = a.ctx.hooks.word_row_count(&asked.source, &term.key, end.as_deref())?;
        term.rows = with_word;
        // The number of rows is an estimate.
        let ratio = if with_word >= rows { 1.0001 } else { rows as f64 / with_word.max(1) as f64 };
        term.frequency = if with_word == 0 { 0.0 } else { ratio.log10() };
    }
    Ok(search)
}

impl Expr {
    /// Returns first column and index of a MATCH.
    pub fn match_source(&self) -> Option<(usize, IndexId)> {
        let Expr::Call(call) = self else { return None };
        let (Extra::Match(this), Some(Expr::Column(first))) = (&call.extra, call.args.get(1)) else {
            return None;
        };
        Some((first.ordinal, this.source.index))
    }

    /// Returns, for a MATCH, the index ranges of a set of words, at least one of which every found row
    /// contains. Returns `None` if the search needs prefixes or too many words.
    pub fn word_ranges(&self, ctx: &EvalContext<'_>) -> SqlResult<Option<Vec<WordRange>>> {
        let Expr::Call(call) = self else { return Ok(None) };
        let search = search_of(Args { call, row: &[], ctx })?;
        let range = |term: usize| {
            let key = &search.terms[term].key;
            (key.clone(), prefix_end(key))
        };
        let needed = search.needed(&search.root).filter(|terms| terms.len() <= NEEDED_MAX);
        Ok(needed.map(|terms| terms.into_iter().map(range).collect()))
    }
}
