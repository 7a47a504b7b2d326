//! Holds the compiler to the lanes: looks into the machine code of every kernel of every crate that builds on `lanes`, so
//! that none is quietly compiled to something slow. What is known of a kernel stands in [`KERNELS`].

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::floors::floor;
use crate::workspace::Workspace;

/// What a kernel must be on every SIMD level.
struct Kernel {
    /// Its path, as in `codec::gsm::group::EncodeGroup`; with all, the first or none of its parameters.
    path: &'static str,
    /// Instructions that it lives by, and how often they stand in it at least, in the level's widest registers.
    needs: &'static [(&'static str, usize)],
    /// Least part of its instructions that work in those registers, in percent: what one compiler gave, less a quarter.
    share: usize,
    /// Whether it promises a reference's bits, and so must not contract products and sums.
    exact: bool,
}

/// Kernels by what they live by; one that is entered by `Lanes::call` is one of its own.
const KERNELS: &[Kernel] = &[
    Kernel {
        path: "codec::gsm::group::EncodeGroup",
        needs: &[("vpmaddwd", 80), ("vpmulhrsw", 35), ("vpaddsw", 40)],
        share: 39,
        exact: true,
    },
    Kernel {
        path: "codec::gsm::group::DecodeGroup",
        needs: &[("vpmulhrsw", 17), ("vpaddsw", 13), ("vpsubsw", 6)],
        share: 22,
        exact: true,
    },
    Kernel {
        path: "codec::pairs::Group<codec::pairs::EncodeJob<codec::g722::Encoder>",
        needs: &[("vpmulld", 60)],
        share: 33,
        exact: true,
    },
    Kernel {
        path: "codec::pairs::Group<codec::pairs::DecodeJob<codec::g722::Decoder>",
        needs: &[("vpmulld", 40)],
        share: 25,
        exact: true,
    },
    Kernel {
        path: "codec::pairs::Group<codec::pairs::EncodeJob<codec::g726::Encoder>",
        needs: &[("vpaddd", 85)],
        share: 37,
        exact: true,
    },
    Kernel {
        path: "codec::pairs::Group<codec::pairs::DecodeJob<codec::g726::Decoder>",
        needs: &[("vpaddd", 85)],
        share: 28,
        exact: true,
    },
    Kernel { path: "ilbc::decoder::group::codebook::Blocks<false>", needs: &[], share: 17, exact: true },
    Kernel { path: "ilbc::decoder::group::recursive::Synthesis", needs: &[], share: 55, exact: false },
    Kernel { path: "ilbc::decoder::group::spectrum::Filters", needs: &[], share: 45, exact: true },
    Kernel {
        path: "ilbc::encoder::group::EncodeGroup<16, false",
        needs: &[("vmulps", 560), ("vsubps", 110)],
        share: 28,
        exact: true,
    },
    Kernel {
        path: "ilbc::encoder::group::EncodeGroup<8, false",
        needs: &[("vmulps", 560), ("vsubps", 110)],
        share: 28,
        exact: true,
    },
    Kernel { path: "ilbc::encoder::lone::LoneSearch<false>", needs: &[], share: 17, exact: true },
    Kernel { path: "speex::lane::encode::Frame", needs: &[("vmulps", 77)], share: 54, exact: true },
    Kernel { path: "speex::lane::encode::Subframe", needs: &[("vmulps", 130)], share: 42, exact: true },
    Kernel { path: "speex::lane::pitch::OpenLoop", needs: &[("vmulps", 46)], share: 54, exact: true },
    Kernel { path: "speex::lane::pitch::TryLag", needs: &[("vmulps", 340)], share: 44, exact: true },
    Kernel { path: "speex::lane::innovation::Innovate", needs: &[("vmulps", 27)], share: 22, exact: true },
    Kernel { path: "speex::lane::lsp::Analyse", needs: &[("vmulps", 30)], share: 49, exact: true },
    Kernel { path: "speex::lane::lsp::Quantise", needs: &[("vmulps", 97)], share: 31, exact: true },
    Kernel { path: "speex::lane::lsp::ToLpc", needs: &[("vmulps", 50)], share: 68, exact: true },
    Kernel { path: "speex::lane::decode::Synthesise", needs: &[("vmulps", 34)], share: 59, exact: true },
    Kernel { path: "speex::lane::enhance::CombHalf", needs: &[("vmulps", 25)], share: 50, exact: true },
    Kernel { path: "speex::lane::enhance::Period", needs: &[("vmulps", 54)], share: 35, exact: true },
    Kernel {
        path: "ilbc::decoder::group::Group<ilbc::Mode20, false",
        needs: &[("vmulps", 22), ("vsubps", 15)],
        share: 24,
        exact: true,
    },
    Kernel {
        path: "ilbc::decoder::group::Group<ilbc::Mode30, false",
        needs: &[("vmulps", 22), ("vsubps", 15)],
        share: 24,
        exact: true,
    },
    // These two are also made for sums that need not be exact.
    Kernel { path: "ilbc::decoder::group::enhance::Refine", needs: &[], share: 29, exact: false },
    Kernel { path: "ilbc::decoder::group::enhance::Smooth", needs: &[], share: 47, exact: false },
];

