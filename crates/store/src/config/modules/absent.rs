//! Modules of Asterisk whose work is not done here, and what a site that needs them misses.

/// What becomes of a module that is asked for and has no part here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Absence {
    /// Nobody misses it; the text says why.
    Harmless(&'static str),
    /// What is missing without it.
    Missing(&'static str),
}

use Absence::{Harmless, Missing};

const CARDS: &str = "there are no telephony cards";
const SOUND_CARDS: &str = "there is no telephone on the sound card";
const CALENDARS: &str = "calendars are not read";
const MAIL: &str = "messages are kept in files";
const OLD: &str = "Asterisk has no such module any more";
const RADIO: &str = "there are no radio links";

/// Modules by their names without `.so`.
#[rustfmt::skip]
const ABSENT: &[(&str, Absence)] = &[
    ("app_adsiprog", Missing("ADSI phones are not programmed")),
    ("app_alarmreceiver", Missing("AlarmReceiver() does not exist")),
    ("app_audiosocket", Missing("AudioSocket() does not exist")),
    ("app_broadcast", Missing("Broadcast() does not exist")),
    ("app_dahdibarge", Missing(CARDS)),
    ("app_dahdiras", Missing(CARDS)),
    ("app_dahdiscan", Missing(CARDS)),
    ("app_dtmfstore", Missing("StoreDTMF() does not exist")),
    ("app_fax", Missing("SendFAX() and ReceiveFAX() do not exist; T.38 passes from endpoint to endpoint")),
    ("app_getcpeid", Missing("ADSI phones are not asked")),
    ("app_ices", Missing("ICES() does not exist")),
    ("app_ivrdemo", Harmless("it is an example")),
    ("app_jack", Missing("JACK() does not exist")),
    ("app_nbscat", Missing("NBScat() does not exist")),
    ("app_osplookup", Missing("OSPLookup() does not exist")),
    ("app_readfile", Missing("ReadFile() does not exist; FILE() reads files")),
    ("app_reload", Missing("Reload() does not exist; System(strowger -rx ...) reloads")),
    ("app_rpt", Missing(RADIO)),
    ("app_saycountpl", Missing("SayCountPL() does not exist")),
    ("app_skel", Harmless("it is an example")),
    ("app_sms", Missing("SMS() does not exist")),
    ("app_speech_utils", Missing("speech is not recognised")),
    ("app_stream_echo", Missing("StreamEcho() does not exist; Echo() does")),
    ("app_test", Missing("TestClient() and TestServer() do not exist")),
    ("app_mysql", Missing("MYSQL() does not exist; func_odbc.conf makes functions of statements")),
    ("app_addon_sql_mysql", Missing("MYSQL() does not exist; func_odbc.conf makes functions of statements")),
    ("app_voicemail_imap", Missing(MAIL)),
    ("app_voicemail_odbc", Missing(MAIL)),
    ("cdr_addon_mysql", Harmless("cdr_mysql is its name")),
    ("cdr_beanstalkd", Missing("records go to no queue of Beanstalk")),
    ("cdr_radius", Missing("records go to no RADIUS server")),
    ("cdr_sqlite", Missing("SQLite 2 is not written; cdr_sqlite3_custom.conf writes SQLite 3")),
    ("cdr_syslog", Missing("records do not go to syslog")),
    ("cdr_tds", Missing("records go to no database by TDS; cdr_adaptive_odbc.conf reaches the same by ODBC")),
    ("cel_beanstalkd", Missing("events go to no queue of Beanstalk")),
    ("cel_radius", Missing("events go to no RADIUS server")),
    ("cel_tds", Missing("events go to no database by TDS; cel_odbc.conf reaches the same by ODBC")),
    ("chan_alsa", Missing(SOUND_CARDS)),
    ("chan_audiosocket", Missing("there are no AudioSocket/ channels")),
    ("chan_capi", Missing(CARDS)),
    ("chan_console", Missing(SOUND_CARDS)),
    ("chan_dahdi", Missing(CARDS)),
    ("chan_dongle", Missing("there are no mobile modems")),
    ("chan_echolink", Missing(RADIO)),
    ("chan_gtalk", Missing("there are no Gtalk/ channels")),
    ("chan_h323", Missing("H.323 is not spoken")),
    ("chan_jingle", Missing("there are no Jingle/ channels")),
    ("chan_khomp", Missing(CARDS)),
    ("chan_mgcp", Missing("MGCP is not spoken")),
    ("chan_misdn", Missing(CARDS)),
    ("chan_mobile", Missing("there are no mobile phones by Bluetooth")),
    ("chan_motif", Missing("there are no Motif/ channels")),
    ("chan_multicast_rtp", Missing("there are no MulticastRTP/ channels")),
    ("chan_nbs", Missing("there are no NBS/ channels")),
    ("chan_ooh323", Missing("H.323 is not spoken")),
    ("chan_oss", Missing(SOUND_CARDS)),
    ("chan_phone", Missing(CARDS)),
    ("chan_quectel", Missing("there are no mobile modems")),
    ("chan_rtp", Missing("there are no UnicastRTP/ and MulticastRTP/ channels")),
    ("chan_sccp", Missing("SCCP is not spoken")),
    ("chan_simpleusb", Missing(RADIO)),
    ("chan_skinny", Missing("SCCP is not spoken")),
    ("chan_unistim", Missing("Unistim is not spoken")),
    ("chan_usbradio", Missing(RADIO)),
    ("chan_usrp", Missing(RADIO)),
    ("chan_voter", Missing(RADIO)),
    ("chan_vpb", Missing(CARDS)),
    ("chan_websocket", Missing("there are no WebSocket/ channels")),
    ("chan_zap", Missing(CARDS)),
    ("codec_dahdi", Missing("there are no cards that code; codecs run on the processor")),
    ("codec_silk", Missing("SILK is not coded")),
    ("codec_siren7", Missing("Siren 7 is not coded")),
    ("codec_siren14", Missing("Siren 14 is not coded")),
    ("format_jpeg", Missing("pictures are not read")),
    ("format_siren7", Missing("files of Siren 7 are not played")),
    ("format_siren14", Missing("files of Siren 14 are not played")),
    ("format_vox", Missing("files of .vox are not played")),
    ("pbx_ael", Missing("extensions.ael is not compiled; its contexts do not exist")),
    ("pbx_dundi", Missing("DUNDi is not spoken")),
    ("pbx_gtkconsole", Harmless(OLD)),
    ("pbx_kdeconsole", Harmless(OLD)),
    ("pbx_lua", Missing("extensions.lua is not run; its contexts do not exist")),
    ("res_adsi", Missing("there are no ADSI phones")),
    ("res_aeap", Missing("no external application speaks AEAP")),
    ("res_ael_share", Missing("extensions.ael is not compiled")),
    ("res_audiosocket", Missing("AudioSocket is not spoken")),
    ("res_calendar", Missing(CALENDARS)),
    ("res_calendar_caldav", Missing(CALENDARS)),
    ("res_calendar_ews", Missing(CALENDARS)),
    ("res_calendar_exchange", Missing(CALENDARS)),
    ("res_calendar_icalendar", Missing(CALENDARS)),
    ("res_chan_stats", Missing("statistics of channels are those that statsd.conf sends")),
    ("res_config_curl", Missing("no web server has configuration")),
    ("res_config_ldap", Missing("no directory has configuration")),
    ("res_config_sqlite", Missing("SQLite 2 is not read; res_config_sqlite3.conf reads SQLite 3")),
    ("res_corosync", Missing("states are not shared by Corosync; publications of pjsip.conf share them")),
    ("res_digium_phone", Missing("phones of Digium are not provisioned")),
    ("res_endpoint_stats", Missing("statistics of endpoints are not sent")),
    ("res_fax", Missing("SendFAX() and ReceiveFAX() do not exist; T.38 passes from endpoint to endpoint")),
    ("res_fax_digium", Missing("fax is not built in")),
    ("res_fax_spandsp", Missing("fax is not built in; T.38 passes from endpoint to endpoint")),
    ("res_geolocation", Missing("locations are neither read nor sent")),
    ("res_http_media_cache", Missing("sounds are not fetched from web servers")),
    ("res_http_post", Missing("files are not taken by HTTP")),
    ("res_jabber", Missing("XMPP is not spoken")),
    ("res_limit", Harmless("the system's limits are those of the service that starts it")),
    ("res_phoneprov", Missing("phones are not provisioned")),
    ("res_pjsip_geolocation", Missing("locations are neither read nor sent")),
    ("res_pjsip_phoneprov_provider", Missing("phones are not provisioned")),
    ("res_pktccops", Missing("PacketCable is not spoken")),
    ("res_remb_modifier", Missing("REMB reports are passed on as they come")),
    ("res_rtp_multicast", Missing("there are no MulticastRTP/ channels")),
    ("res_smdi", Missing("no message desk is told")),
    ("res_snmp", Missing("SNMP is not spoken; prometheus.conf serves figures")),
    ("res_speech", Missing("speech is not recognised")),
    ("res_speech_aeap", Missing("speech is not recognised")),
    ("res_stun_monitor", Missing("no STUN server is asked")),
    ("res_websocket_client", Missing("WebSockets are taken, and none is opened")),
    ("res_xmpp", Missing("XMPP is not spoken")),
    ("res_pjproject", Harmless("the SIP stack is built in; pjproject.conf is not needed")),
    ("res_pjsip_phone_state", Harmless(OLD)),
    ("res_sdp_translator_pjmedia", Harmless(OLD)),
    ("res_stasis_test", Harmless("it is for tests of Asterisk")),
    ("res_timing_kqueue", Harmless("media is timed by its own clock")),
    ("cdr_sqlite3", Harmless("cdr_sqlite3_custom is its name")),
];

/// What becomes of a module; `None` when nobody knows it.
pub(super) fn find(module: &str) -> Option<Absence> {
    ABSENT.iter().find(|(name, _)| *name == module).map(|&(_, absence)| absence)
}

/// Names, for the test that no module is in two tables.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    ABSENT.iter().map(|(name, _)| *name)
}
