//! WEIGHT_STRING: the weights of a text in MariaDB's format. Index keys have another format (`order`).

use super::charset::Coding;
use super::fold::{decode, weight_of_replaced};
use super::{Charset, Collation, Weighing};

impl Collation {
    /// Appends the weights of at most `most` characters of a text, padded with spaces to `fill` characters.
    pub fn weight_string(self, text: &[u8], most: usize, fill: usize, out: &mut Vec<u8>) {
        let text = &text[..self.prefix_len(text, most)];
        let spaces = fill.saturating_sub(self.char_len(text));
        if let Weighing::Unicode(uca) = self.weighing() {
            for &level in uca.levels() {
                let space = if self.pads() { uca.space(level) } else { level.least() };
                let padding = std::iter::repeat_n(space, spaces);
                let weights = uca.weights(level, text).chain(padding);
                weights.for_each(|w| out.extend_from_slice(&(w as u16).to_be_bytes()));
            }
            return;
        }
        match self.weighing() {
            Weighing::Binary => out.extend_from_slice(text),
            weighing => {
                let mut rest = text;
                while !rest.is_empty() {
                    let (c, len) = decode(rest);
                    rest = &rest[len..];
                    self.put_weight(weighing, c, out);
                }
            }
        }
        for _ in 0..spaces {
            match self.weighing() {
                Weighing::Binary => out.push(0),
                // Zeros sort below every character.
                weighing if !self.pads() => {
                    let from = out.len();
                    self.put_weight(weighing, b' '.into(), out);
                    out[from..].fill(0);
                }
                weighing => self.put_weight(weighing, b' '.into(), out),
            }
        }
    }

    /// Returns the maximum number of bytes that [`Collation::weight_string`] writes for a character.
    pub fn weight_bytes_max(self) -> u32 {
        match self.weighing() {
            Weighing::Unicode(uca) => 16 * uca.levels().len() as u32,
            Weighing::Wide(_) | Weighing::WideCode(_) => self.charset().mbmaxlen(),
            weighing => {
                let mut out = Vec::new();
                self.put_weight(weighing, b' '.into(), &mut out);
                out.len() as u32
            }
        }
    }

    fn put_weight(self, weighing: Weighing, c: u32, out: &mut Vec<u8>) {
        let bytes = match weighing {
            Weighing::General | Weighing::General500 => 2,
            Weighing::Bytes => match self.charset().coding() {
                Coding::Ascii => 1,
                Coding::Utf8 { longest: 3 } | Coding::Utf16 { pairs: false, .. } => 2,
                _ => 3,
            },
            Weighing::WideCode(set) | Weighing::Wide(set) => {
                let mut coded = Vec::new();
                if !set.encode(c, &mut coded) {
                    coded.push(b'?');
                }
                // A code of three bytes is written in full.
                if coded.len() == 3 {
                    out.extend_from_slice(&coded);
                    return;
                }
                coded.len()
            }
            _ => 1,
        };
        let c = if self.charset() == Charset::Utf8mb3 && c > 0xffff { 0xfffd } else { c };
        out.extend_from_slice(&weight_of_replaced(weighing, c).to_be_bytes()[4 - bytes..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_written_as_mariadb_writes_them() {
        let written = |name: &str, text: &str, most: usize, fill: usize| {
            let mut out = Vec::new();
            let collation = Collation::by_name(name).expect("known");
            collation.weight_string(text.as_bytes(), most, fill, &mut out);
            out.iter().map(|b| format!("{b:02X}")).collect::<String>()
        };
        assert_eq!(written("utf8mb4_general_ci", "ab", 3, 3), "004100420020");
        assert_eq!(written("utf8mb4_general_ci", "abc", 2, 2), "00410042");
        assert_eq!(written("utf8mb4_bin", "a😀", 9, 0), "00006101F600");
        assert_eq!(written("utf8mb3_bin", "a", 9, 0), "0061");
        assert_eq!(written("latin1_swedish_ci", "aé", 9, 3), "414520");
        assert_eq!(written("utf8mb4_unicode_ci", "ab", 3, 3), "0E330E4A0209");
        assert_eq!(written("utf8mb4_uca1400_as_cs", "É", 2, 2), "20DB0209002000240020000800020002");
        assert_eq!(written("ujis_japanese_ci", "a丂", 9, 0), "418FB0A1");
    }
}
