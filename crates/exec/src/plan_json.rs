//! JSON in the format of EXPLAIN: ordered members, lists of texts on one line.

use cohort_optimize::json_text::{real_text, write_text, write_texts};

/// A JSON value with ordered members.
pub(super) enum Json {
    Text(String),
    Number(u64),
    /// Written with at most eleven characters.
    Real(f64),
    True,
    Null,
    /// A list of texts, on one line.
    Texts(Vec<String>),
    List(Vec<Json>),
    Object(Members),
}

pub(super) type Members = Vec<(&'static str, Json)>;

impl Json {
    pub(super) fn write(&self, depth: usize, out: &mut String) {
        let indent = |depth: usize, out: &mut String| out.push_str(&"  ".repeat(depth));
        match self {
            Json::Text(text) => write_text(text, out),
            Json::Number(number) => out.push_str(&number.to_string()),
            Json::Real(number) => out.push_str(&real_text(*number)),
            Json::True => out.push_str("true"),
            Json::Null => out.push_str("null"),
            Json::Texts(texts) => write_texts(texts, out),
            Json::List(items) => {
                out.push_str("[\n");
                for (n, item) in items.iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { ",\n" });
                    indent(depth + 1, out);
                    item.write(depth + 1, out);
                }
                out.push('\n');
                indent(depth, out);
                out.push(']');
            }
            Json::Object(members) if members.is_empty() => out.push_str("{}"),
            Json::Object(members) => {
                out.push_str("{\n");
                for (n, (name, value)) in members.iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { ",\n" });
                    indent(depth + 1, out);
                    write_text(name, out);
                    out.push_str(": ");
                    value.write(depth + 1, out);
                }
                out.push('\n');
                indent(depth, out);
                out.push('}');
            }
        }
    }
}
