//! Encoding of the catalog, and the catalog as a participant.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cohort_base::{CommitSeq, IndexId, Lsn, ParticipantId, TableId, Write};
use cohort_catalog::{
    Account, AuthMethod, Catalog, CatalogChange, CatalogStore, Check, Column, DefaultValue, Event,
    EventSchedule, ForeignAction, ForeignKey, Grants, Index, IndexColumn, IndexKind, KeyMethod, OnUpdate,
    ProgramSettings, Routine, RoutineName, Schema, Table, TableGrant, TableName, Trigger, Undecodable,
};
use cohort_engine::{EngineError, Participant, Redo, checkpoint_file};
use cohort_types::{
    Collation, ColumnType, DataAccess, Decimal, EventStatus, IntervalUnit, Privilege, Privileges,
    RoutineKind, SqlMode, StoredPlace, TriggerEvent, TriggerTiming, TypeKind, Value,
};
use cohort_vfs::{MemFs, OpenMode, SharedFs};

fn table() -> Table {
    let column = |name: &str, kind, default| Column {
        name: name.to_owned(),
        ty: ColumnType {
            kind,
            length: 11,
            decimals: 2,
            unsigned: true,
            zerofill: false,
            collation: Collation::UTF8MB4_BIN,
            members: vec!["a".to_owned(), "ü".to_owned()].into(),
        },
        nullable: true,
        default,
        on_update: OnUpdate::CurrentTimestamp,
        auto_increment: false,
        invisible: true,
        comment: "why".to_owned(),
        value_in_old_rows: Value::Int(-3),
        generated: None,
        check: None,
    };
    Table {
        id: TableId(7),
        name: TableName { schema: "test".to_owned(), table: "t1".to_owned() },
        engine: "ROCKSDB".to_owned(),
        columns: vec![
            column("a", TypeKind::Enum, DefaultValue::Value(Value::Decimal(Decimal::parse(b"-1.50").0))),
            column("b", TypeKind::Timestamp, DefaultValue::CurrentTimestamp),
            column("c", TypeKind::Int, DefaultValue::Expression("uuid()".to_owned())),
            column("d", TypeKind::VarChar, DefaultValue::None),
        ],
        indexes: vec![Index {
            id: IndexId(16),
            name: "PRIMARY".to_owned(),
            kind: IndexKind::Primary,
            columns: vec![
                IndexColumn { column: 3, prefix: Some(10), descending: true },
                IndexColumn { column: 0, prefix: None, descending: false },
            ],
            comment: String::new(),
            ignored: true,
            using: Some(KeyMethod::Hash),
            generated: true,
            since: CommitSeq(0),
        }],
        collation: Collation::UTF8MB4_GENERAL_CI,
        comment: "a table".to_owned(),
        auto_increment_start: 100,
        options: vec![("ROW_FORMAT".to_owned(), "DYNAMIC".to_owned())],
        created_at: 1_700_000_000,
        checks: vec![Check { name: "c".to_owned(), text: "`a` > 0".to_owned() }],
        foreign_keys: vec![foreign_key("fk", "other")],
        referenced_by: Vec::new(),
        storage: Vec::new(),
        triggers: Vec::new(),
    }
}

fn foreign_key(name: &str, parent: &str) -> ForeignKey {
    ForeignKey {
        name: name.to_owned(),
        columns: vec![3, 0],
        parent: TableName { schema: "shop".to_owned(), table: parent.to_owned() },
        parent_columns: vec!["x".to_owned(), "y".to_owned()],
        on_delete: ForeignAction::SetNull,
        on_update: ForeignAction::NoAction,
    }
}

