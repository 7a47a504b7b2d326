//! `switch => IAX2/user:secret@host/context`: numbers that another site has.
//!
//! Own extensions and those of included contexts go first; then each switch is asked in the order of the file.

use base::Cause;
use call::{Level, Stop, SwitchAnswer};
use dialplan::Query;

use super::Next;
use crate::Call;
use crate::env::{SEPARATORS, Scope};

/// The engine that is asked elsewhere.
const ENGINE: &str = "IAX2";

impl Call {
    /// What follows the slash of the switches of a context.
    pub(super) fn switches(&self, context: &str) -> Vec<String> {
        let program = self.chan.core(|core| core.program.clone());
        let Some(context) = program.context_id(context) else { return Vec::new() };
        let query = Query { context, exten: "", caller: "" };
        let found = program.switches(query, &Scope::new(self));
        let own = found.into_iter().filter(|(_, switch)| switch.engine.eq_ignore_ascii_case(ENGINE));
        own.map(|(_, switch)| match switch.late {
            true => self.expand(&switch.data),
            false => switch.data.to_string(),
        })
        .collect()
    }
    /// Whether numbers of a context may be at other sites or in tables.
    pub(super) fn may_be_elsewhere(&self, context: &str) -> bool {
        self.has_rows(context) || !self.switches(context).is_empty()
    }
    /// The first switch whose answer is one of those that are wanted, and that answer.
    async fn ask_switches(
        &self,
        context: &str,
        number: &str,
        wanted: fn(SwitchAnswer) -> bool,
    ) -> Result<Option<(String, SwitchAnswer)>, Stop> {
        // It becomes a part of a dial string.
        if number.is_empty() || number.contains(SEPARATORS) {
            return Ok(None);
        }
        for switch in self.switches(context) {
            let answer = self.chan.ask_switch(&switch, number).await?;
            if wanted(answer) {
                return Ok(Some((switch, answer)));
            }
        }
        Ok(None)
    }
    /// Whether a switch may have a longer number that begins with these digits: the first says so that knows them at all.
    pub(super) async fn switch_goes_on(&self, context: &str, digits: &str) -> Result<bool, Stop> {
        let found = self.ask_switches(context, digits, |answer| answer.exists || answer.more).await?;
        Ok(found.is_some_and(|(_, answer)| answer.more))
    }
    /// Dials a number that no extension has by the switch that has it; `None`: none has.
    pub(super) async fn switched(&self, context: &str, number: &str) -> Result<Option<Next>, Stop> {
        let Some((switch, _)) = self.ask_switches(context, number, |answer| answer.exists).await? else {
            // It was let in for what a switch might have had.
            if self.may_be_elsewhere(context) {
                self.chan.with(|c| c.last_cause = Cause::UNALLOCATED)?;
            }
            return Ok(None);
        };
        let (place, there) = switch.split_once('/').unwrap_or((&switch, ""));
        let at = if there.is_empty() { String::new() } else { format!("@{there}") };
        // The place may hold a password.
        let host = place.rsplit_once('@').map_or(place, |(_, host)| host);
        self.chan.log(Level::Verbose(3), "pbx", &format!("{number} is at {ENGINE}/{host}{at}"));
        match self.run_app("Dial", &format!("{ENGINE}/{place}/{number}{at}")).await {
            Some(Err(stop)) => Err(stop),
            Some(Ok(_)) => Ok(Some(self.fall_through().await)),
            None => Ok(None),
        }
    }
}
