//! A way to a server that takes its time, as a network between two machines does.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// Bytes that are on their way in one piece.
const PIECE_BYTES: usize = 64 << 10;

/// Listens on a port of 127.0.0.1 of its own and passes on what comes, `each_way` later in both directions. Any number may be
/// on its way. It lasts as long as the process.
pub fn far_away(server: SocketAddr, each_way: Duration) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    spawn(move || {
        for near in listener.incoming().flatten() {
            let Ok(far) = TcpStream::connect(server) else { continue };
            let _ = (near.set_nodelay(true), far.set_nodelay(true));
            let (Ok(back), Ok(forth)) = (near.try_clone(), far.try_clone()) else { continue };
            carry(near, far, each_way);
            carry(forth, back, each_way);
        }
    });
    Ok(address)
}

fn carry(mut from: TcpStream, mut to: TcpStream, later: Duration) {
    let (put, get) = channel::<(Instant, Vec<u8>)>();
    spawn(move || {
        let mut piece = vec![0; PIECE_BYTES];
        while let Ok(count @ 1..) = from.read(&mut piece) {
            if put.send((Instant::now() + later, piece[..count].to_vec())).is_err() {
                return;
            }
        }
    });
    spawn(move || {
        for (at, bytes) in get {
            sleep(at.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_comes_whole_and_no_sooner_and_so_does_the_end() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let each_way = Duration::from_millis(20);
        let mut near = TcpStream::connect(far_away(server.local_addr().unwrap(), each_way).unwrap()).unwrap();
        let (mut far, _) = server.accept().unwrap();
        let said: Vec<u8> = (0..300_000_u32).map(|number| number as u8).collect();
        let begun = Instant::now();
        let talks = spawn(move || {
            let mut heard = vec![0; 300_000];
            far.read_exact(&mut heard).unwrap();
            far.write_all(b"yes").unwrap();
            heard
        });
        near.write_all(&said).unwrap();
        let mut answer = Vec::new();
        near.read_to_end(&mut answer).unwrap();
        assert_eq!((answer, talks.join().unwrap()), (b"yes".to_vec(), said));
        assert!(begun.elapsed() >= 2 * each_way);
    }
}
