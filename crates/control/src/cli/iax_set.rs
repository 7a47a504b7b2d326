//! IAX2 while somebody looks for a fault: what is told in the log, a network that loses frames, and the length of trunks.

use driver::iax::{TRUNK_MTU_DEFAULT, TRUNK_MTU_LEAST, TRUNK_MTU_MOST};

use super::text::clean;
use super::{Ask, Cli, Row, Said, verb};
use crate::iax::{Show, Trace};

pub(super) const ROWS: &[Row] = &[
    verb("iax2 set debug on|off", "Switches the log of IAX2 frames.", Cli::iax_set_debug)
        .detail("Passwords, challenges' answers and keys are never logged."),
    verb(
        "iax2 set debug ip <address>",
        "Switches the log of IAX2 frames on for one address.",
        Cli::iax_set_debug,
    ),
    verb(
        "iax2 set debug peer <iax-peer>",
        "Switches the log of IAX2 frames on for the address of one peer.",
        Cli::iax_set_debug_peer,
    ),
    verb(
        "iax2 set debug trunk on|off",
        "Switches the log of IAX2 trunks: each datagram with its calls and its length.",
        |cli, ask| cli.iax_set_told(ask, "Trunk", |iax, on| iax.set_trunk_trace(on)),
    ),
    verb(
        "iax2 set debug jb on|off",
        "Switches the log of the jitter buffers of IAX2 calls, once a second.",
        |cli, ask| cli.iax_set_told(ask, "Jitterbuffer", |iax, on| iax.set_jitter_trace(on)),
    )
    .detail("What voice waits, its jitter, and what was lost or came too late, of the first hundred calls."),
    verb("iax2 set mtu <mtu>", "Sets the longest datagram of IAX2 trunks (trunkmtu), in octets.", Cli::iax_set_mtu).detail(
        "mtu is 172 to 1472, `default` (1240), or 0: as long as datagrams of IAX2 may be.\nHolds until iax.conf is read again.",
    ),
    verb(
        "iax2 test losspct <percent>",
        "Throws away so many of a hundred IAX2 datagrams that come, for tests; 0 takes them all.",
        Cli::iax_test_loss,
    )
    .detail("Holds until it is set to 0 or the process ends; iax2 show stats counts them."),
];

impl Cli {
    fn iax_set_debug(&self, ask: &mut Ask<'_>) -> Said {
        let (trace, told) = match (ask.arg("address").map(str::parse), ask.choice()) {
            (Some(Ok(address)), _) => {
                (Trace::Of(address), format!("IAX2 Debugging Enabled for IP: {address}\n"))
            }
            (Some(Err(_)), _) => {
                return Said::failed(format!("'{}' is no address\n", clean(ask.need("address"))));
            }
            (None, Some("off")) => (Trace::Off, "IAX2 Debugging Disabled\n".to_owned()),
            (None, _) => (Trace::All, "IAX2 Debugging Enabled\n".to_owned()),
        };
        self.iax(|iax| {
            iax.set_trace(trace);
            Said::Done(told)
        })
    }

    fn iax_set_debug_peer(&self, ask: &mut Ask<'_>) -> Said {
        let name = ask.need("iax-peer").to_owned();
        self.iax(|iax| match iax.peers(Some(&name)).first().map(|row| row.address) {
            None => Said::failed(format!("Peer {} not found.\n", clean(&name))),
            Some(None) => Said::failed(format!(
                "The address of {} is not known; wait until it has registered\n",
                clean(&name)
            )),
            Some(Some(address)) => {
                iax.set_trace(Trace::Of(address.ip()));
                Said::Done(format!("IAX2 Debugging Enabled for IP: {}\n", address.ip()))
            }
        })
    }

    fn iax_set_told(&self, ask: &Ask<'_>, what: &str, set: fn(&mut dyn Show, bool)) -> Said {
        let on = ask.choice() == Some("on");
        self.iax(|iax| {
            set(iax, on);
            Said::Done(format!("IAX2 {what} Debugging {}\n", if on { "Enabled" } else { "Disabled" }))
        })
    }

    fn iax_set_mtu(&self, ask: &mut Ask<'_>) -> Said {
        let bytes = match (ask.need("mtu"), ask.need("mtu").parse()) {
            ("default", _) => TRUNK_MTU_DEFAULT,
            (_, Ok(0)) => TRUNK_MTU_MOST,
            (_, Ok(bytes)) if (TRUNK_MTU_LEAST..=TRUNK_MTU_MOST).contains(&bytes) => bytes,
            _ => {
                return Said::failed(format!(
                    "Trunk MTU must be between {TRUNK_MTU_LEAST} and {TRUNK_MTU_MOST}\n"
                ));
            }
        };
        let bounded = ask.need("mtu") != "0";
        self.iax(|iax| {
            let before = iax.set_trunk_mtu(bytes);
            Said::Done(match bounded {
                true => format!("Trunk MTU changed from {before} to {bytes}\n"),
                false => format!("Trunk MTU control disabled (mtu was {before})\n"),
            })
        })
    }

    fn iax_test_loss(&self, ask: &mut Ask<'_>) -> Said {
        let Some(percent) = ask.need("percent").parse().ok().filter(|percent| *percent <= 100) else {
            return Said::failed(format!("'{}' is no percentage of 0 to 100\n", clean(ask.need("percent"))));
        };
        self.iax(|iax| {
            iax.set_loss(percent);
            Said::Done(match percent {
                0 => "All IAX2 datagrams are taken\n".to_owned(),
                percent => format!("{percent} of 100 IAX2 datagrams that come are thrown away\n"),
            })
        })
    }
}
