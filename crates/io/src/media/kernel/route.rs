//! Ways to a peer as the kernel's tables have them, asked by netlink (RFC 3549): interface, next hop, its hardware address.
#![forbid(unsafe_code)]

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use super::frame::Mac;
use super::sys;

/// Room for one answer; that about an interface has some two kilobytes.
const ANSWER_BYTES: usize = 16 * 1024;
/// Answers that may be stale, of a question before, and are passed over.
const STALE_MAX: usize = 8;

/// `struct nlmsghdr`.
const HEADER: usize = 16;
/// `struct rtmsg` and `struct ndmsg`.
const ROUTE: usize = 12;
/// `struct ifinfomsg`.
const LINK: usize = 16;

/// Longest packet that a way surely carries when the tables do not say: IPv6's least, which tunnels keep to as well.
const MTU_UNSAID: usize = 1280;

/// Where packets to an address go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route {
    /// Interface.
    pub(crate) interface: u32,
    /// Who takes them on the next wire.
    pub(crate) next_hop: Ipv4Addr,
    /// The address is one of our own, or of this wire's everybody: only the kernel delivers that.
    pub(crate) special: bool,
    /// Longest IP packet.
    pub(crate) mtu: usize,
}

/// What an interface can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    /// Longest IP packet.
    pub(crate) mtu: usize,
    /// Queues that it receives by, at most.
    pub(crate) queues: u32,
}

/// A socket to ask with.
#[derive(Debug)]
pub(crate) struct Router {
    socket: OwnedFd,
    sequence: u32,
    question: Vec<u8>,
    answer: Box<[u8]>,
}

