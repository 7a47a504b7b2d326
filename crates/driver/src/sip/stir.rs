//! STIR/SHAKEN in calls: an INVITE of ours says who vouches for its caller (RFC 8224 §4.1), and one that comes in is believed
//! as its endpoint's profile has it (§6.2).
//!
//! A call whose certificate has to be fetched has its channel and its 100 and waits with its dialplan; what it waits for is
//! bounded by [`::stir::cache`] and by how long a fetch may take.

use core::time::Duration;
use std::collections::BTreeSet;
use std::rc::Rc;

use ::sip::HeaderName;
use ::sip::stack::{Answer, Incoming};
use ::stir::cache::{Cache, Found};
use ::stir::{
    Begun, Claims, FailureAction, Fetching, Outcome, Pending, Profile, Refusal, Verdict, Verification,
};
use base::{Cause, ChannelId, Instant};
use call::{Core, Level, Location, PartyId};

use super::config::{Config, Endpoint};
use super::leg::Leg;
use super::{SipDriver, ask, outbound};

/// Who says so in the log.
const PLACE: &str = "res_pjsip_stir_shaken";

/// A certificate that somebody has to fetch; what came is told by [`SipDriver::certificate_came`].
#[derive(Clone)]
pub struct CertificateWant {
    /// Where it lies.
    pub url: String,
    /// By which rules.
    pub fetching: Fetching,
}

/// What a leg knows of its caller.
#[derive(Default)]
pub(crate) struct Identity {
    /// What came of each verification.
    outcomes: Vec<Outcome>,
    /// Why the caller is not proved, for the next response.
    reason: Option<String>,
    /// The call is not signed.
    is_suppressed: bool,
}

/// Who waits for a certificate.
enum Waiting {
    /// A call, and where it goes on.
    Call {
        channel: ChannelId,
        handle: u64,
        location: Location,
        pending: Box<Pending>,
        rules: Rc<Verification>,
    },
    /// A number of ours, whose own it is.
    Own { number: String, rules: Rc<Verification> },
}

/// Certificates, and what is awaited of them.
#[derive(Default)]
pub(super) struct Verifying {
    cache: Cache<Waiting>,
    wanted: Vec<CertificateWant>,
    /// Numbers of ours whose certificates cannot be used.
    unusable: BTreeSet<String>,
}

impl Verifying {
    /// Takes new settings: certificates of ours are looked at again, and others are fetched by the new rules.
    pub(super) fn configure(&mut self, config: &Config, now: Instant) {
        let Self { cache, wanted, unusable } = self;
        cache.set_most(config.stir.certificates_max);
        cache.clear();
        unusable.clear();
        for (number, url, rules) in &config.stir.checks {
            let who = Waiting::Own { number: number.clone(), rules: rules.clone() };
            if cache.look_up(url, who, now) == Found::Wanted {
                wanted.push(CertificateWant { url: url.clone(), fetching: rules.fetching.clone() });
            }
        }
    }
}

fn seconds(core: &Core) -> u64 {
    u64::try_from(core.services.wall.now_micros() / 1_000_000).unwrap_or(0)
}

/// A random UUID (RFC 9562 §5.4).
fn uuid(core: &mut Core) -> String {
    let (high, low) = (core.random(), core.random());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        (low >> 48) & 0x3fff | 0x8000,
        low & 0xffff_ffff_ffff
    )
}

impl SipDriver {
    /// Certificates that the shell is to fetch.
    pub fn take_certificate_wants(&mut self) -> Vec<CertificateWant> {
        std::mem::take(&mut self.verifying.wanted)
    }
    fn stir_profile(&self, endpoint: &Endpoint) -> Option<&Rc<Profile>> {
        if endpoint.stir_profile.is_empty() {
            return None;
        }
        self.config.stir.profiles.get(&endpoint.stir_profile)
    }

