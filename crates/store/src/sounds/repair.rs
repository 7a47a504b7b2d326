//! Recordings that a kill or a power cut left with a header that tells of less than there is.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::SystemTime;

use codec::Recording;

/// Depth of folders that is looked through.
const DEPTH_MAX: u32 = 6;
/// Files that are looked at; a spool with more has been left alone for too long to be looked through at each start.
const FILES_MAX: usize = 100_000;

/// Longest file of pages that is read whole: a day of Opus.
const PAGES_BYTES_MAX: u64 = 512 << 20;

/// Completes the headers of the recordings in a folder and below it that are older than `before`; how many.
///
/// Only headers that this program wrote are touched: byte for byte those of a recording of the length that they tell.
pub(super) fn repair(folder: &Path, before: SystemTime) -> usize {
    let (mut looked, mut repaired) = (0, 0);
    walk(folder, DEPTH_MAX, &mut |path| {
        looked += 1;
        let old = path.metadata().and_then(|known| known.modified()).is_ok_and(|time| time < before);
        // What cannot be read or written is left as it is: it is no worse than it was.
        repaired += usize::from(old && complete(path).unwrap_or(false));
        looked < FILES_MAX
    });
    repaired
}

/// Shows every file; `false` ends the walk.
fn walk(folder: &Path, depth: u32, show: &mut dyn FnMut(&Path) -> bool) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else { return true };
    for entry in entries.flatten() {
        let path = entry.path();
        let goes_on = match entry.file_type() {
            Ok(kind) if kind.is_dir() => depth == 0 || walk(&path, depth - 1, show),
            Ok(kind) if kind.is_file() => show(&path),
            _ => true,
        };
        if !goes_on {
            return false;
        }
    }
    true
}

/// Completes one file; whether there was something to complete.
fn complete(path: &Path) -> std::io::Result<bool> {
    let Some(extension) = path.extension().and_then(|extension| extension.to_str()) else { return Ok(false) };
    if matches!(extension, "opus" | "ogg") {
        return complete_pages(path);
    }
    let kinds = [Recording::new(extension), Recording::stereo(extension)];
    let length = path.metadata()?.len();
    for recording in kinds.into_iter().flatten() {
        let size = recording.header(0).len();
        let data = length.saturating_sub(size as u64);
        let Ok(data) = u32::try_from(data) else { continue };
        if size == 0 || data == 0 {
            continue;
        }
        let mut header = vec![0; size];
        File::open(path)?.read_exact(&mut header)?;
        let told = header.last_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        if told < data && header == recording.header(told) {
            let mut file = OpenOptions::new().write(true).open(path)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&recording.header(data))?;
            file.sync_data()?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// Cuts off what is no whole page and marks the last one as the end.
fn complete_pages(path: &Path) -> std::io::Result<bool> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let length = file.metadata()?.len();
    let mut tail = vec![0; usize::try_from(length.min(codec::PAGE_BYTES_MAX as u64)).unwrap_or(0)];
    let start = length - tail.len() as u64;
    file.read_exact_at(&mut tail, start)?;
    if length > PAGES_BYTES_MAX || codec::is_complete(&tail) {
        return Ok(false);
    }
    let Some((start, page)) = codec::completed(&std::fs::read(path)?) else { return Ok(false) };
    file.write_all_at(&page, start as u64)?;
    file.set_len((start + page.len()) as u64)?;
    file.sync_data()?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn headers_of_ours_are_completed_and_nothing_else_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("2026/11");
        std::fs::create_dir_all(&below).unwrap();
        let write = |name: &str, told: u32, data: &[u8], stereo: bool| {
            let extension = name.rsplit('.').next().unwrap();
            let recording =
                if stereo { Recording::stereo(extension) } else { Recording::new(extension) }.unwrap();
            let bytes = [recording.header(told), data.to_vec()].concat();
            std::fs::write(below.join(name), &bytes).unwrap();
            bytes
        };
        let sound = [7; 6500];
        write("cut.wav", 1600, &sound, false);
        write("stereo.wav", 0, &sound, true);
        write("cut.WAV", 650, &sound, false);
        let whole = write("whole.wav", 6500, &sound, false);
        let raw = write("raw.ulaw", 0, &sound, false);
        let mut other = write("other.wav", 100, &sound, false);
        other[30] = 99; // not as this program writes it
        std::fs::write(below.join("other.wav"), &other).unwrap();
        let later = SystemTime::now() + Duration::from_secs(60);
        assert_eq!(repair(folder.path(), SystemTime::UNIX_EPOCH), 0, "what is newer may be in use");
        assert_eq!(repair(folder.path(), later), 3);
        for (name, stereo) in [("cut.wav", false), ("stereo.wav", true), ("cut.WAV", false)] {
            let extension = name.rsplit('.').next().unwrap();
            let recording =
                if stereo { Recording::stereo(extension) } else { Recording::new(extension) }.unwrap();
            let expected = [recording.header(6500), sound.to_vec()].concat();
            assert_eq!(std::fs::read(below.join(name)).unwrap(), expected, "{name}");
        }
        for (name, bytes) in [("whole.wav", whole), ("raw.ulaw", raw), ("other.wav", other)] {
            assert_eq!(std::fs::read(below.join(name)).unwrap(), bytes, "{name}");
        }
        assert_eq!(repair(folder.path(), later), 0, "once is enough");
    }
}
