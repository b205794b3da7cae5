//! Definition of one system variable.

use cohort_types::{Privilege, Privileges};

use crate::table::{SETTINGS, TUNING, VarId};
use crate::value::{Raw, VarValue};

/// The scopes in which a setting has values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingScope {
    /// One value for the server.
    Global,
    /// One value per session, none for the server (`SESSION ONLY`).
    Session,
    /// A global value that each session copies when it starts.
    Both,
}

/// The value that a statement refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `@@global.x`, SET GLOBAL.
    Global,
    /// `@@session.x`, SET SESSION.
    Session,
}

/// How a setting can be changed while the server is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// By SET at any time.
    Dynamic,
    /// Not at all: only by the command line and option files.
    ReadOnly,
    /// By SET GLOBAL only; sessions keep their initial value (error 1621).
    SessionReadOnly,
}

/// Where a changed value takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acts {
    /// At the next start of the server.
    Start,
    /// In the server, at once: SET GLOBAL calls `global_changed`, which has an arm for it.
    Global,
    /// In the session, at once: SET SESSION calls `session_variable_changed`, which has an arm for it.
    Session,
    /// In the next statement, or the next task of a thread, that reads the value.
    Statement,
    /// In plans. The key of cached plans contains the value.
    Plan,
    /// Nowhere: the setting has no effect.
    Nowhere,
}

/// Type, default and bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// ON or OFF.
    Bool {
        /// Default value.
        default: bool,
    },
    /// An unsigned number; the suffixes K, M, G, T, P, E multiply by powers of 1024.
    Int {
        /// Default value.
        default: u64,
        /// Smaller values are raised to it.
        min: u64,
        /// Larger values are lowered to it.
        max: u64,
        /// Values are rounded down to a multiple of it.
        block: u64,
    },
    /// A floating-point number.
    Double {
        /// Default value.
        default: f64,
        /// Smaller values are raised to it.
        min: f64,
        /// Larger values are lowered to it.
        max: f64,
    },
    /// One of several words; a number selects by index.
    Enum {
        /// Index of the default.
        default: usize,
        /// In MariaDB's order.
        members: &'static [&'static str],
    },
    /// Some of several words, separated by commas; bit n stands for member n.
    Set {
        /// Bits of the default.
        default: u64,
        /// In MariaDB's order.
        members: &'static [&'static str],
    },
    /// Text; `None` is NULL.
    Text {
        /// Default value.
        default: Option<&'static str>,
    },
    /// A file or directory name.
    Path {
        /// Default value.
        default: Option<&'static str>,
    },
}

/// One system variable.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// MariaDB's name, lower case with underscores.
    pub name: &'static str,
    /// One or two sentences for the manual.
    pub doc: &'static str,
    /// Type, default, bounds.
    pub kind: Kind,
    /// Scopes in which it has values.
    pub scope: SettingScope,
    /// How it can be changed.
    pub access: Access,
    /// Where a changed value takes effect, if the rest of the row does not determine it.
    pub(crate) acts: Option<Acts>,
    /// SET GLOBAL requires one of these.
    pub global_admins: Privileges,
    /// SET SESSION requires one of these; if empty, no privilege is needed.
    pub session_admins: Privileges,
    /// Unit of a plain number: `seconds`, `bytes`; empty for counts.
    pub unit: &'static str,
    /// Allowed on the command line and in option files.
    pub option: bool,
    /// Data that can be lost if it is not at its default.
    pub may_lose_data: Option<&'static str>,
    /// Why it has no effect.
    pub no_effect: Option<&'static str>,
    /// Why any value other than the default is refused.
    pub refused: Option<&'static str>,
    /// The setting of which this is an alias; they share one value.
    pub alias_of: Option<VarId>,
    /// The value is computed from the state of session or server when it is read. The stored value is used
    /// only where no code computes it.
    pub computed: bool,
    /// An option only, not shown by SHOW VARIABLES.
    pub hidden: bool,
    /// For experiments and benchmarks: works like any other, but `--help` and the manual do not name it.
    pub internal: bool,
}

const SUPER: Privileges = Privileges::of(&[Privilege::Super]);

impl Setting {
    const fn new(name: &'static str, scope: SettingScope, kind: Kind) -> Setting {
        Setting {
            name,
            doc: "",
            kind,
            scope,
            access: Access::Dynamic,
            acts: None,
            global_admins: SUPER,
            session_admins: Privileges::NONE,
            unit: "",
            option: true,
            may_lose_data: None,
            no_effect: None,
            refused: None,
            alias_of: None,
            computed: false,
            hidden: false,
            internal: false,
        }
    }

    pub(crate) const fn global(name: &'static str, kind: Kind) -> Setting {
        Setting::new(name, SettingScope::Global, kind)
    }

    pub(crate) const fn session(name: &'static str, kind: Kind) -> Setting {
        let mut s = Setting::new(name, SettingScope::Session, kind);
        s.option = false;
        s
    }

    pub(crate) const fn both(name: &'static str, kind: Kind) -> Setting {
        Setting::new(name, SettingScope::Both, kind)
    }

    /// A read-only fact about the server, not an option.
    pub(crate) const fn fact(name: &'static str, kind: Kind) -> Setting {
        let mut s = Setting::new(name, SettingScope::Global, kind).read_only();
        s.option = false;
        s
    }