    /// The headers by which we vouch for the caller of an INVITE of ours: none where its endpoint has no profile, nobody
    /// signs for the caller, or the dialplan has put an Identity of its own. What fails is logged, and the call goes out.
    pub(crate) fn attested(
        &mut self,
        core: &mut Core,
        handle: u64,
        connected: &PartyId,
        sdp: &[u8],
    ) -> Vec<(String, String)> {
        let Some(leg) = self.legs.get(handle) else { return Vec::new() };
        let Some(profile) = self.stir_profile(&leg.endpoint).filter(|_| !leg.identity.is_suppressed) else {
            return Vec::new();
        };
        let may_show = leg.endpoint.trust_id_outbound || !connected.number_presentation.is_hidden();
        let has = |name: &str| ask::header_in(&leg.headers, name, 1);
        if !may_show || has("Identity").is_some() {
            return Vec::new();
        }
        let orig = ::stir::digits(connected.number());
        let signer = profile.signer(&orig).filter(|_| !self.verifying.unusable.contains(&orig));
        let Some(signer) = signer.cloned() else { return Vec::new() };
        let dest = ::stir::number_of_user(&outbound::user_of(&leg.target));
        let has_date = has("Date").is_some();
        let (iat, origid) = (seconds(core), uuid(core));
        let mky =
            if signer.send_mky { ::stir::fingerprints(&String::from_utf8_lossy(sdp)) } else { Vec::new() };
        let claims =
            Claims { attest: signer.level, dest: &dest, iat, mky: &mky, orig: &orig, origid: &origid };
        let token = (!dest.is_empty()).then(|| claims.sign(&signer.url, &*signer.key)).flatten();
        let Some(token) = token else {
            let why = if dest.is_empty() { "who is called has no number" } else { "its key cannot sign" };
            let line = format!("{}: the call of '{orig}' is not signed: {why}", self.name_of(core, handle));
            core.log(Level::Error, PLACE, &line);
            return Vec::new();
        };
        let date = (!has_date).then(|| ("Date".to_owned(), ::stir::date_header(iat)));
        let identity = ("Identity".to_owned(), ::stir::identity_header(&token, &signer.url));
        date.into_iter().chain([identity]).collect()
    }
    /// `STIR_SHAKEN_ATTESTATION(suppress)`: until the call is placed.
    pub(super) fn suppress_attestation(&mut self, core: &Core, channel: ChannelId, is_wanted: bool) -> bool {
        let is_idle = |leg: &&mut Leg| leg.stage == super::leg::Stage::Idle;
        let Some(leg) = self.leg_of(channel, core).filter(is_idle) else { return false };
        leg.identity.is_suppressed = is_wanted;
        true
    }
    fn name_of(&self, core: &Core, handle: u64) -> String {
        let channel = self.legs.get(handle).and_then(|leg| core.get(leg.channel));
        channel.map(|channel| channel.name.to_string()).unwrap_or_default()
    }

