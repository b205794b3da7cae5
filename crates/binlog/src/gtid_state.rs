//! The GTID state of a binlog: the newest sequence number per domain and server, and the last server of each
//! domain.
//!
//! The leader of a flush group updates it in the [`crate::Stream`]. `gtid_binlog_pos`, `gtid_binlog_state`
//! and the GTID_LIST event of a new file are derived from it.

use std::collections::BTreeMap;
use std::fmt;

use cohort_base::{DomainId, Gtid, ServerId};

/// Largest sequence number that a transaction may get. Larger numbers are reserved for transactions that were
/// admitted but have no number yet, so that numbers never wrap.
pub const SEQ_NO_MAX: u64 = u64::MAX - (1 << 32);

/// Newest GTIDs per domain and server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GtidState {
    domains: BTreeMap<DomainId, Domain>,
    /// Number of domain and server pairs.
    pairs: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Domain {
    last_server: ServerId,
    /// Largest sequence number seen, of any server; the next own number is greater.
    seq_no_max: u64,
    servers: BTreeMap<ServerId, u64>,
}

impl Domain {
    /// Appends the newest GTID of every server; the newest of the domain comes last.
    fn list(&self, domain: DomainId, out: &mut Vec<Gtid>) {
        let others = self.servers.iter().filter(|&(&server, _)| server != self.last_server);
        let last = self.servers.get_key_value(&self.last_server);
        out.extend(others.chain(last).map(|(&server, &seq_no)| Gtid { domain, server, seq_no }));
    }
}

impl GtidState {
    /// Builds the state from a GTID list, in which the last entry of a domain is its newest.
    pub fn from_list(gtids: &[Gtid]) -> GtidState {
        let mut state = GtidState::default();
        gtids.iter().for_each(|&gtid| state.update(gtid));
        state
    }

    /// Records a transaction.
    pub fn update(&mut self, gtid: Gtid) {
        let domain = self.domains.entry(gtid.domain).or_default();
        domain.last_server = gtid.server;
        domain.seq_no_max = domain.seq_no_max.max(gtid.seq_no);
        if domain.servers.insert(gtid.server, gtid.seq_no).is_none() {
            self.pairs += 1;
        }
    }

    /// Returns the GTID of the next transaction of this server in this domain. [`GtidState::update`] records
    /// it.
    pub fn next(&self, domain: DomainId, server: ServerId) -> Gtid {
        let seq_no = self.domains.get(&domain).map_or(0, |d| d.seq_no_max) + 1;
        Gtid { domain, server, seq_no }
    }

    /// Marks the numbers up to this one as used in a domain, without a transaction. A replica that does not
    /// log what it applies calls this so that its own numbers continue after the source's.
    pub fn raise(&mut self, domain: DomainId, seq_no: u64) {
        let known = self.domains.entry(domain).or_default();
        known.seq_no_max = known.seq_no_max.max(seq_no);
    }

    /// Returns whether a transaction may get this number, or the next number of its domain if `seq_no` is
    /// `None`.
    pub fn has_number(&self, domain: DomainId, seq_no: Option<u64>) -> bool {
        match seq_no {
            Some(seq_no) => seq_no <= SEQ_NO_MAX,
            None => self.domains.get(&domain).is_none_or(|d| d.seq_no_max < SEQ_NO_MAX),
        }
    }

    /// Returns the largest sequence number of all domains.
    pub fn seq_no_max(&self) -> u64 {
        self.domains.values().map(|d| d.seq_no_max).max().unwrap_or(0)
    }

    /// Removes a domain.
    pub fn remove(&mut self, domain: DomainId) {
        self.pairs -= self.domains.remove(&domain).map_or(0, |gone| gone.servers.len());
    }

    /// Returns the number of domain and server pairs.
    pub fn len(&self) -> usize {
        self.pairs
    }

    /// Returns the newest GTID of every domain, by domain: `gtid_binlog_pos`.
    pub fn position(&self) -> Vec<Gtid> {
        self.domains
            .iter()
            .map(|(&domain, d)| {
                let seq_no = d.servers.get(&d.last_server).copied().unwrap_or(d.seq_no_max);
                Gtid { domain, server: d.last_server, seq_no }
            })
            .collect()
    }

    /// Returns the newest GTID of every domain and server, the newest of a domain last: GTID_LIST,
    /// `gtid_binlog_state`.
    pub fn list(&self) -> Vec<Gtid> {
        let mut gtids = Vec::new();
        for (&domain, d) in &self.domains {
            d.list(domain, &mut gtids);
        }
        gtids
    }

    /// Like [`GtidState::list`], for one domain.
    pub fn list_of(&self, domain: DomainId) -> Vec<Gtid> {
        let mut gtids = Vec::new();
        if let Some(d) = self.domains.get(&domain) {
            d.list(domain, &mut gtids);
        }
        gtids
    }

    /// Returns the last server of a domain, with the largest sequence number seen there.
    pub fn last_in(&self, domain: DomainId) -> Option<Gtid> {
        let d = self.domains.get(&domain)?;
        Some(Gtid { domain, server: d.last_server, seq_no: d.seq_no_max })
    }

    /// Returns the newest sequence number of a server in a domain.
    pub fn seq_no(&self, domain: DomainId, server: ServerId) -> Option<u64> {
        self.domains.get(&domain)?.servers.get(&server).copied()
    }

    /// Returns `gtid_binlog_pos` as text.
    pub fn position_text(&self) -> String {
        join(&self.position())
    }

    /// Returns whether nothing has been logged yet.
    pub fn is_empty(&self) -> bool {
        self.domains.is_empty()
    }
}

/// Formats `gtid_binlog_state`.
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
