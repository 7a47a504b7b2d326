//! `modules.conf`: nothing is loaded here, but what a site turned off stays off.
//!
//! A module of Asterisk stands for what it provides: an application, functions, a channel technology, a sink.

mod absent;

use super::{Row, Status};
use conf::{File, Findings, boolean};
use std::collections::BTreeSet;

/// What a module provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// Dialplan application.
    Application(&'static str),
    /// Dialplan function.
    Function(&'static str),
    /// Channel technology, as in `PJSIP/alice`.
    Technology(&'static str),
    /// RTP.
    Rtp,
    /// Music on hold.
    MusicOnHold,
    /// Call detail records in CSV.
    CdrCsv,
    /// Dialplan from extensions.conf.
    Extensions,
    /// Reading and writing a file format, by its extension.
    FileFormat(&'static str),
    /// A codec, by its name in `allow=`.
    Codec(&'static str),
    /// Tones from indications.conf.
    Indications,
}

use Capability::{Application as A, Codec, Function as F, Technology};
use absent::Absence;

/// Modules whose capability Strowger has, without `.so`.
#[rustfmt::skip]
const MODULES: &[(&str, &[Capability])] = &[
    ("app_agent_pool", &[A("AgentLogin"), A("AgentRequest"), F("AGENT")]),
    ("app_amd", &[A("AMD")]),
    ("app_authenticate", &[A("Authenticate")]),
    ("app_cdr", &[A("ResetCDR")]),
    ("app_forkcdr", &[A("ForkCDR")]),
    ("app_celgenuserevent", &[A("CELGenUserEvent")]),
    ("app_chanisavail", &[A("ChanIsAvail")]),
    ("app_confbridge", &[A("ConfBridge"), A("ConfKick"), F("CONFBRIDGE"), F("CONFBRIDGE_INFO"), F("CONFBRIDGE_CHANNELS")]),
    ("app_controlplayback", &[A("ControlPlayback")]),
    ("app_dial", &[A("Dial"), A("RetryDial")]),
    ("app_dumpchan", &[A("DumpChan")]),
    ("app_echo", &[A("Echo")]),
    ("app_exec", &[A("Exec"), A("TryExec"), A("ExecIf")]),
    ("app_if", &[A("If"), A("ElseIf"), A("Else"), A("EndIf"), A("ExitIf")]),
    ("app_macro", &[A("Macro"), A("MacroExit"), A("MacroExclusive"), A("MacroIf")]),
    ("app_meetme", &[A("MeetMe"), A("MeetMeCount"), A("MeetMeAdmin"), A("MeetMeChannelAdmin"), F("MEETME_INFO")]),
    ("app_dictate", &[A("Dictate")]),
    ("app_externalivr", &[A("ExternalIVR")]),
    ("app_milliwatt", &[A("Milliwatt")]),
    ("app_originate", &[A("Originate")]),
    ("app_playback", &[A("Playback")]),
    ("app_playtones", &[A("PlayTones"), A("StopPlayTones")]),
    ("app_queue", &[A("Queue"), A("AddQueueMember"), A("RemoveQueueMember"), A("PauseQueueMember"), A("UnpauseQueueMember"),
        A("QueueLog"), A("QueueUpdate"), A("QueueCallback"), F("QUEUE_EXISTS"), F("QUEUE_GET_CHANNEL"), F("QUEUE_MEMBER"), F("QUEUE_MEMBER_COUNT"),
        F("QUEUE_MEMBER_LIST"), F("QUEUE_MEMBER_PENALTY"), F("QUEUE_VARIABLES"), F("QUEUE_WAITING_COUNT")]),
    ("app_read", &[A("Read")]),
    ("app_record", &[A("Record")]),
    ("app_random", &[A("Random")]),
    ("app_saycounted", &[A("SayCountedNoun"), A("SayCountedAdj")]),
    ("app_setcallerid", &[A("SetCallerPres")]),
    ("app_stasis", &[A("Stasis")]),
    ("app_stasis_broadcast", &[A("StasisBroadcast")]),
    ("app_sayunixtime", &[A("SayUnixTime"), A("DateTime")]),
    ("app_mf", &[A("ReceiveMF"), A("SendMF")]),
    ("app_senddtmf", &[A("SendDTMF")]),
    ("app_sf", &[A("ReceiveSF"), A("SendSF")]),
    ("app_sendtext", &[A("ReceiveText"), A("SendText")]),
    ("app_stack", &[A("Gosub"), A("GosubIf"), A("Return"), A("StackPop"), F("LOCAL"), F("LOCAL_PEEK"), F("STACK_PEEK")]),
    ("app_statsd", &[A("StatsD")]),
    ("app_system", &[A("System"), A("TrySystem")]),
    ("app_talkdetect", &[A("BackgroundDetect")]),
    ("app_transfer", &[A("Transfer")]),
    ("app_userevent", &[A("UserEvent")]),
    ("app_verbose", &[A("Verbose"), A("Log")]),
    ("app_espeak", &[A("Espeak")]),
    ("app_festival", &[A("Festival")]),
    ("app_minivm", &[A("MinivmRecord"), A("MinivmGreet"), A("MinivmNotify"), A("MinivmDelete"), A("MinivmAccMess"), A("MinivmMWI"), F("MINIVMACCOUNT"), F("MINIVMCOUNTER")]),
    ("app_voicemail", &[A("VoiceMail"), A("VoiceMailMain"), A("VoiceMailPlayMsg"), A("VMAuthenticate"), A("VMSayName"),
        A("VoicemailGreeting"), F("VM_INFO"), F("VMCOUNT"), F("MAILBOX_EXISTS")]),
    ("app_waitforsilence", &[A("WaitForSilence"), A("WaitForNoise")]),
    ("app_waituntil", &[A("WaitUntil")]),
    ("app_while", &[A("While"), A("EndWhile"), A("ExitWhile"), A("ContinueWhile")]),
    ("app_chanspy", &[A("ChanSpy"), A("ExtenSpy")]),
    ("app_page", &[A("Page")]),
    ("app_followme", &[A("FollowMe")]),
    ("app_directory", &[A("Directory")]),
    ("app_disa", &[A("DISA")]),
    ("app_readexten", &[A("ReadExten")]),
    ("app_privacy", &[A("PrivacyManager")]),
    ("app_signal", &[A("Signal"), A("WaitForSignal")]),
    ("app_waitforcond", &[A("WaitForCondition")]),
    ("app_morsecode", &[A("Morsecode")]),
    ("app_mp3", &[A("MP3Player")]),
    ("app_zapateller", &[A("Zapateller")]),
    ("app_url", &[A("SendURL")]),
    ("app_image", &[A("SendImage")]),
    ("app_flash", &[A("Flash")]),
    ("app_mixmonitor", &[A("MixMonitor"), A("StopMixMonitor")]),
    ("res_parking", &[A("Park"), A("ParkAndAnnounce"), A("ParkedCall")]),
    ("app_bridgewait", &[A("BridgeWait")]),
    ("app_bridgeaddchan", &[A("BridgeAdd")]),
    ("app_channelredirect", &[A("ChannelRedirect")]),
    ("app_softhangup", &[A("SoftHangup")]),
    ("app_blind_transfer", &[A("BlindTransfer")]),
    ("app_attended_transfer", &[A("AttendedTransfer")]),
    ("app_directed_pickup", &[A("Pickup"), A("PickupChan")]),
    ("app_db", &[A("DBdel"), A("DBdeltree"), A("DBget"), A("DBput")]),
    ("bridge_simple", &[]),
    ("bridge_native_rtp", &[]),
    ("bridge_softmix", &[]),
    ("bridge_builtin_features", &[]),
    ("bridge_builtin_interval_features", &[]),
    ("bridge_holding", &[]),
    ("cdr_csv", &[Capability::CdrCsv]),
    ("cdr_custom", &[]),
    ("cdr_manager", &[]),
    ("cdr_sqlite3_custom", &[]),
    ("cel_custom", &[]),
    ("cel_manager", &[]),
    ("cel_odbc", &[]),
    ("cel_pgsql", &[]),
    ("cel_sqlite3_custom", &[]),
    ("chan_bridge_media", &[]),
    ("chan_iax2", &[Technology("IAX2"), F("IAXPEER"), F("IAXVAR")]),
    ("chan_pjsip", &[A("PJSIPHangup"), Technology("PJSIP"), Technology("SIP"), F("PJSIP_DIAL_CONTACTS"), F("PJSIP_MEDIA_OFFER"), F("PJSIP_DTMF_MODE"),
        F("PJSIP_MOH_PASSTHROUGH"), F("PJSIP_TRANSFER_HANDLING"), F("PJSIP_SEND_SESSION_REFRESH")]),
    ("chan_sip", &[]),
    ("codec_alaw", &[Codec("alaw")]),
    ("codec_g722", &[Codec("g722")]),
    ("codec_gsm", &[Codec("gsm")]),
    ("codec_resample", &[]),
    ("codec_ulaw", &[Codec("ulaw")]),
    ("codec_a_mu", &[]),
    ("format_g722", &[Capability::FileFormat("g722")]),
    ("format_gsm", &[Capability::FileFormat("gsm")]),
    ("format_pcm", &[Capability::FileFormat("ulaw"), Capability::FileFormat("alaw")]),
    ("format_sln", &[Capability::FileFormat("sln")]),
    ("format_wav", &[Capability::FileFormat("wav")]),
    ("func_audiohookinherit", &[F("AUDIOHOOK_INHERIT")]),
    ("func_blacklist", &[F("BLACKLIST")]),
    ("func_evalexten", &[F("EVAL_EXTEN")]),
    ("func_frame_drop", &[F("FRAME_DROP")]),
    ("func_frame_trace", &[F("FRAME_TRACE")]),
    ("func_holdintercept", &[F("HOLD_INTERCEPT")]),
    ("func_module", &[F("IFMODULE")]),
    ("func_sayfiles", &[F("SAYFILES")]),
    ("func_scramble", &[F("SCRAMBLE")]),
    ("func_aes", &[F("AES_ENCRYPT"), F("AES_DECRYPT")]),
    ("func_base64", &[F("BASE64_ENCODE"), F("BASE64_DECODE")]),
    ("func_callcompletion", &[F("CALLCOMPLETION")]),
    ("func_callerid", &[F("CALLERID"), F("CONNECTEDLINE"), F("REDIRECTING"), F("CALLERPRES")]),
    ("func_cdr", &[F("CDR"), F("CDR_PROP")]),
    ("func_channel", &[F("CHANNEL"), F("CHANNELS"), F("MASTER_CHANNEL")]),
    ("func_curl", &[F("CURL"), F("CURLOPT")]),
    ("func_cut", &[F("CUT"), F("SORT")]),
    ("func_db", &[F("DB"), F("DB_EXISTS"), F("DB_DELETE"), F("DB_KEYS"), F("DB_KEYCOUNT")]),
    ("func_devstate", &[F("DEVICE_STATE"), F("HINT")]),
    ("func_dialgroup", &[F("DIALGROUP")]),
    ("func_dialplan", &[F("DIALPLAN_EXISTS"), F("VALID_EXTEN")]),
    ("func_enum", &[F("ENUMLOOKUP"), F("ENUMQUERY"), F("ENUMRESULT"), F("TXTCIDNAME")]),
    ("func_env", &[F("ENV"), F("FILE"), F("STAT"), F("FILE_COUNT_LINE"), F("FILE_FORMAT"), F("BASENAME"), F("DIRNAME")]),
    ("func_export", &[F("EXPORT")]),
    ("func_extstate", &[F("EXTENSION_STATE")]),
    ("func_global", &[F("GLOBAL"), F("SHARED"), F("GLOBAL_DELETE"), F("DELETE")]),
    ("func_groupcount", &[F("GROUP"), F("GROUP_COUNT"), F("GROUP_LIST"), F("GROUP_MATCH_COUNT")]),
    ("func_hangupcause", &[F("HANGUPCAUSE"), F("HANGUPCAUSE_KEYS"), A("HangupCauseClear")]),
    ("func_iconv", &[F("ICONV")]),
    ("func_json", &[F("JSON_DECODE")]),
    ("func_jitterbuffer", &[F("JITTERBUFFER")]),
    ("func_lock", &[F("LOCK"), F("TRYLOCK"), F("UNLOCK")]),
    ("func_logic", &[F("ISNULL"), F("SET"), F("EXISTS"), F("IF"), F("IFTIME"), F("IMPORT"), F("DELETE")]),
    ("func_math", &[F("MATH"), F("INC"), F("DEC"), F("MIN"), F("MAX"), F("ABS")]),
    ("func_md5", &[F("MD5")]),
    ("func_periodic_hook", &[F("PERIODIC_HOOK")]),
    ("func_pitchshift", &[F("PITCH_SHIFT")]),
    ("func_pjsip_aor", &[F("PJSIP_AOR")]),
    ("func_pjsip_contact", &[F("PJSIP_CONTACT")]),
    ("func_pjsip_endpoint", &[F("PJSIP_ENDPOINT")]),
    ("func_presencestate", &[F("PRESENCE_STATE")]),
    ("func_rand", &[F("RAND")]),
    ("func_odbc", &[F("ODBC_FETCH"), F("SQL_ESC"), F("SQL_ESC_BACKSLASHES"), A("ODBCFinish")]),
    ("func_realtime", &[F("REALTIME")]),
    ("func_sha1", &[F("SHA1")]),
    ("func_shell", &[F("SHELL")]),
    ("func_sorcery", &[F("AST_SORCERY")]),
    ("func_speex", &[F("AGC"), F("DENOISE")]),
    ("func_sprintf", &[F("SPRINTF")]),
    ("func_srv", &[F("SRVQUERY"), F("SRVRESULT")]),
    ("func_strings", &[F("FIELDQTY"), F("FIELDNUM"), F("FILTER"), F("REPLACE"), F("STRREPLACE"), F("LISTFILTER"), F("REGEX"),
        F("HASH"), F("HASHKEYS"), F("KEYPADHASH"), F("LEN"), F("STRFTIME"), F("STRPTIME"), F("EVAL"), F("TOUPPER"), F("TOLOWER"),
        F("QUOTE"), F("CSV_QUOTE"), F("SHIFT"), F("POP"), F("PUSH"), F("UNSHIFT"), F("PASSTHRU"), F("TRIM"), F("LTRIM"),
        F("RTRIM"), F("STRBETWEEN"), F("STRNCMP"), A("ClearHash")]),
    ("func_sysinfo", &[F("SYSINFO")]),
    ("func_talkdetect", &[F("TALK_DETECT")]),
    ("func_timeout", &[F("TIMEOUT")]),
    ("func_uri", &[F("URIENCODE"), F("URIDECODE")]),
    ("func_uuid", &[F("UUID")]),
    ("func_version", &[F("VERSION")]),
    ("func_volume", &[F("VOLUME")]),
    ("res_tonedetect", &[F("TONE_DETECT"), A("WaitForTone")]),
    ("pbx_config", &[Capability::Extensions]),
    ("pbx_loopback", &[]),
    ("pbx_spool", &[]),
    ("res_agi", &[A("AGI"), A("EAGI"), A("DeadAGI")]),
    ("res_clioriginate", &[]),
    ("res_hep", &[]),
    ("res_statsd", &[]),
    ("res_stir_shaken", &[F("STIR_SHAKEN"), F("STIR_SHAKEN_ATTESTATION")]),
    ("res_pjsip_stir_shaken", &[]),
    ("res_hep_pjsip", &[]),
    ("res_hep_rtcp", &[]),
    ("res_indications", &[Capability::Indications]),
    ("res_monitor", &[A("Monitor"), A("StopMonitor"), A("ChangeMonitor"), A("PauseMonitor"), A("UnpauseMonitor")]),
    ("res_musiconhold", &[Capability::MusicOnHold, A("SetMusicOnHold"), A("MusicOnHold"), A("StartMusicOnHold"), A("StopMusicOnHold")]),
    ("res_pjsip", &[Technology("PJSIP"), Technology("SIP")]),
    ("res_pjsip_acl", &[]),
    ("res_pjsip_authenticator_digest", &[]),
    ("res_pjsip_caller_id", &[]),
    ("res_pjsip_dtmf_info", &[]),
    ("res_pjsip_endpoint_identifier_anonymous", &[]),
    ("res_pjsip_endpoint_identifier_ip", &[]),
    ("res_pjsip_endpoint_identifier_user", &[]),
    ("res_pjsip_header_funcs", &[F("PJSIP_HEADER"), F("PJSIP_HEADERS"), F("PJSIP_RESPONSE_HEADER"), F("PJSIP_RESPONSE_HEADERS"), F("PJSIP_HEADER_PARAM"), F("PJSIP_INHERITABLE_HEADER")]),
    ("res_pjsip_logger", &[]),
    ("res_pjsip_nat", &[]),
    ("res_pjsip_outbound_authenticator_digest", &[]),
    ("res_pjsip_registrar", &[]),
    ("res_pjsip_rfc3326", &[]),
    ("res_pjsip_sdp_rtp", &[]),
    ("res_pjsip_session", &[]),
    ("res_config_odbc", &[]),
    ("res_odbc", &[]),
    ("res_odbc_transaction", &[F("ODBC"), A("ODBC_Commit"), A("ODBC_Rollback")]),
    ("res_rtp_asterisk", &[Capability::Rtp]),
    ("res_timing_timerfd", &[]),
    ("res_timing_pthread", &[]),
    ("res_timing_dahdi", &[]),
    ("res_sorcery_astdb", &[]),
    ("res_sorcery_config", &[]),
    ("res_sorcery_memory", &[]),
    ("res_security_log", &[]),
    ("res_convert", &[]),
    ("res_crypto", &[]),
    ("res_mutestream", &[F("MUTEAUDIO")]),
    ("cdr_adaptive_odbc", &[]),
    ("cdr_mysql", &[]),
    ("cdr_odbc", &[]),
    ("cdr_pgsql", &[]),
    ("chan_agent", &[]),
    ("chan_local", &[Technology("Local")]),
    ("codec_adpcm", &[Codec("adpcm")]),
    ("codec_codec2", &[Codec("codec2")]),
    ("codec_g723", &[]),
    ("codec_g726", &[Codec("g726")]),
    ("codec_g729", &[]),
    ("codec_g729a", &[]),
    ("codec_ilbc", &[Codec("ilbc")]),
    ("codec_lpc10", &[Codec("lpc10")]),
    ("codec_opus", &[Codec("opus")]),
    ("codec_opus_open_source", &[]),
    ("codec_speex", &[Codec("speex")]),
    ("format_g719", &[]),
    ("format_g723", &[]),
    ("format_g726", &[]),
    ("format_g729", &[]),
    ("format_h263", &[]),
    ("format_h264", &[]),
    ("format_ilbc", &[]),
    ("format_mp3", &[]),
    ("format_ogg_opus", &[]),
    ("format_ogg_opus_open_source", &[]),
    ("format_ogg_speex", &[]),
    ("format_ogg_vorbis", &[]),
    ("format_wav_gsm", &[]),
    ("func_config", &[F("AST_CONFIG")]),
    ("pbx_realtime", &[]),
    ("res_ari", &[]),
    ("res_ari_applications", &[]),
    ("res_ari_asterisk", &[]),
    ("res_ari_bridges", &[]),
    ("res_ari_channels", &[]),
    ("res_ari_device_states", &[]),
    ("res_ari_endpoints", &[]),
    ("res_ari_events", &[]),
    ("res_ari_mailboxes", &[]),
    ("res_ari_model", &[]),
    ("res_ari_playbacks", &[]),
    ("res_ari_recordings", &[]),
    ("res_ari_sounds", &[]),
    ("res_cdrel_custom", &[]),
    ("res_clialiases", &[]),
    ("res_config_mysql", &[]),
    ("res_config_pgsql", &[]),
    ("res_config_sqlite3", &[]),
    ("res_curl", &[]),
    ("res_features", &[]),
    ("res_format_attr_celt", &[]),
    ("res_format_attr_g729", &[]),
    ("res_format_attr_h263", &[]),
    ("res_format_attr_h264", &[]),
    ("res_format_attr_ilbc", &[]),
    ("res_format_attr_opus", &[]),
    ("res_format_attr_silk", &[]),
    ("res_format_attr_siren14", &[]),
    ("res_format_attr_siren7", &[]),
    ("res_format_attr_vp8", &[]),
    ("res_http_websocket", &[]),
    ("res_manager_devicestate", &[]),
    ("res_manager_presencestate", &[]),
    ("res_mwi_devstate", &[]),
    ("res_mwi_external", &[]),
    ("res_mwi_external_ami", &[]),
    ("res_pjsip_aoc", &[]),
    ("res_pjsip_config_wizard", &[]),
    ("res_pjsip_dialog_info_body_generator", &[]),
    ("res_pjsip_diversion", &[]),
    ("res_pjsip_dlg_options", &[]),
    ("res_pjsip_empty_info", &[]),
    ("res_pjsip_endpoint_identifier_header", &[]),
    ("res_pjsip_exten_state", &[]),
    ("res_pjsip_history", &[]),
    ("res_pjsip_keepalive", &[]),
    ("res_pjsip_log_forward", &[]),
    ("res_pjsip_messaging", &[]),
    ("res_pjsip_multihomed", &[]),
    ("res_pjsip_mwi", &[]),
    ("res_pjsip_mwi_body_generator", &[]),
    ("res_pjsip_notify", &[]),
    ("res_pjsip_one_touch_record_info", &[]),
    ("res_pjsip_outbound_publish", &[]),
    ("res_pjsip_outbound_registration", &[]),
    ("res_pjsip_path", &[]),
    ("res_pjsip_pidf_body_generator", &[]),
    ("res_pjsip_pidf_digium_body_supplement", &[]),
    ("res_pjsip_pidf_eyebeam_body_supplement", &[]),
    ("res_pjsip_publish_asterisk", &[]),
    ("res_pjsip_pubsub", &[]),
    ("res_pjsip_refer", &[]),
    ("res_pjsip_registrar_expire", &[]),
    ("res_pjsip_rfc3329", &[]),
    ("res_pjsip_send_to_voicemail", &[]),
    ("res_pjsip_sips_contact", &[]),
    ("res_pjsip_t38", &[]),
    ("res_pjsip_transport_management", &[]),
    ("res_pjsip_transport_websocket", &[]),
    ("res_pjsip_xpidf_body_generator", &[]),
    ("res_prometheus", &[]),
    ("res_realtime", &[]),
    ("res_resolver_unbound", &[]),
    ("res_sorcery_memory_cache", &[]),
    ("res_sorcery_realtime", &[]),
    ("res_srtp", &[]),
    ("res_stasis", &[]),
    ("res_stasis_answer", &[]),
    ("res_stasis_device_state", &[]),
    ("res_stasis_json_asterisk", &[]),
    ("res_stasis_json_events", &[]),
    ("res_stasis_mailbox", &[]),
    ("res_stasis_playback", &[]),
    ("res_stasis_recording", &[]),
    ("res_stasis_snoop", &[]),
];

/// What the core itself provides, which no `noload` takes away.
const CORE: &str = "pbx_builtins";

/// Modules whose function is built in, without `.so`, and what each provides.
pub fn known() -> impl Iterator<Item = (&'static str, &'static [Capability])> {
    MODULES.iter().copied()
}

/// Families of modules Asterisk ships; a module outside of them is a stranger.
const FAMILIES: [&str; 10] =
    ["app_", "bridge_", "cdr_", "cel_", "chan_", "codec_", "format_", "func_", "pbx_", "res_"];

/// `modules.conf` as a whole: what is turned off.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Modules {
    off: BTreeSet<Capability>,
    disabled: BTreeSet<String>,
}

fn plain(name: &str) -> &str {
    name.trim().trim_end_matches(".so")
}

impl Modules {
    /// Reads the file. With autoload=no only what is named is on.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let (mut named, mut refused) = (BTreeSet::new(), BTreeSet::new());
        let mut autoload = true;
        for variable in file.named("modules").flat_map(|section| &section.variables) {
            let module = plain(&variable.value).to_owned();
            match variable.name.to_ascii_lowercase().as_str() {
                "autoload" => autoload = boolean(&variable.value).unwrap_or(autoload),
                "load" | "preload" | "require" | "preload-require" | "load-require" => {
                    if let Some(what) = stranger(&module) {
                        let message = format!("the module {module} {what}");
                        findings.note(&variable.place, message, "");
                    }
                    named.insert(module);
                }
                "noload" => {
                    refused.insert(module);
                }
                other => {
                    let message = format!("[modules] has no option `{other}`; the line is ignored");
                    let known = ["autoload", "load", "noload", "preload", "require", "preload-require"];
                    findings.warning(&variable.place, message, super::suggestion(other, &known));
                }
            }
        }
        let is_on = |module: &str| !refused.contains(module) && (autoload || named.contains(module));
        let on: BTreeSet<_> =
            MODULES.iter().filter(|(module, _)| is_on(module)).flat_map(|(_, what)| *what).collect();
        // SIP and PJSIP come from several modules; each of them is needed.
        let mut off: BTreeSet<_> =
            MODULES.iter().flat_map(|(_, what)| *what).filter(|what| !on.contains(what)).copied().collect();
        if !is_on("chan_pjsip") || !is_on("res_pjsip") {
            off.extend([Technology("PJSIP"), Technology("SIP")]);
        }
        let unnamed =
            MODULES.iter().map(|(module, _)| *module).filter(|module| !is_on(module)).map(str::to_owned);
        let refused = refused.iter().filter(|module| *module != CORE).cloned();
        let disabled = unnamed.chain(refused).collect();
        Self { off, disabled }
    }
    /// Whether a capability is on.
    pub fn has(&self, capability: Capability) -> bool {
        !self.off.contains(&capability)
    }
    /// Whether a dialplan application is on; names in any case.
    pub fn has_application(&self, name: &str) -> bool {
        !self.off.iter().any(|off| matches!(off, A(known) if known.eq_ignore_ascii_case(name)))
    }
    /// Whether a dialplan function is on.
    pub fn has_function(&self, name: &str) -> bool {
        !self.off.iter().any(|off| matches!(off, F(known) if *known == name))
    }
    /// Whether a module is on, by its name without `.so`.
    pub fn has_module(&self, module: &str) -> bool {
        !self.disabled.contains(module)
    }
    /// `sip.conf` is served: SIP is on, although the modules of pjsip.conf may be off.
    pub(crate) fn serve_sip(&mut self) {
        self.off.retain(|off| !matches!(off, Technology("PJSIP" | "SIP")));
    }
    /// Modules that are turned off, without `.so`.
    pub fn disabled(&self) -> &BTreeSet<String> {
        &self.disabled
    }
    /// What is turned off.
    pub fn off(&self) -> impl Iterator<Item = Capability> + '_ {
        self.off.iter().copied()
    }
}

/// What the field calls a module that people look for in lists; `None`: it is listed with what it provides.
pub fn title(module: &str) -> Option<&'static str> {
    TITLES.iter().find(|(name, _)| *name == module).map(|(_, title)| *title)
}

