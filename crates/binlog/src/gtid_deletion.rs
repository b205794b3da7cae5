//! FLUSH BINARY LOGS DELETE_DOMAIN_ID: checks which domains may be deleted from the GTID state.
//!
//! A domain may be deleted if no file holds a transaction of it, so that no reader of the files misses the
//! domain in the GTID list of a later file. The GTID list of the oldest file decides: any transaction of the
//! domain that it does not cover is in the files. Checks and messages are those of MariaDB's
//! `rpl_binlog_state::drop_domain`, but all servers of a domain are checked instead of only one.

use cohort_base::{DomainId, Gtid};

use crate::GtidState;

/// Result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DomainDeletion {
    /// Domains that can be deleted, each once.
    pub domains: Vec<DomainId>,
    /// Warnings of the statement.
    pub warnings: Vec<String>,
    /// Error text if nothing may be deleted.
    pub refusal: Option<String>,
}

/// Checks the domains that a statement names. `oldest` is the state at the start of the oldest file.
pub fn check_deletion(state: &GtidState, oldest: &GtidState, wanted: &[DomainId]) -> DomainDeletion {
    let mut deletion = DomainDeletion::default();
    if wanted.is_empty() {
        return deletion;
    }
    deletion.warnings = oldest.list().iter().filter_map(|&gtid| contradiction(state, gtid)).collect();
    for &domain in wanted {
        let servers = state.list_of(domain);
        if servers.is_empty() {
            let what =
                format!("The gtid domain being deleted ('{domain}') is not in the current binlog state");
            deletion.warnings.push(what);
            continue;
        }
        if servers.iter().any(|gtid| oldest.seq_no(domain, gtid.server) != Some(gtid.seq_no)) {
            deletion.domains.clear();
            deletion.refusal = Some(format!(
                "binlog files may contain gtids from the domain ('{domain}') being deleted. Make sure to first purge \
                 those files"
            ));
            break;
        }
        if !deletion.domains.contains(&domain) {
            deletion.domains.push(domain);
        }
    }
    deletion
}

/// Returns a warning if the state lacks a GTID of an earlier state.
fn contradiction(state: &GtidState, then: Gtid) -> Option<String> {
    let Gtid { domain, server, seq_no } = then;
    let what = match state.seq_no(domain, server) {
        None => format!(
            "missing gtids from the '{domain}-{server}' domain-server pair which is referred to in the gtid list \
             describing an earlier state. Ignore if the domain ('{domain}') was already explicitly deleted"
        ),
        Some(now) if now < seq_no => format!(
            "having a gtid '{domain}-{server}-{now}' which is less than the '{then}' of the gtid list describing an \
             earlier state. The state may have been affected by manually injecting a lower sequence number gtid or \
             via replication"
        ),
        Some(_) => return None,
    };
    Some(format!("The current gtid binlog state is incompatible with a former one {what}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(gtids: &[&str]) -> GtidState {
        GtidState::from_list(&gtids.iter().map(|text| text.parse().expect("valid")).collect::<Vec<_>>())
    }

    fn check(now: &[&str], oldest: &[&str], wanted: &[u32]) -> DomainDeletion {
        let wanted: Vec<_> = wanted.iter().map(|&number| DomainId(number)).collect();
        check_deletion(&state(now), &state(oldest), &wanted)
    }

    #[test]
    fn only_domains_that_no_file_speaks_of_are_deleted() {
        let now = ["0-1-9", "5-1-1", "5-2-3", "6-1-1"];
        let deletion = check(&now, &["5-1-1", "5-2-3", "6-1-1"], &[5, 5, 6]);
        assert_eq!((deletion.domains.as_slice(), deletion.refusal), (&[DomainId(5), DomainId(6)][..], None));
        assert!(deletion.warnings.is_empty());
        for oldest in [&["0-1-8", "5-1-1", "5-2-2"][..], &["5-1-1"], &[]] {
            let deletion = check(&now, oldest, &[5]);
            assert!(deletion.domains.is_empty());
            assert!(deletion.refusal.is_some_and(|why| why.contains("from the domain ('5')")), "{oldest:?}");
        }
    }

    #[test]
    fn contradictions_are_reported() {
        let deletion = check(&["0-1-3"], &["0-1-4", "5-1-1"], &[77]);
        assert_eq!(deletion.warnings.len(), 3, "{:?}", deletion.warnings);
        assert!(deletion.warnings[0].contains("'0-1-3' which is less than the '0-1-4'"));
        assert!(deletion.warnings[1].contains("missing gtids from the '5-1'"));
        assert!(deletion.warnings[2].contains("('77') is not in the current binlog state"));
        assert_eq!(check(&["0-1-3"], &["5-1-1"], &[]), DomainDeletion::default());
    }
}
