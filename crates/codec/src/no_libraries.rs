//! Stands in for the crate `bound` where there are no libraries in C: nothing of it can be made.

/// A library that is not here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unavailable;

/// A payload in whose place so many samples were made up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concealed(pub usize);

/// What an encoder made of a packet's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoded {
    /// Bytes written.
    pub bytes: usize,
    /// Nothing need be sent.
    pub silent: bool,
}

/// Encoders and decoders of packets that nobody can make.
macro_rules! coders {
    ($($new:ident: $type:ty),*) => {
        /// None can be made.
        #[derive(Debug)]
        pub enum Encoder {}
        impl Encoder {
            /// Never one.
            pub fn new($($new: $type),*) -> Result<Self, super::Unavailable> {
                let _ = ($($new,)*);
                Err(super::Unavailable)
            }
            /// There is none to ask.
            pub fn encode(&mut self, _: &[i16], _: &mut [u8]) -> super::Encoded {
                match *self {}
            }
            /// There is none to ask.
            pub fn reset(&mut self) {
                match *self {}
            }
        }
    };
}
/// See above.
macro_rules! decoders {
    ($($new:ident: $type:ty),*) => {
        /// None can be made.
        #[derive(Debug)]
        pub enum Decoder {}
        impl Decoder {
            /// Never one.
            pub fn new($($new: $type),*) -> Result<Self, super::Unavailable> {
                let _ = ($($new,)*);
                Err(super::Unavailable)
            }
            /// There is none to ask.
            pub fn decode(&mut self, _: &[u8], _: &mut [i16]) -> Result<usize, super::Concealed> {
                match *self {}
            }
            /// There is none to ask.
            pub fn conceal(&mut self, _: &mut [i16]) {
                match *self {}
            }
            /// There is none to ask.
            #[allow(dead_code)] // Opus alone has it
            pub fn recover(&mut self, _: &[u8], _: &mut [i16]) {
                match *self {}
            }
            /// There is none to ask.
            pub fn reset(&mut self) {
                match *self {}
            }
        }
    };
}

pub mod speex {
    //! See the crate of the same name.

    /// How much of the spectrum is coded.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Band {
        /// 8 kHz.
        Narrow,
        /// 16 kHz.
        Wide,
        /// 32 kHz.
        UltraWide,
    }
    /// What an encoder would go by.
    #[derive(Debug, Default)]
    #[allow(dead_code)] // no encoder reads it
    pub struct Options {
        /// 0 to 10.
        pub quality: u8,
        /// 0 to 10.
        pub complexity: u8,
        /// The bit rate follows the sound.
        pub vbr: bool,
        /// 0 to 10.
        pub vbr_quality: f32,
        /// Bits a second.
        pub abr: u32,
        /// Silence is told from speech.
        pub vad: bool,
        /// Silence is not sent.
        pub dtx: bool,
    }

    coders!(band: Band, options: &Options);
    decoders!(band: Band, enhance: bool);

    /// Never.
    pub fn available() -> Result<(), super::Unavailable> {
        Err(super::Unavailable)
    }
    /// Nobody can tell.
    pub fn frames(_: &[u8], _: Band) -> Option<usize> {
        None
    }
}

pub mod opus {
    //! See the crate of the same name.

    /// What an encoder would go by.
    #[derive(Debug)]
    #[allow(dead_code)] // no encoder reads it
    pub struct Options {
        /// Bits a second.
        pub bitrate: Option<u32>,
        /// Hz.
        pub playback_rate: u32,
        /// A coarse copy of the frame before.
        pub fec: bool,
        /// Percent of packets.
        pub loss_percent: u8,
        /// Silence is sent now and then only.
        pub dtx: bool,
        /// Each packet is equally long.
        pub constant: bool,
        /// Effort.
        pub complexity: u8,
    }

    coders!(rate: u32, options: &Options);
    decoders!(rate: u32);
    impl Decoder {
        /// There is none to ask.
        pub fn rate(&self) -> u32 {
            match *self {}
        }
    }

    /// Nobody can tell.
    pub fn samples(_: &[u8], _: u32) -> Option<usize> {
        None
    }
}

pub mod codec2 {
    //! See the crate of the same name.

    /// None can be made.
    #[derive(Debug)]
    pub enum Encoder {}
    impl Encoder {
        /// Never one.
        pub fn new() -> Result<Self, super::Unavailable> {
            Err(super::Unavailable)
        }
        /// There is none to ask.
        pub fn encode(&mut self, _: &[i16; 160], _: &mut [u8; 6]) {
            match *self {}
        }
    }
    /// None can be made.
    #[derive(Debug)]
    pub enum Decoder {}
    impl Decoder {
        /// Never one.
        pub fn new() -> Result<Self, super::Unavailable> {
            Err(super::Unavailable)
        }
        /// There is none to ask.
        pub fn decode(&mut self, _: &[u8; 6], _: &mut [i16; 160]) {
            match *self {}
        }
    }
    /// Never.
    pub fn available() -> Result<(), super::Unavailable> {
        Err(super::Unavailable)
    }
}