/// Names of modules, and the words that stand beside them.
const TITLES: &[(&str, &str)] = &[
    ("app_agent_pool", "Call center agent pool applications"),
    ("app_confbridge", "Conference Bridge Application"),
    ("app_dial", "Dialing Application"),
    ("app_playback", "Sound File Playback Application"),
    ("app_queue", "True Call Queueing"),
    ("app_voicemail", "Comedian Mail (Voicemail System)"),
    ("cdr_csv", "Comma Separated Values CDR Backend"),
    ("cdr_manager", "Asterisk Manager Interface CDR Backend"),
    ("chan_iax2", "Inter Asterisk eXchange (Ver 2)"),
    ("chan_pjsip", "PJSIP Channel Driver"),
    ("pbx_config", "Text Extension Configuration"),
    ("res_agi", "Asterisk Gateway Interface (AGI)"),
    ("res_ari", "Asterisk RESTful Interface"),
    ("res_musiconhold", "Music On Hold Resource"),
    ("res_parking", "Call Parking Resource"),
    ("res_pjsip", "Basic SIP resource"),
    ("res_rtp_asterisk", "Asterisk RTP Stack"),
    ("res_stasis", "Stasis application support"),
];

/// Whether Strowger has what a module of Asterisk provides; `module` is without `.so`.
pub fn is_provided(module: &str) -> bool {
    MODULES.iter().any(|(known, _)| *known == module)
}

