//! Directory: colleagues by the letters of their names, typed on the keys of a phone.

use core::time::Duration;
use std::sync::Arc;

use base::Digit;
use call::voicemail::{Account, Greeting, Sound};
use call::{Heard, Level, Stop};
use dialplan::Options;

use crate::call_ctx::args;
use crate::flow::rows;
use crate::voicemail::Visit;
use crate::{AppRow, Call, Flow, Outcome, Run, pbx, say};

/// Letters that are asked for when nothing is said.
const LETTERS: usize = 3;
/// Most of them.
const LETTERS_MAX: usize = 16;
/// How long the first letter is waited for after the introduction, and each further key.
const FIRST_WAIT: Duration = Duration::from_secs(5);
const KEY_WAIT: Duration = Duration::from_secs(3);
/// How often the choice is explained to somebody who presses nothing.
const PATIENCE: u32 = 3;
/// Names of one menu: keys 1 to 8; 9 goes on.
const MENU: usize = 8;
/// Names that are read out for one set of letters; more would not be listened to.
const NAMES_MAX: usize = 256;
/// The introduction that voicemail.conf has when it says nothing of one.
const COMMON_INTRO: &str = "dir-intro";
const ANY_DIGIT: &str = "0123456789*#ABCD";
/// Option letters.
pub(crate) const OPTIONS: &str = "abceflmnps";

pub(crate) const ROWS: &[AppRow] = rows! {
    "Directory" "app_directory" Run::Story(|call, text| Box::pin(async move { directory(&call, &text).await })),
        "Lets the caller find a colleague by the letters of a name.",
        "Directory([vm-context[,dial-context[,options]]])",
        "Asks for the first letters of a name as they stand on the keys, reads the names of voicemail.conf that begin so, and\n\
         goes to the extension of the one that is chosen by '1'; '*' is the next name. '0' goes to extension o, '*' to a.\n\
         vm-context is that of the mailboxes (default), dial-context that of the extensions (the present one). A name is\n\
         played as its owner recorded it, else spelled. Mailboxes with hidefromdir are not found.\n\n\
         options:\n  \
         a  has no effect: voicemail.conf has no aliases of names here.\n  \
         b(n)  the letters are those of the first or the last name.\n  \
         c(file)  has no effect: names come from voicemail.conf.\n  \
         e  says the extension as well.\n  \
         f(n)  the letters are those of the first name.\n  \
         l(n)  those of the last name, as without any of the three. n: how many letters are asked for (3).\n  \
         m  says a menu of up to 8 names, chosen by 1 to 8; '9' says further ones.\n  \
         n  does not answer.\n  \
         p(n)  waits n milliseconds after the letters.\n  \
         s  goes nowhere: sets DIRECTORY_EXTEN.\n\
         Sets DIRECTORY_RESULT (OPERATOR ASSISTANT TIMEOUT HANGUP SELECTED USEREXIT FAILED); '#' while names are read is\n\
         USEREXIT. Plays directoryintro of voicemail.conf, or dir-welcome, dir-pls-enter, a digit, dir-first, dir-last or\n\
         dir-firstlast, and dir-usingkeypad; dir-instr, dir-multi1 to dir-multi9, dir-nomatch, dir-nomore.";
};

/// Which part of a name letters are compared with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    First,
    Last,
    Both,
}

struct Search<'a> {
    call: &'a Call,
    visit: Visit<'a>,
    accounts: Vec<Arc<Account>>,
    options: Options,
    part: Part,
    letters: usize,
    context: String,
    intro: String,
    /// No key leads the caller elsewhere.
    stays: bool,
}

