//! `queues.conf` and `queuerules.conf`: queues, their members, and penalties over time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use conf::{File, Finding, Findings, Level, Section, Variable};
use queue::{
    Absence, Announcing, Autopause, Config, General, Handling, NewMember, PenaltyChange, QueueConfig,
    Settings, SkillChange, Skills, Sounds, Strategy, TellHold, TellPosition,
};

use super::kind::{Choice, Int, Kind, Seconds, Text, YesNo, choice};
use super::realtime::is_row;
use super::{options, read_object, read_settings};

impl Choice for Strategy {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("ringall", Self::RingAll),
        ("leastrecent", Self::LeastRecent),
        ("fewestcalls", Self::FewestCalls),
        ("random", Self::Random),
        ("rrmemory", Self::RoundRobinMemory),
        ("rrordered", Self::RoundRobinOrdered),
        ("linear", Self::Linear),
        ("wrandom", Self::WeightedRandom),
        ("roundrobin", Self::RoundRobinMemory),
    ];
}
impl Choice for Autopause {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("no", Self::No),
        ("yes", Self::Yes),
        ("all", Self::All),
        ("off", Self::No),
        ("false", Self::No),
        ("0", Self::No),
        ("on", Self::Yes),
        ("true", Self::Yes),
        ("1", Self::Yes),
    ];
}
impl Choice for TellPosition {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("yes", Self::Yes),
        ("no", Self::No),
        ("limit", Self::Limit),
        ("more", Self::More),
        ("on", Self::Yes),
        ("true", Self::Yes),
        ("off", Self::No),
        ("false", Self::No),
    ];
}
impl Choice for TellHold {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("no", Self::No),
        ("yes", Self::Yes),
        ("once", Self::Once),
        ("off", Self::No),
        ("false", Self::No),
        ("on", Self::Yes),
        ("true", Self::Yes),
    ];
}
choice! {
    /// `timeoutpriority=`: what ends the ringing of members.
    TimeoutPriority {
        App | "app" "The caller's own time, too.";
        Conf | "conf" "`timeout` of the queue only.";
    }
}
choice! {
    /// `monitor-type=`: what records conversations.
    MonitorType {
        Monitor | "monitor" | "" "Monitor().";
        MixMonitor | "mixmonitor" "MixMonitor().";
    }
}

/// Conditions under which members count as absent; `JOINS`: for joinempty.
pub struct Conditions<const JOINS: bool>;
impl<const JOINS: bool> Kind for Conditions<JOINS> {
    type Value = Absence;
    fn describe() -> String {
        "yes, no, strict, loose, or a list of paused, penalty, inuse, ringing, unavailable, invalid, unknown, wrapup, skill"
            .into()
    }
    fn set(value: &mut Absence, variable: &Variable, _: &mut Findings) -> Result<(), Finding> {
        *value = Absence::parse(&variable.value, JOINS).map_err(|word| {
            let message =
                format!("{}={} holds `{word}`, which is no condition", variable.name, variable.value);
            variable.finding(
                Level::Error,
                message,
                "write yes, no, strict, loose, or conditions parted by commas",
            )
        })?;
        Ok(())
    }
}

options! {
    /// `[general]` of `queues.conf`.
    QueuesGeneral, "queues.conf", "general", IsIgnored;
    persistentmembers: YesNo = "no", "Dynamic members are kept in the database over a restart.";
    autofill: YesNo = "yes", "autofill of queues that say nothing of it.";
    monitor_type as "monitor-type": MonitorType = "monitor", "monitor-type of queues that say nothing of it.";
    shared_lastcall: YesNo = "no", "A call of one queue begins the wrap-up time of its member in all queues.";
    force_longest_waiting_caller: YesNo = "no",
        "A member of several queues of one weight gets the caller who has waited longest.";
    log_unpause_on_reason_change: YesNo = "no",
        "A member who is paused for another reason is written to the log as unpaused before.";
    log_restricted_caller_id as "log-restricted-caller-id": YesNo = "yes",
        "log-restricted-caller-id of queues that say nothing of it.";
    log_caller_id_name as "log-caller-id-name": YesNo = "no",
        "ENTERQUEUE in the log has the caller's name as its fourth field.";
    updatecdr: YesNo = "no", "Call records name the member, in place of its channel.";
    @recognised {
        "keepstats" "*" Ignored "figures are kept over a reload";
        "negative_penalty_invalid" "*" Ignored "there are no negative penalties";
        "log_membername_as_agent" "*" Ignored "the log has the name of the member always";
    }
}

