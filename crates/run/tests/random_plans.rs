//! Compares random plans over random tables with an interpreter based on nested loops. Plans run in memory,
//! and with so little memory that everything spills.

mod support;

use std::collections::BTreeMap;

use cohort_base::Budget;
use cohort_expr::{AggregateKind, CompareOp, Expr, SessionEnv};
use cohort_optimize::{
    AggregateNode, ChainInput, HashKey, Join, JoinKind, JoinMethod, LimitCount, LimitNode, Node, SetChain,
    SetOperation, SetOperator, Sort,
};
use cohort_types::Value;
use support::*;

/// A small random number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }
}

const TABLES: [(&str, usize); 3] = [("a", 2), ("b", 3), ("c", 1)];

fn tables(random: &mut Random) -> Vec<(&'static str, Rows)> {
    let rows = random.one_of(&[0, 3, 20, 60]);
    TABLES
        .iter()
        .map(|(name, width)| {
            let count = random.below(rows + 1);
            let value = |random: &mut Random| match random.below(6) {
                0 => Value::Null,
                _ => int(random.below(8) as i64),
            };
            (*name, (0..count).map(|_| (0..*width).map(|_| value(random)).collect()).collect())
        })
        .collect()
}

fn condition(random: &mut Random, width: usize) -> Expr {
    let op = random.one_of(&[CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Ge]);
    let left = col(random.below(width));
    let right = if random.below(2) == 0 { col(random.below(width)) } else { lit(random.below(8) as i64) };
    cmp(op, left, right)
}

/// Returns a random plan and its width.
fn generate(random: &mut Random, depth: usize) -> (Node, usize) {
    if depth == 0 || random.below(8) == 0 {
        let (name, width) = random.one_of(&TABLES);
        let node = match random.below(2) {
            0 => of(name, width),
            _ => Node::Scan(Box::new(declared(scan(name, width)))),
        };
        return (node, width);
    }
    match random.below(10) {
        0 => {
            let (input, width) = generate(random, depth - 1);
            (Node::Filter { input: Box::new(input), condition: condition(random, width) }, width)
        }
        1 => {
            let (input, width) = generate(random, depth - 1);
            let count = 1 + random.below(3);
            let item = |random: &mut Random| add(col(random.below(width)), lit(random.below(3) as i64));
            let items = (0..count)
                .map(|_| if random.below(2) == 0 { col(random.below(width)) } else { item(random) })
                .collect();
            (Node::Project { input: Box::new(input), items, kept: Vec::new() }, count)
        }
        2 => {
            let (input, width) = generate(random, depth - 1);
            (Node::Distinct { input: Box::new(input), collations: vec![CI; width] }, width)
        }
        3 => {
            let (left, width) = generate(random, depth - 1);
            let (right, _) = generate(random, depth - 1);
            let narrowed = |node: Node, from: usize| Node::Project {
                input: Box::new(node),
                items: (0..width).map(|n| col(n % from)).collect(),
                kept: Vec::new(),
            };
            let right = {
                let from = node_width(&right);
                narrowed(right, from)
            };
            if random.below(3) == 0 {
                return (Node::Concat(vec![left, right]), width);
            }
            if random.below(3) == 0 {
                return (set_chain(random, left, right, width, depth), width);
            }
            let (wants_common, all) = (random.below(2) == 0, random.below(2) == 0);
            let node = SetOperation { left, right, wants_common, all, collations: vec![CI; width] };
            (Node::SetOperation(Box::new(node)), width)
        }
        4 | 5 => {
            let (input, width) = generate(random, depth - 1);
            let keys: Vec<(Expr, _)> = (0..random.below(3)).map(|_| (col(random.below(width)), CI)).collect();
            let column = |random: &mut Random| vec![col(random.below(width))];
            // Some that are computed from vectors, and some that are not.
            let (second, third) = match random.below(2) {
                0 => (
                    aggregate(AggregateKind::BitXor, column(random)),
                    distinct_aggregate(AggregateKind::Count, column(random)),
                ),
                _ => (
                    aggregate(AggregateKind::Min, column(random)),
                    aggregate(AggregateKind::Count, column(random)),
                ),
            };
            let aggregates = vec![
                aggregate(AggregateKind::CountStar, vec![]),
                second,
                third,
                aggregate(AggregateKind::Max, column(random)),
            ];
            let (is_grouped, width) =
                (!keys.is_empty() || random.below(2) == 0, keys.len() + aggregates.len());
            let rollup = !keys.is_empty() && random.below(3) == 0;
            let ordered = rollup || random.below(2) == 0;
            let node = AggregateNode {
                input,
                keys,
                is_grouped,
                first: vec![],
                aggregates,
                rollup,
                descending: vec![],
                ordered,
            };
            (Node::Aggregate(Box::new(node)), width)
        }
        _ => {
            let (left, left_width) = generate(random, depth - 1);
            let kind = random.one_of(&[JoinKind::Inner, JoinKind::Left, JoinKind::Semi, JoinKind::Anti]);
            let (right, right_width) = match random.below(3) {
                0 => {
                    let (name, width) = random.one_of(&TABLES);
                    (None, (name, width))
                }
                _ => {
                    let (right, width) = generate(random, depth - 1);
                    (Some(right), ("", width))
                }
            };
            let (name, right_width) = right_width;
            let on = (random.below(2) == 0).then(|| condition(random, left_width + right_width));
            let key = |random: &mut Random| HashKey {
                left: col(random.below(left_width)),
                right: col(random.below(right_width)),
                collation: CI,
            };
            let method = match right {
                None => {
                    let column = random.below(right_width);
                    let key = col(random.below(left_width));
                    let scan = lookup(name, right_width, column, key);
                    // Matches are looked up row by row, or for a batch of rows.
                    let scan = if random.below(2) == 0 { scan } else { declared(scan) };
                    JoinMethod::Lookup(Box::new(scan))
                }
                Some(right) if random.below(3) > 0 => {
                    let keys = (0..1 + random.below(2)).map(|_| key(random)).collect();
                    JoinMethod::Hash { right, keys, right_width }
                }
                Some(right) => {
                    let gate = (random.below(2) == 0).then(|| condition(random, left_width));
                    JoinMethod::Loop { right, right_width, gate }
                }
            };
            let pairs = matches!(kind, JoinKind::Inner | JoinKind::Left);
            let width = if pairs { left_width + right_width } else { left_width };
            (Node::Join(Box::new(Join { kind, left, method, on })), width)
        }
    }
}

