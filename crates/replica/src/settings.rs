//! The settings of one source, from CHANGE MASTER.

use std::time::Duration;

use cohort_base::{Reader, Truncated, Write};
use cohort_exec::SourceOption;
use cohort_types::{ErrorCode, Level, SqlError, SqlResult, Value, Warning};

/// How a replica determines where to start reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UseGtid {
    /// By file and position.
    No,
    CurrentPos,
    #[default]
    SlavePos,
}

impl UseGtid {
    /// Returns the name that SHOW SLAVE STATUS prints.
    pub fn name(self) -> &'static str {
        match self {
            UseGtid::No => "No",
            UseGtid::CurrentPos => "Current_Pos",
            UseGtid::SlavePos => "Slave_Pos",
        }
    }
}

/// A secret, hidden by its `Debug` output.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// TLS options, in the order of SHOW SLAVE STATUS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    pub is_wanted: bool,
    pub verifies_name: bool,
    pub ca: String,
    pub capath: String,
    pub cert: String,
    pub cipher: String,
    pub key: String,
    pub crl: String,
    pub crlpath: String,
}

/// How to connect to a source, and what to replicate from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSettings {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: Secret,
    pub tls: Tls,
    pub connect_retry_s: u32,
    /// `None` means half of slave_net_timeout.
    pub heartbeat_ms: Option<u32>,
    pub use_gtid: UseGtid,
    pub delay_s: u32,
    pub ignore_server_ids: Vec<u32>,
    pub do_domain_ids: Vec<u32>,
    pub ignore_domain_ids: Vec<u32>,
    /// Source log position of the first event that is not applied.
    pub file: String,
    pub position: u64,
}

impl Default for SourceSettings {
    fn default() -> SourceSettings {
        SourceSettings {
            host: String::new(),
            port: 3306,
            user: String::new(),
            password: Secret::default(),
            tls: Tls::default(),
            connect_retry_s: 60,
            heartbeat_ms: None,
            use_gtid: UseGtid::default(),
            delay_s: 0,
            ignore_server_ids: Vec::new(),
            do_domain_ids: Vec::new(),
            ignore_domain_ids: Vec::new(),
            file: String::new(),
            position: 4,
        }
    }
}

/// Maximum lengths, as in MariaDB.
const HOST_CHARS_MAX: usize = 255;
const USER_CHARS_MAX: usize = 128;
const PASSWORD_CHARS_MAX: usize = 96;
/// Maximum MASTER_DELAY.
const DELAY_S_MAX: u64 = i32::MAX as u64;
/// Maximum heartbeat period.
const HEARTBEAT_S_MAX: f64 = 4_294_967.0;

const VERSION: u8 = 1;

const DEMOTE: &str = "MASTER_DEMOTE_TO_SLAVE";
const DEMOTE_REPLICA: &str = "MASTER_DEMOTE_TO_REPLICA";

impl SourceSettings {
    /// Applies the options of a CHANGE MASTER statement, all or none. `net_timeout_s` is `slave_net_timeout`.
    pub fn change(&mut self, options: &[SourceOption], net_timeout_s: u64) -> SqlResult<Vec<Warning>> {
        let mut changed = self.clone();
        let mut notes = Vec::new();
        let has = |wanted: &str| options.iter().any(|(name, _)| name == wanted);
        let names_gtid = has("MASTER_USE_GTID");
        let names_place = has("MASTER_LOG_FILE") || has("MASTER_LOG_POS");
        if (has("MASTER_HOST") || has("MASTER_PORT")) && !names_place {
            (changed.file, changed.position) = (String::new(), 4);
        }
        if !has("MASTER_HEARTBEAT_PERIOD") {
            // As in MariaDB: without the option the period returns to its default.
            changed.heartbeat_ms = None;
        }
        for (name, value) in options {
            changed.set(name, value)?;
            if name == "MASTER_HEARTBEAT_PERIOD" {
                notes.extend(doubtful_heartbeat(value, net_timeout_s));
            }
        }
        if names_place && names_gtid && changed.use_gtid != UseGtid::No {
            for option in ["MASTER_LOG_FILE", "MASTER_LOG_POS"].into_iter().filter(|name| has(name)) {
                notes.push(note(ErrorCode::WarnOptionIgnored, format!("<{option}> option ignored")));
            }
            (changed.file, changed.position) = (self.file.clone(), self.position);
        } else if names_place && changed.use_gtid != UseGtid::No {
            let text = format!(
                "CHANGE MASTER TO is implicitly changing the value of 'Using_Gtid' from '{}' to 'No'",
                changed.use_gtid.name()
            );
            notes.push(note(ErrorCode::WarnChangeMasterImplicit, text));
            changed.use_gtid = UseGtid::No;
        }
        changed.position = changed.position.max(4);
        *self = changed;
        Ok(notes)
    }

