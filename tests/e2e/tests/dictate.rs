//! The dictating machine, with a caller who speaks, hears himself, and erases it.

use e2e::{Phone, Server, Site, Speak, wait};

#[test]
fn what_is_dictated_in_two_parts_is_heard_and_erased() {
    let site = Site::new("dictate").phone_with("alice", "allow=ulaw\n");
    let folder = site.place.join("memos");
    let file = folder.join("letter.raw");
    let dialplan =
        format!("[test]\nexten => d,1,Answer()\n same => n,Dictate({},letter)\n", folder.display());
    let mut server = Server::start(site.dialplan(&dialplan));
    let length = || std::fs::metadata(&file).map_or(0, |facts| facts.len());
    let mut alice = Phone::new(server.site.sip, "alice");
    alice.must_call("d");
    alice.media.speak(Speak::Tone(700.0));
    alice.media.type_digits("1*");
    wait::until_true("the first second", || length() >= 16_000);
    // It rests, and goes on behind what is there.
    let first = length();
    alice.media.type_digits("**");
    wait::until_true("another second and a half", || length() >= first + 24_000);
    let heard = alice.media.heard().tone(700.0);
    alice.media.type_digits("*1*");
    wait::until_true("the caller's own tone", || alice.media.heard().tone(700.0) >= heard + 1500);
    alice.media.type_digits("18");
    wait::until_true("nothing", || !file.exists());
    alice.hang_up();
    server.until_idle();
    server.assert_healthy();
}
