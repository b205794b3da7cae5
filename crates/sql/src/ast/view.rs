//! Views.

use super::{Account, CreateMode, ObjectName, Query};

/// CREATE VIEW and ALTER VIEW.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    pub mode: CreateMode,
    /// ALTER VIEW: the view exists, and what is not said stays.
    pub alter: bool,
    pub algorithm: Option<ViewAlgorithm>,
    pub definer: Option<Account>,
    pub security: Option<ViewSecurity>,
    pub name: ObjectName,
    pub columns: Vec<String>,
    pub query: Box<Query>,
    /// The query as typed, with the check option.
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

/// SQL SECURITY: whose privileges count on what the view reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewSecurity {
    Definer,
    Invoker,
}

/// WITH CHECK OPTION: which rows may be written through the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewCheck {
    None,
    Local,
    Cascaded,
}

impl ViewAlgorithm {
    /// As SHOW CREATE VIEW says it.
    pub fn name(self) -> &'static str {
        match self {
            ViewAlgorithm::Undefined => "UNDEFINED",
            ViewAlgorithm::Merge => "MERGE",
            ViewAlgorithm::TempTable => "TEMPTABLE",
        }
    }
}

impl ViewSecurity {
    /// As SHOW CREATE VIEW says it.
    pub fn name(self) -> &'static str {
        match self {
            ViewSecurity::Definer => "DEFINER",
            ViewSecurity::Invoker => "INVOKER",
        }
    }
}

impl ViewCheck {
    /// As information_schema says it.
    pub fn name(self) -> &'static str {
        match self {
            ViewCheck::None => "NONE",
            ViewCheck::Local => "LOCAL",
            ViewCheck::Cascaded => "CASCADED",
        }
    }

    /// The clause behind the query, with a space before it.
    pub fn clause(self) -> &'static str {
        match self {
            ViewCheck::None => "",
            ViewCheck::Local => " WITH LOCAL CHECK OPTION",
            ViewCheck::Cascaded => " WITH CASCADED CHECK OPTION",
        }
    }
}
