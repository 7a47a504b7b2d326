//! How far functions reach, and how far those who evaluate may.
//!
//! What a user of the manager, of REST or of a console may not reach is refused where a function is read or written, at any
//! depth, whatever text led there: the right belongs to the evaluation ([`crate::Env::rights`]), never to a text that is
//! looked at beforehand. The dialplan of the site itself has all rights.

/// What reading a function, or writing it, touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Touch {
    /// Calls, text and numbers.
    Plain,
    /// Reading it sets a variable too.
    Sets,
    /// Its argument, or text of the dialplan, is substituted once more.
    Evaluates,
    /// More than calls, but no file, program or database of the site's: mailboxes with their passwords, queues, the DNS.
    Beyond,
    /// Files, the environment, databases, locks, other servers.
    Outside,
    /// A program is run.
    Program,
}

/// What a function touches; every row of the table says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// By being read.
    pub read: Touch,
    /// By being written.
    pub write: Touch,
}

impl Reach {
    /// Both ways plain.
    pub const PLAIN: Self = Self::of(Touch::Plain, Touch::Plain);
    /// Reading it sets a variable.
    pub const SETS: Self = Self::of(Touch::Sets, Touch::Plain);
    /// Both ways outside.
    pub const OUTSIDE: Self = Self::of(Touch::Outside, Touch::Outside);
    /// Both ways beyond calls.
    pub const BEYOND: Self = Self::of(Touch::Beyond, Touch::Beyond);
    /// Plain to read, beyond calls to write.
    pub const WRITES_BEYOND: Self = Self::of(Touch::Plain, Touch::Beyond);
    /// Substitutes its argument.
    pub const EVALUATES: Self = Self::of(Touch::Evaluates, Touch::Evaluates);
    /// Runs a program.
    pub const PROGRAM: Self = Self::of(Touch::Program, Touch::Program);

    /// What reading and writing touch.
    pub const fn of(read: Touch, write: Touch) -> Self {
        Self { read, write }
    }
}

/// What an evaluation may touch. Text whose origin nobody names is the site's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// Set variables and write functions.
    pub sets: bool,
    /// Do what needs the manager's class `system`.
    pub system: bool,
    /// Reach outside, as `live_dangerously` allows.
    pub outside: bool,
}

impl Default for Rights {
    fn default() -> Self {
        Self::ALL
    }
}

impl Rights {
    /// Those of the site's own dialplan.
    pub const ALL: Self = Self { sets: true, system: true, outside: true };
    /// Those of who acts on calls and reaches no further.
    pub const CALLS: Self = Self { sets: true, system: false, outside: false };
    /// Those of who only looks.
    pub const READS: Self = Self { sets: false, system: false, outside: false };

    /// What the arguments of an application may touch that somebody with these rights originates: who may originate any
    /// application, may run programs by it.
    #[must_use]
    pub fn of_application(self) -> Self {
        if self.system { Self::ALL } else { self }
    }
    /// Whether what is read may touch this.
    pub fn may_read(self, touch: Touch) -> bool {
        match touch {
            Touch::Plain => true,
            Touch::Sets => self.sets,
            Touch::Evaluates => self.system,
            Touch::Beyond => self.system || self.outside,
            Touch::Outside => self.outside,
            Touch::Program => self.system && self.outside,
        }
    }
    /// Whether what is written may touch this.
    pub fn may_write(self, touch: Touch) -> bool {
        self.sets && self.may_read(touch)
    }
}