/// What there is to say about a module that is asked for; `None` when Strowger has what it provides.
fn stranger(module: &str) -> Option<String> {
    if is_provided(module) || module == CORE {
        return None;
    }
    Some(match absent::find(module) {
        Some(Absence::Harmless(why)) => format!("is not needed here: {why}"),
        Some(Absence::Missing(what)) => format!("is not part of Strowger: {what}"),
        None if FAMILIES.iter().any(|family| module.starts_with(family)) => {
            "is not one that Strowger knows; what it provides may be missing".to_owned()
        }
        None => "is not a module of Asterisk either".to_owned(),
    })
}

/// Rows for the manual.
pub(crate) fn rows() -> Vec<Row> {
    let row = |name, kind: &str, default, doc| Row {
        file: "modules.conf",
        section: "modules",
        name,
        kind: kind.to_owned(),
        default,
        doc,
        status: Status::Supported,
    };
    vec![
        row("autoload", "yes, no", "yes", "Everything is on; with no, only what the other lines name."),
        row("load", "module", "", "Names what is on with autoload=no."),
        row("preload", "module", "", "As load."),
        row("require", "module", "", "As load."),
        row("preload-require", "module", "", "As load."),
        row("noload", "module", "", "Turns off what the module provides."),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_has_one_row_in_one_table() {
        let mut seen = BTreeSet::new();
        for name in MODULES.iter().map(|(name, _)| *name).chain(absent::names()) {
            assert!(seen.insert(name), "{name} is there twice");
            assert!(FAMILIES.iter().any(|family| name.starts_with(family)), "{name} is of no family");
        }
    }

    #[test]
    fn what_is_said_of_a_module_that_is_asked_for_is_what_a_site_misses() {
        for (module, said) in [
            ("res_pjsip_refer", None),
            ("res_srtp", None),
            ("res_ari_channels", None),
            ("res_stasis_snoop", None),
            ("format_h264", None),
            ("codec_opus", None),
            ("pbx_realtime", None),
            ("chan_sip", None),
            ("pbx_builtins", None),
            ("chan_dahdi", Some("is not part of Strowger: there are no telephony cards")),
            (
                "pbx_lua",
                Some("is not part of Strowger: extensions.lua is not run; its contexts do not exist"),
            ),
            ("app_skel", Some("is not needed here: it is an example")),
            ("res_new", Some("is not one that Strowger knows; what it provides may be missing")),
            ("mine", Some("is not a module of Asterisk either")),
        ] {
            assert_eq!(stranger(module).as_deref(), said, "{module}");
        }
    }

    #[test]
    fn no_noload_takes_away_what_is_core() {
        let mut findings = Findings::new();
        let text = "[modules]\nnoload => pbx_builtins.so\nnoload => app_sayunixtime.so\n";
        let source = conf::Memory::new().with("modules.conf", text);
        let file = conf::load(&source, "modules.conf", conf::Options::default(), &mut findings).unwrap();
        let modules = Modules::read(&file, &mut findings);
        assert!(modules.has_module("pbx_builtins") && !modules.has_module("app_sayunixtime"));
        for (name, there) in
            [("SayUnixTime", false), ("SayDigits", true), ("SayNumber", true), ("Goto", true)]
        {
            assert_eq!(modules.has_application(name), there, "{name}");
        }
        assert!(findings.is_empty(), "{findings}");
    }
}
