//! Dialplan functions that only the channel can answer. What they are called and how they are documented stands in the
//! dialplan's function table.

mod agent;
mod channel;
mod config;
mod count;
pub(crate) mod enumlookup;
mod features;
mod kept;
pub(crate) mod listening;
mod locks;
mod loudness;
mod party;
mod quality;
mod queue;
pub(crate) mod record;
pub(crate) mod rows;
pub(crate) mod service;
pub(crate) mod shell;
mod sight;
pub(crate) mod state;
pub(crate) mod transactions;
mod verified;
pub(crate) mod web;

pub(crate) use quality::is_left_untold;

use dialplan::{ChannelFunction, Fault};

use crate::call_ctx::args;
use crate::{Call, conference, message, voicemail};

/// How a reader answers.
pub(crate) type Read = Result<(), Fault>;

/// Reads a function; the answer is appended to `out`.
pub(crate) fn read(call: &Call, function: ChannelFunction, text: &str, out: &mut String) -> Read {
    use ChannelFunction as F;
    match function {
        F::Callerid => party::read_caller(call, text, out),
        F::Connectedline => party::read_connected(call, text, out),
        F::Redirecting => party::read_redirecting(call, text, out),
        F::Channel => channel::read(call, text, out),
        F::Channels => channel::read_channels(call, text, out),
        F::ChannelExists => channel::read_exists(call, text, out),
        F::Mixmonitor => state::read_mix_monitor(call, text, out),
        F::MasterChannel => channel::read_master(call, text, out),
        F::Import => channel::read_import(call, text, out),
        F::ParkGetChannel => channel::read_parked(call, text, out),
        F::Timeout => channel::read_timeout(call, text, out),
        F::Cdr => record::read(call, text, out),
        F::CdrProp
        | F::PjsipSendSessionRefresh
        | F::TalkDetect
        | F::AudiohookInherit
        | F::Jitterbuffer
        | F::Muteaudio
        | F::HoldIntercept
        | F::Export
        | F::PitchShift
        | F::Scramble
        | F::FrameDrop
        | F::FrameTrace
        | F::StirShakenAttestation => Err(Fault::new("can only be written")),
        F::ToneDetect => listening::read_tone(call, text, out),
        F::AstConfig => config::read(call, text, out),
        F::Curl => web::read(call, text, out),
        F::Curlopt => web::read_option(call, text, out),
        F::Feature => features::read_general(call, text, out),
        F::FeatureMap => features::read_map(call, text, out),
        F::FaxOpt => kept::FAX.read(call, text, out),
        F::GeolocProfile => kept::GEOLOCATION.read(call, text, out),
        F::CallCompletion => kept::COMPLETION.read(call, text, out),
        F::Volume => loudness::read(call, text, out),
        F::Agc => loudness::read_level(call, text, out),
        F::Denoise => kept::DENOISE.read(call, text, out),
        F::StirShaken => verified::read(call, text, out),
        F::SayFiles => sight::read_files(call, text, out),
        F::RecordingInfo => sight::read_recording(call, text, out),
        F::SysInfo => sight::read_system(call, text, out),
        F::Lock | F::TryLock => locks::read_take(call, text, out),
        F::Unlock => locks::read_give(call, text, out),
        F::EnumQuery => enumlookup::read_query(call, text, out),
        F::EnumResult => enumlookup::read_result(call, text, out),
        F::SrvQuery => service::read_query(call, text, out),
        F::SrvResult => service::read_result(call, text, out),
        F::Confbridge => conference::read_custom(call, text, out),
        F::ConfbridgeInfo => count::read_conference(call, text, out),
        F::MeetmeInfo => count::read_meeting(call, text, out),
        F::ConfbridgeChannels => count::read_conference_channels(call, text, out),
        F::DeviceState => state::read_device(call, text, out),
        F::ExtensionState => state::read_extension(call, text, out),
        F::Hint => state::read_hint(call, text, out),
        F::Message => message::read(call, text, out),
        F::MessageData => message::read_data(call, text, out),
        F::Hangupcause => state::read_hangup_cause(call, text, out),
        F::HangupcauseKeys => state::read_hangup_keys(call, out),
        F::Group => count::read_group(call, text, out),
        F::GroupCount => count::read_count(call, text, out),
        F::GroupList => count::read_list(call, out),
        F::GroupMatchCount => count::read_match_count(call, text, out),
        F::Exception => state::read_exception(call, text, out),
        F::StackPeek => state::read_stack_peek(call, text, out),
        F::LocalPeek => state::read_local_peek(call, text, out),
        F::Blacklist => state::read_blacklist(call, out),
        F::Ifmodule => state::read_module(call, text, out),
        F::Version => state::read_version(text, out),
        F::PresenceState => state::read_presence(call, text, out),
        F::Shell => shell::read(call, text, out),
        F::VmInfo => voicemail::read_info(call, text, out),
        F::VmCount => voicemail::read_count(call, text, out),
        F::MiniVmAccount => voicemail::read_account(call, text, out),
        F::MiniVmCounter => voicemail::read_counter(call, text, out),
        F::Agent => agent::read(call, text, out),
        F::QueueMember => queue::read_member(call, text, out),
        F::QueueMemberCount => queue::read_count(call, text, out),
        F::QueueMemberList => queue::read_list(call, text, out),
        F::QueueMemberPenalty => queue::read_penalty(call, text, out),
        F::QueueVariables => queue::read_variables(call, text, out),
        F::QueueWaitingCount => queue::read_waiting(call, text, out),
        F::QueueEstimate => queue::read_estimate(call, text, out),
        F::QueueExists => queue::read_exists(call, text, out),
        F::QueueGetChannel => queue::read_channel(call, text, out),
        F::MailboxExists => voicemail::read_exists(call, text, out),
        F::SipHeader => {
            let name = args::nth(&args::split(text), 0).to_owned();
            tech_read(call, "PJSIP_HEADER", &format!("read,{name}"), out)
        }
        F::PjsipParseUriFrom => {
            let (variable, part) = text.rsplit_once(',').ok_or(Fault::new("needs a variable and a part"))?;
            let uri = call.get(variable.trim()).unwrap_or_default();
            tech_read(call, "PJSIP_PARSE_URI", &format!("{uri},{part}"), out)
        }
        F::PjsipHeader
        | F::PjsipHeaders
        | F::PjsipResponseHeader
        | F::PjsipResponseHeaders
        | F::PjsipMediaOffer
        | F::PjsipDtmfMode
        | F::PjsipMohPassthrough
        | F::PjsipHeaderParam
        | F::PjsipInheritableHeader
        | F::PjsipDialContacts
        | F::PjsipParseUri
        | F::PjsipEndpoint
        | F::PjsipAor
        | F::PjsipContact
        | F::IaxPeer
        | F::SipPeer
        | F::SipChanInfo
        | F::CheckSipDomain
        | F::IaxVar => tech_read(call, tech_name(function), text, out),
        F::Realtime | F::RealtimeField | F::RealtimeHash | F::RealtimeDestroy => {
            rows::read_family(call, function, text, out)
        }
        F::Odbc => transactions::read(call, text, out),
        F::OdbcFetch => rows::read_fetch(call, text, out),
        F::RealtimeStore | F::PjsipTransferHandling => Err(Fault::new("can only be written")),
    }
}

