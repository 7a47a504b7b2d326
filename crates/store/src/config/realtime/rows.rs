//! Rows of tables as sections of `pjsip.conf` or `iax.conf`, so that their readers are the only ones.
//!
//! A column is the option of its name. Columns that are no option, and those that are NULL or empty, say nothing. A value may
//! hold several, parted by `;`, as lines of a file would; `^3B` in a value is a `;`.

use crate::config::Object as _;
use crate::config::iax::IaxPeer;
use crate::config::pjsip::{
    Aor, Auth, DomainAlias, Endpoint, Global, Identify, Registration, SipAcl, System, Transport,
};
use conf::{Place, Section, Variable};
use std::sync::Arc;

/// Column that names the object of a row.
pub const ID: &str = "id";
/// The same in families of IAX2.
pub const NAME: &str = "name";

/// Columns whose value is one, whatever is in it: passwords of IAX2 are parted by `;` for its own reader.
const WHOLE: [&str; 1] = ["secret"];

/// Makes sections of the rows of one family.
#[derive(Debug, Clone)]
pub struct RowReader {
    kind: &'static str,
    /// Options, in lower case and in order.
    options: Vec<String>,
    /// Named by the table that the rows are of.
    table: String,
}

impl RowReader {
    /// For rows of a table that are objects of this `type=`; `None` when no object of that type is made of rows.
    pub fn new(kind: &str, table: &str) -> Option<Self> {
        let (kind, names) = match kind {
            "endpoint" => ("endpoint", Endpoint::names()),
            "aor" => ("aor", Aor::names()),
            "auth" => ("auth", Auth::names()),
            "identify" => ("identify", Identify::names()),
            "registration" => ("registration", Registration::names()),
            "transport" => ("transport", Transport::names()),
            "global" => ("global", Global::names()),
            "system" => ("system", System::names()),
            "domain_alias" => ("domain_alias", DomainAlias::names()),
            "acl" => ("acl", SipAcl::names()),
            // Of rows that do not say what they are.
            "iax" => ("friend", IaxPeer::names()),
            _ => return None,
        };
        let mut options: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
        options.sort_unstable();
        options.dedup();
        Some(Self { kind, options, table: table.to_owned() })
    }
    /// The section of a row, which column [`ID`] or [`NAME`] names; `None` for a row without a name.
    pub fn section<'a>(
        &self,
        id: Option<&str>,
        row: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Option<Section> {
        let id = id.map(str::trim).filter(|id| !id.is_empty())?;
        let place = Place::new(format!("{}/{id}", self.table), 0);
        let line = |name: Arc<str>, value: Arc<str>| Variable {
            name,
            value,
            object: false,
            place: place.clone(),
            inherited: false,
        };
        let mut variables = vec![line("type".into(), self.kind.into())];
        for (name, value) in row {
            let name = name.to_ascii_lowercase();
            if value.trim().is_empty() || self.options.binary_search(&name).is_err() {
                continue;
            }
            if WHOLE.contains(&&*name) {
                variables.push(line(name.into(), value.into()));
                continue;
            }
            let name: Arc<str> = name.into();
            let values = value.split(';').map(str::trim).filter(|value| !value.is_empty());
            variables.extend(values.map(|value| line(name.clone(), value.replace("^3B", ";").into())));
        }
        Some(Section { name: id.into(), template: false, place, parents: Vec::new(), variables })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::acl::NamedAcls;
    use crate::config::pjsip::Pjsip;
    use conf::Findings;

    fn id_of<'a>(row: &[(&str, &'a str)]) -> Option<&'a str> {
        row.iter().find(|(name, _)| name.eq_ignore_ascii_case(ID)).map(|(_, id)| *id)
    }

    #[test]
    fn a_row_is_the_section_that_a_file_would_have() {
        let reader = RowReader::new("endpoint", "ps_endpoints").unwrap();
        let none: Option<Vec<&str>> = None;
        for (name, row, expected) in [
            ("named", vec![("id", "6001"), ("context", "in")], Some(vec!["type=endpoint", "context=in"])),
            ("no name", vec![("context", "in")], none.clone()),
            ("empty name", vec![("id", " "), ("context", "in")], none),
            (
                "empty values say nothing",
                vec![("id", "a"), ("context", ""), ("allow", " ")],
                Some(vec!["type=endpoint"]),
            ),
            (
                "columns of others",
                vec![("id", "a"), ("tenant", "7"), ("type", "aor")],
                Some(vec!["type=endpoint"]),
            ),
            ("any case", vec![("ID", "a"), ("Context", "in")], Some(vec!["type=endpoint", "context=in"])),
            (
                "several values",
                vec![("id", "a"), ("set_var", "x=1;y=2^3B3")],
                Some(vec!["type=endpoint", "set_var=x=1", "set_var=y=2;3"]),
            ),
        ] {
            let section = reader.section(id_of(&row), row.iter().copied());
            let lines = section.map(|section| {
                section
                    .variables
                    .iter()
                    .map(|line| format!("{}={}", line.name, line.value))
                    .collect::<Vec<_>>()
            });
            let expected = expected.map(|lines| lines.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(lines, expected, "{name}");
        }
        assert!(RowReader::new("phoneprov", "t").is_none());
    }

    #[test]
    fn objects_of_rows_have_the_options_of_files_in_all_spellings_of_yes_and_no() {
        for (value, expected) in [
            ("yes", true),
            ("1", true),
            ("true", true),
            ("on", true),
            ("no", false),
            ("0", false),
            ("off", false),
        ] {
            let reader = RowReader::new("endpoint", "ps_endpoints").unwrap();
            let row = [
                ("id", "6001"),
                ("direct_media", value),
                ("disallow", "all"),
                ("allow", "ulaw,alaw"),
                ("auth", "6001"),
            ];
            let sections = reader.section(id_of(&row), row.into_iter()).into_iter().collect();
            let mut findings = Findings::new();
            let made = Pjsip::of_rows(sections, &NamedAcls::default(), base::Coded::default(), &mut findings);
            let endpoint = &made.endpoints["6001"];
            assert_eq!(
                (endpoint.direct_media, endpoint.auth.as_slice()),
                (expected, &["6001".to_owned()][..]),
                "{value}"
            );
            assert_eq!(endpoint.allow.formats.iter().count(), 2);
        }
    }

    #[test]
    fn a_bad_value_skips_its_row_and_no_other() {
        let reader = RowReader::new("aor", "ps_aors").unwrap();
        let rows = [[("id", "good"), ("max_contacts", "2")], [("id", "bad"), ("max_contacts", "many")]];
        let sections =
            rows.iter().filter_map(|row| reader.section(id_of(row), row.iter().copied())).collect();
        let mut findings = Findings::new();
        let made = Pjsip::of_rows(sections, &NamedAcls::default(), base::Coded::default(), &mut findings);
        assert_eq!(made.aors.keys().collect::<Vec<_>>(), ["good"]);
        let told: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(told.len() == 1 && told[0].starts_with("ps_aors/bad"), "{told:?}");
    }
}
