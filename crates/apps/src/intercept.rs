//! The dialplan's say before a phone is told who it talks to: `CONNECTED_LINE_SEND_SUB` and `REDIRECTING_SEND_SUB`.

use std::future::Future;
use std::pin::Pin;

use call::{Chan, Told};

use crate::{Call, dial};

/// The routine that a channel's variables name for what its side is about to be told. `CONNECTEDLINE()` and
/// `REDIRECTING()` have the new values in it, and what it makes of them is told.
pub fn intercept(chan: &Chan, told: Told) -> Option<Pin<Box<dyn Future<Output = ()>>>> {
    let (place, arguments) = match told {
        Told::ConnectedLine => ("CONNECTED_LINE_SEND_SUB", "CONNECTED_LINE_SEND_SUB_ARGS"),
        Told::Redirecting => ("REDIRECTING_SEND_SUB", "REDIRECTING_SEND_SUB_ARGS"),
    };
    let variable = |name| chan.with(|c| c.vars.get_name(name).map(str::to_owned)).ok().flatten();
    let place = variable(place).filter(|place| !place.is_empty())?;
    let call = Call::new(chan.clone());
    let routine = format!("{place}({})", variable(arguments).unwrap_or_default());
    let routine = dial::routine(&call, &routine)?;
    let chan = chan.clone();
    Some(Box::pin(async move {
        let shown = chan.with(|c| (c.app, c.app_data.clone()));
        let _ = call.gosub(&routine).await;
        if let Ok((app, data)) = shown {
            let _ = chan.with(|c| (c.app, c.app_data) = (app, data));
        }
    }))
}
