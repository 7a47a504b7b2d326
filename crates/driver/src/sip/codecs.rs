//! Which formats are offered and answered where two lists meet: what has come (`pending`) and `allow=` (`configured`).

use base::FormatSet;

/// How the two lists become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Operation {
    /// What is in both.
    #[default]
    Intersect,
    /// What is in both, then the rest of `allow=`.
    Union,
    /// What of the preferred list is allowed.
    OnlyPreferred,
    /// What of the other list is allowed.
    OnlyNonpreferred,
}

/// One of `codec_prefs_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodecPrefs {
    /// `prefer: configured`: `allow=` leads.
    pub configured: bool,
    /// `operation:`
    pub operation: Operation,
    /// `keep: first`.
    pub first_only: bool,
    /// `transcode: allow`.
    pub transcode: bool,
}

impl CodecPrefs {
    /// What holds when nothing is written: what has come leads, as far as it is allowed.
    pub const fn new(operation: Operation) -> Self {
        Self { configured: false, operation, first_only: false, transcode: true }
    }
    /// Whether the order of `allow=` decides.
    fn is_own_order(self) -> bool {
        self.configured != (self.operation == Operation::OnlyNonpreferred)
    }
    /// The formats of an offer of ours. What is not allowed is never offered; without anything pending everything else is.
    /// `may_transcode` is what the other party's endpoint says.
    fn offer(self, pending: FormatSet, configured: FormatSet, may_transcode: bool) -> FormatSet {
        if pending.is_empty() {
            return self.kept(configured);
        }
        let own = self.is_own_order();
        let shared = |first: FormatSet, second: FormatSet| -> FormatSet {
            first.iter().filter(|format| second.contains(*format)).collect()
        };
        let both = if own { shared(configured, pending) } else { shared(pending, configured) };
        let joint = match self.operation {
            _ if !(self.transcode && may_transcode) => both,
            Operation::Intersect => both,
            Operation::OnlyPreferred | Operation::OnlyNonpreferred if !own => both,
            Operation::Union if !own => both.iter().chain(configured.iter()).collect(),
            Operation::Union | Operation::OnlyPreferred | Operation::OnlyNonpreferred => configured,
        };
        self.kept(joint)
    }
    fn kept(self, formats: FormatSet) -> FormatSet {
        formats.iter().take(if self.first_only { 1 } else { usize::MAX }).collect()
    }
}

/// All that an endpoint says about formats besides `allow=`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Codecs {
    /// An offer that came, before the dialplan sees it (`codec_prefs_incoming_offer`).
    pub incoming_offer: CodecPrefs,
    /// An offer of ours (`codec_prefs_outgoing_offer`).
    pub outgoing_offer: CodecPrefs,
    /// The answer to an offer of ours (`codec_prefs_incoming_answer`).
    pub incoming_answer: CodecPrefs,
    /// An answer of ours (`codec_prefs_outgoing_answer`).
    pub outgoing_answer: CodecPrefs,
    /// Answers have one format (`preferred_codec_only`).
    pub single_answer: bool,
}

impl Default for Codecs {
    fn default() -> Self {
        let usual = CodecPrefs::new(Operation::Intersect);
        Self {
            incoming_offer: usual,
            outgoing_offer: CodecPrefs::new(Operation::Union),
            incoming_answer: usual,
            outgoing_answer: usual,
            single_answer: false,
        }
    }
}

impl Codecs {
    /// The formats of our offer on behalf of a caller who uses `pending`, and whose own settings are these.
    pub(crate) fn offered(
        &self,
        pending: FormatSet,
        configured: FormatSet,
        caller: Option<&Self>,
    ) -> FormatSet {
        let may_transcode = caller.is_none_or(|caller| caller.incoming_offer.transcode);
        self.outgoing_offer.offer(pending, configured, may_transcode)
    }
    /// Whether our answers have the order of `allow=`.
    pub(crate) fn answers_in_own_order(&self) -> bool {
        self.incoming_offer.is_own_order() || self.outgoing_answer.is_own_order()
    }
    /// Whether our answers have one format.
    pub(crate) fn answers_one(&self) -> bool {
        self.single_answer || self.incoming_offer.first_only || self.outgoing_answer.first_only
    }
    /// Whether the answer that came is read in the order of `allow=`.
    pub(crate) fn reads_in_own_order(&self) -> bool {
        self.incoming_answer.is_own_order()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::FormatId as F;

    #[test]
    fn what_is_offered_is_what_both_lists_and_the_settings_make_of_it() {
        let set = |formats: &[F]| -> FormatSet { formats.iter().copied().collect() };
        let allow = set(&[F::G722, F::ULAW, F::GSM]);
        let caller = set(&[F::ALAW, F::GSM, F::ULAW]);
        let usual = CodecPrefs::new(Operation::Union);
        let configured = CodecPrefs { configured: true, ..usual };
        let with = |operation, prefs: CodecPrefs| CodecPrefs { operation, ..prefs };
        for (name, prefs, expected) in [
            ("as usual", usual, &[F::GSM, F::ULAW, F::G722][..]),
            ("own order", configured, &[F::G722, F::ULAW, F::GSM]),
            ("shared", with(Operation::Intersect, usual), &[F::GSM, F::ULAW]),
            ("shared, own order", with(Operation::Intersect, configured), &[F::ULAW, F::GSM]),
            ("only pending", with(Operation::OnlyPreferred, usual), &[F::GSM, F::ULAW]),
            ("not pending", with(Operation::OnlyNonpreferred, usual), &[F::G722, F::ULAW, F::GSM]),
            ("only configured", with(Operation::OnlyPreferred, configured), &[F::G722, F::ULAW, F::GSM]),
            ("not configured", with(Operation::OnlyNonpreferred, configured), &[F::GSM, F::ULAW]),
            ("one", CodecPrefs { first_only: true, ..usual }, &[F::GSM]),
            ("never transcode", CodecPrefs { transcode: false, ..configured }, &[F::ULAW, F::GSM]),
        ] {
            assert_eq!(prefs.offer(caller, allow, true), set(expected), "{name}");
            let lone = prefs.offer(FormatSet::EMPTY, allow, true);
            assert_eq!(lone.first(), Some(F::G722), "{name}: without a caller");
            assert_eq!(prefs.offer(set(&[F::ALAW]), allow, false).first(), None, "{name}: nothing shared");
        }
        let wary = Codecs {
            incoming_offer: CodecPrefs { transcode: false, ..CodecPrefs::new(Operation::Intersect) },
            ..Codecs::default()
        };
        let offered = Codecs::default().offered(caller, allow, Some(&wary));
        assert_eq!(offered, set(&[F::GSM, F::ULAW]), "the caller's endpoint is asked, too");
    }
}
