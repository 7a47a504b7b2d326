//! Letters (RFC 5322, MIME) as the mail program takes them.

use call::voicemail::Letter;
use mail_builder::MessageBuilder;
use mail_builder::headers::address::Address;
use mail_builder::headers::raw::Raw;

/// A value that is one line, whatever a caller calls himself.
fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// What kind of file an extension is.
fn media_type(extension: &str) -> &'static str {
    match extension {
        "wav" | "WAV" | "wav16" => "audio/x-wav",
        "gsm" => "audio/x-gsm",
        "opus" | "ogg" => "audio/ogg",
        "ulaw" => "audio/basic",
        _ => "application/octet-stream",
    }
}

/// The whole letter; `attached` is the name and the content of its file.
pub(super) fn compose(letter: &Letter, attached: Option<(String, Vec<u8>)>) -> std::io::Result<Vec<u8>> {
    let address = |name: &str, address: &str| -> Address<'static> {
        let name = line(name);
        let name = (!name.is_empty()).then_some(name);
        Address::new_address(name, line(address))
    };
    let to: Vec<Address<'_>> = letter.to.iter().map(|to| address(&letter.to_name, to)).collect();
    // What has no host is completed by the mail program.
    let host = letter.from.rsplit_once('@').map_or("localhost", |(_, host)| host);
    let mut message = MessageBuilder::new()
        .from(address(&letter.from_name, &letter.from))
        .to(Address::new_list(to))
        .subject(line(&letter.subject))
        .date(letter.date)
        .message_id(format!("{}@{}", line(&letter.id), line(host)))
        .text_body(letter.body.clone());
    for (name, value) in &letter.headers {
        message = message.header(name.clone(), Raw::new(line(value)));
    }
    if let Some((name, bytes)) = attached {
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        let kind = media_type(extension);
        message = message.attachment(kind, line(&name), bytes);
    }
    message.write_to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_has_its_headers_text_and_file_and_a_caller_adds_none() {
        let letter = Letter {
            louder: base::Gain::UNITY,
            from_name: "PBX\r\nBcc: everybody@example.com".into(),
            from: "pbx@example.com".into(),
            to_name: "Alice".into(),
            to: vec!["alice@example.com".into()],
            subject: "New message from Bob\r\nBcc: everybody@example.com".into(),
            body: "Grüße\nBob\n".into(),
            id: "strowger-1".into(),
            date: 1_795_262_400,
            headers: vec![("X-Asterisk-CallerID".into(), "6002\r\nX: y".into())],
            attach: None,
            file: None,
            file_format: String::new(),
        };
        let bytes = compose(&letter, Some(("msg0000.wav".into(), vec![0, 1, 254, 255]))).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        for part in [
            "alice@example.com",
            "Message-ID: <strowger-1@example.com>",
            "X-Asterisk-CallerID: 6002  X: y",
            "audio/x-wav",
            "msg0000.wav",
            "AAH+/w==",
            "R3LDvMOfZQpCb2IK",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.lines().any(|line| line.starts_with("Bcc") || line.starts_with("X: ")), "{text}");
    }
}