options! {
    /// A queue.
    QueueSection, "queues.conf", "queue", IsIgnored;
    strategy: Strategy = "ringall", "Who is called next.";
    timeout: Seconds<0, 86_400> = "15", "How long members ring; 0: until they answer.";
    retry: Seconds<0, 86_400> = "5", "Pause between two attempts for a caller; at least 1.";
    timeoutrestart: YesNo = "no", "A member who is busy begins the time of the attempt anew.";
    timeoutpriority: TimeoutPriority = "app", "What ends the ringing of members.";
    autofill: YesNo = "yes", "Several callers are served at once.";
    weight: Int<0, 1_000_000> = "0", "Of queues with a common member the heavier one gets it first.";
    wrapuptime: Seconds<0, 86_400> = "0", "How long a member is left alone after a call.";
    maxlen: Int<0, 10_000> = "0", "Most callers who wait; 0: no limit.";
    ringinuse: YesNo = "yes", "Members are called who are on a call.";
    autopause: Autopause = "no", "A member who does not answer is paused, here or in all of its queues.";
    autopausedelay: Seconds<0, 86_400> = "0", "Not so soon after its last call.";
    autopausebusy: YesNo = "no", "Who is busy, too.";
    autopauseunavail: YesNo = "no", "Who cannot be reached, too.";
    joinempty: Conditions<true> = "yes", "Callers may enter though no member is there; else, what makes members absent.";
    leavewhenempty: Conditions<false> = "no", "Callers leave when no member is there any more; likewise.";
    penaltymemberslimit: Int<0, 10_000> = "0", "With no more members than this, penalties do not count.";
    servicelevel: Seconds<0, 86_400> = "0", "Who waits no longer is served well, in figures.";
    defaultrule: Text = "", "Rule of queuerules.conf for callers whose Queue() names none.";
    log_restricted_caller_id as "log-restricted-caller-id": YesNo = "yes",
        "The log also has numbers and names of callers who hide theirs.";
    musicclass also "musiconhold": Text = "", "Music for those who wait; empty: that of the channel.";
    context: Text = "", "Context of one-digit extensions by which callers leave; empty: digits do nothing.";
    announce: Text = "", "Sound that the member hears before the caller.";
    reportholdtime: YesNo = "no", "The member hears how long the caller has waited.";
    memberdelay: Seconds<0, 3600> = "0", "Silence between the member's answer and the caller.";
    membermacro: Text = "", "Macro that runs on the member's channel before membergosub.";
    membergosub: Text = "", "Routine that runs on the member's channel before the conversation.";
    setinterfacevar: YesNo = "no", "MEMBERINTERFACE, MEMBERNAME, MEMBERCALLS … are set before the conversation.";
    setqueuevar: YesNo = "no", "QUEUENAME, QUEUEMAX, QUEUESTRATEGY … are set before the conversation and at the end.";
    setqueueentryvar: YesNo = "no", "QEHOLDTIME and QEORIGINALPOS are set before the conversation.";
    monitor_format as "monitor-format": Text = "", "Conversations are recorded in this format; empty: they are not.";
    monitor_type as "monitor-type": MonitorType = "monitor", "What records them.";
    announce_frequency as "announce-frequency": Seconds<0, 86_400> = "0",
        "Time between two announcements of the place; 0: none.";
    min_announce_frequency as "min-announce-frequency": Seconds<0, 86_400> = "15",
        "At least this lies between two, though the place has changed.";
    announce_to_first_user as "announce-to-first-user": YesNo = "no",
        "Callers hear announcements also while a member is called for them.";
    announce_position as "announce-position": TellPosition = "yes",
        "Callers hear their place: always, never, up to the limit, or beyond it that there are more.";
    announce_position_limit as "announce-position-limit": Int<0, 10_000> = "5", "That limit.";
    announce_position_only_up as "announce-position-only-up": YesNo = "no",
        "Only a place that is no worse than the one said before.";
    announce_holdtime as "announce-holdtime": TellHold = "no", "Callers hear how long it may take.";
    announce_round_seconds as "announce-round-seconds": Int<0, 30> = "0",
        "Seconds are said, in steps of this; 0: whole minutes only.";
    periodic_announce as "periodic-announce": Text = "queue-periodic-announce",
        "Sounds parted by commas, one each time.";
    periodic_announce_frequency as "periodic-announce-frequency": Seconds<0, 86_400> = "0",
        "Time between two of them; 0: none.";
    periodic_announce_startdelay as "periodic-announce-startdelay": Seconds<0, 86_400> = "0",
        "Time before the first; without the line, as between two.";
    random_periodic_announce as "random-periodic-announce": YesNo = "no", "Any of them, not in turn.";
    relative_periodic_announce as "relative-periodic-announce": YesNo = "no",
        "The time counts from the end of the last one.";
    queue_youarenext as "queue-youarenext": Text = "queue-youarenext", "Sound: first in line.";
    queue_thereare as "queue-thereare": Text = "queue-thereare", "Sound: there are.";
    queue_callswaiting as "queue-callswaiting": Text = "queue-callswaiting", "Sound: calls waiting.";
    queue_quantity1 as "queue-quantity1": Text = "queue-quantity1", "Sound: there are more than.";
    queue_quantity2 as "queue-quantity2": Text = "queue-quantity2", "Sound: callers waiting.";
    queue_holdtime as "queue-holdtime": Text = "queue-holdtime", "Sound: the estimated hold time is.";
    queue_minute as "queue-minute": Text = "queue-minute", "Sound: minute.";
    queue_minutes as "queue-minutes": Text = "queue-minutes", "Sound: minutes.";
    queue_seconds as "queue-seconds": Text = "queue-seconds", "Sound: seconds.";
    queue_thankyou as "queue-thankyou": Text = "queue-thankyou", "Sound: thank you.";
    queue_callerannounce as "queue-callerannounce": Text = "",
        "Sound: what the caller hears before a member; empty: nothing.";
    queue_reporthold as "queue-reporthold": Text = "queue-reporthold", "Sound: hold time, for members.";
    @recognised {
        "monitor-join" "*" Ignored "MixMonitor makes one file, Monitor() is told to do so";
        "eventwhencalled" "*" Ignored "events are sent always";
        "eventmemberstatus" "*" Ignored "events are sent always";
        "queue-lessthan" "*" Ignored "Asterisk does not say it any more";
    }
}

