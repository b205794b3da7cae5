//! The dispatch of a statement to the code that runs it. The match lists every statement, so a new one does
//! not compile until it is decided where it runs.
//!
//! | module | statements |
//! |---|---|
//! | `transaction` | transactions, savepoints, LOCK TABLES |
//! | `session` | DO, LOAD DATA, BINLOG |
//! | `kill` | KILL |
//! | `show` | SHOW, EXPLAIN, DESCRIBE |
//! | `definition` | databases, tables, views, accounts |
//! | `admin` | table maintenance, SHUTDOWN |
//! | `backup` | BACKUP SERVER |
//! | `clone` | CLONE |
//! | `replication` | CHANGE MASTER, START and STOP SLAVE |
//!
//! XA, SET, PREPARE, HANDLER, GET DIAGNOSTICS and SELECT .. INTO OUTFILE have modules of their own.

mod admin;
mod backup;
mod clone;
mod definition;
mod kill;
mod replication;
mod session;
mod show;
mod show_where;
mod transaction;

use cohort_protocol::ResultSink;
use cohort_session::access;
use cohort_session::{Exception, Job, StatementTraits};
use cohort_sql::PlanKey;
use cohort_sql::ast::{Backup, Statement as S};
use cohort_types::{SqlError, SqlResult};

use crate::session::Session;

pub(crate) use kill::kill;
pub(crate) use session::check_plain;
pub(crate) use show::{ERROR_COUNT, KnownNow, WARNING_COUNT, constant_limit, count_column};
pub(crate) use show_where::calling_back;
use transaction::End;
pub(crate) use transaction::access_mode;