fn node_width(node: &Node) -> usize {
    match node {
        Node::Virtual(scan) => scan.columns.len(),
        Node::Scan(scan) => scan.columns.len(),
        Node::Filter { input, .. } | Node::Distinct { input, .. } => node_width(input),
        Node::Project { items, .. } => items.len(),
        Node::Concat(nodes) => node_width(&nodes[0]),
        Node::SetOperation(node) => node_width(&node.left),
        Node::SetChain(chain) => node_width(&chain.inputs[0].node),
        Node::Aggregate(node) => node.keys.len() + node.aggregates.len(),
        Node::Join(join) => {
            let right = match &join.method {
                JoinMethod::Lookup(scan) => scan.columns.len(),
                JoinMethod::Hash { right_width, .. } | JoinMethod::Loop { right_width, .. } => *right_width,
                JoinMethod::Json(scan) => scan.table.width,
            };
            let pairs = matches!(join.kind, JoinKind::Inner | JoinKind::Left);
            node_width(&join.left) + if pairs { right } else { 0 }
        }
        other => panic!("not generated: {other:?}"),
    }
}

/// The reference interpreter: no operators, and hash tables only to count whole rows.
struct Interpreter<'t> {
    tables: &'t [(&'static str, Rows)],
    env: SessionEnv,
    session: Session,
}

