//! MD5 and SHA1, for dialplans that compare with what other systems computed; nothing here protects anything.

use std::fmt::Write as _;

use md5::Digest as _;

use super::{Answer, reader};
use crate::env::Env;
use crate::registry::FunctionRow;
use crate::rights::Reach;

pub(super) const ROWS: &[FunctionRow] = &[
    reader("MD5", Reach::PLAIN, "MD5(data)", "The MD5 digest of its argument, in hex.", md5),
    reader("SHA1", Reach::PLAIN, "SHA1(data)", "The SHA-1 digest of its argument, in hex.", sha1),
];

fn hex(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        let _ = write!(out, "{byte:02x}");
    }
}

fn md5(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    hex(&md5::Md5::digest(args.as_bytes()), out);
    Ok(())
}

fn sha1(_: &mut dyn Env, args: &str, out: &mut String) -> Answer {
    hex(&sha1::Sha1::digest(args.as_bytes()), out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testenv::TestEnv;

    #[test]
    fn rfc1321_a_5_and_rfc3174_7_3_test_values() {
        let mut env = TestEnv::new();
        assert_eq!(env.expand("${MD5(abc)}"), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(env.expand("${SHA1(abc)}"), "a9993e364706816aba3e25717850c26c9cd0d89d");
    }
}