impl Router {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self::with(sys::open(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?))
    }
    fn with(socket: OwnedFd) -> Self {
        let answer = vec![0; ANSWER_BYTES].into();
        Self { socket, sequence: 0, question: Vec::with_capacity(64), answer }
    }

    /// The way from one of our addresses to a peer.
    pub(crate) fn route(&mut self, from: Ipv4Addr, to: Ipv4Addr) -> Option<Route> {
        self.begin(libc::RTM_GETROUTE);
        self.question.extend([libc::AF_INET as u8, 32, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        attribute(&mut self.question, libc::RTA_DST, &to.octets());
        attribute(&mut self.question, libc::RTA_SRC, &from.octets());
        let answer = self.ask(libc::RTM_NEWROUTE)?;
        let kind = *answer.get(7)?;
        let attributes = || attributes(answer.get(ROUTE..).unwrap_or_default());
        let find = |wanted| attributes().find(|(kind, _)| *kind == wanted).map(|(_, value)| value);
        let interface = u32::from_ne_bytes(find(libc::RTA_OIF)?.try_into().ok()?);
        let next_hop = match find(libc::RTA_GATEWAY) {
            Some(gateway) => Ipv4Addr::from(<[u8; 4]>::try_from(gateway).ok()?),
            // By way of an IPv6 neighbour (RFC 8950): the kernel's own affair.
            None if find(libc::RTA_VIA).is_some() => return None,
            None => to,
        };
        let metrics = find(libc::RTA_METRICS).unwrap_or_default();
        let mtu = self::attributes(metrics)
            .find(|(kind, _)| *kind == RTAX_MTU)
            .and_then(|(_, value)| Some(u32::from_ne_bytes(value.try_into().ok()?) as usize));
        Some(Route {
            interface,
            next_hop,
            special: kind != libc::RTN_UNICAST,
            mtu: mtu.filter(|mtu| *mtu > 0).unwrap_or(MTU_UNSAID),
        })
    }
    /// The hardware address of a neighbour that is known and answers.
    pub(crate) fn neighbour(&mut self, interface: u32, address: Ipv4Addr) -> Option<Mac> {
        self.begin(libc::RTM_GETNEIGH);
        self.question.extend([libc::AF_INET as u8, 0, 0, 0]);
        self.question.extend(interface.to_ne_bytes());
        self.question.extend([0, 0, 0, 0]);
        attribute(&mut self.question, libc::NDA_DST, &address.octets());
        let answer = self.ask(libc::RTM_NEWNEIGH)?;
        let state = u16::from_ne_bytes(sys::read_plain(answer, 8)?);
        let usable =
            libc::NUD_REACHABLE | libc::NUD_STALE | libc::NUD_DELAY | libc::NUD_PROBE | libc::NUD_PERMANENT;
        let known = state & usable != 0;
        let (_, mac) = attributes(answer.get(ROUTE..)?).find(|(kind, _)| *kind == libc::NDA_LLADDR)?;
        Mac::try_from(mac).ok().filter(|_| known)
    }
    /// The hardware address of one of our interfaces; `None` when it is not Ethernet.
    pub(crate) fn own_mac(&mut self, interface: u32) -> Option<Mac> {
        self.begin(libc::RTM_GETLINK);
        self.question.extend([0; 4]);
        self.question.extend(interface.to_ne_bytes());
        self.question.extend([0; 8]);
        let answer = self.ask(libc::RTM_NEWLINK)?;
        let kind = u16::from_ne_bytes(sys::read_plain(answer, 2)?);
        if kind != libc::ARPHRD_ETHER {
            return None;
        }
        let (_, mac) = attributes(answer.get(LINK..)?).find(|(kind, _)| *kind == libc::IFLA_ADDRESS)?;
        Mac::try_from(mac).ok()
    }

    /// One of our interfaces; `None` when it is not Ethernet or not up.
    pub(crate) fn link(&mut self, interface: u32) -> Option<Link> {
        self.begin(libc::RTM_GETLINK);
        self.question.extend([0; 4]);
        self.question.extend(interface.to_ne_bytes());
        self.question.extend([0; 8]);
        let answer = self.ask(libc::RTM_NEWLINK)?;
        let kind = u16::from_ne_bytes(sys::read_plain(answer, 2)?);
        let flags = u32::from_ne_bytes(sys::read_plain(answer, 8)?);
        if kind != libc::ARPHRD_ETHER || flags & libc::IFF_UP as u32 == 0 {
            return None;
        }
        let number = |wanted| {
            let (_, value) = attributes(answer.get(LINK..)?).find(|(kind, _)| *kind == wanted)?;
            Some(u32::from_ne_bytes(value.try_into().ok()?))
        };
        Some(Link { mtu: number(libc::IFLA_MTU)? as usize, queues: number(libc::IFLA_NUM_RX_QUEUES)? })
    }

    /// Whether an interface is one end of a pair of virtual Ethernet interfaces.
    pub(crate) fn is_veth(&mut self, interface: u32) -> bool {
        self.begin(libc::RTM_GETLINK);
        self.question.extend([0; 4]);
        self.question.extend(interface.to_ne_bytes());
        self.question.extend([0; 8]);
        let answer = self.ask(libc::RTM_NEWLINK).unwrap_or_default();
        let info = attributes(answer.get(LINK..).unwrap_or_default());
        let mut info = info.filter(|(kind, _)| *kind == IFLA_LINKINFO).flat_map(|(_, info)| attributes(info));
        info.any(|(kind, name)| kind == IFLA_INFO_KIND && name.starts_with(b"veth"))
    }

    /// Begins a question, whose length is filled in when it is asked.
    fn begin(&mut self, kind: u16) {
        self.sequence = self.sequence.wrapping_add(1);
        self.question.clear();
        self.question.extend([0; 4]);
        self.question.extend(kind.to_ne_bytes());
        self.question.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
        self.question.extend(self.sequence.to_ne_bytes());
        self.question.extend([0; 4]);
    }
    /// Asks and returns the body of the answer of the wanted type. The kernel answers before `send` returns.
    fn ask(&mut self, wanted: u16) -> Option<&[u8]> {
        let length = u32::try_from(self.question.len()).ok()?.to_ne_bytes();
        self.question.first_chunk_mut::<4>()?.copy_from_slice(&length);
        crate::sys::send(&self.socket, &self.question).ok()?;
        for _ in 0..STALE_MAX {
            let length = crate::sys::recv(&self.socket, &mut self.answer).ok()?;
            let answer = self.answer.get(..length)?;
            let sequence = u32::from_ne_bytes(sys::read_plain(answer, 8)?);
            if sequence != self.sequence {
                continue;
            }
            let said = u32::from_ne_bytes(sys::read_plain(answer, 0)?) as usize;
            let kind = u16::from_ne_bytes(sys::read_plain(answer, 4)?);
            // An error is "there is none".
            return (kind == wanted).then(|| self.answer.get(HEADER..said.min(length)))?;
        }
        None
    }
}

/// What drivers say that they can do with XDP (generic netlink, family `netdev`, from Linux 6.3 on).
#[derive(Debug)]
pub(crate) struct Features {
    router: Router,
    family: u16,
}

/// Bits of what an interface can do with XDP, `enum netdev_xdp_act` of `linux/netdev.h`.
pub(crate) const XDP_BASIC: u64 = 1;
pub(crate) const XDP_NDO_XMIT: u64 = 1 << 2;

impl Features {
    /// `None` where the kernel cannot be asked.
    pub(crate) fn new() -> Option<Self> {
        let socket = sys::open(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_GENERIC).ok()?;
        let mut router = Router::with(socket);
        router.begin(GENL_ID_CTRL);
        router.question.extend([CTRL_CMD_GETFAMILY, 1, 0, 0]);
        attribute(&mut router.question, CTRL_ATTR_FAMILY_NAME, b"netdev\0");
        let answer = router.ask(GENL_ID_CTRL)?;
        let (_, id) = attributes(answer.get(4..)?).find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID)?;
        let family = u16::from_ne_bytes(sys::read_plain(id, 0)?);
        Some(Self { router, family })
    }
    /// Of one interface.
    pub(crate) fn of(&mut self, interface: u32) -> Option<u64> {
        self.router.begin(self.family);
        self.router.question.extend([NETDEV_CMD_DEV_GET, 1, 0, 0]);
        attribute(&mut self.router.question, NETDEV_A_DEV_IFINDEX, &interface.to_ne_bytes());
        let answer = self.router.ask(self.family)?;
        let (_, features) =
            attributes(answer.get(4..)?).find(|(kind, _)| *kind == NETDEV_A_DEV_XDP_FEATURES)?;
        Some(u64::from_ne_bytes(sys::read_plain(features, 0)?))
    }
}