impl Interpreter<'_> {
    fn value(&self, expr: &Expr, row: &[Value]) -> Value {
        let eval = cohort_expr::EvalContext::new(&self.env, &self.session, &[]);
        expr.eval_output(row, &eval).expect("evaluates").into_owned()
    }

    fn holds(&self, expr: &Expr, row: &[Value]) -> bool {
        self.value(expr, row) == int(1)
    }

    fn table(&self, name: &str) -> Rows {
        self.tables.iter().find(|table| table.0 == name).expect("a table").1.clone()
    }

    fn rows(&self, node: &Node) -> Rows {
        match node {
            Node::Virtual(scan) => self.table(&scan.table),
            Node::Scan(scan) => self.table(&scan.name),
            Node::Filter { input, condition } => {
                self.rows(input).into_iter().filter(|row| self.holds(condition, row)).collect()
            }
            Node::Project { input, items, .. } => {
                let project = |row: &Vec<Value>| items.iter().map(|item| self.value(item, row)).collect();
                self.rows(input).iter().map(project).collect()
            }
            Node::Distinct { input, .. } => {
                let mut found: Rows = Vec::new();
                for row in self.rows(input) {
                    if !found.contains(&row) {
                        found.push(row);
                    }
                }
                found
            }
            Node::Concat(nodes) => nodes.iter().flat_map(|node| self.rows(node)).collect(),
            Node::SetOperation(node) => {
                let SetOperation { left, right, wants_common, all, .. } = &**node;
                set_operation(self.rows(left), self.rows(right), *wants_common, *all)
            }
            Node::SetChain(chain) => self.set_chain(chain),
            Node::Aggregate(node) => self.aggregate(node),
            Node::Join(join) => self.join(join),
            other => panic!("not generated: {other:?}"),
        }
    }

    fn set_chain(&self, chain: &SetChain) -> Rows {
        let mut found = Rows::new();
        for input in &chain.inputs {
            let rows = self.rows(&input.node);
            found = match input.op {
                SetOperator::Union => {
                    found.extend(rows);
                    // UNION DISTINCT: the INTERSECT DISTINCT of the rows with themselves.
                    if input.all { found } else { set_operation(found.clone(), found, true, false) }
                }
                op => set_operation(found, rows, op == SetOperator::Intersect, input.all),
            };
        }
        found
    }

    fn aggregate(&self, node: &AggregateNode) -> Rows {
        let rows = self.rows(&node.input);
        let lengths = if node.rollup { (0..=node.keys.len()).collect() } else { vec![node.keys.len()] };
        let mut found = Vec::new();
        for length in lengths {
            let mut groups: Vec<(Vec<Value>, Rows)> = Vec::new();
            for row in &rows {
                let key: Vec<Value> = node.keys[..length].iter().map(|key| self.value(&key.0, row)).collect();
                // BIT_XOR is unsigned, but equals other integers of the same value.
                match groups.iter_mut().find(|group| shown(&group.0) == shown(&key)) {
                    Some(group) => group.1.push(row.clone()),
                    None => groups.push((key, vec![row.clone()])),
                }
            }
            if groups.is_empty() && !node.is_grouped {
                groups.push((Vec::new(), Vec::new()));
            }
            for (mut key, rows) in groups {
                key.resize(node.keys.len(), Value::Null);
                for aggregate in &node.aggregates {
                    let eval = cohort_expr::EvalContext::new(&self.env, &self.session, &[]);
                    let mut state = aggregate.new_state();
                    rows.iter().for_each(|row| aggregate.add(&mut state, row, &eval).expect("adds"));
                    key.push(aggregate.finish(state, &eval).expect("finishes"));
                }
                found.push(key);
            }
        }
        found
    }

    fn join(&self, join: &Join) -> Rows {
        let (right, keys, right_width): (Rows, Vec<(Expr, Expr)>, usize) = match &join.method {
            JoinMethod::Lookup(scan) => {
                let cohort_optimize::Spans::List(spans) = &scan.access.spans else { panic!("a look-up") };
                let keys = vec![(spans[0].eq[0].clone(), col(scan.access.index))];
                (self.table(&scan.name), keys, scan.columns.len())
            }
            JoinMethod::Hash { right, keys, right_width } => {
                let keys = keys.iter().map(|key| (key.left.clone(), key.right.clone())).collect();
                (self.rows(right), keys, *right_width)
            }
            JoinMethod::Loop { right, right_width, .. } => (self.rows(right), Vec::new(), *right_width),
            JoinMethod::Json(_) => panic!("not generated: a document"),
        };
        let gate = match &join.method {
            JoinMethod::Loop { gate, .. } => gate.as_ref(),
            _ => None,
        };
        let mut found = Vec::new();
        for left in self.rows(&join.left) {
            let passes = gate.is_none_or(|gate| self.holds(gate, &left));
            let matches: Rows = right
                .iter()
                .filter(|_| passes)
                .filter(|right| {
                    keys.iter().all(|(l, r)| {
                        let (l, r) = (self.value(l, &left), self.value(r, right));
                        !l.is_null() && !r.is_null() && shown(&[l]) == shown(&[r])
                    })
                })
                .map(|right| left.iter().chain(right).cloned().collect::<Vec<Value>>())
                .filter(|row| join.on.as_ref().is_none_or(|on| self.holds(on, row)))
                .collect();
            match join.kind {
                JoinKind::Inner => found.extend(matches),
                JoinKind::Left if matches.is_empty() => {
                    found.push(
                        left.into_iter().chain(std::iter::repeat_n(Value::Null, right_width)).collect(),
                    );
                }
                JoinKind::Left => found.extend(matches),
                JoinKind::Semi if !matches.is_empty() => found.push(left),
                JoinKind::Anti if matches.is_empty() => found.push(left),
                JoinKind::Semi | JoinKind::Anti => {}
            }
        }
        found
    }
}

