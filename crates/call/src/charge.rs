//! Advice of charge (ETSI EN 300 182, 3GPP TS 24.647): what a user is told that a call costs.

/// Most entries of a list of charging units (EN 300 182-1: RecordedUnitsList).
pub const UNITS_MAX: usize = 32;

/// What an amount of currency is multiplied by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Multiplier {
    /// 1/1000.
    OneThousandth,
    /// 1/100.
    OneHundredth,
    /// 1/10.
    OneTenth,
    /// 1.
    #[default]
    One,
    /// 10.
    Ten,
    /// 100.
    Hundred,
    /// 1000.
    Thousand,
}

impl Multiplier {
    /// As managers read it.
    pub const fn text(self) -> &'static str {
        match self {
            Self::OneThousandth => "1/1000",
            Self::OneHundredth => "1/100",
            Self::OneTenth => "1/10",
            Self::One => "1",
            Self::Ten => "10",
            Self::Hundred => "100",
            Self::Thousand => "1000",
        }
    }
    /// Power of ten.
    const fn exponent(self) -> i8 {
        match self {
            Self::OneThousandth => -3,
            Self::OneHundredth => -2,
            Self::OneTenth => -1,
            Self::One => 0,
            Self::Ten => 1,
            Self::Hundred => 2,
            Self::Thousand => 3,
        }
    }
}

/// An amount of money.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Money {
    /// Name of the currency, at most ten characters.
    pub name: String,
    /// How many of `multiplier`.
    pub amount: u32,
    /// Of what.
    pub multiplier: Multiplier,
}

impl Money {
    /// The amount as a decimal number (`12.34`).
    pub fn decimal(&self) -> String {
        let exponent = self.multiplier.exponent();
        let places = usize::from(exponent.unsigned_abs());
        if exponent >= 0 {
            let factor = 10_u64.pow(u32::from(exponent.unsigned_abs()));
            return u64::from(self.amount).saturating_mul(factor).to_string();
        }
        let digits = format!("{:0>width$}", self.amount, width = places + 1);
        let (whole, part) = digits.split_at(digits.len().saturating_sub(places));
        format!("{whole}.{part}")
    }
}

/// What a call has cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fee {
    /// Nobody knows.
    NotAvailable,
    /// Nothing.
    Free,
    /// Money.
    Currency(Money),
    /// Charging units: how many, and of which type (1 to 16); at most [`UNITS_MAX`].
    Units(Vec<(Option<u32>, Option<u8>)>),
}

impl Fee {
    /// As managers read it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NotAvailable => "NotAvailable",
            Self::Free => "Free",
            Self::Currency(_) => "Currency",
            Self::Units(_) => "Units",
        }
    }
}

/// Who is billed, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Billing {
    /// The caller.
    Normal,
    /// The called party.
    Reverse,
    /// A credit card.
    CreditCard,
    /// Forwarded always; at the end of a call only, as all that follow.
    ForwardingUnconditional,
    /// Forwarded when busy.
    ForwardingBusy,
    /// Forwarded when nobody answered.
    ForwardingNoReply,
    /// Deflected.
    Deflection,
    /// Transferred.
    Transfer,
}

impl Billing {
    /// Each of them.
    pub const ALL: [Self; 8] = [
        Self::Normal,
        Self::Reverse,
        Self::CreditCard,
        Self::ForwardingUnconditional,
        Self::ForwardingBusy,
        Self::ForwardingNoReply,
        Self::Deflection,
        Self::Transfer,
    ];

    /// As managers read it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Reverse => "Reverse",
            Self::CreditCard => "CreditCard",
            Self::ForwardingUnconditional => "CallForwardingUnconditional",
            Self::ForwardingBusy => "CallForwardingBusy",
            Self::ForwardingNoReply => "CallForwardingNoReply",
            Self::Deflection => "CallDeflection",
            Self::Transfer => "CallTransfer",
        }
    }
    /// Whether it may be said during a call.
    pub const fn is_of_running_call(self) -> bool {
        matches!(self, Self::Normal | Self::Reverse | Self::CreditCard)
    }
}

