//! [`Progress`]: up to where in the relay log everything is ordered, while domains come on independently.

use std::collections::VecDeque;

use crate::place::SourcePlace;
use crate::relay::RelayPlace;

/// The number of a group in the order of the relay log.
pub type Ticket = u64;

/// Behind a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    pub relay: RelayPlace,
    /// The same place in the source's log.
    pub source: SourcePlace,
}

/// The groups behind the oldest one that is not done.
#[derive(Default)]
pub struct Progress {
    /// The ticket of the oldest one.
    first: Ticket,
    /// From that one on; None is not done.
    done: VecDeque<Option<Reached>>,
    /// All before this place is done. None until the first group is.
    reached: Option<Reached>,
}

impl Progress {
    /// The next group of the relay log.
    pub fn begin(&mut self) -> Ticket {
        self.done.push_back(None);
        self.first + self.done.len() as Ticket - 1
    }

    /// Up to where all is done when this group is, as far as it is known now. `base` is the place before the
    /// first group of all.
    pub fn place_with(&self, ticket: Ticket, own: &SourcePlace, base: &SourcePlace) -> SourcePlace {
        if ticket > self.first {
            return self.reached.as_ref().map_or(base, |reached| &reached.source).clone();
        }
        let behind = self.done.iter().skip(1).map_while(Option::as_ref).last();
        behind.map_or(own, |reached| &reached.source).clone()
    }

    /// A group is done. Answers the place before which everything is, if that has changed.
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

    /// Forgets the groups that are not done.
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
        // With the second one all three are done.
        assert_eq!(progress.place_with(tickets[1], &at(2).source, &base), at(3).source);
        assert_eq!(progress.place_with(tickets[3], &at(4).source, &base), at(1).source);
        assert_eq!(progress.done(tickets[1], at(2)), Some(at(3)));
        let later = progress.begin();
        progress.clear();
        assert!(progress.begin() > later);
    }
}
