//! Profiles of followme.conf: whom `FollowMe()` calls in turn to find somebody.

use core::time::Duration;
use std::collections::BTreeMap;

/// Numbers that are called at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Extensions of the profile's context.
    pub numbers: Vec<String>,
    /// How long they ring.
    pub timeout: Duration,
}

/// Prompts, by the names of sounds; an empty one is silent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompts {
    /// What is heard before the caller's recorded name.
    pub call_from: String,
    /// What is heard instead of it when there is none.
    pub no_recording: String,
    /// Which keys take and decline the call.
    pub options: String,
    /// What the caller hears before the first step.
    pub hold: String,
    /// What the caller hears before that, with option `s`.
    pub status: String,
    /// What the caller hears, with option `n`, when nobody was found.
    pub sorry: String,
    /// What is heard by who has taken the call, before the caller.
    pub connecting: String,
}

impl Default for Prompts {
    fn default() -> Self {
        let sound = |name: &str| format!("followme/{name}");
        Self {
            call_from: sound("call-from"),
            no_recording: sound("no-recording"),
            options: sound("options"),
            hold: sound("pls-hold-while-try"),
            status: sound("status"),
            sorry: sound("sorry"),
            connecting: String::new(),
        }
    }
}

/// How somebody is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// Class of music that the caller hears meanwhile.
    pub music: String,
    /// Context of the numbers.
    pub context: String,
    /// Whom to call, in turn.
    pub steps: Vec<Step>,
    /// Key that takes the call.
    pub take: char,
    /// Key that declines it.
    pub decline: char,
    /// How long a key is waited for once the prompts are over.
    pub key_timeout: Duration,
    /// Whether who answers is asked; else the first who answers has the call.
    pub asks: bool,
    /// What is heard.
    pub prompts: Prompts,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            music: "default".to_owned(),
            context: "default".to_owned(),
            steps: Vec::new(),
            take: '1',
            decline: '2',
            key_timeout: Duration::from_secs(5),
            asks: true,
            prompts: Prompts::default(),
        }
    }
}

/// Profiles by name.
pub type Profiles = BTreeMap<String, Profile>;
