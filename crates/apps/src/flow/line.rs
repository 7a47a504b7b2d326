//! Applications that tell the caller's line something: answer, progress, refusal, the end.

use core::time::Duration;

use base::Cause;
use call::{ChanEvent, ChanState, Indication, Level, Stop, Transferring};

use super::rows;
use crate::call_ctx::args;
use crate::{AppFuture, AppRow, Call, Flow, Outcome, Run};

/// How long an answered party may take to say whether the place it was sent to takes it.
const TRANSFER_WAIT: Duration = Duration::from_secs(32);
/// Longest wait of Answer for the first packet of media: a phone's round trip and its codec's start.
const MEDIA_WAIT: Duration = Duration::from_millis(500);

pub(crate) const ROWS: &[AppRow] = rows! {
    "Answer" "pbx_builtins" Run::Story(answer),
        "Answers the call.", "Answer([delay])",
        "Answers, then waits delay milliseconds; without a delay until media flows, at most half a second.\n\
         Does nothing on a call that is up, but waits a delay that is given.";
    "Hangup" "pbx_builtins" Run::Now(hangup),
        "Ends the call.", "Hangup([causecode])",
        "Ends the call with a Q.850 cause, by number or name (17, USER_BUSY). Without one the cause of the last Dial\n\
         is told, or normal clearing.";
    "PJSIPHangup" "chan_pjsip" Run::Now(pjsip_hangup),
        "Ends a call that has come by SIP, with a response of choice.", "PJSIPHangup(cause)",
        "Refuses a call that is not answered with this final response: a number from 400 to 699, or its name (437,\n\
         UNSUPPORTED_CERTIFICATE, PJSIP_SC_BUSY_HERE); anything else is 603. HANGUPCAUSE is the cause that the response\n\
         stands for. A call that is up ends as by Hangup.";
    "Busy" "pbx_builtins" Run::Story(|call, text| refuse(call, text, "busy", Cause::USER_BUSY)),
        "Tells the caller that the line is busy.", "Busy([timeout])",
        "Refuses a call that is not answered as busy; an answered one hears the busy tone for timeout seconds, or until\n\
         it hangs up.";
    "Congestion" "pbx_builtins" Run::Story(|call, text| {
            refuse(call, text, "congestion", Cause::NORMAL_CIRCUIT_CONGESTION)
        }),
        "Tells the caller that there is no way through.", "Congestion([timeout])",
        "As Busy, with congestion.";
    "Progress" "pbx_builtins" Run::Now(|call, _| indicate(call, &Indication::Progress)),
        "Opens early audio towards the caller.", "Progress()", "Opens early media towards a caller who is not answered.";
    "Ringing" "pbx_builtins" Run::Now(|call, _| indicate(call, &Indication::Ringing)),
        "Tells the caller that it rings.", "Ringing()", "Tells the caller that it rings.";
    "Proceeding" "pbx_builtins" Run::Now(|call, _| indicate(call, &Indication::Proceeding)),
        "Tells the caller that the call is on its way.", "Proceeding()", "Tells the caller that the call is on its way.";
    "SendURL" "app_url" Run::Now(|call, _| {
            call.set("SENDURLSTATUS", "UNSUPPORTED");
            Ok(Flow::Continue)
        }),
        "Sends a web address to the caller.", "SendURL(URL[,option])",
        "No technology here can show one: sets SENDURLSTATUS to UNSUPPORTED. Phones that take Alert-Info or Call-Info are\n\
         told by PJSIP_HEADER().";
    "SendImage" "app_image" Run::Now(|call, _| {
            call.set("SENDIMAGESTATUS", "UNSUPPORTED");
            Ok(Flow::Continue)
        }),
        "Sends an image to the caller.", "SendImage(filename)",
        "No technology here can show one: sets SENDIMAGESTATUS to UNSUPPORTED.";
    "Flash" "app_flash" Run::Now(|call, _| {
            call.log(Level::Warning, "only analogue lines can be flashed: SendDTMF(f) sends a flash by SIP");
            Ok(Flow::Continue)
        }),
        "Flashes an analogue line.", "Flash()",
        "There are no analogue lines here: a line of the log says so. SendDTMF(f) sends a hook flash as an event of RTP.";
    "Transfer" "app_transfer" Run::Story(transfer),
        "Sends the caller to another place of the network.", "Transfer([Tech/]destination)",
        "Sends an unanswered caller elsewhere, or transfers an answered one, when its technology can. Sets\n\
         TRANSFERSTATUS: SUCCESS, FAILURE, UNSUPPORTED, and TRANSFERSTATUSPROTOCOL: the SIP status of a failure, else 0.\n\
         With Tech/ other technologies are left alone.";
};

fn answer(call: Call, text: String) -> AppFuture {
    Box::pin(async move {
        let was_up = call.chan.state() == ChanState::Up;
        call.chan.answer()?;
        let delay = args::split(&text).first().and_then(|delay| delay.trim().parse::<u64>().ok());
        match delay {
            // Digits typed meanwhile are for whoever reads next.
            Some(millis) => {
                let deadline = call.chan.now() + Duration::from_millis(millis);
                call.chan.wait_keeping(deadline, |_| false).await?;
            }
            None if was_up => {}
            None => until_media_flows(&call).await?,
        }
        Ok(Flow::Continue)
    })
}

