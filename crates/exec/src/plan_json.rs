//! JSON in the format of EXPLAIN: ordered members, lists of texts on one line.

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
            Json::Texts(texts) => {
                out.push('[');
                for (n, text) in texts.iter().enumerate() {
                    out.push_str(if n == 0 { "" } else { ", " });
                    write_text(text, out);
                }
                out.push(']');
            }
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

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Formats a number like MariaDB's plans.
fn real_text(number: f64) -> String {
    const PLACES: usize = 11;
    let whole = format!("{number:.0}");
    let text = format!("{number:.*}", PLACES.saturating_sub(whole.len() + 1));
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_eleven_places() {
        let texts = [0.0, 100.0, 93.333_333_333_3, 18.0 / 19.0, 0.129_959_124, 123_456_789.25, 1e13];
        let expected =
            ["0", "100", "93.33333333", "0.947368421", "0.129959124", "123456789.2", "10000000000000"];
        assert_eq!(texts.map(real_text), expected);
    }
}
