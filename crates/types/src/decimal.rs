//! Exact numbers of up to 65 digits.

/// An exact decimal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    // The owner of this file chooses the representation; it is not public.
    _digits: [u32; 9],
}
