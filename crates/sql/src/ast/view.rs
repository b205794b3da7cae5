//! Views.

use super::{Account, CreateMode, ObjectName, Query};

/// CREATE VIEW and ALTER VIEW.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    pub mode: CreateMode,
    /// ALTER VIEW: the view exists, and attributes that are not given stay unchanged.
    pub alter: bool,
    pub algorithm: Option<ViewAlgorithm>,
    pub definer: Option<Account>,
    pub security: Option<ViewSecurity>,
    pub name: ObjectName,
    pub columns: Vec<String>,
    pub query: Box<Query>,
    /// Source text of the query, including the check option.
    pub text: String,
    pub check: ViewCheck,
}

/// ALGORITHM of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewAlgorithm {
    Undefined,
    Merge,
    TempTable,
}

/// SQL SECURITY: the account whose privileges apply to the tables that the view reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewSecurity {
    Definer,
    Invoker,
}

/// WITH CHECK OPTION: restricts the rows that can be written through the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewCheck {
    None,
    Local,
    Cascaded,
}

impl ViewAlgorithm {
    /// Returns the keyword in SHOW CREATE VIEW.
    pub fn name(self) -> &'static str {
        match self {
            ViewAlgorithm::Undefined => "UNDEFINED",
            ViewAlgorithm::Merge => "MERGE",
            ViewAlgorithm::TempTable => "TEMPTABLE",
        }
    }
}

impl ViewSecurity {
    /// Returns the keyword in SHOW CREATE VIEW.
    pub fn name(self) -> &'static str {
        match self {
            ViewSecurity::Definer => "DEFINER",
            ViewSecurity::Invoker => "INVOKER",
        }
    }
}

impl ViewCheck {
    /// Returns the keyword in information_schema.
    pub fn name(self) -> &'static str {
        match self {
            ViewCheck::None => "NONE",
            ViewCheck::Local => "LOCAL",
            ViewCheck::Cascaded => "CASCADED",
        }
    }

    /// Returns the clause after the query, with a leading space.
    pub fn clause(self) -> &'static str {
        match self {
            ViewCheck::None => "",
            ViewCheck::Local => " WITH LOCAL CHECK OPTION",
            ViewCheck::Cascaded => " WITH CASCADED CHECK OPTION",
        }
    }
}
