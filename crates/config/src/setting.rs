//! What is known about one system variable.

use cohort_types::{Privilege, Privileges};

use crate::table::{SETTINGS, TUNING, VarId};
use crate::value::{Raw, VarValue};

/// Where a setting has values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingScope {
    /// One value for the server.
    Global,
    /// One value per session and none for the server (`SESSION ONLY`).
    Session,
    /// A global value that each session copies when it starts.
    Both,
}

/// Which value a statement names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `@@global.x`, SET GLOBAL.
    Global,
    /// `@@session.x`, SET SESSION.
    Session,
}

/// Who may change a setting while the server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// SET at any time.
    Dynamic,
    /// Only the command line and option files.
    ReadOnly,
    /// SET GLOBAL only; sessions keep what they started with (error 1621).
    SessionReadOnly,
}

/// Type, default and bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// ON or OFF.
    Bool {
        /// Unless set.
        default: bool,
    },
    /// An unsigned number; K, M, G, T, P, E multiply by powers of 1024.
    Int {
        /// Unless set.
        default: u64,
        /// Smaller values are raised to it.
        min: u64,
        /// Larger values are lowered to it.
        max: u64,
        /// Values are rounded down to a multiple of it.
        block: u64,
    },
    /// A number with a fraction.
    Double {
        /// Unless set.
        default: f64,
        /// Smaller values are raised to it.
        min: f64,
        /// Larger values are lowered to it.
        max: f64,
    },
    /// One of several words; a number selects by position.
    Enum {
        /// Unless set: an index.
        default: usize,
        /// In MariaDB's order.
        members: &'static [&'static str],
    },
    /// Some of several words, joined by commas; bit n stands for member n.
    Set {
        /// Unless set: bits.
        default: u64,
        /// In MariaDB's order.
        members: &'static [&'static str],
    },
    /// Text; `None` is NULL.
    Text {
        /// Unless set.
        default: Option<&'static str>,
    },
    /// A file or directory name.
    Path {
        /// Unless set.
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
    /// Where it has values.
    pub scope: SettingScope,
    /// Who may change it.
    pub access: Access,
    /// SET GLOBAL needs one of these.
    pub global_admins: Privileges,
    /// SET SESSION needs one of these; none: everybody may.
    pub session_admins: Privileges,
    /// What a plain number means: `seconds`, `bytes`; empty for counts.
    pub unit: &'static str,
    /// Whether the command line and option files may give it.
    pub option: bool,
    /// What can be lost when it is not at its default.
    pub may_lose_data: Option<&'static str>,
    /// Why the value is kept but changes nothing here.
    pub no_effect: Option<&'static str>,
    /// Why any other value than the default is refused.
    pub refused: Option<&'static str>,
    /// Another name of this setting: values are those of the other.
    pub alias_of: Option<VarId>,
    /// The value comes from the session's or server's state at the moment it is read; what is stored is only
    /// the answer when nobody computes it.
    pub computed: bool,
    /// Not in SHOW VARIABLES: an option only.
    pub hidden: bool,
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

    /// A read-only fact about the server; no option.
    pub(crate) const fn fact(name: &'static str, kind: Kind) -> Setting {
        let mut s = Setting::new(name, SettingScope::Global, kind).read_only();
        s.option = false;
        s
    }

    /// Kept for tools and old option files; changes nothing here, for the reason given.
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

    /// SET GLOBAL needs SUPER or this.
    pub(crate) const fn admin(mut self, privilege: Privilege) -> Setting {
        self.global_admins = SUPER.with(privilege);
        self
    }

    /// SET GLOBAL needs just this.
    pub(crate) const fn only(mut self, privilege: Privilege) -> Setting {
        self.global_admins = Privileges::of(&[privilege]);
        self
    }

    /// SET SESSION needs SUPER or this.
    pub(crate) const fn session_admin(mut self, privilege: Privilege) -> Setting {
        self.session_admins = SUPER.with(privilege);
        self
    }

    /// SET SESSION needs SUPER.
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

    /// Only its default is accepted: a user who believes in another value would be wronged.
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

    pub(crate) const fn hidden(mut self) -> Setting {
        self.hidden = true;
        self
    }

    /// SET of this value needs one of these; none: everybody may.
    pub fn admins(&self, scope: Scope) -> Privileges {
        match scope {
            Scope::Global => self.global_admins,
            Scope::Session => self.session_admins,
        }
    }

    /// Why a value other than the default is accepted and changes nothing that a client could notice; `None`
    /// when it has its effect, or only tunes how an answer is found.
    pub fn missing_effect(&self) -> Option<&'static str> {
        self.no_effect.filter(|why| !TUNING.contains(why))
    }

    /// Whether other values than the default are accepted and change something.
    pub(crate) fn has_effect(&self) -> bool {
        self.no_effect.is_none() && self.refused.is_none()
    }

    /// Why this value is refused; none: it is not.
    pub(crate) fn refuses(&self, raw: &Raw) -> Option<&'static str> {
        /// PAD_CHAR_TO_FULL_LENGTH.
        const PADDED_CHAR: u64 = 1 << 31;
        if self.name == "sql_mode" && matches!(raw, Raw::Number(bits) if bits & PADDED_CHAR != 0) {
            return Some("CHAR columns are read without the spaces at their ends");
        }
        self.refused.filter(|_| *raw != self.kind.default_raw())
    }

    /// The value unless set.
    pub fn default_value(&self) -> VarValue {
        self.kind.value(self.kind.default_raw())
    }

    /// Whether `SET SESSION` and `@@session.x` name it.
    pub fn has_session_value(&self) -> bool {
        self.scope != SettingScope::Global
    }

    /// Whether `SET GLOBAL` and `@@global.x` name it.
    pub fn has_global_value(&self) -> bool {
        self.scope != SettingScope::Session
    }
}

impl VarId {
    /// What is known about the setting.
    pub fn setting(self) -> &'static Setting {
        &SETTINGS[self as usize]
    }

    /// The setting whose values this one shows: itself unless it is an alias.
    pub fn canonical(self) -> VarId {
        self.setting().alias_of.unwrap_or(self)
    }
}