#[test]
fn random_plans_answer_as_nested_loops() {
    let seed = 0x2545_F491_4F6C_DD1D;
    println!("seed {seed}");
    let mut random = Random(seed);
    let mut spilled = 0;
    for round in 0..1500 {
        let tables = tables(&mut random);
        let depth = 1 + random.below(4);
        let (node, width) = generate(&mut random, depth);
        let reference = Interpreter { tables: &tables, env: SessionEnv::new(0), session: Session::default() };
        let expected = reference.rows(&node);
        if expected.len() > 5000 {
            continue;
        }
        let wanted = sorted(&expected);
        let root = plan(node, width);
        for memory in [usize::MAX, 2000, 200, 1] {
            let budget = Budget::of_session(&Budget::of_server());
            let session = Session { budget: Some(budget), ..Session::default() };
            let mut storage = Memory::new(&tables);
            storage.memory = memory;
            let (rows, found) = run_in(&root, &mut storage, &session).expect("runs");
            assert_eq!(found, rows.len() as u64);
            assert_eq!(sorted(&rows), wanted, "round {round} memory {memory}: {:?}\n{tables:?}", root.root);
            spilled += u64::from(storage.spilled > 0);
        }
        // A volatile condition makes rows pass one by one.
        let rand = cohort_expr::build_call("rand", vec![], &SessionEnv::new(0)).expect("builds");
        let always = cmp(CompareOp::Lt, rand, lit(2));
        let one_by_one = plan(Node::Filter { input: Box::new(root.root), condition: always }, width);
        assert_eq!(sorted(&rows_of(&one_by_one, &mut Memory::new(&tables))), wanted, "round {round}");
        let Node::Filter { input, .. } = one_by_one.root else { panic!("it was put there") };
        // The same plan, sorted by all columns, and a part of its result.
        let (offset, count) = (random.below(5), random.below(20));
        let limit = || LimitCount { count: Some(lit(count as i64)), offset: Some(lit(offset as i64)) };
        let keys = (0..width).map(|n| (col(n), if n % 2 == 0 { asc() } else { desc() })).collect();
        let sort = Node::Sort(Box::new(Sort { input: *input, keys, limit: Some(limit()) }));
        let limited = plan(
            Node::Limit(Box::new(LimitNode {
                input: sort,
                limit: limit(),
                ties: None,
                count_all: false,
                reports_found: false,
            })),
            width,
        );
        let mut ordered = expected;
        let number = |value: &Value| {
            let exact = value.to_decimal(&mut cohort_types::NoWarnings);
            exact.map_or(i64::MIN, |v| v.to_i64().0)
        };
        ordered.sort_by_key(|row| {
            let key = |(n, value): (usize, &Value)| if n % 2 == 0 { number(value) } else { !number(value) };
            row.iter().enumerate().map(key).collect::<Vec<i64>>()
        });
        let part: Rows = ordered.into_iter().skip(offset).take(count).collect();
        for memory in [usize::MAX, 300] {
            let mut storage = Memory::new(&tables);
            storage.memory = memory;
            let got = shown_all(&rows_of(&limited, &mut storage));
            assert_eq!(got, shown_all(&part), "round {round} memory {memory}");
        }
    }
    assert!(spilled > 1000, "{spilled}");
}

/// Returns EXCEPT or INTERSECT of two bags.
fn set_operation(left: Rows, right: Rows, wants_common: bool, all: bool) -> Rows {
    let count = |rows: Rows| {
        let mut counts: BTreeMap<String, (Vec<Value>, usize)> = BTreeMap::new();
        for row in rows {
            counts.entry(shown(&row)).or_insert((row, 0)).1 += 1;
        }
        counts
    };
    let right = count(right);
    let mut found = Vec::new();
    for (key, (row, left)) in count(left) {
        let right = right.get(&key).map_or(0, |row| row.1);
        let times = match (wants_common, all) {
            (true, true) => left.min(right),
            (true, false) => usize::from(right > 0),
            (false, true) => left.saturating_sub(right),
            (false, false) => usize::from(right == 0),
        };
        found.extend(std::iter::repeat_n(row, times));
    }
    found
}

/// Returns a chain that repeats both inputs with all set operators.
fn set_chain(random: &mut Random, left: Node, right: Node, width: usize, depth: usize) -> Node {
    let mut inputs = vec![ChainInput { op: SetOperator::Union, all: true, node: left }];
    let mut next = Some(right);
    for _ in 0..1 + random.below(5) {
        let node = match next.take() {
            Some(node) => node,
            None => {
                let (node, from) = generate(random, depth.min(2) - 1);
                let items = (0..width).map(|n| col(n % from)).collect();
                Node::Project { input: Box::new(node), items, kept: Vec::new() }
            }
        };
        let op = SetOperator::ALL[random.below(3)];
        inputs.push(ChainInput { op, all: random.below(2) == 0, node });
    }
    Node::SetChain(Box::new(SetChain { inputs, collations: vec![CI; width] }))
}
