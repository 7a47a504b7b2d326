//! Questions of a call to what is outside that have one answer.

use core::time::Duration;

use base::{Rows, RowsAsk, RowsWant};
use call::{LinkNews, LinkWant, Stop};

use crate::Call;

/// How much longer than it may take an answer is waited for: whoever asks has its own bound, and says why nothing came.
const GRACE: Duration = Duration::from_secs(2);
/// What is told when nobody says why.
const LATE: &str = "nothing came in time";

/// What came of a question; the error says why nothing did.
pub(crate) type Came<T> = Result<T, String>;

impl Call {
    /// Asks, waits for the answer, and lets go. With `after_end`, and once the call has ended, it is waited for all the same.
    pub(crate) async fn ask_link(
        &self,
        want: LinkWant,
        within: Duration,
        after_end: bool,
    ) -> Result<Came<LinkNews>, Stop> {
        let deadline = self.chan.now() + within + GRACE;
        let link = match self.chan.core(|core| core.services.links.open(want)) {
            Ok(link) => link,
            Err(why) => return Ok(Err(why)),
        };
        let news = self.chan.link_news(link, Some(deadline));
        let news = match after_end || self.run.ended.get() {
            true => Ok(news.await),
            false => self.chan.while_up(news).await,
        };
        self.chan.core(|core| core.close_link(link));
        Ok(match news? {
            Some(LinkNews::Failed { why, .. }) => Err(why),
            Some(news) => Ok(news),
            None => Err(LATE.to_owned()),
        })
    }
    /// Asks a database.
    pub(crate) async fn ask_database(&self, want: RowsWant, after_end: bool) -> Result<Came<Rows>, Stop> {
        let within = want.within;
        let came = self.ask_link(LinkWant::Rows(Box::new(want)), within, after_end).await?;
        Ok(came.and_then(|news| match news {
            LinkNews::Rows(rows) => Ok(rows),
            _ => Err(LATE.to_owned()),
        }))
    }
}

/// A question as most are: its answer is not kept.
pub(crate) fn want(ask: RowsAsk, rows_max: usize, within: Duration) -> RowsWant {
    RowsWant { ask, rows_max, within, serves_last: false }
}