/// Names of `linux/if_link.h` that `libc` has not.
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;

/// Names of `linux/genetlink.h` and `linux/netdev.h`.
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;

/// Whether this host wants some of what leaves it encrypted or blocked by IPsec; needs CAP_NET_ADMIN. A kernel without
/// IPsec has no such wish.
pub(crate) fn has_outgoing_policies() -> io::Result<bool> {
    let Ok(socket) = sys::open(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_XFRM) else {
        return Ok(false);
    };
    let mut router = Router::with(socket);
    router.begin(XFRM_MSG_GETSPDINFO);
    router.question.extend([0; 4]);
    let answer = router.ask(XFRM_MSG_NEWSPDINFO).ok_or(io::ErrorKind::PermissionDenied)?;
    let counts = attributes(answer.get(4..).unwrap_or_default()).find(|(kind, _)| *kind == XFRMA_SPD_INFO);
    // struct xfrmu_spdinfo: policies for what comes in, goes out, is forwarded; then those of sockets.
    let outgoing = counts.and_then(|(_, counts)| sys::read_plain(counts, 4));
    Ok(outgoing.map_or(0, u32::from_ne_bytes) > 0)
}

/// Names of `linux/xfrm.h` that `libc` has not.
const XFRM_MSG_NEWSPDINFO: u16 = 0x24;
const XFRM_MSG_GETSPDINFO: u16 = 0x25;
const XFRMA_SPD_INFO: u16 = 1;

/// `RTAX_MTU`, which `libc` does not name.
const RTAX_MTU: u16 = 2;

/// Appends an attribute, padded to four bytes.
fn attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = 4 + value.len();
    body.extend(u16::try_from(length).unwrap_or(u16::MAX).to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// The attributes of a message, as far as they are whole.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(sys::read_plain(bytes, 0)?));
        let kind = u16::from_ne_bytes(sys::read_plain(bytes, 2)?);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        // The two highest bits are flags.
        Some((kind & 0x3fff, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_special_and_has_no_hardware_address() {
        let mut router = Router::new().unwrap();
        let local = Ipv4Addr::LOCALHOST;
        let route = router.route(local, Ipv4Addr::new(127, 3, 2, 1)).unwrap();
        assert!(route.special, "{route:?}");
        assert_eq!(router.own_mac(route.interface), None);
        assert_eq!(router.link(route.interface), None);
        assert_eq!(router.neighbour(route.interface, Ipv4Addr::new(192, 0, 2, 9)), None);
    }

    #[test]
    fn attributes_that_are_cut_end_the_list() {
        let mut whole = Vec::new();
        attribute(&mut whole, 5, &[1, 2, 3]);
        attribute(&mut whole, 0x8000 | 6, &[4]);
        let found: Vec<_> = attributes(&whole).collect();
        assert_eq!(found, [(5, &[1, 2, 3][..]), (6, &[4])]);
        for length in 0..whole.len() {
            let fewer = attributes(&whole[..length]).count();
            assert!(fewer <= usize::from(length >= 7) + usize::from(length >= 13), "{length}: {fewer}");
        }
        assert_eq!(attributes(&[0, 0, 1, 0]).count(), 0, "a length of nothing does not loop");
    }
}
