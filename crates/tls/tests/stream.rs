//! Two streams over a pipe in memory, whose capacity the test controls.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use cohort_tls::{Acceptor, Connector, TlsSettings, TlsStream};
use rcgen::{CertificateParams, KeyPair};

type Bytes = Rc<RefCell<VecDeque<u8>>>;

/// One end of a pipe.
#[derive(Clone, Default)]
struct End {
    from: Bytes,
    to: Bytes,
    /// Maximum bytes returned by one read.
    piece: usize,
    reads: usize,
}

fn pipe(piece: usize) -> (End, End) {
    let (a, b) = (Bytes::default(), Bytes::default());
    let end = |from: &Bytes, to: &Bytes| End { from: from.clone(), to: to.clone(), piece, reads: 0 };
    (end(&a, &b), end(&b, &a))
}

impl Read for End {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        let mut from = self.from.borrow_mut();
        let count = out.len().min(self.piece).min(from.len());
        if count == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        from.drain(..count).zip(out).for_each(|(byte, place)| *place = byte);
        Ok(count)
    }
}

impl Write for End {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.borrow_mut().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns a context with its own certificate.
fn acceptor(name: &str) -> Arc<Acceptor> {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let cert = params.self_signed(&key).expect("signed");
    let folder = std::env::temp_dir().join(format!("cohort-tls-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("made");
    let file = |name: &str, text: String| -> String {
        let path: PathBuf = folder.join(name);
        std::fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let (cert, key) = (file("cert.pem", cert.pem()), file("key.pem", key.serialize_pem()));
    let acceptor = Acceptor::new(&TlsSettings { cert, key, ..TlsSettings::default() }).expect("usable");
    std::fs::remove_dir_all(folder).expect("removed");
    Arc::new(acceptor)
}

/// Returns both ends after the handshake.
fn agreed(acceptor: &Arc<Acceptor>, piece: usize) -> ((TlsStream, End), (TlsStream, End)) {
    let (mut left, mut right) = pipe(piece);
    let connector = Connector::new(&TlsSettings::default(), false).expect("usable");
    let mut client = connector.connect("localhost", Vec::new()).expect("a name");
    let mut server = acceptor.accept(Vec::new()).expect("a session");
    let mut buffer = vec![0; 65536];
    while client.is_handshaking() || server.is_handshaking() {
        client.flush(&mut left).expect("there is room");
        for (stream, end) in [(&mut server, &mut right), (&mut client, &mut left)] {
            match stream.read(end, &mut buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => panic!("the peer has sent nothing: {other:?}"),
            }
        }
    }
    ((client, left), (server, right))
}

#[test]
fn writes_are_read_back_in_any_pieces() {
    let acceptor = acceptor("pieces");
    let sent: Vec<u8> = (0..400_000_u32).flat_map(u32::to_le_bytes).collect();
    for (piece, buffer_bytes) in [(usize::MAX, 65536), (usize::MAX, 4096), (1000, 65536), (20_000, 40)] {
        let ((mut client, mut left), (mut server, mut right)) = agreed(&acceptor, piece);
        let (mut buffer, mut got, mut rest) = (vec![0; buffer_bytes], Vec::new(), &sent[..]);
        while got.len() < sent.len() {
            if !rest.is_empty() {
                rest = &rest[client.write(&mut left, rest).expect("there is room")..];
            }
            loop {
                match server.read(&mut right, &mut buffer) {
                    Ok(received) => {
                        got.extend_from_slice(&buffer[..received.bytes]);
                        // After `is_all` no event announces leftover data. A short read has taken everything
                        // from a socket, but not from pieces.
                        if received.is_all && piece == usize::MAX {
                            assert!(right.from.borrow().is_empty());
                            let again = server.read(&mut right, &mut buffer);
                            assert!(again.is_err_and(|e| e.kind() == ErrorKind::WouldBlock));
                            break;
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        assert!(got == sent, "pieces of {piece}, read by {buffer_bytes}");
    }
}

/// A buffer of 64 KiB receives everything that fits into half of it with one read of the socket.
#[test]
fn a_large_packet_takes_few_reads() {
    let ((mut client, mut left), (mut server, mut right)) = agreed(&acceptor("reads"), usize::MAX);
    let sent = vec![7; 1 << 20];
    let mut rest = &sent[..];
    while !rest.is_empty() {
        rest = &rest[client.write(&mut left, rest).expect("there is room")..];
    }
    right.reads = 0;
    let (mut buffer, mut got, mut calls) = (vec![0; 65536], 0, 0);
    while got < sent.len() {
        got += server.read(&mut right, &mut buffer).expect("there is more").bytes;
        calls += 1;
    }
    assert!(calls <= 40 && right.reads <= 40, "{calls} calls, {} reads of the socket", right.reads);
}

#[test]
fn a_stream_keeps_the_context_that_accepted_it() {
    let (first, second) = (acceptor("first"), acceptor("second"));
    let stream = first.accept(Vec::new()).expect("a session");
    assert!(std::ptr::eq(stream.acceptor().expect("accepted"), &*first));
    assert!(!std::ptr::eq(stream.acceptor().expect("accepted"), &*second));
}

/// Before authentication, data sent ahead by a stranger is kept only up to a ClientHello's size.
#[test]
fn bytes_sent_with_the_request_are_bounded() {
    let acceptor = acceptor("localhost");
    assert!(acceptor.accept(vec![0x16; 32 << 10]).is_ok());
    let refused = acceptor.accept(vec![0x16; (32 << 10) + 1]).err().expect("too much");
    assert!(refused.to_string().contains("came with the request"), "{refused}");
}
