//! How what we send is spelled where the configuration has a choice: a whole message is given its form on its way out,
//! so that everything before that writes and reads one spelling.

use crate::header::HeaderName;

/// The spelling of all that leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Form {
    /// Names that have a short form are written in it (RFC 3261 §7.3.3).
    pub compact: bool,
    /// Requests do not ask for the answer at the port that they come from (RFC 3581 §3).
    pub no_rport: bool,
}

/// What our Via says between the host and the branch when it asks for that.
const RPORT: &[u8] = b";rport";

impl Form {
    /// A message of ours in this form; `None` when it has it already.
    pub fn of(self, message: &[u8]) -> Option<Vec<u8>> {
        if self == Self::default() {
            return None;
        }
        let (head, rest) = message.split_at_checked(memchr::memmem::find(message, b"\r\n\r\n")? + 2)?;
        let mut out = Vec::with_capacity(message.len());
        let mut lines = head.split_inclusive(|byte| *byte == b'\n');
        let first = lines.next()?;
        out.extend_from_slice(first);
        // The Vias of a response are their senders'.
        let mut via_is_ours = self.no_rport && !first.starts_with(b"SIP/2.0 ");
        for line in lines {
            // What goes on from the line before has a blank in its first place, as no name has.
            let colon = memchr::memchr(b':', line).unwrap_or(line.len());
            let (written, value) = line.split_at(colon);
            let name = HeaderName::from_bytes(written);
            match name.compact().filter(|_| self.compact) {
                Some(letter) => out.extend_from_slice(letter.as_bytes()),
                None => out.extend_from_slice(written),
            }
            let asks = (name == HeaderName::Via && std::mem::take(&mut via_is_ours))
                .then(|| memchr::memmem::find(value, b";rport;branch="))
                .flatten();
            let (before, after) = value.split_at(asks.unwrap_or(value.len()));
            out.extend_from_slice(before);
            out.extend_from_slice(after.strip_prefix(RPORT).unwrap_or(after));
        }
        out.extend_from_slice(rest);
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &str = "MESSAGE sip:bob@h SIP/2.0\r\n\
        Via: SIP/2.0/UDP 10.0.0.1;rport;branch=z9hG4bK1\r\n\
        Via: SIP/2.0/UDP p;rport;branch=z9hG4bK0\r\n\
        Max-Forwards: 70\r\nFrom: <sip:a@b>;tag=1\r\nTo: Bob\r\n <sip:b@b>\r\nCall-ID: c\r\n\
        CSeq: 1 MESSAGE\r\nContact: <sip:a@10.0.0.1>\r\nX-To: To: x\r\nSupported: timer\r\n\
        Content-Type: text/plain\r\nContent-Length: 9\r\n\r\nTo: you\r\n";

    fn form(compact: bool, no_rport: bool, message: &str) -> Option<String> {
        Form { compact, no_rport }.of(message.as_bytes()).map(|out| String::from_utf8(out).unwrap())
    }

    #[test]
    fn rfc3261_7_3_3_names_that_have_a_short_form_get_it_and_nothing_else_changes() {
        assert_eq!(
            form(true, false, REQUEST).unwrap(),
            "MESSAGE sip:bob@h SIP/2.0\r\n\
             v: SIP/2.0/UDP 10.0.0.1;rport;branch=z9hG4bK1\r\n\
             v: SIP/2.0/UDP p;rport;branch=z9hG4bK0\r\n\
             Max-Forwards: 70\r\nf: <sip:a@b>;tag=1\r\nt: Bob\r\n <sip:b@b>\r\ni: c\r\n\
             CSeq: 1 MESSAGE\r\nm: <sip:a@10.0.0.1>\r\nX-To: To: x\r\nk: timer\r\n\
             c: text/plain\r\nl: 9\r\n\r\nTo: you\r\n"
        );
        let compact = form(true, false, REQUEST).unwrap();
        assert_eq!(form(true, false, &compact).as_ref(), Some(&compact), "what is short stays so");
    }

    #[test]
    fn rfc3581_3_only_the_via_of_a_request_of_ours_ceases_to_ask_for_the_port() {
        let expected = REQUEST.replacen(";rport", "", 1);
        assert_eq!(form(false, true, REQUEST), Some(expected));
        let response = REQUEST.replace("MESSAGE sip:bob@h SIP/2.0", "SIP/2.0 200 OK");
        assert_eq!(form(false, true, &response).as_ref(), Some(&response));
        assert!(form(true, true, REQUEST).unwrap().contains("\nv: SIP/2.0/UDP 10.0.0.1;branch="));
    }

    #[test]
    fn bytes_that_are_no_message_and_the_usual_form_are_left_alone() {
        assert_eq!(form(false, false, REQUEST), None);
        assert_eq!(form(true, true, "\r\n\r\n").as_deref(), Some("\r\n\r\n"));
        assert_eq!(form(true, true, "\r\n"), None);
        assert_eq!(form(true, true, "x"), None);
    }
}
