//! SHOW PRIVILEGES.

use cohort_types::Value;

use super::listing::Listing;

const PRIVILEGES: [(&str, &str); 41] = [
    ("Alter", "Tables"),
    ("Alter routine", "Functions,Procedures"),
    ("Create", "Databases,Tables,Indexes"),
    ("Create routine", "Databases"),
    ("Create temporary tables", "Databases"),
    ("Create view", "Tables"),
    ("Create user", "Server Admin"),
    ("Delete", "Tables"),
    ("Delete history", "Tables"),
    ("Drop", "Databases,Tables"),
    ("Event", "Server Admin"),
    ("Execute", "Functions,Procedures"),
    ("File", "File access on server"),
    ("Grant option", "Databases,Tables,Functions,Procedures"),
    ("Index", "Tables"),
    ("Insert", "Tables"),
    ("Lock tables", "Databases"),
    ("Process", "Server Admin"),
    ("Proxy", "Server Admin"),
    ("References", "Databases,Tables"),
    ("Reload", "Server Admin"),
    ("Binlog admin", "Server"),
    ("Binlog monitor", "Server"),
    ("Binlog replay", "Server"),
    ("Replication master admin", "Server"),
    ("Replication slave admin", "Server"),
    ("Slave monitor", "Server"),
    ("Replication slave", "Server Admin"),
    ("Select", "Tables"),
    ("Show databases", "Server Admin"),
    ("Show view", "Tables"),
    ("Shutdown", "Server Admin"),
    ("Super", "Server Admin"),
    ("Trigger", "Tables"),
    ("Create tablespace", "Server Admin"),
    ("Update", "Tables"),
    ("Set user", "Server"),
    ("Federated admin", "Server"),
    ("Connection admin", "Server"),
    ("Read_only admin", "Server"),
    ("Usage", "Server Admin"),
];

/// What can be granted, and on what.
pub(super) fn all() -> Listing {
    let mut listing = Listing::new(&[("Privilege", 10), ("Context", 15), ("Comment", 64)]);
    for (name, context) in PRIVILEGES {
        listing.add([Value::text(name), Value::text(context), Value::text("")]);
    }
    listing
}