/// A table lists its referring tables, whatever the order in which tables are created and dropped.
#[test]
fn a_table_knows_the_tables_that_refer_to_it() {
    let named = |id: u64, name: &str, parents: &[&str]| Table {
        id: TableId(id),
        name: TableName { schema: "shop".to_owned(), table: name.to_owned() },
        foreign_keys: parents.iter().map(|parent| foreign_key(parent, parent)).collect(),
        ..table()
    };
    let mut catalog = Catalog::default();
    catalog.apply(CommitSeq(1), vec![changes().remove(0)]);
    let mut apply = |changes: Vec<CatalogChange>, table: &str| {
        catalog.apply(CommitSeq(2), changes);
        let found = catalog.table("shop", table).expect("it is there");
        let children = found.referenced_by.iter().map(|child| child.table.clone());
        (children.collect::<Vec<_>>(), Arc::clone(found))
    };
    let put = CatalogChange::PutTable;
    // A child may be created before its parent; a table may refer to itself.
    apply(vec![put(named(1, "child", &["parent", "parent"]))], "child");
    let (children, first) = apply(vec![put(named(2, "parent", &["parent"]))], "parent");
    assert_eq!(children, ["child", "parent"]);
    let (children, same) = apply(vec![put(named(3, "bystander", &["child"]))], "parent");
    assert_eq!(children, ["child", "parent"]);
    assert!(Arc::ptr_eq(&first, &same), "what did not change is the same description");
    assert_eq!(apply(vec![put(named(1, "renamed", &["parent"]))], "parent").0, ["parent", "renamed"]);
    assert_eq!(apply(vec![put(named(1, "renamed", &[]))], "parent").0, ["parent"]);
    assert_eq!(apply(vec![put(named(1, "renamed", &["parent"]))], "parent").0, ["parent", "renamed"]);
    assert_eq!(apply(vec![CatalogChange::DropTable(TableId(1))], "parent").0, ["parent"]);
}

fn account() -> Account {
    let name = TableName { schema: "shop".to_owned(), table: "t1".to_owned() };
    let columns = [("a".to_owned(), Privilege::Update.into())].into();
    let grants = Grants {
        everything: Privileges::EVERY.without(Privilege::Super.into()),
        schemas: [("s%".to_owned(), Privileges::OF_SCHEMA)].into(),
        tables: [(name, TableGrant { table: Privilege::Select.into(), columns })].into(),
        routines: Default::default(),
    };
    Account {
        proxies: Default::default(),
        methods: vec![AuthMethod::password(format!("*{}", "07".repeat(20)))],
        grants,
        ..Account::new(("v".to_owned(), "10.%".to_owned()))
    }
}

fn changes() -> Vec<CatalogChange> {
    let schema = Schema::new("shop", Collation::BINARY, "c");
    vec![
        CatalogChange::PutSchema(schema),
        CatalogChange::PutTable(table()),
        CatalogChange::PutAccount(account()),
        CatalogChange::DropAccount(("u".to_owned(), "%".to_owned())),
        CatalogChange::NextIds { table: TableId(8), index: IndexId(17) },
    ]
}

fn settings() -> ProgramSettings {
    ProgramSettings {
        sql_mode: SqlMode::ANSI_QUOTES,
        client: Collation::UTF8MB4_GENERAL_CI,
        connection: Collation::UTF8MB4_BIN,
        database: Collation::BINARY,
    }
}

fn routine(kind: RoutineKind, name: &str) -> Routine {
    Routine {
        schema: "shop".to_owned(),
        name: name.to_owned(),
        kind,
        aggregate: true,
        parameters: "IN a INT".to_owned(),
        returns: "varchar(3)".to_owned(),
        body: "BEGIN END".to_owned(),
        deterministic: false,
        access: DataAccess::ReadsSqlData,
        by_invoker: true,
        comment: "c".to_owned(),
        definer: ("a_role".to_owned(), String::new()),
        settings: settings(),
        created_at: 1,
        modified_at: 2,
    }
}

fn trigger(name: &str, timing: TriggerTiming) -> Arc<Trigger> {
    let text = format!("trigger {name} before insert on  shop.t1 for each row set new.a=1");
    Arc::new(Trigger {
        name: name.to_owned(),
        timing,
        event: TriggerEvent::Insert,
        on: text.find("on  ").expect("is there")..text.find(" for").expect("is there"),
        body: text.find("set").expect("is there"),
        text,
        definer: ("u".to_owned(), "%".to_owned()),
        settings: settings(),
        created_at: 123,
    })
}

