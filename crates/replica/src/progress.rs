//! [`Progress`]: the relay log position before which all groups are ordered, while domains advance
//! independently.

use std::collections::VecDeque;

use crate::place::{RelayPlace, SourcePlace};

/// The number of a group in relay log order.
pub type Ticket = u64;

/// The position after a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    pub relay: RelayPlace,
    /// This position in the source's log.
    pub source: SourcePlace,
}

/// The groups from the oldest unfinished one on.
#[derive(Default)]
pub struct Progress {
    /// Ticket of the oldest unfinished group.
    first: Ticket,
    /// End positions of the groups from `first` on; `None` for a group that is not done.
    done: VecDeque<Option<Reached>>,
    /// Everything before this position is done. `None` until the first group is.
    reached: Option<Reached>,
}

impl Progress {
    /// Adds the next group of the relay log and returns its ticket.
    pub fn begin(&mut self) -> Ticket {
        self.done.push_back(None);
        self.first + self.done.len() as Ticket - 1
    }

    /// Returns the position before which everything will be done once this group is, as far as known now.
    /// `base` is the position before the very first group.
    pub fn place_with(&self, ticket: Ticket, own: &SourcePlace, base: &SourcePlace) -> SourcePlace {
        if ticket > self.first {
            return self.reached.as_ref().map_or(base, |reached| &reached.source).clone();
        }
        let last = self.done.iter().skip(1).map_while(Option::as_ref).last();
        last.map_or(own, |reached| &reached.source).clone()
    }

    /// Marks a group as done. Returns the position before which everything is done, if it has changed.
    pub fn done(&mut self, ticket: Ticket, reached: Reached) -> Option<Reached> {
        let at = ticket.checked_sub(self.first).expect("done once") as usize;
        self.done[at] = Some(reached);
        if at > 0 {
            return None;
        }
        while let Some(Some(_)) = self.done.front() {
            self.first += 1;
            self.reached = self.done.pop_front().flatten();
        }
        self.reached.clone()
    }

    /// Drops the groups that are not done.
    pub fn clear(&mut self) {
        self.first += self.done.len() as Ticket;
        self.done.clear();
        self.reached = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: u64) -> Reached {
        let source = SourcePlace { file: "b.000001".to_owned(), position: 10 * offset };
        Reached { relay: RelayPlace { file: 1, offset }, source }
    }

    #[test]
    fn the_oldest_group_that_is_not_done_holds_the_place() {
        let mut progress = Progress::default();
        let base = at(0).source;
        let tickets: Vec<Ticket> = (0..4).map(|_| progress.begin()).collect();
        assert_eq!(progress.place_with(tickets[2], &at(3).source, &base), base);
        assert_eq!(progress.done(tickets[2], at(3)), None);
        assert_eq!(progress.place_with(tickets[1], &at(2).source, &base), base);
        assert_eq!(progress.place_with(tickets[0], &at(1).source, &base), at(1).source);
        assert_eq!(progress.done(tickets[0], at(1)), Some(at(1)));
        // Once the second group is done, all three are.
        assert_eq!(progress.place_with(tickets[1], &at(2).source, &base), at(3).source);
        assert_eq!(progress.place_with(tickets[3], &at(4).source, &base), at(1).source);
        assert_eq!(progress.done(tickets[1], at(2)), Some(at(3)));
        let later = progress.begin();
        progress.clear();
        assert!(progress.begin() > later);
    }
}