/// Both files as the queues take them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Queues {
    /// Shared with whoever runs them.
    pub config: Arc<Config>,
    /// `[general]`.
    pub general: QueuesGeneral,
}

impl Queues {
    /// Reads the files, as far as there are any. `members` are rows of databases: the queue's name, and the member.
    pub fn read<'a>(
        queues: Option<&File>,
        rules: Option<&File>,
        members: impl Iterator<Item = (&'a str, NewMember)>,
        findings: &mut Findings,
    ) -> Self {
        let mut config = Config::default();
        let general = queues.map(|file| read_queues(file, &mut config, findings)).unwrap_or_default();
        add_members(&mut config, members);
        if let Some(file) = rules {
            for section in file.objects().filter(|section| !is_general(section)) {
                rule(section, &mut config, findings);
            }
        }
        if let Some(file) = queues {
            tell_missing_rules(file, &config, findings);
        }
        Self { config: Arc::new(config), general }
    }
}

/// Says which queues have a rule that does not exist.
fn tell_missing_rules(file: &File, config: &Config, findings: &mut Findings) {
    let known: BTreeSet<String> = config.rules.iter().map(|(rule, _)| rule.to_ascii_lowercase()).collect();
    let rule_of = |queue: &QueueConfig| queue.settings.default_rule.clone();
    let lacks = |rule: &String| !rule.is_empty() && !known.contains(&rule.to_ascii_lowercase());
    let queues = config.queues.iter().map(|queue| (queue.name.as_str(), rule_of(queue)));
    let mut lacking: BTreeMap<&str, String> = queues.filter(|(_, rule)| lacks(rule)).collect();
    for section in file.objects() {
        let Some(rule) = lacking.remove(&*section.name) else { continue };
        let message = format!("queue '{}' has the rule '{rule}', which does not exist", section.name);
        findings.warning(&section.place, message, "add it to queuerules.conf");
    }
}