impl Session {
    /// Runs a statement that has passed the checks of all statements, and has these traits. The plan of a
    /// query or row change is cached under `key`.
    pub(crate) fn dispatch(
        &mut self,
        statement: &S,
        traits: &StatementTraits,
        job: &Job<'_>,
        key: Option<PlanKey>,
        sink: &mut dyn ResultSink,
    ) -> SqlResult<()> {
        if statement.plannable().is_none() {
            self.check_unplanned(statement, traits)?;
        }
        match statement {
            S::Query(_) | S::Insert(_) | S::Update(_) | S::Delete(_) => {
                return self.run_plannable(statement, job, key, sink);
            }
            S::QueryIntoFile(query) => return self.query_into_file(query, job, sink),
            S::LoadData(load) => return self.load_data(load, job, sink),
            S::Do(exprs) => self.do_exprs(exprs, job)?,
            S::Handler(handler) => return self.handler(handler, job, sink),

            S::Begin(begin) => self.begin(begin)?,
            S::Commit(completion) => self.complete(*completion, End::Commit)?,
            S::Rollback(completion) => self.complete(*completion, End::Rollback)?,
            S::Savepoint(name) => self.savepoint(name)?,
            S::RollbackTo(name) => self.rollback_to(name)?,
            S::ReleaseSavepoint(name) => self.release_savepoint(name)?,
            S::LockTables(tables) => self.lock_tables(tables)?,
            S::UnlockTables => self.unlock_tables()?,
            S::Xa(xa) => return self.xa(xa, job, sink),

            S::Set(items) => {
                let outcome = self.set_items(items, job);
                // The next result may belong to the same command.
                sink.results(self.state.results_collation());
                outcome?;
            }
            S::SetStatement { items, statement } => return self.set_statement(items, statement, job, sink),
            S::WithLockWait { seconds, statement } => {
                return self.with_lock_wait(*seconds, statement, job, sink);
            }
            S::Prepare { name, source } => {
                self.prepare_named(name, source, job)?;
                self.send_ok(job.more, 0, 0, "Statement prepared", sink);
                return Ok(());
            }
            S::Execute { name, using } => return self.execute_named(name, using, job, sink),
            S::ExecuteImmediate { source, using } => return self.execute_immediate(source, using, job, sink),
            S::Deallocate(name) => self.deallocate(name)?,
            S::Use(schema) => self.use_schema(schema)?,
            S::Kill(kill) => return self.kill(kill, job, sink),
            S::GetDiagnostics(get) => {
                self.get_diagnostics(get, job)?;
                self.send_ok(job.more, 0, 0, "", sink);
                return Ok(());
            }

            S::Program(program) => return self.program_statement(program, job, sink),

            S::Show(show) => return self.show(show, job, sink),
            S::Describe { table, column } => {
                return self.describe_columns(table, column.as_deref(), job, sink);
            }
            S::Explain { format, statement } => return self.explain(*format, statement, job, sink),
            S::Help(_) => return Err(SqlError::not_supported("this statement")),

            S::Flush(flush) => self.flush(flush, job)?,
            S::ResetMaster { to } => self.with_context(job, |ctx| cohort_info::reset_master(ctx, *to))?,
            S::PurgeBinaryLogs(purge) => self.with_context(job, |ctx| cohort_info::purge(ctx, purge))?,
            S::Binlog(text) => self.binlog(text, job)?,
            S::TableMaintenance(work) => return self.maintain_tables(work, job, sink),
            S::Backup(Backup::Server(server)) => return self.back_up_server(server, job, sink),
            S::Clone(clone) => return self.clone_server(clone, job, sink),
            S::Backup(backup) => self.with_context(job, |ctx| cohort_info::backup(ctx, backup))?,
            S::Plugin(plugin) => self.with_context(job, |ctx| cohort_info::change_plugins(ctx, plugin))?,
            S::Shutdown => self.shut_down(),

            S::ChangeMaster(change) => self.change_master(change, job)?,
            S::StartSlave(start) => self.start_replica(start, job)?,
            S::StopSlave(stop) => self.stop_replica(stop)?,
            S::ResetSlave { connection, all } => self.reset_replica(connection.as_deref(), *all)?,

            S::CreateDatabase(create) => {
                return self.define(job, sink, |ctx| cohort_ddl::create_database(ctx, create));
            }
            S::AlterDatabase(alter) => {
                self.define(job, sink, |ctx| cohort_ddl::alter_database(ctx, alter))?;
                if alter.name.is_none() || alter.name.as_deref() == self.state.current_schema.as_deref() {
                    self.state.adopt_schema_collation();
                }
                return Ok(());
            }
            S::DropDatabase(drop) => {
                return self.define(job, sink, |ctx| cohort_ddl::drop_database(ctx, drop));
            }
            S::CreateTable(create) => {
                return self.define(job, sink, |ctx| cohort_ddl::create_table(ctx, create));
            }
            S::AlterTable(alter) => return self.define(job, sink, |ctx| cohort_ddl::alter_table(ctx, alter)),
            S::AlterSequence(alter) => {
                return self.define(job, sink, |ctx| cohort_ddl::alter_sequence(ctx, alter));
            }
            S::DropTable(drop) => return self.define(job, sink, |ctx| cohort_ddl::drop_table(ctx, drop)),
            S::CreateView(create) => {
                return self.define(job, sink, |ctx| cohort_ddl::create_view(ctx, create));
            }
            S::RenameTable(rename) => {
                return self.define(job, sink, |ctx| cohort_ddl::rename_table(ctx, rename));
            }
            S::Truncate(name) => return self.define(job, sink, |ctx| cohort_ddl::truncate(ctx, name)),
            S::CreateIndex(create) => {
                return self.define(job, sink, |ctx| cohort_ddl::create_index(ctx, create));
            }
            S::DropIndex(drop) => return self.define(job, sink, |ctx| cohort_ddl::drop_index(ctx, drop)),

            S::CreateUser(create) => {
                return self.define(job, sink, |ctx| cohort_ddl::create_user(ctx, create));
            }
            S::CreateRole(create) => {
                return self.define(job, sink, |ctx| cohort_ddl::create_role(ctx, create));
            }
            S::DropRole(drop) => return self.define(job, sink, |ctx| cohort_ddl::drop_role(ctx, drop)),
            S::AlterUser(alter) => return self.define(job, sink, |ctx| cohort_ddl::alter_user(ctx, alter)),
            S::DropUser { if_exists, accounts } => {
                return self.define(job, sink, |ctx| cohort_ddl::drop_user(ctx, *if_exists, accounts));
            }
            S::RenameUser(pairs) => return self.define(job, sink, |ctx| cohort_ddl::rename_user(ctx, pairs)),
            S::Grant(grant) => return self.define(job, sink, |ctx| cohort_ddl::grant(ctx, grant)),
            S::Revoke(revoke) => return self.define(job, sink, |ctx| cohort_ddl::revoke(ctx, revoke)),
        }
        self.state.settings.env.row_count = 0;
        self.send_ok(job.more, 0, 0, "", sink);
        Ok(())
    }

    /// Makes the checks of statements without a plan.
    fn check_unplanned(&mut self, statement: &S, traits: &StatementTraits) -> SqlResult<()> {
        access::check_statement(&self.state, statement)?;
        if traits.has(Exception::NotUnderLocks) && self.trx.has_locked_tables() {
            return Err(cohort_trx::active_locks());
        }
        if !traits.has(Exception::BareOk) {
            // The reply may show variables or warnings, which may derive from rows that are not durable yet
            // (I5).
            self.trx.mark_observed();
        }
        Ok(())
    }
}
