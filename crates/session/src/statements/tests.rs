use super::*;

/// Examples of each kind, with their properties: kind, text, counters, implicit commit, conditions,
/// ROW_NUMBER, changes rows, refused under `read_only`, refused in read-only transactions, is about temporary
/// tables, refused under LOCK TABLES, bare OK, may be prepared, columns known at PREPARE, runs with an
/// expired password, bulk execution, changed names; MariaDB's errors in a procedure and in a function.
const EXAMPLES: &str = include_str!("examples.tsv");

fn statement(text: &str) -> Statement {
    cohort_sql::parse(text.as_bytes(), &cohort_sql::ParseOptions::default())
        .unwrap_or_else(|error| panic!("{text}: {}", error.message))
        .statement
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.to_owned()
}

/// Returns MariaDB's errors in a procedure and in a function.
fn errors(rule: ProgramRule, statement: &Statement) -> [&'static str; 2] {
    match rule {
        ProgramRule::Anywhere => ["", ""],
        ProgramRule::Nested => {
            let inner = innermost(statement);
            errors(traits_of(inner).programs, inner)
        }
        ProgramRule::NoResultSet => ["", "1415"],
        ProgramRule::NoCommit => ["", "1422"],
        ProgramRule::NoFunction => ["", "1336"],
        ProgramRule::NoPassword => ["", "1445"],
        ProgramRule::NoCreate => ["1303", "1303"],
        ProgramRule::NoAlter => ["1357", "1357"],
        ProgramRule::NoEventBody => ["1576", "1576"],
        ProgramRule::Never => ["1314", "1314"],
    }
}

#[test]
fn every_kind_of_statement_has_its_properties() {
    let mut seen = Vec::new();
    for line in EXAMPLES.lines() {
        let text = line.split('\t').nth(1).expect("a text");
        let statement = statement(text);
        let (kind, traits) = (kind_of(&statement), traits_of(&statement));
        seen.push(kind);
        let counters: Vec<String> = traits.counters.iter().map(|counter| format!("{counter:?}")).collect();
        let conditions = match traits.conditions {
            Conditions::Kept => "kept",
            Conditions::Old => "old",
            Conditions::Cleared => "cleared",
        };
        let is_listed = traits.prepare == AtPrepare::Listed;
        let is_temporary = traits.has(Exception::Temporary);
        let is_refused = traits.writes == Writes::Objects;
        let bulk = match (traits.has(Exception::BulkAtOnce), traits.has(Exception::BulkEach)) {
            (true, _) => "all",
            (_, true) => "each",
            (false, false) => "no",
        };
        let names = changed_names(&statement);
        let schema = names.schema.map(|schema| format!("{schema}.*"));
        let tables = names.tables.iter().map(|name| name.name.clone());
        let [in_procedure, in_function] = errors(traits.programs, &statement);
        let found = [
            format!("{kind:?}"),
            text.to_owned(),
            counters.join(" "),
            yes(commits_implicitly(&statement)),
            conditions.to_owned(),
            traits.row_of_rest(&statement).to_string(),
            yes(traits.writes == Writes::Rows),
            yes(traits.counts_as_write()),
            yes(is_refused),
            yes(is_temporary),
            yes(traits.has(Exception::NotUnderLocks)),
            yes(traits.has(Exception::BareOk)),
            yes(may_be_prepared(&statement)),
            yes(is_listed),
            yes(traits.has(Exception::ExpiredPassword)),
            bulk.to_owned(),
            tables.chain(schema).collect::<Vec<_>>().join(" "),
            in_procedure.to_owned(),
            in_function.to_owned(),
        ];
        assert_eq!(found.join("\t"), line);
    }
    for kind in StatementKind::ALL {
        assert!(seen.contains(kind), "no example of {kind:?}");
        assert_eq!(StatementKind::ALL[*kind as usize], *kind);
    }
}

#[test]
fn only_queries_and_row_changes_are_planned() {
    for line in EXAMPLES.lines() {
        let statement = statement(line.split('\t').nth(1).expect("a text"));
        let is_planned = traits_of(&statement).prepare == AtPrepare::Planned;
        assert_eq!(statement.plannable().is_some(), is_planned, "{line}");
        let counts_rows =
            traits_of(&statement).log_tables.iter().any(|it| matches!(it, LogTableUse::Rows(_)));
        let target = statement.plannable().is_some_and(|change| row_target(&change).is_some());
        assert!(counts_rows || !target, "{line}");
    }
}

#[test]
fn a_nested_statement_decides_for_set_statement() {
    for (text, commits, is_prepared) in [
        ("SET STATEMENT sql_log_bin = 0 FOR DROP TABLE t", true, true),
        ("SET STATEMENT sql_log_bin = 0 FOR LOCK TABLES t READ", true, true),
        ("SET STATEMENT sql_log_bin = 0 FOR CREATE TEMPORARY TABLE t (a INT)", false, true),
        ("SET STATEMENT sql_log_bin = 0 FOR COMMIT", false, true),
        ("SET STATEMENT sql_log_bin = 0 FOR EXECUTE p", false, false),
    ] {
        let statement = statement(text);
        assert_eq!(commits_implicitly(&statement), commits, "{text}");
        assert_eq!(may_be_prepared(&statement), is_prepared, "{text}");
    }
}