/// Writes a function.
pub(crate) fn write(call: &Call, function: ChannelFunction, text: &str, value: &str) -> Read {
    use ChannelFunction as F;
    match function {
        F::Callerid => party::write_caller(call, text, value),
        F::Connectedline => party::write_connected(call, text, value),
        F::Redirecting => party::write_redirecting(call, text, value),
        F::Channel => channel::write(call, text, value),
        F::MasterChannel => channel::write_master(call, text, value),
        F::Timeout => channel::write_timeout(call, text, value),
        F::Cdr => record::write(call, text, value),
        F::CdrProp => record::write_prop(call, text, value),
        F::DeviceState => state::write_device(call, text, value),
        F::PresenceState => state::write_presence(call, text, value),
        F::Group => count::write_group(call, text, value),
        F::QueueMember => queue::write_member(call, text, value),
        F::QueueMemberPenalty => queue::write_penalty(call, text, value),
        F::Message => message::write(call, text, value),
        F::MessageData => message::write_data(call, text, value),
        F::PjsipHeader
        | F::PjsipHeaderParam
        | F::PjsipInheritableHeader
        | F::PjsipMediaOffer
        | F::PjsipDtmfMode
        | F::PjsipTransferHandling
        | F::PjsipMohPassthrough
        | F::IaxVar
        | F::PjsipSendSessionRefresh => tech_write(call, tech_name(function), text, value),
        F::StirShakenAttestation => verified::write_attestation(call, text, value),
        F::Confbridge => conference::write_custom(call, text, value),
        F::Curlopt => web::write_option(call, text, value),
        F::Feature => features::write_general(call, text, value),
        F::FeatureMap => features::write_map(call, text, value),
        F::Jitterbuffer => listening::write_buffer(call, text, value),
        F::Realtime | F::RealtimeField | F::RealtimeStore | F::RealtimeDestroy => {
            rows::write_family(call, function, text, value)
        }
        F::Odbc => transactions::write(call, text, value),
        F::TalkDetect => listening::write_talk(call, text, value),
        F::ToneDetect => listening::write_tone(call, text),
        F::AudiohookInherit => listening::write_inherit(text),
        F::MiniVmCounter => voicemail::write_counter(call, text, value),
        F::FaxOpt => kept::FAX.write(call, text, value),
        F::GeolocProfile => kept::GEOLOCATION.write(call, text, value),
        F::CallCompletion => kept::COMPLETION.write(call, text, value),
        F::Volume => loudness::write(call, text, value),
        F::Agc => loudness::write_level(call, text, value),
        F::Denoise => kept::DENOISE.write(call, text, value),
        F::PitchShift => kept::PITCH.write(call, text, value),
        F::Scramble => kept::SCRAMBLE.write(call, text, value),
        F::FrameDrop => kept::FRAME_DROP.write(call, text, value),
        F::FrameTrace => kept::FRAME_TRACE.write(call, text, value),
        F::Muteaudio => sight::write_mute(call, text, value),
        F::HoldIntercept => sight::write_hold(call, text),
        F::Export => sight::write_export(call, text, value),
        F::AstConfig
        | F::Curl
        | F::StirShaken
        | F::SayFiles
        | F::RecordingInfo
        | F::SysInfo
        | F::Lock
        | F::TryLock
        | F::Unlock
        | F::EnumQuery
        | F::EnumResult
        | F::SipPeer
        | F::SipChanInfo
        | F::CheckSipDomain
        | F::SrvQuery
        | F::SrvResult
        | F::ConfbridgeInfo
        | F::ConfbridgeChannels
        | F::MeetmeInfo
        | F::Channels
        | F::ChannelExists
        | F::ExtensionState
        | F::Hangupcause
        | F::HangupcauseKeys
        | F::Hint
        | F::PjsipDialContacts
        | F::PjsipHeaders
        | F::PjsipResponseHeader
        | F::PjsipResponseHeaders
        | F::PjsipParseUri
        | F::PjsipParseUriFrom
        | F::PjsipEndpoint
        | F::PjsipAor
        | F::PjsipContact
        | F::IaxPeer
        | F::VmInfo
        | F::VmCount
        | F::MiniVmAccount
        | F::Agent
        | F::QueueMemberCount
        | F::QueueMemberList
        | F::QueueVariables
        | F::QueueWaitingCount
        | F::QueueEstimate
        | F::QueueExists
        | F::QueueGetChannel
        | F::MailboxExists
        | F::GroupCount
        | F::GroupList
        | F::GroupMatchCount
        | F::Import
        | F::ParkGetChannel
        | F::Mixmonitor
        | F::Exception
        | F::StackPeek
        | F::LocalPeek
        | F::Blacklist
        | F::SipHeader
        | F::Ifmodule
        | F::Shell
        | F::RealtimeHash
        | F::OdbcFetch
        | F::Version => Err(Fault::new("cannot be written")),
    }
}