/// What is asked of a kernel without a row, which is told of and passes.
const ANY: Kernel = Kernel { path: "", needs: &[], share: 10, exact: false };

/// A level: what a kernel's entry is called, and its registers.
const LEVELS: [(&str, &str); 2] = [("lanes::x86::enter_avx512", "%zmm"), ("lanes::x86::enter_avx2", "%ymm")];

/// What stands in the name of an intrinsic: one that is called, and not inlined, was met outside of the code for its level.
const INTRINSIC: &str = "::_mm";

/// Instructions that betray a loop vectorised across the wrong index.
const SCATTERED: [&str; 4] = ["vgather", "vpgather", "vscatter", "vpscatter"];
const FUSED: [&str; 4] = ["vfmadd", "vfmsub", "vfnmadd", "vfnmsub"];

/// Builds the packages with kernels, and checks each; a machine that cannot is told so and passes.
pub fn run(workspace: &Workspace) -> anyhow::Result<()> {
    if !cfg!(target_arch = "x86_64") {
        println!("skipped: the kernels have SIMD levels on x86-64 only");
        return Ok(());
    }
    if !Command::new("objdump").arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!("skipped: machine code is not looked into without objdump (binutils)");
        return Ok(());
    }
    let codecs = workspace.members.iter().filter(|member| floor(&member.name) == Some(1));
    let packages: Vec<&str> = codecs
        .filter(|member| member.dependencies.iter().any(|name| name == "lanes"))
        .map(|member| member.name.as_str())
        .collect();
    let target = workspace.target.join("vectorised");
    build(&packages, &target)?;
    let mut all = BTreeMap::new();
    for package in packages {
        all.extend(functions(&disassemble(&target.join(format!("release/lib{package}.rlib")))?));
    }
    let mut broken = missing(&all);
    for (symbol, function) in &all {
        match examine(symbol, function) {
            Ok(report) => println!("vectorised: {report}"),
            Err(faults) if has_row(symbol) => broken.extend(faults),
            Err(faults) => faults.iter().for_each(|fault| println!("vectorised: note: {fault}")),
        }
    }
    for fault in &broken {
        eprintln!("vectorised: {fault}");
    }
    if broken.is_empty() { Ok(()) } else { bail!("{} faults in machine code", broken.len()) }
}

/// A release build of its own, with symbols that name the kernel they were made for.
fn build(packages: &[&str], target: &Path) -> anyhow::Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--quiet", "--release", "--lib", "--config", "profile.release.lto=false"]);
    for package in packages {
        cargo.args(["--package", package]);
    }
    let flags = "-C symbol-mangling-version=v0";
    let status = cargo.arg("--target-dir").arg(target).env("RUSTFLAGS", flags).status()?;
    if !status.success() {
        bail!("the kernels do not build: {status}");
    }
    Ok(())
}