    /// Returns why the domain lists are invalid, or `None` if they are valid.
    pub fn wrong_domains(&self) -> Option<&'static str> {
        match (self.do_domain_ids.is_empty(), self.ignore_domain_ids.is_empty()) {
            (true, true) => None,
            (false, false) => {
                Some("Both DO_DOMAIN_IDS & IGNORE_DOMAIN_IDS lists can't be non-empty at the same time")
            }
            _ if self.use_gtid == UseGtid::No => {
                Some("DO_DOMAIN_IDS or IGNORE_DOMAIN_IDS lists can't be non-empty in non-GTID mode")
            }
            _ => None,
        }
    }

    /// Returns whether a former source becomes a replica. Fails with error 4191 if it does not use Slave_Pos.
    pub fn demotes(&self, options: &[SourceOption]) -> SqlResult<bool> {
        let is_one = |value: &Value| {
            value.to_int(&mut cohort_types::NoWarnings).is_some_and(|number| number.wide() == 1)
        };
        let asked = options
            .iter()
            .any(|(name, value)| [DEMOTE, DEMOTE_REPLICA].contains(&name.as_str()) && is_one(value));
        if asked && self.use_gtid != UseGtid::SlavePos {
            return Err(SqlError::demotion_needs_slave_pos());
        }
        Ok(asked)
    }

    fn set(&mut self, name: &str, value: &Value) -> SqlResult<()> {
        let text = || value.to_text();
        let wrong = || SqlError::wrong_arguments(name);
        let number = |most: u64| {
            let number = value.to_int(&mut cohort_types::NoWarnings).ok_or_else(wrong)?.wide();
            u64::try_from(number).ok().filter(|number| *number <= most).ok_or_else(wrong)
        };
        let small = || number(u32::MAX.into()).map(|number| number as u32);
        let short = |chars_max: usize| {
            let text = value.to_text();
            match text.chars().count() <= chars_max {
                true => Ok(text),
                // The value is not in the message, because it may be the password.
                false => Err(SqlError::option_too_long(name, chars_max)),
            }
        };
        let list = || -> SqlResult<Vec<u32>> {
            let text = value.to_text();
            let mut ids: Vec<u32> = text
                .split(',')
                .filter(|id| !id.is_empty())
                .map(|id| id.parse().map_err(|_| wrong()))
                .collect::<SqlResult<_>>()?;
            ids.sort_unstable();
            ids.dedup();
            Ok(ids)
        };
        match name {
            "MASTER_HOST" => {
                self.host = short(HOST_CHARS_MAX)?;
                if self.host.is_empty() {
                    return Err(wrong());
                }
            }
            "MASTER_USER" => self.user = short(USER_CHARS_MAX)?,
            "MASTER_PASSWORD" => self.password = Secret(short(PASSWORD_CHARS_MAX)?),
            "MASTER_PORT" => self.port = number(u16::MAX.into())? as u16,
            "MASTER_CONNECT_RETRY" => self.connect_retry_s = small()?,
            "MASTER_LOG_FILE" => {
                self.file = text();
                if self.file.is_empty() {
                    return Err(wrong());
                }
            }
            "MASTER_LOG_POS" => self.position = number(u64::MAX)?,
            "MASTER_USE_GTID" => {
                self.use_gtid = match text().to_ascii_lowercase().as_str() {
                    "no" => UseGtid::No,
                    "current_pos" => UseGtid::CurrentPos,
                    "slave_pos" => UseGtid::SlavePos,
                    _ => return Err(wrong()),
                };
            }
            "MASTER_DELAY" => {
                let delay_s = number(u64::MAX)?;
                if delay_s > DELAY_S_MAX {
                    return Err(SqlError::master_delay_too_long(delay_s, DELAY_S_MAX));
                }
                self.delay_s = delay_s as u32;
            }
            "MASTER_HEARTBEAT_PERIOD" => {
                let seconds = value.to_f64(&mut cohort_types::NoWarnings).unwrap_or(-1.0);
                if !(0.0..=HEARTBEAT_S_MAX).contains(&seconds) {
                    return Err(SqlError::heartbeat_out_of_range());
                }
                self.heartbeat_ms = Some((seconds * 1000.0) as u32);
            }
            "IGNORE_SERVER_IDS" => self.ignore_server_ids = list()?,
            "DO_DOMAIN_IDS" => self.do_domain_ids = list()?,
            "IGNORE_DOMAIN_IDS" => self.ignore_domain_ids = list()?,
            "MASTER_SSL" => self.tls.is_wanted = number(u64::MAX)? != 0,
            "MASTER_SSL_VERIFY_SERVER_CERT" => self.tls.verifies_name = number(u64::MAX)? != 0,
            "MASTER_SSL_CA" => self.tls.ca = text(),
            "MASTER_SSL_CAPATH" => self.tls.capath = text(),
            "MASTER_SSL_CERT" => self.tls.cert = text(),
            "MASTER_SSL_CIPHER" => self.tls.cipher = text(),
            "MASTER_SSL_KEY" => self.tls.key = text(),
            "MASTER_SSL_CRL" => self.tls.crl = text(),
            "MASTER_SSL_CRLPATH" => self.tls.crlpath = text(),
            // The caller handles it: it changes the position, which is not a setting of a source.
            DEMOTE | DEMOTE_REPLICA => drop(number(1)?),
            _ => {
                return Err(SqlError::change_master_not_supported(name));
            }
        }
        Ok(())
    }

    /// Returns a CHANGE MASTER statement with all settings but the position in the source's log: it continues
    /// by GTID. It contains the password.
    pub fn statement(&self, connection: &str) -> String {
        let quoted = |text: &str| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"));
        let list = |ids: &[u32]| {
            let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
            format!("({})", ids.join(", "))
        };
        let use_gtid = match self.use_gtid {
            UseGtid::CurrentPos => UseGtid::CurrentPos,
            UseGtid::No | UseGtid::SlavePos => UseGtid::SlavePos,
        };
        let tls = &self.tls;
        let mut options = vec![
            format!("MASTER_PORT = {}", self.port),
            format!("MASTER_CONNECT_RETRY = {}", self.connect_retry_s),
            format!("MASTER_DELAY = {}", self.delay_s),
            format!("MASTER_SSL = {}", u8::from(tls.is_wanted)),
            format!("MASTER_SSL_VERIFY_SERVER_CERT = {}", u8::from(tls.verifies_name)),
            format!("IGNORE_SERVER_IDS = {}", list(&self.ignore_server_ids)),
            format!("DO_DOMAIN_IDS = {}", list(&self.do_domain_ids)),
            format!("IGNORE_DOMAIN_IDS = {}", list(&self.ignore_domain_ids)),
            format!("MASTER_USE_GTID = {}", use_gtid.name().to_lowercase()),
        ];
        options
            .extend(self.heartbeat_ms.map(|ms| format!("MASTER_HEARTBEAT_PERIOD = {}", f64::from(ms) / 1e3)));
        let texts = [
            ("MASTER_HOST", &self.host),
            ("MASTER_USER", &self.user),
            ("MASTER_PASSWORD", &self.password.0),
            ("MASTER_SSL_CA", &tls.ca),
            ("MASTER_SSL_CAPATH", &tls.capath),
            ("MASTER_SSL_CERT", &tls.cert),
            ("MASTER_SSL_CIPHER", &tls.cipher),
            ("MASTER_SSL_KEY", &tls.key),
            ("MASTER_SSL_CRL", &tls.crl),
            ("MASTER_SSL_CRLPATH", &tls.crlpath),
        ];
        let given = texts.iter().filter(|(_, text)| !text.is_empty());
        options.extend(given.map(|(name, text)| format!("{name} = {}", quoted(text))));
        format!("CHANGE MASTER {} TO {}", quoted(connection), options.join(", "))
    }

    /// Returns the interval at which an idle source must send heartbeats.
    pub fn heartbeat(&self, net_timeout_s: u64) -> Duration {
        let default_ms = net_timeout_s.saturating_mul(500);
        Duration::from_millis(self.heartbeat_ms.map_or(default_ms, u64::from))
    }

    /// Returns whether events received with the former settings are still the next ones to apply. With GTIDs
    /// they are, whichever server sent them. A file position is valid for one source's log only.
    pub fn goes_on_from(&self, before: &SourceSettings, options: &[SourceOption]) -> bool {
        let names_place = ["MASTER_LOG_FILE", "MASTER_LOG_POS"];
        let is_by_gtid = |settings: &SourceSettings| settings.use_gtid != UseGtid::No;
        match (is_by_gtid(before), is_by_gtid(self)) {
            (true, true) => true,
            (false, false) => {
                (&self.host, self.port) == (&before.host, before.port)
                    && !options.iter().any(|(name, _)| names_place.contains(&name.as_str()))
            }
            _ => false,
        }
    }

    /// Returns whether transactions of a domain are skipped.
    pub fn ignores_domain(&self, domain: u32) -> bool {
        let is_wanted = self.do_domain_ids.is_empty() || self.do_domain_ids.contains(&domain);
        !is_wanted || self.ignore_domain_ids.contains(&domain)
    }

    /// Appends the encoded settings.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(VERSION);
        let tls = &self.tls;
        for text in [&self.host, &self.user, &self.password.0, &self.file] {
            out.put_lenenc_bytes(text.as_bytes());
        }
        for text in [&tls.ca, &tls.capath, &tls.cert, &tls.cipher, &tls.key, &tls.crl, &tls.crlpath] {
            out.put_lenenc_bytes(text.as_bytes());
        }
        out.put_u8(u8::from(tls.is_wanted) | u8::from(tls.verifies_name) << 1);
        out.put_u16(self.port);
        out.put_u32(self.connect_retry_s);
        out.put_u64(self.heartbeat_ms.map_or(u64::MAX, u64::from));
        out.put_u8(self.use_gtid as u8);
        out.put_u32(self.delay_s);
        out.put_u64(self.position);
        for ids in [&self.ignore_server_ids, &self.do_domain_ids, &self.ignore_domain_ids] {
            out.put_lenenc(ids.len() as u64);
            ids.iter().for_each(|id| out.put_u32(*id));
        }
    }

    /// Decodes settings. Returns `None` if they are of another version or damaged.
    pub fn decode(bytes: &[u8]) -> Option<SourceSettings> {
        let mut r = Reader::new(bytes);
        (r.u8().ok()? == VERSION).then_some(())?;
        let settings = SourceSettings::decode_fields(&mut r).ok()?;
        r.is_empty().then_some(settings)
    }

    fn decode_fields(r: &mut Reader<'_>) -> Result<SourceSettings, Truncated> {
        fn text(r: &mut Reader<'_>) -> Result<String, Truncated> {
            Ok(String::from_utf8_lossy(r.lenenc_bytes()?).into_owned())
        }
        let (host, user, password, file) = (text(r)?, text(r)?, Secret(text(r)?), text(r)?);
        let (ca, capath, cert, cipher) = (text(r)?, text(r)?, text(r)?, text(r)?);
        let (key, crl, crlpath, flags) = (text(r)?, text(r)?, text(r)?, r.u8()?);
        let (is_wanted, verifies_name) = (flags & 1 != 0, flags & 2 != 0);
        let tls = Tls { is_wanted, verifies_name, ca, capath, cert, cipher, key, crl, crlpath };
        let (port, connect_retry_s) = (r.u16()?, r.u32()?);
        let heartbeat_ms = u32::try_from(r.u64()?).ok();
        let use_gtid = match r.u8()? {
            0 => UseGtid::No,
            1 => UseGtid::CurrentPos,
            _ => UseGtid::SlavePos,
        };
        let (delay_s, position) = (r.u32()?, r.u64()?);
        let mut lists: [Vec<u32>; 3] = Default::default();
        for list in &mut lists {
            let count = r.lenenc()?;
            for _ in 0..count {
                list.push(r.u32()?);
            }
        }
        let [ignore_server_ids, do_domain_ids, ignore_domain_ids] = lists;
        Ok(SourceSettings {
            host,
            port,
            user,
            password,
            tls,
            connect_retry_s,
            heartbeat_ms,
            use_gtid,
            delay_s,
            ignore_server_ids,
            do_domain_ids,
            ignore_domain_ids,
            file,
            position,
        })
    }
}