    /// A call has its channel: it goes on at once, or when it is known who calls.
    pub(super) fn verify_caller(
        &mut self,
        core: &mut Core,
        channel: ChannelId,
        location: Location,
        incoming: &Incoming,
        endpoint: &Endpoint,
    ) {
        let profile = self.stir_profile(endpoint).filter(|profile| profile.behavior.verifies());
        let rules = profile.and_then(|profile| profile.verification.clone());
        let Some((rules, entry)) = rules.zip(core.get(channel)) else {
            return self.started.push((channel, location));
        };
        let handle = entry.handle;
        let view = incoming.message.view();
        let text = |value| core::str::from_utf8(value).unwrap_or_default().trim();
        let identities: Vec<&str> =
            view.headers(HeaderName::Identity).map(text).take(::stir::IDENTITIES_MAX).collect();
        let date = view.headers(HeaderName::Date).next().map(text);
        let call = ::stir::Call { caller: entry.caller.number(), identities: &identities, date };
        let pending = match ::stir::begin(&call, &rules, seconds(core)) {
            Begun::Failed(outcome) => {
                return self.verified(core, (channel, handle), location, outcome, &rules);
            }
            Begun::Needs(pending) => pending,
        };
        let url = pending.url.clone();
        let (again, place) = (pending.clone(), location.clone());
        let who = Waiting::Call { channel, handle, location, pending, rules: rules.clone() };
        match self.verifying.cache.look_up(&url, who, core.now) {
            Found::Known(certificate) => {
                let outcome = again.finish(Ok(&certificate), &rules);
                self.verified(core, (channel, handle), place, outcome, &rules);
            }
            Found::Wanted => {
                let fetching = rules.fetching.clone();
                self.verifying.wanted.push(CertificateWant { url, fetching });
            }
            Found::Awaited => {}
            Found::Full => {
                core.log(Level::Error, PLACE, "too many certificates are fetched; a caller is not verified");
                let outcome = again.finish(Err(Verdict::Retrieval), &rules);
                self.verified(core, (channel, handle), place, outcome, &rules);
            }
        }
    }
    /// What came of a fetch, and how long it may be kept: calls that wait for it go on.
    pub fn certificate_came(
        &mut self,
        core: &mut Core,
        url: &str,
        came: Result<(Vec<u8>, Duration), String>,
    ) {
        if let Err(why) = &came {
            let line = format!("no certificate from '{}': {why}", call::security::shown(url));
            core.log(Level::Warning, PLACE, &line);
        }
        let (bytes, keep) =
            came.as_ref().map_or((None, Duration::ZERO), |(bytes, keep)| (Some(&**bytes), *keep));
        let (waiting, certificate) = self.verifying.cache.came(url, bytes, keep, core.now);
        for who in waiting {
            let certificate = certificate.as_deref().map_err(|verdict| *verdict);
            match who {
                Waiting::Call { channel, handle, location, pending, rules } => {
                    let outcome = pending.finish(certificate, &rules);
                    self.verified(core, (channel, handle), location, outcome, &rules);
                }
                Waiting::Own { number, rules } => {
                    let usable = certificate.and_then(|of| ::stir::is_usable(of, &rules, seconds(core)));
                    let Err(verdict) = usable else { continue };
                    let line = format!(
                        "calls of '{number}' are not signed: its certificate cannot be used ({})",
                        verdict.word()
                    );
                    core.log(Level::Error, PLACE, &line);
                    self.verifying.unusable.insert(number);
                }
            }
        }
    }
    /// It is known who calls: the dialplan begins, or the call is refused.
    fn verified(
        &mut self,
        core: &mut Core,
        (channel, handle): (ChannelId, u64),
        location: Location,
        outcome: Outcome,
        rules: &Verification,
    ) {
        let Some(leg) = self.legs.get_mut(handle).filter(|leg| leg.channel == channel) else { return };
        let refusal = outcome.verdict.refusal();
        leg.identity.outcomes.push(outcome.clone());
        if let Some(refusal) = refusal {
            let line = format!(
                "{}: the caller '{}' is not verified: {} ({} {})",
                self.name_of(core, handle),
                outcome.caller,
                outcome.verdict.word(),
                refusal.status,
                refusal.phrase
            );
            core.log(Level::Notice, PLACE, &line);
        }
        match (refusal, rules.failure_action) {
            (Some(refusal), FailureAction::RejectRequest) => {
                return self.refuse_unproved(core, channel, handle, refusal);
            }
            (Some(Refusal { status, phrase }), FailureAction::ContinueReturnReason) => {
                let protocol = if rules.stir_reasons { "STIR" } else { "SIP" };
                if let Some(leg) = self.legs.get_mut(handle) {
                    leg.identity.reason = Some(format!("{protocol}; cause={status}; text=\"{phrase}\""));
                }
            }
            (Some(_), FailureAction::Continue) | (None, _) => {}
        }
        self.started.push((channel, location));
    }
    /// Refuses a call before its dialplan has begun. Who has withdrawn it meanwhile is answered already.
    fn refuse_unproved(&mut self, core: &mut Core, channel: ChannelId, handle: u64, refusal: Refusal) {
        let dialog = self.legs.remove(handle).and_then(|leg| leg.dialog);
        if let Some(entry) = core.get_mut(channel) {
            entry.hangup.get_or_insert(Cause::CALL_REJECTED);
            entry.tech_cause.get_or_insert(refusal.status);
        }
        if let Some(dialog) = dialog {
            let answer = Answer { reason: refusal.phrase, ..Answer::new(refusal.status) };
            self.with_stack(core, |stack, now, out| stack.answer(dialog, &answer, now, out)).ok();
        }
        core.discard(channel);
    }
    /// Why the caller is not proved, for one response.
    pub(super) fn unproved_reason(&mut self, handle: u64) -> Option<(String, String)> {
        let reason = self.legs.get_mut(handle)?.identity.reason.take()?;
        Some(("Reason".to_owned(), reason))
    }
    /// Whether a certificate would be believed now, by a profile or by what holds without one: whom it is for, or why not.
    pub fn judge_certificate(
        &self,
        core: &Core,
        bytes: &[u8],
        profile: Option<&str>,
    ) -> Result<String, String> {
        let stir = &self.config.stir;
        let rules = match profile {
            Some(name) => {
                let profile =
                    stir.profiles.get(name).ok_or_else(|| format!("there is no profile '{name}'"))?;
                profile.verification.as_ref().or(stir.verification.as_ref())
            }
            None => stir.verification.as_ref(),
        };
        let rules = rules.ok_or("nothing is verified: stir_shaken.conf has no [verification]")?;
        let certificate =
            ::stir::Certificate::read(bytes).ok_or_else(|| Verdict::CertContents.word().to_owned())?;
        match ::stir::is_usable(&certificate, rules, seconds(core)) {
            Ok(()) => Ok(certificate.subject),
            Err(verdict) => Err(verdict.word().to_owned()),
        }
    }
    /// `STIR_SHAKEN(count)` and `STIR_SHAKEN(index,item)`.
    pub(super) fn verified_item(&mut self, core: &Core, channel: ChannelId, args: &str) -> Option<String> {
        let outcomes = &self.leg_of(channel, core)?.identity.outcomes;
        let Some((index, item)) = args.split_once(',') else { return Some(outcomes.len().to_string()) };
        let outcome = outcomes.get(index.parse::<usize>().ok()?)?;
        Some(match item {
            "identity" => outcome.caller.clone(),
            "attestation" => outcome.attestation.map(::stir::Level::word).unwrap_or_default().to_owned(),
            _ => outcome.verdict.word().to_owned(),
        })
    }
}