fn is_general(section: &Section) -> bool {
    section.name.eq_ignore_ascii_case("general")
}

/// Members that are rows, of the queues that there are.
fn add_members<'a>(config: &mut Config, members: impl Iterator<Item = (&'a str, NewMember)>) {
    let places: BTreeMap<String, usize> =
        config.queues.iter().enumerate().map(|(at, queue)| (queue.name.to_ascii_lowercase(), at)).collect();
    for (name, member) in members {
        let queue = places.get(&name.to_ascii_lowercase()).and_then(|at| config.queues.get_mut(*at));
        queue.into_iter().for_each(|queue| queue.members.push(member.clone()));
    }
}

fn read_queues(file: &File, config: &mut Config, findings: &mut Findings) -> QueuesGeneral {
    let general: QueuesGeneral = read_settings(file, "general", findings);
    config.general = General {
        persistent_members: general.persistentmembers,
        shared_last_call: general.shared_lastcall,
        longest_waiting_first: general.force_longest_waiting_caller,
        log_unpause_on_reason_change: general.log_unpause_on_reason_change,
        log_caller_name: general.log_caller_id_name,
        update_cdr: general.updatecdr,
    };
    let sections = file.objects().filter(|section| !is_general(section));
    config.queues.extend(sections.filter_map(|section| queue_of(section, &general, findings)));
    general
}

/// A queue of a section; `None` for one that says something that cannot be.
pub(crate) fn queue_of(
    section: &Section,
    general: &QueuesGeneral,
    findings: &mut Findings,
) -> Option<QueueConfig> {
    let mut members = Vec::new();
    let read = read_object::<QueueSection>(section, findings, &mut |_, variable, findings| {
        let is_member = variable.is("member");
        if is_member {
            members.extend(member(variable, findings));
        }
        is_member
    });
    let settings = settings(&read?, general);
    Some(QueueConfig { name: section.name.to_string(), settings, members, is_row: is_row(&section.place) })
}

/// `member => interface[,penalty[,name[,state interface[,ringinuse[,wrapuptime[,paused[,skills]]]]]]]`.
fn member(variable: &Variable, findings: &mut Findings) -> Option<NewMember> {
    let parts = dialplan::split_args(&variable.value);
    let part = |index: usize| parts.get(index).map_or("", |part| part.trim());
    let mut number = |index: usize, what: &str| match part(index) {
        "" => None,
        text => {
            let parsed = text.parse::<u32>().ok();
            if parsed.is_none() {
                let message =
                    format!("member={} has the {what} '{text}', which is no number", variable.value);
                findings.push(variable.finding(Level::Warning, message, "write a whole number from 0 on"));
            }
            parsed
        }
    };
    let (penalty, wrapup) = (number(1, "penalty").unwrap_or(0), number(5, "wrap-up time"));
    let skills = Skills::parse(part(7)).unwrap_or_else(|wrong| {
        let message = format!("member={} has the skill '{wrong}', which is none", variable.value);
        findings.push(variable.finding(Level::Warning, message, "write skills as german=3&sales"));
        Skills::default()
    });
    let interface = part(0).to_owned();
    if interface.is_empty() {
        findings.push(variable.finding(
            Level::Warning,
            "a member has no interface",
            "write member=PJSIP/6001",
        ));
        return None;
    }
    Some(NewMember {
        interface,
        penalty,
        name: part(2).to_owned(),
        state_interface: part(3).to_owned(),
        ring_in_use: conf::boolean(part(4)),
        wrapup: wrapup.filter(|seconds| *seconds > 0).map(|seconds| Duration::from_secs(seconds.into())),
        paused: conf::boolean(part(6)) == Some(true),
        skills,
        ..NewMember::default()
    })
}