/// Returns a warning for a period that is effectively 0 or longer than `slave_net_timeout`.
fn doubtful_heartbeat(value: &Value, net_timeout_s: u64) -> Option<Warning> {
    let seconds = value.to_f64(&mut cohort_types::NoWarnings).unwrap_or(0.0);
    let (code, text) = if seconds > net_timeout_s as f64 {
        let text = "The requested value for the heartbeat period exceeds the value of `slave_net_timeout' seconds. A \
             sensible value for the period should be less than the timeout";
        (ErrorCode::SlaveHeartbeatValueOutOfRangeMax, text)
    } else if seconds > 0.0 && seconds < 0.001 {
        let text = "The requested value for the heartbeat period is less than 1 millisecond. The value is reset to 0, \
             meaning that heartbeating will effectively be disabled";
        (ErrorCode::SlaveHeartbeatValueOutOfRangeMin, text)
    } else {
        return None;
    };
    Some(Warning { level: Level::Warning, error: SqlError::new(code, text) })
}

fn note(code: ErrorCode, text: String) -> Warning {
    Warning { level: Level::Note, error: SqlError::new(code, text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(name: &str, value: Value) -> SourceOption {
        (name.to_owned(), value)
    }

    #[test]
    fn settings_come_back_as_they_were_saved_and_never_show_the_password() {
        let mut settings = SourceSettings::default();
        settings
            .change(
                &[
                    option("MASTER_HOST", Value::text("db1")),
                    option("MASTER_PASSWORD", Value::text("geheim")),
                    option("MASTER_HEARTBEAT_PERIOD", Value::Double(2.5)),
                    option("IGNORE_DOMAIN_IDS", Value::text("3,1,3")),
                    option("MASTER_SSL_CA", Value::text("/ca.pem")),
                ],
                60,
            )
            .expect("known options");
        let mut bytes = Vec::new();
        settings.encode(&mut bytes);
        assert_eq!(SourceSettings::decode(&bytes).as_ref(), Some(&settings));
        assert_eq!(settings.ignore_domain_ids, [1, 3]);
        assert!(!format!("{settings:?}").contains("geheim"));
        assert!((0..bytes.len()).all(|end| SourceSettings::decode(&bytes[..end]).is_none()));
        let long = option("MASTER_PASSWORD", Value::text("geheim".repeat(20)));
        let refused = settings.change(&[long], 60).expect_err("too long");
        assert_eq!(refused.code, ErrorCode::WrongStringLength);
        assert!(!refused.message.contains("geheim"));
    }

    #[test]
    fn a_place_in_a_file_means_no_gtids_and_another_host_forgets_the_place() {
        let mut settings = SourceSettings::default();
        let place = [option("MASTER_LOG_FILE", Value::text("b.1")), option("MASTER_LOG_POS", Value::Int(99))];
        let notes = settings.change(&place, 60).expect("known options");
        assert_eq!(notes.len(), 1);
        assert_eq!((settings.use_gtid, settings.position), (UseGtid::No, 99));
        settings.change(&[option("MASTER_PORT", Value::Int(1))], 60).expect("known");
        assert_eq!((settings.file.as_str(), settings.position), ("", 4));
        let before = settings.clone();
        settings
            .change(
                &[option("MASTER_USER", Value::text("x")), place[0].clone(), option("NO", Value::Null)],
                60,
            )
            .expect_err("unknown option");
        assert_eq!(settings, before);
    }
}
