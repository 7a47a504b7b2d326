//! What dialplans of `chan_sip` ask: SIPPEER(), SIPCHANINFO() and CHECKSIPDOMAIN(), answered from what is known of endpoints.

use ::sip::Uri;
use base::ChannelId;
use call::Core;

use super::show::{ContactState, options};
use super::{SipDriver, identity};

impl SipDriver {
    /// `SIPPEER(name[,item])`.
    pub(crate) fn peer_item(&self, core: &Core, args: &str) -> Option<String> {
        let (name, item) = args.split_once(',').unwrap_or((args, "ip"));
        let (name, item) = (name.trim(), item.trim().to_ascii_lowercase());
        let endpoint = self.config.endpoints.get(name)?;
        let setting = |field: &str| {
            let found = options(endpoint).into_iter().find(|(option, _)| *option == field);
            found.map(|(_, value)| value).unwrap_or_default()
        };
        let rows: Vec<_> = endpoint.aors.iter().flat_map(|aor| self.contact_rows(Some(aor), core)).collect();
        let row = rows.first();
        let uri = row.and_then(|row| Uri::parse(row.uri.as_bytes()));
        let dynamic =
            endpoint.aors.iter().filter_map(|aor| self.config.aors.get(aor)).any(|aor| aor.max_contacts > 0);
        if let Some(variable) = item.strip_prefix("chanvar[").and_then(|rest| rest.strip_suffix(']')) {
            let found = endpoint.set_var.iter().find(|(name, _)| name.eq_ignore_ascii_case(variable));
            return Some(found.map(|(_, value)| value.clone()).unwrap_or_default());
        }
        if let Some(place) = item.strip_prefix("codec[").and_then(|rest| rest.strip_suffix(']')) {
            let place: usize = place.parse().ok()?;
            return Some(
                endpoint.allow.iter().nth(place).map(|format| format.name().to_owned()).unwrap_or_default(),
            );
        }
        Some(match item.as_str() {
            "ip" => uri.map(|uri| identity::text(uri.host.as_bytes())).unwrap_or_default(),
            "port" => uri.map_or(0, |uri| uri.port.unwrap_or(5060)).to_string(),
            "status" => match row {
                None => "UNREACHABLE".to_owned(),
                Some(row) => match (row.state, row.roundtrip) {
                    (ContactState::NonQualified, _) => "Unmonitored".to_owned(),
                    (ContactState::Unknown, _) => "UNKNOWN".to_owned(),
                    (ContactState::Unavailable, _) => "UNREACHABLE".to_owned(),
                    (ContactState::Available, round_trip) => {
                        format!("OK ({} ms)", round_trip.unwrap_or_default().as_millis())
                    }
                },
            },
            "useragent" => row.map(|row| row.user_agent.clone()).unwrap_or_default(),
            "expire" => row.and_then(|row| row.expires).unwrap_or(0).to_string(),
            "dynamic" => if dynamic { "yes" } else { "no" }.to_owned(),
            "context" => endpoint.context.clone(),
            "callerid_name" => endpoint.caller.name().to_owned(),
            "callerid_num" => endpoint.caller.number().to_owned(),
            "language" => endpoint.language.clone(),
            "accountcode" => endpoint.account.clone(),
            "codecs" => setting("allow"),
            "mailbox" => setting("mailboxes"),
            "callgroup" => setting("call_group"),
            "pickupgroup" => setting("pickup_group"),
            "limit" => endpoint.call_limit.to_string(),
            "busylevel" => endpoint.busy_at.to_string(),
            "curcalls" => self.legs.of_endpoint(&endpoint.name).count().to_string(),
            "maxforwards" => "70".to_owned(),
            "regexten" => endpoint.regexten.clone(),
            _ => return None,
        })
    }
    /// `SIPCHANINFO(item)`.
    pub(crate) fn call_item(&mut self, core: &Core, channel: ChannelId, item: &str) -> Option<String> {
        let leg = self.leg_of(channel, core)?;
        let view = leg.invite.as_ref().map(|message| message.view());
        let header = |name: &str| {
            let found =
                view.as_ref().and_then(|view| view.header(::sip::HeaderName::from_bytes(name.as_bytes())));
            found.map(identity::text).unwrap_or_default()
        };
        let contact = || {
            view.as_ref().and_then(|view| ::sip::NameAddr::parse(view.header(::sip::HeaderName::Contact)?))
        };
        Some(match item.trim().to_ascii_lowercase().as_str() {
            "peerip" | "recvip" => leg.flow.remote.ip().to_string(),
            "from" => header("From"),
            "uri" => contact().map(|contact| identity::text(contact.uri.as_bytes())).unwrap_or_default(),
            "useragent" => header("User-Agent"),
            "peername" => leg.endpoint.name.to_string(),
            "t38passthrough" => u8::from(leg.endpoint.fax.is_some()).to_string(),
            _ => return None,
        })
    }
    /// `CHECKSIPDOMAIN(domain)`: the domain when requests to it are ours.
    pub(crate) fn own_domain(&self, domain: &str) -> String {
        let domain = domain.trim();
        let alias = self
            .config
            .domain_aliases
            .iter()
            .any(|(alias, of)| alias.eq_ignore_ascii_case(domain) || of.eq_ignore_ascii_case(domain));
        let realm = self.config.default_realm.eq_ignore_ascii_case(domain);
        if !domain.is_empty() && (alias || realm) { domain.to_owned() } else { String::new() }
    }
}