impl Call {
    /// Answers a call that is not up and waits as Answer does, so that the start of a prompt is heard.
    pub(crate) async fn answer_for_sound(&self) -> Result<(), Stop> {
        if self.chan.state() == ChanState::Up {
            return self.chan.check();
        }
        self.chan.answer()?;
        until_media_flows(self).await
    }
}

/// Waits for the caller's media, which says that his end is ready; not for long, because there may be none.
async fn until_media_flows(call: &Call) -> Result<(), Stop> {
    let waits = call.chan.with(|c| c.stream.is_some() && !c.media_flows)?;
    if waits {
        let deadline = call.chan.now() + MEDIA_WAIT;
        call.chan.wait_keeping(deadline, |event| *event == ChanEvent::MediaFlowing).await?;
    }
    Ok(())
}

fn hangup(call: &Call, text: &str) -> Outcome {
    let text = text.trim();
    if !text.is_empty() {
        match Cause::parse(text) {
            Some(cause) => call.set_cause(cause),
            None => {
                call.log(Level::Warning, &format!("Hangup: '{text}' is no cause; normal clearing is told"))
            }
        }
    }
    let _ = call.chan.with(|channel| {
        if channel.last_cause == Cause::NONE {
            channel.last_cause = Cause::NORMAL_CLEARING;
        }
        if channel.hangup_by.is_empty() {
            channel.hangup_by = "dialplan/builtin".into();
        }
    });
    Ok(Flow::Hangup)
}

/// Chooses the final response by which a call is refused that waits for an answer; the cause that it stands for, or
/// `None` when the call is up or no call of SIP.
pub fn choose_refusal(shard: &std::rc::Rc<call::Shard>, id: base::ChannelId, text: &str) -> Option<Cause> {
    let code = shard.with_tech(id, |tech, core| {
        let takes = tech.write(core, id, PJSIP_HANGUP, "", text);
        takes.then(|| tech.read(core, id, PJSIP_HANGUP, "")).flatten()
    });
    Some(Cause::from_sip(code.flatten()?.parse().ok()?))
}

/// What drivers know the choice of a response by.
const PJSIP_HANGUP: &str = "PJSIPHangup";

fn pjsip_hangup(call: &Call, text: &str) -> Outcome {
    if text.trim().is_empty() {
        call.log(Level::Error, "PJSIPHangup: Missing parameter");
    } else if let Some(cause) = choose_refusal(call.chan.shard(), call.chan.id(), text) {
        call.set_cause(cause);
    } else {
        call.log(Level::Debug(1), "PJSIPHangup: the call does not wait for an answer by SIP");
    }
    hangup(call, "")
}

fn refuse(call: Call, text: String, tone: &'static str, cause: Cause) -> AppFuture {
    Box::pin(async move {
        let limit = args::seconds(&text).filter(|limit| !limit.is_zero());
        call.set_cause(cause);
        call.refuse_with(tone, cause, limit).await?;
        Ok(Flow::Hangup)
    })
}

fn indicate(call: &Call, indication: &Indication) -> Outcome {
    if call.chan.state() != ChanState::Up {
        call.chan.indicate(indication);
    }
    Ok(Flow::Continue)
}

fn transfer(call: Call, text: String) -> AppFuture {
    Box::pin(async move {
        let (status, protocol) = transferred(&call, &text).await?;
        call.set("TRANSFERSTATUS", status);
        call.set("TRANSFERSTATUSPROTOCOL", &protocol.to_string());
        Ok(Flow::Continue)
    })
}

/// Asks for a transfer; the word for how it came out, and the status that was told, 0 when none was.
async fn transferred(call: &Call, text: &str) -> Result<(&'static str, u16), Stop> {
    let id = call.chan.id();
    let shard = call.chan.shard();
    let mut target = text.trim();
    if target.is_empty() {
        call.log(Level::Warning, "Transfer requires an argument ([Tech/]destination)");
        return Ok(("FAILURE", 0));
    }
    if let Some((tech_name, rest)) = target.split_once('/') {
        let own = shard
            .with_tech(id, |tech, _| tech.names().iter().any(|name| name.eq_ignore_ascii_case(tech_name)));
        if own != Some(true) {
            return Ok(("UNSUPPORTED", 0));
        }
        target = rest;
    }
    let was_up = call.chan.state() == ChanState::Up;
    match shard.with_tech(id, |tech, core| tech.transfer(core, id, target)) {
        Some(Transferring::Begun) => {}
        Some(Transferring::Failed) => return Ok(("FAILURE", 0)),
        Some(Transferring::Unsupported) | None => return Ok(("UNSUPPORTED", 0)),
    }
    if !was_up {
        return Ok(("SUCCESS", 0));
    }
    let mut told = None;
    let deadline = call.chan.now() + TRANSFER_WAIT;
    let waited = call
        .chan
        .wait_keeping(deadline, |event| {
            if let ChanEvent::Transferred(status) = event {
                told = Some(*status);
            }
            told.is_some()
        })
        .await;
    match told {
        Some(200..=299) => Ok(("SUCCESS", 0)),
        Some(status) => Ok(("FAILURE", status)),
        None => waited.map(|()| ("FAILURE", 408)),
    }
}