fn disassemble(library: &Path) -> anyhow::Result<String> {
    let output = Command::new("objdump")
        .args(["--disassemble", "--reloc", "--demangle", "--no-show-raw-insn"])
        .arg(library)
        .output()?;
    if !output.status.success() {
        bail!("objdump {}: {}", library.display(), String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).context("objdump speaks another encoding")
}

/// What is known of a function's machine code.
#[derive(Debug, Default, PartialEq, Eq)]
struct Function {
    /// Every instruction with its operands.
    instructions: Vec<String>,
    /// Names of intrinsics that it refers to.
    intrinsics: Vec<String>,
}

impl Function {
    /// Returns at once: a kernel that is written for one width of lanes, on the level of another.
    fn is_idle(&self) -> bool {
        self.intrinsics.is_empty() && self.instructions.len() == 1
    }
}

/// The entries of kernels in a disassembly, by their names; and other functions without their instructions when they call
/// intrinsics: parts of kernels that were compiled apart.
fn functions(text: &str) -> BTreeMap<String, Function> {
    let mut all: BTreeMap<String, Function> = BTreeMap::new();
    let (mut name, mut is_entry) = ("", false);
    for line in text.lines() {
        let heading = line.strip_suffix(">:").and_then(|line| line.split_once(" <"));
        if let Some((_, symbol)) = heading {
            name = symbol;
            is_entry = LEVELS.iter().any(|(entry, _)| name.starts_with(entry));
        } else if let Some((_, reference)) = line.split_once("R_X86_64_") {
            if reference.contains(INTRINSIC) {
                let intrinsic = reference.split_whitespace().last().unwrap_or_default();
                all.entry(name.to_owned()).or_default().intrinsics.push(intrinsic.to_owned());
            }
        } else if is_entry && let Some((_, instruction)) = line.split_once(":\t") {
            all.entry(name.to_owned()).or_default().instructions.push(instruction.trim().to_owned());
        }
    }
    all
}

/// The kernel that a symbol stands for, with its level's registers.
fn kernel_of(symbol: &str) -> Option<(&Kernel, &str)> {
    let (name, register) =
        LEVELS.iter().find_map(|(entry, register)| Some((symbol.strip_prefix(entry)?, *register)))?;
    let is_it = |kernel: &&Kernel| {
        let rest = name.strip_prefix("::<").and_then(|name| name.strip_prefix(kernel.path));
        rest.is_some_and(|rest| rest.starts_with(['>', '<', ':', ',']))
    };
    Some((KERNELS.iter().find(is_it).unwrap_or(&ANY), register))
}

/// Whether faults of this function break the build: those of the table's kernels do, others are told.
fn has_row(symbol: &str) -> bool {
    kernel_of(symbol).is_some_and(|(kernel, _)| !kernel.path.is_empty())
}

/// Kernels of the table that are not in the machine code of a level.
fn missing(functions: &BTreeMap<String, Function>) -> Vec<String> {
    let mut missing = Vec::new();
    for kernel in KERNELS {
        for (entry, _) in LEVELS {
            let name = format!("{entry}::<{}", kernel.path);
            if !functions.keys().any(|symbol| symbol.starts_with(&name)) {
                missing.push(format!("{name}>: no such function"));
            }
        }
        let mut own = functions
            .iter()
            .filter(|(symbol, _)| kernel_of(symbol).is_some_and(|(found, _)| found.path == kernel.path))
            .peekable();
        if own.peek().is_some() && own.all(|(_, function)| function.is_idle()) {
            missing.push(format!("{}: does nothing on any level", kernel.path));
        }
    }
    missing
}

/// A kernel on one level: a line of what was found, or all that is wrong.
fn examine(name: &str, function: &Function) -> Result<String, Vec<String>> {
    match kernel_of(name) {
        Some(_) if function.is_idle() => Ok(format!("{name}: does nothing on this level")),
        Some((kernel, register)) => check(kernel, register, name, function),
        None => Err(vec![format!(
            "{name}: has vectors, was not inlined, calls {}",
            function.intrinsics.join(", ")
        )]),
    }
}

fn check(kernel: &Kernel, register: &str, name: &str, function: &Function) -> Result<String, Vec<String>> {
    let mut faults = Vec::new();
    for intrinsic in &function.intrinsics {
        faults.push(format!("{name}: calls {intrinsic}, which was to be inlined"));
    }
    let count = |start: &str, register: &str| {
        let counts = |line: &&String| line.starts_with(start) && line.contains(register);
        function.instructions.iter().filter(counts).count()
    };
    let forbidden = SCATTERED.iter().chain(if kernel.exact { &FUSED[..] } else { &[] });
    for instruction in forbidden {
        let number = count(instruction, "");
        if number > 0 {
            faults.push(format!("{name}: {number} × {instruction}, which has no place here"));
        }
    }
    for (instruction, least) in kernel.needs {
        let number = count(instruction, register);
        if number < *least {
            faults.push(format!("{name}: {number} × {instruction} in {register}, at least {least} expected"));
        }
    }
    let (wide, all) = (count("v", register), function.instructions.len().max(1));
    let share = wide * 100 / all;
    if share < kernel.share {
        let least = kernel.share;
        faults.push(format!(
            "{name}: {share} % of {all} instructions in {register}, at least {least} % expected"
        ));
    }
    if faults.is_empty() {
        Ok(format!("{name}: {wide} of {all} instructions in {register} ({share} %)"))
    } else {
        Err(faults)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: Kernel = Kernel { path: "p::K", needs: &[("vmulps", 2)], share: 40, exact: true };

    /// A disassembly of one function, as objdump writes it.
    fn listing(lines: &[&str]) -> String {
        let mut text = String::from("p.o:     file format elf64-x86-64\n\n");
        text += "0000000000000000 <lanes::x86::enter_avx512::<p::K>>:\n";
        for (number, line) in lines.iter().enumerate() {
            text += &if line.starts_with("R_") {
                format!("\t\t\t{number:x}: {}\n", line.replace(' ', "\t"))
            } else {
                format!("   {number:x}:\t{line}\n")
            };
        }
        text + "\n0000000000000000 <p::other>:\n   0:\tret\n"
    }

    #[test]
    fn kernels_of_vector_code_pass_and_each_fault_is_named() {
        let good = ["vmulps %zmm0,%zmm1,%zmm1", "vmulps (%rsi),%zmm1,%zmm2", "add $0x1,%rax"];
        for (name, extra, fault) in [
            ("vector code", &[][..], None),
            ("a panic that is never reached", &["R_X86_64_PLT32 core::panicking::panic-0x4"], None),
            (
                "an intrinsic that is called",
                &["R_X86_64_PLT32 core::core_arch::x86::avx512f::_mm512_add_ps-0x4"],
                Some("which was to be inlined"),
            ),
            ("a fused product", &["vfmadd231ps %zmm0,%zmm1,%zmm2"], Some("vfmadd, which has no place")),
            ("a gather", &["vpgatherdd (%rax,%zmm1,4),%zmm0{%k1}"], Some("vpgather, which has no place")),
            ("mostly scalar code", &["inc %rax"; 9], Some("% of 12 instructions")),
        ] {
            let functions = functions(&listing(&[&good[..], extra].concat()));
            let (symbol, function) = functions.first_key_value().expect(name);
            assert_eq!(functions.len(), 1, "{name}");
            let result = check(&KERNEL, "%zmm", symbol, function);
            match fault {
                None => assert!(result.is_ok(), "{name}: {result:?}"),
                Some(fault) => {
                    let faults = result.expect_err(name);
                    assert!(faults.len() == 1 && faults[0].contains(fault), "{name}: {faults:?}");
                }
            }
        }
    }

    #[test]
    fn a_part_of_a_kernel_that_was_compiled_apart_is_found() {
        let text = listing(&["vmulps %zmm0,%zmm1,%zmm1"])
            + "\n0000000000000000 <p::part::<lanes::x86::avx512::Avx512>>:\n   0:\tret\n"
            + "\t\t\t1: R_X86_64_PLT32\tcore::core_arch::x86::avx512f::_mm512_add_ps-0x4\n";
        let functions = functions(&text);
        assert_eq!(functions.len(), 2);
        let (symbol, function) = functions.last_key_value().unwrap();
        let fault = examine(symbol, function).unwrap_err().concat();
        assert!(fault.starts_with("p::part::<lanes::x86::avx512::Avx512>: has vectors"), "{fault}");
    }

    #[test]
    fn narrower_registers_do_not_count() {
        let functions = functions(&listing(&["vmulps %ymm0,%ymm1,%ymm1", "vmulps %xmm0,%xmm1,%xmm1"]));
        let (symbol, function) = functions.first_key_value().unwrap();
        let faults = check(&KERNEL, "%zmm", symbol, function).unwrap_err();
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].contains("0 × vmulps in %zmm, at least 2 expected"), "{faults:?}");
    }

    #[test]
    fn a_symbol_leads_to_its_row_or_to_what_is_asked_of_all() {
        for (symbol, path, register) in [
            (
                "lanes::x86::enter_avx512::<codec::gsm::group::EncodeGroup>",
                "codec::gsm::group::EncodeGroup",
                "%zmm",
            ),
            (
                "lanes::x86::enter_avx2::<codec::gsm::group::DecodeGroup>",
                "codec::gsm::group::DecodeGroup",
                "%ymm",
            ),
            ("lanes::x86::enter_avx2::<codec::gsm::group::DecodeGroupOther>", "", "%ymm"),
        ] {
            let (kernel, found) = kernel_of(symbol).unwrap();
            assert_eq!((kernel.path, found), (path, register));
            assert_eq!(has_row(symbol), !path.is_empty());
        }
        assert!(kernel_of("codec::gsm::group::encode").is_none());
        assert_eq!(missing(&BTreeMap::new()).len(), 2 * KERNELS.len());
    }

    #[test]
    fn a_kernel_may_do_nothing_on_a_level_and_must_do_something_on_one() {
        let path = "ilbc::encoder::group::EncodeGroup<16, false";
        let text = |wide: &str| {
            LEVELS.map(|(entry, _)| {
                let body = if entry.ends_with("avx512") { wide } else { "" };
                format!("0000000000000000 <{entry}::<{path}>>>:\n{body}   0:\tret\n\n")
            })
        };
        for (name, wide, idle) in
            [("on one", "   0:\tvmulps %zmm0,%zmm1,%zmm1\n", false), ("on none", "", true)]
        {
            let functions = functions(&text(wide).concat());
            assert_eq!(functions.len(), 2, "{name}");
            let fault = format!("{path}: does nothing on any level");
            assert_eq!(missing(&functions).contains(&fault), idle, "{name}");
            let narrow = functions.iter().find(|(symbol, _)| symbol.contains("avx2"));
            assert!(narrow.is_some_and(|(symbol, function)| examine(symbol, function).is_ok()), "{name}");
        }
    }
}
