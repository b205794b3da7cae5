//! [`Owners`]: domain ownership. Decides which source delivers a domain when several sources send the same
//! transactions (`gtid_ignore_duplicates`).
//!
//! # Concepts
//! A group that this server already has is *known*. Any other group must be claimed: a source with groups of
//! a domain in progress owns that domain, and the appliers of the other sources wait. Once the owner's groups
//! are published, a waiting applier finds that its group is known, or its source becomes the next owner.
//!
//! A claim ends when its group is ordered, when the source does not continue the group ([`Owners::give_up`]),
//! and when the source's applier ends ([`Owners::leave`]).
//!
//! # Invariants
//! At most one source has groups of a domain in progress. So no transaction is applied twice, and each domain
//! is ordered by its numbers.

use std::collections::BTreeMap;

use cohort_base::{DomainId, Gtid};
use parking_lot::Mutex;

/// The owner of each domain that has one.
#[derive(Default)]
pub struct Owners {
    domains: Mutex<BTreeMap<DomainId, Owner>>,
}

struct Owner {
    source: String,
    /// Sequence numbers of the newest group that it claimed, and of the one before.
    newest: u64,
    before: u64,
}

/// The newest ordered and the newest published sequence number of a domain.
#[derive(Clone, Copy, Debug)]
pub struct DomainReached {
    pub ordered: u64,
    pub published: u64,
}

/// The decision about a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// This source applies it.
    Granted,
    /// Another source delivered it.
    Known,
    /// Another source has groups of the domain in progress.
    Wait,
}

impl Owners {
    /// Claims a group for a source. `reached` returns the domain's progress.
    pub fn claim(&self, source: &str, gtid: Gtid, reached: impl FnOnce() -> DomainReached) -> Claim {
        let mut domains = self.domains.lock();
        let DomainReached { ordered, published } = reached();
        if gtid.seq_no <= ordered {
            return Claim::Known;
        }
        match domains.get_mut(&gtid.domain) {
            Some(owner) if owner.source == source => {
                // The same group again was rolled back before.
                if owner.newest != gtid.seq_no {
                    (owner.before, owner.newest) = (owner.newest, gtid.seq_no);
                }
                Claim::Granted
            }
            // Without an owner, too: the next group may need a definition that is not published yet.
            owner if published < ordered.max(owner.as_ref().map_or(0, |owner| owner.newest)) => Claim::Wait,
            _ => {
                let owner = Owner { source: source.to_owned(), newest: gtid.seq_no, before: ordered };
                domains.insert(gtid.domain, owner);
                Claim::Granted
            }
        }
    }

    /// Releases the group that the source claimed last, because the source does not continue it.
    pub fn give_up(&self, source: &str, gtid: Gtid) {
        let mut domains = self.domains.lock();
        let owner = domains.get_mut(&gtid.domain).filter(|owner| owner.source == source);
        if let Some(owner) = owner.filter(|owner| owner.newest == gtid.seq_no) {
            owner.newest = owner.before;
        }
    }

    /// Ends the source's ownership: none of its claimed groups will be ordered any more.
    pub fn leave(&self, source: &str) {
        self.domains.lock().retain(|_, owner| owner.source != source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gtid(text: &str) -> Gtid {
        text.parse().expect("valid")
    }

    #[test]
    fn one_source_at_a_time_has_groups_of_a_domain_on_their_way() {
        let owners = Owners::default();
        let claim = |source: &str, text: &str, ordered: u64| {
            owners.claim(source, gtid(text), || DomainReached { ordered, published: ordered })
        };
        assert_eq!(claim("a", "0-1-5", 5), Claim::Known);
        assert_eq!(claim("a", "0-1-6", 5), Claim::Granted);
        assert_eq!(claim("b", "0-1-6", 5), Claim::Wait);
        assert_eq!(claim("b", "1-1-1", 0), Claim::Granted, "another domain");
        assert_eq!(claim("a", "0-1-7", 5), Claim::Granted, "its own ones follow each other");
        assert_eq!(claim("b", "0-1-6", 6), Claim::Known);
        assert_eq!(claim("b", "0-1-8", 6), Claim::Wait, "the owner's last one is not ordered");
        assert_eq!(claim("b", "0-1-8", 7), Claim::Granted);
        assert_eq!(claim("a", "0-1-8", 7), Claim::Wait);
        // A group that was rolled back can be claimed again; a group that was given up goes to another
        // source.
        assert_eq!(claim("b", "0-1-8", 7), Claim::Granted);
        owners.give_up("a", gtid("0-1-8"));
        assert_eq!(claim("a", "0-1-8", 7), Claim::Wait);
        owners.give_up("b", gtid("0-1-8"));
        assert_eq!(claim("a", "0-1-8", 7), Claim::Granted);
        // A source that left has nothing in progress, whatever it claimed.
        owners.leave("a");
        assert_eq!(claim("b", "0-1-8", 7), Claim::Granted);
        // A group that is ordered but not published makes other sources wait, whichever applier ordered it.
        let not_published = || DomainReached { ordered: 8, published: 7 };
        assert_eq!(owners.claim("a", gtid("0-1-9"), not_published), Claim::Wait);
        owners.leave("b");
        assert_eq!(owners.claim("a", gtid("0-1-9"), not_published), Claim::Wait);
        assert_eq!(claim("b", "0-1-9", 8), Claim::Granted);
        assert_eq!(owners.claim("b", gtid("0-1-10"), not_published), Claim::Granted);
        // Gaps in the sequence numbers are allowed.
        assert_eq!(claim("b", "0-1-20", 10), Claim::Granted);
        owners.give_up("b", gtid("0-1-20"));
        assert_eq!(claim("a", "0-1-20", 10), Claim::Granted);
    }
}