fn event(name: &str, schedule: EventSchedule) -> Event {
    Event {
        schema: "shop".to_owned(),
        name: name.to_owned(),
        schedule,
        preserve: true,
        status: EventStatus::SlavesideDisabled,
        originator: 4,
        time_zone: "Europe/Berlin".to_owned(),
        body: "DO 1".to_owned(),
        comment: "c".to_owned(),
        definer: ("u".to_owned(), "%".to_owned()),
        settings: settings(),
        created_at: 1,
        modified_at: 2,
    }
}

/// Changes that add programs and an account with grants on a routine.
fn programs() -> Vec<CatalogChange> {
    let mut with_triggers = table();
    with_triggers.name.schema = "shop".to_owned();
    with_triggers.triggers = vec![trigger("b", TriggerTiming::After), trigger("a", TriggerTiming::Before)];
    let mut account = account();
    let name = RoutineName::new(RoutineKind::Function, "shop", "F");
    account.grants.routines.insert(name, Privilege::Execute.into());
    let every = EventSchedule::Every { count: 3, unit: IntervalUnit::DayHour, starts: Some(-5), ends: None };
    vec![
        changes().remove(0),
        CatalogChange::PutTable(with_triggers),
        CatalogChange::PutRoutine(routine(RoutineKind::Procedure, "P")),
        CatalogChange::PutRoutine(routine(RoutineKind::Function, "P")),
        CatalogChange::PutEvent(event("e", every)),
        CatalogChange::PutEvent(event("at", EventSchedule::At(77))),
        CatalogChange::PutAccount(account),
    ]
}

/// Programs survive a change of their schema's attributes and are found whatever the case of their names.
#[test]
fn programs_are_contents_of_their_schema() {
    let mut catalog = Catalog::default();
    catalog.apply(CommitSeq(1), programs());
    catalog
        .apply(CommitSeq(2), vec![CatalogChange::PutSchema(Schema::new("shop", Collation::BINARY, "new"))]);
    let again = CatalogChange::decode(&CatalogChange::encode(&catalog.to_changes())).expect("decodes");
    let mut copy = Catalog::default();
    copy.apply(CommitSeq(3), again);
    assert_eq!(bytes_of(&copy), bytes_of(&catalog));
    let names = |kind| catalog.routine(kind, "shop", "p").map(|routine| routine.kind);
    assert_eq!(names(RoutineKind::Procedure), Some(RoutineKind::Procedure));
    assert_eq!(names(RoutineKind::Function), Some(RoutineKind::Function));
    assert!(catalog.event("shop", "AT").is_some());
    let schema = &catalog.schemas["shop"];
    assert_eq!(schema.trigger("a").map(|(table, _)| table.name.table.as_str()), Some("t1"));
    assert!(schema.trigger("A").is_none(), "names of triggers are exact");
    let names: Vec<_> = schema.tables["t1"].triggers.iter().map(|trigger| &*trigger.name).collect();
    assert_eq!(names, ["b", "a"], "the order is kept");
    for (change, left) in [
        (
            CatalogChange::DropRoutine {
                kind: RoutineKind::Procedure,
                schema: "shop".into(),
                name: "p".into(),
            },
            1,
        ),
        (
            CatalogChange::DropRoutine {
                kind: RoutineKind::Function,
                schema: "shop".into(),
                name: "p".into(),
            },
            0,
        ),
        (CatalogChange::DropEvent { schema: "shop".into(), name: "E".into() }, 0),
    ] {
        catalog.apply(CommitSeq(4), vec![change.clone()]);
        let schema = &catalog.schemas["shop"];
        assert_eq!(schema.procedures.len() + schema.functions.len(), left, "after {change:?}");
    }
    assert_eq!(catalog.schemas["shop"].events.len(), 1);
}

