//! Keys: the key file, and what is derived from it.
//!
//! ```text
//! key file:   lines that begin with #, and one line
//!             cohort-key-1 REPOSITORY MASTER CHECK      32, 64 and 8 hexadecimal digits
//! CHECK       first 4 bytes of SHA-256("cohort-key-1" REPOSITORY MASTER, as bytes)
//! PRK         HKDF-SHA-256-Extract(salt = REPOSITORY, MASTER)
//! key id      first 16 bytes of HMAC-SHA-256(Expand(PRK, "key id"), "")
//! name key    Expand(PRK, "chunk names")            names of chunks: HMAC-SHA-256 of their contents
//! object key  Expand(PRK, "object" NAME)            AES-256-GCM; a key for each object
//! ```
//!
//! A repository without encryption has no key: chunks are named by SHA-256.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hkdf, hmac};

use crate::failure::{Failure, Result};
use crate::hex;

const WORD: &str = "cohort-key-1";
const KEY_FILE_BYTES_MAX: usize = 64 << 10;

/// Identifier of a repository, chosen by `init`.
pub type RepositoryId = [u8; 16];

/// The name of a chunk: a cryptographic hash of its contents.
pub type ChunkId = [u8; 32];

/// Returns random bytes.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the system has random numbers");
    bytes
}

/// The contents of a key file.
pub struct MasterKey {
    repository: RepositoryId,
    secret: [u8; 32],
}

impl MasterKey {
    /// Chooses the key of a new repository.
    pub fn create(repository: RepositoryId) -> MasterKey {
        MasterKey { repository, secret: random() }
    }

    fn check(&self) -> [u8; 4] {
        let bytes = [WORD.as_bytes(), &self.repository, &self.secret].concat();
        let hash = digest::digest(&digest::SHA256, &bytes);
        hash.as_ref()[..4].try_into().expect("32 bytes")
    }

    /// Writes a new key file, which only its owner can read. An existing file is never overwritten.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = format!(
            "# The key of a Cohort backup repository. Without it no backup can be restored.\n\
             # Keep copies of this file outside of the repository and outside of the server.\n\
             {WORD} {} {} {}\n",
            hex::encode(&self.repository),
            hex::encode(&self.secret),
            hex::encode(&self.check())
        );
        let refused = |error: std::io::Error| Failure::Refused(format!("{}: {error}", path.display()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file = file.as_mut().map_err(|error| {
            Failure::Refused(format!("cannot create the key file {}: {error}", path.display()))
        })?;
        file.write_all(text.as_bytes()).map_err(refused)?;
        file.sync_all().map_err(refused)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        std::fs::File::open(folder.unwrap_or(Path::new("."))).and_then(|d| d.sync_all()).map_err(refused)
    }

    /// Reads a key file.
    pub fn read(path: &Path) -> Result<MasterKey> {
        let wrong = |why: &str| Failure::Key(format!("cannot use the key file {}: {why}", path.display()));
        let text = std::fs::read(path).map_err(|error| wrong(&error.to_string()))?;
        let text = std::str::from_utf8(&text).ok().filter(|text| text.len() <= KEY_FILE_BYTES_MAX);
        let text = text.ok_or_else(|| wrong("it is not a key file"))?;
        let line = text.lines().find(|line| line.starts_with(WORD));
        let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
        let [_, repository, secret, check] = words[..] else { return Err(wrong("it is not a key file")) };
        let key = hex::decode(repository)
            .zip(hex::decode(secret))
            .map(|(repository, secret)| MasterKey { repository, secret })
            .filter(|key| hex::decode(check) == Some(key.check()));
        key.ok_or_else(|| wrong("it is damaged; use a copy"))
    }

    /// Returns the repository that this is the key of.
    pub fn repository(&self) -> RepositoryId {
        self.repository
    }

    /// Derives the keys of the repository.
    pub fn keys(&self) -> Keys {
        let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, &self.repository).extract(&self.secret);
        let names = hmac_key(&prk, b"chunk names");
        Keys { secret: Some(Secret { prk, names }) }
    }
}

fn hmac_key(prk: &hkdf::Prk, purpose: &[u8]) -> hmac::Key {
    prk.expand(&[purpose], hmac::HMAC_SHA256).expect("a short output").into()
}

struct Secret {
    prk: hkdf::Prk,
    names: hmac::Key,
}

/// The keys of a repository; none without encryption.
pub struct Keys {
    secret: Option<Secret>,
}

/// Bytes that sealing puts before the encrypted ones.
const NONCE_BYTES: usize = 12;

impl Keys {
    /// Returns the keys of a repository without encryption.
    pub fn none() -> Keys {
        Keys { secret: None }
    }

    pub fn are_present(&self) -> bool {
        self.secret.is_some()
    }

    /// Returns the identifier of the key, which reveals nothing about it.
    pub fn id(&self) -> Option<[u8; 16]> {
        let secret = self.secret.as_ref()?;
        let tag = hmac::sign(&hmac_key(&secret.prk, b"key id"), b"");
        Some(tag.as_ref()[..16].try_into().expect("32 bytes"))
    }

    /// Names a chunk by its contents.
    pub fn name(&self, contents: &[u8]) -> ChunkId {
        let name = match &self.secret {
            Some(secret) => hmac::sign(&secret.names, contents).as_ref().try_into(),
            None => digest::digest(&digest::SHA256, contents).as_ref().try_into(),
        };
        name.expect("both hashes have 32 bytes")
    }

    fn of_object(&self, name: &str) -> Option<LessSafeKey> {
        let secret = self.secret.as_ref()?;
        let info = [b"object".as_slice(), name.as_bytes()];
        let key: UnboundKey = secret.prk.expand(&info, &AES_256_GCM).expect("a short output").into();
        Some(LessSafeKey::new(key))
    }

    /// Encrypts everything in `object` from `header` on, bound to the header and to the object's name.
    pub fn seal(&self, name: &str, header: usize, object: &mut Vec<u8>) {
        let key = self.of_object(name).expect("only called with keys");
        let nonce: [u8; NONCE_BYTES] = random();
        let aad = Aad::from([&object[..header], name.as_bytes()].concat());
        object.splice(header..header, nonce);
        let body = &mut object[header + NONCE_BYTES..];
        let tag = key.seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), aad, body);
        object.extend_from_slice(tag.expect("objects are small").as_ref());
    }

    /// Decrypts what [`Keys::seal`] has encrypted. `None` if the object is not what was sealed by this name.
    pub fn unseal<'a>(&self, name: &str, header: usize, object: &'a mut [u8]) -> Option<&'a [u8]> {
        let key = self.of_object(name)?;
        let (head, body) = object.split_at_mut_checked(header + NONCE_BYTES)?;
        let nonce = Nonce::try_assume_unique_for_key(&head[header..]).ok()?;
        let aad = Aad::from([&head[..header], name.as_bytes()].concat());
        key.open_in_place(nonce, aad, body).ok().map(|contents| &*contents)
    }
}
