//! Tests of compressed images. They are separate from their module for the reason given in `tests.rs`.

use cohort_base::IndexId;
use cohort_engine::{PageAlgorithm, PageFormat};

use crate::compress::{Compression, KEPT_MAX};
use crate::space::BLOCK_BYTES;
use crate::sync::Ordering;

const TABLE: IndexId = IndexId(16);

fn compressing(form: PageFormat) -> Compression {
    let compression = Compression::default();
    compression.set_form(&[TABLE], form);
    compression
}

/// Returns an image with a stored (not compressed) body and a header that claims another length.
fn stored(body: &[u8], claimed: u32) -> Vec<u8> {
    let mut image = vec![0, 0, 0, 0, 255, 1, 0, 0, 0, 0, 0, 0];
    image.extend_from_slice(&claimed.to_le_bytes());
    // RFC 1951, 3.2.4: the last block, stored: its length, and the length inverted.
    image.push(1);
    image.extend_from_slice(&(body.len() as u16).to_le_bytes());
    image.extend_from_slice(&(!body.len() as u16).to_le_bytes());
    image.extend_from_slice(body);
    let crc = crc32c::crc32c(&image[4..]);
    image[..4].copy_from_slice(&crc.to_le_bytes());
    image
}

#[test]
fn the_form_on_disk_is_read() {
    let compression = Compression::default();
    assert_eq!(compression.plain(stored(b"an image", 8)).expect("whole"), b"an image");
    for claimed in [7, 9, 0, u32::MAX] {
        assert!(compression.plain(stored(b"an image", claimed)).is_none(), "{claimed} bytes claimed");
    }
    let mut trailing = stored(b"an image", 8);
    trailing.push(0);
    let crc = crc32c::crc32c(&trailing[4..]);
    trailing[..4].copy_from_slice(&crc.to_le_bytes());
    assert!(compression.plain(trailing).is_none(), "bytes after the end");
}

#[test]
fn pages_that_save_a_block_are_compressed_and_damage_is_noticed() {
    let compression = compressing(PageFormat::CompressedRows);
    let plain: Vec<u8> = (0..12_000_u32).map(|n| (n / 100) as u8).collect();
    let image = compression.image(TABLE, &plain).expect("it saves two blocks");
    assert!(image.len() < BLOCK_BYTES as usize);
    assert_eq!(compression.saved_bytes.load(Ordering::Relaxed), 2 * BLOCK_BYTES);
    assert_eq!(compression.plain(image.clone()).expect("whole"), plain);
    for at in 0..image.len() {
        let mut damaged = image.clone();
        damaged[at] ^= 0x20;
        // Without the marker of compression, the image is validated by the checksum of plain images.
        assert!(at == 4 || compression.plain(damaged).is_none(), "byte {at}");
    }
    assert!(compression.image(IndexId(17), &plain).is_none(), "of another index tree");
    assert!(compression.image(TABLE, &plain[..4096]).is_none(), "it takes a block in any case");
    assert_eq!(compression.failed.load(Ordering::Relaxed), 1);
}

#[test]
fn the_server_says_whether_and_how_much() {
    let compression = compressing(PageFormat::CompressedPages { level: None });
    assert_eq!(compression.level_of(TABLE), Some(6));
    compression.set_level(2);
    assert_eq!(compression.level_of(TABLE), Some(2));
    compression.set_form(&[TABLE], PageFormat::CompressedPages { level: Some(9) });
    assert_eq!(compression.level_of(TABLE), Some(9));
    compression.set_algorithm(PageAlgorithm::None);
    assert_eq!(compression.level_of(TABLE), None);
    compression.set_form(&[TABLE], PageFormat::CompressedRows);
    assert_eq!(compression.level_of(TABLE), Some(2), "which knows one algorithm only");
    compression.set_form(&[TABLE], PageFormat::Plain);
    assert_eq!(compression.level_of(TABLE), None);
}

#[test]
fn compressors_are_used_again_and_bounded() {
    let compression = compressing(PageFormat::CompressedRows);
    let plain = vec![7; 16_000];
    for level in 0..=9 {
        compression.set_level(level);
        for _ in 0..3 {
            let image = compression.image(TABLE, &plain);
            assert_eq!(image.is_some(), level > 0, "level 0 does not compress");
            if let Some(image) = image {
                assert_eq!(compression.plain(image).expect("whole"), plain);
            }
        }
    }
    assert_eq!(compression.compressors.lock().len(), KEPT_MAX);
    assert_eq!(compression.expanders.lock().len(), 1);
}
