//! The applications and functions that dialplans use most are there, but for those of subsystems that are not.
//!
//! Counted were public dialplans, samples and what configuration tools write; a name is here when it belongs to the
//! fewest that make 99 of 100 uses.

/// Applications that make 95 % of uses, by use.
const APPLICATIONS_95: &str = "
    set hangup noop goto playback gotoif verbose answer dial wait return gosub macro execif userevent saydigits agi
    voicemail echo background senddtmf voicemailmain playtones stasis read gosubif queue confbridge sayunixtime setvar
    waitexten busy progress congestion";
/// What 99 % need besides.
const APPLICATIONS_99: &str = "
    minivmgreet minivmrecord minivmnotify minivmdelete macroexit backgrounddetect removequeuemember system mixmonitor
    ringing addqueuemember meetme page directory sipaddheader chanisavail sayphonetic saynumber dbget while endwhile
    waituntil stackpop authenticate minivmappmess nocdr if endif musiconhold log chanspy stopmixmonitor originate amd record
    gotoiftime celgenuserevent controlplayback messagesend sayalpha meetmeadmin";
/// Functions that make 95 % of uses, by use.
const FUNCTIONS_95: &str = "
    CALLERID CHANNEL GLOBAL DB HASH IF LEN LOCAL MINIVMACCOUNT CUT CDR TIMEOUT MINIVMCOUNTER FAXOPT FILTER DB_EXISTS
    DEVICE_STATE CONNECTEDLINE ISNULL REGEX PJSIP_HEADER HANGUPCAUSE CONFBRIDGE EXISTS CDR_PROP DIALPLAN_EXISTS ARRAY
    MESSAGE STRFTIME PJSIP_INHERITABLE_HEADER REDIRECTING HANGUPCAUSE_KEYS SHARED MATH FIELDQTY SET ENUMLOOKUP INC
    TOLOWER PJSIP_DIAL_CONTACTS SHELL IAXVAR PRESENCE_STATE EVAL_EXTEN GROUP_COUNT EXTENSION_STATE STAT SRVRESULT
    GEOLOC_PROFILE CONFBRIDGE_INFO STRREPLACE DB_DELETE PJSIP_HEADER_PARAM STIR_SHAKEN";
/// What 99 % need besides.
const FUNCTIONS_99: &str = "
    RAND PUSH UNSHIFT GROUP CURL BASE64_ENCODE SHIFT QUEUE_MEMBER IFMODULE MASTER_CHANNEL PJSIP_MEDIA_OFFER REPLACE
    TOUPPER SIP_HEADER URIENCODE AST_CONFIG CURLOPT PJSIP_SEND_SESSION_REFRESH MESSAGE_DATA DB_KEYS TALK_DETECT
    JITTERBUFFER EVAL TONE_DETECT AUDIOHOOK_INHERIT FILE GLOBAL_EXISTS VARIABLE_EXISTS VMCOUNT HASHKEYS IMPORT PJSIP_AOR
    PJSIP_CONTACT PJSIP_ENDPOINT POP";

/// Subsystems that are not there, and what of the above needs them.
const LATER: &[(&str, &str)] =
    &[("a name that no application ever had", "minivmappmess"), ("gone since Asterisk 21", "nocdr")];

#[test]
fn what_dialplans_use_most_is_there_unless_its_subsystem_is_not() {
    let functions = apps::table::tables().functions;
    let application = |name: &str| apps::table::lookup(name).is_some();
    let function = |name: &str| functions.lookup(name).is_some();
    let (mut wrong, mut named) = (Vec::new(), Vec::new());
    for (set, is_there) in [
        (APPLICATIONS_95, &application as &dyn Fn(&str) -> bool),
        (APPLICATIONS_99, &application),
        (FUNCTIONS_95, &function),
        (FUNCTIONS_99, &function),
    ] {
        for name in set.split_whitespace() {
            named.push(name);
            let later = LATER.iter().find(|(_, names)| names.split_whitespace().any(|later| later == name));
            match (is_there(name), later) {
                (true, None) | (false, Some(_)) => {}
                (false, None) => wrong.push(format!("{name} is not there, and needs nothing that is not")),
                (true, Some((what, _))) => wrong.push(format!("{name} is there: take it from '{what}'")),
            }
        }
    }
    let later = LATER.iter().flat_map(|(_, names)| names.split_whitespace());
    wrong.extend(later.filter(|name| !named.contains(name)).map(|name| format!("{name} is in no set")));
    assert_eq!(wrong, [""; 0]);
}