fn settings(queue: &QueueSection, general: &QueuesGeneral) -> Settings {
    let own = |name: &str| queue.origin.has(name);
    let log_restricted = match own("log-restricted-caller-id") {
        true => queue.log_restricted_caller_id,
        false => general.log_restricted_caller_id,
    };
    let monitor = if own("monitor-type") { queue.monitor_type } else { general.monitor_type };
    Settings {
        strategy: queue.strategy,
        timeout: queue.timeout,
        retry: queue.retry,
        timeout_restart: queue.timeoutrestart,
        app_timeout_first: queue.timeoutpriority == TimeoutPriority::App,
        autofill: if own("autofill") { queue.autofill } else { general.autofill },
        weight: queue.weight,
        wrapup: queue.wrapuptime,
        max_length: queue.maxlen,
        ring_in_use: queue.ringinuse,
        autopause: queue.autopause,
        autopause_delay: queue.autopausedelay,
        autopause_busy: queue.autopausebusy,
        autopause_unavailable: queue.autopauseunavail,
        join_empty: queue.joinempty,
        leave_when_empty: queue.leavewhenempty,
        penalty_members_limit: queue.penaltymemberslimit,
        service_level: queue.servicelevel,
        default_rule: queue.defaultrule.clone(),
        log_restricted,
        announcing: announcing(queue),
        handling: Handling {
            music_class: queue.musicclass.clone(),
            context: queue.context.clone(),
            announce: queue.announce.clone(),
            report_hold: queue.reportholdtime,
            member_delay: queue.memberdelay,
            member_gosub: queue.membergosub.clone(),
            member_macro: queue.membermacro.clone(),
            caller_announce: queue.queue_callerannounce.clone(),
            set_interface_var: queue.setinterfacevar,
            set_queue_var: queue.setqueuevar,
            set_entry_var: queue.setqueueentryvar,
            monitor_format: queue.monitor_format.clone(),
            mix_monitor: monitor == MonitorType::MixMonitor,
        },
    }
}

fn announcing(queue: &QueueSection) -> Announcing {
    let names = queue.periodic_announce.split(',').map(str::trim).filter(|name| !name.is_empty());
    // Most queues say what the field says, and ten thousand of them need not say it each for itself.
    static FIELD: LazyLock<Sounds> = LazyLock::new(Sounds::default);
    let sound = |own: &String, field: fn(&Sounds) -> &Arc<str>| -> Arc<str> {
        let field = field(&FIELD);
        if **field == **own { field.clone() } else { own.as_str().into() }
    };
    Announcing {
        every: queue.announce_frequency,
        least: queue.min_announce_frequency,
        to_first: queue.announce_to_first_user,
        position: queue.announce_position,
        position_limit: queue.announce_position_limit,
        only_up: queue.announce_position_only_up,
        hold: queue.announce_holdtime,
        round_seconds: queue.announce_round_seconds,
        periodic: names.map(Into::into).collect(),
        periodic_every: queue.periodic_announce_frequency,
        periodic_first: queue
            .origin
            .has("periodic-announce-startdelay")
            .then_some(queue.periodic_announce_startdelay),
        periodic_random: queue.random_periodic_announce,
        periodic_relative: queue.relative_periodic_announce,
        sounds: Sounds {
            you_are_next: sound(&queue.queue_youarenext, |field| &field.you_are_next),
            there_are: sound(&queue.queue_thereare, |field| &field.there_are),
            calls_waiting: sound(&queue.queue_callswaiting, |field| &field.calls_waiting),
            quantity_before: sound(&queue.queue_quantity1, |field| &field.quantity_before),
            quantity_after: sound(&queue.queue_quantity2, |field| &field.quantity_after),
            hold_time: sound(&queue.queue_holdtime, |field| &field.hold_time),
            minute: sound(&queue.queue_minute, |field| &field.minute),
            minutes: sound(&queue.queue_minutes, |field| &field.minutes),
            seconds: sound(&queue.queue_seconds, |field| &field.seconds),
            thank_you: sound(&queue.queue_thankyou, |field| &field.thank_you),
            report_hold: sound(&queue.queue_reporthold, |field| &field.report_hold),
        },
    }
}

