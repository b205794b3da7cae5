//! Choice of the half-open connection (not logged in) that is closed when there are too many of them.
//!
//! Connections that never log in must not keep other clients out. An attacker has many such connections, from
//! few networks. The victim is therefore chosen
//!
//! 1. in the network that most of the connections come from: clients of other networks are not touched;
//! 2. among the older half of these: the newest may have sent nothing only because their first bytes are
//!    still on their way;
//! 3. there, the oldest connection that has sent nothing, or the oldest of all.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// Mask of an IPv6 network: one host may use any address of it.
const V6_NETWORK: u128 = !0 << 64;

/// The network that a connection comes from: an IPv4 address, or an IPv6 /64. `None` is the Unix socket.
pub(crate) type Origin = Option<IpAddr>;

/// Returns the origin of an address, in its canonical form.
pub(crate) fn origin_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & V6_NETWORK).into(),
    }
}

/// A connection that has not logged in, and waits for its client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HalfOpen {
    /// Older connections have smaller ids.
    pub id: u64,
    pub origin: Origin,
    /// The client has sent nothing yet.
    pub is_silent: bool,
}

/// Returns the connection to close, or `None` if there is none.
pub(crate) fn victim(all: &[HalfOpen]) -> Option<u64> {
    let mut counts: HashMap<Origin, usize> = HashMap::new();
    all.iter().for_each(|it| *counts.entry(it.origin).or_default() += 1);
    // Ties go to the origin of the oldest connection.
    let crowd = all.iter().max_by_key(|it| (counts[&it.origin], Reverse(it.id)))?.origin;
    let mut members: Vec<HalfOpen> = all.iter().filter(|it| it.origin == crowd).copied().collect();
    members.sort_unstable_by_key(|it| it.id);
    let older = &members[..members.len().div_ceil(2)];
    older.iter().find(|it| it.is_silent).or(older.first()).map(|it| it.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half_open(id: u64, address: &str, is_silent: bool) -> HalfOpen {
        HalfOpen { id, origin: Some(origin_of(address.parse().expect("an address"))), is_silent }
    }

    #[test]
    fn the_crowd_pays_for_its_size() {
        // The good client is the oldest, and has sent nothing.
        let mut all = vec![half_open(1, "10.0.0.1", true)];
        all.extend((2..10).map(|id| half_open(id, "10.0.0.2", false)));
        assert_eq!(victim(&all), Some(2));
        // An IPv6 host is one host, whichever of its addresses it uses.
        let mut all = vec![half_open(1, "2001:db8::1", true), half_open(2, "2001:db8::1", true)];
        all.extend((3..10).map(|id| half_open(id, &format!("2001:db8:0:1::{id}"), false)));
        assert_eq!(victim(&all), Some(3));
        // The Unix socket is an origin of its own.
        all.extend((10..20).map(|id| HalfOpen { id, origin: None, is_silent: false }));
        assert_eq!(victim(&all), Some(10));
    }

    #[test]
    fn of_one_origin_the_silent_ones_end_first_but_not_the_newest() {
        let all = |silent: &[u64]| -> Vec<HalfOpen> {
            (1..=10).map(|id| half_open(id, "10.0.0.1", silent.contains(&id))).collect()
        };
        assert_eq!(victim(&all(&[3, 5])), Some(3));
        // Their first bytes may be on their way.
        assert_eq!(victim(&all(&[6, 10])), Some(1));
        assert_eq!(victim(&all(&[])), Some(1));
        assert_eq!(victim(&[]), None);
        assert_eq!(victim(&[half_open(7, "10.0.0.1", true)]), Some(7));
    }
}
