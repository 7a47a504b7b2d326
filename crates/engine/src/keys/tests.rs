use super::*;

/// Made by openssl genrsa -traditional 1024, as the field's astgenkey makes them.
const KEY: &str = "-----BEGIN RSA PRIVATE KEY-----
MIICXAIBAAKBgQDEB348ONVjIrSnm6q+Lo4AXnuW84ASqGPKEWPQ5Hul3a+gmdJD
jjOswQ7kPsRJCxil2onk+xYpzymEh1BjCC2rRun2cRk1SQbv1XAhB7CiW9rt2me+
//F9oXEdCiIHm4qKR6u6BCxEte8TpcDMhcKgtSqqQgo2kvTXRGA1q7vlyQIDAQAB
AoGALOcaf2j1WDQG9a2uusmnNWZvIPC+EYgI86xwFNWBjUjuhfc2NstIAvZmFtpZ
0/F6v+MDWzQ4q3MMq5LjUwv4ibCfaK3bbxx5yaufEDkBy8ZeS8VEQ9xOfYr8iXEZ
Hz76g1ow3BdP3A9XhLdveybiJCrxL90QbYDAq9yUp08lWJECQQDhN+0s1pu1swpU
XcTHOF/IuTSheIQD8cZeDVR6qTi/EiEQlMFY2DEj6+uaDJRkkN7OtWWSmvzNs5wX
Y6ECIlsTAkEA3tJHP/X7MES3gVUBmMUfK3t0RHYz8uL3j+NmpfAsYNcMtSRex6Ml
HU8B3WJ1ALQPB5YHzTz6UCpwFkNjAexbMwJAeU4pNiRle+lyX9ydl3w6wx9WRL5n
xMQdxxzA6sxonymBm6+zsEnJtgJlRPUPnFcXWxkDG4LVNWpPYZ2s5Dxi9wJBAI0K
9ebawaGQHchUEqqtPEm9357mY4O/f40pGHS5Tp4OAhE3cHdWIcwnkrqb9Av57fmT
UmTr0FamRkURar5w6lkCQA5XxC8XTNSCayjjGpoHAvrsoyg07j/sqwTe69ToevA+
RrLW2BcO9VLJYRTCZUJ1mAqx76/sIGli/IyiOxFpbaI=
-----END RSA PRIVATE KEY-----
";
/// The same, its public half.
const PUB: &str = "-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDEB348ONVjIrSnm6q+Lo4AXnuW
84ASqGPKEWPQ5Hul3a+gmdJDjjOswQ7kPsRJCxil2onk+xYpzymEh1BjCC2rRun2
cRk1SQbv1XAhB7CiW9rt2me+//F9oXEdCiIHm4qKR6u6BCxEte8TpcDMhcKgtSqq
Qgo2kvTXRGA1q7vlyQIDAQAB
-----END PUBLIC KEY-----
";
/// What `printf 12345 | openssl dgst -sha1 -sign KEY | base64` says.
const SIGNED: &[u8] = b"b/MmtDSD75Mppw65Bk/ye7X1K2o19WwFA6LxfRFShbzigqf4IGi/T2b95DvSv9ghkihNfSIGzkt61VQ7t9yGpcPc2w14qKTAFDW990rgUA3diEADpu8O7x1ub1HbirjXRMF6DW9XM9DYSZ7eiad697FXQ/GNZZGfEXikM4tcSsY=";
/// 2048 bits: its signature does not fit.
const LONG_PUB: &str = "-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAzzRbiJ76mt03mihYb1Wt
vTV7NBZ66RtBLUZaEmAj6wpDFF2ph3FkAjYUnozTYldygP1uo43uRYsFFC6yxZ5h
IP9TxH0G3AkL9D49ysFvYrA6uQARzBJR6bESPL4ojn1UO9KBIcsy8EnTXaT5xwap
WSY+PMqHyFB0vyim4bAz0Z3NXfb+pO4UKWB68Q3CCjDbVVk/uPGbv12/Ei1HiFru
MJlNvZjUt3HkvUdTbyboKVUIBcMBoZ2MCHmzYUak4TdE2Dof7NZi44VK4u9NNmY2
H0MSiOobQQRGp2/ecwd4ThzQ9TFW2V+1lsSmDvp5br01vMVtns893RhyspIgHsPz
owIDAQAB
-----END PUBLIC KEY-----
";

/// A folder of keys with these files.
fn folder(name: &str, files: &[(&str, &str)]) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("strowger-keys-{}-{name}", std::process::id()));
    fs::create_dir_all(folder.join(FOLDER)).unwrap();
    for (name, text) in files {
        fs::write(folder.join(FOLDER).join(name), text).unwrap();
    }
    folder
}

#[test]
fn rfc5456_8_6_16_signatures_are_those_of_openssl_and_are_checked_by_the_key_of_that_name_only() {
    let place = folder("sign", &[("us.key", KEY), ("us.pub", PUB), ("other.pub", "nonsense")]);
    let keys = load(&place);
    fs::remove_dir_all(&place).ok();
    let set = keys.set.unwrap();
    let sign = |key: &str| set.work(&KeyWork::Sign { key: key.to_owned(), challenge: b"12345".to_vec() });
    let check = |keys: &str, challenge: &[u8], signature: &[u8]| {
        let keys = keys.split(' ').map(str::to_owned).collect();
        let (challenge, signature) = (challenge.to_vec(), signature.to_vec());
        set.work(&KeyWork::Check { keys, challenge, signature }) == KeyAnswer::Checked(true)
    };
    assert_eq!(sign("us"), KeyAnswer::Signed(Some(SIGNED.to_vec())));
    assert_eq!(sign("them"), KeyAnswer::Signed(None));
    for (name, key, challenge, signature, right) in [
        ("right", "us", &b"12345"[..], SIGNED, true),
        ("the second of several", "them us other", b"12345", SIGNED, true),
        ("another challenge", "us", b"12346", SIGNED, false),
        ("no key of this name", "them", b"12345", SIGNED, false),
        ("a file that is no key", "other", b"12345", SIGNED, false),
        ("cut off", "us", b"12345", SIGNED.get(..SIGNED.len() - 4).unwrap(), false),
        ("no base 64", "us", b"12345", b"***", false),
        ("nothing", "us", b"12345", b"", false),
    ] {
        assert_eq!(check(key, challenge, signature), right, "{name}");
    }
}

#[test]
fn every_file_is_listed_with_what_is_wrong_with_it() {
    let locked = KEY.replace("KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\n");
    let files = [
        ("a.key", KEY),
        ("a.pub", PUB),
        ("b.key", &locked),
        ("c.pub", LONG_PUB),
        ("d.pub", "nonsense"),
        ("README", "no key"),
    ];
    let place = folder("rows", &files);
    let rows = load(&place).rows;
    fs::remove_dir_all(&place).ok();
    let told: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.kind, row.status)).collect();
    assert_eq!(
        told,
        [
            ("a", KeyKind::Public, "[Loaded]"),
            ("a", KeyKind::Private, "[Loaded]"),
            ("b", KeyKind::Private, LOCKED),
            ("c", KeyKind::Public, LONG),
            ("d", KeyKind::Public, UNREADABLE),
        ]
    );
    assert!(load(Path::new("/nowhere")).rows.is_empty());
}