/// The call that a charge at the end belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Association {
    /// An identifier.
    Id(i32),
    /// A number and its numbering plan.
    Number(String, u16),
}

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// 10 ms.
    OneHundredthSecond,
    /// 100 ms.
    OneTenthSecond,
    /// 1 s.
    Second,
    /// 10 s.
    TenSeconds,
    /// 1 min.
    Minute,
    /// 1 h.
    Hour,
    /// 24 h.
    Day,
}

impl Scale {
    /// Each of them, the shortest first.
    pub const ALL: [Self; 7] = [
        Self::OneHundredthSecond,
        Self::OneTenthSecond,
        Self::Second,
        Self::TenSeconds,
        Self::Minute,
        Self::Hour,
        Self::Day,
    ];

    /// As managers write and read it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneHundredthSecond => "OneHundredthSecond",
            Self::OneTenthSecond => "OneTenthSecond",
            Self::Second => "Second",
            Self::TenSeconds => "TenSeconds",
            Self::Minute => "Minute",
            Self::Hour => "Hour",
            Self::Day => "Day",
        }
    }
}

/// What of a call is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// Nobody knows.
    NotAvailable,
    /// Something agreed on: a code.
    SpecialArrangement(u8),
    /// The call itself.
    BasicCommunication,
    /// Each attempt.
    CallAttempt,
    /// Each call that is set up.
    CallSetup,
    /// User to user information.
    UserUserInfo,
    /// A supplementary service.
    SupplementaryService,
}

impl Item {
    /// As managers write and read it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotAvailable => "NotAvailable",
            Self::SpecialArrangement(_) => "SpecialArrangement",
            Self::BasicCommunication => "BasicCommunication",
            Self::CallAttempt => "CallAttempt",
            Self::CallSetup => "CallSetup",
            Self::UserUserInfo => "UserUserInfo",
            Self::SupplementaryService => "SupplementaryService",
        }
    }
}

/// What it will cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rate {
    /// Nobody knows.
    NotAvailable,
    /// Nothing.
    Free,
    /// Nothing, from the beginning.
    FreeFromBeginning,
    /// Money for a length of time.
    Duration {
        /// Price.
        price: Money,
        /// For so long.
        length: (u32, Scale),
        /// How finely it is counted.
        granularity: Option<(u32, Scale)>,
        /// Whole lengths are charged (step function), or every moment (continuous).
        by_steps: bool,
    },
    /// One price.
    Flat(Money),
    /// Money for an octet, a segment or a message.
    Volume(Money, &'static str),
    /// A code.
    SpecialCode(u8),
}

impl Rate {
    /// As managers read it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::NotAvailable => "NotAvailable",
            Self::Free => "Free",
            Self::FreeFromBeginning => "FreeFromBeginning",
            Self::Duration { .. } => "Duration",
            Self::Flat(_) => "Flat",
            Self::Volume(..) => "Volume",
            Self::SpecialCode(_) => "SpecialCode",
        }
    }
}

/// One advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advice {
    /// AOC-S: what the call will cost.
    Setup {
        /// What is charged.
        item: Item,
        /// How.
        rate: Rate,
    },
    /// Several rates at once.
    Rates(Vec<(Item, Rate)>),
    /// AOC-D: what it has cost so far.
    During {
        /// How much.
        fee: Fee,
        /// All of it, or since the last advice.
        is_total: bool,
        /// To whom.
        billing: Option<Billing>,
    },
    /// AOC-E: what it has cost.
    End {
        /// How much.
        fee: Fee,
        /// To whom.
        billing: Option<Billing>,
        /// For which call.
        association: Option<Association>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_a_decimal_number() {
        for (amount, multiplier, expected) in [
            (5, Multiplier::OneThousandth, "0.005"),
            (1234, Multiplier::OneHundredth, "12.34"),
            (0, Multiplier::OneTenth, "0.0"),
            (7, Multiplier::One, "7"),
            (7, Multiplier::Ten, "70"),
            (7, Multiplier::Hundred, "700"),
            (u32::MAX, Multiplier::Thousand, "4294967295000"),
        ] {
            assert_eq!(Money { name: "EUR".to_owned(), amount, multiplier }.decimal(), expected);
        }
    }
}
