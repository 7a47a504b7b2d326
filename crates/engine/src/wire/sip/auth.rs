//! Auths: what somebody has to prove, and by which algorithms of digests.

use std::rc::Rc;

use driver::sip::{Auth, Proof};
use sip::digest::{Algorithm, Hex};
use store::config::pjsip;

/// An auth under the settings of the stack.
pub(crate) fn sip_auth(stack: &pjsip::Pjsip, name: &str, from: &pjsip::Auth) -> (Rc<str>, Rc<Auth>) {
    let of = |list: &[pjsip::DigestAlgorithm]| list.iter().map(|a| algorithm(*a)).collect::<Vec<_>>();
    let mut auth = self::auth(from, &of(&stack.global.default_auth_algorithms_uas));
    if auth.answers.is_empty() {
        auth.answers = of(&stack.global.default_auth_algorithms_uac);
    }
    (name.into(), Rc::new(auth))
}

/// `defaults` are the algorithms of challenges when the auth names none: those that its secret can prove count. Phones of
/// twenty years know MD5 alone and some take the first challenge for the only one, so that it is the default.
fn auth(from: &pjsip::Auth, defaults: &[Algorithm]) -> Auth {
    let (password, md5) = (from.password.expose(), from.md5_cred.expose());
    let md5 = Hex::parse(md5.as_bytes()).filter(|_| !md5.is_empty()).map(|ha1| (Algorithm::Md5, ha1));
    let stored = from.password_digest.iter().filter_map(|digest| {
        Some((algorithm(digest.algorithm), Hex::parse(digest.hash.expose().as_bytes())?))
    });
    let mut hashes: Vec<(Algorithm, Hex)> = Vec::new();
    for (algorithm, ha1) in md5.into_iter().chain(stored) {
        // The first line of an algorithm holds.
        if !hashes.iter().any(|(known, _)| *known == algorithm) {
            hashes.push((algorithm, ha1));
        }
    }
    let all = vec![Algorithm::Sha512_256, Algorithm::Sha256, Algorithm::Md5];
    let (proof, provable) = if password.is_empty() && !hashes.is_empty() {
        let has = |wish: &Algorithm| hashes.iter().any(|(algorithm, _)| algorithm == wish);
        let provable: Vec<Algorithm> = all.into_iter().filter(has).collect();
        (Proof::Hashes(hashes), provable)
    } else {
        (Proof::Password(password.to_owned()), all)
    };
    let wanted: Vec<Algorithm> = from.supported_algorithms_uas.iter().map(|a| self::algorithm(*a)).collect();
    let wanted = if wanted.is_empty() { defaults } else { &wanted };
    let algorithms: Vec<Algorithm> = wanted.iter().copied().filter(|wish| provable.contains(wish)).collect();
    let algorithms = if algorithms.is_empty() { provable } else { algorithms };
    let answers: Vec<Algorithm> = from.supported_algorithms_uac.iter().map(|a| self::algorithm(*a)).collect();
    Auth { username: from.username.clone(), realm: from.realm.clone(), proof, algorithms, answers }
}

pub(super) fn algorithm(of: pjsip::DigestAlgorithm) -> Algorithm {
    match of {
        pjsip::DigestAlgorithm::Md5 => Algorithm::Md5,
        pjsip::DigestAlgorithm::Sha256 => Algorithm::Sha256,
        pjsip::DigestAlgorithm::Sha512_256 => Algorithm::Sha512_256,
    }
}
