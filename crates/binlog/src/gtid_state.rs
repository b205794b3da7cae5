//! The GTID state of a binlog: the newest sequence number per domain and server, and which server was last in
//! each domain.
//!
//! Written by the leader of a flush group (in the [`crate::Stream`]); `gtid_binlog_pos`, `gtid_binlog_state`
//! and the GTID_LIST event of a new file are views of it.

use std::collections::BTreeMap;
use std::fmt;

use cohort_base::{DomainId, Gtid, ServerId};

/// Largest sequence number that a transaction may get: those beyond are left for transactions that were let
/// through and have no number yet, so that no number ever wraps.
pub const SEQ_NO_MAX: u64 = u64::MAX - (1 << 32);

/// The state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GtidState {
    domains: BTreeMap<DomainId, Domain>,
    /// Servers of all domains together.
    pairs: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Domain {
    last_server: ServerId,
    /// The largest number seen, of whatever server; the next own one is greater.
    seq_no_max: u64,
    servers: BTreeMap<ServerId, u64>,
}

impl Domain {
    /// The newest of every server, the newest of all last.
    fn list(&self, domain: DomainId, out: &mut Vec<Gtid>) {
        let others = self.servers.iter().filter(|&(&server, _)| server != self.last_server);
        let last = self.servers.get_key_value(&self.last_server);
        out.extend(others.chain(last).map(|(&server, &seq_no)| Gtid { domain, server, seq_no }));
    }
}

impl GtidState {
    /// From a GTID list: of the entries of a domain the last is the newest.
    pub fn from_list(gtids: &[Gtid]) -> GtidState {
        let mut state = GtidState::default();
        gtids.iter().for_each(|&gtid| state.update(gtid));
        state
    }

    /// Notes a transaction.
    pub fn update(&mut self, gtid: Gtid) {
        let domain = self.domains.entry(gtid.domain).or_default();
        domain.last_server = gtid.server;
        domain.seq_no_max = domain.seq_no_max.max(gtid.seq_no);
        if domain.servers.insert(gtid.server, gtid.seq_no).is_none() {
            self.pairs += 1;
        }
    }

    /// The GTID that a transaction of this server gets next in this domain. [`GtidState::update`] takes it.
    pub fn next(&self, domain: DomainId, server: ServerId) -> Gtid {
        let seq_no = self.domains.get(&domain).map_or(0, |d| d.seq_no_max) + 1;
        Gtid { domain, server, seq_no }
    }

    /// Makes numbers up to this one used in a domain, although no transaction here has them: a replica that
    /// does not log what it applies still counts on behind it.
    pub fn raise(&mut self, domain: DomainId, seq_no: u64) {
        let known = self.domains.entry(domain).or_default();
        known.seq_no_max = known.seq_no_max.max(seq_no);
    }

    /// Whether a transaction may have this number, or the next one of its domain if none is given.
    pub fn has_number(&self, domain: DomainId, seq_no: Option<u64>) -> bool {
        match seq_no {
            Some(seq_no) => seq_no <= SEQ_NO_MAX,
            None => self.domains.get(&domain).is_none_or(|d| d.seq_no_max < SEQ_NO_MAX),
        }
    }

    /// The largest number that a transaction has.
    pub fn seq_no_max(&self) -> u64 {
        self.domains.values().map(|d| d.seq_no_max).max().unwrap_or(0)
    }

    /// Forgets a domain.
    pub fn remove(&mut self, domain: DomainId) {
        self.pairs -= self.domains.remove(&domain).map_or(0, |gone| gone.servers.len());
    }

    /// Number of pairs of domain and server.
    pub fn len(&self) -> usize {
        self.pairs
    }

    /// The newest GTID of every domain, by domain: `gtid_binlog_pos`.
    pub fn position(&self) -> Vec<Gtid> {
        self.domains
            .iter()
            .map(|(&domain, d)| {
                let seq_no = d.servers.get(&d.last_server).copied().unwrap_or(d.seq_no_max);
                Gtid { domain, server: d.last_server, seq_no }
            })
            .collect()
    }

    /// The newest GTID of every domain and server, the newest of a domain last: GTID_LIST,
    /// `gtid_binlog_state`.
    pub fn list(&self) -> Vec<Gtid> {
        let mut gtids = Vec::new();
        for (&domain, d) in &self.domains {
            d.list(domain, &mut gtids);
        }
        gtids
    }

    /// The same of one domain.
    pub fn list_of(&self, domain: DomainId) -> Vec<Gtid> {
        let mut gtids = Vec::new();
        if let Some(d) = self.domains.get(&domain) {
            d.list(domain, &mut gtids);
        }
        gtids
    }

    /// The newest GTID of a domain, with the largest number seen there.
    pub fn last_in(&self, domain: DomainId) -> Option<Gtid> {
        let d = self.domains.get(&domain)?;
        Some(Gtid { domain, server: d.last_server, seq_no: d.seq_no_max })
    }

    /// The newest sequence number of a server in a domain.
    pub fn seq_no(&self, domain: DomainId, server: ServerId) -> Option<u64> {
        self.domains.get(&domain)?.servers.get(&server).copied()
    }

    /// `gtid_binlog_pos` as text.
    pub fn position_text(&self) -> String {
        join(&self.position())
    }

    /// Whether nothing has been logged yet.
    pub fn is_empty(&self) -> bool {
        self.domains.is_empty()
    }
}

/// `gtid_binlog_state` as text.
impl fmt::Display for GtidState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&join(&self.list()))
    }
}

fn join(gtids: &[Gtid]) -> String {
    gtids.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gtid(text: &str) -> Gtid {
        text.parse().expect("valid")
    }

    #[test]
    fn position_is_the_last_of_each_domain_and_the_list_holds_all_servers() {
        let mut state = GtidState::default();
        for text in ["0-1-1", "0-2-2", "3-1-1", "0-1-3", "0-2-4"] {
            state.update(gtid(text));
        }
        assert_eq!(state.position_text(), "0-2-4,3-1-1");
        assert_eq!(state.to_string(), "0-1-3,0-2-4,3-1-1");
        assert_eq!(GtidState::from_list(&state.list()), state);
        assert_eq!(state.next(DomainId(0), ServerId(1)), gtid("0-1-5"));
        assert_eq!(state.next(DomainId(9), ServerId(1)), gtid("9-1-1"));
        assert_eq!(state.seq_no(DomainId(0), ServerId(1)), Some(3));
        state.raise(DomainId(0), 20);
        state.raise(DomainId(0), 7);
        assert_eq!(state.next(DomainId(0), ServerId(1)), gtid("0-1-21"));
        assert_eq!(state.position_text(), "0-2-4,3-1-1");
    }
}
