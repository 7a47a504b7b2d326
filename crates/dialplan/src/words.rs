//! Names of days and months in the languages of locales, for dates that somebody reads.

/// The names that dates are written with, Sunday and January first.
#[derive(Debug, PartialEq, Eq)]
pub struct Words {
    /// Language (ISO 639-1), and others of the same words.
    languages: &'static [&'static str],
    /// Days.
    pub(crate) days: [&'static str; 7],
    /// Days, short.
    pub(crate) short_days: [&'static str; 7],
    /// Months, as they stand behind a day.
    pub(crate) months: [&'static str; 12],
    /// Months, short.
    pub(crate) short_months: [&'static str; 12],
}

impl Words {
    /// Those of a locale (`de`, `de_DE`, `de_DE.UTF-8`); empty, `C` and `POSIX` are English. `None`: they are not known.
    pub fn of(locale: &str) -> Option<&'static Self> {
        let locale = locale.trim();
        if locale.is_empty() || locale.eq_ignore_ascii_case("C") || locale.eq_ignore_ascii_case("POSIX") {
            return Some(&ENGLISH);
        }
        let language = locale.split(['_', '-', '.', '@']).next().unwrap_or_default();
        let speaks = |words: &&Self| words.languages.iter().any(|known| known.eq_ignore_ascii_case(language));
        [&ENGLISH].into_iter().chain(OTHERS).find(speaks)
    }
    /// Languages of which the words are known.
    pub fn languages() -> impl Iterator<Item = &'static str> {
        [&ENGLISH].into_iter().chain(OTHERS).flat_map(|words| words.languages.iter().copied())
    }
}

/// Those of the C locale.
pub static ENGLISH: Words = Words {
    languages: &["en"],
    days: ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"],
    short_days: ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"],
    months: [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ],
    short_months: ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"],
};

/// One language: days, short days, months, short months, each a line of words.
macro_rules! words {
    ($($languages:expr, [$($day:literal)*], [$($short_day:literal)*], [$($month:literal)*], [$($short_month:literal)*];)*) => {
        static OTHERS: &[Words] = &[$(Words {
            languages: &$languages,
            days: [$($day,)*],
            short_days: [$($short_day,)*],
            months: [$($month,)*],
            short_months: [$($short_month,)*],
        },)*];
    };
}

words! {
    ["de"],
        ["Sonntag" "Montag" "Dienstag" "Mittwoch" "Donnerstag" "Freitag" "Samstag"],
        ["So" "Mo" "Di" "Mi" "Do" "Fr" "Sa"],
        ["Januar" "Februar" "März" "April" "Mai" "Juni" "Juli" "August" "September" "Oktober" "November" "Dezember"],
        ["Jan" "Feb" "Mär" "Apr" "Mai" "Jun" "Jul" "Aug" "Sep" "Okt" "Nov" "Dez"];
    ["fr"],
        ["dimanche" "lundi" "mardi" "mercredi" "jeudi" "vendredi" "samedi"],
        ["dim." "lun." "mar." "mer." "jeu." "ven." "sam."],
        ["janvier" "février" "mars" "avril" "mai" "juin" "juillet" "août" "septembre" "octobre" "novembre" "décembre"],
        ["janv." "févr." "mars" "avril" "mai" "juin" "juil." "août" "sept." "oct." "nov." "déc."];
    ["es"],
        ["domingo" "lunes" "martes" "miércoles" "jueves" "viernes" "sábado"],
        ["dom" "lun" "mar" "mié" "jue" "vie" "sáb"],
        ["enero" "febrero" "marzo" "abril" "mayo" "junio" "julio" "agosto" "septiembre" "octubre" "noviembre" "diciembre"],
        ["ene" "feb" "mar" "abr" "may" "jun" "jul" "ago" "sep" "oct" "nov" "dic"];
    ["it"],
        ["domenica" "lunedì" "martedì" "mercoledì" "giovedì" "venerdì" "sabato"],
        ["dom" "lun" "mar" "mer" "gio" "ven" "sab"],
        ["gennaio" "febbraio" "marzo" "aprile" "maggio" "giugno" "luglio" "agosto" "settembre" "ottobre" "novembre" "dicembre"],
        ["gen" "feb" "mar" "apr" "mag" "giu" "lug" "ago" "set" "ott" "nov" "dic"];
    ["pt"],
        ["domingo" "segunda" "terça" "quarta" "quinta" "sexta" "sábado"],
        ["dom" "seg" "ter" "qua" "qui" "sex" "sáb"],
        ["janeiro" "fevereiro" "março" "abril" "maio" "junho" "julho" "agosto" "setembro" "outubro" "novembro" "dezembro"],
        ["jan" "fev" "mar" "abr" "mai" "jun" "jul" "ago" "set" "out" "nov" "dez"];
    ["nl"],
        ["zondag" "maandag" "dinsdag" "woensdag" "donderdag" "vrijdag" "zaterdag"],
        ["zo" "ma" "di" "wo" "do" "vr" "za"],
        ["januari" "februari" "maart" "april" "mei" "juni" "juli" "augustus" "september" "oktober" "november" "december"],
        ["jan" "feb" "mrt" "apr" "mei" "jun" "jul" "aug" "sep" "okt" "nov" "dec"];
    ["sv"],
        ["söndag" "måndag" "tisdag" "onsdag" "torsdag" "fredag" "lördag"],
        ["sön" "mån" "tis" "ons" "tor" "fre" "lör"],
        ["januari" "februari" "mars" "april" "maj" "juni" "juli" "augusti" "september" "oktober" "november" "december"],
        ["jan" "feb" "mar" "apr" "maj" "jun" "jul" "aug" "sep" "okt" "nov" "dec"];
    ["da"],
        ["søndag" "mandag" "tirsdag" "onsdag" "torsdag" "fredag" "lørdag"],
        ["søn" "man" "tir" "ons" "tor" "fre" "lør"],
        ["januar" "februar" "marts" "april" "maj" "juni" "juli" "august" "september" "oktober" "november" "december"],
        ["jan" "feb" "mar" "apr" "maj" "jun" "jul" "aug" "sep" "okt" "nov" "dec"];
    ["nb", "no"],
        ["søndag" "mandag" "tirsdag" "onsdag" "torsdag" "fredag" "lørdag"],
        ["søn." "man." "tir." "ons." "tor." "fre." "lør."],
        ["januar" "februar" "mars" "april" "mai" "juni" "juli" "august" "september" "oktober" "november" "desember"],
        ["jan." "feb." "mars" "april" "mai" "juni" "juli" "aug." "sep." "okt." "nov." "des."];
    ["fi"],
        ["sunnuntai" "maanantai" "tiistai" "keskiviikko" "torstai" "perjantai" "lauantai"],
        ["su" "ma" "ti" "ke" "to" "pe" "la"],
        ["tammikuuta" "helmikuuta" "maaliskuuta" "huhtikuuta" "toukokuuta" "kesäkuuta" "heinäkuuta" "elokuuta" "syyskuuta" "lokakuuta" "marraskuuta" "joulukuuta"],
        ["tammi" "helmi" "maalis" "huhti" "touko" "kesä" "heinä" "elo" "syys" "loka" "marras" "joulu"];
    ["pl"],
        ["niedziela" "poniedziałek" "wtorek" "środa" "czwartek" "piątek" "sobota"],
        ["nie" "pon" "wto" "śro" "czw" "pią" "sob"],
        ["stycznia" "lutego" "marca" "kwietnia" "maja" "czerwca" "lipca" "sierpnia" "września" "października" "listopada" "grudnia"],
        ["sty" "lut" "mar" "kwi" "maj" "cze" "lip" "sie" "wrz" "paź" "lis" "gru"];
    ["cs"],
        ["neděle" "pondělí" "úterý" "středa" "čtvrtek" "pátek" "sobota"],
        ["ne" "po" "út" "st" "čt" "pá" "so"],
        ["ledna" "února" "března" "dubna" "května" "června" "července" "srpna" "září" "října" "listopadu" "prosince"],
        ["led" "úno" "bře" "dub" "kvě" "čen" "čec" "srp" "zář" "říj" "lis" "pro"];
    ["ru"],
        ["воскресенье" "понедельник" "вторник" "среда" "четверг" "пятница" "суббота"],
        ["вс" "пн" "вт" "ср" "чт" "пт" "сб"],
        ["января" "февраля" "марта" "апреля" "мая" "июня" "июля" "августа" "сентября" "октября" "ноября" "декабря"],
        ["янв" "фев" "мар" "апр" "мая" "июн" "июл" "авг" "сен" "окт" "ноя" "дек"];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Wall;
    use crate::strftime::format_in;
    use crate::zone::Offset;

    #[test]
    fn a_date_is_written_in_the_words_of_its_locale() {
        // A Saturday.
        let wall = Wall { seconds: 1_795_262_400, micros: 0 };
        for (locale, expected) in [
            ("", "Saturday, 21 November 2026 (Sat Nov)"),
            ("C", "Saturday, 21 November 2026 (Sat Nov)"),
            ("en_GB.UTF-8", "Saturday, 21 November 2026 (Sat Nov)"),
            ("de", "Samstag, 21 November 2026 (Sa Nov)"),
            ("de_AT.UTF-8", "Samstag, 21 November 2026 (Sa Nov)"),
            ("FR_ch", "samedi, 21 novembre 2026 (sam. nov.)"),
            ("sv_SE", "lördag, 21 november 2026 (lör nov)"),
            ("no", "lørdag, 21 november 2026 (lør. nov.)"),
            ("cs_CZ@euro", "sobota, 21 listopadu 2026 (so lis)"),
        ] {
            let mut out = String::new();
            let words = Words::of(locale).unwrap();
            format_in(words, wall, &Offset::default(), "%A, %d %B %Y (%a %b)", &mut out);
            assert_eq!(out, expected, "{locale}");
        }
        for unknown in ["tlh", "klingon_QO'NOS", "_DE", "."] {
            assert_eq!(Words::of(unknown), None, "{unknown}");
        }
    }
}