/// What came of one search.
enum Found {
    /// The caller chose this extension.
    Chosen(String),
    /// Nobody, or nobody who was wanted: it begins anew.
    Nobody,
    /// It is over: the word for it, and what follows.
    Over(&'static str, Flow),
}

async fn directory(call: &Call, text: &str) -> Outcome {
    let search = Search::new(call, text);
    if !search.options.has('n') {
        call.answer_for_sound().await?;
    }
    match search.run().await {
        Ok((result, flow)) => {
            call.set("DIRECTORY_RESULT", result);
            Ok(flow)
        }
        Err(stop) => {
            call.set("DIRECTORY_RESULT", "HANGUP");
            Err(stop)
        }
    }
}

/// Lets a caller choose a mailbox of a context by name; `None` when none was chosen.
pub(crate) async fn choose(call: &Call, context: &str) -> Result<Option<String>, Stop> {
    let search = Search { stays: true, ..Search::new(call, context) };
    while let Some(first) = search.introduce().await? {
        match search.search(first).await? {
            Found::Chosen(mailbox) => return Ok(Some(mailbox)),
            Found::Nobody => {}
            Found::Over(..) => break,
        }
    }
    Ok(None)
}

impl<'a> Search<'a> {
    fn new(call: &'a Call, text: &str) -> Self {
        let parts = args::split(text);
        let options = Options::parse(args::nth(&parts, 2), OPTIONS);
        for letter in &options.unknown {
            call.log(Level::Warning, &format!("option {letter}: there is none"));
        }
        for letter in ['a', 'c'].into_iter().filter(|letter| options.has(*letter)) {
            call.log(
                Level::Warning,
                &format!("option {letter} has no effect: names come from voicemail.conf"),
            );
        }
        let (part, letter) = match () {
            () if options.has('b') => (Part::Both, 'b'),
            () if options.has('f') && options.has('l') => (Part::Both, 'f'),
            () if options.has('f') => (Part::First, 'f'),
            () => (Part::Last, 'l'),
        };
        let letters = options.arg(letter).and_then(|count| count.trim().parse().ok());
        let letters = letters.filter(|count| (1..=LETTERS_MAX).contains(count)).unwrap_or(LETTERS);
        let vm = call.chan.core(|core| core.settings.voicemail.clone());
        let wanted = args::nth(&parts, 0);
        let anywhere = wanted.is_empty() && vm.search_contexts;
        let wanted = if wanted.is_empty() { "default" } else { wanted };
        let listed = |account: &&Arc<Account>| {
            let is_there = anywhere || account.name.context() == wanted;
            is_there && !account.rules.hidefromdir && !account.full_name.trim().is_empty()
        };
        let mut accounts: Vec<_> = vm.accounts.values().filter(listed).cloned().collect();
        accounts.sort_by_cached_key(|account| {
            let name = account.full_name.to_lowercase();
            if part == Part::First { name } else { format!("{} {name}", last(&name)) }
        });
        let context = match args::nth(&parts, 1) {
            "" => call.context(),
            context => context.to_owned(),
        };
        let (visit, intro) = (Visit::new(call), vm.directory_intro.clone());
        Self { call, visit, accounts, options, part, letters, context, intro, stays: false }
    }
    async fn run(&self) -> Result<(&'static str, Flow), Stop> {
        loop {
            let Some(first) = self.introduce().await? else { return Ok(("TIMEOUT", Flow::Continue)) };
            match self.search(first).await? {
                Found::Nobody => {}
                Found::Over(result, flow) => return Ok((result, flow)),
                Found::Chosen(exten) if self.options.has('s') => {
                    self.call.set("DIRECTORY_EXTEN", &exten);
                    return Ok(("SELECTED", Flow::Continue));
                }
                Found::Chosen(exten) if self.leave_to(&exten) => return Ok(("SELECTED", Flow::Jumped)),
                Found::Chosen(exten) => {
                    let text = format!(
                        "there is no extension '{exten}' in context '{}': is it the right one for Directory?",
                        self.context
                    );
                    self.call.log(Level::Warning, &text);
                    return Ok(("FAILED", Flow::Hangup));
                }
            }
        }
    }
    fn leave_to(&self, exten: &str) -> bool {
        let is_there = !self.stays && self.call.exists(&self.context, exten);
        if is_there {
            self.call.stand_at(pbx::Place::find(self.call, &self.context, exten, 1));
        }
        is_there
    }
    /// Says what is to be done; the first key.
    async fn introduce(&self) -> Result<Option<Digit>, Stop> {
        let files = if self.intro == COMMON_INTRO {
            let part = match self.part {
                Part::First => "dir-first",
                Part::Last => "dir-last",
                Part::Both => "dir-firstlast",
            };
            let mut files = vec!["dir-welcome".to_owned(), "dir-pls-enter".to_owned()];
            files.extend(say::number_words(&self.call.chan, self.letters as i64).await?);
            files.extend([part.to_owned(), "dir-usingkeypad".to_owned()]);
            files
        } else {
            vec![self.intro.clone()]
        };
        self.say(files, FIRST_WAIT).await
    }
    /// Plays files and waits for a key.
    async fn say(&self, files: Vec<String>, wait: Duration) -> Result<Option<Digit>, Stop> {
        match say::play_all(self.call, files, ANY_DIGIT).await? {
            Some(digit) => Ok(Some(digit)),
            None => self.call.chan.digit(wait).await,
        }
    }
    async fn search(&self, first: Digit) -> Result<Found, Stop> {
        let mut typed = match first.to_char() {
            '0' => return Ok(self.go_out("o", "OPERATOR")),
            '*' => return Ok(self.go_out("a", "ASSISTANT")),
            '#' => return Ok(Found::Over("USEREXIT", Flow::Continue)),
            symbol => symbol.to_string(),
        };
        while typed.len() < self.letters {
            match self.call.chan.digit(KEY_WAIT).await?.map(Digit::to_char) {
                None | Some('#') => break,
                Some(symbol) => typed.push(symbol),
            }
        }
        let pause = self.options.arg('p').filter(|_| self.options.has('p'));
        if let Some(ms) = pause.and_then(|ms| ms.trim().parse().ok()) {
            let until = self.call.chan.now() + Duration::from_millis(ms);
            self.call.chan.wait_keeping(until, |_| false).await?;
        }
        let fits = |account: &&Arc<Account>| {
            let name = account.full_name.trim();
            let begins = |part: &str| keys(part).starts_with(&typed);
            match self.part {
                Part::First => begins(name),
                Part::Last => begins(last(name)),
                Part::Both => begins(name) || begins(last(name)),
            }
        };
        let found: Vec<_> = self.accounts.iter().filter(fits).take(NAMES_MAX).collect();
        if found.is_empty() {
            self.call.chan.play("dir-nomatch", "").await?;
            return Ok(Found::Nobody);
        }
        let chosen =
            if self.options.has('m') { self.menu(&found).await? } else { self.one_by_one(&found).await? };
        if let Found::Nobody = chosen {
            self.call.chan.play("dir-nomore", "").await?;
        }
        Ok(chosen)
    }
    /// The caller wants somebody who helps.
    fn go_out(&self, exten: &str, result: &'static str) -> Found {
        if self.leave_to(exten) {
            Found::Over(result, Flow::Jumped)
        } else {
            Found::Over(result, Flow::Continue)
        }
    }
    /// Reads one name after the other.
    async fn one_by_one(&self, found: &[&Arc<Account>]) -> Result<Found, Stop> {
        for account in found {
            let mut pressed = self.say_name(account).await?;
            for _ in 0..PATIENCE {
                let key = match pressed.take() {
                    Some(digit) => Some(digit),
                    None => self.say(vec!["dir-instr".to_owned()], KEY_WAIT).await?,
                };
                match key.map(Digit::to_char) {
                    Some('1') => return Ok(Found::Chosen(account.name.mailbox().to_owned())),
                    Some('*') => break,
                    Some('#') => return Ok(Found::Over("USEREXIT", Flow::Continue)),
                    Some('0') => return Ok(self.go_out("o", "OPERATOR")),
                    Some(_) | None => {}
                }
            }
        }
        Ok(Found::Nobody)
    }
    /// Reads names in groups.
    async fn menu(&self, found: &[&Arc<Account>]) -> Result<Found, Stop> {
        let groups = found.chunks(MENU).count();
        for (n, group) in found.chunks(MENU).enumerate() {
            let mut pressed = None;
            for (account, key) in group.iter().zip(1..) {
                pressed = say::play_all(self.call, vec![format!("dir-multi{key}")], ANY_DIGIT).await?;
                if pressed.is_none() {
                    pressed = self.say_name(account).await?;
                }
                if pressed.is_some() {
                    break;
                }
            }
            let more = if n + 1 < groups { vec!["dir-multi9".to_owned()] } else { Vec::new() };
            let key = match pressed {
                Some(digit) => Some(digit),
                None => self.say(more, KEY_WAIT).await?,
            };
            match key.map(Digit::to_char) {
                Some('#') => return Ok(Found::Over("USEREXIT", Flow::Continue)),
                Some('0') => return Ok(self.go_out("o", "OPERATOR")),
                Some(symbol) => {
                    let place = symbol.to_digit(10).and_then(|key| key.checked_sub(1));
                    if let Some(account) = place.and_then(|place| group.get(place as usize)) {
                        return Ok(Found::Chosen(account.name.mailbox().to_owned()));
                    }
                }
                None => {}
            }
        }
        Ok(Found::Nobody)
    }
    /// Says whom it is about; the key that ended it.
    async fn say_name(&self, account: &Arc<Account>) -> Result<Option<Digit>, Stop> {
        let pressed = match self.visit.hear(account, Sound::Greeting(Greeting::Name), ANY_DIGIT).await? {
            Some(Heard::Interrupted(digit, _)) => Some(digit),
            Some(_) => None,
            None => say::play_all(self.call, say::spelled(&account.full_name), ANY_DIGIT).await?,
        };
        if pressed.is_some() || !self.options.has('e') {
            return Ok(pressed);
        }
        let mut files = vec!["vm-extension".to_owned()];
        files.extend(say::spelled(account.name.mailbox()));
        say::play_all(self.call, files, ANY_DIGIT).await
    }
}

/// The last word of a name.
fn last(name: &str) -> &str {
    name.rsplit(char::is_whitespace).next().unwrap_or(name)
}

/// The keys on which the letters of a name stand (ITU-T E.161); what stands on none is passed over.
fn keys(name: &str) -> String {
    let key = |c: char| {
        Some(match c.to_ascii_uppercase() {
            'A'..='C' => '2',
            'D'..='F' => '3',
            'G'..='I' => '4',
            'J'..='L' => '5',
            'M'..='O' => '6',
            'P'..='S' => '7',
            'T'..='V' => '8',
            'W'..='Z' => '9',
            digit @ '0'..='9' => digit,
            _ => return None,
        })
    };
    name.chars().filter_map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e161_letters_stand_on_keys() {
        for (name, expected) in
            [("Smith", "76484"), ("quiz", "7849"), ("O'Neil Jr.", "6634557"), ("Ünal 3", "6253"), ("", "")]
        {
            assert_eq!(keys(name), expected, "{name}");
        }
        assert_eq!((last("Anna Maria Berg"), last("Cher")), ("Berg", "Cher"));
    }
}