fn tech_name(function: ChannelFunction) -> &'static str {
    use ChannelFunction as F;
    match function {
        F::PjsipHeader => "PJSIP_HEADER",
        F::PjsipHeaders => "PJSIP_HEADERS",
        F::PjsipResponseHeader => "PJSIP_RESPONSE_HEADER",
        F::PjsipResponseHeaders => "PJSIP_RESPONSE_HEADERS",
        F::PjsipMediaOffer => "PJSIP_MEDIA_OFFER",
        F::PjsipDtmfMode => "PJSIP_DTMF_MODE",
        F::PjsipMohPassthrough => "PJSIP_MOH_PASSTHROUGH",
        F::PjsipTransferHandling => "PJSIP_TRANSFER_HANDLING",
        F::PjsipSendSessionRefresh => "PJSIP_SEND_SESSION_REFRESH",
        F::PjsipHeaderParam => "PJSIP_HEADER_PARAM",
        F::PjsipInheritableHeader => "PJSIP_INHERITABLE_HEADER",
        F::PjsipDialContacts => "PJSIP_DIAL_CONTACTS",
        F::PjsipParseUri => "PJSIP_PARSE_URI",
        F::PjsipEndpoint => "PJSIP_ENDPOINT",
        F::PjsipAor => "PJSIP_AOR",
        F::PjsipContact => "PJSIP_CONTACT",
        F::IaxPeer => "IAXPEER",
        F::IaxVar => "IAXVAR",
        F::SipPeer => "SIPPEER",
        F::SipChanInfo => "SIPCHANINFO",
        F::CheckSipDomain => "CHECKSIPDOMAIN",
        _ => "",
    }
}