/// One rule: its changes in the order of time.
fn rule(section: &Section, config: &mut Config, findings: &mut Findings) {
    let (mut changes, mut skills) = (Vec::new(), Vec::new());
    for variable in &section.variables {
        let read = if variable.is("penaltychange") {
            PenaltyChange::parse(&variable.value).map(|change| changes.push(change))
        } else if variable.is("skillchange") {
            SkillChange::parse(&variable.value).map(|change| skills.push(change))
        } else {
            None
        };
        if read.is_none() {
            let message = format!("{}={} is no change of penalties or skills", variable.name, variable.value);
            let remedy = "write penaltychange => 30,+3,1 or skillchange => 30,german=-1";
            findings.push(variable.finding(Level::Warning, message, remedy));
        }
    }
    changes.sort_by_key(|change| change.after);
    skills.sort_by_key(|change: &SkillChange| change.after);
    config.rules.push((section.name.to_string(), changes));
    if !skills.is_empty() {
        config.skill_rules.push((section.name.to_string(), skills));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(queues: &str, rules: &str) -> (Config, Vec<String>) {
        let mut findings = Findings::new();
        let source = conf::Memory::new().with("queues.conf", queues).with("queuerules.conf", rules);
        let mut load = |name| conf::load(&source, name, conf::Options::default(), &mut findings).unwrap();
        let (queues, rules) = (load("queues.conf"), load("queuerules.conf"));
        let read = Queues::read(Some(&queues), Some(&rules), std::iter::empty(), &mut findings);
        let said = findings.iter().map(|finding| finding.message.clone()).collect();
        (Arc::unwrap_or_clone(read.config), said)
    }

    #[test]
    fn a_queue_of_which_nothing_is_said_is_as_the_field_has_it() {
        let (config, said) = read("[general]\n[q]\n", "");
        assert_eq!(said, [""; 0]);
        let expected = QueueConfig { name: "q".into(), ..QueueConfig::default() };
        assert_eq!(config, Config { queues: vec![expected], ..Config::default() });
    }

    #[test]
    fn every_kind_of_line_is_taken() {
        let (config, said) = read(
            "[general]\npersistentmembers=yes\nautofill=no\nmonitor-type=MixMonitor\nshared_lastcall=yes\n\
             log-restricted-caller-id=no\nlog-caller-id-name=yes\nupdatecdr=yes\n\
             [base](!)\nstrategy=rrmemory\nmember=PJSIP/1\n\
             [sales](base)\ntimeout=20\nretry=3\ntimeoutrestart=yes\ntimeoutpriority=conf\nweight=2\nwrapuptime=10\n\
             maxlen=7\nringinuse=no\nautopause=all\nautopausedelay=60\nautopausebusy=yes\njoinempty=paused,inuse\n\
             leavewhenempty=strict\nservicelevel=30\ndefaultrule=wider\nmusiconhold=jazz\ncontext=out\n\
             announce-frequency=30\nannounce-position=more\nannounce-holdtime=once\nperiodic-announce=one, two\n\
             periodic-announce-frequency=60\nqueue-thankyou=thanks\nmonitor-format=wav\n\
             member => Local/2@agents/n,3,\"Bea, front desk\",hint:2@agents,yes,15,1,German=3&sales\n\
             [serial]\nautofill=yes\nmonitor-type=monitor\nlog-restricted-caller-id=yes\n",
            "[wider]\npenaltychange => 60,+2\nskillchange => 40,german=-1\npenaltychange => 30,5,1\n",
        );
        assert_eq!(said, [""; 0]);
        assert!(config.general.persistent_members && config.general.shared_last_call);
        assert!(config.general.log_caller_name && config.general.update_cdr);
        let [sales, serial] = config.queues.as_slice() else { panic!("{config:?}") };
        let own = &sales.settings;
        assert_eq!(
            (own.strategy, own.timeout.as_secs(), own.retry.as_secs()),
            (Strategy::RoundRobinMemory, 20, 3)
        );
        assert!(own.timeout_restart && !own.app_timeout_first && !own.autofill && !own.ring_in_use);
        assert_eq!((own.weight, own.wrapup.as_secs(), own.max_length), (2, 10, 7));
        assert_eq!((own.autopause, own.autopause_delay.as_secs()), (Autopause::All, 60));
        assert!(own.autopause_busy && !own.autopause_unavailable);
        assert_eq!(own.join_empty, Absence { paused: true, in_use: true, ..Absence::default() });
        assert_eq!(own.leave_when_empty, Absence::STRICT);
        assert_eq!((own.default_rule.as_str(), own.service_level.as_secs()), ("wider", 30));
        let handling = &own.handling;
        assert_eq!((handling.music_class.as_str(), handling.context.as_str()), ("jazz", "out"));
        assert!(handling.mix_monitor && handling.monitor_format == "wav");
        let said = &own.announcing;
        assert_eq!(
            (said.position, said.hold, said.every.as_secs()),
            (TellPosition::More, TellHold::Once, 30)
        );
        assert_eq!(said.periodic, ["one".into(), "two".into()]);
        assert_eq!((&*said.sounds.thank_you, &*said.sounds.there_are), ("thanks", "queue-thereare"));
        let expected = [
            NewMember { interface: "PJSIP/1".into(), ..NewMember::default() },
            NewMember {
                interface: "Local/2@agents/n".into(),
                name: "Bea, front desk".into(),
                state_interface: "hint:2@agents".into(),
                penalty: 3,
                paused: true,
                ring_in_use: Some(true),
                wrapup: Some(Duration::from_secs(15)),
                skills: Skills::parse("german=3&sales=1").unwrap(),
                ..NewMember::default()
            },
        ];
        assert_eq!(sales.members, expected);
        assert!(!own.log_restricted && serial.settings.log_restricted);
        assert!(serial.settings.autofill && !serial.settings.handling.mix_monitor);
        let seconds: Vec<u64> = config.rules[0].1.iter().map(|change| change.after.as_secs()).collect();
        assert_eq!((config.rules[0].0.as_str(), seconds), ("wider", vec![30, 60]));
        let [(name, changes)] = config.skill_rules.as_slice() else { panic!("{:?}", config.skill_rules) };
        assert_eq!((name.as_str(), changes[0].to_string().as_str()), ("wider", "german=-1"));
    }

    #[test]
    fn what_cannot_be_is_said_and_the_rest_holds() {
        let (config, said) = read(
            "[q]\njoinempty=asleep\nstrategy=best\nmember=PJSIP/1,heavy,,,,,,very good\nmember=\ndefaultrule=none\ntimout=3\n",
            "[r]\npenaltychange => 5\nskillchange => 5\nother=1\n",
        );
        for words in [
            "`asleep`",
            "strategy=best",
            "penalty 'heavy'",
            "skill 'very good'",
            "no interface",
            "rule 'none'",
            "`timout`",
            "penaltychange=5",
            "skillchange=5",
            "other=1",
        ] {
            assert!(said.iter().any(|line| line.contains(words)), "{words}: {said:?}");
        }
        let settings = Settings { default_rule: "none".into(), ..Settings::default() };
        assert_eq!((config.queues[0].settings.clone(), config.queues[0].members.len()), (settings, 1));
    }

    #[test]
    fn forty_thousand_queues_are_read_and_taken() {
        use std::fmt::Write as _;
        let mut text = String::new();
        for number in 0..40_000 {
            writeln!(text, "[q{number}]\nstrategy=rrmemory\nmember=PJSIP/{number}").unwrap();
            if number < 35_000 {
                writeln!(text, "member=PJSIP/{}", number + 1).unwrap();
            }
        }
        let (config, said) = read(&text, "");
        assert_eq!(said, [""; 0]);
        let mut queues = queue::Queues::new(1);
        queues.configure(&config, queue::Now::default(), &mut Vec::new());
        assert_eq!(queues.iter().map(|queue| queue.members().len()).sum::<usize>(), 75_000);
    }
}
