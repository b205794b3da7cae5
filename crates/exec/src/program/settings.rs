//! The account and the settings with which a program runs.
//!
//! A routine runs with sql_mode, character_set_client, collation_connection and current database of its
//! creation, and with the account of its definer unless it has SQL SECURITY INVOKER. All of them are restored
//! when it ends, whatever its statements have set. Other variables that it sets keep their values.

use std::sync::Arc;

use cohort_catalog::{AccountName, Routine};
use cohort_config::{SessionVars, VarId, VarValue};
use cohort_session::access::{Access, may_execute};
use cohort_types::{SqlError, SqlResult};

use super::routines::OF_ROUTINES;
use crate::session::Session;

/// The settings and the account to restore when a program ends.
pub(super) struct SettingsBefore {
    vars: SessionVars,
    restored: &'static [VarId],
    schema: Option<Arc<str>>,
    identity: Option<IdentityBefore>,
}

/// The account of the caller.
struct IdentityBefore {
    account: AccountName,
    role: Option<String>,
    access: Option<Arc<Access>>,
    acted_as_definer: bool,
}

impl Session {
    /// Switches to the account and the settings of a routine. A compound statement has those of the session.
    /// Errors: 1449 if the definer does not exist, 1370 if it may not execute the routine.
    pub(super) fn settings_of_program(&mut self, routine: Option<&Routine>) -> SqlResult<SettingsBefore> {
        let Some(routine) = routine else {
            return Ok(self.settings_before(&[VarId::SqlMode], None));
        };
        let before = self.settings_of_definer(routine)?;
        // The definer may have lost the privilege.
        if before.identity.is_some()
            && let Err(error) = may_execute(&self.state, routine)
        {
            self.restore_settings(before);
            return Err(error);
        }
        Ok(before)
    }

    /// Switches to the account and the settings of a routine, without checking that it may be executed. Error
    /// 1449 if the definer does not exist.
    pub(super) fn settings_of_definer(&mut self, routine: &Routine) -> SqlResult<SettingsBefore> {
        let identity = self.become_definer(routine)?;
        let is_switched = identity.is_some();
        let before = self.settings_before(OF_ROUTINES, identity);
        let (settings, state) = (&routine.settings, &mut self.state);
        let is_same = state.settings.env.sql_mode == settings.sql_mode
            && state.named_charsets().client == Some(settings.client.charset())
            && state.settings.env.collation_connection == settings.connection
            && state.current_schema.as_deref() == Some(&*routine.schema)
            && state.settings.vars.value(VarId::CollationDatabase)
                == VarValue::text(settings.database.name());
        if !is_same {
            let vars = &mut state.settings.vars;
            vars.put(VarId::SqlMode, &VarValue::UInt(settings.sql_mode.0));
            vars.put(VarId::CharacterSetClient, &VarValue::text(settings.client.charset().name()));
            vars.put(VarId::CharacterSetConnection, &VarValue::text(settings.connection.charset().name()));
            vars.put(VarId::CollationConnection, &VarValue::text(settings.connection.name()));
            vars.put(VarId::CharacterSetDatabase, &VarValue::text(settings.database.charset().name()));
            vars.put(VarId::CollationDatabase, &VarValue::text(settings.database.name()));
            state.current_schema = Some(routine.schema.as_str().into());
        }
        if !is_same || is_switched {
            state.refresh();
        }
        Ok(before)
    }

    fn settings_before(
        &self,
        restored: &'static [VarId],
        identity: Option<IdentityBefore>,
    ) -> SettingsBefore {
        let (vars, schema) = (self.state.settings.vars.clone(), self.state.current_schema.clone());
        SettingsBefore { vars, restored, schema, identity }
    }

    /// Switches to the account of the definer. Returns the account of the caller, `None` if it is the same.
    fn become_definer(&mut self, routine: &Routine) -> SqlResult<Option<IdentityBefore>> {
        let definer = &routine.definer;
        let state = &mut self.state;
        let acts_for_others = state.identity.is_applier || state.identity.acts_for_server;
        if routine.by_invoker || acts_for_others || state.info.account == *definer {
            return Ok(None);
        }
        if !state.db.catalog().accounts.contains_key(definer) {
            return Err(SqlError::unknown_definer(&definer.0, &definer.1));
        }
        let role = definer.1.is_empty().then(|| definer.0.clone());
        let before = IdentityBefore {
            account: std::mem::replace(&mut state.info.account, definer.clone()),
            // A role runs as an account without a host that has its own privileges.
            role: std::mem::replace(&mut state.identity.role, role),
            access: state.identity.access.take(),
            acted_as_definer: std::mem::replace(&mut state.identity.acts_as_definer, true),
        };
        self.bind_writer();
        Ok(Some(before))
    }

    /// Ends what [`Session::settings_of_program`] has begun.
    pub(super) fn restore_settings(&mut self, before: SettingsBefore) {
        let SettingsBefore { vars, restored, schema, identity } = before;
        let state = &mut self.state;
        let is_changed = state.settings.vars.version() != vars.version()
            || state.current_schema != schema
            || identity.is_some();
        if let Some(IdentityBefore { account, role, access, acted_as_definer }) = identity {
            state.info.account = account;
            state.identity.role = role;
            state.identity.access.replace(access);
            state.identity.acts_as_definer = acted_as_definer;
            self.bind_writer();
        }
        if is_changed {
            self.state.settings.vars.take_back(&vars, &vars, restored);
            // The routine may have dropped the database.
            self.enter(schema);
        }
    }
}