/// The technology that answers a function on channels of any.
fn home(function: &str) -> Option<&'static str> {
    match function {
        "PJSIP_DIAL_CONTACTS"
        | "PJSIP_PARSE_URI"
        | "PJSIP_ENDPOINT"
        | "PJSIP_AOR"
        | "PJSIP_CONTACT"
        | "SIPPEER"
        | "CHECKSIPDOMAIN"
        | "PJSIP_INHERITABLE_HEADER" => Some("PJSIP"),
        "IAXPEER" | "IAXVAR" => Some("IAX2"),
        _ => None,
    }
}

fn tech_read(call: &Call, function: &str, text: &str, out: &mut String) -> Read {
    let id = call.chan.id();
    let shard = call.chan.shard();
    let answer = if let Some(home) = home(function) {
        let tech = shard.tech_named(home).ok_or_else(|| Fault::new(format!("there is no {home} here")))?;
        tech.borrow_mut().read(&mut shard.core.borrow_mut(), id, function, text)
    } else {
        shard.with_tech(id, |tech, core| tech.read(core, id, function, text)).flatten()
    };
    let answer = answer.ok_or_else(|| Fault::new("the channel has no answer to that"))?;
    out.push_str(&answer);
    Ok(())
}

fn tech_write(call: &Call, function: &str, text: &str, value: &str) -> Read {
    let id = call.chan.id();
    let shard = call.chan.shard();
    let written = if let Some(home) = home(function) {
        let tech = shard.tech_named(home).ok_or_else(|| Fault::new(format!("there is no {home} here")))?;
        Some(tech.borrow_mut().write(&mut shard.core.borrow_mut(), id, function, text, value))
    } else {
        shard.with_tech(id, |tech, core| tech.write(core, id, function, text, value))
    };
    if written == Some(true) { Ok(()) } else { Err(Fault::new("the channel does not take that")) }
}

/// The channel is gone.
fn gone(_: call::Stop) -> Fault {
    Fault::new("the channel is gone")
}

/// No such item.
fn unknown(item: &str) -> Fault {
    Fault::new(format!("there is no item '{item}'"))
}
