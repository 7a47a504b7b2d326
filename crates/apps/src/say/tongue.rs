//! Languages whose order of words is known, and genders.

/// A language that numbers, ordinals and dates are put into words of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Tongue {
    /// English, and every language that is not known.
    #[default]
    English,
    /// English with "and" behind hundreds.
    British,
    Danish,
    Dutch,
    French,
    German,
    Italian,
    Japanese,
    Mandarin,
    Polish,
    Portuguese,
    Russian,
    Spanish,
    Swedish,
}

impl Tongue {
    /// The language of a channel: `de_AT` is `de`, `en_GB` its own.
    pub(crate) fn of(language: &str) -> Self {
        let base = language.split(['_', '-']).next().unwrap_or_default();
        match base.to_ascii_lowercase().as_str() {
            "da" => Self::Danish,
            "de" => Self::German,
            "es" => Self::Spanish,
            "fr" => Self::French,
            "it" => Self::Italian,
            "ja" => Self::Japanese,
            "nl" => Self::Dutch,
            "pl" => Self::Polish,
            "pt" => Self::Portuguese,
            "ru" => Self::Russian,
            // `se` is what the field wrote before it knew ISO 639.
            "sv" | "se" => Self::Swedish,
            "zh" | "tw" | "cn" => Self::Mandarin,
            _ if language.to_ascii_lowercase().starts_with("en_gb") => Self::British,
            _ => Self::English,
        }
    }
    /// Whether its words stand in English order.
    pub(crate) fn is_english(self) -> bool {
        matches!(self, Self::English | Self::British)
    }
}

/// The gender of what is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Gender {
    /// None was given: what one counts with.
    #[default]
    Plain,
    Masculine,
    Feminine,
    /// Of languages that have one gender for both.
    Common,
    Neuter,
}

impl Gender {
    /// Its letter in a dialplan; other text is none.
    pub(crate) fn of(text: &str) -> Self {
        match text.trim().chars().next().map(|letter| letter.to_ascii_lowercase()) {
            Some('m') => Self::Masculine,
            Some('f') => Self::Feminine,
            Some('c') => Self::Common,
            Some('n') => Self::Neuter,
            _ => Self::Plain,
        }
    }
}