    /// A no-op variable for tools and old option files; `why` is the reason.
    pub(crate) const fn inert(name: &'static str, kind: Kind, why: &'static str) -> Setting {
        let mut s = Setting::new(name, SettingScope::Global, kind);
        s.no_effect = Some(why);
        s
    }

    pub(crate) const fn doc(mut self, doc: &'static str) -> Setting {
        self.doc = doc;
        self
    }

    pub(crate) const fn unit(mut self, unit: &'static str) -> Setting {
        self.unit = unit;
        self
    }

    pub(crate) const fn read_only(mut self) -> Setting {
        self.access = Access::ReadOnly;
        self
    }

    pub(crate) const fn session_read_only(mut self) -> Setting {
        self.access = Access::SessionReadOnly;
        self
    }

    pub(crate) const fn acts(mut self, acts: Acts) -> Setting {
        self.acts = Some(acts);
        self
    }

    /// SET GLOBAL requires SUPER or `privilege`.
    pub(crate) const fn admin(mut self, privilege: Privilege) -> Setting {
        self.global_admins = SUPER.with(privilege);
        self
    }

    /// SET GLOBAL requires exactly `privilege`.
    pub(crate) const fn only(mut self, privilege: Privilege) -> Setting {
        self.global_admins = Privileges::of(&[privilege]);
        self
    }

    /// SET SESSION requires SUPER or `privilege`.
    pub(crate) const fn session_admin(mut self, privilege: Privilege) -> Setting {
        self.session_admins = SUPER.with(privilege);
        self
    }

    /// SET SESSION requires SUPER.
    pub(crate) const fn session_super(mut self) -> Setting {
        self.session_admins = SUPER;
        self
    }

    pub(crate) const fn no_option(mut self) -> Setting {
        self.option = false;
        self
    }

    pub(crate) const fn may_lose_data(mut self, what: &'static str) -> Setting {
        self.may_lose_data = Some(what);
        self
    }

    pub(crate) const fn no_effect(mut self, why: &'static str) -> Setting {
        self.no_effect = Some(why);
        self
    }

    /// Rejects all values but the default, because accepting another one silently would mislead the user.
    pub(crate) const fn refused(mut self, why: &'static str) -> Setting {
        self.refused = Some(why);
        self
    }

    pub(crate) const fn alias(mut self, of: VarId) -> Setting {
        self.alias_of = Some(of);
        self
    }

    pub(crate) const fn computed(mut self) -> Setting {
        self.computed = true;
        self
    }

    pub(crate) const fn internal(mut self) -> Setting {
        self.internal = true;
        self
    }

    pub(crate) const fn hidden(mut self) -> Setting {
        self.hidden = true;
        self
    }

    /// Returns the privileges one of which SET requires; if empty, no privilege is needed.
    pub fn admins(&self, scope: Scope) -> Privileges {
        match scope {
            Scope::Global => self.global_admins,
            Scope::Session => self.session_admins,
        }
    }

    /// Returns why a value other than the default is accepted without the effect that a client could notice.
    /// Returns `None` if it has its effect, or only tunes how results are found.
    pub fn missing_effect(&self) -> Option<&'static str> {
        self.no_effect.filter(|why| !TUNING.contains(why))
    }

    /// Returns where a changed value takes effect.
    pub fn acts_in(&self) -> Acts {
        match (self.alias_of, self.acts) {
            (Some(other), _) => other.setting().acts_in(),
            (None, Some(acts)) => acts,
            (None, None) if !self.has_effect() => Acts::Nowhere,
            (None, None) => Acts::Start,
        }
    }

    /// Returns whether values other than the default are accepted and change something.
    pub(crate) fn has_effect(&self) -> bool {
        self.no_effect.is_none() && self.refused.is_none()
    }

    /// Returns why this value is refused, or `None` if it is accepted.
    pub(crate) fn refuses(&self, raw: &Raw) -> Option<&'static str> {
        /// PAD_CHAR_TO_FULL_LENGTH.
        const PADDED_CHAR: u64 = 1 << 31;
        if self.name == "sql_mode" && matches!(raw, Raw::Number(bits) if bits & PADDED_CHAR != 0) {
            return Some("CHAR columns are read without the spaces at their ends");
        }
        self.refused.filter(|_| *raw != self.kind.default_raw())
    }

    /// Returns the default value.
    pub fn default_value(&self) -> VarValue {
        self.kind.value(self.kind.default_raw())
    }

    /// Returns whether `SET SESSION` and `@@session.x` are allowed.
    pub fn has_session_value(&self) -> bool {
        self.scope != SettingScope::Global
    }

    /// Returns whether `SET GLOBAL` and `@@global.x` are allowed.
    pub fn has_global_value(&self) -> bool {
        self.scope != SettingScope::Session
    }
}

impl VarId {
    /// Returns the definition of the setting.
    pub fn setting(self) -> &'static Setting {
        &SETTINGS[self as usize]
    }

    /// Returns the setting whose value this one has: itself, unless it is an alias.
    pub fn canonical(self) -> VarId {
        self.setting().alias_of.unwrap_or(self)
    }
}
