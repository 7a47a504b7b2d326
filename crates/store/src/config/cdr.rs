//! `cdr.conf`: whether and which call detail records are written.

use super::kind::{Int, YesNo};
use super::{options, read_settings};
use conf::{File, Findings};

options! {
    /// `[general]` of `cdr.conf`.
    CdrGeneral, "cdr.conf", "general", IsIgnored;
    enable: YesNo = "yes", "Make call detail records.";
    unanswered: YesNo = "no", "Write records of calls that nobody answered and that dialled nobody.";
    congestion: YesNo = "no", "Write CONGESTION as disposition instead of FAILED.";
    endbeforehexten: YesNo = "yes", "Finish the record before the h extension runs.";
    initiatedseconds: YesNo = "no", "Round billsec up to a whole second.",
        Later "no" "billsec is cut to whole seconds";
    channeldefaultenabled: YesNo = "yes", "Records for every channel unless the dialplan says otherwise.",
        Later "yes" "every channel has a record";
    ignorestatechanges: YesNo = "no", "Bridging changes no record.",
        Later "no" "bridging changes the record";
    ignoredialchanges: YesNo = "no", "Dialling changes no record.",
        Later "no" "dialling changes the record";
    batch: YesNo = "no", "Keep records to write several at once.",
        Ignored "*" "records are always gathered for some milliseconds and synced together";
    size: Int<1, 1_000_000> = "100", "Records of a batch.",
        Ignored "*" "records are always gathered for some milliseconds and synced together";
    time: Int<1, 86_400> = "300", "Seconds after which a batch is written.",
        Ignored "*" "records are always gathered for some milliseconds and synced together";
    scheduleronly: YesNo = "no", "Write batches on the scheduler's thread.",
        Ignored "*" "a thread of its own writes";
    safeshutdown: YesNo = "yes", "Write what is left at shutdown.",
        Later "yes" "what is left is written at shutdown";
    @recognised {}
}

options! {
    /// `[csv]` of `cdr.conf`. Without the section no CSV file is written.
    CdrCsv, "cdr.conf", "csv", IsIgnored;
    usegmtime: YesNo = "no", "Times in UTC.";
    loguniqueid: YesNo = "no", "Append the UNIQUEID.";
    loguserfield: YesNo = "no", "Append the user field.";
    accountlogs: YesNo = "yes", "Also write a file for each account code.";
    newcdrcolumns: YesNo = "no", "Append peeraccount, linkedid and sequence.";
    @recognised {}
}

/// `cdr.conf` as a whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cdr {
    /// `[general]`.
    pub general: CdrGeneral,
    /// `[csv]`, when it is there.
    pub csv: Option<CdrCsv>,
}

/// Sections of other back-ends, and that they are not there.
const LATER: [&str; 5] = ["radius", "custom", "manager", "odbc", "sqlite"];

impl Cdr {
    /// Reads the file.
    pub fn read(file: &File, findings: &mut Findings) -> Self {
        let csv = file.section("csv").map(|_| read_settings(file, "csv", findings));
        let general: CdrGeneral = read_settings(file, "general", findings);
        if csv.is_none() && general.enable {
            findings.note(
                &file.place(),
                "there is no section [csv], so Master.csv is not written",
                "add [csv]",
            );
        }
        for section in file.objects().filter(|section| LATER.contains(&&*section.name.to_ascii_lowercase())) {
            let message =
                format!("[{}] is known to Asterisk and not supported yet: it writes nothing", section.name);
            findings.warning(&section.place, message, "use [csv]");
        }
        Self { general, csv }
    }
}