#[test]
fn a_renamed_table_is_renamed_in_its_triggers() {
    let mut renamed = table();
    renamed.triggers = vec![trigger("a", TriggerTiming::Before)];
    renamed.rename(TableName { schema: "shop".to_owned(), table: "x`y".to_owned() });
    let trigger = &renamed.triggers[0];
    assert_eq!(trigger.text, "trigger a before insert ON `x``y` for each row set new.a=1");
    assert_eq!((trigger.body_text(), &trigger.text[trigger.on.clone()]), ("set new.a=1", "ON `x``y`"));
    renamed.rename(TableName { schema: "shop".to_owned(), table: "z".to_owned() });
    assert_eq!(renamed.triggers[0].text, "trigger a before insert ON `z` for each row set new.a=1");
}

/// A file of the build before stored programs is read, and rewritten by the next checkpoint.
#[test]
fn the_format_before_programs_is_read() {
    let fs: SharedFs = Arc::new(MemFs::new());
    fs.create_dir_all(&PathBuf::from("/data")).expect("makes");
    let mut file = checkpoint_file::begin(b"COHCAT01", Lsn(500));
    file.put_u64(7);
    let of_before = [changes().remove(0), CatalogChange::PutAccount(account())];
    file.extend_from_slice(&CatalogChange::encode(&of_before).bytes);
    checkpoint_file::seal(&mut file);
    fs.replace(Path::new("/data/catalog"), Path::new("/data/catalog.new"), &file).expect("writes");
    let store = open(&fs).expect("opens");
    assert!(read(&store).schemas.contains_key("shop"));
    store.begin_checkpoint(Lsn(500)).expect("begins").finish().expect("writes");
    let written = checkpoint_file::read_bytes(&fs, Path::new("/data/catalog")).expect("reads");
    assert!(written.starts_with(b"COHCAT02"));
    assert_eq!(bytes_of(&read(&open(&fs).expect("opens"))), bytes_of(&read(&store)));
}

#[test]
fn changes_round_trip_and_reject_what_is_cut() {
    for changes in [changes(), programs()] {
        let redo = CatalogChange::encode(&changes);
        assert_eq!(CatalogChange::decode(&redo), Ok(changes.clone()));
        let whole: Vec<usize> =
            (0..changes.len()).map(|n| CatalogChange::encode(&changes[..n]).bytes.len()).collect();
        for len in 0..redo.bytes.len() {
            let cut = CatalogChange::decode(&Redo::new(redo.bytes[..len].to_vec()));
            assert_eq!(cut.is_ok(), whole.contains(&len), "cut at {len}");
        }
    }
}

/// A table without a storage order is encoded as before storage orders existed.
#[test]
fn a_storage_order_names_each_column_once() {
    use StoredPlace::{Column, DroppedFixed, DroppedText};
    let of = |storage: &[StoredPlace]| {
        let moved = Table { storage: storage.to_vec(), ..table() };
        let change = vec![CatalogChange::PutTable(moved)];
        (CatalogChange::decode(&CatalogChange::encode(&change)), change)
    };
    let (plain, _) = of(&[]);
    let places = [Column(2), DroppedFixed(8), Column(0), DroppedText, Column(3), Column(1), DroppedFixed(0)];
    let (decoded, written) = of(&places);
    assert_eq!(decoded, Ok(written));
    assert_ne!(plain, decoded);
    for wrong in [&places[1..], &[Column(0), Column(1), Column(1), Column(3)], &[DroppedText]] {
        assert!(of(wrong).0.is_err(), "{wrong:?}");
    }
}

fn open(fs: &SharedFs) -> Result<CatalogStore, EngineError> {
    CatalogStore::open(ParticipantId(0), fs.clone(), Path::new("/data"))
}

fn bytes_of(catalog: &Catalog) -> Vec<u8> {
    CatalogChange::encode(&catalog.to_changes()).bytes
}

#[test]
fn a_key_space_knows_the_transaction_that_filled_it() {
    let mut catalog = Catalog::default();
    let schema = Schema::new("test", Collation::BINARY, "");
    catalog.apply(CommitSeq(1), vec![CatalogChange::PutSchema(schema), CatalogChange::PutTable(table())]);
    let since = |catalog: &Catalog| {
        let indexes = catalog.table("test", "t1").expect("is there").indexes.clone();
        indexes.iter().map(|index| (index.id, index.since)).collect::<Vec<_>>()
    };
    assert_eq!(since(&catalog), [(IndexId(16), CommitSeq(1))]);
    let mut other = table();
    other.comment = "another description of the same rows".to_owned();
    other.indexes.push(Index { id: IndexId(17), name: "k".to_owned(), ..other.indexes[0].clone() });
    catalog.apply(CommitSeq(5), vec![CatalogChange::PutTable(other.clone())]);
    assert_eq!(since(&catalog), [(IndexId(16), CommitSeq(1)), (IndexId(17), CommitSeq(5))]);
    other.indexes[0].id = IndexId(18);
    catalog.apply(CommitSeq(6), vec![CatalogChange::PutTable(other)]);
    assert_eq!(since(&catalog), [(IndexId(18), CommitSeq(6)), (IndexId(17), CommitSeq(5))]);
}

/// Returns the catalog with everything ordered published.
fn read(store: &CatalogStore) -> Arc<Catalog> {
    store.versions().published(|| CommitSeq(u64::MAX))
}

/// Accounts in formats of builds before the first release are rejected by name, not as damage.
#[test]
fn outdated_accounts_are_rejected_with_the_cure() {
    for tag in [5, 8, 9] {
        let mut bytes = vec![tag];
        for text in ["u", "%", "mysql_native_password", ""] {
            bytes.put_lenenc_bytes(text.as_bytes());
        }
        let redo = Redo::new(bytes);
        assert_eq!(CatalogChange::decode(&redo), Err(Undecodable::Outdated), "record {tag}");
        let fs: SharedFs = Arc::new(MemFs::new());
        fs.create_dir_all(&PathBuf::from("/data")).expect("makes");
        let replayed = open(&fs).expect("opens").replay(std::slice::from_ref(&redo));
        let mut file = checkpoint_file::begin(b"COHCAT01", Lsn(500));
        file.put_u64(7);
        file.extend_from_slice(&redo.bytes);
        checkpoint_file::seal(&mut file);
        fs.replace(Path::new("/data/catalog"), Path::new("/data/catalog.new"), &file).expect("writes");
        for refused in [replayed, open(&fs).map(drop)] {
            let error = refused.expect_err("outdated").to_string();
            assert!(
                error.contains("before the first release") && error.contains("docs/upgrade.md"),
                "{error}"
            );
        }
    }
}

#[test]
fn a_checkpoint_survives_and_damage_is_refused() {
    let mem = Arc::new(MemFs::new());
    let fs: SharedFs = mem.clone();
    fs.create_dir_all(&PathBuf::from("/data")).expect("makes");
    let store = open(&fs).expect("opens");
    assert!(read(&store).schemas.contains_key("test"), "a new data directory has `test`");
    store.commit_ordered(CommitSeq(1), &[&CatalogChange::encode(&changes())]);
    store.begin_checkpoint(Lsn(500)).expect("begins").finish().expect("writes");
    let before = read(&store);

    let reopened = open(&fs).expect("opens");
    assert_eq!(reopened.durable_lsn(), Lsn(500));
    assert_eq!(bytes_of(&read(&reopened)), bytes_of(&before));
    reopened.replay(&[CatalogChange::encode(&changes())]).expect("replays what it has");
    assert_eq!(bytes_of(&read(&reopened)), bytes_of(&before), "replay is idempotent");

    let file = fs.open(Path::new("/data/catalog"), OpenMode::Write).expect("opens");
    let len = file.len().expect("length");
    for offset in 0..len {
        let mut byte = [0];
        file.read_at(&mut byte, offset).expect("reads");
        file.write_at(&[byte[0] ^ 0x10], offset).expect("writes");
        assert!(matches!(open(&fs), Err(EngineError::Corrupt(_))), "a flipped bit at {offset} is refused");
        file.write_at(&byte, offset).expect("writes");
    }
    open(&fs).expect("opens again");
}
